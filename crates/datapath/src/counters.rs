//! What a worker counts, and the sum that must always come out right.

use crate::Reason;
use crate::mirror::MirrorCounters;
use crate::nat::PoolCounters;
use counters::{By, Count};
use tables::{Colour, SupplyCounters};

counters::counters! {
    /// Packets and bytes: of whole frames at ports and interfaces, else of the UE's own packets.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Traffic {
        /// In packets.
        pub packets: u64 = "packets", Counter of Packets;
        /// In bytes.
        pub bytes: u64 = "bytes", Counter of Bytes;
    }
}

impl Traffic {
    /// One more packet.
    #[inline(always)]
    pub const fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// One packet.
    #[inline(always)]
    pub(crate) const fn of(bytes: usize) -> Self {
        Self { packets: 1, bytes: bytes as u64 }
    }
}

counters::counters! {
    /// One interface's frames, by its index in the [`crate::network::fib::Fib`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InterfaceCounters {
        /// Frames that arrived.
        pub received: Traffic = "received";
        /// Frames put into the outbox.
        pub sent: Traffic = "sent";
    }
}

counters::counters! {
    /// What became of flow entries.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FlowCounters {
        /// Packets that a known flow served.
        pub served: u64 = "served", Counter of Packets;
        /// Flows entered after their first packet was classified.
        pub learned: u64 = "learned", Counter;
        /// Flows classified again, because their session's filters had changed.
        pub revised: u64 = "revised", Counter;
        /// Flows forgotten after a silence.
        pub expired: u64 = "expired", Counter;
        /// Flows forgotten to make room for others: the limit is too low.
        pub evicted: u64 = "evicted", Counter;
        /// Flows that ended because their session did.
        pub deleted: u64 = "deleted", Counter;
        /// Flows that were live when their worker stopped.
        pub closed: u64 = "closed", Counter;
        /// Packets whose flow was not entered: their session has too many flows.
        pub refused: u64 = "refused", Counter of Packets;
        /// Records of flows given to the flow log.
        pub exported: u64 = "exported", Counter;
        /// Records of flows not given to the flow log: its rate was exceeded, or it doesn't keep up.
        pub unexported: u64 = "unexported", Counter;
        /// Records of flows that are not in the flow log's sample.
        pub unsampled: u64 = "unsampled", Counter;
        /// Records due of flows that go on after the active timeout.
        pub interim: u64 = "interim", Counter;
        /// Watermarks that flows have reached.
        pub marked: u64 = "marked", Counter;
        /// Of these, watermarks that were set when the flow was beyond them.
        pub marked_late: u64 = "marked-late", Counter;
        /// Flows told as ended and begun anew because their counters were full.
        pub full: u64 = "full", Counter;
        /// What flow tables grew into.
        pub memory: SupplyCounters = "memory";
    }
    also {
        /// Flows known now.
        live = "live", Gauge;
    }
}

impl FlowCounters {
    /// Flows known now; of one worker an estimate, since shards that move take their flows with them.
    pub const fn live(&self) -> u64 {
        self.learned.saturating_sub(self.expired + self.evicted + self.deleted + self.closed)
    }
}

counters::counters! {
    /// What became of conversations that an inspector was shown (see [`crate::inspect`]).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InspectionCounters {
        /// Packets that the inspector was shown.
        pub shown: u64 = "shown", Counter of Packets;
        /// Conversations whose application the inspector recognised.
        pub recognised: u64 = "recognised", Counter;
        /// Conversations that the inspector said are no known application's.
        pub unknown: u64 = "unknown", Counter;
        /// Conversations not recognised within the budget of packets and bytes.
        pub exhausted: u64 = "exhausted", Counter;
        /// Conversations that made room for others before they were recognised.
        pub given_up: u64 = "given-up", Counter;
        /// Packets not shown, because too many conversations are under question.
        pub refused: u64 = "refused", Counter of Packets;
        /// Beginnings of applications' traffic that were told.
        pub begun: u64 = "begun", Counter;
        /// Ends of applications' traffic that were told.
        pub ended: u64 = "ended", Counter;
        /// Beginnings that were not told, because there were too many.
        pub untold: u64 = "untold", Counter;
    }
}

