//! The attacker's frames, and the thread that sends them.

use crate::LabError;
use crate::topology::address::{UPF_N3, UPF_N3_V6, UPF_N6, UPF_N6_V6};
use io::tun::Tun;
use loadgen::facts::SessionFacts;
use loadgen::rng::SplitMix64;
use packet::ipv4::{Fragment, Ipv4Header};
use packet::{
    EtherType, GTP_U_PORT, IpProtocol, MacAddr, PacketBuilder, PduSession, arp, ethernet, ndp, pdu_session,
};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flood {
    /// Frames for another station's MAC address: what a flood costs that has nothing to do with Millrace.
    Elsewhere,
    /// Seven of eight fragments of each packet, to our address on N6.
    FragmentsN6,
    /// The same over IPv6.
    Fragments6N6,
    /// The same to our address on N3, where fragments are put together.
    FragmentsN3,
    /// The same over IPv6.
    Fragments6N3,
    /// A UE's packets to all hosts of N6's IPv4 subnet.
    Scan4,
    /// A UE's packets to hosts of N6's IPv6 subnet, 32 to each.
    Scan6,
    /// The same, one to each.
    Scan6Wide,
    /// ARP requests from stations that don't exist, of the subnet and others.
    Arp,
    /// Neighbour solicitations from stations that don't exist.
    Nd,
}

