//! Packets through all stages, out of a capture or wherever they come from.

use dpi::prepare::{Limits, Link, NoPacket, Outcome, Preparation, Prepared, Tunnels};
use dpi::{Event, Inspector, Knowledge, Options, Packet};
use io::pcap::{CaptureError, CaptureReader, CapturedPacket};
use std::io::Read;
use std::sync::Arc;
use tables::Nanos;

/// All stages, and what went through them.
#[derive(Debug)]
pub struct Stages {
    preparation: Preparation,
    inspector: Inspector,
    /// Time of the first packet; the inspector's clock begins there.
    began: Option<u64>,
    now: Nanos,
    frames: u64,
    octets: u64,
    /// Frames of a link that can't be read.
    unreadable: u64,
}

/// A capture that is inspected.
#[derive(Debug)]
pub struct Reading<R> {
    reader: CaptureReader<R>,
    stages: Stages,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'p> {
    /// Its packet was inspected.
    Packet(Prepared<'p>),
    /// It is a fragment that waits for others, or was of no use.
    Fragment,
    /// There is no IP packet in it.
    Nothing(NoPacket),
    /// Its link can't be read; the number is pcap's.
    Unreadable(u16),
}

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Totals {
    /// Frames.
    pub frames: u64,
    /// Their octets, with what the capture cut off.
    pub octets: u64,
    /// Packets that were inspected.
    pub packets: u64,
    /// Frames without an IP packet.
    pub without_packet: u64,
    /// Frames of links that can't be read.
    pub unreadable: u64,
    /// Packets that belong to no flow, since there were too many.
    pub untracked: u64,
    /// Nanoseconds from the first packet to the last one.
    pub nanos: u64,
}

impl Stages {
    /// With these options. `seed`: as [`Inspector::with`] has it.
    pub fn new(options: Options, knowledge: Arc<Knowledge>, seed: u64) -> Self {
        Self {
            preparation: Preparation::new(Tunnels::USUAL, Some(Limits::default())),
            inspector: Inspector::with(options, knowledge, seed, Nanos(0)),
            began: None,
            now: Nanos(0),
            frames: 0,
            octets: 0,
            unreadable: 0,
        }
    }

    /// The inspector that is used.
    pub const fn inspector(&mut self) -> &mut Inspector {
        &mut self.inspector
    }

    /// A frame of `length` octets, of which `data` are there, at this time; shown with the inspector after it has seen it, and its number from 1.
    pub fn show<T>(
        &mut self,
        link: u16,
        data: &[u8],
        length: usize,
        nanos: u64,
        then: impl FnOnce(u64, Seen<'_>, &mut Inspector) -> T,
    ) -> T {
        self.frames += 1;
        self.octets += length as u64;
        // Captures go back in time now and then; flows don't.
        let began = *self.began.get_or_insert(nanos);
        self.now = self.now.max(Nanos(nanos.saturating_sub(began)));
        let seen = match Link::of_pcap(link.into()) {
            None => {
                self.unreadable += 1;
                Seen::Unreadable(link)
            }
            Some(link) => match self.preparation.push(link, data, self.now) {
                Outcome::Packet(prepared) => {
                    let tunnel = prepared.around.tunnel.map(|it| it.id);
                    self.inspector
                        .push(self.now, &Packet { ip: prepared.ip, bytes: prepared.packet, tunnel });
                    Seen::Packet(prepared)
                }
                Outcome::Held | Outcome::Refused(_) => Seen::Fragment,
                Outcome::Nothing(no) => Seen::Nothing(no),
            },
        };
        let result = then(self.frames, seen, &mut self.inspector);
        self.inspector.tick(self.now);
        result
    }

    /// Time goes on, though nothing comes.
    pub fn wait(&mut self, nanos: u64) {
        if let Some(began) = self.began {
            self.now = self.now.max(Nanos(nanos.saturating_sub(began)));
            self.inspector.tick(self.now);
        }
    }

    /// Ends all flows; what is known of them is told.
    pub fn finish(&mut self, mut tell: impl FnMut(Event)) {
        loop {
            while let Some(event) = self.inspector.poll() {
                tell(event);
            }
            if !self.inspector.flush_one(self.now) {
                return;
            }
        }
    }

    /// What went through them so far.
    pub fn totals(&self) -> Totals {
        let counters = self.inspector.counters();
        Totals {
            frames: self.frames,
            octets: self.octets,
            packets: counters.packets,
            without_packet: self.preparation.counters().nothing.sum(),
            unreadable: self.unreadable,
            untracked: counters.untracked,
            nanos: self.now.0,
        }
    }

    /// When, after the first packet, the last one came.
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// Nanoseconds since 1970 at which it began.
    pub fn began(&self) -> u64 {
        self.began.unwrap_or(0)
    }
}

impl<R: Read> Reading<R> {
    /// Of this capture.
    pub fn new(input: R, options: Options, knowledge: Arc<Knowledge>) -> Self {
        // Nobody chooses a capture's addresses against a seed that is in the source; and results come in the same order each time.
        let stages = Stages::new(options, knowledge, 0x5eed);
        Self { reader: CaptureReader::new(input).of_any_link(), stages }
    }

    /// Goes on with another capture; flows go on, too.
    pub fn go_on(&mut self, input: R) {
        self.reader = CaptureReader::new(input).of_any_link();
    }

    /// What its frames go through.
    pub const fn stages(&mut self) -> &mut Stages {
        &mut self.stages
    }

    /// The inspector that is used.
    pub const fn inspector(&mut self) -> &mut Inspector {
        self.stages.inspector()
    }

    /// Reads the next frame and shows it, with the inspector after it has seen it, and the number that frames have in Wireshark. `None`: there is none.
    pub fn next<T>(
        &mut self,
        then: impl FnOnce(u64, &CapturedPacket<'_>, Seen<'_>, &mut Inspector) -> T,
    ) -> Result<Option<T>, CaptureError> {
        let Some(frame) = self.reader.next_packet()? else { return Ok(None) };
        let result =
            self.stages.show(frame.link, frame.data, frame.length, frame.nanos, |number, seen, inspector| {
                then(number, &frame, seen, inspector)
            });
        Ok(Some(result))
    }
}
