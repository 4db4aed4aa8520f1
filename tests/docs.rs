//! Pages of docs/ that say what the code says: written from it, and compared with it here.
//!
//! `UPDATE_DOCS=1 cargo test --test docs` writes them anew.
#![allow(clippy::unwrap_used)]

use api::{Each, Question, Request};
use counters::Count;
use datapath::carried::ApplicationCounters;
use datapath::mirror::MirrorCounters;
use datapath::nat::PoolCounters;
use datapath::offload::OffloadCounters;
use datapath::{Counters, FlowCounters, InterfaceCounters, Reason, SliceTraffic, StageCosts};
use dpi::classify::Carrier;
use engine::egress::ClassCounters;
use engine::{Load, LookupCounters};
use n4::N4Counters;
use pfcp::node::NodeCounters;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use upf::{FlowLogCounters, PortCounters};

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

/// A table of all counters of a struct.
fn counted(counters: &impl Count) -> String {
    let mut text = String::from("| counter | kind | unit | meaning |\n|---|---|---|---|\n");
    for line in counters.lines() {
        let (name, kind) = (line.full_name(), line.about.kind.label());
        let (unit, meaning) = (line.about.unit.label().unwrap_or_default(), line.meaning);
        assert!(!meaning.contains('|'), "`{name}` would break the table");
        writeln!(text, "| `{name}` | {kind} | {unit} | {meaning} |").unwrap();
    }
    text
}

