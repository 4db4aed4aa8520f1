//! Create URR, Update URR and Usage Report (§7.5.2.4, §7.5.4.4, §7.5.8.3).

use super::group::{Group, find, put_group};
use super::{CreateUrr, UpdateUrr, UrrParameters};
use crate::cause::RuleId;
use crate::error::DecodeError;
use crate::ids::UrrId;
use crate::ie::wire::{put, put_all, put_option};
use crate::ie::{ApplicationDetection, UsageReport};
use crate::ie_type;
use crate::tlv::{Ie, Ies};

fn rule(ies: Ies<'_>) -> Option<RuleId> {
    find::<UrrId>(ies, ie_type::URR_ID).map(RuleId::Urr)
}

impl UrrParameters {
    /// Takes an IE that creation and update have in common.
    fn take(&mut self, ie: &Ie<'_>) -> Result<(), DecodeError> {
        match ie.kind {
            ie_type::MEASUREMENT_PERIOD => ie.optional(&mut self.period),
            ie_type::VOLUME_THRESHOLD => ie.optional(&mut self.volume_threshold),
            ie_type::VOLUME_QUOTA => ie.optional(&mut self.volume_quota),
            ie_type::TIME_THRESHOLD => ie.optional(&mut self.time_threshold),
            ie_type::TIME_QUOTA => ie.optional(&mut self.time_quota),
            ie_type::QUOTA_HOLDING_TIME => ie.optional(&mut self.quota_holding_time),
            ie_type::QUOTA_VALIDITY_TIME => ie.optional(&mut self.quota_validity_time),
            ie_type::INACTIVITY_DETECTION_TIME => ie.optional(&mut self.inactivity_detection_time),
            ie_type::LINKED_URR_ID => ie.listed(&mut self.linked_urrs),
            ie_type::MEASUREMENT_INFORMATION => ie.optional(&mut self.information),
            _ => Ok(()),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_option(out, ie_type::MEASUREMENT_PERIOD, self.period.as_ref());
        put_option(out, ie_type::VOLUME_THRESHOLD, self.volume_threshold.as_ref());
        put_option(out, ie_type::VOLUME_QUOTA, self.volume_quota.as_ref());
        put_option(out, ie_type::TIME_THRESHOLD, self.time_threshold.as_ref());
        put_option(out, ie_type::TIME_QUOTA, self.time_quota.as_ref());
        put_option(out, ie_type::QUOTA_HOLDING_TIME, self.quota_holding_time.as_ref());
        put_option(out, ie_type::QUOTA_VALIDITY_TIME, self.quota_validity_time.as_ref());
        put_option(out, ie_type::INACTIVITY_DETECTION_TIME, self.inactivity_detection_time.as_ref());
        put_all(out, ie_type::LINKED_URR_ID, &self.linked_urrs);
        put_option(out, ie_type::MEASUREMENT_INFORMATION, self.information.as_ref());
    }
}

impl<'a> Group<'a> for UpdateUrr {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let (mut id, mut method, mut triggers) = (None, None, None);
        let mut parameters = UrrParameters::default();
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::URR_ID => ie.mandatory(&mut id)?,
                ie_type::MEASUREMENT_METHOD => ie.optional(&mut method)?,
                ie_type::REPORTING_TRIGGERS => ie.optional(&mut triggers)?,
                _ => parameters.take(&ie)?,
            }
        }
        let id = id.ok_or_else(|| DecodeError::missing(ie_type::URR_ID, start))?;
        Ok(Self { id, method, triggers, parameters })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::URR_ID, &self.id);
        put_option(out, ie_type::MEASUREMENT_METHOD, self.method.as_ref());
        put_option(out, ie_type::REPORTING_TRIGGERS, self.triggers.as_ref());
        self.parameters.put(out);
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}

