//! What was this UPF asked to be?
//!
//! One TOML file describes a UPF. Four layers make a configuration, each over the one before: the defaults, the file,
//! the environment (`MILLRACE_N4__LISTEN=192.0.2.1:8805`) and `--set` arguments (`port.0.mtu=9000`, or
//! `port.access.mtu=9000` by the entry's name). They are laid over each other as trees of values that
//! know where they were written (`tree`), then read into [`sections::File`] through serde (`reader`) and
//! against the bounds of the JSON Schema (`schema`), then examined as a whole and turned into a [`Config`], where names
//! have become positions and text has become types (`check`).
//!
//! **All at once.** A value that can't be read is struck out and reading goes on, so that one run reports every unknown key,
//! wrong type and number out of range. What only makes sense of a file that can be read (a route through
//! an interface that doesn't exist, overlapping pools) is reported, again all at once, when the rest is in order: as a
//! compiler does, so that no report is the consequence of another.
//!
//! ```
//!
//!
//! let report = config::parse("upf.toml", "[n4]\nlissten = '192.0.2.1:8805'\n", &[], &[]).unwrap_err();
//! assert_eq!(
//!     report.to_string(),
//!     "upf.toml:2:1: unknown key `lissten` in [n4]\n\
//!      \x20    2 | lissten = '192.0.2.1:8805'\n\
//!      \x20      | ^^^^^^^\n\
//!      \x20 help: did you mean `listen`?\n"
//! );
//! ```
//!
//! **Bounds.** A file has at most [`MAX_FILE_BYTES`], a report at most [`MAX_PROBLEMS`] problems; nothing that a file says
//! makes the loader panic.
#![forbid(unsafe_code)]

mod bond;
mod check;
mod findings;
mod flow_log;
mod forwarding;
mod in_force;
mod inspection;
mod metrics;
mod mirrors;
mod n3;
pub mod nat;
mod nearest;
mod offload;
mod problem;
pub mod qos;
mod reader;
mod report;
mod scaling;
pub mod scheduling;
mod schema;
pub mod sections;
mod tree;
mod typed;
pub mod units;

pub use bond::{Bond, BondMode, BondSection, BondTimeout, BondTransmit};
pub use flow_log::FlowLogSection;
pub use forwarding::{ForwardingPolicy, ForwardingPolicySection};
pub use inspection::InspectionSection;
pub use metrics::MetricsSection;
pub use mirrors::{Mirror, MirrorKind, MirrorSection, MirrorTarget};
pub use n3::{CheckSource, N3Section};
pub use nearest::nearest;
pub use offload::{OffloadMode, OffloadSection};
pub use problem::{Place, Step, Wrong};
pub use qos::Qos;
pub use report::{LoadError, Problem, Report, printable};
pub use scaling::ScalingSection;
pub use schema::schema;
pub use sections::Written;
pub use sections::{Driver, Limits, Log, LookupBy, MarkingSection, Memory, Pin, Role, SliceSection};
pub use typed::{Config, Interface, N4, Neighbour, Placement, Pool, Port, Route};
pub use units::{BitRate, DeviceName, InterfaceAddress, NodeId, PciAddress};

use reader::Reader;
use sections::File;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::path::Path;
use tree::Node;

/// The greatest file that is read.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// The most problems in a report.
pub const MAX_PROBLEMS: usize = 64;
/// What configuration variables of the environment start with; they have at least one `__` behind it.
pub const ENVIRONMENT_PREFIX: &str = "MILLRACE_";
/// A complete example with every key, commented.
pub const EXAMPLE: &str = include_str!("example.toml");

/// Loads a file and lays environment variables (name and value; all may be given, those that are not ours are passed over)
/// and `--set` arguments over it.
pub fn load(path: &Path, environment: &[(String, String)], set: &[String]) -> Result<Config, LoadError> {
    parse(&path.display().to_string(), &read(path)?, environment, set).map_err(LoadError::Invalid)
}

/// Says that a value of a configuration that was loaded can't be, on this machine: where it was written, if it was.
pub fn object(
    path: &Path,
    environment: &[(String, String)],
    set: &[String],
    key: &[&str],
    wrong: Wrong,
) -> LoadError {
    let text = match read(path) {
        Ok(text) => text,
        Err(error) => return error,
    };
    let (mut root, _) = Node::from_file(&text);
    overrides(&mut root, environment, set);
    let steps: Vec<Step> = key.iter().map(|key| Step::Key((*key).to_owned())).collect();
    let problem = Problem { wrong, place: root.place(&steps), related: Vec::new() };
    LoadError::Invalid(Box::new(Report { name: path.display().to_string(), text, problems: vec![problem] }))
}

