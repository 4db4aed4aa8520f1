//! The classes of a port's scheduler, and which frame belongs to which.

use datapath::Traffic;
use io::steering::{Control, Urgency};
use packet::{DropPrecedence, Dscp};
use std::net::IpAddr;

/// The most classes.
pub const MAX_CLASSES: usize = 8;
/// The most packets that a class queues: some milliseconds of 100 Gbit/s.
pub const GREATEST_QUEUE: u32 = 65_536;
/// Bytes of a packet that a queue's bound in bytes reckons with, unless it is given.
const USUAL_PACKET: u64 = 1_536;

/// When a class sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Before all classes after it, as long as it doesn't exceed its share.
    Strict {
        /// Of what the port sends while others wait, in percent, 1 to 99; `None`: all of it.
        share: Option<u8>,
    },
    /// After the strict ones, in proportion to its weight, 1 to 100.
    Weighted {
        /// Relative to the other weights.
        weight: u8,
    },
}

/// A class of frames, and the bounds of its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its code points; of the class that takes all others, none.
    pub dscps: Vec<Dscp>,
    /// When it sends.
    pub kind: Kind,
    /// The most packets in its queue, 1 to [`GREATEST_QUEUE`].
    pub packets: u32,
    /// The most bytes in its queue.
    pub bytes: u64,
}

impl Class {
    /// With a bound in bytes that fits `packets` full-size packets.
    pub fn new(name: &str, dscps: impl IntoIterator<Item = Dscp>, kind: Kind, packets: u32) -> Self {
        Self {
            name: name.to_owned(),
            dscps: dscps.into_iter().collect(),
            kind,
            packets,
            bytes: u64::from(packets) * USUAL_PACKET,
        }
    }

    /// Whether its queue, which holds `queued`, has room for a packet.
    #[inline]
    pub(super) fn admits(&self, queued: Traffic, length: usize, precedence: DropPrecedence) -> bool {
        let quarters = match precedence {
            DropPrecedence::Green => 4,
            DropPrecedence::Yellow => 3,
            DropPrecedence::Red => 2,
        };
        let packets = u64::from(self.packets);
        (queued.packets + 1) * 4 <= packets * quarters
            && (queued.bytes + length as u64) * 4 <= self.bytes * quarters
    }
}

/// Why there is no such [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassError {
    /// None, or more than [`MAX_CLASSES`].
    #[error("there are 1 to {MAX_CLASSES} egress classes, not {0}")]
    Number(usize),
    /// No class takes the code points that no other has, or several would.
    #[error(
        "{0} egress classes have no code points; exactly one has to, which takes those that no other has"
    )]
    Rest(usize),
    /// A code point in two classes.
    #[error("the code point {} is in the egress classes `{first}` and `{second}`", dscp.get())]
    Twice {
        /// The code point.
        dscp: Dscp,
        /// One class.
        first: String,
        /// The other.
        second: String,
    },
    /// A number that makes no sense.
    #[error("egress class `{class}`: {what}")]
    Value {
        /// The class.
        class: String,
        /// What is wrong.
        what: &'static str,
    },
}

/// The classes of every port, in order, and the way to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    classes: Vec<Class>,
    /// Class by code point.
    by_dscp: [u8; 64],
    control: Control,
}

