//! Rules for applications, in a whole UPF with the inspector that is shipped.

use crate::bench::{Established, downlink, everyday, to_gnb, uplink};
use crate::upf::{FILE, Rig};
use api::{Answers, Applications, ErrorCode, Mirror, MirrorSelection, Session, SumOf};
use dpi::signatures::Bundle;
use io::Frame;
use io::mem::MemFrame;
use loadgen::applications::{Application, Length, Mix, Traffic};
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{IpPacket, IpProtocol, MacAddr, PacketBuilder, PduSession};
use pfcp::ie::{FTeid, PfdContents};
use pfcp::message::{
    ApplicationPfds, CreateFar, CreatePdr, Pdi, PfdManagementRequest, PfdManagementResponse,
    SessionEstablishmentRequest, SessionEstablishmentResponse,
};
use pfcp::message_type::MessageType;
use pfcp::{Cause, FarId, PdrId, Seid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use tables::Nanos;
use testing::Directory;

const N6_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 1]);
const ROUTER: MacAddr = MacAddr([2, 9, 0, 0, 0, 2]);
const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 53);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 99);
/// Where packets of the application go; all others go to that of [`everyday`].
const APART: u32 = 33;

/// An everyday session whose packets of this application leave apart; those of the UE are asked about, too, as SMFs do.
fn asking(application: &'static [u8]) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday(7);
    let shared = Some(FTeid::Choose { ipv4: true, ipv6: false, id: Some(1) });
    request.create_pdrs[0].pdi.local_fteid = shared;
    let pdi = Pdi { application_id: Some(application), local_fteid: shared, ..uplink().pdi };
    request.create_pdrs.push(CreatePdr { id: PdrId(4), precedence: 10, pdi, ..uplink() });
    let pdi = Pdi { application_id: Some(application), ..downlink().pdi };
    let pdr = CreatePdr { id: PdrId(3), precedence: 10, far: Some(FarId(3)), pdi, ..downlink() };
    request.create_pdrs.push(pdr);
    request.create_fars.push(CreateFar { id: FarId(3), ..to_gnb([192, 0, 2, 10].into(), APART) });
    request
}

fn establish(rig: &mut Rig, application: &'static [u8]) -> Result<Established, Cause> {
    let body = rig.ask_for(&asking(application));
    let response = SessionEstablishmentResponse::decode(&body).unwrap();
    if response.cause == Cause::ACCEPTED { Ok(Established::new(&response)) } else { Err(response.cause) }
}

/// The tunnel that a packet from the data network leaves in.
fn tunnel(rig: &mut Rig, packet: &PacketBuilder, payload: &[u8]) -> u32 {
    let frame = packet.build(payload);
    rig.n6.offer(&mut vec![MemFrame::copy_of(&frame).unwrap()]);
    let mut out = Vec::new();
    rig.until("a packet for the UE", |rig| {
        rig.n3.collect(&mut out, 1);
        !out.is_empty()
    });
    u32::from_be_bytes(out[0].bytes()[46..50].try_into().unwrap())
}

/// The SMF gives PFDs of an application.
fn manage(rig: &mut Rig, application_id: &'static [u8], pfds: Vec<PfdContents<'static>>) -> Cause {
    let request = PfdManagementRequest { applications: vec![ApplicationPfds { application_id, pfds }] };
    let kind = MessageType::PFD_MANAGEMENT_REQUEST;
    let token = rig.smf.ask(Nanos(0), kind, Seid(0), |out| request.encode(out));
    rig.until("an answer", |rig| rig.smf.answers.contains_key(&token));
    let (_, _, body) = rig.smf.answers.remove(&token).unwrap();
    PfdManagementResponse::decode(&body).unwrap().cause
}

fn shop() -> PfdContents<'static> {
    PfdContents { domain_names: vec![(b"shop.example", None)], ..PfdContents::default() }
}

fn from(source: Ipv4Addr, session: &Established) -> PacketBuilder {
    PacketBuilder::new().ethernet(N6_MAC, ROUTER).ipv4(source, session.ue)
}

/// The address of this name is asked for.
fn question(name: &str) -> Vec<u8> {
    let mut message = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0".to_vec();
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend_from_slice(label.as_bytes());
    }
    message.extend_from_slice(b"\0\0\x01\0\x01");
    message
}

