//! Mirrors as the operator sees them: begun and ended at run time, towards the configuration's targets.

use super::capture::CaptureFile;
use super::{Backend, Upf, convert};
use api::{Answers, CtlError, ErrorCode, MirrorDirection, MirrorLine, MirrorList, MirrorSelection};
use config::{Config, MirrorTarget};
use datapath::Counters;
use datapath::command::Command;
use datapath::mirror::{CaptureTx, MAX_MIRRORS, Mirror, MirrorCounters, Order, Scope, Target, capture};
use packet::MacAddr;
use pfcp::Seid;
use session::rules::{Application, SdfFilter};
use session::sdf::{Extras, Flow, SdfLimits};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tables::Nanos;

/// Octets that may wait between a worker and a file's writer: about 20 ms at 10 Gbit/s.
const CAPTURE_RING: usize = 16 << 20;
/// Filters of one mirror, at most.
const MAX_FILTERS: usize = 16;

/// Where workers count what a mirror copies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// Its number, which is used again.
    pub number: u16,
    /// Its target's name.
    pub to: String,
    /// When it began.
    pub since: Nanos,
}

/// A mirror that is in force.
struct Active {
    mirror: Arc<Mirror>,
    since: Nanos,
    /// What is told of it, without what it counted.
    line: MirrorLine,
    file: Option<CaptureFile>,
}

/// All mirrors.
#[derive(Default)]
pub(super) struct Mirrors {
    /// The ports' MAC addresses.
    macs: Vec<MacAddr>,
    /// By ID.
    active: BTreeMap<u32, Active>,
    /// IDs are never used again, numbers as late as possible: a worker may still say that its last holder ended.
    last_id: u32,
    last_number: u16,
    /// Files whose mirrors ended, until they are closed.
    closing: Vec<CaptureFile>,
}

fn bad(message: impl Into<String>) -> CtlError {
    CtlError::new(ErrorCode::BadRequest, message)
}

fn not_found(message: impl Into<String>) -> CtlError {
    CtlError::new(ErrorCode::NotFound, message)
}

impl Mirrors {
    pub fn new(macs: Vec<MacAddr>) -> Self {
        Self { macs, last_number: MAX_MIRRORS - 1, ..Self::default() }
    }

    /// Waits for all files; the workers are gone.
    pub fn finish(self) {
        self.active
            .into_values()
            .filter_map(|active| active.file)
            .chain(self.closing)
            .for_each(CaptureFile::join);
    }

    /// Where those in force count.
    pub fn slots(&self) -> Vec<Slot> {
        let slot = |active: &Active| Slot {
            number: active.mirror.number,
            to: active.line.to.clone(),
            since: active.since,
        };
        self.active.values().map(slot).collect()
    }

    fn free_number(&self) -> Option<u16> {
        let next = (1..=MAX_MIRRORS).map(|step| (self.last_number + step) % MAX_MIRRORS);
        let used = |number| self.active.values().any(|active| active.mirror.number == number);
        next.into_iter().find(|number| !used(*number))
    }

    /// Forgets a mirror, and leaves its file to be completed.
    fn forget(&mut self, id: u32) -> Option<Active> {
        let mut active = self.active.remove(&id)?;
        self.closing.retain(|file| !file.is_finished());
        self.closing.extend(active.file.take());
        Some(active)
    }
}

impl Answers<api::Mirror> for Backend {
    fn answer(&self, request: api::Mirror) -> Result<MirrorList, CtlError> {
        if matches!(request, api::Mirror::Remove { .. }) {
            // Its last figures have all in them that was copied until now. A worker that hangs keeps nobody from ending it.
            let _ = self.view.after_now();
        }
        let changes = !matches!(request, api::Mirror::List);
        let mirrors = self.ask(move |upf| handle(upf, &request))?;
        if changes {
            // What arrives after the answer is copied, or no longer.
            self.settle()?;
        }
        Ok(MirrorList { mirrors })
    }
}

/// Does what was asked for; the mirrors that it was about.
fn handle(upf: &mut Upf, request: &api::Mirror) -> Result<Vec<MirrorLine>, CtlError> {
    match request {
        api::Mirror::Add(selection) => Ok(vec![add(upf, selection)?]),
        api::Mirror::List => {
            let counters = upf.view.counters();
            Ok(upf.mirrors.active.values().map(|active| line(active, &counters)).collect())
        }
        api::Mirror::Remove { id } => {
            if !upf.mirrors.active.contains_key(id) {
                return Err(not_found(format!("there is no mirror {id}")));
            }
            let counters = upf.view.counters();
            let last = upf.mirrors.active.get(id).map(|active| line(active, &counters));
            end(upf, *id);
            Ok(last.into_iter().collect())
        }
    }
}

