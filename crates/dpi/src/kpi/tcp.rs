//! TCP, seen from somewhere between its ends.
//!
//! The definitions are those of the Wireshark User's Guide, "TCP Analysis", where it has one, so that two people with different tools talk of
//! the same thing. Times are kept in microseconds modulo 2^32: what takes longer than 71 minutes is measured wrongly.

use crate::classify::Side;
use packet::TcpView;
use packet::tcp::TcpFlags;
use tables::Nanos;

/// Below this after the highest segment, one that comes late was overtaken and not sent again, in microseconds; if a handshake was seen, its round trip.
const OVERTAKEN: u32 = 3_000;

/// What is further ahead has no hole before it: the numbers make no sense.
const HOLE: i32 = 16 << 20;

/// What counts of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: TcpFlags,
    /// Window, unscaled.
    pub window: u16,
    /// Octets of payload, those included that were not captured.
    pub length: u32,
}

impl Segment {
    /// Of a segment with so many octets of payload.
    pub fn of(view: &TcpView<'_>, length: usize) -> Self {
        Self {
            sequence: view.sequence(),
            acknowledgement: view.acknowledgement(),
            flags: view.flags(),
            window: view.window(),
            length: length as u32,
        }
    }
}

/// What one side sends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Way {
    /// Octets of payload, each counted once: how far the numbers have come. What lies in holes is counted, for it will be sent again if it must.
    pub octets: u64,
    /// The number behind the highest octet.
    expected: u32,
    /// When that came.
    expected_at: u32,
    /// What it has acknowledged.
    acknowledged: u32,
    /// The segment that a round trip is measured with ends here.
    sample_end: u32,
    sample_at: u32,
    smoothed: u32,
    least: u32,
    /// Segments that were sent again: not behind the highest octet, and neither overtaken nor a keep-alive.
    pub retransmissions: u32,
    /// Acknowledgements that say the same as the one before: no payload, the same numbers, the same window, and that is not zero (RFC 5681 §2;
    /// with another window it is news of that). What answers a sign of life is none.
    pub duplicate_acks: u32,
    /// Segments that were overtaken: not behind the highest octet, but so soon after it that they can't have been sent again.
    pub out_of_order: u16,
    /// Segments with a hole before them when they came.
    pub after_holes: u16,
    /// Segments (but SYN, FIN, RST) by which this side says that it can take nothing.
    pub zero_windows: u16,
    window: u16,
    /// Segments with RST.
    pub resets: u8,
    /// Duplicate acknowledgements in a row.
    repeats: u8,
    flags: u8,
}

const _: () = assert!(size_of::<Tcp>() <= 128);

/// Something has come.
const SEEN: u8 = 1;
/// A round trip is being measured.
const SAMPLING: u8 = 2;
/// It has acknowledged something.
const ACKNOWLEDGED: u8 = 4;
/// Its SYN was seen.
const SYN: u8 = 8;
/// The round trip of its SYN is known.
const ANSWERED: u8 = 16;
/// It has been measured once.
const MEASURED: u8 = 32;
/// Its last segment asks whether the other side is there: the answer says nothing new, and is no duplicate.
const ASKING: u8 = 64;

/// How far `to` is ahead of `from`.
const fn ahead(to: u32, from: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

impl Way {
    const fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Time from a segment of this side to its acknowledgement, in microseconds: here to the other side and back. Smoothed by 1/8
    /// (RFC 6298 §2); one segment at a time is measured, and none that was sent again (Karn). The other side may delay acknowledgements.
    pub fn round_trip(&self) -> Option<u32> {
        self.is(MEASURED).then_some(self.smoothed)
    }

    /// The shortest one.
    pub fn least_round_trip(&self) -> Option<u32> {
        self.is(MEASURED).then_some(self.least)
    }

    fn measured(&mut self, micros: u32) {
        if self.is(MEASURED) {
            self.least = self.least.min(micros);
            // As RFC 6298 has it, without overflow.
            self.smoothed = (self.smoothed - self.smoothed / 8).saturating_add(micros / 8);
        } else {
            (self.smoothed, self.least) = (micros, micros);
            self.flags |= MEASURED;
        }
    }
}

/// A connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tcp {
    ways: [Way; 2],
    syn_at: u32,
    answer_at: u32,
    /// SYN to SYN-ACK.
    outward: u32,
    /// SYN-ACK to ACK.
    homeward: u32,
}

