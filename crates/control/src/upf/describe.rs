//! The UPF's state as the control socket tells it.

use super::Upf;
use super::bindings::Bindings;
use crate::config::SliceSection;
use crate::ctl::{
    CtlError, DropLine, ErrorCode, FarLine, NatPoolLine, NatStatus, OffloadStatus, PdrLine, QerLine,
    RuleCounts, SessionDetail, SessionLine, SessionPage, SessionQuery, SliceLine, TunnelEnd, UrrLine,
    Version, WorkerLine,
};
use datapath::{Counters, SliceTraffic};
use engine::{Gauge, WorkerReport};
use pfcp::Seid;
use session::rules::{Action, Destination, Prefix, SdfFilter, Source};
use session::store::Session;
use std::fmt::Write as _;
use std::net::IpAddr;
use tables::Nanos;

pub(super) fn version(upf: &Upf) -> Version {
    Version {
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        uptime_seconds: upf.started.elapsed().as_secs(),
        node_id: upf.config.node_id.to_string(),
        sessions: upf.n4.store().counts().sessions as u64,
    }
}

pub(super) fn sessions(upf: &Upf, query: &SessionQuery) -> SessionPage {
    let mut page = SessionPage { total: 0, offset: query.offset, sessions: Vec::new() };
    let matching = upf.n4.store().iter().filter(|session| matches(upf, session, query));
    let (offset, limit) = (query.offset as usize, query.limit as usize);
    if query.ue.is_none() && query.peer.is_none() && query.network_instance.is_none() {
        // All of a million sessions match, and N4 waits meanwhile: those on the page are enough.
        page.total = upf.n4.store().counts().sessions as u64;
        page.sessions.extend(matching.skip(offset).take(limit).map(|session| line(upf, session)));
        return page;
    }
    for session in matching {
        if page.total >= query.offset && page.sessions.len() < limit {
            page.sessions.push(line(upf, session));
        }
        page.total += 1;
    }
    page
}

/// Cheap questions first: a network instance is in the session's packed part.
fn matches(upf: &Upf, session: &Session, query: &SessionQuery) -> bool {
    query.ue.is_none_or(|address| has_address(session, address))
        && query.peer.as_ref().is_none_or(|peer| *peer == peer_of(upf, session))
        && query
            .network_instance
            .as_ref()
            .is_none_or(|name| name.eq_ignore_ascii_case(&instance(upf, session)))
}

/// Whether the session's UE uses this address.
pub(super) fn has_address(session: &Session, address: IpAddr) -> bool {
    let rules = session.rules();
    match address {
        IpAddr::V4(address) => rules.ue_ipv4 == Some(address),
        IpAddr::V6(address) => rules.ue_ipv6.is_some_and(|prefix| prefix.contains(&address)),
    }
}

/// The Node ID of its SMF; empty while the session is being removed because its association ended.
fn peer_of(upf: &Upf, session: &Session) -> String {
    upf.n4.association_of(session).map(|peer| peer.node_id.to_string()).unwrap_or_default()
}

fn line(upf: &Upf, session: &Session) -> SessionLine {
    let rules = session.rules();
    SessionLine {
        seid: rules.seid.into(),
        cp_seid: session.cp_fseid().seid.into(),
        peer: peer_of(upf, session),
        ue_ipv4: rules.ue_ipv4,
        ue_ipv6: rules.ue_ipv6.map(|prefix| prefix.to_string()),
        network_instance: instance(upf, session),
        shard: rules.place.shard.index() as u16,
        rules: RuleCounts {
            pdrs: rules.pdrs.len() as u16,
            fars: rules.fars.len() as u16,
            qers: rules.qers.len() as u16,
            urrs: rules.urrs.len() as u16,
        },
    }
}

/// The Network Instance that its PDRs name, if it is one of the configured ones.
fn instance(upf: &Upf, session: &Session) -> String {
    let model = session.model().unwrap_or_default();
    let known = model.pdrs.iter().find_map(|pdr| usize::from(pdr.instance).checked_sub(1));
    let instances = &upf.n4.store().config().instances;
    known.and_then(|at| instances.get(at)).map(|instance| instance.name.to_string()).unwrap_or_default()
}

