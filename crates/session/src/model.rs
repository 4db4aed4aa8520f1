//! The session as the SMF described it, with everything a later modification may lean on.
//!
//! Rules refer to each other by the SMF's IDs here (free5GC's are in the hundreds, with gaps); [`mod@crate::compile`] turns
//! IDs into indices. Lists are kept in order of their ID. What belongs to the session and not to a rule is kept with the
//! session: the UE's addresses and the tunnels (docs/interop.md rule c: Open5GS's dedicated-flow PDRs carry neither).
//!
//! A [`Model`] is for working on. Between two requests a session lies packed, see [`mod@crate::packed`].

use crate::rules::{Destination, OuterHeader, Source, Tunnel, VolumeLimit};
use crate::sdf::{Extras, Flow};
use ipnet::{Ipv4Net, Ipv6Net};
use packet::{Dscp, Qfi, Teid};
use pfcp::{BarId, FarId, PdrId, QerId, UrrId};
use std::net::Ipv4Addr;

/// Everything that an SMF said of one session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Model {
    /// What [`crate::about::About`] reads.
    pub about: Box<[u8]>,
    /// The UE's IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// The UE's IPv6 prefix.
    pub ipv6: Option<Ipv6Net>,
    /// Local tunnel endpoints.
    pub tunnels: Vec<Endpoint>,
    /// In order of ID.
    pub pdrs: Vec<Pdr>,
    /// In order of ID.
    pub fars: Vec<Far>,
    /// In order of ID.
    pub qers: Vec<Qer>,
    /// In order of ID.
    pub urrs: Vec<Urr>,
    /// In order of ID.
    pub bars: Vec<Bar>,
    /// Quotas given so far: what makes each of them another.
    pub quotas: u32,
    /// User Plane Inactivity Timer in seconds.
    pub inactivity_timer: Option<u32>,
    /// Index of its slice in the configuration.
    pub slice: Option<u16>,
}

/// A local tunnel endpoint, shared by all PDRs that name its TEID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// TEID and place.
    pub tunnel: Tunnel,
    /// The CHOOSE ID that it was asked for with: a later PDR with the same ID shares it (§8.2.3).
    pub choose_id: Option<u8>,
}

/// Something that has an ID in the session.
pub trait Identified {
    /// Its kind of ID.
    type Id: Copy + Ord;
    /// The ID.
    fn id(&self) -> Self::Id;
}

macro_rules! identified {
    ($($rule:ident: $id:ty),*) => {$(
        impl Identified for $rule {
            type Id = $id;
            fn id(&self) -> $id { self.id }
        }
    )*};
}
identified!(Pdr: PdrId, Far: FarId, Qer: QerId, Urr: UrrId, Bar: BarId);

/// The position of an ID in a list, or where it would be.
pub fn position<T: Identified>(list: &[T], id: T::Id) -> Result<usize, usize> {
    // Nearly all lists have one to four entries, where walking beats halving.
    for (at, entry) in list.iter().enumerate() {
        match entry.id().cmp(&id) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => return Ok(at),
            std::cmp::Ordering::Greater => return Err(at),
        }
    }
    Err(list.len())
}

/// Adds an entry, in place of the one with the same ID if there is one (docs/interop.md rule g). Whether there was.
pub fn put<T: Identified>(list: &mut Vec<T>, entry: T) -> bool {
    match position(list, entry.id()) {
        Ok(at) => {
            if let Some(old) = list.get_mut(at) {
                *old = entry;
            }
            true
        }
        Err(at) => {
            list.insert(at, entry);
            false
        }
    }
}

/// The entry of an ID.
pub fn find<T: Identified>(list: &[T], id: T::Id) -> Option<&T> {
    list.get(position(list, id).ok()?)
}

/// The entry of an ID, to change.
pub fn find_mut<T: Identified>(list: &mut [T], id: T::Id) -> Option<&mut T> {
    let at = position(list, id).ok()?;
    list.get_mut(at)
}

/// Packet Detection Rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pdr {
    /// Its ID.
    pub id: PdrId,
    /// Lower wins.
    pub precedence: u32,
    /// Source Interface.
    pub source: Source,
    /// Network Instance, as an index into the configured ones; 0 is the default.
    pub instance: u16,
    /// The tunnel its packets arrive in: one of [`Model::tunnels`].
    pub tunnel: Option<Teid>,
    /// QFIs.
    pub qfis: Vec<Qfi>,
    /// SDF filters.
    pub filters: Vec<Filter>,
    /// Application ID: a name in [`crate::applications`].
    pub application: Option<Box<[u8]>>,
    /// Networks behind the UE.
    pub framed_ipv4: Vec<Ipv4Net>,
    /// Networks behind the UE.
    pub framed_ipv6: Vec<Ipv6Net>,
    /// Outer Header Removal is present.
    pub outer_header_removal: bool,
    /// The FAR.
    pub far: Option<FarId>,
    /// QERs, all of which apply.
    pub qers: Vec<QerId>,
    /// URRs.
    pub urrs: Vec<UrrId>,
}

