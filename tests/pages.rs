//! What people read before the code: that links lead somewhere, that every page can be found, and that the README stays short.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// All pages that are written by hand or from the code.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = [root.to_owned(), root.join("docs"), root.join("docs/adr")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect::<Vec<_>>();
    pages.sort();
    pages
}

/// A page without its blocks of code.
fn prose(page: &Path) -> String {
    let text = std::fs::read_to_string(page).unwrap();
    text.split("```").step_by(2).collect()
}

/// Where a page's links lead.
fn links(page: &Path) -> Vec<String> {
    let text = prose(page);
    text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap().to_owned()).collect()
}

/// The anchors of a page's headings, as forges make them, and those that it sets itself.
fn anchors(page: &Path) -> HashSet<String> {
    let text = prose(page);
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    });
    let set = text.split("<a name=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    headings.chain(set).collect()
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        for link in links(&page) {
            if link.starts_with("https://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            assert!(target.exists(), "{}: there is no {link}", page.display());
            let found = anchor.is_empty() || anchors(&target).contains(anchor);
            assert!(found, "{}: {path} has no heading for #{anchor}", page.display());
        }
    }
}

#[test]
fn every_page_is_in_the_index() {
    let index = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/README.md");
    let folder = index.parent().unwrap();
    let linked: HashSet<_> =
        links(&index).iter().filter_map(|link| folder.join(link).canonicalize().ok()).collect();
    // Decisions are a list of their own, which is a folder.
    for page in pages().iter().filter(|page| page.parent() == Some(folder) && **page != index) {
        assert!(
            linked.contains(&page.canonicalize().unwrap()),
            "docs/README.md doesn't name {}",
            page.display()
        );
    }
}

#[test]
fn the_readme_fits_two_screens() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    assert!(
        text.lines().count() <= 95,
        "README.md has {} lines: figures and details have pages of their own",
        text.lines().count()
    );
    let long = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None, "a line of more than 100 columns");
}

/// What stands in a page as code.
fn spans(page: &Path) -> Vec<String> {
    prose(page).split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// All Rust files of the project below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The folders of [`sources`].
const CODE: [&str; 4] = ["crates", "src", "tests", "fuzz"];

/// These pages say which test would fail; a test that was renamed is none.
#[test]
fn tests_that_pages_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    CODE.iter().for_each(|folder| sources(&root.join(folder), &mut files));
    let code: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let mut named = 0;
    for page in ["docs/security.md", "docs/interop.md", "docs/recipes.md"] {
        for span in spans(&root.join(page)) {
            let test = span.rsplit("::").next().unwrap();
            let is_name = test.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if is_name && test.matches('_').count() >= 3 {
                assert!(code.contains(&format!("fn {test}(")), "{page}: there is no test {span}");
                named += 1;
            }
        }
    }
    assert!(named > 50, "tests are written another way now: {named} were found");
}

/// A path without its folders `src`.
fn without_src(path: &Path) -> PathBuf {
    path.iter().filter(|part| *part != "src").collect()
}

/// A file is named by as much of its path as makes it clear: `store.rs`, `session/src/store.rs`, or without `src`.
#[test]
fn files_that_pages_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    CODE.iter().for_each(|folder| sources(&root.join(folder), &mut files));
    for page in pages() {
        for span in spans(&page) {
            let path = span.split_whitespace().next().unwrap_or_default();
            let is_name = !path.contains(['{', '*']) && !path.contains(|c: char| c.is_ascii_uppercase());
            let is_file = is_name && Path::new(path).extension().is_some_and(|extension| extension == "rs");
            let found = files.iter().any(|file| file.ends_with(path) || without_src(file).ends_with(path));
            assert!(!is_file || found, "{}: there is no {span}", page.display());
        }
    }
}

/// A module is named by its path from the crate's name on, a test or a function by its own name behind that.
#[test]
fn modules_that_pages_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    let code: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let modules: HashSet<_> = files
        .iter()
        .map(|file| without_src(file.strip_prefix(root.join("crates")).unwrap()).with_extension(""))
        .map(|path| if path.ends_with("mod") { path.parent().unwrap().to_owned() } else { path })
        .collect();
    for page in pages() {
        let is_path = |span: &&String| {
            span.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | ':'))
        };
        for span in spans(&page).iter().filter(is_path) {
            let (first, rest) = span.split_once("::").unwrap_or((span, ""));
            let last = span.rsplit("::").next().unwrap();
            if first.is_empty() || rest.is_empty() || !root.join("crates").join(first).exists() {
                continue;
            }
            let found = modules.contains(&span.split("::").collect::<PathBuf>())
                || code.contains(&format!("fn {last}("));
            assert!(found, "{}: there is no {span}", page.display());
        }
    }
}

