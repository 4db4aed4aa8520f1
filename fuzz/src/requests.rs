//! Session requests made of a fuzzer's choices: mostly sensible ones with odd parts, so that many are accepted.
//!
//! IDs come from small sets, so that rules meet, and so do addresses and TEIDs, so that sessions compete for them.

use crate::Input;
use packet::{Qfi, Teid};
use pfcp::ie::{
    ApplyAction, BitRate, FSeid, FTeid, GateStatus, Interface, MeasurementInformation, MeasurementMethod,
    NodeId, OuterHeaderCreation, OuterHeaderRemoval, PdnType, PolicyId, RedirectAddressType,
    RedirectInformation, ReportingTriggers, SNssai, SdfFilter, SmReqFlags, UeIpAddress, VolumeLimit,
};
use pfcp::message::*;
use pfcp::{BarId, FarId, PdrId, QerId, Seid, UrrId};
use session::PrefixLength;
use session::applications::Applications;
use session::config::{Config, Instance, Ipv4Range, LocalAddresses, Policy, PoolConfig, Slice};
use session::network_instance::Name;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The UPF's address towards gNBs.
pub const N3: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 1);
/// The same in IPv6.
pub const N3_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
/// A gNB.
pub const GNB: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 77);
/// Another gNB.
pub const GNB_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 0x77);

/// The slice of sessions with every other group of four SEIDs.
const SLICE: SNssai = SNssai { sst: 1, sd: None };

/// A node with little of everything, so that a script of a few hundred bytes reaches its bounds.
pub fn config() -> Config {
    let mut applications = Applications::default();
    applications.inspects([&b"video"[..], b"chat"]);
    let mut config = Config {
        applications,
        n3: LocalAddresses { ipv4: Some(N3), ipv6: Some(N3_IPV6) },
        policies: [("direct", None), ("fixed", Some(1))]
            .map(|(id, instance)| Policy { id: id.as_bytes().into(), in_force: true, instance })
            .into(),
        instances: vec![Instance {
            name: Name::new(b"second"),
            n3: LocalAddresses { ipv4: Some([192, 168, 11, 1].into()), ipv6: None },
            n9: LocalAddresses::default(),
        }],
        pools: vec![
            PoolConfig {
                names: vec![Name::new(b"internet")],
                ipv4: vec![Ipv4Range::Net(net("10.45.0.0/24"))],
                ipv6: vec![net("2001:db8:45::/58")],
                excluded: vec![[10, 45, 0, 1].into()],
                ..PoolConfig::default()
            },
            PoolConfig {
                names: vec![Name::new(b"home")],
                ipv6: vec![net("2001:db8:56::/52")],
                ipv6_length: PrefixLength::new(56).unwrap_or_default(),
                ..PoolConfig::default()
            },
            PoolConfig {
                names: vec![Name::new(b"ims")],
                ipv4: vec![Ipv4Range::Net(net("10.46.0.0/30"))],
                ..PoolConfig::default()
            },
        ],
        own: vec![[192, 168, 99, 1].into(), crate::witness::ADDRESS.into()],
        slices: vec![Slice { s_nssai: Some(SLICE), names: Vec::new() }],
        seed: 7,
        ..Config::default()
    };
    config.limits.sessions = 24;
    config.limits.sessions_per_peer = 20;
    config.limits.pdrs = 6;
    config.limits.fars = 6;
    config.limits.qers = 4;
    config.limits.urrs = 4;
    config.limits.bars = 2;
    config.limits.filters = 3;
    config.limits.qfis = 3;
    config.limits.framed_routes = 2;
    config.limits.buffered_packets = 8;
    config
}

/// A network that is written right.
fn net<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("a network")
}

/// Ids from small sets: 1 to 4, and now and then any octet.
fn id(input: &mut Input<'_>) -> u8 {
    match input.u8() {
        0xff => input.u8(),
        octet => 1 + octet % 4,
    }
}

/// An IPv4 address of a UE: in the pools, beside them, ours, or any.
pub fn ue_ipv4(input: &mut Input<'_>) -> Ipv4Addr {
    match input.below(6) {
        0..=2 => Ipv4Addr::new(10, 45, 0, input.u8()),
        3 => Ipv4Addr::new(172, 16, 0, input.u8() % 8),
        4 => input.pick(&[N3, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 46, 0, 1)]),
        _ => Ipv4Addr::from(input.u32()),
    }
}

