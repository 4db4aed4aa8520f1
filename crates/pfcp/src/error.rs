//! Why a message was refused, in the words of the answer that says so.

use crate::cause::{Cause, RuleId};
use crate::ie_type;

/// A message body that can't be taken: what goes into the answer's Cause, Offending IE and Failed Rule ID (§7.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{cause}{}{} at octet {offset}", OfIe(*offending_ie), OfRule(*failed_rule))]
pub struct DecodeError {
    /// Cause.
    pub cause: Cause,
    /// The IE at fault, where there is one to name.
    pub offending_ie: Option<u16>,
    /// The rule whose IE it was, where the request named one.
    pub failed_rule: Option<RuleId>,
    /// Where: octets from the start of the message's body.
    pub offset: usize,
}

impl DecodeError {
    pub(crate) const fn new(cause: Cause, kind: u16, offset: usize) -> Self {
        Self { cause, offending_ie: Some(kind), failed_rule: None, offset }
    }

    /// A mandatory IE of this kind is not in the message or group that starts at `offset` (§7.6.4.1).
    pub(crate) const fn missing(kind: u16, offset: usize) -> Self {
        Self::new(Cause::MANDATORY_IE_MISSING, kind, offset)
    }

    /// An IE that something else in the message calls for is absent (§7.6.4.2).
    pub(crate) const fn conditional(kind: u16, offset: usize) -> Self {
        Self::new(Cause::CONDITIONAL_IE_MISSING, kind, offset)
    }
}

/// What is wrong with one IE's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// Shorter than what its flags promise.
    Length,
    /// Says something that it can't mean.
    Incorrect,
}

impl Fault {
    pub(crate) const fn cause(self) -> Cause {
        match self {
            Self::Length => Cause::INVALID_LENGTH,
            Self::Incorrect => Cause::MANDATORY_IE_INCORRECT,
        }
    }
}

struct OfIe(Option<u16>);

impl std::fmt::Display for OfIe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.map(|kind| (kind, ie_type::name(kind))) {
            None => Ok(()),
            Some((_, Some(name))) => write!(f, ": {name}"),
            Some((kind, None)) => write!(f, ": IE {kind}"),
        }
    }
}

struct OfRule(Option<RuleId>);

impl std::fmt::Display for OfRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |rule| write!(f, " of {rule}"))
    }
}
