//! FARs that redirect, from the SMF's request to what the UE hears.

use crate::bench::*;
use datapath::Reason;
use packet::tcp::{TcpFlags, TcpHeader, TcpView};
use packet::{PacketBuilder, PduSession, Qfi};
use pfcp::FarId;
use pfcp::ie::{Interface, ReportingTriggers};
use pfcp::message::*;

const URL: &[u8] = b"http://portal.example/?from=here";
const ACK: TcpFlags = TcpFlags::ACK;

/// A session whose packets from the UE are redirected.
fn redirected(cp: u64) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday(cp);
    request.create_fars[0].forwarding.as_mut().unwrap().redirect = Some(redirect_to(URL, 2));
    request
}

impl Bench {
    /// The UE says this to port 80, and hears this: flags, sequence and acknowledgement number, payload.
    fn says(
        &mut self,
        session: &Established,
        flags: TcpFlags,
        (sequence, acknowledgement): (u32, u32),
        payload: &[u8],
    ) -> Option<(TcpFlags, u32, u32, Vec<u8>)> {
        let said = self.tells(session, flags, (sequence, acknowledgement), payload);
        assert_eq!(self.sent(1), Vec::<Vec<u8>>::new(), "nothing leaves towards the data network");
        said
    }

    /// The same, whatever leaves towards the data network.
    fn tells(
        &mut self,
        session: &Established,
        flags: TcpFlags,
        (sequence, acknowledgement): (u32, u32),
        payload: &[u8],
    ) -> Option<(TcpFlags, u32, u32, Vec<u8>)> {
        let (source_port, destination_port, window) = (1000, 80, 9_000);
        let header = TcpHeader { source_port, destination_port, sequence, acknowledgement, flags, window };
        let inner = PacketBuilder::new().ipv4(session.ue, HOST).tcp(header).build(payload);
        let qfi = PduSession::Uplink(packet::pdu_session::Uplink { qfi: Qfi::new(9).unwrap(), ..UPLINK });
        self.from_gnb(GNB, |outer| outer.gtpu(session.teid).pdu_session(&qfi).build(&inner));
        let frame = self.sent(0).pop()?;
        // Ethernet, IPv4, UDP, GTP-U with a PDU session container: 14, 20, 8 and 16 octets.
        let inner = &frame[58..];
        let ip = packet::IpPacket::parse(inner).unwrap();
        assert_eq!((ip.key.source, ip.key.destination), (HOST.into(), session.ue.into()));
        let segment = TcpView::parse(&inner[20..]).unwrap();
        let pseudo_header =
            packet::checksum::pseudo_v4(HOST, session.ue, packet::IpProtocol::TCP, inner.len() as u16 - 20);
        assert!(segment.checksum_ok(pseudo_header));
        assert_eq!((segment.source_port(), segment.destination_port()), (80, 1000));
        Some((segment.flags(), segment.sequence(), segment.acknowledgement(), segment.payload().to_vec()))
    }
}

#[test]
fn a_request_is_answered_with_the_url_and_nothing_leaves() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &redirected(7));
    let (flags, first, acknowledged, _) = bench.says(&session, TcpFlags::SYN, (99, 0), b"").unwrap();
    assert_eq!((flags, acknowledged), (TcpFlags::SYN.with(ACK), 100));
    let next = first.wrapping_add(1);
    assert_eq!(bench.says(&session, ACK, (100, next), b""), None);
    let request = b"GET / HTTP/1.1\r\nHost: news.example\r\n\r\n";
    let (flags, sequence, acknowledged, page) = bench.says(&session, ACK, (100, next), request).unwrap();
    assert!(flags.contains(ACK.with(TcpFlags::FIN)));
    assert_eq!((sequence, acknowledged), (next, 100 + request.len() as u32));
    let page = String::from_utf8(page).unwrap();
    assert!(page.starts_with("HTTP/1.1 302 ") && page.ends_with("\r\n\r\n"), "{page}");
    assert!(page.contains("\r\nLocation: http://portal.example/?from=here\r\n"), "{page}");
    let end = next.wrapping_add(page.len() as u32 + 1);
    let fin = bench.says(&session, ACK.with(TcpFlags::FIN), (acknowledged, end), b"").unwrap();
    assert_eq!(fin, (ACK, end, acknowledged + 1, vec![]));
    let counters = bench.worker.counters();
    assert_eq!((counters.redirected, counters.consumed, counters.balance()), (1, 4, 0));
    // Downlink is as it was.
    bench.down(&session, 100);
    assert_eq!(bench.sent(0).len(), 1);
}

#[test]
fn what_is_no_http_is_reset_or_dropped_by_name() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &redirected(7));
    let (_, first, ..) = bench.says(&session, TcpFlags::SYN, (99, 0), b"").unwrap();
    let next = first.wrapping_add(1);
    let (flags, sequence, ..) = bench.says(&session, ACK, (100, next), &[22, 3, 1, 0, 200]).unwrap();
    assert_eq!((flags.contains(TcpFlags::RST), sequence), (true, next));
    assert_eq!(bench.dropped(Reason::RedirectReset), 1);
    bench.up(&session, 100);
    assert_eq!(bench.dropped(Reason::RedirectDropped), 1);
    bench.nothing_sent();
    // Nor does a stranger hear anything.
    let stranger = PacketBuilder::new().ipv4([10, 45, 99, 99].into(), HOST);
    let syn =
        TcpHeader { flags: TcpFlags::SYN, source_port: 1, destination_port: 80, ..TcpHeader::default() };
    let inner = stranger.tcp(syn).build(b"");
    let qfi = PduSession::Uplink(packet::pdu_session::Uplink { qfi: Qfi::new(9).unwrap(), ..UPLINK });
    bench.from_gnb(GNB, |outer| outer.gtpu(session.teid).pdu_session(&qfi).build(&inner));
    assert_eq!(bench.dropped(Reason::SpoofedSource), 1);
    bench.nothing_sent();
}

