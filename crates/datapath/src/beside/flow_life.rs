//! A flow's life beside the packets: it is entered and counted, told of, looked for, and ends.

use crate::command::Event;
use crate::counters::Traffic;
use crate::datapath::Datapath;
use crate::state::conversation::Inquiry;
use crate::state::export::{End, Ledger, Marks, Owner, Told, WAITING};
use crate::state::flow::{Flow, Key, Lookup, Reached};
use crate::state::shard::Shard;
use io::Frame;
use session::SHARDS;
use session::prefixes::upper_half;
use tables::prefetch::{prefetch_lines, prefetch_slice_at};
use tables::{Nanos, RateLimiter};

/// Lines that one tick looks at for a watermark that was set.
const LOOKED_BACK: u32 = 2048;
/// Lines that one visit to a shard looks at for interim records, at most.
const VISITED: u32 = 1024;
/// Lines that one visit to a shard looks at for flows whose session is gone, and as many of them as it ends at most: some 50 us.
const PURGED: (u32, u32) = (2048, 128);
/// Lines of a session, or of its rules, that a flow's end asks for.
const SESSION_LINES: usize = 4;

impl<F> Shard<F> {
    pub(super) fn owner(&self, key: &Key, flow: &Flow) -> Option<Owner> {
        if let Some(session) = self.session_of(key)
            && session.versions.1 == flow.version
            && let Some(at) = self.rule_of(flow).checked_sub(session.rule_records.start())
            && let Some(pdr) = session.rules.pdrs.get(at as usize)
        {
            let prefix = session.rules.ue_ipv6.map_or(0, |prefix| upper_half(prefix.network()));
            let (seid, uplink) = (session.rules.seid, pdr.source.is_uplink());
            return Some(Owner { seid, pdr: pdr.id, uplink, prefix, in_force: true });
        }
        let former = self.formers.get(&flow.version)?;
        let &(pdr, uplink) = former.rules.get(self.rule_of(flow).checked_sub(former.start)? as usize)?;
        Some(Owner { seid: former.seid, pdr, uplink, prefix: former.prefix, in_force: false })
    }

    /// Tells of a flow, if anything is told of flows.
    fn tell(&self, told: Told, key: &Key, flow: &Flow, owner: Option<Owner>, ledger: &mut Ledger<'_>) {
        if ledger.export.policy.is_some() {
            ledger.tell(told, key, flow, (owner, self.finding(key, flow)));
        }
    }

    /// Asks for what the ends of these flows take: their sessions, and the conversations that they count on. It is a chain of six dependent accesses, which
    /// all of them take together.
    pub(crate) fn expect_ends(&self, ended: &[(Key, Flow)]) {
        for (key, _) in ended {
            match key.place() {
                (slot, true) => prefetch_slice_at(&self.tunnels, slot as usize),
                (slot, false) => prefetch_slice_at(&self.sessions, slot as usize),
            }
        }
        for (key, _) in ended.iter().filter(|(key, _)| key.place().1) {
            if let Some(slot) = self.slot_of(key) {
                prefetch_slice_at(&self.sessions, slot as usize);
            }
        }
        let sessions = || ended.iter().filter_map(|(key, flow)| Some((key, flow, self.session_of(key)?)));
        for (_, _, session) in sessions() {
            prefetch_lines(std::slice::from_ref(session), SESSION_LINES);
        }
        for (_, _, session) in sessions() {
            prefetch_lines(std::slice::from_ref(&*session.rules), SESSION_LINES);
        }
        for (_, flow, session) in sessions() {
            if let Some(at) = flow.rule.checked_sub(session.rule_records.start()) {
                prefetch_slice_at(&session.rules.pdrs, at as usize);
            }
        }
        let Some(conversations) = &self.conversations else { return };
        let inspected = || sessions().filter(|(_, flow, _)| flow.is_inspected());
        for (key, _, session) in inspected() {
            conversations.expect(&key.ends(), session.rules.seid);
        }
        for (key, _, session) in inspected() {
            conversations.expect_found(&key.ends(), session.rules.seid);
        }
    }

    /// A flow has left the table: it is told of, and its session has one less.
    pub(crate) fn flow_ended(&mut self, key: &Key, flow: &Flow, end: End, ledger: &mut Ledger<'_>) {
        let owner = self.owner(key, flow);
        let silence = end == End::IdleTimeout && owner.is_some_and(|owner| !owner.in_force);
        let end = if silence { End::ForcedEnd } else { end };
        self.tell(Told::Ended(end), key, flow, owner, ledger);
        ledger.room.left(self.id());
        let seid = self.inspected_for(key, flow);
        let uplink = owner.map_or(key.place().1, |owner| owner.uplink);
        self.discount(key, flow);
        self.leave_conversation(key, flow, seid, uplink);
    }

