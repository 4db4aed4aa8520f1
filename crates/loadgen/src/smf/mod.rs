//! The SMF: associates, establishes a population of sessions, moves it through its life, and answers the UPF.
//!
//! Requests are pipelined: up to [`SmfConfig::window`] are outstanding, the next goes out when one is answered, and
//! one that isn't answered within T1 is sent again up to N1 times (TS 29.244 §6.4). One thread, one socket, one
//! buffer per outstanding request: far more than 60,000 requests a second on a fraction of a core.
//!
//! The UPF's own requests (heartbeats, session reports) are answered whenever the SMF listens: while a batch runs, and
//! in [`Smf::serve`].

mod config;
mod report;

pub use config::SmfConfig;
pub use report::{
    Association, BatchReport, N4Figures, Operation, Reason, SmfCounters, SmfError, UsageTotals,
};

use crate::answers::Answer;
use crate::facts::{PduType, SessionFacts};
use crate::habits::{Context, Habit, RuleIds, UNKNOWN};
use crate::imix::Family;
use crate::wire::Writer;
use ipnet::Ipv6Net;
use packet::Teid;
use pfcp::ie::UpFunctionFeatures;
use pfcp::{Cause, Header, MessageType, Seid, SequenceNumber, UrrId, ie_type as ie};
use report::Batch;
use rustix::net::{RecvFlags, recv, sockopt};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Report requests remembered, so that one that the UPF repeats is answered again but not counted again.
const REMEMBERED: usize = 1024;
/// Seconds from 1900 to 1970 (RFC 868).
const NTP_EPOCH: u64 = 2_208_988_800;
const DATAGRAM: usize = 65_535;
/// Sessions that are prepared between two looks at whether to go on.
const PREPARED: u32 = 4_096;

/// Is told how many requests of a batch have been sent, and says whether to send more.
pub type GoOn<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

#[derive(Debug)]
struct Entry {
    facts: SessionFacts,
    kind: PduType,
    established: bool,
    /// How often the session was activated (OAI numbers its rules by it).
    generation: u8,
    end_marker_sent: bool,
}

/// A request on its way.
#[derive(Debug, Default)]
struct Slot {
    busy: bool,
    sequence: u32,
    request: Option<(Operation, u32)>,
    /// The tunnel that the session has once the request is accepted.
    tunnel: Option<(IpAddr, Teid)>,
    first: Option<Instant>,
    last: Option<Instant>,
    tries: u8,
    bytes: Vec<u8>,
}

/// An SMF with its sessions. Sessions are numbered from 0 in the order of establishment; a number is not used again.
#[derive(Debug)]
pub struct Smf {
    config: SmfConfig,
    socket: UdpSocket,
    local: IpAddr,
    recovery: u32,
    association: Association,
    sessions: Vec<Entry>,
    slots: Vec<Slot>,
    outstanding: usize,
    sequence: u32,
    counters: SmfCounters,
    usage: HashMap<(u32, UrrId), UsageTotals>,
    to_activate: VecDeque<u32>,
    recent: VecDeque<u32>,
    last_heartbeat: Instant,
    buffer: Vec<u8>,
    reply: Vec<u8>,
}

impl Smf {
    /// Opens the socket. Nothing is sent yet.
    pub fn bind(config: SmfConfig) -> Result<Self, SmfError> {
        if config.gnbs.is_empty() || config.qfis.is_empty() || config.window == 0 {
            return Err(SmfError::NothingToServe);
        }
        let socket = UdpSocket::bind(config.local)?;
        socket.connect(config.upf)?;
        // A burst of answers to a full window, and reports on top. A host that allows less gives less.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
        let _ = sockopt::set_socket_send_buffer_size(&socket, 1 << 20);
        let local = socket.local_addr()?.ip();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let slots = (config.window * 2).next_power_of_two();
        Ok(Self {
            local,
            recovery: (unix + NTP_EPOCH) as u32,
            socket,
            association: Association::default(),
            sessions: Vec::new(),
            slots: std::iter::repeat_with(Slot::default).take(slots).collect(),
            outstanding: 0,
            sequence: 0,
            counters: SmfCounters::default(),
            usage: HashMap::new(),
            to_activate: VecDeque::new(),
            recent: VecDeque::with_capacity(REMEMBERED),
            last_heartbeat: Instant::now(),
            buffer: vec![0; DATAGRAM],
            reply: Vec::new(),
            config,
        })
    }