/// An answer of a DNS server: this name has the address of [`SERVER`].
fn answer(name: &str) -> Vec<u8> {
    let mut message = question(name);
    message[2..8].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1]);
    message.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04");
    message.extend_from_slice(&SERVER.octets());
    message
}

/// The UE asks for it.
fn ask(rig: &mut Rig, session: &Established, port: u16, name: &str) {
    rig.say(session, &PacketBuilder::new().ipv4(session.ue, RESOLVER).udp(port, 53).build(&question(name)));
}

fn syn_ack(session: &Established, port: u16) -> PacketBuilder {
    let flags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
    from(SERVER, session).tcp(TcpHeader {
        source_port: 443,
        destination_port: port,
        flags,
        ..TcpHeader::default()
    })
}

#[test]
fn a_name_that_the_ue_asked_for_makes_the_first_packet_the_applications() {
    let mut rig = Rig::start(2, None);
    let session = establish(&mut rig, b"youtube").unwrap();
    assert_eq!(tunnel(&mut rig, &syn_ack(&session, 40_000), b""), 7, "nothing is known of the address");
    let dns = from(RESOLVER, &session).udp(53, 4_999);
    assert_eq!(tunnel(&mut rig, &dns, &answer("www.youtube.com")), APART);
    assert_eq!(
        tunnel(&mut rig, &syn_ack(&session, 40_001), b""),
        7,
        "an answer that the UE has not asked for"
    );
    ask(&mut rig, &session, 5_000, "www.youtube.com");
    let dns = from(RESOLVER, &session).udp(53, 5_000);
    assert_eq!(tunnel(&mut rig, &dns, &answer("www.youtube.com")), APART);
    assert_eq!(
        tunnel(&mut rig, &syn_ack(&session, 40_002), b""),
        APART,
        "the first packet of its connection"
    );
    let dns = from(RESOLVER, &session).udp(53, 5_001);
    assert_eq!(tunnel(&mut rig, &dns, &answer("www.example.org")), 7);
    let named = Session { seid: Some(api::SeidText(session.seid.0)), ..Session::default() };
    let detail = rig.backend.answer(named).unwrap();
    let asked: Vec<_> = detail.pdrs.iter().filter_map(|pdr| pdr.application.as_deref()).collect();
    assert_eq!(asked, ["youtube"; 2]);
}

#[test]
fn a_rule_for_an_application_matches_its_services() {
    let mut rig = Rig::start(1, None);
    let whole = establish(&mut rig, b"youtube").unwrap();
    let part = establish(&mut rig, b"youtube-upload").unwrap();
    let above = establish(&mut rig, b"google").unwrap();
    let mut port = 5_000;
    let mut goes = |rig: &mut Rig, name: &str| {
        port += 1;
        [&whole, &part, &above]
            .map(|session| tunnel(rig, &from(RESOLVER, session).udp(53, port), &answer(name)) == APART)
    };
    assert_eq!(goes(&mut rig, "www.youtube.com"), [true, false, true]);
    assert_eq!(goes(&mut rig, "upload.youtube.com"), [true, true, true]);
    assert_eq!(goes(&mut rig, "mail.google.com"), [false, false, true]);
    // PFDs say all that the application is; what is said of its parts, and of what it is a part of, goes on.
    assert_eq!(manage(&mut rig, b"youtube", vec![shop()]), Cause::ACCEPTED);
    assert_eq!(goes(&mut rig, "www.youtube.com"), [false, false, true]);
    assert_eq!(goes(&mut rig, "upload.youtube.com"), [false, true, true]);
    assert_eq!(goes(&mut rig, "www.shop.example"), [true, false, true]);
    assert_eq!(manage(&mut rig, b"youtube", vec![]), Cause::ACCEPTED);
    assert_eq!(goes(&mut rig, "upload.youtube.com"), [true, true, true]);
}

#[test]
fn what_nobody_knows_or_inspects_is_refused() {
    let mut rig = Rig::start(1, None);
    assert!(establish(&mut rig, b"no-such-application").is_err());
    let file = format!("{FILE}[inspection]\nenabled = false\n");
    let mut rig = Rig::start_with(&file, 1, None);
    assert_eq!(establish(&mut rig, b"youtube").err(), Some(Cause::SERVICE_NOT_SUPPORTED));
}

