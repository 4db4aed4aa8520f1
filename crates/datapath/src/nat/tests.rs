//! A shard's translations against a twin that is a list.
#![allow(clippy::unwrap_used)]

use super::mapping::State;
use super::plan::{Endpoint, Filtering, Logging, Plan, Protocol, Settings, Timeouts};
use super::translate::{Content, Head, tcp};
use super::{Ledger, PoolCounters, Told};
use crate::Reason;
use crate::command::Event;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tables::Nanos;

const SHARD: u16 = 9;
/// Half a second more than what the steps of time can add up to: granularity doesn't matter.
const HALF: u64 = Nanos::SECOND / 2;

fn timeouts() -> Timeouts {
    let seconds = |n: u64| n * Nanos::SECOND - HALF;
    Timeouts {
        tcp_established: seconds(200),
        tcp_transitory: seconds(60),
        tcp_closed: seconds(10),
        udp: seconds(40),
        icmp: seconds(20),
    }
}

fn settings(filtering: Filtering) -> Settings {
    Settings {
        block_size: 16,
        blocks_per_ue: 2,
        filtering,
        timeouts: timeouts(),
        logging: Logging::Bindings,
        ..Settings::new("test", vec!["10.0.0.0/16".parse().unwrap()], vec!["192.0.2.0/31".parse().unwrap()])
    }
}

fn ue(number: u8) -> u32 {
    0x0a00_0000 | u32::from(number)
}

fn head(protocol: Protocol, source: Endpoint, destination: Endpoint, flags: u8, data: bool) -> Head {
    Head {
        length: 20,
        number: [6, 17, 1][protocol.index()],
        content: Content::Transport,
        fragmented: false,
        source,
        destination,
        kind: flags,
        data,
    }
}

#[derive(Clone, Debug)]
struct Twin {
    protocol: Protocol,
    inside: Endpoint,
    outside: Endpoint,
    last: Nanos,
    answered: bool,
    fin: (bool, bool),
    reset: bool,
    remotes: BTreeSet<u32>,
}