impl Tcp {
    /// What one side has sent.
    pub const fn way(&self, side: Side) -> &Way {
        &self.ways[side as usize]
    }

    /// From the last SYN to the SYN-ACK that answers it, in microseconds: from here to the server and back.
    pub fn outward(&self) -> Option<u32> {
        self.way(Side::Client).is(ANSWERED).then_some(self.outward)
    }

    /// From the SYN-ACK to the acknowledgement that answers it: from here to the client and back.
    pub fn homeward(&self) -> Option<u32> {
        self.way(Side::Server).is(ANSWERED).then_some(self.homeward)
    }

    /// The round trip of the whole path at its beginning: both together (Wireshark's iRTT).
    pub fn handshake(&self) -> Option<u32> {
        Some(self.outward()?.saturating_add(self.homeward()?))
    }

    /// A segment of `side`.
    pub fn push(&mut self, side: Side, segment: &Segment, now: Nanos) {
        let now = (now.0 / 1_000) as u32;
        let (is_syn, is_ack) = (segment.flags.contains(TcpFlags::SYN), segment.flags.contains(TcpFlags::ACK));
        let is_fin = segment.flags.contains(TcpFlags::FIN);
        let overtaken = self.handshake().unwrap_or(OVERTAKEN);
        let handshake = Handshake::of(is_syn, is_ack, side);
        let [client, server] = &mut self.ways;
        let (own, other) = if side == Side::Client { (client, server) } else { (server, client) };
        if segment.flags.contains(TcpFlags::RST) {
            own.resets = own.resets.saturating_add(1);
            return;
        }
        if is_ack && other.is(SAMPLING) && ahead(segment.acknowledgement, other.sample_end) >= 0 {
            other.flags &= !SAMPLING;
            other.measured(now.wrapping_sub(other.sample_at));
        }
        match handshake {
            Handshake::Asked => {
                self.syn_at = now;
                own.flags |= SYN;
            }
            Handshake::Answered if other.is(SYN) && segment.acknowledgement == other.expected => {
                if !other.is(ANSWERED) {
                    self.outward = now.wrapping_sub(self.syn_at);
                    other.flags |= ANSWERED;
                }
                self.answer_at = now;
                own.flags |= SYN;
            }
            Handshake::Done
                if other.is(SYN) && !other.is(ANSWERED) && segment.acknowledgement == other.expected =>
            {
                self.homeward = now.wrapping_sub(self.answer_at);
                other.flags |= ANSWERED;
            }
            _ => {}
        }
        let special = is_syn || is_fin;
        if segment.window == 0 && !special {
            own.zero_windows = own.zero_windows.saturating_add(1);
        }
        own.sequence(segment, u32::from(is_syn) + u32::from(is_fin), other, overtaken, now);
        if is_ack {
            if own.acknowledged != segment.acknowledgement {
                own.repeats = 0;
            }
            own.acknowledged = segment.acknowledgement;
            own.window = segment.window;
            own.flags |= ACKNOWLEDGED;
        }
    }
}

/// A segment's part in the three-way handshake (RFC 9293 §3.5).
#[derive(Clone, Copy)]
enum Handshake {
    Asked,
    Answered,
    Done,
    Nothing,
}

impl Handshake {
    const fn of(is_syn: bool, is_ack: bool, side: Side) -> Self {
        match (is_syn, is_ack, side) {
            (true, false, Side::Client) => Self::Asked,
            (true, true, Side::Server) => Self::Answered,
            (false, true, Side::Client) => Self::Done,
            _ => Self::Nothing,
        }
    }
}

