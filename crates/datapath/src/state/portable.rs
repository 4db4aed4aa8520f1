//! What packets have counted of a session, as it leaves the process and comes back into another one.
//!
//! The rules are control's to carry ([`session::portable`]); here is what only the shard knows: counters, what was measured towards
//! thresholds and quotas, how full meters are, and why packets were dropped. Everything is under the rules' IDs, so that rules may have
//! changed their order. Times are those of a clock that goes on ([`tables::clock::Tsc::ahead`]). Packets that wait, flows and translations stay
//! behind.

use crate::Reason;
use crate::state::account::Books;
use crate::state::police;
use crate::state::shard::Shard;
use pfcp::QerId;
use session::packed::Pack;
use tables::Nanos;

/// Of what is written.
const VERSION: u8 = 2;

impl<F> Shard<F> {
    /// Writes it down for the session in this slot. `None`: there is none.
    pub fn export(&mut self, slot: u32, now: Nanos) -> Option<Vec<u8>> {
        self.fold(slot);
        let mut out = Vec::with_capacity(256);
        VERSION.pack(&mut out);
        now.0.pack(&mut out);
        let session = self.session(slot)?;
        let rules = &*session.rules;
        session.books.pack(rules, now, &mut out);
        let meters = rules.qers.iter().zip(self.meters.get(session.meters));
        let used: Vec<_> = meters.map(|(qer, [up, down])| (qer.id, (up.used(now), down.used(now)))).collect();
        used.pack(&mut out);
        let markers = police::promised(rules).zip(self.markers.get(session.markers));
        let used: Vec<_> = markers.map(|(whose, marker)| (whose, marker.used(now))).collect();
        used.pack(&mut out);
        let drops = session.drops().into_iter();
        let drops: Vec<(Box<[u8]>, u64)> =
            drops.map(|(reason, packets)| (reason.label().as_bytes().into(), packets)).collect();
        drops.pack(&mut out);
        self.grant(slot);
        Some(out)
    }

    /// Goes on with what [`Self::export`] wrote of the session that is in this slot now, and has counted nothing yet: when that was, its clock
    /// says, which this one goes on with. False, and nothing changed: there is no session, or the octets are none of it.
    pub fn import(&mut self, slot: u32, mut octets: &[u8], now: Nanos) -> bool {
        let from = &mut octets;
        let Some(rules) = self.session(slot).map(|session| session.rules.clone()) else { return false };
        type Used = Vec<(QerId, (u64, u64))>;
        type Promised = Vec<((QerId, bool), (u64, u64))>;
        let read = (|| {
            if u8::unpack(from)? != VERSION {
                return None;
            }
            let then = Nanos(u64::unpack(from)?).min(now);
            let books = Books::unpack(&rules, then, from)?;
            let (meters, markers): (Used, Promised) = (Pack::unpack(from)?, Pack::unpack(from)?);
            let drops: Vec<(Box<[u8]>, u64)> = Pack::unpack(from)?;
            from.is_empty().then_some((then, books, meters, markers, drops))
        })();
        let Some((then, books, meters, markers, drops)) = read else { return false };
        self.fold(slot);
        let depth = self.depth();
        let Some(session) = self.session_mut(slot) else { return false };
        session.books = books;
        for (label, packets) in drops {
            if let Some(reason) = Reason::ALL.iter().find(|reason| *reason.label().as_bytes() == *label) {
                session.drop_many(*reason, packets);
            }
        }
        let (run, marked) = (session.meters, session.markers);
        for (qer, own) in rules.qers.iter().zip(self.meters.get_mut(run)) {
            if let Some((_, (up, down))) = meters.iter().find(|(id, _)| *id == qer.id) {
                for (meter, used) in own.iter_mut().zip([up, down]) {
                    meter.use_up(then, *used, depth);
                }
            }
        }
        for (whose, own) in police::promised(&rules).zip(self.markers.get_mut(marked)) {
            if let Some((_, used)) = markers.iter().find(|(other, _)| *other == whose) {
                own.use_up(then, *used);
            }
        }
        self.grant(slot);
        true
    }
}
