//! Which flow is it, and which rule? For sessions whose rules look into the packet.

use crate::datapath::Datapath;
use crate::meta::Meta;
use crate::stages::ahead;
use crate::stages::burst::Burst;
use io::Frame;

impl<F: Frame> Datapath<F> {
    /// The sessions' rules that have records of their own: which one is it? Looks up the flows of the burst in phases, as
    /// [`Self::locate`] does the sessions, so that all lines that the packets need are on their way together.
    #[inline(never)]
    pub(crate) fn look_closer(&mut self, burst: &mut Burst<F>, strangers: u32) {
        let Burst { frames, metas, lookups, hints, .. } = burst;
        let shards = &self.shards;
        let of = |meta: &Meta| shards.get(meta.shard as usize)?.as_deref();
        if hints.are_heard() {
            let packets = metas.iter().zip(frames).zip(&hints.said);
            lookups.extend(
                packets.map(|((meta, frame), said)| of(meta)?.prepare_by(meta, frame.bytes(), said.flow)),
            );
            for (meta, lookup) in metas.iter().zip(lookups.iter_mut()) {
                if let (Some(lookup), Some(shard)) = (lookup, of(meta)) {
                    shard.flows.verify(&mut lookup.probe, &lookup.key);
                }
            }
        } else {
            let packets = metas.iter().zip(frames);
            lookups.extend(packets.map(|(meta, frame)| of(meta)?.prepare(meta, frame.bytes())));
        }
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
        if burst.hints.are_heard() {
            self.judge_flows(burst);
        }
    }
}
