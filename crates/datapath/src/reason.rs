//! Why a packet was not forwarded: one enum, one counter each, one label, one row of documentation.

macro_rules! reasons {
    ($($(#[$attr:meta])* $name:ident = $label:literal, $meaning:literal;)*) => {
        /// Why a packet was dropped, or diverted from the fast path for good.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $meaning] $(#[$attr])* $name,)*
        }

        impl Reason {
            /// Every reason, in the order of the counters.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name that counters, traces and documents use.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }

            /// What it means and, where there is one, the remedy.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

reasons! {
    Malformed = "malformed", "A header's length or version contradicts the packet's bytes.";
    NotForUs = "not-for-us", "The destination MAC address is another station's.";
    UnknownEtherType = "unknown-ethertype", "Neither IPv4, IPv6 nor ARP.";
    UnknownVlan = "unknown-vlan", "No interface is configured for this port and VLAN.";
}
