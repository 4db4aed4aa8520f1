//! Random requests, sane and not: whatever comes, a refused request changes nothing, and what is held is exactly what the
//! sessions say they hold.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use packet::Teid;
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{BarId, FarId, PdrId, QerId, Seid, UrrId};
use proptest::prelude::*;
use session::config::{Config, Limits};
use session::ids::TeidRef;
use session::model::Model;
use session::packed::{freeze, thaw};
use session::portable::{Header, Restore};
use session::rules::{Action, Forward, Rules};
use session::store::{Counts, DirectoryChange, Established, Session, Store};
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

/// A small world, so that requests collide.
fn small() -> Config {
    let limits =
        Limits { sessions: 12, pdrs: 4, fars: 4, qers: 3, urrs: 3, bars: 2, filters: 2, ..Limits::default() };
    Config { limits, ..config() }
}

fn interface() -> impl Strategy<Value = Interface> {
    (0u8..5).prop_map(Interface)
}

fn fteid() -> impl Strategy<Value = FTeid> {
    prop_oneof![
        3 => (any::<bool>(), any::<bool>(), prop::option::of(0u8..3))
            .prop_map(|(ipv4, ipv6, id)| FTeid::Choose { ipv4, ipv6, id }),
        // Some that other sessions chose, and some that look like our own: slot 0 to 3 of shard 0 to 3.
        1 => (0u32..12).prop_map(given),
        1 => (0u32..4, 0u32..4).prop_map(|(shard, slot)| given(1 << 24 | shard << 15 | slot)),
    ]
}

/// How long each UE's address or prefix is in the pool that this network is in, if it is in one.
fn pool_of(net: &ipnet::IpNet) -> Option<u8> {
    let pools = [("10.45.0.0/16", 32), ("2001:db8:45::/48", 64), ("2001:db8:56::/48", 56)];
    let found = pools.into_iter().find(|(pool, _)| pool.parse::<ipnet::IpNet>().unwrap().contains(net));
    found.map(|(_, of_ue)| of_ue)
}

fn ue_ip() -> impl Strategy<Value = UeIpAddress> {
    let six = |nth: u16| Some(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0x45, nth, 0, 0, 0, 9));
    let home = |nth: u16| Some(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0x56, nth << 7, 0, 0, 0, 9));
    (0u8..8, 0u8..12, 0u16..6).prop_map(move |(kind, four, nth)| match kind {
        0 => choose_ipv4(),
        1 => ue([10, 45, 0, four]),
        2 => ue([172, 16, 0, four]),
        3 => UeIpAddress { choose_ipv4: true, choose_ipv6: true, ..UeIpAddress::default() },
        4 => UeIpAddress { ipv6: six(nth), ..UeIpAddress::default() },
        5 => UeIpAddress { ipv6: home(nth), ipv6_delegation_bits: Some(8), ..UeIpAddress::default() },
        6 => UeIpAddress { ipv6: home(nth), ipv6_prefix_length: Some(54 + four), ..UeIpAddress::default() },
        _ => UeIpAddress { ipv6: six(nth << 8), ipv6_delegation_bits: Some(4), ..UeIpAddress::default() },
    })
}

fn filter() -> impl Strategy<Value = SdfFilter<'static>> {
    let text = prop::sample::select(vec![
        "permit out ip from any to assigned",
        "permit out 17 from 9.9.9.0/24 53,60-70 to assigned 1000",
        "permit in 6 from assigned to 2001:db8::/32",
        "",
        "deny out ip from any to any",
    ]);
    (prop::option::weighted(0.8, text), prop::option::of(0u32..3)).prop_map(|(text, filter_id)| SdfFilter {
        flow_description: text.map(str::as_bytes),
        filter_id,
        ..SdfFilter::default()
    })
}

