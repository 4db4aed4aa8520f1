//! SMFs that have gone mad: right and wrong requests in any order, for their own sessions and others', as fast as they are answered.
//!
//! What is sent is begun by the [`habits`](crate::habits) of all SMFs and spoilt by [`mutate`](crate::mutate); a part is left as it is, so that there are
//! associations and sessions for the rest to meet. Each batch ends with a heartbeat, whose answer says that the UPF has come so far. What was
//! accepted is remembered, so that in the end all of it can be released.

use crate::answers::Answer;
use crate::facts::{PduType, SessionFacts, UePools};
use crate::habits::{Context, Habit, RuleIds, Shape, UNKNOWN};
use crate::latency::{Latencies, LatencySummary};
use crate::mutate::{bundle, mutate};
use crate::rng::SplitMix64;
use crate::smf::Operation;
use crate::wire::Writer;
use packet::{Qfi, Teid};
use pfcp::{Cause, Datagram, Header, Ies, MessageType, Seid, SequenceNumber, ie_type as ie};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Datagrams between two heartbeats.
const BATCH: u32 = 64;
/// How long a heartbeat's answer is waited for before it is asked again, and how often it is asked.
const T1: Duration = Duration::from_secs(2);
const N1: u8 = 4;
/// Sessions that an SMF remembers.
const REMEMBERED: usize = 2_048;
/// Datagrams that may come again.
const REPEATED: usize = 32;
/// Session numbers: they come again, so that addresses and TEIDs are asked for that somebody has.
const NUMBERS: u32 = 3_000;

/// Who storms whom.
#[derive(Clone, Debug)]
pub struct StormConfig {
    /// The SMFs; port 8805 of each.
    pub smfs: Vec<IpAddr>,
    /// The UPF's N4 address.
    pub upf: SocketAddr,
    /// The UPF's N3 address.
    pub upf_n3: IpAddr,
    /// A gNB.
    pub gnb: IpAddr,
    /// UE addresses that SMFs choose.
    pub pools: UePools,
    /// Sessions of somebody else's.
    pub foreign: Vec<Seid>,
    /// The same storm for the same seed, but for what depends on the UPF's answers.
    pub seed: u64,
}

/// The storm could not go on.
#[derive(Debug, thiserror::Error)]
pub enum StormError {
    /// A socket.
    #[error("N4: {0}")]
    Io(#[from] std::io::Error),
    /// There is nobody to storm.
    #[error("a storm needs an SMF")]
    Nobody,
    /// The UPF is silent.
    #[error("the UPF at {0} does not answer heartbeats")]
    Silent(SocketAddr),
}

/// What came of it so far.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct StormCounts {
    /// Messages sent, without the heartbeats after each batch.
    pub requests: u64,
    /// Of these, messages with something wrong in them.
    pub wrong: u64,
    /// Answers to them.
    pub answers: u64,
    /// Of these, answers with success.
    pub accepted: u64,
    /// Sessions that were established.
    pub established: u64,
    /// Sessions that were deleted.
    pub deleted: u64,
    /// Requests of the UPF's, all answered.
    pub asked: u64,
    /// Heartbeats after a batch.
    pub heartbeats: u64,
    /// Of these, heartbeats that had to be sent again.
    pub repeated: u64,
    /// Associations that had to be set up anew.
    pub associations: u64,
}

/// A session as its SMF remembers it.
#[derive(Clone, Debug)]
struct Known {
    facts: SessionFacts,
    habit: Habit,
    number: u32,
}

/// What was asked under a sequence number.
#[derive(Clone, Debug)]
enum Asked {
    /// An association for these Node IDs, as octets.
    Association(Vec<Vec<u8>>),
    Establishment(Box<Known>),
}

#[derive(Debug)]
struct Party {
    address: IpAddr,
    socket: UdpSocket,
    sequence: u32,
    recovery: u32,
    associated: bool,
    sessions: Vec<Known>,
    asked: HashMap<u32, Asked>,
    /// Node IDs that have an association.
    node_ids: Vec<Vec<u8>>,
    recent: Vec<Vec<u8>>,
}

