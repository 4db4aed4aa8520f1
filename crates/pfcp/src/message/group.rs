//! Grouped IEs: rules and reports, each a small message of its own within a message.

use crate::cause::{Cause, RuleId};
use crate::encode::encode_ie;
use crate::error::DecodeError;
use crate::ie::wire::{Wire, put};
use crate::tlv::{Ie, Ies};

/// Rules of one kind that a message may create, update or remove before it is refused with "No resources
/// available". Real SMFs send some tens to one session.
pub const MAX_RULES_PER_MESSAGE: usize = 256;

/// The value of a grouped IE.
pub(crate) trait Group<'a>: Sized {
    /// Reads what is in the group.
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError>;
    /// Appends what is in the group.
    fn encode(&self, out: &mut Vec<u8>);
    /// The rule that the group is about, looked for after it was refused.
    fn rule(_ies: Ies<'a>) -> Option<RuleId> {
        None
    }
}

/// The first IE of this kind, if it can be read.
pub(crate) fn find<'a, T: Wire<'a>>(ies: Ies<'a>, kind: u16) -> Option<T> {
    ies.flatten().find(|ie| ie.kind == kind).and_then(|ie| T::read(ie.value).ok())
}

impl<'a> Ie<'a> {
    /// Reads this IE's group.
    fn read_group<T: Group<'a>>(&self) -> Result<T, DecodeError> {
        T::decode(self.group()).map_err(|mut error| {
            if error.failed_rule.is_none() {
                error.failed_rule = T::rule(self.group());
            }
            error
        })
    }

    /// Takes a group that a message has once; a repetition is ignored (§7.6.4.6).
    pub(crate) fn group_once<T: Group<'a>>(&self, slot: &mut Option<T>) -> Result<(), DecodeError> {
        if slot.is_none() {
            *slot = Some(self.read_group()?);
        }
        Ok(())
    }

    /// Takes one of a list of groups.
    pub(crate) fn group_listed<T: Group<'a>>(&self, list: &mut Vec<T>) -> Result<(), DecodeError> {
        if list.len() >= MAX_RULES_PER_MESSAGE {
            return Err(self.refuse(Cause::NO_RESOURCES));
        }
        list.push(self.read_group()?);
        Ok(())
    }

    /// Takes the identifier that is all that a group has to say: "remove this", "query that".
    pub(crate) fn group_of_id<T: Wire<'a>>(&self, list: &mut Vec<T>, kind: u16) -> Result<(), DecodeError> {
        if list.len() >= MAX_RULES_PER_MESSAGE {
            return Err(self.refuse(Cause::NO_RESOURCES));
        }
        let mut id = None;
        for ie in self.group() {
            let ie = ie?;
            if ie.kind == kind {
                ie.mandatory(&mut id)?;
            }
        }
        list.push(id.ok_or_else(|| DecodeError::missing(kind, self.group().offset()))?);
        Ok(())
    }
}

pub(crate) fn put_group<'a, T: Group<'a>>(out: &mut Vec<u8>, kind: u16, group: &T) {
    encode_ie(out, kind, |out| group.encode(out));
}

pub(crate) fn put_groups<'a, T: Group<'a>>(out: &mut Vec<u8>, kind: u16, groups: &[T]) {
    for group in groups {
        put_group(out, kind, group);
    }
}

pub(crate) fn put_groups_of_id<'a, T: Wire<'a>>(out: &mut Vec<u8>, kind: u16, id_kind: u16, ids: &[T]) {
    for id in ids {
        encode_ie(out, kind, |out| put(out, id_kind, id));
    }
}
