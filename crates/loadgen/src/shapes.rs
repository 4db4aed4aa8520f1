//! The rules that each SMF makes of a session at its establishment. See [`crate::habits`].

use crate::application_rule::{ApplicationRule, Numbers};
use crate::habits::*;
use crate::imix::Family;
use crate::wire::{S_NSSAI, USER_ID, UeIp, Writer};
use packet::{Qfi, Teid};
use pfcp::ie_type as ie;
use std::net::Ipv4Addr;

/// Where Open5GS's SMF answers router solicitations, as it tells the UPF: TEID of its own tunnel endpoint.
const OPEN5GS_CP_TEID: Teid = Teid(0x1000_0000);

/// Which packets a pair of PDRs is for.
#[derive(Clone, Copy)]
enum Only<'r> {
    All,
    Filter(&'r str),
    Application(&'r ApplicationRule, Numbers),
}

impl<'r> Only<'r> {
    const fn rule(self) -> Option<(&'r ApplicationRule, Numbers)> {
        match self {
            Self::Application(rule, numbers) => Some((rule, numbers)),
            Self::All | Self::Filter(_) => None,
        }
    }
}

impl Context<'_> {
    pub(crate) fn plain_rules(&self, w: &mut Writer<'_>) {
        let shape = self.shape;
        let mut ue = self.ue_ip(false);
        if shape.choose_ue_ip {
            ue = UeIp {
                choose_ipv4: self.kind.has(Family::V4),
                choose_ipv6: self.kind.has(Family::V6),
                ..UeIp::default()
            };
        }
        // All uplink PDRs share one tunnel.
        let tunnel = (shape.filtered_pairs > 0 || !shape.applications.is_empty()).then_some(1);
        let pair = |w: &mut Writer<'_>, number: u16, precedence: u32, only: Only<'_>| {
            for uplink in [true, false] {
                w.group(ie::CREATE_PDR, |w| {
                    w.u16(ie::PDR_ID, number * 2 + if uplink { 1 } else { 2 });
                    w.u32(ie::PRECEDENCE, precedence);
                    w.group(ie::PDI, |w| {
                        w.u8(ie::SOURCE_INTERFACE, if uplink { ACCESS } else { CORE });
                        if uplink {
                            w.choose_f_teid(!shape.n3_ipv6, shape.n3_ipv6, tunnel);
                        }
                        self.network_instance(w);
                        w.ue_ip(UeIp { destination: !uplink, ..ue });
                        match only {
                            Only::All => {}
                            Only::Filter(filter) => w.flow_description(filter),
                            Only::Application(rule, _) => {
                                w.bytes(ie::APPLICATION_ID, rule.application.as_bytes());
                            }
                        }
                        if uplink {
                            w.qfi(self.facts.qfi);
                        }
                    });
                    if uplink {
                        w.u8(ie::OUTER_HEADER_REMOVAL, u8::from(shape.n3_ipv6));
                    }
                    let far = if uplink { self.ids.ul_far } else { self.ids.dl_far };
                    let own = only.rule().and_then(|(rule, numbers)| rule.far(numbers, uplink));
                    w.u32(ie::FAR_ID, own.unwrap_or(far).0);
                    if shape.usage {
                        w.u32(ie::URR_ID, self.ids.urr.0);
                    }
                    if let Some((_, numbers)) = only.rule() {
                        w.u32(ie::URR_ID, numbers.urr().0);
                    }
                    w.u32(ie::QER_ID, self.ids.qer.0);
                });
            }
        };
        let applications = || shape.applications.iter().zip((0..).map(Numbers::of));
        for (rule, numbers) in applications() {
            pair(w, numbers.pair(), numbers.precedence(), Only::Application(rule, numbers));
        }
        for extra in 1..=shape.filtered_pairs {
            // Filters that our UDP traffic does not match: classification must look at them and go on.
            let filter = format!("permit out 6 from any {} to assigned", 10_000 + u32::from(extra) % 50_000);
            pair(w, extra, u32::from(extra), Only::Filter(&filter));
        }
        pair(w, 0, 65_535, Only::All);
        self.create_far(w, self.ids.ul_far, FORW, Some(CORE), false);
        if shape.gnb_at_once {
            self.create_far(w, self.ids.dl_far, FORW, Some(ACCESS), true);
        } else {
            self.create_far(w, self.ids.dl_far, BUFF_NOCP, None, false);
        }
        if shape.usage {
            self.create_urr(w, self.ids.urr, None);
        }
        for (rule, numbers) in applications() {
            rule.create(self, w, numbers);
        }
        create_qer(w, self.ids.qer, Some(self.facts.qfi), shape.mbr_kbps);
    }

    pub(crate) fn open5gs_rules(&self, w: &mut Writer<'_>) {
        let ids = self.ids;
        w.group(ie::CREATE_PDR, |w| {
            w.u16(ie::PDR_ID, ids.dl_pdr.0);
            w.u32(ie::PRECEDENCE, 65_535);
            w.group(ie::PDI, |w| {
                w.u8(ie::SOURCE_INTERFACE, CORE);
                self.network_instance(w);
                w.ue_ip(self.ue_ip(true));
                w.u8(ie::INTERFACE_TYPE, N6_3GPP);
            });
            w.u32(ie::FAR_ID, ids.dl_far.0);
            if self.shape.usage {
                w.u32(ie::URR_ID, ids.urr.0);
            }
            w.u32(ie::QER_ID, ids.qer.0);
        });
        w.group(ie::CREATE_PDR, |w| {
            w.u16(ie::PDR_ID, ids.ul_pdr.0);
            w.u32(ie::PRECEDENCE, 65_535);
            w.group(ie::PDI, |w| {
                w.u8(ie::SOURCE_INTERFACE, ACCESS);
                w.choose_f_teid(true, true, Some(5));
                self.network_instance(w);
                w.qfi(self.facts.qfi);
                w.u8(ie::INTERFACE_TYPE, N3_3GPP);
            });
            w.u8(ie::OUTER_HEADER_REMOVAL, 6);
            w.u32(ie::FAR_ID, ids.ul_far.0);
            w.u32(ie::QER_ID, ids.qer.0);
        });
        let with_router = self.kind.has(Family::V6);
        if with_router {
            // Router advertisements come from the SMF …
            w.group(ie::CREATE_PDR, |w| {
                w.u16(ie::PDR_ID, 3);
                w.u32(ie::PRECEDENCE, 255);
                w.group(ie::PDI, |w| {
                    w.u8(ie::SOURCE_INTERFACE, CP_FUNCTION);
                    w.choose_f_teid(true, true, None);
                    self.network_instance(w);
                });
                w.u8(ie::OUTER_HEADER_REMOVAL, 6);
                w.u32(ie::FAR_ID, ids.dl_far.0);
            });
            // … and router solicitations go there.
            w.group(ie::CREATE_PDR, |w| {
                w.u16(ie::PDR_ID, 4);
                w.u32(ie::PRECEDENCE, 255);
                w.group(ie::PDI, |w| {
                    w.u8(ie::SOURCE_INTERFACE, ACCESS);
                    w.choose_f_teid(true, true, Some(5));
                    self.network_instance(w);
                    w.flow_description("permit out 58 from ff02::2/128 to assigned");
                    w.u8(ie::INTERFACE_TYPE, N3_3GPP);
                });
                w.u8(ie::OUTER_HEADER_REMOVAL, 6);
                w.u32(ie::FAR_ID, 3);
            });
        }
        w.group(ie::CREATE_FAR, |w| {
            w.u32(ie::FAR_ID, ids.dl_far.0);
            self.apply_action(w, BUFF_NOCP);
            w.u8(ie::BAR_ID, 1);
        });
        w.group(ie::CREATE_FAR, |w| {
            w.u32(ie::FAR_ID, ids.ul_far.0);
            self.apply_action(w, FORW);
            w.group(ie::FORWARDING_PARAMETERS, |w| {
                w.u8(ie::DESTINATION_INTERFACE, CORE);
                self.network_instance(w);
                w.u8(ie::INTERFACE_TYPE, N6_3GPP);
            });
        });
        if with_router {
            w.group(ie::CREATE_FAR, |w| {
                w.u32(ie::FAR_ID, 3);
                self.apply_action(w, FORW);
                w.group(ie::FORWARDING_PARAMETERS, |w| {
                    w.u8(ie::DESTINATION_INTERFACE, CP_FUNCTION);
                    self.network_instance(w);
                    w.outer_header_creation(OPEN5GS_CP_TEID, self.smf);
                });
            });
        }
        if self.shape.usage {
            self.create_urr(w, ids.urr, None);
        }
        create_qer(w, ids.qer, Some(self.facts.qfi), self.shape.mbr_kbps);
        w.group(ie::CREATE_BAR, |w| w.u8(ie::BAR_ID, 1));
        // IMSI 999700000000001 as TBCD (§8.2.101), and a slice of type 1 without differentiator.
        w.bytes(USER_ID, &[1, 8, 0x99, 0x79, 0, 0, 0, 0, 0, 0xf1]);
        w.labels(ie::APN_DNN, &self.shape.dnn);
        w.bytes(S_NSSAI, &[1, 0xff, 0xff, 0xff]);
    }

    pub(crate) fn free5gc_rules(&self, w: &mut Writer<'_>) {
        let ids = self.ids;
        for uplink in [true, false] {
            w.group(ie::CREATE_PDR, |w| {
                w.u16(ie::PDR_ID, if uplink { ids.ul_pdr.0 } else { ids.dl_pdr.0 });
                w.u32(ie::PRECEDENCE, 255);
                w.group(ie::PDI, |w| {
                    w.u8(ie::SOURCE_INTERFACE, if uplink { ACCESS } else { CORE });
                    if uplink {
                        w.f_teid(self.facts.ul_teid, self.facts.upf_n3);
                    }
                    self.network_instance(w);
                    w.ue_ip(self.ue_ip(!uplink));
                });
                if uplink {
                    w.u8(ie::OUTER_HEADER_REMOVAL, 0);
                }
                w.u32(ie::FAR_ID, if uplink { ids.ul_far.0 } else { ids.dl_far.0 });
                // The session's stands first.
                w.u32(ie::QER_ID, ids.ambr_qer.0);
                w.u32(ie::QER_ID, ids.qer.0);
                if self.shape.usage {
                    w.u32(ie::URR_ID, ids.urr.0);
                    w.u32(ie::URR_ID, ids.second_urr.0);
                }
            });
        }
        self.create_far(w, ids.ul_far, FORW, Some(CORE), false);
        self.create_far(w, ids.dl_far, FORW, Some(ACCESS), false);
        create_qer(w, ids.qer, Some(self.facts.qfi), None);
        create_qer(
            w,
            ids.ambr_qer,
            Some(self.facts.qfi),
            self.shape.mbr_kbps.or(Some((1_000_000, 1_000_000))),
        );
        if self.shape.usage {
            self.create_urr(w, ids.urr, Some(true));
            self.create_urr(w, ids.second_urr, Some(false));
        }
    }

    pub(crate) fn omec_rules(&self, w: &mut Writer<'_>) {
        let ids = self.ids;
        let ue = if self.upf_allocates_ue_ip {
            UeIp { choose_ipv4: true, ..UeIp::default() }
        } else {
            self.ue_ip(false)
        };
        for uplink in [true, false] {
            w.group(ie::CREATE_PDR, |w| {
                w.u16(ie::PDR_ID, if uplink { ids.ul_pdr.0 } else { ids.dl_pdr.0 });
                w.u32(ie::PRECEDENCE, 255);
                w.group(ie::PDI, |w| {
                    w.u8(ie::SOURCE_INTERFACE, if uplink { ACCESS } else { CORE });
                    if uplink {
                        w.choose_f_teid(false, false, None);
                        self.network_instance(w);
                    } else {
                        self.downlink_network_instance(w);
                    }
                    w.ue_ip(ue);
                });
                if uplink {
                    w.u8(ie::OUTER_HEADER_REMOVAL, 0);
                }
                w.u32(ie::FAR_ID, if uplink { ids.ul_far.0 } else { ids.dl_far.0 });
                w.u32(ie::QER_ID, ids.qer.0);
            });
        }
        self.create_far(w, ids.ul_far, FORW, Some(N6_LAN), false);
        self.create_far(w, ids.dl_far, DROP, None, false);
        create_qer(w, ids.qer, Some(self.facts.qfi), self.shape.mbr_kbps.or(Some((1_000_000, 1_000_000))));
    }

    pub(crate) fn oai_rule(&self, w: &mut Writer<'_>, uplink: bool) {
        let ids = self.ids;
        w.group(ie::CREATE_PDR, |w| {
            w.u16(ie::PDR_ID, if uplink { ids.ul_pdr.0 } else { ids.dl_pdr.0 });
            w.u32(ie::PRECEDENCE, 0);
            w.group(ie::PDI, |w| {
                w.u8(ie::SOURCE_INTERFACE, if uplink { ACCESS } else { CORE });
                if uplink {
                    w.choose_f_teid(true, false, Some(42));
                    self.network_instance(w);
                } else {
                    self.downlink_network_instance(w);
                }
                w.ue_ip(self.ue_ip(!uplink));
                if uplink {
                    w.flow_description("permit out ip from any to assigned");
                    w.qfi(self.facts.qfi);
                }
                w.u8(ie::INTERFACE_TYPE, 0);
            });
            if uplink {
                w.u8(ie::OUTER_HEADER_REMOVAL, 0);
            }
            w.u32(ie::FAR_ID, if uplink { ids.ul_far.0 } else { ids.dl_far.0 });
            if self.shape.usage {
                w.u32(ie::URR_ID, ids.urr.0);
            }
        });
        if uplink {
            self.create_far(w, ids.ul_far, FORW, Some(CORE), false);
        } else {
            self.create_far(w, ids.dl_far, FORW, Some(ACCESS), true);
        }
    }

    pub(crate) fn oai_urr(&self, w: &mut Writer<'_>) {
        w.group(ie::CREATE_URR, |w| {
            w.u32(ie::URR_ID, self.ids.urr.0);
            // Duration and volume.
            w.u8(ie::MEASUREMENT_METHOD, 3);
            w.bytes(ie::REPORTING_TRIGGERS, &[PERIO | VOLTH | TIMTH, 0, 0]);
            w.u32(ie::MEASUREMENT_PERIOD, 10);
            w.volume_threshold(None, None, Some(1000));
            w.u32(ie::TIME_THRESHOLD, 5);
        });
    }

    pub(crate) fn pfcpsim_rules(&self, w: &mut Writer<'_>) {
        let ids = self.ids;
        for uplink in [true, false] {
            w.group(ie::CREATE_PDR, |w| {
                w.u16(ie::PDR_ID, if uplink { ids.ul_pdr.0 } else { ids.dl_pdr.0 });
                w.u32(ie::PRECEDENCE, 100);
                w.group(ie::PDI, |w| {
                    w.u8(ie::SOURCE_INTERFACE, if uplink { ACCESS } else { CORE });
                    if uplink {
                        w.f_teid(self.facts.ul_teid, self.facts.upf_n3);
                    } else {
                        w.ue_ip(self.ue_ip(true));
                    }
                    w.flow_description("permit out ip from any to assigned");
                });
                if uplink {
                    w.u8(ie::OUTER_HEADER_REMOVAL, 0);
                }
                w.u32(ie::FAR_ID, if uplink { ids.ul_far.0 } else { ids.dl_far.0 });
                w.u32(ie::QER_ID, ids.ambr_qer.0);
                w.u32(ie::QER_ID, ids.qer.0);
            });
        }
        self.create_far(w, ids.ul_far, FORW, Some(CORE), false);
        // The gNB isn't known, and is written as zeros.
        w.group(ie::CREATE_FAR, |w| {
            w.u32(ie::FAR_ID, ids.dl_far.0);
            self.apply_action(w, DROP);
            w.group(ie::FORWARDING_PARAMETERS, |w| {
                w.u8(ie::DESTINATION_INTERFACE, ACCESS);
                w.outer_header_creation(Teid(0), Ipv4Addr::UNSPECIFIED.into());
            });
        });
        create_qer(w, ids.ambr_qer, Some(Qfi::from_wire(0)), Some((1_000_000, 1_000_000)));
        create_qer(w, ids.qer, Some(self.facts.qfi), self.shape.mbr_kbps);
    }
}
