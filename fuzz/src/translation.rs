//! What is translated on N6 while the fuzzed world runs, and what must hold of it whatever an operator changes: who leaves by which
//! address, and that nobody has what is somebody else's.

use crate::requests::{DIRECT, FIXED};
use crate::sent::{is_ues, passes_on};
use datapath::nat::{Choice, Filtering, Logging, Plan, Protocol, Settings, Static, Told};
use ipnet::{Ipv4Net, Ipv6Net};
use session::rules::{Action, Rules};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use tables::Nanos;

/// Public addresses that UEs share, of which one is on the link; and what may take their place.
const SHARED: [&str; 2] = ["198.51.100.64/32", "192.0.2.64/32"];
const OTHERS: [&str; 2] = ["198.51.100.66/32", "192.0.2.66/32"];
/// Public addresses of those whose rule asks for them, likewise.
const CHOSEN: [&str; 2] = ["198.51.100.65/32", "192.0.2.65/32"];
const OTHER_CHOSEN: [&str; 1] = ["192.0.2.67/32"];

/// What an operator has configured; by default, nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scheme {
    pools: Vec<Settings>,
    statics: Vec<Static>,
    prefixes: Vec<(Ipv6Net, Ipv6Net)>,
}

fn net<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("a network")
}

fn nets(texts: &[&str]) -> Vec<Ipv4Net> {
    texts.iter().map(|text| net(text)).collect()
}

impl Scheme {
    /// UEs share two addresses, some have their own, and rules choose.
    pub fn first() -> Self {
        Self::of(0b0101_1001)
    }

    /// One of many: what stays when one follows another, what goes, and what comes with the same addresses is different each time. By bits,
    /// from the lowest: who share addresses (3), whether rules may ask for no translation (1), who has addresses by rule (2), static
    /// entries and prefixes (2).
    pub fn of(octet: u8) -> Self {
        let inside = nets(&["10.45.0.0/24", "172.16.0.0/24"]);
        let mut shared = Settings::new("fuzz", inside, nets(&SHARED));
        shared.block_size = 64;
        shared.blocks_per_ue = 2;
        shared.filtering = Filtering::AddressDependent;
        shared.logging = Logging::Bindings;
        let chosen = |policy: u16, outside: &[&str], block_size| Settings {
            name: policy.to_string(),
            rule: Choice { policy, instance: 0 },
            inside: Vec::new(),
            outside: nets(outside),
            block_size,
            ..shared.clone()
        };
        let mut pools = Vec::new();
        if octet & 8 != 0 {
            pools.push(chosen(DIRECT, &[], 64));
        }
        match octet >> 4 & 3 {
            0 => {}
            1 => pools.push(chosen(FIXED, &CHOSEN, 64)),
            2 => pools.push(chosen(FIXED, &OTHER_CHOSEN, 64)),
            _ => pools.push(chosen(FIXED, &CHOSEN, 128)),
        }
        match octet & 7 {
            0 => {}
            1 => pools.push(shared),
            2 => {
                shared.timeouts.udp = Nanos::SECOND;
                pools.insert(0, shared);
            }
            3 => pools.push(Settings { block_size: 128, ..shared }),
            4 => pools.push(Settings { outside: nets(&OTHERS), ..shared }),
            5 => pools.push(Settings { filtering: Filtering::EndpointIndependent, ..shared }),
            6 => pools.push(Settings { inside: nets(&["10.45.0.0/24"]), ..shared }),
            _ => pools.push(Settings { name: "another".into(), ..shared }),
        }
        let entry = |outside: [u8; 4], inside: [u8; 4], port| Static {
            outside: outside.into(),
            inside: inside.into(),
            port,
        };
        let (statics, prefix) = match octet >> 6 {
            0 => (Vec::new(), None),
            1 => {
                let port = Some((Protocol::Udp, 5060, 5060));
                let host = entry([192, 0, 2, 1], [10, 45, 0, 5], None);
                (vec![host, entry([192, 0, 2, 64], [10, 45, 0, 6], port)], Some("2001:db8:7777::/58"))
            }
            2 => {
                let port = Some((Protocol::Tcp, 1100, 1000));
                let host = entry([192, 0, 2, 1], [10, 45, 0, 8], None);
                (vec![host, entry([198, 51, 100, 64], [10, 45, 0, 2], port)], Some("2001:db8:7778::/58"))
            }
            _ => (vec![entry([198, 51, 100, 65], [10, 45, 0, 3], Some((Protocol::Udp, 2000, 1000)))], None),
        };
        let prefixes = prefix.map(|outside| (net("2001:db8:45::/58"), net(outside))).into_iter().collect();
        Self { pools, statics, prefixes }
    }

