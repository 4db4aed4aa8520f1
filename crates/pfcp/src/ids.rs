//! Identifiers of TS 29.244 as types.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    };
}

id!(/// Session Endpoint Identifier (§7.2.2.4.2).
    Seid(u64), "{:#018x}");
id!(/// Packet Detection Rule ID (§8.2.36).
    PdrId(u16), "{}");
id!(/// Forwarding Action Rule ID (§8.2.74).
    FarId(u32), "{}");
id!(/// QoS Enforcement Rule ID (§8.2.75).
    QerId(u32), "{}");
id!(/// Usage Reporting Rule ID (§8.2.54).
    UrrId(u32), "{}");
id!(/// Buffering Action Rule ID (§8.2.88).
    BarId(u8), "{}");
id!(/// PFCP message sequence number, 24 bits (§7.2.2.3).
    SequenceNumber(u32), "{}");
