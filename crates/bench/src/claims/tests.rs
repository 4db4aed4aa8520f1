#![allow(clippy::unwrap_used)]
use super::*;
use tables::clock::Tsc;

const QUIET: Fitness = Fitness { lost_percent: 0.2, longest_us: 60.0 };

/// A result: name, parameters, value.
type Result<'a> = (&'static str, &'a [(&'static str, Param)], f64);

/// A report of these results.
fn report(scenario: &'static str, results: &[Result<'_>]) -> Report {
    let mut report = Report::new(scenario, &Tsc::process());
    let measured = results.iter().map(|(name, params, value)| Measured::of(name, "", params, &[*value]));
    report.results.extend(measured);
    report
}

fn verdicts(report: &Report) -> Vec<&'static str> {
    judge(report, QUIET).iter().map(|claim| claim.verdict.word()).collect()
}

fn rates(rtc: [f64; 4], pipeline: [f64; 4]) -> Report {
    let mut results = Vec::new();
    for (model, rates) in [("rtc", rtc), ("pipeline-returning", pipeline)] {
        for (place, rate) in rates.into_iter().enumerate() {
            let direction = if place < 2 { "uplink" } else { "downlink" };
            let payload = if place % 2 == 0 { 64 } else { 1_024_u64 };
            let params =
                [("model", Param::from(model)), ("direction", direction.into()), ("payload", payload.into())];
            results.push(("packets_per_second", params, rate));
        }
    }
    let results: Vec<_> =
        results.iter().map(|(name, params, rate)| (*name, params.as_slice(), *rate)).collect();
    report("payload-size", &results)
}

#[test]
fn a_claim_is_met_or_missed_by_its_own_figures() {
    // In order: by pipeline, by payload, by direction.
    assert_eq!(verdicts(&rates([14.0, 13.9, 13.0, 12.9], [8.0; 4])), ["met", "met", "met"]);
    assert_eq!(verdicts(&rates([14.0, 13.9, 13.0, 12.9], [8.0, 8.0, 8.0, 11.0])), ["missed", "met", "met"]);
    assert_eq!(verdicts(&rates([14.0, 12.0, 13.0, 12.9], [8.0; 4])), ["met", "missed", "missed"]);
    let claims = judge(&rates([14.0, 13.9, 13.0, 12.9], [7.0, 7.0, 6.5, 6.5]), QUIET);
    assert_eq!(
        (claims[0].theirs.as_str(), claims[0].ours.as_str()),
        ("1.3 to 1.4 times", "1.98 to 2.00 times")
    );
    assert_eq!(claims[0].scenario, "payload-size");
}

#[test]
fn nothing_is_judged_on_a_noisy_machine_or_without_figures() {
    let noisy = Fitness { lost_percent: 12.0, ..QUIET };
    for claim in judge(&rates([1.0; 4], [9.0; 4]), noisy) {
        assert!(claim.verdict.why().contains("12.0 %"), "{claim:?}");
        // What was measured is said all the same.
        assert_ne!(claim.ours, "not measured");
    }
    for scenario in ["payload-size", "sessions", "cores", "skew", "scale", "moves"] {
        let claims = judge(&report(scenario, &[]), QUIET);
        assert!(!claims.is_empty());
        for claim in claims {
            assert_eq!(
                (claim.verdict.word(), claim.ours.as_str()),
                ("not judged", "not measured"),
                "{claim:?}"
            );
        }
    }
}

#[test]
fn many_sessions_beyond_theirs_do_not_count() {
    let of = |many: f64| {
        let params = |sessions: u64| {
            [("model", "rtc".into()), ("direction", "uplink".into()), ("sessions", sessions.into())]
        };
        report(
            "sessions",
            &[
                ("packets_per_second", &params(1), 10.0),
                ("packets_per_second", &params(65_536), many),
                ("packets_per_second", &params(1_000_000), 5.0),
            ],
        )
    };
    assert_eq!((verdicts(&of(9.1)), verdicts(&of(8.9))), (vec!["met"], vec!["missed"]));
}

