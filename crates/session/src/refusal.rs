//! Why a request is refused, and how PFCP says so: Cause, Offending IE, Failed Rule ID (TS 29.244 §7.5.3, §8.2.1).

use crate::addresses::AddressError;
use crate::compile::Unlinked;
use crate::sdf::SdfError;
use crate::teid::TunnelError;
use pfcp::{Cause, FarId, PdrId, RuleId, Seid};
use std::fmt;

/// IE types of TS 29.244 table 8.1.2-1 that a refusal may name.
mod ie {
    pub const CREATE_PDR: u16 = 1;
    pub const FORWARDING_PARAMETERS: u16 = 4;
    pub const SOURCE_INTERFACE: u16 = 20;
    pub const F_TEID: u16 = 21;
    pub const SDF_FILTER: u16 = 23;
    pub const APPLICATION_ID: u16 = 24;
    pub const REDIRECT_INFORMATION: u16 = 38;
    pub const FORWARDING_POLICY: u16 = 41;
    pub const DESTINATION_INTERFACE: u16 = 42;
    pub const APPLY_ACTION: u16 = 44;
    pub const PDR_ID: u16 = 56;
    pub const URR_ID: u16 = 81;
    pub const OUTER_HEADER_CREATION: u16 = 84;
    pub const BAR_ID: u16 = 88;
    pub const UE_IP_ADDRESS: u16 = 93;
    pub const FAR_ID: u16 = 108;
    pub const QER_ID: u16 = 109;
    pub const PDN_TYPE: u16 = 113;
    pub const ETHERNET_PACKET_FILTER: u16 = 132;
    pub const FRAMED_ROUTE: u16 = 153;
}

/// What Millrace doesn't do yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Feature {
    /// A PDN type other than IPv4, IPv6 and IPv4v6.
    #[error("PDN Type is Ethernet or Non-IP")]
    PdnType,
    /// A PDR for Ethernet frames.
    #[error("PDR {0} has an Ethernet Packet Filter")]
    Ethernet(PdrId),
    /// A PDR for an application, and nobody looks for any.
    #[error("PDR {0} has an Application ID, and packets are not inspected here")]
    ApplicationId(PdrId),
    /// A FAR that redirects, and not to a URL.
    #[error("FAR {0} redirects to something else than a URL")]
    Redirect(FarId),
    /// A FAR with a forwarding policy that isn't configured.
    #[error("FAR {0} has a Forwarding Policy that is not configured here")]
    ForwardingPolicy(FarId),
    /// A FAR towards something else than access, core, N6-LAN and SMF.
    #[error("FAR {0} has a Destination Interface other than Access, Core, SGi-LAN/N6-LAN and CP-function")]
    Destination(FarId),
    /// A PDR from something else.
    #[error("PDR {0} has a Source Interface other than Access, Core, SGi-LAN/N6-LAN and CP-function")]
    Source(PdrId),
}

/// Which configured bound was reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Bound {
    /// [`crate::config::Limits::sessions`].
    #[error("there are as many sessions as limits.sessions allows")]
    Sessions,
    /// [`crate::config::Limits::sessions_per_peer`].
    #[error("this SMF has as many sessions as limits.sessions-per-peer allows")]
    SessionsPerPeer,
    /// All session slots of a shard.
    #[error("the shard of the UE's address has no place for another session")]
    Slots,
    /// [`crate::config::Limits::pdrs`].
    #[error("the session would have more PDRs than limits.rules-per-session allows")]
    Pdrs,
    /// [`crate::config::Limits::fars`].
    #[error("the session would have more FARs than limits.rules-per-session allows")]
    Fars,
    /// [`crate::config::Limits::qers`], also of one PDR.
    #[error("the session, or one PDR, would have more QERs than limits.rules-per-session allows")]
    Qers,
    /// [`crate::config::Limits::urrs`], also of one PDR.
    #[error("the session, or one PDR, would have more URRs than limits.rules-per-session allows")]
    Urrs,
    /// [`crate::config::Limits::bars`].
    #[error("the session would have too many BARs")]
    Bars,
    /// [`crate::config::Limits::filters`].
    #[error("the PDR would have more SDF filters than limits.filters-per-pdr allows")]
    Filters,
    /// [`crate::config::Limits::framed_routes`].
    #[error("the PDR would have too many framed routes")]
    FramedRoutes,
}

/// What an SMF calls something, as it can be shown: of a long name the beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text(Box<str>);

impl Text {
    /// Characters that are shown.
    const SHOWN: usize = 64;

