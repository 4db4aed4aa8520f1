//! Node messages (§7.4): heartbeats, associations, node reports.

use super::group::Group;
use crate::cause::Cause;
use crate::encode::encode_ie;
use crate::error::DecodeError;
use crate::ie::wire::{put, put_all, put_option};
use crate::ie::{
    AssociationReleaseFlags, CpFunctionFeatures, GracefulReleasePeriod, NodeId, RecoveryTimeStamp,
    RemoteGtpuPeer, SourceIpAddress, UpFunctionFeatures,
};
use crate::ie_type;
use crate::tlv::Ies;

/// Heartbeat Request (§7.4.2.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatRequest {
    /// When the sender started.
    pub recovery: RecoveryTimeStamp,
    /// Source IP Address, where an address translator is between.
    pub source: Option<SourceIpAddress>,
}

impl HeartbeatRequest {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut recovery, mut source) = (None, None);
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::RECOVERY_TIME_STAMP => ie.mandatory(&mut recovery)?,
                ie_type::SOURCE_IP_ADDRESS => ie.optional(&mut source)?,
                _ => {}
            }
        }
        Ok(Self { recovery: required(recovery, ie_type::RECOVERY_TIME_STAMP)?, source })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::RECOVERY_TIME_STAMP, &self.recovery);
        put_option(out, ie_type::SOURCE_IP_ADDRESS, self.source.as_ref());
    }
}

/// Heartbeat Response (§7.4.2.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatResponse {
    /// When the sender started.
    pub recovery: RecoveryTimeStamp,
}

impl HeartbeatResponse {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut recovery = None;
        for ie in Ies::new(body) {
            let ie = ie?;
            if ie.kind == ie_type::RECOVERY_TIME_STAMP {
                ie.mandatory(&mut recovery)?;
            }
        }
        Ok(Self { recovery: required(recovery, ie_type::RECOVERY_TIME_STAMP)? })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::RECOVERY_TIME_STAMP, &self.recovery);
    }
}

/// Association Setup Request (§7.4.4.1). User-plane resource and pool information, with which a UPF leaves
/// the choice of TEIDs and addresses to an SMF, is ignored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssociationSetupRequest {
    /// Who asks.
    pub node_id: NodeId,
    /// When it started.
    pub recovery: RecoveryTimeStamp,
    /// What it can do, if it is a UPF.
    pub up_features: Option<UpFunctionFeatures>,
    /// What it can do, if it is an SMF.
    pub cp_features: Option<CpFunctionFeatures>,
    /// PFCP Session Retention Information is there: sessions of an association before this one shall stay.
    pub session_retention: bool,
}

impl AssociationSetupRequest {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut node_id, mut recovery, mut up_features, mut cp_features) = (None, None, None, None);
        let mut session_retention = false;
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::NODE_ID => ie.mandatory(&mut node_id)?,
                ie_type::RECOVERY_TIME_STAMP => ie.mandatory(&mut recovery)?,
                ie_type::UP_FUNCTION_FEATURES => ie.optional(&mut up_features)?,
                ie_type::CP_FUNCTION_FEATURES => ie.optional(&mut cp_features)?,
                ie_type::PFCP_SESSION_RETENTION_INFORMATION => session_retention = true,
                _ => {}
            }
        }
        Ok(Self {
            node_id: required(node_id, ie_type::NODE_ID)?,
            recovery: required(recovery, ie_type::RECOVERY_TIME_STAMP)?,
            up_features,
            cp_features,
            session_retention,
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::NODE_ID, &self.node_id);
        put(out, ie_type::RECOVERY_TIME_STAMP, &self.recovery);
        put_option(out, ie_type::UP_FUNCTION_FEATURES, self.up_features.as_ref());
        put_option(out, ie_type::CP_FUNCTION_FEATURES, self.cp_features.as_ref());
        if self.session_retention {
            encode_ie(out, ie_type::PFCP_SESSION_RETENTION_INFORMATION, |_| ());
        }
    }
}

