//! Network Instance names as SMFs write them (TS 29.244 §8.2.4).
//!
//! The clause lets an operator's string be plain octets or, where it is a DNN, RFC 1035 labels. Open5GS sends labels,
//! free5GC plain octets unless told otherwise, OMEC a zero-length IE (docs/interop.md). Nothing on the wire says which,
//! so both spellings name the same instance, whatever the case of the letters.

/// A name in one spelling: lower case, labels joined by dots. Empty is the default instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Name(Box<[u8]>);

/// The longest name that is looked at: a DNN has at most 100 octets (TS 23.003 §9.1).
const LONGEST: usize = 255;

impl std::fmt::Display for Name {
    /// As text; octets that are none are shown as such.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl Name {
    /// From the IE's octets, or from configuration.
    pub fn new(octets: &[u8]) -> Self {
        let mut name = Vec::with_capacity(octets.len().min(LONGEST));
        each_octet(octets, |octet| name.push(octet));
        Self(name.into())
    }

    /// Whether the IE's octets spell this name. Allocates nothing.
    pub fn is(&self, octets: &[u8]) -> bool {
        let mut rest = self.0.iter();
        let mut same = true;
        each_octet(octets, |octet| same &= rest.next() == Some(&octet));
        same && rest.next().is_none()
    }

    /// Its octets.
    pub const fn octets(&self) -> &[u8] {
        &self.0
    }

    /// Whether this is the default instance's.
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }
}

/// Calls `visit` with each octet of the canonical spelling.
fn each_octet(octets: &[u8], mut visit: impl FnMut(u8)) {
    let octets = octets.get(..octets.len().min(LONGEST)).unwrap_or_default();
    if is_labels(octets) {
        let mut rest = octets;
        let mut first = true;
        while let Some((&length, tail)) = rest.split_first() {
            let Some((label, tail)) = tail.split_at_checked(length as usize) else { break };
            if length == 0 {
                break;
            }
            if !first {
                visit(b'.');
            }
            first = false;
            for octet in label {
                visit(octet.to_ascii_lowercase());
            }
            rest = tail;
        }
    } else {
        for octet in octets {
            visit(octet.to_ascii_lowercase());
        }
    }
}

/// Whether the octets are RFC 1035 labels from end to end. A plain name can't be: its first character would be a length
/// below 64 and thus no letter; '-' (45) and digits (48 to 57) could lead a long name, so the label's own octets must be
/// those of a host name.
fn is_labels(octets: &[u8]) -> bool {
    let mut rest = octets;
    let mut labels = 0;
    while let Some((&length, tail)) = rest.split_first() {
        if length == 0 {
            return labels > 0 && tail.is_empty();
        }
        let Some((label, tail)) = tail.split_at_checked(length as usize) else { return false };
        if length > 63 || !label.iter().all(|o| o.is_ascii_alphanumeric() || matches!(o, b'-' | b'_')) {
            return false;
        }
        labels += 1;
        rest = tail;
    }
    labels > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_spellings_name_one_instance() {
        let internet = Name::new(b"internet");
        assert!(internet.is(b"internet"));
        assert!(internet.is(b"\x08internet"));
        assert!(internet.is(b"\x08INTERNET"));
        assert!(internet.is(b"\x08internet\x00"));
        assert!(!internet.is(b"internet2"));
        assert!(!internet.is(b"interne"));
        assert!(!internet.is(b"\x09internet"));
        let dotted = Name::new(b"access.oai.org");
        assert!(dotted.is(b"\x06access\x03oai\x03org"));
        assert!(dotted.is(b"Access.OAI.org"));
    }

    #[test]
    fn an_empty_name_is_the_default() {
        assert!(Name::new(b"").is_default());
        assert!(Name::new(b"").is(b""));
        assert!(!Name::new(b"").is(b"x"));
    }

    proptest! {
        #[test]
        fn a_name_is_what_it_was_made_of(octets in prop::collection::vec(any::<u8>(), 0..400)) {
            let name = Name::new(&octets);
            prop_assert!(name.is(&octets));
            prop_assert!(name.0.len() <= LONGEST);
        }

        #[test]
        fn labels_and_dots_agree(labels in prop::collection::vec("[a-z][a-z0-9]{0,20}", 1..5)) {
            let mut wire = Vec::new();
            for label in &labels {
                wire.push(label.len() as u8);
                wire.extend_from_slice(label.as_bytes());
            }
            prop_assert!(Name::new(labels.join(".").as_bytes()).is(&wire));
        }
    }
}
