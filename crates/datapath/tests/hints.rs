//! Bursts whose look-ups a device is asked for, beside the same ones that nobody is asked about.

use crate::rig::asked::Asked;
use crate::rig::*;
use datapath::command::{Command, Token, Transition};
use datapath::lookups::{Batch, Worth};
use datapath::{Burst, Config, Counters};
use io::Frame;
use io::mem::MemFrame;
use packet::PacketBuilder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use session::rules::{Rules, Tunnel};
use session::{SessionRef, TeidRef};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// What came of a burst: sent by port, and handed off with shards.
type Outcome = (Vec<Vec<Vec<u8>>>, Vec<usize>);

/// Two workers with the same shards, of which one asks a device.
struct Twins {
    alone: Worker,
    asking: Worker,
    asked: Asked,
}

impl Twins {
    fn new(shards: impl Fn(session::ShardId) -> bool + Copy) -> Self {
        let mut rib = network(None);
        learn(&mut rib);
        let mut worker = || Worker::of(Config::new(rib.fib()), 2, shards);
        Self { alone: worker(), asking: worker(), asked: Asked::new(3, 0) }
    }

    fn apply(&mut self, command: impl Fn() -> Command) {
        self.alone.apply(command());
        self.asking.apply(command());
        self.same();
    }

    fn process(&mut self, port: u16, frames: &[Vec<u8>]) {
        let burst = || Burst::of(frames.iter().map(|frame| MemFrame::copy_of(frame).unwrap()).collect());
        let Worker { datapath, out, pool, now } = &mut self.alone;
        datapath.process(*now, port, &mut burst(), out, pool);
        let Worker { datapath, out, pool, now } = &mut self.asking;
        self.asked.process(datapath, *now, [(port, burst())], out, pool);
        self.same();
    }

    fn same(&mut self) {
        let outcome = |worker: &mut Worker| -> Outcome {
            let shards = worker.out.hand_off.drain().map(|(shard, _)| shard.index()).collect();
            worker.out.events.clear();
            (vec![worker.sent(0), worker.sent(1)], shards)
        };
        assert_eq!(outcome(&mut self.alone), outcome(&mut self.asking));
        assert_eq!(self.alone.datapath.counters(), self.asking.datapath.counters());
    }

    fn counters(&self) -> &Counters {
        self.asking.datapath.counters()
    }
}

fn session(place: SessionRef, address: Ipv4Addr) -> Arc<Rules> {
    let mut rules = session_at(place, Some(address), to_gnb(7 + place.slot));
    let at = TeidRef { shard: place.shard, slot: place.slot as u16 };
    rules.pdrs[0].tunnel = Some(Tunnel { teid: at.teid(1), place: at });
    Arc::new(rules)
}

fn downlink(to: Ipv4Addr) -> Vec<u8> {
    PacketBuilder::new().ethernet(N6, ROUTER).ipv4(HOST, to).udp(53, 4_000).build(b"answer")
}

