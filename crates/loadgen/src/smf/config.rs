//! What an SMF model is told.

use crate::facts::{SessionMix, UePools};
use crate::habits::{Habit, Shape};
use packet::Qfi;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Who the SMF is and what its sessions look like.
#[derive(Clone, Debug)]
pub struct SmfConfig {
    /// Where it speaks from. Port 0: any. The address is its Node ID.
    pub local: SocketAddr,
    /// The UPF's N4 address.
    pub upf: SocketAddr,
    /// Whose manners it has.
    pub habit: Habit,
    /// What sessions are made of.
    pub shape: Shape,
    /// Session types.
    pub mix: SessionMix,
    /// UE addresses that the SMF gives.
    pub pools: UePools,
    /// gNBs, taken in turn.
    pub gnbs: Vec<IpAddr>,
    /// The UPF's N3 address, for habits that tell the UPF its own.
    pub upf_n3: IpAddr,
    /// QoS flows, taken in turn.
    pub qfis: Vec<Qfi>,
    /// Requests outstanding at most.
    pub window: usize,
    /// T1: when to send again.
    pub t1: Duration,
    /// N1: how often to send again.
    pub n1: u8,
    /// How often [`crate::smf::Smf::serve`] asks whether the UPF lives; `None`: never.
    pub heartbeat_every: Option<Duration>,
    /// Every heartbeat, either way, has a later Recovery Time Stamp, as pfcpsim's have, which takes the time of each for that of its
    /// start: to the UPF each is a restart.
    pub restless: bool,
    /// Answer a downlink data report by activating the session, as paging would.
    pub reactivate: bool,
}

impl SmfConfig {
    /// Plain sessions, IPv4, 64 requests outstanding, T1 of one second, N1 of three, one gNB at 192.0.2.10, no
    /// heartbeats of its own.
    pub fn new(local: SocketAddr, upf: SocketAddr) -> Self {
        Self {
            local,
            upf,
            habit: Habit::Plain,
            shape: Shape::default(),
            mix: SessionMix::IPV4,
            pools: UePools::default(),
            gnbs: vec![IpAddr::from([192, 0, 2, 10])],
            upf_n3: IpAddr::from([192, 0, 2, 1]),
            qfis: vec![Qfi::from_wire(9)],
            window: 64,
            t1: Duration::from_secs(1),
            n1: 3,
            heartbeat_every: None,
            restless: false,
            reactivate: false,
        }
    }
}
