//! Another implementation as judge: what we write, rs-pfcp reads and writes again, and we read that as ours;
//! what its builders make, we read.

#![allow(clippy::unwrap_used)]

use packet::{Qfi, Teid};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{
    BarId, Cause, FarId, Header, Ies, MessageType, PdrId, QerId, Seid, SequenceNumber, UrrId, encode_ie,
    encode_message, ie_type,
};
use rs_pfcp::ie as rs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SMF: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const UPF: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 2);

/// The value of an IE after rs-pfcp has read it into its types and written it again. Its Remove PDR, FAR, URR and
/// QER are left out: it takes them for bare identifiers where they are groups (§7.5.4.6 to §7.5.4.9). It has no
/// field for a BAR's delay and count, for the flags in Update Forwarding Parameters and for the QFI in Update QER, so
/// that the messages below do without.
fn through(kind: u16, value: &[u8]) -> Vec<u8> {
    macro_rules! typed {
        ($($kind:ident => $type:path;)*) => {
            match kind {
                $(ie_type::$kind => <$type>::unmarshal(value).unwrap().marshal().to_vec(),)*
                _ => value.to_vec(),
            }
        };
    }
    typed! {
        CREATE_PDR => rs::create_pdr::CreatePdr;
        CREATE_FAR => rs::create_far::CreateFar;
        CREATE_URR => rs::create_urr::CreateUrr;
        CREATE_QER => rs::create_qer::CreateQer;
        CREATE_BAR => rs::create_bar::CreateBar;
        UPDATE_PDR => rs::update_pdr::UpdatePdr;
        UPDATE_FAR => rs::update_far::UpdateFar;
        UPDATE_URR => rs::update_urr::UpdateUrr;
        UPDATE_QER => rs::update_qer::UpdateQer;
        CREATED_PDR => rs::created_pdr::CreatedPdr;
        USAGE_REPORT_REPORT => rs::usage_report::UsageReport;
        USAGE_REPORT_DELETION => rs::usage_report::UsageReport;
        DOWNLINK_DATA_REPORT => rs::downlink_data_report::DownlinkDataReport;
        NODE_ID => rs::node_id::NodeId;
        F_SEID => rs::fseid::Fseid;
        UP_FUNCTION_FEATURES => rs::up_function_features::UPFunctionFeatures;
        RECOVERY_TIME_STAMP => rs::recovery_time_stamp::RecoveryTimeStamp;
        PDN_TYPE => rs::pdn_type::PdnType;
        CAUSE => rs::cause::Cause;
    }
}

/// Writes the message, has rs-pfcp read and write all of it, and reads that.
fn agrees<'a>(message: impl Into<Message<'a>>) {
    let message = message.into();
    let kind = message.message_type();
    let header = if kind.is_session() {
        Header::session(kind, Seid(0x1122_3344_5566_7788), SequenceNumber(0x0001_0203))
    } else {
        Header::node(kind, SequenceNumber(0x0001_0203))
    };
    let mut ours = Vec::new();
    message.encode(header, &mut ours).unwrap();

    let parsed = rs_pfcp::message::parse(&ours).unwrap();
    assert_eq!(*parsed.sequence(), 0x0001_0203);
    let theirs = parsed.marshal();
    let (their_header, body, _) = Header::decode(&theirs).unwrap();
    assert_eq!(their_header, header);

    let mut rewritten = Vec::new();
    for ie in Ies::new(body) {
        let ie = ie.unwrap();
        let value = through(ie.kind, ie.value);
        encode_ie(&mut rewritten, ie.kind, |out| out.extend_from_slice(&value));
    }
    assert_eq!(Message::decode_body(kind, &rewritten).unwrap().unwrap(), message);
}

fn uplink_pdr() -> CreatePdr<'static> {
    CreatePdr {
        id: PdrId(1),
        precedence: 255,
        pdi: Pdi {
            source_interface: Interface::ACCESS,
            local_fteid: Some(FTeid::Choose { ipv4: true, ipv6: false, id: Some(5) }),
            network_instance: Some(b"internet"),
            ue_ips: vec![UeIpAddress { ipv4: Some(UE), ..UeIpAddress::default() }],
            sdf_filters: vec![SdfFilter {
                flow_description: Some(b"permit out ip from any to assigned"),
                ..SdfFilter::default()
            }],
            qfis: vec![Qfi::from_wire(9)],
            application_id: None,
            ethernet: false,
            framed_routes: Vec::new(),
            framed_ipv6_routes: Vec::new(),
            source_interface_type: None,
        },
        outer_header_removal: Some(OuterHeaderRemoval { description: 0, extension_header_deletion: None }),
        far: Some(FarId(1)),
        urrs: vec![UrrId(1)],
        qers: vec![QerId(1)],
    }
}

