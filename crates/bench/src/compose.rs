//! Pictures of reports whose scenarios draw none themselves: which result is drawn over which parameter, and what the others are.
//!
//! A parameter's values stand beside each other as categories, in the order in which they were measured: what is varied here is
//! varied in leaps, and often is no number.

use crate::axis::grouped;
use crate::chart::{Figure, Panel, Point, Series};
use crate::report::{Measured, Param, Report};

/// One kind of panels of a scenario's figure.
#[derive(Clone, Copy, Debug)]
struct Picture {
    /// The result.
    result: &'static str,
    /// Its name on the axis.
    up: &'static str,
    /// The parameter on the horizontal axis, and its name there.
    across: (&'static str, &'static str),
    /// A panel for each value of these.
    panels: &'static [&'static str],
    /// A series for each value of these.
    series: &'static [&'static str],
    /// Values are of several powers of ten.
    logarithmic: bool,
}

impl Picture {
    const fn new(result: &'static str, up: &'static str, across: (&'static str, &'static str)) -> Self {
        Self { result, up, across, panels: &[], series: &[], logarithmic: false }
    }

    const fn panels(self, panels: &'static [&'static str]) -> Self {
        Self { panels, ..self }
    }

    const fn series(self, series: &'static [&'static str]) -> Self {
        Self { series, ..self }
    }

    const fn logarithmic(self) -> Self {
        Self { logarithmic: true, ..self }
    }
}

const CYCLES: &str = "cycles per packet";
const LOOKUPS: &str = "look-ups a second";

/// What a scenario's figure consists of; nothing, if it draws its own or there is none of its name.
fn pictures(scenario: &str) -> Vec<Picture> {
    let cycles = |across| Picture::new("cycles_per_packet", CYCLES, across);
    match scenario {
        "io" => vec![cycles(("payload", "octets of payload")).series(&["backend"])],
        "forward" => {
            vec![cycles(("sessions", "sessions")).panels(&["direction"]).series(&["ip", "scene", "servers"])]
        }
        "n4" => vec![
            Picture::new("requests_per_second", "requests a second", ("kept", "sessions that stand"))
                .series(&["request", "readers"]),
        ],
        "restart" => vec![
            Picture::new("sessions_per_second", "sessions a second", ("sessions", "sessions"))
                .series(&["direction", "workers"]),
        ],
        "flow-table" => vec![cycles(("flows", "flows")).panels(&["direction", "ip"]).series(&[
            "distribution",
            "scene",
            "servers",
        ])],
        "flow-insert" => vec![
            Picture::new("operations_per_second", "flows a second", ("operation", "operation"))
                .panels(&["flows"])
                .series(&["memory", "forwarding", "ip"]),
        ],
        "control" => vec![
            Picture::new("latency_us", "microseconds", ("percentile", "percentile of echoes"))
                .panels(&["bottleneck"])
                .series(&["control_queue"])
                .logarithmic(),
        ],
        "profiles" => vec![
            Picture::new("bits_per_second", "bit/s", ("size", "octets of uplink frames"))
                .panels(&["profile"])
                .series(&["ip", "scene", "servers"]),
        ],
        "ndr" => vec![
            Picture::new(
                "zero_loss_packets_per_second",
                "packets a second without loss",
                ("size", "octets of uplink frames"),
            )
            .panels(&["profile"])
            .series(&["mode", "ip"]),
            Picture::new("latency_us", "microseconds", ("load", "percent of the zero-loss rate"))
                .panels(&["profile", "size"])
                .series(&["mode", "ip", "percentile"])
                .logarithmic(),
        ],
        "flood" => vec![
            Picture::new(
                "packets_per_second",
                "packets a second",
                ("flood_share", "percent of packets that are of new flows"),
            )
            .panels(&["offered"])
            .series(&["traffic"]),
            Picture::new(
                "loss_percent",
                "percent lost",
                ("flood_share", "percent of packets that are of new flows"),
            )
            .panels(&["offered"])
            .series(&["traffic"]),
        ],
        "pdr-scan" => vec![cycles(("pdrs", "PDRs each way")).panels(&["packet"]).series(&["filters"])],
        "meters" => {
            vec![cycles(("meters", "meters of a rule")).panels(&["direction", "sessions"]).series(&["kind"])]
        }
        "mirror" => {
            vec![cycles(("mirror", "target")).panels(&["direction"]).series(&["mirrored", "sample"])]
        }
        "offload" => vec![
            Picture::new("offloaded_percent", "percent of packets", ("entries", "rules that fit in the NIC"))
                .series(&["direction"]),
            Picture::new("cycles_per_offered_packet", CYCLES, ("entries", "rules that fit in the NIC"))
                .series(&["direction"]),
        ],
        "buffers" => vec![
            Picture::new("nanoseconds_per_batch", "nanoseconds a batch", ("buffers", "batches under way"))
                .panels(&["packets"])
                .series(&["device"])
                .logarithmic(),
            Picture::new("latency_us", "microseconds", ("buffers", "batches under way"))
                .panels(&["packets", "percentile"])
                .series(&["device"])
                .logarithmic(),
        ],
        "device-lookups" => vec![
            Picture::new("rate_to_none", "times the rate without a device", ("latency_us", "latency in us"))
                .series(&["sessions"]),
        ],
        "nat" => vec![
            cycles(("mappings", "mappings")).panels(&["direction"]).series(&["nat"]),
            Picture::new("mappings_per_second", "mappings a second", ("mappings", "mappings")),
        ],
        "inspection" => vec![
            cycles(("inspection", "inspection")).panels(&["ip"]).series(&["rules"]),
            Picture::new(
                "throughput_to_off",
                "times the throughput without inspection",
                ("inspection", "inspection"),
            )
            .panels(&["ip"])
            .series(&["rules", "traffic"]),
            Picture::new(
                "flows_per_second_at_most",
                "new flows a second",
                ("steady", "percent of the core that known flows take"),
            )
            .series(&["mix"]),
        ],
        "hash" => {
            vec![
                Picture::new("packets_per_second", "packets a second", ("hashes", "hashes a packet"))
                    .series(&["processor", "octets", "device", "burst", "copies"]),
            ]
        }
        "random-access" => vec![
            Picture::new("accesses_per_second", "accesses a second", ("working_set", "octets"))
                .series(&["chains"])
                .logarithmic(),
        ],
        "l2" | "flow4" | "flow6" => {
            vec![
                Picture::new("lookups_per_second", LOOKUPS, ("entries", "entries"))
                    .panels(&["hits"])
                    .series(&["engine", "processor", "device", "burst", "io_cycles", "copies"]),
            ]
        }
        "lpm4" | "lpm6" => vec![
            Picture::new("lookups_per_second", LOOKUPS, ("burst", "addresses of a burst"))
                .panels(&["addresses", "io_cycles"])
                .series(&["engine", "table", "octets", "processor", "device", "copies"]),
        ],
        "dpi" => vec![
            Picture::new("nanoseconds_per_packet", "nanoseconds a packet", ("mix", "mix")),
            Picture::new("microseconds_per_flow", "microseconds a flow", ("protocol", "flows of")),
            Picture::new("flows_per_second", "flows a second", ("mix", "mix")),
        ],
        "nea2" => vec![
            Picture::new("bits_per_second", "bit/s", ("size", "octets of packets"))
                .panels(&["key"])
                .series(&["engine", "processor", "device", "packets", "copies"]),
        ],
        "ldpc" => vec![
            Picture::new("bits_per_second", "bit/s", ("rate", "code rate"))
                .panels(&["direction", "bg", "size"])
                .series(&["processor", "iterations", "device", "blocks", "copies"]),
        ],
        "ldpc-bler" => vec![
            Picture::new(
                "block_error_rate",
                "blocks lost",
                ("eb_n0_millibel", "Eb/N0 in hundredths of a decibel"),
            )
            .panels(&["bg", "z", "columns"])
            .series(&["decoder", "iterations"])
            .logarithmic(),
        ],
        _ => Vec::new(),
    }
}

