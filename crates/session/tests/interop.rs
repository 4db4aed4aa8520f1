//! One test for each habit of an SMF that a session has to live with.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use packet::{Qfi, Teid};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{BarId, FarId, PdrId, QerId, Seid, UrrId};
use session::rules::{Action, Destination, Prefix, Source};
use session::store::DirectoryChange;
use std::net::Ipv4Addr;

#[test]
fn a_rules_come_in_any_order() {
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_pdrs.reverse();
    request.create_fars.reverse();
    let rules = store.establish(&request, peer).unwrap().rules;
    let (up, down) = (pdr_of(&rules, 1), pdr_of(&rules, 2));
    assert_eq!(rules.fars[up.far as usize].id, FarId(1));
    assert_eq!(rules.fars[down.far as usize].id, FarId(2));
    assert_eq!((&*up.qers, &*up.urrs), (&[0][..], &[0][..]));

    // A filter named by its ID alone, before the PDR that describes it.
    let mut request = everyday();
    request.create_pdrs[0].pdi.sdf_filters = vec![SdfFilter { filter_id: Some(7), ..SdfFilter::default() }];
    request.create_pdrs[1].pdi.sdf_filters = vec![SdfFilter {
        filter_id: Some(7),
        tos_traffic_class: Some([0xb8, 0xfc]),
        ..sdf("permit out 17 from 9.9.9.9 53 to assigned")
    }];
    let rules = store.establish(&request, peer).unwrap().rules;
    let nine = Some(Prefix::V4("9.9.9.9/32".parse().unwrap()));
    let (up, down) = (&pdr_of(&rules, 1).filters[0], &pdr_of(&rules, 2).filters[0]);
    assert_eq!((down.source, &*down.source_ports, down.destination), (nine, &[(53, 53)][..], None));
    assert_eq!((up.destination, &*up.destination_ports, up.source), (nine, &[(53, 53)][..], None));
    assert_eq!(up.tos, Some((0xb8, 0xfc)), "the whole filter is shared");
}

#[test]
fn a_filter_named_by_id_follows_its_description() {
    let (mut store, peer) = store();
    let mut request = everyday();
    let by_id = SdfFilter { filter_id: Some(7), ..SdfFilter::default() };
    request.create_pdrs[0].pdi.sdf_filters = vec![by_id];
    request.create_pdrs[1].pdi.sdf_filters =
        vec![SdfFilter { filter_id: Some(7), ..sdf("permit out 17 from 9.9.9.9 to assigned") }];
    let seid = store.establish(&request, peer).unwrap().rules.seid;
    // The description changes, in one PDR.
    let mut change = update_pdr(2);
    change.pdi = Some(Pdi {
        sdf_filters: vec![SdfFilter { filter_id: Some(7), ..sdf("permit out 6 from 8.8.8.8 to assigned") }],
        ..pdi(Interface::CORE)
    });
    let request = SessionModificationRequest { update_pdrs: vec![change], ..modification() };
    let rules = store.modify(seid, &request).unwrap().rules;
    assert_eq!(pdr_of(&rules, 1).filters[0].protocol, Some(6));
    // The PDR with the description goes; who leans on it keeps it.
    let request = SessionModificationRequest { remove_pdrs: vec![PdrId(2)], ..modification() };
    let rules = store.modify(seid, &request).unwrap().rules;
    assert_eq!(pdr_of(&rules, 1).filters[0].protocol, Some(6));
}

#[test]
fn b_an_update_keeps_what_it_does_not_carry() {
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_pdrs[0].pdi.qfis = vec![Qfi::from_wire(9)];
    request.create_pdrs[0].pdi.sdf_filters = vec![sdf("permit out ip from 1.1.1.1 to assigned")];
    let established = store.establish(&request, peer).unwrap();
    let before = established.rules.clone();
    // Open5GS: source interface and the full SDF list, nothing else of the PDI.
    let mut change = update_pdr(1);
    change.pdi = Some(Pdi {
        sdf_filters: vec![
            sdf("permit out 6 from 2.2.2.2 to assigned"),
            sdf("permit out 17 from 2.2.2.2 to assigned"),
        ],
        ..pdi(Interface::ACCESS)
    });
    let request = SessionModificationRequest { update_pdrs: vec![change], ..modification() };
    let after = store.modify(before.seid, &request).unwrap().rules;
    let (old, new) = (pdr_of(&before, 1), pdr_of(&after, 1));
    assert_eq!(
        (new.tunnel, &new.qfis, new.precedence, new.far),
        (old.tunnel, &old.qfis, old.precedence, old.far)
    );
    assert_eq!((&new.qers, &new.urrs), (&old.qers, &old.urrs));
    assert!(new.outer_header_removal);
    assert_eq!(new.filters.iter().map(|f| f.protocol).collect::<Vec<_>>(), [Some(6), Some(17)]);
    assert_eq!(after.ue_ipv4, before.ue_ipv4);
    // A PDI without filters keeps those there are.
    let mut change = update_pdr(1);
    change.pdi = Some(pdi(Interface::ACCESS));
    change.precedence = Some(7);
    let request = SessionModificationRequest { update_pdrs: vec![change], ..modification() };
    let last = store.modify(before.seid, &request).unwrap().rules;
    assert_eq!(pdr_of(&last, 1).filters, new.filters);
    assert_eq!(pdr_of(&last, 1).precedence, 7);
}

