//! Requests in pieces to be put together, and what an establishment brought.

use super::{GNB, N3};
use packet::{Qfi, Teid};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{BarId, FarId, PdrId, QerId, Seid, UrrId};
use std::net::Ipv4Addr;

/// A session as its SMF knows it.
#[derive(Clone, Copy, Debug)]
pub struct Established {
    pub seid: Seid,
    /// Where the gNB sends to.
    pub teid: Teid,
    pub ue: Ipv4Addr,
}

impl Established {
    pub fn new(response: &SessionEstablishmentResponse) -> Self {
        let created = || response.created_pdrs.iter();
        let teid = created().find_map(|pdr| match pdr.local_fteid? {
            FTeid::Given { teid, ipv4, .. } => {
                assert_eq!(ipv4, Some(N3));
                Some(teid)
            }
            FTeid::Choose { .. } => None,
        });
        let ue = created().find_map(|pdr| pdr.ue_ips.iter().find_map(|ue| ue.ipv4));
        Self {
            seid: response.up_fseid.unwrap().seid,
            teid: teid.unwrap_or(Teid(0)),
            ue: ue.unwrap_or(Ipv4Addr::UNSPECIFIED),
        }
    }
}

pub fn pdi(source: Interface) -> Pdi<'static> {
    Pdi {
        source_interface: source,
        local_fteid: None,
        network_instance: None,
        ue_ips: vec![],
        sdf_filters: vec![],
        qfis: vec![],
        application_id: None,
        ethernet: false,
        framed_routes: vec![],
        framed_ipv6_routes: vec![],
        source_interface_type: None,
    }
}

/// PDR 1: from the gNB, through a tunnel that the UPF chooses, to FAR 1.
pub fn uplink() -> CreatePdr<'static> {
    CreatePdr {
        id: PdrId(1),
        precedence: 255,
        pdi: Pdi {
            local_fteid: Some(FTeid::Choose { ipv4: true, ipv6: false, id: None }),
            ..pdi(Interface::ACCESS)
        },
        outer_header_removal: Some(OuterHeaderRemoval { description: 0, extension_header_deletion: None }),
        far: Some(FarId(1)),
        urrs: vec![],
        qers: vec![QerId(1)],
    }
}

/// PDR 2: to the UE's address, which the UPF chooses, to FAR 2.
pub fn downlink() -> CreatePdr<'static> {
    let ue_ips = vec![UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() }];
    CreatePdr {
        id: PdrId(2),
        pdi: Pdi { local_fteid: None, ue_ips, ..pdi(Interface::CORE) },
        outer_header_removal: None,
        far: Some(FarId(2)),
        ..uplink()
    }
}

pub fn tunnel(gnb: Ipv4Addr, teid: u32) -> OuterHeaderCreation {
    OuterHeaderCreation {
        description: OuterHeaderCreation::GTPU_IPV4,
        teid: Some(Teid(teid)),
        ipv4: Some(gnb),
        ..OuterHeaderCreation::default()
    }
}

pub fn forwarding(to: Interface, tunnel: Option<OuterHeaderCreation>) -> ForwardingParameters<'static> {
    ForwardingParameters {
        destination_interface: to,
        network_instance: None,
        outer_header_creation: tunnel,
        transport_level_marking: None,
        redirect: None,
        forwarding_policy: None,
    }
}

/// Redirect Information of this kind.
pub const fn redirect_to(address: &[u8], kind: u8) -> RedirectInformation<'_> {
    RedirectInformation { kind: RedirectAddressType(kind), address, other: b"" }
}

/// FAR 1: to the data network.
pub fn to_core() -> CreateFar<'static> {
    let forwarding = Some(forwarding(Interface::CORE, None));
    CreateFar { id: FarId(1), apply_action: ApplyAction(ApplyAction::FORW), forwarding, bar: None }
}

/// FAR 2: to a gNB.
pub fn to_gnb(gnb: Ipv4Addr, teid: u32) -> CreateFar<'static> {
    let forwarding = Some(forwarding(Interface::ACCESS, Some(tunnel(gnb, teid))));
    CreateFar { id: FarId(2), forwarding, ..to_core() }
}

/// FAR 2: packets wait, and the SMF is told.
pub fn buffering() -> CreateFar<'static> {
    let apply_action = ApplyAction(ApplyAction::BUFF | ApplyAction::NOCP);
    CreateFar { id: FarId(2), apply_action, forwarding: None, bar: None }
}