    /// Ends flows of sessions that are gone, some at a time, as long as there are any.
    pub(crate) fn purge_flows(&mut self, ledger: &mut Ledger<'_>) {
        if self.orphans == 0 {
            return;
        }
        let (mut lines, mut flows) = PURGED;
        let mut ended = std::mem::take(&mut self.ended);
        while self.orphans > 0 && lines > 0 && flows > 0 {
            // Downwards: the flow that fills a gap comes from the end, where all have been seen.
            let below = self.purging.min(self.flows.len() as u32);
            let from = below.saturating_sub(lines.min(flows));
            let formers = &self.formers;
            self.flows.visit(from..below, |key, flow| {
                if formers.get(&flow.version).is_some_and(|former| former.gone) {
                    ended.push((*key, *flow));
                }
            });
            flows -= ended.len() as u32;
            for (key, flow) in ended.drain(..) {
                self.flows.remove(&key);
                ledger.counters.deleted += 1;
                self.flow_ended(&key, &flow, End::ForcedEnd, ledger);
            }
            lines -= (below - from).clamp(1, lines);
            self.purging = if from == 0 { u32::MAX } else { from };
        }
        self.ended = ended;
    }

    /// Ends the flow that was idle for longest, as far as a glance shows. False: there is none.
    pub(crate) fn evict_flow(&mut self, ledger: &mut Ledger<'_>) -> bool {
        let Some((key, flow)) = self.flows.evict() else { return false };
        ledger.counters.evicted += 1;
        self.flow_ended(&key, &flow, End::LackOfResources, ledger);
        true
    }

    /// A flow is no more, or not this session's any more.
    pub(crate) fn discount(&mut self, key: &Key, flow: &Flow) {
        let mut is_former = true;
        if let Some(session) = self.session_of_mut(key) {
            // The place may be another session's by now, whose flows are all younger.
            if flow.version >= session.versions.0 {
                session.flows = session.flows.saturating_sub(1);
            }
            if flow.version == session.versions.1 {
                session.current = session.current.saturating_sub(1);
                is_former = false;
            }
        }
        if is_former && let Some(former) = self.formers.get_mut(&flow.version) {
            former.flows = former.flows.saturating_sub(1);
            self.orphans = self.orphans.saturating_sub(former.gone.into());
            if former.flows == 0 {
                self.formers.remove(&flow.version);
            }
        }
    }

    /// A packet of a flow that is known was classified: what was found, with this packet counted, is in `found`. If the
    /// flow's rule is another one now, its counts are told and begin anew. False: the flow isn't known.
    pub(crate) fn revise(
        &mut self,
        lookup: &Lookup,
        found: &Flow,
        inquiry: Option<Inquiry>,
        ledger: &mut Ledger<'_>,
    ) -> bool {
        let key = &lookup.key;
        let Some(known) = self.flows.confirm(lookup.probe, key) else { return false };
        let before = *known;
        let goes_on = if (before.version, self.rule_of(&before)) == (found.version, found.rule) {
            true
        } else {
            ledger.counters.revised += 1;
            let (owner, next) = (self.owner(key, &before), self.owner(key, found));
            let same = |a: &Owner, b: &Owner| (a.seid, a.pdr) == (b.seid, b.pdr);
            let goes_on = owner.zip(next).is_some_and(|(owner, next)| same(&owner, &next));
            if !goes_on {
                self.tell(Told::Ended(End::ForcedEnd), key, &before, owner, ledger);
            }
            goes_on
        };
        let mut next = if goes_on {
            let mut next = before;
            (next.rule, next.version) = (found.rule, found.version);
            next.count(found.bytes() as u16, ledger.now);
            next
        } else {
            *found
        };
        let stays = inquiry.filter(|_| goes_on && before.version == found.version);
        if let (Some(inquiry), Some(conversations)) = (stays, &mut self.conversations)
            && let Some(rule) = conversations.stay(before.rule, inquiry, found.rule)
        {
            next.rule = rule;
            return self.replace(key, next, found.bytes(), ledger);
        }
        next.set_inspected(false);
        // It joins before it leaves, lest its conversation be forgotten between.
        let seid = self.inspected_for(key, &before);
        let uplink = (before.is_inspected() || inquiry.is_some()) && self.is_uplink(key, &before);
        if let (Some(inquiry), Some(conversations)) = (inquiry, &mut self.conversations) {
            let carried = if goes_on { before.carried() } else { Traffic::default() };
            conversations.join(&mut next, inquiry, uplink, carried);
        }
        if before.version != found.version {
            self.discount(key, &before);
            if let Some(session) = self.session_of_mut(key) {
                session.flows += 1;
                session.current += 1;
            }
        }
        self.leave_conversation(key, &before, seid, uplink);
        self.replace(key, next, found.bytes(), ledger)
    }

