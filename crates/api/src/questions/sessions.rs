//! Lists of sessions.

use super::Question;
use crate::table::{Page, columns};
use crate::{SeidText, TeidText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr};

/// List sessions in order of SEID.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct Sessions {
    /// Continue behind the session with this SEID, whether it is still there or not: the last answer's `next`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SEID"))]
    pub after: Option<SeidText>,
    /// Skip this many. To go through many sessions, `after` is faster.
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 0))]
    pub offset: u64,
    /// The most to show (up to 10000). In JSON 0 only counts.
    #[cfg_attr(
        feature = "clap",
        arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=i64::from(crate::MAX_PAGE)))
    )]
    pub limit: u32,
    /// Only those of the UE with this address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ADDRESS"))]
    pub ue: Option<IpAddr>,
    /// Only those of this user: IMSI, MSISDN, NAI, …, with or without `imsi-` and the like before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub user: Option<String>,
    /// Only those with this DNN or APN.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub dnn: Option<String>,
    /// Only the one with this tunnel of the UPF.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long))]
    pub teid: Option<TeidText>,
    /// Only those of the SMF with this Node ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NODE-ID"))]
    pub peer: Option<String>,
    /// Only those with this Network Instance, as their SMF named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub network_instance: Option<String>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            after: None,
            offset: 0,
            limit: 100,
            ue: None,
            user: None,
            dnn: None,
            teid: None,
            peer: None,
            network_instance: None,
        }
    }
}

impl Question for Sessions {
    const NAME: &'static str = "sessions";
    type Answer = SessionPage;

    fn show(&self, told: &SessionPage) -> Page {
        let SessionPage { total, offset, next, sessions } = told;
        if sessions.is_empty() {
            let matching = total.map_or_else(String::new, |total| format!("; {total} match"));
            return Page::text(format!("No session to show{matching}.\n"));
        }
        let shown = sessions.len() as u64;
        // Behind a SEID nobody knows how many were before.
        let which = match (self.after, total) {
            (None, Some(total)) => format!("{} to {} of {total}", offset + 1, offset + shown),
            (None, None) => format!("{} to {}", offset + 1, offset + shown),
            (Some(_), Some(total)) => format!("{shown} of {total}"),
            (Some(_), None) => format!("{shown} more"),
        };
        let more = next.map_or_else(String::new, |seid| format!("; --after {seid} goes on"));
        let mut page = Page::table(sessions);
        page.say(format!("{which}{more}\n"));
        page
    }
}

/// Some sessions, in order of SEID.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionPage {
    /// How many sessions match; none: there may be more than those that were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// How many were passed over.
    pub offset: u64,
    /// For the next question's `after`; none: these were the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<SeidText>,
    /// Those after them.
    pub sessions: Vec<SessionLine>,
}

/// A session in brief.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionLine {
    /// UP SEID.
    pub seid: SeidText,
    /// CP SEID: the SMF's.
    pub cp_seid: SeidText,
    /// The SMF's Node ID.
    pub peer: String,
    /// The UE's IPv4 address.
    pub ue_ipv4: Option<Ipv4Addr>,
    /// The UE's IPv6 prefix.
    pub ue_ipv6: Option<String>,
    /// The user, by the first identity that the SMF gave, such as `imsi-001010000000001`.
    #[serde(default)]
    pub user: Option<String>,
    /// DNN or APN.
    #[serde(default)]
    pub dnn: Option<String>,
    /// The slice, such as `1-00007b`.
    #[serde(default)]
    pub s_nssai: Option<String>,
    /// Network Instance as the SMF named it, whether it is configured or not; several are joined by commas; empty: none was given.
    pub network_instance: String,
    /// The shard that owns it.
    pub shard: u16,
    /// How many PDRs, FARs, QERs and URRs it has.
    pub rules: RuleCounts,
}

/// Numbers of rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RuleCounts {
    /// Packet Detection Rules.
    pub pdrs: u16,
    /// Forwarding Action Rules.
    pub fars: u16,
    /// QoS Enforcement Rules.
    pub qers: u16,
    /// Usage Reporting Rules.
    pub urrs: u16,
}

columns!(SessionLine, |line| {
    "SEID" Left line.seid,
    "UE IPV4" Left line.ue_ipv4,
    "UE IPV6" Left line.ue_ipv6,
    "USER" Left line.user,
    "DNN" Left line.dnn,
    "NETWORK" Left if line.network_instance.is_empty() { "-" } else { &line.network_instance },
    "SMF" Left line.peer,
    "CP SEID" Left line.cp_seid,
    "SHARD" Right line.shard,
    "PDR" Right line.rules.pdrs,
    "FAR" Right line.rules.fars,
    "QER" Right line.rules.qers,
    "URR" Right line.rules.urrs,
});

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn line() -> SessionLine {
        SessionLine {
            seid: SeidText(0x2_0000_0001),
            cp_seid: SeidText(7),
            peer: "smf\x1b[2J.example.org".into(),
            ue_ipv4: Some([10, 45, 0, 2].into()),
            ue_ipv6: Some("2001:db8:45:2::/64".into()),
            user: Some("imsi-001010000000001".into()),
            dnn: Some("internet".into()),
            s_nssai: Some("1-00007b".into()),
            network_instance: "internet".into(),
            shard: 311,
            rules: RuleCounts { pdrs: 2, fars: 2, qers: 1, urrs: 1 },
        }
    }

    #[test]
    fn a_page_of_sessions() {
        let next = Some(line().seid);
        let page = SessionPage { total: Some(12), offset: 10, next, sessions: vec![line()] };
        insta::assert_snapshot!(Sessions::default().show(&page));
        let ends = |asked: &Sessions, told: &SessionPage, end: &str| {
            let shown = asked.show(told).to_string();
            assert!(shown.ends_with(&format!("\n{end}\n")), "{shown}");
        };
        let on = Sessions { after: next, ..Sessions::default() };
        ends(&on, &page, "1 of 12; --after 0x0000000200000001 goes on");
        let searched = SessionPage { total: None, offset: 0, ..page.clone() };
        ends(&Sessions::default(), &searched, "1 to 1; --after 0x0000000200000001 goes on");
        ends(&on, &SessionPage { next: None, ..searched }, "1 more");
        let none = SessionPage { sessions: vec![], ..page };
        assert_eq!(on.show(&none).to_string(), "No session to show; 12 match.\n");
    }
}
