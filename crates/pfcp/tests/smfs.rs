//! What each known SMF puts on N4, read as it is meant; and what a refusal says.

#![allow(clippy::unwrap_used)]

use packet::{Qfi, Teid};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{BarId, Cause, DecodeError, FarId, Header, MessageType, PdrId, QerId, RuleId, Seid, ie_type};
use std::net::Ipv4Addr;

/// One IE.
fn ie(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    pfcp::encode_ie(&mut out, kind, |out| out.extend_from_slice(value));
    out
}

/// A grouped IE.
fn group(kind: u16, ies: &[Vec<u8>]) -> Vec<u8> {
    ie(kind, &ies.concat())
}

fn node_id() -> Vec<u8> {
    ie(60, &[0, 10, 0, 0, 1])
}

fn cp_fseid() -> Vec<u8> {
    ie(57, &[2, 0, 0, 0, 0, 0, 0, 0, 1, 10, 0, 0, 1])
}

fn pdr(id: u16, pdi: &[Vec<u8>], more: &[Vec<u8>]) -> Vec<u8> {
    let own =
        [ie(56, &id.to_be_bytes()), ie(29, &[0, 0, 0, 255]), group(2, pdi), ie(108, &[0, 0, 0, id as u8])];
    group(1, &[own.concat(), more.concat()])
}

fn drop_far(id: u8) -> Vec<u8> {
    group(3, &[ie(108, &[0, 0, 0, id]), ie(44, &[1])])
}

fn establishment(rules: &[Vec<u8>]) -> Vec<u8> {
    [[node_id(), cp_fseid()].concat(), rules.concat()].concat()
}

#[test]
fn open5gs_establishment() {
    // CHOOSE with both families and one CHOOSE ID, OHR 6 of one octet, a label-encoded instance, the 3GPP
    // interface type; a DL FAR that buffers without forwarding parameters; a CP-function PDR; User ID and
    // S-NSSAI, which are ignored.
    let body = establishment(&[
        pdr(1, &[ie(20, &[1]), ie(93, &[6, 10, 45, 0, 2]), ie(160, &[16])], &[]),
        pdr(2, &[ie(20, &[0]), ie(21, &[0x0f, 5]), ie(22, b"\x08internet"), ie(160, &[11])], &[ie(95, &[6])]),
        pdr(3, &[ie(20, &[3]), ie(21, &[0x07])], &[]),
        pdr(
            4,
            &[
                ie(20, &[0]),
                ie(21, &[0x0f, 5]),
                ie(23, b"\x01\0\0\x2apermit out 58 from ff02::2/128 to assigned"),
            ],
            &[],
        ),
        group(3, &[ie(108, &[0, 0, 0, 1]), ie(44, &[0x0c, 0]), ie(88, &[1])]),
        group(
            3,
            &[ie(108, &[0, 0, 0, 2]), ie(44, &[2, 0]), group(4, &[ie(42, &[1]), ie(22, b"\x08internet")])],
        ),
        group(85, &[ie(88, &[1])]),
        ie(113, &[3]),
        ie(141, &[1, 8, 1, 2, 3, 4, 5, 6, 7, 8]),
        ie(257, &[1, 0, 0, 1]),
        ie(159, b"\x08internet"),
    ]);
    let request = SessionEstablishmentRequest::decode(&body).unwrap();
    let choose = FTeid::Choose { ipv4: true, ipv6: true, id: Some(5) };
    assert_eq!(request.create_pdrs[1].pdi.local_fteid, Some(choose));
    assert_eq!(request.create_pdrs[3].pdi.local_fteid, Some(choose));
    assert_eq!(
        request.create_pdrs[2].pdi.local_fteid,
        Some(FTeid::Choose { ipv4: true, ipv6: true, id: None })
    );
    assert_eq!(request.create_pdrs[2].pdi.source_interface, Interface::CP_FUNCTION);
    assert_eq!(
        request.create_pdrs[1].outer_header_removal,
        Some(OuterHeaderRemoval { description: 6, extension_header_deletion: None })
    );
    assert_eq!(request.create_pdrs[1].pdi.network_instance, Some(&b"\x08internet"[..]));
    let buffering = &request.create_fars[0];
    assert!(buffering.apply_action.has(ApplyAction::BUFF | ApplyAction::NOCP));
    assert_eq!((buffering.bar, &buffering.forwarding), (Some(BarId(1)), &None));
    assert_eq!(request.create_bars.len(), 1);
    assert_eq!(request.pdn_type, Some(PdnType::IPV4V6));
}

