//! What a scenario measured: one shape for people, scripts and pictures.

use crate::axis::number;
use crate::machine::Machine;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Everything one run of a scenario has to say.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario's name, as on the command line.
    pub scenario: &'static str,
    /// Where it ran.
    pub machine: Machine,
    /// What was measured, in the order of measurement.
    pub results: Vec<Measured>,
    /// What a reader must know to read the figures rightly.
    pub notes: Vec<String>,
}

/// One figure with its spread.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Measured {
    /// Name out of the project's vocabulary (`cycles_per_packet`, …; docs/benchmarks.md).
    pub name: &'static str,
    /// What was varied.
    pub params: BTreeMap<&'static str, Param>,
    /// Unit of the figures.
    pub unit: &'static str,
    /// Middle run.
    pub median: f64,
    /// Least run.
    pub min: f64,
    /// Greatest run.
    pub max: f64,
    /// Number of runs.
    pub runs: usize,
}

/// A parameter's value.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[serde(untagged)]
pub enum Param {
    /// A count.
    Number(u64),
    /// A word.
    Text(&'static str),
}

impl From<u64> for Param {
    fn from(value: u64) -> Self {
        Self::Number(value)
    }
}

impl From<&'static str> for Param {
    fn from(value: &'static str) -> Self {
        Self::Text(value)
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => f.pad(&value.to_string()),
            Self::Text(value) => f.pad(value),
        }
    }
}

