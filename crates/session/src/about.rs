//! Who and what a session is for: user, DNN, slice, Network Instances. No packet depends on it; people look for it.
//!
//! It is kept with the packed session in as many octets as it has, most often some twenty, and read where it lies: a search
//! looks at a million of them.

use crate::network_instance::Name;
use pfcp::ie::{Interface, SNssai, UserId};
use pfcp::message::SessionEstablishmentRequest;

/// The longest User ID that is kept, in octets: all its kinds of digits, and a long name.
const LONGEST_USER: usize = 200;
/// The longest name that is kept: a DNN has at most 100 octets (TS 23.003 §9.1).
const LONGEST_NAME: usize = 100;
/// Network Instances that are kept.
const MAX_INSTANCES: usize = 4;

/// What was said of a session, packed: user, DNN, S-NSSAI, then Network Instances, each with its length before it. Nothing at all: nothing
/// was said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct About<'a>(&'a [u8]);

impl<'a> About<'a> {
    /// From what [`pack`] made.
    pub const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// The user.
    pub fn user(self) -> Option<UserId<'a>> {
        self.field(0).filter(|octets| !octets.is_empty()).map(UserId)
    }

    /// APN or DNN; empty: none was given.
    pub fn dnn(self) -> &'a [u8] {
        self.field(1).unwrap_or_default()
    }

    /// The slice.
    pub fn s_nssai(self) -> Option<SNssai> {
        let word = u32::from_be_bytes(self.field(2)?.try_into().ok()?);
        let sd = word & NO_SD;
        Some(SNssai { sst: (word >> 24) as u8, sd: (sd != NO_SD).then_some(sd) })
    }

    /// The Network Instances that its PDRs named when it was established, whether they are configured or not: those of the data
    /// network before those of the radio side.
    pub fn instances(self) -> impl Iterator<Item = &'a [u8]> {
        self.fields().skip(3)
    }

    fn field(self, number: usize) -> Option<&'a [u8]> {
        self.fields().nth(number)
    }

    fn fields(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (length, tail) = rest.split_first()?;
            let (field, tail) = tail.split_at_checked(usize::from(*length))?;
            rest = tail;
            Some(field)
        })
    }
}

/// A differentiator that means none.
const NO_SD: u32 = 0xff_ffff;

/// What is to be kept of a request.
pub fn pack(request: &SessionEstablishmentRequest<'_>) -> Box<[u8]> {
    let mut out = Vec::new();
    // No field is longer than what one octet can say.
    let mut field = |octets: &[u8]| {
        out.push(octets.len() as u8);
        out.extend_from_slice(octets);
    };
    let user = request.user_id.map(|user| user.0).filter(|octets| octets.len() <= LONGEST_USER);
    let dnn = request.apn_dnn.map(Name::new).unwrap_or_default();
    let names = |of_access: bool| {
        let pdis = request.create_pdrs.iter().map(|pdr| &pdr.pdi);
        pdis.filter(move |pdi| (pdi.source_interface == Interface::ACCESS) == of_access)
            .filter_map(|pdi| pdi.network_instance)
    };
    let mut instances: Vec<Name> = Vec::new();
    for name in names(false).chain(names(true)).map(Name::new) {
        let fits = !name.is_default() && name.octets().len() <= LONGEST_NAME;
        if fits && instances.len() < MAX_INSTANCES && !instances.contains(&name) {
            instances.push(name);
        }
    }
    let s_nssai = request
        .s_nssai
        .map(|slice| (u32::from(slice.sst) << 24 | slice.sd.unwrap_or(NO_SD) & NO_SD).to_be_bytes());
    let nothing = user.is_none() && dnn.is_default() && s_nssai.is_none() && instances.is_empty();
    if !nothing {
        field(user.unwrap_or_default());
        field(Some(dnn.octets()).filter(|name| name.len() <= LONGEST_NAME).unwrap_or_default());
        field(s_nssai.as_ref().map_or(&[], |octets| octets));
        instances.iter().for_each(|name| field(name.octets()));
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_that_are_cut_off_are_read_as_far_as_they_go() {
        let octets = [2, 1, 0, 3, b'i', b'm', b's', 4, 1, 0, 0, 7, 2, b'n', b'6'];
        let whole = About::new(&octets);
        assert_eq!((whole.user(), whole.dnn()), (Some(UserId(&[1, 0])), &b"ims"[..]));
        assert_eq!(whole.s_nssai(), Some(SNssai { sst: 1, sd: Some(7) }));
        assert_eq!(whole.instances().collect::<Vec<_>>(), [b"n6"]);
        for length in 0..octets.len() {
            let cut = About::new(&octets[..length]);
            assert!(cut.instances().count() == 0 && cut.dnn().len() <= 3);
        }
        let nothing = About::default();
        assert_eq!((nothing.user(), nothing.dnn(), nothing.s_nssai()), (None, &b""[..], None));
    }
}
