//! Random messages that can be said on the wire.

use packet::{Dscp, Qfi, Teid};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{BarId, Cause, FarId, PdrId, QerId, RuleId, Seid, UrrId};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

type Text = &'static [u8];

fn text() -> impl Strategy<Value = Text> {
    prop::sample::select(vec![
        &b"internet"[..],
        b"\x08internet",
        b"\x03n6\xff",
        b"permit out ip from any to assigned",
        b"permit out 17 from 10.0.0.0/8 6000-7000,8000 to assigned",
        b"x",
    ])
}

/// Network instances and APNs may be there and empty.
fn name() -> impl Strategy<Value = Option<Text>> {
    of(prop_oneof![text(), Just(&b""[..])])
}

fn pdr_id() -> impl Strategy<Value = PdrId> {
    any::<u16>().prop_map(PdrId)
}

fn far_id() -> impl Strategy<Value = FarId> {
    any::<u32>().prop_map(FarId)
}

fn urr_id() -> impl Strategy<Value = UrrId> {
    any::<u32>().prop_map(UrrId)
}

fn qer_id() -> impl Strategy<Value = QerId> {
    any::<u32>().prop_map(QerId)
}

fn bar_id() -> impl Strategy<Value = BarId> {
    any::<u8>().prop_map(BarId)
}

fn qfi() -> impl Strategy<Value = Qfi> {
    any::<u8>().prop_map(Qfi::from_wire)
}

fn cause() -> impl Strategy<Value = Cause> {
    any::<u8>().prop_map(Cause)
}

fn interface() -> impl Strategy<Value = Interface> {
    (0u8..16).prop_map(Interface)
}

fn rule() -> impl Strategy<Value = RuleId> {
    prop_oneof![
        pdr_id().prop_map(RuleId::Pdr),
        far_id().prop_map(RuleId::Far),
        qer_id().prop_map(RuleId::Qer),
        urr_id().prop_map(RuleId::Urr),
        bar_id().prop_map(RuleId::Bar),
    ]
}

pub fn node_id() -> impl Strategy<Value = NodeId> {
    prop_oneof![
        any::<IpAddr>().prop_map(NodeId::Ip),
        "[a-z0-9-]{1,63}(\\.[a-z0-9-]{1,20}){0,3}".prop_map(|name| NodeId::Fqdn(name.into())),
    ]
}

fn fseid() -> impl Strategy<Value = FSeid> {
    (any::<u64>(), any::<Option<Ipv4Addr>>(), any::<Option<Ipv6Addr>>())
        .prop_map(|(seid, ipv4, ipv6)| FSeid { seid: Seid(seid), ipv4, ipv6 })
}

fn fteid() -> impl Strategy<Value = FTeid> {
    prop_oneof![
        (any::<u32>(), any::<Ipv4Addr>(), any::<Option<Ipv6Addr>>())
            .prop_map(|(teid, ipv4, ipv6)| FTeid::Given { teid: Teid(teid), ipv4: Some(ipv4), ipv6 }),
        (any::<u32>(), any::<Ipv6Addr>()).prop_map(|(teid, ipv6)| FTeid::Given {
            teid: Teid(teid),
            ipv4: None,
            ipv6: Some(ipv6)
        }),
        any::<(bool, bool, Option<u8>)>().prop_map(|(ipv4, ipv6, id)| FTeid::Choose { ipv4, ipv6, id }),
    ]
}

fn ue_ip() -> impl Strategy<Value = UeIpAddress> {
    any::<(Option<Ipv4Addr>, Option<Ipv6Addr>, bool, Option<u8>, Option<u8>, bool, bool)>().prop_map(
        |(ipv4, ipv6, is_destination, ipv6_delegation_bits, ipv6_prefix_length, choose_ipv4, choose_ipv6)| {
            UeIpAddress {
                ipv4,
                ipv6,
                is_destination,
                ipv6_delegation_bits,
                ipv6_prefix_length,
                choose_ipv4,
                choose_ipv6,
            }
        },
    )
}

fn sdf_filter() -> impl Strategy<Value = SdfFilter<'static>> {
    (of(text()), any::<Option<[u8; 2]>>(), any::<Option<u32>>(), of(0u32..1 << 20), any::<Option<u32>>())
        .prop_map(|(flow_description, tos_traffic_class, security_parameter_index, flow_label, filter_id)| {
            SdfFilter { flow_description, tos_traffic_class, security_parameter_index, flow_label, filter_id }
        })
}