counters::counters! {
    /// One worker's counters. Plain numbers: whoever wants the total adds the workers' copies up.
    ///
    /// Every frame has one fate, so at any moment between two calls
    /// `received + handed_in + originated = sent + handed_out + dropped + consumed + buffered + held + under_way`; see [`Counters::balance`].
    #[derive(Clone, Debug, PartialEq, Eq, Default)]
    pub struct Counters {
        /// Frames that came from a port.
        pub received: u64 = "received", Counter of Packets;
        /// Frames that came from another worker.
        pub handed_in: u64 = "handed-in", Counter of Packets;
        /// Frames of our own making: answers, errors, fragments, end markers, reassembled packets, mirrored copies.
        pub originated: u64 = "originated", Counter of Packets;
        /// Frames sent, own ones included.
        pub sent: u64 = "sent", Counter of Packets;
        /// Frames left to another worker.
        pub handed_out: u64 = "handed-out", Counter of Packets;
        /// Frames whose purpose was fulfilled here: requests we answered, ARP, fragments put together, packets cut into
        /// fragments.
        pub consumed: u64 = "consumed", Counter of Packets;
        /// Requests of UEs answered by a redirection to the SMF's URL.
        pub redirected: u64 = "redirected", Counter;
        /// Packets waiting in sessions' buffers now.
        pub buffered: u64 = "buffered", Gauge of Packets;
        /// Frames waiting now for a neighbour's address or for further fragments.
        pub held: u64 = "held", Gauge of Packets;
        /// Frames of bursts that wait now for a device to answer their look-ups.
        pub under_way: u64 = "under-way", Gauge of Packets;
        /// Dropped frames, by reason.
        pub drops: By<Reason, { Reason::COUNT }> = "dropped", Counter of Packets;
        /// The UEs' packets forwarded uplink.
        pub uplink: Traffic = "uplink";
        /// The UEs' packets forwarded downlink.
        pub downlink: Traffic = "downlink";
        /// Of these, packets beyond what their QER guarantees: within its maximum, and the first to be dropped further on.
        pub yellow: u64 = "yellow", Counter of Packets;
        /// Flow entries.
        pub flows: FlowCounters = "flows";
        /// Conversations under question.
        pub inspection: InspectionCounters = "inspection";
        /// By mirror.
        pub mirrors: Vec<MirrorCounters> = "mirrors";
        /// Translation on N6, by pool.
        pub nat: Vec<PoolCounters> = "nat";
        /// By interface of the current FIB; interfaces beyond the last one's keep what they had.
        pub interfaces: Vec<InterfaceCounters> = "interfaces";
    }
}

