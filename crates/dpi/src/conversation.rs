//! Classification alone, for those who track flows themselves.
//!
//! A user plane has tables of flows, subscribers and times of its own. It shows the packets of a *conversation*, both directions of a 5-tuple, and keeps
//! what is remembered of it ([`Conversation`]); what is needed for all conversations of a set of subscribers, it keeps beside ([`Surroundings`]).
//!
//! ```
//! use dpi::conversation::{Conversation, Standing, Surroundings};
//! use dpi::{Knowledge, Packet, signatures::Bundle};
//! use packet::{IpPacket, PacketBuilder};
//!
//! let knowledge = Knowledge::new(Bundle::built_in());
//! let mut surroundings = Surroundings::new(1);
//! let bytes = PacketBuilder::new()
//!     .ipv4([10, 0, 0, 1].into(), [198, 51, 100, 1].into())
//!     .udp(40_000, 53)
//!     .build(b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x03www\x07youtube\x03com\0\0\x01\0\x01");
//! let packet = Packet { ip: IpPacket::parse(&bytes)?, bytes: &bytes, tunnel: None };
//! let mut conversation = Conversation::default();
//! let Standing::SoFar(Some(application)) = conversation.step(&knowledge, &mut surroundings, &packet, true) else { panic!() };
//! assert_eq!(&*knowledge.bundle.application(application).name, "youtube");
//! # Ok::<(), packet::Malformed>(())
//! ```

use crate::Protocol;
use crate::classify::transport::{Transport, carrier};
use crate::classify::{
    Carrier, Desk, End, Evidence, Examination, Limits, Packet, Progress, Room, Sheet, Shown, Side, Verdict,
};
use crate::knowledge::{Knowledge, Likely};
use crate::protocols::{dns, ip};
use crate::signatures::ApplicationId;
use crate::track::names::{Askers, Said};
use tables::Nanos;

/// Messages in pieces, of all conversations that share their surroundings.
const ASSEMBLIES: usize = 64;

/// A user plane asks for applications, which behaviour doesn't name: no packet is counted for that.
const LIMITS: Limits = Limits { behaviour: 0, ..Limits::USUAL };

/// What is needed for looking into packets of a set of subscribers, whatever conversation they are of.
#[derive(Debug)]
pub struct Surroundings {
    room: Room,
    askers: Askers,
    seed: u64,
}

impl Surroundings {
    /// Forgets whose the addresses of names are: with other signatures, applications have other numbers.
    pub fn forget_names(&mut self) {
        self.askers = Askers::new(self.seed);
    }

    /// Exchanges where it is written down what packets say: who has surroundings for many sets of subscribers may do with one desk for all.
    pub const fn exchange(&mut self, desk: &mut Box<Desk>) {
        std::mem::swap(&mut self.room.desk, desk);
    }

    /// What was found written in the packet that was looked into last.
    pub const fn sheet(&self) -> &Sheet {
        &self.room.desk.sheet
    }

    /// The seed should be random.
    pub fn new(seed: u64) -> Self {
        Self { room: Room::new(ASSEMBLIES), askers: Askers::new(seed), seed }
    }
}

/// What is remembered of a conversation while it is looked into.
#[derive(Debug, Default)]
pub struct Conversation {
    examination: Examination,
    application: Likely,
    /// Which side the subscriber is; not known before the first packet.
    subscriber: Option<Side>,
}

const _: () = assert!(size_of::<Conversation>() <= 280);

/// What is known of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nothing more will be found out.
    Known(Verdict),
    /// More packets have to be seen; the application, as far as is known.
    SoFar(Option<ApplicationId>),
}

