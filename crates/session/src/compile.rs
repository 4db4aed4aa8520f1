//! From what the SMF said to what a packet needs: IDs become indices, and every reference is followed.
//!
//! This is the last check of a request. It sees the whole session at once, after all of the message was taken in, so
//! rules may come in any order (docs/interop.md rule a), and it changes nothing: what it can't make sense of is a
//! [`Unlinked`], and the session stays as it was.

use crate::applications::Applications;
use crate::classifier::Classifier;
use crate::config::Config;
use crate::ids::SessionRef;
use crate::model::{Apply, Far, Model, Outer, Pdr, find, position};
use crate::rules::{self, Action, Application, Destination, Forward, Prefix, Rules, Source};
use ipnet::{Ipv4Net, Ipv6Net};
use pfcp::{BarId, FarId, PdrId, QerId, Seid, UrrId};
use std::net::Ipv6Addr;

/// Why a session's rules don't fit together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unlinked {
    /// A PDR without a FAR.
    #[error("PDR {0} names no FAR")]
    NoFar(PdrId),
    /// A PDR names a FAR that the session doesn't have.
    #[error("PDR {0} names FAR {1}, which the session doesn't have")]
    Far(PdrId, FarId),
    /// A PDR names a QER that the session doesn't have.
    #[error("PDR {0} names QER {1}, which the session doesn't have")]
    Qer(PdrId, QerId),
    /// A PDR names a URR that the session doesn't have.
    #[error("PDR {0} names URR {1}, which the session doesn't have")]
    Urr(PdrId, UrrId),
    /// Packets from ACCESS or from the SMF arrive in tunnels, and this PDR has none.
    #[error("PDR {0} takes packets from a tunnel but names no F-TEID")]
    NoTunnel(PdrId),
    /// Neither the PDR nor its session says whose packets it wants.
    #[error("PDR {0} has neither a tunnel nor a UE address: no packet could match it")]
    NothingToMatch(PdrId),
    /// A FAR names a BAR that the session doesn't have.
    #[error("FAR {0} names BAR {1}, which the session doesn't have")]
    Bar(FarId, BarId),
    /// FORW, and there were never forwarding parameters.
    #[error("FAR {0} forwards, but was given no forwarding parameters")]
    NoForwardingParameters(FarId),
    /// FORW into a tunnel that leads nowhere.
    #[error("FAR {0} forwards, but its Outer Header Creation has TEID 0 or no unicast address")]
    Nowhere(FarId),
    /// FORW into something else than GTP-U.
    #[error("FAR {0} forwards, but its Outer Header Creation is not GTP-U/UDP/IPv4 or IPv6")]
    NotGtpu(FarId),
}

/// Compiles a session.
pub fn compile(model: &Model, place: SessionRef, seid: Seid, config: &Config) -> Result<Rules, Unlinked> {
    let mut framed_ipv4: Vec<Ipv4Net> =
        model.pdrs.iter().flat_map(|pdr| pdr.framed_ipv4.iter().copied()).collect();
    let mut framed_ipv6: Vec<Ipv6Net> =
        model.pdrs.iter().flat_map(|pdr| pdr.framed_ipv6.iter().copied()).collect();
    framed_ipv4.sort_unstable();
    framed_ipv4.dedup();
    framed_ipv6.sort_unstable();
    framed_ipv6.dedup();
    let framed = !framed_ipv4.is_empty() || !framed_ipv6.is_empty();
    let assigned = if framed { assigned(model) } else { Vec::new() };

    let mut pdrs = Vec::with_capacity(model.pdrs.len());
    for pdr in &model.pdrs {
        pdrs.push(compile_pdr(pdr, model, &assigned, framed, &config.applications)?);
    }
    // Stable: the model's order, by ID, decides between equals.
    pdrs.sort_by_key(|pdr| pdr.precedence);
    let mut fars = Vec::with_capacity(model.fars.len());
    let mut redirects = Vec::new();
    for far in &model.fars {
        let mut action = action(far, model, config)?;
        if let (Action::Forward(forward), Some(url)) = (&mut action, &far.redirect) {
            forward.redirect = Some(redirects.len() as u16);
            redirects.push(url.clone());
        }
        fars.push(rules::Far { id: far.id, action });
    }
    let qers = model.qers.iter().map(|qer| rules::Qer {
        id: qer.id,
        uplink_open: qer.uplink_open,
        downlink_open: qer.downlink_open,
        uplink_mbr: qer.uplink_mbr,
        downlink_mbr: qer.downlink_mbr,
        uplink_gbr: qer.uplink_gbr,
        downlink_gbr: qer.downlink_gbr,
        qfi: qer.qfi,
        reflective: qer.reflective,
        paging_policy: qer.paging_policy,
    });
    // What such a rule is told of is an application's beginning, and not the first packet that is measured.
    let asks = |urr: UrrId| model.pdrs.iter().any(|pdr| pdr.application.is_some() && pdr.urrs.contains(&urr));
    let urrs = model.urrs.iter().map(|urr| rules::Urr {
        id: urr.id,
        before_enforcement: urr.before_enforcement,
        // A threshold without its trigger asks for nothing (§5.2.2.2.1); a quota binds in any case.
        threshold: if urr.triggers.volume_threshold { urr.threshold } else { rules::VolumeLimit::default() },
        quota: urr.quota,
        quota_generation: urr.quota_generation,
        blocked: urr.blocked,
        start_of_traffic: urr.triggers.start_of_traffic && !asks(urr.id),
        application_starts: urr.triggers.start_of_traffic && asks(urr.id),
        application_stops: urr.triggers.stop_of_traffic && asks(urr.id),
        reduced: urr.reduced,
        inactive: urr.inactive,
    });
    Ok(Rules {
        place,
        seid,
        ue_ipv4: model.ipv4,
        ue_ipv6: model.ipv6,
        framed_ipv4: framed_ipv4.into(),
        framed_ipv6: framed_ipv6.into(),
        slice: model.slice,
        classifier: Classifier::new(&pdrs),
        pdrs: pdrs.into(),
        fars: fars.into(),
        qers: qers.collect(),
        urrs: urrs.collect(),
        redirects: redirects.into(),
    })
}