impl Way {
    /// Where a segment stands among those of this side; SYN and FIN are `control` octets.
    fn sequence(&mut self, segment: &Segment, control: u32, other: &Self, overtaken: u32, now: u32) {
        let Segment { sequence, length, .. } = *segment;
        let end = sequence.wrapping_add(length).wrapping_add(control);
        if !self.is(SEEN) {
            self.flags |= SEEN;
            self.advance(end, length, length > 0 || control > 0, now);
            return;
        }
        let distance = ahead(sequence, self.expected);
        let carries = length > 0 || control > 0;
        // What asks whether the other side is still there, or can take something again, is none of these.
        let alive = distance == -1 && length <= 1 && control == 0;
        let probe =
            distance == 0 && length == 1 && control == 0 && other.is(ACKNOWLEDGED) && other.window == 0;
        self.flags &= !ASKING;
        if alive || probe {
            self.flags |= ASKING;
            return;
        }
        if distance > 0 {
            self.after_holes = self.after_holes.saturating_add(1);
        } else if distance < 0 && carries {
            let known = other.is(ACKNOWLEDGED) && ahead(other.acknowledged, end) >= 0;
            let soon = now.wrapping_sub(self.expected_at) < overtaken && end != self.expected;
            // RFC 5681 §3.2: not waited for any longer.
            let asked_for = other.repeats >= 2 && other.acknowledged == sequence;
            if soon && !known && !asked_for {
                self.out_of_order = self.out_of_order.saturating_add(1);
            } else {
                self.retransmissions = self.retransmissions.saturating_add(1);
            }
            if ahead(sequence, self.sample_end) < 0 {
                self.flags &= !SAMPLING;
            }
        } else if !carries
            && self.is(ACKNOWLEDGED)
            && (distance, segment.acknowledgement) == (0, self.acknowledged)
            && segment.window != 0
            && segment.window == self.window
            && !other.is(ASKING)
        {
            self.duplicate_acks += 1;
            self.repeats = self.repeats.saturating_add(1);
        }
        let new = ahead(end, self.expected);
        if new > 0 {
            let octets = if distance > HOLE { length } else { (new as u32).saturating_sub(control) };
            self.advance(end, octets, distance >= 0, now);
        }
    }

    fn advance(&mut self, end: u32, octets: u32, sample: bool, now: u32) {
        self.octets += u64::from(octets);
        (self.expected, self.expected_at) = (end, now);
        if sample && !self.is(SAMPLING) {
            (self.sample_end, self.sample_at) = (end, now);
            self.flags |= SAMPLING;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Client, Server};

    const ACK: TcpFlags = TcpFlags::ACK;
    const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);

    /// Side, milliseconds, flags, sequence, acknowledgement, length, window.
    type Line = (Side, u64, TcpFlags, u32, u32, u32, u16);

    fn run(lines: &[Line]) -> Tcp {
        let mut tcp = Tcp::default();
        for &(side, millis, flags, sequence, acknowledgement, length, window) in lines {
            let segment = Segment { sequence, acknowledgement, flags, window, length };
            tcp.push(side, &segment, Nanos(millis * 1_000_000));
        }
        tcp
    }

    fn handshake() -> Vec<Line> {
        vec![
            (Client, 1000, TcpFlags::SYN, u32::MAX, 0, 0, 100),
            (Server, 1030, SYN_ACK, 999, 0, 0, 100),
            (Client, 1050, ACK, 0, 1000, 0, 100),
        ]
    }

    #[test]
    fn a_handshake_tells_both_halves_of_the_path() {
        let tcp = run(&handshake());
        assert_eq!(
            (tcp.outward(), tcp.homeward(), tcp.handshake()),
            (Some(30_000), Some(20_000), Some(50_000))
        );
        // A SYN that is sent again is measured from then on; so the wait for it isn't counted.
        let again = [&[(Client, 0, TcpFlags::SYN, u32::MAX, 0, 0, 100)], &handshake()[..]].concat();
        let tcp = run(&again);
        assert_eq!((tcp.outward(), tcp.way(Client).retransmissions), (Some(30_000), 1));
        // Another one's answer is none.
        let mut other = handshake();
        other[1].4 = 7;
        assert_eq!(run(&other).outward(), None);
    }

    #[test]
    fn one_segment_at_a_time_measures_the_round_trip() {
        let mut lines = handshake();
        lines.extend([
            (Client, 1100, ACK, 0, 1000, 10, 100),
            (Client, 1105, ACK, 10, 1000, 10, 100),
            (Server, 1138, ACK, 1000, 20, 0, 100),
        ]);
        let tcp = run(&lines);
        // 30 of the SYN, then 38.
        assert_eq!(tcp.way(Client).round_trip(), Some(30_000 - 3_750 + 4_750));
        assert_eq!(tcp.way(Client).least_round_trip(), Some(30_000));
        assert_eq!(tcp.way(Server).round_trip(), Some(20_000));
        // One that was sent again tells nothing.
        lines.extend([
            (Client, 2000, ACK, 20, 1000, 10, 100),
            (Client, 2300, ACK, 20, 1000, 10, 100),
            (Server, 2301, ACK, 1000, 30, 0, 100),
        ]);
        assert_eq!(run(&lines).way(Client).round_trip(), tcp.way(Client).round_trip());
        assert_eq!(run(&lines).way(Client).retransmissions, 1);
    }

