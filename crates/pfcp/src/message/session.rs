//! Session messages (§7.5).

use super::rules::*;
use crate::cause::{Cause, RuleId};
use crate::ids::{BarId, FarId, PdrId, QerId, UrrId};
use crate::ie::{FSeid, FTeid, NodeId, PdnType, SNssai, SmReqFlags, UeIpAddress, UsageReport, UserId};
use packet::{Dscp, Qfi};

/// Session Establishment Request (§7.5.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionEstablishmentRequest<'a> {
    /// The SMF.
    pub node_id: NodeId,
    /// The session at the SMF.
    pub cp_fseid: FSeid,
    /// Create PDR.
    pub create_pdrs: Vec<CreatePdr<'a>>,
    /// Create FAR.
    pub create_fars: Vec<CreateFar<'a>>,
    /// Create URR.
    pub create_urrs: Vec<CreateUrr>,
    /// Create QER.
    pub create_qers: Vec<CreateQer>,
    /// Create BAR.
    pub create_bars: Vec<CreateBar>,
    /// PDN Type.
    pub pdn_type: Option<PdnType>,
    /// APN/DNN, as it came.
    pub apn_dnn: Option<&'a [u8]>,
    /// User Plane Inactivity Timer, seconds.
    pub inactivity_timer: Option<u32>,
    /// S-NSSAI: the network slice.
    pub s_nssai: Option<SNssai>,
    /// User ID.
    pub user_id: Option<UserId<'a>>,
}

/// Session Establishment Response (§7.5.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionEstablishmentResponse {
    /// The UPF.
    pub node_id: NodeId,
    /// How it ended.
    pub cause: Cause,
    /// The IE at fault.
    pub offending_ie: Option<u16>,
    /// The session at the UPF; present on success.
    pub up_fseid: Option<FSeid>,
    /// What the UPF chose.
    pub created_pdrs: Vec<CreatedPdr>,
    /// The rule at fault.
    pub failed_rule: Option<RuleId>,
}

/// Created PDR (§7.5.3.2), and Updated PDR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatedPdr {
    /// PDR ID.
    pub id: PdrId,
    /// Local F-TEID that the UPF chose.
    pub local_fteid: Option<FTeid>,
    /// UE IP Addresses that the UPF chose.
    pub ue_ips: Vec<UeIpAddress>,
}

/// Session Modification Request (§7.5.4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionModificationRequest<'a> {
    /// The session's new place at the SMF.
    pub cp_fseid: Option<FSeid>,
    /// Node ID, where an SMF set takes a session over.
    pub node_id: Option<NodeId>,
    /// Remove PDR.
    pub remove_pdrs: Vec<PdrId>,
    /// Remove FAR.
    pub remove_fars: Vec<FarId>,
    /// Remove URR.
    pub remove_urrs: Vec<UrrId>,
    /// Remove QER.
    pub remove_qers: Vec<QerId>,
    /// Remove BAR.
    pub remove_bars: Vec<BarId>,
    /// Create PDR.
    pub create_pdrs: Vec<CreatePdr<'a>>,
    /// Create FAR.
    pub create_fars: Vec<CreateFar<'a>>,
    /// Create URR.
    pub create_urrs: Vec<CreateUrr>,
    /// Create QER.
    pub create_qers: Vec<CreateQer>,
    /// Create BAR.
    pub create_bars: Vec<CreateBar>,
    /// Update PDR.
    pub update_pdrs: Vec<UpdatePdr<'a>>,
    /// Update FAR.
    pub update_fars: Vec<UpdateFar<'a>>,
    /// Update URR.
    pub update_urrs: Vec<UpdateUrr>,
    /// Update QER.
    pub update_qers: Vec<UpdateQer>,
    /// Update BAR.
    pub update_bars: Vec<CreateBar>,
    /// PFCPSMReq-Flags.
    pub flags: SmReqFlags,
    /// Query URR.
    pub query_urrs: Vec<UrrId>,
    /// User Plane Inactivity Timer, seconds.
    pub inactivity_timer: Option<u32>,
}

/// Session Modification Response (§7.5.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionModificationResponse {
    /// How it ended.
    pub cause: Cause,
    /// The IE at fault.
    pub offending_ie: Option<u16>,
    /// What the UPF chose.
    pub created_pdrs: Vec<CreatedPdr>,
    /// Usage that was asked for, or of removed rules.
    pub usage_reports: Vec<UsageReport>,
    /// The rule at fault.
    pub failed_rule: Option<RuleId>,
}

/// Session Deletion Request (§7.5.6): the SEID in its header says it all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionDeletionRequest {
    /// An F-SEID, which the message does not have but OMEC's SMF sends.
    pub cp_fseid: Option<FSeid>,
}

/// Session Deletion Response (§7.5.7).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionDeletionResponse {
    /// How it ended.
    pub cause: Cause,
    /// The IE at fault.
    pub offending_ie: Option<u16>,
    /// Final usage.
    pub usage_reports: Vec<UsageReport>,
}

/// Session Report Request (§7.5.8).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionReportRequest {
    /// DLDR: Downlink Data Report.
    pub downlink_data: Option<DownlinkDataReport>,
    /// USAR: Usage Reports.
    pub usage_reports: Vec<UsageReport>,
    /// ERIR: F-TEIDs of Error Indication Report.
    pub error_indications: Vec<FTeid>,
    /// UPIR: user plane inactivity.
    pub inactivity: bool,
}

/// Downlink Data Report (§7.5.8.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DownlinkDataReport {
    /// The rules that matched.
    pub pdrs: Vec<PdrId>,
    /// Downlink Data Service Information (§8.2.27): paging policy (DSCP) and QFI.
    pub service: Option<(Option<Dscp>, Option<Qfi>)>,
}

/// Session Report Response (§7.5.9).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionReportResponse {
    /// How it ended.
    pub cause: Cause,
    /// The IE at fault.
    pub offending_ie: Option<u16>,
    /// PFCPSRRsp-Flags DROBU: drop buffered packets.
    pub drop_buffered: bool,
}