    /// A flow's line is another one, after a packet of so many bytes.
    fn replace(&mut self, key: &Key, next: Flow, bytes: u64, ledger: &mut Ledger<'_>) -> bool {
        let Some(known) = self.flows.get_mut(key) else { return false };
        *known = next;
        if next.is_due(&ledger.export.marks) {
            self.flow_due(key, (1, bytes), ledger);
        }
        true
    }

    /// A flow has reached a mark, with the last of these packets and bytes, or before it was set.
    #[cold]
    #[inline(never)]
    pub(crate) fn flow_due(&mut self, key: &Key, (packets, bytes): (u32, u64), ledger: &mut Ledger<'_>) {
        let marks = ledger.export.marks;
        let Some(flow) = self.flows.get_mut(key) else { return };
        let Reached { bytes: bytes_due, packets: packets_due, full } = flow.reach(&marks);
        let then = *flow;
        if full {
            flow.begin_anew(ledger.now);
        }
        let owner = self.owner(key, &then);
        if bytes_due {
            ledger.counters.marked += 1;
            ledger.counters.marked_late += u64::from(then.bytes() - bytes.min(then.bytes()) >= marks.bytes);
            self.tell(Told::Bytes(marks.bytes), key, &then, owner, ledger);
        }
        if packets_due {
            ledger.counters.marked += 1;
            let late = then.packets() - packets.min(then.packets()) >= marks.packets;
            ledger.counters.marked_late += u64::from(late);
            self.tell(Told::Packets(marks.packets), key, &then, owner, ledger);
        }
        if full {
            ledger.counters.full += 1;
            self.tell(Told::Ended(End::LackOfResources), key, &then, owner, ledger);
            let uplink = owner.map_or(key.place().1, |owner| owner.uplink);
            let seid = self.inspected_for(key, &then);
            if let Some(conversations) = self.conversations.as_mut().filter(|_| then.is_inspected()) {
                conversations.begin_anew(&key.ends(), seid, &then, uplink);
            }
        }
    }

    /// Enters packets of a flow that a device has forwarded.
    pub(crate) fn count_offloaded(
        &mut self,
        key: &Key,
        mut packets: u64,
        mut bytes: u64,
        ledger: &mut Ledger<'_>,
    ) {
        while packets > 0 {
            let Some(flow) = self.flows.get_mut(key) else { return };
            let some = packets.min(Flow::MORE.into());
            let part = (u128::from(bytes) * u128::from(some) / u128::from(packets)) as u64;
            (packets, bytes) = (packets - some, bytes - part);
            flow.count_more(some as u32, part, ledger.now);
            if flow.is_due(&ledger.export.marks) {
                self.flow_due(key, (some as u32, part), ledger);
            }
        }
    }

    /// Tells of flows that go on. Called again and again, it comes to each about once per active timeout: `before` is when
    /// it was called last.
    pub(crate) fn tell_active(&mut self, before: Nanos, ledger: &mut Ledger<'_>) {
        let Some(active) = ledger.export.policy.map(|policy| policy.active).filter(|active| *active > 0)
        else {
            return;
        };
        let (now, len) = (ledger.now, self.flows.len() as u32);
        if len == 0 {
            return;
        }
        // The hand goes round once per timeout; where it was then and where it is now is told by the clock alone.
        let place = |at: Nanos| (((at.0 % active) >> 20) * u64::from(len) / (active >> 20).max(1)) as u32;
        let (from, to) = (place(before), place(now));
        let (first, second) = if now.since(before) >= active {
            (0..len, 0..0)
        } else if from <= to {
            (from..to, 0..0)
        } else {
            (from..len, 0..to)
        };
        let mut visited = std::mem::take(&mut ledger.export.visited);
        for range in [first, second] {
            let range = range.start..range.end.min(range.start.saturating_add(VISITED));
            self.flows.visit(range, |key, flow| {
                let (first, last) = flow.times();
                if now.since(first) >= active && now.since(last) < active {
                    visited.push((*key, *flow));
                }
            });
        }
        for (key, flow) in visited.drain(..) {
            ledger.counters.interim += 1;
            self.tell(Told::Active, &key, &flow, self.owner(&key, &flow), ledger);
        }
        ledger.export.visited = visited;
    }