/// A worker says that these mirrors' session is gone.
pub(super) fn ended(upf: &mut Upf, numbers: &[u16]) {
    let of = |active: &Active| active.mirror.scope != Scope::All && numbers.contains(&active.mirror.number);
    let ids: Vec<_> = upf.mirrors.active.iter().filter(|(_, a)| of(a)).map(|(id, _)| *id).collect();
    for id in ids {
        tracing::info!(mirror = id, "a mirror ends with its session");
        end(upf, id);
    }
}

fn end(upf: &mut Upf, id: u32) {
    let Some(active) = upf.mirrors.forget(id) else { return };
    let number = active.mirror.number;
    upf.engine.broadcast(|| Command::Mirror(Order::Remove { number }));
    upf.engine.flush();
    upf.publish_given();
}

fn add(upf: &mut Upf, selection: &MirrorSelection) -> Result<MirrorLine, CtlError> {
    let place = upf.config.mirrors.iter().find(|mirror| mirror.name == selection.to);
    let Some(place) = place.cloned() else {
        let names: Vec<_> = upf.config.mirrors.iter().map(|mirror| mirror.name.as_str()).collect();
        let known = if names.is_empty() {
            "the configuration has no [[mirror]]".to_owned()
        } else {
            format!("the configuration has {}", names.join(", "))
        };
        return Err(not_found(format!("there is no mirror target named `{}`: {known}", selection.to)));
    };
    let scope = scope(upf, selection)?;
    let flows = flows(&selection.filters)?;
    let applications = applications(upf, &selection.applications)?;
    let Some(number) = upf.mirrors.free_number() else {
        return Err(bad(format!("{MAX_MIRRORS} mirrors are in force already: remove one")));
    };
    let id = upf.mirrors.last_id + 1;
    let compiled = |uplink, wanted: bool| {
        wanted.then(|| {
            let mut filters = Vec::new();
            flows.iter().for_each(|flow| flow.compile(Extras::default(), uplink, &[], &mut filters));
            Box::<[SdfFilter]>::from(filters)
        })
    };
    let mirror = Arc::new(Mirror {
        number,
        scope,
        uplink: compiled(true, selection.direction != MirrorDirection::Down),
        downlink: compiled(false, selection.direction != MirrorDirection::Up),
        applications,
        sample: place.sample,
        truncate: place.truncate,
        target: target(&place.target, &upf.config, &upf.mirrors.macs),
    });
    let mut senders = Vec::new();
    let mut written = None;
    if let MirrorTarget::Pcapng { path, max_bytes } = &place.target {
        let (file, path, rings) = open(upf, path, *max_bytes, place.truncate, id)?;
        senders = rings;
        written = Some((file, path));
    }
    let (file, path) = written.unzip();
    let line = MirrorLine {
        id,
        to: place.name.clone(),
        target: describe_target(&place.target, &upf.config, path.as_deref()),
        seid: match scope {
            Scope::Session { seid, .. } => Some(convert::seid(seid)),
            Scope::All => None,
        },
        filters: selection.filters.clone(),
        applications: selection.applications.clone(),
        direction: selection.direction,
        sample: place.sample,
        truncate: place.truncate,
        ..MirrorLine::default()
    };
    let senders = RefCell::new(senders);
    upf.engine.broadcast(|| {
        Command::Mirror(Order::Add { mirror: Arc::clone(&mirror), capture: senders.borrow_mut().pop() })
    });
    upf.engine.flush();
    (upf.mirrors.last_id, upf.mirrors.last_number) = (id, number);
    let since = upf.clock.now();
    upf.mirrors.active.insert(id, Active { mirror, since, line: line.clone(), file });
    upf.publish_given();
    Ok(line)
}

fn scope(upf: &Upf, selection: &MirrorSelection) -> Result<Scope, CtlError> {
    let store = upf.n4.store();
    let session = match (selection.ue, selection.seid, selection.all) {
        (None, None, true) => return Ok(Scope::All),
        (None, Some(seid), false) => {
            let seid = Seid(seid.0);
            store.get(seid).ok_or_else(|| not_found(format!("no session has the SEID {seid}")))?
        }
        (Some(ue), None, false) => {
            store.by_address(ue).ok_or_else(|| not_found(format!("no session has the address {ue}")))?
        }
        _ => return Err(bad("say whose packets by exactly one of `ue`, `seid` and `all`")),
    };
    let rules = session.rules();
    Ok(Scope::Session { place: rules.place, seid: rules.seid })
}

