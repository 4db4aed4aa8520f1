//! What is this flow? Somebody who looks into its packets may know.
//!
//! **Problem.** A rule may ask for packets of an application (PDI with Application ID, TS 29.244 §5.4.10), and what application a flow is of is
//! seen in its first few packets, not in the first one, and in packets of both directions. Until then the flow's packets need some rule to
//! go by, and afterwards they must not pay for the question.
//!
//! **Model.** An [`Inspector`] is shown the packets of a *conversation*: both directions of a 5-tuple of one session. It says what it knows by now
//! ([`Verdict`]): which application it is; that it is none; or that it wants to see more, with what it takes it for so far. As long as it
//! wants to see more, flows whose rule depends on the answer are shown to it packet by packet, and go by the rule that matches so far. With the
//! answer, the flow's rule changes between two packets, and from then on the flow is like any other. Flows whose rule doesn't depend on an
//! application are never shown.
//!
//! What is found is a [`Lineage`]: the application, and all that it is a part of. A rule matches if its application is among these.
//!
//! An inspector has no sockets, clock or threads: it is given bytes and the time. What it remembers of a conversation is its
//! [`Inspector::State`], one for each conversation under question. States are kept in a slab of the conversation's shard, which moves with it;
//! so one conversation's packets are shown in the order in which the datapath judges them, on one worker at a time.
//!
//! **Bounds.** An inspector that wants to see more gets so many packets and bytes of a conversation ([`Inspection::budget`]), then what it takes the
//! conversation for is its verdict. So many conversations may be under question in the whole process ([`Inspection::places`]); beyond,
//! the one that has been waiting for longest in the same shard gets the verdict that it has so far. A conversation is forgotten with its last flow.
//!
//! **What is not shown.** Packets that make no flow: fragments, IPv6 packets with extension headers, packets of sessions whose filters ask for security
//! parameter indices or flow labels. No application's rule matches these. A packet that is dropped or waits for its UE begins nothing: its
//! conversation is forgotten with it, unless another packet of it has passed. It is shown again when it is judged again.

use crate::state::permit::Places;
use packet::{IpPacket, IpProtocol};
use pfcp::{PdrId, Seid};
use session::applications::Lineage;
use session::rules::Application;
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;
use tables::{Nanos, Slab};

/// Looks into packets. One for all workers: what it keeps of a conversation is its [`Inspector::State`].
///
/// ```
/// use datapath::inspect::{Direction, Inspector, Payload, Verdict};
/// use session::applications::Lineage;
/// use session::rules::Application;
/// use tables::Nanos;
///
/// /// Takes for application 7 whatever begins with a G.
/// #[derive(Debug)]
/// struct Gs;
///
/// impl Inspector for Gs {
///     type State = ();
///     type Room = ();
///     fn room(&self, _: u64) {}
///     fn step(&self, (): &mut (), (): &mut (), payload: &Payload<'_>, _: Direction, _: Nanos) -> Verdict {
///         match payload.bytes().first() {
///             Some(b'G') => Verdict::Is(Application(7).into()),
///             Some(_) => Verdict::None,
///             None => Verdict::SoFar(Lineage::NONE),
///         }
///     }
/// }
/// ```
pub trait Inspector: Debug + Send + Sync + 'static {
    /// What it remembers of a conversation while it is under question.
    type State: Debug + Default + Send;
    /// What it keeps for all conversations of a shard: one for each shard, and it doesn't move with it.
    type Room: Debug + Send;

    /// Room for a shard's conversations. The seed is random.
    fn room(&self, seed: u64) -> Self::Room;

    /// Is shown one more packet. Must not panic, whatever is in it.
    fn step(
        &self,
        room: &mut Self::Room,
        state: &mut Self::State,
        payload: &Payload<'_>,
        direction: Direction,
        now: Nanos,
    ) -> Verdict;

    /// What the last word on a conversation rests on.
    fn why(&self, state: &Self::State) -> Why {
        let _ = state;
        Why::default()
    }

    /// A conversation is under question no longer: what its state holds of the room goes back.
    fn end(&self, room: &mut Self::Room, state: Self::State) {
        let _ = (room, state);
    }
}

/// What an inspector says of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// It is the first one's, and so of all that this is a part of.
    Is(Lineage),
    /// It is no application's that is known.
    None,
    /// So far it is taken for this, or for none: more has to be seen.
    SoFar(Lineage),
}

/// What an inspector's word rests on, by a number of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Why(pub u8);

/// What is known of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Finding {
    /// Its application, or what it is taken for so far; `None`: none that is known.
    pub application: Option<Application>,
    /// It is under question.
    pub open: bool,
    /// What that rests on.
    pub why: Why,
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From the UE.
    Uplink,
    /// To the UE.
    Downlink,
}