#[test]
fn cores_that_are_none_are_not_held_against_anybody() {
    let of = |speedup: f64, copies: f64| {
        let params = |model: &'static str| [("model", model.into()), ("workers", 2.into())];
        let rate = |workers: u64| {
            [
                ("model", "rtc".into()),
                ("direction", "uplink".into()),
                ("payload", 64.into()),
                ("workers", workers.into()),
            ]
        };
        // A packet of 64 octets takes 130 on the line: 40 Gbit/s are 38 million.
        report(
            "cores",
            &[
                ("speedup", &params("rtc"), speedup),
                ("speedup", &params("copies"), copies),
                ("packets_per_second", &rate(1), 10e6),
                ("packets_per_second", &rate(5), 50e6),
                ("packets_per_second", &rate(4), 40e6),
            ],
        )
    };
    let judged = |report: Report| {
        let claims = judge(&report, QUIET);
        (
            claims[0].verdict.clone(),
            claims[1].ours.clone(),
            claims[1].theirs.clone(),
            claims[1].verdict.word(),
        )
    };
    let (linear, ours, theirs, cores) = judged(of(1.95, 1.5));
    assert_eq!((linear, cores), (Verdict::Met, "met"));
    assert_eq!((ours.as_str(), theirs.as_str()), ("64 B uplink 4", "64 B uplink 5"));
    assert_eq!(judged(of(1.8, 1.95)).0, Verdict::Missed);
    assert!(judged(of(1.53, 1.6)).0.why().contains("did 0.80 each too: these are not whole cores"));
    // What the machine lost excuses no more than that.
    assert_eq!(judged(of(1.5, 1.6)).0, Verdict::Missed);
    assert_eq!(judged(of(1.8, 1.91)).0, Verdict::Missed);
}

/// Packets a second: model, direction, payload, workers, and whether that was calculated.
type Rate = (&'static str, &'static str, Param, u64, f64, bool);

/// How many workers fill the link, and the verdicts on that: run-to-completion, pipeline.
fn filling(rates: &[Rate]) -> Vec<(String, &'static str)> {
    let mut cores = report("cores", &[]);
    for (model, direction, payload, workers, rate, calculated) in rates {
        let mut params = vec![
            ("model", Param::from(*model)),
            ("direction", (*direction).into()),
            ("payload", payload.clone()),
            ("workers", (*workers).into()),
        ];
        params.extend(calculated.then_some(("calculated", "yes".into())));
        cores.results.push(Measured::of("packets_per_second", "1/s", &params, &[*rate]));
    }
    let claims = judge(&cores, QUIET);
    claims[1..].iter().map(|claim| (claim.ours.clone(), claim.verdict.word())).collect()
}

#[test]
fn a_link_is_full_of_the_frames_that_leave_by_it() {
    // 64 octets of payload take 130 uplink, where the tunnel ends, and 174 downlink: 38.5 and 28.7 million fill 40 Gbit/s.
    let uplink = |workers, rate| ("rtc", "uplink", 64.into(), workers, rate, false);
    let downlink = |workers, rate| ("rtc", "downlink", 64.into(), workers, rate, false);
    // IMIX takes 378 and 422 octets: 13.2 and 11.8 million.
    let imix_up = |workers, rate| ("pipeline", "uplink", "imix".into(), workers, rate, false);
    let imix_down = |workers, rate| ("pipeline", "downlink", "imix".into(), workers, rate, false);
    let mut rates = vec![
        uplink(3, 35e6),
        uplink(5, 50e6),
        uplink(4, 38.6e6),
        downlink(3, 28.6e6),
        downlink(4, 28.8e6),
        imix_up(2, 13.1e6),
        imix_up(3, 13.3e6),
        imix_down(3, 11.7e6),
        imix_down(4, 11.9e6),
    ];
    let found = |rtc: &str, pipeline: &str| vec![(rtc.to_owned(), "met"), (pipeline.to_owned(), "met")];
    let rtc = "64 B uplink 4, 64 B downlink 4";
    assert_eq!(filling(&rates), found(rtc, "IMIX uplink 3, IMIX downlink 4"));
    rates.pop();
    let missed = ("IMIX uplink 3, IMIX downlink more than 3".to_owned(), "missed");
    assert_eq!(filling(&rates)[1], missed);
}

