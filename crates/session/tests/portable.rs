//! Records that leave the process: their octets, and those that are refused.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use ipnet::{Ipv4Net, Ipv6Net};
use packet::{Qfi, Teid};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{BarId, FarId, QerId, Seid, UrrId};
use session::applications::Applications;
use session::config::{Config, Limits, Policy, Slice};
use session::model::Model;
use session::network_instance::Name;
use session::packed::{Pack, freeze};
use session::portable::{Header, Restore, Unportable, VERSION};
use session::rules::Prefix;
use session::sdf::Side;
use session::store::{Counts, Session, Store};
use session::{Epoch, TeidKey};
use std::fmt::Write;

const SLICE: SNssai = SNssai { sst: 1, sd: Some(0x01_0203) };

/// A node with something in every list that a header has.
fn node(epoch: Epoch) -> Config {
    let policy = Policy { id: b"direct"[..].into(), in_force: true, instance: None };
    let slice = Slice { s_nssai: Some(SLICE), names: vec![Name::new(b"internet")] };
    let mut applications = Applications::default();
    applications.inspects([&b"chat"[..], b"video"]);
    Config {
        applications,
        policies: vec![policy],
        slices: vec![Slice { names: vec![Name::new(b"ims")], s_nssai: None }, slice],
        epoch,
        teids: TeidKey::new([0x0123_4567_89ab_cdef, 0xfeed_f00d_d00d_feed, 0x0bad_cafe_5eed_5eed, 0x7777]),
        ..config()
    }
}