impl Conversation {
    /// Looks into one more packet of it. `from_subscriber`: the subscriber sends it.
    pub fn step(
        &mut self,
        knowledge: &Knowledge,
        surroundings: &mut Surroundings,
        packet: &Packet<'_>,
        from_subscriber: bool,
    ) -> Standing {
        let key = packet.ip.key;
        let transport = Transport::read(packet);
        let Some(carrier) = transport.carrier else {
            let protocol = ip::of_ip(key.protocol.0, transport.payload);
            return Standing::Known(Verdict { protocol, ..Verdict::UNKNOWN });
        };
        let (source, destination) = key.ports.map_or((0, 0), |it| (it.source, it.destination));
        let sender = End { address: key.source, port: source };
        let receiver = End { address: key.destination, port: destination };
        let (subscriber, peer) = if from_subscriber { (sender, receiver) } else { (receiver, sender) };
        let is_first = self.subscriber.is_none();
        let own = *self.subscriber.get_or_insert_with(|| {
            let is_client = transport.comes_from_client(packet, &knowledge.classifier) == from_subscriber;
            if is_client { Side::Client } else { Side::Server }
        });
        if is_first
            && let Some(application) = surroundings.askers.application(subscriber.address, peer.address)
        {
            self.application.weigh(application, Evidence::Memory);
        }
        if !is_first && transport.is_silent() {
            surroundings.room.desk.sheet.clear();
            return Standing::SoFar(self.application.application());
        }
        let side = if from_subscriber { own } else { own.other() };
        let (client, server) = if own == Side::Client { (subscriber, peer) } else { (peer, subscriber) };
        let (segment, payload) = (transport.segment, transport.payload);
        let shown = Shown { now: Nanos(0), carrier, side, client, server, segment, payload };
        let room = &mut surroundings.room;
        room.seek_ja4(knowledge.bundle.has_ja4s());
        let mut progress = self.examination.step(&knowledge.classifier, &LIMITS, room, &shown);
        self.application.read(knowledge, carrier, payload, &room.desk.sheet);
        if carrier == Carrier::Udp
            && self.examination.found() == Some(Protocol::Dns)
            && let Some(message) = dns::Message::parse(transport.payload)
        {
            let Surroundings { room, askers, .. } = surroundings;
            let host = room.desk.sheet.host.bytes();
            let said = Said { message, host, from_subscriber, port: subscriber.port, resolver: peer };
            knowledge.follow(&said, |asks| askers.names(subscriber.address, asks));
            if side == Side::Server && self.is_answered(&message) {
                progress = Progress::Ends;
            }
        }
        match progress {
            Progress::Goes => Standing::SoFar(self.application.application()),
            Progress::Ends => Standing::Known(self.conclude(knowledge, surroundings, packet, server)),
        }
    }

    /// Whether this message answers the last question, and there were as many answers as questions: nothing more is waited for. Most resolvers ask each
    /// question from a port of its own (RFC 5452 §9.2), but both families' addresses from one, at once.
    fn is_answered(&self, message: &dns::Message<'_>) -> bool {
        let [client, server] = &self.examination.history().sides;
        let is_of_last = client.last.first_chunk().is_some_and(|id| u16::from_be_bytes(*id) == message.id);
        message.is_answer() && is_of_last && client.packets > 0 && server.packets >= client.packets
    }

    fn conclude(
        &mut self,
        knowledge: &Knowledge,
        surroundings: &mut Surroundings,
        packet: &Packet<'_>,
        server: End,
    ) -> Verdict {
        let Some(carrier) = carrier(packet.ip.key.protocol) else { return Verdict::UNKNOWN };
        let verdict =
            self.examination.conclude(&knowledge.classifier, &mut surroundings.room, carrier, server.port);
        self.application.complete(verdict, knowledge, carrier, server)
    }

    /// What the application rests on that it is taken for so far.
    pub fn evidence(&self) -> Evidence {
        self.application.evidence()
    }

