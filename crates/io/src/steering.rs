//! Which receive queue, before the RSS hash is asked.
//!
//! **The problem.** RSS spreads packets over queues without regard to what they are. When more arrives than a worker
//! takes, every queue overflows, and with the users' packets go those that keep the network together: an echo request is
//! lost as readily as a video frame, and the gNB declares the path dead because users are busy.
//!
//! **The model.** Two steps ahead of RSS. First, *control protocols* ([`Control`]) go to a queue of their own, which worker 0
//! polls before all others. Then the DSCP of the outermost IP header chooses a *group* of queues ([`Group`]), and RSS chooses the
//! queue within the group, with the same redirection table in each: a subscriber's packets come to one worker, whatever
//! their group. Frames of no group go to the ordinary queues, which a port without steering has only.
//!
//! ```
//! use io::steering::{Control, Group, Steering};
//! use packet::Dscp;
//!
//! let voice = Group::new("voice", [Dscp::EF, Dscp::VA]);
//! let control = Control::new(["192.0.2.1".parse().unwrap()]);
//! let steering = Steering::new(Some(control), vec![voice])?;
//! assert_eq!(steering.groups()[0].name, "voice");
//! # Ok::<(), io::steering::SteeringError>(())
//! ```
//!
//! **The cost.** For a NIC none; for [`crate::mem`] some tens of cycles of the wire's thread a packet. Packets of one flow with
//! different code points may overtake each other.
//!
//! **When not to use it.** Where the sender's DSCP can't be trusted, a group only moves the overload: whoever marks gets
//! served.

use crate::header::{Ip, ip_packet, layer3};
use packet::Dscp;
use std::net::IpAddr;

/// The most groups beside the ordinary queues.
pub const MAX_GROUPS: usize = 7;
/// Bursts of a group's queue that a worker takes, unless configured, before it comes to the next queue.
pub const DEFAULT_BURSTS: u8 = 4;

/// Why there is no such [`Steering`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SteeringError {
    /// More than [`MAX_GROUPS`].
    #[error("there are at most {MAX_GROUPS} groups of receive queues, not {0}")]
    Groups(usize),
    /// A code point in two groups.
    #[error("the code point {} is in the groups `{first}` and `{second}`", dscp.get())]
    Twice {
        /// The code point.
        dscp: Dscp,
        /// One group.
        first: String,
        /// The other.
        second: String,
    },
}

/// What a queue that steering leads to is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Duty {
    /// Control protocols.
    Control,
    /// A group of code points, by its place in [`Steering::groups`].
    Group(u8),
}

impl counters::Words for Duty {
    fn put(&self, to: &mut Vec<u64>) {
        let group = match *self {
            Self::Control => None,
            Self::Group(group) => Some(group),
        };
        group.put(to);
    }

    fn take(from: &mut &[u64]) -> Option<Self> {
        Some(<Option<u8> as counters::Words>::take(from)?.map_or(Self::Control, Self::Group))
    }
}

/// Queues of their own for some code points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its code points.
    pub dscps: Vec<Dscp>,
    /// Full bursts that a worker takes from its queue of this group before it comes to the next queue, at least 1. Greater
    /// favours the group, and holds the others up for longer.
    pub bursts: u8,
}

impl Group {
    /// With [`DEFAULT_BURSTS`].
    pub fn new(name: &str, dscps: impl IntoIterator<Item = Dscp>) -> Self {
        Self { name: name.to_owned(), dscps: dscps.into_iter().collect(), bursts: DEFAULT_BURSTS }
    }
}

/// How a port chooses a receive queue ahead of RSS. The default: not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steering {
    control: Option<Control>,
    groups: Vec<Group>,
    /// Group by code point, from 1; 0: the ordinary queues.
    by_dscp: [u8; 64],
}

impl Default for Steering {
    fn default() -> Self {
        Self { control: None, groups: Vec::new(), by_dscp: [0; 64] }
    }
}

