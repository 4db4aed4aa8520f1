//! Packets of many sessions, made fast: templates, patches, and checksums in constant time.
//!
//! A stream's packet is a pure function of (session facts, stamp, length): the generator writes it on one side of the
//! UPF, and the verifier writes it again on the other and compares. What is per session fits one cache line; what is
//! per gNB is a template of a few dozen bytes that stays in the first-level cache.
//!
//! Headers are written here by hand at fixed offsets, on purpose not with the builders of crate `packet`: the UPF is
//! built of those, and a judge must not share the mistakes of whom it judges. Tests compare both.

use crate::facts::{Network, SessionFacts};
use crate::imix::Family;
use crate::payload::{Direction, MAX_IP_LEN, Payloads, Stamp, StreamId};
use packet::{MacAddr, Qfi, Teid};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of an Ethernet header without tags.
pub const ETHERNET: usize = 14;
/// UDP port of GTP-U (TS 29.281 §4.4.2).
pub const GTPU_PORT: u16 = 2152;
/// Bytes of GTP-U header, optional fields and PDU session container.
const GTPU: usize = 16;
const UDP: usize = 8;
const IPV4: usize = 20;
const IPV6: usize = 40;
/// TTL and hop limit of all packets that UEs and servers send.
pub const HOPS: u8 = 64;
/// The servers' UDP port.
const SERVER_PORT: u16 = 5001;

/// Sessions and network can't be made into traffic.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FlowError {
    /// A session ends at a gNB that the network doesn't have.
    #[error("session {session}: no gNB has the address {address}")]
    UnknownGnb {
        /// The session's index.
        session: u32,
        /// What it says.
        address: IpAddr,
    },
    /// The tunnel's ends are of different IP versions.
    #[error("session {session}: the tunnel from {gnb} to {upf} mixes IP versions")]
    MixedTunnel {
        /// The session's index.
        session: u32,
        /// One end.
        gnb: IpAddr,
        /// The other.
        upf: IpAddr,
    },
    /// A session has neither an IPv4 address nor an IPv6 prefix.
    #[error("session {session}: the UE has no address")]
    NoAddress {
        /// The session's index.
        session: u32,
    },
    /// Stream numbers have 30 bits for the session, paths 16.
    #[error("too many sessions or tunnel paths")]
    TooMany,
}

/// What a session's packets need: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Record {
    ue_v6: u128,
    ue_v4: u32,
    ul_teid: Teid,
    dl_teid: Teid,
    /// Packets made so far, by lane.
    made: [u32; 4],
    path: u16,
    qfi: Qfi,
    has_v4: bool,
    has_v6: bool,
}

/// A pair of tunnel ends with the frame that carries uplink packets between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) gnb: IpAddr,
    pub(crate) gnb_mac: MacAddr,
    pub(crate) upf: IpAddr,
    /// Ethernet to PDU session container; lengths, checksums, TEID and QFI still zero.
    template: Vec<u8>,
    /// Sum of the IPv4 header's words in the template.
    sum: u32,
}

/// All streams of a population of sessions.
#[derive(Clone, Debug)]
pub struct Flows {
    payloads: Payloads,
    network: Network,
    gnbs: HashMap<IpAddr, MacAddr>,
    records: Vec<Record>,
    paths: Vec<Path>,
    path_index: HashMap<(IpAddr, IpAddr), u16>,
}

impl Flows {
    /// The streams of these sessions; session `i` of the streams is `facts[i]`.
    pub fn new(facts: &[SessionFacts], network: &Network, seed: u64) -> Result<Self, FlowError> {
        if facts.len() >= 1 << 30 {
            return Err(FlowError::TooMany);
        }
        let mut flows = Self {
            payloads: Payloads::new(seed),
            network: network.clone(),
            gnbs: network.gnbs.iter().map(|gnb| (gnb.address, gnb.mac)).collect(),
            records: Vec::with_capacity(facts.len()),
            paths: Vec::new(),
            path_index: HashMap::new(),
        };
        for (session, facts) in (0_u32..).zip(facts) {
            let record = flows.record(session, facts)?;
            flows.records.push(record);
        }
        Ok(flows)
    }

    /// Follows a session to another tunnel (handover, activation) or address. Sequence numbers go on. Does nothing for
    /// a session that doesn't exist.
    pub fn update(&mut self, session: u32, facts: &SessionFacts) -> Result<(), FlowError> {
        let fresh = self.record(session, facts)?;
        if let Some(record) = self.records.get_mut(session as usize) {
            *record = Record { made: record.made, ..fresh };
        }
        Ok(())
    }