/// A session with something in every field, and every kind of what there are kinds of.
fn rich() -> SessionEstablishmentRequest<'static> {
    let filter = |text: &'static str, id| SdfFilter { filter_id: id, ..sdf(text) };
    let voice = SdfFilter {
        tos_traffic_class: Some([0xb8, 0xfc]),
        security_parameter_index: Some(0x1234_5678),
        flow_label: Some(0xa_bcde),
        ..filter("permit out 17 from 9.9.9.0/24 53,6000-7000 to assigned 1000", Some(7))
    };
    let both = UeIpAddress {
        ipv4: Some([10, 45, 0, 9].into()),
        ipv6: Some("2001:db8:45:9::".parse().unwrap()),
        ..UeIpAddress::default()
    };
    let mut up = uplink(1, 1);
    up.pdi = Pdi {
        local_fteid: Some(FTeid::Choose { ipv4: true, ipv6: false, id: Some(5) }),
        network_instance: Some(b"access.second"),
        qfis: vec![Qfi::from_wire(9)],
        sdf_filters: vec![voice, filter("", None)],
        ..up.pdi
    };
    (up.qers, up.urrs) = (vec![QerId(1)], vec![UrrId(1), UrrId(2)]);
    let mut down = downlink(2, 2);
    down.pdi = Pdi {
        ue_ips: vec![both],
        sdf_filters: vec![filter("permit out ip from 2001:db8:9::/48 to any", None)],
        framed_routes: vec![b"192.168.50.0/24"],
        framed_ipv6_routes: vec![b"2001:db8:f::/48"],
        application_id: Some(b"video"),
        ..down.pdi
    };
    let mut from_lan = downlink(3, 3);
    from_lan.pdi.source_interface = Interface::SGI_N6_LAN;
    let mut from_smf = uplink(4, 4);
    from_smf.pdi.source_interface = Interface::CP_FUNCTION;
    from_smf.pdi.local_fteid = Some(given(0xdad));

    let mut with_policy = to_core(1);
    let parameters = with_policy.forwarding.as_mut().unwrap();
    parameters.forwarding_policy = Some(PolicyId(b"direct"));
    parameters.transport_level_marking = Some([0x28, 0xfc]);
    parameters.redirect =
        Some(RedirectInformation { kind: RedirectAddressType::URL, address: b"http://portal/", other: b"" });
    parameters.network_instance = Some(b"access.second");
    let six = OuterHeaderCreation {
        description: OuterHeaderCreation::GTPU_IPV6,
        teid: Some(Teid(0x66)),
        ipv6: Some("2001:db8:3::77".parse().unwrap()),
        ..OuterHeaderCreation::default()
    };
    let udp = OuterHeaderCreation { description: OuterHeaderCreation::UDP_IPV4, port: Some(9), ..gnb(0) };
    let waits = |id, action, to, header| CreateFar {
        bar: Some(BarId(1)),
        ..far(id, action, Some(forwarding(to, Some(header))))
    };
    let quota = VolumeLimit { total: Some(1 << 40), uplink: Some(1 << 20), downlink: Some(1 << 30) };
    let mut limited = urr(2, 100);
    limited.method.duration = true;
    limited.triggers = ReportingTriggers(u32::MAX);
    limited.parameters = UrrParameters {
        period: Some(10),
        volume_quota: Some(quota),
        time_threshold: Some(20),
        time_quota: Some(3600),
        quota_holding_time: Some(30),
        quota_validity_time: Some(40_000),
        information: Some(MeasurementInformation {
            before_qos: true,
            inactive: true,
            ..MeasurementInformation::default()
        }),
        ..limited.parameters
    };
    let mut marked = qer(1, 100_000, 9);
    marked.gate.downlink_closed = true;
    marked.parameters.gbr = Some(BitRate { uplink_kbps: 64, downlink_kbps: 128 });
    marked.parameters.reflective = Some(true);
    marked.parameters.paging_policy = Some(3);
    SessionEstablishmentRequest {
        cp_fseid: FSeid {
            seid: Seid(0xc0ffee),
            ipv4: Some([127, 0, 0, 1].into()),
            ipv6: Some("2001:db8::1".parse().unwrap()),
        },
        create_pdrs: vec![up, down, from_lan, from_smf],
        create_fars: vec![
            with_policy,
            to_gnb(2, 0x77),
            waits(3, ApplyAction::BUFF | ApplyAction::NOCP, Interface::ACCESS, six),
            far(4, ApplyAction::DROP, Some(forwarding(Interface::SGI_N6_LAN, Some(gnb(0))))),
            waits(5, ApplyAction::BUFF, Interface::CP_FUNCTION, udp),
            far(6, ApplyAction::DROP, None),
        ],
        create_qers: vec![marked, qer(2, 0, 0)],
        create_urrs: vec![urr(1, 100 << 20), limited],
        create_bars: vec![CreateBar { notification_delay: Some(4), ..bar(1, Some(20)) }],
        apn_dnn: Some(b"internet"),
        inactivity_timer: Some(600),
        s_nssai: Some(SLICE),
        user_id: Some(UserId(&[0x01, 8, 0x09, 0x10, 0x10, 0x21, 0x43, 0x65, 0x87, 0xf9])),
        ..establish()
    }
}

/// A node with that session, which has made reports.
fn before() -> (Store, Seid) {
    let mut store = Store::new(node(Epoch::of(777))).unwrap();
    store.attach();
    let peer = store.attach();
    let seid = store.establish(&rich(), peer).unwrap().rules.seid;
    (0..300).for_each(|number| assert_eq!(store.next_sequence(seid, UrrId(2)), Some(number)));
    assert!(store.set_blocked(seid, UrrId(2), true).is_some());
    (store, seid)
}

/// Of a process that takes over.
fn next(header: &Header) -> Config {
    Config { teids: header.teids(), ..node(header.epoch().next()) }
}

fn hex(octets: &[u8]) -> String {
    let mut text = String::new();
    for line in octets.chunks(48) {
        line.iter().for_each(|octet| write!(text, "{octet:02x}").unwrap());
        text.push('\n');
    }
    text
}

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|digit| !digit.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
}

/// The version whose octets these are.
const OF: u16 = 4;

const HEADER: &str = "
04890601ef9bafcdf8acd19101edfdb780dd81fcf6fe01edbdb5f7e5dff2d60b00010d6163636573732e7365636f6e64
01066469726563740206000103696d73100101018384040108696e7465726e6574
";

