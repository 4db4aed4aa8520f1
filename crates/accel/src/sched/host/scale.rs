//! The thesis' tests on a machine that is faster or slower than its Jetson.
//!
//! Its rates are for an accelerator that takes [`JETSON_RATE`] packets a second through both steps: the low test asks for 0.21 of that, the medium one for 0.56. On another machine they are the same
//! shares of what its accelerator takes, so the tests ask as much of a scheduler there as they do here. Times scale by what a packet takes through a busy accelerator:
//!
//! | scales with the rate | scales with the time |
//! |---|---|
//! | packets a second of all loads | deadlines |
//! | levels of `q-learning` | what batches of the thesis' schedulers wait |
//! | | how much work `adaptive` lets a core have, and how long it lets a batch wait at most |
//!
//! Both are measured as `static` is calibrated, the Jetson's time on the simulated one. Nobody knows what the host draws, so `adaptive` isn't thrifty there.

use super::Settings;
use crate::sched::packet::{Chain, DEADLINE, PacketTable};
use crate::sched::run::{self, Machine, measure, measure_on};
use crate::sched::traffic::{Load, STANDARD, Test};

/// Packets a second that the Jetson's accelerator takes through both steps: 9.06 ms for a batch of 128, and what is between them.
pub const JETSON_RATE: f64 = 14_600.0;

/// A test, and the machine that it is run on.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSettings {
    /// The test; what it says of the Jetson isn't looked at.
    pub test: run::Settings,
    /// The machine.
    pub host: Settings,
}

/// This machine, measured by the Jetson.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Packets a second through its accelerator, by the Jetson's.
    pub rate: f64,
    /// What a packet takes through its busy accelerator, by the Jetson's.
    pub time: f64,
}

impl Scale {
    /// Measures both.
    pub fn measured<M: Machine>(machine: &M) -> Result<Self, M::Error> {
        let settings = run::Settings::thesis(Test::Stress, Chain::Once);
        let (jetson, here) = (measure(&settings), measure_on(machine, &settings)?);
        let time = here.accelerator_latency as f64 / jetson.accelerator_latency.max(1) as f64;
        Ok(Self { rate: here.accelerator_rate / JETSON_RATE, time })
    }

    /// A test of the thesis for this machine. The standard test's minute is shortened to so many seconds, evenly.
    pub fn test(&self, test: Test, chain: Chain, seconds: u32) -> run::Settings {
        let mut settings = run::Settings { seconds, ..run::Settings::thesis(test, chain) };
        let packets = |rate: u32| (f64::from(rate) * self.rate).round() as u32;
        settings.traffic.load = match settings.traffic.load {
            Load::Rates(_) if test == Test::Standard => {
                let of_minute = |second: u32| second as usize * STANDARD.len() / seconds.max(1) as usize;
                Load::Rates((0..seconds).map(|second| packets(STANDARD[of_minute(second)])).collect())
            }
            Load::Rates(rates) => Load::Rates(rates.into_iter().map(packets).collect()),
            other => other,
        };
        settings.levels = settings.levels.map(|level| level * self.rate);
        let time = |nanos: u64| (nanos as f64 * self.time) as u64;
        settings.core.table = PacketTable::thesis(time(DEADLINE));
        let batching = &mut settings.batching;
        for nanos in [
            &mut batching.flush_after,
            &mut batching.worth.grace,
            &mut batching.ahead,
            &mut batching.patience,
        ] {
            *nanos = time(*nanos);
        }
        let adaptive = &mut settings.adaptive;
        adaptive.most_backlog *= self.time;
        adaptive.most_wait *= self.time;
        adaptive.thrift = 0.0;
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::run::Simulated;

    #[test]
    fn the_jetson_is_scaled_by_one() {
        let Ok(scale) = Scale::measured(&Simulated);
        assert!((scale.rate - 1.0).abs() < 0.05 && (scale.time - 1.0).abs() < 1e-9, "{scale:?}");
    }

    #[test]
    fn a_machine_twice_as_fast_gets_twice_as_much_in_half_the_time() {
        let scale = Scale { rate: 2.0, time: 0.5 };
        let low = scale.test(Test::Low, Chain::EachStep, 7);
        assert_eq!((low.seconds, &low.traffic.load), (7, &Load::Rates(vec![6_092])));
        assert_eq!(low.core.table.kinds()[0].within, Some(DEADLINE / 2));
        assert_eq!((low.batching.ahead, low.batching.worth.grace), (12_500_000, 10_000_000));
        assert_eq!(low.levels.map(|level| level.round() as u32), [8_000, 16_000, 24_000, 32_000]);
        let standard = scale.test(Test::Standard, Chain::Once, 15);
        let Load::Rates(rates) = standard.traffic.load else { panic!("the standard test has rates") };
        assert_eq!((rates.len(), rates[0], rates[14]), (15, 7_200, 2 * STANDARD[56]));
        assert_eq!(scale.test(Test::Stress, Chain::Once, 1).traffic.load, Load::Unbounded);
    }
}