#[test]
fn b_a_deactivated_tunnel_is_remembered() {
    let (mut store, peer) = store();
    let seid = store.establish(&everyday(), peer).unwrap().rules.seid;
    let idle = UpdateFar {
        apply_action: Some(ApplyAction(ApplyAction::BUFF | ApplyAction::NOCP)),
        bar: Some(BarId(1)),
        ..update_far(2)
    };
    let request = SessionModificationRequest {
        update_fars: vec![idle],
        create_bars: vec![bar(1, Some(5))],
        ..modification()
    };
    let rules = store.modify(seid, &request).unwrap().rules;
    assert_eq!(action_of(&rules, 2), Action::Buffer { notify: true, packets: 5 });
    let active = UpdateFar { apply_action: Some(ApplyAction(ApplyAction::FORW)), ..update_far(2) };
    let request = SessionModificationRequest { update_fars: vec![active], ..modification() };
    let rules = store.modify(seid, &request).unwrap().rules;
    let Action::Forward(forward) = action_of(&rules, 2) else { panic!("{:?}", action_of(&rules, 2)) };
    assert_eq!(forward.outer_header.unwrap().teid, Teid(0x77));
    assert_eq!(forward.destination, Destination::Access);
    // Update Forwarding Parameters without a header don't clear it either.
    let marked = UpdateFar {
        forwarding: Some(UpdateForwardingParameters {
            transport_level_marking: Some([0xb8, 0xfc]),
            ..UpdateForwardingParameters::default()
        }),
        ..update_far(2)
    };
    let request = SessionModificationRequest { update_fars: vec![marked], ..modification() };
    let rules = store.modify(seid, &request).unwrap().rules;
    let Action::Forward(forward) = action_of(&rules, 2) else { panic!() };
    assert_eq!(
        (forward.outer_header.unwrap().teid, forward.transport_marking.unwrap().get()),
        (Teid(0x77), 46)
    );
}

#[test]
fn c_addresses_and_tunnels_are_the_sessions() {
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_pdrs[0].pdi.local_fteid = Some(FTeid::Choose { ipv4: true, ipv6: true, id: Some(5) });
    let established = store.establish(&request, peer).unwrap();
    let seid = established.rules.seid;
    // A dedicated flow of Open5GS: the downlink PDR has CORE and a filter and nothing else; the uplink one asks for
    // the tunnel that the CHOOSE ID of the establishment means.
    let mut down = downlink(12, 12);
    down.precedence = 10;
    down.pdi.sdf_filters = vec![sdf("permit out 17 from 5.5.5.5 to assigned")];
    let mut up = uplink(11, 1);
    up.pdi.local_fteid = Some(FTeid::Choose { ipv4: true, ipv6: true, id: Some(5) });
    let request = SessionModificationRequest {
        create_pdrs: vec![down, up],
        create_fars: vec![to_gnb(12, 0x78)],
        ..modification()
    };
    let modified = store.modify(seid, &request).unwrap();
    assert_eq!(modified.rules.pdrs[0].id, PdrId(12), "lowest precedence first");
    assert_eq!(pdr_of(&modified.rules, 11).tunnel, pdr_of(&modified.rules, 1).tunnel);
    assert_eq!(modified.created_pdrs.len(), 1);
    assert_eq!(store.counts().tunnels, 1);
    // The tunnel lives until the last PDR that it serves.
    let request = SessionModificationRequest { remove_pdrs: vec![PdrId(1)], ..modification() };
    let modified = store.modify(seid, &request).unwrap();
    assert_eq!(pdr_of(&modified.rules, 11).tunnel.unwrap().teid, teid_of(&established, 1));
    let request = SessionModificationRequest { remove_pdrs: vec![PdrId(11)], ..modification() };
    store.modify(seid, &request).unwrap();
    assert_eq!(store.counts().tunnels, 0);
}

