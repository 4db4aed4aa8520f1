//! Rules choose who translates their packets.

use super::*;
use datapath::nat::{Choice, PoolCounters};
use packet::icmpv4::Icmpv4Error;
use proptest::prelude::*;
use std::collections::HashMap;

pub const fn says(policy: u16, instance: u16) -> Choice {
    Choice { policy, instance }
}

/// A pool of sixteen addresses for these packets.
pub fn pool(name: &str, rule: Choice, inside: &[&str], outside: &str) -> Settings {
    let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let outside = if outside.is_empty() { Vec::new() } else { nets(&[outside]) };
    Settings { rule, block_size: 512, ..Settings::new(name, nets(inside), outside) }
}

fn with(pools: &[Settings]) -> Worker {
    let mut rib = network(None);
    learn(&mut rib);
    // N6 has two instances of its own, and what names none may leave, too.
    rib.serve(1, 1);
    rib.serve(1, 2);
    rib.translate(Arc::new(Plan::new(pools, &[], &[]).unwrap()));
    Worker::of(Config::new(rib.fib()), 2, |_| true)
}

/// A session whose uplink packets to these ports have a rule of their own, which says that; the rest has a rule that says the last.
pub fn session(ue: Ipv4Addr, ports: &[u16], said: &[Choice]) -> Arc<Rules> {
    let mut rules = session_at(place(ue), Some(ue), to_gnb(77));
    let far = |(at, said): (usize, &Choice)| Far {
        id: pfcp::FarId(10 + at as u32),
        action: Action::Forward(Forward {
            instance: said.instance,
            policy: said.policy,
            ..Forward::to(Destination::Core, None)
        }),
    };
    let mut fars: Vec<Far> = said.iter().enumerate().map(far).collect();
    fars.push(rules.fars[1].clone());
    let mut pdrs: Vec<Pdr> = (0..said.len())
        .map(|at| {
            let own = ports
                .get(at)
                .map(|port| SdfFilter { destination_ports: [(*port, *port)].into(), ..SdfFilter::default() });
            Pdr {
                id: pfcp::PdrId(10 + at as u16),
                precedence: at as u32,
                filters: own.into_iter().collect(),
                ..pdr(1, Source::Access, Some(tunnel_at(place(ue))), at as u16)
            }
        })
        .collect();
    pdrs.push(pdr(2, Source::Core, None, said.len() as u16));
    pdrs.sort_by_key(|pdr| pdr.precedence);
    (rules.fars, rules.pdrs) = (fars.into(), pdrs.into());
    Arc::new(rules)
}

pub fn is_of(address: Ipv4Addr, net: &str) -> bool {
    net.parse::<ipnet::Ipv4Net>().unwrap().contains(&address)
}

#[test]
fn one_endpoint_is_translated_as_each_of_its_rules_says() {
    let mut worker = with(&[
        pool("by-address", says(0, 0), &["10.45.0.0/16"], "203.0.113.64/28"),
        pool("fixed", says(1, 0), &[], "198.51.100.0/28"),
        pool("direct", says(2, 0), &[], ""),
        pool("corp", says(0, 1), &["10.45.0.0/24"], "198.51.100.16/28"),
    ]);
    let said = [says(1, 0), says(2, 0), says(0, 1), says(0, 2), says(1, 1), says(0, 0)];
    worker.install(&session(UE, &[1, 2, 3, 4, 5], &said), Transition::default());
    // The first packet of a flow is judged by the session, later ones by its flow.
    for _ in 0..3 {
        let mut public = HashMap::new();
        for (port, net) in [
            (1, "198.51.100.0/28"),
            (2, ""),
            (3, "198.51.100.16/28"),
            // Nobody asks for that instance.
            (4, "203.0.113.64/28"),
            // The policy comes first.
            (5, "198.51.100.0/28"),
            (6, "203.0.113.64/28"),
        ] {
            let sent = worker.up(UE, &udp((UE, 4000), (HOST, port))).unwrap();
            let (address, from, ..) = ends(&sent);
            if net.is_empty() {
                assert_eq!((address, from), (UE, 4000), "left as it was");
                continue;
            }
            assert!(is_of(address, net), "{port}: {address}");
            // One mapping in each pool, whatever rule led there.
            assert_eq!(*public.entry(net).or_insert((address, from)), (address, from), "{port}");
        }
        for (address, from) in public.into_values() {
            let (_, packet) = worker.down(&udp((HOST, 9), (address, from))).unwrap();
            assert_eq!(ends(&packet), (HOST, 9, UE, 4000));
        }
    }
    let made: Vec<_> = worker.datapath.counters().nat.iter().map(|pool| pool.mappings_made).collect();
    assert_eq!(made, [1, 1, 0, 1]);
    // Who is not inside a pool that its instance has goes on to the next.
    let far = Ipv4Addr::new(10, 45, 1, 7);
    worker.install(&session(far, &[], &[says(0, 1)]), Transition::default());
    assert!(is_of(ends(&worker.up(far, &udp((far, 1), (HOST, 1))).unwrap()).0, "203.0.113.64/28"));
    // The end of the session is the end of all of them.
    worker.apply(Command::Remove { token: Token(9), session: place(UE) });
    let live: Vec<_> = worker.datapath.counters().nat.iter().map(PoolCounters::mappings).collect();
    assert_eq!(live, [1, 0, 0, 0]);
}

