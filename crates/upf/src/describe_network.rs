//! The network around the UPF as the control socket tells of it: all of it is known to the control thread.

use super::{Backend, Upf};
use api::{
    Answers, CtlError, ErrorCode, GnbLine, GnbList, Gnbs, MAX_PAGE, NeighbourLine, NeighbourList, Neighbours,
    PolicyLine, PoolLine, PoolList, Pools, RouteLine, RouteList, Routes,
};
use datapath::fib::Hop;
use datapath::{NeighbourSight, NeighbourState};
use n4::FarEndStatus;
use packet::MacAddr;
use pfcp::calendar::utc;
use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use tables::Nanos;

fn interface(upf: &Upf, number: u16) -> String {
    let interface = upf.rib.interfaces().get(usize::from(number));
    interface.map(|interface| interface.name.clone()).unwrap_or_default()
}

/// Names of interfaces, in order of their numbers.
fn names(upf: &Upf) -> Vec<String> {
    upf.rib.interfaces().iter().map(|interface| interface.name.clone()).collect()
}

impl Answers<Routes> for Backend {
    fn answer(&self, _: Routes) -> Result<RouteList, CtlError> {
        self.ask(|upf| Ok(RouteList { routes: routes(upf), policies: policies(upf) }))
    }
}

/// Subnets of interfaces, and routes of the configuration.
fn routes(upf: &Upf) -> Vec<RouteLine> {
    let line = |(to, number, via): (ipnet::IpNet, u16, Option<IpAddr>)| RouteLine {
        to: to.to_string(),
        interface: interface(upf, number),
        via,
        mac: via.and_then(|via| upf.rib.neighbour(number, via)).map(|mac| mac.to_string()),
    };
    let subnets = upf.rib.interfaces().iter().enumerate().flat_map(|(number, interface)| {
        interface.addresses.iter().map(move |address| (address.trunc(), number as u16, None))
    });
    let mut routes: Vec<_> = subnets.chain(upf.rib.routes()).collect();
    routes.sort_unstable();
    routes.dedup();
    routes.into_iter().map(line).collect()
}

/// What SMFs may name.
fn policies(upf: &Upf) -> Vec<PolicyLine> {
    let (ways, nat) = (&upf.config.forwarding_policies, &upf.config.nat);
    let line = |id: &str| {
        let way = ways.iter().find(|way| way.id == id);
        let next_hops = way.map_or([None; 2], |way| way.next_hops);
        let pools = nat.pools.iter().zip(&nat.rules);
        let asking = pools.filter(|(_, rule)| rule.policy.as_deref() == Some(id));
        PolicyLine {
            policy: id.to_owned(),
            next_hops: next_hops.into_iter().flatten().map(|(_, address)| address).collect(),
            network_instance: way.and_then(|way| way.network_instance.clone()),
            nat: asking.map(|(pool, _)| pool.name.clone()).collect(),
        }
    };
    let only_nat = nat.policies().into_iter().filter(|id| ways.iter().all(|way| way.id != *id));
    ways.iter().map(|way| way.id.as_str()).chain(only_nat).map(line).collect()
}

impl Answers<Neighbours> for Backend {
    fn answer(&self, _: Neighbours) -> Result<NeighbourList, CtlError> {
        let (mut lines, names) = self.ask(|upf| {
            let names = names(upf);
            Ok((known(upf, &names), names))
        })?;
        // In bites, so that SMFs are answered in between.
        let mut from = Some(0);
        while let Some(place) = from {
            let (asked, now) = self.ask(move |upf| {
                let asked = upf.inspections.of_workers(&mut upf.engine, place);
                Ok((asked, upf.clock.now()))
            })?;
            let silent = || CtlError::new(ErrorCode::Unavailable, "a worker does not answer");
            let (sights, next) = asked.wait().ok_or_else(silent)?;
            sights.iter().for_each(|sight| enter(&mut lines, sight, &names, now));
            from = next;
        }
        Ok(NeighbourList { neighbours: lines.into_values().map(|(_, line)| line).collect() })
    }
}

