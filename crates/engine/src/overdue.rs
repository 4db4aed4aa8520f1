//! Usage that control had no room for.
//!
//! What packets cause is told to control by events, of which so many wait for room and no more. A lost neighbour is
//! learned again and a lost record of a flow is counted; but usage that is lost nobody is ever charged for. So usage that finds no room
//! is kept here, added up by session, rule and reason: at most a few entries for each rule that there is, however long
//! control stands still and however low thresholds are. It goes on its way when there is room, and at the latest before
//! the session's next order is carried out: its removal is the last that control wants to hear of it.

use datapath::command::{Command, Event};
use pfcp::Seid;
use session::usage::Usage;
use session::{SessionRef, ShardId};
use std::collections::HashMap;
use std::slice;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Overdue(HashMap<SessionRef, (Seid, Vec<Usage>)>);

impl Overdue {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds it to what is kept.
    pub fn keep(&mut self, seid: Seid, usage: Vec<Usage>) {
        let (_, kept) = self.0.entry(SessionRef::of(seid)).or_insert_with(|| (seid, Vec::new()));
        for new in usage {
            match kept.iter_mut().find(|old| (old.urr, old.trigger) == (new.urr, new.trigger)) {
                Some(old) => old.add(&new),
                None => kept.push(new),
            }
        }
    }

    /// Any session's.
    pub fn take_any(&mut self) -> Option<Event> {
        let place = *self.0.keys().next()?;
        self.take(place)
    }

    /// What control has to hear before a command is carried out.
    pub fn take_before(&mut self, command: &Command) -> Vec<Event> {
        let (shard, slots) = match command {
            Command::Install { rules, .. } => (rules.place.shard, slice::from_ref(&rules.place.slot)),
            Command::Remove { session, .. } | Command::Query { session, .. } => {
                (session.shard, slice::from_ref(&session.slot))
            }
            Command::Export { shard, slots, .. } => (*shard, &**slots),
            _ => return Vec::new(),
        };
        slots.iter().filter_map(|&slot| self.take(SessionRef { shard, slot })).collect()
    }

    /// What there is of a shard that goes elsewhere.
    pub fn take_shard(&mut self, shard: ShardId) -> impl Iterator<Item = Event> + '_ {
        let taken = self.0.extract_if(move |place, _| place.shard == shard);
        taken.map(|(_, (seid, usage))| Event::Usage { seid, usage })
    }

    fn take(&mut self, place: SessionRef) -> Option<Event> {
        let (seid, usage) = self.0.remove(&place)?;
        Some(Event::Usage { seid, usage })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use datapath::command::Token;
    use pfcp::UrrId;
    use session::usage::{Trigger, Volume};
    use tables::Nanos;

    fn usage(urr: u32, trigger: Trigger, uplink_bytes: u64, at: u64) -> Usage {
        let volume = Volume { uplink_bytes, ..Volume::default() };
        Usage { urr: UrrId(urr), trigger, volume, packets_seen: Some((Nanos(at), Nanos(at + 1))) }
    }

    #[test]
    fn usage_is_added_up_by_rule_and_reason_and_goes_with_its_session_or_shard() {
        let place = |shard, slot| SessionRef { shard: ShardId::from_hash(shard), slot };
        let (a, b, c) = (place(1, 7), place(1, 8), place(2, 7));
        let mut overdue = Overdue::default();
        for at in 0..1_000 {
            overdue.keep(a.seid(1), vec![usage(1, Trigger::VolumeThreshold, 10, at)]);
        }
        overdue.keep(
            a.seid(1),
            vec![usage(1, Trigger::VolumeQuota, 5, 0), usage(2, Trigger::VolumeThreshold, 7, 0)],
        );
        overdue.keep(b.seid(1), vec![usage(1, Trigger::VolumeThreshold, 1, 0)]);
        overdue.keep(c.seid(1), vec![usage(1, Trigger::VolumeThreshold, 2, 0)]);
        let other = Command::Inspect { token: Token(1), session: a };
        assert!(overdue.take_before(&other).is_empty());
        let removal = Command::Remove { token: Token(1), session: a };
        let told = overdue.take_before(&removal);
        let [Event::Usage { seid, usage: reports }] = &told[..] else { panic!("{told:?}") };
        let told: Vec<_> = reports
            .iter()
            .map(|u| (u.urr.0, u.trigger, u.volume.uplink_bytes, u.packets_seen.unwrap()))
            .collect();
        assert_eq!(*seid, a.seid(1));
        assert_eq!(
            told,
            [
                (1, Trigger::VolumeThreshold, 10_000, (Nanos(0), Nanos(1_000))),
                (1, Trigger::VolumeQuota, 5, (Nanos(0), Nanos(1))),
                (2, Trigger::VolumeThreshold, 7, (Nanos(0), Nanos(1)))
            ]
        );
        assert!(overdue.take_before(&removal).is_empty());
        // Of a shard's sessions, those that are named.
        overdue.keep(a.seid(1), vec![usage(1, Trigger::VolumeThreshold, 10, 0)]);
        let export = Command::Export { token: Token(1), shard: a.shard, slots: [6, 7].into() };
        let told = overdue.take_before(&export);
        assert!(matches!(told[..], [Event::Usage { seid, .. }] if seid == a.seid(1)), "{told:?}");
        let of_shard: Vec<_> = overdue.take_shard(b.shard).collect();
        assert!(matches!(of_shard[..], [Event::Usage { seid, .. }] if seid == b.seid(1)));
        assert!(overdue.take_any().is_some() && overdue.is_empty());
    }
}