impl Worker {
    /// A packet leaves by one of these addresses, the answer comes back: from where, and the UE's error about it.
    fn complains(&mut self, net: &str) -> (Ipv4Addr, u16, Vec<u8>) {
        let (address, port, ..) = ends(&self.up(UE, &udp((UE, 4000), (HOST, 1))).unwrap());
        assert!(is_of(address, net));
        let (_, received) = self.down(&udp((HOST, 1), (address, port))).unwrap();
        let mut error = Vec::new();
        packet::icmpv4::emit_error(&mut error, UE, Icmpv4Error::FragmentationNeeded { mtu: 1300 }, &received);
        (address, port, error)
    }
}

#[test]
fn an_error_speaks_of_the_packet_that_came_whatever_its_own_rule_says() {
    let mut worker = with(&[
        pool("by-address", says(0, 0), &["10.45.0.0/16"], "203.0.113.64/28"),
        pool("fixed", says(1, 0), &[], "198.51.100.0/28"),
    ]);
    worker.install(&session(UE, &[1], &[says(1, 0), says(0, 0)]), Transition::default());
    let (address, port, error) = worker.complains("198.51.100.0/28");
    // ICMP has no port 1: its rule is the one for the rest.
    let sent = worker.up(UE, &error).unwrap();
    assert_eq!(Ipv4View::parse(&sent).unwrap().source(), address);
    assert_eq!(ends(&sent[28..]), (HOST, 1, address, port));
    // The same endpoint has a mapping in the other pool, too; our own error is about the one that the packet came to.
    worker.up(UE, &udp((UE, 4000), (HOST, 2))).unwrap();
    let header = Ipv4Header { source: HOST, destination: address, ttl: 1, ..Default::default() };
    let dying = PacketBuilder::new().ipv4_header(header).udp(53, port).build(b"too far");
    assert_eq!(worker.down(&dying), None);
    assert_eq!(ends(&worker.sent(1)[0][14 + 28..]), (HOST, 53, address, port));
}

/// What has no pool by its own rule is left as it is; an error about what came through one is not.
#[test]
fn an_error_is_translated_each_time_where_its_own_rule_translates_nothing() {
    let mut worker = with(&[
        pool("by-address", says(0, 0), &["10.45.0.0/16"], "203.0.113.64/28"),
        pool("direct", says(2, 0), &[], ""),
    ]);
    worker.install(&session(UE, &[1], &[says(0, 0), says(2, 0)]), Transition::default());
    let (address, port, error) = worker.complains("203.0.113.64/28");
    let echo = packet::icmpv4::Echo { request: true, identifier: 7, sequence: 1 };
    let echo = PacketBuilder::new().ipv4(UE, HOST).icmpv4_echo(echo).build(b"direct");
    // The first packet of a flow is judged by the session, later ones by its flow, which errors and echoes have in common.
    for _ in 0..3 {
        let sent = worker.up(UE, &error).unwrap();
        assert_eq!(Ipv4View::parse(&sent).unwrap().source(), address);
        assert_eq!(ends(&sent[28..]), (HOST, 1, address, port));
        let sent = worker.up(UE, &echo).unwrap();
        assert_eq!(Ipv4View::parse(&sent).unwrap().source(), UE, "left as it was");
    }
}

