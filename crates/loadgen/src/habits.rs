//! What each SMF puts on N4: the same intentions (establish, activate, idle, hand over, query, delete), the shapes of six
//! implementations.
//!
//! The shapes were read from the public code of Open5GS, free5GC, OMEC (Aether), OpenAirInterface and pfcpsim; they are
//! imitated with their oddities, because a UPF must live with those. [`Habit::Plain`] is what TS 29.244 says.

use crate::application_rule::ApplicationRule;
use crate::facts::{PduType, SessionFacts};
use crate::smf::Operation;
use crate::wire::{UeIp, Writer};
use packet::Qfi;
use pfcp::{FarId, Header, MessageType, PdrId, QerId, Seid, SequenceNumber, UrrId, ie_type as ie};
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Whose manners the SMF has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Habit {
    /// As the standard has it: two PDRs, two FARs, one QER and one URR, F-TEID chosen by the UPF.
    #[default]
    Plain,
    /// F-TEID with V4, V6, CH and CHOOSE ID 5; outer header removal 6; labels as network instance; the UE's address on
    /// the downlink PDR only; two PDRs to and from the CP function in IPv6 sessions; BUFF|NOCP without parameters at
    /// first; URR on the downlink PDR only.
    Open5gs,
    /// TEIDs and N3 address by the SMF; rule IDs unique per UPF; FORW without outer header at first; two QERs per PDR;
    /// two URRs; CP F-SEID in every modification; PFCPSMReq-Flags in every Update FAR, with SNDEM never reset.
    Free5gc,
    /// F-TEID with CH only; UE address by CHV4 without S/D; empty network instance downlink; N6-LAN as destination;
    /// DROP at first; message priorities; an F-SEID in the deletion request; no URR.
    Omec,
    /// CHOOSE ID 42; uplink rules only at first, downlink rules by the first modification, all removed when idle; own
    /// SEID in the establishment's header; a wrong source interface type; no QER; thresholds of 1,000 B.
    Oai,
    /// TEIDs by the SMF; one-octet Apply Action; a filter that says everything; two QERs per PDR, the first of which has
    /// QFI 0; DROP at first, with the outer header of nobody (TEID 0, 0.0.0.0).
    Pfcpsim,
}

impl Habit {
    /// Every habit.
    pub const ALL: [Self; 6] =
        [Self::Plain, Self::Open5gs, Self::Free5gc, Self::Omec, Self::Oai, Self::Pfcpsim];

    /// Its name in commands and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Open5gs => "open5gs",
            Self::Free5gc => "free5gc",
            Self::Omec => "omec",
            Self::Oai => "oai",
            Self::Pfcpsim => "pfcpsim",
        }
    }

    /// The PDU session type that this SMF makes of the one wished for: some know IPv4 only.
    pub const fn pdu_type(self, wished: PduType) -> PduType {
        match self {
            Self::Plain | Self::Open5gs => wished,
            Self::Free5gc | Self::Omec | Self::Oai | Self::Pfcpsim => PduType::Ipv4,
        }
    }

    /// Whether this SMF names TEID and N3 address itself.
    pub const fn chooses_teid(self) -> bool {
        matches!(self, Self::Free5gc | Self::Pfcpsim)
    }
}

/// The name is no habit's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no SMF that can be imitated: use plain, open5gs, free5gc, omec, oai or pfcpsim")]
pub struct UnknownHabit(pub String);

impl FromStr for Habit {
    type Err = UnknownHabit;

    fn from_str(name: &str) -> Result<Self, UnknownHabit> {
        Self::ALL.into_iter().find(|habit| habit.name() == name).ok_or_else(|| UnknownHabit(name.to_owned()))
    }
}

/// What sessions are made of, as far as the habit leaves it open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The data network name.
    pub dnn: String,
    /// MBR of a session's QER in kbit/s, uplink and downlink; `None`: a QER without rates (QFI and open gates).
    pub mbr_kbps: Option<(u64, u64)>,
    /// Volume threshold of a session's URR, total bytes.
    pub volume_threshold: u64,
    /// Measurement period of a session's URR in seconds.
    pub period_s: Option<u32>,
    /// Whether sessions have URRs (where the habit has them at all).
    pub usage: bool,
    /// Pairs of PDRs with an SDF filter each, before the default pair; [`Habit::Plain`] only.
    pub filtered_pairs: u16,
    /// Rules for applications, before all others; [`Habit::Plain`] only.
    pub applications: Vec<ApplicationRule>,
    /// Let the UPF choose the UE's address (CHV4, CHV6), [`Habit::Plain`] only; OMEC does where the UPF can.
    pub choose_ue_ip: bool,
    /// Whether the gNB's tunnel is in the establishment already, [`Habit::Plain`] only. Else it comes by activation.
    pub gnb_at_once: bool,
    /// Ask for an IPv6 N3 address, [`Habit::Plain`] only.
    pub n3_ipv6: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            dnn: "internet".into(),
            mbr_kbps: None,
            volume_threshold: 100 << 20,
            period_s: None,
            usage: true,
            filtered_pairs: 0,
            applications: Vec::new(),
            choose_ue_ip: false,
            gnb_at_once: false,
            n3_ipv6: false,
        }
    }
}

