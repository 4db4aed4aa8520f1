//! Reading and writing Session Report (§7.5.8, §7.5.9).

use super::group::{Group, put_group, put_groups};
use super::node::required;
use super::{DownlinkDataReport, SessionReportRequest, SessionReportResponse};
use crate::encode::encode_ie;
use crate::error::{DecodeError, Fault};
use crate::ie::FTeid;
use crate::ie::wire::{Fields, Wire, flag, put, put_all, put_option};
use crate::ie_type;
use crate::tlv::Ies;
use packet::{Dscp, Qfi};

/// Report Type (§8.2.21).
const DLDR: u8 = 1;
const USAR: u8 = 1 << 1;
const ERIR: u8 = 1 << 2;
const UPIR: u8 = 1 << 3;

impl SessionReportRequest {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut request = Self::default();
        let (mut types, mut errors) = (None::<u8>, None::<ErrorIndications>);
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::REPORT_TYPE => ie.mandatory(&mut types)?,
                ie_type::DOWNLINK_DATA_REPORT => ie.group_once(&mut request.downlink_data)?,
                ie_type::USAGE_REPORT_REPORT => ie.group_listed(&mut request.usage_reports)?,
                ie_type::ERROR_INDICATION_REPORT => ie.group_once(&mut errors)?,
                _ => {}
            }
        }
        let types = required(types, ie_type::REPORT_TYPE)?;
        for (bit, is_there, kind) in [
            (DLDR, request.downlink_data.is_some(), ie_type::DOWNLINK_DATA_REPORT),
            (USAR, !request.usage_reports.is_empty(), ie_type::USAGE_REPORT_REPORT),
            (ERIR, errors.is_some(), ie_type::ERROR_INDICATION_REPORT),
        ] {
            if types & bit != 0 && !is_there {
                return Err(DecodeError::conditional(kind, 0));
            }
        }
        request.error_indications = errors.unwrap_or_default().0;
        request.inactivity = types & UPIR != 0;
        Ok(request)
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let when = |there: bool, bit: u8| if there { bit } else { 0 };
        let types = when(self.downlink_data.is_some(), DLDR)
            | when(!self.usage_reports.is_empty(), USAR)
            | when(!self.error_indications.is_empty(), ERIR)
            | when(self.inactivity, UPIR);
        put(out, ie_type::REPORT_TYPE, &types);
        if let Some(report) = &self.downlink_data {
            put_group(out, ie_type::DOWNLINK_DATA_REPORT, report);
        }
        put_groups(out, ie_type::USAGE_REPORT_REPORT, &self.usage_reports);
        if !self.error_indications.is_empty() {
            encode_ie(out, ie_type::ERROR_INDICATION_REPORT, |out| {
                put_all(out, ie_type::F_TEID, &self.error_indications);
            });
        }
    }
}

impl<'a> Group<'a> for DownlinkDataReport {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let (mut pdrs, mut service) = (Vec::new(), None);
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::PDR_ID => ie.listed(&mut pdrs)?,
                ie_type::DOWNLINK_DATA_SERVICE_INFORMATION => ie.optional(&mut service)?,
                _ => {}
            }
        }
        if pdrs.is_empty() {
            return Err(DecodeError::missing(ie_type::PDR_ID, start));
        }
        Ok(Self { pdrs, service: service.map(|ServiceInformation(paging, qfi)| (paging, qfi)) })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_all(out, ie_type::PDR_ID, &self.pdrs);
        let service = self.service.map(|(paging, qfi)| ServiceInformation(paging, qfi));
        put_option(out, ie_type::DOWNLINK_DATA_SERVICE_INFORMATION, service.as_ref());
    }
}

/// Downlink Data Service Information (§8.2.27).
struct ServiceInformation(Option<Dscp>, Option<Qfi>);

impl Wire<'_> for ServiceInformation {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let flags = fields.octet()?;
        let paging = fields.when(flags & 1 != 0, Fields::octet)?;
        let qfi = fields.when(flags & 1 << 1 != 0, Fields::octet)?;
        Ok(Self(paging.and_then(|octet| Dscp::new(octet & 0x3f)), qfi.map(Qfi::from_wire)))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Self(paging, qfi) = self;
        out.push(flag(paging.is_some(), 0) | flag(qfi.is_some(), 1));
        out.extend(paging.map(Dscp::get));
        out.extend(qfi.map(Qfi::get));
    }
}

#[derive(Default)]
struct ErrorIndications(Vec<FTeid>);

impl<'a> Group<'a> for ErrorIndications {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let mut tunnels = Vec::new();
        for ie in ies {
            let ie = ie?;
            if ie.kind == ie_type::F_TEID {
                ie.listed(&mut tunnels)?;
            }
        }
        if tunnels.is_empty() {
            return Err(DecodeError::missing(ie_type::F_TEID, start));
        }
        Ok(Self(tunnels))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_all(out, ie_type::F_TEID, &self.0);
    }
}

impl SessionReportResponse {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut cause, mut offending_ie, mut flags) = (None, None, None::<u8>);
        for ie in Ies::new(body) {
            let ie = ie?;
            match ie.kind {
                ie_type::CAUSE => ie.mandatory(&mut cause)?,
                ie_type::OFFENDING_IE => ie.optional(&mut offending_ie)?,
                ie_type::PFCPSRRSP_FLAGS => ie.optional(&mut flags)?,
                _ => {}
            }
        }
        let drop_buffered = flags.unwrap_or_default() & 1 != 0;
        Ok(Self { cause: required(cause, ie_type::CAUSE)?, offending_ie, drop_buffered })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::CAUSE, &self.cause);
        put_option(out, ie_type::OFFENDING_IE, self.offending_ie.as_ref());
        if self.drop_buffered {
            put(out, ie_type::PFCPSRRSP_FLAGS, &1u8);
        }
    }
}
