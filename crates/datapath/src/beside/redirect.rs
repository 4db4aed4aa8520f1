//! A UE that asks for a page is sent to another one (Redirect Information, TS 29.244 §5.4.7, §8.2.20).
//!
//! **Problem.** The packets of a rule that redirects go nowhere, so nobody would ever hear the request that is to be answered: TCP first wants a connection.
//!
//! **Model.** To the UE, we are the server, and remember nothing of it. Each segment says all that is needed to answer it: a SYN is acknowledged by a
//! sequence number that is a keyed hash of the connection; a request is answered by "302 Found" and the end of the connection in one segment; the
//! UE's own end is acknowledged. A segment that acknowledges what we have said, or will say, belongs to a connection of ours; any other one to a
//! connection that there was before the rule, whose server hears nothing any more. There a request is answered all the same, and all else is reset.
//!
//! **What can't be redirected.** TLS: no certificate is ours, so the connection is reset at its first words ([`Reason::RedirectReset`]). What is no TCP, and
//! fragments, are dropped ([`Reason::RedirectDropped`]): a browser that tries QUIC takes TCP then. A request whose first segment doesn't begin with a
//! method of HTTP is not seen as one.

use crate::Reason;
use crate::datapath::Datapath;
use crate::meta::{Meta, packet_of};
use crate::network::{Context, make};
use crate::stages::parse::internal_header;
use io::{Frame, FramePool};
use packet::tcp::{TcpFlags, TcpHeader, TcpView};
use packet::{IpPacket, IpProtocol, PacketBuilder};
use session::rules::Rules;
use tables::hash::mix;

/// Methods of HTTP that begin a request (RFC 9110 §9).
const METHODS: [&[u8]; 8] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT "];

/// What becomes of a segment.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// Nothing is to be said.
    Nothing,
    /// This is said: flags, sequence and acknowledgement number.
    Say(TcpFlags, u32, u32),
    /// The redirection, and that this was the last.
    Redirect(u32, u32),
    /// The connection is reset.
    Reset(TcpFlags, u32, u32),
}

/// The answer to a segment of a UE, to whom connections begin with this sequence number, and the redirection is so long.
fn answer(segment: &TcpView<'_>, initial: u32, length: u32) -> Answer {
    let (flags, payload) = (segment.flags(), segment.payload());
    let (sequence, acknowledged) = (segment.sequence(), segment.acknowledgement());
    let first = initial.wrapping_add(1);
    let ends = flags.contains(TcpFlags::FIN);
    let next = sequence.wrapping_add(payload.len() as u32).wrapping_add(ends.into());
    if flags.contains(TcpFlags::RST) {
        return Answer::Nothing;
    }
    if !flags.contains(TcpFlags::ACK) {
        return if flags.contains(TcpFlags::SYN) {
            Answer::Say(TcpFlags::SYN.with(TcpFlags::ACK), initial, sequence.wrapping_add(1))
        } else {
            Answer::Nothing
        };
    }
    if METHODS.iter().any(|method| payload.starts_with(method)) {
        return Answer::Redirect(acknowledged, next);
    }
    // One more for the end.
    let is_ours = acknowledged.wrapping_sub(first) <= length + 1;
    let is_tls = matches!(payload, [22, 3, ..]);
    if !is_ours || is_tls || flags.contains(TcpFlags::SYN) {
        return Answer::Reset(TcpFlags::RST.with(TcpFlags::ACK), acknowledged, next);
    }
    if payload.is_empty() && !ends {
        return Answer::Nothing;
    }
    // The rest of a request, or its end. By then all that we say was said.
    Answer::Say(TcpFlags::ACK, first.wrapping_add(length + 1), next)
}