#[test]
fn an_update_redirects_and_stops_redirecting() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &everyday(7));
    bench.up(&session, 100);
    assert_eq!(bench.sent(1).len(), 1);
    let update = |redirect| {
        let forwarding = UpdateForwardingParameters { redirect, ..UpdateForwardingParameters::default() };
        let far = UpdateFar { id: FarId(1), apply_action: None, forwarding: Some(forwarding), bar: None };
        SessionModificationRequest { update_fars: vec![far], ..modification() }
    };
    bench.change(0, session.seid, &update(Some(redirect_to(URL, 2))));
    bench.up(&session, 100);
    bench.nothing_sent();
    // A connection from before is answered as well.
    let (flags, sequence, ..) = bench.tells(&session, ACK, (5, 5_000), b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!((flags.contains(TcpFlags::FIN), sequence), (true, 5_000));
    assert_eq!(bench.heard_by_server(&session), (RST_ACK, 5, 5_000));
    bench.restart(0);
    bench.change(0, session.seid, &update(None));
    bench.up(&session, 100);
    bench.nothing_sent();
    bench.change(0, session.seid, &update(Some(redirect_to(b"", 2))));
    bench.up(&session, 100);
    assert_eq!(bench.sent(1).len(), 1);
    bench.delete(0, session.seid);
    bench.assert_empty();
}

const RST_ACK: TcpFlags = TcpFlags(TcpFlags::RST.0 | TcpFlags::ACK.0);

impl Bench {
    /// The one segment that left towards the data network: flags, sequence and acknowledgement number.
    fn heard_by_server(&mut self, session: &Established) -> (TcpFlags, u32, u32) {
        let sent = self.sent(1);
        let [frame] = &sent[..] else { panic!("{sent:?}") };
        let ip = packet::IpPacket::parse(&frame[14..]).unwrap();
        assert_eq!((ip.key.source, ip.key.destination), (session.ue.into(), HOST.into()));
        let segment = TcpView::parse(&frame[34..]).unwrap();
        assert!(segment.checksum_ok(packet::checksum::pseudo_v4(
            session.ue,
            HOST,
            packet::IpProtocol::TCP,
            frame.len() as u16 - 34
        )));
        assert_eq!(
            (segment.source_port(), segment.destination_port(), segment.payload()),
            (1000, 80, &b""[..])
        );
        (segment.flags(), segment.sequence(), segment.acknowledgement())
    }
}

/// Whoever goes on sending in a connection from before learns that it is over, and once more if that was not believed.
#[test]
fn the_server_of_a_connection_from_before_is_told() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &redirected(7));
    for payload in [&b""[..], b"more", &[22, 3, 1, 0, 200]] {
        let (flags, ..) = bench.tells(&session, ACK, (7, 5_000), payload).unwrap();
        assert!(flags.contains(TcpFlags::RST));
        assert_eq!(bench.heard_by_server(&session), (RST_ACK, 7, 5_000));
    }
    // The server asked back, and the UE knows of nothing.
    assert_eq!(bench.tells(&session, TcpFlags::RST, (9, 0), b""), None);
    assert_eq!(bench.heard_by_server(&session), (TcpFlags::RST, 9, 0));
    // Of what begins now, no server hears a word.
    let (_, first, ..) = bench.says(&session, TcpFlags::SYN, (99, 0), b"").unwrap();
    bench.says(&session, RST_ACK, (100, first.wrapping_add(1)), b"");
    let counters = bench.worker.counters();
    assert_eq!((counters.balance(), counters.uplink.packets), (0, 0), "nobody's account has any of it");
}

/// A redirection that is turned back to the UE (TS 29.244 table 8.2.24-1, NOTE 4), of a subscriber whose quota is used up.
#[test]
fn who_has_nothing_left_hears_where_to_get_more() {
    let mut bench = Bench::new(1);
    let mut request = measured(7, vec![urr(1, ReportingTriggers::VOLQU, quota(0))]);
    let forwarding = request.create_fars[0].forwarding.as_mut().unwrap();
    forwarding.destination_interface = Interface::ACCESS;
    forwarding.redirect = Some(redirect_to(URL, 2));
    let session = bench.establish(0, &request);
    let (_, first, ..) = bench.says(&session, TcpFlags::SYN, (99, 0), b"").unwrap();
    let next = first.wrapping_add(1);
    let (.., page) = bench.says(&session, ACK, (100, next), b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(page.starts_with(b"HTTP/1.1 302 "));
    // What comes from the data network is no word of ours.
    bench.down(&session, 100);
    bench.nothing_sent();
    assert_eq!(bench.dropped(Reason::QuotaExhausted), 1);
    let (_, response) = bench.delete(0, session.seid);
    let volume = response.usage_reports[0].volume.unwrap();
    assert_eq!((volume.total_packets, volume.downlink_packets), (Some(0), Some(0)));
}