#[test]
fn c_a_session_outlives_all_its_rules() {
    // OAI: idle removes PDRs and FARs of both directions, service request creates them again.
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_pdrs[1].pdi.ue_ips = vec![ue([12, 1, 1, 2])];
    let seid = store.establish(&request, peer).unwrap().rules.seid;
    let clear = SessionModificationRequest {
        remove_pdrs: vec![PdrId(1), PdrId(2)],
        remove_fars: vec![FarId(1), FarId(2)],
        ..modification()
    };
    let rules = store.modify(seid, &clear).unwrap().rules;
    assert!(rules.pdrs.is_empty());
    assert_eq!(rules.ue_ipv4, Some([12, 1, 1, 2].into()));
    let again = SessionModificationRequest {
        create_pdrs: request.create_pdrs.clone(),
        create_fars: request.create_fars.clone(),
        ..modification()
    };
    let modified = store.modify(seid, &again).unwrap();
    assert_eq!(modified.rules.pdrs.len(), 2);
    assert_eq!(modified.created_pdrs.len(), 1);
    store.delete(seid).unwrap();
    assert_eq!(store.counts(), session::store::Counts::default());
}

#[test]
fn c_an_address_may_come_later_and_off_its_shard() {
    // OAI: the establishment has only the uplink PDR; the downlink one brings the address.
    let (mut store, peer) = store();
    let request = SessionEstablishmentRequest {
        create_pdrs: vec![uplink(1, 1)],
        create_fars: vec![to_core(1)],
        ..establish()
    };
    let place = store.establish(&request, peer).unwrap().rules.place;
    let seid = store.iter().next().unwrap().rules().seid;
    // One of these two addresses is surely not of the session's shard.
    let address = [Ipv4Addr::new(12, 1, 1, 2), Ipv4Addr::new(12, 1, 1, 3)]
        .into_iter()
        .find(|address| session::addresses::shard_of_ipv4(*address) != place.shard)
        .unwrap();
    let mut down = downlink(2, 2);
    down.pdi.ue_ips = vec![ue(address.octets())];
    let request = SessionModificationRequest {
        create_pdrs: vec![down],
        create_fars: vec![far(2, ApplyAction::DROP, None)],
        ..modification()
    };
    let modified = store.modify(seid, &request).unwrap();
    assert_eq!(modified.rules.ue_ipv4, Some(address));
    let prefix = ipnet::IpNet::from(std::net::IpAddr::V4(address));
    assert_eq!(modified.directory, [DirectoryChange::Address { prefix, session: Some(place) }]);
    let deleted = store.delete(seid).unwrap();
    assert_eq!(deleted.directory, [DirectoryChange::Address { prefix, session: None }]);
}

#[test]
fn d_forwarding_to_a_radio_that_is_not_known_yet_is_a_reasoned_drop() {
    // free5GC: FORW to ACCESS before there is a gNB.
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_fars[1] = far(2, ApplyAction::FORW, Some(forwarding(Interface::ACCESS, None)));
    let rules = store.establish(&request, peer).unwrap().rules;
    assert_eq!(action_of(&rules, 2), Action::ForwardUnresolved);
    let known = UpdateFar {
        forwarding: Some(UpdateForwardingParameters {
            outer_header_creation: Some(gnb(9)),
            ..UpdateForwardingParameters::default()
        }),
        ..update_far(2)
    };
    let request = SessionModificationRequest { update_fars: vec![known], ..modification() };
    assert!(matches!(action_of(&store.modify(rules.seid, &request).unwrap().rules, 2), Action::Forward(_)));
    // Drop and buffer need no parameters (OMEC, Open5GS).
    let mut request = everyday();
    request.create_fars[1] = far(2, ApplyAction::DROP, None);
    assert_eq!(action_of(&store.establish(&request, peer).unwrap().rules, 2), Action::Drop);
    request.create_fars[1] =
        CreateFar { bar: Some(BarId(1)), ..far(2, ApplyAction::BUFF | ApplyAction::NOCP, None) };
    request.create_bars = vec![bar(1, None)];
    let rules = store.establish(&request, peer).unwrap().rules;
    assert_eq!(action_of(&rules, 2), Action::Buffer { notify: true, packets: 64 });
}

