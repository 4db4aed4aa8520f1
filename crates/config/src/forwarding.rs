//! Forwarding Policies: ways out on N6 that SMFs ask for by name (TS 29.244 §5.4.8, §8.2.23).

use super::findings::{Check, way};
use super::nat::MAX_POLICY;
use super::problem::Wrong;
use super::sections::{File, InterfaceSection, Role};
use super::units::{self, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A way out on N6 that SMFs may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ForwardingPolicySection {
    /// Its identifier: what SMFs send in the Forwarding Policy of a FAR, 1 to 255 octets.
    pub id: String,
    /// Routers, at most one of each address family, in the subnet of an interface with the role `n6`. Packets that leave without a tunnel go there,
    /// whatever routes say. Default: as routes say.
    #[serde(default, with = "units::list")]
    #[schemars(with = "Vec<Text<IpAddr>>")]
    pub next_hop: Vec<IpAddr>,
    /// Network Instance that takes the place of the FAR's, of an interface with the role `n6`. Default: the FAR's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_instance: Option<String>,
}

/// A Forwarding Policy, examined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingPolicy {
    /// Its identifier.
    pub id: String,
    /// Routers for IPv4 and IPv6: the interface's position, and the address.
    pub next_hops: [Option<(usize, IpAddr)>; 2],
    /// In lower case.
    pub network_instance: Option<String>,
}

impl Check<'_> {
    pub(super) fn forwarding_policies(&mut self, file: &File) -> Vec<ForwardingPolicy> {
        let sections = &file.forwarding_policy;
        for (index, section) in sections.iter().enumerate() {
            if !(1..=MAX_POLICY).contains(&section.id.len()) {
                self.wrong(&way!["forwarding-policy", index, "id"], Wrong::PolicyId);
            }
            if let Some(first) = sections.iter().take(index).position(|other| other.id == section.id) {
                let wrong = Wrong::DuplicateName { kind: "forwarding-policy", name: section.id.clone() };
                let other = way!["forwarding-policy", first, "id"];
                self.wrong_with(&way!["forwarding-policy", index, "id"], wrong, &other, "the other");
            }
            if section.next_hop.is_empty() && section.network_instance.is_none() {
                self.wrong(&way!["forwarding-policy", index], Wrong::PolicyOfNothing);
            }
            if let Some(instance) = &section.network_instance
                && !leaves(file, instance)
            {
                let wrong = Wrong::NotOnN6 { instance: instance.clone() };
                self.wrong(&way!["forwarding-policy", index, "network-instance"], wrong);
            }
        }
        let policy = |(index, section): (usize, &ForwardingPolicySection)| ForwardingPolicy {
            id: section.id.clone(),
            next_hops: self.next_hops(file, index, &section.next_hop),
            network_instance: section.network_instance.as_ref().map(|name| name.to_lowercase()),
        };
        sections.iter().enumerate().map(policy).collect()
    }

    /// The routers of a policy, one of each family, where they can be reached.
    fn next_hops(&mut self, file: &File, index: usize, all: &[IpAddr]) -> [Option<(usize, IpAddr)>; 2] {
        let mut found = [None; 2];
        for (position, address) in all.iter().enumerate() {
            let path = way!["forwarding-policy", index, "next-hop", position];
            let is_n6 = |interface: &InterfaceSection| interface.roles.contains(&Role::N6);
            let reached = |interface: &InterfaceSection| {
                is_n6(interface) && interface.addresses.iter().any(|own| own.subnet().contains(address))
            };
            let Some(interface) = file.interface.iter().position(reached) else {
                let scope = "any interface with the role `n6`".to_owned();
                self.wrong(&path, Wrong::NotConnected { address: *address, scope });
                continue;
            };
            let [v4, v6] = &mut found;
            let place = if address.is_ipv4() { v4 } else { v6 };
            if place.replace((interface, *address)).is_some() {
                self.wrong(&path, Wrong::SecondNextHop { address: *address });
            }
        }
        found
    }
}

/// Whether packets of a Network Instance leave without a tunnel somewhere.
pub(super) fn leaves(file: &File, instance: &str) -> bool {
    file.interface.iter().any(|interface| {
        let mut names = interface.network_instances.iter();
        interface.roles.contains(&Role::N6) && names.any(|name| name.eq_ignore_ascii_case(instance))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::parse;

    const NETWORK: &str = "
[[port]]
name = 'a'
driver = 'null'
[[interface]]
name = 'n3'
port = 'a'
vlan = 3
roles = ['n3']
addresses = ['192.0.2.1/24']
[[interface]]
name = 'n6'
port = 'a'
roles = ['n6']
network-instances = ['Internet']
addresses = ['203.0.113.1/24', '2001:db8:6::1/64']
";

    fn with(policy: &str) -> Result<crate::Config, String> {
        parse("upf.toml", &format!("{NETWORK}[[forwarding-policy]]\n{policy}\n"), &[], &[])
            .map_err(|report| report.to_string())
    }

    #[test]
    fn a_policy_has_routers_of_both_families_or_an_instance() {
        let config = with(
            "id = 'video lan'\nnext-hop = ['203.0.113.9', '2001:db8:6::9']\nnetwork-instance = 'INTERNET'",
        )
        .unwrap();
        let [policy] = &config.forwarding_policies[..] else { panic!() };
        assert_eq!((&*policy.id, policy.network_instance.as_deref()), ("video lan", Some("internet")));
        let routers = ["203.0.113.9", "2001:db8:6::9"].map(|it| Some((1, it.parse().unwrap())));
        assert_eq!(policy.next_hops, routers);
        let config = with("id = 'a'\nnext-hop = ['2001:db8:6::9']").unwrap();
        assert_eq!(config.forwarding_policies[0].next_hops, [None, routers[1]]);
    }

    #[test]
    fn what_no_packet_could_follow_is_refused() {
        for (policy, line, sentence) in [
            ("id = ''\nnext-hop = ['203.0.113.9']", "id = ''", "1 to 255 octets"),
            ("id = 'a'", "[[forwarding-policy]]", "neither `next-hop` nor `network-instance`"),
            (
                "id = 'a'\nnetwork-instance = 'corp'",
                "network-instance = 'corp'",
                "has the network instance `corp`",
            ),
            ("id = 'a'\nnext-hop = ['192.0.2.9']", "next-hop = ['192.0.2.9']", "with the role `n6`"),
            ("id = 'a'\nnext-hop = ['203.0.113.1']", "next-hop = ['203.0.113.1']", "this UPF's own address"),
            (
                "id = 'a'\nnext-hop = ['203.0.113.9', '203.0.113.8']",
                "next-hop = ['203.0.113.9', '203.0.113.8']",
                "a second next hop of one address family",
            ),
            (
                "id = 'a'\nnext-hop = ['203.0.113.9']\n[[forwarding-policy]]\nid = 'a'\nnext-hop = ['203.0.113.8']",
                "id = 'a'",
                "`a`",
            ),
        ] {
            let report = with(policy).unwrap_err();
            let found = report.lines().position(|told| told.contains(sentence));
            let at = found.unwrap_or_else(|| panic!("{sentence}: {report}"));
            assert!(report.lines().nth(at + 1).unwrap().ends_with(line), "{report}");
        }
    }
}
