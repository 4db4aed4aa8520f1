//! How often does it agree with another engine's labels?
//!
//! `cargo run --release -p dpi --example score -- CAPTURES LABELS.tsv [--file NAME] [--wrong | --unknown | --application | --host | --beyond | --aliases]`
//!
//! CAPTURES is a folder of pcap and pcapng files. LABELS has a header line and a line for each flow; the columns pcap, l4, src_ip, src_port, dst_ip, dst_port,
//! hostname, label_nocustom and label_2025_12 are read. A flow is right if it equals either label, after `aliases.tsv` beside this file: the same thing
//! under two names, or where the other engine errs, with the reason. Where ours says less than the label, but nothing else, the reason begins with
//! "less:"; what is right without such rows is told, too, and `--aliases` says how many flows each row decides. A label is "protocol" or
//! "protocol.application".
#![allow(clippy::unwrap_used, clippy::expect_used)]

use dpi::prepare::{Link, Outcome, Preparation, Tunnels};
use dpi::signatures::Bundle;
use dpi::track::Ends;
use dpi::{Event, Inspector, Options, Packet, Verdict};
use io::pcap::CaptureReader;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use tables::Nanos;

/// Protocol's number, and two ends, the lower one first.
type Tuple = (u8, (IpAddr, u16), (IpAddr, u16));

fn tuple(protocol: u8, a: (IpAddr, u16), b: (IpAddr, u16)) -> Tuple {
    if a <= b { (protocol, a, b) } else { (protocol, b, a) }
}

struct Label {
    labels: Vec<String>,
    host: String,
}

/// What was found of a flow.
#[derive(Clone)]
struct Mine {
    verdict: Verdict,
    host: String,
    packets: u64,
}

struct Alias {
    theirs: String,
    mine: String,
    says_less: bool,
    written: &'static str,
}

struct Aliases(Vec<Alias>);

/// How what we say is the same as a label, from the worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Same {
    No,
    Less(usize),
    Alias(usize),
    Equal,
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

impl Aliases {
    fn read() -> Self {
        let lines =
            include_str!("aliases.tsv").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let pairs = lines.map(|line| {
            let mut fields = line.split('\t');
            let (theirs, mine) = (fields.next().unwrap(), fields.next().unwrap());
            let reason = fields.next().filter(|reason| !reason.is_empty());
            let says_less = reason.unwrap_or_else(|| panic!("no reason: {line}")).starts_with("less:");
            Alias { theirs: plain(theirs), mine: plain(mine), says_less, written: line }
        });
        Self(pairs.collect())
    }

    fn same(&self, theirs: &str, mine: &str) -> Same {
        let (theirs, mine) = (plain(theirs), plain(mine));
        if mine.is_empty() || theirs == mine {
            return if mine.is_empty() { Same::No } else { Same::Equal };
        }
        let row = self.0.iter().enumerate().find(|(_, it)| it.theirs == theirs && it.mine == mine);
        row.map_or(Same::No, |(at, it)| if it.says_less { Same::Less(at) } else { Same::Alias(at) })
    }
}

fn labels(path: &Path) -> HashMap<String, HashMap<Tuple, Vec<Label>>> {
    let text = std::fs::read_to_string(path).expect("the labels");
    let mut lines = text.lines();
    let header: Vec<_> = lines.next().expect("a header").split('\t').collect();
    let mut all: HashMap<String, HashMap<Tuple, Vec<Label>>> = HashMap::new();
    for line in lines {
        let fields: Vec<_> = line.split('\t').collect();
        let field = |name: &str| {
            header
                .iter()
                .position(|it| *it == name)
                .and_then(|at| fields.get(at))
                .copied()
                .unwrap_or_default()
        };
        let protocol = match field("l4") {
            "TCP" => 6,
            "UDP" => 17,
            "ICMP" => 1,
            "IGMP" => 2,
            "ICMPV6" => 58,
            "GRE" => 47,
            "ESP" => 50,
            "AH" => 51,
            "SCTP" => 132,
            "OSPF" => 89,
            "PIM" => 103,
            "PGM" => 113,
            "VRRP" => 112,
            "IPIP" => 4,
            "EGP" => 8,
            number => number.parse().unwrap_or(255),
        };
        let end = |address, port| {
            let address: Option<IpAddr> = field(address).parse().ok();
            address.map(|address| (address, field(port).parse().unwrap_or(0)))
        };
        let (Some(source), Some(destination)) = (end("src_ip", "src_port"), end("dst_ip", "dst_port")) else {
            continue;
        };
        let both = [field("label_nocustom"), field("label_2025_12")].map(str::to_owned);
        let label = Label {
            labels: both.into_iter().filter(|it| it != "-" && !it.is_empty()).collect(),
            host: field("hostname").to_owned(),
        };
        let file = all.entry(field("pcap").to_owned()).or_default();
        file.entry(tuple(protocol, source, destination)).or_default().push(label);
    }
    all
}

