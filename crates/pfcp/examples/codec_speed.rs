//! How long does it take to read and to write a session establishment?
//!
//! `cargo run --release -p pfcp --example codec_speed` prints nanoseconds per message, the best of several
//! runs, for the usual request: 2 PDRs, 2 FARs, 1 QER, 1 URR.

use packet::{Qfi, Teid};
use pfcp::ie::{
    ApplyAction, BitRate, FSeid, FTeid, GateStatus, Interface, MeasurementMethod, NodeId,
    OuterHeaderCreation, OuterHeaderRemoval, PdnType, ReportingTriggers, SdfFilter, UeIpAddress, VolumeLimit,
};
use pfcp::message::{
    CreateFar, CreatePdr, CreateQer, CreateUrr, ForwardingParameters, Pdi, QerParameters,
    SessionEstablishmentRequest, UrrParameters,
};
use pfcp::{FarId, Header, MessageType, PdrId, QerId, Seid, SequenceNumber, UrrId, encode_message};
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

const MESSAGES: u32 = 1_000;
const RUNS: u32 = 500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request = usual_request();
    let header = Header::session(MessageType::SESSION_ESTABLISHMENT_REQUEST, Seid(0), SequenceNumber(1));
    let mut datagram = Vec::new();
    encode_message(&header, &mut datagram, |out| request.encode(out))?;
    let (_, body, _) = Header::decode(&datagram)?;
    assert_eq!(SessionEstablishmentRequest::decode(body)?, request);

    println!("session establishment request, {} octets", datagram.len());
    println!("decode {:6.0} ns", best(|| drop(black_box(read(black_box(&datagram))))));
    let mut out = Vec::with_capacity(2048);
    println!(
        "encode {:6.0} ns",
        best(|| {
            out.clear();
            let _ = encode_message(&header, &mut out, |out| black_box(&request).encode(out));
            black_box(&out);
        })
    );
    Ok(())
}

fn read(datagram: &[u8]) -> Option<SessionEstablishmentRequest<'_>> {
    let (_, body, _) = Header::decode(datagram).ok()?;
    SessionEstablishmentRequest::decode(body).ok()
}

/// Nanoseconds of one call, the best of several runs: what the code costs when nothing disturbs it.
fn best(mut call: impl FnMut()) -> f64 {
    (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            (0..MESSAGES).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / f64::from(MESSAGES)
        })
        .fold(f64::INFINITY, f64::min)
}

fn usual_request() -> SessionEstablishmentRequest<'static> {
    let smf = Ipv4Addr::new(10, 0, 0, 1);
    let ue = Ipv4Addr::new(10, 45, 0, 2);
    let far = |id, destination_interface, outer_header_creation| CreateFar {
        id: FarId(id),
        apply_action: ApplyAction(ApplyAction::FORW),
        forwarding: Some(ForwardingParameters {
            destination_interface,
            network_instance: Some(b"internet"),
            outer_header_creation,
            transport_level_marking: None,
            redirect: None,
            forwarding_policy: None,
        }),
        bar: None,
    };
    let rate = BitRate { uplink_kbps: 100_000, downlink_kbps: 500_000 };
    SessionEstablishmentRequest {
        node_id: NodeId::Ip(IpAddr::V4(smf)),
        cp_fseid: FSeid { seid: Seid(1), ipv4: Some(smf), ipv6: None },
        create_pdrs: vec![pdr(1, Interface::ACCESS, ue), pdr(2, Interface::CORE, ue)],
        create_fars: vec![
            far(1, Interface::CORE, None),
            far(
                2,
                Interface::ACCESS,
                Some(OuterHeaderCreation {
                    description: OuterHeaderCreation::GTPU_IPV4,
                    teid: Some(Teid(0x1234)),
                    ipv4: Some(Ipv4Addr::new(10, 0, 1, 1)),
                    ..OuterHeaderCreation::default()
                }),
            ),
        ],
        create_urrs: vec![CreateUrr {
            id: UrrId(1),
            method: MeasurementMethod { volume: true, ..MeasurementMethod::default() },
            triggers: ReportingTriggers(ReportingTriggers::VOLTH),
            parameters: UrrParameters {
                volume_threshold: Some(VolumeLimit { total: Some(100 << 20), ..VolumeLimit::default() }),
                ..UrrParameters::default()
            },
        }],
        create_qers: vec![CreateQer {
            id: QerId(1),
            gate: GateStatus::default(),
            parameters: QerParameters { mbr: Some(rate), qfi: Qfi::new(9), ..QerParameters::default() },
        }],
        create_bars: Vec::new(),
        pdn_type: Some(PdnType::IPV4),
        apn_dnn: Some(b"\x08internet"),
        inactivity_timer: None,
        s_nssai: None,
        user_id: None,
    }
}

fn pdr(id: u16, side: Interface, ue: Ipv4Addr) -> CreatePdr<'static> {
    let uplink = side == Interface::ACCESS;
    CreatePdr {
        id: PdrId(id),
        precedence: 255,
        pdi: Pdi {
            source_interface: side,
            local_fteid: uplink.then_some(FTeid::Choose { ipv4: true, ipv6: false, id: Some(5) }),
            network_instance: Some(b"internet"),
            ue_ips: vec![UeIpAddress { ipv4: Some(ue), is_destination: !uplink, ..UeIpAddress::default() }],
            sdf_filters: vec![SdfFilter {
                flow_description: Some(b"permit out ip from any to assigned"),
                ..SdfFilter::default()
            }],
            qfis: if uplink { vec![Qfi::from_wire(9)] } else { Vec::new() },
            application_id: None,
            ethernet: false,
            framed_routes: Vec::new(),
            framed_ipv6_routes: Vec::new(),
            source_interface_type: None,
        },
        outer_header_removal: uplink
            .then_some(OuterHeaderRemoval { description: 0, extension_header_deletion: None }),
        far: Some(FarId(u32::from(id))),
        urrs: vec![UrrId(1)],
        qers: vec![QerId(1)],
    }
}