#[test]
fn what_is_calculated_can_miss_a_claim_and_not_meet_it() {
    let uplink = |workers, rate, calculated| ("rtc", "uplink", 64.into(), workers, rate, calculated);
    let downlink = |workers, rate, calculated| ("rtc", "downlink", 64.into(), workers, rate, calculated);
    let rtc = |rates: &[Rate]| filling(rates).swap_remove(0);
    let one = uplink(1, 10e6, false);
    assert_eq!(
        rtc(&[one.clone(), uplink(4, 40e6, true)]),
        ("64 B uplink 4 (calculated)".into(), "not judged")
    );
    assert_eq!(rtc(&[one.clone(), uplink(6, 40e6, true)]), ("64 B uplink 6 (calculated)".into(), "missed"));
    assert_eq!(rtc(&[one, uplink(6, 38e6, true)]), ("64 B uplink more than 6".into(), "missed"));
    // One that was measured doesn't make up for one that was not.
    let both = rtc(&[uplink(4, 40e6, false), uplink(5, 50e6, true), downlink(4, 40e6, true)]);
    assert_eq!(both, ("64 B uplink 4, 64 B downlink 4 (calculated)".into(), "not judged"));
}

/// Skewed load: so many workers, and of each step the hot one's load, what was lost of 10,000 packets, and what of that in gaps.
fn skewed(workers: u64, steps: &[(u64, f64, f64)]) -> Vec<Claim> {
    let mut results = vec![("packets_per_second", ("workers", workers), 1e6)];
    for (hot, lost, gaps) in steps {
        let phase = ("phase", *hot);
        results.push(("packets_offered", phase, 10_000.0));
        results.push(("packets_lost", phase, *lost));
        results.push(("packets_lost_running", phase, lost - gaps));
    }
    let mut skew = report("skew", &[]);
    for (name, (key, value), figure) in results {
        let params = [("model", "rtc-rebalancing".into()), (key, value.into())];
        skew.results.push(Measured::of(name, "", &params, &[figure]));
    }
    judge(&skew, QUIET)
}

#[test]
fn a_step_that_all_can_take_is_judged_by_what_it_lost() {
    let verdicts = |workers, steps: &[(u64, f64, f64)]| {
        skewed(workers, steps).iter().map(|claim| claim.verdict.word()).collect::<Vec<_>>()
    };
    let of = |lost: f64, gaps: f64| verdicts(2, &[(150, lost, gaps), (200, 900.0, 0.0)]);
    assert_eq!(of(10.0, 0.0), ["not judged", "met"]);
    assert_eq!(of(11.0, 0.0), ["not judged", "missed"]);
    // What came while a worker did not run may be the machine's doing, or Millrace's own: it is no excuse and no merit.
    let gaps = &skewed(2, &[(150, 500.0, 495.0)])[1];
    assert!(gaps.verdict.why().contains("did not run"), "{gaps:?}");
    assert_eq!(gaps.ours, "5.00 % lost, 0.05 while workers ran");
    assert_eq!(of(500.0, 489.0), ["not judged", "missed"]);
    assert_eq!(of(10.0, 10.0), ["not judged", "met"]);
    // 200 % and 30 % are too much for two workers, 200 % and twice 30 % not for three; the last step is not special.
    assert_eq!(verdicts(3, &[(150, 0.0, 0.0), (200, 900.0, 0.0)]), ["not judged", "missed"]);
    assert_eq!(verdicts(2, &[(100, 0.0, 0.0), (150, 900.0, 0.0)]), ["not judged", "missed"]);
    assert_eq!(verdicts(2, &[(200, 900.0, 0.0)]), ["not judged", "not judged"]);
}

/// Launches: how long they took, packets lost and of those in gaps, and the 99th percentile of latency, all in one launch each.
fn launches(launches: &[(f64, f64, f64, f64)]) -> Report {
    let launch = |&(us, lost, gaps, p99): &(f64, f64, f64, f64)| {
        let mut results = Vec::new();
        for model in ["rtc", "pipeline"] {
            for phase in ["before", "joining", "leaving"] {
                let before = phase == "before";
                let params = vec![("model", Param::from(model)), ("phase", phase.into())];
                let with = |p: &'static str| [params.clone(), vec![("percentile", p.into())]].concat();
                results.push(("latency_us", with("99"), if before { 100.0 } else { p99 }));
                results.push(("latency_us", with("100"), p99 * 10.0));
                results.push(("packets_offered", params.clone(), 1e6));
                results.push(("packets_lost", params.clone(), if before { 0.0 } else { lost }));
                results.push((
                    "packets_lost_running",
                    params.clone(),
                    if before { 0.0 } else { lost - gaps },
                ));
                results.push(("reconfiguration_us", params, us));
            }
        }
        let results: Vec<_> =
            results.iter().map(|(name, params, value)| (*name, params.as_slice(), *value)).collect();
        report("scale", &results)
    };
    let mut all = report("scale", &[]);
    all.add_runs(launches.iter().map(launch).collect());
    all
}

