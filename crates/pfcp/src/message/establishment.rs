//! Reading and writing Session Establishment (§7.5.2, §7.5.3).

use super::group::put_groups;
use super::node::required;
use super::{SessionEstablishmentRequest, SessionEstablishmentResponse};
use crate::cause::{Cause, RuleId};
use crate::encode::encode_ie;
use crate::error::DecodeError;
use crate::ie::wire::{put, put_option};
use crate::ie_type;
use crate::tlv::{Ie, Ies};

/// Room for a usual message, so that it is written without moving.
const USUAL_LENGTH: usize = 512;

impl<'a> SessionEstablishmentRequest<'a> {
    /// Reads a body. Rules come in any order and may repeat an identifier: what refers to what is for the
    /// session layer to see.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let (mut node_id, mut cp_fseid) = (None, None);
        let (mut create_pdrs, mut create_fars, mut create_urrs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut create_qers, mut create_bars) = (Vec::new(), Vec::new());
        let (mut pdn_type, mut apn_dnn, mut inactivity_timer, mut s_nssai) = (None, None, None, None);
        let mut user_id = None;
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::NODE_ID => ie.mandatory(&mut node_id)?,
                ie_type::F_SEID => ie.mandatory(&mut cp_fseid)?,
                ie_type::CREATE_PDR => ie.group_listed(&mut create_pdrs)?,
                ie_type::CREATE_FAR => ie.group_listed(&mut create_fars)?,
                ie_type::CREATE_URR => ie.group_listed(&mut create_urrs)?,
                ie_type::CREATE_QER => ie.group_listed(&mut create_qers)?,
                ie_type::CREATE_BAR => ie.group_listed(&mut create_bars)?,
                ie_type::PDN_TYPE => ie.optional(&mut pdn_type)?,
                ie_type::APN_DNN => ie.mandatory(&mut apn_dnn)?,
                ie_type::USER_PLANE_INACTIVITY_TIMER => ie.optional(&mut inactivity_timer)?,
                ie_type::S_NSSAI => ie.optional(&mut s_nssai)?,
                ie_type::USER_ID => ie.optional(&mut user_id)?,
                _ => {}
            }
        }
        let node_id = required(node_id, ie_type::NODE_ID)?;
        let cp_fseid = required(cp_fseid, ie_type::F_SEID)?;
        for (is_missing, kind) in
            [(create_pdrs.is_empty(), ie_type::CREATE_PDR), (create_fars.is_empty(), ie_type::CREATE_FAR)]
        {
            if is_missing {
                return Err(DecodeError::missing(kind, 0));
            }
        }
        Ok(Self {
            node_id,
            cp_fseid,
            create_pdrs,
            create_fars,
            create_urrs,
            create_qers,
            create_bars,
            pdn_type,
            apn_dnn,
            inactivity_timer,
            s_nssai,
            user_id,
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(USUAL_LENGTH);
        put(out, ie_type::NODE_ID, &self.node_id);
        put(out, ie_type::F_SEID, &self.cp_fseid);
        put_groups(out, ie_type::CREATE_PDR, &self.create_pdrs);
        put_groups(out, ie_type::CREATE_FAR, &self.create_fars);
        put_groups(out, ie_type::CREATE_URR, &self.create_urrs);
        put_groups(out, ie_type::CREATE_QER, &self.create_qers);
        put_groups(out, ie_type::CREATE_BAR, &self.create_bars);
        put_option(out, ie_type::PDN_TYPE, self.pdn_type.as_ref());
        put_option(out, ie_type::USER_PLANE_INACTIVITY_TIMER, self.inactivity_timer.as_ref());
        put_option(out, ie_type::APN_DNN, self.apn_dnn.as_ref());
        put_option(out, ie_type::USER_ID, self.user_id.as_ref());
        put_option(out, ie_type::S_NSSAI, self.s_nssai.as_ref());
    }
}

impl SessionEstablishmentResponse {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut node_id, mut cause, mut offending_ie) = (None, None, None);
        let (mut up_fseid, mut created_pdrs, mut failed_rule) = (None, Vec::new(), None);
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::NODE_ID => ie.mandatory(&mut node_id)?,
                ie_type::CAUSE => ie.mandatory(&mut cause)?,
                ie_type::OFFENDING_IE => ie.optional(&mut offending_ie)?,
                ie_type::F_SEID => ie.optional(&mut up_fseid)?,
                ie_type::CREATED_PDR => ie.group_listed(&mut created_pdrs)?,
                ie_type::FAILED_RULE_ID => read_failed_rule(&ie, &mut failed_rule)?,
                _ => {}
            }
        }
        let node_id = required(node_id, ie_type::NODE_ID)?;
        let cause: Cause = required(cause, ie_type::CAUSE)?;
        if cause.is_success() && up_fseid.is_none() {
            return Err(DecodeError::conditional(ie_type::F_SEID, 0));
        }
        Ok(Self { node_id, cause, offending_ie, up_fseid, created_pdrs, failed_rule })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::NODE_ID, &self.node_id);
        put(out, ie_type::CAUSE, &self.cause);
        put_option(out, ie_type::OFFENDING_IE, self.offending_ie.as_ref());
        put_option(out, ie_type::F_SEID, self.up_fseid.as_ref());
        put_groups(out, ie_type::CREATED_PDR, &self.created_pdrs);
        put_failed_rule(out, self.failed_rule);
    }
}

pub(super) fn read_failed_rule(ie: &Ie<'_>, slot: &mut Option<RuleId>) -> Result<(), DecodeError> {
    if slot.is_none() && !ie.value.is_empty() {
        *slot = RuleId::read(ie.value).map_err(|fault| ie.fault(fault))?;
    }
    Ok(())
}

pub(super) fn put_failed_rule(out: &mut Vec<u8>, rule: Option<RuleId>) {
    if let Some(rule) = rule {
        encode_ie(out, ie_type::FAILED_RULE_ID, |out| rule.write(out));
    }
}
