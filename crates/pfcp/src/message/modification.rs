//! Reading and writing Session Modification and Session Deletion (§7.5.4 to §7.5.7).

use super::establishment::{put_failed_rule, read_failed_rule};
use super::group::{put_groups, put_groups_of_id};
use super::node::required;
use super::{
    SessionDeletionRequest, SessionDeletionResponse, SessionModificationRequest, SessionModificationResponse,
};
use crate::error::DecodeError;
use crate::ie::wire::{put, put_option};
use crate::ie_type;
use crate::tlv::Ies;

impl<'a> SessionModificationRequest<'a> {
    /// Reads a body. None of its IEs is mandatory.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut request = Self::default();
        let mut flags = None;
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::F_SEID => ie.optional(&mut request.cp_fseid)?,
                ie_type::NODE_ID => ie.optional(&mut request.node_id)?,
                ie_type::REMOVE_PDR => ie.group_of_id(&mut request.remove_pdrs, ie_type::PDR_ID)?,
                ie_type::REMOVE_FAR => ie.group_of_id(&mut request.remove_fars, ie_type::FAR_ID)?,
                ie_type::REMOVE_URR => ie.group_of_id(&mut request.remove_urrs, ie_type::URR_ID)?,
                ie_type::REMOVE_QER => ie.group_of_id(&mut request.remove_qers, ie_type::QER_ID)?,
                ie_type::REMOVE_BAR => ie.group_of_id(&mut request.remove_bars, ie_type::BAR_ID)?,
                ie_type::CREATE_PDR => ie.group_listed(&mut request.create_pdrs)?,
                ie_type::CREATE_FAR => ie.group_listed(&mut request.create_fars)?,
                ie_type::CREATE_URR => ie.group_listed(&mut request.create_urrs)?,
                ie_type::CREATE_QER => ie.group_listed(&mut request.create_qers)?,
                ie_type::CREATE_BAR => ie.group_listed(&mut request.create_bars)?,
                ie_type::UPDATE_PDR => ie.group_listed(&mut request.update_pdrs)?,
                ie_type::UPDATE_FAR => ie.group_listed(&mut request.update_fars)?,
                ie_type::UPDATE_URR => ie.group_listed(&mut request.update_urrs)?,
                ie_type::UPDATE_QER => ie.group_listed(&mut request.update_qers)?,
                ie_type::UPDATE_BAR => ie.group_listed(&mut request.update_bars)?,
                ie_type::PFCPSMREQ_FLAGS => ie.optional(&mut flags)?,
                ie_type::QUERY_URR => ie.group_of_id(&mut request.query_urrs, ie_type::URR_ID)?,
                ie_type::USER_PLANE_INACTIVITY_TIMER => ie.optional(&mut request.inactivity_timer)?,
                _ => {}
            }
        }
        request.flags = flags.unwrap_or_default();
        Ok(request)
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_option(out, ie_type::F_SEID, self.cp_fseid.as_ref());
        put_groups_of_id(out, ie_type::REMOVE_PDR, ie_type::PDR_ID, &self.remove_pdrs);
        put_groups_of_id(out, ie_type::REMOVE_FAR, ie_type::FAR_ID, &self.remove_fars);
        put_groups_of_id(out, ie_type::REMOVE_URR, ie_type::URR_ID, &self.remove_urrs);
        put_groups_of_id(out, ie_type::REMOVE_QER, ie_type::QER_ID, &self.remove_qers);
        put_groups_of_id(out, ie_type::REMOVE_BAR, ie_type::BAR_ID, &self.remove_bars);
        put_groups(out, ie_type::CREATE_PDR, &self.create_pdrs);
        put_groups(out, ie_type::CREATE_FAR, &self.create_fars);
        put_groups(out, ie_type::CREATE_URR, &self.create_urrs);
        put_groups(out, ie_type::CREATE_QER, &self.create_qers);
        put_groups(out, ie_type::CREATE_BAR, &self.create_bars);
        put_groups(out, ie_type::UPDATE_PDR, &self.update_pdrs);
        put_groups(out, ie_type::UPDATE_FAR, &self.update_fars);
        put_groups(out, ie_type::UPDATE_URR, &self.update_urrs);
        put_groups(out, ie_type::UPDATE_QER, &self.update_qers);
        put_groups(out, ie_type::UPDATE_BAR, &self.update_bars);
        if self.flags.any() {
            put(out, ie_type::PFCPSMREQ_FLAGS, &self.flags);
        }
        put_groups_of_id(out, ie_type::QUERY_URR, ie_type::URR_ID, &self.query_urrs);
        put_option(out, ie_type::USER_PLANE_INACTIVITY_TIMER, self.inactivity_timer.as_ref());
        put_option(out, ie_type::NODE_ID, self.node_id.as_ref());
    }
}

impl SessionModificationResponse {
    /// Reads a body. What Updated PDR says is taken as Created PDR: both tell what the UPF chose.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut cause, mut offending_ie, mut failed_rule) = (None, None, None);
        let (mut created_pdrs, mut usage_reports) = (Vec::new(), Vec::new());
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::CAUSE => ie.mandatory(&mut cause)?,
                ie_type::OFFENDING_IE => ie.optional(&mut offending_ie)?,
                ie_type::CREATED_PDR | ie_type::UPDATED_PDR => ie.group_listed(&mut created_pdrs)?,
                ie_type::USAGE_REPORT_MODIFICATION => ie.group_listed(&mut usage_reports)?,
                ie_type::FAILED_RULE_ID => read_failed_rule(&ie, &mut failed_rule)?,
                _ => {}
            }
        }
        let cause = required(cause, ie_type::CAUSE)?;
        Ok(Self { cause, offending_ie, created_pdrs, usage_reports, failed_rule })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::CAUSE, &self.cause);
        put_option(out, ie_type::OFFENDING_IE, self.offending_ie.as_ref());
        put_groups(out, ie_type::CREATED_PDR, &self.created_pdrs);
        put_groups(out, ie_type::USAGE_REPORT_MODIFICATION, &self.usage_reports);
        put_failed_rule(out, self.failed_rule);
    }
}

impl SessionDeletionRequest {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut request = Self::default();
        for ie in Ies::new(body) {
            let ie = ie?;
            if ie.kind == ie_type::F_SEID {
                ie.optional(&mut request.cp_fseid)?;
            }
        }
        Ok(request)
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_option(out, ie_type::F_SEID, self.cp_fseid.as_ref());
    }
}

impl SessionDeletionResponse {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut cause, mut offending_ie, mut usage_reports) = (None, None, Vec::new());
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::CAUSE => ie.mandatory(&mut cause)?,
                ie_type::OFFENDING_IE => ie.optional(&mut offending_ie)?,
                ie_type::USAGE_REPORT_DELETION => ie.group_listed(&mut usage_reports)?,
                _ => {}
            }
        }
        Ok(Self { cause: required(cause, ie_type::CAUSE)?, offending_ie, usage_reports })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::CAUSE, &self.cause);
        put_option(out, ie_type::OFFENDING_IE, self.offending_ie.as_ref());
        put_groups(out, ie_type::USAGE_REPORT_DELETION, &self.usage_reports);
    }
}
