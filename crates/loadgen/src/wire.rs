//! PFCP requests written octet by octet.
//!
//! Crate `pfcp` writes what the standard wants. An SMF model must also write what SMFs send: one-octet Apply Actions,
//! F-TEIDs without an address family, IEs where none belong. And a judge should not share the codec of whom it
//! judges. So requests are written here; tests read them with `pfcp`, and answers are read with `pfcp`.

use packet::{Qfi, Teid};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IE types of TS 29.244 table 8.1.2-1, as far as an SMF's requests need them.
pub(crate) mod ie {
    pub(crate) const CREATE_PDR: u16 = 1;
    pub(crate) const PDI: u16 = 2;
    pub(crate) const CREATE_FAR: u16 = 3;
    pub(crate) const FORWARDING_PARAMETERS: u16 = 4;
    pub(crate) const CREATE_URR: u16 = 6;
    pub(crate) const CREATE_QER: u16 = 7;
    pub(crate) const UPDATE_FAR: u16 = 10;
    pub(crate) const UPDATE_FORWARDING_PARAMETERS: u16 = 11;
    pub(crate) const REMOVE_PDR: u16 = 15;
    pub(crate) const REMOVE_FAR: u16 = 16;
    pub(crate) const CAUSE: u16 = 19;
    pub(crate) const SOURCE_INTERFACE: u16 = 20;
    pub(crate) const F_TEID: u16 = 21;
    pub(crate) const NETWORK_INSTANCE: u16 = 22;
    pub(crate) const SDF_FILTER: u16 = 23;
    pub(crate) const GATE_STATUS: u16 = 25;
    pub(crate) const MBR: u16 = 26;
    pub(crate) const PRECEDENCE: u16 = 29;
    pub(crate) const VOLUME_THRESHOLD: u16 = 31;
    pub(crate) const TIME_THRESHOLD: u16 = 32;
    pub(crate) const REPORTING_TRIGGERS: u16 = 37;
    pub(crate) const DESTINATION_INTERFACE: u16 = 42;
    pub(crate) const APPLY_ACTION: u16 = 44;
    pub(crate) const SM_REQ_FLAGS: u16 = 49;
    pub(crate) const PDR_ID: u16 = 56;
    pub(crate) const F_SEID: u16 = 57;
    pub(crate) const NODE_ID: u16 = 60;
    pub(crate) const MEASUREMENT_METHOD: u16 = 62;
    pub(crate) const MEASUREMENT_PERIOD: u16 = 64;
    pub(crate) const QUERY_URR: u16 = 77;
    pub(crate) const URR_ID: u16 = 81;
    pub(crate) const OUTER_HEADER_CREATION: u16 = 84;
    pub(crate) const CREATE_BAR: u16 = 85;
    pub(crate) const BAR_ID: u16 = 88;
    pub(crate) const CP_FUNCTION_FEATURES: u16 = 89;
    pub(crate) const UE_IP_ADDRESS: u16 = 93;
    pub(crate) const OUTER_HEADER_REMOVAL: u16 = 95;
    pub(crate) const RECOVERY_TIME_STAMP: u16 = 96;
    pub(crate) const MEASUREMENT_INFORMATION: u16 = 100;
    pub(crate) const FAR_ID: u16 = 108;
    pub(crate) const QER_ID: u16 = 109;
    pub(crate) const PDN_TYPE: u16 = 113;
    pub(crate) const QFI: u16 = 124;
    pub(crate) const USER_ID: u16 = 141;
    pub(crate) const APN_DNN: u16 = 159;
    pub(crate) const INTERFACE_TYPE: u16 = 160;
    pub(crate) const S_NSSAI: u16 = 257;
}