/// pfcpsim's first downlink FAR: DROP, with the outer header of a gNB that it doesn't know yet.
#[test]
fn d_an_outer_header_counts_where_its_far_forwards() {
    let (mut store, peer) = store();
    let nowhere = OuterHeaderCreation { teid: Some(Teid(0)), ipv4: Some([0, 0, 0, 0].into()), ..gnb(0) };
    let headers = [
        nowhere,
        OuterHeaderCreation { teid: Some(Teid(0)), ..gnb(0) },
        OuterHeaderCreation { ipv4: Some([0, 0, 0, 0].into()), ..gnb(7) },
        OuterHeaderCreation { ipv4: Some([224, 0, 0, 1].into()), ..gnb(7) },
        OuterHeaderCreation { description: 0x0400, ..gnb(7) },
    ];
    let forward = |header| SessionModificationRequest {
        update_fars: vec![UpdateFar {
            apply_action: Some(ApplyAction(ApplyAction::FORW)),
            forwarding: header,
            ..update_far(2)
        }],
        ..modification()
    };
    for header in headers {
        for (action, idle) in [
            (ApplyAction::DROP, Action::Drop),
            (ApplyAction::BUFF, Action::Buffer { notify: false, packets: 64 }),
        ] {
            let mut request = everyday();
            request.create_fars[1] = far(2, action, Some(forwarding(Interface::ACCESS, Some(header))));
            let rules = store.establish(&request, peer).unwrap().rules;
            assert_eq!(action_of(&rules, 2), idle);
            // Forwarding into it is refused with all that says why, and changes nothing.
            let before = store.get(rules.seid).unwrap().octets().to_vec();
            let refusal = store.modify(rules.seid, &forward(None)).unwrap_err();
            let cause = if header.description == 0x0400 {
                pfcp::Cause::SERVICE_NOT_SUPPORTED
            } else {
                pfcp::Cause::RULE_FAILURE
            };
            assert_eq!(
                (refusal.cause(), refusal.offending_ie(), refusal.failed_rule()),
                (cause, Some(84), Some(pfcp::RuleId::Far(FarId(2)))),
                "{header:?}"
            );
            assert_eq!(store.get(rules.seid).unwrap().octets(), before);
            // With the gNB's header it is a tunnel like any other.
            let known = UpdateForwardingParameters {
                outer_header_creation: Some(gnb(9)),
                ..UpdateForwardingParameters::default()
            };
            let rules = store.modify(rules.seid, &forward(Some(known))).unwrap().rules;
            assert!(
                matches!(action_of(&rules, 2), Action::Forward(f) if f.outer_header.unwrap().teid == Teid(9))
            );
            // And at once, it is refused likewise.
            request.create_fars[1].apply_action = ApplyAction(ApplyAction::FORW);
            assert_eq!(store.establish(&request, peer).unwrap_err(), refusal);
        }
    }
}

#[test]
fn e_a_choice_is_answered_with_what_there_is() {
    let (mut store, peer) = store();
    let mut ask = |ipv4, ipv6, instance: Option<&'static [u8]>| {
        let mut request = everyday();
        request.create_pdrs[0].pdi.local_fteid = Some(FTeid::Choose { ipv4, ipv6, id: None });
        request.create_pdrs[0].pdi.network_instance = instance;
        let established = store.establish(&request, peer)?;
        match established.created_pdrs.iter().find(|pdr| pdr.id == PdrId(1)).unwrap().local_fteid.unwrap() {
            FTeid::Given { teid, ipv4, ipv6 } => {
                assert_eq!(teid, teid_of(&established, 1));
                Ok::<_, session::refusal::Refusal>((ipv4, ipv6))
            }
            FTeid::Choose { .. } => panic!("a choice answered by a choice"),
        }
    };
    // OMEC sets neither family, Open5GS both; N3 is IPv4 only.
    assert_eq!(ask(false, false, None), Ok((Some(N3), None)));
    assert_eq!(ask(true, true, None), Ok((Some(N3), None)));
    assert_eq!(ask(true, false, None), Ok((Some(N3), None)));
    let second: Option<&[u8]> = Some(b"access.second");
    let six = Some("2001:db8:3::1".parse().unwrap());
    assert_eq!(ask(true, true, second), Ok((Some([192, 168, 11, 1].into()), six)));
    assert_eq!(ask(false, true, second), Ok((None, six)));
    let refusal = ask(false, true, None).unwrap_err();
    assert_eq!(refusal.cause(), pfcp::Cause::INVALID_FTEID_ALLOCATION);
    assert_eq!(
        (refusal.offending_ie(), refusal.failed_rule()),
        (Some(21), Some(pfcp::RuleId::Pdr(PdrId(1))))
    );
}

#[test]
fn e_a_choose_id_shares_one_tunnel() {
    // Open5GS: UL and UP-to-CP share CHOOSE ID 5, CP-to-UP has none. OAI: 42 for all.
    let (mut store, peer) = store();
    let mut request = everyday();
    let shared = Some(FTeid::Choose { ipv4: true, ipv6: true, id: Some(5) });
    let mut rs = uplink(3, 3);
    rs.pdi.local_fteid = shared;
    rs.pdi.sdf_filters = vec![sdf("permit out 58 from ff02::2/128 to assigned")];
    let mut ra = uplink(4, 2);
    ra.pdi.source_interface = Interface::CP_FUNCTION;
    request.create_pdrs[0].pdi.local_fteid = shared;
    request.create_pdrs.extend([rs, ra]);
    request.create_fars.push(far(
        3,
        ApplyAction::FORW,
        Some(forwarding(Interface::CP_FUNCTION, Some(gnb(1)))),
    ));
    let established = store.establish(&request, peer).unwrap();
    assert_eq!(teid_of(&established, 1), teid_of(&established, 3));
    assert_ne!(teid_of(&established, 1), teid_of(&established, 4));
    assert_eq!(established.created_pdrs.len(), 4, "three tunnels and an address");
    assert_eq!(store.counts().tunnels, 2);
}

