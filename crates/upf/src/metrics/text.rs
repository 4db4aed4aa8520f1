//! Metrics as text: OpenMetrics 1.0, and the older format of Prometheus for those who don't ask for that.

use counters::{Kind, Line, Unit};
use std::collections::HashMap;
use std::fmt::Write;

/// What is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    OpenMetrics,
    Prometheus,
}

impl Format {
    /// What a client understands, by its `Accept` header.
    pub fn accepted(accept: &str) -> Self {
        let is_open = |part: &str| {
            part.split(';').next().is_some_and(|kind| kind.trim() == "application/openmetrics-text")
        };
        if accept.split(',').any(is_open) { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The content type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// A metric: what is the same of all that differ in their labels. Its lines have to stand together.
struct Family {
    head: String,
    samples: String,
}

/// A page of metrics that is being written.
pub(super) struct Text {
    format: Format,
    /// In the order in which they were first told of.
    families: Vec<Family>,
    places: HashMap<String, usize>,
}

impl Text {
    pub fn new(format: Format) -> Self {
        Self { format, families: Vec::new(), places: HashMap::new() }
    }

    /// Words about the program.
    pub fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) {
        let name = format!("millrace_{name}");
        let (head, kind) = match self.format {
            Format::OpenMetrics => (name.clone(), "info"),
            Format::Prometheus => (format!("{name}_info"), "gauge"),
        };
        let head = format!("# HELP {head} {}\n# TYPE {head} {kind}\n", self.escaped(help, false));
        let samples = format!("{name}_info{} 1\n", self.braces(labels));
        self.families.push(Family { head, samples });
    }

    /// Lines of a struct of counters.
    pub fn add(&mut self, group: &str, labels: &[(&str, &str)], lines: &[Line]) {
        for line in lines {
            let (name, unit) = (name(group, line), unit(line.about.unit));
            let is_counter = line.about.kind == Kind::Counter;
            let sample = if is_counter { format!("{name}_total") } else { name.clone() };
            let place = self.places.get(&name).copied().unwrap_or_else(|| {
                let head = self.head(&name, unit, line);
                self.families.push(Family { head, samples: String::new() });
                self.places.insert(name, self.families.len() - 1);
                self.families.len() - 1
            });
            let labels: Vec<_> = labels.iter().copied().chain(line.label).collect();
            let braces = self.braces(&labels);
            let Some(family) = self.families.get_mut(place) else { continue };
            let _ = match line.about.unit {
                // Seconds are the unit of time there is.
                Unit::Nanoseconds => writeln!(family.samples, "{sample}{braces} {}", line.value as f64 / 1e9),
                _ => writeln!(family.samples, "{sample}{braces} {}", line.value),
            };
        }
    }

    fn head(&self, name: &str, unit: Option<&str>, line: &Line) -> String {
        let help = self.escaped(&line.about.meaning, false);
        let kind = line.about.kind.label();
        match (self.format, line.about.kind) {
            (Format::Prometheus, Kind::Counter) => {
                format!("# HELP {name}_total {help}\n# TYPE {name}_total {kind}\n")
            }
            (Format::Prometheus, Kind::Gauge) => format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
            (Format::OpenMetrics, _) => {
                let unit = unit.map(|unit| format!("# UNIT {name} {unit}\n")).unwrap_or_default();
                format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{unit}")
            }
        }
    }

    fn braces(&self, labels: &[(&str, &str)]) -> String {
        if labels.is_empty() {
            return String::new();
        }
        let pairs: Vec<_> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", self.escaped(value, true))).collect();
        format!("{{{}}}", pairs.join(","))
    }

    /// Quotes are escaped in labels, and in OpenMetrics everywhere.
    fn escaped(&self, text: &str, label: bool) -> String {
        let text = text.replace('\\', r"\\").replace('\n', r"\n");
        if label || self.format == Format::OpenMetrics { text.replace('"', r#"\""#) } else { text }
    }

    /// The page.
    pub fn end(self) -> String {
        let mut text = String::new();
        for Family { head, samples } in &self.families {
            text.push_str(head);
            text.push_str(samples);
        }
        if self.format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

/// `millrace_worker_received_packets`: the unit is a name's end.
fn name(group: &str, line: &Line) -> String {
    let words = ["millrace", group, &line.about.name];
    let mut name = words
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("_")
        .replace(['-', ' '], "_");
    if let Some(unit) = unit(line.about.unit)
        && !name.ends_with(&format!("_{unit}"))
    {
        name.push('_');
        name.push_str(unit);
    }
    name
}

const fn unit(unit: Unit) -> Option<&'static str> {
    match unit {
        Unit::Nanoseconds => Some("seconds"),
        other => other.label(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counters::Count;

    counters::labels! {
        enum Why: "reason" {
            Late = "late", "It came late.";
            Lost = "lost", "It never came.";
        }
    }

    counters::counters! {
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        struct Letters {
            /// Letters that \ "came".
            came: u64 = "came", Counter;
            /// Letters that didn't.
            failed: counters::By<Why, { Why::COUNT }> = "failed", Counter of Packets;
            /// Time under way.
            under_way: u64 = "under-way", Counter of Nanoseconds;
            /// Waiting.
            waiting: u64 = "waiting-bytes", Gauge of Bytes;
        }
    }

    fn page(format: Format) -> String {
        let mut text = Text::new(format);
        text.info("build", "The program.", &[("version", "1.0")]);
        let mut letters = Letters { came: 3, under_way: 1_500_000_000, waiting: 7, ..Letters::default() };
        letters.failed.add(Why::Lost, 2);
        for office in ["a", "b\"\\\nc"] {
            text.add("post", &[("office", office)], &letters.lines());
        }
        text.end()
    }

    #[test]
    fn open_metrics() {
        let expected = r#"# HELP millrace_build The program.
# TYPE millrace_build info
millrace_build_info{version="1.0"} 1
# HELP millrace_post_came Letters that \\ \"came\".
# TYPE millrace_post_came counter
millrace_post_came_total{office="a"} 3
millrace_post_came_total{office="b\"\\\nc"} 3
# HELP millrace_post_failed_packets Letters that didn't.
# TYPE millrace_post_failed_packets counter
# UNIT millrace_post_failed_packets packets
millrace_post_failed_packets_total{office="a",reason="late"} 0
millrace_post_failed_packets_total{office="a",reason="lost"} 2
millrace_post_failed_packets_total{office="b\"\\\nc",reason="late"} 0
millrace_post_failed_packets_total{office="b\"\\\nc",reason="lost"} 2
# HELP millrace_post_under_way_seconds Time under way.
# TYPE millrace_post_under_way_seconds counter
# UNIT millrace_post_under_way_seconds seconds
millrace_post_under_way_seconds_total{office="a"} 1.5
millrace_post_under_way_seconds_total{office="b\"\\\nc"} 1.5
# HELP millrace_post_waiting_bytes Waiting.
# TYPE millrace_post_waiting_bytes gauge
# UNIT millrace_post_waiting_bytes bytes
millrace_post_waiting_bytes{office="a"} 7
millrace_post_waiting_bytes{office="b\"\\\nc"} 7
# EOF
"#;
        assert_eq!(page(Format::OpenMetrics), expected);
    }

    #[test]
    fn the_older_format_names_the_sample() {
        let page = page(Format::Prometheus);
        assert!(page.contains("# TYPE millrace_post_came_total counter\n"), "{page}");
        assert!(page.contains("# TYPE millrace_build_info gauge\n"), "{page}");
        assert!(page.contains(r#"Letters that \\ "came"."#), "{page}");
        assert!(!page.contains("UNIT") && !page.contains("EOF"), "{page}");
    }

    #[test]
    fn who_asks_for_open_metrics_gets_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        for other in ["", "*/*", "text/plain", "text/html, application/openmetrics-text-not"] {
            assert_eq!(Format::accepted(other), Format::Prometheus);
        }
    }
}
