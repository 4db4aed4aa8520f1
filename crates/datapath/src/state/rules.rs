//! What a session's rules say, before any packet is looked at.

use crate::meta::Meta;
use session::rules::{Action, Forward, Pdr, Prefix, Rules, Source};
use std::net::IpAddr;

/// The tunnel that an action sends into.
pub(crate) fn tunnel_of(action: Action) -> Option<(IpAddr, u32)> {
    match action {
        Action::Forward(Forward { outer_header: Some(outer), .. }) => Some((outer.peer, outer.teid.0)),
        _ => None,
    }
}

/// The far end that an action sends to.
pub(crate) fn remote(action: Action) -> Option<IpAddr> {
    tunnel_of(action).map(|(peer, _)| peer)
}

/// The rules that can match packets of a tunnel, or (`None`) packets to the UE's address, best first.
pub(crate) fn candidates(rules: &Rules, tunnel: Option<u32>) -> impl Iterator<Item = (u16, &Pdr)> {
    let pdrs = rules.pdrs.iter().enumerate().map(|(index, pdr)| (index as u16, pdr));
    pdrs.filter(move |(_, pdr)| may_match(pdr, tunnel))
}

/// Whether a rule is about packets of this tunnel, or (`None`) about packets to the UE's address.
pub(crate) fn may_match(pdr: &Pdr, tunnel: Option<u32>) -> bool {
    match (tunnel, pdr.tunnel) {
        (Some(teid), Some(tunnel)) => tunnel.teid.0 == teid,
        (None, None) => matches!(pdr.source, Source::Core | Source::N6Lan),
        _ => false,
    }
}

/// Whether all of a rule's filters ask for a destination that never leaves a link: the SMF's rule for router solicitations.
pub(crate) fn only_link_local(pdr: &Pdr) -> bool {
    !pdr.filters.is_empty()
        && pdr.filters.iter().all(|filter| match filter.destination {
            Some(Prefix::V6(net)) => {
                let first = net.network().segments()[0];
                (first >> 8 == 0xff && net.prefix_len() >= 8)
                    || (first & 0xffc0 == 0xfe80 && net.prefix_len() >= 10)
            }
            _ => false,
        })
}

/// Whether the UE's packet is to a link-local address or a group, by its first octet.
#[inline(always)]
pub(crate) fn may_stay_on_link(meta: &Meta, packet: &[u8]) -> bool {
    meta.v6 && packet.get(24).is_none_or(|first| *first >= 0xfe)
}