/// QER 1: open, QFI 9, no limit.
pub fn qer() -> CreateQer {
    let parameters = QerParameters { qfi: Some(Qfi::new(9).unwrap()), ..QerParameters::default() };
    CreateQer { id: QerId(1), gate: GateStatus::default(), parameters }
}

/// A URR that measures volume and reports for these reasons.
pub fn urr(id: u32, triggers: u32, parameters: UrrParameters) -> CreateUrr {
    let method = MeasurementMethod { volume: true, ..MeasurementMethod::default() };
    CreateUrr { id: UrrId(id), method, triggers: ReportingTriggers(triggers), parameters }
}

pub fn threshold(bytes: u64) -> UrrParameters {
    UrrParameters { volume_threshold: Some(total(bytes)), ..UrrParameters::default() }
}

pub fn quota(bytes: u64) -> UrrParameters {
    UrrParameters { volume_quota: Some(total(bytes)), ..UrrParameters::default() }
}

pub fn total(bytes: u64) -> VolumeLimit {
    VolumeLimit { total: Some(bytes), ..VolumeLimit::default() }
}

/// An establishment without rules, with this CP SEID.
pub fn establishment(cp: u64) -> SessionEstablishmentRequest<'static> {
    SessionEstablishmentRequest {
        node_id: NodeId::Ip([198, 51, 100, 100].into()),
        cp_fseid: FSeid { seid: Seid(cp), ipv4: Some([198, 51, 100, 100].into()), ipv6: None },
        create_pdrs: vec![],
        create_fars: vec![],
        create_urrs: vec![],
        create_qers: vec![],
        create_bars: vec![],
        pdn_type: Some(PdnType::IPV4),
        apn_dnn: None,
        inactivity_timer: None,
        s_nssai: None,
        user_id: None,
    }
}

/// Both directions forwarded, towards [`GNB`] with TEID `cp`.
pub fn everyday(cp: u64) -> SessionEstablishmentRequest<'static> {
    SessionEstablishmentRequest {
        create_pdrs: vec![uplink(), downlink()],
        create_fars: vec![to_core(), to_gnb(GNB, cp as u32)],
        create_qers: vec![qer()],
        ..establishment(cp)
    }
}

/// An [`everyday`] session whose packets of both directions are measured by these rules.
pub fn measured(cp: u64, urrs: Vec<CreateUrr>) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday(cp);
    for pdr in &mut request.create_pdrs {
        pdr.urrs = urrs.iter().map(|urr| urr.id).collect();
    }
    request.create_urrs = urrs;
    request
}

/// A session whose UE is idle.
pub fn idle(cp: u64) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday(cp);
    request.create_fars[1] = buffering();
    request
}

pub fn modification() -> SessionModificationRequest<'static> {
    SessionModificationRequest::default()
}

/// FAR 2 changes.
pub fn update_far(action: u16, tunnel: Option<OuterHeaderCreation>) -> UpdateFar<'static> {
    let destination_interface = Some(Interface::ACCESS);
    let forwarding = tunnel.map(|tunnel| UpdateForwardingParameters {
        destination_interface,
        outer_header_creation: Some(tunnel),
        ..UpdateForwardingParameters::default()
    });
    UpdateFar { id: FarId(2), apply_action: Some(ApplyAction(action)), forwarding, bar: None }
}

/// The UE is reached through this tunnel from now on.
pub fn activate(gnb: Ipv4Addr, teid: u32) -> SessionModificationRequest<'static> {
    SessionModificationRequest {
        update_fars: vec![update_far(ApplyAction::FORW, Some(tunnel(gnb, teid)))],
        ..modification()
    }
}

/// The UE is idle again; the tunnel isn't mentioned.
pub fn deactivate() -> SessionModificationRequest<'static> {
    SessionModificationRequest {
        update_fars: vec![update_far(ApplyAction::BUFF | ApplyAction::NOCP, None)],
        ..modification()
    }
}

pub fn update_urr(id: u32, parameters: UrrParameters) -> SessionModificationRequest<'static> {
    let update = UpdateUrr { id: UrrId(id), method: None, triggers: None, parameters };
    SessionModificationRequest { update_urrs: vec![update], ..modification() }
}

pub fn bar(delay: Option<u8>) -> CreateBar {
    CreateBar { id: BarId(1), notification_delay: delay, suggested_packets: Some(20) }
}