/// What `assigned` in a filter stands for where networks are routed to the UE: its addresses, and the link-local one that it
/// uses for neighbour and router discovery.
fn assigned(model: &Model) -> Vec<Prefix> {
    let mut assigned = Vec::with_capacity(3);
    if let Some(address) = model.ipv4 {
        assigned.push(Prefix::V4(Ipv4Net::from(address)));
    }
    if let Some(prefix) = model.ipv6 {
        assigned.push(Prefix::V6(prefix));
        let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
        assigned.extend(Ipv6Net::new(link_local, 10).ok().map(Prefix::V6));
    }
    assigned
}

fn compile_pdr(
    pdr: &Pdr,
    model: &Model,
    assigned: &[Prefix],
    framed: bool,
    applications: &Applications,
) -> Result<rules::Pdr, Unlinked> {
    let tunnel = pdr.tunnel.and_then(|teid| {
        model.tunnels.iter().map(|endpoint| endpoint.tunnel).find(|tunnel| tunnel.teid == teid)
    });
    if tunnel.is_none() {
        match pdr.source {
            Source::Access | Source::CpFunction => return Err(Unlinked::NoTunnel(pdr.id)),
            Source::Core | Source::N6Lan => {
                if model.ipv4.is_none() && model.ipv6.is_none() && !framed {
                    return Err(Unlinked::NothingToMatch(pdr.id));
                }
            }
        }
    }
    let far = pdr.far.ok_or(Unlinked::NoFar(pdr.id))?;
    let far = position(&model.fars, far).map_err(|_| Unlinked::Far(pdr.id, far))? as u16;
    let mut qers = Vec::with_capacity(pdr.qers.len());
    for &id in &pdr.qers {
        qers.push(position(&model.qers, id).map_err(|_| Unlinked::Qer(pdr.id, id))? as u16);
    }
    let mut urrs = Vec::with_capacity(pdr.urrs.len());
    for &id in &pdr.urrs {
        urrs.push(position(&model.urrs, id).map_err(|_| Unlinked::Urr(pdr.id, id))? as u16);
    }
    let mut filters = Vec::with_capacity(pdr.filters.len());
    for filter in &pdr.filters {
        filter.flow.compile(filter.extras, pdr.source.is_uplink(), assigned, &mut filters);
    }
    let number = |name: &[u8]| applications.known(name).unwrap_or(Application::NOBODYS);
    Ok(rules::Pdr {
        id: pdr.id,
        precedence: pdr.precedence,
        source: pdr.source,
        tunnel,
        qfis: pdr.qfis.as_slice().into(),
        filters: filters.into(),
        application: pdr.application.as_deref().map(number),
        outer_header_removal: pdr.outer_header_removal,
        far,
        qers: qers.into(),
        urrs: urrs.into(),
    })
}

fn action(far: &Far, model: &Model, config: &Config) -> Result<Action, Unlinked> {
    let bar = match far.bar {
        Some(id) => Some(find(&model.bars, id).ok_or(Unlinked::Bar(far.id, id))?),
        None => None,
    };
    Ok(match far.apply {
        Apply::Drop => Action::Drop,
        Apply::Buffer { notify } => {
            let suggested = bar.and_then(|bar| bar.packets).unwrap_or(u16::MAX);
            Action::Buffer { notify, packets: suggested.min(config.limits.buffered_packets) }
        }
        Apply::Forward => {
            let destination = far.destination.ok_or(Unlinked::NoForwardingParameters(far.id))?;
            let outer_header = match far.outer_header {
                None => None,
                Some(Outer::Tunnel(header)) => Some(header),
                Some(Outer::Nowhere) => return Err(Unlinked::Nowhere(far.id)),
                Some(Outer::Unsupported) => return Err(Unlinked::NotGtpu(far.id)),
            };
            match (destination, outer_header) {
                // A bare packet can't be sent to a radio that isn't known yet, nor to an SMF. But a redirection is turned back to ACCESS, where its
                // packets came from, and nothing leaves (table 8.2.24-1, NOTE 4).
                (Destination::Access, None) if far.redirect.is_none() => Action::ForwardUnresolved,
                (Destination::CpFunction, None) => Action::ForwardUnresolved,
                (destination, outer_header) => Action::Forward(Forward {
                    destination,
                    outer_header,
                    transport_marking: far.marking,
                    instance: config.instance_by(far.policy, far.instance),
                    policy: far.policy,
                    redirect: None,
                }),
            }
        }
    })
}
