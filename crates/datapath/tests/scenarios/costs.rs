//! What stages cost, counted while somebody asks.

use super::*;
use datapath::{Stage, StageCosts};
use tables::clock::Tsc;

#[test]
fn stages_are_counted_while_somebody_asks_and_no_longer() {
    let (mut worker, flow) = with_flows(|_| ());
    let ask = |worker: &mut Worker, seconds: u64| {
        let until = worker.now.plus(seconds * Nanos::SECOND);
        worker.apply(Command::CountStages { clock: Tsc::process(), until });
    };
    worker.process(1, &[flow(1)]);
    assert_eq!(worker.datapath.stage_costs(), StageCosts::default(), "nobody asked");
    ask(&mut worker, 2);
    worker.process(1, &[flow(1), flow(1), flow(2)]);
    let counted = worker.datapath.stage_costs();
    assert_eq!((counted.packets, counted.bursts), (3, 1));
    for (stage, ticks) in counted.ticks.iter() {
        // There is no NAT, and nobody's source is checked.
        let passed = [Stage::Parse, Stage::Locate, Stage::LookCloser, Stage::Serve, Stage::Judge];
        assert_eq!(ticks > 0, passed.contains(&stage), "{stage:?}: {ticks}");
    }
    // Whoever asks meanwhile sees what is counted for both.
    worker.now = worker.now.plus(Nanos::SECOND);
    ask(&mut worker, 2);
    worker.now = worker.now.plus(3 * Nanos::SECOND / 2);
    worker.process(0, &[uplink(&inner(UE, HOST, 10), UE)]);
    assert_eq!(worker.datapath.stage_costs().packets, 4);
    let last = worker.datapath.stage_costs();
    worker.now = worker.now.plus(Nanos::SECOND);
    worker.process(1, &[flow(1)]);
    assert_eq!(worker.datapath.stage_costs(), last, "nobody asks any more");
    ask(&mut worker, 1);
    assert_eq!(worker.datapath.stage_costs(), StageCosts::default(), "anew");
    // Also where no packet came in between, which would have noticed that the time is over.
    worker.process(1, &[flow(1)]);
    worker.now = worker.now.plus(2 * Nanos::SECOND);
    ask(&mut worker, 1);
    assert_eq!(worker.datapath.stage_costs(), StageCosts::default(), "anew");
}
