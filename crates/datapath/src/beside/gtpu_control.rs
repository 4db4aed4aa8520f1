//! GTP-U messages other than G-PDUs (TS 29.281 §7), each way.

use crate::Reason;
use crate::command::Event;
use crate::datapath::Datapath;
use crate::meta::{Kind, Meta};
use crate::network::Context;
use crate::state::record::flag;
use io::{Frame, FramePool};
use packet::gtpu::{ExtensionType, MessageType};
use packet::gtpu_message::{self, ErrorIndication};
use packet::{GTP_U_PORT, GtpuView, Ipv4View, Ipv6View, PacketBuilder, Teid};
use std::net::IpAddr;

impl<F: Frame> Datapath<F> {
    /// A message that carries no user packet.
    pub(crate) fn signalling<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: &F,
    ) {
        let bytes = frame.bytes();
        let Ok(message) = GtpuView::parse(bytes.get(meta.inner as usize..).unwrap_or_default()) else {
            self.counters.drop(Reason::Malformed);
            return;
        };
        match message.message_type() {
            MessageType::ECHO_REQUEST => {
                if self.rates.echo.allow(cx.now) {
                    let mut answer = Vec::with_capacity(gtpu_message::ECHO_RESPONSE_LEN);
                    gtpu_message::emit_echo_response(&mut answer, message.sequence().unwrap_or(0));
                    self.reply(cx, meta, bytes, &answer, true);
                    self.counters.consumed += 1;
                } else {
                    self.counters.drop(Reason::ErrorRateLimited);
                }
            }
            MessageType::ERROR_INDICATION => match ErrorIndication::parse(message.payload()) {
                Ok(error) => self.error_indicated(cx, meta, bytes, error),
                Err(_) => self.counters.drop(Reason::Malformed),
            },
            MessageType::END_MARKER => self.end_marker_received(cx, meta, bytes),
            MessageType::ECHO_RESPONSE | MessageType::SUPPORTED_EXTENSION_HEADERS => {
                self.counters.consumed += 1;
            }
            _ => self.counters.drop(Reason::GtpuUnknownType),
        }
    }

    /// A far end doesn't know a tunnel: tells the control side, which knows who sends into it. Only the far end itself is believed,
    /// and who is one of ours has a limit of its own, which strangers can't use up.
    fn error_indicated<P>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: &[u8],
        ErrorIndication { teid, peer }: ErrorIndication,
    ) {
        if outer(frame, meta).is_none_or(|(source, ..)| source != peer) {
            self.counters.drop(Reason::ForeignErrorIndication);
            return;
        }
        // A far end of other workers' sessions only is a stranger here.
        let known = self.network.peers.number(peer).is_some();
        let limit = if known { &mut self.rates.indicated } else { &mut self.rates.indicated_by_strangers };
        if limit.allow(cx.now) {
            cx.out.events.push(Event::ErrorIndication { teid, peer });
            self.counters.consumed += 1;
        } else {
            self.counters.drop(Reason::ErrorRateLimited);
        }
    }

    /// The last packet of an old path: goes on to the next leg of the tunnel, if there is one (§5.1, TS 23.501 §5.8.2.9).
    fn end_marker_received<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: &[u8],
    ) {
        let (shard, slot) = self.directory.teid(meta.teid);
        let meta = Meta { kind: Kind::Tunnel, shard, slot: slot.into(), ..*meta };
        let shard = self.shards.get(shard as usize).and_then(Option::as_deref);
        let found = shard.and_then(|shard| Some((shard, shard.record(&meta)?)));
        let Some((shard, record)) = found else {
            self.counters.drop(Reason::UnknownTunnel);
            return;
        };
        if !shard.would_hear(cx.now, &meta, frame) {
            self.counters.drop(Reason::ForeignFarEnd);
            return;
        }
        self.counters.consumed += 1;
        if record.has(flag::OUTER) {
            let teid = Teid(record.remote_teid);
            if let Some(address) = self.network.peers.get(record.peer).map(|peer| peer.address) {
                self.end_marker(cx, address, teid);
            }
        }
    }

    /// Sends an end marker into a tunnel.
    pub(crate) fn end_marker<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        peer: IpAddr,
        teid: Teid,
    ) {
        self.network.originate(cx, &mut self.counters, peer, |own| {
            let builder = PacketBuilder::new().ip(own, peer).udp(GTP_U_PORT, GTP_U_PORT);
            builder.gtpu_message(MessageType::END_MARKER, teid).build(&[])
        });
    }

    /// A G-PDU whose TEID is nobody's (§7.3.1).
    #[cold]
    #[inline(never)]
    pub(crate) fn unknown_teid<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: &F,
    ) {
        self.counters.drop(Reason::UnknownTeid);
        if !self.rates.error.allow(cx.now) {
            return;
        }
        let Some((_, own, port)) = outer(frame.bytes(), meta) else { return };
        let mut message = Vec::new();
        let error = ErrorIndication { teid: Teid(meta.teid), peer: own };
        gtpu_message::emit_error_indication(&mut message, 0, &error, Some(port));
        self.reply(cx, meta, frame.bytes(), &message, false);
    }

    /// A G-PDU with an extension header that must be understood and isn't (§5.2.1, §7.2.3).
    pub(crate) fn unknown_extension<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: &F,
    ) {
        self.counters.drop(Reason::GtpuUnknownExtension);
        if !self.rates.error.allow(cx.now) {
            return;
        }
        let mut message = Vec::new();
        gtpu_message::emit_supported_extensions(&mut message, 0, &[ExtensionType::PDU_SESSION_CONTAINER]);
        self.reply(cx, meta, frame.bytes(), &message, false);
    }

    /// Answers a GTP-U message: a response goes to the port that the request came from, anything else to the GTP-U
    /// port (§4.4.2).
    fn reply<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        request: &[u8],
        message: &[u8],
        response: bool,
    ) {
        let Some((peer, own, port)) = outer(request, meta) else { return };
        let port = if response { port } else { GTP_U_PORT };
        let packet = PacketBuilder::new().ip(own, peer).udp(GTP_U_PORT, port).build(message);
        self.network.answer(cx, &mut self.counters, meta.interface, request, &packet, own.is_ipv6());
    }
}

/// Source and destination of the outer packet, and its UDP source port.
fn outer(frame: &[u8], meta: &Meta) -> Option<(IpAddr, IpAddr, u16)> {
    let packet = frame.get(meta.l3 as usize..)?;
    let (source, destination, payload): (IpAddr, IpAddr, &[u8]) = if packet.first()? >> 4 == 4 {
        let ip = Ipv4View::parse(packet).ok()?;
        (ip.source().into(), ip.destination().into(), ip.payload())
    } else {
        let ip = Ipv6View::parse(packet).ok()?;
        (ip.source().into(), ip.destination().into(), ip.payload())
    };
    let [p0, p1] = *payload.first_chunk::<2>()?;
    Some((source, destination, u16::from_be_bytes([p0, p1])))
}
