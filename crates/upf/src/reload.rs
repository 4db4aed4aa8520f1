//! A configuration that is read anew while the UPF runs: who may speak, routes, neighbours, what is translated on N6 and most limits
//! change; the rest waits for a restart.

use super::{Backend, Upf, assemble};
use api::{CtlError, ErrorCode};
use config::nat::Nat;
use config::{Config, InspectionSection, Limits, N3Section, N4};
use datapath::Rib;
use datapath::command::Command;
use dpi::signatures::LoadError;
use std::sync::Arc;

/// What workers are told of anew.
const OF_WORKERS: [&str; 4] = ["route", "neighbour", "nat", POLICIES];

/// Ways out on N6 that SMFs may name.
const POLICIES: &str = "forwarding-policy";

/// What changes while packets flow, beside these. Of limits those that nothing was made by at the start; `limits.buffered-packets` up to what
/// the ports' pools of packet buffers were made for.
const CHANGEABLE: [&str; 21] = [
    "log",
    "inspection.signatures",
    "n3.check-source",
    "n4.peers",
    "n4.last-reports",
    "limits.sessions",
    "limits.sessions-per-peer",
    "limits.peers",
    "limits.rules-per-session",
    "limits.filters-per-pdr",
    "limits.buffered-packets",
    "limits.buffered-packets-per-session",
    "limits.reply-octets",
    "limits.outstanding-requests",
    "limits.fragmented-packets",
    "limits.flows",
    "limits.flows-per-session",
    "limits.flow-idle-seconds",
    "limits.new-flows-in-overload",
    "limits.neighbours",
    "limits.errors-per-second",
];

/// What came of it. The names are the file's: sections and keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reloaded {
    /// In force now.
    pub changed: Vec<&'static str>,
    /// Different in the file, and in force only after a restart.
    pub restart: Vec<&'static str>,
    /// Node IDs of SMFs with an association that are no longer allowed to speak.
    pub shut_out: Vec<String>,
}

impl Backend {
    /// Takes over what can be changed while it runs. All of it, or, with an error, nothing. What arrives after the answer goes the new
    /// way, within the new limits.
    pub fn reload(&self, config: Config) -> Result<Reloaded, CtlError> {
        let told = self.ask(move |upf| reload(upf, config))?;
        self.settle()?;
        Ok(told)
    }
}