/// Message types of TS 29.244 table 7.3-1.
pub(crate) mod message {
    pub(crate) const HEARTBEAT_REQUEST: u8 = 1;
    pub(crate) const HEARTBEAT_RESPONSE: u8 = 2;
    pub(crate) const ASSOCIATION_SETUP_REQUEST: u8 = 5;
    pub(crate) const ASSOCIATION_SETUP_RESPONSE: u8 = 6;
    pub(crate) const ASSOCIATION_RELEASE_REQUEST: u8 = 9;
    pub(crate) const ASSOCIATION_RELEASE_RESPONSE: u8 = 10;
    pub(crate) const SESSION_ESTABLISHMENT_REQUEST: u8 = 50;
    pub(crate) const SESSION_ESTABLISHMENT_RESPONSE: u8 = 51;
    pub(crate) const SESSION_MODIFICATION_REQUEST: u8 = 52;
    pub(crate) const SESSION_MODIFICATION_RESPONSE: u8 = 53;
    pub(crate) const SESSION_DELETION_REQUEST: u8 = 54;
    pub(crate) const SESSION_DELETION_RESPONSE: u8 = 55;
    pub(crate) const SESSION_REPORT_REQUEST: u8 = 56;
    pub(crate) const SESSION_REPORT_RESPONSE: u8 = 57;
}

/// What a message's header says beside its type (§7.2.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header {
    pub(crate) kind: u8,
    /// `None`: a node message.
    pub(crate) seid: Option<u64>,
    /// 24 bits.
    pub(crate) sequence: u32,
    /// MP flag and message priority.
    pub(crate) priority: Option<u8>,
}

