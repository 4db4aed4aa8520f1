//! From the configuration to what each part is told.

use super::cores::Cores;
use super::options::{Options, UpfError};
use config::{BitRate, CheckSource, Config, ForwardingPolicy, Limits, NodeId, Role, SliceSection};
use datapath::nat::{Plan, PlanError};
use datapath::rib::NextHops;
use datapath::{Asked, Marking, Places, Slice};
use datapath::{Fib, Interface, Rib, Roles};
use engine::{EngineConfig, Scaling};
use ipnet::IpNet;
use n4::{Header, WallClock};
use packet::{MacAddr, Qfi};
use pfcp::calendar::NTP_AT_1970;
use pfcp::ie::RecoveryTimeStamp;
use pfcp::node::{Bounds, NodeConfig, RequestPort};
use session::applications::Applications;
use session::config::{Instance, Ipv4Range, LocalAddresses, Policy, PoolConfig};
use session::network_instance::Name;
use session::{Epoch, PrefixLength, TeidKey};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tables::clock::Tsc;
use tables::{MeterConfig, Nanos, SharedMarker};

/// Memory that a worker keeps ready for flow tables that grow, at most: what 512 tables that grow at the same pace take within some
/// milliseconds, which is as often as it is replenished.
const SUPPLY: usize = 64 << 20;
/// What a flow entry takes with its part of the table, at most.
pub const BYTES_PER_FLOW: u32 = 120;

/// Eight random bytes of the kernel's: what strangers must not guess.
pub(super) fn random() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Another secret each time.
pub(super) fn teid_key() -> std::io::Result<TeidKey> {
    Ok(TeidKey::new([random()?, random()?, random()?, random()?]))
}

/// Interfaces, routes and neighbours; `macs` are the ports'.
pub(super) fn rib(config: &Config, macs: &[MacAddr]) -> Result<Rib, UpfError> {
    let mut rib = Rib::new();
    let failed = |what: &str| {
        let what = what.to_owned();
        move |source| UpfError::Network { what, source }
    };
    for interface in &config.interfaces {
        let has = |role| interface.roles.contains(&role);
        let added = Interface {
            name: interface.name.clone(),
            port: interface.port as u16,
            vlan: interface.vlan,
            mac: macs.get(interface.port).copied().unwrap_or(MacAddr::ZERO),
            mtu: interface.mtu,
            roles: Roles { n3: has(Role::N3), n6: has(Role::N6), n9: has(Role::N9) },
            addresses: interface.addresses.iter().map(|address| address.0).collect(),
            network_instances: interface.network_instances.clone(),
        };
        let index = rib.add_interface(added).map_err(failed(&interface.name))?;
        for name in &interface.network_instances {
            let known = instances(config).iter().position(|known| *known == Name::new(name.as_bytes()));
            rib.serve(index, known.map_or(0, |at| at as u16 + 1));
        }
    }
    for route in &config.routes {
        rib.add_route(route.to, route.interface as u16, route.via).map_err(failed(&route.to.to_string()))?;
    }
    for neighbour in &config.neighbours {
        rib.fix(neighbour.interface as u16, neighbour.address, neighbour.mac);
    }
    for pool in &config.pools {
        for prefix in pool.prefixes() {
            rib.add_ue_pool(prefix);
            if !pool.ue_to_ue {
                rib.isolate(prefix);
            }
        }
    }
    let policies = policies(config, &[]);
    rib.steer(steering(config, &policies)).map_err(failed("forwarding-policy"))?;
    let plan = plan(config, &policies, &Plan::default()).map_err(UpfError::Nat)?;
    rib.translate(Arc::new(plan));
    Ok(rib)
}

/// What is translated on N6, where rules name policies by their place among these; after the plan that workers have.
pub(super) fn plan(config: &Config, policies: &[Policy], before: &Plan) -> Result<Plan, PlanError> {
    let number = |at: Option<usize>| at.map_or(0, |at| at as u16 + 1);
    let instances = instances(config);
    config.nat.plan(
        before,
        |id| number(policies.iter().position(|policy| *policy.id == *id.as_bytes())),
        |name| number(instances.iter().position(|known| *known == Name::new(name.as_bytes()))),
    )
}

