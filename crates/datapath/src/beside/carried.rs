//! The walk that counts what flows of applications have carried while they live; see [`crate::state::carried`].

use crate::command::{ApplicationFlows, Event};
use crate::datapath::Datapath;
use crate::inspect::Finding;
use crate::meta::Meta;
use crate::state::carried::Carried;
use crate::state::flow::{Flow, Key, Lookup};
use crate::state::shard::Shard;
use io::Frame;
use pfcp::Seid;
use session::SHARDS;
use session::applications::Lineage;
use tables::Nanos;

/// Lines that are looked at for one session's flows, at most: some 100 us.
const LOOKED_AT: u32 = 16_384;

impl<F> Shard<F> {
    /// What is known of the conversation that a flow counts on. `None`: it isn't looked into.
    pub(crate) fn finding(&self, key: &Key, flow: &Flow) -> Option<Finding> {
        let seid = self.inspected_for(key, flow);
        self.conversations.as_ref()?.finding(&key.ends(), seid?, flow.rule)
    }

    /// Whether a flow is about packets from the UE.
    pub(crate) fn is_uplink(&self, key: &Key, flow: &Flow) -> bool {
        self.owner(key, flow).map_or(key.place().1, |owner| owner.uplink)
    }

    /// Whether conversations are remembered.
    fn has_conversations(&self) -> bool {
        self.conversations.as_ref().is_some_and(|conversations| !conversations.is_empty())
    }

    /// Counts what flows below a number have carried, of at most so many of them; returns the number below which others are left.
    fn count_carried(&mut self, below: u32, most: u32, carried: &mut Carried) -> u32 {
        let mut visited = std::mem::take(&mut carried.visited);
        let from = self.visit_below(below, most, |key, flow| {
            if flow.is_inspected() {
                visited.push((*key, *flow));
            }
        });
        for (key, flow) in visited.drain(..) {
            let (uplink, seid) = (self.is_uplink(&key, &flow), self.inspected_for(&key, &flow));
            if let Some(conversations) = &mut self.conversations {
                conversations.count_live(&key.ends(), seid, &flow, uplink);
            }
        }
        carried.visited = visited;
        from
    }

    /// Hands over what was counted here.
    pub(crate) fn tell_carried(&mut self, carried: &mut Carried) {
        if let Some(conversations) = &mut self.conversations {
            conversations.carried.drain(..).for_each(|sum| carried.add(&sum));
        }
    }

    /// What a session's flows that live have carried, by what is known of their applications. False: there may be more, since the shard has too many
    /// flows to look at.
    pub(crate) fn applications_of(&self, seid: Seid) -> (Vec<ApplicationFlows>, bool) {
        if !self.has_conversations() {
            return (Vec::new(), true);
        }
        let mut flows = Vec::new();
        let left = self.visit_below(u32::MAX, LOOKED_AT, |key, flow| {
            if flow.is_inspected() {
                flows.push((*key, *flow));
            }
        });
        let mut lines = Vec::<ApplicationFlows>::new();
        for (key, flow) in flows {
            if self.inspected_for(&key, &flow) != Some(seid) {
                continue;
            }
            let Some(finding) = self.finding(&key, &flow) else { continue };
            let at = lines.iter().position(|line| line.finding == finding).unwrap_or_else(|| {
                lines.push(ApplicationFlows::of(finding));
                lines.len() - 1
            });
            let Some(line) = lines.get_mut(at) else { continue };
            line.flows += 1;
            let sum = if self.is_uplink(&key, &flow) { &mut line.uplink } else { &mut line.downlink };
            let carried = flow.carried();
            sum.packets += carried.packets;
            sum.bytes += carried.bytes;
        }
        (lines, left == 0)
    }
}

impl<F: Frame> Datapath<F> {
    /// What the conversation of a packet is known for, or taken for so far. `lookup`: the packet's flow, if it was looked for.
    pub(crate) fn lineage_of(&self, meta: &Meta, lookup: Option<&Lookup>) -> Option<Lineage> {
        let shard = self.shards.get(usize::from(meta.shard))?.as_deref()?;
        let key = &lookup?.key;
        let seid = shard.session_of(key)?.rules.seid;
        shard.conversations.as_ref()?.lineage(&key.ends(), seid)
    }

