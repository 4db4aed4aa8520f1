//! Requests as the known SMFs write them (docs/interop.md), in pieces to be put together.
#![allow(clippy::unwrap_used)]

use packet::{Qfi, Teid};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{BarId, FarId, PdrId, QerId, Seid, UrrId};
use session::PrefixLength;
use session::config::{Config, Instance, Ipv4Range, LocalAddresses, PoolConfig};
use session::network_instance::Name;
use session::rules::Rules;
use session::store::{Established, PeerId, Store};
use std::net::Ipv4Addr;

pub const N3: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 1);
pub const GNB: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 77);

pub fn config() -> Config {
    Config {
        n3: LocalAddresses { ipv4: Some(N3), ipv6: None },
        n9: LocalAddresses { ipv4: Some([192, 168, 20, 1].into()), ipv6: None },
        instances: vec![Instance {
            name: Name::new(b"access.second"),
            n3: LocalAddresses {
                ipv4: Some([192, 168, 11, 1].into()),
                ipv6: Some("2001:db8:3::1".parse().unwrap()),
            },
            n9: LocalAddresses::default(),
        }],
        pools: vec![
            PoolConfig {
                names: vec![Name::new(b"internet")],
                ipv4: vec![Ipv4Range::Net("10.45.0.0/16".parse().unwrap())],
                ipv6: vec!["2001:db8:45::/48".parse().unwrap()],
                excluded: vec!["10.45.0.1".parse().unwrap()],
                ..PoolConfig::default()
            },
            PoolConfig {
                names: vec![Name::new(b"home")],
                ipv6: vec!["2001:db8:56::/48".parse().unwrap()],
                ipv6_length: PrefixLength::new(56).unwrap(),
                ..PoolConfig::default()
            },
            PoolConfig {
                names: vec![Name::new(b"ims")],
                ipv4: vec![Ipv4Range::Net("10.46.0.0/30".parse().unwrap())],
                ..PoolConfig::default()
            },
        ],
        ..Config::default()
    }
}

pub fn store() -> (Store, PeerId) {
    let mut store = Store::new(config()).unwrap();
    let peer = store.attach();
    (store, peer)
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

/// An uplink PDR whose tunnel the UPF chooses.
pub fn uplink(id: u16, far: u32) -> CreatePdr<'static> {
    CreatePdr {
        id: PdrId(id),
        precedence: 255,
        pdi: Pdi { local_fteid: Some(CHOOSE), ..pdi(Interface::ACCESS) },
        outer_header_removal: Some(OuterHeaderRemoval { description: 0, extension_header_deletion: None }),
        far: Some(FarId(far)),
        urrs: vec![],
        qers: vec![],
    }
}

pub fn downlink(id: u16, far: u32) -> CreatePdr<'static> {
    CreatePdr {
        id: PdrId(id),
        precedence: 255,
        pdi: pdi(Interface::CORE),
        outer_header_removal: None,
        far: Some(FarId(far)),
        urrs: vec![],
        qers: vec![],
    }
}

pub const CHOOSE: FTeid = FTeid::Choose { ipv4: true, ipv6: false, id: None };

pub fn given(teid: u32) -> FTeid {
    FTeid::Given { teid: Teid(teid), ipv4: Some(N3), ipv6: None }
}

pub fn ue(address: [u8; 4]) -> UeIpAddress {
    UeIpAddress { ipv4: Some(address.into()), is_destination: true, ..UeIpAddress::default() }
}

pub fn choose_ipv4() -> UeIpAddress {
    UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() }
}

pub fn sdf(text: &'static str) -> SdfFilter<'static> {
    SdfFilter { flow_description: Some(text.as_bytes()), ..SdfFilter::default() }
}

pub fn forwarding(to: Interface, header: Option<OuterHeaderCreation>) -> ForwardingParameters<'static> {
    ForwardingParameters {
        destination_interface: to,
        network_instance: None,
        outer_header_creation: header,
        transport_level_marking: None,
        redirect: None,
        forwarding_policy: None,
    }
}