fn removal() -> impl Strategy<Value = OuterHeaderRemoval> {
    any::<(u8, Option<u8>)>().prop_map(|(description, extension_header_deletion)| OuterHeaderRemoval {
        description,
        extension_header_deletion,
    })
}

fn creation() -> impl Strategy<Value = OuterHeaderCreation> {
    (any::<u8>(), any::<(u32, Ipv4Addr, Ipv6Addr, u16)>()).prop_map(|(bits, (teid, ipv4, ipv6, port))| {
        // The low six bits of the first octet; the VLAN tags' bits have no field here.
        let description = u16::from(bits & 0x3f) << 8;
        OuterHeaderCreation {
            description,
            teid: (bits & 0x03 != 0).then_some(Teid(teid)),
            ipv4: (bits & 0x15 != 0).then_some(ipv4),
            ipv6: (bits & 0x2a != 0).then_some(ipv6),
            port: (bits & 0x0c != 0).then_some(port),
        }
    })
}

fn pdi() -> impl Strategy<Value = Pdi<'static>> {
    (
        (interface(), of(fteid()), name(), vec(ue_ip(), 0..3), vec(sdf_filter(), 0..3), vec(qfi(), 0..3)),
        (of(text()), any::<bool>(), vec(text(), 0..2), vec(text(), 0..2), any::<Option<u8>>()),
    )
        .prop_map(
            |(
                (source_interface, local_fteid, network_instance, ue_ips, sdf_filters, qfis),
                (application_id, ethernet, framed_routes, framed_ipv6_routes, source_interface_type),
            )| Pdi {
                source_interface,
                local_fteid,
                network_instance,
                ue_ips,
                sdf_filters,
                qfis,
                application_id,
                ethernet,
                framed_routes,
                framed_ipv6_routes,
                source_interface_type,
            },
        )
}

fn create_pdr() -> impl Strategy<Value = CreatePdr<'static>> {
    (pdr_id(), any::<u32>(), pdi(), of(removal()), of(far_id()), vec(urr_id(), 0..3), vec(qer_id(), 0..3))
        .prop_map(|(id, precedence, pdi, outer_header_removal, far, urrs, qers)| CreatePdr {
            id,
            precedence,
            pdi,
            outer_header_removal,
            far,
            urrs,
            qers,
        })
}

fn update_pdr() -> impl Strategy<Value = UpdatePdr<'static>> {
    (
        pdr_id(),
        of(removal()),
        any::<Option<u32>>(),
        of(pdi()),
        of(far_id()),
        vec(urr_id(), 0..3),
        vec(qer_id(), 0..3),
    )
        .prop_map(|(id, outer_header_removal, precedence, pdi, far, urrs, qers)| UpdatePdr {
            id,
            outer_header_removal,
            precedence,
            pdi,
            far,
            urrs,
            qers,
        })
}

fn redirect() -> impl Strategy<Value = RedirectInformation<'static>> {
    (0..16u8, text(), text()).prop_map(|(kind, address, other)| RedirectInformation {
        kind: RedirectAddressType(kind),
        address,
        other,
    })
}

fn forwarding() -> impl Strategy<Value = ForwardingParameters<'static>> {
    (interface(), name(), of(creation()), any::<Option<[u8; 2]>>(), (of(redirect()), name())).prop_map(
        |(
            destination_interface,
            network_instance,
            outer_header_creation,
            transport_level_marking,
            (redirect, forwarding_policy),
        )| {
            ForwardingParameters {
                destination_interface,
                network_instance,
                outer_header_creation,
                transport_level_marking,
                redirect,
                forwarding_policy: forwarding_policy.map(PolicyId),
            }
        },
    )
}

fn flags() -> impl Strategy<Value = SmReqFlags> {
    any::<(bool, bool, bool)>().prop_map(|(drop_buffered, send_end_marker, query_all_urrs)| SmReqFlags {
        drop_buffered,
        send_end_marker,
        query_all_urrs,
    })
}

fn update_forwarding() -> impl Strategy<Value = UpdateForwardingParameters<'static>> {
    (of(interface()), forwarding(), flags()).prop_map(|(destination_interface, parameters, flags)| {
        UpdateForwardingParameters {
            destination_interface,
            network_instance: parameters.network_instance,
            outer_header_creation: parameters.outer_header_creation,
            transport_level_marking: parameters.transport_level_marking,
            flags,
            redirect: parameters.redirect,
            forwarding_policy: parameters.forwarding_policy,
        }
    })
}

