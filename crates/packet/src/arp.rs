//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use crate::{Layer, MacAddr, Malformed};

/// Octets of an ARP packet for IPv4 over Ethernet.
pub const LEN: usize = 28;

/// Hardware type Ethernet, protocol IPv4, address lengths 6 and 4.
const PREAMBLE: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// What an ARP packet wants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender has it.
    Reply,
    /// Another operation code (RARP and the like).
    Other(u16),
}

/// An ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct ArpView<'a> {
    packet: &'a [u8; LEN],
}

impl<'a> ArpView<'a> {
    /// Reads an ARP packet; padding behind it is ignored.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let packet = data.first_chunk::<LEN>().ok_or(Malformed::Truncated(Layer::Arp))?;
        if packet[..6] == PREAMBLE { Ok(Self { packet }) } else { Err(Malformed::Field(Layer::Arp)) }
    }

    /// What is wanted.
    #[inline]
    pub const fn operation(&self) -> Operation {
        match u16::from_be_bytes([self.packet[6], self.packet[7]]) {
            1 => Operation::Request,
            2 => Operation::Reply,
            other => Operation::Other(other),
        }
    }

    /// The sender's MAC address.
    #[inline]
    pub const fn sender_mac(&self) -> MacAddr {
        let p = self.packet;
        MacAddr([p[8], p[9], p[10], p[11], p[12], p[13]])
    }

    /// The sender's IPv4 address; 0.0.0.0 in a probe (RFC 5227 §2.1.1).
    #[inline]
    pub const fn sender_ip(&self) -> Ipv4Addr {
        let p = self.packet;
        Ipv4Addr::new(p[14], p[15], p[16], p[17])
    }

    /// The target's MAC address; meaningless in a request.
    #[inline]
    pub const fn target_mac(&self) -> MacAddr {
        let p = self.packet;
        MacAddr([p[18], p[19], p[20], p[21], p[22], p[23]])
    }

    /// The target's IPv4 address.
    #[inline]
    pub const fn target_ip(&self) -> Ipv4Addr {
        let p = self.packet;
        Ipv4Addr::new(p[24], p[25], p[26], p[27])
    }
}

/// Writes an ARP packet.
#[inline]
pub fn emit(
    out: &mut [u8; LEN],
    operation: Operation,
    sender: (MacAddr, Ipv4Addr),
    target: (MacAddr, Ipv4Addr),
) {
    let code: u16 = match operation {
        Operation::Request => 1,
        Operation::Reply => 2,
        Operation::Other(other) => other,
    };
    out[..6].copy_from_slice(&PREAMBLE);
    out[6..8].copy_from_slice(&code.to_be_bytes());
    out[8..14].copy_from_slice(&sender.0.0);
    out[14..18].copy_from_slice(&sender.1.octets());
    out[18..24].copy_from_slice(&target.0.0);
    out[24..28].copy_from_slice(&target.1.octets());
}

/// Writes the question "who has `target`?".
#[inline]
pub fn emit_request(out: &mut [u8; LEN], sender_mac: MacAddr, sender_ip: Ipv4Addr, target: Ipv4Addr) {
    emit(out, Operation::Request, (sender_mac, sender_ip), (MacAddr::ZERO, target));
}

/// Writes the answer to `request`: its target address is at `mac`.
#[inline]
pub fn emit_reply(out: &mut [u8; LEN], mac: MacAddr, request: &ArpView<'_>) {
    let asker = (request.sender_mac(), request.sender_ip());
    emit(out, Operation::Reply, (mac, request.target_ip()), asker);
}
