//! The names in a server's certificate, which TLS 1.2 sends in clear.
//!
//! A walk over DER (X.690) to two places: no more than is asked for is read, nothing is verified.

use crate::protocols::cursor::Cursor;

/// DER tags that are met on the way.
mod tag {
    pub const OCTETS: u8 = 0x04;
    pub const OBJECT: u8 = 0x06;
    pub const SEQUENCE: u8 = 0x30;
    pub const SET: u8 = 0x31;
    /// `[0]` of TBSCertificate: its version.
    pub const VERSION: u8 = 0xa0;
    /// `[3]` of TBSCertificate: extensions.
    pub const EXTENSIONS: u8 = 0xa3;
    /// `[2]` of GeneralName: dNSName.
    pub const DNS_NAME: u8 = 0x82;
}

/// id-at-commonName, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// id-ce-subjectAltName, 2.5.29.17.
const ALTERNATIVES: &[u8] = &[0x55, 0x1d, 0x11];

/// The names of a certificate's owner (RFC 5280 §4.1).
#[derive(Clone, Copy, Debug)]
pub struct Names<'b> {
    /// The subject's common name, if it is in Latin or UTF-8 letters.
    pub common: Option<&'b [u8]>,
    alternatives: &'b [u8],
}

impl<'b> Names<'b> {
    /// Of a certificate.
    pub fn parse(certificate: &'b [u8]) -> Option<Self> {
        let mut outer = Cursor::new(of(&mut Cursor::new(certificate), tag::SEQUENCE)?);
        let mut fields = Cursor::new(of(&mut outer, tag::SEQUENCE)?);
        let mut ahead = fields;
        if of(&mut ahead, tag::VERSION).is_some() {
            fields = ahead;
        }
        // serialNumber, signature, issuer, validity
        for _ in 0..4 {
            element(&mut fields)?;
        }
        let subject = of(&mut fields, tag::SEQUENCE)?;
        let common = common_name(subject);
        let _key = element(&mut fields);
        let alternatives = elements(fields.rest()).find(|(tag, _)| *tag == tag::EXTENSIONS);
        let alternatives = alternatives.and_then(|(_, it)| alternatives_of(it)).unwrap_or_default();
        Some(Self { common, alternatives })
    }

    /// dNSName of subjectAltName.
    pub fn alternatives(&self) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        elements(self.alternatives).filter(|(tag, _)| *tag == tag::DNS_NAME).map(|(_, name)| name)
    }

    /// The one that tells most about the server: the common name if it is a host's, else the first of the others. Without "*.".
    pub fn host(&self) -> Option<&'b [u8]> {
        let mut names = self.common.into_iter().chain(self.alternatives());
        let name = names.find(|name| is_host(name))?;
        Some(name.strip_prefix(b"*.").unwrap_or(name))
    }
}

fn is_host(name: &[u8]) -> bool {
    let fits = |octet: &u8| octet.is_ascii_alphanumeric() || b"-_.*".contains(octet);
    name.len() > 3 && name.contains(&b'.') && name.iter().all(fits)
}

fn common_name(subject: &[u8]) -> Option<&[u8]> {
    elements(subject).filter(|(tag, _)| *tag == tag::SET).find_map(|(_, set)| {
        let mut pair = Cursor::new(of(&mut Cursor::new(set), tag::SEQUENCE)?);
        (of(&mut pair, tag::OBJECT)? == COMMON_NAME).then_some(())?;
        element(&mut pair).map(|(_, name)| name)
    })
}

fn alternatives_of(extensions: &[u8]) -> Option<&[u8]> {
    let list = of(&mut Cursor::new(extensions), tag::SEQUENCE)?;
    elements(list).find_map(|(_, one)| {
        let mut parts = Cursor::new(one);
        (of(&mut parts, tag::OBJECT)? == ALTERNATIVES).then_some(())?;
        // "critical" may stand before.
        let (_, value) = elements(parts.rest()).find(|(tag, _)| *tag == tag::OCTETS)?;
        of(&mut Cursor::new(value), tag::SEQUENCE)
    })
}

/// The next element's content if it has this tag.
fn of<'b>(cursor: &mut Cursor<'b>, wanted: u8) -> Option<&'b [u8]> {
    element(cursor).filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
}

fn elements(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> + use<'_> {
    let mut cursor = Cursor::new(bytes);
    std::iter::from_fn(move || element(&mut cursor))
}

/// Tag and content; lengths of up to three octets, tags of one.
fn element<'b>(cursor: &mut Cursor<'b>) -> Option<(u8, &'b [u8])> {
    let tag = cursor.u8()?;
    let length = match cursor.u8()? {
        short @ 0..=0x7f => short.into(),
        0x81 => cursor.u8()?.into(),
        0x82 => cursor.u16()?.into(),
        0x83 => cursor.u24()?,
        _ => return None,
    };
    Some((tag, cursor.take(length)?))
}
