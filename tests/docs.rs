//! Pages of docs/ that say what the code says: written from it, and compared with it here.
//!
//! `UPDATE_DOCS=1 cargo test --test docs` writes them anew.
#![allow(clippy::unwrap_used)]

use datapath::Reason;
use n4::N4Counters;
use pfcp::node::NodeCounters;
use std::fmt::Write;
use std::path::Path;

const HOW: &str = "UPDATE_DOCS=1 cargo test --test docs";

/// A table of names and meanings.
fn table(heading: &str, rows: impl IntoIterator<Item = (&'static str, &'static str)>) -> String {
    let mut text = format!("| {heading} | meaning |\n|---|---|\n");
    for (name, meaning) in rows {
        let meaning = meaning.trim();
        assert!(!name.contains('|') && !meaning.contains('|'), "`{name}` would break the table");
        writeln!(text, "| `{name}` | {meaning} |").unwrap();
    }
    text
}

/// Writes the page, or compares it with what it should be.
fn page(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    if written == text {
        return;
    }
    let line = written.lines().zip(text.lines()).position(|(a, b)| a != b).unwrap_or_default();
    panic!("docs/{name} is not what the code says, from line {} on; write it anew with: {HOW}", line + 1);
}

#[test]
fn drop_reasons() {
    let rows = Reason::ALL.iter().map(|reason| (reason.label(), reason.meaning()));
    let text = format!(
        "# Why a packet was not forwarded\n\n\
         Every dropped packet is counted under one of these names: for the whole UPF in `millrace ctl drops`, for one session in\n\
         `millrace ctl session SEID`. A session's own list has only drops of packets that were recognised as its own.\n\n\
         {}\n\
         This page is written from `crates/datapath/src/reason.rs` by `{HOW}`.\n",
        table("reason", rows)
    );
    page("drop-reasons.md", &text);
}

#[test]
fn offload_counters() {
    let rows = datapath::offload::OffloadCounters::default().each();
    let mut text = String::from("| counter | meaning |\n|---|---|\n");
    for (name, meaning, _) in rows {
        writeln!(text, "| `{name}` | {meaning} |").unwrap();
    }
    let text = format!(
        "# What became of flows in NICs\n\n\
         `millrace ctl offload` shows these, all workers together; they begin at 0 when the process starts. What they are about is in\n\
         [offload.md](offload.md).\n\n\
         {text}\n\
         This page is written from `datapath::offload::OffloadCounters` by `{HOW}`.\n"
    );
    page("offload-counters.md", &text);
}

/// The end of a page that is written by hand otherwise.
#[test]
fn flow_counters() {
    const HEADING: &str = "## Counters\n\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/flows.md");
    let written = std::fs::read_to_string(path).unwrap();
    let by_hand = written.split(HEADING).next().unwrap();
    let rows = datapath::FlowCounters::default().each();
    let text = format!(
        "{by_hand}{HEADING}\
         `millrace ctl flows` shows these, all workers together, and with a flow log `log-lines` and `log-lines-lost`: lines that were\n\
         written and lines that were not.\n\n\
         {}\n\
         This list is written from `datapath::FlowCounters` by `{HOW}`.\n",
        table("counter", rows.map(|(name, meaning, _)| (name, meaning)))
    );
    page("flows.md", &text);
}

#[test]
fn counters() {
    let (node, n4) = (NodeCounters::default(), N4Counters::default());
    let rows = |each: Vec<(&'static str, &'static str, u64)>| {
        each.into_iter().map(|(name, meaning, _)| (name, meaning))
    };
    let text = format!(
        "# What N4 counts\n\n\
         `millrace ctl n4` shows all of them; they begin at 0 when the process starts. `millrace ctl peers` says for each SMF how\n\
         many requests came and how many were refused. What happens to packets is in [drop-reasons.md](drop-reasons.md).\n\n\
         ## The PFCP node\n\n\
         Messages and associations (`pfcp::node::NodeCounters`).\n\n\
         {}\n\
         ## Sessions and reports\n\n\
         What session requests led to (`n4::N4Counters`).\n\n\
         {}\n\
         This page is written from the two structures by `{HOW}`.\n",
        table("counter", rows(node.each().collect())),
        table("counter", rows(n4.each().collect()))
    );
    page("counters.md", &text);
}