    #[test]
    fn what_comes_late_was_overtaken_or_sent_again() {
        let mut lines = handshake();
        lines.extend([
            (Server, 1100, ACK, 1000, 0, 100, 100),
            (Server, 1101, ACK, 1200, 0, 100, 100),
            // Within the round trip.
            (Server, 1102, ACK, 1100, 0, 100, 100),
            (Client, 1110, ACK, 0, 1300, 0, 100),
            // The client has it.
            (Server, 1111, ACK, 1200, 0, 100, 100),
            (Server, 1120, ACK, 1400, 0, 100, 100),
            // Much later.
            (Server, 1400, ACK, 1300, 0, 100, 100),
        ]);
        let tcp = run(&lines);
        let server = tcp.way(Server);
        assert_eq!((server.after_holes, server.out_of_order, server.retransmissions), (2, 1, 2));
        assert_eq!(server.octets, 500);
    }

    #[test]
    fn what_was_asked_for_twice_was_sent_again_however_soon() {
        let mut lines = handshake();
        lines.extend([
            (Server, 1100, ACK, 1000, 0, 100, 100),
            (Client, 1101, ACK, 0, 1100, 0, 100),
            (Server, 1102, ACK, 1200, 0, 100, 100),
            (Client, 1103, ACK, 0, 1100, 0, 100),
            (Server, 1104, ACK, 1300, 0, 100, 100),
            (Client, 1105, ACK, 0, 1100, 0, 100),
            (Server, 1106, ACK, 1100, 0, 100, 100),
        ]);
        let tcp = run(&lines);
        assert_eq!((tcp.way(Server).retransmissions, tcp.way(Server).out_of_order), (1, 0));
        // Asked for once, it was overtaken.
        lines.remove(6);
        lines.remove(6);
        let tcp = run(&lines);
        assert_eq!((tcp.way(Server).retransmissions, tcp.way(Server).out_of_order), (0, 1));
    }

    #[test]
    fn what_came_before_was_sent_again_however_soon() {
        let mut lines = handshake();
        lines.extend([(Server, 1100, ACK, 1000, 0, 100, 100), (Server, 1101, ACK, 1100, 0, 100, 100)]);
        let again = |line: Line, acknowledged: Option<u32>| {
            let mut lines = lines.clone();
            lines.extend(acknowledged.map(|number| (Client, 1102, ACK, 0, number, 0, 100)));
            lines.push(line);
            let tcp = run(&lines);
            (tcp.way(Server).retransmissions, tcp.way(Server).out_of_order)
        };
        // The highest segment can't have been overtaken, nor can one that the client has.
        assert_eq!(again((Server, 1103, ACK, 1100, 0, 100, 100), None), (1, 0));
        assert_eq!(again((Server, 1103, ACK, 1000, 0, 100, 100), Some(1100)), (1, 0));
        assert_eq!(again((Server, 1103, ACK, 1000, 0, 100, 100), None), (0, 1));
    }

    #[test]
    fn duplicate_acknowledgements_and_windows() {
        let mut lines = handshake();
        lines.extend([
            (Server, 1100, ACK, 1000, 0, 100, 100),
            (Client, 1101, ACK, 0, 1100, 0, 100),
            (Client, 1102, ACK, 0, 1100, 0, 100),
            (Client, 1103, ACK, 0, 1100, 0, 100),
            // Another window is news, none isn't the same, and payload is no acknowledgement alone.
            (Client, 1104, ACK, 0, 1100, 0, 90),
            (Client, 1105, ACK, 0, 1100, 0, 0),
            (Client, 1106, ACK, 0, 1100, 5, 90),
            // Probes of the window, and whether somebody is there.
            (Client, 1107, ACK, 5, 1100, 0, 0),
            (Server, 1108, ACK, 1100, 5, 1, 100),
            (Server, 1109, ACK, 1099, 5, 1, 100),
            (Server, 1110, TcpFlags(ACK.0 | TcpFlags::RST.0), 1100, 5, 0, 0),
        ]);
        let tcp = run(&lines);
        let (client, server) = (tcp.way(Client), tcp.way(Server));
        assert_eq!((client.duplicate_acks, client.zero_windows, client.octets), (2, 2, 5));
        assert_eq!((server.retransmissions, server.resets, server.octets), (0, 1, 100));
    }
}
