//! Cause (TS 29.244 §8.2.1): how a request ended.

use crate::error::Fault;
use crate::ids::{BarId, FarId, PdrId, QerId, UrrId};
use crate::ie::wire::{Fields, Wire};
use std::fmt;

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
    /// Unknown Application ID (Release 17).
    pub const UNKNOWN_APPLICATION_ID: Self = Self(81);

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

impl Cause {
    /// What it says, in the standard's words; `None` for a value without one here.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::ACCEPTED => "Request accepted",
            Self::MORE_USAGE_REPORT => "More usage report to send",
            Self::PARTIALLY_ACCEPTED => "Request partially accepted",
            Self::REJECTED => "Request rejected",
            Self::SESSION_NOT_FOUND => "Session context not found",
            Self::MANDATORY_IE_MISSING => "Mandatory IE missing",
            Self::CONDITIONAL_IE_MISSING => "Conditional IE missing",
            Self::INVALID_LENGTH => "Invalid length",
            Self::MANDATORY_IE_INCORRECT => "Mandatory IE incorrect",
            Self::INVALID_FORWARDING_POLICY => "Invalid Forwarding Policy",
            Self::INVALID_FTEID_ALLOCATION => "Invalid F-TEID allocation option",
            Self::NO_ASSOCIATION => "No established PFCP Association",
            Self::RULE_FAILURE => "Rule creation/modification Failure",
            Self::CONGESTION => "PFCP entity in congestion",
            Self::NO_RESOURCES => "No resources available",
            Self::SERVICE_NOT_SUPPORTED => "Service not supported",
            Self::SYSTEM_FAILURE => "System failure",
            Self::REDIRECTION_REQUESTED => "Redirection Requested",
            Self::ADDRESSES_OCCUPIED => "All dynamic addresses are occupied",
            Self::UNKNOWN_APPLICATION_ID => "Unknown Application ID",
            _ => return None,
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "cause {}", self.0),
        }
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pdr(id) => write!(f, "PDR {id}"),
            Self::Far(id) => write!(f, "FAR {id}"),
            Self::Qer(id) => write!(f, "QER {id}"),
            Self::Urr(id) => write!(f, "URR {id}"),
            Self::Bar(id) => write!(f, "BAR {id}"),
        }
    }
}

impl RuleId {
    /// Reads a Failed Rule ID (§8.2.80); `None` for a kind of rule that this crate has no word for.
    pub(crate) fn read(value: &[u8]) -> Result<Option<Self>, Fault> {
        let mut fields = Fields(value);
        Ok(Some(match fields.octet()? & 0x1f {
            0 => Self::Pdr(PdrId::read(fields.0)?),
            1 => Self::Far(FarId::read(fields.0)?),
            2 => Self::Qer(QerId::read(fields.0)?),
            3 => Self::Urr(UrrId::read(fields.0)?),
            4 => Self::Bar(BarId::read(fields.0)?),
            _ => return Ok(None),
        }))
    }

    /// Appends the value of a Failed Rule ID.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Pdr(id) => write_kind(out, 0, &id),
            Self::Far(id) => write_kind(out, 1, &id),
            Self::Qer(id) => write_kind(out, 2, &id),
            Self::Urr(id) => write_kind(out, 3, &id),
            Self::Bar(id) => write_kind(out, 4, &id),
        }
    }
}

fn write_kind<'a>(out: &mut Vec<u8>, kind: u8, id: &impl Wire<'a>) {
    out.push(kind);
    id.write(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_rules() {
        for (rule, bytes) in [
            (RuleId::Pdr(PdrId(7)), &[0, 0, 7][..]),
            (RuleId::Far(FarId(7)), &[1, 0, 0, 0, 7]),
            (RuleId::Qer(QerId(7)), &[2, 0, 0, 0, 7]),
            (RuleId::Urr(UrrId(7)), &[3, 0, 0, 0, 7]),
            (RuleId::Bar(BarId(7)), &[4, 7]),
        ] {
            let mut out = Vec::new();
            rule.write(&mut out);
            assert_eq!(out, bytes);
            assert_eq!(RuleId::read(bytes), Ok(Some(rule)));
            assert_eq!(RuleId::read(&bytes[..bytes.len() - 1]), Err(Fault::Length));
        }
        assert_eq!(RuleId::read(&[5, 0, 1]), Ok(None));
    }
}