fn reload(upf: &mut Upf, mut config: Config) -> Result<Reloaded, CtlError> {
    config.socket.get_or_insert_with(api::default_socket);
    let (old, mut told) = (&upf.config, Reloaded::default());
    let pools_are_too_small = config.limits.buffered_packets > upf.most_buffered;
    if pools_are_too_small {
        config.limits.keep_buffered_packets(&old.limits);
    }
    let mut differ = differences(old, &config);
    // Routes, neighbours and policies name interfaces by their place in the list, and so do pools of public addresses Network Instances.
    let same_interfaces = old.interfaces == config.interfaces;
    if same_interfaces {
        let there = differ.extract_if(.., |name| OF_WORKERS.contains(name));
        told.changed.extend(there);
    }
    told.changed.extend(differ.extract_if(.., |name| CHANGEABLE.contains(name)));
    told.restart = differ;
    if pools_are_too_small {
        told.restart.push("limits.buffered-packets");
    }
    // The files may say something else though the configuration names the same ones.
    if let Some(detector) = &upf.detector {
        let refused = |why: LoadError| CtlError::new(ErrorCode::BadRequest, why.to_string());
        let is_new =
            detector.reload(&config.inspection.signatures, upf.n4.applications()).map_err(refused)?;
        if is_new && !told.changed.contains(&"inspection.signatures") {
            told.changed.push("inspection.signatures");
        }
    }
    let routed = told.changed.iter().any(|name| OF_WORKERS.contains(name));
    let limited = told.changed.iter().any(|name| name.starts_with("limits.") || *name == "n3.check-source");
    if routed {
        let refused = |why| CtlError::new(ErrorCode::BadRequest, why);
        let mut rib = upf.rib.clone();
        exchange(&mut rib, old, &config).map_err(refused)?;
        if told.changed.contains(&"nat") || told.changed.contains(&POLICIES) {
            let policies = assemble::policies(&config, &upf.n4.store().config().policies);
            rib.steer(assemble::steering(&config, &policies)).map_err(|why| refused(why.to_string()))?;
            let before = rib.nat().cloned().unwrap_or_default();
            let plan = assemble::plan(&config, &policies, &before).map_err(|why| refused(why.to_string()))?;
            upf.n4.set_policies(policies);
            rib.translate(Arc::new(plan));
        }
        upf.rib = rib;
        let fib = upf.rib.fib();
        upf.engine.broadcast(|| Command::Fib(fib.clone()));
    }
    let Config {
        n3, n4, log, limits, routes, neighbours, forwarding_policies, nat, inspection, written, ..
    } = config;
    if upf.detector.is_some() {
        upf.config.inspection.signatures = inspection.signatures;
    }
    upf.n4.allow(assemble::allowed(&n4.peers));
    let node = upf.n4.node();
    let shut_out = node.peers().filter(|peer| !n4.allows(peer.address.ip()));
    told.shut_out = shut_out.map(|peer| peer.node_id.to_string()).collect();
    (upf.config.n4.peers, upf.config.n4.last_reports, upf.config.log) = (n4.peers, n4.last_reports, log);
    if same_interfaces {
        upf.config.written.reload(&written);
        (upf.config.routes, upf.config.neighbours) = (routes, neighbours);
        upf.config.forwarding_policies = forwarding_policies;
        upf.config.nat = Nat { log: upf.config.nat.log.take(), ..nat };
    }
    // What is taken or made at the start stays what it was.
    let Limits { flows_reserved, nat_mappings, .. } = upf.config.limits;
    (upf.config.n3, upf.config.limits) = (n3, Limits { flows_reserved, nat_mappings, ..limits });
    if limited {
        limit(upf);
    }
    upf.engine.flush();
    upf.publish_given();
    Ok(told)
}

/// Tells everybody the limits that there are now.
fn limit(upf: &mut Upf) {
    upf.n4.limit(assemble::of_sessions(&upf.config.limits), assemble::of_n4(&upf.config.limits));
    let limits = Arc::new(assemble::datapath(&upf.config, upf.rib.fib(), 0, None));
    upf.engine.broadcast(|| Command::Limits(limits.clone()));
}

/// Static routes and neighbours as the new configuration has them. What was learned stays.
fn exchange(rib: &mut Rib, old: &Config, new: &Config) -> Result<(), String> {
    for route in old.routes.iter().filter(|route| !new.routes.contains(route)) {
        rib.remove_route(route.to);
    }
    for route in &new.routes {
        rib.add_route(route.to, route.interface as u16, route.via)
            .map_err(|error| format!("{}: {error}", route.to))?;
    }
    for neighbour in old.neighbours.iter().filter(|neighbour| !new.neighbours.contains(neighbour)) {
        rib.unfix(neighbour.interface as u16, neighbour.address);
    }
    for neighbour in &new.neighbours {
        rib.fix(neighbour.interface as u16, neighbour.address, neighbour.mac);
    }
    Ok(())
}

