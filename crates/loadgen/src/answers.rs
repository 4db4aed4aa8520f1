//! What the UPF answered and reported, as far as an SMF model needs it.

use packet::Teid;
use pfcp::ie::UpFunctionFeatures;
use pfcp::{Cause, DecodeError, Ies, PdrId, Seid, UrrId, ie_type as ie};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The answer to any request: the IEs that the response has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) cause: Option<Cause>,
    pub(crate) offending_ie: Option<u16>,
    /// Type and value octets of a Failed Rule ID (§8.2.80).
    pub(crate) failed_rule: Option<(u8, u32)>,
    pub(crate) up_seid: Option<Seid>,
    pub(crate) node_id: bool,
    pub(crate) created: Vec<Created>,
    pub(crate) usage: Vec<Usage>,
    pub(crate) features: UpFunctionFeatures,
    pub(crate) recovery: Option<u32>,
    pub(crate) downlink_data: bool,
    pub(crate) error_indication: bool,
}

/// Created PDR: what the UPF chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Created {
    pub(crate) pdr: PdrId,
    pub(crate) tunnel: Option<(Teid, IpAddr)>,
    pub(crate) ue_ipv4: Option<Ipv4Addr>,
    pub(crate) ue_ipv6: Option<Ipv6Addr>,
}

/// One Usage Report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) urr: UrrId,
    pub(crate) total: u64,
    pub(crate) uplink: u64,
    pub(crate) downlink: u64,
    pub(crate) packets: u64,
}

/// Takes octets from the front of a value.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    /// A field that a flag announces.
    fn when<const N: usize>(&mut self, flag: bool) -> Option<[u8; N]> {
        if flag { self.take() } else { None }
    }
}

impl Answer {
    /// Reads a message body. IEs that are too short for their flags are passed over.
    pub(crate) fn read(body: &[u8]) -> Result<Self, DecodeError> {
        let mut answer = Self::default();
        for element in Ies::new(body) {
            let element = element?;
            let mut fields = Fields(element.value);
            match element.kind {
                ie::CAUSE => answer.cause = fields.take().map(|[cause]| Cause(cause)),
                ie::OFFENDING_IE => answer.offending_ie = fields.take().map(u16::from_be_bytes),
                ie::FAILED_RULE_ID => answer.failed_rule = failed_rule(element.value),
                ie::NODE_ID => answer.node_id = true,
                ie::F_SEID => {
                    let _ = fields.take::<1>();
                    answer.up_seid = fields.take().map(|seid| Seid(u64::from_be_bytes(seid)));
                }
                ie::RECOVERY_TIME_STAMP => answer.recovery = fields.take().map(u32::from_be_bytes),
                ie::UP_FUNCTION_FEATURES => {
                    let octets = element.value.iter().take(8).enumerate();
                    let bits = octets.fold(0, |bits, (at, &octet)| bits | u64::from(octet) << (8 * at));
                    answer.features = UpFunctionFeatures(bits);
                }
                ie::CREATED_PDR => answer.created.push(created(element.group())?),
                ie::USAGE_REPORT_MODIFICATION | ie::USAGE_REPORT_DELETION | ie::USAGE_REPORT_REPORT => {
                    answer.usage.push(usage(element.group())?);
                }
                ie::DOWNLINK_DATA_REPORT => answer.downlink_data = true,
                ie::ERROR_INDICATION_REPORT => answer.error_indication = true,
                _ => {}
            }
        }
        Ok(answer)
    }
}

fn failed_rule(value: &[u8]) -> Option<(u8, u32)> {
    let (&kind, id) = value.split_first()?;
    let id = id.iter().take(4).fold(0, |id, &octet| id << 8 | u32::from(octet));
    Some((kind & 0x1f, id))
}

fn created(group: Ies<'_>) -> Result<Created, DecodeError> {
    let mut created = Created::default();
    for element in group {
        let element = element?;
        let mut fields = Fields(element.value);
        match element.kind {
            ie::PDR_ID => created.pdr = fields.take().map_or(PdrId(0), |id| PdrId(u16::from_be_bytes(id))),
            ie::F_TEID => created.tunnel = f_teid(fields),
            ie::UE_IP_ADDRESS => {
                if let Some((ipv4, ipv6)) = ue_ip(fields) {
                    created.ue_ipv4 = created.ue_ipv4.or(ipv4);
                    created.ue_ipv6 = created.ue_ipv6.or(ipv6);
                }
            }
            _ => {}
        }
    }
    Ok(created)
}