fn create_far() -> impl Strategy<Value = CreateFar<'static>> {
    (far_id(), any::<u16>(), of(forwarding()), of(bar_id())).prop_map(|(id, bits, forwarding, bar)| {
        // Forwarding asks for parameters.
        let bits = if forwarding.is_some() { bits } else { bits & !ApplyAction::FORW };
        CreateFar { id, apply_action: ApplyAction(bits), forwarding, bar }
    })
}

fn update_far() -> impl Strategy<Value = UpdateFar<'static>> {
    (far_id(), of(any::<u16>().prop_map(ApplyAction)), of(update_forwarding()), of(bar_id()))
        .prop_map(|(id, apply_action, forwarding, bar)| UpdateFar { id, apply_action, forwarding, bar })
}

fn volume_limit() -> impl Strategy<Value = VolumeLimit> {
    any::<(Option<u64>, Option<u64>, Option<u64>)>().prop_map(|(total, uplink, downlink)| VolumeLimit {
        total,
        uplink,
        downlink,
    })
}

fn method() -> impl Strategy<Value = MeasurementMethod> {
    any::<(bool, bool, bool)>().prop_map(|(duration, volume, event)| MeasurementMethod {
        duration,
        volume,
        event,
    })
}

fn triggers() -> impl Strategy<Value = ReportingTriggers> {
    (0u32..1 << 24).prop_map(ReportingTriggers)
}

fn information() -> impl Strategy<Value = MeasurementInformation> {
    any::<(bool, bool, bool, bool, bool)>().prop_map(
        |(before_qos, inactive, reduced_detection, immediate_start, packets)| MeasurementInformation {
            before_qos,
            inactive,
            reduced_detection,
            immediate_start,
            packets,
        },
    )
}

fn urr_parameters() -> impl Strategy<Value = UrrParameters> {
    (
        any::<[Option<u32>; 6]>(),
        of(volume_limit()),
        of(volume_limit()),
        vec(urr_id(), 0..3),
        of(information()),
    )
        .prop_map(|(times, volume_threshold, volume_quota, linked_urrs, information)| {
            let [
                period,
                time_threshold,
                time_quota,
                quota_holding_time,
                quota_validity_time,
                inactivity_detection_time,
            ] = times;
            UrrParameters {
                period,
                volume_threshold,
                volume_quota,
                time_threshold,
                time_quota,
                quota_holding_time,
                quota_validity_time,
                inactivity_detection_time,
                linked_urrs,
                information,
            }
        })
}

fn create_urr() -> impl Strategy<Value = CreateUrr> {
    (urr_id(), method(), triggers(), urr_parameters())
        .prop_map(|(id, method, triggers, parameters)| CreateUrr { id, method, triggers, parameters })
}

fn update_urr() -> impl Strategy<Value = UpdateUrr> {
    (urr_id(), of(method()), of(triggers()), urr_parameters())
        .prop_map(|(id, method, triggers, parameters)| UpdateUrr { id, method, triggers, parameters })
}

fn gate() -> impl Strategy<Value = GateStatus> {
    any::<(bool, bool)>()
        .prop_map(|(uplink_closed, downlink_closed)| GateStatus { uplink_closed, downlink_closed })
}

fn bit_rate() -> impl Strategy<Value = BitRate> {
    (0..=BitRate::MAX_KBPS, 0..=BitRate::MAX_KBPS)
        .prop_map(|(uplink_kbps, downlink_kbps)| BitRate { uplink_kbps, downlink_kbps })
}

fn qer_parameters() -> impl Strategy<Value = QerParameters> {
    (
        any::<Option<u32>>(),
        of(bit_rate()),
        of(bit_rate()),
        of(qfi()),
        any::<Option<bool>>(),
        of(0u8..8),
        any::<Option<u32>>(),
    )
        .prop_map(|(correlation_id, mbr, gbr, qfi, reflective, paging_policy, averaging_window)| {
            QerParameters { correlation_id, mbr, gbr, qfi, reflective, paging_policy, averaging_window }
        })
}

