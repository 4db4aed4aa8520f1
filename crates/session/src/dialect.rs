//! What single IEs mean: from the values on the wire, with what SMFs make of them, to the model's.

use crate::config::Config;
use crate::model::{Apply, Far, Outer, Qer, Triggers, Urr};
use crate::refusal::{Feature, Refusal, Text};
use crate::rules::{Destination, OuterHeader, Source, VolumeLimit};
use ipnet::IpNet;
use packet::Dscp;
use pfcp::ie::{
    ApplyAction, BitRate, Interface, OuterHeaderCreation, PolicyId, RedirectAddressType, RedirectInformation,
    ReportingTriggers,
};
use pfcp::message::{CreateFar, QerParameters, UrrParameters};
use pfcp::{FarId, PdrId};
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// The longest time that a rule may speak of, one year in seconds: free5GC sends points in time where durations belong
/// (docs/interop.md), and they are ignored.
const LONGEST_TIME: u32 = 366 * 24 * 3600;

/// The list without repetitions; `None` if more than `limit` remain.
pub fn distinct<T: Copy + PartialEq>(list: &[T], limit: usize) -> Option<Vec<T>> {
    let mut out = Vec::with_capacity(list.len().min(limit));
    for item in list {
        if !out.contains(item) {
            if out.len() == limit {
                return None;
            }
            out.push(*item);
        }
    }
    Some(out)
}

/// Source Interface.
pub fn source(pdr: PdrId, interface: Interface) -> Result<Source, Refusal> {
    Ok(match interface {
        Interface::ACCESS => Source::Access,
        Interface::CORE => Source::Core,
        Interface::SGI_N6_LAN => Source::N6Lan,
        Interface::CP_FUNCTION => Source::CpFunction,
        _ => return Err(Refusal::Unsupported(Feature::Source(pdr))),
    })
}

/// Destination Interface.
pub fn destination(far: FarId, interface: Interface) -> Result<Destination, Refusal> {
    Ok(match interface {
        Interface::ACCESS => Destination::Access,
        Interface::CORE => Destination::Core,
        Interface::SGI_N6_LAN => Destination::N6Lan,
        Interface::CP_FUNCTION => Destination::CpFunction,
        _ => return Err(Refusal::Unsupported(Feature::Destination(far))),
    })
}

/// Apply Action: exactly one of what a packet can undergo. NOCP counts with BUFF; DUPL is not ours to do.
pub fn apply(far: FarId, action: ApplyAction) -> Result<Apply, Refusal> {
    let one_of = ApplyAction::DROP | ApplyAction::FORW | ApplyAction::BUFF;
    match action.0 & one_of {
        ApplyAction::DROP => Ok(Apply::Drop),
        ApplyAction::FORW => Ok(Apply::Forward),
        ApplyAction::BUFF => Ok(Apply::Buffer { notify: action.has(ApplyAction::NOCP) }),
        _ => Err(Refusal::ApplyAction(far)),
    }
}

/// The longest URL to redirect to: with the rest of the answer it fits into a segment of the smallest IPv6 link.
const LONGEST_URL: usize = 1_000;

/// Redirect Information. An empty one says nothing, and takes away in an update what there was.
pub fn redirect(far: FarId, ie: RedirectInformation<'_>) -> Result<Option<Box<str>>, Refusal> {
    if ie.address.is_empty() && ie.other.is_empty() {
        return Ok(None);
    }
    if ie.kind != RedirectAddressType::URL {
        return Err(Refusal::Unsupported(Feature::Redirect(far)));
    }
    let url = str::from_utf8(ie.address).ok().filter(|url| is_url(url.as_bytes()));
    url.map(|url| Some(url.into())).ok_or(Refusal::RedirectUrl(far))
}

/// Whether it can stand in a header of HTTP as it is: no blanks, no ends of lines, nothing that is not ASCII (RFC 3986 §2).
pub fn is_url(url: &[u8]) -> bool {
    (1..=LONGEST_URL).contains(&url.len()) && url.iter().all(u8::is_ascii_graphic)
}

/// Forwarding Policy: the number of one that is configured.
pub fn policy(far: FarId, PolicyId(id): PolicyId<'_>, config: &Config) -> Result<u16, Refusal> {
    config.policy(id).ok_or(Refusal::Unsupported(Feature::ForwardingPolicy(far)))
}

/// Application ID. An empty one takes the application away (§5.6.3); in a new rule it says nothing.
pub fn application(pdr: PdrId, name: &[u8], config: &Config) -> Result<Option<Box<[u8]>>, Refusal> {
    let applications = &config.applications;
    if name.is_empty() {
        Ok(None)
    } else if !applications.is_inspected() {
        Err(Refusal::Unsupported(Feature::ApplicationId(pdr)))
    } else if applications.detected(name).is_none() {
        Err(Refusal::UnknownApplication(pdr, Text::of(name)))
    } else {
        Ok(Some(name.into()))
    }
}

/// Outer Header Creation. Whether it can be obeyed is asked where the FAR forwards: [`mod@crate::compile`].
pub fn outer_header(ie: OuterHeaderCreation, config: &Config) -> Outer {
    const GTPU: u16 = OuterHeaderCreation::GTPU_IPV4 | OuterHeaderCreation::GTPU_IPV6;
    if ie.description & GTPU == 0 {
        return Outer::Unsupported;
    }
    let ipv4 = ie.ipv4.map(IpAddr::V4);
    let ipv6 = ie.ipv6.map(IpAddr::V6);
    // Offered both, take the family that we can send from.
    let peer = if config.n3.ipv4.is_some() { ipv4.or(ipv6) } else { ipv6.or(ipv4) };
    // TEID 0 is for signalling (TS 29.281 §5.1).
    match (ie.teid.filter(|teid| teid.0 != 0), peer.filter(is_far_end)) {
        (Some(teid), Some(peer)) => Outer::Tunnel(OuterHeader { teid, peer }),
        _ => Outer::Nowhere,
    }
}

