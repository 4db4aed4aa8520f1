//! An SMF: a PFCP node that keeps what it is told.

use super::UPF;
use pfcp::ie::{NodeId, RecoveryTimeStamp};
use pfcp::message::{SessionReportRequest, SessionReportResponse};
use pfcp::message_type::MessageType;
use pfcp::node::{Event, Incoming, Node, NodeConfig, Output, RequestHandle, Role};
use pfcp::{Cause, Datagram, Seid};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use tables::Nanos;

/// What an SMF does with reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    Accept,
    /// The session isn't known (Cause 65).
    Unknown,
    /// Accept, and drop buffered packets (DROBU).
    Discard,
    /// Say nothing until told ([`Smf::answer`]).
    Wait,
}

/// A Session Report Request.
#[derive(Debug)]
pub struct Report {
    /// The SEID in the header: the SMF's.
    pub seid: Seid,
    pub report: SessionReportRequest,
    handle: RequestHandle,
}

pub struct Smf {
    pub node: Node,
    pub address: SocketAddr,
    pub answer: Answer,
    /// Reports in the order of their coming, each once.
    pub reports: Vec<Report>,
    /// Answers by token: message type, SEID in the header, body.
    pub answers: HashMap<u64, (MessageType, Seid, Vec<u8>)>,
    pub events: Vec<Event>,
    out: Output,
    last_token: u64,
}

impl Smf {
    pub fn new(number: u8, recovery: u32) -> Self {
        let address = Ipv4Addr::new(198, 51, 100, 100 + number);
        Self::named(number, recovery, NodeId::Ip(address.into()))
    }

    pub fn named(number: u8, recovery: u32, name: NodeId) -> Self {
        let address = Ipv4Addr::new(198, 51, 100, 100 + number);
        let config = NodeConfig {
            heartbeat_interval: 0,
            t1: super::SECOND,
            n1: 10,
            ..NodeConfig::new(Role::Cp, name, RecoveryTimeStamp(recovery))
        };
        Self {
            node: Node::new(config),
            address: SocketAddr::from((address, 8805)),
            answer: Answer::Accept,
            reports: Vec::new(),
            answers: HashMap::new(),
            events: Vec::new(),
            out: Output::default(),
            last_token: 0,
        }
    }

    pub fn associate(&mut self, now: Nanos) {
        self.node.associate(now, SocketAddr::from((UPF, 8805)), &mut self.out).unwrap();
    }

    /// Ends the association with the UPF.
    pub fn release(&mut self, now: Nanos) {
        let upf = self.node.peers().next().unwrap().id;
        self.node.release(now, upf, &mut self.out);
    }

    pub fn ask(&mut self, now: Nanos, kind: MessageType, seid: Seid, encode: impl Fn(&mut Vec<u8>)) -> u64 {
        self.last_token += 1;
        let upf = self.node.peers().next().expect("no association").id;
        self.node.request(now, upf, kind, seid, self.last_token, encode, &mut self.out).unwrap();
        self.last_token
    }

    pub fn take_datagrams(&mut self) -> Vec<Vec<u8>> {
        self.events.append(&mut self.out.events);
        let datagrams = self.out.datagrams().map(|(_, datagram)| datagram.to_vec()).collect();
        self.out.clear();
        datagrams
    }

    pub fn take(&mut self, now: Nanos, datagram: &[u8]) {
        for message in Datagram::new(datagram) {
            match self.node.receive(now, SocketAddr::from((UPF, 8805)), message, &mut self.out) {
                Incoming::Nothing => {}
                Incoming::Request { handle, message_type, seid, body } => {
                    assert_eq!(message_type, MessageType::SESSION_REPORT_REQUEST);
                    let report = SessionReportRequest::decode(body).unwrap();
                    self.reports.push(Report { seid, report, handle });
                    if self.answer != Answer::Wait {
                        self.answer(self.answer);
                    }
                }
                Incoming::Response { token, message_type, seid, body, .. } => {
                    let answer = (message_type, seid.unwrap_or_default(), body.to_vec());
                    assert!(self.answers.insert(token, answer).is_none(), "answered twice");
                }
            }
        }
    }

    /// Answers the last report.
    pub fn answer(&mut self, answer: Answer) {
        self.answer_to(self.reports.len() - 1, answer);
    }

    /// Answers one of the reports.
    pub fn answer_to(&mut self, report: usize, answer: Answer) {
        let Report { handle, seid, .. } = &self.reports[report];
        let response = SessionReportResponse {
            cause: if answer == Answer::Unknown { Cause::SESSION_NOT_FOUND } else { Cause::ACCEPTED },
            offending_ie: None,
            drop_buffered: answer == Answer::Discard,
        };
        // Where the session is unknown, so is the UPF's SEID.
        let seid = if answer == Answer::Unknown { Seid(0) } else { *seid };
        let kind = MessageType::SESSION_REPORT_RESPONSE;
        self.node.respond(*handle, kind, seid, |out| response.encode(out), &mut self.out);
    }

    pub fn tick(&mut self, now: Nanos) {
        self.node.tick(now, &mut self.out);
    }

    /// The reports so far, which are forgotten.
    pub fn take_reports(&mut self) -> Vec<SessionReportRequest> {
        self.reports.drain(..).map(|report| report.report).collect()
    }
}