#[test]
fn open5gs_deactivation_leaves_out_what_stays() {
    // Update FAR with Apply Action and BAR only; Update PDR with source interface and filters only.
    let body = [
        group(10, &[ie(108, &[0, 0, 0, 1]), ie(44, &[0x0c, 0]), ie(88, &[1])]),
        group(9, &[ie(56, &[0, 1]), group(2, &[ie(20, &[1]), ie(23, &[0x10, 0, 0, 0, 0, 7])])]),
    ]
    .concat();
    let request = SessionModificationRequest::decode(&body).unwrap();
    assert_eq!(request.update_fars[0].forwarding, None);
    let pdi = request.update_pdrs[0].pdi.as_ref().unwrap();
    assert_eq!((pdi.local_fteid, pdi.ue_ips.len(), pdi.sdf_filters[0].filter_id), (None, 0, Some(7)));
    assert_eq!(request.update_pdrs[0].precedence, None);
}

#[test]
fn free5gc_modification() {
    // CP F-SEID unchanged; PFCPSMReq-Flags in Update Forwarding Parameters though zero; a Quota Validity Time
    // that is a date; PDI and QERs complete, two of them.
    let body = [
        cp_fseid(),
        group(
            10,
            &[
                ie(108, &[0, 0, 1, 0x2c]),
                ie(44, &[2]),
                group(11, &[ie(42, &[0]), ie(84, &[1, 0, 0, 0, 0, 9, 10, 0, 1, 1]), ie(49, &[0])]),
            ],
        ),
        group(13, &[ie(81, &[0, 0, 0, 7]), ie(181, &[0xe8, 0, 0, 0]), ie(37, &[2, 0])]),
        group(
            9,
            &[ie(56, &[1, 0x2c]), group(2, &[ie(20, &[0])]), ie(109, &[0, 0, 0, 1]), ie(109, &[0, 0, 0, 2])],
        ),
    ]
    .concat();
    let request = SessionModificationRequest::decode(&body).unwrap();
    let far = &request.update_fars[0];
    assert_eq!(far.id, FarId(300));
    let forwarding = far.forwarding.as_ref().unwrap();
    assert_eq!(forwarding.flags, SmReqFlags::default());
    assert_eq!(forwarding.outer_header_creation.unwrap().teid, Some(Teid(9)));
    assert_eq!(request.update_urrs[0].parameters.quota_validity_time, Some(0xe800_0000));
    assert_eq!(request.update_pdrs[0].qers, [QerId(1), QerId(2)]);
    assert!(request.cp_fseid.is_some());
}

#[test]
fn omec_establishment() {
    // CH alone; CHV4 without S/D on both sides; an empty Network Instance; FAR that drops without parameters;
    // QER with QFI 0; MP flag with priority 0.
    let body = establishment(&[
        pdr(1, &[ie(20, &[0]), ie(21, &[4]), ie(93, &[0x10]), ie(22, b"internet")], &[ie(95, &[0])]),
        pdr(2, &[ie(20, &[1]), ie(93, &[0x10]), ie(22, &[])], &[]),
        group(3, &[ie(108, &[0, 0, 0, 1]), ie(44, &[2]), group(4, &[ie(42, &[2])])]),
        drop_far(2),
        group(7, &[ie(109, &[0, 0, 0, 1]), ie(25, &[0]), ie(124, &[0])]),
    ]);
    let mut datagram = vec![0x23, 50];
    datagram.extend_from_slice(&(body.len() as u16 + 12).to_be_bytes());
    datagram.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    datagram.extend_from_slice(&body);
    let (header, body, _) = Header::decode(&datagram).unwrap();
    assert_eq!((header.seid, header.priority), (Some(Seid(0)), Some(0)));
    let request = SessionEstablishmentRequest::decode(body).unwrap();
    let [uplink, downlink] = &request.create_pdrs[..] else { panic!("two PDRs") };
    assert_eq!(uplink.pdi.local_fteid, Some(FTeid::Choose { ipv4: false, ipv6: false, id: None }));
    assert!(uplink.pdi.ue_ips[0].choose_ipv4 && downlink.pdi.ue_ips[0].choose_ipv4);
    assert!(!downlink.pdi.ue_ips[0].is_destination);
    assert_eq!(downlink.pdi.network_instance, Some(&b""[..]));
    assert_eq!(
        request.create_fars[0].forwarding.as_ref().unwrap().destination_interface,
        Interface::SGI_N6_LAN
    );
    assert_eq!(request.create_fars[1].forwarding, None);
    assert_eq!(request.create_qers[0].parameters.qfi, Qfi::new(0));
}