/// Association Setup Response (§7.4.4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssociationSetupResponse {
    /// Who answers.
    pub node_id: NodeId,
    /// How it ended.
    pub cause: Cause,
    /// When the sender started.
    pub recovery: RecoveryTimeStamp,
    /// What it can do, if it is a UPF.
    pub up_features: Option<UpFunctionFeatures>,
    /// What it can do, if it is an SMF.
    pub cp_features: Option<CpFunctionFeatures>,
}

impl AssociationSetupResponse {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut node_id, mut cause, mut recovery) = (None, None, None);
        let (mut up_features, mut cp_features) = (None, None);
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::NODE_ID => ie.mandatory(&mut node_id)?,
                ie_type::CAUSE => ie.mandatory(&mut cause)?,
                ie_type::RECOVERY_TIME_STAMP => ie.mandatory(&mut recovery)?,
                ie_type::UP_FUNCTION_FEATURES => ie.optional(&mut up_features)?,
                ie_type::CP_FUNCTION_FEATURES => ie.optional(&mut cp_features)?,
                _ => {}
            }
        }
        Ok(Self {
            node_id: required(node_id, ie_type::NODE_ID)?,
            cause: required(cause, ie_type::CAUSE)?,
            recovery: required(recovery, ie_type::RECOVERY_TIME_STAMP)?,
            up_features,
            cp_features,
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::NODE_ID, &self.node_id);
        put(out, ie_type::CAUSE, &self.cause);
        put(out, ie_type::RECOVERY_TIME_STAMP, &self.recovery);
        put_option(out, ie_type::UP_FUNCTION_FEATURES, self.up_features.as_ref());
        put_option(out, ie_type::CP_FUNCTION_FEATURES, self.cp_features.as_ref());
    }
}

/// Association Update Request (§7.4.4.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssociationUpdateRequest {
    /// Who asks.
    pub node_id: NodeId,
    /// SARR of PFCP Association Release Request: the UPF asks to be released.
    pub release_requested: bool,
    /// URSS of PFCP Association Release Request: it reports its sessions' usage first.
    pub reports_usage: bool,
    /// Graceful Release Period: when it goes at the latest.
    pub graceful_release: Option<GracefulReleasePeriod>,
    /// What the UPF can do now.
    pub up_features: Option<UpFunctionFeatures>,
    /// What the SMF can do now.
    pub cp_features: Option<CpFunctionFeatures>,
}

impl AssociationUpdateRequest {
    /// A UPF's request to be released.
    pub const fn release(node_id: NodeId) -> Self {
        Self {
            node_id,
            release_requested: true,
            reports_usage: false,
            graceful_release: None,
            up_features: None,
            cp_features: None,
        }
    }

    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut node_id, mut flags, mut graceful_release) = (None, None, None);
        let (mut up_features, mut cp_features) = (None, None);
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::NODE_ID => ie.mandatory(&mut node_id)?,
                ie_type::PFCP_ASSOCIATION_RELEASE_REQUEST => ie.optional(&mut flags)?,
                ie_type::GRACEFUL_RELEASE_PERIOD => ie.optional(&mut graceful_release)?,
                ie_type::UP_FUNCTION_FEATURES => ie.optional(&mut up_features)?,
                ie_type::CP_FUNCTION_FEATURES => ie.optional(&mut cp_features)?,
                _ => {}
            }
        }
        let AssociationReleaseFlags { release, reports_usage } = flags.unwrap_or_default();
        Ok(Self {
            node_id: required(node_id, ie_type::NODE_ID)?,
            release_requested: release,
            reports_usage,
            graceful_release,
            up_features,
            cp_features,
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::NODE_ID, &self.node_id);
        put_option(out, ie_type::UP_FUNCTION_FEATURES, self.up_features.as_ref());
        put_option(out, ie_type::CP_FUNCTION_FEATURES, self.cp_features.as_ref());
        let flags =
            AssociationReleaseFlags { release: self.release_requested, reports_usage: self.reports_usage };
        if flags != AssociationReleaseFlags::default() {
            put(out, ie_type::PFCP_ASSOCIATION_RELEASE_REQUEST, &flags);
        }
        put_option(out, ie_type::GRACEFUL_RELEASE_PERIOD, self.graceful_release.as_ref());
    }
}