fn gtpu() -> OuterHeaderCreation {
    OuterHeaderCreation {
        description: OuterHeaderCreation::GTPU_IPV4,
        teid: Some(Teid(0x0102_0304)),
        ipv4: Some(Ipv4Addr::new(10, 0, 1, 1)),
        ..OuterHeaderCreation::default()
    }
}

fn downlink_far() -> CreateFar<'static> {
    CreateFar {
        id: FarId(2),
        apply_action: ApplyAction(ApplyAction::FORW),
        forwarding: Some(ForwardingParameters {
            destination_interface: Interface::ACCESS,
            network_instance: Some(b"access"),
            outer_header_creation: Some(gtpu()),
            transport_level_marking: None,
            redirect: None,
            forwarding_policy: None,
        }),
        bar: None,
    }
}

fn urr() -> CreateUrr {
    CreateUrr {
        id: UrrId(1),
        method: MeasurementMethod { volume: true, duration: true, event: false },
        triggers: ReportingTriggers(
            ReportingTriggers::PERIO | ReportingTriggers::VOLTH | ReportingTriggers::QUVTI,
        ),
        parameters: UrrParameters {
            period: Some(10),
            volume_threshold: Some(VolumeLimit { total: Some(1 << 40), uplink: Some(1), downlink: Some(2) }),
            volume_quota: Some(VolumeLimit { total: Some(9), ..VolumeLimit::default() }),
            time_threshold: Some(5),
            quota_validity_time: Some(60),
            ..UrrParameters::default()
        },
    }
}

fn qer() -> CreateQer {
    CreateQer {
        id: QerId(1),
        gate: GateStatus { uplink_closed: false, downlink_closed: true },
        parameters: QerParameters {
            mbr: Some(BitRate { uplink_kbps: 100_000, downlink_kbps: BitRate::MAX_KBPS }),
            gbr: Some(BitRate { uplink_kbps: 1, downlink_kbps: 2 }),
            qfi: Qfi::new(9),
            ..QerParameters::default()
        },
    }
}

fn usage_report() -> UsageReport {
    UsageReport {
        urr: UrrId(1),
        sequence: 7,
        trigger: UsageReportTrigger(UsageReportTrigger::VOLTH | UsageReportTrigger::TERMR),
        start: Some(NtpSeconds(0xe000_0000)),
        end: Some(NtpSeconds(0xe000_0010)),
        volume: Some(VolumeMeasurement {
            total: Some(3),
            uplink: Some(1),
            downlink: Some(2),
            total_packets: Some(2),
            uplink_packets: Some(1),
            downlink_packets: Some(1),
        }),
        duration: Some(16),
        first_packet: Some(NtpSeconds(0xe000_0001)),
        last_packet: Some(NtpSeconds(0xe000_0002)),
        application: None,
    }
}

#[test]
fn establishment() {
    agrees(SessionEstablishmentRequest {
        node_id: NodeId::Ip(IpAddr::V4(SMF)),
        cp_fseid: FSeid { seid: Seid(1), ipv4: Some(SMF), ipv6: Some(Ipv6Addr::LOCALHOST) },
        create_pdrs: vec![uplink_pdr()],
        create_fars: vec![downlink_far()],
        create_urrs: vec![urr()],
        create_qers: vec![qer()],
        create_bars: vec![CreateBar { id: BarId(1), notification_delay: None, suggested_packets: None }],
        pdn_type: Some(PdnType::IPV4V6),
        apn_dnn: Some(b"\x08internet"),
        inactivity_timer: Some(600),
        s_nssai: None,
        user_id: None,
    });
    agrees(SessionEstablishmentResponse {
        node_id: NodeId::Fqdn("upf.example.org".into()),
        cause: Cause::ACCEPTED,
        offending_ie: None,
        up_fseid: Some(FSeid { seid: Seid(2), ipv4: Some(UPF), ipv6: None }),
        created_pdrs: vec![CreatedPdr {
            id: PdrId(1),
            local_fteid: Some(FTeid::Given { teid: Teid(5), ipv4: Some(UPF), ipv6: None }),
            ue_ips: Vec::new(),
        }],
        failed_rule: None,
    });
}