impl Steering {
    /// With a control queue or without, and with these groups, the most urgent first.
    pub fn new(control: Option<Control>, groups: Vec<Group>) -> Result<Self, SteeringError> {
        if groups.len() > MAX_GROUPS {
            return Err(SteeringError::Groups(groups.len()));
        }
        let mut by_dscp = [0; 64];
        for (number, group) in (1..).zip(&groups) {
            for &dscp in &group.dscps {
                let Some(place) = by_dscp.get_mut(usize::from(dscp.get())) else { continue };
                if let Some(first) = usize::from(*place).checked_sub(1).filter(|&at| at + 1 != number.into())
                {
                    let first = groups.get(first).map(|group| group.name.clone()).unwrap_or_default();
                    return Err(SteeringError::Twice { dscp, first, second: group.name.clone() });
                }
                *place = number;
            }
        }
        Ok(Self { control, groups, by_dscp })
    }

    /// Whether RSS alone chooses.
    pub const fn is_none(&self) -> bool {
        self.control.is_none() && self.groups.is_empty()
    }

    /// The control protocols that have a queue.
    pub const fn control(&self) -> Option<&Control> {
        self.control.as_ref()
    }

    /// The groups, the most urgent first.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Receive queues that it adds to `queues` ordinary ones.
    pub fn extra_queues(&self, queues: u16) -> usize {
        self.groups.len() * usize::from(queues) + usize::from(self.control.is_some())
    }

    /// Where among all receive queues of a port a queue is: the ordinary ones (`None`) come first, then each group's,
    /// then the control queue. `queue`: as RSS says; the control queue has no other.
    pub fn place(&self, duty: Option<Duty>, queue: usize, queues: u16) -> usize {
        let queues = usize::from(queues);
        match duty {
            None => queue,
            Some(Duty::Group(group)) => (1 + usize::from(group)) * queues + queue,
            Some(Duty::Control) => (1 + self.groups.len()) * queues,
        }
    }

    /// What is left of it where not all can be had: the control queue or not, and the `groups` most urgent groups.
    #[must_use]
    pub fn keep(&self, control: bool, groups: usize) -> Self {
        let left = self.groups.iter().take(groups).cloned().collect();
        // Fewer groups can't be wrong where more were right.
        Self::new(self.control.clone().filter(|_| control), left).unwrap_or_default()
    }

    /// Where an arriving frame goes; `None`: to the ordinary queues.
    #[inline]
    pub fn duty(&self, frame: &[u8]) -> Option<Duty> {
        let seen = Seen::of(frame);
        match (&self.control, &seen) {
            (Some(_), Seen::Arp) => return Some(Duty::Control),
            (Some(control), Seen::Ip(ip)) if control.is_control(ip, End::Destination) => {
                return Some(Duty::Control);
            }
            _ => {}
        }
        let Seen::Ip(ip) = seen else { return None };
        let group = self.by_dscp.get(usize::from(ip.tos >> 2)).copied().unwrap_or(0);
        group.checked_sub(1).map(Duty::Group)
    }
}

/// What queues want to know of a frame.
enum Seen<'a> {
    Arp,
    Ip(Ip<'a>),
    Other,
}

impl<'a> Seen<'a> {
    #[inline]
    fn of(frame: &'a [u8]) -> Self {
        match layer3(frame) {
            Some(([0x08, 0x06], _)) => Self::Arp,
            Some(([0x08, 0x00] | [0x86, 0xdd], packet)) => ip_packet(packet).map_or(Self::Other, Self::Ip),
            _ => Self::Other,
        }
    }
}

/// What a frame's outermost header says about how it is to be queued for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Not IP, or a control protocol from one of our addresses.
    Control,
    /// Any other IP packet, with its code point.
    Marked(Dscp),
}

/// Which end of a packet is ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Source,
    Destination,
}