/// A packet that is shown.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'p> {
    /// The UE's whole IP packet.
    pub packet: &'p [u8],
    /// Its headers.
    pub ip: IpPacket,
}

impl<'p> Payload<'p> {
    /// What TCP, UDP or SCTP carry; of other protocols, all behind the IP header.
    pub fn bytes(&self) -> &'p [u8] {
        let segment = self.packet.get(usize::from(self.ip.transport_offset)..).unwrap_or_default();
        let header = match self.ip.key.protocol {
            packet::IpProtocol::TCP => segment.get(12).map_or(20, |octet| usize::from(octet >> 4) * 4),
            packet::IpProtocol::UDP => 8,
            packet::IpProtocol::SCTP => 12,
            _ => 0,
        };
        segment.get(header..).unwrap_or_default()
    }
}

/// So much of a conversation is shown at most, if the inspector doesn't know earlier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Budget {
    /// Packets.
    pub packets: u32,
    /// Bytes of these packets, IP headers included.
    pub bytes: u32,
}

/// An application's traffic begins or ends: a conversation was found to be of it, or is over. Told where a rule's URR asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detection {
    /// It begins; or else it ends.
    pub begins: bool,
    /// The session.
    pub seid: Seid,
    /// The rule for the application that its packets were found to match first.
    pub pdr: PdrId,
    /// That of the rule: what was found may be a part of it.
    pub application: Application,
    /// The conversation: when its application was told, and a number. Another one of the session has another instance.
    pub instance: (Nanos, u32),
    /// The UE's end of the conversation, and the other one, with their ports.
    pub ends: [(IpAddr, Option<u16>); 2],
    /// What it carries.
    pub protocol: IpProtocol,
}

/// What is known or asked at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Inspected {
    /// Conversations that are remembered.
    pub conversations: usize,
    /// Of these, those under question.
    pub open: usize,
    /// Flows that go by a rule so far.
    pub flows: usize,
}

/// Who inspects, and how much.
#[derive(Clone, Debug)]
pub struct Inspection {
    inspector: Arc<dyn Opens>,
    /// See [`Budget`].
    pub budget: Budget,
    /// So many conversations are under question at a time, of all workers together that share it.
    pub places: Arc<Places>,
    /// All flows of all sessions are shown, not just those whose rule depends on it.
    pub of_all: bool,
}

impl Inspection {
    /// Of flows whose rule depends on it.
    pub fn new<I: Inspector>(inspector: I, budget: Budget, places: Arc<Places>) -> Self {
        Self { inspector: Arc::new(Arc::new(inspector)), budget, places, of_all: false }
    }

    pub(crate) fn open(&self, seed: u64) -> Box<dyn Questions> {
        self.inspector.open(seed)
    }
}

/// Makes room for an inspector's states, whatever they are.
trait Opens: Debug + Send + Sync {
    fn open(&self, seed: u64) -> Box<dyn Questions>;
}

impl<I: Inspector> Opens for Arc<I> {
    fn open(&self, seed: u64) -> Box<dyn Questions> {
        let room = self.room(seed);
        Box::new(States { inspector: Self::clone(self), states: Slab::new(u32::MAX), room })
    }
}

/// An inspector with its states of one shard's conversations.
pub(crate) trait Questions: Debug + Send {
    /// A number for one more conversation; `None`: there are too many.
    fn begin(&mut self) -> Option<u32>;
    fn step(&mut self, number: u32, payload: &Payload<'_>, direction: Direction, now: Nanos) -> Verdict;
    fn why(&self, number: u32) -> Why;
    fn end(&mut self, number: u32);
    /// Asks for the memory of a state.
    fn expect(&self, number: u32);
    fn len(&self) -> usize;
}

#[derive(Debug)]
struct States<I: Inspector> {
    inspector: Arc<I>,
    states: Slab<I::State>,
    room: I::Room,
}

impl<I: Inspector> Questions for States<I> {
    fn begin(&mut self) -> Option<u32> {
        self.states.insert(I::State::default()).ok()
    }

    fn step(&mut self, number: u32, payload: &Payload<'_>, direction: Direction, now: Nanos) -> Verdict {
        match self.states.get_mut(number) {
            Some(state) => self.inspector.step(&mut self.room, state, payload, direction, now),
            None => Verdict::None,
        }
    }

    fn why(&self, number: u32) -> Why {
        self.states.get(number).map_or_else(Why::default, |state| self.inspector.why(state))
    }

    fn end(&mut self, number: u32) {
        if let Some(state) = self.states.remove(number) {
            self.inspector.end(&mut self.room, state);
        }
    }

    fn expect(&self, number: u32) {
        self.states.prefetch_whole(number);
    }

    fn len(&self) -> usize {
        self.states.len()
    }
}
