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
    /// It is, with so many octets of what was shown. What follows them, of this side in the same packet too, is another protocol's that is carried by this
    /// one (STARTTLS, a proxy's tunnel), and is looked at anew. What the other side has said before is this one's.
    Within(usize),
    /// It is another protocol of the same family, and nothing that follows will say more.
    Other(Protocol),
    /// What both sides sent has the shape of another protocol, which is carried by this one and hides in it.
    Alike(Protocol),
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
            Self::Within(_) => "is, and carries another one",
            Self::Other(_) => "is, or one of its family",
            Self::Alike(_) => "is, and by its shape another one that hides in it",
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

/// Where a recogniser is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Places {
    /// About flows of all ports.
    Anywhere,
    /// About flows of its usual ports: without these, nothing would be left that tells its messages from others.
    UsualPorts,
}

/// An octet further on that all messages have in a range, as their standard says. Others, and shorter ones, are not shown: so a recogniser costs next to
/// nothing where any first octet is possible. What may be shown before it is whole (a stream's beginning) has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    at: u8,
    from: u8,
    to: u8,
}

impl Mark {
    /// Whatever.
    pub const NONE: Self = Self { at: 0, from: 0, to: 255 };

    /// Whether these octets have it.
    #[inline]
    pub fn fits(self, octets: &[u8]) -> bool {
        octets.get(usize::from(self.at)).is_some_and(|octet| (self.from..=self.to).contains(octet))
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
    /// Where it is asked.
    pub places: Places,
    /// The first octets of its messages.
    pub first: First,
    /// Another octet of all of them.
    pub mark: Mark,
    /// How sure it is.
    pub strength: Strength,
    /// Looks at a message. Must be cheap where the answer is no, and bounded always.
    pub probe: fn(&mut Message<'_>) -> Answer,
}

impl Recogniser {
    /// The same, but it is asked about flows of its usual ports only.
    #[must_use]
    pub const fn at_home(self) -> Self {
        Self { places: Places::UsualPorts, ..self }
    }

    /// The same, but it is shown messages only whose octet at `at` is in this range, both ends included.
    #[must_use]
    pub const fn having(self, at: u8, from: u8, to: u8) -> Self {
        Self { mark: Mark { at, from, to }, ..self }
    }

    /// Whether it is to be shown a message of these octets.
    pub fn allows(&self, octets: &[u8]) -> bool {
        octets.first().is_some_and(|first| self.first.allows(*first)) && self.mark.fits(octets)
    }
}
