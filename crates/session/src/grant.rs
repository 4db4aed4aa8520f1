//! What a request needs of the node, taken and given back: tunnels, UE addresses, framed routes; and what the SMF and the
//! workers must be told of them.

use crate::addresses::{AddressError, Addresses, shard_of_ipv4, shard_of_ipv6};
use crate::change::{Plan, Wish, framed_routes, host, ue_networks};
use crate::config::{Config, LocalAddresses};
use crate::ids::{SessionRef, ShardId};
use crate::model::{Endpoint, Model};
use crate::pool::PoolError;
use crate::portable::Unportable;
use crate::refusal::Refusal;
use crate::rules::Tunnel;
use crate::store::DirectoryChange;
use crate::teid::{TunnelError, Tunnels};
use ipnet::{IpNet, Ipv6Net};
use packet::Teid;
use pfcp::ie::{FTeid, UeIpAddress};
use pfcp::message::CreatedPdr;
use pfcp::{PdrId, Seid};
use std::net::Ipv4Addr;

/// What a request took, to be given back if it is refused.
#[derive(Debug, Default)]
pub struct Taken {
    /// Tunnels.
    pub tunnels: Vec<Tunnel>,
    /// Addresses, prefixes and routes.
    pub nets: Vec<IpNet>,
}

/// What sessions take from.
#[derive(Debug)]
pub struct Node {
    /// Local addresses, and bounds.
    pub config: Config,
    /// Tunnel endpoints.
    pub tunnels: Tunnels,
    /// UE addresses.
    pub addresses: Addresses,
}

impl Node {
    /// Nothing is taken yet.
    pub fn new(config: Config) -> Result<Self, PoolError> {
        Ok(Self {
            tunnels: Tunnels::new(config.seed, config.epoch, config.teids),
            addresses: Addresses::new(&config)?,
            config,
        })
    }