/// An IPv6 address of a UE, likewise.
pub fn ue_ipv6(input: &mut Input<'_>) -> Ipv6Addr {
    let low = u16::from(input.u8());
    match input.below(5) {
        0 | 1 => Ipv6Addr::new(0x2001, 0xdb8, 0x45, low % 64, 0, 0, 0, low),
        // Links of eight UEs that may have a /56 each.
        2 => Ipv6Addr::new(0x2001, 0xdb8, 0x56, (low & 7) << 8 | low >> 6, 0, 0, 0, low),
        3 => Ipv6Addr::new(0x2001, 0xdb8, 0x99, low, 0, 0, 0, 1),
        _ => input.pick(&[N3_IPV6, Ipv6Addr::LOCALHOST, Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)]),
    }
}

fn ue_address(input: &mut Input<'_>) -> UeIpAddress {
    let mut address = UeIpAddress { is_destination: input.flag(), ..UeIpAddress::default() };
    match input.below(8) {
        0..=2 => address.choose_ipv4 = true,
        3 => (address.choose_ipv4, address.choose_ipv6) = (true, true),
        4 => address.choose_ipv6 = true,
        5 => address.ipv4 = Some(ue_ipv4(input)),
        6 => {
            address.ipv6 = Some(ue_ipv6(input));
            address.ipv6_delegation_bits = input.maybe(|_| 8);
        }
        _ => {
            address.ipv4 = input.maybe(ue_ipv4);
            address.ipv6 = input.maybe(ue_ipv6);
            address.choose_ipv4 = input.flag();
            address.choose_ipv6 = input.flag();
            address.ipv6_delegation_bits = input.maybe(|i| i.u8() % 20);
            address.ipv6_prefix_length = input.maybe(Input::u8);
        }
    }
    address
}

/// A TEID that an SMF chooses: one of a few, of a shape that ours have too, or any.
fn teid(input: &mut Input<'_>) -> Teid {
    Teid(match input.below(4) {
        0 | 1 => 0x100 + u32::from(input.u8() % 8),
        2 => 0x0700_0000 | u32::from(input.u16()),
        _ => input.u32(),
    })
}

fn fteid(input: &mut Input<'_>) -> FTeid {
    match input.below(6) {
        0..=2 => FTeid::Choose { ipv4: true, ipv6: false, id: None },
        3 => FTeid::Choose { ipv4: input.flag(), ipv6: input.flag(), id: input.maybe(|i| i.u8() % 3) },
        4 => FTeid::Given { teid: teid(input), ipv4: Some(N3), ipv6: None },
        _ => FTeid::Given { teid: teid(input), ipv4: input.maybe(|_| N3), ipv6: Some(N3_IPV6) },
    }
}

/// Flow descriptions as SMFs write them.
pub const FLOWS: [&[u8]; 12] = [
    b"permit out ip from any to assigned",
    b"permit out ip from any to any",
    b"permit out 17 from 10.9.0.0/16 53,5060-5070 to assigned",
    b"permit out 6 from any 80,443 to assigned 1024-65535",
    b"permit in ip from assigned to 198.51.100.0/24",
    b"permit out ip from 2001:db8:9::/48 to assigned",
    b"permit out 58 from ff02::2/128 to assigned",
    b"permit out 1 from any to 10.45.0.0/24",
    b"",
    b"permit out ip from any to assigned\0",
    b"deny out ip from any to any",
    b"permit out ip from !10.0.0.0/8 to assigned",
];

fn filter<'a>(input: &mut Input<'a>) -> SdfFilter<'a> {
    let flow_description = input.maybe(|input| match input.u8() {
        0xff => input.counted(),
        at => FLOWS[usize::from(at) % FLOWS.len()],
    });
    let mut filter = SdfFilter { flow_description, ..SdfFilter::default() };
    if input.one_in(4) {
        filter.tos_traffic_class = input.maybe(|i| [i.u8(), i.u8()]);
        filter.security_parameter_index = input.maybe(Input::u32);
        filter.flow_label = input.maybe(|i| i.u32() & 0xf_ffff);
    }
    filter.filter_id = input.maybe(|i| u32::from(i.u8() % 4));
    filter
}

fn instance<'a>(input: &mut Input<'a>) -> &'a [u8] {
    match input.below(6) {
        0 => b"internet",
        1 => b"\x08internet",
        2 => b"second",
        3 => b"ims",
        4 => b"",
        _ => input.counted(),
    }
}