#[test]
fn an_smf_says_itself_how_an_application_is_told() {
    let mut rig = Rig::start(2, None);
    let flow = PfdContents {
        flow_descriptions: vec![b"permit out tcp from 198.51.100.99 443 to assigned"],
        ..PfdContents::default()
    };
    assert_eq!(manage(&mut rig, b"shop", vec![shop()]), Cause::ACCEPTED);
    let session = establish(&mut rig, b"shop").unwrap();
    let dns = |port| from(RESOLVER, &session).udp(53, port);
    assert_eq!(tunnel(&mut rig, &dns(5_000), &answer("www.shop.example")), APART);
    assert_eq!(tunnel(&mut rig, &dns(5_001), &answer("www.workshop.example")), 7);
    assert_eq!(tunnel(&mut rig, &syn_ack(&session, 40_000), b""), 7);
    // Others take their place, while the session goes on.
    assert_eq!(manage(&mut rig, b"shop", vec![flow]), Cause::ACCEPTED);
    assert_eq!(tunnel(&mut rig, &syn_ack(&session, 40_001), b""), APART);
    assert_eq!(tunnel(&mut rig, &dns(5_002), &answer("www.shop.example")), 7);
}

#[test]
fn signatures_are_read_anew_while_sessions_go_on() {
    let place = Directory::new("signatures");
    let path = place.0.join("own.toml");
    let write = |host: &str| {
        let text =
            format!("[intranet]\nname = \"Intranet\"\ncategory = \"productivity\"\nhosts = [\"{host}\"]\n");
        std::fs::write(&path, text).unwrap();
    };
    write("corp.example");
    let wiki = place.0.join("wiki.toml");
    let write_wiki = |of: &str| {
        let text =
            format!("[wiki]\nname = \"Wiki\"\ncategory = \"productivity\"\n{of}hosts = [\"wiki.example\"]\n");
        std::fs::write(&wiki, text).unwrap();
    };
    write_wiki("parent = \"intranet\"\n");
    let file = format!("{FILE}[inspection]\nsignatures = [{path:?}, {wiki:?}]\n");
    let mut rig = Rig::start_with(&file, 1, None);
    let session = establish(&mut rig, b"intranet").unwrap();
    let dns = |port| from(RESOLVER, &session).udp(53, port);
    assert_eq!(tunnel(&mut rig, &dns(5_000), &answer("wiki.corp.example")), APART);
    assert_eq!(tunnel(&mut rig, &dns(5_010), &answer("wiki.example")), APART, "a part of it");
    write("office.example");
    write_wiki("");
    let told = rig.backend.reload(config::parse("test", &file, &[], &[]).unwrap()).unwrap();
    assert_eq!(told.changed, ["inspection.signatures"]);
    assert_eq!(tunnel(&mut rig, &dns(5_001), &answer("wiki.corp.example")), 7);
    assert_eq!(tunnel(&mut rig, &dns(5_002), &answer("wiki.office.example")), APART);
    assert_eq!(tunnel(&mut rig, &dns(5_012), &answer("wiki.example")), 7, "it is a part no longer");
    // A file that is wrong changes nothing.
    std::fs::write(&path, "[intranet\n").unwrap();
    assert!(rig.backend.reload(config::parse("test", &file, &[], &[]).unwrap()).is_err());
    assert_eq!(tunnel(&mut rig, &dns(5_003), &answer("wiki.office.example")), APART);
}

const N3_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 1]);
const GNB_MAC: MacAddr = MacAddr([2, 9, 0, 0, 0, 1]);

/// Flows of pages: in TLS, in QUIC and in clear, and questions for names.
const PAGES: Mix = Mix::only(
    "pages",
    &[(Application::Tls, 3), (Application::Quic, 3), (Application::Http, 2), (Application::Dns, 2)],
);
/// UEs that they are of.
const UES: usize = 4;

/// A packet of [`Traffic`], between one of our UEs and a server.
struct Generated {
    /// The UE's number.
    ue: usize,
    uplink: bool,
    /// The UE's port, and what the packet carries.
    flow: (u16, IpProtocol),
    packet: Vec<u8>,
}