impl Measured {
    /// Whether it has this name and these parameters.
    fn is(&self, name: &str, params: &[(&'static str, Param)]) -> bool {
        self.name == name && params.iter().all(|(key, value)| self.params.get(key) == Some(value))
    }

    /// A parameter that is a count.
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.params.get(key) {
            Some(Param::Number(number)) => Some(*number),
            Some(Param::Text(_)) | None => None,
        }
    }

    /// Summarises runs; without any, all figures are zero.
    pub fn of(
        name: &'static str,
        unit: &'static str,
        params: &[(&'static str, Param)],
        runs: &[f64],
    ) -> Self {
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
        let (below, above) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
        let median = f64::midpoint(at(below), at(above));
        Self {
            name,
            params: params.iter().cloned().collect(),
            unit,
            median,
            min: at(0),
            max: at(sorted.len().saturating_sub(1)),
            runs: sorted.len(),
        }
    }
}

impl Report {
    /// An empty report of this machine.
    pub fn new(scenario: &'static str, clock: &tables::clock::Tsc) -> Self {
        Self { scenario, machine: Machine::read(clock), results: Vec::new(), notes: Vec::new() }
    }

    /// Adds what was measured several times, once a run: as one figure each, in the order of the first run.
    pub fn add_runs(&mut self, runs: Vec<Self>) {
        for figure in runs.iter().take(1).flat_map(|first| &first.results) {
            let same = |other: &&Measured| (other.name, &other.params) == (figure.name, &figure.params);
            let values: Vec<f64> =
                runs.iter().filter_map(|run| run.results.iter().find(same)).map(|one| one.median).collect();
            let params: Vec<_> = figure.params.clone().into_iter().collect();
            self.results.push(Measured::of(figure.name, figure.unit, &params, &values));
        }
        self.notes.extend(runs.into_iter().flat_map(|run| run.notes));
    }

    /// The results with this name and these parameters.
    pub fn all<'a>(
        &'a self,
        name: &'a str,
        params: &'a [(&'static str, Param)],
    ) -> impl Iterator<Item = &'a Measured> {
        self.results.iter().filter(move |m| m.is(name, params))
    }

    /// The first of them.
    pub fn find(&self, name: &str, params: &[(&'static str, Param)]) -> Option<&Measured> {
        self.results.iter().find(|m| m.is(name, params))
    }

    /// Its middle value.
    pub fn median(&self, name: &str, params: &[(&'static str, Param)]) -> Option<f64> {
        self.find(name, params).map(|m| m.median)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} on {}", self.scenario, self.machine)?;
        let described: Vec<String> = self
            .results
            .iter()
            .map(|m| {
                m.params.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
            })
            .collect();
        let names = self.results.iter().map(|m| m.name.len()).max().unwrap_or(0).max(6);
        let params = described.iter().map(String::len).max().unwrap_or(0).max(10);
        writeln!(
            f,
            "{:names$}  {:params$}  {:>12} {:>12} {:>12}  unit (runs)",
            "result", "parameters", "median", "min", "max"
        )?;
        for (m, described) in self.results.iter().zip(&described) {
            writeln!(
                f,
                "{:names$}  {:params$}  {:>12} {:>12} {:>12}  {} ({})",
                m.name,
                described,
                figure(m.median),
                figure(m.min),
                figure(m.max),
                m.unit,
                m.runs
            )?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

/// Three significant places are more than these machines can tell apart.
pub fn figure(value: f64) -> String {
    // By what it is once it is rounded, or 99.96 would have four places.
    let at_least = |least: f64, places: f64| (value.abs() * places).round() >= least * places;
    match value {
        _ if at_least(100.0, 10.0) => number(value, 1.0),
        _ if at_least(10.0, 100.0) => number(value, 0.1),
        _ => number(value, 0.01),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summarises() {
        let odd = Measured::of("x", "cycles", &[("sessions", 5.into())], &[3.0, 1.0, 2.0]);
        assert_eq!((odd.median, odd.min, odd.max, odd.runs), (2.0, 1.0, 3.0, 3));
        let even = Measured::of("x", "cycles", &[], &[4.0, 1.0, 2.0, 3.0]);
        assert!((even.median - 2.5).abs() < 1e-9);
        assert_eq!(Measured::of("x", "cycles", &[], &[]).runs, 0);
    }

    #[test]
    fn runs_of_the_same_become_one_figure() {
        let run = |value| {
            let mut run = Report::new("x", &tables::clock::Tsc::process());
            for (phase, value) in [("a", value), ("b", 10.0 * value)] {
                run.results.push(Measured::of("lost", "packets", &[("phase", phase.into())], &[value]));
            }
            run.notes.push(format!("{value}"));
            run
        };
        let mut report = run(7.0);
        report.add_runs(vec![run(1.0), run(3.0), run(2.0)]);
        let [_, _, a, b] = report.results.as_slice() else { panic!("{report}") };
        assert_eq!((a.median, a.min, a.max, a.runs), (2.0, 1.0, 3.0, 3));
        assert_eq!((b.median, b.runs), (20.0, 3));
        assert_eq!(report.notes.len(), 4);
        let values = |phase: &'static str| -> Vec<f64> {
            report.all("lost", &[("phase", phase.into())]).map(|lost| lost.median).collect()
        };
        assert_eq!((values("b"), values("c")), (vec![70.0, 20.0], vec![]));
        assert_eq!(report.median("lost", &[("phase", "b".into())]), Some(70.0));
    }

    #[test]
    fn prints_figures_that_people_can_read() {
        assert_eq!(figure(1_234_567.8), "1,234,568");
        assert_eq!(figure(-1_234.5), "-1,234");
        assert_eq!(figure(999.6), "1,000");
        assert_eq!((figure(99.96).as_str(), figure(99.94).as_str()), ("100", "99.9"));
        assert_eq!((figure(9.996).as_str(), figure(-9.994).as_str()), ("10.0", "-9.99"));
        assert_eq!(figure(171.23), "171");
        assert_eq!(figure(0.5), "0.50");
    }

    #[test]
    fn has_the_agreed_json_shape() {
        let m = Measured::of(
            "cycles_per_packet",
            "cycles",
            &[("direction", "uplink".into()), ("sessions", 65_536.into())],
            &[1.0],
        );
        let json = serde_json::to_value(&m).unwrap_or_default();
        assert_eq!(json["params"]["direction"], "uplink");
        assert_eq!(json["params"]["sessions"], 65_536);
        assert_eq!(json["median"], 1.0);
    }
}