fn route<'a>(input: &mut Input<'a>) -> &'a [u8] {
    match input.below(6) {
        0 => b"192.168.50.0/24 0.0.0.0 1",
        1 => b"192.168.50.128/25",
        2 => b"2001:db8:50::/56 :: 1",
        3 => b"192.168.51.7",
        4 => b"10.45.0.0/28",
        _ => input.counted(),
    }
}

fn interface(input: &mut Input<'_>) -> Interface {
    match input.u8() {
        0xff => Interface(input.u8() & 0x0f),
        octet => [Interface::ACCESS, Interface::CORE, Interface::SGI_N6_LAN, Interface::CP_FUNCTION]
            [usize::from(octet) % 4],
    }
}

/// A PDI from this interface with nothing in it.
pub const fn empty_pdi(source_interface: Interface) -> Pdi<'static> {
    Pdi {
        source_interface,
        local_fteid: None,
        network_instance: None,
        ue_ips: Vec::new(),
        sdf_filters: Vec::new(),
        qfis: Vec::new(),
        application_id: None,
        ethernet: false,
        framed_routes: Vec::new(),
        framed_ipv6_routes: Vec::new(),
        source_interface_type: None,
    }
}

fn pdi<'a>(input: &mut Input<'a>) -> Pdi<'a> {
    let mut pdi = empty_pdi(interface(input));
    pdi.local_fteid = input.maybe(fteid);
    pdi.ue_ips = input.list(2, ue_address);
    pdi.sdf_filters = input.list(2, filter);
    if input.one_in(3) {
        pdi.network_instance = input.maybe(instance);
        pdi.qfis = input.list(3, |i| Qfi::from_wire(i.u8()));
        pdi.framed_routes = input.list(2, route);
        pdi.framed_ipv6_routes = input.list(1, route);
        pdi.application_id = if input.one_in(8) { Some(application(input)) } else { None };
        pdi.ethernet = input.one_in(16);
    }
    pdi
}

fn removal(input: &mut Input<'_>) -> OuterHeaderRemoval {
    OuterHeaderRemoval { description: input.u8() % 8, extension_header_deletion: input.maybe(Input::u8) }
}

fn create_pdr<'a>(input: &mut Input<'a>) -> CreatePdr<'a> {
    CreatePdr {
        id: PdrId(id(input).into()),
        precedence: input.pick(&[255, 100, 0, u32::MAX]),
        pdi: pdi(input),
        outer_header_removal: input.maybe(removal),
        far: input.maybe(|i| FarId(id(i).into())),
        urrs: input.list(2, |i| UrrId(id(i).into())),
        qers: input.list(2, |i| QerId(id(i).into())),
    }
}

fn update_pdr<'a>(input: &mut Input<'a>) -> UpdatePdr<'a> {
    UpdatePdr {
        id: PdrId(id(input).into()),
        outer_header_removal: input.maybe(removal),
        precedence: input.maybe(Input::u32),
        pdi: input.maybe(pdi),
        far: input.maybe(|i| FarId(id(i).into())),
        urrs: input.list(2, |i| UrrId(id(i).into())),
        qers: input.list(2, |i| QerId(id(i).into())),
    }
}

fn outer_header(input: &mut Input<'_>) -> OuterHeaderCreation {
    // A session's far end: what is put into a tunnel shows by its TEID whose it was.
    let own = Teid(match input.u8() {
        0xff => input.u32(),
        octet => u32::from(octet),
    });
    let teid = Some(own);
    match input.below(8) {
        0..=3 => OuterHeaderCreation {
            description: OuterHeaderCreation::GTPU_IPV4,
            teid,
            ipv4: Some(GNB),
            ..OuterHeaderCreation::default()
        },
        4 | 5 => OuterHeaderCreation {
            description: OuterHeaderCreation::GTPU_IPV6,
            teid,
            ipv6: Some(GNB_IPV6),
            ..OuterHeaderCreation::default()
        },
        _ => OuterHeaderCreation {
            description: input.u16(),
            teid: input.maybe(|_| own),
            ipv4: input.maybe(|i| i.pick(&[GNB, N3, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST])),
            ipv6: input.maybe(|i| i.pick(&[GNB_IPV6, N3_IPV6, Ipv6Addr::UNSPECIFIED])),
            port: input.maybe(Input::u16),
        },
    }
}