/// Association Release Request (§7.4.4.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssociationReleaseRequest {
    /// Who asks.
    pub node_id: NodeId,
}

impl AssociationReleaseRequest {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        find_node_id(body).map(|node_id| Self { node_id })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::NODE_ID, &self.node_id);
    }
}

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $name {
            /// Who answers.
            pub node_id: NodeId,
            /// How it ended.
            pub cause: Cause,
        }

        impl $name {
            /// Reads a body.
            pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
                let Answer { node_id, cause, offending_ie: _ } = Answer::decode(body)?;
                Ok(Self { node_id: required(node_id, ie_type::NODE_ID)?, cause })
            }

            /// Appends the body.
            pub fn encode(&self, out: &mut Vec<u8>) {
                put(out, ie_type::NODE_ID, &self.node_id);
                put(out, ie_type::CAUSE, &self.cause);
            }
        }
    )*};
}

answers! {
    /// Association Update Response (§7.4.4.4).
    AssociationUpdateResponse;
    /// Association Release Response (§7.4.4.6).
    AssociationReleaseResponse;
}

macro_rules! answers_with_offending_ie {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $name {
            /// Who answers.
            pub node_id: NodeId,
            /// How it ended.
            pub cause: Cause,
            /// The IE at fault.
            pub offending_ie: Option<u16>,
        }

        impl $name {
            /// Reads a body.
            pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
                let Answer { node_id, cause, offending_ie } = Answer::decode(body)?;
                Ok(Self { node_id: required(node_id, ie_type::NODE_ID)?, cause, offending_ie })
            }

            /// Appends the body.
            pub fn encode(&self, out: &mut Vec<u8>) {
                put(out, ie_type::NODE_ID, &self.node_id);
                put(out, ie_type::CAUSE, &self.cause);
                put_option(out, ie_type::OFFENDING_IE, self.offending_ie.as_ref());
            }
        }
    )*};
}

answers_with_offending_ie! {
    /// Node Report Response (§7.4.5.2).
    NodeReportResponse;
    /// Session Set Deletion Response (§7.4.6.2).
    SessionSetDeletionResponse;
}

/// Node Report Request (§7.4.5.1): what a UPF has to say about paths, not sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeReportRequest<'a> {
    /// Who reports.
    pub node_id: NodeId,
    /// UPFR: the other ends of paths that failed.
    pub failed_paths: Vec<RemoteGtpuPeer<'a>>,
    /// UPRR: the other ends of paths that are back.
    pub recovered_paths: Vec<RemoteGtpuPeer<'a>>,
}

