//! Prefixes that are delegated to UEs: what the SMF is told, and that an address leads to its session.

use crate::common::*;
use ipnet::Ipv6Net;
use packet::rss::{ue_hash_ipv4, ue_hash_prefix64};
use pfcp::ie::UeIpAddress;
use pfcp::message::SessionEstablishmentRequest;
use proptest::prelude::*;
use session::store::{DirectoryChange, Established};
use session::{SessionRef, ShardId};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

fn of(ue: UeIpAddress, dnn: &'static [u8]) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday();
    request.create_pdrs[1].pdi.ue_ips = vec![ue];
    request.apn_dnn = Some(dnn);
    request
}

/// TS 29.244 §8.2.62: whoever is told no length takes the prefix for a /64.
#[test]
fn the_smf_is_told_how_much_a_ue_got() {
    let (mut store, peer) = store();
    let choose = UeIpAddress { choose_ipv6: true, ..UeIpAddress::default() };
    let asks = UeIpAddress { ipv6_prefix_length: Some(64), ..choose };
    for (question, dnn, delegation_bits, length, has) in [
        (choose, &b"home"[..], Some(8), None, 56),
        (asks, b"home", None, Some(56), 56),
        (choose, b"internet", None, None, 64),
        (asks, b"internet", None, Some(64), 64),
    ] {
        let Established { rules, created_pdrs, directory, .. } =
            store.establish(&of(question, dnn), peer).unwrap();
        let told = created_pdrs.iter().flat_map(|pdr| &pdr.ue_ips).find(|ip| ip.ipv6.is_some()).unwrap();
        assert_eq!((told.ipv6_delegation_bits, told.ipv6_prefix_length), (delegation_bits, length));
        assert_eq!(told.ipv6, rules.ue_ipv6.map(|prefix| prefix.network()));
        assert_eq!(rules.ue_ipv6.unwrap().prefix_len(), has);
        assert!(directory.is_empty(), "{directory:?}");
    }
}

/// An SMF that chooses the prefixes itself, in either way to say how long they are.
#[test]
fn a_given_prefix_needs_the_directory_only_if_its_pool_has_others() {
    let (mut store, peer) = store();
    let mut given = |prefix: &str, bits: Option<u8>, length: Option<u8>| {
        let ue = UeIpAddress {
            ipv6: Some(prefix.parse().unwrap()),
            ipv6_delegation_bits: bits,
            ipv6_prefix_length: length,
            ..UeIpAddress::default()
        };
        store
            .establish(&of(ue, b"home"), peer)
            .map(|established| (established.rules.ue_ipv6, established.directory.len()))
    };
    let net = |prefix: &str| Some(prefix.parse::<Ipv6Net>().unwrap());
    assert_eq!(given("2001:db8:56:1200::", Some(8), None), Ok((net("2001:db8:56:1200::/56"), 0)));
    assert_eq!(given("2001:db8:56:1300::", None, Some(56)), Ok((net("2001:db8:56:1300::/56"), 0)));
    assert_eq!(given("2001:db8:56:1400::", None, None), Ok((net("2001:db8:56:1400::/64"), 1)));
    assert_eq!(given("2001:db8:56:2000::", Some(12), None), Ok((net("2001:db8:56:2000::/52"), 1)));
    assert_eq!(given("2001:db8:45:1200::", Some(8), None), Ok((net("2001:db8:45:1200::/56"), 1)));
    assert_eq!(given("2001:db8:45:1300::", None, None), Ok((net("2001:db8:45:1300::/64"), 0)));
    assert_eq!(given("2001:db8:9:1200::", Some(8), None), Ok((net("2001:db8:9:1200::/56"), 1)));
    assert_eq!(given("2001:db8:9:1300::", None, None), Ok((net("2001:db8:9:1300::/64"), 0)));
    assert!(given("2001:db8:56:1234::", None, None).is_err(), "of somebody's /56");
    assert!(given("2001:db8:56:2f00::", Some(8), None).is_err(), "of somebody's /52");
}