fn action(input: &mut Input<'_>) -> ApplyAction {
    ApplyAction(match input.below(8) {
        0..=3 => ApplyAction::FORW,
        4 => ApplyAction::BUFF | ApplyAction::NOCP,
        5 => ApplyAction::BUFF,
        6 => ApplyAction::DROP,
        _ => input.u16(),
    })
}

/// The number in rules of the policy by which packets are not translated.
pub const DIRECT: u16 = 1;
/// And of the one by which they get addresses of their own.
pub const FIXED: u16 = 2;

/// One that is configured, mostly.
fn policy<'a>(input: &mut Input<'a>) -> Option<PolicyId<'a>> {
    let names: [&[u8]; 4] = [b"direct", b"fixed", b"", b"nobody"];
    input.one_in(8).then(|| PolicyId(names[usize::from(input.u8() % 4)]))
}

fn application<'a>(input: &mut Input<'a>) -> &'a [u8] {
    match input.below(4) {
        0 => b"video",
        1 => b"chat",
        2 => b"",
        _ => input.counted(),
    }
}

fn redirect<'a>(input: &mut Input<'a>) -> Option<RedirectInformation<'a>> {
    let kind = RedirectAddressType(if input.one_in(32) { input.u8() & 15 } else { return None });
    let address = if input.one_in(4) { input.counted() } else { b"http://portal.example/" };
    Some(RedirectInformation { kind, address, other: b"" })
}

fn forwarding<'a>(input: &mut Input<'a>) -> ForwardingParameters<'a> {
    ForwardingParameters {
        destination_interface: interface(input),
        network_instance: if input.one_in(4) { Some(instance(input)) } else { None },
        outer_header_creation: input.maybe(outer_header),
        transport_level_marking: if input.one_in(4) { Some([input.u8(), input.u8()]) } else { None },
        redirect: redirect(input),
        forwarding_policy: policy(input),
    }
}

fn create_far<'a>(input: &mut Input<'a>) -> CreateFar<'a> {
    CreateFar {
        id: FarId(id(input).into()),
        apply_action: action(input),
        forwarding: input.maybe(forwarding),
        bar: if input.one_in(4) { Some(BarId(id(input))) } else { None },
    }
}

fn update_far<'a>(input: &mut Input<'a>) -> UpdateFar<'a> {
    UpdateFar {
        id: FarId(id(input).into()),
        apply_action: input.maybe(action),
        forwarding: input.maybe(|input| UpdateForwardingParameters {
            destination_interface: input.maybe(interface),
            network_instance: if input.one_in(4) { Some(instance(input)) } else { None },
            outer_header_creation: input.maybe(outer_header),
            transport_level_marking: if input.one_in(4) { Some([input.u8(), input.u8()]) } else { None },
            flags: flags(input),
            redirect: redirect(input),
            forwarding_policy: policy(input),
        }),
        bar: if input.one_in(4) { Some(BarId(id(input))) } else { None },
    }
}

fn flags(input: &mut Input<'_>) -> SmReqFlags {
    let octet = input.u8();
    SmReqFlags {
        drop_buffered: octet & 1 != 0,
        send_end_marker: octet & 2 != 0,
        query_all_urrs: octet & 4 != 0,
    }
}

fn rate(input: &mut Input<'_>) -> BitRate {
    let mut kbps = || match input.u8() {
        0xff => input.u64() & BitRate::MAX_KBPS,
        octet => u64::from(octet) * 100,
    };
    BitRate { uplink_kbps: kbps(), downlink_kbps: kbps() }
}

fn qer_parameters(input: &mut Input<'_>) -> QerParameters {
    QerParameters {
        mbr: input.maybe(rate),
        gbr: if input.one_in(4) { Some(rate(input)) } else { None },
        qfi: input.maybe(|i| Qfi::from_wire(i.u8())),
        reflective: if input.one_in(4) { Some(input.flag()) } else { None },
        paging_policy: if input.one_in(4) { Some(input.u8()) } else { None },
        ..QerParameters::default()
    }
}

fn gate(input: &mut Input<'_>) -> GateStatus {
    let octet = input.u8();
    GateStatus { uplink_closed: octet & 3 == 3, downlink_closed: octet & 12 == 12 }
}

fn volume(input: &mut Input<'_>) -> VolumeLimit {
    let mut limit = || input.maybe(|i| if i.one_in(16) { i.u64() } else { u64::from(i.u8()) * 16 });
    VolumeLimit { total: limit(), uplink: limit(), downlink: limit() }
}

