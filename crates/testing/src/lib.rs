//! What the tests of all crates share: how a test says that it could not run, how it runs a part of itself in a process of its own,
//! [`Directory`], and [`MadeUp`] machines.
//!
//! A test that needs root, a tool or a kernel's help must not fail where that is missing. But libtest knows only passed, failed and
//! ignored: a test that returns early has passed, and what it printed is kept from sight. So it calls [`skipped`], which writes
//! name and reason to the file that [`RECORD`] names. `./x test` names one, and `scripts/test-summary` ends the run with what is in it.
//!
//! Some tests need a process of their own (DPDK starts once in a process's life) or a network namespace that nothing else sees. Their
//! body is a test of its own, marked `#[ignore = "run by ..."]`, which [`in_process`] or [`in_namespace`] runs:
//!
//! ```no_run
//! # mod backends {
//! #[test]
//! fn ring() {
//!     testing::in_process("ring_body");
//! }
//!
//! #[test]
//! #[ignore = "run by `ring` in a process of its own"]
//! fn ring_body() { /* ... */ }
//! # }
//! ```
//!
//! A body is a part of the test that runs it, and skips in its name. That it ran is written down, too: a body that no test runs
//! is found by the summary.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod directory;
mod machines;

pub use directory::Directory;
pub use machines::MadeUp;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::process::Command;

/// The environment variable with the name of the file for lines of three fields between tabs: `skipped`, test, reason; or `ran`, body.
pub const RECORD: &str = "MILLRACE_TEST_RECORD";

/// The environment variable by which a body knows whose it is.
const TEST: &str = "MILLRACE_TEST";

/// The test that calls can't run here, wholly or in part; `why` says what it lacks.
pub fn skipped(why: impl Display) {
    let why = one_line(&why.to_string());
    println!("skipped: {why}");
    record(&["skipped", &name(), &why]);
}

/// Runs the ignored test `body` of the caller's file in a process of its own.
#[track_caller]
pub fn in_process(body: &str) {
    run(Command::new(std::env::current_exe().unwrap()), &path_of(body, Location::caller()));
}

/// The same with variables in its environment.
#[track_caller]
pub fn in_process_with(body: &str, environment: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.envs(environment.iter().copied());
    run(command, &path_of(body, Location::caller()));
}

/// The same in a new network namespace, which vanishes with the process; or says why there can't be one.
#[track_caller]
pub fn in_namespace(body: &str) {
    if let Some(why) = no_namespace() {
        return skipped(why);
    }
    let mut command = Command::new("unshare");
    command.arg("--net").arg(std::env::current_exe().unwrap());
    run(command, &path_of(body, Location::caller()));
}

/// A file of tests is a module, whose name leads those of its tests.
fn path_of(body: &str, caller: &Location) -> String {
    match Path::new(caller.file()).file_stem().unwrap().to_str().unwrap() {
        "lib" => format!("tests::{body}"),
        module => format!("{module}::{body}"),
    }
}

fn run(mut command: Command, body: &str) {
    let output =
        command.args(["--exact", body, "--ignored", "--nocapture"]).env(TEST, name()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // Set in, so that nobody takes its result for one of this process.
    for line in text.lines().chain(String::from_utf8_lossy(&output.stderr).lines()) {
        println!("    {line}");
    }
    assert!(output.status.success(), "{body}: {}", output.status);
    assert!(text.contains("1 passed"), "{body} did not run");
    record(&["ran", body]);
}

/// Why network devices can't be made here.
fn no_namespace() -> Option<String> {
    let output = Command::new("unshare").args(["--net", "ip", "link", "add", "type", "veth"]).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "no network namespace with a veth pair can be made ({}); it needs root",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Some(format!("unshare (util-linux) can't be run: {error}")),
    }
}

/// Crate and test: the one that runs this body, or else this thread's, which libtest names.
fn name() -> String {
    std::env::var(TEST).unwrap_or_else(|_| {
        let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
        let thread = std::thread::current();
        format!("{package} {}", thread.name().unwrap_or("(a thread without a name)"))
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One write to a file opened for appending: tests in many processes may do so at once.
fn record(fields: &[&str]) {
    if let Some(file) = std::env::var_os(RECORD) {
        let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
        file.write_all((fields.join("\t") + "\n").as_bytes()).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A file that a test's own children write to.
    struct Record(PathBuf);

    impl Record {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("millrace-testing-{}-{name}", std::process::id())))
        }

        fn lines(&self) -> Vec<String> {
            std::fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
        }
    }

    impl Drop for Record {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Runs one of the tests below, as somebody would who runs all.
    fn ask(body: &str, record: &Record) -> bool {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", body, "--ignored"]).env(RECORD, &record.0).env_remove(TEST);
        let passed = command.output().unwrap().status.success();
        super::record(&["ran", body]);
        passed
    }

    #[test]
    fn a_test_says_that_it_could_not_run() {
        let record = Record::new("says");
        assert!(ask("tests::lacks", &record));
        assert_eq!(record.lines(), ["skipped\ttesting tests::lacks\tthere is no such device"]);
    }

    #[test]
    #[ignore = "run by `a_test_says_that_it_could_not_run`"]
    fn lacks() {
        skipped("there is\n\tno such device");
    }

    #[test]
    fn a_body_skips_in_the_name_of_its_test() {
        let record = Record::new("parent");
        assert!(ask("tests::parent", &record));
        assert_eq!(
            record.lines(),
            ["skipped\ttesting tests::parent\tthere is no such device", "ran\ttests::lacks"]
        );
    }

    #[test]
    #[ignore = "run by `a_body_skips_in_the_name_of_its_test`"]
    fn parent() {
        in_process("lacks");
    }

    #[test]
    fn a_body_that_fails_or_is_not_there_did_not_run() {
        let record = Record::new("fails");
        assert!(!ask("tests::fails", &record));
        assert!(!ask("tests::parent_of_a_failure", &record));
        assert!(!ask("tests::parent_of_none", &record));
        assert_eq!(record.lines(), Vec::<String>::new());
    }

    #[test]
    #[ignore = "run by `a_body_that_fails_or_is_not_there_did_not_run`"]
    fn parent_of_a_failure() {
        in_process("fails");
    }

    #[test]
    #[ignore = "run by `a_body_that_fails_or_is_not_there_did_not_run`"]
    fn fails() {
        panic!("on purpose");
    }

    #[test]
    #[ignore = "run by `a_body_that_fails_or_is_not_there_did_not_run`"]
    fn parent_of_none() {
        in_process("none");
    }
}