/// Whether there is a figure of such reports.
pub fn has_figure(scenario: &str) -> bool {
    !pictures(scenario).is_empty()
}

/// A report's figure, of what there is of it.
pub fn figure(report: &Report) -> Figure {
    let panels = pictures(report.scenario).iter().flat_map(|picture| picture.draw(report)).collect();
    Figure { title: format!("{} on {}", report.scenario, report.machine.cpu), panels }
}

impl Picture {
    fn draw(&self, report: &Report) -> Vec<Panel> {
        let has =
            |result: &&Measured| result.name == self.result && result.params.contains_key(self.across.0);
        let results: Vec<&Measured> = report.results.iter().filter(has).collect();
        let varied = |keys: &[&'static str]| -> Vec<&'static str> {
            let of = |key: &str| different(results.iter().map(|result| result.params.get(key))).len();
            keys.iter().copied().filter(|key| of(key) > 1).collect()
        };
        let (panels, series) = (varied(self.panels), varied(self.series));
        let most = results.iter().map(|result| result.max).fold(0.0, f64::max);
        let (scale, up) = scaled(self.up, most);
        let panel = |name: Vec<Option<&Param>>| {
            let own: Vec<&Measured> =
                results.iter().copied().filter(|result| values(result, &panels) == name).collect();
            let at = different(own.iter().map(|result| result.params.get(self.across.0)));
            let line = |which: &Vec<Option<&Param>>| {
                let point = |(place, value): (usize, Option<&Param>)| {
                    let found = own.iter().find(|result| {
                        values(result, &series) == *which && result.params.get(self.across.0) == value
                    });
                    Point::of(place as f64, found.copied(), scale)
                };
                Series::measured(said(&series, which, self.up), at.iter().copied().enumerate().map(point))
            };
            let lines =
                different(own.iter().map(|result| values(result, &series))).iter().map(line).collect();
            let categories = at.iter().flatten().map(|value| word(value)).collect();
            let title = said(&panels, &name, self.up);
            let panel = Panel::bars(title, (self.across.1, &up), categories, lines);
            if self.logarithmic { panel.logarithmic() } else { panel }
        };
        different(results.iter().map(|result| values(result, &panels))).into_iter().map(panel).collect()
    }
}

/// All that differ, in order.
fn different<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut list = Vec::new();
    all.for_each(|one| {
        if !list.contains(&one) {
            list.push(one);
        }
    });
    list
}