    /// Where it speaks from.
    pub fn local_addr(&self) -> Result<SocketAddr, SmfError> {
        Ok(self.socket.local_addr()?)
    }

    /// Association Setup (§7.4.4.1).
    pub fn associate(&mut self) -> Result<Association, SmfError> {
        let (local, recovery, habit) = (self.local, self.recovery, self.config.habit);
        let answer = self.ask(MessageType::ASSOCIATION_SETUP_REQUEST, "the association set-up", |w| {
            w.node_id(local);
            w.u32(ie::RECOVERY_TIME_STAMP, recovery);
            // free5GC claims nothing; the others say "load control" or nothing of consequence.
            w.u8(ie::CP_FUNCTION_FEATURES, u8::from(habit != Habit::Free5gc));
        })?;
        self.association = Association { features: answer.features, recovery: answer.recovery };
        Ok(self.association)
    }

    /// Association Release (§7.4.4.5): the UPF forgets all sessions.
    pub fn release(&mut self) -> Result<(), SmfError> {
        let local = self.local;
        self.ask(MessageType::ASSOCIATION_RELEASE_REQUEST, "the association release", |w| w.node_id(local))?;
        self.sessions.iter_mut().for_each(|entry| entry.established = false);
        Ok(())
    }

    /// One heartbeat; says the UPF's Recovery Time Stamp. If it is another than at association, the UPF was restarted:
    /// its sessions are gone, and so are they here (§6.2.2).
    pub fn heartbeat(&mut self) -> Result<Option<u32>, SmfError> {
        self.last_heartbeat = Instant::now();
        let recovery = self.recovery();
        let body = |w: &mut Writer<'_>| w.u32(ie::RECOVERY_TIME_STAMP, recovery);
        let answer = self.ask(MessageType::HEARTBEAT_REQUEST, "a heartbeat", body)?.recovery;
        if let (Some(before), Some(now)) = (self.association.recovery, answer)
            && before != now
        {
            self.counters.restarts += 1;
            self.association.recovery = answer;
            self.sessions.iter_mut().for_each(|entry| entry.established = false);
        }
        Ok(answer)
    }

    /// The Recovery Time Stamp of a heartbeat.
    fn recovery(&mut self) -> u32 {
        // As if a second had passed since the last.
        self.recovery = self.recovery.wrapping_add(u32::from(self.config.restless));
        self.recovery
    }

    /// What the UPF said of itself at association.
    pub const fn association(&self) -> &Association {
        &self.association
    }

    /// What else happened.
    pub const fn counters(&self) -> &SmfCounters {
        &self.counters
    }

    /// What was reported, by session and URR.
    pub const fn usage(&self) -> &HashMap<(u32, UrrId), UsageTotals> {
        &self.usage
    }

    /// Number of session numbers given out, deleted sessions included.
    pub fn numbers(&self) -> u32 {
        self.sessions.len() as u32
    }

    /// One established session.
    pub fn session(&self, index: u32) -> Option<&SessionFacts> {
        self.sessions.get(index as usize).filter(|entry| entry.established).map(|entry| &entry.facts)
    }

    /// Bytes of memory that its sessions take, for whoever measures the UPF's in the same process.
    pub fn memory(&self) -> u64 {
        (self.sessions.capacity() * size_of::<Entry>()) as u64
    }

    /// All established sessions, for [`crate::traffic::Flows`].
    pub fn facts(&self) -> Vec<SessionFacts> {
        self.sessions.iter().filter(|entry| entry.established).map(|entry| entry.facts.clone()).collect()
    }

    /// Establishes `count` more sessions.
    pub fn establish(&mut self, count: u32) -> Result<BatchReport, SmfError> {
        self.establish_while(count, &mut |_| ControlFlow::Continue(()))
    }

    /// The same, unless [`Smf::run_while`] ends it.
    pub fn establish_while(&mut self, count: u32, go_on: &mut GoOn<'_>) -> Result<BatchReport, SmfError> {
        let from = self.numbers();
        for index in from..from.saturating_add(count) {
            // Preparing a million takes a while too.
            if (index - from).is_multiple_of(PREPARED) && go_on(0).is_break() {
                break;
            }
            let entry = self.prepare(index)?;
            self.sessions.push(entry);
        }
        self.run_while(Operation::Establish, from..self.numbers(), go_on)
    }

