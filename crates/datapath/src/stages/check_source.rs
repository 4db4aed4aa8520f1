//! Packets of tunnels that come from elsewhere than they should leave the way here ([`crate::state::feeder`] says which).

use crate::Reason;
use crate::datapath::Datapath;
use crate::meta::Kind;
use crate::stages::burst::Burst;
use io::Frame;
use tables::Nanos;
use tables::prefetch::prefetch_slice_at;

impl<F: Frame> Datapath<F> {
    /// Makes packets of tunnels that don't come from the tunnel's other end ones to be dropped.
    #[inline(never)]
    pub(crate) fn check_sources(&mut self, now: Nanos, burst: &mut Burst<F>) {
        let Burst { frames, metas, .. } = burst;
        for meta in metas.iter().filter(|meta| meta.kind == Kind::Tunnel) {
            if let Some(Some(shard)) = self.shards.get(meta.shard as usize) {
                prefetch_slice_at(&shard.feeders, meta.slot as usize);
            }
        }
        for (meta, frame) in metas.iter_mut().zip(frames) {
            if meta.kind == Kind::Tunnel
                && let Some(Some(shard)) = self.shards.get_mut(meta.shard as usize)
                && !shard.hears(now, meta, frame.bytes())
            {
                meta.kind = Kind::Bad(Reason::ForeignFarEnd);
            }
        }
    }
}
