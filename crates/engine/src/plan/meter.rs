//! What each shard costs, from what workers count.

use session::SHARDS;

/// Turns counters that only grow into the packets of each shard since the last reading, for
/// [`Planner::observe`](super::Planner::observe).
///
/// RSS++ splits the time that a core was busy among its buckets by their packets. A worker that polls is busy nearly all the time, even
/// with a third of what it could do, since it takes each packet by itself; so that time tells nothing, and packets are what a load is.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    before: Vec<[u64; SHARDS]>,
}

impl Meter {
    /// Nothing was read yet: the first reading counts from zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// The packets of each shard since the last reading. `counters`: packets by worker and shard. Counters that went back
    /// (a worker was started anew) count from zero.
    pub fn read(&mut self, counters: &[[u64; SHARDS]]) -> [u64; SHARDS] {
        let mut loads = [0_u64; SHARDS];
        self.before.resize(counters.len(), [0; SHARDS]);
        for (now, before) in counters.iter().zip(&mut self.before) {
            for ((load, now), before) in loads.iter_mut().zip(now).zip(before.iter_mut()) {
                *load = load.saturating_add(now.checked_sub(*before).unwrap_or(*now));
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
    fn counts_what_came_since() {
        let mut meter = Meter::new();
        let mut counters = vec![[0; SHARDS]; 2];
        counters[0][1] = 30;
        counters[0][2] = 10;
        counters[1][3] = 5;
        let loads = meter.read(&counters);
        assert_eq!((loads[1], loads[2], loads[3]), (30, 10, 5));
        // Shard 3 has moved: both workers have had packets of it.
        counters[0][1] += 300;
        counters[0][3] += 100;
        counters[1][3] += 7;
        let loads = meter.read(&counters);
        assert_eq!((loads[1], loads[2], loads[3]), (300, 0, 107));
        // Nothing since; then a worker that started anew, and one more.
        assert_eq!(meter.read(&counters), [0; SHARDS]);
        counters[0][1] = 4;
        counters.push([0; SHARDS]);
        counters[2][1] = 2;
        assert_eq!(meter.read(&counters)[1], 6);
        counters[2][1] = u64::MAX;
        counters[0][1] = 5;
        assert_eq!(meter.read(&counters)[1], u64::MAX - 1);
    }
}
