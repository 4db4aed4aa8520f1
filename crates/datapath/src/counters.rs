//! What a worker counts, and the sum that must always come out right.

use crate::Reason;
use crate::mirror::MirrorCounters;
use crate::nat::PoolCounters;
use tables::{Colour, SupplyCounters};

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes; of whole frames at interfaces, of the UE's own packets per direction.
    pub bytes: u64,
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

    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// One interface's frames, by its index in the [`crate::network::net::NetView`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Frames that arrived.
    pub received: Traffic,
    /// Frames put into the outbox.
    pub sent: Traffic,
}

/// What became of flow entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Packets that a known flow served.
    pub served: u64,
    /// Entered in a flow table after the first packet was classified.
    pub learned: u64,
    /// Classified again, because the session's filters had changed.
    pub revised: u64,
    /// Forgotten after a silence.
    pub expired: u64,
    /// Forgotten to make room for another.
    pub evicted: u64,
    /// Ended with their session.
    pub deleted: u64,
    /// Live when their worker stopped.
    pub closed: u64,
    /// Not entered: the session's limit was reached, or no place was found.
    pub refused: u64,
    /// Records handed to control.
    pub exported: u64,
    /// Records that were due while the rate was exceeded, or for which there was no room.
    pub unexported: u64,
    /// Records of flows that are not in the sample.
    pub unsampled: u64,
    /// Records due of flows that go on.
    pub interim: u64,
    /// Watermarks that flows have reached.
    pub marked: u64,
    /// Of these, watermarks that were set when the flow was beyond them.
    pub marked_late: u64,
    /// Flows whose counters began anew because they were full.
    pub full: u64,
    /// Where growing tables' memory came from.
    pub memory: SupplyCounters,
}

impl FlowCounters {
    /// Flows known now; of one worker an estimate, since shards that move take their flows with them.
    pub const fn live(&self) -> u64 {
        self.learned.saturating_sub(self.expired + self.evicted + self.deleted + self.closed)
    }

    /// Label, meaning and value of each, for whoever shows them.
    pub const fn each(&self) -> [(&'static str, &'static str, u64); 18] {
        [
            ("live", "Flows known now.", self.live()),
            ("served", "Packets that a known flow served.", self.served),
            ("learned", "Flows entered after their first packet was classified.", self.learned),
            ("revised", "Flows classified again, because their session's filters had changed.", self.revised),
            ("expired", "Flows forgotten after a silence.", self.expired),
            ("evicted", "Flows forgotten to make room for others: the limit is too low.", self.evicted),
            ("deleted", "Flows that ended because their session did.", self.deleted),
            ("closed", "Flows that were live when their worker stopped.", self.closed),
            (
                "refused",
                "Packets whose flow was not entered: their session has too many flows.",
                self.refused,
            ),
            ("exported", "Records of flows given to the flow log.", self.exported),
            (
                "unexported",
                "Records of flows not given to the flow log: its rate was exceeded, or it doesn't keep up.",
                self.unexported,
            ),
            ("unsampled", "Records of flows that are not in the flow log's sample.", self.unsampled),
            ("interim", "Records due of flows that go on after the active timeout.", self.interim),
            ("marked", "Watermarks that flows have reached.", self.marked),
            (
                "marked-late",
                "Of these, watermarks that were set when the flow was beyond them.",
                self.marked_late,
            ),
            ("full", "Flows told as ended and begun anew because their counters were full.", self.full),
            (
                "memory-ready",
                "Pieces of memory that were ready when a flow table grew.",
                self.memory.supplied,
            ),
            (
                "memory-missed",
                "Pieces of memory that were not: a packet waited until the system had found it.",
                self.memory.missed,
            ),
        ]
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            served: self.served + other.served,
            learned: self.learned + other.learned,
            revised: self.revised + other.revised,
            expired: self.expired + other.expired,
            evicted: self.evicted + other.evicted,
            deleted: self.deleted + other.deleted,
            closed: self.closed + other.closed,
            refused: self.refused + other.refused,
            exported: self.exported + other.exported,
            unexported: self.unexported + other.unexported,
            unsampled: self.unsampled + other.unsampled,
            interim: self.interim + other.interim,
            marked: self.marked + other.marked,
            marked_late: self.marked_late + other.marked_late,
            full: self.full + other.full,
            memory: SupplyCounters {
                supplied: self.memory.supplied + other.memory.supplied,
                missed: self.memory.missed + other.memory.missed,
            },
        }
    }
}

/// One worker's counters. Plain numbers: whoever wants the total adds the workers' copies up.
///
/// Every frame has one fate, so at any moment between two calls
/// `received + handed_in + originated = sent + handed_out + dropped + consumed + buffered + held`; see [`Counters::balance`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Frames that came from a port.
    pub received: u64,
    /// Frames that came from another worker.
    pub handed_in: u64,
    /// Frames of our own making: answers, errors, fragments, end markers, reassembled packets, mirrored copies.
    pub originated: u64,
    /// Frames put into the outbox to be sent, own ones included.
    pub sent: u64,
    /// Frames left to another worker.
    pub handed_out: u64,
    /// Frames whose purpose was fulfilled here: requests we answered, ARP, fragments put together, packets cut into
    /// fragments.
    pub consumed: u64,
    /// Packets waiting in sessions' buffers now.
    pub buffered: u64,
    /// Frames waiting now for a neighbour's address or for further fragments.
    pub held: u64,
    /// Dropped frames, by [`Reason::index`].
    pub drops: [u64; Reason::COUNT],
    /// The UEs' packets forwarded uplink.
    pub uplink: Traffic,
    /// The UEs' packets forwarded downlink.
    pub downlink: Traffic,
    /// Of these, packets beyond what their QER guarantees: within its maximum, and the first to be dropped further on.
    pub yellow: u64,
    /// Flow entries.
    pub flows: FlowCounters,
    /// What became of conversations under question.
    pub inspection: InspectionCounters,
    /// By mirror.
    pub mirrors: Vec<MirrorCounters>,
    /// Translation on N6, by pool.
    pub nat: Vec<PoolCounters>,
    /// By interface of the current view; interfaces beyond the last view's keep what they had.
    pub interfaces: Vec<InterfaceCounters>,
}