#[test]
fn modification() {
    agrees(SessionModificationRequest {
        cp_fseid: Some(FSeid { seid: Seid(1), ipv4: Some(SMF), ipv6: None }),
        remove_pdrs: vec![PdrId(9)],
        remove_fars: vec![FarId(9)],
        remove_urrs: vec![UrrId(9)],
        remove_qers: vec![QerId(9)],
        create_pdrs: vec![uplink_pdr()],
        create_fars: vec![downlink_far()],
        update_pdrs: vec![UpdatePdr {
            id: PdrId(1),
            outer_header_removal: None,
            precedence: Some(7),
            pdi: Some(uplink_pdr().pdi),
            far: Some(FarId(3)),
            urrs: Vec::new(),
            qers: Vec::new(),
        }],
        update_fars: vec![UpdateFar {
            id: FarId(2),
            apply_action: Some(ApplyAction(ApplyAction::FORW)),
            forwarding: Some(UpdateForwardingParameters {
                destination_interface: Some(Interface::ACCESS),
                outer_header_creation: Some(gtpu()),
                ..UpdateForwardingParameters::default()
            }),
            bar: None,
        }],
        update_qers: vec![UpdateQer {
            id: QerId(1),
            gate: Some(GateStatus::default()),
            parameters: QerParameters { qfi: None, ..qer().parameters },
        }],
        query_urrs: vec![UrrId(1)],
        flags: SmReqFlags { query_all_urrs: true, ..SmReqFlags::default() },
        ..SessionModificationRequest::default()
    });
    agrees(SessionModificationResponse {
        cause: Cause::RULE_FAILURE,
        offending_ie: Some(ie_type::CREATE_FAR),
        created_pdrs: Vec::new(),
        usage_reports: Vec::new(),
        failed_rule: Some(pfcp::RuleId::Far(FarId(2))),
    });
}

#[test]
fn deletion_and_report() {
    agrees(SessionDeletionRequest::default());
    agrees(SessionDeletionResponse {
        cause: Cause::ACCEPTED,
        offending_ie: None,
        usage_reports: vec![usage_report()],
    });
    agrees(SessionReportRequest { usage_reports: vec![usage_report()], ..SessionReportRequest::default() });
    agrees(SessionReportRequest {
        downlink_data: Some(DownlinkDataReport { pdrs: vec![PdrId(2)], service: None }),
        ..SessionReportRequest::default()
    });
    agrees(SessionReportResponse { cause: Cause::ACCEPTED, offending_ie: None, drop_buffered: true });
}

#[test]
fn association_and_heartbeat() {
    let node_id = NodeId::Ip(IpAddr::V4(UPF));
    let recovery = RecoveryTimeStamp(0xe000_0000);
    let up_features = Some(UpFunctionFeatures(
        UpFunctionFeatures::FTUP
            | UpFunctionFeatures::EMPU
            | UpFunctionFeatures::UEIP
            | UpFunctionFeatures::MNOP
            | UpFunctionFeatures::VTIME,
    ));
    agrees(HeartbeatRequest { recovery, source: None });
    agrees(HeartbeatResponse { recovery });
    agrees(AssociationSetupRequest {
        node_id: node_id.clone(),
        recovery,
        up_features,
        cp_features: None,
        session_retention: false,
    });
    agrees(AssociationSetupResponse {
        node_id: node_id.clone(),
        cause: Cause::ACCEPTED,
        recovery,
        up_features,
        cp_features: None,
    });
    agrees(AssociationUpdateRequest::release(node_id.clone()));
    agrees(AssociationReleaseRequest { node_id: node_id.clone() });
    agrees(AssociationReleaseResponse { node_id, cause: Cause::ACCEPTED });
}

#[test]
fn pfd_contents() {
    use rs::pfd_contents::PfdContents as Theirs;
    let first = PfdContents {
        flow_descriptions: vec![b"permit out 6 from 203.0.113.0/24 443 to assigned"],
        urls: vec![b"^http://video\\.example/"],
        domain_names: vec![(b"video.example", Some(b"TLS_SNI"))],
        custom: Some(b"own"),
    };
    let mut more = first.clone();
    more.flow_descriptions.push(b"permit out 17 from any 443 to assigned");
    more.urls.push(b"https://video.example/");
    for pfd in [first, more] {
        let mut body = Vec::new();
        PfdManagementRequest {
            applications: vec![ApplicationPfds { application_id: b"video", pfds: vec![pfd.clone()] }],
        }
        .encode(&mut body);
        let application = Ies::new(&body).next().unwrap().unwrap();
        let theirs = rs::application_ids_pfds::ApplicationIdsPfds::unmarshal(application.value).unwrap();
        assert_eq!(theirs.application_id.id, "video");
        let contents = ies_of(application.value, ie_type::PFD_CONTEXT);
        let contents = ies_of(&contents, ie_type::PFD_CONTENTS);
        let theirs = Theirs::unmarshal(&contents).unwrap();
        assert_eq!(
            theirs.flow_description.as_deref().map(str::as_bytes),
            pfd.flow_descriptions.first().copied()
        );
        assert_eq!(theirs.url.as_deref().map(str::as_bytes), pfd.urls.first().copied());
        assert_eq!(theirs.domain_name.as_deref(), Some("video.example"));
        assert_eq!(theirs.domain_name_protocol.as_deref(), Some("TLS_SNI"));
        assert_eq!(theirs.custom_pfd_content.as_deref(), Some("own"));
    }
}