fn of(ends: &Ends) -> Tuple {
    tuple(ends.protocol.0, (ends.subscriber, ends.subscriber_port), (ends.peer, ends.peer_port))
}

fn inspect(path: &Path) -> HashMap<Tuple, Vec<Mine>> {
    let mut reader = CaptureReader::new(File::open(path).unwrap()).of_any_link();
    let mut preparation = Preparation::new(Tunnels::USUAL, Some(dpi::prepare::Limits::default()));
    let mut inspector = Inspector::new(Options { tells_names: true, ..Options::default() }, 1, Nanos(0));
    let mut flows: HashMap<Tuple, Vec<Mine>> = HashMap::new();
    let mut hosts: HashMap<Tuple, String> = HashMap::new();
    let mut take = |event| match event {
        Event::Found { flow, sheet } => {
            if !sheet.host.is_empty() {
                let host = || String::from_utf8_lossy(sheet.host.bytes()).into_owned();
                hosts.entry(of(&flow.ends)).or_insert_with(host);
            }
        }
        Event::Classified { .. } | Event::Decoded { .. } | Event::Measured { .. } => {}
        Event::Ended { flow, verdict, summary, .. } => {
            let host = hosts.remove(&of(&flow.ends)).unwrap_or_default();
            let mine = Mine { verdict, host, packets: summary.packets.iter().sum() };
            flows.entry(of(&flow.ends)).or_default().push(mine);
        }
    };
    let (mut first, mut now) = (None, Nanos(0));
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                // Captures go back in time now and then.
                now = now.max(Nanos(packet.nanos.saturating_sub(*first.get_or_insert(packet.nanos))));
                let Some(link) = Link::of_pcap(packet.link.into()) else { continue };
                if let Outcome::Packet(prepared) = preparation.push(link, packet.data, now) {
                    let tunnel = prepared.around.tunnel.map(|it| it.id);
                    inspector.push(now, &Packet { ip: prepared.ip, bytes: prepared.packet, tunnel });
                }
                inspector.tick(now);
                std::iter::from_fn(|| inspector.poll()).for_each(&mut take);
            }
            Ok(None) => break,
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                break;
            }
        }
    }
    while inspector.flush_one(now) {
        std::iter::from_fn(|| inspector.poll()).for_each(&mut take);
    }
    flows
}

#[derive(Default)]
struct Score {
    flows: u64,
    right: u64,
    /// Of these, by rows that say less than the label.
    less: u64,
    wrong: u64,
    unknown: u64,
}

impl Score {
    fn percent(&self, part: u64) -> f64 {
        100.0 * part as f64 / self.flows.max(1) as f64
    }

    fn count_right(&mut self, same: Same, uses: &mut [u64]) {
        self.right += 1;
        self.less += u64::from(matches!(same, Same::Less(_)));
        if let Same::Less(at) | Same::Alias(at) = same {
            uses[at] += 1;
        }
    }