    fn record(&mut self, session: u32, facts: &SessionFacts) -> Result<Record, FlowError> {
        if facts.ue_ipv4.is_none() && facts.ue_ipv6.is_none() {
            return Err(FlowError::NoAddress { session });
        }
        Ok(Record {
            ue_v6: facts.ue_ipv6_address().map_or(0, Ipv6Addr::to_bits),
            ue_v4: facts.ue_ipv4.map_or(0, Ipv4Addr::to_bits),
            ul_teid: facts.ul_teid,
            dl_teid: facts.dl_teid,
            made: [0; 4],
            path: self.path_to(session, facts.gnb, facts.upf_n3)?,
            qfi: facts.qfi,
            has_v4: facts.ue_ipv4.is_some(),
            has_v6: facts.ue_ipv6.is_some(),
        })
    }

    fn path_to(&mut self, session: u32, gnb: IpAddr, upf: IpAddr) -> Result<u16, FlowError> {
        if let Some(&index) = self.path_index.get(&(gnb, upf)) {
            return Ok(index);
        }
        let &gnb_mac = self.gnbs.get(&gnb).ok_or(FlowError::UnknownGnb { session, address: gnb })?;
        let (template, sum) = tunnel_template(gnb_mac, self.network.upf_n3_mac, gnb, upf)
            .ok_or(FlowError::MixedTunnel { session, gnb, upf })?;
        let index = u16::try_from(self.paths.len()).map_err(|_| FlowError::TooMany)?;
        self.paths.push(Path { gnb, gnb_mac, upf, template, sum });
        self.path_index.insert((gnb, upf), index);
        Ok(index)
    }

    /// Number of sessions.
    pub fn sessions(&self) -> u32 {
        self.records.len() as u32
    }

    /// The network given at the start.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Whether a session carries this IP version; false if there is no such session.
    pub fn carries(&self, session: u32, family: Family) -> bool {
        self.records.get(session as usize).is_some_and(|record| match family {
            Family::V4 => record.has_v4,
            Family::V6 => record.has_v6,
        })
    }

    /// Takes the stream's next sequence number.
    pub fn next_sequence(&mut self, stream: StreamId) -> u32 {
        let Some(record) = self.records.get_mut(stream.session() as usize) else { return 0 };
        let made = &mut record.made[stream.lane()];
        let sequence = *made;
        *made = made.wrapping_add(1);
        sequence
    }

    /// How many packets of the stream were made.
    pub fn made(&self, stream: StreamId) -> u32 {
        self.records.get(stream.session() as usize).map_or(0, |record| record.made[stream.lane()])
    }

    /// The length of the frame that carries an IP packet of `ip_len` bytes; 0 for a session that doesn't exist.
    pub fn frame_len(&self, stream: StreamId, ip_len: u16) -> usize {
        match stream.direction() {
            Direction::Downlink => ETHERNET + usize::from(ip_len),
            Direction::Uplink => {
                self.path(stream.session()).map_or(0, |path| path.template.len() + usize::from(ip_len))
            }
        }
    }

    pub(crate) fn path(&self, session: u32) -> Option<&Path> {
        self.paths.get(usize::from(self.records.get(session as usize)?.path))
    }

    /// The downlink tunnel of a session: TEID and QFI.
    pub(crate) fn downlink_tunnel(&self, session: u32) -> Option<(Teid, Qfi)> {
        self.records.get(session as usize).map(|record| (record.dl_teid, record.qfi))
    }

    pub(crate) fn payloads(&self) -> &Payloads {
        &self.payloads
    }

    /// Writes the frame: from a gNB to N3 (uplink), or from the data network to N6 (downlink). `into` must be
    /// [`Flows::frame_len`] bytes long. False, and the content of `into` unspecified, if it is not, or if the session
    /// doesn't carry the stream's IP version.
    #[must_use]
    pub fn write(&self, stamp: Stamp, ip_len: u16, into: &mut [u8]) -> bool {
        if into.len() != self.frame_len(stamp.stream, ip_len) {
            return false;
        }
        match stamp.stream.direction() {
            Direction::Uplink => self.write_uplink(stamp, ip_len, into).is_some(),
            Direction::Downlink => {
                let Some((header, inner)) = into.split_first_chunk_mut::<ETHERNET>() else { return false };
                let ethertype = match stamp.stream.family() {
                    Family::V4 => 0x0800,
                    Family::V6 => 0x86dd,
                };
                *header = ethernet(self.network.upf_n6_mac, self.network.dn.mac, ethertype);
                self.write_inner(stamp, inner)
            }
        }
    }

