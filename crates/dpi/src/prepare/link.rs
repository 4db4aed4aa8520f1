//! Which kind of frame begins here?

use super::stack::{Layer, Stack};
use super::walk::{Next, Step, u16_at};
use super::{NoPacket, Why};
use packet::EtherType;

/// What frames are, as captures number it (pcap's LINKTYPE_ values).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Link {
    /// Ethernet: 1.
    Ethernet,
    /// IPv4 or IPv6 without anything around it: 12, 14, 101, 228, 229.
    Ip,
    /// BSD's loopback: an address family in the order of whoever captured, or in network order: 0, 108.
    Family,
    /// PPP: 9, 50.
    Ppp,
    /// PPP behind an octet that tells the direction: 204.
    PppDirection,
    /// PPPoE session: 51.
    Pppoe,
    /// Cisco HDLC: 104.
    Hdlc,
    /// Linux' "cooked" capture: 113.
    Cooked,
    /// Its second version: 276.
    Cooked2,
    /// IEEE 802.2, as on ATM: 100.
    Llc,
    /// IEEE 802.11: 105.
    Wireless,
    /// IEEE 802.11 with radiotap: 127.
    Radiotap,
    /// Per-Packet Information before a frame of another type: 192.
    Capture,
}

impl Link {
    /// By the number that captures have; `None`: its frames can't be read here.
    pub const fn of_pcap(number: u32) -> Option<Self> {
        Some(match number {
            0 | 108 => Self::Family,
            1 => Self::Ethernet,
            9 | 50 => Self::Ppp,
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            51 => Self::Pppoe,
            100 => Self::Llc,
            104 => Self::Hdlc,
            105 => Self::Wireless,
            113 => Self::Cooked,
            127 => Self::Radiotap,
            192 => Self::Capture,
            204 => Self::PppDirection,
            276 => Self::Cooked2,
            _ => return None,
        })
    }

    /// What follows the link's own header.
    #[inline]
    pub(super) fn begin<'p>(self, frame: &'p [u8], stack: &mut Stack) -> Step<'p> {
        match self {
            Self::Ethernet => Ok((Next::Ethernet, frame)),
            Self::Ip => Ok((Next::Ip, frame)),
            _ => self.begin_rarely(frame, stack),
        }
    }

    #[cold]
    fn begin_rarely<'p>(self, frame: &'p [u8], stack: &mut Stack) -> Step<'p> {
        let after = |octets: usize| frame.get(octets..).ok_or(NoPacket::from(Why::Truncated));
        let mut layer = |layer| stack.push(layer).map_err(NoPacket::from);
        match self {
            Self::Ethernet => Ok((Next::Ethernet, frame)),
            Self::Ip => Ok((Next::Ip, frame)),
            // Cisco's framing is captured as PPP, too; PPP has no such protocol.
            Self::Ppp if matches!(frame, [0x0f | 0x8f, 0, ..]) => Self::Hdlc.begin_rarely(frame, stack),
            Self::Ppp => Ok((Next::Ppp, frame)),
            Self::PppDirection => Ok((Next::Ppp, after(1)?)),
            Self::Pppoe => Ok((Next::Type(super::walk::PPPOE_SESSION), frame)),
            Self::Llc => Ok((Next::Llc, frame)),
            Self::Wireless => Ok((Next::Wireless, frame)),
            Self::Family => {
                layer(Layer::Family)?;
                // 2 is IPv4 everywhere; IPv6 is 10 (Linux), 24 (NetBSD, OpenBSD), 28 (FreeBSD) or 30 (Darwin).
                match frame.first_chunk::<4>() {
                    Some(&([0, 0, 0, family] | [family, 0, 0, 0]))
                        if matches!(family, 2 | 10 | 24 | 28 | 30) =>
                    {
                        Ok((Next::Ip, after(4)?))
                    }
                    Some(&[_, _, a, b]) => {
                        Err(NoPacket { why: Why::Family, number: u16::from_be_bytes([a, b]) })
                    }
                    None => Err(Why::Truncated.into()),
                }
            }
            Self::Hdlc => {
                layer(Layer::Hdlc)?;
                Ok((Next::Type(EtherType(u16_at(frame, 2)?)), after(4)?))
            }
            Self::Cooked => {
                layer(Layer::Cooked)?;
                Ok((cooked(u16_at(frame, 14)?), after(16)?))
            }
            Self::Cooked2 => {
                layer(Layer::Cooked)?;
                Ok((cooked(u16_at(frame, 0)?), after(20)?))
            }
            // Version 0, a pad, the length of all of it with the lowest octet first.
            Self::Radiotap => {
                let length = usize::from(u16_at(frame, 2)?.swap_bytes());
                if length < 8 || frame.first() != Some(&0) {
                    return Err(Why::Malformed.into());
                }
                Ok((Next::Wireless, after(length)?))
            }
            // Likewise; then the frame's type in four octets, the lowest first.
            Self::Capture => {
                layer(Layer::Capture)?;
                let length = usize::from(u16_at(frame, 2)?.swap_bytes());
                let kind = u32::from(u16_at(frame, 4)?.swap_bytes());
                match Self::of_pcap(kind) {
                    Some(Self::Capture) | None => Err(NoPacket { why: Why::Link, number: kind as u16 }),
                    Some(_) if length < 8 => Err(Why::Malformed.into()),
                    Some(Self::Radiotap) => Self::Radiotap.begin_rarely(after(length)?, stack),
                    Some(Self::Wireless) => Ok((Next::Wireless, after(length)?)),
                    Some(Self::Ethernet) => Ok((Next::Ethernet, after(length)?)),
                    Some(Self::Ip) => Ok((Next::Ip, after(length)?)),
                    Some(_) => Err(NoPacket { why: Why::Link, number: kind as u16 }),
                }
            }
        }
    }
}

/// Linux writes 4 where IEEE 802.2 follows, and an EtherType else.
const fn cooked(protocol: u16) -> Next {
    if protocol == 4 { Next::Llc } else { Next::Type(EtherType(protocol)) }
}
