//! A UE that asks for a page is sent to another one (Redirect Information, TS 29.244 §5.4.7, §8.2.20).
//!
//! **Problem.** The packets of a rule that redirects go nowhere, so nobody would ever hear the request that is to be answered: TCP first wants a connection.
//!
//! **Model.** To the UE, we are the server, and remember nothing of it. Each segment says all that is needed to answer it: a SYN is acknowledged by a
//! sequence number that is a keyed hash of the connection; a request is answered by "302 Found" and the end of the connection in one segment; the
//! UE's own end is acknowledged. A segment that acknowledges what we have said, or will say, belongs to a connection of ours; any other one to a
//! connection that there was before the rule. There a request is answered all the same, and all else is reset.
//!
//! **Who was there before.** The server of such a connection would go on sending to a UE that no longer knows it. It hears a reset, with the number of
//! the segment that it does not get: the next one that it waits for, as a rule. If it isn't, the server asks back (RFC 5961 §3.2), the UE, which knows
//! of no connection, says no by a reset of its own, and that is passed on. A segment makes at most one of 40 octets (60 of IPv6), to where
//! the UE has sent it, from its own address: nothing is reflected or amplified.
//!
//! **What can't be redirected.** TLS: no certificate is ours, so the connection is reset at its first words ([`Reason::RedirectReset`]). What is no TCP, and
//! fragments, are dropped ([`Reason::RedirectDropped`]): a browser that tries QUIC takes TCP then. A request whose first segment doesn't begin with a
//! method of HTTP is not seen as one.
//!
//! **What it costs the subscriber.** Nothing. Redirected packets go nowhere, and what we say is our own: neither is measured, and no quota, gate or rate holds
//! it back. A UE whose quota is used up is the one that most needs to hear where to get another.

use crate::Reason;
use crate::datapath::Datapath;
use crate::meta::{Kind, Meta, packet_of};
use crate::network::{Context, make};
use crate::stages::classify::classify;
use crate::stages::parse::{internal, internal_header};
use crate::state::conversation::Known;
use crate::state::treatment::{Treatment, past_redirection, treatment};
use io::{Frame, FramePool};
use packet::tcp::{TcpFlags, TcpHeader, TcpView};
use packet::{IpPacket, IpProtocol, PacketBuilder};
use session::rules::{Pdr, Rules};
use std::net::IpAddr;
use tables::hash::mix;

/// Methods of HTTP that begin a request (RFC 9110 §9).
const METHODS: [&[u8]; 8] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT "];

/// Without structure: the fraction of the square root of 3.
const SALT: u64 = 0xbb67_ae85_84ca_a73b;

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
    let is_tls = matches!(payload, [22, 3, ..]);
    if !is_ours(segment, initial, length) || is_tls || flags.contains(TcpFlags::SYN) {
        return Answer::Reset(TcpFlags::RST.with(TcpFlags::ACK), acknowledged, next);
    }
    if payload.is_empty() && !ends {
        return Answer::Nothing;
    }
    // The rest of a request, or its end. By then all that we say was said.
    Answer::Say(TcpFlags::ACK, first.wrapping_add(length + 1), next)
}

/// Whether a segment acknowledges what we have said or will say: up to the end, which counts as an octet.
fn is_ours(segment: &TcpView<'_>, initial: u32, length: u32) -> bool {
    let said = segment.acknowledgement().wrapping_sub(initial.wrapping_add(1));
    segment.flags().contains(TcpFlags::ACK) && said <= length + 1
}

/// What the server hears that a segment is for: flags, sequence and acknowledgement number. `None`: the connection is ours, or is yet to begin.
fn farewell(segment: &TcpView<'_>, initial: u32, length: u32) -> Option<(TcpFlags, u32, u32)> {
    let flags = segment.flags();
    let (is_over, answers) = (flags.contains(TcpFlags::RST), flags.contains(TcpFlags::ACK));
    if is_ours(segment, initial, length) || !(is_over || answers) {
        return None;
    }
    let acknowledged = if answers { segment.acknowledgement() } else { 0 };
    let flags = if answers { TcpFlags::RST.with(TcpFlags::ACK) } else { TcpFlags::RST };
    Some((flags, segment.sequence(), acknowledged))
}

