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
    Carrier, End, Evidence, Examination, Limits, Packet, Progress, Room, Sheet, Shown, Side, Verdict,
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

    /// What was found written in the packet that was looked into last.
    pub const fn sheet(&self) -> &Sheet {
        &self.room.sheet
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
        let side = if from_subscriber { own } else { own.other() };
        let (client, server) = if own == Side::Client { (subscriber, peer) } else { (peer, subscriber) };
        let (segment, payload) = (transport.segment, transport.payload);
        let shown = Shown { now: Nanos(0), carrier, side, client, server, segment, payload };
        let room = &mut surroundings.room;
        room.seek_ja4(knowledge.bundle.has_ja4s());
        let progress = self.examination.step(&knowledge.classifier, &LIMITS, room, &shown);
        self.application.read(knowledge, carrier, payload, &room.sheet);
        if carrier == Carrier::Udp
            && self.examination.found() == Some(Protocol::Dns)
            && let Some(message) = dns::Message::parse(transport.payload)
        {
            let Surroundings { room, askers, .. } = surroundings;
            let host = room.sheet.host.bytes();
            let said = Said { message, host, from_subscriber, port: subscriber.port, resolver: peer };
            knowledge.follow(&said, |asks| askers.names(subscriber.address, asks));
        }
        match progress {
            Progress::Goes => Standing::SoFar(self.application.application()),
            Progress::Ends => Standing::Known(self.conclude(knowledge, surroundings, packet, server)),
        }
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
