//! The rules that say to a NIC what [`Steering`] says to software.
//!
//! Four things are not the same. A NIC looks behind one VLAN tag where software looks behind two; GTP-U's messages are known by
//! destination port 2152, not by the source port as well; a driver that takes a GTP-U item checks the version in its own way; and the
//! first fragment of a packet may count as a whole one.

use crate::ffi::RawSteer;
use io::steering::{BFD_PORTS, BGP_PORT, Control, DISCOVERY, Duty, GTP_U_SIGNALLING, Steering};
use packet::{Dscp, EtherType, PFCP_PORT, rss};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What a hash that rules name is made with. DPDK is given its address.
pub(super) static KEY: [u8; rss::KEY_LEN] = rss::UE_KEY;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Which packets a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// ARP.
    Arp,
    /// ICMPv6 of this type, with a hop limit of 255.
    Discovery(u8),
    /// GTP-U messages of this type, to this address.
    Message(IpAddr, u8),
    /// Packets to this address with this TCP or UDP port.
    Port { to: IpAddr, protocol: u8, end: End, port: u16 },
    /// IP packets whose outermost ToS octet or traffic class is this one, where the mask says so.
    Marked { v6: bool, tos: u8, mask: u8, inside: Inside },
    /// All.
    Rest,
}

/// Whose port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Source,
    Destination,
}

/// What is inside, and what is hashed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// Whatever it is, by the port's own hash.
    Whatever,
    /// Whatever it is, by the destination address.
    Plain,
    /// In a tunnel of GTP-U with a container IPv4, by its source address.
    V4,
    /// Likewise IPv6.
    V6,
}

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) what: What,
    /// Behind a VLAN tag.
    pub(crate) tagged: bool,
    /// 0 comes first.
    pub(crate) rank: u8,
    /// To this queue and those that follow it.
    pub(crate) first: u16,
    pub(crate) queues: u16,
}

impl Rule {
    /// The shim's form of it.
    pub(crate) fn raw(&self) -> RawSteer {
        let mut raw = RawSteer {
            first_queue: self.first,
            queues: self.queues,
            rank: self.rank,
            tagged: u8::from(self.tagged),
            ..RawSteer::ALL
        };
        match self.what {
            What::Arp => raw.ether_type = EtherType::ARP.0,
            What::Discovery(kind) => (raw.ip, raw.hops, raw.icmp6) = (6, 255, kind),
            What::Message(to, kind) => {
                address(&mut raw, to);
                raw.message = kind;
            }
            What::Port { to, protocol, end, port } => {
                address(&mut raw, to);
                raw.protocol = protocol;
                match end {
                    End::Source => raw.source_port = port,
                    End::Destination => raw.destination_port = port,
                }
            }
            What::Marked { v6, tos, mask, inside } => {
                (raw.ip, raw.tos, raw.tos_mask) = (if v6 { 6 } else { 4 }, tos, mask);
                (raw.inside, raw.hash_source) = match inside {
                    Inside::Whatever | Inside::Plain => (0, 0),
                    Inside::V4 => (4, 1),
                    Inside::V6 => (6, 1),
                };
                if inside != Inside::Whatever && self.queues > 1 {
                    raw.rss_key = KEY.as_ptr();
                }
            }
            What::Rest => {}
        }
        raw
    }
}

fn address(raw: &mut RawSteer, to: IpAddr) {
    raw.has_destination = 1;
    match to {
        IpAddr::V4(to) => {
            raw.ip = 4;
            raw.destination.iter_mut().zip(to.octets()).for_each(|(place, octet)| *place = octet);
        }
        IpAddr::V6(to) => (raw.ip, raw.destination) = (6, to.octets()),
    }
}

/// A control protocol, which goes to the control queue with all its rules or not at all.
pub(crate) struct Protocol {
    pub(crate) name: &'static str,
    pub(crate) rules: Vec<Rule>,
}

/// One way to say which packets are a group's, and over which queues they are spread.
pub(crate) struct Form {
    /// Whether the rules name the hash: that of the subscriber's address.
    pub(crate) own_hash: bool,
    pub(crate) rules: Vec<Rule>,
}

/// All that a device is asked for, with ranks in the order in which rules must be looked at.
pub(crate) struct Rules<'a> {
    steering: &'a Steering,
    /// Ordinary queues.
    queues: u16,
    /// Whether frames come behind a VLAN tag, too.
    tagged: bool,
}

