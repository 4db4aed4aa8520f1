//! What a NIC's parser sees of a frame: enough to hash it and to steer it.

/// An IP header and what follows it.
#[derive(Clone, Copy)]
pub(crate) struct Ip<'a> {
    pub source: &'a [u8],
    pub destination: &'a [u8],
    pub protocol: u8,
    /// ToS or traffic class.
    pub tos: u8,
    /// TTL or hop limit.
    pub hops: u8,
    /// Empty in a fragment, whose ports are somewhere else.
    pub payload: &'a [u8],
}

/// The IP packet of an Ethernet frame with up to two VLAN tags.
pub(crate) fn ip(frame: &[u8]) -> Option<Ip<'_>> {
    match layer3(frame)? {
        ([0x08, 0x00] | [0x86, 0xdd], packet) => ip_packet(packet),
        _ => None,
    }
}

/// The EtherType behind up to two VLAN tags, and what follows it.
pub(crate) fn layer3(frame: &[u8]) -> Option<([u8; 2], &[u8])> {
    let mut rest = frame.get(12..)?;
    for _ in 0..2 {
        match rest.first_chunk()? {
            [0x81, 0x00] | [0x88, 0xa8] => rest = rest.get(4..)?,
            _ => break,
        }
    }
    rest.split_first_chunk().map(|(kind, packet)| (*kind, packet))
}

pub(crate) fn ip_packet(packet: &[u8]) -> Option<Ip<'_>> {
    match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet.first()? & 0xf) * 4;
            let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff != 0;
            Some(Ip {
                source: packet.get(12..16)?,
                destination: packet.get(16..20)?,
                protocol: *packet.get(9)?,
                tos: *packet.get(1)?,
                hops: *packet.get(8)?,
                payload: if fragment { &[] } else { packet.get(header.max(20)..)? },
            })
        }
        // A NIC of this class doesn't walk extension headers: such a packet is hashed by its addresses.
        6 => Some(Ip {
            source: packet.get(8..24)?,
            destination: packet.get(24..40)?,
            protocol: *packet.get(6)?,
            tos: packet.first()? << 4 | *packet.get(1)? >> 4,
            hops: *packet.get(7)?,
            payload: packet.get(40..)?,
        }),
        _ => None,
    }
}
