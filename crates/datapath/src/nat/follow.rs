//! Which plan a worker's shards go by.

use super::{Ledger, Plan, State};
use crate::Config;
use crate::command::Event;
use crate::datapath::Datapath;
use io::Frame;
use session::ShardId;
use std::sync::Arc;
use tables::Nanos;

impl<F: Frame> Datapath<F> {
    /// A shard's translations, of which there are none yet.
    pub(crate) fn translations(config: &Config, plan: &Arc<Plan>, id: ShardId) -> Box<State> {
        let seed = config.seed ^ (id.index() as u64) << 48;
        let limit = config.mappings_per_shard;
        Box::new(State::new(Arc::clone(plan), id.index() as u16, limit, seed.rotate_left(41)))
    }

    /// Translates by another plan from now on, if it is another one.
    pub(crate) fn translate_by(&mut self, now: Nanos, plan: Option<Arc<Plan>>, events: &mut Vec<Event>) {
        let Some(plan) = plan.filter(|plan| self.nat.as_ref().is_none_or(|old| !Arc::ptr_eq(old, plan)))
        else {
            return;
        };
        self.nat = Some(plan);
        self.size_counters();
        for id in ShardId::all() {
            self.follow_plan(now, id, events);
        }
    }

    /// Before the first packet, of shards that came: they may come from a worker that was told sooner or later.
    pub(crate) fn follow_newcomers(&mut self, now: Nanos, events: &mut Vec<Event>) {
        while let Some(id) = self.newcomers.pop() {
            self.follow_plan(now, id, events);
        }
    }

    /// A shard's translations go by the plan that this worker goes by, if that is not an earlier one than their own.
    fn follow_plan(&mut self, now: Nanos, id: ShardId, events: &mut Vec<Event>) {
        let Some(plan) = &self.nat else { return };
        let Some(Some(shard)) = self.shards.get_mut(id.index()) else { return };
        match &mut shard.nat {
            Some(state) => {
                state.follow(plan, &mut Ledger { now, events, counters: &mut self.counters.nat });
            }
            none => *none = Some(Self::translations(&self.config, plan, id)),
        }
    }
}
