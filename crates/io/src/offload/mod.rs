//! What may the NIC do by itself?
//!
//! **Problem.** A few flows carry most of the bytes. A NIC that can match on what is inside a tunnel can take those
//! off a worker: steer them to the queue of the worker that owns them, or forward them without any worker seeing them. Devices
//! differ in what they can, how many rules they hold and how fast they take them, and any of them may say no at any time.
//!
//! **Model.** A [`FlowRule`] is a [`Pattern`] and a list of [`Action`]s. A device implements [`FlowOffload`]: it takes a
//! rule or refuses it for one of a few reasons ([`Refused`]), says what a rule counted, and gives it back. No rule is
//! ever needed: a packet that no rule matches, or that a device doesn't dare to handle, goes to a worker as without
//! offload. [`NoOffload`] is the device that refuses everything.
//!
//! | implementation | what it is |
//! |---|---|
//! | [`NoOffload`] | software alone, the default |
//! | [`MemSwitch`](crate::mem::MemSwitch) | the NIC in memory, with a flow table whose size, speed and moods are chosen |
//! | `dpdk::RteFlow` | `rte_flow` |
//!
//! **Meters** are token buckets with a life of their own (RFC 2697, without an excess burst): they are made before the rules that
//! share them, and outlive these. A packet that a meter has no tokens for is dropped by the device.
//!
//! **Counters** are each rule's own; beside them rules may count into one that they share, which has a life of its own as well.
//!
//! **What a device leaves to software**, whatever the pattern says: fragments, IPv4 options, a TTL of 1 or less,
//! lengths that contradict each other, wrong IPv4 header checksums, and packets longer than [`FlowRule::longest`].
//!
//! **What differs from software.** The IPv4 identification of outer headers is the template's, the same in every packet.
//!
//! ```
//! use io::offload::{Action, Capabilities, Feature, FlowOffload, FlowRule, NoOffload, Pattern, Refused};
//! use packet::MacAddr;
//! use tables::Nanos;
//!
//! let pattern = Pattern::new(MacAddr([2, 0, 0, 0, 0, 1])).to([10, 45, 0, 1].into());
//! let rule = FlowRule { pattern, longest: 1500, may_exceed: false, actions: vec![Action::Queue(3)] };
//! assert_eq!(NoOffload.insert(Nanos(0), &rule), Err(Refused::Unsupported(Feature::Rules)));
//! assert_eq!(NoOffload.capabilities(), Capabilities::default());
//! ```

mod rule;

pub(crate) use rule::outer;
pub use rule::{Action, Container, CounterId, Feature, Features, FlowRule, MeterId, Pattern, TunnelMatch};

use tables::{MeterConfig, Nanos};

/// What a device can, as far as it is known without asking for a particular rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Rules that fit, if the device says so; otherwise it is found out by [`Refused::Full`].
    pub entries: Option<u32>,
    /// What rules may contain.
    pub features: Features,
}

counters::words!(Capabilities { entries, features });

/// A rule in a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle(pub u64);

/// What a rule has handled since it was inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames as they arrived, without FCS.
    pub bytes: u64,
}

counters::words!(Counts { packets, bytes });

/// Why a device didn't take a rule. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It can't do that at all.
    #[error("not supported: {0}")]
    Unsupported(Feature),
    /// It holds as many rules as it can.
    #[error("the device's flow table is full")]
    Full,
    /// It takes no more rules for the moment.
    #[error("the device takes rules more slowly than they come")]
    Busy,
    /// It has a rule for the same packets already.
    #[error("there is a rule for these packets already")]
    Exists,
    /// Anything else, in the device's own words.
    #[error("{0}")]
    Device(String),
}

counters::labels! {
    /// The kinds of [`Refused`], for counters.
    pub enum WhyRefused: "reason" {
        Unsupported = "unsupported", "Refused because the NIC can't do that.";
        Full = "full", "Refused because the NIC's flow table was full.";
        Busy = "busy", "Refused because the NIC took no more flows for the moment.";
        Exists = "exists", "Refused because the NIC had a rule for these packets.";
        Device = "device", "Refused for another reason.";
    }
}

