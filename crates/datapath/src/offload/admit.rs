//! A candidate's way into a device: planned, asked for with what its rule draws on, and in a lighter flow's place where there is none.

use super::plan::{Ineligible, Plan};
use super::policy::Mode;
use super::share::Meters;
use super::sight::Sighting;
use super::watch::Candidate;
use super::{BREATH, Device, Entry, Offload, TakenBack};
use crate::datapath::Datapath;
use crate::outbox::Outbox;
use io::Frame;
use io::offload::{Action, Counts, FlowRule, Handle, Refused};
use tables::Nanos;

/// What became of a rule that a device was asked for.
enum Proposal {
    Accepted(Handle),
    /// The device has no room for another rule.
    NoRoom,
    Refused(Refused),
    /// Not now: too little is saved yet of what it would draw on.
    Later,
    /// A limit is too low for being shared.
    Stays,
}

impl Offload {
    pub(super) fn insert<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        candidate: Candidate,
        out: &mut Outbox<F>,
    ) {
        let Candidate { sighting, rate, bytes } = candidate;
        let name = sighting.name();
        let Some(device) = self.devices.get(sighting.port as usize) else { return };
        if device.failed || now < device.resume || self.by_name.contains_key(&name) {
            return;
        }
        let plan = match self.eligible(datapath, &sighting, bytes) {
            Ok(plan) => plan,
            Err(reason) => {
                self.counters.ineligible.add(reason, 1);
                self.rest(now, name);
                return;
            }
        };
        let mut proposal = self.propose(now, datapath, &sighting, &plan, bytes);
        if matches!(proposal, Proposal::NoRoom) && self.make_room(now, datapath, &sighting, rate, out) {
            // Anew: what it would have drawn on, and its place, may have gone with who left.
            proposal = self.propose(now, datapath, &sighting, &plan, bytes);
        }
        let answer = match proposal {
            Proposal::Accepted(handle) => Some(Ok(handle)),
            Proposal::NoRoom => Some(Err(Refused::Full)),
            Proposal::Refused(refused) => Some(Err(refused)),
            // It comes again in the next window, if it's still worth it.
            Proposal::Later => None,
            Proposal::Stays => {
                self.counters.ineligible.add(Ineligible::Metered, 1);
                self.rest(now, name);
                None
            }
        };
        if !matches!(answer, Some(Ok(_)))
            && let Some(of) = plan.measured
            && let Err(failure) = self.read_aggregate(now, datapath, &of, out)
        {
            // A counter that was made for nothing goes again.
            self.fail(now, datapath, of.port, &failure, out);
        }
        match answer {
            Some(Ok(handle)) => {
                let counts = Counts::default();
                let (read, asked, active, told) = (now, now, now, counts);
                let entry =
                    Entry { sighting, plan, handle, counts, read, told, asked, torn: 0, active, rate, bytes };
                self.enter(entry);
                self.watch.forget(&name);
                self.counters.inserted += 1;
            }
            Some(Err(refused)) => {
                self.counters.refused.add(refused.why(), 1);
                let busy = refused == Refused::Busy;
                if let Some(device) = self.devices.get_mut(sighting.port as usize)
                    && busy
                {
                    device.pause = (2 * device.pause).clamp(BREATH, Nanos::SECOND);
                    device.resume = now.plus(device.pause);
                } else if refused != Refused::Full {
                    self.rest(now, name);
                }
            }
            None => {}
        }
    }

    /// Asks the device for a flow's rule, and before for what the rule draws on.
    fn propose<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        sighting: &Sighting,
        plan: &Plan,
        bytes: u64,
    ) -> Proposal {
        let meters = match self.meters_of(now, datapath, sighting.port, plan, bytes) {
            Meters::Ready(meters) => meters,
            Meters::Later => return Proposal::Later,
            Meters::Stays => return Proposal::Stays,
            Meters::Refused(refused) => return Proposal::Refused(refused),
        };
        let counter = match self.counter_for(now, plan) {
            Ok(counter) => counter,
            Err(refused) => return Proposal::Refused(refused),
        };
        let mut rule = plan.rule_with(counter, &meters);
        self.mark(sighting, &mut rule);
        match self.offer(now, sighting, &rule) {
            Some(Ok(handle)) => Proposal::Accepted(handle),
            Some(Err(Refused::Full)) => Proposal::NoRoom,
            Some(Err(refused)) => Proposal::Refused(refused),
            None => Proposal::Later,
        }
    }

    /// What only steers, in a device that doesn't count, marks its packets with the place that its entry will have.
    fn mark(&self, sighting: &Sighting, rule: &mut FlowRule) {
        let marks = |device: &Device| device.marks && !device.counts;
        if matches!(self.policy.mode, Mode::Partial { .. })
            && self.devices.get(sighting.port as usize).is_some_and(marks)
        {
            let place = self.free.last().map_or(self.entries.len(), |index| *index as usize);
            rule.actions.insert(0, Action::Mark(place as u32 + 1));
        }
    }

    /// Asks the device.
    fn offer(&mut self, now: Nanos, sighting: &Sighting, rule: &FlowRule) -> Option<Result<Handle, Refused>> {
        let device = self.devices.get_mut(sighting.port as usize)?;
        let answer = device.offload.insert(now, rule);
        match answer {
            Ok(_) => device.pause = 0,
            Err(Refused::Full) => device.full = true,
            Err(_) => {}
        }
        Some(answer)
    }

    fn eligible<F: Frame>(
        &self,
        datapath: &Datapath<F>,
        sighting: &Sighting,
        bytes: u64,
    ) -> Result<Plan, Ineligible> {
        let plan = self.plan(datapath, sighting)?;
        if matches!(self.policy.mode, Mode::Full)
            && datapath.credit_of(sighting.shard, plan.session, plan.pdr)
                < self.margin(sighting.shard, plan.session, bytes)
        {
            return Err(Ineligible::Credit);
        }
        Ok(plan)
    }

    /// Takes the lightest flow of the device back, if the new one is clearly heavier.
    fn make_room<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        sighting: &Sighting,
        rate: u64,
        out: &mut Outbox<F>,
    ) -> bool {
        while let Some((lightest, index)) = self.lightest.pop() {
            let there = self.entries.get(index as usize).and_then(Option::as_ref);
            if there.is_none_or(|entry| entry.sighting.port != sighting.port || entry.rate != lightest) {
                continue;
            }
            if lightest.saturating_mul(self.policy.heavier) > rate {
                return false;
            }
            return self.take_back(now, datapath, index, out, TakenBack::Lighter);
        }
        false
    }
}