/// Sections and keys in which two configurations differ. Every field is named, so that none is forgotten.
fn differences(old: &Config, new: &Config) -> Vec<&'static str> {
    let Config {
        node_id,
        name,
        n3: N3Section { check_source },
        n4: N4 { listen, peers, associate_with, heartbeat_interval, t1, n1, last_reports },
        ports,
        interfaces,
        routes,
        neighbours,
        pools,
        slices,
        marking,
        mirrors,
        forwarding_policies,
        nat: Nat { pools: nat_pools, rules, statics, prefixes, log: nat_log },
        flow_log,
        inspection,
        metrics,
        workers,
        pin,
        model,
        parked_packets,
        scaling,
        memory,
        lookup,
        qos,
        offload,
        limits,
        socket,
        log,
        // All of it is compared above and below.
        written: _,
    } = old;
    let same = [
        ("node.id", *node_id == new.node_id),
        ("node.name", *name == new.name),
        ("n3.check-source", *check_source == new.n3.check_source),
        ("n4.listen", *listen == new.n4.listen),
        ("n4.peers", *peers == new.n4.peers),
        ("n4.associate-with", *associate_with == new.n4.associate_with),
        ("n4.heartbeat-interval", *heartbeat_interval == new.n4.heartbeat_interval),
        ("n4.t1", *t1 == new.n4.t1),
        ("n4.n1", *n1 == new.n4.n1),
        ("n4.last-reports", *last_reports == new.n4.last_reports),
        ("port", *ports == new.ports),
        ("interface", *interfaces == new.interfaces),
        ("route", *routes == new.routes),
        ("neighbour", *neighbours == new.neighbours),
        ("pool", *pools == new.pools),
        ("slice", *slices == new.slices),
        ("marking", *marking == new.marking),
        ("mirror", *mirrors == new.mirrors),
        (POLICIES, *forwarding_policies == new.forwarding_policies),
        ("nat", (nat_pools, rules) == (&new.nat.pools, &new.nat.rules)),
        ("nat", (statics, prefixes) == (&new.nat.statics, &new.nat.prefixes)),
        ("nat-log.file", *nat_log == new.nat.log),
        ("flow-log", *flow_log == new.flow_log),
        ("inspection", same_but_signatures(inspection, &new.inspection)),
        ("inspection.signatures", inspection.signatures == new.inspection.signatures),
        ("metrics", *metrics == new.metrics),
        ("workers", (workers, pin, model) == (&new.workers, &new.pin, &new.model)),
        ("workers", (parked_packets, memory) == (&new.parked_packets, &new.memory)),
        ("workers", *lookup == new.lookup),
        ("scaling", *scaling == new.scaling),
        ("qos", *qos == new.qos),
        ("offload", *offload == new.offload),
        ("ctl.socket", *socket == new.socket),
        ("log", *log == new.log),
    ];
    let all = same.into_iter().chain(limits_differ(limits, &new.limits));
    let mut names: Vec<_> = all.filter(|(_, same)| !same).map(|(name, _)| name).collect();
    names.dedup();
    names
}

/// Who inspects and how much is settled at the start; signatures are not.
fn same_but_signatures(old: &InspectionSection, new: &InspectionSection) -> bool {
    InspectionSection { signatures: new.signatures.clone(), ..old.clone() } == *new
}

/// Each limit, and whether it is the same.
fn limits_differ(old: &Limits, new: &Limits) -> [(&'static str, bool); 18] {
    let Limits {
        sessions,
        sessions_per_peer,
        peers,
        rules_per_session,
        filters_per_pdr,
        buffered_packets,
        buffered_packets_per_session,
        reply_octets,
        outstanding_requests,
        fragmented_packets,
        flows,
        flows_reserved,
        flows_per_session,
        flow_idle_seconds,
        new_flows_in_overload,
        nat_mappings,
        neighbours,
        errors_per_second,
    } = *old;
    [
        ("limits.sessions", sessions == new.sessions),
        ("limits.sessions-per-peer", sessions_per_peer == new.sessions_per_peer),
        ("limits.peers", peers == new.peers),
        ("limits.rules-per-session", rules_per_session == new.rules_per_session),
        ("limits.filters-per-pdr", filters_per_pdr == new.filters_per_pdr),
        ("limits.buffered-packets", buffered_packets == new.buffered_packets),
        (
            "limits.buffered-packets-per-session",
            buffered_packets_per_session == new.buffered_packets_per_session,
        ),
        ("limits.reply-octets", reply_octets == new.reply_octets),
        ("limits.outstanding-requests", outstanding_requests == new.outstanding_requests),
        ("limits.fragmented-packets", fragmented_packets == new.fragmented_packets),
        ("limits.flows", flows == new.flows),
        ("limits.flows-reserved", flows_reserved == new.flows_reserved),
        ("limits.flows-per-session", flows_per_session == new.flows_per_session),
        ("limits.flow-idle-seconds", flow_idle_seconds == new.flow_idle_seconds),
        ("limits.new-flows-in-overload", new_flows_in_overload == new.new_flows_in_overload),
        ("limits.nat-mappings", nat_mappings == new.nat_mappings),
        ("limits.neighbours", neighbours == new.neighbours),
        ("limits.errors-per-second", errors_per_second == new.errors_per_second),
    ]
}
