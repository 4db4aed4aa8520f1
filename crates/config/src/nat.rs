//! Translation on N6: the sections as serde reads them, what is examined, and what the rest of the program takes.
//!
//! What a plan may not be is said in one place, [`datapath::nat::PlanError`]; here it is given a place in the file.

use super::findings::{Check, way};
use super::forwarding::leaves;
use super::problem::{Step, Wrong};
use super::sections::File;
use super::units::{self, Text};
use datapath::nat::{Choice, Filtering, Logging, Plan, PlanError, Protocol, Settings, Static, Timeouts};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// Octets of a Forwarding Policy's identifier, at most (TS 29.244 §8.2.23).
pub(super) const MAX_POLICY: usize = 255;

/// A pool of public IPv4 addresses and the UEs that share it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NatSection {
    /// A name for logs and displays.
    pub name: String,
    /// For packets whose rule (FAR) has this Forwarding Policy. SMFs may name the policies that are here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarding_policy: Option<String>,
    /// For packets whose rule (FAR) sends them to this Network Instance, which an N6 interface has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_instance: Option<String>,
    /// UE addresses that are translated. Default, if `forwarding-policy` or `network-instance` says whose packets: all.
    #[serde(default, with = "units::list")]
    #[schemars(with = "Vec<Text<Ipv4Net>>")]
    pub inside: Vec<Ipv4Net>,
    /// Public addresses: all of each prefix, its first and last included. They have to be routed to this UPF, or lie in the
    /// subnet of an N6 interface, which then answers ARP for them. Default, with `forwarding-policy` or `network-instance`: none, and these
    /// packets are not translated.
    #[serde(default, with = "units::list")]
    #[schemars(with = "Vec<Text<Ipv4Net>>")]
    pub outside: Vec<Ipv4Net>,
    /// The lowest public port that is used; the highest is 65535.
    #[serde(default = "default_first_port")]
    pub first_port: u16,
    /// Ports in a block, a power of two. A UE is given blocks, and each is one line of the log of bindings.
    #[serde(default = "default_block_size")]
    #[schemars(range(min = 16, max = 8192))]
    pub block_size: u16,
    /// Blocks that one UE may have.
    #[serde(default = "default_blocks_per_ue")]
    #[schemars(range(min = 1, max = 255))]
    pub blocks_per_ue: u8,
    /// Who may send to a UE's public port (RFC 4787 §5).
    #[serde(default)]
    pub filtering: NatFiltering,
    /// What is written to the log of bindings.
    #[serde(default)]
    pub log: NatLogging,
    /// How long a TCP connection may be silent (RFC 5382 REQ-5: 124m at least).
    #[serde(default = "default_tcp_established", with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub tcp_established: Duration,
    /// The same while it is not answered yet, or half closed (RFC 5382 REQ-5: 4m at least).
    #[serde(default = "default_tcp_transitory", with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub tcp_transitory: Duration,
    /// How long a TCP port is kept after both sides closed, or one reset.
    #[serde(default = "default_tcp_closed", with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub tcp_closed: Duration,
    /// How long a UDP port may be silent (RFC 4787 REQ-5: 2m at least).
    #[serde(default = "default_udp", with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub udp: Duration,
    /// How long answers to a ping are awaited (RFC 5508 REQ-2: 60s at least).
    #[serde(default = "default_icmp", with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub icmp: Duration,
}

const fn default_first_port() -> u16 {
    1024
}

const fn default_block_size() -> u16 {
    256
}

const fn default_blocks_per_ue() -> u8 {
    4
}

const fn default_tcp_established() -> Duration {
    Duration::from_mins(124)
}

const fn default_tcp_transitory() -> Duration {
    Duration::from_mins(4)
}

const fn default_tcp_closed() -> Duration {
    Duration::from_secs(30)
}

const fn default_udp() -> Duration {
    Duration::from_mins(5)
}

const fn default_icmp() -> Duration {
    Duration::from_mins(1)
}

/// Who may send to a UE's public port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NatFiltering {
    /// Anybody.
    #[default]
    EndpointIndependent,
    /// Hosts that the UE has sent to from this port.
    AddressDependent,
}