fn seconds(input: &mut Input<'_>) -> u32 {
    match input.u8() {
        0xff => input.u32(),
        octet => u32::from(octet) % 20,
    }
}

fn triggers(input: &mut Input<'_>) -> ReportingTriggers {
    ReportingTriggers(u32::from(input.u16()))
}

fn urr_parameters(input: &mut Input<'_>) -> UrrParameters {
    let mut parameters = UrrParameters {
        volume_threshold: input.maybe(volume),
        volume_quota: input.maybe(volume),
        period: input.maybe(seconds),
        ..UrrParameters::default()
    };
    if input.one_in(3) {
        parameters.time_threshold = input.maybe(seconds);
        parameters.time_quota = input.maybe(seconds);
        parameters.quota_holding_time = input.maybe(seconds);
        parameters.quota_validity_time = input.maybe(seconds);
        parameters.inactivity_detection_time = input.maybe(seconds);
        parameters.linked_urrs = input.list(2, |i| UrrId(id(i).into()));
        parameters.information = input.maybe(|input| {
            let octet = input.u8();
            MeasurementInformation {
                before_qos: octet & 1 != 0,
                inactive: octet & 2 != 0,
                reduced_detection: octet & 4 != 0,
                immediate_start: octet & 8 != 0,
                packets: octet & 16 != 0,
            }
        });
    }
    parameters
}

fn method(input: &mut Input<'_>) -> MeasurementMethod {
    let octet = input.u8();
    MeasurementMethod { volume: octet & 1 == 0, duration: octet & 2 != 0, event: octet & 4 != 0 }
}

fn create_urr(input: &mut Input<'_>) -> CreateUrr {
    CreateUrr {
        id: UrrId(id(input).into()),
        method: method(input),
        triggers: triggers(input),
        parameters: urr_parameters(input),
    }
}

fn create_qer(input: &mut Input<'_>) -> CreateQer {
    CreateQer { id: QerId(id(input).into()), gate: gate(input), parameters: qer_parameters(input) }
}

fn create_bar(input: &mut Input<'_>) -> CreateBar {
    CreateBar {
        id: BarId(id(input)),
        notification_delay: input.maybe(Input::u8),
        suggested_packets: input.maybe(Input::u8),
    }
}

/// The session at its SMF.
fn cp_fseid(input: &mut Input<'_>) -> FSeid {
    FSeid { seid: Seid(u64::from(input.u8())), ipv4: Some([127, 0, 0, 1].into()), ipv6: None }
}

/// A Session Establishment Request: the everyday one, the everyday one with extras, or any rules at all.
pub fn establishment<'a>(input: &mut Input<'a>) -> SessionEstablishmentRequest<'a> {
    let mut request = SessionEstablishmentRequest {
        node_id: NodeId::Ip([127, 0, 0, 1].into()),
        cp_fseid: cp_fseid(input),
        create_pdrs: Vec::new(),
        create_fars: Vec::new(),
        create_urrs: Vec::new(),
        create_qers: Vec::new(),
        create_bars: Vec::new(),
        pdn_type: Some(PdnType::IPV4),
        apn_dnn: None,
        inactivity_timer: None,
        s_nssai: None,
        user_id: None,
    };
    request.s_nssai = (request.cp_fseid.seid.0 & 4 != 0).then_some(SLICE);
    let shape = input.below(4);
    if shape < 3 {
        everyday(input, &mut request);
    }
    if shape > 0 {
        request.create_pdrs.extend(input.list(3, create_pdr));
        request.create_fars.extend(input.list(2, create_far));
        request.create_urrs.extend(input.list(2, create_urr));
        request.create_qers.extend(input.list(2, create_qer));
        request.create_bars.extend(input.list(2, create_bar));
        request.apn_dnn = input.maybe(instance);
        request.inactivity_timer = input.maybe(seconds);
        if input.one_in(8) {
            request.pdn_type = input.maybe(|i| PdnType(i.u8() & 7));
        }
    }
    request
}

