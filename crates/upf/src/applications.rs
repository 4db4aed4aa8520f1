//! What applications' traffic came to, all workers together: for `ctl` and for metrics.
//!
//! A worker tells its sums now and then, and soon after somebody has asked ([`datapath::carried`]). They only grow, so the last word of each
//! worker, added up, is what the UPF has carried, whatever became of the worker since.

use super::labels::Names;
use super::view::View;
use super::{Backend, sums};
use api::{Answers, ApplicationLine, ApplicationList, Applications, CtlError, SumOf};
use counters::Count;
use datapath::carried::{ApplicationCounters, ApplicationSum};
use datapath::command::Command;
use datapath::inspect::Inspected;
use pfcp::calendar::utc_millis;
use session::rules::Application;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tables::Nanos;

/// So long workers are waited for; then it is said how old their word is.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// Applications that have metrics of their own, at most.
const CHARTED: usize = 64;

/// A worker's last word.
#[derive(Clone, Debug)]
struct Told {
    at: Nanos,
    inspected: Inspected,
    sums: Arc<[ApplicationSum]>,
}

#[derive(Debug, Default)]
struct Board {
    names: Names,
    /// By worker.
    told: BTreeMap<usize, Told>,
    /// Applications that have metrics of their own: as long as the process lives, since a metric must not fall.
    charted: BTreeSet<Application>,
}

/// Where control writes down what workers have told, and anybody reads it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums(Arc<Mutex<Board>>);

impl Sums {
    fn with<R>(&self, work: impl FnOnce(&mut Board) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A worker has told: what flows had carried then.
    pub fn tell(&self, worker: usize, at: Nanos, inspected: Inspected, sums: Box<[ApplicationSum]>) {
        let told = Told { at, inspected, sums: sums.into() };
        // Whoever reads it meanwhile keeps the former one.
        let _former = self.with(|board| board.told.insert(worker, told));
    }

    /// There are other names.
    pub fn learn(&self, names: &Names) {
        let names = names.clone();
        self.with(|board| board.names = names);
    }

    fn read(&self) -> (Names, Vec<(usize, Told)>) {
        self.with(|board| {
            let told = board.told.iter().map(|(worker, told)| (*worker, told.clone())).collect();
            (board.names.clone(), told)
        })
    }

    /// What metrics tell: applications with a name of their own in them, and the others together, without one. Who has metrics keeps them; of
    /// those that are new the largest come first, as long as there is room.
    pub fn charted(&self) -> Vec<(String, ApplicationCounters)> {
        let (names, told) = self.read();
        let all = sum(told.iter().map(|(_, told)| &*told.sums));
        let mut unknown = ApplicationCounters::default();
        let mut others = ApplicationCounters::default();
        let mut charted = Vec::new();
        self.with(|board| {
            for (application, counters) in all {
                let Some(application) = application else {
                    unknown = counters;
                    continue;
                };
                let has_room = board.charted.len() < CHARTED && application != Application::NOBODYS;
                if has_room {
                    board.charted.insert(application);
                }
                match names.of(application).filter(|_| board.charted.contains(&application)) {
                    Some(name) => charted.push((name.to_owned(), counters)),
                    None => others.merge(&counters),
                }
            }
        });
        charted.push((SumOf::Unknown.name().into(), unknown));
        charted.push((SumOf::Others.name().into(), others));
        charted
    }
}

/// Added up by application, the largest first.
fn sum<'s>(
    told: impl Iterator<Item = &'s [ApplicationSum]>,
) -> Vec<(Option<Application>, ApplicationCounters)> {
    let mut all = BTreeMap::<Option<Application>, ApplicationCounters>::new();
    for ApplicationSum { application, counters } in told.flatten() {
        all.entry(*application).or_default().merge(counters);
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, counters)| Reverse(counters.both().bytes));
    all
}

impl Answers<Applications> for Backend {
    fn answer(&self, asked: Applications) -> Result<ApplicationList, CtlError> {
        let (then, workers) = self.ask(|upf| {
            let workers: Vec<_> =
                (0..upf.engine.workers()).filter(|worker| upf.engine.is_alive(*worker)).collect();
            let then = upf.clock.now();
            upf.engine.broadcast(|| Command::CountCarried);
            upf.engine.flush();
            Ok((then, workers))
        })?;
        // This thread is the asker's own: nobody else waits.
        let until = Instant::now() + PATIENCE;
        let (names, told) = loop {
            let (names, told) = self.view.applications.read();
            let has_told =
                |worker: &usize| told.iter().any(|(other, told)| other == worker && told.at >= then);
            if workers.iter().all(has_told) || Instant::now() > until {
                break (names, told);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        };
        // All packets that are in these sums are in these, too. A worker that hangs is told of elsewhere.
        let reports = self.view.after_now().unwrap_or_else(|_| self.view.reports());
        let counters = sums::counters(&reports);
        let oldest =
            told.iter().filter(|(worker, _)| workers.contains(worker)).map(|(_, told)| told.at).min();
        let behind = oldest.map_or(0, |at| then.since(at) / (Nanos::SECOND / 1_000));
        let forwarded = counters.uplink.plus(counters.downlink);
        Ok(ApplicationList {
            since: since(&self.view),
            applications: lines(&names, &told, asked.top),
            forwarded_packets: forwarded.packets,
            forwarded_bytes: forwarded.bytes,
            under_question: told.iter().map(|(_, told)| told.inspected.open as u64).sum(),
            behind_milliseconds: behind,
        })
    }
}

/// When the UPF started.
fn since(view: &View) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc_millis(now.saturating_sub(view.started.elapsed()))
}

