//! How values are written for people.

use crate::CounterLine;
use crate::table::Side::{Left, Right};
use crate::table::Table;

/// A span of time in its two greatest units.
pub fn ago(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m {}s", seconds % 60),
        3600..86_400 => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// A bit rate with its unit.
pub fn rate(bits: Option<u64>) -> String {
    match bits {
        None => "-".into(),
        Some(bits @ 1_000_000_000..) => format!("{:.2} Gbit/s", bits as f64 / 1e9),
        Some(bits @ 1_000_000..) => format!("{:.2} Mbit/s", bits as f64 / 1e6),
        Some(bits) => format!("{:.2} kbit/s", bits as f64 / 1e3),
    }
}

/// Counters, each with its name and meaning: those that counted something, or all.
pub fn counters<'a>(lines: impl Iterator<Item = &'a CounterLine>, all: bool) -> String {
    let mut table = Table::new(&[("COUNT", Right), ("COUNTER", Left), ("MEANING", Left)]);
    let (mut shown, mut zero) = (0, 0);
    for line in lines {
        if line.value == 0 && !all {
            zero += 1;
            continue;
        }
        shown += 1;
        table.row([line.value.to_string(), line.counter.clone(), line.meaning.clone()]);
    }
    let table = if shown == 0 { String::new() } else { table.to_string() };
    if zero == 0 { table } else { format!("{table}{zero} counters are 0 (--all shows them).\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_are_zero_are_shown_only_if_asked_for() {
        let line = |(value, counter, meaning): (u64, &str, &str)| CounterLine {
            value,
            counter: counter.into(),
            meaning: meaning.into(),
            ..CounterLine::default()
        };
        let lines = [(0, "a", "A."), (7, "b", "B."), (0, "c", "C.")].map(line);
        let lines = || lines.iter();
        assert_eq!(
            counters(lines(), false),
            "COUNT  COUNTER  MEANING\n    7  b        B.\n2 counters are 0 (--all shows them).\n"
        );
        assert_eq!(counters(lines(), true).lines().count(), 4);
        assert_eq!(counters(lines().take(1), false), "1 counters are 0 (--all shows them).\n");
    }

    #[test]
    fn spans_of_time() {
        for (seconds, text) in [(0, "0s"), (61, "1m 1s"), (3660, "1h 1m"), (90_000, "1d 1h")] {
            assert_eq!(ago(seconds), text);
        }
    }
}
