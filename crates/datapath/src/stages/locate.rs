//! Where is it? From a packet to its session's record, in two steps, each for the whole burst at once.

use crate::datapath::Datapath;
use crate::meta::{Kind, Meta, destination6};
use crate::stages::burst::Burst;
use crate::state::directory::Directory;
use crate::state::shard::Shard;
use io::Frame;
use packet::rss;
use session::ShardId;
use std::net::Ipv4Addr;
use tables::prefetch::prefetch_slice_at;
use tables::{Lookup, Probe};

/// The place of the session that has a plain packet's address, if that says nothing of its shard.
#[inline(always)]
fn place_elsewhere<'f>(
    directory: &Directory,
    meta: &Meta,
    frame: impl FnOnce() -> &'f [u8],
) -> Option<(u16, u32)> {
    if meta.v6 {
        directory.ipv6(meta.key, || destination6(frame(), meta.inner))
    } else {
        directory.ipv4(meta.key as u32)
    }
}

/// The shard that a plain packet's address says.
#[inline(always)]
fn shard_of(meta: &Meta) -> ShardId {
    ShardId::from_hash(if meta.v6 {
        rss::ue_hash_prefix64(meta.key)
    } else {
        rss::ue_hash_ipv4(Ipv4Addr::from_bits(meta.key as u32))
    })
}

/// First phase of the look-up of its address there.
#[inline(always)]
pub(super) fn prepare<F>(shard: &Shard<F>, meta: &Meta) -> Probe {
    if meta.v6 { shard.by_prefix.prepare(&meta.key) } else { shard.by_ipv4.prepare(&(meta.key as u32)) }
}

/// Last phase: its session's slot.
#[inline(always)]
fn finish<F>(shard: &Shard<F>, probe: Probe, meta: &Meta) -> Option<u32> {
    if meta.v6 {
        shard.by_prefix.finish(probe, &meta.key)
    } else {
        shard.by_ipv4.finish(probe, &(meta.key as u32))
    }
}

impl<F: Frame> Datapath<F> {
    /// A tunnel's place is in its TEID: its record is asked for. A plain packet's bucket has to be read first: that is.
    pub(crate) fn locate(&self, burst: &mut Burst<F>) {
        let Burst { frames, metas, probes, .. } = burst;
        let (shards, directory) = (&self.shards, &self.directory);
        let (mut hashed, mut away) = (false, false);
        probes.clear();
        probes.extend(metas.iter_mut().zip(frames.iter()).map(|(meta, frame)| {
            let mut probe = None;
            match meta.kind {
                Kind::Tunnel => {
                    let (shard, slot) = directory.teid(meta.teid);
                    meta.shard = shard;
                    meta.slot = slot as u32;
                    match shards.get(shard as usize) {
                        Some(Some(shard)) => prefetch_slice_at(&shard.tunnels, slot as usize),
                        _ => away = true,
                    }
                }
                Kind::Plain => {
                    if let Some((shard, slot)) = place_elsewhere(directory, meta, || frame.bytes()) {
                        meta.shard = shard;
                        meta.slot = slot;
                        match shards.get(shard as usize) {
                            Some(Some(shard)) => prefetch_slice_at(&shard.downlink, slot as usize),
                            _ => away = true,
                        }
                    } else {
                        let id = shard_of(meta).index();
                        meta.shard = id as u16;
                        if let Some(Some(shard)) = shards.get(id) {
                            hashed = true;
                            probe = Some(prepare(shard, meta));
                        } else {
                            away = true;
                        }
                    }
                }
                _ => {}
            }
            probe
        }));
        (burst.hashed, burst.away) = (hashed, away);
    }

    /// Reads the buckets, and asks for the records that they lead to.
    pub(crate) fn located(&self, burst: &mut Burst<F>) {
        if !burst.hashed {
            return;
        }
        for (meta, probe) in burst.metas.iter_mut().zip(&burst.probes) {
            if let (Some(probe), Some(Some(shard))) = (probe, self.shards.get(meta.shard as usize))
                && let Some(slot) = finish(shard, *probe, meta)
            {
                meta.slot = slot;
                prefetch_slice_at(&shard.downlink, slot as usize);
            }
        }
    }

    /// Finds a packet's record, one step after the other: [`Self::locate`] and [`Self::located`] do the same for a burst.
    pub(crate) fn locate_one(&self, meta: &mut Meta, frame: &[u8]) -> Option<()> {
        if meta.kind == Kind::Tunnel {
            let (shard, slot) = self.directory.teid(meta.teid);
            (meta.shard, meta.slot) = (shard, u32::from(slot));
            return Some(());
        }
        (meta.shard, meta.slot) = if let Some(place) = place_elsewhere(&self.directory, meta, || frame) {
            place
        } else {
            let id = shard_of(meta).index();
            let shard = self.shards.get(id)?.as_deref()?;
            (id as u16, finish(shard, prepare(shard, meta), meta)?)
        };
        Some(())
    }