/// A session's rules by purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleIds {
    /// Default uplink PDR.
    pub ul_pdr: PdrId,
    /// Default downlink PDR.
    pub dl_pdr: PdrId,
    /// Uplink FAR.
    pub ul_far: FarId,
    /// Downlink FAR: the one that activation, idle and handover update.
    pub dl_far: FarId,
    /// The flow's QER.
    pub qer: QerId,
    /// The session's AMBR QER, where the habit has a second one.
    pub ambr_qer: QerId,
    /// The URR.
    pub urr: UrrId,
    /// The second URR, where the habit has one.
    pub second_urr: UrrId,
}

impl RuleIds {
    /// The IDs of session number `index` in its `generation`-th life (OAI creates its rules anew at each activation).
    pub const fn of(habit: Habit, index: u32, generation: u8) -> Self {
        let (pdr, far, qer, urr) = match habit {
            Habit::Plain | Habit::Omec => (1, 1, 1, 1),
            // The session's QER is 0, the flow's 3.
            Habit::Pfcpsim => {
                let ids = Self::of(Habit::Plain, index, generation);
                return Self { qer: QerId(3), ambr_qer: QerId(0), ..ids };
            }
            // Downlink first.
            Habit::Open5gs => {
                return Self {
                    ul_pdr: PdrId(2),
                    dl_pdr: PdrId(1),
                    ul_far: FarId(2),
                    dl_far: FarId(1),
                    qer: QerId(1),
                    ambr_qer: QerId(1),
                    urr: UrrId(1),
                    second_urr: UrrId(1),
                };
            }
            // One counter per UPF; PDR IDs have 16 bits and begin again.
            Habit::Free5gc => ((index % 32_000) as u16 * 2 + 1, index * 2 + 1, index * 2 + 1, index * 2 + 1),
            Habit::Oai => {
                let id = generation as u16 * 2 % 60_000 + 1;
                (id, id as u32, 1, 1)
            }
        };
        Self {
            ul_pdr: PdrId(pdr),
            dl_pdr: PdrId(pdr + 1),
            ul_far: FarId(far),
            dl_far: FarId(far + 1),
            qer: QerId(qer),
            ambr_qer: QerId(qer + 1),
            urr: UrrId(urr),
            second_urr: UrrId(urr + 1),
        }
    }
}

/// Everything a request is written from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) habit: Habit,
    pub(crate) shape: &'a Shape,
    /// The SMF's own address: Node ID and CP F-SEID.
    pub(crate) smf: IpAddr,
    pub(crate) kind: PduType,
    /// Cp_seid, addresses, QFI; TEID and N3 address where the SMF chooses them.
    pub(crate) facts: &'a SessionFacts,
    pub(crate) ids: RuleIds,
    pub(crate) sequence: SequenceNumber,
    /// SNDEM was set before, and this SMF forgets to reset it.
    pub(crate) sticky_end_marker: bool,
    /// The UPF said that it allocates UE addresses (UEIP).
    pub(crate) upf_allocates_ue_ip: bool,
}