    pub(crate) fn of(octets: &[u8]) -> Self {
        let text = String::from_utf8_lossy(octets);
        Self(text.chars().take(Self::SHOWN).flat_map(char::escape_debug).collect::<String>().into())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

/// " (PDR 5)", where there is a rule to name.
struct At(Option<RuleId>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |rule| write!(f, " ({rule})"))
    }
}

/// Why a request is refused, as a sentence for people in the standard's words. The session is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// No session has this SEID.
    #[error("there is no session {0} of this SMF here")]
    UnknownSession(Seid),
    /// The association ended, or never was.
    #[error("the PFCP association with this SMF has ended")]
    UnknownPeer,
    /// An establishment without any PDR.
    #[error("a session begins with at least one Create PDR")]
    Empty,
    /// Kept for later.
    #[error("{0}, which is not supported")]
    Unsupported(Feature),
    /// A bound was reached.
    #[error("{0}{at}", at = At(*.1))]
    Limit(Bound, Option<RuleId>),
    /// Update or Remove of a rule that the session doesn't have.
    #[error("the session has no {0}")]
    UnknownRule(RuleId),
    /// A flow description can't be used.
    #[error("PDR {0} has an SDF Filter that can't be used: {1}")]
    Sdf(PdrId, SdfError),
    /// A filter given by its ID alone, and none in the session has it.
    #[error("PDR {0} names SDF Filter ID {1}, which the session doesn't have")]
    UnknownFilter(PdrId, u32),
    /// None, or several, of DROP, FORW and BUFF.
    #[error("FAR {0} has an Apply Action without exactly one of DROP, FORW and BUFF")]
    ApplyAction(FarId),
    /// A PDR asks for an application that nobody finds.
    #[error("PDR {0} asks for the application {1}, which neither signatures nor PFDs here describe")]
    UnknownApplication(PdrId, Text),
    /// A URL to redirect to that can't be one.
    #[error(
        "FAR {0} redirects to a URL that is longer than 1000 octets, or has octets that a URL can't have"
    )]
    RedirectUrl(FarId),
    /// A framed route that can't be read.
    #[error("PDR {0} has a framed route that can't be read")]
    FramedRoute(PdrId),
    /// Rules don't fit together.
    #[error(transparent)]
    Unlinked(#[from] Unlinked),
    /// The tunnel can't be had.
    #[error("PDR {0} can't have its F-TEID: {1}")]
    Tunnel(PdrId, TunnelError),
    /// No local address of the family that was asked for.
    #[error("PDR {0} asks for an F-TEID of an address family that no N3 or N9 interface has")]
    NoTunnelAddress(PdrId),
    /// The UE's address, or a framed route, can't be had.
    #[error("PDR {0} can't have its UE IP Address: {1}")]
    Address(PdrId, AddressError),
    /// A PDR names another UE address than its session has.
    #[error("PDR {0} names another UE address than its session has")]
    OtherAddress(PdrId),
    /// A session's own record can't be read: a defect.
    #[error("the record of session {0} here is damaged")]
    Damaged(Seid),
}

impl Refusal {
    /// Cause.
    pub const fn cause(&self) -> Cause {
        match self {
            Self::UnknownSession(_) => Cause::SESSION_NOT_FOUND,
            Self::UnknownPeer => Cause::NO_ASSOCIATION,
            Self::Empty => Cause::MANDATORY_IE_MISSING,
            Self::Unsupported(Feature::ForwardingPolicy(_)) => Cause::INVALID_FORWARDING_POLICY,
            Self::Unsupported(_)
            | Self::Unlinked(Unlinked::NotGtpu(_))
            | Self::Address(_, AddressError::NoPool) => Cause::SERVICE_NOT_SUPPORTED,
            Self::Limit(..) | Self::Tunnel(_, TunnelError::Exhausted) => Cause::NO_RESOURCES,
            Self::Address(_, AddressError::Exhausted) => Cause::ADDRESSES_OCCUPIED,
            Self::NoTunnelAddress(_) => Cause::INVALID_FTEID_ALLOCATION,
            Self::Unlinked(
                Unlinked::NoFar(_)
                | Unlinked::NoTunnel(_)
                | Unlinked::NothingToMatch(_)
                | Unlinked::NoForwardingParameters(_),
            ) => Cause::CONDITIONAL_IE_MISSING,
            Self::UnknownApplication(..) => Cause::UNKNOWN_APPLICATION_ID,
            Self::UnknownRule(_)
            | Self::Sdf(..)
            | Self::UnknownFilter(..)
            | Self::ApplyAction(_)
            | Self::RedirectUrl(_)
            | Self::FramedRoute(_)
            | Self::Unlinked(_)
            | Self::Tunnel(..)
            | Self::Address(..)
            | Self::OtherAddress(_) => Cause::RULE_FAILURE,
            Self::Damaged(_) => Cause::SYSTEM_FAILURE,
        }
    }

