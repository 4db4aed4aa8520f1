//! What a session costs: establishments, modifications and deletions in nanoseconds of one core, and octets of memory,
//! from an empty store up to a million sessions. No PFCP codec, no network, no packet path.
//!
//! `cargo run --release -p session --example establish [SESSIONS]`

use packet::{Qfi, Teid};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{FarId, PdrId, QerId, Seid, UrrId};
use session::config::{Config, Ipv4Range, LocalAddresses, PoolConfig};
use session::store::{PeerId, Store};
use std::net::Ipv4Addr;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let most = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse::<usize>())?;
    let config = Config {
        n3: LocalAddresses { ipv4: Some(Ipv4Addr::new(192, 168, 0, 1)), ipv6: None },
        pools: vec![PoolConfig {
            ipv4: vec![Ipv4Range::Net("10.0.0.0/8".parse()?)],
            ..PoolConfig::default()
        }],
        ..Config::default()
    };
    let mut store = Store::new(config)?;
    let peer = store.attach();
    let request = everyday();
    let activation = activation();
    let mut seids = Vec::with_capacity(most);
    println!(
        "{:>9} | {:>12} | {:>9} | {:>13} | {:>9}",
        "sessions", "establish ns", "modify ns", "replace ns", "octets"
    );
    let empty = resident();
    let mut checkpoint = 1000.min(most);
    while checkpoint <= most {
        let batch = checkpoint - seids.len();
        let start = on_cpu();
        for _ in 0..batch {
            seids.push(establish(&mut store, &request, peer)?);
        }
        let establish_ns = (on_cpu() - start) / batch as u64;
        let octets = resident().saturating_sub(empty) / seids.len();

        // In an order that caches don't guess: a stride that is coprime to any power of ten.
        let rounds = 50_000.min(seids.len());
        let stride = 7_919;
        let start = on_cpu();
        for round in 0..rounds {
            let at = round * stride % seids.len();
            store.modify(seids[at], &activation)?;
        }
        let modify_ns = (on_cpu() - start) / rounds as u64;

        let start = on_cpu();
        for round in 0..rounds {
            let at = round * stride % seids.len();
            store.delete(seids[at])?;
            seids[at] = establish(&mut store, &request, peer)?;
        }
        let replace_ns = (on_cpu() - start) / rounds as u64;
        println!("{checkpoint:>9} | {establish_ns:>12} | {modify_ns:>9} | {replace_ns:>13} | {octets:>9}");
        if checkpoint == most {
            break;
        }
        checkpoint = (checkpoint * 10).min(most);
    }
    let session = store.iter().next().ok_or("no session")?;
    println!("packed model: {} octets; counts: {:?}", session.octets().len(), store.counts());

    let mut sweep = store.detach(peer);
    let start = on_cpu();
    let mut longest = 0;
    while !sweep.is_done() {
        let bite = on_cpu();
        store.sweep(&mut sweep, 256);
        longest = longest.max((on_cpu() - bite) / 1000);
    }
    println!("removed all in {} ms, at most {longest} us at a time", (on_cpu() - start) / 1_000_000);
    Ok(())
}

fn establish(
    store: &mut Store,
    request: &SessionEstablishmentRequest<'_>,
    peer: PeerId,
) -> Result<Seid, session::refusal::Refusal> {
    let established = store.establish(request, peer)?;
    assert_eq!(Arc::strong_count(&established.rules), 2);
    Ok(established.rules.seid)
}

/// Two PDRs, two FARs, a QER and a URR; the UPF chooses tunnel and address.
fn everyday() -> SessionEstablishmentRequest<'static> {
    let pdi = |source_interface| Pdi {
        source_interface,
        local_fteid: None,
        network_instance: Some(b"\x08internet"),
        ue_ips: vec![],
        sdf_filters: vec![],
        qfis: vec![],
        application_id: None,
        ethernet: false,
        framed_routes: vec![],
        framed_ipv6_routes: vec![],
        source_interface_type: None,
    };
    let pdr = |id, pdi| CreatePdr {
        id: PdrId(id),
        precedence: 255,
        pdi,
        outer_header_removal: None,
        far: Some(FarId(id.into())),
        urrs: vec![UrrId(1)],
        qers: vec![QerId(1)],
    };
    let mut up = pdi(Interface::ACCESS);
    up.local_fteid = Some(FTeid::Choose { ipv4: true, ipv6: true, id: Some(5) });
    up.qfis = vec![Qfi::from_wire(9)];
    let mut down = pdi(Interface::CORE);
    down.ue_ips = vec![UeIpAddress { choose_ipv4: true, is_destination: true, ..UeIpAddress::default() }];
    let forwarding = |destination_interface| ForwardingParameters {
        destination_interface,
        network_instance: None,
        outer_header_creation: None,
        transport_level_marking: None,
        redirect: None,
        forwarding_policy: None,
    };
    SessionEstablishmentRequest {
        node_id: NodeId::Ip([127, 0, 0, 1].into()),
        cp_fseid: FSeid { seid: Seid(1), ipv4: Some([127, 0, 0, 1].into()), ipv6: None },
        create_pdrs: vec![pdr(1, up), pdr(2, down)],
        create_fars: vec![
            CreateFar {
                id: FarId(1),
                apply_action: ApplyAction(ApplyAction::FORW),
                forwarding: Some(forwarding(Interface::CORE)),
                bar: None,
            },
            CreateFar {
                id: FarId(2),
                apply_action: ApplyAction(ApplyAction::BUFF | ApplyAction::NOCP),
                forwarding: None,
                bar: None,
            },
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
            parameters: QerParameters {
                mbr: Some(BitRate { uplink_kbps: 100_000, downlink_kbps: 100_000 }),
                qfi: Some(Qfi::from_wire(9)),
                ..QerParameters::default()
            },
        }],
        create_bars: vec![],
        pdn_type: Some(PdnType::IPV4),
        apn_dnn: Some(b"\x08internet"),
        inactivity_timer: None,
        s_nssai: None,
        user_id: None,
    }
}

/// The gNB is known: the downlink FAR forwards.
fn activation() -> SessionModificationRequest<'static> {
    SessionModificationRequest {
        update_fars: vec![UpdateFar {
            id: FarId(2),
            apply_action: Some(ApplyAction(ApplyAction::FORW)),
            forwarding: Some(UpdateForwardingParameters {
                destination_interface: Some(Interface::ACCESS),
                outer_header_creation: Some(OuterHeaderCreation {
                    description: OuterHeaderCreation::GTPU_IPV4,
                    teid: Some(Teid(7)),
                    ipv4: Some([192, 168, 0, 7].into()),
                    ..OuterHeaderCreation::default()
                }),
                ..UpdateForwardingParameters::default()
            }),
            bar: None,
        }],
        ..SessionModificationRequest::default()
    }
}

/// Nanoseconds that this thread has run: a machine that is shared with others shows as little as it can.
fn on_cpu() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default()
}

/// Resident memory in octets.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4096
}