pub(crate) const ACCESS: u8 = 0;
pub(crate) const CORE: u8 = 1;
pub(crate) const N6_LAN: u8 = 2;
pub(crate) const CP_FUNCTION: u8 = 3;
pub(crate) const DROP: u8 = 1;
pub(crate) const FORW: u8 = 2;
pub(crate) const BUFF_NOCP: u8 = 4 | 8;
const SNDEM: u8 = 2;
pub(crate) const VOLTH: u8 = 2;
pub(crate) const PERIO: u8 = 1;
pub(crate) const TIMTH: u8 = 4;
impl Context<'_> {
    fn header(&self, message_type: MessageType, seid: Seid) -> Header {
        let priority = match (self.habit, message_type) {
            (Habit::Omec, MessageType::SESSION_DELETION_REQUEST) => Some(12),
            (Habit::Omec, _) => Some(0),
            _ => None,
        };
        Header { priority, ..Header::session(message_type, seid, self.sequence) }
    }

    /// The request for a step in the session's life.
    pub(crate) fn request(&self, operation: Operation, out: &mut Vec<u8>) {
        match operation {
            Operation::Establish => self.establish(out),
            Operation::Activate => self.activate(out),
            Operation::Idle => self.idle(out),
            Operation::Handover => self.handover(out),
            Operation::Query => self.query(out),
            Operation::Delete => self.delete(out),
        }
    }

    /// Session Establishment Request.
    fn establish(&self, out: &mut Vec<u8>) {
        // Before there is a UP SEID the header's is zero (§7.2.2.4.2); newer OAI puts its own there.
        let seid = if self.habit == Habit::Oai { self.facts.cp_seid } else { Seid(0) };
        let header = self.header(MessageType::SESSION_ESTABLISHMENT_REQUEST, seid);
        Writer::message(out, &header, |w| {
            w.node_id(self.smf);
            w.f_seid(self.facts.cp_seid.0, self.smf);
            match self.habit {
                Habit::Plain => self.plain_rules(w),
                Habit::Open5gs => self.open5gs_rules(w),
                Habit::Free5gc => self.free5gc_rules(w),
                Habit::Omec => self.omec_rules(w),
                Habit::Oai => {
                    self.oai_rule(w, true);
                    if self.shape.usage {
                        self.oai_urr(w);
                    }
                }
                Habit::Pfcpsim => self.pfcpsim_rules(w),
            }
            if !matches!(self.habit, Habit::Pfcpsim) {
                w.u8(ie::PDN_TYPE, pdn_type(self.kind));
            }
        });
    }

    /// The gNB is known: packets to the UE go into its tunnel.
    fn activate(&self, out: &mut Vec<u8>) {
        self.modify(out, |context, w| {
            if context.habit == Habit::Oai {
                // The first activation finds the uplink rule of the establishment; later ones find nothing.
                if context.ids.ul_pdr != RuleIds::of(Habit::Oai, 0, 0).ul_pdr {
                    context.oai_rule(w, true);
                }
                context.oai_rule(w, false);
            } else {
                context.update_downlink(w, FORW, true, 0);
            }
        });
    }

    /// The UE went idle: packets to it wait, and the first of them is announced.
    fn idle(&self, out: &mut Vec<u8>) {
        self.modify(out, |context, w| match context.habit {
            Habit::Oai => {
                for pdr in [context.ids.ul_pdr, context.ids.dl_pdr] {
                    w.group(ie::REMOVE_PDR, |w| w.u16(ie::PDR_ID, pdr.0));
                }
                for far in [context.ids.ul_far, context.ids.dl_far] {
                    w.group(ie::REMOVE_FAR, |w| w.u32(ie::FAR_ID, far.0));
                }
            }
            // The old outer header stays in the message.
            Habit::Free5gc => context.update_downlink(w, BUFF_NOCP, true, 0),
            _ => context.update_downlink(w, BUFF_NOCP, false, 0),
        });
    }

    /// Another gNB: the tunnel changes, and the old one is closed with an end marker.
    fn handover(&self, out: &mut Vec<u8>) {
        self.modify(out, |context, w| {
            context.update_downlink(w, FORW, true, SNDEM);
        });
    }

    /// Asks for usage.
    fn query(&self, out: &mut Vec<u8>) {
        self.modify(out, |context, w| {
            w.group(ie::QUERY_URR, |w| w.u32(ie::URR_ID, context.ids.urr.0));
        });
    }

    fn modify(&self, out: &mut Vec<u8>, body: impl FnOnce(&Self, &mut Writer<'_>)) {
        let header = self.header(MessageType::SESSION_MODIFICATION_REQUEST, self.facts.up_seid);
        Writer::message(out, &header, |w| {
            if self.habit == Habit::Free5gc {
                w.f_seid(self.facts.cp_seid.0, self.smf);
            }
            body(self, w);
        });
    }

    /// Session Deletion Request.
    fn delete(&self, out: &mut Vec<u8>) {
        let header = self.header(MessageType::SESSION_DELETION_REQUEST, self.facts.up_seid);
        Writer::message(out, &header, |w| {
            if self.habit == Habit::Omec {
                w.f_seid(self.facts.cp_seid.0, self.smf);
            }
        });
    }

    fn update_downlink(&self, w: &mut Writer<'_>, action: u8, tunnel: bool, flags: u8) {
        w.group(ie::UPDATE_FAR, |w| {
            w.u32(ie::FAR_ID, self.ids.dl_far.0);
            self.apply_action(w, action);
            if action == BUFF_NOCP && self.habit == Habit::Open5gs {
                w.u8(ie::BAR_ID, 1);
            }
            if !tunnel {
                return;
            }
            w.group(ie::UPDATE_FORWARDING_PARAMETERS, |w| {
                w.u8(ie::DESTINATION_INTERFACE, ACCESS);
                self.downlink_network_instance(w);
                w.outer_header_creation(self.facts.dl_teid, self.facts.gnb);
                if self.habit == Habit::Open5gs {
                    w.u8(ie::INTERFACE_TYPE, N3_3GPP);
                }
                let flags = if self.sticky_end_marker { flags | SNDEM } else { flags };
                if flags != 0 || self.habit == Habit::Free5gc {
                    w.u8(ie::PFCPSMREQ_FLAGS, flags);
                }
            });
        });
    }

    /// Two octets since Release 16 (§8.2.26); pfcpsim writes one.
    pub(crate) fn apply_action(&self, w: &mut Writer<'_>, action: u8) {
        if self.habit == Habit::Pfcpsim {
            w.u8(ie::APPLY_ACTION, action);
        } else {
            w.bytes(ie::APPLY_ACTION, &[action, 0]);
        }
    }

    pub(crate) fn network_instance(&self, w: &mut Writer<'_>) {
        match self.habit {
            Habit::Open5gs => w.labels(ie::NETWORK_INSTANCE, &self.shape.dnn),
            Habit::Oai => w.bytes(ie::NETWORK_INSTANCE, b"access.oai.org"),
            _ => w.bytes(ie::NETWORK_INSTANCE, self.shape.dnn.as_bytes()),
        }
    }

    pub(crate) fn downlink_network_instance(&self, w: &mut Writer<'_>) {
        match self.habit {
            Habit::Omec => w.bytes(ie::NETWORK_INSTANCE, b""),
            Habit::Oai => w.bytes(ie::NETWORK_INSTANCE, b"core.oai.org"),
            _ => self.network_instance(w),
        }
    }

    /// The UE's addresses as the SMF chose them.
    pub(crate) fn ue_ip(&self, destination: bool) -> UeIp {
        UeIp {
            ipv4: self.facts.ue_ipv4,
            ipv6: self.facts.ue_ipv6.map(|net| net.network()),
            destination,
            ..UeIp::default()
        }
    }

    pub(crate) fn create_far(&self, w: &mut Writer<'_>, id: FarId, action: u8, to: Option<u8>, tunnel: bool) {
        w.group(ie::CREATE_FAR, |w| {
            w.u32(ie::FAR_ID, id.0);
            self.apply_action(w, action);
            let Some(to) = to else { return };
            w.group(ie::FORWARDING_PARAMETERS, |w| {
                w.u8(ie::DESTINATION_INTERFACE, to);
                if to == ACCESS {
                    self.downlink_network_instance(w);
                } else {
                    self.network_instance(w);
                }
                if tunnel {
                    w.outer_header_creation(self.facts.dl_teid, self.facts.gnb);
                }
            });
        });
    }

    pub(crate) fn create_urr(&self, w: &mut Writer<'_>, id: UrrId, before_qos: Option<bool>) {
        w.group(ie::CREATE_URR, |w| {
            w.u32(ie::URR_ID, id.0);
            w.u8(ie::MEASUREMENT_METHOD, 2);
            let triggers = VOLTH | if self.shape.period_s.is_some() { PERIO } else { 0 };
            w.bytes(ie::REPORTING_TRIGGERS, &[triggers, 0, 0]);
            if let Some(period) = self.shape.period_s {
                w.u32(ie::MEASUREMENT_PERIOD, period);
            }
            let limit = Some(self.shape.volume_threshold);
            if self.habit == Habit::Free5gc {
                w.volume_threshold(None, limit, limit);
            } else {
                w.volume_threshold(limit, None, None);
            }
            if let Some(before) = before_qos {
                w.u8(ie::MEASUREMENT_INFORMATION, u8::from(before));
            }
        });
    }
}

/// A QER with open gates.
pub(crate) fn create_qer(w: &mut Writer<'_>, id: QerId, qfi: Option<Qfi>, mbr_kbps: Option<(u64, u64)>) {
    w.group(ie::CREATE_QER, |w| {
        w.u32(ie::QER_ID, id.0);
        w.u8(ie::GATE_STATUS, 0);
        if let Some((uplink, downlink)) = mbr_kbps {
            w.mbr(uplink, downlink);
        }
        if let Some(qfi) = qfi {
            w.qfi(qfi);
        }
    });
}

/// 3GPP Interface Type (§8.2.118): N3 3GPP Access, N6.
pub(crate) const N3_3GPP: u8 = 11;
pub(crate) const N6_3GPP: u8 = 17;

const fn pdn_type(kind: PduType) -> u8 {
    match kind {
        PduType::Ipv4 => 1,
        PduType::Ipv6 => 2,
        PduType::Ipv4v6 => 3,
    }
}

/// An address that stands for "not yet".
pub(crate) const UNKNOWN: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