#[test]
fn e_one_address_for_all_who_ask() {
    // OMEC: CHV4 on both PDRs, S/D never set.
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_pdrs[0].pdi.ue_ips = vec![choose_ipv4()];
    let established = store.establish(&request, peer).unwrap();
    let told: Vec<_> =
        established.created_pdrs.iter().flat_map(|pdr| pdr.ue_ips.iter().map(|ip| ip.ipv4)).collect();
    assert_eq!(told, [established.rules.ue_ipv4; 2]);
    assert_eq!(store.counts().addresses_in_pools, 1);
    let shard = session::addresses::shard_of_ipv4(established.rules.ue_ipv4.unwrap());
    assert_eq!(established.rules.place.shard, shard);
    assert!(established.directory.is_empty());
}

#[test]
fn e_both_families_agree_on_the_shard() {
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_pdrs[1].pdi.ue_ips =
        vec![UeIpAddress { choose_ipv4: true, choose_ipv6: true, ..UeIpAddress::default() }];
    for _ in 0..100 {
        let established = store.establish(&request, peer).unwrap();
        assert!(established.directory.is_empty(), "{:?}", established.directory);
        assert_eq!(established.rules.ue_ipv6.unwrap().prefix_len(), 64);
    }
}

#[test]
fn f_network_instances_in_both_spellings() {
    let (mut store, peer) = store();
    for (name, third) in [
        (&b"access.second"[..], 11),
        (b"ACCESS.Second", 11),
        (b"\x06access\x06second", 11),
        (b"", 10),
        (b"unheard.of", 10),
    ] {
        let mut request = everyday();
        request.create_pdrs[0].pdi.network_instance = Some(name);
        let created = store.establish(&request, peer).unwrap().created_pdrs;
        let Some(FTeid::Given { ipv4: Some(address), .. }) = created[0].local_fteid else { panic!() };
        assert_eq!(address.octets()[2], third, "{name:?}");
    }
    // A FAR's says which data network; one that no interface has is the default.
    for (name, index) in
        [(&b"access.second"[..], 1), (b"\x06access\x06second", 1), (b"", 0), (b"unheard.of", 0)]
    {
        let mut request = everyday();
        request.create_fars[0].forwarding.as_mut().unwrap().network_instance = Some(name);
        let rules = store.establish(&request, peer).unwrap().rules;
        let Action::Forward(forward) = rules.fars[0].action else { panic!() };
        assert_eq!(forward.instance, index, "{name:?}");
    }
    // The DNN picks the pool.
    let mut request = everyday();
    request.apn_dnn = Some(b"\x03ims");
    assert_eq!(store.establish(&request, peer).unwrap().rules.ue_ipv4.unwrap().octets()[1], 46);
    request.apn_dnn = None;
    request.create_pdrs[1].pdi.network_instance = Some(b"ims");
    assert_eq!(store.establish(&request, peer).unwrap().rules.ue_ipv4.unwrap().octets()[1], 46);
    assert_eq!(store.establish(&request, peer).unwrap_err().cause(), pfcp::Cause::ADDRESSES_OCCUPIED);
}

#[test]
fn a_session_belongs_to_the_slice_that_its_s_nssai_or_its_dnn_names() {
    use pfcp::ie::SNssai;
    use session::config::Slice;
    let (one, two) = (SNssai { sst: 1, sd: None }, SNssai { sst: 1, sd: Some(2) });
    let name = |text: &str| session::network_instance::Name::new(text.as_bytes());
    let slices = vec![
        Slice { s_nssai: Some(one), names: vec![name("video"), name("tv")] },
        Slice { s_nssai: Some(two), names: Vec::new() },
    ];
    let config = session::config::Config { slices, ..session::config::Config::default() };
    let mut request = everyday();
    let belongs = |request: &pfcp::message::SessionEstablishmentRequest| config.slice(request);
    assert_eq!(belongs(&request), None);
    request.create_pdrs[1].pdi.network_instance = Some(b"\x02TV");
    assert_eq!(belongs(&request), Some(0));
    request.s_nssai = Some(two);
    assert_eq!(belongs(&request), Some(1), "the S-NSSAI comes first");
    request.s_nssai = Some(SNssai { sst: 9, sd: None });
    request.apn_dnn = Some(b"video");
    assert_eq!(belongs(&request), Some(0));
}

