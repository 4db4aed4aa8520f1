//! What gets past nobody, whatever the rules say: addresses that are no host's, and those of others.

use super::{downlink_from, gtpu, inner, rib, rules};
use crate::rig::*;
use datapath::Reason;
use datapath::command::{Event, Transition};
use packet::gtpu::MessageType;
use packet::gtpu_message::{self, ErrorIndication};
use packet::icmpv4::Echo;
use packet::{PacketBuilder, Teid, VlanId, VlanTag};
use std::net::IpAddr;
use std::sync::Arc;
use tables::Nanos;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A session with an address of each family, and a way out for both.
fn worker(isolated: Option<&str>) -> Worker {
    let mut rib = rib(true);
    rib.add_route("::/0".parse().unwrap(), 1, Some(ip("fe80::99"))).unwrap();
    rib.fix(1, ip("fe80::99"), ROUTER);
    rib.add_ue_pool("2001:db8:45::/48".parse().unwrap());
    if let Some(pool) = isolated {
        rib.isolate(pool.parse().unwrap());
    }
    let mut worker = Worker::new(rib, |_| true);
    let mut both = (*rules(UE, to_gnb(77))).clone();
    both.ue_ipv6 = Some("2001:db8:45:1::/64".parse().unwrap());
    worker.install(&Arc::new(both), Transition::default());
    let prefix = "2001:db8:45:1::/64".parse().unwrap();
    let session = Some(place(UE));
    worker.apply(datapath::Command::AddressDirectory { prefix, session });
    worker.install(&rules(UE2, to_gnb(78)), Transition::default());
    worker
}

/// What a user sends to this address.
fn uplink(destination: IpAddr) -> Vec<u8> {
    let source = if destination.is_ipv4() { UE.into() } else { ip("2001:db8:45:1::5") };
    let packet = PacketBuilder::new().ip(source, destination).udp(1, 2).build(b"hello");
    gtpu(MessageType::G_PDU, teid(UE)).build(&packet)
}

#[test]
fn users_send_nothing_to_what_is_no_host() {
    let nobody = [
        "0.0.0.0",
        "0.255.0.1",
        "127.0.0.1",
        "127.255.255.255",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "203.0.113.255",
        "203.0.113.0",
        "192.0.2.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "fe80::1",
        "febf::1",
        "ff02::1",
        "ff05::2",
        "ff0e::1",
    ];
    let mut worker = worker(None);
    for (n, address) in nobody.iter().enumerate() {
        worker.process(0, &[uplink(ip(address))]);
        assert!(worker.sent(0).is_empty() && worker.sent(1).is_empty(), "{address}");
        assert_eq!(worker.dropped(Reason::MartianDestination), n as u64 + 1, "{address}");
    }
    for address in ["1.0.0.1", "126.0.0.1", "128.0.0.1", "223.255.255.255", "fc00::1", "2a00::8"] {
        worker.process(0, &[uplink(ip(address))]);
        assert_eq!(worker.sent(1).len(), 1, "{address}");
    }
}

#[test]
fn multicast_goes_where_a_route_says() {
    let mut rib = rib(true);
    rib.add_route("239.1.0.0/16".parse().unwrap(), 1, Some(ROUTER_IP.into())).unwrap();
    let mut worker = Worker::new(rib, |_| true);
    worker.install(&rules(UE, to_gnb(77)), Transition::default());
    worker.process(0, &[uplink(ip("239.1.2.3")), uplink(ip("239.2.2.3"))]);
    assert_eq!((worker.sent(1).len(), worker.dropped(Reason::MartianDestination)), (1, 1));
}