    /// Activates all established sessions.
    pub fn activate_all(&mut self) -> Result<BatchReport, SmfError> {
        self.run(Operation::Activate, self.established())
    }

    /// Deletes all established sessions.
    pub fn delete_all(&mut self) -> Result<BatchReport, SmfError> {
        self.delete_while(&mut |_| ControlFlow::Continue(()))
    }

    /// The same, unless [`Smf::run_while`] ends it.
    pub fn delete_while(&mut self, go_on: &mut GoOn<'_>) -> Result<BatchReport, SmfError> {
        self.run_while(Operation::Delete, self.established(), go_on)
    }

    /// Rates with `keep` sessions standing: establishes what is missing, then `requests` more, moves those to another
    /// gNB, and deletes them again, so that it can be called again.
    pub fn measure(&mut self, keep: u32, requests: u32) -> Result<N4Figures, SmfError> {
        let standing = self.established().len() as u32;
        let missing = self.establish(keep.saturating_sub(standing))?;
        let from = self.numbers();
        let establish = self.establish(requests)?;
        let new = from..self.numbers();
        let modify = self.run(Operation::Handover, new.clone())?;
        let delete = self.run(Operation::Delete, new)?;
        Ok(N4Figures { kept: keep.max(standing), fill: missing, establish, modify, delete })
    }

    /// The numbers of all established sessions.
    pub fn established(&self) -> Vec<u32> {
        (0..).zip(&self.sessions).filter(|(_, entry)| entry.established).map(|(index, _)| index).collect()
    }

    fn prepare(&self, index: u32) -> Result<Entry, SmfError> {
        let config = &self.config;
        let turn = |len: usize| index as usize % len.max(1);
        let kind = config.habit.pdu_type(config.mix.pdu_type(index));
        let ue_ipv4 = if kind.has(Family::V4) {
            Some(config.pools.ipv4_of(index).ok_or(SmfError::PoolExhausted(index))?)
        } else {
            None
        };
        let ue_ipv6 = if kind.has(Family::V6) {
            Some(config.pools.ipv6_of(index).ok_or(SmfError::PoolExhausted(index))?)
        } else {
            None
        };
        let chooses = config.habit.chooses_teid();
        Ok(Entry {
            facts: SessionFacts {
                cp_seid: Seid(u64::from(index) + 1),
                up_seid: Seid(0),
                upf_n3: if chooses { config.upf_n3 } else { UNKNOWN },
                ul_teid: if chooses { Teid(index + 1) } else { Teid(0) },
                gnb: config.gnbs.get(turn(config.gnbs.len())).copied().unwrap_or(UNKNOWN),
                dl_teid: Teid(0x8000_0000 | index),
                qfi: config.qfis.get(turn(config.qfis.len())).copied().unwrap_or_default(),
                ue_ipv4,
                ue_ipv6,
            },
            kind,
            established: false,
            generation: 0,
            end_marker_sent: false,
        })
    }

    /// Sends one request for each of these sessions, as many at once as the window allows, and waits for the answers.
    /// Sessions that don't exist are passed over.
    pub fn run(
        &mut self,
        operation: Operation,
        sessions: impl IntoIterator<Item = u32>,
    ) -> Result<BatchReport, SmfError> {
        self.run_while(operation, sessions, &mut |_| ControlFlow::Continue(()))
    }

    /// The same; `go_on` is told now and then how many requests have been sent, and can say that these are enough: then what was sent is
    /// waited for, and the rest is left.
    pub fn run_while(
        &mut self,
        operation: Operation,
        sessions: impl IntoIterator<Item = u32>,
        go_on: &mut GoOn<'_>,
    ) -> Result<BatchReport, SmfError> {
        let mut batch = Batch::new(operation);
        let mut sessions = sessions.into_iter();
        let mut more = true;
        loop {
            while more && self.outstanding < self.config.window {
                match sessions.next() {
                    Some(index) => self.request(operation, index, &mut batch)?,
                    None => more = false,
                }
            }
            if self.outstanding == 0 {
                break;
            }
            more &= go_on(batch.requests).is_continue();
            self.listen(Some(&mut batch), Duration::from_millis(20))?;
            self.repeat(&mut batch)?;
        }
        Ok(batch.report())
    }

