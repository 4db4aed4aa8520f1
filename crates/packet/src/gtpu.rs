//! GTPv1-U (TS 29.281): the header, its extension headers, and the datapath's emitters. The signalling messages'
//! information elements are in [`crate::gtpu_message`].

use crate::pdu_session::{self, PduSession};
use crate::{Layer, Malformed, Qfi, Teid};

/// Octets of the mandatory header.
pub const HEADER_LEN: usize = 8;
/// Octets of a header with the optional fields (sequence number, N-PDU number, next extension header type).
pub const LONG_HEADER_LEN: usize = 12;
/// Octets of a G-PDU's header with the shortest PDU Session Container.
pub const PSC_HEADER_LEN: usize = 16;
/// Extension headers that are walked before the packet is given up. A UPF has use for one or two.
pub const MAX_EXTENSIONS: usize = 8;

/// Message types (TS 29.281 §6.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct MessageType(pub u8);

impl MessageType {
    /// Is the path alive?
    pub const ECHO_REQUEST: Self = Self(1);
    /// It is.
    pub const ECHO_RESPONSE: Self = Self(2);
    /// The TEID of a G-PDU is unknown.
    pub const ERROR_INDICATION: Self = Self(26);
    /// The extension headers that the sender knows.
    pub const SUPPORTED_EXTENSION_HEADERS: Self = Self(31);
    /// The state of a tunnel.
    pub const TUNNEL_STATUS: Self = Self(253);
    /// No more G-PDUs on this tunnel.
    pub const END_MARKER: Self = Self(254);
    /// A user's packet.
    pub const G_PDU: Self = Self(255);
}

/// Extension header types (TS 29.281 §5.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ExtensionType(pub u8);

impl ExtensionType {
    /// No more extension headers.
    pub const NONE: Self = Self(0x00);
    /// Service Class Indicator.
    pub const SERVICE_CLASS_INDICATOR: Self = Self(0x20);
    /// UDP Port: in an Error Indication, the source port of the G-PDU that caused it.
    pub const UDP_PORT: Self = Self(0x40);
    /// RAN Container.
    pub const RAN_CONTAINER: Self = Self(0x81);
    /// Long PDCP PDU Number.
    pub const LONG_PDCP_PDU_NUMBER: Self = Self(0x82);
    /// Xw RAN Container.
    pub const XW_RAN_CONTAINER: Self = Self(0x83);
    /// NR RAN Container.
    pub const NR_RAN_CONTAINER: Self = Self(0x84);
    /// PDU Session Container.
    pub const PDU_SESSION_CONTAINER: Self = Self(0x85);
    /// PDCP PDU Number.
    pub const PDCP_PDU_NUMBER: Self = Self(0xc0);

    /// Whether the tunnel's endpoint must understand it or discard the packet: bit 8 of the type (§5.2.1, figure
    /// 5.2.1-2). Bit 7 concerns intermediate nodes.
    #[inline]
    pub const fn required_at_endpoint(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// Whether an intermediate node must understand it as well (both high bits).
    #[inline]
    pub const fn required_at_intermediate(self) -> bool {
        self.0 & 0xc0 == 0xc0
    }
}

/// One extension header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extension<'a> {
    /// What it is.
    pub kind: ExtensionType,
    /// Its content, without its length and the next type: 4n - 2 octets.
    pub content: &'a [u8],
}

/// A GTP-U message.
#[derive(Clone, Copy, Debug)]
pub struct GtpuView<'a> {
    header: &'a [u8; HEADER_LEN],
    optional: Option<&'a [u8; 4]>,
    /// The extension headers' octets, from the first length octet on.
    extensions: &'a [u8],
    payload: &'a [u8],
}

