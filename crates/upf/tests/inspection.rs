//! Rules for applications, in a whole UPF with the inspector that is shipped.

use crate::bench::{Established, downlink, everyday, to_gnb};
use crate::upf::{FILE, Rig};
use api::{Answers, Session};
use io::Frame;
use io::mem::MemFrame;
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{MacAddr, PacketBuilder};
use pfcp::ie::PfdContents;
use pfcp::message::{
    ApplicationPfds, CreateFar, CreatePdr, Pdi, PfdManagementRequest, PfdManagementResponse,
    SessionEstablishmentRequest, SessionEstablishmentResponse,
};
use pfcp::message_type::MessageType;
use pfcp::{Cause, FarId, PdrId, Seid};
use std::net::Ipv4Addr;
use tables::Nanos;
use testing::Directory;

const N6_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 1]);
const ROUTER: MacAddr = MacAddr([2, 9, 0, 0, 0, 2]);
const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 53);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 99);
/// Where packets of the application go; all others go to that of [`everyday`].
const APART: u32 = 33;

/// An everyday session whose packets of this application leave apart.
fn asking(application: &'static [u8]) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday(7);
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

/// An answer of a DNS server: this name has the address of [`SERVER`].
fn answer(name: &str) -> Vec<u8> {
    let mut message = b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0".to_vec();
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend_from_slice(label.as_bytes());
    }
    message.extend_from_slice(b"\0\0\x01\0\x01\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04");
    message.extend_from_slice(&SERVER.octets());
    message
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
    let dns = from(RESOLVER, &session).udp(53, 5_000);
    assert_eq!(tunnel(&mut rig, &dns, &answer("www.youtube.com")), APART);
    assert_eq!(
        tunnel(&mut rig, &syn_ack(&session, 40_001), b""),
        APART,
        "the first packet of its connection"
    );
    let dns = from(RESOLVER, &session).udp(53, 5_001);
    assert_eq!(tunnel(&mut rig, &dns, &answer("www.example.org")), 7);
    let named = Session { seid: Some(api::SeidText(session.seid.0)), ..Session::default() };
    let detail = rig.backend.answer(named).unwrap();
    let asked: Vec<_> = detail.pdrs.iter().filter_map(|pdr| pdr.application.as_deref()).collect();
    assert_eq!(asked, ["youtube"]);
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