fn any_pdi() -> impl Strategy<Value = Pdi<'static>> {
    let route = prop::sample::select(vec![
        &b"192.168.50.0/24 0.0.0.0 1"[..],
        b"192.168.51.0/24",
        b"10.45.7.0/24",
        b"x",
    ]);
    (
        interface(),
        prop::option::weighted(0.7, fteid()),
        prop::collection::vec(ue_ip(), 0..2),
        prop::collection::vec(filter(), 0..2),
        prop::option::weighted(0.1, route),
    )
        .prop_map(|(source_interface, local_fteid, ue_ips, sdf_filters, route)| Pdi {
            local_fteid,
            ue_ips,
            sdf_filters,
            framed_routes: route.into_iter().collect(),
            ..pdi(source_interface)
        })
}

fn ids(range: std::ops::Range<u32>) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(range, 0..3)
}

fn create_pdr() -> impl Strategy<Value = CreatePdr<'static>> {
    (1u16..5, 0u32..3, any_pdi(), prop::option::weighted(0.95, 1u32..4), ids(1..3), ids(1..3)).prop_map(
        |(id, precedence, pdi, far, qers, urrs)| CreatePdr {
            id: PdrId(id),
            precedence,
            pdi,
            outer_header_removal: None,
            far: far.map(FarId),
            qers: qers.into_iter().map(QerId).collect(),
            urrs: urrs.into_iter().map(UrrId).collect(),
        },
    )
}

