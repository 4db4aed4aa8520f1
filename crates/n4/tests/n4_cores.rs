//! Sessions in the shapes that real cores gave them, with packets: rules, IDs and order as their SMFs write them (docs/interop.md).
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::bench::*;
use packet::{GtpuView, Qfi, Teid};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{Cause, FarId, PdrId, QerId, Seid, UrrId};
use std::net::Ipv4Addr;

/// What [`Bench::down`] sends comes from this port of [`HOST`].
const PORT: &str = "40000";

fn given(teid: u32) -> FTeid {
    FTeid::Given { teid: Teid(teid), ipv4: Some(N3), ipv6: None }
}

fn choose(id: Option<u8>) -> FTeid {
    FTeid::Choose { ipv4: true, ipv6: true, id }
}

fn create_far(id: u32, action: u16, parameters: Option<ForwardingParameters<'static>>) -> CreateFar<'static> {
    CreateFar { id: FarId(id), apply_action: ApplyAction(action), forwarding: parameters, bar: None }
}

fn create_qer(id: u32, qfi: u8, mbr_kbps: Option<u64>, gbr_kbps: Option<u64>) -> CreateQer {
    let rate = |kbps: u64| BitRate { uplink_kbps: kbps, downlink_kbps: kbps };
    let parameters = QerParameters {
        mbr: mbr_kbps.map(rate),
        gbr: gbr_kbps.map(rate),
        qfi: Some(Qfi::from_wire(qfi)),
        ..QerParameters::default()
    };
    CreateQer { id: QerId(id), gate: GateStatus::default(), parameters }
}

fn create_pdr(
    id: u16,
    precedence: u32,
    far: u32,
    qers: &[u32],
    urrs: &[u32],
    pdi: Pdi<'static>,
) -> CreatePdr<'static> {
    CreatePdr {
        id: PdrId(id),
        precedence,
        pdi,
        far: Some(FarId(far)),
        qers: qers.iter().copied().map(QerId).collect(),
        urrs: urrs.iter().copied().map(UrrId).collect(),
        ..uplink()
    }
}

fn filter(text: &'static str) -> Vec<SdfFilter<'static>> {
    vec![SdfFilter { flow_description: Some(text.as_bytes()), ..SdfFilter::default() }]
}

fn update_far(id: u32, action: u16, teid: u32) -> UpdateFar<'static> {
    let apply_action = Some(ApplyAction(action));
    UpdateFar { id: FarId(id), apply_action, ..activate(GNB, teid).update_fars.remove(0) }
}

/// A downlink packet leaves for the gNB with this TEID and QFI.
fn reaches_the_gnb(bench: &mut Bench, session: &Established, teid: u32, qfi: u8) {
    bench.down(session, 100);
    let frames = bench.sent(0);
    assert_eq!(frames.len(), 1);
    let gtpu = GtpuView::parse(&frames[0][14 + 20 + 8..]).unwrap();
    assert_eq!((gtpu.teid(), gtpu.qfi().unwrap()), (Teid(teid), Some(Qfi::from_wire(qfi))));
}