#[test]
fn nothing_comes_from_outside_that_is_from_nobody_from_us_or_from_users() {
    let mut worker = worker(None);
    let nobody = [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "224.0.0.1",
        "239.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "203.0.113.1",
        "192.0.2.1",
        "203.0.113.0",
        "203.0.113.255",
        "192.0.2.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "fe80::1",
        "ff02::1",
        "2001:db8:6::1",
        "2001:db8:3::1",
    ];
    let users = ["10.45.0.1", "10.45.0.2", "10.45.255.254", "2001:db8:45:1::5", "2001:db8:45:ffff::1"];
    let all = nobody.map(|a| (a, Reason::MartianSource)).into_iter();
    for (address, reason) in all.chain(users.map(|a| (a, Reason::UeSourceOutside))) {
        let source = ip(address);
        let destination = if source.is_ipv4() { UE.into() } else { ip("2001:db8:45:1::5") };
        let before = worker.dropped(reason);
        worker.process(1, &[downlink_from(source, destination, 10)]);
        assert!(worker.sent(0).is_empty() && worker.sent(1).is_empty(), "{address}");
        assert_eq!(worker.dropped(reason), before + 1, "{address}");
    }
    for address in ["1.0.0.1", "10.46.0.1", "203.0.113.9", "2001:db8:46::1", "2001:db8:6::9", "fd00::1"] {
        let source = ip(address);
        let destination = if source.is_ipv4() { UE.into() } else { ip("2001:db8:45:1::5") };
        worker.process(1, &[downlink_from(source, destination, 10)]);
        assert_eq!(worker.sent(0).len(), 1, "{address}");
    }
}

#[test]
fn no_tunnel_begins_at_nobody_or_at_ourselves() {
    let mut worker = worker(None);
    let send = |source: IpAddr, kind| {
        let own = if source.is_ipv4() { N3_IP.into() } else { ip("2001:db8:3::1") };
        let builder = PacketBuilder::new().ethernet(N3, GNB).ip(source, own).udp(2152, 2152);
        builder.gtpu_message(kind, teid(UE)).build(&inner(UE, HOST, 10))
    };
    let nobody = [
        "0.0.0.0",
        "127.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.0",
        "192.0.2.255",
        "203.0.113.255",
        "192.0.2.1",
        "203.0.113.1",
        "::",
        "::1",
        "ff02::1",
        "2001:db8:3::1",
        "2001:db8:6::1",
    ];
    for (n, address) in nobody.iter().enumerate() {
        for kind in [MessageType::G_PDU, MessageType::ECHO_REQUEST] {
            worker.process(0, &[send(ip(address), kind)]);
        }
        assert!(worker.sent(0).is_empty() && worker.sent(1).is_empty(), "{address}");
        assert_eq!(worker.dropped(Reason::MartianFarEnd), 2 * (n as u64 + 1), "{address}");
    }
    for address in ["192.0.2.8", "8.8.8.8", "2001:db8:3::7", "fe80::7"] {
        worker.process(0, &[send(ip(address), MessageType::G_PDU)]);
        assert_eq!(worker.sent(1).len(), 1, "{address}");
    }
}

#[test]
fn nobody_and_everybody_get_no_answer() {
    let mut worker = worker(None);
    let ping = |source: IpAddr, port: u16| {
        let echo = Echo { request: true, identifier: 7, sequence: 1 };
        let (mac, from, own) = if port == 0 {
            (N3, GNB, if source.is_ipv4() { N3_IP.into() } else { ip("2001:db8:3::1") })
        } else {
            (N6, ROUTER, if source.is_ipv4() { ip("203.0.113.1") } else { ip("2001:db8:6::1") })
        };
        let mut builder = PacketBuilder::new().ethernet(mac, from);
        if port == 1 {
            builder = builder.vlan(VlanTag::customer(VlanId::new(100).unwrap()));
        }
        let builder = builder.ip(source, own);
        if source.is_ipv4() { builder.icmpv4_echo(echo) } else { builder.icmpv6_echo(echo) }.build(b"hello")
    };
    let nobody = [
        "0.0.0.0",
        "127.0.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "203.0.113.255",
        "192.0.2.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "ff02::1",
    ];
    for port in 0..2 {
        for address in nobody {
            let before = worker.dropped(Reason::MartianSource);
            worker.process(port, &[ping(ip(address), port)]);
            assert!(worker.sent(0).is_empty() && worker.sent(1).is_empty(), "{address}");
            assert_eq!(worker.dropped(Reason::MartianSource), before + 1, "{address}");
        }
        for address in ["8.8.8.8", "2a00::8", "fe80::7"] {
            worker.process(port, &[ping(ip(address), port)]);
            assert_eq!(worker.sent(port.into()).len(), 1, "{address}");
        }
    }
}