impl Twin {
    fn deadline(&self) -> Nanos {
        let t = timeouts();
        let over = self.reset || self.fin == (true, true);
        let timeout = match self.protocol {
            Protocol::Udp => t.udp,
            Protocol::Icmp => t.icmp,
            Protocol::Tcp if over => t.tcp_closed,
            Protocol::Tcp if self.answered && self.fin == (false, false) => t.tcp_established,
            Protocol::Tcp => t.tcp_transitory,
        };
        self.last.plus(timeout)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Out { ue: u8, port: u16, protocol: Protocol, remote: u32, flags: u8, data: bool },
    In { nth: usize, remote: u32, flags: u8 },
    Stray { port: u16, protocol: Protocol, flags: u8 },
    Wait(u64),
    Forget(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let protocol =
        || prop_oneof![3 => Just(Protocol::Tcp), 2 => Just(Protocol::Udp), 1 => Just(Protocol::Icmp)];
    let flags = || {
        prop_oneof![
            4 => Just(tcp::ACK), 2 => Just(tcp::SYN), 1 => Just(tcp::SYN | tcp::ACK),
            2 => Just(tcp::FIN | tcp::ACK), 1 => Just(tcp::RST)
        ]
    };
    prop_oneof![
        12 => (0u8..8, 0u16..48, protocol(), 0u32..4, flags(), any::<bool>())
            .prop_map(|(ue, port, protocol, remote, flags, data)| Step::Out { ue, port, protocol, remote, flags, data }),
        5 => (any::<usize>(), 0u32..4, flags()).prop_map(|(nth, remote, flags)| Step::In { nth, remote, flags }),
        1 => (any::<u16>(), protocol(), flags()).prop_map(|(port, protocol, flags)| Step::Stray { port, protocol, flags }),
        2 => (1u64..30).prop_map(Step::Wait),
        1 => (0u8..8).prop_map(Step::Forget),
    ]
}

struct Bench {
    plan: Arc<Plan>,
    state: State,
    twins: Vec<Twin>,
    now: Nanos,
    events: Vec<Event>,
    counters: Vec<PoolCounters>,
    /// As the log tells: first port of a block to its UE.
    blocks: BTreeMap<(u32, u16), u32>,
    bindings: BTreeSet<(Protocol, Endpoint, Endpoint)>,
}

impl Bench {
    fn new(filtering: Filtering, seed: u64) -> Self {
        let plan = Arc::new(Plan::new(&[settings(filtering)], &[], &[]).unwrap());
        Self {
            state: State::new(Arc::clone(&plan), SHARD, 4096, seed),
            plan,
            twins: Vec::new(),
            now: Nanos(Nanos::SECOND),
            events: Vec::new(),
            counters: vec![PoolCounters::default()],
            blocks: BTreeMap::new(),
            bindings: BTreeSet::new(),
        }
    }

    fn with<R>(&mut self, work: impl FnOnce(&mut State, &mut Ledger<'_>) -> R) -> R {
        let mut ledger = Ledger { now: self.now, events: &mut self.events, counters: &mut self.counters };
        let result = work(&mut self.state, &mut ledger);
        self.read_log();
        result
    }

    /// The log alone says who has what.
    fn read_log(&mut self) {
        let endpoint =
            |shown: std::net::SocketAddrV4| Endpoint { address: (*shown.ip()).into(), port: shown.port() };
        for event in self.events.drain(..) {
            let Event::Nat(told) = event else { panic!("{event:?}") };
            match told {
                Told::Block { taken: true, inside, outside, ports, .. } => {
                    assert_eq!(ports.1 - ports.0, 15);
                    assert_eq!(self.blocks.insert((outside.into(), ports.0), inside.into()), None);
                }
                Told::Block { taken: false, inside, outside, ports, .. } => {
                    assert_eq!(self.blocks.remove(&(outside.into(), ports.0)), Some(inside.into()));
                }
                Told::Mapped { protocol, inside, outside, .. } => {
                    assert!(self.bindings.insert((protocol, endpoint(inside), endpoint(outside))));
                }
                Told::Unmapped { protocol, inside, outside, .. } => {
                    assert!(self.bindings.remove(&(protocol, endpoint(inside), endpoint(outside))));
                }
            }
        }
    }

    fn arrive(&mut self, protocol: Protocol, to: Endpoint, from: u32, flags: u8) -> Result<Endpoint, Reason> {
        let (pool, number) = self.plan.pool_of_outside(to.address).unwrap();
        let place = self.plan.pools[0].numbering.place(number, to.port).ok_or(Reason::NatNoMapping)?;
        if place.shard != SHARD {
            return Err(Reason::NotOwned);
        }
        let head = head(protocol, Endpoint { address: from, port: 7 }, to, flags, false);
        self.state.arrive(pool, place, &head, self.now)
    }

    fn step(&mut self, step: &Step, filtering: Filtering) {
        match *step {
            Step::Out { ue: number, port, protocol, remote, flags, data } => {
                let inside = Endpoint { address: ue(number), port };
                let head = head(protocol, inside, Endpoint { address: remote, port: 80 }, flags, data);
                let opened = self.with(|state, ledger| state.open(0, protocol, inside, remote, ledger));
                let known =
                    self.twins.iter().position(|twin| (twin.protocol, twin.inside) == (protocol, inside));
                let at = match (opened, known) {
                    (Ok(_), Some(known)) => known,
                    (Ok(_), None) => {
                        let outside = self.state.outside_of(0, protocol, inside).unwrap();
                        let taken = self.twins.iter().any(|t| (t.protocol, t.outside) == (protocol, outside));
                        assert!(!taken, "{outside:?} is somebody else's");
                        let block = outside.port - (outside.port - 1024) % 16;
                        assert_eq!(self.blocks.get(&(outside.address, block)), Some(&inside.address));
                        let odd =
                            |twin: &&Twin| twin.outside.port % 2 == port % 2 && twin.protocol == protocol;
                        let mine = |twin: &&Twin| twin.inside.address == inside.address;
                        let full = self.twins.iter().filter(mine).filter(odd).count() >= 8;
                        assert!(full || outside.port % 2 == port % 2, "parity is kept where there is room");
                        let twin = Twin {
                            protocol,
                            inside,
                            outside,
                            last: self.now,
                            answered: false,
                            fin: (false, false),
                            reset: false,
                            remotes: BTreeSet::new(),
                        };
                        self.twins.push(twin);
                        self.twins.len() - 1
                    }
                    (Err(reason), None) => {
                        let held = self.blocks.values().filter(|owner| **owner == inside.address).count();
                        let ports = |t: &&Twin| (t.protocol, t.inside.address) == (protocol, inside.address);
                        assert_eq!(self.twins.iter().filter(ports).count(), 16 * held, "no port was free");
                        match reason {
                            Reason::NatUserLimit => assert_eq!(held, 2),
                            // Shard 9 has blocks 4, 260, 516 ... of the second of two addresses.
                            Reason::NatExhausted => assert_eq!(self.blocks.len(), 16),
                            other => panic!("{other}"),
                        }
                        return;
                    }
                    (Err(reason), Some(_)) => panic!("{reason}"),
                };
                let outside = self.state.leave(opened.unwrap(), &head, self.now);
                let twin = &mut self.twins[at];
                assert_eq!(outside, Some(twin.outside));
                twin.last = self.now;
                twin.remotes.insert(remote);
                if protocol == Protocol::Tcp {
                    let over = twin.reset || twin.fin == (true, true);
                    let closing = twin.reset || twin.fin != (false, false);
                    if closing && flags & tcp::SYN != 0 {
                        (twin.answered, twin.fin, twin.reset) = (false, (false, false), false);
                    } else if over && data {
                        (twin.fin, twin.reset) = ((false, false), false);
                    }
                    twin.fin.0 |= flags & tcp::FIN != 0;
                    twin.reset |= flags & tcp::RST != 0;
                }
            }
            Step::In { nth, remote, flags } => {
                if self.twins.is_empty() {
                    return;
                }
                let at = nth % self.twins.len();
                let (protocol, to) = (self.twins[at].protocol, self.twins[at].outside);
                let arrived = self.arrive(protocol, to, remote, flags);
                let now = self.now;
                let twin = &mut self.twins[at];
                if filtering == Filtering::AddressDependent && !twin.remotes.contains(&remote) {
                    assert_eq!(arrived, Err(Reason::NatFiltered));
                    return;
                }
                assert_eq!(arrived, Ok(twin.inside));
                if protocol == Protocol::Tcp {
                    let before = (twin.answered, twin.fin, twin.reset);
                    twin.reset |= flags & tcp::RST != 0;
                    twin.answered |= flags & (tcp::RST | tcp::ACK) == tcp::ACK;
                    twin.fin.1 |= flags & tcp::FIN != 0;
                    if before != (twin.answered, twin.fin, twin.reset) {
                        twin.last = now;
                    }
                }
            }
            Step::Stray { port, protocol, flags } => {
                let to = Endpoint { address: 0xc000_0201, port };
                if self.twins.iter().any(|twin| (twin.protocol, twin.outside) == (protocol, to)) {
                    return;
                }
                let expected = if protocol == Protocol::Tcp && flags == tcp::SYN {
                    Reason::NatUnsolicited
                } else {
                    Reason::NatNoMapping
                };
                let arrived = self.arrive(protocol, to, 1, flags);
                assert!(
                    matches!(arrived, Err(r) if r == expected || r == Reason::NotOwned || port < 1024),
                    "{arrived:?}"
                );
            }
            Step::Wait(seconds) => {
                self.now = self.now.plus(seconds * Nanos::SECOND);
                for _ in 0..8 {
                    self.with(State::expire);
                }
                let now = self.now;
                self.twins.retain(|twin| twin.deadline() > now);
            }
            Step::Forget(number) => {
                self.with(|state, ledger| state.forget(ue(number), ledger));
                self.twins.retain(|twin| twin.inside.address != ue(number));
            }
        }
        let expected: BTreeSet<_> = self.twins.iter().map(|t| (t.protocol, t.inside, t.outside)).collect();
        assert_eq!(self.bindings, expected);
        assert_eq!(self.state.len(), expected.len());
        assert_eq!(self.counters[0].mappings(), expected.len() as u64);
        assert_eq!(self.counters[0].blocks(), self.blocks.len() as u64);
        let used: BTreeSet<_> =
            expected.iter().map(|(_, _, o)| (o.address, o.port - (o.port - 1024) % 16)).collect();
        assert_eq!(
            self.blocks.keys().copied().collect::<BTreeSet<_>>(),
            used,
            "blocks without mappings go back"
        );
        for (_, inside, outside) in &expected {
            let paired =
                expected.iter().all(|(_, i, o)| i.address != inside.address || o.address == outside.address);
            assert!(paired, "one UE, one public address");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_shard_does_what_a_list_would(
        steps in prop::collection::vec(step(), 1..400), seed in any::<u64>(), filtered in any::<bool>()
    ) {
        let filtering = if filtered { Filtering::AddressDependent } else { Filtering::EndpointIndependent };
        let mut bench = Bench::new(filtering, seed);
        for step in &steps {
            bench.step(step, filtering);
        }
    }
}

#[test]
fn a_shard_runs_out_of_blocks_and_a_ue_of_its_own() {
    let mut bench = Bench::new(Filtering::EndpointIndependent, 7);
    let out = |ue, port| Step::Out { ue, port, protocol: Protocol::Udp, remote: 1, flags: 0, data: true };
    for number in 0..20 {
        for port in 0..40 {
            bench.step(&out(number, port), Filtering::EndpointIndependent);
        }
    }
    assert_eq!(bench.twins.len(), 8 * 32);
    bench.step(&Step::Wait(60), Filtering::EndpointIndependent);
    bench.step(&Step::Wait(60), Filtering::EndpointIndependent);
    assert_eq!(bench.state.len(), 0);
}