impl Plan {
    /// These classes, strict ones by urgency. What is not IP and control protocols of `own` addresses
    /// ([`io::steering::Control`]) belong to the class of CS6.
    pub fn new(classes: Vec<Class>, own: impl IntoIterator<Item = IpAddr>) -> Result<Self, ClassError> {
        if !(1..=MAX_CLASSES).contains(&classes.len()) {
            return Err(ClassError::Number(classes.len()));
        }
        let rest = classes.iter().filter(|class| class.dscps.is_empty()).count();
        if rest != 1 {
            return Err(ClassError::Rest(rest));
        }
        for (number, class) in classes.iter().enumerate() {
            let wrong = |what| Err(ClassError::Value { class: class.name.clone(), what });
            match class.kind {
                Kind::Strict { share: Some(share) } if !(1..=99).contains(&share) => {
                    return wrong("a share is 1 to 99 percent");
                }
                Kind::Weighted { weight } if !(1..=100).contains(&weight) => {
                    return wrong("a weight is 1 to 100");
                }
                _ if !(1..=GREATEST_QUEUE).contains(&class.packets) => {
                    return wrong("a queue has 1 to 65,536 packets");
                }
                _ if class.bytes == 0 => return wrong("a queue has at least a byte"),
                _ => {}
            }
            for &dscp in &class.dscps {
                if let Some(first) = classes.iter().take(number).find(|first| first.dscps.contains(&dscp)) {
                    let (first, second) = (first.name.clone(), class.name.clone());
                    return Err(ClassError::Twice { dscp, first, second });
                }
            }
        }
        Ok(Self::tabulate(classes, own))
    }

    /// What a UPF does unless told otherwise.
    pub fn standard(own: impl IntoIterator<Item = IpAddr>) -> Self {
        Self::tabulate(standard_classes(), own)
    }

    fn tabulate(classes: Vec<Class>, own: impl IntoIterator<Item = IpAddr>) -> Self {
        let rest = classes.iter().position(|class| class.dscps.is_empty()).unwrap_or(0);
        let mut by_dscp = [rest as u8; 64];
        for (number, class) in classes.iter().enumerate() {
            for dscp in &class.dscps {
                if let Some(place) = by_dscp.get_mut(usize::from(dscp.get())) {
                    *place = number as u8;
                }
            }
        }
        Self { classes, by_dscp, control: Control::new(own) }
    }

    /// The classes, strict ones by urgency.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The most frames that one port's scheduler holds.
    pub fn frames(&self) -> u32 {
        self.classes.iter().map(|class| class.packets).sum()
    }

    /// The class of an Ethernet frame, and how ready it is to be dropped.
    #[inline]
    pub(super) fn classify(&self, frame: &[u8]) -> (usize, DropPrecedence) {
        let class =
            |dscp: Dscp| self.by_dscp.get(usize::from(dscp.get())).map_or(0, |class| usize::from(*class));
        match self.control.urgency(frame) {
            Urgency::Control => (class(Dscp::CS6), DropPrecedence::Green),
            // Anybody may claim to be network control: the queue's last quarter is for what is.
            Urgency::Marked(dscp @ (Dscp::CS6 | Dscp::CS7)) => (class(dscp), DropPrecedence::Yellow),
            Urgency::Marked(dscp) => (class(dscp), dscp.drop_precedence()),
        }
    }
}

/// Eight classes in the spirit of RFC 4594, most urgent first: network control, voice, the four assured forwarding
/// classes with their class selectors, best effort, lower effort. Together they hold 1,664 packets.
pub fn standard_classes() -> Vec<Class> {
    let strict = |share| Kind::Strict { share: Some(share) };
    let weighted = |weight| Kind::Weighted { weight };
    vec![
        Class::new("control", [Dscp::CS6, Dscp::CS7], strict(20), 128),
        Class::new("voice", [Dscp::EF, Dscp::VA, Dscp::CS5], strict(60), 128),
        Class::new("af4", [Dscp::AF41, Dscp::AF42, Dscp::AF43, Dscp::CS4], weighted(8), 256),
        Class::new("af3", [Dscp::AF31, Dscp::AF32, Dscp::AF33, Dscp::CS3], weighted(6), 256),
        Class::new("af2", [Dscp::AF21, Dscp::AF22, Dscp::AF23, Dscp::CS2], weighted(4), 256),
        Class::new("af1", [Dscp::AF11, Dscp::AF12, Dscp::AF13], weighted(4), 256),
        Class::new("best-effort", [], weighted(4), 256),
        Class::new("lower-effort", [Dscp::LE, Dscp::CS1], weighted(1), 128),
    ]
}