#[test]
fn a_launch_is_judged_by_its_time_its_loss_and_its_latency() {
    let of = |us: f64, lost: f64, p99: f64| launches(&[(us, lost, 0.0, p99)]);
    assert_eq!(verdicts(&of(120.0, 0.0, 150.0)), ["met"; 6]);
    assert_eq!(verdicts(&of(5_100.0, 0.0, 150.0)), ["met", "met", "missed", "met", "met", "met"]);
    assert_eq!(verdicts(&of(120.0, 1.0, 250.0)), ["met", "met", "met", "missed", "missed", "missed"]);
    assert_eq!(
        verdicts(&of(500_000.0, 0.0, 11_000.0)),
        ["missed", "missed", "missed", "met", "missed", "met"]
    );
}

#[test]
fn no_launch_may_lose_and_none_be_late() {
    let of = |lost: [f64; 5], gaps: [f64; 5], p99: [f64; 5]| {
        let each = |launch: usize| (120.0, lost[launch], gaps[launch], p99[launch]);
        launches(&[0, 1, 2, 3, 4].map(each))
    };
    let (none, same) = ([0.0; 5], [150.0; 5]);
    let lossy = [0.0, 0.0, 0.0, 5.0, 9.0];
    assert_eq!(verdicts(&of(lossy, none, same)), ["met", "met", "met", "missed", "met", "missed"]);
    assert_eq!(judge(&of(lossy, none, same), QUIET)[3].ours, "9.00 packets lost, 9.00 while workers ran");
    // The gaps of one launch don't excuse what another one lost.
    let gaps = [0.0, 0.0, 0.0, 5.0, 0.0];
    assert_eq!(verdicts(&of(lossy, gaps, same))[3], "missed");
    assert_eq!(verdicts(&of(lossy, lossy, same)), ["met", "met", "met", "not judged", "met", "not judged"]);
    // The longest latency is that of all launches, in milliseconds; the 99th percentile that of the one in the middle.
    let late = of(none, none, [150.0, 150.0, 150.0, 150.0, 10_001.0]);
    assert_eq!(verdicts(&late), ["met", "missed", "met", "met", "met", "met"]);
}

#[test]
fn moves_lose_and_reorder_nothing() {
    let of = |shards: u64, reordered: f64| {
        let params = [("shards", shards.into())];
        report("moves", &[("packets_reordered", &params, reordered), ("packets_lost_inside", &params, 0.0)])
    };
    assert_eq!(verdicts(&of(32, 0.0)), ["met", "met"]);
    assert_eq!(verdicts(&of(32, 1.0)), ["missed", "met"]);
    // Where nothing moved nothing is shown.
    assert_eq!(verdicts(&of(0, 0.0)), ["not judged"; 2]);
}

#[test]
fn no_machine_makes_a_packet_overtake_another() {
    let noisy = Fitness { lost_percent: 12.0, ..QUIET };
    let of = |phases: &[(f64, f64)], fitness| {
        let mut moves = report("moves", &[]);
        for (rate, (reordered, hurried)) in phases.iter().enumerate() {
            let params = [("shards", 32.into()), ("rate", (rate as u64).into())];
            let figures = [
                ("packets_reordered", *reordered),
                ("moves_hurried", *hurried),
                ("packets_lost_inside", 1.0),
            ];
            moves.results.extend(figures.map(|(name, figure)| Measured::of(name, "", &params, &[figure])));
        }
        judge(&moves, fitness).iter().map(|claim| claim.verdict.word()).collect::<Vec<_>>()
    };
    assert_eq!(of(&[(3.0, 0.0), (0.0, 0.0)], noisy), ["missed", "not judged"]);
    assert_eq!(of(&[(0.0, 0.0)], noisy), ["not judged"; 2]);
    // But it may hold a worker up for longer than a giver waits, and then a late packet is overtaken.
    assert_eq!(of(&[(3.0, 1.0)], noisy), ["not judged"; 2]);
    assert_eq!(of(&[(3.0, 1.0), (1.0, 0.0)], noisy), ["missed", "not judged"]);
    assert_eq!(of(&[(3.0, 1.0)], QUIET), ["missed"; 2]);
}
