//! What a scenario's datapath stands in: gNBs, routers and servers around it, and what users' packets look like.
//!
//! A figure is easily flattered. With one gNB, one router and one server, templates, routes and neighbours never leave the core's first
//! cache; and where a few buffers go round, neither do the packets. So what says how fast the packet path is (`forward`, `flow-table`,
//! `flow-insert`, `profiles`, `ndr`) is measured in [`Scene::MANY`] (and [`Scene::MANY6`]): 128 gNBs, 64 routers and 65,536 servers behind
//! 1,024 routes, UDP with checksums, and packets that wait in a ring of 32,768 buffers between being written and being received, as
//! behind a NIC. [`Scene::SIMPLE`] is what was measured before, and what all other scenarios stand in: those that set one thing beside
//! another, or models of execution. Servers may also stand on N6's own link ([`Scene::on_link`]), as those of an edge UPF do.

use crate::path::{
    FIRST_UE, GNB_MAC, HEADERS, MTU, N3_MAC, N6_MAC, PAYLOAD, PathError, ROUTER_MAC, SERVER_PORT, Subscriber,
    UPF_N3,
};
use datapath::rib::RibError;
use datapath::{Interface, Rib, Roles};
use io::replay::{Patch, ReplayError, ReplayRx, Stream, WORDS};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use packet::{MacAddr, PacketBuilder, PduSession, Qfi, Teid, pdu_session};
use session::rules::{Action, Forward, Prefix, Rules};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The first gNB's address on N3; others follow.
const FIRST_GNB: u32 = 0xc000_0202;
/// The first router's address on N6; others follow.
const FIRST_ROUTER: u32 = 0xcb00_7181;
/// The first server's port, where that is on the link.
const SERVER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 7, 2]);
/// The first of many servers: 198.18.0.0.
const FIRST_SERVER: u32 = 0xc612_0000;
/// Servers behind one route, as a number of bits.
const BEHIND_A_ROUTE: u32 = 6;
/// Our address on the link where servers are, if they are on N6's own: 198.18.0.1. Theirs follow.
const UPF_ON_LINK: u32 = FIRST_SERVER + 1;
/// Servers there, at most: four times as many as one link's /24 would hold.
const MOST_ON_LINK: u32 = 1024;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scene {
    /// As reports call it.
    pub name: &'static str,
    gnbs: u32,
    routers: u32,
    servers: u32,
    /// Servers are neighbours, and there is no route to them.
    on_link: bool,
    /// UEs and servers have IPv6 addresses; the tunnels' ends are IPv4 all the same.
    pub v6: bool,
    /// UDP of users has checksums.
    checksums: bool,
    /// Buffers that go round.
    buffers: usize,
}

impl Scene {
    /// One of each, and hot buffers: figures until 2026-11-22.
    pub const SIMPLE: Self = Self {
        name: "simple",
        gnbs: 1,
        routers: 1,
        servers: 1,
        on_link: false,
        v6: false,
        checksums: false,
        buffers: 0,
    };
    /// Many of each, and cold buffers.
    pub const MANY: Self = Self {
        name: "many",
        gnbs: 128,
        routers: 64,
        servers: 1 << 16,
        on_link: false,
        v6: false,
        checksums: true,
        buffers: 1 << 15,
    };
    /// Likewise, IPv6.
    pub const MANY6: Self = Self { v6: true, ..Self::MANY };

    /// Likewise, with the servers on N6's own link.
    #[must_use]
    pub fn on_link(self) -> Self {
        Self { on_link: true, servers: self.servers.min(MOST_ON_LINK), ..self }
    }