impl<'a> NodeReportRequest<'a> {
    /// Reads a body. Reports of other kinds (clock drift, path QoS, restarts of peers) are ignored.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let (mut node_id, mut types) = (None, None::<u8>);
        let (mut failed, mut recovered) = (None::<Paths>, None::<Paths>);
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::NODE_ID => ie.mandatory(&mut node_id)?,
                ie_type::NODE_REPORT_TYPE => ie.mandatory(&mut types)?,
                ie_type::USER_PLANE_PATH_FAILURE_REPORT => ie.group_once(&mut failed)?,
                ie_type::USER_PLANE_PATH_RECOVERY_REPORT => ie.group_once(&mut recovered)?,
                _ => {}
            }
        }
        let types = required(types, ie_type::NODE_REPORT_TYPE)?;
        for (bit, is_there, kind) in [
            (1, failed.is_some(), ie_type::USER_PLANE_PATH_FAILURE_REPORT),
            (2, recovered.is_some(), ie_type::USER_PLANE_PATH_RECOVERY_REPORT),
        ] {
            if types & bit != 0 && !is_there {
                return Err(DecodeError::conditional(kind, 0));
            }
        }
        Ok(Self {
            node_id: required(node_id, ie_type::NODE_ID)?,
            failed_paths: failed.unwrap_or_default().0,
            recovered_paths: recovered.unwrap_or_default().0,
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::NODE_ID, &self.node_id);
        let types = u8::from(!self.failed_paths.is_empty()) | u8::from(!self.recovered_paths.is_empty()) << 1;
        put(out, ie_type::NODE_REPORT_TYPE, &types);
        for (kind, paths) in [
            (ie_type::USER_PLANE_PATH_FAILURE_REPORT, &self.failed_paths),
            (ie_type::USER_PLANE_PATH_RECOVERY_REPORT, &self.recovered_paths),
        ] {
            if !paths.is_empty() {
                encode_ie(out, kind, |out| put_all(out, ie_type::REMOTE_GTPU_PEER, paths));
            }
        }
    }
}

#[derive(Default)]
struct Paths<'a>(Vec<RemoteGtpuPeer<'a>>);

impl<'a> Group<'a> for Paths<'a> {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let mut peers = Vec::new();
        for ie in ies {
            let ie = ie?;
            if ie.kind == ie_type::REMOTE_GTPU_PEER {
                ie.listed(&mut peers)?;
            }
        }
        if peers.is_empty() {
            return Err(DecodeError::missing(ie_type::REMOTE_GTPU_PEER, start));
        }
        Ok(Self(peers))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_all(out, ie_type::REMOTE_GTPU_PEER, &self.0);
    }
}

/// Session Set Deletion Request (§7.4.6.1): the sessions of a part of the peer that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionSetDeletionRequest<'a> {
    /// Who asks.
    pub node_id: NodeId,
    /// FQ-CSIDs (§8.2.46), as they came: which parts.
    pub fq_csids: Vec<&'a [u8]>,
}

impl<'a> SessionSetDeletionRequest<'a> {
    /// Reads a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let (mut node_id, mut fq_csids) = (None, Vec::new());
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::NODE_ID => ie.mandatory(&mut node_id)?,
                ie_type::FQ_CSID => ie.listed(&mut fq_csids)?,
                _ => {}
            }
        }
        Ok(Self { node_id: required(node_id, ie_type::NODE_ID)?, fq_csids })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::NODE_ID, &self.node_id);
        put_all(out, ie_type::FQ_CSID, &self.fq_csids);
    }
}

/// A mandatory IE of a message.
pub(crate) fn required<T>(value: Option<T>, kind: u16) -> Result<T, DecodeError> {
    value.ok_or(DecodeError::missing(kind, 0))
}

/// What every answer has, or may have.
pub(crate) struct Answer {
    pub(crate) node_id: Option<NodeId>,
    pub(crate) cause: Cause,
    pub(crate) offending_ie: Option<u16>,
}

impl Answer {
    pub(crate) fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut node_id, mut cause, mut offending_ie) = (None, None, None);
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::NODE_ID => ie.mandatory(&mut node_id)?,
                ie_type::CAUSE => ie.mandatory(&mut cause)?,
                ie_type::OFFENDING_IE => ie.optional(&mut offending_ie)?,
                _ => {}
            }
        }
        Ok(Self { node_id, cause: required(cause, ie_type::CAUSE)?, offending_ie })
    }
}

fn find_node_id(body: &[u8]) -> Result<NodeId, DecodeError> {
    let mut node_id = None;
    for ie in Ies::new(body) {
        let ie = ie?;
        if ie.kind == ie_type::NODE_ID {
            ie.mandatory(&mut node_id)?;
        }
    }
    required(node_id, ie_type::NODE_ID)
}
