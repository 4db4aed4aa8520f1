//! What is inside this frame?
//!
//! **Problem.** The packets that users send lie under tags, labels, sessions and tunnels, and some of them in pieces. Whoever wants to know
//! what they say has to get there first, on every packet, and what they are given may lie in each of its lengths.
//!
//! **Model.** [`prepare`] walks from the outside in and ends at the innermost IP packet around which every layer holds. It keeps nothing and allocates
//! nothing. A tunnel is opened if it is among [`Tunnels`] and if its header holds; what can't be read inside it makes the tunnel's
//! own packet the innermost one: nothing that came in is lost, and a port alone makes no tunnel. [`Preparation`] is the stage: it
//! puts fragments together, too, on each level, and counts.
//!
//! **Example.**
//! ```
//! use dpi::prepare::{Link, Tunnels, prepare};
//! use packet::{MacAddr, PacketBuilder, Teid};
//!
//! let frame = PacketBuilder::new()
//!     .ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]))
//!     .ipv4([192, 0, 2, 1].into(), [192, 0, 2, 2].into())
//!     .udp(2152, 2152)
//!     .gtpu(Teid(7))
//!     .ipv4([10, 60, 0, 1].into(), [198, 51, 100, 7].into())
//!     .udp(40000, 53)
//!     .build(b"query");
//! let prepared = prepare(Link::Ethernet, &frame, Tunnels::USUAL).unwrap();
//! assert_eq!(prepared.payload, b"query");
//! assert_eq!(prepared.around.tunnel.map(|tunnel| tunnel.id), Some(7));
//! assert_eq!(prepared.around.stack.to_string(), "ethernet/ipv4/gtp-u/ipv4");
//! ```
//!
//! **Cost.** A few comparisons a layer. What is rare is out of line.
//!
//! **When not to use it.** Where a lie about a length must be found: the outermost packet may be longer than its octets are, as captures cut
//! packets off ([`Prepared::missing`] says so). Teredo and other tunnels that applications make are left to whoever recognises protocols.

mod fragments;
mod link;
mod stack;
#[cfg(test)]
mod tests;
mod tunnels;
mod walk;

pub use fragments::{FragmentCounters, Fragments, GivenUp, Limits, Refused, Taken};
pub use link::Link;
pub use stack::{Around, Layer, MAX_LAYERS, Stack, Tunnel};
pub use tunnels::Tunnels;

use counters::By;
use packet::{IpPacket, Malformed};
use tables::Nanos;
use walk::{Next, walk};

counters::labels! {
    /// Why there is no packet.
    pub enum Why: "reason" {
        Truncated = "truncated", "A header is cut off.";
        Malformed = "malformed", "A length, a version or a field is none that its protocol has.";
        Deep = "deep", "More layers than are looked through.";
        Arp = "arp", "ARP.";
        Stp = "stp", "Spanning tree.";
        Llc = "llc", "Another protocol on IEEE 802.2.";
        EtherType = "ether-type", "An EtherType that doesn't lead to IP.";
        Ppp = "ppp", "PPP's own signalling, or another protocol on it.";
        Wireless = "802.11", "A frame of IEEE 802.11 that is management, ciphered or an aggregate.";
        Label = "mpls", "A channel of MPLS' own.";
        Family = "family", "Another address family than those of IP.";
        Link = "link", "A type of link whose frames can't be read.";
    }
}

/// There is no IP packet in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoPacket {
    /// Why.
    pub why: Why,
    /// What it is instead: an EtherType, a protocol of PPP, two access points of IEEE 802.2, a label, as `why` has it; else 0.
    pub number: u16,
}

impl From<Why> for NoPacket {
    fn from(why: Why) -> Self {
        Self { why, number: 0 }
    }
}

impl From<Malformed> for NoPacket {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Truncated(_) => Why::Truncated,
            Malformed::TooMany(_) => Why::Deep,
            _ => Why::Malformed,
        }
        .into()
    }
}

/// The innermost IP packet of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prepared<'p> {
    /// What its headers say.
    pub ip: IpPacket,
    /// The packet, without what a link has added behind it.
    pub packet: &'p [u8],
    /// What TCP, UDP or SCTP carries; of another protocol, and of a later fragment, all that is behind the IP headers.
    pub payload: &'p [u8],
    /// Octets that the packet has, but that are not here: whoever captured it cut it off.
    pub missing: u16,
    /// What lay around it.
    pub around: Around,
}

impl<'p> Prepared<'p> {
    /// The transport header, and what follows it.
    pub fn transport(&self) -> &'p [u8] {
        self.packet.get(usize::from(self.ip.transport_offset)..).unwrap_or_default()
    }

    /// Octets of payload, those included that are missing.
    pub const fn length(&self) -> usize {
        self.payload.len() + self.missing as usize
    }
}