pub(super) fn session(upf: &mut Upf, seid: Seid) -> Result<SessionDetail, CtlError> {
    let not_found = || CtlError::new(ErrorCode::NotFound, format!("no session has the SEID {seid}"));
    let session = upf.n4.store().get(seid).ok_or_else(not_found)?;
    let (rules, brief) = (session.rules().clone(), line(upf, session));
    let snapshot = upf.inspect(rules.place);
    let snapshot = snapshot
        .ok_or_else(|| CtlError::new(ErrorCode::Unavailable, "the session's worker does not answer"))?;
    let counted =
        |id| snapshot.pdrs.iter().find(|(pdr, _, _)| *pdr == id).map_or((0, 0), |&(_, p, b)| (p, b));
    let measured = |id| snapshot.urrs.iter().find(|(urr, _)| *urr == id).map(|(_, v)| *v).unwrap_or_default();
    let pdrs = rules.pdrs.iter().map(|pdr| {
        let (packets, bytes) = counted(pdr.id);
        PdrLine {
            id: pdr.id.0,
            precedence: pdr.precedence,
            source: source(pdr.source).into(),
            teid: pdr.tunnel.map(|tunnel| tunnel.teid.into()),
            filters: pdr.filters.iter().map(filter).collect(),
            far: rules.fars.get(usize::from(pdr.far)).map_or(0, |far| far.id.0),
            qers: pdr.qers.iter().filter_map(|&at| rules.qers.get(usize::from(at))).map(|q| q.id.0).collect(),
            urrs: pdr.urrs.iter().filter_map(|&at| rules.urrs.get(usize::from(at))).map(|u| u.id.0).collect(),
            packets,
            bytes,
        }
    });
    let fars = rules.fars.iter().map(|far| {
        let forward = match far.action {
            Action::Forward(forward) => Some(forward),
            _ => None,
        };
        FarLine {
            id: far.id.0,
            action: action(far.action).into(),
            destination: forward.map(|forward| destination(forward.destination).into()),
            tunnel: forward
                .and_then(|forward| forward.outer_header)
                .map(|outer| TunnelEnd { teid: outer.teid.into(), peer: outer.peer }),
        }
    });
    let qers = rules.qers.iter().map(|qer| QerLine {
        id: qer.id.0,
        uplink_open: qer.uplink_open,
        downlink_open: qer.downlink_open,
        uplink_mbr: qer.uplink_mbr,
        downlink_mbr: qer.downlink_mbr,
        qfi: qer.qfi.map(packet::Qfi::get),
    });
    let urrs = rules.urrs.iter().map(|urr| {
        let volume = measured(urr.id);
        UrrLine {
            id: urr.id.0,
            uplink_bytes: volume.uplink_bytes,
            downlink_bytes: volume.downlink_bytes,
            threshold: urr.threshold.total,
            quota: urr.quota.total,
        }
    });
    Ok(SessionDetail {
        session: brief,
        pdrs: pdrs.collect(),
        fars: fars.collect(),
        qers: qers.collect(),
        urrs: urrs.collect(),
        drops: snapshot.drops.iter().map(|&(reason, packets)| DropLine::new(reason, packets)).collect(),
        buffered: snapshot.buffered,
    })
}

const fn source(source: Source) -> &'static str {
    match source {
        Source::Access => "access",
        Source::Core => "core",
        Source::N6Lan => "n6-lan",
        Source::CpFunction => "cp-function",
    }
}

const fn destination(destination: Destination) -> &'static str {
    match destination {
        Destination::Access => "access",
        Destination::Core => "core",
        Destination::N6Lan => "n6-lan",
        Destination::CpFunction => "cp-function",
    }
}

const fn action(action: Action) -> &'static str {
    match action {
        Action::Drop => "drop",
        Action::Forward(_) => "forward",
        Action::ForwardUnresolved => "forward (tunnel not known yet)",
        Action::Buffer { notify: false, .. } => "buffer",
        Action::Buffer { notify: true, .. } => "buffer and notify",
    }
}

/// A filter in the manner of an IPFilterRule, in the packet's own direction.
fn filter(filter: &SdfFilter) -> String {
    let prefix = |prefix: Option<Prefix>| match prefix {
        None => "any".to_owned(),
        Some(Prefix::V4(net)) => net.to_string(),
        Some(Prefix::V6(net)) => net.to_string(),
    };
    let ports = |ports: &[(u16, u16)]| {
        let one = |&(first, last): &(u16, u16)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        let list: Vec<_> = ports.iter().map(one).collect();
        if list.is_empty() { String::new() } else { format!(" {}", list.join(",")) }
    };
    let protocol = filter.protocol.map_or_else(|| "ip".to_owned(), |protocol| protocol.to_string());
    let mut text = format!(
        "{protocol} from {}{} to {}{}",
        prefix(filter.source),
        ports(&filter.source_ports),
        prefix(filter.destination),
        ports(&filter.destination_ports)
    );
    // Writing to a string can't fail.
    if let Some((value, mask)) = filter.tos {
        let _ = write!(text, " tos {value:#04x}/{mask:#04x}");
    }
    if let Some(spi) = filter.spi {
        let _ = write!(text, " spi {spi:#010x}");
    }
    if let Some(label) = filter.flow_label {
        let _ = write!(text, " flow-label {label:#07x}");
    }
    text
}