#[test]
fn users_are_kept_apart_where_the_pool_says_so() {
    for (isolated, reaches) in [
        (None, true),
        (Some("10.45.0.0/16"), false),
        (Some("10.45.0.2/32"), false),
        (Some("10.45.0.1/32"), false),
    ] {
        let mut worker = worker(isolated);
        worker.process(0, &[uplink(UE2.into())]);
        assert_eq!(worker.sent(0).len(), usize::from(reaches), "{isolated:?}");
        assert_eq!(worker.dropped(Reason::UeToUe), u64::from(!reaches));
        // The data network is reached all the same, and reaches it.
        worker.process(0, &[uplink(HOST.into())]);
        worker.process(1, &[downlink_from(HOST.into(), UE2.into(), 10)]);
        assert_eq!((worker.sent(1).len(), worker.sent(0).len()), (1, 1));
    }
}

/// An Error Indication from `source` about a tunnel to `peer`.
fn indication(source: IpAddr, peer: IpAddr, tunnel: u32) -> Vec<u8> {
    let mut message = Vec::new();
    let error = ErrorIndication { teid: Teid(tunnel), peer };
    gtpu_message::emit_error_indication(&mut message, 0, &error, None);
    let own = if source.is_ipv4() { N3_IP.into() } else { ip("2001:db8:3::1") };
    PacketBuilder::new().ethernet(N3, GNB).ip(source, own).udp(2152, 2152).build(&message)
}

#[test]
fn only_the_far_end_itself_says_that_it_does_not_know_a_tunnel() {
    let mut worker = worker(None);
    worker.events();
    for (n, forger) in ["192.0.2.8", "8.8.8.8", "2001:db8:3::7"].iter().enumerate() {
        worker.process(0, &[indication(ip(forger), GNB_IP.into(), 77)]);
        assert!(worker.events().is_empty(), "{forger}");
        assert_eq!(worker.dropped(Reason::ForeignErrorIndication), n as u64 + 1);
    }
    worker.process(0, &[indication(GNB_IP.into(), GNB_IP.into(), 77)]);
    let told = worker.events();
    assert!(
        matches!(told[..], [Event::ErrorIndication { teid: Teid(77), peer }] if peer == IpAddr::from(GNB_IP))
    );
}

#[test]
fn error_indications_reach_control_at_a_bounded_rate_and_strangers_take_nobodys() {
    let mut worker = worker(None);
    worker.events();
    let (mut far_ends, mut strangers) = (0, 0);
    for second in 0..3000u32 {
        worker.now = worker.now.plus(Nanos::SECOND / 1000);
        let strange = |n| indication(ip("192.0.2.66"), ip("192.0.2.66"), second * 20 + n);
        let mut burst: Vec<_> = (0..20).map(strange).collect();
        burst.extend((0..20).map(|n| indication(GNB_IP.into(), GNB_IP.into(), n)));
        worker.process(0, &burst);
        for event in worker.events() {
            let Event::ErrorIndication { peer, .. } = event else { panic!("{event:?}") };
            if peer == IpAddr::from(GNB_IP) { far_ends += 1 } else { strangers += 1 }
        }
    }
    // Of 60,000 each in three seconds, with what a limiter lets through at once.
    assert!((2_900..=3_200).contains(&far_ends), "{far_ends}");
    assert!((280..=330).contains(&strangers), "{strangers}");
    let counters = worker.datapath.counters();
    assert_eq!(counters.consumed, far_ends + strangers);
    assert_eq!(worker.dropped(Reason::ErrorRateLimited), 120_000 - far_ends - strangers);
}