#[test]
fn a_changed_rule_leads_to_another_pool_at_once() {
    let mut worker = with(&[
        pool("by-address", says(0, 0), &["10.45.0.0/16"], "203.0.113.64/28"),
        pool("fixed", says(1, 0), &[], "198.51.100.0/28"),
    ]);
    for (policy, net) in [(0, "203.0.113.64/28"), (1, "198.51.100.0/28"), (0, "203.0.113.64/28")] {
        worker.install(&session(UE, &[], &[says(policy, 0)]), Transition::default());
        for _ in 0..2 {
            let sent = worker.up(UE, &udp((UE, 4000), (HOST, 1))).unwrap();
            assert!(is_of(ends(&sent).0, net), "{policy}");
        }
    }
}

/// What an operator reads in docs/nat.md, step by step: the twin of the plan's look-up.
pub fn expected(pools: &[Settings], said: Choice, ue: Ipv4Addr) -> Option<usize> {
    let inside = |pool: &Settings| pool.inside.is_empty() || pool.inside.iter().any(|net| net.contains(&ue));
    let find =
        |wanted: &dyn Fn(Choice) -> bool| pools.iter().position(|pool| wanted(pool.rule) && inside(pool));
    let (policy, instance) = (said.policy, said.instance);
    let both = find(&|rule| policy != 0 && instance != 0 && rule == says(policy, instance));
    let by_policy = find(&|rule| policy != 0 && rule == says(policy, 0));
    let by_instance = find(&|rule| instance != 0 && rule == says(0, instance));
    let found = both.or(by_policy).or(by_instance).or_else(|| find(&|rule| rule == says(0, 0)))?;
    (!pools[found].outside.is_empty()).then_some(found)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn the_pool_is_the_one_that_the_rule_chooses(
        kinds in prop::collection::vec((0_u16..3, 0_u16..3, 0_usize..4, any::<bool>()), 1..8),
        said in prop::collection::vec((0_u16..3, 0_u16..3, 0_u8..4), 1..6),
    ) {
        let mut pools: Vec<Settings> = Vec::new();
        for (at, (policy, instance, inside, translates)) in kinds.into_iter().enumerate() {
            let inside: &[&str] = [&[][..], &["10.45.0.0/23"], &["10.45.2.0/23"], &["10.45.0.0/22"]][inside];
            let outside = if translates { format!("198.51.{at}.0/28") } else { String::new() };
            let new = pool(&format!("p{at}"), says(policy, instance), inside, &outside);
            // What config check refuses is left out.
            pools.push(new);
            if Plan::new(&pools, &[], &[]).is_err() {
                pools.pop();
            }
        }
        let mut worker = with(&pools);
        for (policy, instance, third) in said {
            let (said, ue) = (says(policy, instance), Ipv4Addr::new(10, 45, third, 9));
            worker.install(&session(ue, &[], &[said]), Transition::default());
            for _ in 0..2 {
                let sent = worker.up(ue, &udp((ue, 4000), (HOST, 1))).unwrap();
                let (address, port, ..) = ends(&sent);
                match expected(&pools, said, ue) {
                    None => prop_assert_eq!((address, port), (ue, 4000)),
                    Some(at) => {
                        prop_assert!(pools[at].outside[0].contains(&address), "{:?} {} {}", said, ue, address);
                        let (_, packet) = worker.down(&udp((HOST, 1), (address, port))).unwrap();
                        prop_assert_eq!(ends(&packet), (HOST, 1, ue, 4000));
                    }
                }
            }
        }
    }
}
