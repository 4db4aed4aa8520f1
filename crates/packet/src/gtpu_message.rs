//! GTP-U path management and tunnel management messages and their information elements (TS 29.281 §7, §8).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::gtpu::{ExtensionType, HEADER_LEN, LONG_HEADER_LEN, MessageType};
use crate::{Layer, Malformed, Teid};

const RECOVERY: u8 = 14;
const TEID_DATA_I: u8 = 16;
const PEER_ADDRESS: u8 = 133;
const EXTENSION_HEADER_TYPE_LIST: u8 = 141;

/// An information element of a GTP-U message (TS 29.281 §8.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element<'a> {
    /// Recovery: the restart counter, which GTP-U senders set to 0 and receivers ignore (§8.2).
    Recovery(u8),
    /// Tunnel Endpoint Identifier Data I (§8.3).
    Teid(Teid),
    /// GTP-U Peer Address (§8.4).
    PeerAddress(IpAddr),
    /// Extension Header Type List (§8.5): one type an octet.
    ExtensionTypes(&'a [u8]),
    /// Any other element with a length: its type and value.
    Other(u8, &'a [u8]),
}

/// The information elements in `payload`, in order. The first bad one ends the iteration.
pub const fn elements(payload: &[u8]) -> Elements<'_> {
    Elements { rest: payload }
}

/// See [`elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    fn take(&mut self) -> Result<Element<'a>, Malformed> {
        const CUT: Malformed = Malformed::Truncated(Layer::GtpuElement);
        let (&kind, rest) = self.rest.split_first().ok_or(CUT)?;
        let (element, rest) = match kind {
            RECOVERY => {
                let (&value, rest) = rest.split_first().ok_or(CUT)?;
                (Element::Recovery(value), rest)
            }
            TEID_DATA_I => {
                let (value, rest) = rest.split_first_chunk::<4>().ok_or(CUT)?;
                (Element::Teid(Teid(u32::from_be_bytes(*value))), rest)
            }
            // The one element with a length of a single octet (§8.5).
            EXTENSION_HEADER_TYPE_LIST => {
                let (&len, rest) = rest.split_first().ok_or(CUT)?;
                let (value, rest) = rest.split_at_checked(usize::from(len)).ok_or(CUT)?;
                (Element::ExtensionTypes(value), rest)
            }
            // Fixed-length elements tell their length nowhere: behind an unknown one nothing can be read.
            0..=127 => return Err(Malformed::Field(Layer::GtpuElement)),
            _ => {
                let (len, rest) = rest.split_first_chunk::<2>().ok_or(CUT)?;
                let len = usize::from(u16::from_be_bytes(*len));
                let (value, rest) = rest.split_at_checked(len).ok_or(CUT)?;
                (if kind == PEER_ADDRESS { peer_address(value)? } else { Element::Other(kind, value) }, rest)
            }
        };
        self.rest = rest;
        Ok(element)
    }
}

fn peer_address(value: &[u8]) -> Result<Element<'_>, Malformed> {
    if let Ok(v4) = <[u8; 4]>::try_from(value) {
        Ok(Element::PeerAddress(Ipv4Addr::from(v4).into()))
    } else if let Ok(v6) = <[u8; 16]>::try_from(value) {
        Ok(Element::PeerAddress(Ipv6Addr::from(v6).into()))
    } else {
        Err(Malformed::Field(Layer::GtpuElement))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let element = self.take();
        if element.is_err() {
            self.rest = &[];
        }
        Some(element)
    }
}

/// What an Error Indication says (TS 29.281 §7.3.1): its sender knows no tunnel `teid` at `peer`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ErrorIndication {
    /// The TEID of the G-PDU that was refused.
    pub teid: Teid,
    /// The destination address of the G-PDU that was refused.
    pub peer: IpAddr,
}

impl ErrorIndication {
    /// Reads the information elements; both elements are mandatory.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let (mut teid, mut peer) = (None, None);
        for element in elements(payload) {
            match element? {
                Element::Teid(t) => teid = teid.or(Some(t)),
                Element::PeerAddress(a) => peer = peer.or(Some(a)),
                _ => {}
            }
        }
        match (teid, peer) {
            (Some(teid), Some(peer)) => Ok(Self { teid, peer }),
            _ => Err(Malformed::Field(Layer::GtpuElement)),
        }
    }
}

/// Starts a message with sequence number (the S flag is mandatory in these messages, §5.1) and TEID 0.
fn begin(out: &mut Vec<u8>, kind: MessageType, sequence: u16) -> usize {
    let start = out.len();
    let [s0, s1] = sequence.to_be_bytes();
    out.extend([0x32, kind.0, 0, 0, 0, 0, 0, 0, s0, s1, 0, 0]);
    start
}

/// Fills in the length of the message that began at `start`.
fn end(out: &mut [u8], start: usize) {
    let length = out.len().saturating_sub(start + HEADER_LEN) as u16;
    if let Some(place) = out.get_mut(start + 2..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends an Echo Request (§7.2.1).
pub fn emit_echo_request(out: &mut Vec<u8>, sequence: u16) {
    let start = begin(out, MessageType::ECHO_REQUEST, sequence);
    end(out, start);
}

/// Octets of an Echo Response.
pub const ECHO_RESPONSE_LEN: usize = LONG_HEADER_LEN + 2;

/// Appends the Echo Response (§7.2.2) to the request with this sequence number.
pub fn emit_echo_response(out: &mut Vec<u8>, sequence: u16) {
    let start = begin(out, MessageType::ECHO_RESPONSE, sequence);
    out.extend([RECOVERY, 0]);
    end(out, start);
}

/// Appends an Error Indication (§7.3.1). `cause_port`, the UDP source port of the refused G-PDU, goes into a UDP Port
/// extension header (§5.2.2.1), which helps a peer that spreads its tunnels over source ports.
pub fn emit_error_indication(
    out: &mut Vec<u8>,
    sequence: u16,
    error: &ErrorIndication,
    cause_port: Option<u16>,
) {
    let start = begin(out, MessageType::ERROR_INDICATION, sequence);
    if let Some(port) = cause_port {
        if let Some(flags) = out.get_mut(start) {
            *flags |= 0x04;
        }
        if let Some(next) = out.last_mut() {
            *next = ExtensionType::UDP_PORT.0;
        }
        let [p0, p1] = port.to_be_bytes();
        out.extend([1, p0, p1, 0]);
    }
    out.push(TEID_DATA_I);
    out.extend(error.teid.0.to_be_bytes());
    out.push(PEER_ADDRESS);
    match error.peer {
        IpAddr::V4(a) => {
            out.extend([0, 4]);
            out.extend(a.octets());
        }
        IpAddr::V6(a) => {
            out.extend([0, 16]);
            out.extend(a.octets());
        }
    }
    end(out, start);
}

/// Appends a Supported Extension Headers Notification (§7.2.3) that lists `known`.
pub fn emit_supported_extensions(out: &mut Vec<u8>, sequence: u16, known: &[ExtensionType]) {
    let start = begin(out, MessageType::SUPPORTED_EXTENSION_HEADERS, sequence);
    let known = known.get(..255).unwrap_or(known);
    out.extend([EXTENSION_HEADER_TYPE_LIST, known.len() as u8]);
    out.extend(known.iter().map(|k| k.0));
    end(out, start);
}