/// SMFs may give several sessions one address. Whose it is then is in the map alone, and a record that names the address proves nothing.
#[test]
fn an_address_of_several_sessions_is_whose_it_would_be() {
    let mut rng = StdRng::seed_from_u64(5);
    let shard = place(UE).shard;
    let in_shard = |address: &Ipv4Addr| place(*address).shard == shard;
    let addresses: Vec<_> =
        (0..).map(|n| Ipv4Addr::from(u32::from(UE) + n)).filter(in_shard).take(3).collect();
    let mut twins = Twins::new(|_| true);
    let mut shared = 0;
    let mut owner = [None; 4];
    for _ in 0..3_000 {
        let place = SessionRef { shard, slot: rng.random_range(0..4) };
        let token = Token(0);
        match rng.random_range(0..10) {
            0 => {
                let rules = session(place, addresses[rng.random_range(0..3)]);
                owner[place.slot as usize] = rules.ue_ipv4;
                twins.apply(|| {
                    let (rules, transition, query) =
                        (Arc::clone(&rules), Transition::default(), Box::default());
                    Command::Install { token, rules, transition, query }
                });
            }
            1 => {
                owner[place.slot as usize] = None;
                twins.apply(|| Command::Remove { token, session: place });
            }
            // Now and then all of them go, and with them what was ambiguous.
            2 if rng.random_range(0..8) == 0 => {
                owner = [None; 4];
                for slot in 0..4 {
                    twins.apply(|| Command::Remove { token, session: SessionRef { shard, slot } });
                }
            }
            _ => {
                let to: Vec<_> = (0..8).map(|_| downlink(addresses[rng.random_range(0..3)])).collect();
                twins.process(1, &to);
            }
        }
        shared += usize::from((1..4).any(|at| owner[at].is_some() && owner[..at].contains(&owner[at])));
    }
    let Worth { right, wrong, .. } = twins.asked.worth;
    assert!(right > 300 && wrong > 300 && shared > 500, "{:?}, {shared}", twins.asked.worth);
    assert!(twins.counters().downlink.packets > 1_000);
}

/// What belongs to another worker leaves with its burst and in its order, and moves nobody's hint.
#[test]
fn frames_of_other_workers_leave_with_their_burst() {
    let mut rng = StdRng::seed_from_u64(6);
    let mut twins = Twins::new(|shard| shard.index().is_multiple_of(2));
    let addresses: Vec<_> = (0..64).map(|n| Ipv4Addr::from(u32::from(UE) + n)).collect();
    for (slot, address) in (0..).zip(&addresses) {
        let rules = session(SessionRef { slot, ..place(*address) }, *address);
        if rules.place.shard.index().is_multiple_of(2) {
            twins.apply(|| {
                let (rules, transition, query) = (Arc::clone(&rules), Transition::default(), Box::default());
                Command::Install { token: Token(0), rules, transition, query }
            });
        }
    }
    for _ in 0..300 {
        let frames: Vec<_> =
            (0..rng.random_range(1..64)).map(|_| downlink(addresses[rng.random_range(0..64)])).collect();
        twins.process(1, &frames);
    }
    let counters = twins.counters();
    assert!(counters.handed_out > 1_000 && counters.downlink.packets > 1_000);
    assert!(twins.asked.worth.right > 1_000, "{:?}", twins.asked.worth);
}

/// Nobody is asked who owns a packet, nor about sessions without flows.
#[test]
fn questions_are_few() {
    let mut twins = Twins::new(|_| true);
    let rules = session(place(UE), UE);
    twins.apply(|| {
        let (rules, transition, query) = (Arc::clone(&rules), Transition::default(), Box::default());
        Command::Install { token: Token(0), rules, transition, query }
    });
    let Worker { datapath, out, pool, now } = &mut twins.asking;
    let uplink = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).udp(2152, 2152);
    let uplink = uplink.gtpu(rules.pdrs[0].tunnel.unwrap().teid).ipv4(UE, HOST).udp(1, 2).build(b"question");
    let mut asked = |port, frame: &[u8]| {
        let mut burst = Burst::of(vec![MemFrame::copy_of(frame).unwrap()]);
        let mut batch = Batch::new();
        datapath.read(*now, port, &mut burst, out);
        datapath.question(&mut burst, &mut batch);
        // As many answers as the device likes.
        batch.answers.extend([0; 5]);
        datapath.finish_answered(*now, &mut burst, Some(&batch), out, pool);
        assert_eq!(burst.take_lessons().count(), 0);
        (batch.keys.len(), burst.take_worth())
    };
    assert_eq!(asked(0, &uplink), (0, Worth::default()), "the TEID says where its session is");
    assert_eq!(asked(1, &downlink(UE)), (1, Worth { right: 1, ..Worth::default() }));
    assert_eq!(twins.asking.datapath.counters().sent, 2);
    assert_eq!(twins.asking.out.transmit[0][0].bytes()[..6], GNB.0);
}