impl Generated {
    /// The packet of a frame, with our UE's address in place of the subscriber's.
    fn of(frame: &[u8], ues: &[Established]) -> Self {
        let (ethernet, packet) = frame.split_at(14);
        let uplink = ethernet[11] == 1;
        let mut packet = packet.to_vec();
        let at = if uplink { 12..16 } else { 16..20 };
        // 10.60.0.1 and those behind it.
        let ue = usize::from(packet[at.end - 1]) - 1;
        packet[at].copy_from_slice(&ues[ue].ue.octets());
        packet[10..12].fill(0);
        let sum = packet::checksum::ipv4_header(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let key = IpPacket::parse(&packet).unwrap().key;
        let ports = key.ports.unwrap();
        let port = if uplink { ports.source } else { ports.destination };
        Self { ue, uplink, flow: (port, key.protocol), packet }
    }

    /// As it arrives here.
    fn frame(&self, ues: &[Established]) -> MemFrame {
        let frame = if self.uplink {
            let outer = PacketBuilder::new().ethernet(N3_MAC, GNB_MAC);
            let outer = outer.ipv4([192, 0, 2, 10].into(), [192, 0, 2, 1].into()).udp(2152, 2152);
            let container = PduSession::Uplink(crate::bench::UPLINK);
            outer.gtpu(ues[self.ue].teid).pdu_session(&container).build(&self.packet)
        } else {
            [&N6_MAC.0[..], &ROUTER.0, &[8, 0], &self.packet].concat()
        };
        MemFrame::copy_of(&frame).unwrap()
    }
}

/// Sends packets, in their order, and waits until all have left.
fn send(rig: &mut Rig, packets: &[Generated], ues: &[Established]) {
    // What goes one way is sent together, so that nothing overtakes an answer.
    for together in packets.chunk_by(|a, b| a.uplink == b.uplink) {
        let mut frames: Vec<_> = together.iter().map(|packet| packet.frame(ues)).collect();
        let uplink = together[0].uplink;
        if uplink {
            rig.n3.offer(&mut frames)
        } else {
            rig.n6.offer(&mut frames)
        };
        let mut out = Vec::new();
        rig.until("all packets", |rig| {
            if uplink {
                rig.n6.collect(&mut out, 64)
            } else {
                rig.n3.collect(&mut out, 64)
            };
            out.len() == together.len()
        });
    }
}

/// Packets and bytes: uplink, downlink.
type Carried = [(u64, u64); 2];

fn add(sum: &mut Carried, uplink: bool, bytes: usize) {
    let one = &mut sum[usize::from(!uplink)];
    *one = (one.0 + 1, one.1 + bytes as u64);
}

/// The lines of a flow log.
fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Sums, sessions, flow log and metrics say of all flows what the sender knows of them.
#[test]
fn all_flows_have_labels_where_somebody_wants_to_know() {
    let place = Directory::new("labels");
    let log = place.0.join("flows.json");
    let settings = format!(
        "[inspection]\nalways = true\n[limits]\nflow-idle-seconds = 5\n[flow-log]\nfile = {log:?}\n\
         [metrics]\nlisten = \"127.0.0.1:0\"\n"
    );
    let mut rig = Rig::start_with(&format!("{FILE}{settings}"), 2, None);
    let ues: Vec<_> = (1..=UES as u64).map(|cp| rig.establish(cp)).collect();
    let traffic = Traffic::new(PAGES, Length::Whole, 600, 8, 11);
    let packets: Vec<_> = traffic.frames().map(|frame| Generated::of(frame, &ues)).collect();
    // What each flow is of, by who knows its name.
    let bundle = Bundle::built_in();
    let mut of_flow = BTreeMap::new();
    for flow in traffic.flows() {
        let IpAddr::V4(client) = flow.ends.client.ip() else { panic!() };
        let protocol = if flow.application.is_stream() { IpProtocol::TCP } else { IpProtocol::UDP };
        let found = flow.name.as_ref().and_then(|name| bundle.host(name.as_bytes()));
        let name = found.map(|found| bundle.application(found.application).name.to_string());
        let key = (usize::from(client.octets()[3]) - 1, (flow.ends.client.port(), protocol.0));
        assert_eq!(of_flow.insert(key, name), None, "another seed: two flows have the same port");
    }
    let label = |ue: usize, (port, protocol): (u16, IpProtocol)| &of_flow[&(ue, (port, protocol.0))];
    let mut naive = BTreeMap::<Option<String>, Carried>::new();
    for Generated { ue, uplink, flow, packet } in &packets {
        add(naive.entry(label(*ue, *flow).clone()).or_default(), *uplink, packet.len());
    }
    assert!(naive.len() > 5 && naive.contains_key(&None), "{naive:?}");
    send(&mut rig, &packets, &ues);
    // Both workers had some.
    let inspected: Vec<_> =
        rig.backend.reports().unwrap().iter().map(|report| report.counters.inspection.shown).collect();
    assert!(inspected.iter().all(|shown| *shown > 0), "{inspected:?}");

    // While flows live, sessions say what theirs are.
    let mut seen = BTreeSet::new();
    for (number, ue) in ues.iter().enumerate() {
        let named = Session { seid: Some(api::SeidText(ue.seid.0)), ..Session::default() };
        let detail = rig.backend.answer(named).unwrap();
        assert!(!detail.more_applications);
        for line in detail.applications {
            let is_its = |(of, _): &(usize, _)| *of == number;
            let known =
                of_flow.iter().filter(|(key, _)| is_its(key)).any(|(_, name)| *name == line.application);
            assert!(known, "UE {number} has no flow of {line:?}");
            assert!(line.flows > 0 && line.uplink_bytes + line.downlink_bytes > 0);
            if let Some(name) = line.application {
                assert_eq!(line.confidence.as_deref(), Some("certain"), "{name}: {:?}", line.by);
                seen.insert(name);
            }
        }
    }
    assert!(!seen.is_empty());

    // At the end all that was sent is in one sum each.
    let mut told = rig.backend.answer(Applications::default()).unwrap();
    assert!(told.applications.iter().any(|line| line.live > 0), "{told:?}");
    rig.until("the end of all flows", |rig| {
        told = rig.backend.answer(Applications::default()).unwrap();
        told.under_question == 0 && told.applications.iter().all(|line| line.live == 0)
    });
    let sums = told.applications.iter().map(|line| {
        assert_eq!(line.application.is_none(), line.of == SumOf::Unknown);
        let carried =
            [(line.uplink_packets, line.uplink_bytes), (line.downlink_packets, line.downlink_bytes)];
        (line.application.clone(), carried)
    });
    assert_eq!(sums.collect::<BTreeMap<_, _>>(), naive);
    assert_eq!(told.applications.iter().map(|line| line.conversations).sum::<u64>(), of_flow.len() as u64);
    let all = packets.iter().map(|packet| packet.packet.len() as u64).sum::<u64>();
    assert_eq!((told.forwarded_packets, told.forwarded_bytes), (packets.len() as u64, all));
    let mut bytes: Vec<_> = told.applications.iter().map(api::ApplicationLine::bytes).collect();
    assert!(bytes.is_sorted_by(|a, b| a >= b), "{bytes:?}");
    let top = rig.backend.answer(Applications { top: Some(2) }).unwrap().applications;
    assert_eq!((top.len(), &top[..2], top[2].of), (3, &told.applications[..2], SumOf::Others));
    assert_eq!(top[2].bytes(), bytes.drain(2..).sum::<u64>());

    // The log says the same.
    let mut logged = BTreeMap::<Option<String>, Carried>::new();
    rig.until("all lines", |_| lines(&log).len() == 2 * of_flow.len());
    for line in lines(&log) {
        let uplink = line["direction"] == "uplink";
        let number = |key: &str| line[key].as_u64().unwrap();
        let (port, address) =
            if uplink { ("source_port", "source") } else { ("destination_port", "destination") };
        let ue = ues.iter().position(|ue| line[address] == ue.ue.to_string()).unwrap();
        let expected = label(ue, (number(port) as u16, IpProtocol(number("protocol") as u8)));
        assert_eq!(line["application"].as_str().map(str::to_owned), *expected, "{line}");
        let sum = &mut logged.entry(expected.clone()).or_default()[usize::from(!uplink)];
        *sum = (sum.0 + number("packets"), sum.1 + number("bytes"));
    }
    assert_eq!(logged, naive);

    // And so do metrics.
    let (_, text) = crate::metrics::get(rig.metrics.unwrap(), "/metrics", "*/*");
    for (name, [(packets, _), (_, bytes)]) in &naive {
        let name = name.as_deref().unwrap_or("(unknown)");
        for line in [
            format!("millrace_application_uplink_packets_total{{application=\"{name}\"}} {packets}\n"),
            format!("millrace_application_downlink_bytes_total{{application=\"{name}\"}} {bytes}\n"),
        ] {
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
    }
}

/// Flows that live are looked at for whoever asks, however short ago somebody else did.
#[test]
fn who_asks_hears_what_was_carried_until_then() {
    let mut rig = Rig::start_with(&format!("{FILE}[inspection]\nalways = true\n"), 2, None);
    let ues: Vec<_> = (1..=UES as u64).map(|cp| rig.establish(cp)).collect();
    let traffic = Traffic::new(PAGES, Length::Whole, 60, 8, 13);
    let packets: Vec<_> = traffic.frames().map(|frame| Generated::of(frame, &ues)).collect();
    let mut carried = Vec::new();
    for _ in 0..4 {
        send(&mut rig, &packets, &ues);
        let told = rig.backend.answer(Applications::default()).unwrap().applications;
        carried.push(told.iter().map(api::ApplicationLine::bytes).sum::<u64>());
    }
    // Something more may be found out of what is said again.
    let more = carried.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(carried[0] > 0 && more.min() >= Some(carried[0]), "{carried:?}");
}

/// Without `always`, packets of sessions that ask for no application are shown to nobody, make no flows, and leave no trace.
#[test]
fn who_asks_for_nothing_is_not_looked_at() {
    let mut rig = Rig::start(2, None);
    let ues: Vec<_> = (1..=UES as u64).map(|cp| rig.establish(cp)).collect();
    let traffic = Traffic::new(PAGES, Length::Opening, 100, 8, 12);
    let packets: Vec<_> = traffic.frames().map(|frame| Generated::of(frame, &ues)).collect();
    send(&mut rig, &packets, &ues);
    for report in rig.backend.reports().unwrap() {
        let counters = &report.counters;
        assert_eq!(counters.inspection, datapath::InspectionCounters::default());
        assert_eq!((counters.flows.learned, counters.flows.served), (0, 0));
    }
    let told = rig.backend.answer(Applications::default()).unwrap();
    assert_eq!((told.applications.len(), told.under_question), (0, 0));
    assert_eq!(told.forwarded_packets, packets.len() as u64);
    let named = Session { seid: Some(api::SeidText(ues[0].seid.0)), ..Session::default() };
    assert_eq!(rig.backend.answer(named).unwrap().applications, []);
}

#[test]
fn packets_of_an_application_are_copied() {
    let probe = "[[mirror]]\nname = \"probe\"\nto = \"gre\"\ndestination = \"198.51.100.7\"\n";
    let mut rig = Rig::start_with(&format!("{FILE}{probe}"), 2, None);
    let session = establish(&mut rig, b"youtube").unwrap();
    let of = |names: &[&str]| MirrorSelection {
        to: "probe".into(),
        all: true,
        applications: names.iter().map(ToString::to_string).collect(),
        ..MirrorSelection::default()
    };
    let refused = rig.backend.answer(Mirror::Add(of(&["netflix", "youtub"]))).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotFound);
    let near = "no application is called `youtub`; there is youtube";
    assert!(refused.message.starts_with(near), "{}", refused.message);
    let many = of(&["youtube"; 17]);
    assert_eq!(rig.backend.answer(Mirror::Add(many)).unwrap_err().code, ErrorCode::BadRequest);
    let added = rig.backend.answer(Mirror::Add(of(&["netflix", "youtube"]))).unwrap().mirrors.remove(0);
    assert_eq!(added.applications, ["netflix", "youtube"]);
    let dns = |port| from(RESOLVER, &session).udp(53, port);
    assert_eq!(tunnel(&mut rig, &dns(5_000), &answer("www.example.org")), 7);
    assert_eq!(tunnel(&mut rig, &dns(5_001), &answer("www.youtube.com")), APART);
    let mut copies = Vec::new();
    rig.until("a copy", |rig| rig.n6.collect(&mut copies, 8) > 0);
    assert_eq!(copies.len(), 1);
    let name = b"www\x07youtube";
    assert!(copies[0].bytes().windows(name.len()).any(|part| part == name));
    assert_eq!(rig.backend.answer(Mirror::List).unwrap().mirrors[0].applications.len(), 2);
    let file = format!("{FILE}{probe}[inspection]\nenabled = false\n");
    let rig = Rig::start_with(&file, 1, None);
    let refused = rig.backend.answer(Mirror::Add(of(&["youtube"]))).unwrap_err();
    assert!(refused.message.starts_with("nobody looks into packets"), "{}", refused.message);
}
