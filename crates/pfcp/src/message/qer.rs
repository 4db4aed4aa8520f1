//! Create QER and Update QER; Create BAR and Update BAR (§7.5.2.5, §7.5.4.5, §7.5.2.6, §7.5.4.11).

use super::group::{Group, find};
use super::{CreateBar, CreateQer, QerParameters, UpdateQer};
use crate::cause::RuleId;
use crate::encode::encode_ie;
use crate::error::{DecodeError, Fault};
use crate::ids::{BarId, QerId};
use crate::ie::wire::{Fields, Wire, put, put_option};
use crate::ie_type;
use crate::tlv::{Ie, Ies};

fn rule(ies: Ies<'_>) -> Option<RuleId> {
    find::<QerId>(ies, ie_type::QER_ID).map(RuleId::Qer)
}

/// RQI (§8.2.88): whether reflective QoS is on.
struct Rqi(bool);

impl Wire<'_> for Rqi {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Ok(Self(Fields(value).octet()? & 1 != 0))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.0));
    }
}

impl QerParameters {
    /// Takes an IE that creation and update have in common.
    fn take(&mut self, ie: &Ie<'_>) -> Result<(), DecodeError> {
        match ie.kind {
            ie_type::QER_CORRELATION_ID => ie.optional(&mut self.correlation_id),
            ie_type::MBR => ie.optional(&mut self.mbr),
            ie_type::GBR => ie.optional(&mut self.gbr),
            ie_type::QFI => ie.optional(&mut self.qfi),
            ie_type::RQI => {
                let mut rqi = self.reflective.map(Rqi);
                ie.optional(&mut rqi)?;
                self.reflective = rqi.map(|Rqi(on)| on);
                Ok(())
            }
            ie_type::PAGING_POLICY_INDICATOR => ie.optional(&mut self.paging_policy),
            ie_type::AVERAGING_WINDOW => ie.optional(&mut self.averaging_window),
            _ => Ok(()),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_option(out, ie_type::QER_CORRELATION_ID, self.correlation_id.as_ref());
        put_option(out, ie_type::MBR, self.mbr.as_ref());
        put_option(out, ie_type::GBR, self.gbr.as_ref());
        put_option(out, ie_type::QFI, self.qfi.as_ref());
        put_option(out, ie_type::RQI, self.reflective.map(Rqi).as_ref());
        if let Some(indicator) = self.paging_policy {
            encode_ie(out, ie_type::PAGING_POLICY_INDICATOR, |out| out.push(indicator & 0x07));
        }
        put_option(out, ie_type::AVERAGING_WINDOW, self.averaging_window.as_ref());
    }
}

impl<'a> Group<'a> for UpdateQer {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let (mut id, mut gate) = (None, None);
        let mut parameters = QerParameters::default();
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::QER_ID => ie.mandatory(&mut id)?,
                ie_type::GATE_STATUS => ie.optional(&mut gate)?,
                _ => parameters.take(&ie)?,
            }
        }
        parameters.paging_policy = parameters.paging_policy.map(|indicator| indicator & 0x07);
        let id = id.ok_or_else(|| DecodeError::missing(ie_type::QER_ID, start))?;
        Ok(Self { id, gate, parameters })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::QER_ID, &self.id);
        put_option(out, ie_type::GATE_STATUS, self.gate.as_ref());
        self.parameters.put(out);
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}

impl<'a> Group<'a> for CreateQer {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let UpdateQer { id, gate, parameters } = UpdateQer::decode(ies)?;
        let gate = gate.ok_or_else(|| DecodeError::missing(ie_type::GATE_STATUS, start))?;
        Ok(Self { id, gate, parameters })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::QER_ID, &self.id);
        put(out, ie_type::GATE_STATUS, &self.gate);
        self.parameters.put(out);
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}

impl<'a> Group<'a> for CreateBar {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let (mut id, mut notification_delay, mut suggested_packets) = (None, None, None);
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::BAR_ID => ie.mandatory(&mut id)?,
                ie_type::DOWNLINK_DATA_NOTIFICATION_DELAY => ie.optional(&mut notification_delay)?,
                ie_type::SUGGESTED_BUFFERING_PACKETS_COUNT => ie.optional(&mut suggested_packets)?,
                _ => {}
            }
        }
        let id = id.ok_or_else(|| DecodeError::missing(ie_type::BAR_ID, start))?;
        Ok(Self { id, notification_delay, suggested_packets })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::BAR_ID, &self.id);
        put_option(out, ie_type::DOWNLINK_DATA_NOTIFICATION_DELAY, self.notification_delay.as_ref());
        put_option(out, ie_type::SUGGESTED_BUFFERING_PACKETS_COUNT, self.suggested_packets.as_ref());
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        find::<BarId>(ies, ie_type::BAR_ID).map(RuleId::Bar)
    }
}