/// The protocols that keep the network together, and the addresses at which they are ours.
///
/// - ARP, and IPv6 neighbour and router discovery and redirects (ICMPv6 133 to 137) with hop limit 255, which no
///   router lets through (RFC 4861 §6.1, §7.1, §8.1): on any link;
/// - to or from one of the addresses: GTP-U path management and errors (TS 29.281 §7.2 and §7.3: echo, error indication,
///   supported extension headers), PFCP (UDP 8805), BFD (UDP 3784, and 4784 multihop; RFC 5881, RFC 5883) and BGP (TCP 179).
///
/// Without the addresses, a user could lift traffic of its own above all others' by its port. GTP-U's End Marker is not
/// among them: it says that nothing more follows, and must not overtake the packets before it. Nor are fragments, whose ports may
/// be elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    addresses: Box<[Box<[u8]>]>,
}

impl Control {
    /// Protocols of these addresses.
    pub fn new(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let bytes = |address| match address {
            IpAddr::V4(address) => Box::from(address.octets()),
            IpAddr::V6(address) => Box::from(address.octets()),
        };
        Self { addresses: addresses.into_iter().map(bytes).collect() }
    }

    /// The addresses at which the protocols are ours.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.addresses.iter().filter_map(|address| match **address {
            [a, b, c, d] => Some(IpAddr::from([a, b, c, d])),
            ref other => <[u8; 16]>::try_from(other).ok().map(IpAddr::from),
        })
    }

    /// How a frame that is sent is to be queued.
    pub fn urgency(&self, frame: &[u8]) -> Urgency {
        match Seen::of(frame) {
            Seen::Ip(ip) if !self.is_control(&ip, End::Source) => Urgency::Marked(Dscp::from_tos(ip.tos)),
            _ => Urgency::Control,
        }
    }

    #[inline]
    fn is_control(&self, ip: &Ip<'_>, ours: End) -> bool {
        const ICMPV6: u8 = 58;
        const TCP: u8 = 6;
        const UDP: u8 = 17;
        let v6 = ip.source.len() == 16;
        match (ip.protocol, ip.payload) {
            (ICMPV6, &[kind, ..]) => v6 && ip.hops == 255 && DISCOVERY.contains(&kind),
            (UDP, &[s0, s1, d0, d1, _, _, _, _, ref message @ ..]) => {
                let (source, destination) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
                // A G-PDU is the common case, and no more is asked of it.
                let known = match (source, destination) {
                    (packet::GTP_U_PORT, _) | (_, packet::GTP_U_PORT) => {
                        matches!(message, [flags, kind, ..] if flags >> 5 == 1 && GTP_U_SIGNALLING.contains(kind))
                    }
                    (source, destination) => [source, destination]
                        .iter()
                        .any(|port| *port == packet::PFCP_PORT || BFD_PORTS.contains(port)),
                };
                known && self.owns(ip, ours)
            }
            (TCP, &[s0, s1, d0, d1, ..]) => {
                [[s0, s1], [d0, d1]].contains(&BGP_PORT.to_be_bytes()) && self.owns(ip, ours)
            }
            _ => false,
        }
    }

    #[inline]
    fn owns(&self, ip: &Ip<'_>, end: End) -> bool {
        let address = if end == End::Source { ip.source } else { ip.destination };
        self.addresses.iter().any(|own| **own == *address)
    }
}

/// ICMPv6: router and neighbour solicitation and advertisement, redirect (RFC 4861 §4).
pub const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
/// GTP-U messages: echo request and response, error indication, supported extension headers notification (TS 29.281 §6.1).
pub const GTP_U_SIGNALLING: [u8; 4] = [1, 2, 26, 31];
/// UDP: BFD over one hop (RFC 5881 §4) and over several (RFC 5883 §5).
pub const BFD_PORTS: [u16; 2] = [3784, 4784];
/// TCP (RFC 4271 §8).
pub const BGP_PORT: u16 = 179;

#[cfg(test)]
mod tests;