pub fn gnb(teid: u32) -> OuterHeaderCreation {
    OuterHeaderCreation {
        description: OuterHeaderCreation::GTPU_IPV4,
        teid: Some(Teid(teid)),
        ipv4: Some(GNB),
        ..OuterHeaderCreation::default()
    }
}

pub fn far(id: u32, action: u16, forwarding: Option<ForwardingParameters<'static>>) -> CreateFar<'static> {
    CreateFar { id: FarId(id), apply_action: ApplyAction(action), forwarding, bar: None }
}

pub fn to_core(id: u32) -> CreateFar<'static> {
    far(id, ApplyAction::FORW, Some(forwarding(Interface::CORE, None)))
}

pub fn to_gnb(id: u32, teid: u32) -> CreateFar<'static> {
    far(id, ApplyAction::FORW, Some(forwarding(Interface::ACCESS, Some(gnb(teid)))))
}

pub fn qer(id: u32, mbr_kbps: u64, qfi: u8) -> CreateQer {
    CreateQer {
        id: QerId(id),
        gate: GateStatus::default(),
        parameters: QerParameters {
            mbr: Some(BitRate { uplink_kbps: mbr_kbps, downlink_kbps: mbr_kbps }),
            qfi: Some(Qfi::from_wire(qfi)),
            ..QerParameters::default()
        },
    }
}

pub fn urr(id: u32, threshold: u64) -> CreateUrr {
    CreateUrr {
        id: UrrId(id),
        method: MeasurementMethod { volume: true, ..MeasurementMethod::default() },
        triggers: ReportingTriggers(ReportingTriggers::VOLTH),
        parameters: UrrParameters {
            volume_threshold: Some(VolumeLimit { total: Some(threshold), ..VolumeLimit::default() }),
            ..UrrParameters::default()
        },
    }
}

pub fn establish() -> SessionEstablishmentRequest<'static> {
    SessionEstablishmentRequest {
        node_id: NodeId::Ip([127, 0, 0, 1].into()),
        cp_fseid: FSeid { seid: Seid(0xc0ffee), ipv4: Some([127, 0, 0, 1].into()), ipv6: None },
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

/// The everyday session: two PDRs, two FARs, a QER and a URR; the UPF chooses tunnel and address.
pub fn everyday() -> SessionEstablishmentRequest<'static> {
    let mut up = uplink(1, 1);
    let mut down = downlink(2, 2);
    for pdr in [&mut up, &mut down] {
        pdr.qers = vec![QerId(1)];
        pdr.urrs = vec![UrrId(1)];
    }
    down.pdi.ue_ips = vec![choose_ipv4()];
    SessionEstablishmentRequest {
        create_pdrs: vec![up, down],
        create_fars: vec![to_core(1), to_gnb(2, 0x77)],
        create_qers: vec![qer(1, 100_000, 9)],
        create_urrs: vec![urr(1, 100 << 20)],
        ..establish()
    }
}

pub fn modification() -> SessionModificationRequest<'static> {
    SessionModificationRequest::default()
}

pub fn update_far(id: u32) -> UpdateFar<'static> {
    UpdateFar { id: FarId(id), apply_action: None, forwarding: None, bar: None }
}

pub fn update_pdr(id: u16) -> UpdatePdr<'static> {
    UpdatePdr {
        id: PdrId(id),
        outer_header_removal: None,
        precedence: None,
        pdi: None,
        far: None,
        urrs: vec![],
        qers: vec![],
    }
}

pub fn bar(id: u8, packets: Option<u8>) -> CreateBar {
    CreateBar { id: BarId(id), notification_delay: None, suggested_packets: packets }
}

pub fn pdr_of(rules: &Rules, id: u16) -> &session::rules::Pdr {
    rules.pdrs.iter().find(|pdr| pdr.id == PdrId(id)).unwrap()
}

pub fn action_of(rules: &Rules, id: u32) -> session::rules::Action {
    rules.fars.iter().find(|far| far.id == FarId(id)).unwrap().action
}

pub fn teid_of(established: &Established, pdr: u16) -> Teid {
    pdr_of(&established.rules, pdr).tunnel.unwrap().teid
}
