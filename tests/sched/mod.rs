//! `millrace sched` as a user meets it.

use super::{ends, millrace};
use testing::Directory;

/// Ends with 0; standard output.
fn told(args: &[&str]) -> String {
    ends(&millrace(&[&["sched"], args].concat()).output().unwrap(), 0).0
}

/// Ends with 2, having printed nothing but why.
fn refused(args: &[&str]) -> String {
    let (stdout, stderr) = ends(&millrace(&[&["sched"], args].concat()).output().unwrap(), 2);
    assert_eq!(stdout, "", "{args:?}");
    stderr
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&told(args)).unwrap()
}

fn file(directory: &Directory, name: &str, text: &str) -> String {
    let path = directory.0.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_run_is_told_to_people_and_to_scripts() {
    let text =
        told(&["run", "--scheduler", "round-robin", "--config", "C2", "--seconds", "2", "--per-second"]);
    for part in ["test: low\nround-robin in C2", "deadlines missed", "handed_over_again", "second by second"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let told = json(&["run", "--seconds", "2", "--test", "medium", "--json", "-"]);
    let field = |name: &str| told[name].as_str().unwrap();
    assert_eq!(
        [field("platform"), field("scheduler"), field("configuration"), field("test")],
        ["xavier", "adaptive", "C1", "medium"]
    );
    // The last second is that in which what was left over leaves.
    let seconds = told["per_second"].as_array().unwrap();
    assert!(seconds.len() >= 2);
    let sum = |key: &str| seconds.iter().map(|second| second[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(told["total"]["sent"].as_u64().unwrap(), sum("sent"));
    assert_eq!(told["counters"]["sent"].as_u64().unwrap(), sum("sent"));
    assert_eq!(sum("offered"), sum("sent"), "nothing is lost inside, and nothing at the edge");
    let came: u64 = told["edge"].as_array().unwrap().iter().map(|kind| kind["came"].as_u64().unwrap()).sum();
    assert_eq!(came, sum("offered"));
    for key in ["latency_ms", "missed_percent", "in_order_percent", "energy_joules"] {
        assert!(seconds[0][key].is_f64(), "{key}: {told}");
    }
    assert_eq!(seconds[0]["overhead_ms"].as_array().map(Vec::len), Some(3));
    let csv = ends(&millrace(&["sched", "run", "--seconds", "2", "--csv", "-"]).output().unwrap(), 0).0;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("second,offered,sent,") && lines[1].starts_with("0,"), "{csv}");
    assert!(lines.iter().all(|line| line.split(',').count() == 17), "{csv}");
}

#[test]
fn what_came_is_written_down_and_replayed() {
    let directory = Directory::new("sched-trace");
    let trace = file(&directory, "trace.csv", "");
    let first = json(&["run", "--seconds", "2", "--seed", "9", "--write-trace", &trace, "--json", "-"]);
    let again = json(&["run", "--trace", &trace, "--json", "-"]);
    assert_eq!((&first["total"], &first["counters"]), (&again["total"], &again["counters"]));
    assert_eq!(again["test"], trace);
    let rates = file(&directory, "rates", "0 100\n1 0\n2 50\n");
    let rates = json(&["run", "--trace", &rates, "--json", "-"]);
    let offered = |at: usize| rates["per_second"][at]["offered"].as_u64().unwrap();
    // A second's last packet comes as the next one begins.
    assert!((99..=100).contains(&offered(0)) && offered(0) + offered(1) == 100, "{rates}");
    let random = |seed| json(&["run", "--test", "random", "--seed", seed, "--seconds", "2", "--json", "-"]);
    assert_eq!(random("3"), random("3"));
    assert_ne!(random("3")["total"]["sent"], random("4")["total"]["sent"]);
}

#[test]
fn a_scenario_says_what_is_run_and_arguments_come_over_it() {
    let directory = Directory::new("sched-scenario");
    file(&directory, "rates", "0 500\n1 500\n");
    let scenario = file(
        &directory,
        "scenario.toml",
        "[run]\nscheduler = 'round-robin'\nconfiguration = 'C2'\ntrace = 'rates'\n\n[workers]\ncpu = 1\n\n\
         [[fault]]\nat = '500ms'\nworker = 0\nwhat = 'die'\n",
    );
    let own = json(&["run", "--scenario", &scenario, "--json", "-"]);
    assert_eq!([&own["scheduler"], &own["configuration"]], ["round-robin", "C2"]);
    // The core is gone, and what it had is done by another.
    assert!(own["counters"]["handed_over_again"].as_u64().unwrap() > 0, "{own}");
    assert_eq!(own["counters"]["received"], own["counters"]["sent"]);
    let over = ["run", "--scenario", &scenario, "--scheduler", "static", "--config", "C1", "--json", "-"];
    let over = json(&over);
    assert_eq!([&over["scheduler"], &over["configuration"]], ["static", "C1"]);
}

#[test]
fn the_documented_scenario_is_right() {
    let page = include_str!("../../docs/cli.md");
    let text = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let directory = Directory::new("sched-documented");
    let scenario = file(&directory, "scenario.toml", text);
    let told = json(&["run", "--scenario", &scenario, "--seconds", "1", "--json", "-"]);
    assert_eq!([&told["scheduler"], &told["configuration"], &told["test"]], ["adaptive", "C2", "medium"]);
}

#[test]
fn a_trained_table_is_used_where_it_fits() {
    let directory = Directory::new("sched-table");
    let table = file(&directory, "c1.table", "");
    ends(&millrace(&["sched", "train", "--out", &table, "--seconds", "10"]).output().unwrap(), 0);
    let text = std::fs::read_to_string(&table).unwrap();
    assert!(text.starts_with("millrace q-table 1\nconfiguration C1\nworkers 3\n"), "{text}");
    let run = ["run", "--scheduler", "q-learning", "--seconds", "1", "--table", &table];
    assert!(told(&run).contains("q-learning in C1"));
    let foreign = refused(&[&run[..], &["--config", "C2"]].concat());
    assert!(foreign.contains("the q-table was learned for C1 with 3 workers"), "{foreign}");
    let empty = file(&directory, "empty.table", "millrace q-table 1\nconfiguration C1\nworkers 3\n");
    let untrained = refused(&["run", "--scheduler", "q-learning", "--table", &empty]);
    assert!(untrained.contains("has learned nothing"), "{untrained}");
    let other = file(&directory, "other.table", "0 100\n");
    let other = refused(&["run", "--table", &other]);
    assert!(other.contains("this is no q-table"), "{other}");
}

#[test]
fn thresholds_follow_from_what_is_measured() {
    let calibrated = json(&["calibrate", "--json"]);
    let rate = calibrated["accelerator_packets_per_second"].as_f64().unwrap();
    let least = calibrated["thresholds"]["rate"].as_f64().unwrap();
    assert!(least > 0.0 && least < rate, "{calibrated}");
    assert!(told(&["calibrate"]).contains("static in C1: cores get some above"));
}

#[test]
fn schedulers_are_compared_with_the_thesis() {
    let directory = Directory::new("sched-compare");
    let page = file(&directory, "page.html", "");
    let folder = directory.0.join("figures");
    let few =
        ["compare", "--scheduler", "static,adaptive", "--test", "low", "--seconds", "1", "--config", "C2"];
    let args = [&few[..], &["--markdown", "--html", &page, "--svg", folder.to_str().unwrap()]].concat();
    let markdown = told(&args);
    assert!(markdown.contains("**low test, beside Table 5.1**"), "{markdown}");
    assert!(markdown.contains("| C2 Static | ") && markdown.contains("| C2 adaptive | "), "{markdown}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<svg") && html.contains("(Figure 5.2)"));
    assert!(std::fs::read_to_string(folder.join("low.svg")).unwrap().starts_with("<svg"));
    let compared = json(&[&few[..], &["--json", "-"]].concat());
    assert_eq!(compared["runs"].as_array().map(Vec::len), Some(2));
    let cell = &compared["cells"][0];
    assert_eq!([&cell["table"], &cell["row"], &cell["column"]], ["5.1", "C2 Static", "throughput"]);
    let [thesis, here] = ["thesis", "here"].map(|key| cell[key].as_f64().unwrap());
    let deviation = cell["deviation_percent"].as_f64().unwrap();
    assert!((deviation - (here / thesis - 1.0) * 100.0).abs() < 1e-6, "{cell}");
    assert_eq!(compared["verdicts"][0]["test"], "low");
}

#[test]
fn what_can_not_be_run_is_refused_with_the_reason() {
    let directory = Directory::new("sched-refused");
    let unknown = refused(&["run", "--scheduler", "magic"]);
    assert_eq!(
        unknown,
        "error: there is no scheduler \"magic\"; there are round-robin, static, q-learning, adaptive\n"
    );
    assert_eq!(refused(&["compare", "--scheduler", "magic"]), unknown);
    let trace = file(&directory, "trace", "0 5\n1 many\n");
    let wrong = refused(&["run", "--trace", &trace]);
    assert!(
        wrong.ends_with("line 2 of the trace: a rate is a whole number of packets a second\n"),
        "{wrong}"
    );
    let kind = file(&directory, "kind", "micros,kind,flow,octets\n1,9,0,243\n");
    assert!(refused(&["run", "--trace", &kind]).contains("of kind 9, and the packet table has 5"));
    assert!(refused(&["run", "--trace", "/nonexistent"]).contains("can't read /nonexistent"));
    let scenario = file(&directory, "wrong.toml", "[run]\nsecond = 3\n");
    let wrong = refused(&["run", "--scenario", &scenario]);
    assert!(wrong.starts_with(&format!("{scenario}:2:1: unknown key `second` in [run]\n")), "{wrong}");
    assert!(wrong.contains("did you mean `seconds`?"), "{wrong}");
    let name = file(&directory, "name.toml", "[run]\ntest = 'lo'\n");
    assert!(refused(&["run", "--scenario", &name]).contains("there is no \"lo\""));
    let trace = directory.0.join("stress.csv");
    let stress = refused(&["run", "--test", "stress", "--write-trace", trace.to_str().unwrap()]);
    assert!(stress.contains("there is no trace of that") && !trace.exists(), "{stress}");
    assert!(refused(&["run", "--json", "/nonexistent/x"]).contains("can't write /nonexistent/x"));
    assert!(refused(&["compare", "--test", "random"]).contains("no random test"));
    refused(&["run", "--config", "C3"]);
    refused(&["run", "--seconds", "0"]);
}

#[test]
fn this_machine_s_threads_do_what_the_simulated_ones_do() {
    let args = ["run", "--platform", "host", "--seconds", "1", "--config", "C2", "--json", "-"];
    let told = json(&args);
    assert_eq!(told["platform"], "host");
    let count = |name: &str| told["counters"][name].as_u64().unwrap();
    let lost: u64 = told["edge"].as_array().unwrap().iter().map(|kind| kind["lost"].as_u64().unwrap()).sum();
    assert_eq!(told["total"]["offered"].as_u64().unwrap(), count("sent") + lost);
    assert!(count("sent") > 0 && count("given_up") == 0);
    // What the Jetson draws says nothing of this machine.
    assert!(told["total"].get("power_mw").is_none());
    let stderr = refused(&["run", "--platform", "host", "--seed", "3"]);
    assert!(stderr.contains("--platform host takes no --scenario"), "{stderr}");
    let stderr = refused(&["run", "--platform", "host", "--test", "random"]);
    assert!(stderr.contains("low, medium, stress and standard"), "{stderr}");
    for command in [&["train", "--out", "-"][..], &["calibrate"], &["compare"]] {
        let stderr = refused(&[command, &["--platform", "host"]].concat());
        assert!(stderr.contains("on the simulated machine only"), "{stderr}");
    }
}
