//! What a recogniser is.

use crate::Protocol;
use crate::classify::message::{Carrier, Message};

/// What a recogniser says of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It isn't this protocol.
    No,
    /// It may be: what comes next on this flow, of either side, will tell.
    Next,
    /// It begins so, but it isn't whole: to be shown again with what follows. For streams; a datagram is never longer than it is.
    Longer,
    /// It looks like it, but chance may look so, too. It counts if nothing better is found.
    Perhaps,
    /// It is, and nothing that follows will say more.
    Is,
    /// It is, and what follows will say more about the application: only this recogniser is shown it.
    Open,
    /// It is. What follows is another protocol's that is carried by this one (STARTTLS, a proxy's tunnel), and is looked at anew.
    Within,
    /// It is another protocol of the same family, and nothing that follows will say more.
    Other(Protocol),
}

impl Answer {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Next => "may be, what comes next will tell",
            Self::Longer => "begins so, but isn't whole",
            Self::Perhaps => "looks like it",
            Self::Is => "is",
            Self::Open => "is, and more may be said",
            Self::Within => "is, and carries another one",
            Self::Other(_) => "is, or one of its family",
        }
    }
}

/// Which carriers a protocol is looked for on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carriers(u8);

impl Carriers {
    /// Streams.
    pub const TCP: Self = Self(1);
    /// Datagrams.
    pub const UDP: Self = Self(2);
    /// Both.
    pub const BOTH: Self = Self(3);
    /// SCTP.
    pub const SCTP: Self = Self(4);
    /// SCTP, or a stream.
    pub const TCP_SCTP: Self = Self(5);

    /// Whether this is one of them.
    pub const fn has(self, carrier: Carrier) -> bool {
        let bit = match carrier {
            Carrier::Tcp => 1,
            Carrier::Udp => 2,
            Carrier::Sctp => 4,
        };
        self.0 & bit != 0
    }
}

/// What the first octet of a message may be. Others are not shown, so this is what keeps recognisers cheap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    /// Whatever.
    Any,
    /// One of these, whichever side says it.
    Of(&'static [u8]),
    /// From this to that, both included.
    Range(u8, u8),
}

impl First {
    /// Whether it may be this one.
    pub fn allows(self, octet: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Of(octets) => octets.contains(&octet),
            Self::Range(from, to) => (from..=to).contains(&octet),
        }
    }
}

/// How sure a recogniser can be. Stronger ones are asked first, and what they say stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Strength {
    /// Four octets or more that nobody else sends, or lengths and codes that fit in many places.
    Magic,
    /// A structure that is checked as a whole: chance makes it once in 2^24 messages or less.
    Structure,
    /// A few values that fit: others may look so. Believed on the usual ports, or if both sides look so.
    Shape,
}

/// Knows one protocol.
#[derive(Clone, Copy, Debug)]
pub struct Recogniser {
    /// Which.
    pub protocol: Protocol,
    /// What carries it.
    pub carriers: Carriers,
    /// The ports that its servers usually have: there it is asked before others.
    pub ports: &'static [u16],
    /// The first octets of its messages.
    pub first: First,
    /// How sure it is.
    pub strength: Strength,
    /// Looks at a message. Must be cheap where the answer is no, and bounded always.
    pub probe: fn(&mut Message<'_>) -> Answer,
}