/// The file's text.
fn read(path: &Path) -> Result<String, LoadError> {
    let name = path.display().to_string();
    let failed = |source| LoadError::Read { path: path.to_owned(), source };
    let bytes = {
        use std::io::Read;
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        bytes
    };
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        bytes.truncate(good);
        let wrong = Wrong::Syntax("the bytes from here on are not UTF-8 text".into());
        let problem = Problem { wrong, place: Place::File(good..good), related: Vec::new() };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        LoadError::Invalid(Box::new(Report { name, text, problems: vec![problem] }))
    })
}

/// As [`load`], for a text that is at hand; `name` is what reports call it.
pub fn parse(
    name: &str,
    text: &str,
    environment: &[(String, String)],
    set: &[String],
) -> Result<Config, Box<Report>> {
    let resolved = typed_from::<File>(text, &schema(), |root| overrides(root, environment, set))
        .and_then(|(file, root)| check::check(&file, &root));
    resolved.map_err(|problems| Box::new(report_of(name, text, set, problems)))
}

/// What is wrong, in the order of the text, then the overrides as they came (the sort is stable).
fn report_of(name: &str, text: &str, set: &[String], mut problems: Vec<Problem>) -> Report {
    problems.sort_by_key(|problem| match &problem.place {
        Place::File(span) => (span.start, 0),
        Place::Environment(_) => (usize::MAX, 1),
        Place::Argument(text) => (usize::MAX, 2 + set.iter().position(|s| s == text).unwrap_or(0)),
    });
    problems.truncate(MAX_PROBLEMS);
    Report { name: name.to_owned(), text: text.to_owned(), problems }
}

/// A file as its type and as it was written, within the bounds of its schema; `over` lays other things over it.
fn typed_from<T: DeserializeOwned>(
    text: &str,
    schema: &Json,
    over: impl FnOnce(&mut Node) -> Vec<Problem>,
) -> Result<(T, Node), Vec<Problem>> {
    if text.len() > MAX_FILE_BYTES {
        let wrong = Wrong::TooLarge { bytes: text.len() };
        return Err(vec![Problem { wrong, place: Place::TOP, related: Vec::new() }]);
    }
    let (mut root, mut problems) = Node::from_file(text);
    if problems.is_empty() {
        problems.extend(over(&mut root));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    for (path, wrong) in schema::out_of_range(&root, schema) {
        problems.push(Problem { wrong, place: root.place(&path), related: Vec::new() });
        root.strike(&path);
    }
    loop {
        match T::deserialize(Reader(&root)) {
            Ok(file) if problems.is_empty() => return Ok((file, root)),
            Ok(_) => return Err(problems),
            Err(fault) => {
                let (path, wrong) = fault.finish();
                if is_consequence(&root, &path, &wrong) {
                    if root.strike(&path) {
                        continue;
                    }
                    return Err(problems);
                }
                let place = match wrong {
                    Wrong::UnknownKey { .. } => root.key_place(&path),
                    _ => root.place(&path),
                };
                problems.push(Problem { wrong, place, related: Vec::new() });
                if problems.len() > MAX_PROBLEMS || !root.strike(&path) {
                    return Err(problems);
                }
            }
        }
    }
}

/// Whether what is missing is there, and was struck out because it is wrong: that has been said.
fn is_consequence(root: &Node, path: &[Step], wrong: &Wrong) -> bool {
    let Wrong::MissingKey { key, .. } = wrong else { return false };
    let mut path = path.to_vec();
    path.push(Step::Key(key.clone()));
    root.get(&path).is_some()
}

/// Lays the environment, then the arguments over the file's tree.
fn overrides(root: &mut Node, environment: &[(String, String)], set: &[String]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut put = |path: &str, steps: &[&str], value: &str, place: Place| {
        if let Err(why) = root.set(steps, Node::from_override(value, &place)) {
            let wrong = Wrong::NoSuchPath { path: path.to_owned(), why };
            problems.push(Problem { wrong, place, related: Vec::new() });
        }
    };
    let mut variables: Vec<_> = environment
        .iter()
        .filter_map(|(name, value)| {
            let path = name.strip_prefix(ENVIRONMENT_PREFIX).filter(|path| path.contains("__"))?;
            Some((path.to_lowercase().replace("__", ".").replace('_', "-"), name, value))
        })
        .collect();
    variables.sort();
    for (path, name, value) in variables {
        let steps: Vec<&str> = path.split('.').collect();
        put(&path, &steps, value, Place::Environment(format!("{name}={value}")));
    }
    let mut unreadable = Vec::new();
    for argument in set {
        let place = Place::Argument(argument.clone());
        match argument.split_once('=').map(|(path, value)| (path.trim(), value.trim())) {
            Some((path, value)) if !path.split('.').any(|step| step.trim().is_empty()) => {
                let steps: Vec<&str> = path.split('.').map(str::trim).collect();
                put(path, &steps, value, place);
            }
            _ => {
                let wrong = Wrong::NotAnOverride { argument: argument.chars().take(80).collect() };
                unreadable.push(Problem { wrong, place, related: Vec::new() });
            }
        }
    }
    problems.extend(unreadable);
    problems
}

#[cfg(test)]
mod tests;
