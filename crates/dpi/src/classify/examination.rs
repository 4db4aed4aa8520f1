//! What is remembered of a flow while it is looked into.
//!
//! An examination is shown a flow's packets one by one, until it has a verdict. It knows which recognisers are still in question, puts a stream's
//! beginning together where one of them asks for more, and takes down what they find. A packet costs a few recognisers with a fitting first octet; a flow
//! gets so many packets ([`Limits`]), and then the best that was found is its verdict.

use crate::Protocol;
use crate::behaviour::Shape;
use crate::classify::assembly::{self, Assembly};
use crate::classify::classifier::{Classifier, Set};
use crate::classify::message::{Carrier, End, History, Message, Sheet, Side, Sums};
use crate::classify::recogniser::Answer;
use crate::classify::verdict::{Reason, Verdict};
use tables::Nanos;

/// So much of a flow is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Packets with a payload, while nothing is known.
    pub packets: u8,
    /// Packets with a payload once the protocol is known, and its recogniser wants to see more.
    pub open_packets: u8,
    /// Packets with a payload, those above among them, if nobody knows the flow: further ones are only counted, for how it behaves. 0: none are.
    pub behaviour: u8,
}

impl Limits {
    /// Unless others are given.
    pub const USUAL: Self = Self { packets: 12, open_packets: 20, behaviour: 40 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// What TCP says of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number of the payload's first octet; of a SYN, one more than its own.
    pub sequence: u32,
    /// It is a SYN: streams begin here.
    pub is_syn: bool,
}

/// A packet of the flow.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'p> {
    /// When it came.
    pub now: Nanos,
    /// What carries it.
    pub carrier: Carrier,
    /// Who sends it.
    pub side: Side,
    /// Who began the flow.
    pub client: End,
    /// The other end.
    pub server: End,
    /// Of TCP.
    pub segment: Option<Segment>,
    /// What TCP, UDP or SCTP carry.
    pub payload: &'p [u8],
}

/// One question that was asked, for those who want to know why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Who was asked.
    pub protocol: Protocol,
    /// What it said.
    pub answer: Answer,
    /// Octets that it was shown.
    pub octets: usize,
}

/// What is written on while one packet is looked into, and means nothing to the next one. Who has many rooms may do with one of these for all: its lines
/// are in the core's nearest cache then.
#[derive(Debug, Default)]
pub struct Desk {
    /// What the recognisers wrote down of the packet that was looked into last. What a stream's beginning says is here once, however often it was
    /// shown with more behind it; what one wrote who said no, never.
    pub sheet: Sheet,
    /// What the one who is asked writes.
    draft: Sheet,
    /// Sums of what was written of the stream's beginning that is looked at.
    told: Sums,
    /// Handed to a recogniser whose flow has none; kept by the flow if something was put in.
    spare: Box<Assembly>,
}

/// What a worker needs for looking into packets, whatever flow they are of.
#[derive(Debug, Default)]
pub struct Room {
    /// Where it is written down what packets say.
    pub desk: Box<Desk>,
    /// Every question that is asked goes here, if somebody wants to know.
    pub trace: Option<Vec<Step>>,
    #[expect(clippy::vec_box, reason = "a flow takes a box as it is, so none is allocated or copied")]
    unused: Vec<Box<Assembly>>,
    /// Assemblies that flows have.
    lent: usize,
    /// How many they may have; beyond, a message must come in one piece.
    pub most_assemblies: usize,
    /// Messages that could not be put together, since too many were being put together.
    pub refused: u64,
}

const _: () = assert!(size_of::<Examination>() <= 256);

/// Protocols that lie in each other, at most: a stream that only ever begins anew would be looked into for ever.
const DEPTH: u8 = 4;
/// Assemblies that are kept for the next flow.
const UNUSED: usize = 64;

impl Room {
    /// For flows of which `most_assemblies` have a message in pieces.
    pub fn new(most_assemblies: usize) -> Self {
        Self { most_assemblies, ..Self::default() }
    }