/// One SDF filter of a PDR, in downlink form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// SDF Filter ID of a bidirectional filter.
    pub id: Option<u32>,
    /// Given by its ID alone: it follows the filter of that ID elsewhere in the session.
    pub by_id: bool,
    /// The description.
    pub flow: Flow,
    /// ToS, SPI, flow label.
    pub extras: Extras,
}

/// What a FAR does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Apply {
    /// DROP.
    Drop,
    /// FORW.
    Forward,
    /// BUFF.
    Buffer {
        /// NOCP.
        notify: bool,
    },
}

/// Outer Header Creation, as far as it can be obeyed. It counts where the FAR forwards: before the gNB is known SMFs write
/// what they have (docs/interop.md, pfcpsim: TEID 0 and 0.0.0.0 in a FAR that drops).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outer {
    /// GTP-U to this far end.
    Tunnel(OuterHeader),
    /// GTP-U without a TEID, or to an address that is no far end's.
    Nowhere,
    /// Something else than GTP-U.
    Unsupported,
}

/// Forwarding Action Rule. The forwarding parameters outlive a FAR that stops forwarding: SMFs deactivate a tunnel
/// with an Apply Action alone and expect it to be known still (docs/interop.md, Open5GS).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Far {
    /// Its ID.
    pub id: FarId,
    /// Apply Action.
    pub apply: Apply,
    /// Destination Interface; `None`: there were never forwarding parameters.
    pub destination: Option<Destination>,
    /// Outer Header Creation.
    pub outer_header: Option<Outer>,
    /// Transport Level Marking.
    pub marking: Option<Dscp>,
    /// Network Instance, as an index into the configured ones; 0 is the default.
    pub instance: u16,
    /// Forwarding Policy, by its number among those configured; 0: none.
    pub policy: u16,
    /// The URL that HTTP requests are redirected to.
    pub redirect: Option<Box<str>>,
    /// The BAR that says how to buffer.
    pub bar: Option<BarId>,
}

/// QoS Enforcement Rule; rates in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Qer {
    /// Its ID.
    pub id: QerId,
    /// Uplink gate.
    pub uplink_open: bool,
    /// Downlink gate.
    pub downlink_open: bool,
    /// Maximum bit rate; `None`: not limited.
    pub uplink_mbr: Option<u64>,
    /// Likewise.
    pub downlink_mbr: Option<u64>,
    /// Guaranteed bit rate.
    pub uplink_gbr: Option<u64>,
    /// Likewise.
    pub downlink_gbr: Option<u64>,
    /// QFI to mark with.
    pub qfi: Option<Qfi>,
    /// RQI.
    pub reflective: bool,
    /// Paging policy indicator.
    pub paging_policy: Option<u8>,
}

/// What an SMF wants to be told of a URR (Reporting Triggers, §8.2.19), of those that Millrace raises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Triggers {
    /// PERIO.
    pub periodic: bool,
    /// VOLTH.
    pub volume_threshold: bool,
    /// TIMTH.
    pub time_threshold: bool,
    /// START.
    pub start_of_traffic: bool,
    /// STOPT.
    pub stop_of_traffic: bool,
    /// VOLQU.
    pub volume_quota: bool,
    /// TIMQU.
    pub time_quota: bool,
}

/// Usage Reporting Rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Urr {
    /// Its ID.
    pub id: UrrId,
    /// VOLUM: volumes are reported.
    pub volume: bool,
    /// DURAT: durations are reported.
    pub duration: bool,
    /// MBQE.
    pub before_enforcement: bool,
    /// INAM.
    pub inactive: bool,
    /// RADI.
    pub reduced: bool,
    /// Reporting Triggers.
    pub triggers: Triggers,
    /// Volume Threshold.
    pub threshold: VolumeLimit,
    /// Volume Quota.
    pub quota: VolumeLimit,
    /// See [`crate::rules::Urr::quota_generation`].
    pub quota_generation: u32,
    /// See [`crate::rules::Urr::blocked`].
    pub blocked: bool,
    /// Measurement Period in seconds.
    pub period: Option<u32>,
    /// Time Threshold in seconds.
    pub time_threshold: Option<u32>,
    /// Time Quota in seconds.
    pub time_quota: Option<u32>,
    /// Quota Validity Time in seconds.
    pub quota_validity: Option<u32>,
    /// Quota Holding Time in seconds.
    pub quota_holding: Option<u32>,
}

/// Buffering Action Rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bar {
    /// Its ID.
    pub id: BarId,
    /// Downlink Data Notification Delay in units of 50 ms.
    pub delay: Option<u8>,
    /// Suggested Buffering Packets Count.
    pub packets: Option<u16>,
}