    fn print(&self, what: &str) {
        println!(
            "{what:12} {:5} flows: {:5.1} % right (of these {:.1} % say less than the label), {:4.1} % wrong, {:4.1} % unknown",
            self.flows,
            self.percent(self.right),
            self.percent(self.less),
            self.percent(self.wrong),
            self.percent(self.unknown)
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (captures, labels_file) =
        (arguments.next().expect("CAPTURES"), arguments.next().expect("LABELS.tsv"));
    let rest: Vec<_> = arguments.collect();
    let only = rest.iter().position(|it| it == "--file").and_then(|at| rest.get(at + 1));
    let shows = |what: &str| rest.iter().any(|it| it == what);
    let aliases = Aliases::read();
    let mut uses = vec![0; aliases.0.len()];
    let all = labels(Path::new(&labels_file));
    let mut files: Vec<_> = all.keys().filter(|file| only.is_none_or(|only| *file == only)).collect();
    files.sort();
    let find = |name: &str| -> Option<PathBuf> {
        let path = Path::new(&captures).join(name);
        path.exists().then_some(path)
    };
    let (mut protocols, mut applications, mut hosts) = (Score::default(), Score::default(), Score::default());
    let (mut missing, mut beyond) = (0_u64, 0_u64);
    let mut confusions: BTreeMap<(String, String), (u64, String)> = BTreeMap::new();
    for file in files {
        let Some(path) = find(file) else {
            eprintln!("{file}: not there");
            continue;
        };
        let mut mine = inspect(&path);
        for (tuple, rows) in &all[file] {
            let mut all_found = mine.remove(tuple).unwrap_or_default();
            all_found.reverse();
            let mut last = None;
            for row in rows {
                let it = all_found.pop().or_else(|| last.clone());
                let Some(it) = it else {
                    missing += 1;
                    continue;
                };
                last = Some(it.clone());
                let verdict = it.verdict;
                let my_protocol = verdict.protocol.map_or("", dpi::Protocol::name);
                let my_over = verdict.over.map_or("", dpi::Protocol::name);
                let my_applications = found(&verdict);
                let my_application = my_applications.first().map_or("", String::as_str);
                let mut note = |kind: &str, theirs: &str, mine: &str| {
                    if shows(kind) {
                        let key = (theirs.to_owned(), mine.to_owned());
                        let entry = confusions.entry(key).or_insert((0, format!("{file} {tuple:?}")));
                        entry.0 += 1;
                    }
                };
                if row.labels.iter().all(|label| label == "Unknown") {
                    beyond += u64::from(!my_protocol.is_empty());
                    if !my_protocol.is_empty() {
                        note("--beyond", "Unknown", my_protocol);
                    }
                    continue;
                }
                let label = row.labels.first().map_or("", String::as_str);
                protocols.flows += 1;
                let ways = row.labels.iter().flat_map(|label| {
                    let master = label.split('.').next().unwrap_or_default();
                    let own = [my_protocol, my_over, my_application].map(|it| aliases.same(master, it));
                    own.into_iter().chain([aliases.same(label, my_protocol)])
                });
                let same = ways.max().unwrap_or(Same::No);
                if same > Same::No {
                    protocols.count_right(same, &mut uses);
                } else if my_protocol.is_empty() {
                    protocols.unknown += 1;
                    note("--unknown", label, &format!("{:?}", verdict.reason));
                } else {
                    protocols.wrong += 1;
                    note("--wrong", label, &format!("{my_protocol} {:?}", verdict.reason));
                }
                if let Some((master, application)) = label.split_once('.')
                    && master != "DNS"
                {
                    applications.flows += 1;
                    let later: Vec<_> =
                        row.labels.iter().filter_map(|it| it.split_once('.')).map(|it| it.1).collect();
                    let mine: Vec<_> =
                        my_applications.iter().map(String::as_str).chain([my_protocol]).collect();
                    let ways = later.iter().flat_map(|theirs| mine.iter().map(|it| aliases.same(theirs, it)));
                    let same = ways.max().unwrap_or(Same::No);
                    if same > Same::No {
                        applications.count_right(same, &mut uses);
                    } else if my_application.is_empty() {
                        applications.unknown += 1;
                        note("--application", application, &format!("- {}", row.host));
                    } else {
                        applications.wrong += 1;
                        let why = verdict.evidence;
                        note(
                            "--application",
                            application,
                            &format!("{my_application} ({why:?}) {}", row.host),
                        );
                    }
                }
                if !row.host.is_empty() {
                    hosts.flows += 1;
                    let (theirs, mine) = (row.host.to_ascii_lowercase(), it.host.to_ascii_lowercase());
                    if theirs == mine {
                        hosts.right += 1;
                    } else if mine.is_empty() {
                        hosts.unknown += 1;
                        note(
                            "--host",
                            &format!("{label} {theirs}"),
                            &format!("- ({my_protocol}, {} packets)", it.packets),
                        );
                    } else {
                        hosts.wrong += 1;
                        note("--host", &format!("{label} {theirs}"), &mine);
                    }
                }
            }
        }
    }
    let mut sorted: Vec<_> = confusions.into_iter().collect();
    sorted.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((theirs, mine), (count, example)) in sorted {
        println!("{count:5}  {theirs:40} {mine:40} {example}");
    }
    if shows("--aliases") {
        for (alias, uses) in aliases.0.iter().zip(&uses) {
            println!("{uses:5}  {}", alias.written);
        }
    }
    protocols.print("protocol");
    applications.print("application");
    hosts.print("host name");
    println!(
        "flows of the labels that were not found: {missing}; flows labelled Unknown that got a protocol: {beyond}"
    );
}

/// The application, and what it is a part of: the other engine may tell its parts apart less finely.
fn found(verdict: &Verdict) -> Vec<String> {
    let bundle = Bundle::built_in();
    let mut next = verdict.application;
    std::iter::from_fn(|| {
        let application = bundle.application(next?);
        next = application.parent;
        Some(application.name.to_string())
    })
    .collect()
}