    /// Takes the packets of shards that other workers own out of a burst whose packets' shards are not known yet. Before anything is
    /// looked up for them, and without a branch that goes one way or the other from packet to packet: to be used where they
    /// come mixed with this worker's own. [`Self::locate`] finds out for nothing that there are any.
    #[inline(never)]
    pub(crate) fn divide(&self, burst: &mut Burst<F>) {
        self.place(burst);
        self.set_apart(burst);
    }

    /// Finds out whose shards the packets are of, and as much of their places there as says itself.
    #[inline(always)]
    pub(crate) fn place(&self, burst: &mut Burst<F>) {
        for (meta, frame) in burst.metas.iter_mut().zip(&burst.frames) {
            match meta.kind {
                Kind::Tunnel => {
                    let (shard, slot) = self.directory.teid(meta.teid);
                    (meta.shard, meta.slot) = (shard, u32::from(slot));
                }
                Kind::Plain => {
                    let elsewhere = place_elsewhere(&self.directory, meta, || frame.bytes());
                    let here = || (shard_of(meta).index() as u16, Meta::EMPTY.slot);
                    (meta.shard, meta.slot) = elsewhere.unwrap_or_else(here);
                }
                _ => {}
            }
        }
    }

    /// Takes the packets of shards that other workers own out of the burst. None overtakes another of its session, which is in one
    /// shard.
    #[inline(never)]
    pub(crate) fn set_apart(&self, burst: &mut Burst<F>) {
        let Burst { frames, metas, leaving, staying, mixed, .. } = burst;
        for (meta, frame) in metas.iter().zip(frames.drain(..)) {
            let is_users = matches!(meta.kind, Kind::Tunnel | Kind::Plain);
            let list = if is_users & !self.has(meta.shard) { &mut *leaving } else { &mut *staying };
            list.push(meta, frame);
        }
        let mut at = 0;
        while let (Some(meta), Some(frame)) = (leaving.metas.get(at), leaving.frames.get(at)) {
            if self.is_ours(meta, frame.bytes()) {
                staying.take(leaving, at);
            } else {
                at += 1;
            }
        }
        *mixed = !leaving.is_empty();
        std::mem::swap(metas, &mut staying.metas);
        std::mem::swap(frames, &mut staying.frames);
        staying.metas.clear();
    }

    pub(crate) fn has(&self, shard: u16) -> bool {
        matches!(self.shards.get(shard as usize), Some(Some(_)))
    }

    /// Whether it is a packet to ourselves that parsing took for a UE's.
    fn is_ours(&self, meta: &Meta, frame: &[u8]) -> bool {
        meta.kind == Kind::Plain && self.is_own(meta, frame)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Config;
    use crate::network::rib::Rib;
    use crate::state::record::flag;
    use io::mem::MemFrame;
    use packet::Teid;
    use pfcp::{FarId, PdrId};
    use session::config::PoolConfig;
    use session::rules::{Action, Destination, Far, Forward, Pdr, Rules, Source, Tunnel};
    use session::{PrefixLength, PrefixLengths, SessionRef, TeidRef};
    use std::sync::Arc;
    use tables::Nanos;

    /// What the fast path knows of a UE with this prefix, where pools give /56s: the prefix that it checks, whether only the session can say
    /// more, and whether the shard finds it.
    fn known(prefix: &str) -> (u64, bool, bool) {
        let pool = PoolConfig {
            ipv6: vec!["2001:db8:56::/48".parse().unwrap()],
            ipv6_length: PrefixLength::new(56).unwrap(),
            ..PoolConfig::default()
        };
        let prefixes = PrefixLengths::of(&[pool]);
        let mut datapath = Datapath::<MemFrame>::new(Config { prefixes, ..Config::new(Rib::new().fib()) });
        let place = SessionRef { shard: ShardId::from_hash(0), slot: 0 };
        let at = TeidRef { shard: place.shard, slot: 3 };
        let pdr = Pdr::all(PdrId(1), Source::Access, Some(Tunnel { teid: Teid(9), place: at }), 0);
        let action = Action::Forward(Forward::to(Destination::Core, None));
        let mut rules = Rules::of(place, None, [pdr], [Far { id: FarId(1), action }]);
        rules.ue_ipv6 = Some(prefix.parse().unwrap());
        let mut shard = datapath.new_shard(place.shard);
        shard.install(&Arc::new(rules), Box::default(), &[], &[], Nanos(0)).unwrap();
        datapath.adopt(shard);
        let shard = datapath.shards.first().unwrap().as_deref().unwrap();
        let record = shard.tunnels.get(3).unwrap();
        let found = shard.by_prefix.get(&record.ue_prefix) == Some(0);
        (record.ue_prefix, record.has(flag::MORE_SOURCES), found)
    }

    #[test]
    fn a_prefix_of_its_pools_length_is_no_exception() {
        assert_eq!(known("2001:db8:56:1200::/56"), (0x2001_0db8_0056_1200, false, true));
        assert_eq!(known("2001:db8:57:1234::/64"), (0x2001_0db8_0057_1234, false, true));
        for other in ["2001:db8:56:1200::/64", "2001:db8:56::/48", "2001:db8:57:1200::/56"] {
            assert_eq!(known(other), (0, true, false), "{other}");
        }
    }
}