/// The way of a packet to its shard, as a worker finds it: the directory, and else the hash of the address, cut to 56 bits in the
/// pool that is so.
fn shard_of(directory: &BTreeMap<ipnet::IpNet, SessionRef>, address: IpAddr) -> ShardId {
    let said = directory.iter().filter(|(prefix, _)| prefix.contains(&address));
    if let Some((_, place)) = said.max_by_key(|(prefix, _)| prefix.prefix_len()) {
        return place.shard;
    }
    ShardId::from_hash(match address {
        IpAddr::V4(address) => ue_hash_ipv4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            let link = if [a, b, c] == [0x2001, 0xdb8, 0x56] { d & 0xff00 } else { d };
            ue_hash_prefix64(u64::from(a) << 48 | u64::from(b) << 32 | u64::from(c) << 16 | u64::from(link))
        }
    })
}

#[derive(Clone, Debug)]
enum Op {
    Choose { home: bool, four: bool },
    Give { site: u16, link: u16, length: u8, four: Option<u8> },
    Delete(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (any::<bool>(), any::<bool>()).prop_map(|(home, four)| Op::Choose { home, four }),
        3 => (
            prop::sample::select(vec![0x56, 0x56, 0x45, 0x99]),
            any::<u16>(),
            prop::sample::select(vec![52, 56, 56, 60, 64, 64]),
            prop::option::of(any::<u8>()),
        )
            .prop_map(|(site, link, length, four)| Op::Give { site, link, length, four }),
        1 => any::<usize>().prop_map(Op::Delete),
    ]
}

proptest! {
    #[test]
    fn every_address_of_a_ue_leads_to_its_sessions_shard(
        ops in prop::collection::vec(op(), 1..60),
        tails in prop::collection::vec(any::<u128>(), 8),
    ) {
        let (mut store, peer) = store();
        let mut directory: BTreeMap<ipnet::IpNet, SessionRef> = BTreeMap::new();
        let mut live = Vec::new();
        for op in ops {
            let request = match op {
                Op::Choose { home, four } => {
                    let ue = UeIpAddress { choose_ipv6: true, choose_ipv4: four && !home, ..UeIpAddress::default() };
                    of(ue, if home { b"home" } else { b"internet" })
                }
                Op::Give { site, link, length, four } => {
                    let ue = UeIpAddress {
                        ipv6: Some(Ipv6Addr::new(0x2001, 0xdb8, site, link, 0, 0, 0, 1)),
                        ipv6_prefix_length: Some(length),
                        ipv4: four.map(|last| [172, 16, 0, last].into()),
                        ..UeIpAddress::default()
                    };
                    of(ue, b"home")
                }
                Op::Delete(at) if !live.is_empty() => {
                    let rules: std::sync::Arc<session::rules::Rules> = live.swap_remove(at % live.len());
                    for change in store.delete(rules.seid).unwrap().directory {
                        if let DirectoryChange::Address { prefix, session } = change {
                            prop_assert!(session.is_none() && directory.remove(&prefix).is_some());
                        }
                    }
                    continue;
                }
                Op::Delete(_) => continue,
            };
            // Some are refused: somebody has what they ask for.
            let Ok(established) = store.establish(&request, peer) else { continue };
            for change in established.directory {
                if let DirectoryChange::Address { prefix, session } = change {
                    prop_assert!(directory.insert(prefix, session.unwrap()).is_none());
                }
            }
            live.push(established.rules);
        }
        for rules in &live {
            let mut addresses: Vec<IpAddr> = rules.ue_ipv4.map(IpAddr::V4).into_iter().collect();
            let prefix = rules.ue_ipv6.unwrap();
            let host = u128::MAX >> prefix.prefix_len();
            let inside = tails.iter().map(|tail| Ipv6Addr::from_bits(prefix.network().to_bits() | tail & host));
            addresses.extend(inside.map(IpAddr::V6));
            for address in addresses {
                prop_assert_eq!(shard_of(&directory, address), rules.place.shard, "{} of {}", address, prefix);
                prop_assert_eq!(store.by_address(address).unwrap().rules().seid, rules.seid);
            }
        }
        // No more than it must be: who has what the pool gives, and no IPv4 address besides, is nowhere noted.
        for rules in live.iter().filter(|rules| rules.ue_ipv4.is_none()) {
            let prefix = rules.ue_ipv6.unwrap();
            let of_pool = if prefix.network().segments()[2] == 0x56 { 56 } else { 64 };
            let noted = directory.keys().any(|noted| *noted == ipnet::IpNet::V6(prefix));
            prop_assert_eq!(noted, prefix.prefix_len() != of_pool, "{}", prefix);
        }
    }
}
