//! FARs that redirect, from the SMF's request to what the UE hears.

use crate::bench::*;
use datapath::Reason;
use packet::tcp::{TcpFlags, TcpHeader, TcpView};
use packet::{PacketBuilder, PduSession, Qfi};
use pfcp::FarId;
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
        let (source_port, destination_port, window) = (1000, 80, 9_000);
        let header = TcpHeader { source_port, destination_port, sequence, acknowledgement, flags, window };
        let inner = PacketBuilder::new().ipv4(session.ue, HOST).tcp(header).build(payload);
        let qfi = PduSession::Uplink(packet::pdu_session::Uplink { qfi: Qfi::new(9).unwrap(), ..UPLINK });
        self.from_gnb(GNB, |outer| outer.gtpu(session.teid).pdu_session(&qfi).build(&inner));
        assert_eq!(self.sent(1), Vec::<Vec<u8>>::new(), "nothing leaves towards the data network");
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
    let (flags, sequence, ..) = bench.says(&session, ACK, (5, 5_000), b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!((flags.contains(TcpFlags::FIN), sequence), (true, 5_000));
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
