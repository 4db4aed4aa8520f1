//! What applications' traffic comes to.
//!
//! **Problem.** A flow counts its packets in its own line, and of which application they are is known by its conversation, and later than the first of
//! them. Somebody wants sums by application, of flows that live for days, too; and a packet must not pay for them a second time.
//!
//! **Model.** A conversation keeps a `Rest` for each direction: what flows that no longer count on it have carried, less what those that do had
//! carried before, less what was counted for its application already. When the conversation is over, its rest is counted. Beside that, a walk over
//! the flows comes to each of them now and then: what it has carried so far, with the rest, is counted, and the rest is less by
//! that. So everything is counted once, whenever somebody looks, wherever the shard is by then, and a sum never falls. As long as a
//! conversation is under question nothing of it is counted: then all that it has carried is its application's.
//!
//! Of several flows of one conversation in one direction (they differ in QFI or ToS) the walk counts what the largest has carried, and
//! the end of the conversation the others.
//!
//! **Whose are the sums?** The worker's that counts (`Carried`); all workers' together are the UPF's. A shard that moves takes rests along, not
//! sums.
//!
//! **Cost.** None for packets of known flows. For the end of a flow that counts on a conversation two additions. For the walk, a look at each flow every ten
//! seconds, at most `LINES` in a tick; while somebody asks, `LINES_ASKED`. Where no conversation is remembered, no flow is looked at.

use crate::counters::Traffic;
use crate::state::flow::{Flow, Key};
use counters::Count;
use session::rules::Application;
use std::collections::HashMap;
use tables::Nanos;

/// Lines that one tick looks at, at most.
const LINES: u32 = 64;
/// While somebody waits for it: some 50 us.
const LINES_ASKED: u32 = 512;
/// From the beginning of one walk to that of the next, in nanoseconds.
const ROUND: u64 = 10 * Nanos::SECOND;
/// Applications with sums of their own, at most; the others' are added up under [`Application::NOBODYS`].
const MOST: usize = 4096;

counters::counters! {
    /// What an application's traffic came to.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ApplicationCounters {
        /// Conversations that were found to be of the application: both directions of a connection are one.
        pub conversations: u64 = "conversations", Counter;
        /// Of these, conversations that are over.
        pub over: u64 = "conversations-over", Counter;
        /// What UEs have sent in them.
        pub uplink: Traffic = "uplink";
        /// What was sent to UEs in them.
        pub downlink: Traffic = "downlink";
    }
    also {
        /// Conversations that live now.
        live = "conversations-live", Gauge;
    }
}

impl ApplicationCounters {
    /// Conversations that live now; of one worker an estimate, since those of shards that move end elsewhere.
    pub const fn live(&self) -> u64 {
        self.conversations.saturating_sub(self.over)
    }

    /// Packets and bytes of both directions.
    pub const fn both(&self) -> Traffic {
        let Self { uplink, downlink, .. } = self;
        Traffic { packets: uplink.packets + downlink.packets, bytes: uplink.bytes + downlink.bytes }
    }
}

/// An application's sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApplicationSum {
    /// Which, and not what it is a part of; `None`: it is known that it is none that is known. [`Application::NOBODYS`]: those for which there was no room.
    pub application: Option<Application>,
    /// What it came to.
    pub counters: ApplicationCounters,
}

/// What has been carried and is to be counted. It is less than nothing while flows live that had carried something before they counted on the
/// conversation, or of which something was counted already.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Rest {
    packets: i64,
    bytes: i64,
}

impl Rest {
    /// A flow that has carried so much counts no longer.
    pub const fn add(&mut self, carried: Traffic) {
        self.packets += carried.packets.cast_signed();
        self.bytes += carried.bytes.cast_signed();
    }

    /// A flow that has carried so much counts from now on.
    pub const fn subtract(&mut self, carried: Traffic) {
        self.packets -= carried.packets.cast_signed();
        self.bytes -= carried.bytes.cast_signed();
    }

    /// What is to be counted, if a flow lives that has carried so much: from now on it is.
    pub fn take(&mut self, live: Traffic) -> Traffic {
        // A flow's counters have fewer bits.
        let packets = (self.packets + live.packets.cast_signed()).max(0);
        let bytes = (self.bytes + live.bytes.cast_signed()).max(0);
        self.packets -= packets;
        self.bytes -= bytes;
        Traffic { packets: packets.cast_unsigned(), bytes: bytes.cast_unsigned() }
    }
}

/// A walk over all flows.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Nanos,
    /// Shard, and the number below which its flows are still to be looked at.
    at: (usize, u32),
    /// Somebody waits for it.
    asked: bool,
}

/// A worker's sums; see the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    sums: Vec<ApplicationSum>,
    places: HashMap<Option<Application>, usize>,
    /// There is something that was not told.
    is_new: bool,
    round: Option<Round>,
    /// When the last walk began.
    began: Nanos,
    /// Somebody has asked since.
    asked: bool,
    /// Reused: flows that were visited.
    pub visited: Vec<(Key, Flow)>,
}