/// What is said to a request.
fn page(url: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {url}\r\nCache-Control: no-store\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

impl<F: Frame> Datapath<F> {
    /// Answers a UE's packet in place of whom it is for. `to`: the rule, and which of the rules' URLs. `place`: of the session.
    #[cold]
    pub(crate) fn redirect<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        (rules, pdr, to): (&Rules, &Pdr, u16),
        place: (u16, u32),
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
        let initial = self.initial(ends(&ip), ports);
        let length = page.len() as u32;
        let said = answer(&segment, initial, length);
        let is_page = matches!(said, Answer::Redirect(..));
        let to_ue = match said {
            Answer::Nothing => None,
            Answer::Say(flags, sequence, next) | Answer::Reset(flags, sequence, next) => {
                Some((flags, sequence, next))
            }
            Answer::Redirect(sequence, next) => {
                Some((TcpFlags::PSH.with(TcpFlags::ACK).with(TcpFlags::FIN), sequence, next))
            }
        };
        if let Some(to_ue) = to_ue {
            if !self.rates.redirects.allow(cx.now) {
                return Err(Reason::ErrorRateLimited);
            }
            let payload = if is_page { page.as_bytes() } else { &[] };
            let ends = (ip.key.destination, ip.key.source, ports.1, ports.0);
            if let Some(frame) = self.segment(cx, meta.v6, ends, to_ue, payload) {
                self.counters.redirected += u64::from(is_page);
                self.answer(cx, rules, place, frame);
            }
        }
        if let Some(to_server) = farewell(&segment, initial, length)
            && self.rates.redirects.allow(cx.now)
        {
            let ends = (ip.key.source, ip.key.destination, ports.0, ports.1);
            if let Some(frame) = self.segment(cx, meta.v6, ends, to_server, &[]) {
                // As if the UE had sent it, by the same rule.
                let len = frame.len().saturating_sub(14) as u16;
                let meta = Meta { kind: Kind::Tunnel, inner: 14, len, tos: 0, ..*meta };
                let way = (place, pdr.far, past_redirection(rules, pdr));
                if let Err(reason) = self.send_by(cx, &meta, way, frame) {
                    self.counters.drop(reason);
                }
            }
        }
        if matches!(said, Answer::Reset(..)) {
            return Err(Reason::RedirectReset);
        }
        self.counters.consumed += 1;
        Ok(())
    }

    /// The sequence number that a connection between these ends begins with.
    fn initial(&self, [ue, server]: [u128; 2], ports: (u16, u16)) -> u32 {
        let secret = self.config.seed;
        // Nothing that is known may be a whole factor: half of an IPv4 address here is zero, and so would be the product.
        let half = |end: u128, turn: u32| {
            mix(
                end as u64 ^ secret.rotate_left(turn),
                (end >> 64) as u64 ^ secret.rotate_left(turn + 7) ^ SALT,
            )
        };
        let ports = u64::from(ports.0) << 16 | u64::from(ports.1);
        mix(half(ue, 13) ^ ports ^ SALT, half(server, 37) ^ secret.rotate_left(51) ^ !SALT) as u32
    }

    /// An internal frame with a segment between these ends: from, to, and their ports.
    fn segment<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        v6: bool,
        (from, to, source_port, destination_port): (IpAddr, IpAddr, u16, u16),
        (flags, sequence, acknowledgement): (TcpFlags, u32, u32),
        payload: &[u8],
    ) -> Option<F> {
        let header =
            TcpHeader { source_port, destination_port, sequence, acknowledgement, flags, window: u16::MAX };
        self.scratch.clear();
        PacketBuilder::new().ip(from, to).tcp(header).build_into(&mut self.scratch, payload);
        make(cx.pool, &mut self.counters, &[&internal_header(v6), &self.scratch])
    }

    /// Sends our own word to the session's UE, by the rule for what nobody has looked into.
    fn answer<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        rules: &Rules,
        place: (u16, u32),
        frame: F,
    ) {
        let (shard, slot) = place;
        let meta = Meta { shard, slot, ..internal(&self.config.prefixes, frame.bytes()) };
        let packet = packet_of(frame.bytes(), &meta);
        let found = classify(rules, None, &meta, packet, Some(Known::NONE), &mut self.fragment_flows, cx.now);
        let pdr = found.rule.ok().and_then(|index| rules.pdrs.get(usize::from(index)));
        match pdr.map(|pdr| (pdr.far, treatment(rules, pdr))) {
            Some((far, way @ Treatment::Tunnel(_))) => {
                if let Err(reason) = self.send_by(cx, &meta, (place, far, way), frame) {
                    self.counters.drop(reason);
                }
            }
            // Where the UE waits to be found, or hears nothing, it does as other packets to it do.
            _ => self.arisen.push(frame),
        }
    }
}

fn ends(ip: &IpPacket) -> [u128; 2] {
    [ip.key.source, ip.key.destination].map(|address| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ACK: TcpFlags = TcpFlags::ACK;
    const INITIAL: u32 = u32::MAX;

    /// What becomes of this segment, where the redirection is 100 octets long.
    fn shown<T>(
        flags: TcpFlags,
        sequence: u32,
        acknowledgement: u32,
        payload: &[u8],
        what: impl Fn(&TcpView<'_>, u32, u32) -> T,
    ) -> T {
        let (source_port, destination_port) = (1000, 80);
        let header =
            TcpHeader { source_port, destination_port, sequence, acknowledgement, flags, window: 1000 };
        let ends = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let packet = PacketBuilder::new().ipv4(ends.0, ends.1).tcp(header).build(payload);
        what(&TcpView::parse(&packet[20..]).unwrap(), INITIAL, 100)
    }

    fn to(flags: TcpFlags, sequence: u32, acknowledgement: u32, payload: &[u8]) -> Answer {
        shown(flags, sequence, acknowledgement, payload, answer)
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

    #[test]
    fn the_server_of_a_connection_from_before_hears_that_it_is_over() {
        let server = |flags, sequence, acknowledgement, payload: &[u8]| {
            shown(flags, sequence, acknowledgement, payload, farewell)
        };
        let reset = TcpFlags::RST.with(ACK);
        for payload in [&b""[..], b"more", b"GET / HTTP/1.1\r\n", &[22, 3, 1, 0]] {
            assert_eq!(server(ACK, 8, 5_000, payload), Some((reset, 8, 5_000)));
            assert_eq!(server(ACK, 8, 0, payload), None, "ours");
        }
        assert_eq!(server(ACK.with(TcpFlags::FIN), 8, 5_000, b""), Some((reset, 8, 5_000)));
        assert_eq!(server(reset, 8, 5_000, b""), Some((reset, 8, 5_000)));
        // What a UE says that knows of no connection, to whom asks back.
        assert_eq!(server(TcpFlags::RST, 9, 0, b""), Some((TcpFlags::RST, 9, 0)));
        assert_eq!(server(reset, 8, 101, b""), None, "ours, to the end");
        assert_eq!(server(reset, 8, 102, b""), Some((reset, 8, 102)));
        assert_eq!(server(TcpFlags::SYN, 7, 0, b""), None);
        assert_eq!(server(TcpFlags(0), 7, 0, b"what"), None);
    }
}