    /// Takes the addresses and routes that a plan wishes for.
    pub fn grant_addresses(
        &mut self,
        plan: &mut Plan<'_>,
        dnn: Option<&[u8]>,
        shard: Option<ShardId>,
        old_routes: &[IpNet],
        taken: &mut Taken,
    ) -> Result<(), Refusal> {
        // Those that are given first: one that can't be had costs nothing yet.
        if let (Wish::Given(pdr, address), None) = (plan.ipv4, plan.model.ipv4) {
            self.take(host(address), taken).map_err(|error| Refusal::Address(pdr, error))?;
            plan.model.ipv4 = Some(address);
        }
        if let (Wish::Given(pdr, prefix), None) = (plan.ipv6, plan.model.ipv6) {
            self.take(IpNet::V6(prefix), taken).map_err(|error| Refusal::Address(pdr, error))?;
            plan.model.ipv6 = Some(prefix);
        }
        let names = [dnn.unwrap_or_default(), plan.pool_name.unwrap_or_default()];
        if let (Wish::Choose(pdr), None) = (plan.ipv4, plan.model.ipv4) {
            let lengths = self.addresses.prefix_lengths();
            let wish = shard.or(plan.model.ipv6.map(|prefix| shard_of_ipv6(lengths, prefix)));
            let address = self.addresses.allocate_ipv4(&names, wish);
            let address = address.map_err(|error| Refusal::Address(pdr, error))?;
            taken.nets.push(host(address));
            plan.model.ipv4 = Some(address);
        }
        if let (Wish::Choose(pdr), None) = (plan.ipv6, plan.model.ipv6) {
            let wish = shard.or(plan.model.ipv4.map(shard_of_ipv4));
            let prefix = self.addresses.allocate_ipv6(&names, wish);
            let prefix = prefix.map_err(|error| Refusal::Address(pdr, error))?;
            taken.nets.push(IpNet::V6(prefix));
            plan.model.ipv6 = Some(prefix);
        }
        for net in framed_routes(&plan.model) {
            if !old_routes.contains(&net) {
                let route = self.take_route(net, taken);
                route.map_err(|error| Refusal::Address(plan.router(net), error))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, net: IpNet, taken: &mut Taken) -> Result<(), AddressError> {
        self.addresses.reserve(net)?;
        taken.nets.push(net);
        Ok(())
    }

    fn take_route(&mut self, net: IpNet, taken: &mut Taken) -> Result<(), AddressError> {
        self.addresses.reserve_route(net)?;
        taken.nets.push(net);
        Ok(())
    }

    /// Takes what the session of this SEID had in another process. `chosen`: TEIDs that its SMF chose, in order.
    pub fn take_again(
        &mut self,
        seid: Seid,
        model: &Model,
        chosen: &[Teid],
        taken: &mut Taken,
    ) -> Result<(), Unportable> {
        let refused = |error| Unportable::Address(seid, error);
        for net in ue_networks(model) {
            self.take(net, taken).map_err(refused)?;
        }
        for net in framed_routes(model) {
            self.take_route(net, taken).map_err(refused)?;
        }
        for Endpoint { tunnel, .. } in &model.tunnels {
            if tunnel.place.shard != SessionRef::of(seid).shard {
                return Err(Unportable::Damaged);
            }
            let restored = self.tunnels.restore(*tunnel, chosen.binary_search(&tunnel.teid).is_ok());
            restored.map_err(|error| Unportable::Tunnel(seid, error))?;
            taken.tunnels.push(*tunnel);
        }
        Ok(())
    }

    /// Gives every PDR the tunnel it asks for.
    pub fn grant_tunnels(
        &mut self,
        plan: &mut Plan<'_>,
        shard: ShardId,
        taken: &mut Taken,
    ) -> Result<(), Refusal> {
        for at in 0..plan.tunnels.len() {
            let Some(wish) = plan.tunnels.get(at).copied() else { break };
            let refused = |error| Refusal::Tunnel(wish.pdr, error);
            let Some(pdr) = plan.pdr(wish.pdr) else { continue };
            let has = pdr.tunnel;
            let held = |found: &dyn Fn(&Endpoint) -> bool| {
                plan.model.tunnels.iter().find(|endpoint| found(endpoint)).map(|endpoint| endpoint.tunnel)
            };
            let (tunnel, choose_id) = match wish.fteid {
                FTeid::Given { teid, .. } => match held(&|endpoint| endpoint.tunnel.teid == teid) {
                    Some(tunnel) => (tunnel, None),
                    None => (adopt(&mut self.tunnels, shard, teid, taken).map_err(refused)?, None),
                },
                FTeid::Choose { ipv4, ipv6, id } => {
                    let local = self.config.tunnel_addresses(pdr.instance, pdr.source);
                    if answer(local, ipv4, ipv6).is_empty() {
                        return Err(Refusal::NoTunnelAddress(wish.pdr));
                    }
                    let shared = id.and_then(|id| held(&|endpoint| endpoint.choose_id == Some(id)));
                    // An SMF that repeats its CHOOSE in a complete Update doesn't mean another tunnel.
                    let kept = has.filter(|_| wish.update && id.is_none());
                    let kept = kept.and_then(|teid| held(&|endpoint| endpoint.tunnel.teid == teid));
                    let tunnel = if let Some(tunnel) = shared.or(kept) {
                        tunnel
                    } else {
                        let tunnel = self.tunnels.allocate(shard).map_err(refused)?;
                        taken.tunnels.push(tunnel);
                        tunnel
                    };
                    (tunnel, id)
                }
            };
            let model = &mut plan.model;
            if !model.tunnels.iter().any(|endpoint| endpoint.tunnel == tunnel) {
                model.tunnels.push(Endpoint { tunnel, choose_id });
            }
            if let Some(pdr) = crate::model::find_mut(&mut model.pdrs, wish.pdr) {
                pdr.tunnel = Some(tunnel.teid);
            }
        }
        Ok(())
    }

    /// Gives back what a refused request took.
    pub fn give_back(&mut self, taken: &Taken) {
        for tunnel in &taken.tunnels {
            self.tunnels.release(*tunnel);
        }
        for net in &taken.nets {
            self.addresses.release(*net);
        }
    }

    /// Prefixes of a session that don't lead to its shard by themselves.
    pub fn announced(&self, model: &Model, place: SessionRef) -> Vec<IpNet> {
        let lengths = self.addresses.prefix_lengths();
        let mut nets = framed_routes(model);
        let elsewhere = |address: &Ipv4Addr| shard_of_ipv4(*address) != place.shard;
        nets.extend(model.ipv4.filter(elsewhere).map(host));
        let leads =
            |net: Ipv6Net| lengths.key_of(net).is_some() && shard_of_ipv6(lengths, net) == place.shard;
        nets.extend(model.ipv6.filter(|net| !leads(*net)).map(IpNet::V6));
        nets
    }

    /// What the SMF left to us and must be told.
    pub fn created(&self, plan: &Plan<'_>) -> Vec<CreatedPdr> {
        let mut created: Vec<CreatedPdr> = Vec::new();
        for wish in &plan.tunnels {
            let FTeid::Choose { ipv4, ipv6, .. } = wish.fteid else { continue };
            let Some(pdr) = plan.pdr(wish.pdr) else { continue };
            let Some(teid) = pdr.tunnel else { continue };
            let local = answer(self.config.tunnel_addresses(pdr.instance, pdr.source), ipv4, ipv6);
            let fteid = FTeid::Given { teid, ipv4: local.ipv4, ipv6: local.ipv6 };
            answer_for(&mut created, wish.pdr, |entry| entry.local_fteid = Some(fteid));
        }
        for (pdr, question) in &plan.ue_questions {
            let ipv6 = plan.model.ipv6.filter(|_| question.choose_ipv6);
            // Both ways to say a length mean the same (§8.2.62); that of a /64 needn't be said.
            let length = ipv6.map(|prefix| prefix.prefix_len());
            let asked = question.ipv6_prefix_length;
            let delegated = length.filter(|length| asked.is_none() && *length < 64);
            let chosen = UeIpAddress {
                ipv4: plan.model.ipv4.filter(|_| question.choose_ipv4),
                ipv6: ipv6.map(|prefix| prefix.addr()),
                is_destination: question.is_destination,
                ipv6_delegation_bits: delegated.map(|length| 64 - length),
                ipv6_prefix_length: asked.and(length),
                choose_ipv4: false,
                choose_ipv6: false,
            };
            answer_for(&mut created, *pdr, |entry| entry.ue_ips.push(chosen));
        }
        created
    }

    /// All that every worker must be told of a session.
    pub fn directory(&self, model: &Model, place: SessionRef) -> Vec<DirectoryChange> {
        let mut changes = Vec::new();
        tell_addresses(&mut changes, &[], &self.announced(model, place), place);
        self.tell_tunnels(&mut changes, model, &[]);
        changes
    }

    /// Tells of the tunnels that an SMF named and that are not among the old ones.
    pub fn tell_tunnels(&self, out: &mut Vec<DirectoryChange>, model: &Model, old: &[Endpoint]) {
        for Endpoint { tunnel, .. } in &model.tunnels {
            if self.tunnels.is_chosen(*tunnel) && !old.iter().any(|endpoint| endpoint.tunnel == *tunnel) {
                out.push(DirectoryChange::Tunnel { teid: tunnel.teid, place: Some(tunnel.place) });
            }
        }
    }
}

/// Changes the entry of a PDR, which is added if need be.
fn answer_for(created: &mut Vec<CreatedPdr>, id: PdrId, change: impl Fn(&mut CreatedPdr)) {
    if !created.iter().any(|entry| entry.id == id) {
        created.push(CreatedPdr { id, local_fteid: None, ue_ips: Vec::new() });
    }
    created.iter_mut().filter(|entry| entry.id == id).for_each(change);
}

fn adopt(
    tunnels: &mut Tunnels,
    shard: ShardId,
    teid: Teid,
    taken: &mut Taken,
) -> Result<Tunnel, TunnelError> {
    let tunnel = tunnels.adopt(shard, teid)?;
    taken.tunnels.push(tunnel);
    Ok(tunnel)
}

/// The addresses to answer a CHOOSE with: those asked for that we have; IPv4, or else what there is, if none was named
/// (docs/interop.md rule e).
fn answer(local: LocalAddresses, ipv4: bool, ipv6: bool) -> LocalAddresses {
    if !ipv4 && !ipv6 {
        return LocalAddresses { ipv6: local.ipv6.filter(|_| local.ipv4.is_none()), ..local };
    }
    LocalAddresses { ipv4: local.ipv4.filter(|_| ipv4), ipv6: local.ipv6.filter(|_| ipv6) }
}

/// Tells of the prefixes that are no longer announced, and of those that now are.
pub fn tell_addresses(out: &mut Vec<DirectoryChange>, old: &[IpNet], new: &[IpNet], place: SessionRef) {
    for net in old.iter().filter(|net| !new.contains(net)) {
        out.push(DirectoryChange::Address { prefix: *net, session: None });
    }
    for net in new.iter().filter(|net| !old.contains(net)) {
        out.push(DirectoryChange::Address { prefix: *net, session: Some(place) });
    }
}