fn create_far() -> impl Strategy<Value = CreateFar<'static>> {
    (1u32..5, 0u16..16, any::<bool>(), prop::option::weighted(0.1, 1u8..3)).prop_map(
        |(id, action, known, bar)| {
            let action = if action < 12 { ApplyAction::FORW } else { action };
            // Some don't know the gNB yet, and say so with zeros.
            let nowhere = OuterHeaderCreation { ipv4: Some([0, 0, 0, 0].into()), ..gnb(0) };
            let header = known.then(|| if id == 4 { nowhere } else { gnb(id) });
            CreateFar {
                bar: bar.map(BarId),
                ..far(id, action, Some(forwarding(Interface((id % 4) as u8), header)))
            }
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Establish(Box<SessionEstablishmentRequest<'static>>),
    Modify(usize, Box<SessionModificationRequest<'static>>),
    Delete(usize),
    /// Another process takes over, after this one has handed out some more that nobody told it of.
    Restart(usize),
}

fn establishment() -> impl Strategy<Value = SessionEstablishmentRequest<'static>> {
    (prop::collection::vec(create_pdr(), 0..4), prop::collection::vec(create_far(), 0..3), any::<bool>())
        .prop_map(|(pdrs, fars, plain)| {
            let mut request = everyday();
            request.create_qers.push(qer(2, 5, 1));
            request.create_urrs.push(urr(2, 5));
            request.create_fars.push(to_core(3));
            if plain {
                request.create_pdrs.extend(pdrs.into_iter().take(1));
            } else {
                request.create_pdrs = pdrs;
                request.create_fars.extend(fars);
            }
            request
        })
}

fn modify() -> impl Strategy<Value = SessionModificationRequest<'static>> {
    let pdr_update = (1u16..5, prop::option::of(any_pdi()), prop::option::of(1u32..4), ids(1..4)).prop_map(
        |(id, pdi, far, qers)| UpdatePdr {
            pdi,
            far: far.map(FarId),
            qers: qers.into_iter().map(QerId).collect(),
            ..update_pdr(id)
        },
    );
    let far_update =
        (1u32..5, prop::option::of(0u16..16), prop::option::of(1u32..4)).prop_map(|(id, action, teid)| {
            UpdateFar {
                apply_action: action.map(ApplyAction),
                forwarding: teid.map(|teid| UpdateForwardingParameters {
                    outer_header_creation: Some(gnb(teid)),
                    ..UpdateForwardingParameters::default()
                }),
                ..update_far(id)
            }
        });
    (
        (ids(1..5), ids(1..5), ids(1..4), ids(1..4)),
        prop::collection::vec(create_pdr(), 0..3),
        prop::collection::vec(create_far(), 0..3),
        prop::collection::vec(pdr_update, 0..2),
        prop::collection::vec(far_update, 0..2),
        prop::bits::u8::masked(0x7f),
    )
        .prop_map(
            |((pdrs, fars, qers, urrs), create_pdrs, create_fars, update_pdrs, update_fars, parts)| {
                let on = |bit: u8| parts >> bit & 1 != 0;
                fn some<T>(on: bool, list: Vec<T>) -> Vec<T> {
                    if on { list } else { Vec::new() }
                }
                SessionModificationRequest {
                    remove_pdrs: some(on(0), pdrs.into_iter().map(|id| PdrId(id as u16)).collect()),
                    remove_fars: some(on(1) && on(0), fars.into_iter().map(FarId).collect()),
                    remove_qers: some(on(2) && on(0), qers.into_iter().map(QerId).collect()),
                    remove_urrs: some(on(3) && on(0), urrs.into_iter().map(UrrId).collect()),
                    create_pdrs: some(on(4), create_pdrs),
                    create_fars: some(on(4), create_fars),
                    update_pdrs: some(on(5), update_pdrs),
                    update_fars: some(on(6), update_fars),
                    ..modification()
                }
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => establishment().prop_map(|request| Step::Establish(Box::new(request))),
        6 => (any::<usize>(), modify()).prop_map(|(at, request)| Step::Modify(at, Box::new(request))),
        2 => any::<usize>().prop_map(Step::Delete),
        1 => (0usize..4).prop_map(Step::Restart),
    ]
}

/// TEIDs that the UPF chose for a session.
fn own_teids(established: &Established) -> Vec<Teid> {
    let chosen = established.created_pdrs.iter().filter_map(|created| match created.local_fteid {
        Some(FTeid::Given { teid, .. }) => Some(teid),
        _ => None,
    });
    chosen.collect()
}

type Snapshot = (Counts, Vec<(Vec<u8>, Arc<Rules>)>);

/// All that can be seen of a store.
fn snapshot(store: &Store) -> Snapshot {
    (
        store.counts(),
        store.iter().map(|session| (session.octets().to_vec(), session.rules().clone())).collect(),
    )
}

/// What a worker's directory would be after these changes.
fn follow(directory: &mut HashMap<String, String>, changes: &[DirectoryChange]) {
    for change in changes {
        let (key, value) = match change {
            DirectoryChange::Tunnel { teid, place } => {
                (format!("{teid}"), place.map(|place| format!("{place:?}")))
            }
            DirectoryChange::Address { prefix, session } => {
                (format!("{prefix}"), session.map(|s| format!("{s:?}")))
            }
        };
        match value {
            Some(value) => drop(directory.insert(key, value)),
            None => assert!(directory.remove(&key).is_some(), "{key} was never announced"),
        }
    }
}

/// Addresses and TEIDs that sessions have or had.
#[derive(Default)]
struct Known {
    addresses: HashSet<IpAddr>,
    teids: HashSet<Teid>,
}

impl Known {
    /// Each leads to the session that a look at all of them finds, or to none.
    fn check(&mut self, store: &Store) {
        for session in store.iter() {
            let rules = session.rules();
            self.addresses.extend(rules.ue_ipv4.map(IpAddr::V4));
            let ends = rules.ue_ipv6.iter().flat_map(|prefix| [prefix.network(), prefix.broadcast()]);
            self.addresses.extend(ends.map(IpAddr::V6));
            self.teids.extend(rules.pdrs.iter().filter_map(|pdr| pdr.tunnel.map(|tunnel| tunnel.teid)));
        }
        let addresses =
            |rules: &Rules| usize::from(rules.ue_ipv4.is_some()) + usize::from(rules.ue_ipv6.is_some());
        let held: usize = store.iter().map(|session| addresses(session.rules())).sum();
        assert_eq!(store.entries(), held);
        let seid = |session: Option<&Session>| session.map(|session| session.rules().seid);
        for &address in &self.addresses {
            let looked_for = store.iter().find(|session| session.has_address(address));
            assert_eq!(seid(store.by_address(address)), seid(looked_for), "{address}");
        }
        for &teid in &self.teids {
            let looked_for = store.iter().find(|session| session.has_tunnel(teid));
            assert_eq!(seid(store.by_teid(teid)), seid(looked_for), "{teid}");
        }
    }
}

/// What the sessions hold is what the store counts, and nothing is held twice.
fn check(store: &Store, directory: &HashMap<String, String>) {
    let counts = store.counts();
    let (mut teids, mut places, mut nets, mut units) = (HashSet::new(), HashSet::new(), HashSet::new(), 0);
    let mut announced = 0;
    for session in store.iter() {
        let model = session.model().expect("a session's octets can be read");
        let rules = session.rules();
        let mut octets = Vec::new();
        freeze(&model, &mut octets);
        assert_eq!(octets, session.octets(), "what is read is what was written");
        for endpoint in &model.tunnels {
            assert!(teids.insert(endpoint.tunnel.teid));
            assert!(places.insert(endpoint.tunnel.place));
            assert_eq!(endpoint.tunnel.place.shard, rules.place.shard);
            assert!(
                model.pdrs.iter().any(|pdr| pdr.tunnel == Some(endpoint.tunnel.teid)),
                "no tunnel without a PDR"
            );
            if TeidRef::of(endpoint.tunnel.teid) != endpoint.tunnel.place {
                assert!(directory.contains_key(&format!("{}", endpoint.tunnel.teid)));
            }
        }
        for pdr in &rules.pdrs {
            assert!((pdr.far as usize) < rules.fars.len());
            assert!(pdr.qers.iter().all(|at| (*at as usize) < rules.qers.len()));
            assert!(pdr.urrs.iter().all(|at| (*at as usize) < rules.urrs.len()));
        }
        assert!(rules.pdrs.is_sorted_by_key(|pdr| (pdr.precedence, pdr.id)));
        assert!(rules.fars.is_sorted_by_key(|far| far.id));
        for far in &rules.fars {
            if let Action::Forward(Forward { outer_header: Some(outer), .. }) = far.action {
                assert!(outer.teid.0 != 0 && !outer.peer.is_unspecified(), "{far:?} leads nowhere");
            }
        }
        let mut hold = |net: ipnet::IpNet| {
            assert!(nets.insert(net), "{net} is held twice");
            // Of how many bits each UE's is: what is longer takes the whole of one, what is shorter all that are in it.
            pool_of(&net).map_or(0, |of_ue: u8| 1usize << of_ue.saturating_sub(net.prefix_len()))
        };
        let mut own = 0;
        let addresses = rules.ue_ipv4.map(|a| ipnet::IpNet::from(std::net::IpAddr::V4(a)));
        for net in addresses.into_iter().chain(rules.ue_ipv6.map(ipnet::IpNet::V6)) {
            own += hold(net);
            announced += usize::from(directory.contains_key(&format!("{net}")));
        }
        for net in &rules.framed_ipv4 {
            own += hold(ipnet::IpNet::V4(*net));
            announced += usize::from(directory.contains_key(&format!("{net}")));
        }
        units += own;
    }
    assert_eq!(counts.tunnels, teids.len());
    assert_eq!(counts.addresses_in_pools, units);
    let outside = nets.iter().filter(|net| pool_of(net).is_none()).count();
    assert_eq!(counts.addresses_outside, outside);
    assert_eq!(directory.len(), announced + counts.chosen_tunnels, "{directory:?}");
    let mut fresh = HashMap::new();
    follow(&mut fresh, &store.directory().collect::<Vec<_>>());
    assert_eq!(&fresh, directory, "a worker who begins now learns what the others know");
}

/// The store of the process that takes over from another one's.
fn restart(store: &Store) -> Store {
    let records = |store: &Store| store.iter().map(|session| store.record(session)).collect::<Vec<_>>();
    let header = Header::read(&store.header()).unwrap();
    let config = Config { epoch: header.epoch().next(), teids: header.teids(), ..small() };
    let mut next = Store::new(config).unwrap();
    let mut restore = Restore::new(&mut next, &header);
    for (session, record) in store.iter().zip(records(store)) {
        // Twice, or cut off, it is refused.
        assert!(restore.session(&record[..record.len() - 1]).is_err());
        let restored = restore.session(&record).unwrap();
        assert_eq!((&restored.rules, restored.cp_fseid), (session.rules(), session.cp_fseid()));
        assert!(restore.session(&record).is_err());
    }
    restore.finish();
    assert_eq!(snapshot(&next), snapshot(store));
    assert_eq!(records(&next), records(store), "what leaves, comes back and leaves is the same");
    next
}

proptest! {
    #[test]
    fn whatever_comes(steps in prop::collection::vec(step(), 1..40)) {
        let mut store = Store::new(small()).unwrap();
        let peer = store.attach();
        let (mut seids, mut named): (Vec<Seid>, HashSet<Seid>) = (Vec::new(), HashSet::new());
        // TEIDs of our own making that former processes handed out and nobody wrote down.
        let mut lost: VecDeque<HashSet<Teid>> = VecDeque::new();
        let (mut directory, mut known) = (HashMap::new(), Known::default());
        for step in steps {
            let before = snapshot(&store);
            let refused = match step {
                Step::Establish(request) => match store.establish(&request, peer) {
                    Ok(established) => {
                        prop_assert!(named.insert(established.rules.seid), "handed out twice");
                        for teid in own_teids(&established) {
                            prop_assert!(!lost.iter().any(|lost| lost.contains(&teid)), "{teid} may be in use");
                        }
                        seids.push(established.rules.seid);
                        follow(&mut directory, &established.directory);
                        false
                    }
                    Err(_) => true,
                },
                Step::Modify(at, request) if !seids.is_empty() => {
                    match store.modify(seids[at % seids.len()], &request) {
                        Ok(modified) => {
                            follow(&mut directory, &modified.directory);
                            false
                        }
                        Err(_) => true,
                    }
                }
                Step::Delete(at) if !seids.is_empty() => {
                    let seid = seids.swap_remove(at % seids.len());
                    follow(&mut directory, &store.delete(seid).unwrap().directory);
                    prop_assert!(store.get(seid).is_none());
                    false
                }
                Step::Restart(more) => {
                    let next = restart(&store);
                    let mut after = HashSet::new();
                    for _ in 0..more {
                        if let Ok(established) = store.establish(&everyday(), peer) {
                            named.insert(established.rules.seid);
                            after.extend(own_teids(&established));
                        }
                    }
                    lost.truncate(2);
                    lost.push_front(after);
                    store = next;
                    // The directory is told anew.
                    directory.clear();
                    follow(&mut directory, &store.directory().collect::<Vec<_>>());
                    false
                }
                _ => true,
            };
            if refused {
                prop_assert_eq!(&before, &snapshot(&store));
            }
            prop_assert_eq!(store.counts().sessions, seids.len());
            check(&store, &directory);
            known.check(&store);
        }
        for seid in seids {
            follow(&mut directory, &store.delete(seid).unwrap().directory);
        }
        prop_assert_eq!(store.counts(), Counts::default());
        prop_assert!(directory.is_empty());
    }

    #[test]
    fn octets_that_are_no_model_are_not_one(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Some(model) = thaw(&octets) {
            let mut again = Vec::new();
            freeze(&model, &mut again);
            prop_assert_eq!(thaw(&again), Some(model));
        }
    }
}

#[test]
fn an_empty_model_is_small() {
    let mut octets = Vec::new();
    freeze(&Model::default(), &mut octets);
    assert!(octets.len() <= 12);
    assert_eq!(thaw(&octets), Some(Model::default()));
    for cut in 0..octets.len() {
        assert_eq!(thaw(&octets[..cut]), None);
    }
}
