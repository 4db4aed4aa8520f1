//! What is translated changes while it runs.

use super::chosen::{is_of, pool, says, session};
use super::*;
use datapath::nat::{Choice, MAX_POOLS};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A network whose plans follow each other, and a worker that is told of them.
struct Changing {
    rib: Rib,
    worker: Worker,
}

impl Changing {
    fn new(pools: &[Settings], statics: &[Static]) -> Self {
        let mut rib = network(None);
        learn(&mut rib);
        rib.translate(Arc::new(Plan::new(pools, statics, &[]).unwrap()));
        let worker = Worker::of(Config::new(rib.fib()), 2, |_| true);
        Self { rib, worker }
    }

    fn change(&mut self, pools: &[Settings], statics: &[Static]) {
        let before = self.rib.nat().cloned().unwrap_or_default();
        self.rib.translate(Arc::new(before.succeeded_by(pools, statics, &[]).unwrap()));
        self.worker.apply(Command::Fib(self.rib.fib()));
    }

    /// Whatever is left to be done.
    fn settle(&mut self) {
        for _ in 0..2_000 {
            self.worker.datapath.tick(self.worker.now, &mut self.worker.out, &mut self.worker.pool);
        }
    }

    /// The public endpoint of a UE's packet to this port.
    fn public(&mut self, ue: Ipv4Addr, port: u16) -> (Ipv4Addr, u16) {
        let (address, from, ..) = ends(&self.worker.up(ue, &udp((ue, 4000), (HOST, port))).unwrap());
        (address, from)
    }

    fn mappings(&self) -> Vec<u64> {
        self.worker.datapath.counters().nat.iter().map(datapath::nat::PoolCounters::mappings).collect()
    }
}

const BY_ADDRESS: Choice = says(0, 0);

fn internet() -> Settings {
    pool("internet", BY_ADDRESS, &["10.45.0.0/16"], "203.0.113.64/28")
}

#[test]
fn what_stays_is_kept_and_what_goes_ends_and_is_told() {
    let fixed = pool("fixed", says(1, 0), &[], "198.51.100.0/28");
    let mut changing = Changing::new(&[fixed, internet()], &[]);
    for ue in [UE, UE2] {
        changing.worker.install(&session(ue, &[1], &[says(1, 0), BY_ADDRESS]), Transition::default());
    }
    let (gone, kept) = (changing.public(UE, 1), changing.public(UE, 2));
    assert!(is_of(gone.0, "198.51.100.0/28") && is_of(kept.0, "203.0.113.64/28"));
    changing.worker.told();
    // The second pool is the first now, and has other UEs and timeouts beside; another one is for the policy.
    let mut internet = internet();
    internet.inside.push("10.46.0.0/16".parse().unwrap());
    internet.timeouts.udp = 100 * Nanos::SECOND;
    let other = pool("other", says(1, 0), &[], "198.51.100.16/28");
    changing.change(&[internet.clone(), other.clone()], &[]);
    assert_eq!(changing.public(UE, 2), kept);
    let now = changing.public(UE, 1);
    assert!(is_of(now.0, "198.51.100.16/28"), "{now:?}");
    for (address, port) in [kept, now] {
        assert!(changing.worker.down(&udp((HOST, 5), (address, port))).is_some());
    }
    assert_eq!(changing.worker.down(&udp((HOST, 5), gone)), None, "it is nobody's");
    changing.settle();
    let told = changing.worker.told();
    let ended: Vec<_> = told.iter().filter(|told| matches!(told, Told::Block { taken: false, .. })).collect();
    let [Told::Block { pool: 0, inside: UE, outside, ports, .. }] = ended[..] else { panic!("{told:?}") };
    assert!(*outside == gone.0 && (ports.0..=ports.1).contains(&gone.1), "by the address that it was");
    assert_eq!(changing.mappings(), [0, 1, 1]);
    // All goes, and comes again as another one.
    changing.change(&[], &[]);
    assert_eq!(changing.public(UE, 2), (UE, 4000));
    changing.settle();
    assert_eq!(changing.mappings(), [0; 3]);
    changing.change(&[internet, other], &[]);
    assert!(is_of(changing.public(UE, 1).0, "198.51.100.16/28"));
    assert!(is_of(changing.public(UE, 2).0, "203.0.113.64/28"));
    assert_eq!(changing.mappings(), [0, 0, 0, 1, 1]);
}