    /// Answers the UPF for a while; sends heartbeats, and activates sessions for which downlink data waits, if so
    /// configured.
    pub fn serve(&mut self, during: Duration) -> Result<(), SmfError> {
        let end = Instant::now() + during;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.listen(None, left.min(Duration::from_millis(20)))?;
            if self.config.heartbeat_every.is_some_and(|every| self.last_heartbeat.elapsed() >= every) {
                self.heartbeat()?;
            }
            if self.config.reactivate && !self.to_activate.is_empty() {
                let waiting: Vec<_> = self.to_activate.drain(..).collect();
                self.run(Operation::Activate, waiting)?;
            }
        }
    }

    /// Encodes and sends the request for one session.
    fn request(&mut self, operation: Operation, index: u32, batch: &mut Batch) -> Result<(), SmfError> {
        let Some(entry) = self.sessions.get_mut(index as usize) else { return Ok(()) };
        if entry.established == (operation == Operation::Establish) {
            return Ok(());
        }
        // A sequence number whose slot is free; one is, for there are twice as many slots as the window has requests.
        loop {
            self.sequence = (self.sequence + 1) & 0xff_ffff;
            if !self.slots[self.sequence as usize % self.slots.len()].busy {
                break;
            }
        }
        let slots = self.slots.len();
        let slot = &mut self.slots[self.sequence as usize % slots];
        let mut moved;
        let mut facts = &entry.facts;
        slot.tunnel = None;
        if operation == Operation::Handover {
            let gnbs = &self.config.gnbs;
            let here = gnbs.iter().position(|&gnb| gnb == facts.gnb).unwrap_or(0);
            let next = gnbs.get((here + 1) % gnbs.len()).copied().unwrap_or(facts.gnb);
            moved = facts.clone();
            (moved.gnb, moved.dl_teid) = (next, Teid(facts.dl_teid.0 ^ 0x4000_0000));
            slot.tunnel = Some((moved.gnb, moved.dl_teid));
            facts = &moved;
        }
        let context = Context {
            habit: self.config.habit,
            shape: &self.config.shape,
            smf: self.local,
            kind: entry.kind,
            facts,
            ids: RuleIds::of(self.config.habit, index, entry.generation),
            sequence: SequenceNumber(self.sequence),
            sticky_end_marker: entry.end_marker_sent && self.config.habit == Habit::Free5gc,
            upf_allocates_ue_ip: self.association.features.has(UpFunctionFeatures::UEIP),
        };
        context.request(operation, &mut slot.bytes);
        let now = Instant::now();
        batch.start.get_or_insert(now);
        (slot.busy, slot.sequence, slot.request) = (true, self.sequence, Some((operation, index)));
        (slot.first, slot.last, slot.tries) = (Some(now), Some(now), 1);
        self.outstanding += 1;
        batch.requests += 1;
        send(&self.socket, &slot.bytes)?;
        Ok(())
    }

    /// Sends unanswered requests again, and gives up those that were sent often enough.
    fn repeat(&mut self, batch: &mut Batch) -> Result<(), SmfError> {
        let now = Instant::now();
        if batch.next_look.is_some_and(|look| now < look) {
            return Ok(());
        }
        batch.next_look = Some(now + self.config.t1 / 8);
        for slot in self.slots.iter_mut().filter(|slot| slot.busy) {
            if slot.last.is_some_and(|last| now.duration_since(last) < self.config.t1) {
                continue;
            }
            if slot.tries > self.config.n1 {
                slot.busy = false;
                self.outstanding -= 1;
                batch.unanswered += 1;
                continue;
            }
            slot.tries += 1;
            slot.last = Some(now);
            batch.repeated += 1;
            send(&self.socket, &slot.bytes)?;
        }
        Ok(())
    }

    /// Waits for a datagram at most `patience`, then takes all that are there.
    fn listen(&mut self, mut batch: Option<&mut Batch>, patience: Duration) -> Result<(), SmfError> {
        self.socket.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let mut flags = RecvFlags::empty();
        let mut buffer = std::mem::take(&mut self.buffer);
        let outcome = loop {
            match recv(&self.socket, &mut buffer[..], flags) {
                Ok((length, _)) => {
                    let datagram = buffer.get(..length).unwrap_or_default();
                    if let Err(error) = self.take(datagram, batch.as_deref_mut()) {
                        break Err(error);
                    }
                    flags = RecvFlags::DONTWAIT;
                }
                // Nothing there; or, on loopback, a UPF that isn't there yet (ECONNREFUSED): time will tell.
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => break Ok(()),
                Err(rustix::io::Errno::CONNREFUSED) => {
                    std::thread::sleep(Duration::from_millis(1));
                    break Ok(());
                }
                Err(error) => break Err(SmfError::Io(error.into())),
            }
        };
        self.buffer = buffer;
        outcome
    }

    /// One datagram of the UPF.
    fn take(&mut self, datagram: &[u8], batch: Option<&mut Batch>) -> Result<(), SmfError> {
        let Ok((header, body, _)) = Header::decode(datagram) else {
            self.counters.malformed += 1;
            return Ok(());
        };
        let Ok(answer) = Answer::read(body) else {
            self.counters.malformed += 1;
            return Ok(());
        };
        match header.message_type {
            MessageType::SESSION_ESTABLISHMENT_RESPONSE
            | MessageType::SESSION_MODIFICATION_RESPONSE
            | MessageType::SESSION_DELETION_RESPONSE => {
                self.answered(&header, &answer, batch);
                Ok(())
            }
            MessageType::SESSION_REPORT_REQUEST => self.reported(&header, &answer),
            kind => {
                let local = self.local;
                let beats = kind == MessageType::HEARTBEAT_REQUEST;
                let recovery = if beats { self.recovery() } else { self.recovery };
                let Some(response) = kind.response() else {
                    self.counters.stray_answers += 1;
                    return Ok(());
                };
                if beats {
                    self.counters.heartbeats += 1;
                } else {
                    self.counters.others += 1;
                }
                let header = Header::node(response, header.sequence);
                Writer::message(&mut self.reply, &header, |w| {
                    if kind != MessageType::HEARTBEAT_REQUEST {
                        w.node_id(local);
                        w.u8(ie::CAUSE, Cause::ACCEPTED.0);
                    }
                    if matches!(kind, MessageType::HEARTBEAT_REQUEST | MessageType::ASSOCIATION_SETUP_REQUEST)
                    {
                        w.u32(ie::RECOVERY_TIME_STAMP, recovery);
                    }
                });
                send(&self.socket, &self.reply)
            }
        }
    }

    /// A response to one of our session requests.
    fn answered(&mut self, header: &Header, answer: &Answer, batch: Option<&mut Batch>) {
        let slots = self.slots.len();
        let slot = &mut self.slots[header.sequence.0 as usize % slots];
        let (true, Some((operation, index)), Some(batch)) =
            (slot.busy && slot.sequence == header.sequence.0, slot.request, batch)
        else {
            self.counters.stray_answers += 1;
            return;
        };
        slot.busy = false;
        self.outstanding -= 1;
        let now = Instant::now();
        batch.end = Some(now);
        if let Some(first) = slot.first {
            batch.latencies.record(now.duration_since(first).as_nanos() as u64);
        }
        let Some(entry) = self.sessions.get_mut(index as usize) else { return };
        if header.seid != Some(entry.facts.cp_seid) {
            self.counters.wrong_seid += 1;
        }
        if operation == Operation::Establish && !answer.node_id {
            self.counters.missing_node_id += 1;
        }
        for usage in &answer.usage {
            self.counters.usage_reports += 1;
            self.usage.entry((index, usage.urr)).or_default().add(usage);
        }
        if !answer.cause.is_some_and(Cause::is_success) {
            batch.refuse(index, Reason::of(answer));
            return;
        }
        batch.accepted += 1;
        let ids = RuleIds::of(self.config.habit, index, entry.generation);
        for created in &answer.created {
            if created.pdr == ids.ul_pdr
                && let Some((teid, address)) = created.tunnel
            {
                (entry.facts.ul_teid, entry.facts.upf_n3) = (teid, address);
            }
            entry.facts.ue_ipv4 = created.ue_ipv4.or(entry.facts.ue_ipv4);
            let prefix = created.ue_ipv6.and_then(|prefix| Ipv6Net::new(prefix, 64).ok());
            entry.facts.ue_ipv6 = prefix.or(entry.facts.ue_ipv6);
        }
        if let Some((gnb, teid)) = slot.tunnel {
            (entry.facts.gnb, entry.facts.dl_teid) = (gnb, teid);
        }
        match operation {
            Operation::Establish => {
                entry.established = true;
                entry.facts.up_seid = answer.up_seid.unwrap_or_default();
            }
            // Generation 0 is the one whose uplink rules came with the establishment.
            Operation::Idle => entry.generation = entry.generation.checked_add(1).unwrap_or(1),
            Operation::Handover => entry.end_marker_sent = true,
            Operation::Delete => entry.established = false,
            Operation::Activate | Operation::Query => {}
        }
    }

    /// A Session Report Request.
    fn reported(&mut self, header: &Header, report: &Answer) -> Result<(), SmfError> {
        let index = header.seid.and_then(|seid| u32::try_from(seid.0.checked_sub(1)?).ok());
        let entry = index.and_then(|index| Some((index, self.sessions.get(index as usize)?)));
        let (seid, cause) = match entry {
            Some((_, entry)) if entry.established => (entry.facts.up_seid, Cause::ACCEPTED),
            _ => (Seid(0), Cause::SESSION_NOT_FOUND),
        };
        if self.recent.contains(&header.sequence.0) {
            self.counters.duplicates += 1;
        } else {
            if self.recent.len() == REMEMBERED {
                self.recent.pop_front();
            }
            self.recent.push_back(header.sequence.0);
            self.counters.reports += 1;
            if let (Some(index), Cause::ACCEPTED) = (index, cause) {
                for usage in &report.usage {
                    self.counters.usage_reports += 1;
                    self.usage.entry((index, usage.urr)).or_default().add(usage);
                }
                if report.downlink_data {
                    self.counters.downlink_data += 1;
                    self.to_activate.push_back(index);
                }
                self.counters.error_indications += u64::from(report.error_indication);
            } else {
                self.counters.unknown_sessions += 1;
            }
        }
        let header = Header::session(MessageType::SESSION_REPORT_RESPONSE, seid, header.sequence);
        Writer::message(&mut self.reply, &header, |w| w.u8(ie::CAUSE, cause.0));
        send(&self.socket, &self.reply)
    }

    /// Sends a node request until it is answered.
    fn ask(
        &mut self,
        kind: MessageType,
        what: &'static str,
        body: impl FnOnce(&mut Writer<'_>),
    ) -> Result<Answer, SmfError> {
        self.sequence = (self.sequence + 1) & 0xff_ffff;
        let header = Header::node(kind, SequenceNumber(self.sequence));
        let mut request = Vec::new();
        Writer::message(&mut request, &header, body);
        for _ in 0..=self.config.n1 {
            send(&self.socket, &request)?;
            let until = Instant::now() + self.config.t1;
            while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            {
                self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
                let mut buffer = std::mem::take(&mut self.buffer);
                let received = recv(&self.socket, &mut buffer[..], RecvFlags::empty());
                let mut found = None;
                let mut outcome = Ok(());
                if let Ok((length, _)) = received {
                    let datagram = buffer.get(..length).unwrap_or_default();
                    match Header::decode(datagram) {
                        Ok((answer, body, _))
                            if Some(answer.message_type) == kind.response()
                                && answer.sequence == header.sequence =>
                        {
                            found = Answer::read(body).ok();
                        }
                        _ => outcome = self.take(datagram, None),
                    }
                } else if received == Err(rustix::io::Errno::CONNREFUSED) {
                    std::thread::sleep(left.min(Duration::from_millis(20)));
                }
                self.buffer = buffer;
                outcome?;
                match found {
                    // Heartbeat responses have no cause.
                    Some(answer) if answer.cause.is_none_or(Cause::is_success) => return Ok(answer),
                    Some(answer) => return Err(SmfError::Refused { what, reason: Reason::of(&answer) }),
                    None => {}
                }
            }
        }
        Err(SmfError::NoAnswer { upf: self.config.upf, what, tries: self.config.n1 + 1 })
    }
}

/// Sends a datagram; a peer that isn't there yet is no error, the repetition will reach it.
fn send(socket: &UdpSocket, bytes: &[u8]) -> Result<(), SmfError> {
    match socket.send(bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionRefused => Err(SmfError::Io(error)),
        _ => Ok(()),
    }
}