/// SMFs and what they know.
#[derive(Debug)]
pub struct Storm {
    config: StormConfig,
    shape: Shape,
    rng: SplitMix64,
    parties: Vec<Party>,
    counts: StormCounts,
    latencies: Latencies,
    buffer: Vec<u8>,
}

impl Storm {
    /// Opens the sockets.
    pub fn bind(config: StormConfig) -> Result<Self, StormError> {
        if config.smfs.is_empty() {
            return Err(StormError::Nobody);
        }
        let party = |address: &IpAddr| -> Result<Party, StormError> {
            let socket = UdpSocket::bind(SocketAddr::new(*address, config.upf.port()))?;
            socket.connect(config.upf)?;
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
            Ok(Party {
                address: *address,
                socket,
                sequence: 0,
                recovery: 0xe000_0000,
                associated: false,
                sessions: Vec::new(),
                asked: HashMap::new(),
                node_ids: Vec::new(),
                recent: Vec::new(),
            })
        };
        let parties = config.smfs.iter().map(party).collect::<Result<_, _>>()?;
        let shape = Shape { choose_ue_ip: true, filtered_pairs: 1, ..Shape::default() };
        let rng = SplitMix64::new(config.seed);
        let (counts, latencies) = (StormCounts::default(), Latencies::new());
        Ok(Self { config, shape, rng, parties, counts, latencies, buffer: vec![0; 65_535] })
    }

    /// What came of it so far.
    pub const fn counts(&self) -> &StormCounts {
        &self.counts
    }

    /// From heartbeats to their answers, since this was asked before.
    pub fn take_latencies(&mut self) -> LatencySummary {
        let summary = self.latencies.summary();
        self.latencies.clear();
        summary
    }

    /// Sends so many messages more.
    pub fn send(&mut self, messages: u64) -> Result<(), StormError> {
        let until = self.counts.requests + messages;
        while self.counts.requests < until {
            for at in 0..self.parties.len() {
                if !self.parties[at].associated {
                    self.associate(at)?;
                }
            }
            for _ in 0..BATCH.min((until - self.counts.requests) as u32) {
                let at = self.below(self.parties.len());
                self.datagram(at)?;
                if self.counts.requests >= until {
                    break;
                }
            }
            for at in 0..self.parties.len() {
                self.beat(at)?;
            }
        }
        Ok(())
    }

