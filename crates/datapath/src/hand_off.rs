//! Frames on their way from the workers that received them to the owners of their shards.

use crate::meta::{Kind, Meta, Translated};
use io::{BURST, Frame};
use session::ShardId;

/// A frame of another worker's shard, with what that one found out about it.
#[derive(Debug)]
pub struct HandedOff<F> {
    pub(crate) meta: Meta,
    pub(crate) frame: F,
}

impl<F: Frame> HandedOff<F> {
    /// One that arrived at this interface, and that its shard's owner has to read by itself.
    pub const fn unread(interface: u16, frame: F) -> Self {
        Self { meta: Meta { interface, ..Meta::EMPTY }, frame }
    }
}

/// Whether a frame's owner may rely on what was read of it elsewhere. Of what was translated, and of what it shall translate
/// itself, it makes its own picture.
#[inline(always)]
pub(crate) fn is_read(meta: &Meta) -> bool {
    matches!(meta.kind, Kind::Tunnel | Kind::Plain) && meta.translated == Translated::No
}

/// Frames with what is known of each, in two columns: a frame changes lists without a look at it.
#[derive(Debug)]
pub struct Parsed<F> {
    pub(crate) metas: Vec<Meta>,
    pub(crate) frames: Vec<F>,
}

impl<F: Frame> Parsed<F> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { metas: Vec::with_capacity(capacity), frames: Vec::with_capacity(capacity) }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, meta: &Meta, frame: F) {
        self.metas.push(*meta);
        self.frames.push(frame);
    }

    /// Takes all of another list, in order.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            std::mem::swap(self, other);
        } else {
            self.metas.append(&mut other.metas);
            self.frames.append(&mut other.frames);
        }
    }

    /// Takes one out of another list.
    #[cold]
    pub(crate) fn take(&mut self, other: &mut Self, at: usize) {
        let (meta, frame) = (other.metas.remove(at), other.frames.remove(at));
        self.push(&meta, frame);
    }

    /// The shards that they are of.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> {
        self.metas.iter().map(|meta| ShardId::from_hash(meta.shard.into()))
    }

    /// All of them, in order, with the shards that they are of.
    #[inline(always)]
    pub fn drain(&mut self) -> impl Iterator<Item = (ShardId, HandedOff<F>)> {
        let both = self.metas.drain(..).zip(self.frames.drain(..));
        both.map(|(meta, frame)| (ShardId::from_hash(meta.shard.into()), HandedOff { meta, frame }))
    }
}

impl<F: Frame> Default for Parsed<F> {
    fn default() -> Self {
        Self::with_capacity(BURST)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Burst, Config, Datapath, Rib};
    use io::mem::MemFrame;

    /// What the owner makes of a frame of which somebody else said this.
    fn arrived(meta: Meta) -> Meta {
        let mut datapath = Datapath::<MemFrame>::new(Config::new(Rib::new().fib()));
        let mut burst = Burst::new();
        let frame = MemFrame::copy_of(&[0; 60]).unwrap();
        datapath.arrive_handed_off(tables::Nanos(0), [HandedOff { meta, frame }], &mut burst);
        *burst.metas.first().unwrap()
    }

    #[test]
    fn an_owner_relies_on_what_was_read_but_not_on_where_it_was_found() {
        let meta = Meta { kind: Kind::Plain, key: 7, interface: 3, slot: 5, ..Meta::EMPTY };
        let found = arrived(meta);
        assert_eq!((found.kind, found.key, found.interface), (Kind::Plain, 7, 3));
        assert_eq!(found.slot, Meta::EMPTY.slot, "a session that is gone here may have been there");
    }

    #[test]
    fn an_owner_reads_by_itself_what_was_or_is_to_be_translated() {
        for (kind, translated) in [
            (Kind::Plain, Translated::Fixed),
            (Kind::Plain, Translated::By(0)),
            (Kind::Public, Translated::No),
            (Meta::EMPTY.kind, Translated::No),
        ] {
            let found = arrived(Meta { kind, translated, ..Meta::EMPTY });
            assert!(matches!(found.kind, Kind::Bad(_)), "there is no such port");
        }
    }
}
