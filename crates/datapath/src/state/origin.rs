//! Whose is a packet, by its source?

use crate::state::rules::candidates;
use session::rules::{Rules, is_link_local};
use std::net::IpAddr;

/// Whose address a packet's source is.
#[derive(PartialEq, Eq)]
pub(crate) enum SourceOf {
    Ue,
    /// Link-local or unspecified: only for the SMF's ears.
    Link,
    /// No address of the UE is known.
    Unknown,
    Stranger,
}

/// Whether all that a tunnel's rules are about is the UE's own.
pub(crate) fn are_all_uplink(rules: &Rules, tunnel: Option<u32>) -> bool {
    candidates(rules, tunnel).all(|(_, pdr)| pdr.source.is_uplink())
}

pub(crate) fn source_of(rules: &Rules, source: IpAddr) -> SourceOf {
    if rules.ue_ipv4.is_none() && rules.ue_ipv6.is_none() {
        return SourceOf::Unknown;
    }
    let own = match source {
        IpAddr::V4(source) => {
            rules.ue_ipv4 == Some(source) || rules.framed_ipv4.iter().any(|net| net.contains(&source))
        }
        IpAddr::V6(source) => {
            rules.ue_ipv6.is_some_and(|net| net.contains(&source))
                || rules.framed_ipv6.iter().any(|net| net.contains(&source))
        }
    };
    match source {
        _ if own => SourceOf::Ue,
        IpAddr::V6(source) if is_link_local(source) || source.is_unspecified() => SourceOf::Link,
        _ => SourceOf::Stranger,
    }
}