fn lines(names: &Names, told: &[(usize, Told)], top: Option<u32>) -> Vec<ApplicationLine> {
    let top = top.map_or(usize::MAX, |top| top as usize);
    let mut others = ApplicationLine { of: SumOf::Others, ..ApplicationLine::default() };
    let mut lines = Vec::new();
    for (application, counters) in sum(told.iter().map(|(_, told)| &*told.sums)) {
        let name = application.map(|application| names.of(application));
        let line = ApplicationLine {
            application: name.flatten().map(Into::into),
            of: if application.is_none() { SumOf::Unknown } else { SumOf::Application },
            conversations: counters.conversations,
            live: counters.live(),
            uplink_packets: counters.uplink.packets,
            uplink_bytes: counters.uplink.bytes,
            downlink_packets: counters.downlink.packets,
            downlink_bytes: counters.downlink.bytes,
        };
        // There is no name for those for which workers had no room.
        if lines.len() < top && name != Some(None) { lines.push(line) } else { others.add(&line) }
    }
    if others.conversations > 0 {
        lines.push(others);
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use datapath::Traffic;
    use session::applications::Applications as Known;

    fn sum_of(application: Option<u16>, packets: u64) -> ApplicationSum {
        let downlink = Traffic { packets, bytes: 100 * packets };
        let counters = ApplicationCounters { conversations: 1, downlink, ..ApplicationCounters::default() };
        ApplicationSum { application: application.map(Application), counters }
    }

    fn board(names: u16) -> Sums {
        let mut known = Known::default();
        (0..names).for_each(|number| assert_eq!(known.number(format!("a{number}").as_bytes()).0, number));
        let (sums, mut learnt) = (Sums::default(), Names::default());
        learnt.learn(&known);
        sums.learn(&learnt);
        sums
    }

    #[test]
    fn workers_last_words_are_added_up_the_largest_first() {
        let sums = board(3);
        let inspected = Inspected::default();
        sums.tell(0, Nanos(1), inspected, [sum_of(Some(0), 900)].into());
        sums.tell(0, Nanos(2), inspected, [sum_of(Some(0), 5), sum_of(None, 4), sum_of(Some(1), 1)].into());
        sums.tell(1, Nanos(2), inspected, [sum_of(Some(1), 9), sum_of(Some(u16::MAX), 2)].into());
        let (names, told) = sums.read();
        let shown = |top| {
            let line = |line: ApplicationLine| {
                (line.application, line.of, line.downlink_packets, line.conversations)
            };
            lines(&names, &told, top).into_iter().map(line).collect::<Vec<_>>()
        };
        let (a0, a1) = (Some("a0".to_owned()), Some("a1".to_owned()));
        let all = [
            (a1.clone(), SumOf::Application, 10, 2),
            (a0, SumOf::Application, 5, 1),
            (None, SumOf::Unknown, 4, 1),
            (None, SumOf::Others, 2, 1),
        ];
        assert_eq!(shown(None), all);
        assert_eq!(shown(Some(1)), [(a1, SumOf::Application, 10, 2), (None, SumOf::Others, 11, 3)]);
    }

    #[test]
    fn metrics_are_of_so_many_and_none_ever_falls() {
        let sums = board(200);
        let told = |packets: &dyn Fn(u16) -> u64| {
            let all: Vec<_> = (0..200).map(|it| sum_of(Some(it), packets(it))).collect();
            sums.tell(0, Nanos(1), Inspected::default(), all.into());
            let told = sums.charted();
            assert_eq!(told.len(), CHARTED + 2);
            told.into_iter()
                .map(|(name, counters)| (name, counters.downlink.packets))
                .collect::<BTreeMap<_, _>>()
        };
        let before = told(&|it| u64::from(it) + 1);
        assert_eq!((before["a199"], before.get("a1")), (200, None), "the largest");
        let others: u64 = (1..=200 - 64).sum();
        assert_eq!(before["(others)"], others);
        // Others are the largest now: who has metrics keeps them.
        let after = told(&|it| 1_000 - u64::from(it));
        assert!(before.keys().eq(after.keys()));
        assert!(before.iter().all(|(name, packets)| after[name] >= *packets));
        assert_eq!(after.values().sum::<u64>(), (0..200).map(|it| 1_000 - it).sum::<u64>());
    }
}