/// A session of one PDR, whose packets are forwarded to the data network.
pub fn with_pdi(pdi: Pdi<'_>) -> SessionEstablishmentRequest<'_> {
    let mut request = establishment(&mut Input::new(&[]));
    request.create_pdrs = vec![CreatePdr { pdi, ..request.create_pdrs.swap_remove(0) }];
    request
}

/// Two PDRs, two FARs, a QER and a URR; tunnel and address are chosen here.
fn everyday(input: &mut Input<'_>, request: &mut SessionEstablishmentRequest<'_>) {
    let octet = input.u8();
    let (qers, urrs) = (vec![QerId(1)], vec![UrrId(1)]);
    let pdr = |id, pdi, far, removal: bool| CreatePdr {
        id: PdrId(id),
        precedence: 255,
        pdi,
        outer_header_removal: removal
            .then_some(OuterHeaderRemoval { description: 0, extension_header_deletion: None }),
        far: Some(FarId(far)),
        urrs: urrs.clone(),
        qers: qers.clone(),
    };
    let mut up = empty_pdi(Interface::ACCESS);
    up.local_fteid = Some(FTeid::Choose { ipv4: true, ipv6: octet & 1 != 0, id: None });
    let mut down = empty_pdi(Interface::CORE);
    let families = octet >> 1 & 3;
    down.ue_ips = vec![UeIpAddress {
        choose_ipv4: families != 1,
        choose_ipv6: families & 1 != 0,
        is_destination: true,
        ..UeIpAddress::default()
    }];
    request.create_pdrs = vec![pdr(1, up, 1, true), pdr(2, down, 2, false)];
    let forward = |to, header| ForwardingParameters {
        destination_interface: to,
        network_instance: None,
        outer_header_creation: header,
        transport_level_marking: None,
        redirect: None,
        forwarding_policy: None,
    };
    let down_action = match octet >> 3 & 3 {
        0 => ApplyAction::BUFF | ApplyAction::NOCP,
        _ => ApplyAction::FORW,
    };
    request.create_fars = vec![
        CreateFar {
            id: FarId(1),
            apply_action: ApplyAction(ApplyAction::FORW),
            forwarding: Some(forward(Interface::CORE, None)),
            bar: None,
        },
        CreateFar {
            id: FarId(2),
            apply_action: ApplyAction(down_action),
            forwarding: Some(forward(Interface::ACCESS, Some(outer_header(input)))),
            bar: None,
        },
    ];
    request.create_qers =
        vec![CreateQer { id: QerId(1), gate: GateStatus::default(), parameters: QerParameters::default() }];
    request.create_urrs = vec![CreateUrr {
        id: UrrId(1),
        method: MeasurementMethod { volume: true, ..MeasurementMethod::default() },
        triggers: ReportingTriggers(ReportingTriggers::VOLTH),
        parameters: UrrParameters {
            volume_threshold: Some(VolumeLimit { total: Some(600), ..VolumeLimit::default() }),
            ..UrrParameters::default()
        },
    }];
}

/// A Session Modification Request.
pub fn modification<'a>(input: &mut Input<'a>) -> SessionModificationRequest<'a> {
    let mut request = SessionModificationRequest::default();
    let parts = input.u16();
    let has = |bit: u32| parts >> bit & 1 != 0;
    if has(0) {
        request.update_fars = input.list(2, update_far);
    }
    if has(1) {
        request.update_pdrs = input.list(2, update_pdr);
    }
    if has(2) {
        request.create_pdrs = input.list(2, create_pdr);
        request.create_fars = input.list(2, create_far);
    }
    if has(3) {
        request.remove_pdrs = input.list(2, |i| PdrId(id(i).into()));
    }
    if has(4) {
        request.remove_fars = input.list(2, |i| FarId(id(i).into()));
    }
    if has(5) {
        request.remove_qers = input.list(2, |i| QerId(id(i).into()));
        request.remove_urrs = input.list(2, |i| UrrId(id(i).into()));
        request.remove_bars = input.list(2, |i| BarId(id(i)));
    }
    if has(6) {
        request.create_qers = input.list(2, create_qer);
        request.create_urrs = input.list(2, create_urr);
        request.create_bars = input.list(2, create_bar);
    }
    if has(7) {
        request.update_qers = input.list(2, |input| UpdateQer {
            id: QerId(id(input).into()),
            gate: input.maybe(gate),
            parameters: qer_parameters(input),
        });
        request.update_urrs = input.list(2, |input| UpdateUrr {
            id: UrrId(id(input).into()),
            method: input.maybe(method),
            triggers: input.maybe(triggers),
            parameters: urr_parameters(input),
        });
        request.update_bars = input.list(2, create_bar);
    }
    if has(8) {
        request.query_urrs = input.list(3, |i| UrrId(id(i).into()));
        request.flags = flags(input);
    }
    if has(9) {
        request.inactivity_timer = input.maybe(seconds);
        request.cp_fseid = input.maybe(cp_fseid);
    }
    request
}