impl Flood {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Elsewhere,
        Self::FragmentsN6,
        Self::Fragments6N6,
        Self::FragmentsN3,
        Self::Fragments6N3,
        Self::Scan4,
        Self::Scan6,
        Self::Scan6Wide,
        Self::Arp,
        Self::Nd,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elsewhere => "elsewhere",
            Self::FragmentsN6 => "fragments-n6",
            Self::Fragments6N6 => "fragments6-n6",
            Self::FragmentsN3 => "fragments-n3",
            Self::Fragments6N3 => "fragments6-n3",
            Self::Scan4 => "scan4",
            Self::Scan6 => "scan6",
            Self::Scan6Wide => "scan6-wide",
            Self::Arp => "arp",
            Self::Nd => "nd",
        }
    }

    /// Whether its frames come by N3.
    const fn is_on_n3(self) -> bool {
        matches!(self, Self::FragmentsN3 | Self::Fragments6N3 | Self::Scan4 | Self::Scan6 | Self::Scan6Wide)
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Flood {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|flood| flood.name() == name);
        found.ok_or_else(|| format!("there are: {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// A packet's pieces, of which the last never comes.
const PIECES: u64 = 8;
/// Octets of a piece.
const PIECE: usize = 64;
/// Packets to each host of a scan that isn't wide.
const KNOCKS: u64 = 32;
/// Frames are sent so often.
const BEAT: Duration = Duration::from_micros(500);
/// A sender that was kept from running makes up for so much of it.
const CATCH_UP: Duration = Duration::from_millis(5);

/// Makes an attacker's frames.
#[derive(Debug)]
struct Maker {
    mac_n3: MacAddr,
    mac_n6: MacAddr,
    attacker: SessionFacts,
    rng: SplitMix64,
    count: u64,
}

impl Maker {
    /// The next frame of this flood.
    fn make(&mut self, flood: Flood, frame: &mut Vec<u8>) {
        let number = self.count;
        self.count += 1;
        let (host, host6) = (self.stranger(), self.stranger6());
        frame.clear();
        match flood {
            Flood::Elsewhere => {
                let to = MacAddr([0x02, 0x6e, 0x6f, 0, 0, 1]);
                let packet = from(to).ipv4(host, UPF_N6).udp(40_000, 9);
                packet.build_into(frame, &[0; PIECE]);
            }
            Flood::FragmentsN6 => piece4(number, self.mac_n6, (host, UPF_N6), frame),
            Flood::Fragments6N6 => piece6(number, self.mac_n6, (host6, UPF_N6_V6), frame),
            Flood::FragmentsN3 => piece4(number, self.mac_n3, (host, UPF_N3), frame),
            Flood::Fragments6N3 => piece6(number, self.mac_n3, (host6, UPF_N3_V6), frame),
            Flood::Scan4 => {
                // Neither our own address nor the server's.
                let [a, b, c, _] = UPF_N6.octets();
                let host = 3 + (number % 252) as u8;
                self.knock(Ipv4Addr::new(a, b, c, host).into(), frame);
            }
            Flood::Scan6 => self.knock(on_link6(number / KNOCKS), frame),
            Flood::Scan6Wide => self.knock(on_link6(number), frame),
            Flood::Arp => {
                let [a, b, c, _] = UPF_N6.octets();
                let random = self.rng.next_u64();
                let sender = if random & 1 == 0 {
                    Ipv4Addr::new(a, b, c, 3 + (random >> 8) as u8 % 252)
                } else {
                    Ipv4Addr::from_bits((random >> 16) as u32)
                };
                let mut request = [0; arp::LEN];
                arp::emit_request(&mut request, self.anybody(), sender, UPF_N6);
                link(MacAddr::BROADCAST, EtherType::ARP, &request, frame);
            }
            Flood::Nd => {
                let [prefix, _] = split(UPF_N6_V6);
                let sender = Ipv6Addr::from_bits(prefix | u128::from(self.rng.next_u64()));
                let mut packet = Vec::with_capacity(72);
                ndp::emit_neighbour_solicitation(&mut packet, sender, self.anybody(), UPF_N6_V6);
                let group = ndp::multicast_mac(ndp::solicited_node(UPF_N6_V6));
                link(group, EtherType::IPV6, &packet, frame);
            }
        }
    }

    /// A MAC address of nobody's.
    const fn anybody(&mut self) -> MacAddr {
        let [a, b, c, d, ..] = self.rng.next_u64().to_be_bytes();
        MacAddr([0x02, 0x66, a, b, c, d])
    }

    /// A host of the internet.
    const fn stranger(&mut self) -> Ipv4Addr {
        // 198.18.0.0/15 (RFC 2544).
        Ipv4Addr::from_bits(0xc612_0000 | self.rng.below(1 << 17))
    }

    const fn stranger6(&mut self) -> Ipv6Addr {
        // 2001:db8:ff::/48
        Ipv6Addr::from_bits(0x2001_0db8_00ff_u128 << 80 | self.rng.next_u64() as u128)
    }

    /// A packet of the attacker's UE to a host, in its tunnel.
    fn knock(&self, host: IpAddr, frame: &mut Vec<u8>) {
        let facts = &self.attacker;
        let source: Option<IpAddr> = match host {
            IpAddr::V4(_) => facts.ue_ipv4.map(IpAddr::V4),
            IpAddr::V6(_) => facts.ue_ipv6_address().map(IpAddr::V6),
        };
        let container = PduSession::Uplink(pdu_session::Uplink { qfi: facts.qfi, ..Default::default() });
        let tunnel = from(self.mac_n3)
            .ip(facts.gnb, facts.upf_n3)
            .udp_without_checksum(GTP_U_PORT, GTP_U_PORT)
            .gtpu(facts.ul_teid)
            .pdu_session(&container);
        let source = source.unwrap_or(facts.gnb);
        tunnel.ip(source, host).udp(40_000, 9).build_into(frame, &[0; PIECE]);
    }
}

/// The attacker's own station on each link.
const STATION: MacAddr = MacAddr([0x02, 0x66, 0, 0, 0, 1]);

/// A frame from the attacker's station to this one.
fn from(to: MacAddr) -> PacketBuilder {
    PacketBuilder::new().ethernet(to, STATION)
}

/// The same around this.
fn link(to: MacAddr, kind: EtherType, payload: &[u8], frame: &mut Vec<u8>) {
    let mut header = [0; ethernet::HEADER_LEN];
    ethernet::emit_header(&mut header, to, STATION, kind);
    frame.extend(header);
    frame.extend(payload);
}

/// One of the pieces of a packet that is never whole.
fn piece4(number: u64, mac: MacAddr, (source, to): (Ipv4Addr, Ipv4Addr), frame: &mut Vec<u8>) {
    let header = Ipv4Header {
        source,
        destination: to,
        identification: (number / (PIECES - 1)) as u16,
        more_fragments: true,
        fragment_offset: (number % (PIECES - 1)) as u16 * (PIECE as u16 / 8),
        protocol: IpProtocol::UDP,
        ..Ipv4Header::default()
    };
    from(mac).ipv4_header(header).build_into(frame, &[0; PIECE]);
}

fn piece6(number: u64, mac: MacAddr, (source, to): (Ipv6Addr, Ipv6Addr), frame: &mut Vec<u8>) {
    let fragment = Fragment {
        offset: (number % (PIECES - 1)) as u32 * PIECE as u32,
        more: true,
        identification: (number / (PIECES - 1)) as u32,
    };
    from(mac).ipv6(source, to).ipv6_fragment(fragment).build_into(frame, &[0; PIECE]);
}

/// Prefix and interface identifier.
const fn split(address: Ipv6Addr) -> [u128; 2] {
    let bits = address.to_bits();
    [bits >> 64 << 64, bits & u64::MAX as u128]
}

/// A host of N6's IPv6 subnet.
const fn on_link6(number: u64) -> IpAddr {
    let [prefix, _] = split(UPF_N6_V6);
    IpAddr::V6(Ipv6Addr::from_bits(prefix + 0x1000 + number as u128))
}

/// Sends what a [`Maker`] makes.
#[derive(Debug)]
pub(super) struct Sender {
    n3: Tun,
    n6: Tun,
    maker: Maker,
}

impl Sender {
    /// Sends by these ports, to these MAC addresses; the UE that attacks has this session.
    pub fn new(n3: (Tun, MacAddr), n6: (Tun, MacAddr), attacker: &SessionFacts) -> Result<Self, LabError> {
        if attacker.ue_ipv4.is_none() || attacker.ue_ipv6.is_none() {
            return Err(LabError::Session("a UE that scans needs IPv4 and IPv6: use --smf plain".into()));
        }
        let maker = Maker {
            mac_n3: n3.1,
            mac_n6: n6.1,
            attacker: attacker.clone(),
            rng: SplitMix64::new(0x5eed),
            count: 0,
        };
        Ok(Self { n3: n3.0, n6: n6.0, maker })
    }

    /// Sends at this rate until told to stop; says how many frames that were.
    pub fn send(&mut self, flood: Flood, rate: u32, stop: &AtomicBool) -> Result<u64, LabError> {
        let Self { n3, n6, maker } = self;
        let tap = if flood.is_on_n3() { n3 } else { n6 };
        let most = (u64::from(rate) * CATCH_UP.as_micros() as u64 / 1_000_000).max(1);
        let mut frame = Vec::with_capacity(256);
        let (mut sent, mut skipped, started) = (0, 0, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            let due = (started.elapsed().as_secs_f64() * f64::from(rate)) as u64;
            skipped += (due - skipped - sent).saturating_sub(most);
            while sent + skipped < due {
                maker.make(flood, &mut frame);
                tap.write(&frame).map_err(LabError::Os)?;
                sent += 1;
            }
            std::thread::sleep(BEAT);
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use packet::{EthernetView, Ipv4View, Ipv6View, Qfi, Teid};
    use pfcp::Seid;

    fn maker() -> Maker {
        let attacker = SessionFacts {
            cp_seid: Seid(1),
            up_seid: Seid(2),
            upf_n3: UPF_N3.into(),
            ul_teid: Teid(3),
            gnb: crate::topology::address::gnb(1).into(),
            dl_teid: Teid(4),
            qfi: Qfi::from_wire(9),
            ue_ipv4: Some([10, 45, 0, 2].into()),
            ue_ipv6: Some("2001:db8:45:2::/64".parse().unwrap()),
        };
        let [mac_n3, mac_n6] = [3, 6].map(|link| MacAddr([2, 0, 0, 0, 0, link]));
        Maker { mac_n3, mac_n6, attacker, rng: SplitMix64::new(1), count: 0 }
    }

    #[test]
    fn floods_have_names() {
        for flood in Flood::ALL {
            assert_eq!(flood.to_string().parse(), Ok(flood));
        }
        assert!("fragments".parse::<Flood>().unwrap_err().contains("fragments6-n3"));
    }

    #[test]
    fn no_packet_is_ever_whole_and_no_frame_is_a_wrong_one() {
        let mut maker = maker();
        let mut frame = Vec::new();
        for flood in Flood::ALL {
            for _ in 0..1000 {
                maker.make(flood, &mut frame);
                let ethernet = EthernetView::parse(&frame).unwrap();
                match ethernet.ether_type() {
                    EtherType::IPV4 => {
                        let ip = Ipv4View::parse(ethernet.payload()).unwrap();
                        let pieces = matches!(flood, Flood::FragmentsN6 | Flood::FragmentsN3);
                        assert!(ip.checksum_ok() && ip.fragment().is_some_and(|piece| piece.more) == pieces);
                    }
                    EtherType::IPV6 => {
                        let ip = Ipv6View::parse(ethernet.payload()).unwrap();
                        let piece = ip.upper_layer().unwrap().fragment;
                        assert!(piece.is_some_and(|piece| piece.more) != (flood == Flood::Nd));
                    }
                    other => assert_eq!((flood, other), (Flood::Arp, EtherType::ARP)),
                }
            }
        }
    }
}