/// Whether packets can be sent to a far end of this address.
pub fn is_far_end(address: &IpAddr) -> bool {
    !address.is_unspecified()
        && !address.is_multicast()
        && !address.is_loopback()
        && *address != IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// Create FAR.
pub fn new_far(ie: &CreateFar<'_>, config: &Config) -> Result<Far, Refusal> {
    let mut far = Far {
        id: ie.id,
        apply: apply(ie.id, ie.apply_action)?,
        destination: None,
        outer_header: None,
        marking: None,
        instance: 0,
        policy: 0,
        redirect: None,
        bar: ie.bar,
    };
    if let Some(parameters) = &ie.forwarding {
        if let Some(to) = parameters.redirect {
            far.redirect = redirect(ie.id, to)?;
        }
        if let Some(named) = parameters.forwarding_policy {
            far.policy = policy(ie.id, named, config)?;
        }
        far.destination = Some(destination(ie.id, parameters.destination_interface)?);
        if let Some(header) = parameters.outer_header_creation {
            far.outer_header = Some(outer_header(header, config));
        }
        far.marking = parameters.transport_level_marking.map(|[tos, _]| Dscp::from_tos(tos));
        far.instance = parameters.network_instance.map_or(0, |name| config.instance(name));
    }
    Ok(far)
}

/// Zero is "not limited": the gate is there to stop traffic, and SMFs send zeros for rates they don't know.
pub fn rates(ie: BitRate) -> (Option<u64>, Option<u64>) {
    let rate = |kbps: u64| Some(kbps.saturating_mul(1000)).filter(|rate| *rate != 0);
    (rate(ie.uplink_kbps), rate(ie.downlink_kbps))
}

/// Takes over what a Create or Update QER carries.
pub fn merge_qer(qer: &mut Qer, ie: &QerParameters) {
    if let Some(mbr) = ie.mbr {
        (qer.uplink_mbr, qer.downlink_mbr) = rates(mbr);
    }
    if let Some(gbr) = ie.gbr {
        (qer.uplink_gbr, qer.downlink_gbr) = rates(gbr);
    }
    qer.qfi = ie.qfi.or(qer.qfi);
    qer.reflective = ie.reflective.unwrap_or(qer.reflective);
    qer.paging_policy = ie.paging_policy.map(|indicator| indicator & 7).or(qer.paging_policy);
}

/// Reporting Triggers.
pub fn triggers(ie: ReportingTriggers) -> Triggers {
    Triggers {
        periodic: ie.has(ReportingTriggers::PERIO),
        volume_threshold: ie.has(ReportingTriggers::VOLTH),
        time_threshold: ie.has(ReportingTriggers::TIMTH),
        start_of_traffic: ie.has(ReportingTriggers::START),
        stop_of_traffic: ie.has(ReportingTriggers::STOPT),
        volume_quota: ie.has(ReportingTriggers::VOLQU),
        time_quota: ie.has(ReportingTriggers::TIMQU),
    }
}

/// A duration that makes sense: neither zero nor longer than a year.
pub fn sane(seconds: Option<u32>) -> Option<u32> {
    seconds.filter(|seconds| (1..=LONGEST_TIME).contains(seconds))
}

/// Takes over what a Create or Update URR carries.
pub fn merge_urr(urr: &mut Urr, ie: &UrrParameters, quotas: &mut u32) {
    if let Some(limit) = ie.volume_threshold {
        // A threshold of zero would report for ever.
        let positive = |volume: Option<u64>| volume.filter(|volume| *volume != 0);
        urr.threshold = VolumeLimit {
            total: positive(limit.total),
            uplink: positive(limit.uplink),
            downlink: positive(limit.downlink),
        };
    }
    if let Some(quota) = ie.volume_quota {
        // A quota of zero is one that is exhausted.
        urr.quota = VolumeLimit { total: quota.total, uplink: quota.uplink, downlink: quota.downlink };
    }
    if ie.time_quota.is_some() {
        urr.time_quota = ie.time_quota.map(|seconds| seconds.min(LONGEST_TIME));
    }
    if ie.quota_validity_time.is_some() {
        urr.quota_validity = sane(ie.quota_validity_time);
    }
    if ie.quota_holding_time.is_some() {
        urr.quota_holding = sane(ie.quota_holding_time);
    }
    if ie.volume_quota.is_some() || ie.time_quota.is_some() {
        *quotas = quotas.wrapping_add(1);
        urr.quota_generation = *quotas;
        urr.blocked = false;
    }
    if ie.period.is_some() {
        urr.period = sane(ie.period);
    }
    if ie.time_threshold.is_some() {
        urr.time_threshold = sane(ie.time_threshold);
    }
    if let Some(information) = ie.information {
        urr.before_enforcement = information.before_qos;
        urr.inactive = information.inactive;
        urr.reduced = information.reduced_detection;
    }
}

/// The destination of a Framed-Route (RFC 2865 §5.22) or Framed-IPv6-Route (RFC 3162 §2.5) text; gateway and metric are
/// for routers that announce it.
pub fn framed_route(text: &[u8]) -> Option<IpNet> {
    let text = std::str::from_utf8(text.get(..text.len().min(128))?).ok()?;
    let word = text.trim_matches('\0').split_ascii_whitespace().next()?;
    let net = match IpNet::from_str(word) {
        Ok(net) => net.trunc(),
        Err(_) => IpNet::from(IpAddr::from_str(word).ok()?),
    };
    (net.prefix_len() > 0).then_some(net)
}