#[test]
fn an_error_about_what_came_before_does_not_leave_by_what_is_gone() {
    let mut changing = Changing::new(&[internet()], &[]);
    changing.worker.install(&rules(UE, 77), Transition::default());
    let gone = changing.public(UE, 1);
    let (_, received) = changing.worker.down(&udp((HOST, 1), gone)).unwrap();
    let mut error = Vec::new();
    packet::icmpv4::emit_error(&mut error, UE, packet::icmpv4::Icmpv4Error::PortUnreachable, &received);
    let source = |sent: &[u8]| Ipv4View::parse(sent).unwrap().source();
    assert_eq!(source(&changing.worker.up(UE, &error).unwrap()), gone.0);
    // What the pool gave ends piece by piece, and stands for nobody from now on: its addresses may be somebody else's.
    let other = pool("other", BY_ADDRESS, &["10.45.0.0/16"], "198.51.100.16/28");
    changing.change(&[other], &[]);
    assert_eq!(changing.worker.up(UE, &error), None);
    assert_eq!(changing.worker.dropped(Reason::NatNoMapping), 1);
    changing.change(&[], &[]);
    assert_eq!(source(&changing.worker.up(UE, &error).unwrap()), UE, "as everything that it sends");
}

#[test]
fn a_port_that_is_forwarded_from_now_on_is_nobody_elses() {
    let mut changing = Changing::new(&[internet()], &[]);
    for ue in [UE, UE2] {
        changing.worker.install(&rules(ue, 77), Transition::default());
    }
    let (address, port) = changing.public(UE, 1);
    let entry = Static { outside: address, inside: UE2, port: Some((Protocol::Udp, port, 53)) };
    changing.change(&[internet()], &[entry]);
    let (_, packet) = changing.worker.down(&udp((HOST, 5), (address, port))).unwrap();
    assert_eq!(ends(&packet).2, UE2);
    let other = changing.public(UE, 1);
    assert!(other.0 == address || changing.mappings() == [1], "{other:?}");
    assert_ne!(other, (address, port));
    // Not even when all others are taken.
    for from in 0..600_u16 {
        let sent = changing.worker.up(UE, &udp((UE, 5000 + from), (HOST, 1)));
        assert!(sent.is_none_or(|sent| ends(&sent).1 != port || ends(&sent).0 != address));
    }
}

#[test]
fn a_shard_follows_the_plan_of_the_worker_that_it_comes_to() {
    let mut changing = Changing::new(&[internet()], &[]);
    changing.worker.install(&session(UE, &[1], &[says(1, 0), BY_ADDRESS]), Transition::default());
    let kept = changing.public(UE, 2);
    let shard = changing.worker.datapath.release(place(UE).shard).unwrap();
    let fixed = pool("fixed", says(1, 0), &[], "198.51.100.0/28");
    changing.change(&[internet(), fixed.clone()], &[]);
    changing.worker.datapath.adopt(shard);
    // The very first packet goes by it.
    assert!(is_of(changing.public(UE, 1).0, "198.51.100.0/28"));
    assert_eq!(changing.public(UE, 2), kept);
    // From a worker that had no plan at all, to one that has.
    let mut plain = network(None);
    learn(&mut plain);
    let mut elsewhere = Worker::of(Config::new(plain.fib()), 2, |_| true);
    elsewhere.install(&session(UE2, &[1], &[says(1, 0), BY_ADDRESS]), Transition::default());
    assert_eq!(ends(&elsewhere.up(UE2, &udp((UE2, 4000), (HOST, 1))).unwrap()).0, UE2);
    let shard = elsewhere.datapath.release(place(UE2).shard).unwrap();
    changing.worker.datapath.adopt(shard);
    assert!(is_of(changing.public(UE2, 1).0, "198.51.100.0/28"));
    // What ends there before that worker is told of the plan is counted there.
    let shard = changing.worker.datapath.release(place(UE2).shard).unwrap();
    elsewhere.datapath.adopt(shard);
    elsewhere.apply(Command::Remove { token: Token(9), session: place(UE2) });
    let ended =
        |worker: &Worker| worker.datapath.counters().nat.iter().map(|pool| pool.mappings_ended).sum::<u64>();
    assert_eq!(ended(&elsewhere), 1);
    elsewhere.apply(Command::Fib(plain.fib()));
    assert_eq!(ended(&elsewhere), 1, "and stays so");
    // And a worker that had none is told of one.
    let mut rib = network(None);
    learn(&mut rib);
    let mut late = Worker::of(Config::new(rib.fib()), 2, |_| true);
    late.install(&rules(UE, 77), Transition::default());
    rib.translate(Arc::new(Plan::new(&[internet()], &[], &[]).unwrap()));
    late.apply(Command::Fib(rib.fib()));
    assert!(is_of(ends(&late.up(UE, &udp((UE, 4000), (HOST, 1))).unwrap()).0, "203.0.113.64/28"));
}