    /// Nobody asks any more: what it holds of its surroundings goes back.
    pub fn end(&mut self, surroundings: &mut Surroundings) {
        self.examination.give_back(&mut surroundings.room);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::signatures::Bundle;
    use packet::tcp::{TcpFlags, TcpHeader};
    use packet::{IpPacket, PacketBuilder};
    use std::net::Ipv4Addr;

    const UE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

    /// A conversation with what it needs.
    struct Talk {
        knowledge: Knowledge,
        surroundings: Surroundings,
        conversation: Conversation,
    }

    impl Talk {
        fn new() -> Self {
            Self {
                knowledge: Knowledge::new(Bundle::built_in()),
                surroundings: Surroundings::new(1),
                conversation: Conversation::default(),
            }
        }

        fn step(&mut self, bytes: &[u8], from_subscriber: bool) -> Standing {
            let packet = Packet { ip: IpPacket::parse(bytes).unwrap(), bytes, tunnel: None };
            self.conversation.step(&self.knowledge, &mut self.surroundings, &packet, from_subscriber)
        }

        /// A question with this number, or an answer without addresses.
        fn dns(&mut self, number: u16, is_answer: bool) -> Standing {
            let flags: [u8; 2] = if is_answer { [0x81, 0x80] } else { [1, 0] };
            let [high, low] = number.to_be_bytes();
            let header = [high, low, flags[0], flags[1], 0, 1, 0, 0, 0, 0, 0, 0];
            let message = [&header[..], b"\x03www\x07youtube\x03com\0\0\x01\0\x01"].concat();
            let builder = PacketBuilder::new();
            let bytes = if is_answer {
                builder.ipv4(SERVER, UE).udp(53, 40_000).build(&message)
            } else {
                builder.ipv4(UE, SERVER).udp(40_000, 53).build(&message)
            };
            self.step(&bytes, !is_answer)
        }
    }

    const fn is_known(standing: Standing) -> bool {
        matches!(standing, Standing::Known(_))
    }

    #[test]
    fn who_has_all_answers_asks_no_more() {
        let mut talk = Talk::new();
        assert!(!is_known(talk.dns(7, false)));
        assert!(!is_known(talk.dns(8, true)), "an answer to nobody's question");
        assert!(!is_known(talk.dns(9, false)));
        let Standing::Known(verdict) = talk.dns(9, true) else { panic!() };
        assert_eq!(verdict.protocol, Some(Protocol::Dns));
        let application = verdict.application.unwrap();
        assert_eq!(&*talk.knowledge.bundle.application(application).name, "youtube");
        // Both at once: the first answer is not the last.
        let mut talk = Talk::new();
        let said = [(1, false), (2, false), (1, true)].map(|(number, is_answer)| talk.dns(number, is_answer));
        assert!(!said.into_iter().any(is_known));
        assert!(is_known(talk.dns(2, true)));
        // The one that comes first answers the second question: the other is waited for.
        let mut talk = Talk::new();
        let said = [(1, false), (2, false), (2, true)].map(|(number, is_answer)| talk.dns(number, is_answer));
        assert!(!said.into_iter().any(is_known));
    }

    /// What a segment without payload is looked into for is who begins, and where a stream does.
    #[test]
    fn silent_segments_make_no_difference() {
        let segment = |from_client: bool, sequence: u32, flags: TcpFlags, payload: &[u8]| {
            let ((from, source_port), (to, destination_port)) =
                if from_client { ((UE, 40_000), (SERVER, 80)) } else { ((SERVER, 80), (UE, 40_000)) };
            let header =
                TcpHeader { source_port, destination_port, sequence, acknowledgement: 1, flags, window: 9 };
            PacketBuilder::new().ipv4(from, to).tcp(header).build(payload)
        };
        let request = b"GET / HTTP/1.1\r\nHost: www.youtube.com\r\n\r\n";
        let (first, second) = request.split_at(20);
        let silent = segment(true, 9, TcpFlags::ACK, b"");
        let said = [
            (segment(true, 99, TcpFlags::SYN, b""), true),
            (segment(false, 999, TcpFlags::SYN.with(TcpFlags::ACK), b""), false),
            (segment(true, 100, TcpFlags::ACK, first), true),
            (segment(true, 120, TcpFlags::ACK, second), true),
        ];
        let mut standings = Vec::new();
        for silences in 0..2 {
            let mut talk = Talk::new();
            let mut standing = Standing::SoFar(None);
            for (bytes, from_subscriber) in &said {
                standing = talk.step(bytes, *from_subscriber);
                for _ in 0..silences {
                    let before = talk.conversation.application.application();
                    assert_eq!(talk.step(&silent, true), Standing::SoFar(before));
                    assert!(talk.surroundings.sheet().is_empty());
                }
            }
            standings.push(standing);
        }
        assert_eq!(standings[0], standings[1]);
        let Standing::Known(Verdict { application: Some(application), .. }) = standings[0] else {
            panic!("{standings:?}")
        };
        let knowledge = Knowledge::new(Bundle::built_in());
        assert_eq!(&*knowledge.bundle.application(application).name, "youtube");
    }
}