#[test]
fn g_a_repeated_create_replaces() {
    let (mut store, peer) = store();
    let mut request = everyday();
    // OAI adds the uplink FAR twice.
    request.create_fars.insert(0, far(1, ApplyAction::DROP, None));
    request.create_pdrs.push(CreatePdr { precedence: 3, ..uplink(1, 1) });
    let established = store.establish(&request, peer).unwrap();
    assert_eq!(established.rules.fars.len(), 2);
    assert!(matches!(action_of(&established.rules, 1), Action::Forward(_)));
    assert_eq!((established.rules.pdrs.len(), pdr_of(&established.rules, 1).precedence), (2, 3));
    assert_eq!(store.counts().tunnels, 1, "the replaced PDR's wish went with it");
    // In a modification likewise; the replaced PDR's tunnel goes back.
    let request = SessionModificationRequest { create_pdrs: vec![uplink(1, 1)], ..modification() };
    let modified = store.modify(established.rules.seid, &request).unwrap();
    assert_ne!(pdr_of(&modified.rules, 1).tunnel.unwrap().teid, teid_of(&established, 1));
    assert_eq!(store.counts().tunnels, 1);
}

#[test]
fn h_a_qer_is_one_bucket_and_all_apply() {
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_qers.push(qer(700, 1_000_000, 9));
    for pdr in &mut request.create_pdrs {
        pdr.qers = vec![QerId(700), QerId(1), QerId(700)];
    }
    let rules = store.establish(&request, peer).unwrap().rules;
    assert_eq!(rules.qers.len(), 2);
    assert_eq!(rules.qers[1].uplink_mbr, Some(1_000_000_000));
    for pdr in &rules.pdrs {
        assert_eq!(*pdr.qers, [1, 0], "each once, though named twice");
    }
}

/// free5GC lists the session's AMBR first and gives it a QFI too; pfcpsim's has QFI 0.
#[test]
fn h_the_qfi_is_that_of_the_flows_own_qer() {
    let (mut store, peer) = store();
    let mut mark = |qers: &[(u32, u8)], pdrs: &[&[u32]]| {
        let mut request = everyday();
        request.create_qers = qers.iter().map(|&(id, qfi)| qer(id, 1_000, qfi)).collect();
        request.create_pdrs.extend((2..pdrs.len()).map(|extra| downlink(extra as u16 + 1, 2)));
        for (pdr, named) in request.create_pdrs.iter_mut().zip(pdrs) {
            pdr.qers = named.iter().copied().map(QerId).collect();
        }
        let rules = store.establish(&request, peer).unwrap().rules;
        (1..=pdrs.len()).map(|id| rules.marking(pdr_of(&rules, id as u16)).map(Qfi::get)).collect::<Vec<_>>()
    };
    // A GBR flow beside the default one, as free5GC has them.
    let flows: [&[u32]; 4] = [&[7, 6], &[7, 6], &[7, 8], &[7, 8]];
    assert_eq!(mark(&[(6, 1), (7, 1), (8, 2)], &flows), [Some(1), Some(1), Some(2), Some(2)]);
    let without_default: [&[u32]; 4] = [&[7], &[7], &[7, 8], &[7, 8]];
    assert_eq!(mark(&[(7, 1), (8, 2)], &without_default), [Some(1), Some(1), Some(2), Some(2)]);
    // pfcpsim's: QFI 0 is no flow, whatever its place.
    assert_eq!(mark(&[(1, 0), (3, 9)], &[&[1, 3], &[3, 1]]), [Some(9), Some(9)]);
    assert_eq!(mark(&[(1, 0)], &[&[1], &[]]), [None, None]);
    // Equals: the first that the PDR names.
    assert_eq!(mark(&[(1, 5), (2, 6)], &[&[1, 2], &[2, 1]]), [Some(5), Some(6)]);
}

#[test]
fn i_all_outer_header_removals_are_one() {
    let (mut store, peer) = store();
    for description in [0, 1, 6] {
        let mut request = everyday();
        request.create_pdrs[0].outer_header_removal =
            Some(OuterHeaderRemoval { description, extension_header_deletion: None });
        assert!(pdr_of(&store.establish(&request, peer).unwrap().rules, 1).outer_header_removal);
    }
}

#[test]
fn j_the_smf_is_a_source_and_a_destination() {
    let (mut store, peer) = store();
    let mut request = everyday();
    let mut ra = uplink(4, 2);
    ra.pdi.source_interface = Interface::CP_FUNCTION;
    request.create_pdrs.push(ra);
    let mut rs = uplink(3, 3);
    // A router solicitation comes from a link-local address: `assigned` must not shut it out.
    rs.pdi.sdf_filters = vec![sdf("permit out 58 from ff02::2/128 to assigned")];
    request.create_pdrs.push(rs);
    request.create_fars.push(far(
        3,
        ApplyAction::FORW,
        Some(forwarding(Interface::CP_FUNCTION, Some(gnb(1)))),
    ));
    let rules = store.establish(&request, peer).unwrap().rules;
    assert_eq!(pdr_of(&rules, 4).source, Source::CpFunction);
    let filter = &pdr_of(&rules, 3).filters[0];
    assert_eq!((filter.source, filter.protocol), (None, Some(58)));
    assert_eq!(filter.destination, Some(Prefix::V6("ff02::2/128".parse().unwrap())));
    let Action::Forward(forward) = action_of(&rules, 3) else { panic!() };
    assert_eq!(forward.destination, Destination::CpFunction);
}