fn create_qer() -> impl Strategy<Value = CreateQer> {
    (qer_id(), gate(), qer_parameters()).prop_map(|(id, gate, parameters)| CreateQer { id, gate, parameters })
}

fn update_qer() -> impl Strategy<Value = UpdateQer> {
    (qer_id(), of(gate()), qer_parameters()).prop_map(|(id, gate, parameters)| UpdateQer {
        id,
        gate,
        parameters,
    })
}

fn create_bar() -> impl Strategy<Value = CreateBar> {
    (bar_id(), any::<Option<u8>>(), any::<Option<u8>>()).prop_map(
        |(id, notification_delay, suggested_packets)| CreateBar { id, notification_delay, suggested_packets },
    )
}

fn s_nssai() -> impl Strategy<Value = SNssai> {
    (any::<u8>(), of(0_u32..0xff_ffff)).prop_map(|(sst, sd)| SNssai { sst, sd })
}

pub fn establishment_request() -> impl Strategy<Value = SessionEstablishmentRequest<'static>> {
    (
        (node_id(), fseid(), vec(create_pdr(), 1..4), vec(create_far(), 1..4)),
        (vec(create_urr(), 0..3), vec(create_qer(), 0..3), vec(create_bar(), 0..2)),
        (of((0u8..8).prop_map(PdnType)), name(), any::<Option<u32>>(), of(s_nssai()), name()),
    )
        .prop_map(
            |(
                (node_id, cp_fseid, create_pdrs, create_fars),
                (create_urrs, create_qers, create_bars),
                (pdn_type, apn_dnn, inactivity_timer, s_nssai, user),
            )| SessionEstablishmentRequest {
                node_id,
                cp_fseid,
                create_pdrs,
                create_fars,
                create_urrs,
                create_qers,
                create_bars,
                pdn_type,
                apn_dnn,
                inactivity_timer,
                s_nssai,
                // An empty one is none.
                user_id: user.filter(|octets| !octets.is_empty()).map(UserId),
            },
        )
}

fn created_pdr() -> impl Strategy<Value = CreatedPdr> {
    (pdr_id(), of(fteid()), vec(ue_ip(), 0..3)).prop_map(|(id, local_fteid, ue_ips)| CreatedPdr {
        id,
        local_fteid,
        ue_ips,
    })
}

pub fn establishment_response() -> impl Strategy<Value = SessionEstablishmentResponse> {
    (node_id(), cause(), any::<Option<u16>>(), fseid(), vec(created_pdr(), 0..3), of(rule())).prop_map(
        |(node_id, cause, offending_ie, up_fseid, created_pdrs, failed_rule)| SessionEstablishmentResponse {
            node_id,
            cause,
            offending_ie,
            up_fseid: cause.is_success().then_some(up_fseid),
            created_pdrs,
            failed_rule,
        },
    )
}

pub fn modification_request() -> impl Strategy<Value = SessionModificationRequest<'static>> {
    (
        (of(fseid()), of(node_id()), flags(), vec(urr_id(), 0..3), any::<Option<u32>>()),
        (
            vec(pdr_id(), 0..3),
            vec(far_id(), 0..3),
            vec(urr_id(), 0..3),
            vec(qer_id(), 0..3),
            vec(bar_id(), 0..3),
        ),
        (
            vec(create_pdr(), 0..2),
            vec(create_far(), 0..2),
            vec(create_urr(), 0..2),
            vec(create_qer(), 0..2),
            vec(create_bar(), 0..2),
        ),
        (
            vec(update_pdr(), 0..2),
            vec(update_far(), 0..2),
            vec(update_urr(), 0..2),
            vec(update_qer(), 0..2),
            vec(create_bar(), 0..2),
        ),
    )
        .prop_map(|(own, remove, create, update)| {
            let (cp_fseid, node_id, flags, query_urrs, inactivity_timer) = own;
            let (remove_pdrs, remove_fars, remove_urrs, remove_qers, remove_bars) = remove;
            let (create_pdrs, create_fars, create_urrs, create_qers, create_bars) = create;
            let (update_pdrs, update_fars, update_urrs, update_qers, update_bars) = update;
            SessionModificationRequest {
                cp_fseid,
                node_id,
                remove_pdrs,
                remove_fars,
                remove_urrs,
                remove_qers,
                remove_bars,
                create_pdrs,
                create_fars,
                create_urrs,
                create_qers,
                create_bars,
                update_pdrs,
                update_fars,
                update_urrs,
                update_qers,
                update_bars,
                flags,
                query_urrs,
                inactivity_timer,
            }
        })
}