impl<'a> Rules<'a> {
    pub(crate) const fn new(steering: &'a Steering, queues: u16, tagged: bool) -> Self {
        Self { steering, queues, tagged }
    }

    /// Of the rules for groups. The control queue's come before.
    const fn of_groups(&self) -> u8 {
        self.steering.control().is_some() as u8
    }

    /// Of the rules that spread packets over the ordinary queues; 0: none come before them.
    pub(crate) fn of_spreading(&self) -> u8 {
        // What is in tunnels comes before what may be.
        self.of_groups() + if self.steering.groups().is_empty() { 0 } else { 2 }
    }

    /// The rules for the control queue.
    pub(crate) fn control(&self) -> Vec<Protocol> {
        self.steering.control().map(|control| self.protocols(control)).unwrap_or_default()
    }

    fn protocols(&self, control: &Control) -> Vec<Protocol> {
        // N4 may well have the address of an interface.
        let own: BTreeSet<IpAddr> = control.addresses().collect();
        let port = |protocol, port| {
            let ends = [End::Source, End::Destination];
            let both = move |&to: &IpAddr| ends.map(|end| What::Port { to, protocol, end, port });
            own.iter().flat_map(both).collect::<Vec<_>>()
        };
        let message = |&to: &IpAddr| GTP_U_SIGNALLING.map(|kind| What::Message(to, kind));
        let protocols = [
            ("ARP", vec![What::Arp]),
            ("neighbour discovery", DISCOVERY.map(What::Discovery).collect()),
            ("GTP-U signalling", own.iter().flat_map(message).collect()),
            ("PFCP", port(UDP, PFCP_PORT)),
            ("BFD", BFD_PORTS.into_iter().flat_map(|bfd| port(UDP, bfd)).collect()),
            ("BGP", port(TCP, BGP_PORT)),
        ];
        let first = self.steering.place(Some(Duty::Control), 0, self.queues) as u16;
        let protocols = protocols.map(|(name, whats)| {
            let rules = whats.into_iter().flat_map(|what| self.at(what, 0, first, 1)).collect();
            Protocol { name, rules }
        });
        protocols.into_iter().filter(|protocol| !protocol.rules.is_empty()).collect()
    }

    /// The ways to lead a group's packets to its queues, the best first.
    pub(crate) fn group(&self, number: u8) -> Vec<Form> {
        const DSCP: u8 = 0xfc;
        let first = self.steering.place(Some(Duty::Group(number)), 0, self.queues) as u16;
        let group = self.steering.groups().get(usize::from(number));
        let dscps: BTreeSet<Dscp> = group.iter().flat_map(|group| group.dscps.iter().copied()).collect();
        let rules = |tos: &[u8], mask: u8, insides: &[Inside]| {
            let mut rules = Vec::new();
            for &tos in tos {
                for v6 in [false, true] {
                    for &inside in insides {
                        let rank = self.of_groups() + u8::from(inside == Inside::Plain);
                        let what = What::Marked { v6, tos, mask, inside };
                        rules.extend(self.at(what, rank, first, self.queues));
                    }
                }
            }
            rules
        };
        let marks: Vec<u8> = dscps.iter().map(|dscp| dscp.to_tos()).collect();
        // Flow directors that compare whole octets only: once for each of ECN's values.
        let with_ecn = |dscp: &Dscp| [0, 1, 2, 3].map(|ecn| dscp.to_tos() | ecn);
        let octets: Vec<u8> = dscps.iter().flat_map(with_ecn).collect();
        let mut forms = Vec::new();
        if self.queues > 1 {
            let rules = rules(&marks, DSCP, &[Inside::V4, Inside::V6, Inside::Plain]);
            forms.push(Form { own_hash: true, rules });
        }
        for (tos, mask) in [(&marks, DSCP), (&octets, 0xff)] {
            forms.push(Form { own_hash: false, rules: rules(tos, mask, &[Inside::Whatever]) });
        }
        forms
    }

    /// What no other rule is for, to the ordinary queues: for devices whose table can't be told to.
    pub(crate) fn rest(&self) -> Rule {
        let rank = self.of_spreading() + u8::from(self.queues > 1);
        Rule { what: What::Rest, tagged: false, rank, first: 0, queues: self.queues }
    }

    fn at(&self, what: What, rank: u8, first: u16, queues: u16) -> impl Iterator<Item = Rule> + use<> {
        let tags: &[bool] = if self.tagged { &[false, true] } else { &[false] };
        tags.iter().map(move |&tagged| Rule { what, tagged, rank, first, queues })
    }
}