impl<'a> Group<'a> for CreateUrr {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let missing = |kind| DecodeError::missing(kind, start);
        let UpdateUrr { id, method, triggers, parameters } = UpdateUrr::decode(ies)?;
        Ok(Self {
            id,
            method: method.ok_or_else(|| missing(ie_type::MEASUREMENT_METHOD))?,
            triggers: triggers.ok_or_else(|| missing(ie_type::REPORTING_TRIGGERS))?,
            parameters,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::URR_ID, &self.id);
        put(out, ie_type::MEASUREMENT_METHOD, &self.method);
        put(out, ie_type::REPORTING_TRIGGERS, &self.triggers);
        self.parameters.put(out);
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}

impl<'a> Group<'a> for UsageReport {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let at = ies.offset();
        let missing = |kind| DecodeError::missing(kind, at);
        let (mut urr, mut sequence, mut trigger) = (None, None, None);
        let (mut start, mut end, mut volume, mut duration) = (None, None, None, None);
        let (mut first_packet, mut last_packet, mut application) = (None, None, None);
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::URR_ID => ie.mandatory(&mut urr)?,
                ie_type::UR_SEQN => ie.mandatory(&mut sequence)?,
                ie_type::USAGE_REPORT_TRIGGER => ie.mandatory(&mut trigger)?,
                ie_type::START_TIME => ie.optional(&mut start)?,
                ie_type::END_TIME => ie.optional(&mut end)?,
                ie_type::VOLUME_MEASUREMENT => ie.optional(&mut volume)?,
                ie_type::DURATION_MEASUREMENT => ie.optional(&mut duration)?,
                ie_type::TIME_OF_FIRST_PACKET => ie.optional(&mut first_packet)?,
                ie_type::TIME_OF_LAST_PACKET => ie.optional(&mut last_packet)?,
                ie_type::APPLICATION_DETECTION_INFORMATION => ie.group_once(&mut application)?,
                _ => {}
            }
        }
        Ok(Self {
            urr: urr.ok_or_else(|| missing(ie_type::URR_ID))?,
            sequence: sequence.ok_or_else(|| missing(ie_type::UR_SEQN))?,
            trigger: trigger.ok_or_else(|| missing(ie_type::USAGE_REPORT_TRIGGER))?,
            start,
            end,
            volume,
            duration,
            first_packet,
            last_packet,
            application,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::URR_ID, &self.urr);
        put(out, ie_type::UR_SEQN, &self.sequence);
        put(out, ie_type::USAGE_REPORT_TRIGGER, &self.trigger);
        put_option(out, ie_type::START_TIME, self.start.as_ref());
        put_option(out, ie_type::END_TIME, self.end.as_ref());
        put_option(out, ie_type::VOLUME_MEASUREMENT, self.volume.as_ref());
        put_option(out, ie_type::DURATION_MEASUREMENT, self.duration.as_ref());
        put_option(out, ie_type::TIME_OF_FIRST_PACKET, self.first_packet.as_ref());
        put_option(out, ie_type::TIME_OF_LAST_PACKET, self.last_packet.as_ref());
        if let Some(application) = &self.application {
            put_group(out, ie_type::APPLICATION_DETECTION_INFORMATION, application);
        }
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}

impl<'a> Group<'a> for ApplicationDetection {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let (mut application_id, mut instance, mut flow) = (None::<&[u8]>, None::<&[u8]>, None);
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::APPLICATION_ID => ie.mandatory(&mut application_id)?,
                ie_type::APPLICATION_INSTANCE_ID => ie.optional(&mut instance)?,
                ie_type::FLOW_INFORMATION => ie.optional(&mut flow)?,
                _ => {}
            }
        }
        let application_id =
            application_id.ok_or_else(|| DecodeError::missing(ie_type::APPLICATION_ID, start))?;
        Ok(Self { application_id: application_id.into(), instance: instance.map(Into::into), flow })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::APPLICATION_ID, &&*self.application_id);
        put_option(out, ie_type::APPLICATION_INSTANCE_ID, self.instance.as_deref().as_ref());
        put_option(out, ie_type::FLOW_INFORMATION, self.flow.as_ref());
    }
}