/// How the counters are named where Prometheus reads them.
const METRICS: &str = "\
`[metrics] listen = \"127.0.0.1:9090\"` ([configuration.md](configuration.md)) serves all of them by HTTP, for Prometheus and its like: `/metrics` in the format
of OpenMetrics 1.0, or in Prometheus' older one for whoever doesn't ask for that. [prometheus.yml](prometheus.yml) is an example of what a Prometheus is
told. A metric's name is `millrace_`, its group, the counter's name and its unit; time is in seconds, and a counter ends in `_total`:
`received` of worker 0 is `millrace_worker_received_packets_total{worker=\"0\"}`. Groups are `pfcp`, `n4`, `port`, `worker`, `worker_loop` (its time), `interface`, `queue`,
`slice`, `nat`, `mirror`, `application`, `offload`, `lookups` and `flow` (its log). Labels are `worker`, `port`, `interface`, `class`, `slice`, `direction`, `pool`, `reason`, `application`,
and of a mirror `to` (its target's name) and `slot` (0 to 63; a later mirror gets it again): none of them grows with subscribers. A mirror is told of while it is in force.
At most 64 applications have a label of their own: who has one keeps it, and of new ones the largest come first. What was looked into and is no application's that is known has
the label `(unknown)`, all others together `(others)`. What they have carried while they live is looked at every ten seconds; of a million flows every sixteen.

`/healthz` answers 200 if all workers and N4 have published within two seconds, else 503 and who has not. Figures are those of the last publication, at most
a tenth of a second old; asking takes no time from packets and N4.

";

#[test]
fn counters() {
    // Flows have a table of their own, and reasons a page.
    let is_here = |line: &&str| !line.starts_with("| `flows-") && !line.starts_with("| `dropped-");
    let packets = counted(&Counters::default());
    let packets = packets.split_inclusive('\n').filter(is_here).collect::<String>()
        + "| `dropped-…` | counter | packets | Dropped frames, by [reason](drop-reasons.md). |\n";
    let sections = [
        ("The PFCP node", "`ctl n4`", counted(&NodeCounters::default())),
        ("Sessions and reports", "`ctl n4`", counted(&N4Counters::default())),
        ("Packets, by worker", "`ctl workers`, `ctl drops`", packets),
        ("Flows", "`ctl flows`", counted(&FlowCounters::default())),
        ("A worker's time", "`ctl workers`", counted(&Load::default())),
        ("A port's own", "`ctl ports`", counted(&PortCounters::default())),
        ("The stages of a burst", "`ctl workers --stages`", counted(&StageCosts::default())),
        ("The flow log", "`ctl flows`", counted(&FlowLogCounters::default())),
        ("Interfaces", "", counted(&InterfaceCounters::default())),
        ("Queues, by port and class", "`ctl qos`", counted(&ClassCounters::default())),
        ("Slices, by direction", "`ctl slices`", counted(&SliceTraffic::default())),
        ("Translation on N6, by pool", "`ctl nat`", counted(&PoolCounters::default())),
        ("Mirrors", "`ctl mirror`", counted(&MirrorCounters::default())),
        ("Flows in NICs", "`ctl offload`", counted(&OffloadCounters::default())),
        ("Look-ups by a device", "`ctl lookups`", counted(&LookupCounters::default())),
        ("Applications", "`ctl applications`", counted(&ApplicationCounters::default())),
    ];
    let mut text = String::from(
        "# What is counted\n\n\
         A `counter` only grows, and begins at 0 when the process starts; a `gauge` is a state. Each worker counts by itself, and what is\n\
         shown of all of them together are sums. `millrace ctl peers` says for each SMF how many requests came and how many were refused.\n\n",
    );
    text.push_str(METRICS);
    for (heading, shown, table) in sections {
        let shown = if shown.is_empty() { String::new() } else { format!("Shown by {shown}.\n\n") };
        writeln!(text, "## {heading}\n\n{shown}{table}").unwrap();
    }
    writeln!(text, "This page is written from what `counters!` declares, by `{HOW}`.").unwrap();
    page("counters.md", &text);
}

/// What a value is, what it means, and what is in it, as its schema says.
struct Described {
    root: Value,
    rows: String,
}

impl Described {
    fn new(schema: schemars::Schema) -> Self {
        let root = schema.to_value();
        let mut described = Self { rows: String::new(), root: root.clone() };
        described.fields(&root, "");
        described
    }

    /// Where a reference leads.
    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let name = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
        name.map_or(schema, |name| &self.root["$defs"][name])
    }

    /// The schema of what is there, where it may be missing.
    fn present<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let is_null = |schema: &&Value| schema["type"] == "null";
        let any = schema["anyOf"].as_array().into_iter().flatten();
        self.resolved(any.into_iter().find(|any| !is_null(any)).unwrap_or(schema))
    }

    fn row(&mut self, name: &str, kind: &str, meaning: &str) {
        // Links between types are of no use here.
        let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
        let meaning = meaning.replace("[`", "`").replace("`]", "`").replace('|', "\\|");
        writeln!(self.rows, "| `{name}` | {kind} | {meaning} |").unwrap();
    }

    fn fields(&mut self, schema: &Value, before: &str) {
        for variant in schema["oneOf"].as_array().cloned().unwrap_or_default() {
            let tags = variant["properties"].as_object().cloned().unwrap_or_default();
            for (tag, said) in tags.iter().filter(|(_, of)| of["const"].is_string()) {
                let meaning = variant["description"].as_str().unwrap_or_default();
                self.row(
                    &format!("{before}{tag}"),
                    &format!("`{}`", said["const"].as_str().unwrap()),
                    meaning,
                );
            }
            let inner = self.resolved(&variant).clone();
            self.fields(&inner, before);
        }
        for (name, field) in schema["properties"].as_object().cloned().unwrap_or_default() {
            if field["const"].is_string() {
                continue;
            }
            let known = self.present(&field).clone();
            let (kind, inner, behind) = self.kind(&known);
            let optional = known != *self.resolved(&field)
                || field["type"].as_array().is_some_and(|kinds| kinds.contains(&"null".into()));
            let kind = if optional { format!("{kind}, or none") } else { kind };
            let name = format!("{before}{name}");
            self.row(&name, &kind, field["description"].as_str().unwrap_or_default());
            self.fields(&inner, &format!("{name}{behind}."));
        }
    }

    /// What it is called, what it has inside, and how that is written behind its name.
    fn kind(&self, schema: &Value) -> (String, Value, &'static str) {
        if let Some(values) =
            schema["oneOf"].as_array().filter(|all| all.iter().all(|one| one["const"].is_string()))
        {
            let values: Vec<_> =
                values.iter().map(|one| format!("`{}`", one["const"].as_str().unwrap())).collect();
            return (values.join(", "), Value::Null, "");
        }
        if let Some(items) = schema.get("items") {
            let inner = self.resolved(items).clone();
            let (of, ..) = self.kind(&inner);
            return (format!("list of {of}s"), inner, "[]");
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("string");
        (kind.to_owned(), schema.clone(), "")
    }
}

