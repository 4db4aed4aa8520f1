//! What control orders: sessions come, change and go, and are asked what they measured.

use super::books::{over, promise, report};
use super::*;
use pfcp::FarId;
use session::usage::{Trigger, Volume};

impl Reference {
    pub fn install(
        &mut self,
        now: Nanos,
        rules: &Arc<Rules>,
        end_markers: &[FarId],
        discard: bool,
    ) -> Vec<Usage> {
        self.now = now;
        let key = (rules.place.shard.index(), rules.place.slot);
        let before = self.subscribers.remove(&key);
        self.mouths.change(now, before.as_ref().map(|before| &*before.rules), rules);
        let mut usage = Vec::new();
        let mut next = Subscriber {
            rules: Arc::clone(rules),
            pdrs: HashMap::new(),
            meters: HashMap::new(),
            markers: HashMap::new(),
            urrs: HashMap::new(),
            waiting: VecDeque::new(),
            notified: Vec::new(),
            drops: BTreeMap::new(),
        };
        for qer in &rules.qers {
            for (uplink, rate) in [(true, qer.uplink_mbr), (false, qer.downlink_mbr)] {
                let depth = self.world.meter_burst;
                let old = before.as_ref().and_then(|b| b.meters.get(&(qer.id, uplink)));
                let meter =
                    old.map_or_else(|| Maximum::new(rate, depth, now), |old| old.changed(rate, depth, now));
                next.meters.insert((qer.id, uplink), meter);
            }
        }
        for qer in &rules.qers {
            for (uplink, promise) in [(true, promise(qer, true)), (false, promise(qer, false))] {
                let Some((gbr, mbr)) = promise else { continue };
                let burst = |rate| burst(rate, self.world.meter_burst, 10_000);
                let full = TwoRate::new(burst(gbr), burst(mbr), now);
                let old = before.as_ref().and_then(|b| b.markers.get(&(qer.id, uplink)));
                next.markers.insert((qer.id, uplink), old.map_or(full, |old| old.changed(full, now)));
            }
        }
        for urr in &rules.urrs {
            let exhausted = over(&urr.quota, &Volume::default());
            next.urrs.insert(urr.id, Measured { exhausted, ..Measured::default() });
        }
        let mut left = Vec::new();
        if let Some(mut before) = before {
            for pdr in &rules.pdrs {
                if let Some(counts) = before.pdrs.get(&pdr.id) {
                    next.pdrs.insert(pdr.id, *counts);
                }
            }
            for old in &before.rules.urrs {
                let Some(mut measured) = before.urrs.remove(&old.id) else { continue };
                match rules.urrs.iter().find(|u| u.id == old.id) {
                    None => usage.push(report(old.id, &mut measured, Trigger::Termination)),
                    Some(new) => {
                        if new.quota_generation != old.quota_generation {
                            measured.since_quota = Volume::default();
                            measured.exhausted = over(&new.quota, &Volume::default());
                            measured.told = false;
                        } else if new.quota != old.quota {
                            measured.exhausted = over(&new.quota, &measured.since_quota);
                            measured.told = measured.told && measured.exhausted;
                        }
                        if !old.start_of_traffic {
                            measured.started = false;
                        }
                        next.urrs.insert(new.id, measured);
                    }
                }
            }
            for old in &before.rules.fars {
                let Action::Forward(Forward {
                    outer_header: Some(tunnel),
                    destination: Destination::Access,
                    ..
                }) = old.action
                else {
                    continue;
                };
                let new = rules.fars.iter().find(|f| f.id == old.id).map(|f| f.action);
                if let Some(Action::Forward(Forward { outer_header: Some(new), .. })) = new
                    && new != tunnel
                    && end_markers.contains(&old.id)
                    && !left.contains(&tunnel)
                {
                    left.push(tunnel);
                }
            }
            next.drops = before.drops;
            next.waiting = before.waiting;
        }
        let waiting = std::mem::take(&mut next.waiting);
        self.subscribers.insert(key, next);
        for tunnel in left {
            let own = self.own(tunnel.peer);
            let packet = PacketBuilder::new()
                .ip(own, tunnel.peer)
                .udp(2152, 2152)
                .gtpu_message(packet::gtpu::MessageType::END_MARKER, tunnel.teid)
                .build(&[]);
            self.emit(0, self.world.peers[&tunnel.peer], &packet);
        }
        for arrival in waiting {
            let there = arrival
                .tunnel
                .as_ref()
                .is_none_or(|(teid, _)| rules.pdrs.iter().any(|p| p.tunnel.is_some_and(|t| t.teid == *teid)));
            if discard || !there {
                self.drop(Some(key), Reason::BufferDiscarded);
            } else {
                self.user_packet(arrival, Some(key), false);
            }
        }
        self.settle();
        usage
    }

    pub fn remove(&mut self, place: SessionRef) -> Option<Vec<Usage>> {
        let mut s = self.subscribers.remove(&(place.shard.index(), place.slot))?;
        self.mouths.forget(&s.rules);
        self.conversations.remove((place.shard.index(), place.slot));
        for _ in &s.waiting {
            *self.drops.entry(Reason::BufferDiscarded).or_default() += 1;
        }
        let urrs = s.rules.urrs.iter().map(|u| u.id).collect::<Vec<_>>();
        Some(urrs.iter().map(|id| report(*id, s.urrs.get_mut(id).unwrap(), Trigger::Termination)).collect())
    }

    pub fn query(&mut self, place: SessionRef, trigger: Trigger) -> Option<Vec<Usage>> {
        let s = self.subscribers.get_mut(&(place.shard.index(), place.slot))?;
        let urrs = s.rules.urrs.iter().map(|u| u.id).collect::<Vec<_>>();
        Some(urrs.iter().map(|id| report(*id, s.urrs.get_mut(id).unwrap(), trigger)).collect())
    }
}