/// What is written to the log of bindings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NatLogging {
    /// Nothing.
    None,
    /// Blocks of ports, when they are given to a UE and when they are returned.
    #[default]
    Blocks,
    /// Every single mapping beside: many lines.
    Bindings,
}

/// A public address, or one port of it, that always leads to the same UE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NatStaticSection {
    /// The public address: of a pool, if it is one port that is forwarded, or any other.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Ipv4Addr>")]
    pub outside: Ipv4Addr,
    /// The UE's address.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Ipv4Addr>")]
    pub inside: Ipv4Addr,
    /// The protocol of a forwarded port. Default: the whole address is the UE's, whatever the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<NatProtocol>,
    /// The public port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub outside_port: Option<u16>,
    /// The UE's port. Default: the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub inside_port: Option<u16>,
}

/// A protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NatProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Prefix translation for IPv6 (NPTv6, RFC 6296).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Nptv6Section {
    /// The UEs' prefix, /32 to /64.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Ipv6Net>")]
    pub inside: Ipv6Net,
    /// The public prefix, of the same length, routed to this UPF.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Ipv6Net>")]
    pub outside: Ipv6Net,
}

/// Where the log of bindings goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NatLogSection {
    /// A file that lines of JSON are appended to. Default: there is no log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// What a pool asks of the rule whose packets it translates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatRule {
    /// Identifier of a Forwarding Policy.
    pub policy: Option<String>,
    /// Network Instance.
    pub instance: Option<String>,
}

/// What is translated on N6, examined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nat {
    /// Pools, but for what they ask of rules.
    pub pools: Vec<Settings>,
    /// That.
    pub rules: Vec<NatRule>,
    /// Static entries.
    pub statics: Vec<Static>,
    /// IPv6 prefixes: inside, outside.
    pub prefixes: Vec<(Ipv6Net, Ipv6Net)>,
    /// The log of bindings.
    pub log: Option<PathBuf>,
}

impl Nat {
    /// Compiled for the workers, after the plan that they have. Policies and instances have these numbers in rules.
    pub fn plan(
        &self,
        before: &Plan,
        policy: impl Fn(&str) -> u16,
        instance: impl Fn(&str) -> u16,
    ) -> Result<Plan, PlanError> {
        let pools: Vec<Settings> = self
            .pools
            .iter()
            .zip(&self.rules)
            .map(|(settings, rule)| {
                let number =
                    |name: &Option<String>, number: &dyn Fn(&str) -> u16| name.as_deref().map_or(0, number);
                let rule = Choice {
                    policy: number(&rule.policy, &policy),
                    instance: number(&rule.instance, &instance),
                };
                Settings { rule, ..settings.clone() }
            })
            .collect();
        before.succeeded_by(&pools, &self.statics, &self.prefixes)
    }

    /// Forwarding Policies, each once, in the order of the pools.
    pub fn policies(&self) -> Vec<&str> {
        distinct(self.rules.iter().filter_map(|rule| rule.policy.as_deref()))
    }