/// What became of conversations that an inspector was shown (see [`crate::inspect`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InspectionCounters {
    /// Packets that it was shown.
    pub shown: u64,
    /// Conversations of which it knew the application.
    pub recognised: u64,
    /// Conversations of which it said that they are no known application's.
    pub unknown: u64,
    /// Conversations of which it did not know it when all had been shown that may be.
    pub exhausted: u64,
    /// Conversations that made room for others before it knew.
    pub given_up: u64,
    /// Packets that it was not shown: too many conversations are under question.
    pub refused: u64,
}

impl InspectionCounters {
    /// Label, meaning and value of each, for whoever shows them.
    pub const fn each(&self) -> [(&'static str, &'static str, u64); 6] {
        [
            ("shown", "Packets that the inspector was shown.", self.shown),
            ("recognised", "Conversations whose application the inspector recognised.", self.recognised),
            ("unknown", "Conversations that the inspector said are no known application's.", self.unknown),
            (
                "exhausted",
                "Conversations not recognised within the budget of packets and bytes.",
                self.exhausted,
            ),
            (
                "given-up",
                "Conversations that made room for others before they were recognised.",
                self.given_up,
            ),
            (
                "refused",
                "Packets not shown, because too many conversations are under question.",
                self.refused,
            ),
        ]
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            shown: self.shown + other.shown,
            recognised: self.recognised + other.recognised,
            unknown: self.unknown + other.unknown,
            exhausted: self.exhausted + other.exhausted,
            given_up: self.given_up + other.given_up,
            refused: self.refused + other.refused,
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            received: 0,
            handed_in: 0,
            originated: 0,
            sent: 0,
            handed_out: 0,
            consumed: 0,
            buffered: 0,
            held: 0,
            drops: [0; Reason::COUNT],
            uplink: Traffic::default(),
            downlink: Traffic::default(),
            yellow: 0,
            flows: FlowCounters::default(),
            inspection: InspectionCounters::default(),
            mirrors: Vec::new(),
            nat: Vec::new(),
            interfaces: Vec::new(),
        }
    }
}

impl Counters {
    /// Drops for one reason.
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.drops.get(reason.index()).copied().unwrap_or(0)
    }

    /// All drops.
    pub fn dropped_total(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// The reasons that occurred, in order.
    pub fn drops(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.iter().zip(&self.drops).filter(|(_, n)| **n > 0).map(|(reason, n)| (*reason, *n))
    }

    /// Frames that came in (or were made) less frames accounted for: zero, or a frame was lost or counted twice.
    pub fn balance(&self) -> i128 {
        let came = self.received as i128 + self.handed_in as i128 + self.originated as i128;
        let went = self.sent as i128
            + self.handed_out as i128
            + self.dropped_total() as i128
            + self.consumed as i128
            + self.buffered as i128
            + self.held as i128;
        came - went
    }

    /// Counts a drop.
    #[inline]
    pub(crate) fn drop(&mut self, reason: Reason) {
        if let Some(n) = self.drops.get_mut(reason.index()) {
            *n += 1;
        }
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

    /// Records of flows that found no room on their way to control.
    pub const fn lost_records(&mut self, records: u64) {
        self.flows.exported -= records;
        self.flows.unexported += records;
    }

    fn add_drops(&mut self, reason: Reason, frames: u64) {
        if let Some(n) = self.drops.get_mut(reason.index()) {
            *n += frames;
        }
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

    /// Adds another worker's counters to these.
    pub fn merge(&mut self, other: &Self) {
        self.received += other.received;
        self.handed_in += other.handed_in;
        self.originated += other.originated;
        self.sent += other.sent;
        self.handed_out += other.handed_out;
        self.consumed += other.consumed;
        self.buffered += other.buffered;
        self.held += other.held;
        for (mine, theirs) in self.drops.iter_mut().zip(&other.drops) {
            *mine += theirs;
        }
        self.uplink = self.uplink.plus(other.uplink);
        self.downlink = self.downlink.plus(other.downlink);
        self.yellow += other.yellow;
        self.flows = self.flows.plus(other.flows);
        self.inspection = self.inspection.plus(other.inspection);
        if self.nat.len() < other.nat.len() {
            self.nat.resize(other.nat.len(), PoolCounters::default());
        }
        for (mine, theirs) in self.nat.iter_mut().zip(&other.nat) {
            *mine = mine.plus(*theirs);
        }
        if self.interfaces.len() < other.interfaces.len() {
            self.interfaces.resize(other.interfaces.len(), InterfaceCounters::default());
        }
        for (mine, theirs) in self.interfaces.iter_mut().zip(&other.interfaces) {
            mine.received = mine.received.plus(theirs.received);
            mine.sent = mine.sent.plus(theirs.sent);
        }
        if self.mirrors.len() < other.mirrors.len() {
            self.mirrors.resize(other.mirrors.len(), MirrorCounters::default());
        }
        for (mine, theirs) in self.mirrors.iter_mut().zip(&other.mirrors) {
            *mine = mine.plus(*theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