#[test]
fn omec_deletion_has_an_fseid_and_a_priority() {
    let body = cp_fseid();
    let mut datagram = vec![0x23, 54, 0, 12 + body.len() as u8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 1, 0xc0];
    datagram.extend_from_slice(&body);
    let (header, message) = Message::decode(&datagram).unwrap();
    assert_eq!((header.message_type, header.priority), (MessageType::SESSION_DELETION_REQUEST, Some(12)));
    let Message::SessionDeletionRequest(request) = message else { panic!("{message:?}") };
    assert_eq!(request.cp_fseid.unwrap().seid, Seid(1));
}

#[test]
fn oai_establishment() {
    // Only an uplink PDR; V4 with CHOOSE and CHOOSE ID 42; precedence 0; a source interface type; the FAR
    // twice under one ID; redirect and policy; its own SEID in the header.
    let far = |destination: u8| {
        group(
            3,
            &[
                ie(108, &[0, 0, 0, 1]),
                ie(44, &[2]),
                group(4, &[ie(42, &[destination]), ie(38, &[2, 0, 0]), ie(41, &[1, b'x'])]),
            ],
        )
    };
    let body = establishment(&[
        group(
            1,
            &[
                ie(56, &[0, 1]),
                ie(29, &[0, 0, 0, 0]),
                group(
                    2,
                    &[
                        ie(20, &[0]),
                        ie(21, &[0x0d, 42]),
                        ie(22, b"access.oai.org"),
                        ie(160, &[0]),
                        ie(124, &[9]),
                    ],
                ),
                ie(95, &[0]),
                ie(108, &[0, 0, 0, 1]),
            ],
        ),
        far(1),
        far(2),
    ]);
    let mut datagram = vec![0x21, 50];
    datagram.extend_from_slice(&(body.len() as u16 + 12).to_be_bytes());
    datagram.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 1, 0]);
    datagram.extend_from_slice(&body);
    let (header, body, _) = Header::decode(&datagram).unwrap();
    assert_eq!(header.seid, Some(Seid(7)));
    let request = SessionEstablishmentRequest::decode(body).unwrap();
    assert_eq!(request.create_pdrs[0].precedence, 0);
    assert_eq!(
        request.create_pdrs[0].pdi.local_fteid,
        Some(FTeid::Choose { ipv4: true, ipv6: false, id: Some(42) })
    );
    assert_eq!(request.create_fars.len(), 2);
    let forwarding = request.create_fars[1].forwarding.as_ref().unwrap();
    let nowhere = RedirectInformation { kind: RedirectAddressType::URL, address: b"", other: b"" };
    assert_eq!(forwarding.redirect, Some(nowhere));
    assert_eq!(forwarding.forwarding_policy, Some(PolicyId(b"x")));
}

#[test]
fn a_repeated_ie_counts_once_and_the_first_time() {
    let body = establishment(&[
        group(
            1,
            &[
                ie(56, &[0, 1]),
                ie(56, &[0, 2]),
                ie(29, &[0; 4]),
                group(2, &[ie(20, &[0])]),
                group(2, &[ie(20, &[1])]),
            ],
        ),
        drop_far(1),
        ie(60, &[0, 9, 9, 9, 9]),
    ]);
    let request = SessionEstablishmentRequest::decode(&body).unwrap();
    assert_eq!(request.create_pdrs[0].id, PdrId(1));
    assert_eq!(request.create_pdrs[0].pdi.source_interface, Interface::ACCESS);
    assert_eq!(request.node_id, NodeId::Ip(Ipv4Addr::new(10, 0, 0, 1).into()));
}

fn refused(body: &[u8]) -> DecodeError {
    SessionEstablishmentRequest::decode(body).unwrap_err()
}

#[track_caller]
fn assert_refused(body: &[u8], cause: Cause, kind: u16, rule: Option<RuleId>) {
    let error = refused(body);
    assert_eq!((error.cause, error.offending_ie, error.failed_rule), (cause, Some(kind), rule), "{error}");
}

