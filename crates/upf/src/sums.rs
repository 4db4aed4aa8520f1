//! What workers have counted, all of them together.

use super::mirrors::Slot;
use counters::Count;
use datapath::mirror::MirrorCounters;
use datapath::offload::OffloadCounters;
use datapath::{Counters, SliceTraffic};
use engine::egress::ClassCounters;
use engine::{LookupCounters, WorkerReport};

fn sum<'a, T: Count + 'a>(of_workers: impl Iterator<Item = &'a T>) -> T {
    let mut sum = T::default();
    of_workers.for_each(|one| sum.merge(one));
    sum
}

/// What happened to packets.
pub(super) fn counters(reports: &[WorkerReport]) -> Counters {
    sum(reports.iter().map(|report| &report.counters))
}

/// What waited for a port in one of the plan's classes.
pub(super) fn class(reports: &[WorkerReport], port: usize, class: usize) -> ClassCounters {
    sum(reports.iter().filter_map(|report| report.egress.get(port)?.get(class)))
}

/// A slice's traffic: uplink, downlink.
pub(super) fn slice(reports: &[WorkerReport], slice: usize) -> [SliceTraffic; 2] {
    [0, 1].map(|way| sum(reports.iter().filter_map(|report| report.slices.get(slice)?.get(way))))
}

/// A mirror's copies. What a worker counted under its number before it began is an earlier one's.
pub(super) fn mirror(reports: &[WorkerReport], slot: &Slot) -> MirrorCounters {
    let since = reports.iter().filter(|report| report.at > slot.since);
    sum(since.filter_map(|report| report.counters.mirrors.get(usize::from(slot.number))))
}

/// Flows in NICs; `None`: no worker may have any.
pub(super) fn offload(reports: &[WorkerReport]) -> Option<OffloadCounters> {
    let mut of_workers = reports.iter().filter_map(|report| report.offload.as_ref()).peekable();
    of_workers.peek()?;
    Some(sum(of_workers.map(|report| &report.counters)))
}

/// Bursts whose look-ups were handed to devices; `None`: no worker has one.
pub(super) fn lookups(reports: &[WorkerReport]) -> Option<LookupCounters> {
    let mut of_workers = reports.iter().filter_map(|report| report.lookups.as_ref()).peekable();
    of_workers.peek()?;
    Some(sum(of_workers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datapath::Traffic;
    use tables::Nanos;

    #[test]
    fn a_mirror_has_not_copied_what_another_did_before_it() {
        let report = |at, packets| {
            let copied = Traffic { packets, bytes: 0 };
            let mirrors =
                vec![MirrorCounters::default(), MirrorCounters { copied, ..MirrorCounters::default() }];
            WorkerReport {
                at: Nanos(at),
                counters: Counters { mirrors, ..Counters::default() },
                ..WorkerReport::default()
            }
        };
        let slot = Slot { number: 1, to: String::new(), since: Nanos(5) };
        let packets = |reports: &[WorkerReport]| mirror(reports, &slot).copied.packets;
        assert_eq!(packets(&[report(5, 9), report(6, 2), report(7, 1)]), 3);
        assert_eq!(packets(&[WorkerReport { at: Nanos(9), ..WorkerReport::default() }]), 0);
    }

    #[test]
    fn what_no_worker_has_is_not_told() {
        assert_eq!(offload(&[WorkerReport::default()]), None);
        let offload = Some(datapath::offload::OffloadReport::default());
        assert!(super::offload(&[WorkerReport { offload, ..WorkerReport::default() }]).is_some());
        assert_eq!(lookups(&[WorkerReport::default()]), None);
        let asks = || WorkerReport {
            lookups: Some(LookupCounters { asked: 2, ..LookupCounters::default() }),
            ..WorkerReport::default()
        };
        assert_eq!(lookups(&[asks(), WorkerReport::default(), asks()]).map(|sum| sum.asked), Some(4));
    }
}
