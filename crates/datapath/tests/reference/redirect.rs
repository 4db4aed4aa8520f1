//! What a UE hears whose packets are redirected, and who else: once more, by what kinds of segments there are.

use super::*;
use packet::tcp::{TcpFlags, TcpHeader, TcpView};
use packet::{IpProtocol, PacketBuilder};

/// From, to, and their ports.
pub type Connection = (IpAddr, IpAddr, u16, u16);

impl Reference {
    /// A UE's packet by a rule that sends its requests to this URL.
    pub(super) fn redirect(
        &mut self,
        id: (usize, u32),
        rules: &Rules,
        pdr: &Pdr,
        url: u16,
        arrival: &Arrival,
    ) {
        let packet = &arrival.packet;
        let (ue, server) = addresses(packet);
        let (protocol, rest) = match ue {
            IpAddr::V4(_) => (packet[9], &packet[20..]),
            IpAddr::V6(_) => (packet[6], &packet[40..]),
        };
        if protocol != IpProtocol::TCP.0 || server.is_multicast() {
            return self.drop(Some(id), Reason::RedirectDropped);
        }
        let Ok(segment) = TcpView::parse(rest) else { return self.drop(Some(id), Reason::Malformed) };
        let (flags, payload) = (segment.flags(), segment.payload());
        let has = |flag| flags.contains(flag);
        let (at, acknowledged) = (segment.sequence(), segment.acknowledgement());
        let connection = (ue, server, segment.source_port(), segment.destination_port());
        let url = &rules.redirects[usize::from(url)];
        let page = [
            "HTTP/1.1 302 Found",
            &format!("Location: {url}"),
            "Cache-Control: no-store",
            "Content-Length: 0",
            "Connection: close",
            "",
            "",
        ]
        .join("\r\n");
        // What the UE has to expect of us: a SYN, the page, a FIN, each from the number after the one before.
        let first = self.beginnings.get(&connection).copied();
        let syn = first.unwrap_or_default();
        let end = syn.wrapping_add(page.len() as u32 + 2);
        let ours = has(TcpFlags::ACK)
            && first.is_some_and(|first| {
                (0..=page.len() as u32 + 1).any(|n| first.wrapping_add(1 + n) == acknowledged)
            });
        let next = at.wrapping_add(payload.len() as u32).wrapping_add(u32::from(has(TcpFlags::FIN)));
        let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT"];
        let asks = methods.iter().any(|method| payload.starts_with(format!("{method} ").as_bytes()));
        let only = |all: &[TcpFlags]| TcpFlags(all.iter().fold(0, |sum, flag| sum | flag.0));
        let (ack, rst) = (TcpFlags::ACK, TcpFlags::RST);
        let mut was_reset = false;
        // The UE hears.
        if has(rst) || !(has(ack) || has(TcpFlags::SYN)) {
        } else if !has(ack) {
            self.speak(id, rules, &connection, only(&[TcpFlags::SYN, ack]), syn, at.wrapping_add(1), "");
        } else if asks {
            let last = only(&[TcpFlags::PSH, ack, TcpFlags::FIN]);
            self.speak(id, rules, &connection, last, acknowledged, next, &page);
        } else if !ours || has(TcpFlags::SYN) || payload.starts_with(&[22, 3]) {
            was_reset = true;
            self.speak(id, rules, &connection, only(&[rst, ack]), acknowledged, next, "");
        } else if has(TcpFlags::FIN) || !payload.is_empty() {
            self.speak(id, rules, &connection, only(&[ack]), end, next, "");
        }
        // The server of another connection hears.
        if !ours && (has(rst) || has(ack)) {
            let (flags, acknowledged) = if has(ack) { (only(&[rst, ack]), acknowledged) } else { (rst, 0) };
            let packet = segment_of(connection, flags, at, acknowledged, "");
            self.leave_for(id, rules, pdr, arrival, packet);
        }
        if was_reset {
            self.drop(Some(id), Reason::RedirectReset);
        }
    }

    /// Our own words to the UE.
    #[allow(clippy::too_many_arguments)]
    fn speak(
        &mut self,
        id: (usize, u32),
        rules: &Rules,
        connection: &Connection,
        flags: TcpFlags,
        sequence: u32,
        acknowledged: u32,
        text: &str,
    ) {
        let (ue, server, from, to) = *connection;
        let packet = segment_of((server, ue, to, from), flags, sequence, acknowledged, text);
        let arrival = Arrival { packet, met: 0, tunnel: None, from: None, own: true };
        let plain = rules.pdrs.iter().find(|pdr| {
            let ip = Five::of(&arrival.packet).unwrap();
            let takes = pdr.filters.is_empty() || pdr.filters.iter().any(|f| filter_matches(f, &ip));
            pdr.tunnel.is_none()
                && matches!(pdr.source, Source::Core | Source::N6Lan)
                && pdr.qfis.is_empty()
                && pdr.application.is_none()
                && takes
        });
        let leads = plain.map(|pdr| rules.fars[pdr.far as usize].action);
        if matches!(leads, Some(Action::Forward(Forward { outer_header: Some(_), .. }))) {
            let judged = self.judged.take();
            self.judge(arrival, Some(id), true);
            self.judged = judged;
        } else {
            self.arisen.push_back(Arrival { own: false, ..arrival });
        }
    }

    /// Ours, in the UE's name, by the way that the rule would have if it didn't redirect.
    fn leave_for(&mut self, id: (usize, u32), rules: &Rules, pdr: &Pdr, arrival: &Arrival, packet: Vec<u8>) {
        let Action::Forward(forward) = rules.fars[pdr.far as usize].action else { unreachable!() };
        // What is turned back to the UE says nothing of where its packets went: the data network.
        let forward = match forward.destination {
            Destination::Access => Forward { outer_header: None, destination: Destination::Core, ..forward },
            _ => forward,
        };
        let own = Arrival { packet, own: true, ..arrival.clone() };
        self.forward(&own, id, rules, pdr, forward, None);
    }
}

fn segment_of(
    (from, to, source_port, destination_port): Connection,
    flags: TcpFlags,
    sequence: u32,
    acknowledgement: u32,
    text: &str,
) -> Vec<u8> {
    let window = 65_535;
    let header = TcpHeader { source_port, destination_port, sequence, acknowledgement, flags, window };
    PacketBuilder::new().ip(from, to).tcp(header).build(text.as_bytes())
}