/// What is said to a request.
fn page(url: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {url}\r\nCache-Control: no-store\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

impl<F: Frame> Datapath<F> {
    /// Answers a UE's packet in place of whom it is for. `to`: which of the rules' URLs.
    #[cold]
    pub(crate) fn redirect<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        rules: &Rules,
        to: u16,
        frame: &F,
    ) -> Result<(), Reason> {
        let url = rules.redirects.get(usize::from(to)).ok_or(Reason::NoRule)?;
        let offered = packet_of(frame.bytes(), meta);
        let ip = IpPacket::parse(offered).map_err(|_| Reason::Malformed)?;
        if ip.key.protocol != IpProtocol::TCP || ip.fragment.is_some() || ip.key.destination.is_multicast() {
            return Err(Reason::RedirectDropped);
        }
        let segment = offered.get(usize::from(ip.transport_offset)..).unwrap_or_default();
        let segment = TcpView::parse(segment).map_err(|_| Reason::Malformed)?;
        let (ports, page) = ((segment.source_port(), segment.destination_port()), page(url));
        let secret = mix(self.config.seed, u64::from(ports.0) << 16 | u64::from(ports.1));
        let bits = |address| match address {
            std::net::IpAddr::V4(address) => u128::from(address.to_bits()),
            std::net::IpAddr::V6(address) => address.to_bits(),
        };
        let ends = [ip.key.source, ip.key.destination].map(bits);
        let initial =
            ends.iter().fold(secret, |all, end| mix(mix(all, *end as u64), (*end >> 64) as u64)) as u32;
        let said = answer(&segment, initial, page.len() as u32);
        let (flags, sequence, acknowledgement) = match said {
            Answer::Nothing => {
                self.counters.consumed += 1;
                return Ok(());
            }
            Answer::Say(flags, sequence, next) | Answer::Reset(flags, sequence, next) => {
                (flags, sequence, next)
            }
            Answer::Redirect(sequence, next) => {
                (TcpFlags::PSH.with(TcpFlags::ACK).with(TcpFlags::FIN), sequence, next)
            }
        };
        if !self.rates.redirects.allow(cx.now) {
            return Err(Reason::ErrorRateLimited);
        }
        let (source_port, destination_port) = (ports.1, ports.0);
        let header =
            TcpHeader { source_port, destination_port, sequence, acknowledgement, flags, window: u16::MAX };
        let is_page = matches!(said, Answer::Redirect(..));
        let payload = if is_page { page.as_bytes() } else { &[] };
        self.scratch.clear();
        let builder = PacketBuilder::new().ip(ip.key.destination, ip.key.source).tcp(header);
        builder.build_into(&mut self.scratch, payload);
        // It comes back as a packet from the data network does, by the session's rules for these.
        let parts: [&[u8]; 2] = [&internal_header(meta.v6), &self.scratch];
        if let Some(frame) = make(cx.pool, &mut self.counters, &parts) {
            self.counters.redirected += u64::from(is_page);
            self.arisen.push(frame);
        }
        if matches!(said, Answer::Reset(..)) {
            return Err(Reason::RedirectReset);
        }
        self.counters.consumed += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ACK: TcpFlags = TcpFlags::ACK;
    const INITIAL: u32 = u32::MAX;

    /// The answer to this segment, where the redirection is 100 octets long.
    fn to(flags: TcpFlags, sequence: u32, acknowledgement: u32, payload: &[u8]) -> Answer {
        let (source_port, destination_port) = (1000, 80);
        let header =
            TcpHeader { source_port, destination_port, sequence, acknowledgement, flags, window: 1000 };
        let ends = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let packet = PacketBuilder::new().ipv4(ends.0, ends.1).tcp(header).build(payload);
        answer(&TcpView::parse(&packet[20..]).unwrap(), INITIAL, 100)
    }

    #[test]
    fn a_whole_connection() {
        let syn_ack = TcpFlags::SYN.with(ACK);
        assert_eq!(to(TcpFlags::SYN, 7, 0, b""), Answer::Say(syn_ack, INITIAL, 8));
        assert_eq!(to(ACK, 8, 0, b""), Answer::Nothing);
        assert_eq!(to(ACK, 8, 0, b"GET / HTTP/1.1\r\n"), Answer::Redirect(0, 24));
        assert_eq!(to(ACK, 8, 0, b"GET / HTTP/1.1\r\n"), Answer::Redirect(0, 24), "sent again");
        assert_eq!(to(ACK, 24, 0, b"Host: x\r\n\r\n"), Answer::Say(ACK, 101, 35), "a second segment");
        assert_eq!(to(ACK, 24, 101, b""), Answer::Nothing);
        assert_eq!(to(ACK.with(TcpFlags::FIN), 24, 101, b""), Answer::Say(ACK, 101, 25));
        assert_eq!(to(TcpFlags::RST, 24, 0, b""), Answer::Nothing);
    }

    #[test]
    fn what_is_not_ours_or_not_http_is_reset() {
        let reset = TcpFlags::RST.with(ACK);
        assert_eq!(to(ACK, 8, 0, &[22, 3, 1, 0]), Answer::Reset(reset, 0, 12), "TLS");
        // A connection from before: only a request is answered.
        assert_eq!(to(ACK, 8, 5_000, b""), Answer::Reset(reset, 5_000, 8));
        assert_eq!(to(ACK, 8, 5_000, b"more"), Answer::Reset(reset, 5_000, 12));
        assert_eq!(to(ACK.with(TcpFlags::FIN), 8, INITIAL, b""), Answer::Reset(reset, INITIAL, 9));
        assert_eq!(to(ACK, 8, 5_000, b"POST /a"), Answer::Redirect(5_000, 15));
        assert_eq!(to(ACK.with(TcpFlags::SYN), 8, 0, b""), Answer::Reset(reset, 0, 8), "a server");
        assert_eq!(to(TcpFlags(0), 8, 0, b"GET /"), Answer::Nothing);
    }
}
