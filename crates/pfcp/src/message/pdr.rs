//! Create PDR, Update PDR, Created PDR and the PDI inside (§7.5.2.2, §7.5.4.2, §7.5.3.2).

use super::group::{Group, find, put_group};
use super::{CreatePdr, CreatedPdr, Pdi, UpdatePdr};
use crate::cause::RuleId;
use crate::encode::encode_ie;
use crate::error::DecodeError;
use crate::ids::PdrId;
use crate::ie::wire::{put, put_all, put_option};
use crate::ie_type;
use crate::tlv::Ies;

fn rule(ies: Ies<'_>) -> Option<RuleId> {
    find::<PdrId>(ies, ie_type::PDR_ID).map(RuleId::Pdr)
}

impl<'a> Group<'a> for CreatePdr<'a> {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let missing = |kind| DecodeError::missing(kind, start);
        let (mut id, mut precedence, mut pdi) = (None, None, None);
        let (mut outer_header_removal, mut far) = (None, None);
        let (mut urrs, mut qers) = (Vec::new(), Vec::new());
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::PDR_ID => ie.mandatory(&mut id)?,
                ie_type::PRECEDENCE => ie.mandatory(&mut precedence)?,
                ie_type::PDI => ie.group_once(&mut pdi)?,
                ie_type::OUTER_HEADER_REMOVAL => ie.optional(&mut outer_header_removal)?,
                ie_type::FAR_ID => ie.optional(&mut far)?,
                ie_type::URR_ID => ie.listed(&mut urrs)?,
                ie_type::QER_ID => ie.listed(&mut qers)?,
                _ => {}
            }
        }
        Ok(Self {
            id: id.ok_or_else(|| missing(ie_type::PDR_ID))?,
            precedence: precedence.ok_or_else(|| missing(ie_type::PRECEDENCE))?,
            pdi: pdi.ok_or_else(|| missing(ie_type::PDI))?,
            outer_header_removal,
            far,
            urrs,
            qers,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::PDR_ID, &self.id);
        put(out, ie_type::PRECEDENCE, &self.precedence);
        put_group(out, ie_type::PDI, &self.pdi);
        put_option(out, ie_type::OUTER_HEADER_REMOVAL, self.outer_header_removal.as_ref());
        put_option(out, ie_type::FAR_ID, self.far.as_ref());
        put_all(out, ie_type::URR_ID, &self.urrs);
        put_all(out, ie_type::QER_ID, &self.qers);
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}

impl<'a> Group<'a> for UpdatePdr<'a> {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let (mut id, mut precedence, mut pdi) = (None, None, None);
        let (mut outer_header_removal, mut far) = (None, None);
        let (mut urrs, mut qers) = (Vec::new(), Vec::new());
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::PDR_ID => ie.mandatory(&mut id)?,
                ie_type::PRECEDENCE => ie.optional(&mut precedence)?,
                ie_type::PDI => ie.group_once(&mut pdi)?,
                ie_type::OUTER_HEADER_REMOVAL => ie.optional(&mut outer_header_removal)?,
                ie_type::FAR_ID => ie.optional(&mut far)?,
                ie_type::URR_ID => ie.listed(&mut urrs)?,
                ie_type::QER_ID => ie.listed(&mut qers)?,
                _ => {}
            }
        }
        let id = id.ok_or_else(|| DecodeError::missing(ie_type::PDR_ID, start))?;
        Ok(Self { id, outer_header_removal, precedence, pdi, far, urrs, qers })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::PDR_ID, &self.id);
        put_option(out, ie_type::OUTER_HEADER_REMOVAL, self.outer_header_removal.as_ref());
        put_option(out, ie_type::PRECEDENCE, self.precedence.as_ref());
        if let Some(pdi) = &self.pdi {
            put_group(out, ie_type::PDI, pdi);
        }
        put_option(out, ie_type::FAR_ID, self.far.as_ref());
        put_all(out, ie_type::URR_ID, &self.urrs);
        put_all(out, ie_type::QER_ID, &self.qers);
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}