    /// Goes on with the walk, if it is time for it, and tells what came of it at its end.
    pub(crate) fn count_carried(&mut self, now: Nanos, events: &mut Vec<Event>) {
        let Some((mut place, mut left)) = self.carried.go_on(now) else { return };
        let mut next = Some(place);
        while left > 0 {
            let (at, below) = place;
            let mut rest = 0;
            if let Some(Some(shard)) = self.shards.get_mut(at) {
                if shard.has_conversations() {
                    let below = below.min(shard.flows.len() as u32);
                    rest = shard.count_carried(below, left, &mut self.carried);
                    left = left.saturating_sub(below - rest);
                }
                shard.tell_carried(&mut self.carried);
            }
            // A shard without flows costs a look, too.
            left = left.saturating_sub(1);
            next = match rest {
                0 if at + 1 < SHARDS => Some((at + 1, u32::MAX)),
                0 => None,
                below => Some((at, below)),
            };
            let Some(on) = next else { break };
            place = on;
        }
        if let Some((at, sums)) = self.carried.pause(next) {
            events.push(Event::Carried { at, inspected: self.inspected(), sums });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::counters::Traffic;
    use crate::inspect::{Budget, Direction, Inspection, Inspector, Payload, Verdict};
    use crate::state::conversation::{Answer, Inquiry};
    use crate::state::export::{End, Ledger};
    use crate::state::flow::NO_RULE;
    use crate::{Config, Places, Rib};
    use io::mem::MemFrame;
    use packet::{IpPacket, PacketBuilder};
    use session::ShardId;
    use session::rules::Application;

    /// Takes all for one application, and is never sure.
    #[derive(Debug)]
    struct Guess;

    impl Inspector for Guess {
        type State = ();
        type Room = ();

        fn room(&self, _: u64) {}

        fn step(&self, (): &mut (), (): &mut (), _: &Payload<'_>, _: Direction, _: Nanos) -> Verdict {
            Verdict::SoFar(Application(7).into())
        }
    }

    #[test]
    fn what_a_flow_carried_before_its_counters_were_full_is_counted() {
        let inspection = Inspection::new(Guess, Budget { packets: 9, bytes: 9_000 }, Places::new(1));
        let config = Config { inspection: Some(inspection.clone()), ..Config::new(Rib::new().fib()) };
        let mut datapath = Datapath::<MemFrame>::new(config);
        let id = ShardId::from_hash(0);
        let shard = datapath.new_shard(id);
        datapath.adopt(shard);
        let packet =
            PacketBuilder::new().ipv4([10, 0, 0, 1].into(), [8, 8, 8, 8].into()).udp(1, 2).build(b"?");
        let payload = Payload { packet: &packet, ip: IpPacket::parse(&packet).unwrap() };
        let (key, now, seid) = (Key::default(), Nanos(0), Seid(1));
        let (export, counters) = (&mut datapath.export, &mut datapath.counters.flows);
        let mut ledger = Ledger { now, export, counters, room: &mut datapath.room };
        let shard = datapath.shards[id.index()].as_deref_mut().unwrap();
        let conversations = shard.conversations.as_mut().unwrap();
        let shown = (&payload, Direction::Uplink);
        let counted = &mut datapath.counters.inspection;
        let (conversation, known) =
            conversations.consult((&key.ends(), seid, NO_RULE), shown, now, &inspection, counted).unwrap();
        let mut flow = Flow::new(3, 0, 30, now);
        let answer = Answer { conversation, known, direction: Direction::Uplink };
        conversations.join(&mut flow, Inquiry { answer, open: true }, false, Traffic::default());
        shard.flows.insert(key, flow).unwrap();
        // A device has forwarded more than a flow's line can hold.
        let (packets, bytes) = (5 << 30, 100 * (5 << 30));
        shard.count_offloaded(&key, packets, bytes, &mut ledger);
        assert_eq!(ledger.counters.full, 2);
        let flow = shard.flows.remove(&key).unwrap();
        assert_eq!(flow.packets(), 1 << 30);
        shard.flow_ended(&key, &flow, End::IdleTimeout, &mut ledger);
        let [sum] = &shard.conversations.as_ref().unwrap().carried[..] else { panic!() };
        assert_eq!(sum.application, Some(Application(7)));
        assert_eq!(
            (sum.counters.downlink, sum.counters.uplink),
            (Traffic { packets, bytes }, Traffic::default())
        );
    }
}