    /// Somebody seeks fingerprints of TLS clients, or nobody does.
    pub const fn seek_ja4(&mut self, seeks: bool) {
        self.desk.draft.seeks_ja4 = seeks;
    }

    /// Assemblies that flows have.
    pub const fn lent(&self) -> usize {
        self.lent
    }

    /// Bytes of memory that assemblies take, at most: those that are lent, those that are kept, and one beside.
    pub const fn memory(&self) -> usize {
        (self.lent + self.unused.len() + 1) * assembly::LARGEST
    }

    fn lend(&mut self) -> Option<Box<Assembly>> {
        if self.lent >= self.most_assemblies {
            self.refused += 1;
            return None;
        }
        self.lent += 1;
        Some(self.unused.pop().unwrap_or_default())
    }

    fn take_back(&mut self, mut assembly: Box<Assembly>) {
        self.lent = self.lent.saturating_sub(1);
        if self.unused.len() < UNUSED {
            assembly.clear();
            self.unused.push(assembly);
        }
    }
}

impl Desk {
    /// What one wrote who says no is not believed; what one wrote who is sure stands before what others wrote.
    fn take_down(&mut self, answer: Answer, is_assembled: bool, is_stream: bool) {
        if is_assembled {
            // Whoever is shown a beginning once more writes the same once more.
            self.draft.leave_out(self.told);
        }
        match answer {
            Answer::No => {}
            Answer::Longer | Answer::Next | Answer::Perhaps => self.sheet.complete(&self.draft),
            Answer::Is | Answer::Open | Answer::Within(_) | Answer::Other(_) | Answer::Alike(_) => {
                self.sheet.replace(&self.draft);
            }
        }
        // It may be shown once more.
        if is_stream && matches!(answer, Answer::Longer | Answer::Open) {
            let written = self.draft.sums().into_iter().zip(self.sheet.sums());
            for (told, (draft, sheet)) in self.told.iter_mut().zip(written) {
                if draft != 0 && draft == sheet {
                    *told = draft;
                }
            }
        }
        self.draft.clear();
    }
}

/// What one side has sent, as a stream.
#[derive(Debug, Default)]
struct Stream {
    /// Sequence number of its first octet.
    origin: u32,
    /// How far it was seen without a gap, from there.
    seen: u32,
    known: bool,
    /// Its beginning, while somebody wants it longer.
    assembly: Option<Box<Assembly>>,
}

/// A flow that is looked into; see the module's documentation.
#[derive(Debug, Default)]
pub struct Examination {
    history: History,
    streams: [Stream; 2],
    /// For datagrams that belong together.
    assembly: Option<Box<Assembly>>,
    /// Those that want to see more.
    waiting: Set,
    /// Who goes on being asked, since it is this protocol's.
    open: Option<u16>,
    found: Option<Protocol>,
    /// What carries `found`, if it began as something else.
    over: Option<Protocol>,
    perhaps: Option<Perhaps>,
    shape: Shape,
    /// The recognisers have given up; packets are only counted.
    is_given_up: bool,
    /// How often it has begun anew under something else.
    depth: u8,
}

/// The best of what is no certainty.
#[derive(Clone, Copy, Debug)]
struct Perhaps {
    protocol: Protocol,
    reason: Reason,
    sides: u8,
}

/// What recognisers are shown of a packet.
#[derive(Clone, Copy, Debug)]
struct Bytes<'b> {
    octets: &'b [u8],
    /// They begin where the stream begins.
    begins: bool,
    /// Earlier packets' are among them.
    is_assembled: bool,
    /// Where in the stream they begin.
    at: u32,
}

impl<'b> Bytes<'b> {
    const fn datagram(octets: &'b [u8]) -> Self {
        Self { octets, begins: true, is_assembled: false, at: 0 }
    }
}

/// What comes of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// Nobody else needs to be asked about this packet.
    Enough(Progress),
    /// So many octets are that one's; another protocol's follow.
    Within(usize),
}

