//! What was found out of a flow, and why.

use crate::Protocol;
use crate::signatures::ApplicationId;

macro_rules! reasons {
    ($(#[$outer:meta])* $name:ident { $($variant:ident = $text:literal, $confidence:ident;)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum $name {
            $(#[doc = $text] $variant,)*
        }

        impl $name {
            /// All, from strong to weak.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// In words.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// How much it is worth.
            pub const fn confidence(self) -> Confidence {
                match self { $(Self::$variant => Confidence::$confidence),* }
            }
        }
    };
}

/// How sure a verdict is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// It was written in messages, and their structure was checked.
    Certain,
    /// A strong sign that is no proof.
    Likely,
    /// The best guess that there is.
    Guess,
    /// Nothing is known.
    None,
}

impl Confidence {
    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Guess => "guess",
            Self::None => "none",
        }
    }
}

reasons! {
    /// What the protocol of a verdict rests on.
    Reason {
        Parser = "a message was parsed", Certain;
        Header = "the IP header says so", Certain;
        UsualShape = "messages have its shape, on its usual port", Certain;
        BothSides = "messages of both sides have its shape", Likely;
        Begins = "a message begins so, but was never whole", Likely;
        Shape = "messages have its shape", Guess;
        Behaviour = "nobody knows it, but its packets behave so", Guess;
        Port = "the port is its usual one, and nothing was said that could be parsed", Guess;
        Silent = "nothing was said that could be parsed", None;
        Unlike = "what was said fits nothing that is known", None;
    }
}

reasons! {
    /// What the application of a verdict rests on.
    Evidence {
        Host = "the name of the server in a message", Certain;
        Certificate = "a name in the server's certificate", Certain;
        Agent = "what the client says of itself", Likely;
        Alpn = "the protocol that is offered inside (ALPN)", Likely;
        Fingerprint = "the fingerprint of the client's hello (JA4)", Likely;
        Pattern = "a pattern in the payload", Likely;
        Memory = "the server's address was the answer to a question for its name", Likely;
        Address = "the server's address is in the application's range", Guess;
        Port = "the server's port", Guess;
        Nothing = "nothing", None;
    }
}

/// What was found out of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Verdict {
    /// What it speaks; `None`: unknown.
    pub protocol: Option<Protocol>,
    /// What carries that, if it began as something else (STARTTLS, a proxy's tunnel).
    pub over: Option<Protocol>,
    /// What it is used for.
    pub application: Option<ApplicationId>,
    /// Why this protocol.
    pub reason: Reason,
    /// Why this application.
    pub evidence: Evidence,
}

impl Verdict {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        protocol: None,
        over: None,
        application: None,
        reason: Reason::Silent,
        evidence: Evidence::Nothing,
    };
}