/// free5GC v1.4: TEIDs and IDs of its own, with gaps; the session's AMBR QER has a QFI too and comes first; two URRs with
/// thresholds for uplink and downlink.
#[test]
fn free5gc_with_a_gbr_flow() {
    let mut bench = Bench::new(1);
    let ue = Ipv4Addr::new(10, 60, 0, 1);
    let ue_ip =
        |is_destination| vec![UeIpAddress { ipv4: Some(ue), is_destination, ..UeIpAddress::default() }];
    let from = |source, teid: Option<FTeid>| Pdi {
        local_fteid: teid,
        network_instance: Some(b"internet"),
        ue_ips: ue_ip(source == Interface::CORE),
        ..pdi(source)
    };
    let volumes = |id| {
        let limit = VolumeLimit { uplink: Some(500_000), downlink: Some(500_000), total: None };
        let parameters = UrrParameters {
            volume_threshold: Some(limit),
            period: Some(30),
            information: Some(MeasurementInformation {
                before_qos: id == 1,
                ..MeasurementInformation::default()
            }),
            ..UrrParameters::default()
        };
        urr(id, ReportingTriggers::PERIO | ReportingTriggers::VOLTH, parameters)
    };
    let request = SessionEstablishmentRequest {
        create_pdrs: vec![
            create_pdr(5, 255, 5, &[7, 6], &[1, 2], from(Interface::ACCESS, Some(given(0x2ec)))),
            create_pdr(6, 255, 6, &[7, 6], &[1, 2], from(Interface::CORE, None)),
        ],
        create_fars: vec![
            create_far(5, ApplyAction::FORW, Some(forwarding(Interface::CORE, None))),
            create_far(6, ApplyAction::FORW, Some(forwarding(Interface::ACCESS, None))),
        ],
        create_qers: vec![create_qer(7, 1, Some(100_000), None), create_qer(6, 1, None, None)],
        create_urrs: vec![volumes(1), volumes(2)],
        ..establishment(1)
    };
    let response = bench.try_establish(0, &request);
    assert_eq!((response.cause, response.created_pdrs.len()), (Cause::ACCEPTED, 0));
    let session = Established { seid: response.up_fseid.unwrap().seid, teid: Teid(0x2ec), ue };
    // The gNB isn't known yet.
    bench.down(&session, 100);
    bench.nothing_sent();
    let activation = SessionModificationRequest {
        update_fars: vec![update_far(6, ApplyAction::FORW, 1)],
        ..modification()
    };
    bench.change(0, session.seid, &activation);
    reaches_the_gnb(&mut bench, &session, 1, 1);
    // A PCC rule with a guaranteed rate: its QER stands behind the AMBR's.
    let text = "permit out 17 from 203.0.113.80/32 40000 to assigned";
    let flow = |source, teid: Option<FTeid>| Pdi { sdf_filters: filter(text), ..from(source, teid) };
    let dedicated = SessionModificationRequest {
        cp_fseid: Some(request.cp_fseid),
        create_pdrs: vec![
            create_pdr(7, 128, 5, &[7, 8], &[1, 2], flow(Interface::ACCESS, Some(given(0x2ec)))),
            create_pdr(8, 128, 6, &[7, 8], &[1, 2], flow(Interface::CORE, None)),
        ],
        create_qers: vec![create_qer(8, 2, Some(20_000), Some(10_000))],
        ..modification()
    };
    bench.change(0, session.seid, &dedicated);
    assert!(text.contains(PORT));
    reaches_the_gnb(&mut bench, &session, 1, 2);
    bench.up(&session, 100);
    assert_eq!(bench.sent(1).len(), 1);
    let (_, deletion) = bench.delete(0, session.seid);
    for urr in [1, 2] {
        let last =
            deletion.usage_reports.iter().find(|usage| usage.urr == UrrId(urr)).unwrap().volume.unwrap();
        assert_eq!((last.uplink, last.downlink), (Some(100), Some(200)), "URR {urr}");
    }
    bench.assert_empty();
}

/// Open5GS v2.7: four PDRs, CHOOSE ID 5 for what comes from the gNB, the SMF as source and destination, BUFF at first; then a PCC
/// rule in the operator's own words.
#[test]
fn open5gs_with_a_dedicated_flow() {
    let mut bench = Bench::new(1);
    let ue = Ipv4Addr::new(10, 45, 0, 9);
    let instance = Some(&b"\x08internet"[..]);
    let ue_ip = UeIpAddress {
        ipv4: Some(ue),
        ipv6: Some("2001:db8:45:9::".parse().unwrap()),
        is_destination: true,
        ..UeIpAddress::default()
    };
    let from = |source, local_fteid| Pdi { local_fteid, network_instance: instance, ..pdi(source) };
    let smf = OuterHeaderCreation {
        description: OuterHeaderCreation::GTPU_IPV4,
        ..tunnel(Ipv4Addr::new(192, 0, 2, 100), 0x1000)
    };
    let request = SessionEstablishmentRequest {
        create_pdrs: vec![
            create_pdr(1, 65_535, 1, &[1], &[1], Pdi { ue_ips: vec![ue_ip], ..from(Interface::CORE, None) }),
            create_pdr(
                2,
                65_535,
                2,
                &[1],
                &[],
                Pdi { qfis: vec![], ..from(Interface::ACCESS, Some(choose(Some(5)))) },
            ),
            create_pdr(3, 255, 1, &[], &[], from(Interface::CP_FUNCTION, Some(choose(None)))),
            create_pdr(
                4,
                255,
                3,
                &[],
                &[],
                Pdi {
                    sdf_filters: filter("permit out 58 from ff02::2/128 to assigned"),
                    ..from(Interface::ACCESS, Some(choose(Some(5))))
                },
            ),
        ],
        create_fars: vec![
            create_far(1, ApplyAction::BUFF | ApplyAction::NOCP, None),
            create_far(2, ApplyAction::FORW, Some(forwarding(Interface::CORE, None))),
            create_far(3, ApplyAction::FORW, Some(forwarding(Interface::CP_FUNCTION, Some(smf)))),
        ],
        create_qers: vec![create_qer(1, 1, Some(100_000), None)],
        create_urrs: vec![urr(1, ReportingTriggers::VOLTH, threshold(100 << 20))],
        create_bars: vec![bar(None)],
        apn_dnn: instance,
        pdn_type: Some(PdnType::IPV4V6),
        ..establishment(1)
    };
    let response = bench.try_establish(0, &request);
    assert_eq!(response.cause, Cause::ACCEPTED);
    let teid = |id: u16| {
        let created = response.created_pdrs.iter().find(|created| created.id == PdrId(id)).unwrap();
        let Some(FTeid::Given { teid, ipv4: Some(N3), ipv6: None }) = created.local_fteid else {
            panic!("{created:?}")
        };
        teid
    };
    assert!(teid(2) == teid(4) && teid(2) != teid(3), "CHOOSE ID 5 is one tunnel");
    let session = Established { seid: response.up_fseid.unwrap().seid, teid: teid(2), ue };
    // What comes before the gNB is known waits, and the SMF is told.
    bench.down(&session, 100);
    bench.nothing_sent();
    assert_eq!(bench.smfs[0].take_reports().len(), 1);
    let activation = SessionModificationRequest {
        update_fars: vec![update_far(1, ApplyAction::FORW, 1)],
        ..modification()
    };
    bench.change(0, session.seid, &activation);
    assert_eq!(bench.sent(0).len(), 1);
    reaches_the_gnb(&mut bench, &session, 1, 1);
    let text = "permit out udp from 203.0.113.80/32 40000 to assigned";
    let dedicated = SessionModificationRequest {
        create_pdrs: vec![
            create_pdr(5, 1, 4, &[2], &[2], Pdi { sdf_filters: filter(text), ..from(Interface::CORE, None) }),
            create_pdr(
                6,
                1,
                2,
                &[2],
                &[],
                Pdi { sdf_filters: filter(text), ..from(Interface::ACCESS, Some(choose(Some(5)))) },
            ),
        ],
        create_fars: vec![create_far(
            4,
            ApplyAction::FORW,
            Some(forwarding(Interface::ACCESS, Some(tunnel(GNB, 1)))),
        )],
        create_qers: vec![create_qer(2, 2, Some(128), Some(128))],
        create_urrs: vec![urr(2, ReportingTriggers::VOLTH, threshold(100 << 20))],
        ..modification()
    };
    bench.change(0, session.seid, &dedicated);
    reaches_the_gnb(&mut bench, &session, 1, 2);
    bench.up(&session, 100);
    assert_eq!(bench.sent(1).len(), 1);
    let (_, deletion) = bench.delete(0, session.seid);
    let downlink = |urr| {
        let usage = deletion.usage_reports.iter().find(|usage| usage.urr == UrrId(urr)).unwrap();
        usage.volume.unwrap().downlink
    };
    assert_eq!((downlink(1), downlink(2)), (Some(200), Some(100)));
    bench.assert_empty();
}

