//! What a bundle knows: applications, and the rules by which they are found.

use crate::Category;

/// An application of one bundle: its position there. Another bundle may number it otherwise: names are what stays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ApplicationId(pub(super) u16);

impl ApplicationId {
    /// From 0, below [`crate::signatures::Bundle::len`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The same in two octets, for lines and tables.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The one with this number, of a bundle that has it.
    pub const fn from_number(number: u16) -> Self {
        Self(number)
    }
}

/// A rule of one bundle, for "why": [`crate::signatures::Bundle::rule`] has its text and its place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RuleId(pub(super) u32);

/// What was found: whose it is, and by which rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Match {
    /// Whose it is.
    pub application: ApplicationId,
    /// By which rule.
    pub rule: RuleId,
}

/// An application, or a service of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Application {
    /// By which rules and files name it; the same in all versions: `youtube`.
    pub name: Box<str>,
    /// As people write it: `YouTube`.
    pub display: Box<str>,
    /// What it is for.
    pub category: Category,
    /// What it is a part of, as uploads are of YouTube.
    pub parent: Option<ApplicationId>,
}

macro_rules! kinds {
    ($($variant:ident = $key:literal, $name:literal, $about:literal;)*) => {
        /// What a rule looks at.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Kind {
            $(#[doc = $about] $variant,)*
        }

        impl Kind {
            /// All, in the order of their numbers; the compiled form keeps these.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The key under which files list such rules.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$variant => $key),* }
            }

            /// As it is called in a sentence.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// One line about it.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about),* }
            }
        }
    };
}

kinds! {
    Host = "hosts", "host", "A name and all below it; `=name` for it alone; `a.*.name` with a part that varies";
    Keyword = "keywords", "keyword", "Letters anywhere in a name that no host rule fits";
    Regex = "regexes", "regular expression", "A regular expression for names that nothing else fits";
    Certificate = "certificates", "certificate name", "A name on a server's certificate, as hosts are written";
    Alpn = "alpns", "ALPN", "What TLS is asked to carry (RFC 7301)";
    Ja4 = "ja4s", "JA4", "The fingerprint of a ClientHello";
    Agent = "agents", "user agent", "Words in a user agent, whatever their case";
    Address = "addresses", "address", "A prefix of servers' addresses";
    Port = "ports", "port", "A server's port and its carrier: `udp/3478-3481`";
    Pattern = "patterns", "pattern", "Octets of a payload: `udp@0 |01 00|hello`, `tcp /regex/`";
}

/// A rule, for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule<'b> {
    /// Whose it is.
    pub application: ApplicationId,
    /// What it looks at.
    pub kind: Kind,
    /// As it was written, but for case.
    pub text: &'b str,
    /// The file that it was written in.
    pub file: &'b str,
    /// The line there, from 1; 0 where it was not written in a file.
    pub line: u32,
}