fn flows(texts: &[String]) -> Result<Vec<Flow>, CtlError> {
    if texts.len() > MAX_FILTERS {
        return Err(bad(format!("a mirror has at most {MAX_FILTERS} filters")));
    }
    let flow = |text: &String| {
        Flow::parse(text.as_bytes(), SdfLimits::default()).map_err(|error| {
            bad(format!("the filter `{text}`: {error} (such as `permit out 17 from any 53 to assigned`)"))
        })
    };
    texts.iter().map(flow).collect()
}

/// The numbers of these applications.
fn applications(upf: &Upf, names: &[String]) -> Result<Box<[Application]>, CtlError> {
    if names.len() > MAX_FILTERS {
        return Err(bad(format!("a mirror has at most {MAX_FILTERS} applications")));
    }
    let known = &upf.n4.store().config().applications;
    let number = |name: &String| {
        if !known.is_inspected() {
            return Err(bad("nobody looks into packets ([inspection] enabled = false)"));
        }
        known.detected(name.as_bytes()).ok_or_else(|| {
            let near = upf.names.like(name, |application| known.is_detected(application));
            let hint =
                if near.is_empty() { String::new() } else { format!("; there is {}", near.join(", ")) };
            not_found(format!(
                "no application is called `{name}`{hint} (docs/applications.md, and PFDs of SMFs)"
            ))
        })
    };
    names.iter().map(number).collect()
}

/// What workers are told of a place.
fn target(place: &MirrorTarget, config: &Config, macs: &[MacAddr]) -> Target {
    match *place {
        MirrorTarget::Port { port, vlan, mac } => Target::Port {
            port: port as u16,
            vlan,
            source: macs.get(port).copied().unwrap_or(MacAddr::ZERO),
            destination: mac,
            mtu: config.ports.get(port).map_or(0, |port| port.mtu),
        },
        MirrorTarget::Gtpu { destination, teid } => Target::Gtpu { destination, teid },
        MirrorTarget::Gre { destination, key } => Target::Gre { destination, key },
        MirrorTarget::Erspan { destination, session } => Target::Erspan { destination, session },
        MirrorTarget::Pcapng { .. } => Target::Capture,
    }
}

fn describe_target(place: &MirrorTarget, config: &Config, path: Option<&Path>) -> String {
    let at = |what: &str, destination: &IpAddr, rest: String| format!("{what} {destination}{rest}");
    match place {
        MirrorTarget::Port { port, vlan, mac } => {
            let name = config.ports.get(*port).map_or("", |port| port.name.as_str());
            let vlan = vlan.map(|vlan| format!(" vlan {vlan}")).unwrap_or_default();
            format!("port {name}{vlan} {mac}")
        }
        MirrorTarget::Gtpu { destination, teid } => {
            at("gtpu", destination, format!(" teid {:#010x}", teid.0))
        }
        MirrorTarget::Gre { destination, key } => {
            at("gre", destination, key.map(|key| format!(" key {key}")).unwrap_or_default())
        }
        MirrorTarget::Erspan { destination, session } => {
            at("erspan", destination, format!(" session {session}"))
        }
        MirrorTarget::Pcapng { .. } => {
            format!("pcapng {}", path.map(|path| path.display().to_string()).unwrap_or_default())
        }
    }
}

/// A new file, and a ring to it for each worker.
fn open(
    upf: &Upf,
    path: &Path,
    max_bytes: u64,
    truncate: u16,
    id: u32,
) -> Result<(CaptureFile, PathBuf, Vec<CaptureTx>), CtlError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = (now.as_nanos() as u64).saturating_sub(upf.clock.now().0);
    let path = file_name(path, now.as_secs(), id);
    let (senders, readers) = (0..upf.engine.workers()).map(|_| capture(CAPTURE_RING)).unzip();
    let file = CaptureFile::start(&path, max_bytes, truncate, epoch, readers).map_err(|error| {
        CtlError::new(ErrorCode::Unavailable, format!("can't write {}: {error}", path.display()))
    })?;
    Ok((file, path, senders))
}

/// `dir/ue.pcapng` becomes `dir/ue-1795303109-3.pcapng`: seconds since 1970, and the mirror's ID.
fn file_name(path: &Path, seconds: u64, id: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{seconds}-{id}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A mirror with what the workers counted.
fn line(active: &Active, counters: &Counters) -> MirrorLine {
    let number = active.mirror.number as usize;
    let MirrorCounters { copied, sampled_out, truncated, no_buffer, no_route, backlog } =
        counters.mirrors.get(number).copied().unwrap_or_default();
    let file = active.file.as_ref();
    MirrorLine {
        packets: copied.packets,
        bytes: copied.bytes,
        sampled_out,
        truncated,
        no_buffer,
        no_route,
        not_written: backlog + file.map_or(0, CaptureFile::lost),
        error: file.and_then(CaptureFile::error),
        ..active.line.clone()
    }
}
