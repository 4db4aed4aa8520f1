//! Ethernet II frames and their VLAN tags (IEEE 802.3, 802.1Q, 802.1ad).

use crate::{EtherType, Layer, MacAddr, Malformed, VlanId};

/// Octets of an untagged Ethernet header.
pub const HEADER_LEN: usize = 14;
/// Octets of one VLAN tag.
pub const TAG_LEN: usize = 4;
/// Tags that are looked through: one service and one customer tag. A third shows as the EtherType.
pub const MAX_TAGS: usize = 2;

/// One VLAN tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VlanTag {
    /// [`EtherType::VLAN`] or [`EtherType::QINQ`].
    pub tpid: EtherType,
    /// Priority code point, 0..=7.
    pub priority: u8,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// The VLAN.
    pub id: VlanId,
}

impl VlanTag {
    /// A customer tag (0x8100) of priority 0.
    pub const fn customer(id: VlanId) -> Self {
        Self { tpid: EtherType::VLAN, priority: 0, drop_eligible: false, id }
    }

    /// A service tag (0x88a8) of priority 0.
    pub const fn service(id: VlanId) -> Self {
        Self { tpid: EtherType::QINQ, priority: 0, drop_eligible: false, id }
    }

    #[inline]
    const fn from_tci(tpid: EtherType, tci: u16) -> Self {
        Self {
            tpid,
            priority: (tci >> 13) as u8,
            drop_eligible: tci & 0x1000 != 0,
            id: VlanId::from_wire(tci),
        }
    }

    /// Tag Control Information: priority, drop eligible indicator, VLAN.
    #[inline]
    pub const fn tci(self) -> u16 {
        (self.priority as u16 & 7) << 13 | (self.drop_eligible as u16) << 12 | self.id.get()
    }
}

/// A frame with at most [`MAX_TAGS`] VLAN tags.
#[derive(Clone, Copy, Debug)]
pub struct EthernetView<'a> {
    header: &'a [u8; HEADER_LEN],
    tags: [Option<VlanTag>; MAX_TAGS],
    ether_type: EtherType,
    payload: &'a [u8],
}

impl<'a> EthernetView<'a> {
    /// Reads the header and the tags.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Result<Self, Malformed> {
        let (header, mut payload) =
            frame.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Truncated(Layer::Ethernet))?;
        let mut ether_type = EtherType(u16::from_be_bytes([header[12], header[13]]));
        let mut tags = [None; MAX_TAGS];
        for tag in &mut tags {
            if !ether_type.is_vlan() {
                break;
            }
            let (octets, rest) =
                payload.split_first_chunk::<TAG_LEN>().ok_or(Malformed::Truncated(Layer::Vlan))?;
            *tag = Some(VlanTag::from_tci(ether_type, u16::from_be_bytes([octets[0], octets[1]])));
            ether_type = EtherType(u16::from_be_bytes([octets[2], octets[3]]));
            payload = rest;
        }
        Ok(Self { header, tags, ether_type, payload })
    }

    /// Where the frame goes.
    #[inline]
    pub const fn destination(&self) -> MacAddr {
        let [a, b, c, d, e, f, ..] = *self.header;
        MacAddr([a, b, c, d, e, f])
    }

    /// Where the frame comes from.
    #[inline]
    pub const fn source(&self) -> MacAddr {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = *self.header;
        MacAddr([a, b, c, d, e, f])
    }

    /// What follows the tags.
    #[inline]
    pub const fn ether_type(&self) -> EtherType {
        self.ether_type
    }

    /// The outermost tag, if there is one.
    #[inline]
    pub const fn outer_tag(&self) -> Option<VlanTag> {
        self.tags[0]
    }

    /// The second tag, if there are two.
    #[inline]
    pub const fn inner_tag(&self) -> Option<VlanTag> {
        self.tags[1]
    }

    /// Octets of header and tags: where the payload begins.
    #[inline]
    pub const fn header_len(&self) -> usize {
        let tags = self.tags[0].is_some() as usize + self.tags[1].is_some() as usize;
        HEADER_LEN + tags * TAG_LEN
    }

    /// Everything after the tags, padding included: the layer above knows its own length.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Writes an untagged header.
#[inline]
pub fn emit_header(out: &mut [u8; HEADER_LEN], destination: MacAddr, source: MacAddr, ether_type: EtherType) {
    let (d, rest) = out.split_at_mut(6);
    let (s, t) = rest.split_at_mut(6);
    d.copy_from_slice(&destination.0);
    s.copy_from_slice(&source.0);
    t.copy_from_slice(&ether_type.0.to_be_bytes());
}

/// Writes a header with one tag.
#[inline]
pub fn emit_tagged_header(
    out: &mut [u8; HEADER_LEN + TAG_LEN],
    destination: MacAddr,
    source: MacAddr,
    tag: VlanTag,
    ether_type: EtherType,
) {
    if let Some((header, rest)) = out.split_first_chunk_mut::<HEADER_LEN>() {
        emit_header(header, destination, source, tag.tpid);
        let [a, b] = tag.tci().to_be_bytes();
        let [c, d] = ether_type.0.to_be_bytes();
        rest.copy_from_slice(&[a, b, c, d]);
    }
}

/// Exchanges source and destination: the way back for an answer made in place. False if the frame is too short.
#[inline]
pub fn swap_addresses(frame: &mut [u8]) -> bool {
    let Some(addresses) = frame.first_chunk_mut::<12>() else { return false };
    let (d, s) = addresses.split_at_mut(6);
    d.swap_with_slice(s);
    true
}
