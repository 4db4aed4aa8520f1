//! What each shard costs, from what workers count.

use session::SHARDS;

/// Load units of a worker that is busy all the time.
pub const CORE: u64 = 1_000_000;

/// Turns counters that only grow into the load of each shard since the last reading, for
/// [`Planner::observe`](super::Planner::observe).
///
/// A packet of one shard costs more than one of another (flows, NAT, sizes), and counts alone don't tell. So the time that
/// a worker was busy is split among its shards by their packets, as RSS++ does by bucket: with `busy` as a part of
/// the time a load is in millionths of a core ([`CORE`]), and [`Limits::core`](super::Limits::core) is known. Where there is no such figure, `busy` is given as
/// all ones for `None`: then a load is a count of packets.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    before: Vec<[u64; SHARDS]>,
}

impl Meter {
    /// Nothing was read yet: the first reading counts from zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// The load of each shard since the last reading. `counters`: packets by worker and shard. `busy`: the part of the
    /// time that each worker was busy, 0 to 1; a worker without an entry is taken for idle. Counters that went back
    /// (a worker was started anew) count from zero.
    pub fn read(&mut self, counters: &[[u64; SHARDS]], busy: Option<&[f32]>) -> [u64; SHARDS] {
        let mut loads = [0_u64; SHARDS];
        self.before.resize(counters.len(), [0; SHARDS]);
        for (worker, (now, before)) in counters.iter().zip(&mut self.before).enumerate() {
            let since = |shard: usize| match now[shard].checked_sub(before[shard]) {
                Some(since) => since,
                None => now[shard],
            };
            let packets: [u64; SHARDS] = std::array::from_fn(since);
            let total: f64 = packets.iter().map(|count| *count as f64).sum();
            let unit = busy.map(|busy| {
                let busy = busy.get(worker).copied().unwrap_or(0.0);
                let busy = if busy.is_finite() { f64::from(busy.clamp(0.0, 1.0)) } else { 0.0 };
                if total > 0.0 { busy * CORE as f64 / total } else { 0.0 }
            });
            for (load, count) in loads.iter_mut().zip(packets) {
                let own = unit.map_or(count, |unit| (count as f64 * unit) as u64);
                *load = load.saturating_add(own);
            }
            *before = *now;
        }
        loads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_workers_time_by_packets() {
        let mut meter = Meter::new();
        let mut counters = vec![[0; SHARDS]; 2];
        counters[0][1] = 30;
        counters[0][2] = 10;
        counters[1][3] = 5;
        let loads = meter.read(&counters, None);
        assert_eq!((loads[1], loads[2], loads[3]), (30, 10, 5));
        // Worker 0: three quarters to shard 1; shard 3's packets moved to worker 1 and cost it half of its time.
        counters[0][1] += 300;
        counters[0][2] += 100;
        counters[1][3] += 7;
        let loads = meter.read(&counters, Some(&[0.8, 0.5]));
        assert_eq!((loads[1], loads[2], loads[3]), (600_000, 200_000, 500_000));
        // Nothing since; then a worker that started anew, one more, and figures that are none.
        assert_eq!(meter.read(&counters, Some(&[1.0])), [0; SHARDS]);
        counters[0][1] = 4;
        counters.push([0; SHARDS]);
        counters[2][1] = 2;
        assert_eq!(meter.read(&counters, None)[1], 6);
        counters[2][1] = u64::MAX;
        counters[0][1] = 5;
        assert_eq!(meter.read(&counters, Some(&[f32::NAN, -1.0, 7.0]))[1], CORE);
    }
}
