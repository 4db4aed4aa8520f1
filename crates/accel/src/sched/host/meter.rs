//! What workers did, in measured time, and the energy that it took where the machine tells.

use crate::sched::Class;
use crate::sched::packet::Step;
use crate::sched::xavier::power::Activity;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tables::Nanos;

#[derive(Debug, Default)]
struct Sums {
    activity: Activity,
    /// Cores that decode just now, and since when any does.
    decode: (usize, Nanos),
}

/// Adds up what threads did.
#[derive(Debug, Default)]
pub(super) struct Meter(Mutex<Sums>);

impl Meter {
    fn with(&self, change: impl FnOnce(&mut Sums)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn begins(&self, class: Class, step: Step, now: Nanos) {
        if (class, step) == (Class::Cpu, Step::Decode) {
            self.with(|sums| {
                let (cores, since) = &mut sums.decode;
                *since = if *cores == 0 { now } else { *since };
                *cores += 1;
            });
        }
    }

    pub(super) fn ends(&self, class: Class, step: Step, nanos: u64, now: Nanos) {
        let seconds = |nanos: u64| nanos as f64 / Nanos::SECOND as f64;
        self.with(|sums| match class {
            Class::Accelerator => sums.activity.kernel += seconds(nanos),
            Class::Cpu => {
                sums.activity.polling += seconds(nanos);
                if step == Step::Decode {
                    let (cores, since) = &mut sums.decode;
                    *cores = cores.saturating_sub(1);
                    if *cores == 0 {
                        sums.activity.decoding += seconds(now.since(*since));
                    }
                }
            }
        });
    }

    pub(super) fn take(&self) -> Activity {
        let mut taken = Activity::default();
        self.with(|sums| taken = std::mem::take(&mut sums.activity));
        taken
    }
}

/// What Linux tells of the energy that the machine's packages took: RAPL, by the power capping framework's files. Not all machines have it, virtual ones hardly ever, and since 2020 only
/// root may read it.
#[derive(Debug, Default)]
pub(super) struct Energy {
    /// By package: its counter's file, the counter's range, and what it was.
    packages: Vec<(PathBuf, u64, u64)>,
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl Energy {
    /// Packages below a directory like `/sys/class/powercap`; parts of packages are left out.
    pub(super) fn below(directory: &Path) -> Self {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let package = |path: PathBuf| {
            let name = path.file_name()?.to_str()?.strip_prefix("intel-rapl:")?;
            name.parse::<u32>().ok()?;
            let file = path.join("energy_uj");
            let now = number(&file)?;
            Some((file, number(&path.join("max_energy_range_uj")).unwrap_or(u64::MAX), now))
        };
        Self { packages: entries.filter_map(|entry| package(entry.path())).collect() }
    }

    /// Joules since it was asked last; none if nobody knows.
    pub(super) fn take(&mut self) -> Option<f64> {
        let mut sum = 0;
        for (file, range, last) in &mut self.packages {
            let now = number(file)?;
            // The counter begins again behind its range.
            sum += if now >= *last { now - *last } else { range.saturating_sub(*last) + now };
            *last = now;
        }
        (!self.packages.is_empty()).then_some(sum as f64 / 1e6)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn time_in_which_several_cores_decode_counts_once() {
        let meter = Meter::default();
        let decode = (Class::Cpu, Step::Decode);
        let at = |tenths: u64| Nanos(tenths * Nanos::SECOND / 10);
        meter.begins(decode.0, decode.1, at(1));
        meter.begins(decode.0, decode.1, at(2));
        meter.ends(decode.0, decode.1, at(3).0, at(4));
        meter.ends(decode.0, decode.1, at(4).0, at(6));
        meter.ends(Class::Accelerator, Step::Cipher, at(2).0, at(6));
        let Activity { kernel, decoding, polling, .. } = meter.take();
        assert!((kernel - 0.2).abs() < 1e-9 && (decoding - 0.5).abs() < 1e-9 && (polling - 0.7).abs() < 1e-9);
        assert_eq!(meter.take(), Activity::default());
    }

    #[test]
    fn energy_of_packages_and_of_none() {
        let directory = testing::Directory::new("rapl");
        let path = directory.0.as_path();
        assert_eq!(Energy::below(path).take(), None);
        assert_eq!(Energy::below(&path.join("nowhere")).take(), None);
        for (name, energy) in
            [("intel-rapl:0", "1000000"), ("intel-rapl:1", "9000000\n"), ("intel-rapl:0:0", "5")]
        {
            fs::create_dir(path.join(name)).unwrap();
            fs::write(path.join(name).join("energy_uj"), energy).unwrap();
            fs::write(path.join(name).join("max_energy_range_uj"), "10000000").unwrap();
        }
        let mut energy = Energy::below(path);
        assert_eq!(energy.take(), Some(0.0));
        fs::write(path.join("intel-rapl:0/energy_uj"), "3500000").unwrap();
        fs::write(path.join("intel-rapl:1/energy_uj"), "500000").unwrap();
        assert_eq!(energy.take(), Some(2.5 + 1.5));
    }
}