#[test]
fn k_the_cp_seid_is_kept_for_the_answers() {
    let (mut store, peer) = store();
    let seid = store.establish(&everyday(), peer).unwrap().rules.seid;
    assert_eq!(store.get(seid).unwrap().cp_fseid().seid, Seid(0xc0ffee));
    // free5GC repeats it in every modification; a session may move to another SMF of a set.
    let moved = FSeid { seid: Seid(5), ipv4: Some([127, 0, 0, 9].into()), ipv6: None };
    let request = SessionModificationRequest { cp_fseid: Some(moved), ..modification() };
    assert_eq!(store.modify(seid, &request).unwrap().cp_fseid, moved);
    assert_eq!(store.get(seid).unwrap().cp_fseid(), moved);
}

#[test]
fn an_end_marker_only_where_a_tunnel_ends() {
    let (mut store, peer) = store();
    let seid = store.establish(&everyday(), peer).unwrap().rules.seid;
    let mut switch = |teid: u32, action: Option<u16>| {
        let change = UpdateFar {
            apply_action: action.map(ApplyAction),
            forwarding: Some(UpdateForwardingParameters {
                outer_header_creation: Some(gnb(teid)),
                flags: SmReqFlags { send_end_marker: true, ..SmReqFlags::default() },
                ..UpdateForwardingParameters::default()
            }),
            ..update_far(2)
        };
        let request = SessionModificationRequest { update_fars: vec![change], ..modification() };
        store.modify(seid, &request).unwrap().end_markers
    };
    assert_eq!(switch(0x88, None), [FarId(2)]);
    assert_eq!(switch(0x88, None), [], "free5GC never resets the flag");
    assert_eq!(switch(0x88, Some(ApplyAction::BUFF)), []);
    assert_eq!(switch(0x99, Some(ApplyAction::FORW)), [], "nothing was sent into the old one");
    assert_eq!(switch(0x9a, None), [FarId(2)]);
}

#[test]
fn tunnels_that_the_smf_chose() {
    // free5GC: TEID and addresses are the SMF's; the UE's address on both PDRs.
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_pdrs[0].pdi.local_fteid = Some(given(0x2a));
    request.create_pdrs[0].pdi.ue_ips = vec![UeIpAddress { is_destination: false, ..ue([10, 45, 0, 9]) }];
    request.create_pdrs[1].pdi.ue_ips = vec![ue([10, 45, 0, 9])];
    // A dedicated flow on the same tunnel.
    request.create_pdrs.push(CreatePdr {
        precedence: 7,
        pdi: Pdi {
            local_fteid: Some(given(0x2a)),
            sdf_filters: vec![sdf("permit out 6 from 9.9.9.9 to assigned")],
            ..pdi(Interface::ACCESS)
        },
        ..uplink(3, 1)
    });
    let established = store.establish(&request, peer).unwrap();
    let tunnel = pdr_of(&established.rules, 1).tunnel.unwrap();
    assert_eq!(tunnel.teid, Teid(0x2a));
    assert_eq!(pdr_of(&established.rules, 3).tunnel, Some(tunnel));
    assert_eq!(tunnel.place.shard, established.rules.place.shard);
    assert_eq!(
        established.directory,
        [DirectoryChange::Tunnel { teid: Teid(0x2a), place: Some(tunnel.place) }]
    );
    assert!(established.created_pdrs.is_empty());
    let deleted = store.delete(established.rules.seid).unwrap();
    assert_eq!(deleted.directory, [DirectoryChange::Tunnel { teid: Teid(0x2a), place: None }]);
    assert_eq!(store.counts(), session::store::Counts::default());
}

#[test]
fn absurd_values_are_ignored() {
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_urrs[0].triggers = ReportingTriggers(ReportingTriggers::VOLTH | ReportingTriggers::PERIO);
    request.create_urrs[0].parameters = UrrParameters {
        period: Some(0),
        volume_threshold: Some(VolumeLimit { total: Some(0), uplink: Some(1000), downlink: Some(0) }),
        quota_validity_time: Some(3_900_000_000),
        time_threshold: Some(0),
        ..UrrParameters::default()
    };
    request.create_qers[0].parameters.mbr = Some(BitRate { uplink_kbps: 0, downlink_kbps: u64::MAX });
    let established = store.establish(&request, peer).unwrap();
    let urr = &established.rules.urrs[0];
    assert_eq!((urr.threshold.total, urr.threshold.uplink, urr.threshold.downlink), (None, Some(1000), None));
    assert!(established.timings.is_empty(), "{:?}", established.timings);
    let qer = &established.rules.qers[0];
    assert_eq!((qer.uplink_mbr, qer.downlink_mbr), (None, Some(u64::MAX)));
}