    /// Releases all associations that were accepted.
    pub fn release(&mut self) -> Result<(), StormError> {
        (0..self.parties.len()).try_for_each(|at| self.release_all_of(at))
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u32) as usize
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.rng.below(n) == 0
    }

    fn next_sequence(&mut self, at: usize) -> SequenceNumber {
        let sequence = &mut self.parties[at].sequence;
        *sequence = (*sequence + 1) & 0xff_ffff;
        SequenceNumber(*sequence)
    }

    /// An Association Setup Request that is right.
    fn association(&mut self, at: usize) -> Vec<u8> {
        let header = Header::node(MessageType::ASSOCIATION_SETUP_REQUEST, self.next_sequence(at));
        let Party { address, recovery, .. } = &self.parties[at];
        let mut out = Vec::new();
        Writer::message(&mut out, &header, |w| {
            w.node_id(*address);
            w.u32(ie::RECOVERY_TIME_STAMP, *recovery);
        });
        out
    }

    fn associate(&mut self, at: usize) -> Result<(), StormError> {
        for _ in 0..2 {
            let request = self.association(at);
            self.note(at, &request);
            self.parties[at].socket.send(&request)?;
            self.counts.associations += 1;
            self.beat(at)?;
            if self.parties[at].associated {
                return Ok(());
            }
            // There are as many associations as there may be, all but for names that nobody has.
            self.release_all_of(at)?;
        }
        Ok(())
    }

    fn release_all_of(&mut self, at: usize) -> Result<(), StormError> {
        for node_id in std::mem::take(&mut self.parties[at].node_ids) {
            let header = Header::node(MessageType::ASSOCIATION_RELEASE_REQUEST, self.next_sequence(at));
            let mut out = Vec::new();
            Writer::message(&mut out, &header, |w| w.bytes(ie::NODE_ID, &node_id));
            self.parties[at].socket.send(&out)?;
            self.beat(at)?;
        }
        self.parties[at].associated = false;
        self.parties[at].sessions.clear();
        Ok(())
    }

    /// Sends a heartbeat, again if need be, and takes what comes until it is answered: then all that was sent before was taken too.
    fn beat(&mut self, at: usize) -> Result<(), StormError> {
        let sequence = self.next_sequence(at);
        let mut out = Vec::new();
        let recovery = self.parties[at].recovery;
        let header = Header::node(MessageType::HEARTBEAT_REQUEST, sequence);
        Writer::message(&mut out, &header, |w| w.u32(ie::RECOVERY_TIME_STAMP, recovery));
        self.counts.heartbeats += 1;
        let begun = Instant::now();
        for attempt in 0..N1 {
            self.counts.repeated += u64::from(attempt > 0);
            self.parties[at].socket.send(&out)?;
            let until = Instant::now() + T1;
            while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            {
                if self.listen(at, left)? == Some(sequence) {
                    self.latencies.record(begun.elapsed().as_nanos() as u64);
                    return Ok(());
                }
            }
        }
        Err(StormError::Silent(self.config.upf))
    }

    /// Takes a datagram of the UPF's. Says the sequence number of a heartbeat's answer.
    fn listen(&mut self, at: usize, patience: Duration) -> Result<Option<SequenceNumber>, StormError> {
        let socket = &self.parties[at].socket;
        socket.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let length = match socket.recv(&mut self.buffer) {
            Ok(length) => length,
            // Nobody there yet, or no longer: the heartbeat will tell.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                std::thread::sleep(Duration::from_millis(1));
                return Ok(None);
            }
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let datagram = self.buffer.get(..length).unwrap_or_default().to_vec();
        let mut beaten = None;
        for (header, body) in Datagram::new(&datagram).flatten() {
            if header.message_type == MessageType::HEARTBEAT_RESPONSE {
                beaten = Some(header.sequence);
            } else if let Some(response) = header.message_type.response() {
                self.answer(at, response, header.sequence)?;
            } else if let Ok(answer) = Answer::read(body) {
                self.answered(at, &header, &answer);
            }
        }
        Ok(beaten)
    }

    /// The UPF asks: yes.
    fn answer(
        &mut self,
        at: usize,
        response: MessageType,
        sequence: SequenceNumber,
    ) -> Result<(), StormError> {
        self.counts.asked += 1;
        let Party { address, recovery, socket, .. } = &self.parties[at];
        let header = if response.is_session() {
            Header::session(response, Seid(0), sequence)
        } else {
            Header::node(response, sequence)
        };
        let mut out = Vec::new();
        Writer::message(&mut out, &header, |w| {
            if response == MessageType::HEARTBEAT_RESPONSE {
                w.u32(ie::RECOVERY_TIME_STAMP, *recovery);
            } else {
                w.node_id(*address);
                w.u8(ie::CAUSE, Cause::ACCEPTED.0);
            }
        });
        socket.send(&out)?;
        Ok(())
    }

    /// The UPF answers.
    fn answered(&mut self, at: usize, header: &Header, answer: &Answer) {
        self.counts.answers += 1;
        let party = &mut self.parties[at];
        let asked = party.asked.remove(&header.sequence.0);
        if answer.cause == Some(Cause::NO_ASSOCIATION) {
            party.associated = false;
        }
        if !answer.cause.is_some_and(Cause::is_success) {
            return;
        }
        self.counts.accepted += 1;
        match (header.message_type, asked) {
            (MessageType::ASSOCIATION_SETUP_RESPONSE, Some(Asked::Association(node_ids))) => {
                party.associated = true;
                for node_id in node_ids {
                    if !party.node_ids.contains(&node_id) {
                        party.node_ids.push(node_id);
                    }
                }
            }
            (MessageType::SESSION_ESTABLISHMENT_RESPONSE, asked) => {
                self.counts.established += 1;
                let (Some(Asked::Establishment(mut known)), Some(seid)) = (asked, answer.up_seid) else {
                    return;
                };
                known.facts.up_seid = seid;
                if party.sessions.len() < REMEMBERED {
                    party.sessions.push(*known);
                } else {
                    let place = self.rng.below(REMEMBERED as u32) as usize;
                    party.sessions[place] = *known;
                }
            }
            (MessageType::SESSION_DELETION_RESPONSE, _) => self.counts.deleted += 1,
            _ => {}
        }
    }

    /// Remembers for whom a datagram asks for associations: as it is, whatever it was meant to be.
    fn note(&mut self, at: usize, datagram: &[u8]) {
        let setups = Datagram::new(datagram)
            .flatten()
            .filter(|(header, _)| header.message_type == MessageType::ASSOCIATION_SETUP_REQUEST);
        for (header, body) in setups {
            let node_ids = Ies::new(body).flatten().filter(|element| element.kind == ie::NODE_ID);
            let node_ids = node_ids.map(|element| element.value.to_vec()).collect();
            self.parties[at].asked.insert(header.sequence.0, Asked::Association(node_ids));
        }
    }

    /// Sends a datagram: one message, or a few.
    fn datagram(&mut self, at: usize) -> Result<(), StormError> {
        if self.parties[at].asked.len() > 4 * BATCH as usize {
            // What was never answered.
            self.parties[at].asked.clear();
        }
        let datagram = match self.rng.below(64) {
            0 => {
                let octets = self.below(200);
                self.counts.requests += 1;
                self.counts.wrong += 1;
                (0..octets).map(|_| self.rng.next_u64() as u8).collect()
            }
            1 | 2 if !self.parties[at].recent.is_empty() => {
                // Its own, or another's.
                let from = self.below(self.parties.len());
                let from = if self.parties[from].recent.is_empty() { at } else { from };
                let which = self.below(self.parties[from].recent.len());
                self.counts.requests += 1;
                self.parties[from].recent[which].clone()
            }
            3..=6 => {
                let count = 2 + self.below(3);
                let messages: Vec<_> = (0..count).map(|_| self.message(at)).collect();
                bundle(&messages)
            }
            _ => self.message(at),
        };
        self.note(at, &datagram);
        let party = &mut self.parties[at];
        if party.recent.len() < REPEATED {
            party.recent.push(datagram.clone());
        } else {
            let place = self.rng.below(REPEATED as u32) as usize;
            party.recent[place].clone_from(&datagram);
        }
        match self.parties[at].socket.send(&datagram) {
            Err(error) if error.kind() != std::io::ErrorKind::ConnectionRefused => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// A message, right or wrong.
    fn message(&mut self, at: usize) -> Vec<u8> {
        self.counts.requests += 1;
        let sessions = self.parties[at].sessions.len();
        let mut message = match self.rng.below(100) {
            // The more there are, the more end.
            0..35 if self.below(REMEMBERED) >= sessions => self.establishment(at),
            // An association anew ends all sessions of the one before.
            70..76 if self.one_in(64) => {
                if self.one_in(8) {
                    // It was restarted.
                    self.parties[at].recovery += 1;
                    self.parties[at].sessions.clear();
                }
                self.association(at)
            }
            76..78 => {
                let kind = if self.one_in(64) {
                    MessageType::ASSOCIATION_RELEASE_REQUEST
                } else {
                    MessageType::PFD_MANAGEMENT_REQUEST
                };
                let header = Header::node(kind, self.next_sequence(at));
                let address = self.parties[at].address;
                let mut out = Vec::new();
                Writer::message(&mut out, &header, |w| w.node_id(address));
                out
            }
            78..80 => {
                let kind = MessageType(self.rng.next_u64() as u8);
                let (seid, sequence) = (Seid(self.rng.next_u64()), self.next_sequence(at));
                let header = if kind.is_session() {
                    Header::session(kind, seid, sequence)
                } else {
                    Header::node(kind, sequence)
                };
                let mut out = Vec::new();
                Writer::message(&mut out, &header, |w| w.u8(ie::CAUSE, Cause::ACCEPTED.0));
                out
            }
            _ if sessions == 0 => self.establishment(at),
            choice => {
                let which = self.below(sessions);
                if choice >= 80 {
                    let known = self.parties[at].sessions.swap_remove(which);
                    self.write(at, &known, Operation::Delete)
                } else {
                    let known = self.parties[at].sessions[which].clone();
                    let steps = [Operation::Activate, Operation::Idle, Operation::Handover, Operation::Query];
                    let step = steps[self.below(steps.len())];
                    self.write(at, &known, step)
                }
            }
        };
        if self.one_in(4) {
            return message;
        }
        self.counts.wrong += 1;
        if self.one_in(6) {
            self.steal(&mut message);
        }
        for _ in 0..=self.below(3) {
            mutate(&mut message, &mut |n| self.rng.below(n as u32) as usize);
        }
        message
    }

    /// Makes it a message about somebody else's session.
    fn steal(&mut self, message: &mut [u8]) {
        let strangers: Vec<Seid> = self
            .parties
            .iter()
            .filter_map(|party| party.sessions.last().map(|known| known.facts.up_seid))
            .chain(self.config.foreign.iter().copied())
            .chain([Seid(0), Seid(u64::MAX)])
            .collect();
        let seid = strangers[self.below(strangers.len())];
        let has_seid = message.first().is_some_and(|flags| flags & 1 != 0);
        if let Some(field) = message.get_mut(4..12).filter(|_| has_seid) {
            field.copy_from_slice(&seid.0.to_be_bytes());
        }
    }

    /// An establishment in the manner of any SMF.
    fn establishment(&mut self, at: usize) -> Vec<u8> {
        let habit = Habit::ALL[self.below(Habit::ALL.len())];
        let number = self.rng.below(NUMBERS);
        let kind = habit.pdu_type([PduType::Ipv4, PduType::Ipv6, PduType::Ipv4v6][self.below(3)]);
        let StormConfig { upf_n3, gnb, pools, .. } = &self.config;
        let chooses = habit.chooses_teid();
        let facts = SessionFacts {
            cp_seid: Seid(u64::from(number) + 1),
            up_seid: Seid(0),
            upf_n3: if chooses { *upf_n3 } else { UNKNOWN },
            ul_teid: if chooses { Teid(number + 1) } else { Teid(0) },
            gnb: *gnb,
            dl_teid: Teid(0x8000_0000 | number),
            qfi: Qfi::from_wire(number as u8 & 0x3f),
            ue_ipv4: pools.ipv4_of(number).filter(|_| kind != PduType::Ipv6),
            ue_ipv6: pools.ipv6_of(number).filter(|_| kind != PduType::Ipv4),
        };
        let known = Known { facts, habit, number };
        let message = self.write(at, &known, Operation::Establish);
        let sequence = self.parties[at].sequence;
        self.parties[at].asked.insert(sequence, Asked::Establishment(Box::new(known)));
        message
    }

    fn write(&mut self, at: usize, known: &Known, operation: Operation) -> Vec<u8> {
        let sequence = self.next_sequence(at);
        let facts = &known.facts;
        let kind = match (facts.ue_ipv4, facts.ue_ipv6) {
            (Some(_), Some(_)) => PduType::Ipv4v6,
            (None, Some(_)) => PduType::Ipv6,
            _ => PduType::Ipv4,
        };
        let context = Context {
            habit: known.habit,
            shape: &self.shape,
            smf: self.parties[at].address,
            kind,
            facts,
            ids: RuleIds::of(known.habit, known.number, 0),
            sequence,
            sticky_end_marker: false,
            upf_allocates_ue_ip: known.number & 1 == 0,
        };
        let mut out = Vec::new();
        context.request(operation, &mut out);
        out
    }
}
