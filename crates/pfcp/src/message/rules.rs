//! The rules inside session establishment and modification requests (§7.5.2, §7.5.4).

use crate::ids::{BarId, FarId, PdrId, QerId, UrrId};
use crate::ie::{
    ApplyAction, BitRate, FTeid, GateStatus, Interface, MeasurementInformation, MeasurementMethod,
    OuterHeaderCreation, OuterHeaderRemoval, PolicyId, RedirectInformation, ReportingTriggers, SdfFilter,
    SmReqFlags, UeIpAddress, VolumeLimit,
};
use packet::Qfi;

/// Create PDR (§7.5.2.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatePdr<'a> {
    /// PDR ID.
    pub id: PdrId,
    /// Precedence; lower wins.
    pub precedence: u32,
    /// PDI.
    pub pdi: Pdi<'a>,
    /// Outer Header Removal.
    pub outer_header_removal: Option<OuterHeaderRemoval>,
    /// FAR ID (conditional).
    pub far: Option<FarId>,
    /// URR IDs.
    pub urrs: Vec<UrrId>,
    /// QER IDs.
    pub qers: Vec<QerId>,
}

/// Packet Detection Information (§7.5.2.2-2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pdi<'a> {
    /// Source Interface.
    pub source_interface: Interface,
    /// Local F-TEID.
    pub local_fteid: Option<FTeid>,
    /// Network Instance, as it came; `Some(&[])` where the IE was empty.
    pub network_instance: Option<&'a [u8]>,
    /// UE IP Addresses.
    pub ue_ips: Vec<UeIpAddress>,
    /// SDF Filters.
    pub sdf_filters: Vec<SdfFilter<'a>>,
    /// QFIs.
    pub qfis: Vec<Qfi>,
    /// Application ID.
    pub application_id: Option<&'a [u8]>,
    /// Whether an Ethernet Packet Filter or Ethernet PDU Session Information was there.
    pub ethernet: bool,
    /// Framed-Route texts.
    pub framed_routes: Vec<&'a [u8]>,
    /// Framed-IPv6-Route texts.
    pub framed_ipv6_routes: Vec<&'a [u8]>,
    /// Source Interface Type (3GPP Interface Type), which OAI's SMF sends wrong: not to be relied on.
    pub source_interface_type: Option<u8>,
}

/// Create FAR (§7.5.2.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateFar<'a> {
    /// FAR ID.
    pub id: FarId,
    /// Apply Action.
    pub apply_action: ApplyAction,
    /// Forwarding Parameters.
    pub forwarding: Option<ForwardingParameters<'a>>,
    /// BAR ID.
    pub bar: Option<BarId>,
}

/// Forwarding Parameters (§7.5.2.3-2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardingParameters<'a> {
    /// Destination Interface.
    pub destination_interface: Interface,
    /// Network Instance.
    pub network_instance: Option<&'a [u8]>,
    /// Outer Header Creation.
    pub outer_header_creation: Option<OuterHeaderCreation>,
    /// Transport Level Marking: ToS or traffic class and mask (§8.2.12).
    pub transport_level_marking: Option<[u8; 2]>,
    /// Redirect Information: where else its packets are to go.
    pub redirect: Option<RedirectInformation<'a>>,
    /// Forwarding Policy: the identifier of one that was configured (§8.2.23).
    pub forwarding_policy: Option<PolicyId<'a>>,
}

/// Create URR (§7.5.2.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateUrr {
    /// URR ID.
    pub id: UrrId,
    /// Measurement Method.
    pub method: MeasurementMethod,
    /// Reporting Triggers.
    pub triggers: ReportingTriggers,
    /// What may be updated too.
    pub parameters: UrrParameters,
}

