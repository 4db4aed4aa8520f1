//! The scripts that `./x` runs tests and lints by.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use testing::Directory;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name)
}

/// What `./x test` says at the end.
fn summary(name: &str, log: &str, recorded: &str) -> String {
    let directory = Directory::new(name);
    let [log_file, record] = ["log", "record"].map(|name| directory.0.join(name));
    std::fs::write(&log_file, log).unwrap();
    std::fs::write(&record, recorded).unwrap();
    let output = Command::new(script("test-summary")).args([log_file, record]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_summary_names_what_did_not_run() {
    let log = "\
 Running tests/main.rs (target/debug/deps/integration-0123456789abcdef)

running 6 tests
test backends::ring_body ... ignored, run by `ring` in a process of its own
test backends::tap_body ... ignored, run by `tap` in a namespace of its own
test backends::forgotten_body ... ignored, run by `nobody`
test backends::ring ... ok
test backends::tap ... ok
test backends::xdp ... FAILED

test result: FAILED. 2 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 3 tests
test nothing ... ignored
test one ... ok
test two ... ok

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
";
    let recorded = "ran\tbackends::ring_body\nskipped\tdpdk backends::tap\tit needs root\n\
                    skipped\tdpdk backends::tap\tand a tool\n";
    assert_eq!(
        summary("names", log, recorded),
        "\
skipped:
  dpdk backends::tap: it needs root
  dpdk backends::tap: and a tool
  backends::forgotten_body: its test did not run it
  nothing: it is marked so
3 passed, 1 failed, 3 skipped; 1 ran as a part of another, in a process of its own
"
    );
}

#[test]
fn the_summary_of_a_run_without_gaps_is_one_line() {
    let log = "\
test a::body ... ignored, run by `test` in a process of its own
test a::test ... ok
test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
";
    assert_eq!(
        summary("whole", log, "ran\ta::body\n"),
        "1 passed, 0 failed, 0 skipped; 1 ran as a part of another, in a process of its own\n"
    );
    assert_eq!(
        summary("empty", "test result: ok. 1 passed; 0 failed; 0 ignored;", ""),
        "1 passed, 0 failed, 0 skipped\n"
    );
}

/// A repository with commits.
struct Repository(Directory);

impl Repository {
    fn new(name: &str) -> Self {
        let new = Self(Directory::new(name));
        new.git(&["init", "--quiet", "--initial-branch=main"]);
        new
    }

    fn git(&self, args: &[&str]) {
        let own = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"];
        let more = ["-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always"];
        let mut command = Command::new("git");
        command.current_dir(&self.0.0).args(own).args(more).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A commit of so many lines in a file.
    fn commit(&self, message: &str, file: &str, lines: usize) {
        std::fs::write(self.0.0.join(file), "line\n".repeat(lines)).unwrap();
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    /// What `scripts/commits` says about it, and whether it is content.
    fn judged(&self) -> (bool, String) {
        let output = Command::new(script("commits")).current_dir(&self.0.0).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn a_commit_has_a_short_subject_and_says_why() {
    let repository = Repository::new("rules");
    // 72 characters, of which some take two octets.
    let longest = format!("area: {}", "ü".repeat(66));
    repository.commit(&longest, "small", 50);
    repository.commit("area: much, and why\n\nBecause it is needed.", "much", 500);
    repository.commit("area: much that is written by tools", "Cargo.lock", 500);
    assert_eq!(repository.judged(), (true, "commits looked at: 3 (the last 20)\n".into()));

    let wrong = |message: &str, lines: usize, says: &str| {
        repository.commit(message, &format!("wrong-{lines}"), lines);
        let (content, said) = repository.judged();
        assert!(!content && said.contains(says), "{message}: {said}");
        repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        assert!(repository.judged().0);
    };
    wrong(&format!("{longest}!"), 1, "the subject has 73 characters: at most 72");
    wrong("area: much", 51, "it changes 51 lines and does not say why");
    wrong("area: much\n\nSigned-off-by: Somebody <somebody@example.org>", 51, "does not say why");
    wrong("area: one\nand two", 1, "the second line of the message is not blank");
}

#[test]
fn commits_that_others_have_already_are_left_alone() {
    let repository = Repository::new("base");
    repository.commit("area: much", "much", 500);
    repository.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    // With nothing new, as in CI, the last ones are looked at.
    assert!(!repository.judged().0);
    repository.commit("area: new", "new", 1);
    assert_eq!(repository.judged(), (true, "commits looked at: 1 (those since origin/main)\n".into()));
}

#[test]
fn a_shallow_clone_is_judged_as_far_as_it_goes() {
    let repository = Repository::new("deep");
    for lines in [500, 501, 1] {
        repository.commit("area: lines", "lines", lines);
    }
    let shallow = Repository(Directory::new("shallow"));
    let from = format!("file://{}", repository.0.0.display());
    shallow.git(&["clone", "--quiet", "--depth", "2", &from, "."]);
    // The older of the two looks as if it had made everything: it is not blamed. The newer one takes 500 lines away.
    let (content, said) = shallow.judged();
    assert!(!content && said.contains("it changes 500 lines"), "{said}");
    shallow.git(&["commit", "--quiet", "--amend", "--message", "area: lines\n\nToo many."]);
    let says = "commits looked at: 1 (those since origin/main)\n";
    assert_eq!(shallow.judged(), (true, says.into()));
    shallow.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let says = "commits looked at: 2 (the last 20; this clone is shallow, and ends there)\n";
    assert_eq!(shallow.judged(), (true, says.into()));
}
