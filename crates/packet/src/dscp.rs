//! Names of DiffServ code points, and the drop precedence that some of them carry.

use crate::Dscp;

/// How ready a packet is to be dropped where its queue fills (RFC 2597 §2). The colours are those of RFC 2697 and
/// RFC 2698, whose meters hand them out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum DropPrecedence {
    /// AFx1, and every code point that says nothing of it: dropped last.
    #[default]
    Green,
    /// AFx2.
    Yellow,
    /// AFx3: dropped first.
    Red,
}

impl DropPrecedence {
    /// All of them; a value's place is its `as usize`.
    pub const ALL: [Self; 3] = [Self::Green, Self::Yellow, Self::Red];
}

macro_rules! code_points {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl Dscp {
            $($(#[$doc])* pub const $name: Self = Self::from_tos($value << 2);)*

            /// Those with a name.
            pub const NAMED: &'static [(&'static str, Self)] = &[$((stringify!($name), Self::$name),)*];
        }
    };
}

code_points! {
    /// Best effort (RFC 2474 §4.1).
    CS0 = 0;
    /// Lower effort (RFC 8622): what may starve.
    LE = 1;
    /// Class selector 1 (RFC 2474 §4.2.2): lower effort before RFC 8622.
    CS1 = 8;
    /// Assured forwarding (RFC 2597 §6), class 1, low drop precedence.
    AF11 = 10;
    /// Class 1, medium.
    AF12 = 12;
    /// Class 1, high.
    AF13 = 14;
    /// Class selector 2: operation and management (RFC 4594 §3.4).
    CS2 = 16;
    /// Class 2, low.
    AF21 = 18;
    /// Class 2, medium.
    AF22 = 20;
    /// Class 2, high.
    AF23 = 22;
    /// Class selector 3: broadcast video (RFC 4594 §4.6).
    CS3 = 24;
    /// Class 3, low.
    AF31 = 26;
    /// Class 3, medium.
    AF32 = 28;
    /// Class 3, high.
    AF33 = 30;
    /// Class selector 4: real-time interactive (RFC 4594 §4.4).
    CS4 = 32;
    /// Class 4, low.
    AF41 = 34;
    /// Class 4, medium.
    AF42 = 36;
    /// Class 4, high.
    AF43 = 38;
    /// Class selector 5: signalling (RFC 4594 §4.2).
    CS5 = 40;
    /// Voice that was admitted (RFC 5865).
    VA = 44;
    /// Expedited forwarding (RFC 3246).
    EF = 46;
    /// Class selector 6: network control (RFC 4594 §3.1).
    CS6 = 48;
    /// Class selector 7.
    CS7 = 56;
}

impl Dscp {
    /// What the assured forwarding code points say about dropping (RFC 2597 §6).
    #[inline]
    pub const fn drop_precedence(self) -> DropPrecedence {
        // Class 1 to 4 in the high three bits, precedence 1 to 3 in the next two, the lowest bit zero.
        match (self.get() >> 3, self.get() & 7) {
            (1..=4, 4) => DropPrecedence::Yellow,
            (1..=4, 6) => DropPrecedence::Red,
            _ => DropPrecedence::Green,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_standards() {
        assert_eq!((Dscp::EF.get(), Dscp::AF41.get(), Dscp::VA.get()), (0b10_1110, 34, 0b10_1100));
        for &(name, dscp) in Dscp::NAMED {
            assert_eq!((name.parse(), dscp.to_string()), (Ok(dscp), name.to_owned()));
        }
        let numbers: std::collections::BTreeSet<_> = Dscp::NAMED.iter().map(|(_, dscp)| *dscp).collect();
        assert_eq!(numbers.len(), Dscp::NAMED.len());
    }

    #[test]
    fn only_assured_forwarding_has_a_drop_precedence() {
        for value in 0..64 {
            let dscp = Dscp::new(value).unwrap();
            let expected = match dscp.to_string().as_str() {
                "AF12" | "AF22" | "AF32" | "AF42" => DropPrecedence::Yellow,
                "AF13" | "AF23" | "AF33" | "AF43" => DropPrecedence::Red,
                _ => DropPrecedence::Green,
            };
            assert_eq!(dscp.drop_precedence(), expected, "{value}");
        }
    }
}
