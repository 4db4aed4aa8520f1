//! Frames that go through the stages together.

use crate::hand_off::Parsed;
use crate::meta::Meta;
use crate::nat::{Ahead, Sought};
use crate::network::egress::Link;
use crate::stages::hints::Hints;
use crate::state::flow::Lookup;
use io::{BURST, Frame};
use tables::Probe;

/// A burst of frames, and what the stages have found out about each.
///
/// A worker owns its bursts and lends them to [`Datapath::begin`](crate::Datapath::begin), which reads the frames and asks memory for what
/// they need, and to [`Datapath::finish`](crate::Datapath::finish), which uses it. Between the two, other bursts may begin and finish:
/// all that is known of a burst is in it. Everything here is reserved once, and used again by the next frames. Where a device is asked, these
/// are [`Datapath::read`](crate::Datapath::read), [`Datapath::question`](crate::Datapath::question) and
/// [`Datapath::finish_answered`](crate::Datapath::finish_answered).
#[derive(Debug)]
pub struct Burst<F> {
    /// Filled by whoever receives; empty once the burst is through.
    pub frames: Vec<F>,
    pub(crate) metas: Vec<Meta>,
    /// Buckets of addresses that are looked up.
    pub(crate) probes: Vec<Option<Probe>>,
    /// What packets of sessions with flows are looked up by; none at all while no session has flows.
    pub(crate) lookups: Vec<Option<Lookup>>,
    /// What a device was asked, and said.
    pub(crate) hints: Hints,
    /// Where the packets leave that their records served.
    pub(crate) links: Vec<Link>,
    /// To whom packets to public addresses are.
    pub(crate) ahead: Vec<Ahead>,
    /// Mappings of packets from UEs that are being fetched.
    pub(crate) sought: Vec<Sought>,
    /// Frames of other workers' shards.
    pub(crate) leaving: Parsed<F>,
    /// Frames that other workers have no part in; empty between calls.
    pub(crate) staying: Parsed<F>,
    /// The last burst from a port was a mix of this worker's packets and others'.
    pub(crate) mixed: bool,
    /// At least one of the probes is there.
    pub(crate) hashed: bool,
    /// At least one of the packets' shards isn't here.
    pub(crate) away: bool,
    /// Packets of unknown flows that may still be brought to their rules (see [`crate::state::overload`]).
    pub(crate) strangers: u32,
}

impl<F: Frame> Burst<F> {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            frames: Vec::with_capacity(BURST),
            metas: Vec::with_capacity(BURST),
            probes: Vec::with_capacity(BURST),
            lookups: Vec::new(),
            hints: Hints::default(),
            links: Vec::with_capacity(BURST),
            ahead: Vec::new(),
            sought: Vec::new(),
            leaving: Parsed::default(),
            staying: Parsed::default(),
            mixed: false,
            hashed: false,
            away: false,
            strangers: u32::MAX,
        }
    }

    /// Another burst takes the place of this one, which is returned.
    #[must_use]
    pub fn give_way_to(&mut self, mut next: Self) -> Self {
        next.mixed = self.mixed;
        std::mem::replace(self, next)
    }

    /// Frames that are in it, those included that are on their way to other workers.
    pub const fn in_work(&self) -> usize {
        self.frames.len() + self.leaving.len()
    }

    /// Of these frames.
    pub fn of(frames: Vec<F>) -> Self {
        Self { frames, ..Self::new() }
    }
}

impl<F: Frame> Default for Burst<F> {
    fn default() -> Self {
        Self::new()
    }
}
