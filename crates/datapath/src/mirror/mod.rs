//! What do these packets look like? Copies of chosen packets, sent to a port or through a tunnel, or kept in a file.
//!
//! **Problem.** Whoever looks for a fault in a subscriber's traffic wants to see it: all of it or a sample, whole or only
//! the headers, on a probe or in a file. It must not change what is forwarded, nor cost those who aren't looked at.
//!
//! **Model.** A [`Mirror`] says whose packets ([`Scope`]), which of them (a direction, filters, applications), how many and how much of
//! each, and where to ([`Target`]). Every worker is told of every mirror ([`Order`]), so that a session's mirrors stay when
//! its shard moves. The session keeps the numbers of its mirrors, through all changes of its rules, and its records
//! carry [`MIRRORED`](crate::state::record::flag::MIRRORED).
//!
//! A mirror of applications takes packets of conversations that are looked into ([`crate::inspect`]); it makes nobody look.
//!
//! What is copied is the UE's own packet as it leaves, without tunnel headers: after classification, gates, meters and
//! quotas, with its TTL decremented, before it is cut into fragments. Packets that are dropped or wait in a buffer
//! are not copied (those that waited are, when they leave). A packet from one UE to another is uplink for the one and
//! downlink for the other. A copy doesn't run through the datapath, so it is never mirrored itself.
//!
//! A copy is a frame of the worker's pool, counted as one of our own making. It waits for its next hop's MAC address and
//! may be dropped at a port as any other; see [`Reason`](crate::Reason). What keeps a copy from being made is counted
//! by mirror ([`MirrorCounters`]). The user's packet goes its way in any case.
//!
//! **Cost.** A packet of a session without mirrors pays nothing: the mask that its record's flags are compared with anyway
//! has one more bit. While all sessions are mirrored the mask lets none pass. A mirrored packet is served by its record as
//! others, but on its own (`Datapath::serve_one`), then copied. `millrace bench mirror` measures both.
//!
//! **When not to use it.** For lawful interception, which has interfaces, identities and guarantees of its own
//! (TS 33.127): a copy here may be lost. To see what was dropped and why: `millrace ctl session` tells that.

mod capture;
mod copy;
mod tap;

pub use capture::{CaptureRx, CaptureTx, Captured, capture};
pub(crate) use tap::Taps;

use crate::counters::Traffic;
use packet::{MacAddr, Teid};
use pfcp::Seid;
use session::SessionRef;
use session::rules::{Application, SdfFilter};
use std::net::IpAddr;
use std::sync::Arc;

/// Mirrors at a time, at most.
pub const MAX_MIRRORS: u16 = 64;

/// Whose packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// One session's, as long as it lives.
    Session {
        /// Where it is.
        place: SessionRef,
        /// Its UP SEID: another session in its place is not meant.
        seid: Seid,
    },
    /// Every session's.
    All,
}

/// Where copies go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Out of a port, behind an Ethernet header of our own making.
    Port {
        /// The port's number.
        port: u16,
        /// VLAN ID of the tag, if there is to be one.
        vlan: Option<u16>,
        /// The port's MAC address.
        source: MacAddr,
        /// The probe's.
        destination: MacAddr,
        /// Longest packet behind the header.
        mtu: u16,
    },
    /// As G-PDUs (TS 29.281) without extension headers.
    Gtpu {
        /// The far end.
        destination: IpAddr,
        /// Its TEID.
        teid: Teid,
    },
    /// In GRE (RFC 2784, RFC 2890), as IP packets.
    Gre {
        /// The far end.
        destination: IpAddr,
        /// Names the tunnel, if there are several.
        key: Option<u32>,
    },
    /// In GRE as ERSPAN type III (draft-foschiano-erspan-03), as Ethernet frames of our own making: uplink from
    /// [`UE_MAC`] to [`NETWORK_MAC`] and received (D = 0), downlink the other way round and sent (D = 1). Timestamps count
    /// 100 ns of the process's clock.
    Erspan {
        /// The far end.
        destination: IpAddr,
        /// Session ID, at most [`packet::erspan::MAX_SESSION`].
        session: u16,
    },
    /// To whoever holds the other end of [`capture()`].
    Capture,
}

impl Target {
    /// The far end of a tunnel.
    pub(crate) const fn far_end(&self) -> Option<IpAddr> {
        match *self {
            Self::Gtpu { destination, .. }
            | Self::Gre { destination, .. }
            | Self::Erspan { destination, .. } => Some(destination),
            Self::Port { .. } | Self::Capture => None,
        }
    }
}

/// Stands for the UE in mirrored Ethernet frames; locally administered.
pub const UE_MAC: MacAddr = MacAddr([0x02, b'M', b'I', b'L', b'U', b'E']);
/// Stands for the data network.
pub const NETWORK_MAC: MacAddr = MacAddr([0x02, b'M', b'I', b'L', b'D', b'N']);

/// Which packets are copied, and where to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mirror {
    /// Below [`MAX_MIRRORS`]; no other mirror has it at the same time.
    pub number: u16,
    /// Whose packets.
    pub scope: Scope,
    /// Which uplink packets: those that any of the filters takes, or all if there is none. `None`: none of them. Of a
    /// fragmented packet, later fragments have no ports; they are taken by the rest of the filter.
    pub uplink: Option<Box<[SdfFilter]>>,
    /// Which downlink packets, likewise.
    pub downlink: Option<Box<[SdfFilter]>>,
    /// Only packets of conversations that are found to be of one of these applications or of a part of it, or are taken for it so far. Empty: whatever
    /// they are.
    pub applications: Box<[Application]>,
    /// One in so many of a worker's packets that match, from the first on; 0 counts as 1.
    pub sample: u32,
    /// Octets of each, at most.
    pub truncate: u16,
    /// Where to.
    pub target: Target,
}

/// Begins or ends a mirror; sent to every worker.
#[derive(Debug)]
pub enum Order {
    /// Begin. Where its session is not, [`crate::Event::MirrorsEnded`] tells so.
    Add {
        /// What.
        mirror: Arc<Mirror>,
        /// Of [`Target::Capture`]: where to.
        capture: Option<CaptureTx>,
    },
    /// End, and forget what was counted.
    Remove {
        /// Which.
        number: u16,
    },
}

counters::counters! {
    /// What a mirror did, by [`Mirror::number`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct MirrorCounters {
        /// Copies, and the octets of the UEs' packets in them.
        pub copied: Traffic = "copied";
        /// Packets that matched and were passed over by sampling.
        pub sampled_out: u64 = "sampled-out", Counter of Packets;
        /// Copies that are shorter than their packet, because that was asked for or because of the way's MTU.
        pub truncated: u64 = "truncated", Counter of Packets;
        /// Copies that were not made because the pool had no frame.
        pub no_buffer: u64 = "no-buffer", Counter of Packets;
        /// Copies that were not made because there is no way to the target, or no room for a single octet in its MTU.
        pub no_route: u64 = "no-route", Counter of Packets;
        /// Copies that were not made because the reader of the capture doesn't keep up, or is gone.
        pub backlog: u64 = "backlog", Counter of Packets;
    }
}

impl MirrorCounters {
    /// Copies that were not made.
    pub const fn lost(&self) -> u64 {
        self.no_buffer + self.no_route + self.backlog
    }
}