fn values<'a>(result: &'a Measured, keys: &[&'static str]) -> Vec<Option<&'a Param>> {
    keys.iter().map(|key| result.params.get(key)).collect()
}

/// What these parameters' values are called; `otherwise`, where there are none.
fn said(keys: &[&'static str], values: &[Option<&Param>], otherwise: &str) -> String {
    let named = keys.iter().zip(values).filter_map(|(key, value)| Some(named(key, (*value)?)));
    let all = named.collect::<Vec<_>>().join(", ");
    if all.is_empty() { otherwise.to_owned() } else { all }
}

/// A value that says what it is of.
fn named(key: &str, value: &Param) -> String {
    match (key, value) {
        ("ip", value) => format!("IPv{value}"),
        ("percentile", value) => format!("{value} %"),
        ("offered", value) => format!("known flows offer {value} % of the core"),
        ("sample", value) => format!("one packet in {value}"),
        ("flows" | "sessions" | "filters" | "meters", value) => format!("{} {key}", word(value)),
        (key, Param::Text(value @ ("yes" | "no"))) => format!("{}: {value}", key.replace('_', " ")),
        (_, Param::Text(value)) => (*value).to_owned(),
        (key, Param::Number(_)) => format!("{} {}", key.replace('_', " "), word(value)),
    }
}

/// A value by itself.
fn word(value: &Param) -> String {
    match value {
        Param::Number(number) => grouped(&number.to_string()),
        Param::Text(text) => (*text).to_owned(),
    }
}

/// By what values up to the greatest are multiplied, and what the axis is called then.
fn scaled(name: &str, most: f64) -> (f64, String) {
    match (name, most) {
        ("bit/s", _) => (1e-9, "Gbit/s".into()),
        ("microseconds", most) if most >= 2e4 => (1e-3, "milliseconds".into()),
        (name, most) if most >= 2e6 => (1e-6, format!("millions of {name}")),
        (name, most) if most >= 2e4 => (1e-3, format!("thousands of {name}")),
        (name, _) => (1.0, name.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tables::clock::Tsc;

    #[test]
    fn parameters_that_vary_become_panels_series_and_categories() {
        let mut report = Report::new("forward", &Tsc::process());
        for direction in ["uplink", "downlink"] {
            for ip in [4, 6_u64] {
                for sessions in [1_000_u64, 1_000_000] {
                    if (direction, ip, sessions) == ("downlink", 6, 1_000_000) {
                        // It was interrupted here.
                        continue;
                    }
                    let params = [
                        ("direction", direction.into()),
                        ("ip", ip.into()),
                        ("scene", "many".into()),
                        ("sessions", sessions.into()),
                    ];
                    let runs = [100.0, 110.0 + ip as f64, 120.0];
                    report.results.push(Measured::of("cycles_per_packet", "cycles", &params, &runs));
                    report.results.push(Measured::of("port_cycles_per_packet", "cycles", &params, &runs));
                }
            }
        }
        let figure = figure(&report);
        let [uplink, downlink] = figure.panels.as_slice() else { panic!("{figure:?}") };
        assert_eq!((uplink.title.as_str(), downlink.title.as_str()), ("uplink", "downlink"));
        assert_eq!(downlink.categories, ["1,000", "1,000,000"]);
        let labels: Vec<&str> = downlink.series.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(labels, ["IPv4", "IPv6"]);
        let last: Vec<Option<f64>> = downlink.series.iter().map(|series| series.points[1].y).collect();
        assert_eq!(last, [Some(114.0), None]);
        assert_eq!(downlink.series[0].points[0].spread, Some((100.0, 120.0)));
    }

    #[test]
    fn a_single_series_has_the_results_name() {
        let mut report = Report::new("n4", &Tsc::process());
        let params = [("kept", 10_000_u64.into()), ("request", "modify".into())];
        report.results.push(Measured::of("requests_per_second", "1/s", &params, &[99_355.0]));
        let panel = &figure(&report).panels[0];
        assert_eq!(panel.series[0].label, "requests a second");
        assert_eq!(panel.axes.1, "thousands of requests a second");
        assert!((panel.series[0].points[0].y.unwrap() - 99.355).abs() < 1e-9);
        assert_eq!(scaled("microseconds", 2_000.0), (1.0, "microseconds".into()));
        assert_eq!(scaled("microseconds", 80_000.0), (1e-3, "milliseconds".into()));
    }
}