const RECORD: &str = "
80808098b280809061eeff8306017f0000010120010db8000000000000000000000001010102ac0201ad1bf203270a01
0809101021436587f908696e7465726e657404010102030d6163636573732e7365636f6e64010a2d00090120010db800
45000900000000000000004002c3a1d2ac06a302000105ad1ba30201000401ff01000101c3a1d2ac0601090201070001
1102040909090018023535f02ed8360101e807e80701b8fc01f8acd1910101def92a0000000000000000000000000001
0101010102010202ff010100000001000000020620010db8000900000000000000000000300000000000000105766964
656f01c0a83200180120010db8000f0000000000000000000030000102000003ff010200000000000000000103000004
ff01030001ad1b0000000000010104000006010101010001280101010e687474703a2f2f706f7274616c2f0002010100
01007704c0a80a4d000000000003020101000100660620010db800030000000000000000007700000000010104000102
0101000000000005020001030102000000000101060000000000000000020101000180c2d72f0180c2d72f0180f40301
80e807010901010302010100000000010000000201010000000000010000000000018080803200000000000000000000
0000020101010100010101010101010164000001808080808020018080400180808080040101010a011401901c01c0b8
02011e0101010401140101d8040101
";

/// What a process of this version writes, and reads. Octets that change without their [`VERSION`] would be read as something that nobody said.
#[test]
fn a_version_has_its_octets() {
    let (store, seid) = before();
    let written = (hex(&store.header()), hex(&store.record(store.get(seid).unwrap())));
    let (header, record) = &written;
    assert_eq!(VERSION, OF, "write version {VERSION}'s octets here.\nHEADER:\n{header}RECORD:\n{record}");
    assert!(
        written == (HEADER.trim_start().into(), RECORD.trim_start().into()),
        "version {OF} was not packed like this, and what it wrote would be misread: give session::portable::VERSION another number",
    );

    let header = Header::read(&octets(HEADER)).unwrap();
    let mut after = Store::new(next(&header)).unwrap();
    let mut restore = Restore::new(&mut after, &header);
    restore.session(&octets(RECORD)).unwrap();
    restore.finish();
    let (was, is) = (store.get(seid).unwrap(), after.get(seid).unwrap());
    assert_eq!((was.model(), was.rules(), was.cp_fseid()), (is.model(), is.rules(), is.cp_fseid()));
    assert_eq!(after.next_sequence(seid, UrrId(2)), Some(300), "reports go on where they were");
}

/// The record of a session that had another model.
fn with_model(store: &Store, session: &Session, change: impl FnOnce(&mut Model)) -> Vec<u8> {
    let counted = |octets: &[u8]| {
        let mut out = Vec::new();
        Box::<[u8]>::from(octets).pack(&mut out);
        out
    };
    let mut record = store.record(session);
    record.truncate(record.len() - counted(session.octets()).len());
    let (mut model, mut octets) = (session.model().unwrap(), Vec::new());
    change(&mut model);
    freeze(&model, &mut octets);
    record.extend(counted(&octets));
    record
}