impl<'a> Group<'a> for Pdi<'a> {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let mut source_interface = None;
        let (mut local_fteid, mut network_instance, mut application_id) = (None, None, None);
        let (mut ue_ips, mut sdf_filters, mut qfis) = (Vec::new(), Vec::new(), Vec::new());
        let (mut framed_routes, mut framed_ipv6_routes) = (Vec::new(), Vec::new());
        let (mut source_interface_type, mut ethernet) = (None, false);
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::SOURCE_INTERFACE => ie.mandatory(&mut source_interface)?,
                ie_type::F_TEID => ie.optional(&mut local_fteid)?,
                // OMEC's SMF sends it empty: the session layer reads that as the default instance.
                ie_type::NETWORK_INSTANCE => ie.mandatory(&mut network_instance)?,
                ie_type::UE_IP_ADDRESS => ie.listed(&mut ue_ips)?,
                ie_type::SDF_FILTER => ie.listed(&mut sdf_filters)?,
                ie_type::QFI => ie.listed(&mut qfis)?,
                // An empty one takes it away (§5.6.3).
                ie_type::APPLICATION_ID => ie.mandatory(&mut application_id)?,
                ie_type::ETHERNET_PACKET_FILTER | ie_type::ETHERNET_PDU_SESSION_INFORMATION => {
                    ethernet = true;
                }
                ie_type::FRAMED_ROUTE => ie.listed(&mut framed_routes)?,
                ie_type::FRAMED_IPV6_ROUTE => ie.listed(&mut framed_ipv6_routes)?,
                ie_type::INTERFACE_TYPE => ie.optional(&mut source_interface_type)?,
                _ => {}
            }
        }
        Ok(Self {
            source_interface: source_interface
                .ok_or_else(|| DecodeError::missing(ie_type::SOURCE_INTERFACE, start))?,
            local_fteid,
            network_instance,
            ue_ips,
            sdf_filters,
            qfis,
            application_id,
            ethernet,
            framed_routes,
            framed_ipv6_routes,
            source_interface_type,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::SOURCE_INTERFACE, &self.source_interface);
        put_option(out, ie_type::F_TEID, self.local_fteid.as_ref());
        put_option(out, ie_type::NETWORK_INSTANCE, self.network_instance.as_ref());
        put_all(out, ie_type::UE_IP_ADDRESS, &self.ue_ips);
        put_all(out, ie_type::SDF_FILTER, &self.sdf_filters);
        put_option(out, ie_type::APPLICATION_ID, self.application_id.as_ref());
        if self.ethernet {
            // ETHI: the whole session's Ethernet traffic (§8.2.102).
            encode_ie(out, ie_type::ETHERNET_PDU_SESSION_INFORMATION, |out| out.push(1));
        }
        put_all(out, ie_type::QFI, &self.qfis);
        put_all(out, ie_type::FRAMED_ROUTE, &self.framed_routes);
        put_all(out, ie_type::FRAMED_IPV6_ROUTE, &self.framed_ipv6_routes);
        put_option(out, ie_type::INTERFACE_TYPE, self.source_interface_type.as_ref());
    }
}

impl<'a> Group<'a> for CreatedPdr {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let (mut id, mut local_fteid, mut ue_ips) = (None, None, Vec::new());
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::PDR_ID => ie.mandatory(&mut id)?,
                ie_type::F_TEID => ie.optional(&mut local_fteid)?,
                ie_type::UE_IP_ADDRESS => ie.listed(&mut ue_ips)?,
                _ => {}
            }
        }
        let id = id.ok_or_else(|| DecodeError::missing(ie_type::PDR_ID, start))?;
        Ok(Self { id, local_fteid, ue_ips })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::PDR_ID, &self.id);
        put_option(out, ie_type::F_TEID, self.local_fteid.as_ref());
        put_all(out, ie_type::UE_IP_ADDRESS, &self.ue_ips);
    }

    fn rule(ies: Ies<'a>) -> Option<RuleId> {
        rule(ies)
    }
}