fn f_teid(mut fields: Fields<'_>) -> Option<(Teid, IpAddr)> {
    let [flags] = fields.take()?;
    let teid = Teid(u32::from_be_bytes(fields.take()?));
    let ipv4 = fields.when::<4>(flags & 1 != 0).map(IpAddr::from);
    let ipv6 = fields.when::<16>(flags & 2 != 0).map(IpAddr::from);
    Some((teid, ipv4.or(ipv6)?))
}

fn ue_ip(mut fields: Fields<'_>) -> Option<(Option<Ipv4Addr>, Option<Ipv6Addr>)> {
    let [flags] = fields.take()?;
    let ipv4 = fields.when::<4>(flags & 2 != 0).map(Ipv4Addr::from);
    let ipv6 = fields.when::<16>(flags & 1 != 0).map(Ipv6Addr::from);
    Some((ipv4, ipv6))
}

fn usage(group: Ies<'_>) -> Result<Usage, DecodeError> {
    let mut usage = Usage::default();
    for element in group {
        let element = element?;
        let mut fields = Fields(element.value);
        match element.kind {
            ie::URR_ID => usage.urr = fields.take().map_or(UrrId(0), |id| UrrId(u32::from_be_bytes(id))),
            ie::VOLUME_MEASUREMENT => {
                let Some([flags]) = fields.take() else { continue };
                let mut volume = |bit: u8| fields.when::<8>(flags & bit != 0).map_or(0, u64::from_be_bytes);
                (usage.total, usage.uplink, usage.downlink) = (volume(1), volume(2), volume(4));
                let (packets, uplink, downlink) = (volume(8), volume(16), volume(32));
                usage.packets = if packets > 0 { packets } else { uplink + downlink };
                if usage.total == 0 {
                    usage.total = usage.uplink + usage.downlink;
                }
            }
            _ => {}
        }
    }
    Ok(usage)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_establishment_response() {
        let body = [
            &[0, 60, 0, 5, 0, 10, 0, 0, 1, 0, 19, 0, 1, 1, 0, 57, 0, 13, 2][..],
            &[0, 0, 0, 2, 0, 0, 0, 9, 10, 0, 0, 1],
            // Created PDR 1: F-TEID 0x01020304 at 192.0.2.1, UE address 10.64.0.1.
            &[0, 8, 0, 28, 0, 56, 0, 2, 0, 1, 0, 21, 0, 9, 1, 1, 2, 3, 4, 192, 0, 2, 1],
            &[0, 93, 0, 5, 2, 10, 64, 0, 1],
        ]
        .concat();
        let answer = Answer::read(&body).unwrap();
        assert_eq!((answer.cause, answer.up_seid), (Some(Cause::ACCEPTED), Some(Seid(0x2_0000_0009))));
        assert!(answer.node_id);
        let tunnel = Some((Teid(0x0102_0304), IpAddr::from([192, 0, 2, 1])));
        let ue_ipv4 = Some(Ipv4Addr::new(10, 64, 0, 1));
        assert_eq!(answer.created, [Created { pdr: PdrId(1), tunnel, ue_ipv4, ue_ipv6: None }]);
    }

    #[test]
    fn a_refusal_with_its_reason() {
        let body = [0, 19, 0, 1, 73, 0, 40, 0, 2, 0, 108, 0, 114, 0, 5, 1, 0, 0, 1, 2];
        let answer = Answer::read(&body).unwrap();
        assert_eq!(answer.cause, Some(Cause::RULE_FAILURE));
        assert_eq!((answer.offending_ie, answer.failed_rule), (Some(108), Some((1, 258))));
    }

    #[test]
    fn usage_with_all_volumes() {
        let mut body = vec![0, 80, 0, 61, 0, 81, 0, 4, 0, 0, 0, 7, 0, 66, 0, 49, 0x3f];
        for value in [300_u64, 100, 200, 3, 1, 2] {
            body.extend(value.to_be_bytes());
        }
        let answer = Answer::read(&body).unwrap();
        assert_eq!(
            answer.usage,
            [Usage { urr: UrrId(7), total: 300, uplink: 100, downlink: 200, packets: 3 }]
        );
    }

    proptest! {
        #[test]
        fn never_panics(body: Vec<u8>) {
            let _ = Answer::read(&body);
        }
    }
}