/// The value of the first IE of a kind.
fn ies_of(values: &[u8], kind: u16) -> Vec<u8> {
    Ies::new(values).map(Result::unwrap).find(|ie| ie.kind == kind).unwrap().value.to_vec()
}

#[test]
fn feature_bits_are_where_the_other_has_them() {
    use rs::up_function_features::{UPFunctionFeature, UPFunctionFeatures};
    macro_rules! same {
        ($($name:ident)*) => {$(
            let mut theirs = UPFunctionFeatures::new();
            theirs.insert(UPFunctionFeatures::$name);
            let _: UPFunctionFeature = UPFunctionFeatures::$name;
            let mut body = Vec::new();
            encode_ie(&mut body, ie_type::NODE_ID, |out| out.extend_from_slice(&[0, 10, 0, 0, 2]));
            encode_ie(&mut body, ie_type::RECOVERY_TIME_STAMP, |out| out.extend_from_slice(&[0; 4]));
            encode_ie(&mut body, ie_type::UP_FUNCTION_FEATURES, |out| out.extend_from_slice(theirs.octets()));
            let request = AssociationSetupRequest::decode(&body).unwrap();
            assert_eq!(
                request.up_features,
                Some(UpFunctionFeatures(UpFunctionFeatures::$name)),
                stringify!($name)
            );
        )*};
    }
    same!(BUCP DDND DLBD FTUP PFDM EMPU PDIU UDBC FRRT UEIP SSET MNOP BUNDL VTIME IP6PL);
}

#[test]
fn what_its_builders_make() {
    let pdi = rs::pdi::PdiBuilder::uplink_access()
        .f_teid(rs::f_teid::Fteid::ipv4(0x0102_0304_u32, UPF))
        .ue_ip_address(rs::ue_ip_address::UeIpAddress::new(Some(UE), None))
        .build()
        .unwrap();
    let pdr = rs::create_pdr::CreatePdrBuilder::new(rs::pdr_id::PdrId::new(1))
        .precedence(rs::precedence::Precedence::new(100))
        .pdi(pdi)
        .outer_header_removal(rs::outer_header_removal::OuterHeaderRemoval::new(0))
        .far_id(rs::far_id::FarId::new(1))
        .qer_id(rs::qer_id::QerId::new(1))
        .build()
        .unwrap();
    let far = rs::create_far::CreateFarBuilder::uplink_to_core(rs::far_id::FarId::new(1)).build().unwrap();
    let qer = rs::create_qer::CreateQerBuilder::with_rate_limit(rs::qer_id::QerId::new(1), 1000, 2000)
        .build()
        .unwrap();
    let bytes = rs_pfcp::message::session_establishment_request::SessionEstablishmentRequestBuilder::new(
        0_u64, 9_u32,
    )
    .node_id(SMF)
    .fseid(0x77_u64, SMF)
    .add_pdr(pdr)
    .add_far(far)
    .add_qer(qer)
    .marshal()
    .unwrap();

    let (header, body, _) = Header::decode(&bytes).unwrap();
    assert_eq!(
        header,
        Header::session(MessageType::SESSION_ESTABLISHMENT_REQUEST, Seid(0), SequenceNumber(9))
    );
    let request = SessionEstablishmentRequest::decode(body).unwrap();
    assert_eq!(request.node_id, NodeId::Ip(IpAddr::V4(SMF)));
    assert_eq!(request.cp_fseid.seid, Seid(0x77));
    let pdr = &request.create_pdrs[0];
    assert_eq!((pdr.id, pdr.precedence, pdr.far), (PdrId(1), 100, Some(FarId(1))));
    assert_eq!(
        pdr.pdi.local_fteid,
        Some(FTeid::Given { teid: Teid(0x0102_0304), ipv4: Some(UPF), ipv6: None })
    );
    assert_eq!(pdr.pdi.ue_ips[0].ipv4, Some(UE));
    assert_eq!(pdr.qers, [QerId(1)]);
    let far = &request.create_fars[0];
    assert!(far.apply_action.has(ApplyAction::FORW));
    assert_eq!(far.forwarding.as_ref().unwrap().destination_interface, Interface::CORE);
    let mbr = request.create_qers[0].parameters.mbr.unwrap();
    assert_eq!((mbr.uplink_kbps, mbr.downlink_kbps), (1000, 2000));
    let mut again = Vec::new();
    encode_message(&header, &mut again, |out| request.encode(out)).unwrap();
    assert!(rs_pfcp::message::parse(&again).is_ok());
}