    /// Where servers are, as reports have it.
    pub const fn place(&self) -> &'static str {
        if self.on_link { "on-link" } else { "routed" }
    }

    /// The IP version of users' packets, as reports have it.
    pub const fn ip(&self) -> u64 {
        if self.v6 { 6 } else { 4 }
    }

    /// A UE's gNB.
    pub fn gnb(&self, ue: Ipv4Addr) -> Ipv4Addr {
        Ipv4Addr::from(FIRST_GNB + u32::from(ue) % self.gnbs)
    }

    /// A UE's server.
    pub fn server(&self, ue: Ipv4Addr) -> IpAddr {
        // Neighbours among UEs have servers behind different routes (Fibonacci hashing).
        let number = (u32::from(ue).wrapping_mul(0x9e37_79b9) >> 8) % self.servers;
        let v4 = Ipv4Addr::from(self.first_server() + number);
        if self.v6 { self.server6(v4).into() } else { v4.into() }
    }

    fn first_server(&self) -> u32 {
        match (self.on_link, self.servers) {
            (true, _) => UPF_ON_LINK + 1,
            (false, 1) => u32::from(crate::path::SERVER),
            (false, _) => FIRST_SERVER,
        }
    }

    /// The other address of the server that has this one: behind a router, that of its site's /48.
    fn server6(&self, server: Ipv4Addr) -> Ipv6Addr {
        let number = u32::from(server).wrapping_sub(self.first_server());
        let host = (number as u16).wrapping_add(2);
        if self.on_link {
            Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 1, host)
        } else {
            Ipv6Addr::new(0x2001, 0xdb9, (number >> BEHIND_A_ROUTE) as u16, 0, 0, 0, 0, host)
        }
    }

    /// The network that all servers are in.
    pub fn servers(&self) -> Prefix {
        let first = self.server(Ipv4Addr::from(FIRST_UE));
        match first {
            IpAddr::V4(server) if self.servers == 1 => Prefix::V4(server.into()),
            IpAddr::V4(server) if self.on_link => Prefix::V4(Ipv4Net::new_assert(server, 16).trunc()),
            IpAddr::V4(server) => Prefix::V4(Ipv4Net::new_assert(server, 15).trunc()),
            IpAddr::V6(server) => Prefix::V6(Ipv6Net::new_assert(server, 32).trunc()),
        }
    }

    /// A UE's address.
    pub fn ue(&self, ue: Ipv4Addr) -> IpAddr {
        if self.v6 { ue6(ue).into() } else { ue.into() }
    }

    /// An ordinary session's rules, as they are here.
    pub fn adapt(&self, mut rules: Rules, ue: Ipv4Addr) -> Rules {
        for far in &mut rules.fars {
            if let Action::Forward(Forward { outer_header: Some(outer), .. }) = &mut far.action {
                outer.peer = self.gnb(ue).into();
            }
        }
        if self.v6 {
            rules.ue_ipv4 = None;
            rules.ue_ipv6 = Some(Ipv6Net::new_assert(ue6(ue), 64).trunc());
        }
        rules
    }

    /// The network around the datapath: port 0 is N3, port 1 N6.
    pub fn network(&self) -> Result<Rib, RibError> {
        self.made().map(|(rib, _)| rib)
    }

    /// Likewise, with a way to all other servers too, and a further pool.
    pub fn wider_network(&self, pool: IpNet) -> Result<Rib, RibError> {
        let (mut rib, n6) = self.made()?;
        rib.add_route(Ipv4Net::default().into(), n6, Some(self.router4(0).into()))?;
        rib.add_route(Ipv6Net::default().into(), n6, Some(self.router6(0).into()))?;
        rib.add_ue_pool(pool);
        Ok(rib)
    }

    fn router4(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from(FIRST_ROUTER + number % self.routers)
    }

    fn router6(&self, number: u32) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 0x100 + (number % self.routers) as u16)
    }

    /// The network, and the number of its interface N6.
    fn made(&self) -> Result<(Rib, u16), RibError> {
        let interface = |name: &str, port, mac, own: Vec<IpNet>, roles| Interface {
            name: name.into(),
            port,
            vlan: None,
            mac,
            mtu: MTU,
            roles,
            addresses: own,
            network_instances: Vec::new(),
        };
        let own = |v4: Ipv4Addr, n: u16| -> Vec<IpNet> {
            let v6 = Ipv6Addr::new(0x2001, 0xdb8, n, 0, 0, 0, 0, 1);
            vec![Ipv4Net::new_assert(v4, 24).into(), Ipv6Net::new_assert(v6, 64).into()]
        };
        let mut rib = Rib::new();
        let (n3, n6) = (Roles { n3: true, ..Roles::default() }, Roles { n6: true, ..Roles::default() });
        let n3 = rib.add_interface(interface("n3", 0, N3_MAC, own(UPF_N3, 3), n3))?;
        let mut own = own(Ipv4Addr::new(203, 0, 113, 1), 6);
        if self.on_link {
            own.push(Ipv4Net::new_assert(UPF_ON_LINK.into(), 16).into());
        }
        let n6 = rib.add_interface(interface("n6", 1, N6_MAC, own, n6))?;
        let routes = if self.on_link { 0 } else { self.servers.div_ceil(1 << BEHIND_A_ROUTE) };
        for number in 0..routes {
            let (v4, v6): (IpNet, IpNet) = if self.servers == 1 {
                (Ipv4Net::default().into(), Ipv6Net::default().into())
            } else {
                let first = Ipv4Addr::from(FIRST_SERVER + (number << BEHIND_A_ROUTE));
                (
                    Ipv4Net::new_assert(first, 32 - BEHIND_A_ROUTE as u8).into(),
                    Ipv6Net::new_assert(self.server6(first), 48).trunc().into(),
                )
            };
            rib.add_route(v4, n6, Some(self.router4(number).into()))?;
            rib.add_route(v6, n6, Some(self.router6(number).into()))?;
        }
        rib.add_ue_pool(Ipv4Net::new_assert(Ipv4Addr::from(FIRST_UE & 0xff00_0000), 8).into());
        rib.add_ue_pool(Ipv6Net::new_assert(ue6(Ipv4Addr::from(FIRST_UE)), 40).trunc().into());
        for number in 0..self.gnbs {
            rib.fix(n3, Ipv4Addr::from(FIRST_GNB + number).into(), numbered(GNB_MAC, number));
        }
        for number in 0..self.routers {
            let mac = numbered(ROUTER_MAC, number);
            rib.fix(n6, self.router4(number).into(), mac);
            rib.fix(n6, self.router6(number).into(), mac);
        }
        for number in 0..if self.on_link { self.servers } else { 0 } {
            let (server, mac) = (Ipv4Addr::from(self.first_server() + number), numbered(SERVER_MAC, number));
            rib.fix(n6, server.into(), mac);
            rib.fix(n6, self.server6(server).into(), mac);
        }
        Ok((rib, n6))
    }

    /// Packets of these subscribers and ports in turn, over and over.
    pub fn stream(
        &self,
        uplink: bool,
        packets: impl Iterator<Item = (Subscriber, u16)>,
    ) -> Result<Stream, ReplayError> {
        let (template, offsets, patches) = self.patches(uplink, PAYLOAD, packets);
        Stream::new(&template, offsets, patches)
    }

    /// Likewise, in frames of so many octets (Ethernet header to payload) as they arrive. Of each only the headers' lines are
    /// written: a NIC writes the rest without the core.
    pub fn stream_of_frames(
        &self,
        uplink: bool,
        octets: usize,
        packets: impl Iterator<Item = (Subscriber, u16)>,
    ) -> Result<Stream, PathError> {
        // Ethernet, the user's IP and UDP; before these IPv4, UDP and GTP-U with a PDU session container.
        let ip = if self.v6 { 40 } else { 20 };
        let headers = 14 + ip + 8 + if uplink { 20 + 8 + 16 } else { 0 };
        let payload =
            octets.checked_sub(headers).filter(|payload| *payload >= 8).ok_or(PathError::Short(octets))?;
        let (template, offsets, patches) = self.patches(uplink, payload, packets);
        Ok(Stream::new(&template, offsets, patches)?.writing_first(HEADERS))
    }

    /// How a stream is received.
    pub fn receive(&self, stream: &Stream) -> ReplayRx {
        ReplayRx::new(stream.clone()).cold(self.buffers)
    }

    /// The first of these packets, and what sets each apart from it: the words at some offsets.
    pub fn patches(
        &self,
        uplink: bool,
        payload: usize,
        packets: impl Iterator<Item = (Subscriber, u16)>,
    ) -> (Vec<u8>, &'static [usize], Vec<Patch>) {
        self.patches_with(uplink, &vec![0; payload], packets)
    }

    /// Likewise, of packets that say something.
    pub fn patches_with(
        &self,
        uplink: bool,
        payload: &[u8],
        packets: impl Iterator<Item = (Subscriber, u16)>,
    ) -> (Vec<u8>, &'static [usize], Vec<Patch>) {
        let offsets = self.offsets(uplink);
        let mut template: Option<Vec<u8>> = None;
        let patch = |(subscriber, port): (Subscriber, u16)| {
            let packet = self.packet(uplink, subscriber, port, payload);
            let mut words = [[0; 4]; WORDS];
            for (word, at) in words.iter_mut().zip(offsets) {
                *word = packet.get(*at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
            }
            template.get_or_insert(packet);
            Patch { words, hash: 0 }
        };
        let patches: Vec<Patch> = packets.map(patch).collect();
        (template.unwrap_or_default(), offsets, patches)
    }

    /// Where packets differ. Of the words with IPv4 headers' checksums, TTL and protocol are the others.
    const fn offsets(&self, uplink: bool) -> &'static [usize] {
        match (self.servers > 1, self.v6, uplink) {
            // TEID; inner TTL to checksum; inner source; inner ports. Downlink: the same of the only IP header.
            (false, false, true) => &[46, 66, 70, 78],
            (false, false, false) => &[22, 30, 34],
            // And outer TTL to checksum, outer source; inner destination; the inner UDP checksum with its length.
            (true, false, true) => &[46, 66, 70, 74, 78, 82, 22, 26],
            (true, false, false) => &[22, 26, 30, 34, 38],
            // The end of a UE's prefix, of a server's and of its address.
            (_, true, true) => &[46, 70, 86, 94, 98, 102, 22, 26],
            (_, true, false) => &[26, 34, 42, 54, 58],
        }
    }

    /// A user's packet as it arrives: in a tunnel from the gNB of the UE that has this number, or from a router.
    pub fn frame(&self, uplink: bool, Subscriber { teid, ue }: Subscriber, packet: &[u8]) -> Vec<u8> {
        if uplink {
            self.tunnel(teid, ue).build(packet)
        } else {
            let kind: [u8; 2] =
                if packet.first().is_some_and(|octet| octet >> 4 == 6) { [0x86, 0xdd] } else { [8, 0] };
            [&N6_MAC.0[..], &ROUTER_MAC.0, &kind, packet].concat()
        }
    }

    /// What is around a packet from a gNB.
    fn tunnel(&self, teid: Teid, ue: Ipv4Addr) -> PacketBuilder {
        let container = pdu_session::Uplink { qfi: Qfi::from_wire(9), ..pdu_session::Uplink::default() };
        PacketBuilder::new()
            .ethernet(N3_MAC, GNB_MAC)
            .ipv4(self.gnb(ue), UPF_N3)
            .udp_without_checksum(packet::GTP_U_PORT, packet::GTP_U_PORT)
            .gtpu(teid)
            .pdu_session(&PduSession::Uplink(container))
    }

    fn packet(&self, uplink: bool, subscriber: Subscriber, port: u16, payload: &[u8]) -> Vec<u8> {
        let Subscriber { teid, ue } = subscriber;
        let (own, server) = (self.ue(ue), self.server(ue));
        let (builder, ports) = if uplink {
            (self.tunnel(teid, ue).ip(own, server), (port, SERVER_PORT))
        } else {
            (PacketBuilder::new().ethernet(N6_MAC, ROUTER_MAC).ip(server, own), (SERVER_PORT, port))
        };
        let builder = if self.checksums {
            builder.udp(ports.0, ports.1)
        } else {
            builder.udp_without_checksum(ports.0, ports.1)
        };
        builder.build(payload)
    }
}

/// The address of the UE that has this IPv4 address elsewhere: the number makes its prefix.
fn ue6(ue: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = ue.octets();
    let pair = |a, b| u16::from_be_bytes([a, b]);
    Ipv6Addr::new(0x2001, 0xdb8, pair(a, b), pair(c, d), 0, 0, 0, 1)
}

/// A station's address among others of its kind.
const fn numbered(MacAddr([a, b, c, d, e, f]): MacAddr, number: u32) -> MacAddr {
    MacAddr([a, b, c, d ^ (number >> 8) as u8, e ^ (number as u8), f])
}
