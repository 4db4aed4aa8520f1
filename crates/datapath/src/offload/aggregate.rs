//! What a device counts of many rules together, beside each rule's own packets.
//!
//! **Problem.** A URR may measure packets before any rate is enforced on them (TS 29.244 §5.2.2.4, MBQE), while the rule's own counter
//! stands behind the meters and knows only what passed them.
//!
//! **Model.** All rules of one PDR in a device count into one more counter, in front of their meters ([`Action::CountFor`]): the volume of
//! the PDR's URRs that measure there. It is read whenever one of the rules' own counters is, and goes with the last of the rules.
//!
//! [`Action::CountFor`]: io::offload::Action::CountFor

use super::{Offload, Plan};
use crate::datapath::Datapath;
use crate::outbox::Outbox;
use io::Frame;
use io::offload::{CounterId, Counts, Failure, Feature, Refused};
use pfcp::Seid;
use tables::Nanos;

/// Whose packets: a PDR's, which arrive at a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Measured {
    pub port: u16,
    pub shard: u16,
    /// Slot of the session.
    pub session: u32,
    pub seid: Seid,
    pub pdr: u16,
}

/// A counter that rules share.
#[derive(Debug)]
pub(super) struct Aggregate {
    counter: CounterId,
    /// Rules that count into it.
    users: u32,
    /// As read last.
    counts: Counts,
    read: Nanos,
    /// Bytes a second.
    bytes: u64,
}

impl Offload {
    /// The counter in front of a plan's meters, if it needs one.
    pub(super) fn counter_for(&mut self, now: Nanos, plan: &Plan) -> Result<Option<CounterId>, Refused> {
        let Some(of) = plan.measured else { return Ok(None) };
        if let Some(known) = self.aggregates.get(&of) {
            return Ok(Some(known.counter));
        }
        let device = self.devices.get_mut(of.port as usize);
        let device = device.ok_or(Refused::Unsupported(Feature::SharedCount))?;
        let counter = device.offload.add_counter(now)?;
        let counts = Counts::default();
        self.aggregates.insert(of, Aggregate { counter, users: 0, counts, read: now, bytes: 0 });
        Ok(Some(counter))
    }

    /// One more rule counts into it (or, `leaves`, one less).
    pub(super) fn counted(&mut self, of: &Measured, leaves: bool) {
        if let Some(aggregate) = self.aggregates.get_mut(of) {
            aggregate.users = if leaves { aggregate.users.saturating_sub(1) } else { aggregate.users + 1 };
        }
    }

    /// Enters what has been counted since the last reading; without users the counter goes.
    pub(super) fn read_aggregate<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        of: &Measured,
        out: &mut Outbox<F>,
    ) -> Result<(), Failure> {
        let (Some(aggregate), Some(device)) =
            (self.aggregates.get_mut(of), self.devices.get_mut(of.port as usize))
        else {
            return Ok(());
        };
        let last = aggregate.users == 0;
        let counts = if last {
            device.offload.remove_counter(aggregate.counter)
        } else {
            device.offload.counted(aggregate.counter)
        }?;
        let packets = counts.packets.saturating_sub(aggregate.counts.packets);
        let bytes = counts.bytes.saturating_sub(aggregate.counts.bytes);
        let since = std::mem::replace(&mut aggregate.read, now);
        if now > since {
            let rate = u128::from(bytes) * u128::from(Nanos::SECOND) / u128::from(now.since(since));
            aggregate.bytes = rate as u64;
        }
        aggregate.counts = counts;
        if last {
            self.aggregates.remove(of);
        }
        datapath.enter_arrived((since, now), of, (packets, bytes), out);
        Ok(())
    }

    /// A rule's part of the bytes a second that are counted before its meters.
    pub(super) fn arriving(&self, plan: &Plan) -> u64 {
        let aggregate = plan.measured.and_then(|of| self.aggregates.get(&of));
        aggregate.map_or(0, |aggregate| aggregate.bytes.div_ceil(aggregate.users.max(1).into()))
    }

    /// A device has failed: what its counters still tell is entered, and they are given up.
    pub(super) fn lose_aggregates<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        port: u16,
        out: &mut Outbox<F>,
    ) {
        let all: Vec<_> = self.aggregates.keys().filter(|of| of.port == port).copied().collect();
        for of in all {
            // Why it has failed is known already.
            let _ = self.read_aggregate(now, datapath, &of, out);
            self.aggregates.remove(&of);
        }
    }
}