/// Writes one message into a buffer that is used again and again.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Replaces what is in `out` by one message.
    pub(crate) fn message(out: &'a mut Vec<u8>, header: Header, body: impl FnOnce(&mut Writer<'_>)) {
        out.clear();
        let flags = 0x20 | u8::from(header.seid.is_some()) | u8::from(header.priority.is_some()) << 1;
        out.extend([flags, header.kind, 0, 0]);
        if let Some(seid) = header.seid {
            out.extend(seid.to_be_bytes());
        }
        let sequence = header.sequence << 8 | u32::from(header.priority.unwrap_or(0)) << 4;
        out.extend(sequence.to_be_bytes());
        body(&mut Writer { out });
        let len = (out.len() - 4) as u16;
        if let Some(field) = out.get_mut(2..4) {
            field.copy_from_slice(&len.to_be_bytes());
        }
    }

    /// A grouped IE.
    pub(crate) fn group(&mut self, ie: u16, body: impl FnOnce(&mut Writer<'_>)) {
        self.out.extend(ie.to_be_bytes());
        self.out.extend([0, 0]);
        let start = self.out.len();
        body(&mut Writer { out: self.out });
        let len = (self.out.len() - start) as u16;
        if let Some(field) = self.out.get_mut(start - 2..start) {
            field.copy_from_slice(&len.to_be_bytes());
        }
    }

    pub(crate) fn bytes(&mut self, ie: u16, value: &[u8]) {
        self.out.extend(ie.to_be_bytes());
        self.out.extend((value.len() as u16).to_be_bytes());
        self.out.extend_from_slice(value);
    }

    pub(crate) fn u8(&mut self, ie: u16, value: u8) {
        self.bytes(ie, &[value]);
    }

    pub(crate) fn u16(&mut self, ie: u16, value: u16) {
        self.bytes(ie, &value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, ie: u16, value: u32) {
        self.bytes(ie, &value.to_be_bytes());
    }

    /// §8.2.38, the address forms.
    pub(crate) fn node_id(&mut self, address: IpAddr) {
        self.group(ie::NODE_ID, |w| match address {
            IpAddr::V4(address) => {
                w.out.push(0);
                w.out.extend(address.octets());
            }
            IpAddr::V6(address) => {
                w.out.push(1);
                w.out.extend(address.octets());
            }
        });
    }

    /// §8.2.37.
    pub(crate) fn f_seid(&mut self, seid: u64, address: IpAddr) {
        self.group(ie::F_SEID, |w| {
            w.out.push(if address.is_ipv4() { 2 } else { 1 });
            w.out.extend(seid.to_be_bytes());
            w.address(address);
        });
    }

    /// F-TEID that the UPF chooses (§8.2.3): CH, with the other flags as the SMF sets them.
    pub(crate) fn choose_f_teid(&mut self, v4: bool, v6: bool, id: Option<u8>) {
        let flags = u8::from(v4) | u8::from(v6) << 1 | 4 | u8::from(id.is_some()) << 3;
        self.group(ie::F_TEID, |w| {
            w.out.push(flags);
            w.out.extend(id);
        });
    }

    /// F-TEID that the SMF chose.
    pub(crate) fn f_teid(&mut self, teid: Teid, address: IpAddr) {
        self.group(ie::F_TEID, |w| {
            w.out.push(if address.is_ipv4() { 1 } else { 2 });
            w.out.extend(teid.0.to_be_bytes());
            w.address(address);
        });
    }

    /// UE IP Address (§8.2.62). `None` twice and no choosing writes flags only.
    pub(crate) fn ue_ip(&mut self, ue: UeIp) {
        let flags = u8::from(ue.ipv6.is_some())
            | u8::from(ue.ipv4.is_some()) << 1
            | u8::from(ue.destination) << 2
            | u8::from(ue.choose_ipv4) << 4
            | u8::from(ue.choose_ipv6) << 5;
        self.group(ie::UE_IP_ADDRESS, |w| {
            w.out.push(flags);
            w.out.extend(ue.ipv4.iter().flat_map(Ipv4Addr::octets));
            w.out.extend(ue.ipv6.iter().flat_map(Ipv6Addr::octets));
        });
    }

    /// SDF Filter with a flow description only (§8.2.5).
    pub(crate) fn flow_description(&mut self, text: &str) {
        self.group(ie::SDF_FILTER, |w| {
            w.out.extend([1, 0]);
            w.out.extend((text.len() as u16).to_be_bytes());
            w.out.extend(text.bytes());
        });
    }

    /// Outer Header Creation: GTP-U/UDP/IP (§8.2.56).
    pub(crate) fn outer_header_creation(&mut self, teid: Teid, address: IpAddr) {
        self.group(ie::OUTER_HEADER_CREATION, |w| {
            w.out.extend([if address.is_ipv4() { 1 } else { 2 }, 0]);
            w.out.extend(teid.0.to_be_bytes());
            w.address(address);
        });
    }

    /// MBR (§8.2.8): kbit/s in 40 bits each way.
    pub(crate) fn mbr(&mut self, uplink_kbps: u64, downlink_kbps: u64) {
        self.group(ie::MBR, |w| {
            for rate in [uplink_kbps, downlink_kbps] {
                let [_, _, _, bytes @ ..] = rate.min((1 << 40) - 1).to_be_bytes();
                w.out.extend(bytes);
            }
        });
    }

    /// Volume Threshold (§8.2.13) with the limits that are given.
    pub(crate) fn volume_threshold(&mut self, total: Option<u64>, uplink: Option<u64>, downlink: Option<u64>) {
        let flags =
            u8::from(total.is_some()) | u8::from(uplink.is_some()) << 1 | u8::from(downlink.is_some()) << 2;
        self.group(ie::VOLUME_THRESHOLD, |w| {
            w.out.push(flags);
            for limit in [total, uplink, downlink].into_iter().flatten() {
                w.out.extend(limit.to_be_bytes());
            }
        });
    }

    /// A name as RFC 1035 labels, each with its length before it.
    pub(crate) fn labels(&mut self, ie: u16, name: &str) {
        self.group(ie, |w| {
            for label in name.split('.') {
                w.out.push(label.len() as u8);
                w.out.extend(label.bytes());
            }
        });
    }

    pub(crate) fn qfi(&mut self, qfi: Qfi) {
        self.u8(ie::QFI, qfi.get());
    }

    fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.out.extend(address.octets()),
            IpAddr::V6(address) => self.out.extend(address.octets()),
        }
    }
}

/// UE IP Address, as far as SMFs send it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UeIp {
    pub(crate) ipv4: Option<Ipv4Addr>,
    pub(crate) ipv6: Option<Ipv6Addr>,
    pub(crate) choose_ipv4: bool,
    pub(crate) choose_ipv6: bool,
    /// S/D.
    pub(crate) destination: bool,
}
