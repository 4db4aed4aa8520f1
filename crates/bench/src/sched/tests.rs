#![allow(clippy::unwrap_used)]
use super::ablation::{Ablation, INGREDIENTS, TESTS, Without};
use super::fit::Cell;
use super::grid::Wanted;
use super::page::Page;
use super::*;
use crate::progress::{Parts, Silent};
use accel::sched::run::{Settings, simulate};
use accel::sched::traffic::Test;
use std::sync::LazyLock;

static GRID: LazyLock<Grid> = LazyLock::new(|| {
    let schedulers = vec!["round-robin", "static", "adaptive"];
    let tests = vec![Test::Low, Test::Stress];
    let wanted = Wanted { schedulers, tests, ..Wanted::all(2, 5) };
    let mut parts = Parts::default();
    let grid = Grid::run(&wanted, &mut parts).unwrap();
    assert_eq!(parts.0, 12);
    grid
});

const CONFIG: SchedConfig = SchedConfig { seconds: 1, training: 2, driver: 1 };

#[test]
fn a_cell_says_how_far_it_is_off() {
    let cell = |thesis, here| Cell { table: "5.1", row: "C1 ML", column: "missed", unit: "%", thesis, here };
    assert_eq!((cell(20.0, 25.0).deviation(), cell(20.0, 25.0).is_beyond()), (Some(25.0), false));
    assert!(cell(20.0, 25.1).is_beyond() && cell(20.0, 14.9).is_beyond());
    assert_eq!((cell(0.0, 0.0).deviation(), cell(0.0, 0.0).is_beyond()), (Some(0.0), false));
    assert_eq!((cell(0.0, 0.1).deviation(), cell(0.0, 0.1).is_beyond()), (None, true));
    assert_eq!(cell(0.0, 0.1).told(), "from 0");
    assert_eq!(cell(20.0, 25.0).to_string(), "5.1, C1 ML, missed: 20.0 % there, 25.0 % here (+25.0 %)");
}

#[test]
fn every_cell_that_was_run_stands_beside_the_thesis() {
    let cells = fit::of_grid(&GRID);
    let count = |table: &str| cells.iter().filter(|cell| cell.table == table).count();
    // Of q-learning, and of the other two tests, nothing was run.
    assert_eq!((count("5.1"), count("5.3"), count("5.2")), (16, 16, 0));
    assert_eq!((count("5.5"), count("5.6"), count("5.7")), (16, 4, 0));
    assert_eq!((count("Figure 5.5"), count("Figure 5.19"), count("Figure 5.20")), (2, 2, 4));
    let throughput =
        cells.iter().find(|it| (it.table, it.row, it.column) == ("5.1", "C2 Static", "throughput"));
    let here = GRID.find(Test::Low, "static", Chain::EachStep).unwrap().gbps();
    assert_eq!(throughput.map(|it| (it.thesis, it.here)), Some((0.01895, here)));
}

#[test]
fn drivers_are_measured_alone() {
    let cells = fit::drivers(&CONFIG, &mut Silent);
    assert_eq!(cells.len(), 44);
    let of = |table: &str, row: &str| {
        cells.iter().find(|cell| (cell.table, cell.row) == (table, row)).copied().unwrap()
    };
    // What the model goes through exactly.
    for (table, row) in [("4.3", "CPU 243"), ("4.3", "CPU 1458"), ("4.3", "GPU IMIX"), ("4.5", "CPU 1458")] {
        let cell = of(table, row);
        assert!(cell.deviation().unwrap().abs() < 3.0, "{cell}");
    }
    // Two batches of the longest packets take longer than two of the shortest, but by less than their octets say.
    let [short, long] = ["GPU 243", "GPU 1458"].map(|row| of("4.2", row).here);
    assert!(short < long && long < 6.0 * short, "{short} {long}");
}

#[test]
fn results_have_the_names_that_scripts_look_for() {
    let outcome = GRID.find(Test::Low, "adaptive", Chain::Once).unwrap();
    let results = results(outcome, &params(outcome, "low"));
    for (name, count) in [
        ("throughput_bps", 1),
        ("latency_ms", 1),
        ("missed_percent", 1),
        ("in_order_percent", 1),
        ("accelerator_percent", 2),
        ("overhead_ms", 3),
        ("power_mw", 5),
    ] {
        assert_eq!(results.iter().filter(|result| result.name == name).count(), count, "{name}");
    }
    let json = serde_json::to_value(&results[0]).unwrap();
    let params = serde_json::json!({"platform": "xavier", "scheduler": "adaptive", "configuration": "C1", "test": "low"});
    assert_eq!(json["params"], params);
}