    /// Likewise Network Instances.
    fn instances(&self) -> Vec<&str> {
        distinct(self.rules.iter().filter_map(|rule| rule.instance.as_deref()))
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The number of a name in rules, from 1.
fn number(names: &[&str], name: &str) -> u16 {
    names.iter().position(|known| *known == name).map_or(0, |at| at as u16 + 1)
}

impl Check<'_> {
    pub(super) fn nat(&mut self, file: &File) -> Nat {
        self.names("nat", file.nat.iter().map(|section| section.name.as_str()));
        let mut statics = Vec::new();
        for (index, section) in file.nat_static.iter().enumerate() {
            let port = match (section.protocol, section.outside_port, section.inside_port) {
                (None, None, None) => None,
                (Some(protocol), Some(outside), inside) => {
                    let protocol = match protocol {
                        NatProtocol::Tcp => Protocol::Tcp,
                        NatProtocol::Udp => Protocol::Udp,
                    };
                    Some((protocol, outside, inside.unwrap_or(outside)))
                }
                _ => {
                    self.wrong(&way!["nat-static", index], Wrong::NatStaticPort);
                    None
                }
            };
            statics.push(Static { outside: section.outside, inside: section.inside, port });
        }
        let nat = Nat {
            pools: file.nat.iter().map(settings).collect(),
            rules: file.nat.iter().map(rule).collect(),
            statics,
            prefixes: file.nptv6.iter().map(|section| (section.inside, section.outside)).collect(),
            log: file.nat_log.file.clone(),
        };
        self.nat_prefixes(file);
        self.nat_rules(file);
        for (index, section) in file.nat.iter().enumerate() {
            for (key, value) in [
                ("tcp-established", section.tcp_established),
                ("tcp-transitory", section.tcp_transitory),
                ("tcp-closed", section.tcp_closed),
                ("udp", section.udp),
                ("icmp", section.icmp),
            ] {
                if !(Duration::from_secs(1)..=Duration::from_hours(24)).contains(&value) {
                    let wrong = Wrong::DurationOutOfRange { key, least: "1s", greatest: "24h" };
                    self.wrong(&way!["nat", index, key], wrong);
                }
            }
        }
        let (policies, instances) = (nat.policies(), nat.instances());
        let plan =
            nat.plan(&Plan::default(), |name| number(&policies, name), |name| number(&instances, name));
        if let Err(error) = plan {
            self.wrong(&place(&error, file), Wrong::Nat { error });
        }
        nat
    }

    /// What pools ask of rules can be said by one, and packets of that rule can leave on N6.
    fn nat_rules(&mut self, file: &File) {
        for (index, section) in file.nat.iter().enumerate() {
            let long = |id: &String| !(1..=MAX_POLICY).contains(&id.len());
            if section.forwarding_policy.as_ref().is_some_and(long) {
                self.wrong(&way!["nat", index, "forwarding-policy"], Wrong::PolicyId);
            }
            let Some(instance) = &section.network_instance else { continue };
            if !leaves(file, instance) {
                let wrong = Wrong::NotOnN6 { instance: instance.clone() };
                self.wrong(&way!["nat", index, "network-instance"], wrong);
            }
        }
    }

    /// Public prefixes are nobody else's, and written as prefixes.
    fn nat_prefixes(&mut self, file: &File) {
        let mut public: Vec<(IpNet, Vec<Step>)> = Vec::new();
        for (index, section) in file.nat.iter().enumerate() {
            let inside = section.inside.iter().enumerate().map(|(p, net)| (net, "inside", p));
            let outside = section.outside.iter().enumerate().map(|(p, net)| (net, "outside", p));
            for (net, key, position) in inside.chain(outside) {
                let path = way!["nat", index, key, position].to_vec();
                let prefix = IpNet::V4(*net);
                if prefix != prefix.trunc() {
                    self.wrong(&path, Wrong::HostBits { prefix });
                } else if key == "outside" {
                    public.push((prefix, path));
                }
            }
        }
        for (index, section) in file.nat_static.iter().enumerate() {
            let path = way!["nat-static", index, "outside"].to_vec();
            public.push((IpNet::from(std::net::IpAddr::V4(section.outside)), path));
        }
        for (index, section) in file.nptv6.iter().enumerate() {
            for (key, net) in [("inside", section.inside), ("outside", section.outside)] {
                let path = way!["nptv6", index, key].to_vec();
                let prefix = IpNet::V6(net);
                if prefix != prefix.trunc() {
                    self.wrong(&path, Wrong::HostBits { prefix });
                } else if key == "outside" {
                    public.push((prefix, path));
                }
            }
        }
        for (prefix, path) in public {
            self.pool_prefix_addresses(file, prefix, &path);
            for (index, pool) in file.pool.iter().enumerate() {
                let ipv4 = pool.ipv4.iter().map(|net| IpNet::V4(*net)).enumerate();
                let ipv6 = pool.ipv6.iter().map(|net| IpNet::V6(*net)).enumerate();
                let all = ipv4.map(|(p, net)| (net, way!["pool", index, "ipv4", p]));
                for (net, other) in all.chain(ipv6.map(|(p, net)| (net, way!["pool", index, "ipv6", p]))) {
                    if net.contains(&prefix) || prefix.contains(&net) {
                        let wrong = Wrong::Overlap {
                            what: "UE pool and public addresses",
                            first: net,
                            second: prefix,
                        };
                        self.wrong_with(&path, wrong, &other, "the UE pool");
                    }
                }
            }
        }
    }
}

/// Where in the file the plan is wrong.
fn place(error: &PlanError, file: &File) -> Vec<Step> {
    match *error {
        PlanError::TooManyPools => way!["nat"].to_vec(),
        PlanError::Empty(at, key) => way!["nat", at, key].to_vec(),
        PlanError::TooManyAddresses(at) | PlanError::FewBlocks(at, ..) => way!["nat", at, "outside"].to_vec(),
        PlanError::BlockSize(at) => way!["nat", at, "block-size"].to_vec(),
        PlanError::NoBlocks(at) => way!["nat", at, "blocks-per-ue"].to_vec(),
        PlanError::Overlap(at, _, second) => {
            let section = file.nat.get(at);
            // The last that is written so: the first may be what it overlaps.
            let find = |list: &[Ipv4Net]| list.iter().rposition(|net| *net == second);
            let inside = section.and_then(|section| find(&section.inside));
            let outside = section.and_then(|section| find(&section.outside));
            match (inside, outside) {
                (Some(p), None) => way!["nat", at, "inside", p].to_vec(),
                (_, Some(p)) => way!["nat", at, "outside", p].to_vec(),
                (None, None) => way!["nat", at].to_vec(),
            }
        }
        PlanError::SameRule(at, _) => {
            let has_policy = file.nat.get(at).is_some_and(|section| section.forwarding_policy.is_some());
            way!["nat", at, if has_policy { "forwarding-policy" } else { "network-instance" }].to_vec()
        }
        PlanError::Duplicate(at) | PlanError::InPool(at) => way!["nat-static", at, "outside"].to_vec(),
        PlanError::PortZero(at) => way!["nat-static", at, "outside-port"].to_vec(),
        PlanError::PrefixLength(at) => way!["nptv6", at, "outside"].to_vec(),
        PlanError::PrefixOverlap(at) => {
            let earlier = file.nptv6.iter().take(at).flat_map(|entry| [entry.inside, entry.outside]);
            let overlaps = |a: Ipv6Net, b: Ipv6Net| a.contains(&b) || b.contains(&a);
            let inside = file.nptv6.get(at).map(|entry| entry.inside);
            let taken = inside.is_some_and(|inside| earlier.into_iter().any(|net| overlaps(net, inside)));
            way!["nptv6", at, if taken { "inside" } else { "outside" }].to_vec()
        }
    }
}

fn rule(section: &NatSection) -> NatRule {
    // Network Instances have no case.
    let instance = section.network_instance.as_ref().map(|name| name.to_lowercase());
    NatRule { policy: section.forwarding_policy.clone(), instance }
}

fn settings(section: &NatSection) -> Settings {
    let nanos = |duration: Duration| duration.as_nanos().min(u128::from(u64::MAX)) as u64;
    Settings {
        name: section.name.clone(),
        // Their numbers are known where all names are.
        rule: Choice::default(),
        inside: section.inside.clone(),
        outside: section.outside.clone(),
        first_port: section.first_port,
        block_size: section.block_size,
        blocks_per_ue: section.blocks_per_ue,
        filtering: match section.filtering {
            NatFiltering::EndpointIndependent => Filtering::EndpointIndependent,
            NatFiltering::AddressDependent => Filtering::AddressDependent,
        },
        timeouts: Timeouts {
            tcp_established: nanos(section.tcp_established),
            tcp_transitory: nanos(section.tcp_transitory),
            tcp_closed: nanos(section.tcp_closed),
            udp: nanos(section.udp),
            icmp: nanos(section.icmp),
        },
        logging: match section.log {
            NatLogging::None => Logging::Nothing,
            NatLogging::Blocks => Logging::Blocks,
            NatLogging::Bindings => Logging::Bindings,
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Config, parse};
    use datapath::nat::Plan;

    const BASE: &str = r#"
[[port]]
name = "p0"
driver = "af_packet"
iface = "veth0"

[[interface]]
name = "n3"
port = "p0"
vlan = 3
roles = ["n3"]
addresses = ["198.51.100.1/24"]

[[interface]]
name = "n6"
port = "p0"
roles = ["n6"]
addresses = ["203.0.113.1/24"]

[[pool]]
ipv4 = ["10.45.0.0/16"]
"#;

    fn with(text: &str) -> Result<Config, String> {
        parse("upf.toml", &format!("{BASE}{text}"), &[], &[]).map_err(|report| report.to_string())
    }

    fn refused(text: &str, sentence: &str) {
        let report = with(text).unwrap_err();
        assert!(report.contains(sentence), "{report}");
    }

    #[test]
    fn a_plan_is_read() {
        let config = with(
            "[[nat]]\nname = 'a'\ninside = ['10.45.0.0/16']\noutside = ['203.0.113.64/26']\nudp = '2m'\n\
             [[nat-static]]\noutside = '203.0.113.65'\ninside = '10.45.0.9'\nprotocol = 'udp'\noutside-port = 5060\n\
             [[nptv6]]\ninside = 'fd00::/48'\noutside = '2001:db8:1::/48'\n",
        )
        .unwrap();
        assert_eq!(config.nat.pools[0].timeouts.udp, 120_000_000_000);
        assert_eq!(
            config.nat.statics[0].port.map(|(_, outside, inside)| (outside, inside)),
            Some((5060, 5060))
        );
        assert_eq!(
            (config.nat.prefixes.len(), config.nat.plan(&Plan::default(), |_| 0, |_| 0).unwrap().blocks(0)),
            (1, 64 * 252)
        );
        assert_eq!(config.nat.log, None);
    }

    #[test]
    fn what_a_plan_can_not_be() {
        let nat = |outside: &str, more: &str| {
            format!("[[nat]]\nname = 'a'\ninside = ['10.45.0.0/16']\noutside = ['{outside}']\n{more}\n")
        };
        refused(
            &nat("203.0.113.64/32", ""),
            "the pool has 252 blocks of ports, and each of the 512 shards needs one",
        );
        refused(&nat("203.0.113.64/32", ""), "blocks of at most 64 ports");
        refused(
            &nat("203.0.113.0/26", ""),
            "the pool 203.0.113.0/26 contains this UPF's own address 203.0.113.1",
        );
        refused(&nat("203.0.113.64/26", "block-size = 100"), "a power of two");
        refused(&nat("203.0.113.65/26", ""), "write 203.0.113.64/26");
        refused(&nat("10.45.1.0/24", ""), "UE pool and public addresses");
        refused(&nat("203.0.113.64/26", "udp = '0s'"), "`udp`");
        let entry = "[[nat-static]]\noutside = '203.0.113.9'\ninside = '10.45.0.9'\n";
        refused(
            &format!("{entry}protocol = 'tcp'\n"),
            "a forwarded port needs `protocol` and `outside-port`",
        );
        refused(&format!("{entry}{entry}"), "another entry says where this leads");
        refused("[[nptv6]]\ninside = 'fd00::/48'\noutside = '2001:db8::/56'\n", "the same length");
    }

    #[test]
    fn rules_choose_pools() {
        let n6 = "[[interface]]\nname = 'corp'\nport = 'p0'\nvlan = 7\nroles = ['n6']\naddresses = ['192.0.2.1/24']\n\
                  network-instances = ['Corp.internet']\n";
        let nat = |name: &str, more: &str| format!("[[nat]]\nname = '{name}'\n{more}\n");
        let by_address = nat("a", "inside = ['10.45.0.0/16']\noutside = ['203.0.113.64/26']");
        let config = with(&format!(
            "{n6}{by_address}{}{}{}",
            nat("direct", "forwarding-policy = 'direct'"),
            nat("fixed", "forwarding-policy = 'fixed'\noutside = ['198.18.0.0/26']"),
            nat("corp", "network-instance = 'CORP.internet'\noutside = ['198.18.1.0/26']"),
        ))
        .unwrap();
        assert_eq!(config.nat.policies(), ["direct", "fixed"]);
        assert_eq!(config.nat.rules[3].instance.as_deref(), Some("corp.internet"));
        let refused = |text: &str, sentence: &str| {
            let report = with(&format!("{n6}{text}")).unwrap_err();
            assert!(report.contains(sentence), "{report}");
        };
        refused(
            &nat("x", "network-instance = 'corp'"),
            "no interface with the role `n6` has the network instance `corp`",
        );
        refused(&nat("x", "forwarding-policy = ''"), "1 to 255 octets");
        refused(&nat("x", "outside = ['198.18.0.0/26']"), "at least one inside prefix");
        refused(&nat("x", "inside = ['10.45.0.0/16']"), "at least one outside prefix");
        // The same packets can't go two ways, and a public address belongs to one pool.
        let fixed = |name: &str, outside: &str| {
            nat(name, &format!("forwarding-policy = 'f'\noutside = ['{outside}']"))
        };
        refused(
            &format!("{}{}", fixed("x", "198.18.0.0/26"), fixed("y", "198.18.1.0/26")),
            "the same packets are pool `x`'s",
        );
        refused(
            &format!("{by_address}{}", fixed("x", "203.0.113.64/26")),
            "203.0.113.64/26 overlaps 203.0.113.64/26",
        );
    }

    #[test]
    fn problems_point_at_the_key() {
        let points = |text: &str, line: &str, sentence: &str| {
            let report = with(text).unwrap_err();
            let found =
                report.lines().position(|l| l.contains(sentence)).unwrap_or_else(|| panic!("{report}"));
            assert!(report.lines().nth(found + 1).unwrap().ends_with(line), "{report}");
        };
        let nat = |inside: &str, outside: &str| {
            format!("[[nat]]\nname = 'a'\ninside = [{inside}]\noutside = [{outside}]\n")
        };
        points(&nat("'10.45.0.0/16'", "'203.0.113.64/32'"), "outside = ['203.0.113.64/32']", "252 blocks");
        let twice = nat("'10.45.0.0/16', '10.45.9.0/24'", "'203.0.113.64/26'");
        points(&twice, "inside = ['10.45.0.0/16', '10.45.9.0/24']", "10.45.9.0/24 overlaps");
        let own = nat("'10.45.0.0/16'", "'203.0.113.1/32'");
        points(&own, "outside = ['203.0.113.1/32']", "this UPF's own address 203.0.113.1");
        let entry = "[[nat-static]]\ninside = '10.45.0.9'\noutside = '203.0.113.9'\n";
        points(&format!("{entry}{entry}"), "outside = '203.0.113.9'", "another entry says");
        let prefix =
            |inside: &str, outside: &str| format!("[[nptv6]]\ninside = '{inside}'\noutside = '{outside}'\n");
        points(&prefix("fd00::/48", "2001:db8::/56"), "outside = '2001:db8::/56'", "the same length");
        let first = prefix("fd00::/48", "2001:db8:1::/48");
        let again = prefix("fd00::/48", "2001:db8:2::/48");
        points(&format!("{first}{again}"), "inside = 'fd00::/48'", "overlap each other");
        points(&prefix("fd00::/48", "fd00::/48"), "outside = 'fd00::/48'", "overlap each other");
        let by_rule =
            |name: &str, more: &str| format!("[[nat]]\nname = '{name}'\n{more}forwarding-policy = 'f'\n");
        let some = "inside = ['10.45.0.0/16']\n";
        for [first, second] in [["", ""], [some, ""], ["", some]] {
            let two = by_rule("x", first) + &by_rule("y", second);
            points(&two, "forwarding-policy = 'f'", "the same packets are pool `x`'s");
        }
        let two = by_rule("x", some) + &by_rule("y", some);
        points(&two, "inside = ['10.45.0.0/16']", "10.45.0.0/16 overlaps 10.45.0.0/16");
    }
}