/// How far a flow's examination is after a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Another packet has to be seen.
    Goes,
    /// It has a verdict: [`Examination::conclude`].
    Ends,
}

impl Examination {
    /// What was said so far.
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// What it is taken for so far, if a recogniser is sure.
    pub const fn found(&self) -> Option<Protocol> {
        self.found
    }

    /// Looks into one more packet. What was found written in it is on the room's sheet.
    pub fn step(
        &mut self,
        classifier: &Classifier,
        limits: &Limits,
        room: &mut Room,
        shown: &Shown<'_>,
    ) -> Progress {
        room.desk.sheet.clear();
        room.desk.told = Sums::default();
        if let Some(segment) = shown.segment
            && segment.is_syn
            && let Some(stream) = self.streams.get_mut(shown.side as usize)
            && !stream.known
        {
            (stream.origin, stream.seen, stream.known) = (segment.sequence, 0, true);
        }
        if shown.payload.is_empty() {
            return Progress::Goes;
        }
        if self.is_given_up {
            self.note(shown, false);
            return self.watch(limits.behaviour, shown.carrier);
        }
        let depth = self.depth;
        let begins = match (shown.segment, self.streams.get(shown.side as usize)) {
            (Some(segment), Some(stream)) => stream.known && segment.sequence == stream.origin,
            _ => true,
        };
        let progress = match shown.segment {
            Some(segment) => self.stream(classifier, room, shown, segment),
            None => self.look(classifier, room, shown, Bytes::datagram(shown.payload)),
        };
        // If it has begun anew, what was said is what follows the beginning of another.
        let inner = self.streams.get(shown.side as usize).map_or(0, |it| it.seen as usize);
        let said = if self.depth == depth { shown.payload.len() } else { inner.min(shown.payload.len()) };
        if let Some(past) = self.history.sides.get_mut(shown.side as usize)
            && let Some(said @ [_, ..]) = shown.payload.get(shown.payload.len() - said..)
        {
            past.note(said);
        }
        if progress == Progress::Ends {
            return Progress::Ends;
        }
        let counts = limits.behaviour > 0 && self.is_unknown();
        if counts {
            self.note(shown, begins);
        }
        let packets = self.history.packets();
        let most = if self.open.is_some() { limits.open_packets } else { limits.packets };
        let [client, server] = &self.history.sides;
        // A stream whose both sides have begun like nothing known will not begin again.
        let is_hopeless = shown.carrier != Carrier::Udp
            && self.open.is_none()
            && self.waiting.is_empty()
            && client.packets > 0
            && server.packets > 0
            && packets >= 4;
        if packets < u16::from(most) && !is_hopeless {
            return Progress::Goes;
        }
        if !counts {
            return Progress::Ends;
        }
        (self.is_given_up, self.waiting) = (true, Set::default());
        self.give_back(room);
        self.watch(limits.behaviour, shown.carrier)
    }

    /// Nobody knows anything yet.
    const fn is_unknown(&self) -> bool {
        self.found.is_none() && self.perhaps.is_none() && self.over.is_none()
    }

    fn note(&mut self, shown: &Shown<'_>, begins: bool) {
        self.shape.note(shown.carrier, shown.side, begins, shown.payload, shown.now);
    }

    /// Whether more packets have to be counted.
    fn watch(&self, most: u8, carrier: Carrier) -> Progress {
        let is_over = self.shape.packets() >= u16::from(most) || self.shape.is_clear(carrier);
        if is_over { Progress::Ends } else { Progress::Goes }
    }