    /// The same, and a public endpoint leads to one of the UEs for good, whoever has it.
    #[must_use]
    pub fn forwarding(mut self, protocol: Protocol, outside: SocketAddrV4) -> Self {
        if outside.port() != 0 && !self.is_forwarded(protocol, outside) {
            let port = Some((protocol, outside.port(), 1000));
            self.statics.push(Static { outside: *outside.ip(), inside: Ipv4Addr::new(10, 45, 0, 4), port });
        }
        self
    }

    /// As workers are told of it.
    pub fn after(&self, before: &Plan) -> Plan {
        before.succeeded_by(&self.pools, &self.statics, &self.prefixes).expect("a plan")
    }

    /// Whether the address stands for UEs'.
    pub fn is_public(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => {
                self.pool_of(address).is_some() || self.statics.iter().any(|entry| entry.outside == address)
            }
            IpAddr::V6(address) => self.prefixes.iter().any(|(_, outside)| outside.contains(&address)),
        }
    }

    /// Whose public address it is.
    fn pool_of(&self, address: Ipv4Addr) -> Option<&Settings> {
        self.pools.iter().find(|pool| pool.outside.iter().any(|net| net.contains(&address)))
    }

    /// Who translates a UE's packets by a rule of this policy.
    fn pool_for(&self, policy: u16, ue: Ipv4Addr) -> Option<&Settings> {
        let by = |policy: u16| self.pools.iter().filter(move |pool| pool.rule.policy == policy);
        let chosen = by(policy).filter(|_| policy != 0);
        chosen.chain(by(0)).find(|pool| has_inside(pool, ue))
    }

    /// Whether a packet may leave with this source. `quotes`: it is an error, and so about a packet that came by a mapping, which may be
    /// older than the rules.
    pub fn lets_leave(&self, source: IpAddr, quotes: bool, rules: &[&Rules]) -> bool {
        let says = |of: u16| rules.iter().any(|rules| policies(rules).any(|policy| policy == of));
        let as_public = self.is_public(source)
            && match source {
                IpAddr::V4(source) => self
                    .pool_of(source)
                    .is_none_or(|pool| pool.rule.policy == 0 || quotes || says(pool.rule.policy)),
                IpAddr::V6(_) => true,
            };
        let mut own = rules.iter().filter(|rules| is_ues(rules, source) || passes_on(rules));
        let untranslated = match source {
            IpAddr::V4(ue) => {
                let stays = |policy| self.pool_for(policy, ue).is_none_or(|pool| pool.outside.is_empty());
                let is_host = self.statics.iter().any(|entry| entry.port.is_none() && entry.inside == ue);
                !is_host && own.any(|rules| policies(rules).any(stays))
            }
            IpAddr::V6(ue) => {
                own.next().is_some() && !self.prefixes.iter().any(|(inside, _)| inside.contains(&ue))
            }
        };
        as_public || untranslated
    }

    /// Whether a pool could have given this.
    fn could_give(&self, protocol: Protocol, inside: SocketAddrV4, outside: SocketAddrV4) -> bool {
        let gives = |pool: &Settings| has_inside(pool, *inside.ip()) && outside.port() >= pool.first_port;
        self.pool_of(*outside.ip()).is_some_and(gives) && !self.is_forwarded(protocol, outside)
    }

    /// Whether the endpoint is always the same UE's.
    fn is_forwarded(&self, protocol: Protocol, outside: SocketAddrV4) -> bool {
        let leads = |entry: &Static| match entry.port {
            Some((of, port, _)) => (of, port) == (protocol, outside.port()),
            None => true,
        };
        self.statics.iter().any(|entry| entry.outside == *outside.ip() && leads(entry))
    }
}

/// A pool that rules choose has everybody inside, if nobody is named.
fn has_inside(pool: &Settings, ue: Ipv4Addr) -> bool {
    (pool.inside.is_empty() && pool.rule.policy != 0) || pool.inside.iter().any(|net| net.contains(&ue))
}

/// What rules say of how their packets are translated.
fn policies(rules: &Rules) -> impl Iterator<Item = u16> + '_ {
    rules.fars.iter().filter_map(|far| match far.action {
        Action::Forward(forward) => Some(forward.policy),
        _ => None,
    })
}

