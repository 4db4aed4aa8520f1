//! Cause (TS 29.244 §8.2.1): how a request ended.

use crate::ids::{BarId, FarId, PdrId, QerId, UrrId};

/// Cause values, as on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Cause(pub u8);

impl Cause {
    /// Request accepted (success).
    pub const ACCEPTED: Self = Self(1);
    /// More usage report to send (success).
    pub const MORE_USAGE_REPORT: Self = Self(2);
    /// Request partially accepted (success).
    pub const PARTIALLY_ACCEPTED: Self = Self(3);
    /// Request rejected, reason not specified.
    pub const REJECTED: Self = Self(64);
    /// Session context not found.
    pub const SESSION_NOT_FOUND: Self = Self(65);
    /// Mandatory IE missing.
    pub const MANDATORY_IE_MISSING: Self = Self(66);
    /// Conditional IE missing.
    pub const CONDITIONAL_IE_MISSING: Self = Self(67);
    /// Invalid length.
    pub const INVALID_LENGTH: Self = Self(68);
    /// Mandatory IE incorrect.
    pub const MANDATORY_IE_INCORRECT: Self = Self(69);
    /// Invalid Forwarding Policy.
    pub const INVALID_FORWARDING_POLICY: Self = Self(70);
    /// Invalid F-TEID allocation option.
    pub const INVALID_FTEID_ALLOCATION: Self = Self(71);
    /// No established PFCP association.
    pub const NO_ASSOCIATION: Self = Self(72);
    /// Rule creation/modification failure.
    pub const RULE_FAILURE: Self = Self(73);
    /// PFCP entity in congestion.
    pub const CONGESTION: Self = Self(74);
    /// No resources available.
    pub const NO_RESOURCES: Self = Self(75);
    /// Service not supported.
    pub const SERVICE_NOT_SUPPORTED: Self = Self(76);
    /// System failure.
    pub const SYSTEM_FAILURE: Self = Self(77);
    /// Redirection requested.
    pub const REDIRECTION_REQUESTED: Self = Self(78);
    /// All dynamic addresses are occupied.
    pub const ADDRESSES_OCCUPIED: Self = Self(79);

    /// Whether the request took effect.
    pub const fn is_success(self) -> bool {
        self.0 < 64
    }
}

/// A rule of any kind: what a Failed Rule ID IE names (§8.2.80).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum RuleId {
    /// Packet detection.
    Pdr(PdrId),
    /// Forwarding action.
    Far(FarId),
    /// QoS enforcement.
    Qer(QerId),
    /// Usage reporting.
    Urr(UrrId),
    /// Buffering action.
    Bar(BarId),
}