    /// A segment: shown alone, or with what came before if somebody asked for that.
    fn stream(
        &mut self,
        classifier: &Classifier,
        room: &mut Room,
        shown: &Shown<'_>,
        segment: Segment,
    ) -> Progress {
        let Some(stream) = self.streams.get_mut(shown.side as usize) else { return Progress::Goes };
        if !stream.known {
            (stream.origin, stream.seen, stream.known) = (segment.sequence, 0, true);
        }
        let at = segment.sequence.wrapping_sub(stream.origin);
        let length = shown.payload.len() as u32;
        // Of a former connection, a keep-alive, or a repetition.
        if at > u32::MAX / 2 || (at < stream.seen && at.saturating_add(length) <= stream.seen) {
            return Progress::Goes;
        }
        if at > stream.seen {
            // A gap. What comes behind it is kept if the beginning is still wanted.
            if (stream.seen == 0 || stream.assembly.is_some())
                && let Some(assembly) = stream.lend(room)
            {
                let _ = assembly.put(at as usize, shown.payload);
            } else if stream.assembly.is_none() {
                stream.seen = at.saturating_add(length);
                let alone = Bytes { octets: shown.payload, begins: false, is_assembled: false, at };
                return self.look(classifier, room, shown, alone);
            }
            return Progress::Goes;
        }
        stream.seen = stream.seen.max(at.saturating_add(length));
        let Some(mut assembly) = stream.assembly.take() else {
            let alone = Bytes { octets: shown.payload, begins: at == 0, is_assembled: false, at };
            return self.look(classifier, room, shown, alone);
        };
        // If it is too long for the assembly, it is shown as far as it goes, and the best is made of it.
        let is_full = assembly.put(at as usize, shown.payload).is_err();
        stream.seen = stream.seen.max(assembly.contiguous().len() as u32);
        let all = Bytes { octets: assembly.contiguous(), begins: true, is_assembled: true, at: 0 };
        let depth = self.depth;
        room.desk.told = assembly.told;
        let progress = self.look(classifier, room, shown, all);
        assembly.told = room.desk.told;
        let is_kept = progress == Progress::Goes && !is_full && self.wants_longer() && self.depth == depth;
        match self.streams.get_mut(shown.side as usize) {
            Some(stream) if is_kept => stream.assembly = Some(assembly),
            _ => room.take_back(assembly),
        }
        progress
    }

    fn wants_longer(&self) -> bool {
        self.open.is_some() || !self.waiting.is_empty()
    }

    /// Asks whoever may know; and if what one knows ends before the packet does, whoever may know what follows.
    fn look(
        &mut self,
        classifier: &Classifier,
        room: &mut Room,
        shown: &Shown<'_>,
        bytes: Bytes<'_>,
    ) -> Progress {
        let mut rest = bytes;
        // So often it may begin anew, and once more it ends.
        for _ in 0..=DEPTH {
            match self.ask_all(classifier, room, shown, rest) {
                Asked::Enough(progress) => return progress,
                Asked::Within(own) => {
                    let octets = rest.octets.get(own..).unwrap_or_default();
                    rest = Bytes { octets, begins: true, is_assembled: false, at: 0 };
                }
            }
        }
        Progress::Goes
    }

    fn ask_all(
        &mut self,
        classifier: &Classifier,
        room: &mut Room,
        shown: &Shown<'_>,
        bytes: Bytes<'_>,
    ) -> Asked {
        if bytes.octets.is_empty() {
            return Asked::Enough(Progress::Goes);
        }
        if let Some(number) = self.open {
            let asked = self.ask(number, classifier, room, shown, bytes);
            return asked.unwrap_or(Asked::Enough(Progress::Goes));
        }
        // Those who wait, those of the port, those of the octet; nobody twice.
        let mut asked = Set::default();
        let server = shown.server.port;
        let client = shown.client.port;
        let waiting = self.waiting.iter();
        let usual =
            classifier.of_port(shown.carrier, server).chain(classifier.of_port(shown.carrier, client));
        let fits = |number: &u16| classifier.recogniser(*number).is_some_and(|it| it.allows(bytes.octets));
        let beginners =
            bytes.begins || shown.carrier != Carrier::Tcp || self.history.of(shown.side).packets == 0;
        let usual = usual.filter(fits).filter(|_| beginners);
        let others = classifier.of_octets(shown.carrier, bytes.octets).filter(|_| beginners);
        for number in waiting.chain(usual).chain(others) {
            if asked.has(number) {
                continue;
            }
            asked.insert(number);
            if let Some(asked) = self.ask(number, classifier, room, shown, bytes) {
                return asked;
            }
        }
        match self.perhaps {
            Some(Perhaps { reason: Reason::UsualShape | Reason::BothSides, protocol, .. }) => {
                self.found = Some(protocol);
                Asked::Enough(Progress::Ends)
            }
            _ => Asked::Enough(Progress::Goes),
        }
    }

