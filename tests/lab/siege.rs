//! Those who mean harm: what is left of a lab's UPF, and what others notice.

use crate::rig::{alone, lacking, left_of, millrace, said};

/// What `millrace lab attack` and the like report; nothing is left of the lab.
fn besieged(command: &str, args: &[&str]) -> serde_json::Value {
    let name = format!("t{}-{command}", std::process::id());
    let output =
        millrace(&["lab", "--name", &name, command]).args(args).args(["--json", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(left_of(&name), Vec::<String>::new());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Slowly enough for any machine: what is asked is who is dropped and how much is held, and not how long anything takes.
#[test]
fn floods_are_not_at_others_expense() {
    if lacking(&[]) {
        return;
    }
    let _alone = alone();
    let args = ["--rate", "4000", "--probes", "200", "--seconds", "2", "--rounds", "1"];
    let report = besieged("attack", &args);
    let found = |flood: &str, name: &str, phase: Option<&str>| {
        let results = report["results"].as_array().unwrap();
        let same = |result: &&serde_json::Value| {
            let params = &result["params"];
            result["name"] == name
                && params["flood"] == flood
                && phase.is_none_or(|phase| params["phase"] == phase)
        };
        results.iter().find(same).map(|result| result["median"].as_f64().unwrap())
    };
    let floods = [
        "elsewhere",
        "fragments-n6",
        "fragments6-n6",
        "fragments-n3",
        "fragments6-n3",
        "scan4",
        "scan6",
        "scan6-wide",
        "arp",
        "nd",
    ];
    let limit = found("nd", "frames_held_limit", None).unwrap();
    assert!(limit > 0.0, "{report}");
    for flood in floods {
        let value = |name: &str, phase| found(flood, name, phase).unwrap();
        assert!(value("flood_packets_per_second", None) > 0.0, "{flood}");
        for phase in ["idle", "flooded"].map(Some) {
            assert!(value("packets_sent", phase) > 0.0, "{flood} {phase:?}");
            assert!(value("packets_dropped", phase) < 1.0, "{flood} {phase:?}: {report}");
            // What a ring was too full for may have been the innocent's.
            let unexplained = value("packets_lost", phase) - value("packets_missed", phase);
            assert!(unexplained <= 0.0, "{flood} {phase:?}: {unexplained} lost: {report}");
        }
        assert!(value("frames_held", None) <= limit, "{flood}: {report}");
    }
    // Frames are held where tunnels' packets are put together, and for neighbours; nowhere else.
    for (flood, holds) in
        [("fragments-n3", true), ("scan6-wide", true), ("fragments-n6", false), ("arp", false)]
    {
        let held = found(flood, "frames_held", None).unwrap();
        assert!((held > 100.0) == holds, "{flood}: {held} held: {report}");
    }
}

/// The long one is `millrace lab storm`: a million.
#[test]
fn a_storm_of_wrong_requests_leaves_nothing() {
    if lacking(&[]) {
        return;
    }
    let _alone = alone();
    let report = besieged("storm", &["--requests", "20000", "--every", "5000", "--probes", "20"]);
    assert_eq!(report["marks"].as_array().unwrap().len(), 4, "{report}");
    assert_eq!(report["left"], 0, "{report}");
    for (served, least) in [("innocent", 1), ("fresh", 50)] {
        let [sent, lost] = [0, 1].map(|at| report[served][at].as_u64().unwrap());
        assert!(sent >= least && lost == 0, "{served}: {report}");
    }
    // It was a storm: much of it was wrong, and enough was right that there were sessions for the rest to meet.
    let count = |name: &str| report["counts"][name].as_u64().unwrap();
    assert!(count("requests") >= 20_000 && count("wrong") > 10_000, "{report}");
    for (name, least) in [("answers", 5_000), ("established", 500), ("deleted", 100), ("heartbeats", 500)] {
        assert!(count(name) >= least, "{name}: {report}");
    }
}
