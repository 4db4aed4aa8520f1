//! Receive-side scaling: which bytes of a frame the NIC hashes.

use crate::header::{Ip, ip, ip_packet};
use packet::rss::{MAX_INPUT_LEN, SYMMETRIC_KEY, Toeplitz, ue_hash_ipv4, ue_hash_prefix64};

/// The hash of mode [`RssMode::Outer`], with a key that gives both directions of a flow one value.
static OUTER: Toeplitz = Toeplitz::new(&SYMMETRIC_KEY);

pub use crate::redirection::ENTRIES as RETA_SIZE;

/// What a NIC hashes to choose a receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RssMode {
    /// Addresses and ports of the outermost IP packet, as every NIC can. All traffic of one gNB pair of addresses and
    /// ports comes to one queue.
    Outer,
    /// The subscriber's address: within a G-PDU the inner source (the inner destination if the PDU session container
    /// says downlink, as on N9), otherwise the destination. IPv6 counts with its /64 prefix. What an Intel NIC with a
    /// GTP-U package and a `L3_PRE64` hash does.
    #[default]
    InnerIp,
    /// Whatever hash the sender left in the frame; none means queue 0.
    Preset,
}

impl RssMode {
    /// The hash of an Ethernet frame; `None` for what this mode can't classify, which goes to queue 0.
    pub fn hash(self, frame: &[u8]) -> Option<u32> {
        match self {
            Self::Preset => None,
            Self::Outer => outer(ip(frame)?),
            Self::InnerIp => subscriber(ip(frame)?),
        }
    }
}

fn outer(ip: Ip<'_>) -> Option<u32> {
    let mut input = [0; MAX_INPUT_LEN];
    let addresses = ip.source.len() * 2;
    input.get_mut(..ip.source.len())?.copy_from_slice(ip.source);
    input.get_mut(ip.source.len()..addresses)?.copy_from_slice(ip.destination);
    let mut len = addresses;
    if let (6 | 17, Some(ports)) = (ip.protocol, ip.payload.get(..4)) {
        input.get_mut(addresses..addresses + 4)?.copy_from_slice(ports);
        len += 4;
    }
    Some(OUTER.hash(input.get(..len)?))
}

fn subscriber(ip: Ip<'_>) -> Option<u32> {
    const GTP_U_PORT: [u8; 2] = 2152u16.to_be_bytes();
    let address = match (ip.protocol, ip.payload.get(2..4)) {
        (17, Some(port)) if port == GTP_U_PORT => {
            let (inner, downlink) = g_pdu(ip.payload.get(8..)?)?;
            let inner = ip_packet(inner)?;
            if downlink { inner.destination } else { inner.source }
        }
        _ => ip.destination,
    };
    Some(match *address {
        [a, b, c, d] => ue_hash_ipv4([a, b, c, d].into()),
        _ => ue_hash_prefix64(u64::from_be_bytes(*address.first_chunk()?)),
    })
}

/// The T-PDU of a G-PDU (TS 29.281 §5.1), and whether its PDU session container (TS 38.415 §5.5.2) says downlink.
fn g_pdu(gtp: &[u8]) -> Option<(&[u8], bool)> {
    let (&[flags, kind, ..], mut rest) = gtp.split_first_chunk::<8>()?;
    if flags >> 5 != 1 || kind != 255 {
        return None;
    }
    let mut downlink = false;
    if flags & 0x07 != 0 {
        let (&[.., mut next], options) = rest.split_first_chunk::<4>()?;
        rest = options;
        if flags & 0x04 == 0 {
            next = 0;
        }
        // As many extension headers as a parser in hardware follows.
        for _ in 0..4 {
            if next == 0 {
                break;
            }
            let len = usize::from(*rest.first()?) * 4;
            let header = rest.get(..len)?;
            downlink |= next == 0x85 && header.get(1)? >> 4 == 0;
            next = *header.last()?;
            rest = rest.get(len..)?;
        }
        if next != 0 {
            return None;
        }
    }
    Some((rest, downlink))
}