fn seconds() -> impl Strategy<Value = Option<NtpSeconds>> {
    of(any::<u32>().prop_map(NtpSeconds))
}

fn detection() -> impl Strategy<Value = ApplicationDetection> {
    (text(), of(text()), of((0..8u8, text()))).prop_map(|(application_id, instance, flow)| {
        let flow = flow.map(|(direction, description)| FlowInformation {
            direction: FlowDirection(direction),
            description: description.into(),
        });
        let instance = instance.filter(|instance| !instance.is_empty()).map(Into::into);
        ApplicationDetection { application_id: application_id.into(), instance, flow }
    })
}

fn usage_report() -> impl Strategy<Value = UsageReport> {
    (
        (urr_id(), any::<u32>(), 0u32..1 << 24, any::<Option<[Option<u64>; 6]>>(), any::<Option<u32>>()),
        (seconds(), seconds(), seconds(), seconds(), of(detection())),
    )
        .prop_map(
            |(
                (urr, sequence, trigger, volume, duration),
                (start, end, first_packet, last_packet, application),
            )| {
                let volume = volume.map(
                    |[total, uplink, downlink, total_packets, uplink_packets, downlink_packets]| {
                        VolumeMeasurement {
                            total,
                            uplink,
                            downlink,
                            total_packets,
                            uplink_packets,
                            downlink_packets,
                        }
                    },
                );
                UsageReport {
                    urr,
                    sequence,
                    trigger: UsageReportTrigger(trigger),
                    start,
                    end,
                    volume,
                    duration,
                    first_packet,
                    last_packet,
                    application,
                }
            },
        )
}

pub fn modification_response() -> impl Strategy<Value = SessionModificationResponse> {
    (cause(), any::<Option<u16>>(), vec(created_pdr(), 0..3), vec(usage_report(), 0..3), of(rule())).prop_map(
        |(cause, offending_ie, created_pdrs, usage_reports, failed_rule)| SessionModificationResponse {
            cause,
            offending_ie,
            created_pdrs,
            usage_reports,
            failed_rule,
        },
    )
}

pub fn deletion_request() -> impl Strategy<Value = SessionDeletionRequest> {
    of(fseid()).prop_map(|cp_fseid| SessionDeletionRequest { cp_fseid })
}

pub fn deletion_response() -> impl Strategy<Value = SessionDeletionResponse> {
    (cause(), any::<Option<u16>>(), vec(usage_report(), 0..3)).prop_map(
        |(cause, offending_ie, usage_reports)| SessionDeletionResponse { cause, offending_ie, usage_reports },
    )
}

pub fn report_request() -> impl Strategy<Value = SessionReportRequest> {
    let service = of((of((0u8..64).prop_map(|value| Dscp::new(value).unwrap())), of(qfi())));
    let downlink = (vec(pdr_id(), 1..3), service);
    (
        of(downlink.prop_map(|(pdrs, service)| DownlinkDataReport { pdrs, service })),
        vec(usage_report(), 0..3),
        vec(fteid(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(downlink_data, usage_reports, error_indications, inactivity)| SessionReportRequest {
            downlink_data,
            usage_reports,
            error_indications,
            inactivity,
        })
}

pub fn report_response() -> impl Strategy<Value = SessionReportResponse> {
    (cause(), any::<Option<u16>>(), any::<bool>()).prop_map(|(cause, offending_ie, drop_buffered)| {
        SessionReportResponse { cause, offending_ie, drop_buffered }
    })
}

fn recovery() -> impl Strategy<Value = RecoveryTimeStamp> {
    any::<u32>().prop_map(RecoveryTimeStamp)
}

fn up_features() -> impl Strategy<Value = Option<UpFunctionFeatures>> {
    of(any::<u64>().prop_map(UpFunctionFeatures))
}

fn cp_features() -> impl Strategy<Value = Option<CpFunctionFeatures>> {
    of(any::<u64>().prop_map(CpFunctionFeatures))
}

fn gtpu_peer() -> impl Strategy<Value = RemoteGtpuPeer<'static>> {
    (any::<Option<Ipv4Addr>>(), any::<Option<Ipv6Addr>>(), of(interface()), name()).prop_map(
        |(ipv4, ipv6, destination_interface, network_instance)| RemoteGtpuPeer {
            ipv4,
            ipv6,
            destination_interface,
            network_instance,
        },
    )
}

fn pfds() -> impl Strategy<Value = PfdContents<'static>> {
    (vec(text(), 0..3), vec(text(), 0..3), vec((text(), of(text())), 0..3), of(text())).prop_map(
        |(flow_descriptions, urls, domain_names, custom)| PfdContents {
            flow_descriptions,
            urls,
            domain_names,
            custom,
        },
    )
}

