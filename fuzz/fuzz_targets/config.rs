//! Configuration: arbitrary TOML, environment and arguments. Never a panic, and whatever is wrong can be told.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Parts the file, `--set` arguments and the environment.
const SEPARATOR: &str = "\n#####\n";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.split(SEPARATOR);
    let file = parts.next().unwrap_or_default();
    let set: Vec<String> = parts.next().unwrap_or_default().lines().map(str::to_owned).collect();
    let variables = parts.next().unwrap_or_default().lines().filter_map(|line| line.split_once('='));
    let environment: Vec<_> =
        variables.map(|(name, value)| (format!("MILLRACE_{name}"), value.to_owned())).collect();
    if let Err(report) = config::scheduling::Scenario::parse("fuzz.toml", file) {
        assert!(!report.problems.is_empty() && report.problems.len() <= config::MAX_PROBLEMS);
        assert!(!report.to_string().is_empty());
    }
    match config::parse("fuzz.toml", file, &environment, &set) {
        Ok(config) => {
            let _ = format!("{config:?}");
        }
        Err(report) => {
            assert!(!report.problems.is_empty() && report.problems.len() <= config::MAX_PROBLEMS);
            assert!(!report.to_string().is_empty());
        }
    }
});