/// Counters, drop reasons and keys have pages of their own, two of which are written from the code.
#[test]
fn counters_that_troubleshooting_names_exist() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let known = ["counters.md", "drop-reasons.md", "configuration.md"]
        .iter()
        .flat_map(|page| spans(&docs.join(page)));
    let known: HashSet<_> = known.collect();
    let is_name = |span: &&String| {
        span.contains('-') && span.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '-' | '.'))
    };
    let page = spans(&docs.join("troubleshooting.md"));
    let named: HashSet<_> = page.iter().filter(is_name).filter(|span| !span.starts_with('-')).collect();
    assert!(named.len() > 40, "names are written another way now: {} were found", named.len());
    for name in named {
        let key = name.rsplit('.').next().unwrap();
        assert!(known.contains(key), "docs/troubleshooting.md: there is no {name}");
    }
}

/// What a line of a page has the reader type, from the program's name on.
#[cfg(feature = "dpdk")]
fn commands(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let typed = text.lines().filter_map(|line| line.strip_prefix("$ ").or(line.strip_prefix("# ")));
    let all = typed.map(str::to_owned).chain(spans(page));
    all.filter(|command| command.starts_with("millrace ")).collect()
}

/// Whether a word can be a command's: neither a placeholder, an option nor punctuation.
#[cfg(feature = "dpdk")]
fn is_command(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Commands and options that pages show are there; what they mean, and values, are not looked at.
#[cfg(feature = "dpdk")]
#[test]
fn commands_that_pages_show_exist() {
    let mut seen = HashSet::new();
    for page in pages() {
        for command in commands(&page) {
            let words: Vec<_> = command
                .split_whitespace()
                .skip(1)
                .take_while(|word| !matches!(*word, "--" | "#" | "|"))
                .collect();
            let path: Vec<_> = words.iter().copied().take_while(|word| is_command(word)).collect();
            let options = words
                .iter()
                .filter(|word| word.starts_with("--"))
                .map(|word| word.split('=').next().unwrap());
            let key = (path.join(" "), options.clone().collect::<Vec<_>>().join(" "));
            if path.is_empty() || !seen.insert(key) {
                continue;
            }
            let help = std::process::Command::new(env!("CARGO_BIN_EXE_millrace"))
                .args(&path)
                .arg("--help")
                .output()
                .unwrap();
            assert!(help.status.success(), "{}: there is no `{command}`", page.display());
            let help = String::from_utf8(help.stdout).unwrap();
            for option in options {
                assert!(help.contains(option), "{}: `{command}`: there is no {option}", page.display());
            }
        }
    }
    assert!(seen.len() > 50, "commands are written another way now: {} were found", seen.len());
}

/// The names in a list of clap's, each in front of what it means.
#[cfg(feature = "dpdk")]
fn listed(args: &[&str], from: &str, to: &str) -> Vec<String> {
    let help =
        std::process::Command::new(env!("CARGO_BIN_EXE_millrace")).args(args).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let list = help.split(from).nth(1).unwrap().split(to).next().unwrap();
    let names = list.lines().filter_map(|line| line.trim().trim_start_matches("- ").split([' ', ':']).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(feature = "dpdk")]
#[test]
fn every_scenario_and_every_question_is_described() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let headings = prose(&docs.join("benchmarks.md"));
    let headings: Vec<_> = headings.lines().filter(|line| line.starts_with("### ")).collect();
    let scenarios = listed(&["bench"], "Possible values:", "\n\n");
    assert!(scenarios.len() > 20, "{scenarios:?}");
    for scenario in scenarios {
        let found = headings.iter().any(|line| line.contains(&format!("`{scenario}`")));
        assert!(found, "docs/benchmarks.md has no heading for `{scenario}`");
    }
    let page = spans(&docs.join("cli.md"));
    let questions = listed(&["ctl"], "Commands:\n", "\n\n");
    assert!(questions.len() > 15, "{questions:?}");
    for question in questions.iter().filter(|question| *question != "help") {
        let named = |span: &String| {
            span.split(' ').next() == Some(question) || span.starts_with(&format!("ctl {question}"))
        };
        assert!(page.iter().any(named), "docs/cli.md doesn't name `ctl {question}`");
    }
}

/// The example has every key, which a test of crate `config` sees to.
#[test]
fn every_configuration_key_is_described() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let described: HashSet<_> = spans(&root.join("docs/configuration.md")).into_iter().collect();
    let example = std::fs::read_to_string(root.join("crates/config/src/example.toml")).unwrap();
    let keys: Vec<_> =
        example.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key).collect();
    assert!(keys.len() > 100, "keys are written another way now: {} were found", keys.len());
    let heads = example
        .lines()
        .filter(|line| line.starts_with('['))
        .map(|line| line.split(" #").next().unwrap().trim());
    for section in heads {
        assert!(described.contains(section), "docs/configuration.md doesn't name the section {section}");
    }
    for key in keys.iter().map(|key| key.trim_start_matches("# ")).filter(|key| !key.contains(' ')) {
        assert!(described.contains(key), "docs/configuration.md doesn't name the key `{key}`");
    }
}