pub fn node_message() -> impl Strategy<Value = Message<'static>> {
    let source = any::<(Option<Ipv4Addr>, Option<Ipv6Addr>, Option<u8>)>()
        .prop_map(|(ipv4, ipv6, prefix_length)| SourceIpAddress { ipv4, ipv6, prefix_length });
    let offending = any::<Option<u16>>();
    prop_oneof![
        (recovery(), of(source)).prop_map(|(recovery, source)| HeartbeatRequest { recovery, source }.into()),
        recovery().prop_map(|recovery| HeartbeatResponse { recovery }.into()),
        vec((text(), vec(pfds(), 0..3)), 0..3).prop_map(|applications| {
            let applications = applications
                .into_iter()
                .map(|(application_id, pfds)| ApplicationPfds { application_id, pfds });
            PfdManagementRequest { applications: applications.collect() }.into()
        }),
        (cause(), offending.clone()).prop_map(|(cause, offending_ie)| PfdManagementResponse {
            cause,
            offending_ie
        }
        .into()),
        (node_id(), recovery(), up_features(), cp_features(), any::<bool>()).prop_map(
            |(node_id, recovery, up_features, cp_features, session_retention)| AssociationSetupRequest {
                node_id,
                recovery,
                up_features,
                cp_features,
                session_retention,
            }
            .into()
        ),
        (node_id(), cause(), recovery(), up_features(), cp_features()).prop_map(
            |(node_id, cause, recovery, up_features, cp_features)| AssociationSetupResponse {
                node_id,
                cause,
                recovery,
                up_features,
                cp_features,
            }
            .into()
        ),
        (node_id(), any::<(bool, bool, Option<u8>)>(), up_features(), cp_features()).prop_map(
            |(node_id, (release_requested, reports_usage, period), up_features, cp_features)| {
                AssociationUpdateRequest {
                    node_id,
                    release_requested,
                    reports_usage,
                    graceful_release: period.map(GracefulReleasePeriod),
                    up_features,
                    cp_features,
                }
                .into()
            }
        ),
        (node_id(), cause()).prop_map(|(node_id, cause)| AssociationUpdateResponse { node_id, cause }.into()),
        node_id().prop_map(|node_id| AssociationReleaseRequest { node_id }.into()),
        (node_id(), cause())
            .prop_map(|(node_id, cause)| AssociationReleaseResponse { node_id, cause }.into()),
        (node_id(), vec(gtpu_peer(), 0..3), vec(gtpu_peer(), 0..3)).prop_map(
            |(node_id, failed_paths, recovered_paths)| NodeReportRequest {
                node_id,
                failed_paths,
                recovered_paths
            }
            .into()
        ),
        (node_id(), cause(), offending.clone()).prop_map(|(node_id, cause, offending_ie)| {
            NodeReportResponse { node_id, cause, offending_ie }.into()
        }),
        (node_id(), vec(text(), 0..3)).prop_map(|(node_id, fq_csids)| SessionSetDeletionRequest {
            node_id,
            fq_csids
        }
        .into()),
        (node_id(), cause(), offending).prop_map(|(node_id, cause, offending_ie)| {
            SessionSetDeletionResponse { node_id, cause, offending_ie }.into()
        }),
        Just(Message::VersionNotSupported),
    ]
}

pub fn session_message() -> impl Strategy<Value = Message<'static>> {
    prop_oneof![
        establishment_request().prop_map(Message::from),
        establishment_response().prop_map(Message::from),
        modification_request().prop_map(Message::from),
        modification_response().prop_map(Message::from),
        deletion_request().prop_map(Message::from),
        deletion_response().prop_map(Message::from),
        report_request().prop_map(Message::from),
        report_response().prop_map(Message::from),
    ]
}

pub fn message() -> impl Strategy<Value = Message<'static>> {
    prop_oneof![node_message(), session_message()]
}