    /// Asks one. `Some`: nobody else needs to be asked about this packet.
    fn ask(
        &mut self,
        number: u16,
        classifier: &Classifier,
        room: &mut Room,
        shown: &Shown<'_>,
        bytes: Bytes<'_>,
    ) -> Option<Asked> {
        let recogniser = classifier.recogniser(number)?;
        let mut own = self.assembly.take();
        let assembly = own.as_mut().unwrap_or(&mut room.desk.spare);
        let mut message = Message {
            bytes: bytes.octets,
            begins: bytes.begins,
            carrier: shown.carrier,
            side: shown.side,
            client: shown.client,
            server: shown.server,
            history: &self.history,
            sheet: &mut room.desk.draft,
            assembly,
        };
        let answer = (recogniser.probe)(&mut message);
        if let Some(trace) = &mut room.trace {
            trace.push(Step { protocol: recogniser.protocol, answer, octets: bytes.octets.len() });
        }
        let keeps = matches!(answer, Answer::Next | Answer::Open);
        match own {
            Some(assembly) => self.assembly = Some(assembly),
            None if room.desk.spare.is_empty() => {}
            None if keeps => {
                if let Some(mut lent) = room.lend() {
                    std::mem::swap(&mut lent, &mut room.desk.spare);
                    self.assembly = Some(lent);
                }
                room.desk.spare.clear();
            }
            None => room.desk.spare.clear(),
        }
        if !room.desk.draft.is_empty() {
            room.desk.take_down(answer, bytes.is_assembled, shown.segment.is_some());
        }
        self.waiting.remove(number);
        match answer {
            Answer::No => (self.open == Some(number)).then_some(Asked::Enough(Progress::Ends)),
            Answer::Next => {
                self.waiting.insert(number);
                self.open.map(|_| Asked::Enough(Progress::Goes))
            }
            Answer::Longer => {
                self.waiting.insert(number);
                self.weigh(Perhaps { protocol: recogniser.protocol, reason: Reason::Begins, sides: 0 });
                if shown.segment.is_some() && bytes.begins && !bytes.is_assembled {
                    self.lengthen(room, shown.side, bytes.octets);
                }
                self.open.map(|_| Asked::Enough(Progress::Goes))
            }
            Answer::Perhaps => {
                self.suppose(recogniser.protocol, recogniser.ports, shown);
                self.waiting.insert(number);
                None
            }
            Answer::Is => {
                (self.found, self.perhaps) = (Some(recogniser.protocol), None);
                Some(Asked::Enough(Progress::Ends))
            }
            Answer::Other(protocol) => {
                (self.found, self.perhaps) = (Some(protocol), None);
                Some(Asked::Enough(Progress::Ends))
            }
            Answer::Alike(protocol) => {
                let alike = Perhaps { protocol, reason: Reason::BothSides, sides: 3 };
                (self.found, self.perhaps) = (Some(protocol), Some(alike));
                Some(Asked::Enough(Progress::Ends))
            }
            Answer::Open => {
                (self.found, self.perhaps) = (Some(recogniser.protocol), None);
                self.open = Some(number);
                self.waiting = Set::default();
                Some(Asked::Enough(Progress::Goes))
            }
            Answer::Within(_) if self.depth >= DEPTH => {
                (self.found, self.perhaps) = (Some(recogniser.protocol), None);
                Some(Asked::Enough(Progress::Ends))
            }
            Answer::Within(own) => {
                let own = own.min(bytes.octets.len());
                self.restart(recogniser.protocol, room, shown.side, bytes, own);
                Some(Asked::Within(own))
            }
        }
    }

