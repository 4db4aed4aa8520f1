//! What passes a port now.

use crate::reading::{Seen, Stages};
use crate::report::Report;
use crate::survey::Survey;
use dpi::{Event, Inspector};
use io::{Frame, RxQueue};
use serde::Serialize;

/// pcap's number for Ethernet: what ports receive.
const ETHERNET: u16 = 1;

/// A port's queue, and the stages that its packets go through.
#[derive(Debug)]
pub struct Live<Q: RxQueue> {
    queue: Q,
    frames: Vec<Q::Frame>,
    stages: Stages,
    survey: Survey,
    /// Octets and time when somebody looked last.
    looked: (u64, u64, u64),
}

/// What came since somebody looked last, and all so far.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Look {
    /// Seconds since the beginning.
    pub at: f64,
    /// Nothing will follow: this is all of it.
    pub is_last: bool,
    /// Packets per second since the last look.
    pub packets_per_second: f64,
    /// Bits per second since the last look, of frames.
    pub bits_per_second: f64,
    /// Flows that go on.
    pub flows_going_on: usize,
    /// All so far.
    #[serde(flatten)]
    pub report: Report,
}

impl<Q: RxQueue> Live<Q> {
    /// Of this queue.
    pub fn new(queue: Q, stages: Stages, survey: Survey) -> Self {
        Self { queue, frames: Vec::with_capacity(io::BURST), stages, survey, looked: (0, 0, 0) }
    }

    /// Takes what waits, at most a burst of it. How many packets that were.
    pub fn poll(&mut self, nanos: u64) -> usize {
        let count = self.queue.rx_burst(&mut self.frames, io::BURST);
        let Self { stages, survey, .. } = self;
        for frame in self.frames.drain(..) {
            let data = frame.bytes();
            stages.show(ETHERNET, data, data.len(), nanos, |_, _: Seen<'_>, inspector: &mut Inspector| {
                std::iter::from_fn(|| inspector.poll()).for_each(|event: Event| survey.take(event));
            });
        }
        if count == 0 {
            stages.wait(nanos);
            std::iter::from_fn(|| stages.inspector().poll()).for_each(|event| survey.take(event));
        }
        count
    }

    /// All so far, and how fast it comes; `nanos` is the time since the beginning.
    pub fn look(&mut self, nanos: u64) -> Look {
        let totals = self.stages.totals();
        let (frames, octets, before) =
            std::mem::replace(&mut self.looked, (totals.frames, totals.octets, nanos));
        let seconds = (nanos.saturating_sub(before) as f64 / 1e9).max(f64::MIN_POSITIVE);
        let inspector = self.stages.inspector();
        Look {
            at: nanos as f64 / 1e9,
            is_last: false,
            packets_per_second: (totals.frames - frames) as f64 / seconds,
            bits_per_second: (totals.octets - octets) as f64 * 8.0 / seconds,
            flows_going_on: inspector.flows().0,
            report: self.survey.so_far(totals, inspector),
        }
    }

    /// Ends all flows: all there is to say.
    pub fn finish(mut self, nanos: u64) -> Look {
        let survey = &mut self.survey;
        self.stages.finish(|event| survey.take(event));
        let totals = self.stages.totals();
        let seconds = (nanos as f64 / 1e9).max(f64::MIN_POSITIVE);
        Look {
            at: nanos as f64 / 1e9,
            is_last: true,
            packets_per_second: totals.frames as f64 / seconds,
            bits_per_second: totals.octets as f64 * 8.0 / seconds,
            flows_going_on: 0,
            report: self.survey.report(totals, self.stages.inspector()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::survey::Lists;
    use dpi::signatures::Bundle;
    use dpi::{Knowledge, Options};
    use io::mem::MemFrame;
    use packet::{MacAddr, PacketBuilder};
    use std::sync::Arc;

    /// Frames that wait.
    struct Waiting(Vec<Vec<u8>>);

    impl RxQueue for Waiting {
        type Frame = MemFrame;

        fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
            let count = self.0.len().min(max);
            into.extend(self.0.drain(..count).map(|it| MemFrame::copy_of(&it).unwrap()));
            count
        }
    }

    #[test]
    fn flows_that_go_on_are_among_what_is_shown() {
        let question = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
        let frame = PacketBuilder::new()
            .ethernet(MacAddr([2; 6]), MacAddr([4; 6]))
            .ipv4([10, 0, 0, 1].into(), [198, 51, 100, 7].into())
            .udp(40_000, 53)
            .build(question);
        let knowledge = Arc::new(Knowledge::new(Bundle::built_in()));
        let options = Options { measures: true, decodes: true, tells_names: true, ..Options::default() };
        let stages = Stages::new(options, Arc::clone(&knowledge), 1);
        let octets = 10 * frame.len() as u64;
        let mut live = Live::new(Waiting(vec![frame; 10]), stages, Survey::new(knowledge, Lists::default()));
        assert_eq!((live.poll(1_000_000_000), live.poll(1_500_000_000)), (10, 0));
        let look = live.look(2_000_000_000);
        assert_eq!((look.flows_going_on, look.report.total.flows, look.report.total.packets), (1, 1, 10));
        assert_eq!(look.report.names[0].name, "www.example.org");
        assert_eq!(look.report.protocols[0].protocol, "DNS", "though it has no verdict yet");
        assert!((look.packets_per_second - 5.0).abs() < 1e-9);
        assert!((look.bits_per_second - octets as f64 * 4.0).abs() < 1e-6);
        let look = live.look(3_000_000_000);
        assert_eq!((look.packets_per_second, look.report.total.packets), (0.0, 10));
        let last = live.finish(4_000_000_000);
        assert_eq!(
            (last.is_last, last.report.protocols[0].protocol, last.report.total.flows),
            (true, "DNS", 1)
        );
    }
}