#[test]
fn places_are_enough_however_often_pools_change() {
    let mut changing = Changing::new(&[internet()], &[]);
    changing.worker.install(&rules(UE, 77), Transition::default());
    for round in 0..200_u8 {
        let outside = format!("198.51.{round}.0/28");
        // Twice the same name, and each time other addresses.
        let settings = pool("internet", BY_ADDRESS, &["10.45.0.0/16"], &outside);
        changing.change(&[settings], &[]);
        assert!(is_of(changing.public(UE, 1).0, &outside), "{round}");
    }
    changing.settle();
    assert!(changing.mappings().len() <= MAX_POOLS);
    assert_eq!(changing.mappings().iter().sum::<u64>(), 1);
    // As many as there may be, and all of them others at once: then a place is another pool's in the same moment.
    for round in [0_u8, 1] {
        let many: Vec<Settings> = (0..MAX_POOLS as u16)
            .map(|at| {
                let outside = format!("198.{}.{at}.0/28", 18 + round);
                pool(&format!("p{at}"), says(at + 1, 0), &[], &outside)
            })
            .collect();
        changing.change(&many, &[]);
        for policy in [1, 9, MAX_POOLS as u16] {
            changing.worker.install(&session(UE, &[], &[says(policy, 0)]), Transition::default());
            let outside = format!("198.{}.{}.0/28", 18 + round, policy - 1);
            assert!(is_of(changing.public(UE, 1).0, &outside), "{round} {policy}");
        }
        assert_eq!(changing.mappings().iter().sum::<u64>(), 3, "of the plan before there is nothing");
        changing.settle();
        assert_eq!(changing.mappings().iter().sum::<u64>(), 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// The twin is a list: what a pool gave is kept as long as each plan has it.
    #[test]
    fn mappings_last_as_long_as_their_pools(
        steps in prop::collection::vec((prop::option::weighted(0.3, 0_u8..16), 0_u16..4, 0_usize..3), 1..60),
    ) {
        let menu = [
            internet(),
            pool("fixed", says(1, 0), &[], "198.51.100.0/28"),
            pool("direct", says(2, 0), &[], ""),
            pool("corp", says(3, 0), &["10.45.0.1/32"], "198.51.100.16/28"),
        ];
        let chosen = |bits: u8| -> Vec<Settings> {
            (0..).zip(&menu).filter(|(at, _)| bits >> at & 1 == 1).map(|(_, pool)| pool.clone()).collect()
        };
        let mut pools = chosen(15);
        let mut changing = Changing::new(&pools, &[]);
        let ues = [UE, UE2, Ipv4Addr::new(10, 45, 0, 9)];
        let said = [says(1, 0), says(2, 0), says(3, 0), BY_ADDRESS];
        for ue in ues {
            changing.worker.install(&session(ue, &[1, 2, 3], &said), Transition::default());
        }
        let mut twin: BTreeMap<(String, Ipv4Addr), (Ipv4Addr, u16)> = BTreeMap::new();
        for (change, kind, ue) in steps {
            if let Some(bits) = change {
                pools = chosen(bits);
                changing.change(&pools, &[]);
                twin.retain(|(name, _), (address, port)| {
                    let stays = pools.iter().any(|pool| pool.name == *name);
                    let arrives = changing.worker.down(&udp((HOST, 5), (*address, *port))).is_some();
                    assert_eq!(arrives, stays, "{name}");
                    stays
                });
            }
            let (ue, said) = (ues[ue], said[usize::from(kind)]);
            let public = changing.public(ue, kind + 1);
            match super::chosen::expected(&pools, said, ue) {
                None => prop_assert_eq!(public, (ue, 4000)),
                Some(at) => {
                    prop_assert!(pools[at].outside[0].contains(&public.0));
                    let known = twin.entry((pools[at].name.clone(), ue)).or_insert(public);
                    prop_assert_eq!(*known, public);
                }
            }
        }
        changing.settle();
        prop_assert_eq!(changing.mappings().iter().sum::<u64>(), twin.len() as u64);
    }
}