impl Refused {
    /// Its kind.
    pub const fn why(&self) -> WhyRefused {
        match self {
            Self::Unsupported(_) => WhyRefused::Unsupported,
            Self::Full => WhyRefused::Full,
            Self::Busy => WhyRefused::Busy,
            Self::Exists => WhyRefused::Exists,
            Self::Device(_) => WhyRefused::Device,
        }
    }
}

/// A device that doesn't do what it must: its rules can't be relied upon any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It doesn't know a rule that it has taken: it was reset.
    #[error("the device has forgotten its rules")]
    Forgotten,
    /// Anything else, in the device's own words.
    #[error("{0}")]
    Device(String),
}

/// A device that may handle flows by itself. Slow: a call may take microseconds to milliseconds, and none is made for a packet.
pub trait FlowOffload: Send {
    /// What it can.
    fn capabilities(&self) -> Capabilities;

    /// Takes a rule. It is in force when the call returns.
    ///
    /// Errors: see [`Refused`].
    fn insert(&mut self, now: Nanos, rule: &FlowRule) -> Result<Handle, Refused>;

    /// What a rule has counted so far. A rule without [`Action::Count`] has counted nothing.
    ///
    /// Errors: the device has failed.
    fn counts(&mut self, handle: Handle) -> Result<Counts, Failure>;

    /// Takes a rule back; no packet is handled by it once the call has returned. Says what it counted in all.
    ///
    /// Errors: the device has failed, and the rule may be in force still.
    fn remove(&mut self, handle: Handle) -> Result<Counts, Failure>;

    /// Takes all rules, meters and counters back that were made through this handle on the device.
    ///
    /// Errors: the device has failed, and rules may be in force still.
    fn flush(&mut self) -> Result<(), Failure>;

    /// Makes a counter for [`Action::CountFor`].
    ///
    /// Errors: see [`Refused`].
    fn add_counter(&mut self, _now: Nanos) -> Result<CounterId, Refused> {
        Err(Refused::Unsupported(Feature::SharedCount))
    }

    /// What a counter has counted so far.
    ///
    /// Errors: the device has failed.
    fn counted(&mut self, _counter: CounterId) -> Result<Counts, Failure> {
        Err(Failure::Forgotten)
    }

    /// Takes a counter back that no rule uses any more. Says what it counted in all.
    ///
    /// Errors: the device has failed, or a rule still uses the counter.
    fn remove_counter(&mut self, _counter: CounterId) -> Result<Counts, Failure> {
        Err(Failure::Forgotten)
    }

    /// Makes a meter, full, for [`Action::Meter`]. Between any two moments it lets no more pass than its size and what its rate
    /// brings meanwhile.
    ///
    /// Errors: see [`Refused`].
    fn add_meter(&mut self, _now: Nanos, _config: MeterConfig) -> Result<MeterId, Refused> {
        Err(Refused::Unsupported(Feature::Meter))
    }

    /// Another rate and size for a meter. What it holds doesn't grow by that, and is lost as far as the new size has no room for it.
    ///
    /// Errors: see [`Refused`]; a device that makes it full instead must refuse.
    fn set_meter(&mut self, _now: Nanos, _meter: MeterId, _config: MeterConfig) -> Result<(), Refused> {
        Err(Refused::Unsupported(Feature::Meter))
    }

    /// What a meter has dropped so far.
    ///
    /// Errors: the device has failed.
    fn dropped(&mut self, _meter: MeterId) -> Result<Counts, Failure> {
        Err(Failure::Forgotten)
    }

    /// Takes a meter back that no rule uses any more. Says what it dropped in all.
    ///
    /// Errors: the device has failed, or a rule still uses the meter.
    fn remove_meter(&mut self, _meter: MeterId) -> Result<Counts, Failure> {
        Err(Failure::Forgotten)
    }
}

/// Software alone: refuses everything, and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOffload;

impl FlowOffload for NoOffload {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn insert(&mut self, _now: Nanos, _rule: &FlowRule) -> Result<Handle, Refused> {
        Err(Refused::Unsupported(Feature::Rules))
    }

    fn counts(&mut self, _handle: Handle) -> Result<Counts, Failure> {
        Err(Failure::Forgotten)
    }

    fn remove(&mut self, _handle: Handle) -> Result<Counts, Failure> {
        Err(Failure::Forgotten)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