#[test]
fn what_is_missing_is_named() {
    let access = [ie(20, &[0])];
    let missing = Cause::MANDATORY_IE_MISSING;
    assert_refused(&[], missing, ie_type::NODE_ID, None);
    assert_refused(&node_id(), missing, ie_type::F_SEID, None);
    assert_refused(&establishment(&[]), missing, ie_type::CREATE_PDR, None);
    assert_refused(&establishment(&[pdr(7, &access, &[])]), missing, ie_type::CREATE_FAR, None);
    // Within a rule, whose name is found though it comes last.
    let nameless = group(1, &[ie(29, &[0; 4]), group(2, &access)]);
    assert_refused(&establishment(&[nameless]), missing, ie_type::PDR_ID, None);
    let no_source = establishment(&[pdr(7, &[], &[])]);
    assert_refused(&no_source, missing, ie_type::SOURCE_INTERFACE, Some(RuleId::Pdr(PdrId(7))));
    let no_gate = establishment(&[group(7, &[ie(109, &[0, 0, 0, 3])])]);
    assert_refused(&no_gate, missing, ie_type::GATE_STATUS, Some(RuleId::Qer(QerId(3))));
    // Forwarding to nowhere.
    let nowhere = establishment(&[group(3, &[ie(44, &[2]), ie(108, &[0, 0, 0, 9])])]);
    let rule = Some(RuleId::Far(FarId(9)));
    assert_refused(&nowhere, Cause::CONDITIONAL_IE_MISSING, ie_type::FORWARDING_PARAMETERS, rule);
}

#[test]
fn what_is_too_short_or_wrong_is_named() {
    let rule = Some(RuleId::Pdr(PdrId(7)));
    let short = establishment(&[pdr(7, &[ie(20, &[0]), ie(21, &[1, 0, 0])], &[])]);
    assert_refused(&short, Cause::INVALID_LENGTH, ie_type::F_TEID, rule);
    let error = refused(&short);
    assert_eq!(short[error.offset..][..2], ie_type::F_TEID.to_be_bytes());
    assert_eq!(error.to_string(), format!("Invalid length: F-TEID of PDR 7 at octet {}", error.offset));
    let homeless = establishment(&[pdr(7, &[ie(20, &[0]), ie(21, &[0, 0, 0, 0, 1])], &[])]);
    assert_refused(&homeless, Cause::MANDATORY_IE_INCORRECT, ie_type::F_TEID, rule);
    // A length beyond the group that it is in.
    let mut beyond = pdr(7, &[ie(20, &[0])], &[]);
    let last = beyond.len() - 5;
    beyond[last] = 200;
    assert_refused(&establishment(&[beyond]), Cause::INVALID_LENGTH, ie_type::FAR_ID, rule);
    // An unknown kind of Node ID.
    assert_refused(&ie(60, &[9, 0, 0, 0, 0]), Cause::MANDATORY_IE_INCORRECT, ie_type::NODE_ID, None);
}

#[test]
fn there_is_an_end_to_rules_and_lists() {
    let many = vec![drop_far(1); MAX_RULES_PER_MESSAGE + 1];
    assert_refused(&establishment(&many), Cause::NO_RESOURCES, ie_type::CREATE_FAR, None);
    assert!(
        SessionEstablishmentRequest::decode(&establishment(
            &[vec![pdr(1, &[ie(20, &[0])], &[])], many[1..].to_vec()].concat()
        ))
        .is_ok()
    );
    let qers = vec![ie(109, &[0, 0, 0, 1]); MAX_LIST + 1];
    let rule = Some(RuleId::Pdr(PdrId(7)));
    let body = establishment(&[pdr(7, &[ie(20, &[0])], &qers)]);
    assert_refused(&body, Cause::NO_RESOURCES, ie_type::QER_ID, rule);
}

#[test]
fn reports_have_what_their_type_announces() {
    let error = SessionReportRequest::decode(&ie(39, &[2])).unwrap_err();
    assert_eq!(
        (error.cause, error.offending_ie),
        (Cause::CONDITIONAL_IE_MISSING, Some(ie_type::USAGE_REPORT_REPORT))
    );
    let error = SessionReportRequest::decode(&[]).unwrap_err();
    assert_eq!((error.cause, error.offending_ie), (Cause::MANDATORY_IE_MISSING, Some(ie_type::REPORT_TYPE)));
    // An accepted establishment without the session's name.
    let body = [node_id(), ie(19, &[1])].concat();
    let error = SessionEstablishmentResponse::decode(&body).unwrap_err();
    assert_eq!((error.cause, error.offending_ie), (Cause::CONDITIONAL_IE_MISSING, Some(ie_type::F_SEID)));
}