    /// What this side's stream has begun with is kept, to be shown again with what follows.
    fn lengthen(&mut self, room: &mut Room, side: Side, bytes: &[u8]) {
        let told = room.desk.told;
        if let Some(stream) = self.streams.get_mut(side as usize)
            && stream.seen as usize == bytes.len()
            && let Some(assembly) = stream.lend(room)
        {
            assembly.told = told;
            let _ = assembly.put(0, bytes);
        }
    }

    /// It looks like this protocol.
    fn suppose(&mut self, protocol: Protocol, ports: &[u16], shown: &Shown<'_>) {
        let side = 1 << shown.side as u8;
        let sides = match self.perhaps {
            Some(former) if former.protocol == protocol => former.sides | side,
            _ => side,
        };
        let is_usual = ports.contains(&shown.server.port) || ports.contains(&shown.client.port);
        let reason = match (is_usual, sides) {
            (true, _) => Reason::UsualShape,
            (false, 3) => Reason::BothSides,
            _ => Reason::Shape,
        };
        self.weigh(Perhaps { protocol, reason, sides });
    }

    /// The better reason stands; of equal ones the first.
    fn weigh(&mut self, perhaps: Perhaps) {
        if self.perhaps.is_none_or(|former| perhaps.reason < former.reason) {
            self.perhaps = Some(perhaps);
        }
    }

    /// What follows is another protocol's, inside this one; of this side's octets, so many are its `own`.
    fn restart(&mut self, over: Protocol, room: &mut Room, side: Side, bytes: Bytes<'_>, own: usize) {
        self.give_back(room);
        let mut begun = self.streams.each_ref().map(|it| (it.origin.wrapping_add(it.seen), 0, it.known));
        if let (Some(begun), Some(stream)) = (begun.get_mut(side as usize), self.streams.get(side as usize)) {
            begun.0 = stream.origin.wrapping_add(bytes.at).wrapping_add(own as u32);
            begun.1 = (bytes.octets.len() - own) as u32;
        }
        *self = Self { over: Some(over), depth: self.depth + 1, ..Self::default() };
        for (stream, (origin, seen, known)) in self.streams.iter_mut().zip(begun) {
            (stream.origin, stream.seen, stream.known) = (origin, seen, known);
        }
    }

    /// What it holds of the room's goes back. To be called when the flow ends without a conclusion.
    pub fn give_back(&mut self, room: &mut Room) {
        let own = self.streams.iter_mut().map(|it| it.assembly.take()).chain([self.assembly.take()]);
        for assembly in own.flatten() {
            room.take_back(assembly);
        }
    }

    /// The protocol's part of the verdict, from what was seen.
    pub fn conclude(
        &mut self,
        classifier: &Classifier,
        room: &mut Room,
        carrier: Carrier,
        port: u16,
    ) -> Verdict {
        self.give_back(room);
        let (protocol, reason) = match (self.found, self.perhaps) {
            (Some(protocol), perhaps) => (Some(protocol), perhaps.map_or(Reason::Parser, |it| it.reason)),
            (None, Some(perhaps)) => (Some(perhaps.protocol), perhaps.reason),
            // What carries it is known at least.
            (None, None) if self.over.is_some() => (self.over.take(), Reason::Parser),
            (None, None) if self.history.packets() == 0 => match classifier.guess(carrier, port) {
                Some(protocol) => (Some(protocol), Reason::Port),
                None => (None, Reason::Silent),
            },
            (None, None) => match self.shape.behaviour(carrier) {
                Some(protocol) => (Some(protocol), Reason::Behaviour),
                None => (None, Reason::Unlike),
            },
        };
        Verdict { protocol, over: self.over, reason, ..Verdict::UNKNOWN }
    }
}

impl Stream {
    /// Its assembly, or one of the room's.
    fn lend(&mut self, room: &mut Room) -> Option<&mut Assembly> {
        if self.assembly.is_none() {
            self.assembly = room.lend();
        }
        self.assembly.as_deref_mut()
    }
}

#[cfg(test)]
mod tests;