/// What pools have given and not taken back, as the log of bindings tells it. Pools are told apart by their places: one that is left may
/// have the addresses of one that came.
#[derive(Debug, Default)]
pub struct Bindings {
    /// By place, protocol and public endpoint: the UE's.
    mappings: BTreeMap<(u8, Protocol, SocketAddrV4), SocketAddrV4>,
    /// By place, public address and first port: last port and UE.
    blocks: BTreeMap<(u8, Ipv4Addr, u16), (u16, Ipv4Addr)>,
    /// Mappings that ended lately.
    ended: VecDeque<(Protocol, SocketAddrV4, Nanos)>,
}

impl Bindings {
    /// One line of the log, by one of these schemes.
    pub fn told(&mut self, now: Nanos, told: &Told, schemes: &[&Scheme]) {
        match *told {
            Told::Block { pool, taken: true, inside, outside, ports } => {
                let of_address = self.blocks.range((pool, outside, 0)..=(pool, outside, u16::MAX));
                let meets = |first: u16, last: u16| first <= ports.1 && ports.0 <= last;
                let other = of_address.into_iter().find(|((.., first), (last, _))| meets(*first, *last));
                assert_eq!(other, None, "{told:?}: the ports are somebody's");
                self.blocks.insert((pool, outside, ports.0), (ports.1, inside));
            }
            Told::Block { pool, taken: false, inside, outside, ports } => {
                let given = self.blocks.remove(&(pool, outside, ports.0));
                assert_eq!(given, Some((ports.1, inside)), "{told:?}: it was not given");
                let left = self.mappings.keys().find(|(place, _, endpoint)| {
                    (*place, *endpoint.ip()) == (pool, outside)
                        && (ports.0..=ports.1).contains(&endpoint.port())
                });
                assert_eq!(left, None, "{told:?}: there are mappings");
            }
            Told::Mapped { pool, protocol, inside, outside } => {
                let before = self.mappings.insert((pool, protocol, outside), inside);
                assert_eq!(before, None, "{told:?}: the endpoint is somebody's");
                let gives = |scheme: &&Scheme| scheme.could_give(protocol, inside, outside);
                assert!(schemes.iter().any(gives), "{told:?}: by whom?");
                let mut blocks = self.blocks.range(..=(pool, *outside.ip(), outside.port())).rev();
                let block = blocks.next().filter(|((place, address, _), (last, ue))| {
                    (*place, address, ue) == (pool, outside.ip(), inside.ip()) && outside.port() <= *last
                });
                assert!(block.is_some(), "{told:?}: from another UE's block");
            }
            Told::Unmapped { pool, protocol, inside, outside } => {
                let before = self.mappings.remove(&(pool, protocol, outside));
                assert_eq!(before, Some(inside), "{told:?}: it was not given");
                self.ended.push_back((protocol, outside, now));
            }
        }
    }

    /// A place with a mapping of an endpoint that leads to somebody for good.
    pub fn in_the_way(&self, scheme: &Scheme, places: &[usize]) -> Option<u8> {
        let mut mappings = self.mappings.keys().filter(|(place, ..)| places.contains(&usize::from(*place)));
        let (place, ..) = mappings.find(|(_, protocol, outside)| scheme.is_forwarded(*protocol, *outside))?;
        Some(*place)
    }

    /// Whether a packet may leave from this public endpoint, that was sent at this time or later: where ports are shared, one that
    /// somebody was given.
    pub fn let_leave(
        &self,
        schemes: &[&Scheme],
        protocol: Protocol,
        outside: SocketAddrV4,
        since: Nanos,
    ) -> bool {
        let is_public = schemes.iter().any(|scheme| scheme.is_public((*outside.ip()).into()));
        let live = || self.mappings.keys().any(|(_, of, endpoint)| (*of, *endpoint) == (protocol, outside));
        let ended = || {
            self.ended
                .iter()
                .any(|(of, endpoint, at)| (*of, *endpoint) == (protocol, outside) && *at >= since)
        };
        let forwarded = || schemes.iter().any(|scheme| scheme.is_forwarded(protocol, outside));
        !is_public || live() || ended() || forwarded()
    }

    /// Forgets what ended before.
    pub fn forget(&mut self, before: Nanos) {
        self.ended.retain(|(.., at)| *at >= before);
    }

    /// UEs with mappings.
    pub fn ues(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.mappings.values().map(|inside| *inside.ip())
    }

    /// Mappings and blocks.
    pub fn counts(&self) -> (u64, u64) {
        (self.mappings.len() as u64, self.blocks.len() as u64)
    }
}