pub(super) fn reports(upf: &mut Upf) -> Result<Vec<WorkerReport>, CtlError> {
    upf.engine.reports().map_err(|error| CtlError::new(ErrorCode::Unavailable, error.to_string()))
}

/// All workers' counters.
pub(super) fn counters(upf: &mut Upf) -> Result<Counters, CtlError> {
    let mut sum = Counters::default();
    for report in reports(upf)? {
        sum.merge(&report.counters);
    }
    Ok(sum)
}

pub(super) fn drops(upf: &mut Upf) -> Result<Vec<DropLine>, CtlError> {
    Ok(counters(upf)?.drops().map(|(reason, packets)| DropLine::new(reason, packets)).collect())
}

pub(super) fn slices(upf: &mut Upf) -> Result<Vec<SliceLine>, CtlError> {
    let mut sums = vec![[SliceTraffic::default(); 2]; upf.config.slices.len()];
    for report in reports(upf)? {
        for (sum, both) in sums.iter_mut().zip(&report.slices) {
            for (sum, traffic) in sum.iter_mut().zip(both) {
                *sum = sum.plus(*traffic);
            }
        }
    }
    let line = |slice: &SliceSection, uplink: bool, traffic: &SliceTraffic| {
        let (guaranteed, maximum) = if uplink {
            (slice.uplink_guaranteed, slice.uplink)
        } else {
            (slice.downlink_guaranteed, slice.downlink)
        };
        let forwarded = traffic.green.plus(traffic.yellow);
        SliceLine {
            name: slice.name.clone(),
            direction: if uplink { "uplink" } else { "downlink" }.into(),
            guaranteed: guaranteed.or(maximum).map(|rate| rate.0),
            maximum: maximum.map(|rate| rate.0),
            packets: forwarded.packets,
            bytes: forwarded.bytes,
            yellow_packets: traffic.yellow.packets,
            yellow_bytes: traffic.yellow.bytes,
            dropped_packets: traffic.red.packets,
            dropped_bytes: traffic.red.bytes,
        }
    };
    let slices = upf.config.slices.iter().zip(&sums);
    Ok(slices.flat_map(|(slice, [up, down])| [line(slice, true, up), line(slice, false, down)]).collect())
}

pub(super) fn nat(upf: &mut Upf) -> Result<NatStatus, CtlError> {
    let counters = counters(upf)?;
    let plan = upf.net.view().nat().cloned().unwrap_or_default();
    let line = |(at, settings): (usize, &datapath::nat::Settings)| {
        let counted = counters.nat.get(at).copied().unwrap_or_default();
        NatPoolLine {
            pool: settings.name.clone(),
            blocks: u64::from(plan.blocks(at)),
            blocks_used: counted.blocks(),
            mappings: counted.mappings(),
            mappings_made: counted.mappings_made,
        }
    };
    let drops = counters.drops().filter(|(reason, _)| reason.label().starts_with("nat-"));
    Ok(NatStatus {
        pools: plan.pools().enumerate().map(line).collect(),
        drops: drops.map(|(reason, packets)| DropLine::new(reason, packets)).collect(),
        log_lines_lost: upf.bindings.as_ref().map_or(0, Bindings::lost),
    })
}

pub(super) fn offload(upf: &mut Upf) -> Result<OffloadStatus, CtlError> {
    let ports: Vec<_> = (upf.ports)().into_iter().map(|port| port.name).collect();
    Ok(super::offload::describe(&reports(upf)?, &ports))
}

pub(super) fn workers(upf: &mut Upf) -> Result<Vec<WorkerLine>, CtlError> {
    let hz = upf.clock.hz() as f64;
    // First: being asked wakes them.
    let gauges = upf.engine.gauges();
    Ok(reports(upf)?.iter().zip(&gauges).map(|(report, gauge)| worker(report, *gauge, hz)).collect())
}

/// `hz`: cycles in a second.
pub(super) fn worker(report: &WorkerReport, gauge: Gauge, hz: f64) -> WorkerLine {
    let (counters, load) = (&report.counters, &report.load);
    let share = |nanos: u64| nanos as f64 / load.total_nanos.max(1) as f64;
    let busy_seconds = load.busy_nanos as f64 / Nanos::SECOND as f64;
    let handled = counters.received + counters.handed_in;
    WorkerLine {
        worker: report.worker as u16,
        core: report.core.map(|core| core as u16),
        shards: report.shards as u16,
        received: counters.received,
        remote: report.remote_packets(),
        sent: counters.sent,
        handed_off: load.handed_off,
        dropped: counters.dropped_total(),
        busy: share(load.busy_nanos),
        asleep: share(load.asleep_nanos),
        sleeping: gauge.asleep,
        cycles_per_packet: (handled > 0).then(|| busy_seconds * hz / handled as f64),
    }
}