impl Counters {
    /// Drops for one reason.
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.drops.get(reason)
    }

    /// All drops.
    pub fn dropped_total(&self) -> u64 {
        self.drops.sum()
    }

    /// The reasons that occurred, in order.
    pub fn drops(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        self.drops.iter().filter(|(_, n)| *n > 0)
    }

    /// Frames that came in (or were made) less frames accounted for: zero, or a frame was lost or counted twice.
    pub fn balance(&self) -> i128 {
        let came = self.received as i128 + self.handed_in as i128 + self.originated as i128;
        let went = self.sent as i128
            + self.handed_out as i128
            + self.dropped_total() as i128
            + self.consumed as i128
            + self.buffered as i128
            + self.held as i128
            + self.under_way as i128;
        came - went
    }

    /// Counts a drop.
    #[inline]
    pub(crate) fn drop(&mut self, reason: Reason) {
        self.drops.add(reason, 1);
    }

    /// Frames of the outbox that found no room in a transmit queue.
    pub fn lost_at_port(&mut self, frames: u64) {
        self.sent -= frames;
        self.add_drops(Reason::TxQueueFull, frames);
    }

    /// Frames of the outbox that did not reach the owner of their shard.
    pub fn lost_in_hand_off(&mut self, reason: Reason, frames: u64) {
        self.handed_out -= frames;
        self.add_drops(reason, frames);
    }

    /// Frames of the outbox are another worker's to send: it counts them as sent.
    pub const fn left_to_sender(&mut self, frames: u64) {
        self.sent -= frames;
        self.handed_out += frames;
    }

    /// Frames that came from another worker only to be sent.
    pub const fn sent_for_another(&mut self, frames: u64) {
        self.handed_in += frames;
        self.sent += frames;
    }

    /// Frames that were received or handed in, and lost before anything could become of them.
    pub fn lose(&mut self, reason: Reason, frames: u64) {
        self.add_drops(reason, frames);
    }

    /// Frames that were under way, and are lost.
    pub fn lose_under_way(&mut self, reason: Reason, frames: u64) {
        self.under_way -= frames;
        self.add_drops(reason, frames);
    }

    /// Records of flows that found no room on their way to control.
    pub const fn lost_records(&mut self, records: u64) {
        self.flows.exported -= records;
        self.flows.unexported += records;
    }

    fn add_drops(&mut self, reason: Reason, frames: u64) {
        self.drops.add(reason, frames);
    }

    /// Counts a UE's packet that is forwarded.
    #[inline(always)]
    pub(crate) const fn forwarded(&mut self, uplink: bool, bytes: u16, colour: Colour) {
        self.yellow += matches!(colour, Colour::Yellow) as u64;
        let direction = if uplink { &mut self.uplink } else { &mut self.downlink };
        direction.add(bytes as usize);
    }

    /// Counts UEs' packets that a device has forwarded.
    pub(crate) const fn forwarded_by_device(&mut self, uplink: bool, packets: u64, bytes: u64) {
        let direction = if uplink { &mut self.uplink } else { &mut self.downlink };
        direction.packets += packets;
        direction.bytes += bytes;
    }

    /// Counts frames that arrived at an interface, if it is one.
    #[inline]
    pub(crate) fn arrived(&mut self, interface: u16, traffic: Traffic) {
        if let Some(interface) = self.interfaces.get_mut(interface as usize) {
            interface.received = interface.received.plus(traffic);
        }
    }

    /// Counts frames put into the outbox.
    #[inline(always)]
    pub(crate) fn sent(&mut self, interface: u16, traffic: Traffic) {
        self.sent += traffic.packets;
        if let Some(interface) = self.interfaces.get_mut(interface as usize) {
            interface.sent = interface.sent.plus(traffic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_named_added_and_passed_on() {
        counters::conformance::check::<Counters>();
        counters::conformance::check::<InterfaceCounters>();
        counters::conformance::check::<MirrorCounters>();
        counters::conformance::check::<PoolCounters>();
        counters::conformance::check::<crate::SliceTraffic>();
        counters::conformance::check::<crate::StageCosts>();
        counters::conformance::check::<crate::offload::OffloadCounters>();
        counters::conformance::check::<crate::carried::ApplicationCounters>();
    }

    #[test]
    fn a_frame_has_one_fate() {
        let mut counters =
            Counters { received: 10, originated: 2, sent: 7, consumed: 1, ..Counters::default() };
        assert_eq!(counters.balance(), 4);
        counters.drop(Reason::FarDrop);
        counters.buffered = 2;
        counters.held = 1;
        assert_eq!(counters.balance(), 0);
        assert_eq!(counters.drops().collect::<Vec<_>>(), [(Reason::FarDrop, 1)]);
        let mut sum = counters.clone();
        sum.merge(&counters);
        assert_eq!((sum.received, sum.dropped(Reason::FarDrop), sum.balance()), (20, 2, 0));
    }

    #[test]
    fn labels_are_unique() {
        let mut labels: Vec<_> = Reason::ALL.iter().map(|r| r.label()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), Reason::COUNT);
        for (i, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), i);
            assert!(reason.meaning().ends_with('.'));
        }
    }
}
