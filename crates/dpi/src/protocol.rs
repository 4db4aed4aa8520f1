//! The protocols that are known.
//!
//! This is the one list: a protocol has its row here, and its recogniser in [`crate::protocols`]. The table in the documentation is made of it.

use crate::Category;

macro_rules! protocols {
    ($($variant:ident = $name:literal, $category:ident, $about:literal;)*) => {
        /// A protocol; the numbers are not stable between versions, the names are.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        pub enum Protocol {
            $(#[doc = $about] $variant,)*
        }

        impl Protocol {
            /// All, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// As it is printed.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// One line about it.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about),* }
            }

            /// What it is for.
            pub const fn category(self) -> Category {
                match self { $(Self::$variant => Category::$category),* }
            }
        }
    };
}

// Kept in families, as `protocols` has its files; within a family in the order of names.
protocols! {
    // The web
    Tls = "TLS", Web, "Transport Layer Security, RFC 8446 and before";
    // Terminals
    Ssh = "SSH", RemoteAccess, "Secure Shell, RFC 4253";
}

impl Protocol {
    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }
}