#[test]
fn quotas_and_times() {
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_urrs[0].triggers =
        ReportingTriggers(ReportingTriggers::VOLTH | ReportingTriggers::PERIO | ReportingTriggers::TIMTH);
    request.create_urrs[0].parameters.period = Some(10);
    request.create_urrs[0].parameters.time_threshold = Some(5);
    request.create_urrs[0].parameters.volume_quota =
        Some(VolumeLimit { total: Some(0), ..VolumeLimit::default() });
    let established = store.establish(&request, peer).unwrap();
    let seid = established.rules.seid;
    assert_eq!(established.timings[0].period.unwrap().as_secs(), 10);
    assert_eq!(established.timings[0].time_threshold.unwrap().as_secs(), 5);
    assert_eq!(established.rules.urrs[0].quota.total, Some(0), "a quota of zero is exhausted");
    let first = established.rules.urrs[0].quota_generation;

    let blocked = store.set_blocked(seid, UrrId(1), true).unwrap();
    assert!(blocked.urrs[0].blocked);
    assert_eq!(store.set_blocked(seid, UrrId(1), true), None);
    let update = UpdateUrr {
        id: UrrId(1),
        method: None,
        triggers: None,
        parameters: UrrParameters {
            volume_quota: Some(VolumeLimit { total: Some(1 << 20), ..VolumeLimit::default() }),
            ..UrrParameters::default()
        },
    };
    let request = SessionModificationRequest { update_urrs: vec![update], ..modification() };
    let modified = store.modify(seid, &request).unwrap();
    let urr = &modified.rules.urrs[0];
    assert!(!urr.blocked && urr.quota_generation != first);
    assert_eq!((urr.quota.total, urr.threshold.total), (Some(1 << 20), Some(100 << 20)));
    assert_eq!(modified.timings.len(), 1);
    assert_eq!(
        (store.next_sequence(seid, UrrId(1)), store.next_sequence(seid, UrrId(1))),
        (Some(0), Some(1))
    );
}

#[test]
fn queries_and_removed_rules() {
    let (mut store, peer) = store();
    let mut request = everyday();
    request.create_urrs.push(urr(2, 5));
    let seid = store.establish(&request, peer).unwrap().rules.seid;
    let all = SessionModificationRequest {
        flags: SmReqFlags { query_all_urrs: true, drop_buffered: true, ..SmReqFlags::default() },
        ..modification()
    };
    let modified = store.modify(seid, &all).unwrap();
    assert_eq!((modified.query, modified.drop_buffered), (vec![UrrId(1), UrrId(2)], true));
    // Removing a URR or QER takes it off the PDRs: an Update PDR has no way to say so.
    let request = SessionModificationRequest {
        remove_urrs: vec![UrrId(1)],
        remove_qers: vec![QerId(1)],
        query_urrs: vec![UrrId(2), UrrId(9)],
        ..modification()
    };
    let modified = store.modify(seid, &request).unwrap();
    assert_eq!((modified.removed_urrs, modified.query), (vec![UrrId(1)], vec![UrrId(2)]));
    assert!(modified.rules.pdrs.iter().all(|pdr| pdr.urrs.is_empty() && pdr.qers.is_empty()));
}

#[test]
fn framed_routes_belong_to_the_session() {
    let (mut store, peer) = store();
    let mut request = everyday();
    let route: &[u8] = b"192.168.50.0/24 0.0.0.0 1";
    request.create_pdrs[0].pdi.framed_routes = vec![route];
    request.create_pdrs[1].pdi.framed_routes = vec![route];
    request.create_pdrs[1].pdi.framed_ipv6_routes = vec![b"2001:db8:50::/64 ::"];
    request.create_pdrs[1].pdi.sdf_filters = vec![sdf("permit out ip from any to assigned")];
    let established = store.establish(&request, peer).unwrap();
    let rules = &established.rules;
    assert_eq!((rules.framed_ipv4.len(), rules.framed_ipv6.len()), (1, 1));
    assert_eq!(established.directory.len(), 2);
    // Where networks stand behind the UE, `assigned` means the UE alone.
    let own = Prefix::V4(rules.ue_ipv4.unwrap().into());
    assert_eq!(pdr_of(rules, 2).filters[0].destination, Some(own));
    assert_eq!(store.establish(&request, peer).unwrap_err().cause(), pfcp::Cause::RULE_FAILURE);
    let request = SessionModificationRequest { remove_pdrs: vec![PdrId(2)], ..modification() };
    let modified = store.modify(rules.seid, &request).unwrap();
    assert_eq!(modified.rules.framed_ipv6.len(), 0);
    assert_eq!(store.counts().addresses_outside, 1);
}