/// A question, its parameters, and what comes back.
#[derive(Default)]
struct Questions(Vec<(&'static str, String)>);

impl Each for Questions {
    fn each<Q: Question>(&mut self) {
        let (asked, told) = (schemars::schema_for!(Q), schemars::schema_for!(Q::Answer));
        let said = asked.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
        let (asked, told) = (Described::new(asked), Described::new(told));
        let mut text = format!("## `{}`\n\n{said}", Q::NAME);
        if !Q::SEE.is_empty() {
            write!(text, " See [{}]({}).", Q::SEE.split('#').next().unwrap(), Q::SEE).unwrap();
        }
        if !asked.rows.is_empty() {
            write!(text, "\n\n| asked with | | |\n|---|---|---|\n{}", asked.rows.trim_end()).unwrap();
        }
        let name = if Q::ANSWER == Q::NAME { String::new() } else { format!(" (`{}`)", Q::ANSWER) };
        if told.rows.is_empty() {
            write!(text, "\n\nThe answer{name} says nothing more.\n").unwrap();
        } else {
            write!(text, "\n\n| answer{name} | | |\n|---|---|---|\n{}", told.rows).unwrap();
        }
        self.0.push((Q::NAME, text));
    }
}

#[test]
fn questions() {
    let mut questions = Questions::default();
    Request::each(&mut questions);
    questions.0.sort_unstable_by_key(|(name, _)| *name);
    let text: Vec<_> = questions.0.into_iter().map(|(_, text)| text).collect();
    let text = format!(
        "# What a running UPF can be asked\n\n\
         How a question gets there, by `millrace ctl` or as a line of JSON, is in [cli.md](cli.md#asking-a-running-upf). The names below are those of\n\
         the JSON: `{{\"ask\":\"drops\"}}`. What a list holds is written behind `[]`. SEIDs and TEIDs are strings such as `\"0x2a\"` in\n\
         answers, and strings or numbers in questions.\n\n\
         {}\n\
         This page is written from `crates/api/src/questions` by `{HOW}`.\n",
        text.join("\n")
    );
    page("questions.md", &text);
}

#[test]
fn protocols() {
    let mut rows =
        String::from("| protocol | category | what it is | over | usual ports |\n|---|---|---|---|---|\n");
    let mut all: Vec<_> = dpi::Protocol::ALL.to_vec();
    all.sort_by_key(|it| it.name().to_ascii_lowercase());
    for protocol in &all {
        let recognisers = || {
            let all = dpi::protocols::recognisers();
            all.filter(|it| it.protocol == *protocol)
        };
        let carriers = [(Carrier::Tcp, "TCP"), (Carrier::Udp, "UDP"), (Carrier::Sctp, "SCTP")];
        let over: Vec<_> = carriers
            .iter()
            .filter(|(carrier, _)| recognisers().any(|it| it.carriers.has(*carrier)))
            .map(|it| it.1)
            .collect();
        let mut ports: Vec<_> = recognisers().flat_map(|it| it.ports.iter().copied()).collect();
        ports.sort_unstable();
        ports.dedup();
        let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
        let (name, about) = (protocol.name(), protocol.about());
        assert!(!name.contains('|') && !about.contains('|'), "{name} would break the table");
        let category = protocol.category().name();
        writeln!(rows, "| {name} | {category} | {about} | {} | {} |", over.join(", "), ports.join(", "))
            .unwrap();
    }
    let text = format!(
        "# Protocols that inspection knows\n\n\
         {} protocols. All are known by what their messages look like: a port decides who is asked first, and whether a weak likeness is\n\
         believed ([dpi.md](dpi.md)). Without anything under \"over\", the protocol is known by another one's messages, by the IP header, or by its behaviour.\n\n\
         {rows}\n\
         This page is written from `crates/dpi/src/protocol.rs` and `crates/dpi/src/protocols` by `{HOW}`.\n",
        all.len()
    );
    page("protocols.md", &text);
}

#[test]
fn applications() {
    let bundle = dpi::signatures::Bundle::built_in();
    let mut rows = String::from(
        "| application | as people write it | category | part of | rules |\n|---|---|---|---|---|\n",
    );
    let mut all: Vec<_> = bundle.applications().collect();
    all.sort_by(|a, b| a.1.name.cmp(&b.1.name));
    for (id, application) in &all {
        let rules = bundle.rules().filter(|rule| rule.application == *id).count();
        let parent = application.parent.map_or("", |it| &bundle.application(it).name);
        let (name, display, category) =
            (&application.name, &application.display, application.category.name());
        writeln!(rows, "| `{name}` | {display} | {category} | {parent} | {rules} |").unwrap();
    }
    let text = format!(
        "# Applications that inspection knows\n\n\
         {} applications and services, found by {} rules; [signatures.md](signatures.md) says how to add others.\n\n\
         {rows}\n\
         This page is written from `signatures/` by `{HOW}`.\n",
        all.len(),
        bundle.rules().len()
    );
    page("applications.md", &text);
}