/// Finds the innermost IP packet, which may be a fragment.
#[inline]
pub fn prepare(link: Link, frame: &[u8], tunnels: Tunnels) -> Result<Prepared<'_>, NoPacket> {
    let mut around = Around::NOTHING;
    let (next, rest) = link.begin(frame, &mut around.stack)?;
    walk(next, rest, around, tunnels)
}

counters::counters! {
    /// What became of frames.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct PrepareCounters {
        /// Frames.
        pub frames: u64 = "frames", Counter of Packets;
        /// Packets that were handed on.
        pub packets: u64 = "packets", Counter of Packets;
        /// Frames without an IP packet.
        pub nothing: By<Why, { Why::COUNT }> = "nothing", Counter of Packets;
    }
}

impl PrepareCounters {
    #[inline]
    fn count<'p>(&mut self, prepared: Result<Prepared<'p>, NoPacket>) -> Outcome<'p> {
        match prepared {
            Ok(prepared) => {
                self.packets += 1;
                Outcome::Packet(prepared)
            }
            Err(no) => {
                self.nothing.add(no.why, 1);
                Outcome::Nothing(no)
            }
        }
    }
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<'p> {
    /// A packet; it is whole, unless fragments are not put together.
    Packet(Prepared<'p>),
    /// A fragment that waits for others.
    Held,
    /// A fragment that is of no use.
    Refused(Refused),
    /// No packet.
    Nothing(NoPacket),
}

/// The stage: frames in, whole packets out.
#[derive(Debug)]
pub struct Preparation {
    tunnels: Tunnels,
    fragments: Option<Fragments>,
    /// The last packet that was put together.
    whole: Vec<u8>,
    /// The next one, if that one was itself a fragment.
    spare: Vec<u8>,
    counters: PrepareCounters,
}

impl Preparation {
    /// Opens these tunnels, and puts fragments together within these limits; `None`: they are handed on as they are.
    pub fn new(tunnels: Tunnels, limits: Option<Limits>) -> Self {
        let fragments = limits.map(Fragments::new);
        Self {
            tunnels,
            fragments,
            whole: Vec::new(),
            spare: Vec::new(),
            counters: PrepareCounters::default(),
        }
    }

    /// What has been counted.
    pub const fn counters(&self) -> &PrepareCounters {
        &self.counters
    }

    /// The fragments that wait, if they do.
    pub const fn fragments(&self) -> Option<&Fragments> {
        self.fragments.as_ref()
    }

    /// The packet in a frame.
    #[inline]
    pub fn push<'p>(&'p mut self, link: Link, frame: &'p [u8], now: Nanos) -> Outcome<'p> {
        let prepared = prepare(link, frame, self.tunnels);
        self.settle(prepared, now)
    }

    /// The packet in what somebody else has taken out of a tunnel.
    #[inline]
    pub fn push_from<'p>(&'p mut self, tunnel: Option<Tunnel>, packet: &'p [u8], now: Nanos) -> Outcome<'p> {
        let around = Around { tunnel, ..Around::NOTHING };
        let prepared = walk(Next::Ip, packet, around, self.tunnels);
        self.settle(prepared, now)
    }

    #[inline]
    fn settle<'p>(&'p mut self, prepared: Result<Prepared<'p>, NoPacket>, now: Nanos) -> Outcome<'p> {
        self.counters.frames += 1;
        match prepared {
            Ok(fragment) if fragment.ip.fragment.is_some() && self.fragments.is_some() => {
                self.put_together(&fragment, now)
            }
            prepared => self.counters.count(prepared),
        }
    }

    /// What is put together may be a tunnel's packet with a fragment inside.
    #[cold]
    fn put_together<'p>(&'p mut self, fragment: &Prepared<'_>, now: Nanos) -> Outcome<'p> {
        let Some(fragments) = &mut self.fragments else { return Outcome::Held };
        let mut taken = fragments.push(fragment, now, &mut self.whole);
        let mut around = fragment.around;
        loop {
            match taken {
                Taken::Whole => {}
                Taken::Held => return Outcome::Held,
                Taken::Refused(refused) => return Outcome::Refused(refused),
            }
            // In place of the fragment's own layer, which comes again: so this ends, too.
            around.stack.pop();
            if let Err(why) = around.stack.push(Layer::Fragments) {
                return self.counters.count(Err(why.into()));
            }
            match walk(Next::Ip, &self.whole, around, self.tunnels) {
                Ok(inner) if inner.ip.fragment.is_some() => {
                    taken = fragments.push(&inner, now, &mut self.spare);
                    around = inner.around;
                }
                _ => break,
            }
            std::mem::swap(&mut self.whole, &mut self.spare);
        }
        self.counters.count(walk(Next::Ip, &self.whole, around, self.tunnels))
    }

    /// Gives up fragments that have waited too long.
    pub fn expire(&mut self, now: Nanos) {
        if let Some(fragments) = &mut self.fragments {
            fragments.expire(now);
        }
    }
}