#[test]
fn judged_is_beside_the_best_of_the_others() {
    let judged = tables::judge(&GRID);
    assert_eq!(judged.len(), 4);
    let first = judged[0];
    assert_eq!((first.test, first.chain), (Test::Low, Chain::Once));
    let latency =
        |name| Chain::ALL.map(|chain| GRID.find(Test::Low, name, chain).unwrap().total.latency_ms());
    let all = [latency("round-robin"), latency("static")].concat();
    assert!((first.either.latency_ms - all.into_iter().fold(f64::INFINITY, f64::min)).abs() < 1e-9);
    let least = latency("round-robin")[0].min(latency("static")[0]);
    assert!((first.same.latency_ms - least).abs() < 1e-9);
    let own = tables::Three { gbps: 1.0, latency_ms: 2.0, missed: 0.1 };
    assert!(own.is_at_or_above(own));
    for better in [
        tables::Three { gbps: 1.01, ..own },
        tables::Three { latency_ms: 1.9, ..own },
        tables::Three { missed: 0.0, ..own },
    ] {
        assert!(!own.is_at_or_above(better) && better.is_at_or_above(own), "{better:?}");
    }
}

#[test]
fn tables_have_as_many_cells_as_names() {
    let outcome = GRID.find(Test::Low, "static", Chain::Once).unwrap();
    let cells = fit::of_grid(&GRID);
    let mut all = tables::of_run(Machine::Xavier, outcome);
    all.push(tables::per_second(Machine::Xavier, outcome));
    for test in GRID.tests() {
        all.extend([tables::comparison(&GRID, test), tables::shares(&GRID, test)]);
    }
    all.extend(tables::verdicts(&GRID));
    all.extend(tables::cells(&cells));
    all.extend([tables::beyond(&cells), tables::fit_summary(&cells)]);
    for table in &all {
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{}", table.title);
        let markdown = table.markdown();
        let bars = |line: &str| line.matches('|').count();
        let lines: Vec<&str> = markdown.lines().skip(2).collect();
        assert!(lines.iter().all(|line| bars(line) == table.head.len() + 1), "{markdown}");
    }
    let comparison = tables::comparison(&GRID, Test::Low);
    assert_eq!(comparison.rows.len(), 6);
    assert_eq!(comparison.rows[0][..3], ["C1 Round-robin", comparison.rows[0][1].as_str(), "0.01890"]);
    // The thesis' latency in milliseconds.
    assert_eq!(comparison.rows[0][5], "303.07");
    let adaptive = comparison.rows.last().unwrap();
    assert_eq!((adaptive[0].as_str(), adaptive[2].as_str()), ("C2 adaptive", ""));
    let text = comparison.text();
    assert!(text.lines().nth(2).unwrap().starts_with("  C1 Round-robin"), "{text}");
}

#[test]
fn the_page_stands_alone() {
    let outcome = simulate("adaptive", &Settings { seconds: 1, ..Settings::thesis(Test::Low, Chain::Once) });
    let without = Without { ingredient: "order", test: "low", outcome: outcome.unwrap() };
    let ablation = Ablation { without: vec![without], thrift: Vec::new() };
    let cells = fit::of_grid(&GRID);
    let page = Page {
        command: "millrace sched compare --html <x>",
        grid: &GRID,
        cells: &cells,
        ablation: Some(&ablation),
    };
    let html = page.html();
    for part in [
        "--html &lt;x&gt;",
        "beside Table 5.1",
        "(Figure 5.2)",
        "(Figure 5.21)",
        "<svg",
        "C1 low, without order",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<script") && !html.contains("src=") && !html.contains("href="));
}

#[test]
fn ingredients_are_left_out_one_at_a_time() {
    let default = accel::sched::adaptive::Settings::default();
    for (at, (name, leave_out)) in INGREDIENTS.into_iter().enumerate() {
        let mut settings = default;
        leave_out(&mut settings);
        assert_eq!(settings == default, at == 0, "{name}");
    }
    assert_eq!(TESTS[..4], Test::ALL.map(Test::name));
}
