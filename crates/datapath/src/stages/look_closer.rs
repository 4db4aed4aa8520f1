//! Which flow is it, and which rule? For sessions whose rules look into the packet.

use crate::datapath::Datapath;
use crate::stages::ahead;
use crate::stages::burst::Burst;
use io::Frame;

impl<F: Frame> Datapath<F> {
    /// The sessions' rules that have records of their own: which one is it? Looks up the flows of the burst in phases, as
    /// [`Self::locate`] does the sessions, so that all lines that the packets need are on their way together.
    #[inline(never)]
    pub(crate) fn look_closer(&mut self, burst: &mut Burst<F>, strangers: u32) {
        let Burst { frames, metas, lookups, .. } = burst;
        let shards = &self.shards;
        lookups.extend(metas.iter().zip(frames).map(|(meta, frame)| {
            let shard = shards.get(meta.shard as usize)?.as_deref()?;
            shard.prepare(meta, frame.bytes())
        }));
        // Once for most bursts; as often as a flow is not where it was looked for.
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for (meta, lookup) in metas.iter().zip(lookups.iter_mut()) {
                if let Some(lookup) = lookup
                    && let Some(Some(shard)) = shards.get(meta.shard as usize)
                {
                    goes_on |= shard.locate(lookup);
                }
            }
        }
        let mut all_known = true;
        for (meta, lookup) in metas.iter().zip(lookups.iter_mut()) {
            if let Some(lookup) = lookup
                && let Some(Some(shard)) = self.shards.get_mut(meta.shard as usize)
            {
                all_known &= shard.prefetch_rule(lookup);
            }
        }
        if !all_known {
            ahead::fetch(&self.shards, metas, lookups, strangers as usize);
        }
        for (meta, lookup) in metas.iter().zip(&*lookups) {
            if let Some(lookup) = lookup
                && let Some(Some(shard)) = self.shards.get(meta.shard as usize)
            {
                shard.prefetch_meters(lookup);
            }
        }
    }
}