/// The Forwarding Policies that are configured, by themselves or as what pools of public addresses ask for, and those that sessions may have from
/// before, which keep their places.
pub(super) fn policies(config: &Config, before: &[Policy]) -> Vec<Policy> {
    let ways = config.forwarding_policies.iter().map(|policy| policy.id.as_str());
    let named: Vec<&str> = ways.chain(config.nat.policies()).collect();
    let instances = instances(config);
    let policy = |id: &[u8]| Policy {
        id: id.into(),
        in_force: named.iter().any(|named| named.as_bytes() == id),
        instance: way_out(config, id).and_then(|way| {
            let name = Name::new(way.network_instance.as_ref()?.as_bytes());
            instances.iter().position(|known| *known == name).map(|at| at as u16 + 1)
        }),
    };
    let mut policies: Vec<Policy> = before.iter().map(|known| policy(&known.id)).collect();
    for id in &named {
        if !policies.iter().any(|known| *known.id == *id.as_bytes()) {
            policies.push(policy(id.as_bytes()));
        }
    }
    policies
}

/// Where packets of these policies leave.
pub(super) fn steering(config: &Config, policies: &[Policy]) -> Vec<NextHops> {
    let next_hops = |policy: &Policy| {
        let next_hops = way_out(config, &policy.id).map_or([None; 2], |way| way.next_hops);
        next_hops.map(|next| next.map(|(interface, address)| (interface as u16, address)))
    };
    policies.iter().map(next_hops).collect()
}

/// The way out that is configured under this name.
fn way_out<'c>(config: &'c Config, id: &[u8]) -> Option<&'c ForwardingPolicy> {
    config.forwarding_policies.iter().find(|way| way.id.as_bytes() == id)
}

