//! PFCP requests written octet by octet.
//!
//! The typed messages of crate `pfcp` say what the standard wants. An SMF model must also say what SMFs send: one-octet
//! Apply Actions, F-TEIDs without an address family, IEs where none belong. And a judge should not share the values'
//! codec with whom it judges. So of `pfcp` only framing and numbers are used here; tests read the requests with it.

use packet::{Qfi, Teid};
use pfcp::{Header, encode_ie, encode_message, ie_type as ie};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IEs that only an SMF has a use for.
pub(crate) const USER_ID: u16 = 141;
pub(crate) const S_NSSAI: u16 = 257;

/// Writes IEs into a buffer that is used again and again.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Replaces what is in `out` by one message.
    pub(crate) fn message(out: &'a mut Vec<u8>, header: &Header, body: impl FnOnce(&mut Writer<'_>)) {
        out.clear();
        // What an SMF model has to say is far below 64 KiB; were it not, nothing would be sent.
        let _ = encode_message(header, out, |out| body(&mut Writer { out }));
    }

    /// A grouped IE, or one whose value is written in parts.
    pub(crate) fn group(&mut self, ie: u16, body: impl FnOnce(&mut Writer<'_>)) {
        encode_ie(self.out, ie, |out| body(&mut Writer { out }));
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

    /// Redirect Information: where to, and of what type that is (§8.2.20).
    pub(crate) fn redirect(&mut self, address_type: u8, address: &str) {
        self.group(ie::REDIRECT_INFORMATION, |w| {
            w.out.push(address_type);
            w.out.extend((address.len() as u16).to_be_bytes());
            w.out.extend(address.bytes());
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
    pub(crate) fn volume_threshold(
        &mut self,
        total: Option<u64>,
        uplink: Option<u64>,
        downlink: Option<u64>,
    ) {
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