/// pfcpsim as shipped: a FAR that drops has the outer header of nobody, QER 0 has QFI 0, filters have protocols' names.
#[test]
fn pfcpsim_as_shipped() {
    let mut bench = Bench::new(1);
    let ue = Ipv4Addr::new(10, 250, 0, 1);
    let text = "permit out udp from any to assigned";
    let from = |source, local_fteid| Pdi { local_fteid, sdf_filters: filter(text), ..pdi(source) };
    let down = Pdi {
        ue_ips: vec![UeIpAddress { ipv4: Some(ue), is_destination: true, ..UeIpAddress::default() }],
        ..from(Interface::CORE, None)
    };
    let nobody = tunnel(Ipv4Addr::UNSPECIFIED, 0);
    let request = SessionEstablishmentRequest {
        create_pdrs: vec![
            create_pdr(1, 100, 1, &[0, 1], &[], from(Interface::ACCESS, Some(given(1)))),
            create_pdr(2, 100, 2, &[0, 3], &[], down),
        ],
        create_fars: vec![
            create_far(1, ApplyAction::FORW, Some(forwarding(Interface::CORE, None))),
            create_far(2, ApplyAction::DROP, Some(forwarding(Interface::ACCESS, Some(nobody)))),
        ],
        create_qers: vec![
            create_qer(0, 0, Some(60_000), None),
            create_qer(1, 9, Some(50_000), Some(30_000)),
            create_qer(3, 9, Some(50_000), Some(30_000)),
        ],
        ..establishment(1)
    };
    let response = bench.try_establish(0, &request);
    assert_eq!(response.cause, Cause::ACCEPTED);
    let session = Established { seid: response.up_fseid.unwrap().seid, teid: Teid(1), ue };
    bench.down(&session, 100);
    bench.nothing_sent();
    // Forwarding into that is refused, and nothing changes.
    let resumed = SessionModificationRequest {
        update_fars: vec![UpdateFar { forwarding: None, ..update_far(2, ApplyAction::FORW, 0) }],
        ..modification()
    };
    let (_, refused) = bench.modify(0, session.seid, &resumed);
    let (cause, failed) = (Cause::RULE_FAILURE, Some(pfcp::RuleId::Far(FarId(2))));
    assert_eq!((refused.cause, refused.offending_ie, refused.failed_rule), (cause, Some(84), failed));
    let known = SessionModificationRequest {
        update_fars: vec![update_far(2, ApplyAction::FORW, 5)],
        ..modification()
    };
    bench.change(0, session.seid, &known);
    reaches_the_gnb(&mut bench, &session, 5, 9);
    bench.up(&session, 100);
    assert_eq!(bench.sent(1).len(), 1);
    assert_eq!(bench.delete(0, session.seid).0, Seid(1));
    bench.assert_empty();
}