    /// Offending IE: the type of the IE at fault.
    pub const fn offending_ie(&self) -> Option<u16> {
        Some(match self {
            Self::Empty => ie::CREATE_PDR,
            Self::Unsupported(feature) => match feature {
                Feature::PdnType => ie::PDN_TYPE,
                Feature::Ethernet(_) => ie::ETHERNET_PACKET_FILTER,
                Feature::ApplicationId(_) => ie::APPLICATION_ID,
                Feature::Redirect(_) => ie::REDIRECT_INFORMATION,
                Feature::ForwardingPolicy(_) => ie::FORWARDING_POLICY,
                Feature::Destination(_) => ie::DESTINATION_INTERFACE,
                Feature::Source(_) => ie::SOURCE_INTERFACE,
            },
            Self::UnknownRule(rule) => id_ie(*rule),
            Self::Sdf(..) | Self::UnknownFilter(..) => ie::SDF_FILTER,
            Self::UnknownApplication(..) => ie::APPLICATION_ID,
            Self::ApplyAction(_) => ie::APPLY_ACTION,
            Self::RedirectUrl(_) => ie::REDIRECT_INFORMATION,
            Self::FramedRoute(_) => ie::FRAMED_ROUTE,
            Self::Unlinked(unlinked) => match unlinked {
                Unlinked::NoFar(_) | Unlinked::Far(..) => ie::FAR_ID,
                Unlinked::Qer(..) => ie::QER_ID,
                Unlinked::Urr(..) => ie::URR_ID,
                Unlinked::Bar(..) => ie::BAR_ID,
                Unlinked::NoTunnel(_) => ie::F_TEID,
                Unlinked::NothingToMatch(_) => ie::UE_IP_ADDRESS,
                Unlinked::NoForwardingParameters(_) => ie::FORWARDING_PARAMETERS,
                Unlinked::Nowhere(_) | Unlinked::NotGtpu(_) => ie::OUTER_HEADER_CREATION,
            },
            Self::Tunnel(..) | Self::NoTunnelAddress(_) => ie::F_TEID,
            Self::Address(..) | Self::OtherAddress(_) => ie::UE_IP_ADDRESS,
            Self::UnknownSession(_) | Self::UnknownPeer | Self::Limit(..) | Self::Damaged(_) => return None,
        })
    }

    /// Failed Rule ID.
    pub const fn failed_rule(&self) -> Option<RuleId> {
        Some(match self {
            Self::Unsupported(feature) => match feature {
                Feature::PdnType => return None,
                Feature::Ethernet(pdr) | Feature::ApplicationId(pdr) | Feature::Source(pdr) => {
                    RuleId::Pdr(*pdr)
                }
                Feature::Redirect(far) | Feature::ForwardingPolicy(far) | Feature::Destination(far) => {
                    RuleId::Far(*far)
                }
            },
            Self::Limit(_, rule) => return *rule,
            Self::UnknownRule(rule) => *rule,
            Self::ApplyAction(far) | Self::RedirectUrl(far) => RuleId::Far(*far),
            Self::Sdf(pdr, _)
            | Self::UnknownFilter(pdr, _)
            | Self::UnknownApplication(pdr, _)
            | Self::FramedRoute(pdr)
            | Self::Tunnel(pdr, _)
            | Self::NoTunnelAddress(pdr)
            | Self::Address(pdr, _)
            | Self::OtherAddress(pdr) => RuleId::Pdr(*pdr),
            Self::Unlinked(unlinked) => match unlinked {
                Unlinked::NoFar(pdr)
                | Unlinked::Far(pdr, _)
                | Unlinked::Qer(pdr, _)
                | Unlinked::Urr(pdr, _)
                | Unlinked::NoTunnel(pdr)
                | Unlinked::NothingToMatch(pdr) => RuleId::Pdr(*pdr),
                Unlinked::Bar(far, _)
                | Unlinked::NoForwardingParameters(far)
                | Unlinked::Nowhere(far)
                | Unlinked::NotGtpu(far) => RuleId::Far(*far),
            },
            Self::UnknownSession(_) | Self::UnknownPeer | Self::Empty | Self::Damaged(_) => return None,
        })
    }
}

const fn id_ie(rule: RuleId) -> u16 {
    match rule {
        RuleId::Pdr(_) => ie::PDR_ID,
        RuleId::Far(_) => ie::FAR_ID,
        RuleId::Qer(_) => ie::QER_ID,
        RuleId::Urr(_) => ie::URR_ID,
        RuleId::Bar(_) => ie::BAR_ID,
    }
}