    fn write_uplink(&self, stamp: Stamp, ip_len: u16, into: &mut [u8]) -> Option<()> {
        let record = self.records.get(stamp.stream.session() as usize)?;
        let path = self.paths.get(usize::from(record.path))?;
        let (header, inner) = into.split_at_mut_checked(path.template.len())?;
        if !self.write_inner(stamp, inner) {
            return None;
        }
        header.copy_from_slice(&path.template);
        let gtpu_payload = ip_len + (GTPU - 8) as u16;
        let udp_len = gtpu_payload + 8 + UDP as u16;
        let outer = header.get_mut(ETHERNET..)?;
        let (udp, gtpu) = match path.gnb {
            IpAddr::V4(_) => {
                let (ip, rest) = outer.split_first_chunk_mut::<IPV4>()?;
                let (len, id) = (udp_len + IPV4 as u16, stamp.sequence as u16);
                ip[2..4].copy_from_slice(&len.to_be_bytes());
                ip[4..6].copy_from_slice(&id.to_be_bytes());
                let checksum = !fold(path.sum + u32::from(len) + u32::from(id));
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
                rest.split_first_chunk_mut::<UDP>()?
            }
            IpAddr::V6(_) => {
                let (ip, rest) = outer.split_first_chunk_mut::<IPV6>()?;
                ip[4..6].copy_from_slice(&udp_len.to_be_bytes());
                rest.split_first_chunk_mut::<UDP>()?
            }
        };
        udp[4..6].copy_from_slice(&udp_len.to_be_bytes());
        let gtpu: &mut [u8; GTPU] = gtpu.first_chunk_mut()?;
        gtpu[2..4].copy_from_slice(&gtpu_payload.to_be_bytes());
        gtpu[4..8].copy_from_slice(&record.ul_teid.0.to_be_bytes());
        gtpu[14] = record.qfi.get();
        if let (IpAddr::V6(gnb), IpAddr::V6(upf)) = (path.gnb, path.upf) {
            // Mandatory over IPv6 (RFC 8200 §8.1). One pass over the packet: N3 over IPv6 is not where speed is measured.
            let pseudo = sum_v6(gnb.to_bits()) + sum_v6(upf.to_bits()) + 17 + u32::from(udp_len);
            let checksum = udp_checksum(pseudo + sum_bytes(into.get(ETHERNET + IPV6..)?));
            into.get_mut(ETHERNET + IPV6 + 6..ETHERNET + IPV6 + 8)?.copy_from_slice(&checksum.to_be_bytes());
        }
        Some(())
    }

    /// Writes the UE's or server's own IP packet over all of `into`, whose length is the packet's. False if the session
    /// doesn't carry the stream's IP version, or the length is out of range.
    #[must_use]
    pub fn write_inner(&self, stamp: Stamp, into: &mut [u8]) -> bool {
        let session = stamp.stream.session();
        let Some(record) = self.records.get(session as usize) else { return false };
        let family = stamp.stream.family();
        let carried = match family {
            Family::V4 => record.has_v4,
            Family::V6 => record.has_v6,
        };
        let in_range = usize::from(family.min_ip_len())..=usize::from(MAX_IP_LEN);
        if !carried || !in_range.contains(&into.len()) {
            return false;
        }
        let ip_len = into.len() as u16;
        let udp_len = ip_len - family.overhead() + UDP as u16;
        let uplink = stamp.stream.direction() == Direction::Uplink;
        let header_len = usize::from(family.overhead()) - UDP;
        let Some((ip, transport)) = into.split_at_mut_checked(header_len) else { return false };
        let Some((udp, payload)) = transport.split_first_chunk_mut::<UDP>() else { return false };

        let addresses = match family {
            Family::V4 => {
                let Some(ip) = ip.first_chunk_mut::<IPV4>() else { return false };
                let server = self.network.dn.ipv4_of(session).to_bits();
                let (source, destination) =
                    if uplink { (record.ue_v4, server) } else { (server, record.ue_v4) };
                let (id, sum) = (stamp.sequence as u16, sum_v4(source) + sum_v4(destination));
                // Version 4, header of 5 words; DF; UDP.
                let fixed = 0x4500 + 0x4000 + u32::from(u16::from_be_bytes([HOPS, 17]));
                let checksum = !fold(fixed + u32::from(ip_len) + u32::from(id) + sum);
                ip[0..4].copy_from_slice(&(0x4500_0000 | u32::from(ip_len)).to_be_bytes());
                ip[4..8].copy_from_slice(&(u32::from(id) << 16 | 0x4000).to_be_bytes());
                ip[8..12]
                    .copy_from_slice(&(u32::from(HOPS) << 24 | 17 << 16 | u32::from(checksum)).to_be_bytes());
                ip[12..16].copy_from_slice(&source.to_be_bytes());
                ip[16..20].copy_from_slice(&destination.to_be_bytes());
                sum
            }
            Family::V6 => {
                let Some(ip) = ip.first_chunk_mut::<IPV6>() else { return false };
                let server = self.network.dn.ipv6_of(session).to_bits();
                let (source, destination) =
                    if uplink { (record.ue_v6, server) } else { (server, record.ue_v6) };
                // A flow label of its own for each session (RFC 6437 §3): 20 bits.
                ip[0..4].copy_from_slice(&(0x6000_0000 | session & 0xf_ffff).to_be_bytes());
                ip[4..8]
                    .copy_from_slice(&(u32::from(udp_len) << 16 | 17 << 8 | u32::from(HOPS)).to_be_bytes());
                ip[8..24].copy_from_slice(&source.to_be_bytes());
                ip[24..40].copy_from_slice(&destination.to_be_bytes());
                sum_v6(source) + sum_v6(destination)
            }
        };

        let ue_port = 40_000 + (session % 20_000) as u16;
        let (source, destination) = if uplink { (ue_port, SERVER_PORT) } else { (SERVER_PORT, ue_port) };
        let sum = addresses + 17 + 2 * u32::from(udp_len) + u32::from(source) + u32::from(destination);
        let checksum = udp_checksum(sum + self.payloads.write(stamp, payload));
        udp[0..4].copy_from_slice(&(u32::from(source) << 16 | u32::from(destination)).to_be_bytes());
        udp[4..8].copy_from_slice(&(u32::from(udp_len) << 16 | u32::from(checksum)).to_be_bytes());
        true
    }
}