impl<'a> GtpuView<'a> {
    /// Reads a message and walks its extension headers; what lies behind its length is cut off. GTP' (PT = 0) and
    /// other versions are refused.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) =
            data.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Truncated(Layer::Gtpu))?;
        // Version 1 and protocol type GTP.
        if header[0] & 0xf0 != 0x30 {
            return Err(Malformed::Version(Layer::Gtpu));
        }
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let body = rest.get(..length).ok_or(Malformed::TotalLength(Layer::Gtpu))?;
        if header[0] & 0xf7 == 0x30 {
            return Ok(Self { header, optional: None, extensions: &[], payload: body });
        }
        let (optional, body) = body.split_first_chunk::<4>().ok_or(Malformed::Truncated(Layer::Gtpu))?;
        // The next type counts only with the E flag (§5.1).
        if header[0] & 0x04 == 0 || optional[3] == 0 {
            return Ok(Self { header, optional: Some(optional), extensions: &[], payload: body });
        }
        let mut payload = body;
        for _ in 0..MAX_EXTENSIONS {
            let (_, next, rest) = split_extension(payload)?;
            payload = rest;
            if next == ExtensionType::NONE {
                let extensions = body.get(..body.len() - payload.len()).unwrap_or_default();
                return Ok(Self { header, optional: Some(optional), extensions, payload });
            }
        }
        Err(Malformed::TooMany(Layer::GtpuExtension))
    }

    /// What kind of message it is.
    #[inline]
    pub const fn message_type(&self) -> MessageType {
        MessageType(self.header[1])
    }

    /// The tunnel, as the receiver named it; 0 in path management messages.
    #[inline]
    pub const fn teid(&self) -> Teid {
        let h = self.header;
        Teid(u32::from_be_bytes([h[4], h[5], h[6], h[7]]))
    }

    /// The sequence number, if the S flag says that it counts.
    #[inline]
    pub const fn sequence(&self) -> Option<u16> {
        match self.optional {
            Some(o) if self.header[0] & 0x02 != 0 => Some(u16::from_be_bytes([o[0], o[1]])),
            _ => None,
        }
    }

    /// The N-PDU number, if the PN flag says that it counts.
    #[inline]
    pub const fn n_pdu_number(&self) -> Option<u8> {
        match self.optional {
            Some(o) if self.header[0] & 0x01 != 0 => Some(o[2]),
            _ => None,
        }
    }

    /// Octets of mandatory header, optional fields and extension headers: where the payload begins.
    #[inline]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN + if self.optional.is_some() { 4 } else { 0 } + self.extensions.len()
    }

    /// The extension headers in order.
    #[inline]
    pub const fn extensions(&self) -> Extensions<'a> {
        let next = match self.optional {
            Some(o) if self.header[0] & 0x04 != 0 => ExtensionType(o[3]),
            _ => ExtensionType::NONE,
        };
        Extensions { next, rest: self.extensions }
    }

    /// The first extension header that a tunnel endpoint would have to understand and that is not among `known`: the
    /// packet must be discarded and answered with [`crate::gtpu_message::emit_supported_extensions`] (§5.2.1, §7.2.3).
    #[inline]
    pub fn not_comprehended(&self, known: &[ExtensionType]) -> Option<ExtensionType> {
        if self.extensions.is_empty() {
            return None;
        }
        self.extensions().map(|e| e.kind).find(|k| k.required_at_endpoint() && !known.contains(k))
    }

    /// The PDU Session Container, if there is one.
    #[inline]
    pub fn pdu_session(&self) -> Result<Option<PduSession>, Malformed> {
        if self.extensions.is_empty() {
            return Ok(None);
        }
        match self.extensions().find(|e| e.kind == ExtensionType::PDU_SESSION_CONTAINER) {
            Some(extension) => PduSession::parse(extension.content).map(Some),
            None => Ok(None),
        }
    }

    /// The QoS flow in the PDU Session Container, if there is one: all that the packet path wants of it, without reading
    /// what else [`GtpuView::pdu_session`] would.
    #[inline]
    pub fn qfi(&self) -> Result<Option<Qfi>, Malformed> {
        if self.extensions.is_empty() {
            return Ok(None);
        }
        match self.extensions().find(|e| e.kind == ExtensionType::PDU_SESSION_CONTAINER) {
            Some(extension) => PduSession::qfi_in(extension.content).map(Some),
            None => Ok(None),
        }
    }

    /// The user's packet (G-PDU) or the information elements.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Content, next type and what follows an extension header that begins with its length octet (units of four octets).
#[inline]
fn split_extension(data: &[u8]) -> Result<(&[u8], ExtensionType, &[u8]), Malformed> {
    let (&units, _) = data.split_first().ok_or(Malformed::Truncated(Layer::GtpuExtension))?;
    let (this, rest) =
        data.split_at_checked(usize::from(units) * 4).ok_or(Malformed::HeaderLength(Layer::GtpuExtension))?;
    match this {
        [_, content @ .., next] => Ok((content, ExtensionType(*next), rest)),
        // Zero units: a chain that never ends.
        _ => Err(Malformed::HeaderLength(Layer::GtpuExtension)),
    }
}

/// The extension headers of a [`GtpuView`], in order.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    next: ExtensionType,
    rest: &'a [u8],
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Extension<'a>;

    #[inline]
    fn next(&mut self) -> Option<Extension<'a>> {
        if self.next == ExtensionType::NONE {
            return None;
        }
        let (content, next, rest) = split_extension(self.rest).ok()?;
        let kind = std::mem::replace(&mut self.next, next);
        self.rest = rest;
        Some(Extension { kind, content })
    }
}

/// Writes the header of a G-PDU without container in front of `payload_len` octets.
#[inline]
pub fn emit_gpdu(out: &mut [u8; HEADER_LEN], teid: Teid, payload_len: usize) {
    let [l0, l1] = (payload_len as u16).to_be_bytes();
    let [t0, t1, t2, t3] = teid.0.to_be_bytes();
    *out = [0x30, 255, l0, l1, t0, t1, t2, t3];
}

#[inline]
fn emit_with_short(
    out: &mut [u8; PSC_HEADER_LEN],
    kind: u8,
    teid: Teid,
    container: [u8; 2],
    payload_len: usize,
) {
    let [l0, l1] = ((payload_len + PSC_HEADER_LEN - HEADER_LEN) as u16).to_be_bytes();
    let [t0, t1, t2, t3] = teid.0.to_be_bytes();
    let [p0, p1] = container;
    *out =
        [0x34, kind, l0, l1, t0, t1, t2, t3, 0, 0, 0, ExtensionType::PDU_SESSION_CONTAINER.0, 1, p0, p1, 0];
}

/// Writes the header of a downlink G-PDU with a PDU Session Container in front of `payload_len` octets.
#[inline]
pub fn emit_gpdu_downlink(
    out: &mut [u8; PSC_HEADER_LEN],
    teid: Teid,
    qfi: Qfi,
    rqi: bool,
    payload_len: usize,
) {
    emit_with_short(out, 255, teid, pdu_session::Downlink::short(qfi, rqi), payload_len);
}

/// Writes the header of an uplink G-PDU with a PDU Session Container in front of `payload_len` octets.
#[inline]
pub fn emit_gpdu_uplink(out: &mut [u8; PSC_HEADER_LEN], teid: Teid, qfi: Qfi, payload_len: usize) {
    emit_with_short(out, 255, teid, pdu_session::Uplink::short(qfi), payload_len);
}

/// Writes an End Marker (§7.3.2): the whole message, sent on the old tunnel after its last G-PDU.
#[inline]
pub fn emit_end_marker(out: &mut [u8; HEADER_LEN], teid: Teid) {
    emit_gpdu(out, teid, 0);
    out[1] = MessageType::END_MARKER.0;
}