    /// Shows the flows below a number, at most so many of them; returns the number below which others are left.
    pub(super) fn visit_below(&self, below: u32, most: u32, mut visit: impl FnMut(&Key, &Flow)) -> u32 {
        // Downwards: the flow that fills a gap comes from the end, where all have been seen.
        let below = below.min(self.flows.len() as u32);
        let from = below.saturating_sub(most);
        self.flows.visit(from..below, |key, flow| visit(key, flow));
        from
    }
}

impl<F: Frame> Datapath<F> {
    /// From now on flows are told of at these counts, if there is a policy. Those beyond them are told of soon; those that were
    /// told to have reached a former watermark are not told of again.
    pub(crate) fn set_marks(&mut self, marks: Marks) {
        if self.export.policy.is_some() {
            let Marks { bytes, packets } = marks;
            self.export.marks =
                Marks { bytes: bytes.min(Marks::NONE.bytes), packets: packets.min(Marks::NONE.packets) };
            self.export.looking_back = Some((0, u32::MAX));
        }
    }

    /// Looks for flows beyond watermarks that were set.
    pub(crate) fn look_back(&mut self, now: Nanos) {
        let mut left = LOOKED_BACK;
        let mut due = std::mem::take(&mut self.export.visited);
        while let Some((at, below)) = self.export.looking_back
            && left > 0
        {
            let marks = self.export.marks;
            let next = if let Some(Some(shard)) = self.shards.get_mut(at) {
                let below = below.min(shard.flows.len() as u32);
                let next = shard.visit_below(below, left, |key, flow| {
                    if flow.is_due(&marks) {
                        due.push((*key, *flow));
                    }
                });
                left -= below - next;
                let (export, counters) = (&mut self.export, &mut self.counters.flows);
                let mut ledger = Ledger { now, export, counters, room: &mut self.room };
                for (key, _) in due.drain(..) {
                    shard.flow_due(&key, (0, 0), &mut ledger);
                }
                next
            } else {
                0
            };
            // An empty shard costs a look, too.
            left = left.saturating_sub(1);
            self.export.looking_back = match next {
                0 if at + 1 < SHARDS => Some((at + 1, u32::MAX)),
                0 => None,
                below => Some((at, below)),
            };
        }
        self.export.visited = due;
    }

    /// The worker stops: tells of the flows that still live, as many as make up some batches. False: that was all. Nothing may be
    /// processed between calls, nor after them.
    pub fn close_flows(&mut self, now: Nanos, events: &mut Vec<Event>) -> bool {
        if self.export.policy.is_none() {
            return false;
        }
        let mut left = (WAITING - self.export.waiting.len().min(WAITING)) as u32;
        // The ring to control sets the pace.
        self.export.limiter = RateLimiter::new(u32::MAX, u32::MAX);
        while left > 0 && self.export.closing.0 < SHARDS {
            let (at, below) = self.export.closing;
            let mut next = 0;
            if let Some(Some(shard)) = self.shards.get_mut(at) {
                let mut visited = std::mem::take(&mut self.export.visited);
                let below = below.min(shard.flows.len() as u32);
                next = shard.visit_below(below, left, |key, flow| visited.push((*key, *flow)));
                left -= below - next;
                let (export, counters) = (&mut self.export, &mut self.counters.flows);
                let mut ledger = Ledger { now, export, counters, room: &mut self.room };
                for (key, flow) in visited.drain(..) {
                    ledger.counters.closed += 1;
                    let owner = shard.owner(&key, &flow);
                    shard.tell(Told::Ended(End::ForcedEnd), &key, &flow, owner, &mut ledger);
                }
                self.export.visited = visited;
            }
            self.export.closing = if next == 0 { (at + 1, u32::MAX) } else { (at, next) };
        }
        self.export.flush(|records| events.push(Event::Flows(records)));
        self.export.closing.0 < SHARDS
    }

    /// The worker stops, and there is no time to tell of the flows that [`Self::close_flows`] left.
    pub fn abandon_flows(&mut self) {
        if self.export.policy.is_none() {
            return;
        }
        let (from, below) = std::mem::replace(&mut self.export.closing, (SHARDS, 0));
        for at in from..SHARDS {
            let flows = self.shards.get(at).and_then(Option::as_deref).map_or(0, |shard| shard.flows.len());
            let flows = if at == from { flows.min(below as usize) } else { flows } as u64;
            self.counters.flows.closed += flows;
            self.counters.flows.unexported += flows;
        }
    }
}