/// An untagged Ethernet header.
pub(crate) fn ethernet(to: MacAddr, from: MacAddr, ethertype: u16) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    header[0..6].copy_from_slice(&to.0);
    header[6..12].copy_from_slice(&from.0);
    header[12..14].copy_from_slice(&ethertype.to_be_bytes());
    header
}

/// Ethernet, IP, UDP, GTP-U and an uplink PDU session container, with what varies left zero; and the sum of the IPv4
/// header's words. `None` if the addresses are of different versions.
fn tunnel_template(from: MacAddr, to: MacAddr, gnb: IpAddr, upf: IpAddr) -> Option<(Vec<u8>, u32)> {
    let mut bytes = Vec::with_capacity(ETHERNET + IPV6 + UDP + GTPU);
    match (gnb, upf) {
        (IpAddr::V4(gnb), IpAddr::V4(upf)) => {
            bytes.extend(ethernet(to, from, 0x0800));
            bytes.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, HOPS, 17, 0, 0]);
            bytes.extend(gnb.octets());
            bytes.extend(upf.octets());
        }
        (IpAddr::V6(gnb), IpAddr::V6(upf)) => {
            bytes.extend(ethernet(to, from, 0x86dd));
            bytes.extend([0x60, 0, 0, 0, 0, 0, 17, HOPS]);
            bytes.extend(gnb.octets());
            bytes.extend(upf.octets());
        }
        _ => return None,
    }
    let sum = sum_bytes(bytes.get(ETHERNET..)?);
    for port in [GTPU_PORT, GTPU_PORT] {
        bytes.extend(port.to_be_bytes());
    }
    bytes.extend([0; 4]);
    // Version 1, protocol type GTP, E flag; G-PDU (TS 29.281 §5.1). Then length, TEID, sequence and N-PDU number.
    bytes.extend([0x34, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // Next extension: PDU session container of one word, PDU type 1 (UL PDU SESSION INFORMATION, TS 38.415 §5.5.2.2), QFI.
    bytes.extend([0x85, 1, 0x10, 0, 0]);
    Some((bytes, sum))
}

/// One's complement sum of big-endian words, not folded.
pub(crate) fn sum_bytes(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<2>();
    let sum: u32 = words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum();
    sum + rest.first().map_or(0, |&last| u32::from(last) << 8)
}

const fn sum_v4(address: u32) -> u32 {
    (address >> 16) + (address & 0xffff)
}

pub(crate) const fn sum_v6(address: u128) -> u32 {
    let (high, low) = ((address >> 64) as u64, address as u64);
    sum_v4((high >> 32) as u32) + sum_v4(high as u32) + sum_v4((low >> 32) as u32) + sum_v4(low as u32)
}

/// Adds the carries (RFC 1071 §2).
pub(crate) const fn fold(sum: u32) -> u16 {
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// The checksum field for a sum; zero means "none" in UDP and is sent as all ones (RFC 768).
const fn udp_checksum(sum: u32) -> u16 {
    match !fold(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}
