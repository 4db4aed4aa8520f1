//! The way of copies into a file: a ring of octets from a worker to a thread that may wait for a disk.
//!
//! Each copy is sixteen octets of header and its own. The worker never waits and never allocates; what finds no room is
//! lost and counted. The worker's end goes with the mirror, and the reader sees that.

use tables::Nanos;

/// Octets of a copy's header: when (8), the packet's length (2), the copy's length (2), direction (1), unused (3).
const HEADER_LEN: usize = 16;

/// The worker's end.
#[derive(Debug)]
pub struct CaptureTx(rtrb::Producer<u8>);

/// The reader's end.
#[derive(Debug)]
pub struct CaptureRx {
    ring: rtrb::Consumer<u8>,
    /// Of the copy whose octets come next.
    header: Option<[u8; HEADER_LEN]>,
    octets: Vec<u8>,
}

/// What a reader gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured<'a> {
    /// When the packet left, by the workers' clock.
    pub time: Nanos,
    /// From the UE.
    pub uplink: bool,
    /// The packet's length; the copy may be shorter.
    pub length: u16,
    /// The copy, from the IP header on.
    pub octets: &'a [u8],
}

/// A ring for copies with room for so many octets.
pub fn capture(octets: usize) -> (CaptureTx, CaptureRx) {
    let (sender, ring) = rtrb::RingBuffer::new(octets);
    (CaptureTx(sender), CaptureRx { ring, header: None, octets: Vec::new() })
}

impl CaptureTx {
    /// Sends a copy. False, and nothing sent, if there is no room, or nobody to read it.
    pub(crate) fn send(&mut self, copy: Captured<'_>) -> bool {
        let Ok(octets) = u16::try_from(copy.octets.len()) else { return false };
        if self.0.is_abandoned() || self.0.slots() < HEADER_LEN + copy.octets.len() {
            return false;
        }
        let [t0, t1, t2, t3, t4, t5, t6, t7] = copy.time.0.to_le_bytes();
        let [[l0, l1], [o0, o1]] = [copy.length.to_le_bytes(), octets.to_le_bytes()];
        let header = [t0, t1, t2, t3, t4, t5, t6, t7, l0, l1, o0, o1, u8::from(copy.uplink), 0, 0, 0];
        self.0.push_entire_slice(&header).is_ok() && self.0.push_entire_slice(copy.octets).is_ok()
    }
}

impl CaptureRx {
    /// The next copy, if one has arrived.
    pub fn next_copy(&mut self) -> Option<Captured<'_>> {
        let header = if let Some(header) = self.header {
            header
        } else {
            let mut header = [0; HEADER_LEN];
            self.ring.pop_entire_slice(&mut header).ok()?;
            *self.header.insert(header)
        };
        let [t0, t1, t2, t3, t4, t5, t6, t7, l0, l1, o0, o1, uplink, ..] = header;
        self.octets.resize(usize::from(u16::from_le_bytes([o0, o1])), 0);
        self.ring.pop_entire_slice(&mut self.octets).ok()?;
        self.header = None;
        Some(Captured {
            time: Nanos(u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7])),
            uplink: uplink != 0,
            length: u16::from_le_bytes([l0, l1]),
            octets: &self.octets,
        })
    }

    /// Whether nothing will come any more. Ask before the last look at [`CaptureRx::next_copy`], not behind it.
    pub fn is_over(&self) -> bool {
        self.ring.is_abandoned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn copies_come_out_as_they_went_in_until_there_is_no_room() {
        let (mut sender, mut reader) = capture(100);
        let copy = |time, octets| Captured { time: Nanos(time), uplink: time % 2 == 1, length: 1500, octets };
        for round in 0..50u64 {
            assert!(sender.send(copy(round, b"first")));
            assert!(sender.send(copy(round + 1, &[])));
            assert!(!sender.send(copy(9, &[0; 64])), "too long for what is left");
            assert_eq!(reader.next_copy(), Some(copy(round, b"first")));
            assert_eq!(reader.next_copy(), Some(copy(round + 1, &[])));
            assert_eq!(reader.next_copy(), None);
        }
        assert!(sender.send(copy(7, b"last")));
        drop(sender);
        assert!(reader.is_over());
        assert_eq!(reader.next_copy(), Some(copy(7, b"last")));
        assert_eq!(reader.next_copy(), None);
    }

    #[test]
    fn nothing_is_sent_to_nobody() {
        let (mut sender, reader) = capture(100);
        drop(reader);
        assert!(!sender.send(Captured { time: Nanos(1), uplink: true, length: 4, octets: b"copy" }));
    }
}