/// Neighbours by interface and address, each with the state in the worker that knows it best.
type Known = BTreeMap<(u16, IpAddr), (Option<NeighbourState>, NeighbourLine)>;

/// Neighbours that control knows: they are configured, or some worker told of them.
fn known(upf: &Upf, names: &[String]) -> Known {
    let given: HashSet<_> =
        upf.config.neighbours.iter().map(|known| (known.interface as u16, known.address)).collect();
    let entry = |(number, address, mac): (u16, IpAddr, MacAddr)| {
        let mut line = line(names, number, address);
        (line.mac, line.configured) = (Some(mac.to_string()), given.contains(&(number, address)));
        ((number, address), (None, line))
    };
    upf.rib.neighbours().take(MAX_PAGE as usize).map(entry).collect()
}

fn line(names: &[String], number: u16, address: IpAddr) -> NeighbourLine {
    NeighbourLine {
        interface: names.get(usize::from(number)).cloned().unwrap_or_default(),
        address,
        mac: None,
        configured: false,
        state: None,
        heard_seconds: None,
        users: 0,
    }
}

/// Enters what a worker knows of a neighbour.
fn enter(lines: &mut Known, sight: &NeighbourSight, names: &[String], now: Nanos) {
    let key = (sight.interface, sight.address);
    if lines.len() >= MAX_PAGE as usize && !lines.contains_key(&key) {
        return;
    }
    let (best, line) =
        lines.entry(key).or_insert_with(|| (None, line(names, sight.interface, sight.address)));
    line.users = line.users.max(sight.users as u64);
    let heard = sight.heard.map(|heard| now.since(heard) / Nanos::SECOND);
    line.heard_seconds = line.heard_seconds.into_iter().chain(heard).min();
    if best.is_none_or(|known| known < sight.state) {
        *best = Some(sight.state);
        line.state = Some(sight.state.name().to_owned());
        line.mac = sight.mac.map(|mac| mac.to_string()).or(line.mac.take());
    }
}

impl Answers<Gnbs> for Backend {
    fn answer(&self, _: Gnbs) -> Result<GnbList, CtlError> {
        let known = |upf: &mut Upf| {
            let far_ends: Vec<_> = upf.n4.far_ends().collect();
            Ok((far_ends, upf.rib.fib(), names(upf), upf.n4.wall()))
        };
        let (mut far_ends, fib, names, wall) = self.ask(known)?;
        // They may be many, and this thread is the asker's own.
        far_ends.sort_unstable_by_key(|far_end| far_end.address);
        let leads = |address| match fib.hop(fib.route(address)) {
            Hop::OnLink { interface } | Hop::Gateway { interface, .. } => {
                names.get(usize::from(interface)).cloned()
            }
            _ => None,
        };
        let line = |far_end: FarEndStatus| GnbLine {
            address: far_end.address,
            rules: far_end.rules.into(),
            interface: leads(far_end.address),
            error_indications: far_end.error_indications,
            last_error: far_end.last_error.map(|at| utc(wall.ntp(at).0)),
        };
        Ok(GnbList { gnbs: far_ends.into_iter().map(line).collect() })
    }
}

impl Answers<Pools> for Backend {
    fn answer(&self, _: Pools) -> Result<PoolList, CtlError> {
        self.ask(|upf| Ok(PoolList { pools: pools(upf) }))
    }
}

fn pools(upf: &Upf) -> Vec<PoolLine> {
    let pools = upf.config.pools.iter().zip(upf.n4.store().pools());
    let line = |(pool, usage): (&config::Pool, session::addresses::PoolUsage)| {
        let ipv4 = pool.ipv4.iter().map(ToString::to_string);
        PoolLine {
            network_instance: pool.network_instance.clone(),
            prefixes: ipv4.chain(pool.ipv6.iter().map(ToString::to_string)).collect(),
            ipv4_used: usage.ipv4.0.into(),
            ipv4_size: usage.ipv4.1.into(),
            ipv6_used: usage.ipv6.0.into(),
            ipv6_size: usage.ipv6.1.into(),
        }
    };
    pools.map(line).collect()
}
