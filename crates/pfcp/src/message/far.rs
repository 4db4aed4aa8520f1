//! Create FAR and Update FAR, with their forwarding parameters (§7.5.2.3, §7.5.4.3).

use super::group::{Group, find, put_group};
use super::{CreateFar, ForwardingParameters, UpdateFar, UpdateForwardingParameters};
use crate::cause::RuleId;
use crate::error::DecodeError;
use crate::ids::FarId;
use crate::ie::ApplyAction;
use crate::ie::wire::{put, put_option};
use crate::ie_type;
use crate::tlv::Ies;

fn rule(ies: Ies<'_>) -> Option<RuleId> {
    find::<FarId>(ies, ie_type::FAR_ID).map(RuleId::Far)
}

impl<'a> Group<'a> for CreateFar<'a> {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let missing = |kind| DecodeError::missing(kind, start);
        let (mut id, mut apply_action, mut forwarding, mut bar) = (None, None, None, None);
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::FAR_ID => ie.mandatory(&mut id)?,
                ie_type::APPLY_ACTION => ie.mandatory(&mut apply_action)?,
                ie_type::FORWARDING_PARAMETERS => ie.group_once(&mut forwarding)?,
                ie_type::BAR_ID => ie.optional(&mut bar)?,
                _ => {}
            }
        }
        let id = id.ok_or_else(|| missing(ie_type::FAR_ID))?;
        let apply_action: ApplyAction = apply_action.ok_or_else(|| missing(ie_type::APPLY_ACTION))?;
        if apply_action.has(ApplyAction::FORW) && forwarding.is_none() {
            // "Shall be present when the Apply Action requests the packets to be forwarded."
            return Err(DecodeError::conditional(ie_type::FORWARDING_PARAMETERS, start));
        }
        Ok(Self { id, apply_action, forwarding, bar })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::FAR_ID, &self.id);
        put(out, ie_type::APPLY_ACTION, &self.apply_action);
        if let Some(forwarding) = &self.forwarding {
            put_group(out, ie_type::FORWARDING_PARAMETERS, forwarding);
        }
        put_option(out, ie_type::BAR_ID, self.bar.as_ref());
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}

impl<'a> Group<'a> for UpdateFar<'a> {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let (mut id, mut apply_action, mut forwarding, mut bar) = (None, None, None, None);
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::FAR_ID => ie.mandatory(&mut id)?,
                ie_type::APPLY_ACTION => ie.optional(&mut apply_action)?,
                ie_type::UPDATE_FORWARDING_PARAMETERS => ie.group_once(&mut forwarding)?,
                ie_type::BAR_ID => ie.optional(&mut bar)?,
                _ => {}
            }
        }
        let id = id.ok_or_else(|| DecodeError::missing(ie_type::FAR_ID, start))?;
        Ok(Self { id, apply_action, forwarding, bar })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::FAR_ID, &self.id);
        put_option(out, ie_type::APPLY_ACTION, self.apply_action.as_ref());
        if let Some(forwarding) = &self.forwarding {
            put_group(out, ie_type::UPDATE_FORWARDING_PARAMETERS, forwarding);
        }
        put_option(out, ie_type::BAR_ID, self.bar.as_ref());
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}

impl<'a> Group<'a> for UpdateForwardingParameters<'a> {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let mut parameters = Self::default();
        let mut flags = None;
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::DESTINATION_INTERFACE => ie.optional(&mut parameters.destination_interface)?,
                ie_type::NETWORK_INSTANCE => ie.mandatory(&mut parameters.network_instance)?,
                ie_type::OUTER_HEADER_CREATION => ie.optional(&mut parameters.outer_header_creation)?,
                ie_type::TRANSPORT_LEVEL_MARKING => ie.optional(&mut parameters.transport_level_marking)?,
                ie_type::PFCPSMREQ_FLAGS => ie.optional(&mut flags)?,
                ie_type::REDIRECT_INFORMATION => ie.optional(&mut parameters.redirect)?,
                ie_type::FORWARDING_POLICY => ie.optional(&mut parameters.forwarding_policy)?,
                _ => {}
            }
        }
        parameters.flags = flags.unwrap_or_default();
        Ok(parameters)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_option(out, ie_type::DESTINATION_INTERFACE, self.destination_interface.as_ref());
        put_option(out, ie_type::NETWORK_INSTANCE, self.network_instance.as_ref());
        put_option(out, ie_type::OUTER_HEADER_CREATION, self.outer_header_creation.as_ref());
        put_option(out, ie_type::TRANSPORT_LEVEL_MARKING, self.transport_level_marking.as_ref());
        put_option(out, ie_type::REDIRECT_INFORMATION, self.redirect.as_ref());
        put_option(out, ie_type::FORWARDING_POLICY, self.forwarding_policy.as_ref());
        if self.flags.any() {
            put(out, ie_type::PFCPSMREQ_FLAGS, &self.flags);
        }
    }
}

impl<'a> Group<'a> for ForwardingParameters<'a> {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        // An update's parameters are these with one of them optional and flags on top.
        let UpdateForwardingParameters {
            destination_interface,
            network_instance,
            outer_header_creation,
            transport_level_marking,
            flags: _,
            redirect,
            forwarding_policy,
        } = UpdateForwardingParameters::decode(ies)?;
        Ok(Self {
            destination_interface: destination_interface
                .ok_or_else(|| DecodeError::missing(ie_type::DESTINATION_INTERFACE, start))?,
            network_instance,
            outer_header_creation,
            transport_level_marking,
            redirect,
            forwarding_policy,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::DESTINATION_INTERFACE, &self.destination_interface);
        put_option(out, ie_type::NETWORK_INSTANCE, self.network_instance.as_ref());
        put_option(out, ie_type::OUTER_HEADER_CREATION, self.outer_header_creation.as_ref());
        put_option(out, ie_type::TRANSPORT_LEVEL_MARKING, self.transport_level_marking.as_ref());
        put_option(out, ie_type::REDIRECT_INFORMATION, self.redirect.as_ref());
        put_option(out, ie_type::FORWARDING_POLICY, self.forwarding_policy.as_ref());
    }
}
