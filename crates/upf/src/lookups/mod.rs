//! Who answers workers' look-ups: chosen from what the configuration wants and the machine has, and told.

mod device;
pub mod gpu;

pub use device::{Accelerated, Unfit};

use api::{LookupStatus, LookupWorkerLine};
use config::LookupBy;
use counters::Count;
use engine::{OpenLookups, WorkerReport};
use std::sync::Arc;

/// Looks for a CUDA device, once: what opens it for a worker, or why there is none.
pub type FindLookups = Arc<dyn Fn() -> Result<OpenLookups, String> + Send + Sync>;

/// Look-ups are to be a CUDA device's, and there is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no CUDA device: {0}")]
pub struct NoLookupDevice(String);

/// What workers get. `find`: who looks for a device; nobody, if the program can't drive any.
pub fn choose(wanted: LookupBy, find: Option<&FindLookups>) -> Result<Option<OpenLookups>, NoLookupDevice> {
    let found = || find.map_or_else(|| Err("this program drives none".to_owned()), |find| find());
    match wanted {
        LookupBy::Cpu => Ok(None),
        LookupBy::Cuda => found().map(Some).map_err(NoLookupDevice),
        LookupBy::Auto => Ok(found()
            .inspect_err(|why| tracing::info!(why, "no CUDA device: workers look up by themselves"))
            .ok()),
    }
}

/// What [`choose`] would come to on a machine with these devices, in a sentence. Nothing is opened.
pub fn foretell(wanted: LookupBy, devices: Result<Vec<String>, String>) -> Result<String, NoLookupDevice> {
    match (wanted, devices) {
        (LookupBy::Cpu, _) => Ok("workers look up by themselves".into()),
        (_, Ok(devices)) => {
            Ok(format!("a CUDA device looks up for workers under load: {}", devices.join("; ")))
        }
        (LookupBy::Auto, Err(why)) => Ok(format!("no CUDA device: {why}; workers look up by themselves")),
        (LookupBy::Cuda, Err(why)) => Err(NoLookupDevice(why)),
    }
}

/// What all workers' reports say of it.
pub(super) fn describe(reports: &[WorkerReport]) -> LookupStatus {
    let line = |report: &WorkerReport| {
        let of = report.lookups?;
        Some(LookupWorkerLine {
            worker: report.worker as u16,
            lost: of.lost > 0,
            asked: of.asked,
            answered: of.answered,
            mean_wait_us: of.waited / of.answered.max(1) / 1_000,
        })
    };
    let counters = crate::sums::lookups(reports).map(|sum| sum.lines()).unwrap_or_default();
    let counters = counters.iter().map(crate::convert::counter);
    LookupStatus { workers: reports.iter().filter_map(line).collect(), counters: counters.collect() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use engine::LookupCounters;

    #[test]
    fn cuda_is_there_or_refused_and_auto_takes_what_there_is() {
        let none: FindLookups = Arc::new(|| Err("the driver says 100".to_owned()));
        let some: FindLookups = Arc::new(|| Ok(Arc::new(|_| None)));
        let chosen = |wanted, find: Option<&FindLookups>| choose(wanted, find).map(|found| found.is_some());
        for find in [None, Some(&none)] {
            assert_eq!(chosen(LookupBy::Cpu, find), Ok(false));
            assert_eq!(chosen(LookupBy::Auto, find), Ok(false));
        }
        let (there, gone) = (|| Ok(vec!["a GPU".to_owned()]), || Err("the driver says 100".to_owned()));
        let auto = foretell(LookupBy::Auto, gone()).unwrap();
        assert_eq!(auto, "no CUDA device: the driver says 100; workers look up by themselves");
        assert!(foretell(LookupBy::Cpu, gone()).is_ok());
        let refused = chosen(LookupBy::Cuda, Some(&none)).unwrap_err();
        assert_eq!(refused.to_string(), "no CUDA device: the driver says 100");
        assert_eq!(foretell(LookupBy::Cuda, gone()), Err(refused));
        assert!(chosen(LookupBy::Cuda, None).unwrap_err().to_string().ends_with("this program drives none"));
        assert_eq!(chosen(LookupBy::Cpu, Some(&some)), Ok(false));
        assert_eq!(
            (chosen(LookupBy::Cuda, Some(&some)), chosen(LookupBy::Auto, Some(&some))),
            (Ok(true), Ok(true))
        );
        assert!(foretell(LookupBy::Auto, there()).unwrap().ends_with("under load: a GPU"));
    }

    #[test]
    fn workers_with_a_device_are_described() {
        let of =
            LookupCounters { asked: 5, answered: 4, waited: 40_999, lost: 1, ..LookupCounters::default() };
        let reports = [
            WorkerReport::default(),
            WorkerReport { worker: 3, lookups: Some(of), ..WorkerReport::default() },
        ];
        let told = describe(&reports);
        let line = LookupWorkerLine { worker: 3, lost: true, asked: 5, answered: 4, mean_wait_us: 10 };
        assert_eq!(told.workers, [line]);
        assert!(told.counters.iter().any(|line| line.counter == "answered" && line.value == 4));
        assert_eq!(describe(&reports[..1]), LookupStatus::default());
    }
}