/// What becomes of this record in such a node, where nothing is left of it.
fn refused(config: Config, header: &Header, record: &[u8]) -> Unportable {
    let mut store = Store::new(config).unwrap();
    let mut restore = Restore::new(&mut store, header);
    let unportable = restore.session(record).unwrap_err();
    assert!(restore.finish().is_empty(), "{unportable}: an association is left");
    assert_eq!(store.attach().number(), 0, "{unportable}: an association was there");
    assert_eq!(store.counts(), Counts::default(), "{unportable}");
    assert_eq!(store.directory().count(), 0, "{unportable}");
    unportable
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let (store, seid) = before();
    let (session, header) = (store.get(seid).unwrap(), Header::read(&store.header()).unwrap());
    let record = store.record(session);
    let refused = |config: Config, record: &[u8]| refused(config, &header, record);
    let node = || next(&header);

    assert_eq!(refused(node(), &record[..record.len() - 1]), Unportable::Damaged);
    let without = Config { policies: Vec::new(), ..node() };
    assert!(matches!(refused(without, &record), Unportable::Unknown(_, "Forwarding Policy", _)));
    let full = Config { limits: Limits { sessions: 0, ..Limits::default() }, ..node() };
    assert_eq!(refused(full, &record), Unportable::NoRoom(seid));
    // A generation that no slot can have.
    let mut nobodys = Vec::new();
    seid.pack(&mut nobodys);
    let rest = record[nobodys.len()..].to_vec();
    nobodys.clear();
    Seid(seid.0 | 1 << 63).pack(&mut nobodys);
    nobodys.extend(rest);
    assert_eq!(refused(node(), &nobodys), Unportable::NoRoom(Seid(seid.0 | 1 << 63)));
    let own = Config { own: vec![[10, 45, 0, 9].into()], ..node() };
    assert!(matches!(refused(own, &record), Unportable::Address(..)));
    let zero = with_model(&store, session, |model| {
        let (first, pdr) = (&mut model.tunnels[0].tunnel, &mut model.pdrs[0]);
        (first.teid, pdr.tunnel) = (Teid(0), Some(Teid(0)));
    });
    assert!(matches!(refused(node(), &zero), Unportable::Tunnel(..)));
    let elsewhere = with_model(&store, session, |model| {
        model.tunnels[0].tunnel.place.shard =
            session::ShardId::from_hash(session.rules().place.shard.index() as u32 + 1);
    });
    assert_eq!(refused(node(), &elsewhere), Unportable::Damaged);
    let dangling = with_model(&store, session, |model| model.pdrs[0].far = Some(FarId(99)));
    assert!(matches!(refused(node(), &dangling), Unportable::Refused(..)));
}

#[test]
fn a_model_that_no_request_makes_is_no_model() {
    let (store, seid) = before();
    let (session, header) = (store.get(seid).unwrap(), Header::read(&store.header()).unwrap());
    let is_damaged = |what: &str, change: &dyn Fn(&mut Model)| {
        let record = with_model(&store, session, change);
        assert_eq!(refused(next(&header), &header, &record), Unportable::Damaged, "{what}");
    };
    let four = Ipv4Net::new([192, 168, 50, 1].into(), 24).unwrap();
    let six = Ipv6Net::new("2001:db8:45:9::1".parse().unwrap(), 64).unwrap();
    is_damaged("a UE's prefix with an address", &|model| model.ipv6 = Some(six));
    is_damaged("a route with an address", &|model| model.pdrs[1].framed_ipv4 = vec![four]);
    is_damaged("an IPv6 route with an address", &|model| model.pdrs[1].framed_ipv6.push(six));
    is_damaged("a far end with an address", &|model| {
        model.pdrs[0].filters[0].flow.remote = Side::Prefix(Prefix::V4(four));
    });
    is_damaged("a UE's side with an address", &|model| {
        model.pdrs[0].filters[1].flow.local = Side::Prefix(Prefix::V6(six));
    });
    is_damaged("ports from high to low", &|model| model.pdrs[0].filters[0].flow.local_ports = vec![(9, 8)]);
    is_damaged("an application without a name", &|model| model.pdrs[1].application = Some([].into()));
    is_damaged("a URL that no header can have", &|model| model.fars[0].redirect = Some("a\r\nb".into()));
    is_damaged("PDRs out of order", &|model| model.pdrs.swap(0, 1));
    is_damaged("a FAR twice", &|model| model.fars.push(model.fars[5].clone()));
    is_damaged("a tunnel twice", &|model| model.tunnels.push(model.tunnels[0]));
    is_damaged("a tunnel without a PDR", &|model| model.pdrs[3].tunnel = None);
    is_damaged("a PDR without its tunnel", &|model| model.pdrs[2].tunnel = Some(Teid(5)));
    is_damaged("more than rules can count", &|model| model.pdrs[0].urrs = vec![UrrId(1); 1 << 16]);
    is_damaged("more ports than rules can count", &|model| {
        model.pdrs[0].filters[0].flow.local_ports = vec![(9, 9); 1 << 16];
    });
}