/// The optional parts of Create URR and Update URR.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UrrParameters {
    /// Measurement Period, seconds.
    pub period: Option<u32>,
    /// Volume Threshold.
    pub volume_threshold: Option<VolumeLimit>,
    /// Volume Quota.
    pub volume_quota: Option<VolumeLimit>,
    /// Time Threshold, seconds.
    pub time_threshold: Option<u32>,
    /// Time Quota, seconds.
    pub time_quota: Option<u32>,
    /// Quota Holding Time, seconds.
    pub quota_holding_time: Option<u32>,
    /// Quota Validity Time, seconds. free5GC's SMF sends an absolute NTP time here.
    pub quota_validity_time: Option<u32>,
    /// Inactivity Detection Time, seconds.
    pub inactivity_detection_time: Option<u32>,
    /// Linked URR IDs.
    pub linked_urrs: Vec<UrrId>,
    /// Measurement Information.
    pub information: Option<MeasurementInformation>,
}

/// Create QER (§7.5.2.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateQer {
    /// QER ID.
    pub id: QerId,
    /// Gate Status.
    pub gate: GateStatus,
    /// The rest.
    pub parameters: QerParameters,
}

/// The optional parts of Create QER and Update QER.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QerParameters {
    /// QER Correlation ID.
    pub correlation_id: Option<u32>,
    /// Maximum Bitrate.
    pub mbr: Option<BitRate>,
    /// Guaranteed Bitrate.
    pub gbr: Option<BitRate>,
    /// QoS flow identifier.
    pub qfi: Option<Qfi>,
    /// Reflective QoS.
    pub reflective: Option<bool>,
    /// Paging Policy Indicator.
    pub paging_policy: Option<u8>,
    /// Averaging Window, milliseconds.
    pub averaging_window: Option<u32>,
}

/// Create BAR (§7.5.2.6), and Update BAR in a modification request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateBar {
    /// BAR ID.
    pub id: BarId,
    /// Downlink Data Notification Delay, in units of 50 ms.
    pub notification_delay: Option<u8>,
    /// Suggested Buffering Packets Count.
    pub suggested_packets: Option<u8>,
}

/// Update PDR (§7.5.4.2). What is absent stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdatePdr<'a> {
    /// PDR ID.
    pub id: PdrId,
    /// Outer Header Removal.
    pub outer_header_removal: Option<OuterHeaderRemoval>,
    /// Precedence.
    pub precedence: Option<u32>,
    /// PDI.
    pub pdi: Option<Pdi<'a>>,
    /// FAR ID.
    pub far: Option<FarId>,
    /// URR IDs; empty: unchanged.
    pub urrs: Vec<UrrId>,
    /// QER IDs; empty: unchanged.
    pub qers: Vec<QerId>,
}

/// Update FAR (§7.5.4.3). What is absent stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdateFar<'a> {
    /// FAR ID.
    pub id: FarId,
    /// Apply Action.
    pub apply_action: Option<ApplyAction>,
    /// Update Forwarding Parameters.
    pub forwarding: Option<UpdateForwardingParameters<'a>>,
    /// BAR ID.
    pub bar: Option<BarId>,
}

/// Update Forwarding Parameters (§7.5.4.3-2). What is absent stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UpdateForwardingParameters<'a> {
    /// Destination Interface.
    pub destination_interface: Option<Interface>,
    /// Network Instance.
    pub network_instance: Option<&'a [u8]>,
    /// Outer Header Creation.
    pub outer_header_creation: Option<OuterHeaderCreation>,
    /// Transport Level Marking.
    pub transport_level_marking: Option<[u8; 2]>,
    /// PFCPSMReq-Flags: SNDEM.
    pub flags: SmReqFlags,
    /// Redirect Information.
    pub redirect: Option<RedirectInformation<'a>>,
    /// Forwarding Policy.
    pub forwarding_policy: Option<PolicyId<'a>>,
}

/// Update URR (§7.5.4.4). What is absent stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdateUrr {
    /// URR ID.
    pub id: UrrId,
    /// Measurement Method.
    pub method: Option<MeasurementMethod>,
    /// Reporting Triggers.
    pub triggers: Option<ReportingTriggers>,
    /// The rest.
    pub parameters: UrrParameters,
}

/// Update QER (§7.5.4.5). What is absent stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdateQer {
    /// QER ID.
    pub id: QerId,
    /// Gate Status.
    pub gate: Option<GateStatus>,
    /// The rest.
    pub parameters: QerParameters,
}