impl Carried {
    /// So much more.
    pub fn add(&mut self, ApplicationSum { application, counters }: &ApplicationSum) {
        self.is_new = true;
        let known = self.places.get(application).copied();
        let at = known.unwrap_or_else(|| {
            let is_full = self.places.len() >= MOST;
            let application = if is_full { Some(Application::NOBODYS) } else { *application };
            *self.places.entry(application).or_insert_with(|| {
                self.sums.push(ApplicationSum { application, counters: ApplicationCounters::default() });
                self.sums.len() - 1
            })
        });
        if let Some(sum) = self.sums.get_mut(at) {
            sum.counters.merge(counters);
        }
    }

    /// Somebody wants to know what flows have carried until now.
    pub const fn ask(&mut self) {
        self.asked = true;
    }

    /// Where the walk goes on, and how many lines it may look at. `None`: it is not time.
    pub fn go_on(&mut self, now: Nanos) -> Option<((usize, u32), u32)> {
        if self.round.is_none() && (self.asked || now.since(self.began) >= ROUND) {
            self.round = Some(Round { began: now, at: (0, u32::MAX), asked: self.asked });
            (self.began, self.asked) = (now, false);
        }
        // Who asked in the midst of it waits for the next one, and so for the end of this one.
        let hurries = self.asked;
        self.round.map(|round| (round.at, if round.asked || hurries { LINES_ASKED } else { LINES }))
    }

    /// It has come so far; `None`: to the end. What there is to tell then: when it began, and all sums.
    pub fn pause(&mut self, at: Option<(usize, u32)>) -> Option<(Nanos, Box<[ApplicationSum]>)> {
        let round = self.round.as_mut()?;
        if let Some(at) = at {
            round.at = at;
            return None;
        }
        let Round { began, asked, .. } = *round;
        self.round = None;
        let tells = asked || std::mem::take(&mut self.is_new);
        self.is_new = false;
        tells.then(|| (began, self.sums.as_slice().into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const fn traffic(packets: u64) -> Traffic {
        Traffic { packets, bytes: 100 * packets }
    }

    proptest! {
        /// Flows of one direction come, carry, are looked at and go, in any order: what is counted is never more than what was carried, and all of it at
        /// the end.
        #[test]
        fn all_is_counted_once(steps in prop::collection::vec((0..4_u8, 0..3_usize, 1..50_u64), 0..200)) {
            let mut rest = Rest::default();
            // What each flow has carried, if it counts.
            let mut flows = [None::<u64>; 3];
            let (mut carried, mut counted) = (0, Traffic::default());
            for (what, which, packets) in steps {
                let flow = &mut flows[which];
                match (what, &mut *flow) {
                    (0, None) => {
                        rest.subtract(traffic(packets));
                        *flow = Some(packets);
                    }
                    (1, Some(now)) => {
                        *now += packets;
                        carried += packets;
                    }
                    (2, Some(now)) => {
                        rest.add(traffic(*now));
                        *flow = None;
                    }
                    (_, Some(now)) => {
                        let more = rest.take(traffic(*now));
                        counted = counted.plus(more);
                    }
                    _ => {}
                }
                prop_assert!(counted.packets <= carried);
                if flows.iter().flatten().count() == 1 && what == 3 && flows[which].is_some() {
                    prop_assert_eq!(counted, traffic(carried), "of a single flow, and those before it, all");
                }
            }
            for now in flows.iter().flatten() {
                rest.add(traffic(*now));
            }
            counted = counted.plus(rest.take(Traffic::default()));
            prop_assert_eq!(counted, traffic(carried));
        }
    }

    #[test]
    fn there_is_room_for_so_many_applications() {
        let mut carried = Carried::default();
        let one = ApplicationCounters { conversations: 1, ..ApplicationCounters::default() };
        for number in 0..6_000 {
            carried.add(&ApplicationSum { application: Some(Application(number)), counters: one });
            carried.add(&ApplicationSum { application: None, counters: one });
        }
        assert_eq!(carried.sums.len(), MOST + 1);
        let of = |application| carried.sums[carried.places[&application]].counters.conversations;
        assert_eq!((of(None), of(Some(Application(7)))), (6_000, 1));
        assert_eq!(of(Some(Application::NOBODYS)), 6_000 - (MOST as u64 - 1));
    }

    #[test]
    fn who_asks_in_the_midst_of_a_round_gets_the_next_one() {
        let mut carried = Carried::default();
        let at = |seconds: u64| Nanos(seconds * Nanos::SECOND);
        assert_eq!(carried.go_on(at(5)), None, "it is not time");
        assert_eq!(carried.go_on(at(10)), Some(((0, u32::MAX), LINES)));
        assert_eq!(carried.pause(Some((3, 7))), None);
        carried.ask();
        assert_eq!(carried.go_on(at(11)), Some(((3, 7), LINES_ASKED)), "it hurries");
        assert_eq!(carried.pause(None), None, "there is nothing new, and nobody has asked for this one");
        assert_eq!(carried.go_on(at(12)), Some(((0, u32::MAX), LINES_ASKED)));
        assert_eq!(carried.pause(None).unwrap().0, at(12));
        assert_eq!(carried.go_on(at(13)), None);
        carried.add(&ApplicationSum { application: None, counters: ApplicationCounters::default() });
        assert_eq!(carried.go_on(at(22)), Some(((0, u32::MAX), LINES)));
        assert_eq!(carried.pause(None).unwrap().1.len(), 1, "what is new is told unasked");
    }
}
