//! Workers, their load, and what a packet's way costs them.

use super::Question;
use crate::table::{Page, columns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show workers and their load; or what each stage of a packet's way costs them.
#[cfg(feature = "clap")]
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct WorkersCommand {
    /// What parsing, look-ups, serving and judging cost, counted for a second. Until then nobody pays for it.
    #[arg(long)]
    stages: bool,
}

#[cfg(feature = "clap")]
impl From<WorkersCommand> for super::Request {
    fn from(command: WorkersCommand) -> Self {
        if command.stages { Stages {}.into() } else { Workers {}.into() }
    }
}

/// Workers and their load. Their time is watched for a second: so long the answer takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Workers {}

impl Question for Workers {
    const NAME: &'static str = "workers";
    const SEE: &'static str = "workers.md";
    type Answer = WorkerList;

    fn show(&self, WorkerList { workers }: &WorkerList) -> Page {
        let mut page = Page::table(workers);
        if let Some(recent) = workers.iter().find_map(|worker| worker.recent.as_ref()) {
            let seconds = recent.seconds;
            page.say(format!("PACKETS/S to the first CYCLES/PACKET: of the last {seconds:.1} s.\n"));
        }
        page.say(
            "Busy is time in which there was something to do, with system calls and what else the kernel ran on the core; \
             polling in vain is not.\n",
        );
        page
    }
}

/// All workers.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerList {
    /// In order of number.
    pub workers: Vec<WorkerLine>,
}

/// A worker.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerLine {
    /// Its number.
    pub worker: u16,
    /// Its core; none: not pinned.
    pub core: Option<u16>,
    /// Shards that it owns.
    pub shards: u16,
    /// Packets taken from ports.
    pub received: u64,
    /// Of these, packets of ports on another NUMA node.
    pub remote: u64,
    /// Packets given to ports.
    pub sent: u64,
    /// Packets handed to other workers.
    pub handed_off: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets held back now: for other fragments, or for a neighbour's address.
    #[serde(default)]
    pub held: u64,
    /// The most that may be.
    #[serde(default)]
    pub held_limit: u64,
    /// Share of its time since it started spent in rounds that found something to do, 0 to 1.
    pub busy: f64,
    /// Share of its time spent asleep; the rest it polled in vain.
    pub asleep: f64,
    /// It has nothing to poll, and sleeps until somebody wakes it.
    pub sleeping: bool,
    /// Cycles per packet in those rounds, if there were packets: with the system calls of kernel interfaces, and with what the kernel
    /// ran on its core meanwhile; without polling in vain.
    pub cycles_per_packet: Option<f64>,
    /// The same during the last second.
    #[serde(default)]
    pub recent: Option<RecentLoad>,
}

/// How a worker's time went between two looks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RecentLoad {
    /// Seconds between them.
    pub seconds: f64,
    /// Share of them that it spent in rounds that found something to do.
    pub busy: f64,
    /// Share of them that it spent asleep.
    pub asleep: f64,
    /// Packets that it served in a second.
    pub packets_per_second: f64,
    /// Cycles per packet in those rounds.
    pub cycles_per_packet: Option<f64>,
}

columns!(WorkerLine, |worker| {
    "WORKER" Right worker.worker,
    "CORE" Right worker.core,
    "SHARDS" Right worker.shards,
    "RECEIVED" Right worker.received,
    "REMOTE" Right worker.remote,
    "SENT" Right worker.sent,
    "HANDED OFF" Right worker.handed_off,
    "DROPPED" Right worker.dropped,
    "HELD" Right worker.held,
    "NOW" Left if worker.sleeping { "asleep" } else { "awake" },
    "PACKETS/S" Right format!("{:.0}", recent(worker).packets_per_second),
    "BUSY" Right percent(recent(worker).busy),
    "ASLEEP" Right percent(recent(worker).asleep),
    "CYCLES/PACKET" Right cycles(recent(worker).cycles_per_packet),
    "BUSY SINCE START" Right percent(worker.busy),
    "CYCLES/PACKET" Right cycles(worker.cycles_per_packet),
});

fn recent(worker: &WorkerLine) -> RecentLoad {
    worker.recent.clone().unwrap_or_default()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn cycles(cycles: Option<f64>) -> Option<String> {
    cycles.map(|cycles| format!("{cycles:.0}"))
}

/// What each stage of a packet's way costs, counted for a second. Until then nobody pays for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stages {}

impl Question for Stages {
    const NAME: &'static str = "stages";
    type Answer = StagesList;

    fn show(&self, StagesList { stages }: &StagesList) -> Page {
        let mut rows = Vec::new();
        for StagesLine { worker, packets, stages, .. } in stages {
            let all: Option<f64> = stages.iter().map(|stage| stage.cycles_per_packet).sum();
            let mut row = |stage: &str, cycles: Option<f64>| {
                let share = cycles.zip(all).map(|(part, all)| part / all.max(1e-9));
                rows.push(StageRow {
                    worker: *worker,
                    packets: *packets,
                    stage: stage.to_owned(),
                    cycles,
                    share,
                });
            };
            stages.iter().for_each(|stage| row(&stage.stage, stage.cycles_per_packet));
            row("all", all);
        }
        let mut page = Page::table(&rows);
        page.say(
            "Counted for a second, of all packets alike: a stage that few of them take costs those few more. Receiving and sending \
             are not in it (see `ctl workers`).\n",
        );
        page
    }
}

/// What stages cost, by worker.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StagesList {
    /// In order of number.
    pub stages: Vec<StagesLine>,
}

/// What the stages of a packet's way cost a worker.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StagesLine {
    /// Its number.
    pub worker: u16,
    /// Packets that went through them while it was counted.
    pub packets: u64,
    /// Their bursts.
    pub bursts: u64,
    /// In the packet's order.
    pub stages: Vec<StageLine>,
}

/// What a stage of a packet's way costs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StageLine {
    /// Its name.
    pub stage: String,
    /// Cycles per packet, of all packets; none: there were no packets.
    pub cycles_per_packet: Option<f64>,
}

struct StageRow {
    worker: u16,
    packets: u64,
    stage: String,
    cycles: Option<f64>,
    share: Option<f64>,
}

columns!(StageRow, |row| {
    "WORKER" Right row.worker,
    "PACKETS" Right row.packets,
    "STAGE" Left row.stage,
    "CYCLES/PACKET" Right row.cycles.map(|cycles| format!("{cycles:.1}")),
    "SHARE" Right row.share.map(percent),
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_now_and_since_it_started() {
        let worker = WorkerLine {
            core: Some(2),
            shards: 512,
            received: 1_000,
            remote: 250,
            held: 7,
            held_limit: 3_400,
            busy: 0.375,
            asleep: 0.5,
            sleeping: true,
            cycles_per_packet: Some(171.2),
            recent: Some(RecentLoad {
                seconds: 1.01,
                busy: 0.75,
                packets_per_second: 4_000_000.0,
                cycles_per_packet: Some(140.4),
                ..RecentLoad::default()
            }),
            ..WorkerLine::default()
        };
        insta::assert_snapshot!(Workers {}.show(&WorkerList { workers: vec![worker] }));
    }
}