/// The Network Instances that interfaces have, in the order in which they are numbered (from 1).
fn instances(config: &Config) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    for name in config.interfaces.iter().flat_map(|interface| &interface.network_instances) {
        let name = Name::new(name.as_bytes());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What the session store is told.
pub(super) fn sessions(
    config: &Config,
    applications: Applications,
    seed: u32,
    teids: TeidKey,
) -> session::config::Config {
    let named = |name| Instance { name, ..Instance::default() };
    let mut instances: Vec<Instance> = instances(config).into_iter().map(named).collect();
    for interface in &config.interfaces {
        for name in &interface.network_instances {
            let name = Name::new(name.as_bytes());
            if let Some(instance) = instances.iter_mut().find(|instance| instance.name == name) {
                let addresses = addresses_of(interface);
                if interface.roles.contains(&Role::N3) {
                    instance.n3 = addresses;
                }
                if interface.roles.contains(&Role::N9) {
                    instance.n9 = addresses;
                }
            }
        }
    }
    let first = |role| {
        let found = config.interfaces.iter().find(|interface| interface.roles.contains(&role));
        found.map(addresses_of).unwrap_or_default()
    };
    let pools = config.pools.iter().map(|pool| PoolConfig {
        names: if pool.network_instance.is_empty() {
            Vec::new()
        } else {
            vec![Name::new(pool.network_instance.as_bytes())]
        },
        ipv4: pool.ipv4.iter().map(|&net| Ipv4Range::Net(net)).collect(),
        ipv6: pool.ipv6.clone(),
        ipv6_length: PrefixLength::new(pool.ipv6_prefix_length).unwrap_or_default(),
        excluded: Vec::new(),
    });
    let slices = config.slices.iter().map(|slice| session::config::Slice {
        s_nssai: slice.s_nssai,
        names: slice.network_instances.iter().map(|name| Name::new(name.as_bytes())).collect(),
    });
    let own: Vec<IpAddr> = config
        .interfaces
        .iter()
        .flat_map(|interface| interface.addresses.iter().map(|a| a.0.addr()))
        .collect();
    session::config::Config {
        n3: first(Role::N3),
        n9: first(Role::N9),
        cp: LocalAddresses::default(),
        instances,
        policies: policies(config, &[]),
        applications,
        slices: slices.collect(),
        pools: pools.collect(),
        own,
        limits: of_sessions(&config.limits),
        seed,
        epoch: Epoch::of((seed >> 16) as u16),
        teids,
    }
}

/// What sessions may have.
pub(super) fn of_sessions(limits: &Limits) -> session::config::Limits {
    let rules = limits.rules_per_session as usize;
    session::config::Limits {
        sessions: limits.sessions as usize,
        sessions_per_peer: limits.sessions_per_peer as usize,
        pdrs: rules,
        fars: rules,
        qers: rules,
        urrs: rules,
        filters: limits.filters_per_pdr as usize,
        buffered_packets: limits.buffered_packets_per_session.min(u32::from(u16::MAX)) as u16,
        ..session::config::Limits::default()
    }
}

/// How far the PFCP node may grow.
pub(super) fn of_n4(limits: &Limits) -> Bounds {
    Bounds {
        peers: limits.peers as usize,
        outstanding: limits.outstanding_requests as usize,
        reply_octets: limits.reply_octets as usize,
    }
}

fn addresses_of(interface: &config::Interface) -> LocalAddresses {
    let mut local = LocalAddresses::default();
    for address in &interface.addresses {
        match address.0.addr() {
            IpAddr::V4(address) => local.ipv4 = local.ipv4.or(Some(address)),
            IpAddr::V6(address) => local.ipv6 = local.ipv6.or(Some(address)),
        }
    }
    local
}

/// What the PFCP node is told.
pub(super) fn node(config: &Config, options: &Options) -> NodeConfig {
    let node_id = match &config.node_id {
        NodeId::V4(address) => pfcp::ie::NodeId::Ip(IpAddr::V4(*address)),
        NodeId::V6(address) => pfcp::ie::NodeId::Ip(IpAddr::V6(*address)),
        NodeId::Fqdn(name) => pfcp::ie::NodeId::Fqdn(name.as_str().into()),
    };
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let recovery = RecoveryTimeStamp((NTP_AT_1970 + started) as u32);
    let nanos = |duration: Duration| duration.as_nanos().min(u64::MAX as u128) as u64;
    let base = NodeConfig::new(pfcp::node::Role::Up, node_id, recovery);
    NodeConfig {
        features: n4::FEATURES,
        request_port: if options.reply_to_source_port { RequestPort::Source } else { base.request_port },
        heartbeat_interval: config.n4.heartbeat_interval.map_or(0, nanos),
        t1: nanos(config.n4.t1),
        // N1 counts repetitions, the node counts how often a request is sent in all.
        n1: u32::from(config.n4.n1) + 1,
        bounds: of_n4(&config.limits),
        allowed: allowed(&config.n4.peers),
        ..base
    }
}

/// Who may speak on N4.
pub(super) fn allowed(peers: &[IpNet]) -> Vec<(IpAddr, u8)> {
    peers.iter().map(|net| (net.addr(), net.prefix_len())).collect()
}

/// The clock: one that goes on, if another process's times do.
pub(super) fn clock(former: Option<&Header>, time_of_day: fn() -> SystemTime) -> Tsc {
    let clock = Tsc::process();
    let since_1970 = time_of_day().duration_since(UNIX_EPOCH).unwrap_or_default();
    former.map_or(clock, |header| clock.ahead(header.clock(since_1970).since(clock.now())))
}

/// What time it is.
pub(super) fn wall_clock(now: Nanos, time_of_day: fn() -> SystemTime) -> WallClock {
    WallClock::new(now, time_of_day().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// The address in F-SEIDs: where N4 listens, or else the Node ID.
pub(super) fn n4_address(config: &Config, listen: IpAddr) -> Option<IpAddr> {
    let node = match config.node_id {
        NodeId::V4(address) => Some(IpAddr::V4(address)),
        NodeId::V6(address) => Some(IpAddr::V6(address)),
        NodeId::Fqdn(_) => None,
    };
    [Some(listen), node].into_iter().flatten().find(|address| !address.is_unspecified())
}

/// Least burst of a slice in bytes: a few jumbo frames.
const SLICE_BURST: u32 = 40_000;

/// What part of the packet buffers workers may hold back, all together: frames that wait for other fragments or for a
/// neighbour's address, which strangers can cause.
pub const HELD_SHARE: usize = 8;

/// What each worker's datapath is told. Limits of the whole process are divided among the workers. `frames`: the buffers that the
/// port with the fewest has.
pub(super) fn datapath(config: &Config, fib: Arc<Fib>, seed: u64, frames: Option<usize>) -> datapath::Config {
    let workers = usize::from(config.workers.workers().max(1));
    let base = datapath::Config::new(fib);
    datapath::Config {
        seed,
        buffered: Places::new(config.limits.buffered_packets as usize),
        held_frames: frames.map_or(base.held_frames, |frames| frames / HELD_SHARE / workers),
        reassemblies: config.limits.fragmented_packets as usize,
        fragment_flows: config.limits.fragmented_packets as usize,
        flows: config.limits.flows,
        flows_reserved_per_shard: config.limits.flows_reserved.div_ceil(session::SHARDS as u32),
        flow_supply: flow_supply(&config.limits, workers),
        flows_per_session: config.limits.flows_per_session,
        flow_idle: config.limits.flow_idle_seconds,
        export: super::flow_log::policy(&config.flow_log, workers),
        new_flows_in_overload: config.limits.new_flows_in_overload,
        mappings_per_shard: config.limits.nat_mappings.div_ceil(session::SHARDS as u32),
        asked: Arc::new(Asked::new(seed.rotate_left(13))),
        neighbours: config.limits.neighbours as usize,
        error_rate: config.limits.errors_per_second,
        icmp_rate: config.limits.errors_per_second,
        slices: slices(config, base.meter_burst),
        marking: marking(config),
        check_source: check_source(config.n3.check_source),
        ..base
    }
}

/// From where tunnels' packets may come.
fn check_source(section: CheckSource) -> datapath::CheckSource {
    match section {
        CheckSource::Off => datapath::CheckSource::Off,
        CheckSource::Learn => datapath::CheckSource::Learn,
        CheckSource::Strict => datapath::CheckSource::Strict,
    }
}

/// Bytes that a worker keeps ready for flow tables that grow: at most [`SUPPLY`], and a quarter of what all its flows may take.
fn flow_supply(limits: &Limits, workers: usize) -> usize {
    let grow = limits.flows.saturating_sub(limits.flows_reserved) as usize;
    SUPPLY.min(grow * BYTES_PER_FLOW as usize / 4 / workers)
}

/// The rates of slices, which all workers share.
fn slices(config: &Config, burst: u64) -> Vec<Slice> {
    let meter = |rate: BitRate| MeterConfig::with_burst_time(rate.0, burst, SLICE_BURST);
    let marker = |blind, guaranteed: Option<BitRate>, maximum: Option<BitRate>, excess: Option<u32>| {
        let maximum = maximum?;
        let marker = match excess {
            Some(excess) => SharedMarker::single_rate(meter(maximum), excess),
            None => SharedMarker::new(meter(guaranteed.unwrap_or(maximum)), meter(maximum)),
        };
        Some(Arc::new(marker.blind(blind)))
    };
    let slice = |section: &SliceSection| {
        let blind = section.colour_blind;
        Slice {
            uplink: marker(blind, section.uplink_guaranteed, section.uplink, section.uplink_excess_burst),
            downlink: marker(
                blind,
                section.downlink_guaranteed,
                section.downlink,
                section.downlink_excess_burst,
            ),
        }
    };
    config.slices.iter().map(slice).collect()
}

fn marking(config: &Config) -> Marking {
    let mut marking = Marking::default();
    for section in &config.marking {
        let qfi = Qfi::from_wire(section.qfi);
        if let Some(dscp) = section.outer {
            marking.set_outer(qfi, dscp);
        }
        if let Some(dscp) = section.inner {
            marking.set_inner(qfi, dscp);
        }
        for dscp in &section.accept {
            marking.set_qfi(*dscp, qfi);
        }
    }
    marking
}

/// What the workers' threads are told; `cores` are theirs.
pub(super) fn engine(config: &Config, cores: Cores, options: Options, seed: u64) -> EngineConfig {
    let defaults = EngineConfig::default();
    let on_thread_start = options.on_thread_start.unwrap_or_else(|| defaults.on_thread_start.clone());
    let egress = config.qos.egress.clone();
    let offload = super::offload::policy(&config.offload, seed);
    let model = config.model;
    let parking = config.parked_packets.map_or(defaults.parking, |packets| packets as usize);
    let (idle, scaling) = (options.idle, scaling(config, &defaults.scaling));
    let active = scaling.policy.automatic.then_some(scaling.policy.min);
    EngineConfig {
        far: cores.far(),
        cores: cores.cores,
        model,
        active,
        scaling,
        parking,
        idle,
        egress,
        on_thread_start,
        offload,
        ..defaults
    }
}

/// Regulation, in the units of the engine's defaults: packets.
fn scaling(config: &Config, defaults: &Scaling) -> Scaling {
    let section = &config.scaling;
    // The engine brings it down to those that may own shards.
    let policy = section.policy(usize::from(config.workers.workers()));
    let limits = section.limits();
    Scaling {
        policy,
        rebalance: limits.is_some().then_some(section.interval),
        limits: limits.map_or(defaults.limits, |own| engine::plan::Limits {
            imbalance: own.imbalance,
            settle: own.settle,
            ..defaults.limits
        }),
        ..defaults.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use config::{EXAMPLE, parse};

    #[test]
    fn workers_keep_a_part_of_what_their_flows_may_take_ready() {
        let supply = |workers: u32, flows: u32, reserved: u32| {
            let set = [
                format!("workers.cores={:?}", (0..workers).collect::<Vec<_>>()),
                format!("limits.flows={flows}"),
                format!("limits.flows-reserved={reserved}"),
            ];
            let config = parse("example", EXAMPLE, &[], &set).unwrap_or_else(|report| panic!("{report}"));
            datapath(&config, Rib::new().fib(), 0, None).flow_supply
        };
        assert_eq!(supply(1, 1 << 20, 0), 30 << 20);
        assert_eq!(supply(2, 1 << 20, 1 << 19), 30 << 18);
        assert_eq!(supply(1, 1 << 20, 1 << 20), 0, "all of it is there already");
        assert_eq!(supply(1, 1 << 27, 0), SUPPLY);
    }
}
