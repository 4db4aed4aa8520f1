//! What was configured: which UEs are translated, to which addresses, and how. Immutable, the same for all workers.

use super::pool::{Numbering, Place};
use super::prefix::Prefix;
use ipnet::{Ipv4Net, Ipv6Net};
use session::SHARDS;
use session::rules::Forward;
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::{BulkMap, Nanos};

/// Pools, at most.
pub const MAX_POOLS: usize = 64;
/// Public addresses of one pool, at most.
pub const MAX_ADDRESSES: u32 = 1 << 16;
/// Ports in a block.
pub const BLOCK_SIZES: std::ops::RangeInclusive<u16> = 16..=8192;

/// What has ports, or an identifier that plays the part of one (RFC 5508 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// Transmission Control Protocol.
    Tcp,
    /// User Datagram Protocol.
    Udp,
    /// Echo and timestamp of ICMP, by their identifier.
    Icmp,
}

impl Protocol {
    /// How many there are.
    pub const COUNT: usize = 3;

    /// By the number in an IPv4 header.
    #[inline(always)]
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            1 => Some(Self::Icmp),
            _ => None,
        }
    }

    /// Its place in a table.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its name in logs and configurations.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
        }
    }
}

/// An address with a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Endpoint {
    /// IPv4 address.
    pub address: u32,
    /// Port, or identifier.
    pub port: u16,
}

impl Endpoint {
    /// One word for tables: never zero.
    #[inline(always)]
    pub(super) const fn key(self, protocol: Protocol) -> u64 {
        (protocol as u64 + 1) << 48 | self.packed()
    }

    /// The same among those of a pool.
    #[inline(always)]
    pub(super) const fn key_in(self, pool: u8, protocol: Protocol) -> u64 {
        (pool as u64) << 56 | self.key(protocol)
    }

    const fn packed(self) -> u64 {
        (self.address as u64) << 16 | self.port as u64
    }

    const fn unpacked(word: u64) -> Self {
        Self { address: (word >> 16) as u32, port: word as u16 }
    }
}

/// Who may send to a mapping from outside (RFC 4787 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Filtering {
    /// Anybody.
    #[default]
    EndpointIndependent,
    /// Hosts that the mapping has sent to, any port of theirs.
    AddressDependent,
}

/// What the log of bindings says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Logging {
    /// Nothing.
    Nothing,
    /// Blocks of ports given and returned: enough to say who had a public port at a time (RFC 6888 §4).
    #[default]
    Blocks,
    /// Every mapping beside.
    Bindings,
}

/// How long a mapping lasts without a packet from inside, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// TCP, answered and not closing (RFC 5382 REQ-5: at least 2 h 4 min).
    pub tcp_established: u64,
    /// TCP, not answered yet or half closed (RFC 5382 REQ-5: at least 4 min).
    pub tcp_transitory: u64,
    /// TCP, closed by both sides or reset.
    pub tcp_closed: u64,
    /// UDP (RFC 4787 REQ-5: at least 2 min, better 5).
    pub udp: u64,
    /// ICMP queries (RFC 5508 REQ-2: at least 60 s).
    pub icmp: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = |n: u64| n * Nanos::SECOND;
        Self {
            tcp_established: seconds(2 * 3600 + 240),
            tcp_transitory: seconds(240),
            tcp_closed: seconds(30),
            udp: seconds(300),
            icmp: seconds(60),
        }
    }
}

/// What a rule says of how its packets are translated: Forwarding Policy and Network Instance of its FAR, by number; 0: nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Choice {
    /// Forwarding Policy (TS 29.244 §8.2.23).
    pub policy: u16,
    /// Network Instance (§8.2.4).
    pub instance: u16,
}

impl Choice {
    /// That of a FAR.
    pub const fn of(forward: &Forward) -> Self {
        Self { policy: forward.policy, instance: forward.instance }
    }

    /// Whether a pool that asks for this has packets of a rule that says that.
    #[inline(always)]
    const fn has(self, said: Self) -> bool {
        (self.policy == 0 || self.policy == said.policy)
            && (self.instance == 0 || self.instance == said.instance)
    }
}

/// A pool of public addresses and who uses it.
///
/// Several may have a packet's UE inside. Then it is that of the packet's Forwarding Policy, else that of its Network Instance (a pool that
/// asks for both before either), else the one that asks for neither.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// For logs and displays.
    pub name: String,
    /// Packets of these rules only.
    pub rule: Choice,
    /// UE addresses that are translated; none, if rules choose the pool: all. They overlap no other pool's that the same rules choose.
    pub inside: Vec<Ipv4Net>,
    /// Public addresses: all of each prefix, first and last included. None, if rules choose the pool: their packets are not translated.
    pub outside: Vec<Ipv4Net>,
    /// The lowest port that is given; the highest is 65,535.
    pub first_port: u16,
    /// Ports in a block: a power of two among [`BLOCK_SIZES`].
    pub block_size: u16,
    /// Blocks of one UE, at most.
    pub blocks_per_ue: u8,
    /// Who may send to a mapping.
    pub filtering: Filtering,
    /// When mappings end.
    pub timeouts: Timeouts,
    /// What is logged.
    pub logging: Logging,
}

impl Settings {
    /// Whether what was given by the one could have been given by the other.
    fn gives_as(&self, other: &Self) -> bool {
        let what = |it: &Self| (it.first_port, it.block_size, it.filtering);
        self.name == other.name && self.outside == other.outside && what(self) == what(other)
    }

    /// The UEs: all, if rules choose the pool and nothing else is said.
    fn everybody_inside(&self) -> impl Iterator<Item = Ipv4Net> + '_ {
        let anybody = self.inside.is_empty() && self.rule != Choice::default();
        self.inside.iter().copied().chain(anybody.then(Ipv4Net::default))
    }

    /// The usual: blocks of 256 ports from 1,024 on, up to four for a UE.
    pub fn new(name: &str, inside: Vec<Ipv4Net>, outside: Vec<Ipv4Net>) -> Self {
        Self {
            name: name.to_owned(),
            rule: Choice::default(),
            inside,
            outside,
            first_port: 1024,
            block_size: 256,
            blocks_per_ue: 4,
            filtering: Filtering::default(),
            timeouts: Timeouts::default(),
            logging: Logging::default(),
        }
    }
}

/// A public address, or a port of one, that always leads to the same UE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Static {
    /// The public address.
    pub outside: Ipv4Addr,
    /// The UE's.
    pub inside: Ipv4Addr,
    /// Protocol, public port and the UE's port; `None`: the whole address, whatever the protocol.
    pub port: Option<(Protocol, u16, u16)>,
}

/// What is wrong with a plan. Numbers are positions in what [`Plan::new`] was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlanError {
    /// More than [`MAX_POOLS`].
    TooManyPools,
    /// A pool without a prefix of this kind (`inside` or `outside`).
    Empty(usize, &'static str),
    /// More than [`MAX_ADDRESSES`].
    TooManyAddresses(usize),
    /// Not a power of two among [`BLOCK_SIZES`].
    BlockSize(usize),
    /// A UE that may have no block.
    NoBlocks(usize),
    /// Fewer blocks than shards: how many, and the greatest block size that would do (if there is one).
    FewBlocks(usize, u32, Option<u16>),
    /// Two prefixes share addresses; `usize` is the pool of the second.
    Overlap(usize, Ipv4Net, Ipv4Net),
    /// A pool whose rule another one has, and one of the two has all UEs inside for want of a prefix: the second, and the name of the first.
    SameRule(usize, String),
    /// A static entry says again what another one says, or what a pool's `inside` can't be: the entry.
    Duplicate(usize),
    /// A whole public address that a pool gives out port by port.
    InPool(usize),
    /// A port of 0.
    PortZero(usize),
    /// NPTv6: prefixes of different length, or of less than 32 or more than 64 bits.
    PrefixLength(usize),
    /// NPTv6: prefixes that overlap, within the entry or with an earlier one.
    PrefixOverlap(usize),
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooManyPools => write!(f, "there are more than {MAX_POOLS} pools"),
            Self::Empty(_, what) => write!(f, "a NAT needs at least one {what} prefix"),
            Self::TooManyAddresses(_) => write!(f, "a pool has at most {MAX_ADDRESSES} addresses"),
            Self::BlockSize(_) => {
                let (least, most) = (BLOCK_SIZES.start(), BLOCK_SIZES.end());
                write!(f, "the block size is a power of two from {least} to {most}")
            }
            Self::NoBlocks(_) => f.write_str("a UE needs at least one block"),
            Self::FewBlocks(_, blocks, fits) => {
                write!(
                    f,
                    "the pool has {blocks} blocks of ports, and each of the {SHARDS} shards needs one: "
                )?;
                match fits {
                    Some(size) => write!(f, "take more addresses, or blocks of at most {size} ports"),
                    None => f.write_str("take more addresses or more ports"),
                }
            }
            Self::Overlap(_, first, second) => write!(f, "{second} overlaps {first}"),
            Self::SameRule(_, first) => write!(f, "the same packets are pool `{first}`'s"),
            Self::Duplicate(_) => f.write_str("another entry says where this leads"),
            Self::InPool(_) => f.write_str(
                "the address belongs to a pool, whose ports are given out: forward single ports of it",
            ),
            Self::PortZero(_) => f.write_str("port 0 can't be forwarded"),
            Self::PrefixLength(_) => f.write_str("both prefixes must have the same length, from /32 to /64"),
            Self::PrefixOverlap(_) => f.write_str("the prefixes overlap each other or another entry's"),
        }
    }
}

impl std::error::Error for PlanError {}

/// A pool as packets meet it.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub settings: Settings,
    pub numbering: Numbering,
    /// An earlier plan had it, and this one doesn't: what it gave ends.
    pub is_left: bool,
}

impl Pool {
    /// Whether what one of them gave is as the other one would have given it, and stays.
    pub fn is_as(&self, other: &Self) -> bool {
        !self.is_left && !other.is_left && self.settings.gives_as(&other.settings)
    }
}

/// Addresses from `first` to `last` belong to `pool`, and have numbers from `base` on there.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u32,
    last: u32,
    pool: u8,
    base: u32,
}

/// UEs from `first` to `last`, in packets of a rule, are translated by `pool`, if at all.
#[derive(Clone, Copy, Debug)]
struct Inside {
    first: u32,
    last: u32,
    rule: Choice,
    pool: Option<u8>,
}

/// All that is translated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many came before.
    pub(super) number: u32,
    pub(super) pools: Vec<Pool>,
    /// What rules choose first.
    inside: Vec<Inside>,
    outside: Vec<Range>,
    /// Public addresses of pools that are left.
    former: Vec<Range>,
    statics: Vec<Static>,
    /// Where packets to a static endpoint go, and what the source of those from one becomes. Whole addresses have a
    /// table of their own.
    ports_in: BulkMap<u64, u64>,
    ports_out: BulkMap<u64, u64>,
    hosts_in: BulkMap<u32, u32>,
    hosts_out: BulkMap<u32, u32>,
    /// UEs that static entries are about.
    fixed: BulkMap<u32, u8>,
    /// Public addresses of static entries that no pool has.
    public: Vec<u32>,
    pub(super) prefixes: Vec<Prefix>,
}

impl Default for Plan {
    fn default() -> Self {
        // The entries are the operator's own: nobody chooses them so that they collide.
        Self {
            number: 0,
            pools: Vec::new(),
            inside: Vec::new(),
            outside: Vec::new(),
            former: Vec::new(),
            statics: Vec::new(),
            ports_in: BulkMap::new(1),
            ports_out: BulkMap::new(2),
            hosts_in: BulkMap::new(3),
            hosts_out: BulkMap::new(4),
            fixed: BulkMap::new(5),
            public: Vec::new(),
            prefixes: Vec::new(),
        }
    }
}

impl Plan {
    /// Examines and compiles.
    pub fn new(
        pools: &[Settings],
        statics: &[Static],
        prefixes: &[(Ipv6Net, Ipv6Net)],
    ) -> Result<Self, PlanError> {
        Self::default().succeeded_by(pools, statics, prefixes)
    }

    /// The plan that comes after this one. A pool that gives the same keeps its place, and so what it gave; others get places that nobody had,
    /// as long as there are some, so that news of the one before are not taken for theirs.
    pub fn succeeded_by(
        &self,
        pools: &[Settings],
        statics: &[Static],
        prefixes: &[(Ipv6Net, Ipv6Net)],
    ) -> Result<Self, PlanError> {
        let mut plan = Self { number: self.number + 1, statics: statics.to_vec(), ..Self::default() };
        if pools.len() > MAX_POOLS {
            return Err(PlanError::TooManyPools);
        }
        // Public addresses are nobody else's; UEs' may be several pools', if different rules choose these.
        let mut seen: Vec<(&Settings, Option<Choice>, Ipv4Net)> = Vec::new();
        for (at, settings) in pools.iter().enumerate() {
            let inside = settings.everybody_inside().map(|net| (Some(settings.rule), net));
            for (whose, prefix) in inside.chain(settings.outside.iter().map(|net| (None, *net))) {
                let meets = |(_, other, net): &&(&Settings, Option<Choice>, Ipv4Net)| {
                    // Whom a rule alone says, whatever the address, is no prefix that public ones could lie in.
                    let apart = if other.is_some() && whose.is_some() {
                        *other != whose
                    } else {
                        net.prefix_len() == 0 || prefix.prefix_len() == 0
                    };
                    !apart && (net.contains(&prefix) || prefix.contains(net))
                };
                if let Some((first, other, net)) = seen.iter().find(meets) {
                    // What nobody wrote is not told.
                    let are_all = first.inside.is_empty() || settings.inside.is_empty();
                    return Err(if other.is_some() && whose.is_some() && are_all {
                        PlanError::SameRule(at, first.name.clone())
                    } else {
                        PlanError::Overlap(at, *net, prefix)
                    });
                }
                seen.push((settings, whose, prefix));
            }
        }
        let places = self.places(pools);
        plan.pools = self.pools.iter().map(|pool| Pool { is_left: true, ..pool.clone() }).collect();
        for (at, (settings, place)) in pools.iter().zip(places).enumerate() {
            plan.add_pool(at, place, settings)?;
        }
        let ranges = self.outside.iter().chain(&self.former);
        let is_left =
            |range: &&Range| plan.pools.get(usize::from(range.pool)).is_some_and(|pool| pool.is_left);
        plan.former = ranges.filter(is_left).copied().collect();
        plan.inside.sort_by_key(|range| (range.rule.policy == 0, range.rule.instance == 0));
        for (at, entry) in statics.iter().enumerate() {
            plan.add_static(at, entry)?;
        }
        for (at, (inside, outside)) in prefixes.iter().enumerate() {
            let prefix = Prefix::new(*inside, *outside).ok_or(PlanError::PrefixLength(at))?;
            let earlier = prefixes.iter().take(at).flat_map(|(a, b)| [a, b]);
            let meet = |a: &Ipv6Net, b: &Ipv6Net| a.contains(b) || b.contains(a);
            if meet(inside, outside) || earlier.into_iter().any(|e| meet(e, inside) || meet(e, outside)) {
                return Err(PlanError::PrefixOverlap(at));
            }
            plan.prefixes.push(prefix);
        }
        Ok(plan)
    }

    /// Where pools go that come after these.
    fn places(&self, pools: &[Settings]) -> Vec<u8> {
        let stays = |settings: &Settings| {
            self.pools.iter().position(|pool| !pool.is_left && pool.settings.gives_as(settings))
        };
        let stay: Vec<Option<usize>> = pools.iter().map(stays).collect();
        // Unused ones first, then those that were left before, and only then those that are left now.
        let free = |left: bool| {
            let all = self.pools.iter().enumerate().filter(move |(_, pool)| pool.is_left == left);
            all.map(|(at, _)| at).filter(|at| !stay.contains(&Some(*at)))
        };
        let mut others = (self.pools.len()..MAX_POOLS).chain(free(true)).chain(free(false));
        stay.iter().map(|stays| stays.or_else(|| others.next()).unwrap_or(MAX_POOLS) as u8).collect()
    }

    fn add_pool(&mut self, at: usize, place: u8, settings: &Settings) -> Result<(), PlanError> {
        let by_address = settings.rule == Choice::default();
        for (empty, what) in
            [(settings.inside.is_empty(), "inside"), (settings.outside.is_empty(), "outside")]
        {
            if empty && by_address {
                return Err(PlanError::Empty(at, what));
            }
        }
        let size = settings.block_size;
        if !size.is_power_of_two() || !BLOCK_SIZES.contains(&size) {
            return Err(PlanError::BlockSize(at));
        }
        if settings.blocks_per_ue == 0 {
            return Err(PlanError::NoBlocks(at));
        }
        let bounds = |net: Ipv4Net| (u32::from(net.network()), u32::from(net.broadcast()));
        for (first, last) in settings.everybody_inside().map(bounds) {
            let pool = (!settings.outside.is_empty()).then_some(place);
            self.inside.push(Inside { first, last, rule: settings.rule, pool });
        }
        let mut addresses = 0u32;
        for (first, last) in settings.outside.iter().copied().map(bounds) {
            self.outside.push(Range { first, last, pool: place, base: addresses });
            addresses = addresses.saturating_add((last - first).saturating_add(1));
        }
        if addresses > MAX_ADDRESSES {
            return Err(PlanError::TooManyAddresses(at));
        }
        let numbering = Numbering::new(addresses, settings.first_port, size);
        if addresses > 0 && !numbering.serves_all() {
            let fits = |size: &u16| Numbering::new(addresses, settings.first_port, *size).serves_all();
            let sizes = [4096, 2048, 1024, 512, 256, 128, 64, 32, 16].into_iter();
            return Err(PlanError::FewBlocks(at, numbering.blocks(), sizes.into_iter().find(fits)));
        }
        let pool = Pool { settings: settings.clone(), numbering, is_left: false };
        match self.pools.get_mut(usize::from(place)) {
            Some(before) => *before = pool,
            // Places follow each other.
            None => self.pools.push(pool),
        }
        Ok(())
    }

    fn add_static(&mut self, at: usize, entry: &Static) -> Result<(), PlanError> {
        let (outside, inside) = (u32::from(entry.outside), u32::from(entry.inside));
        // Of some thousands of keys all find room.
        let taken = |before: Result<Option<_>, tables::Full>| !matches!(before, Ok(None));
        let taken = match entry.port {
            None if self.pool_of_outside(outside).is_some() => return Err(PlanError::InPool(at)),
            None => {
                taken(self.hosts_in.insert(outside, inside).map(|host| host.map(u64::from)))
                    | taken(self.hosts_out.insert(inside, outside).map(|host| host.map(u64::from)))
            }
            Some((_, 0, _) | (_, _, 0)) => return Err(PlanError::PortZero(at)),
            Some((protocol, public, private)) => {
                let (public, private) = (
                    Endpoint { address: outside, port: public },
                    Endpoint { address: inside, port: private },
                );
                taken(self.ports_in.insert(public.key(protocol), private.packed()))
                    | taken(self.ports_out.insert(private.key(protocol), public.packed()))
            }
        };
        let within = |address: Ipv4Addr| {
            self.pools().any(|settings| settings.inside.iter().any(|net| net.contains(&address)))
        };
        if taken || within(entry.outside) || self.pool_of_outside(inside).is_some() {
            return Err(PlanError::Duplicate(at));
        }
        let _ = self.fixed.insert(inside, 0);
        if self.pool_of_outside(outside).is_none() && !self.public.contains(&outside) {
            self.public.push(outside);
        }
        Ok(())
    }

    /// Whether nothing is translated, nor ever was.
    pub fn is_empty(&self) -> bool {
        self.number <= 1 && self.pools.is_empty() && self.statics.is_empty() && self.prefixes.is_empty()
    }

    /// Whether a static entry is about this UE.
    #[inline(always)]
    pub(super) fn is_fixed(&self, address: u32) -> bool {
        !self.statics.is_empty() && self.fixed.get(&address).is_some()
    }

    /// The pools' settings, in order of their places.
    pub fn pools(&self) -> impl Iterator<Item = &Settings> {
        self.placed().map(|(_, settings)| settings)
    }

    /// The same with their places, by which news and counters name them.
    pub fn placed(&self) -> impl Iterator<Item = (usize, &Settings)> {
        let all = self.pools.iter().enumerate();
        all.filter(|(_, pool)| !pool.is_left).map(|(at, pool)| (at, &pool.settings))
    }

    /// The name of each place's pool, also of those that are left.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pools.iter().map(|pool| pool.settings.name.as_str())
    }

    /// Blocks of a pool, all shards together.
    pub fn blocks(&self, pool: usize) -> u32 {
        self.pools.get(pool).map_or(0, |pool| pool.numbering.blocks())
    }

    /// All public prefixes: what must be routed to Millrace, and what its own routes take for UEs.
    pub fn public(&self) -> Vec<ipnet::IpNet> {
        let pools = self.pools().flat_map(|settings| &settings.outside).map(|net| ipnet::IpNet::V4(*net));
        let hosts = self.public.iter().map(|host| ipnet::IpNet::from(std::net::IpAddr::V4((*host).into())));
        let prefixes = self.prefixes.iter().map(|prefix| ipnet::IpNet::V6(prefix.outside()));
        pools.chain(hosts).chain(prefixes).collect()
    }

    /// Whether packets to this address are translated.
    #[inline(always)]
    pub fn is_public4(&self, address: u32) -> bool {
        self.pool_of_outside(address).is_some() || self.public.contains(&address)
    }

    /// Whether packets to this address are translated.
    pub fn is_public6(&self, address: Ipv6Addr) -> bool {
        self.prefixes.iter().any(|prefix| prefix.outside().contains(&address))
    }

    /// The pool that translates a UE's packets of a rule.
    #[inline(always)]
    pub(super) fn pool_of_inside(&self, said: Choice, address: u32) -> Option<u8> {
        let has = |range: &&Inside| (range.first..=range.last).contains(&address) && range.rule.has(said);
        self.inside.iter().find(has)?.pool
    }

    /// The pool of a public address, and the address's number in it.
    #[inline(always)]
    pub(super) fn pool_of_outside(&self, address: u32) -> Option<(u8, u32)> {
        let range = self.outside.iter().find(|range| (range.first..=range.last).contains(&address))?;
        Some((range.pool, range.base + (address - range.first)))
    }

    /// A public address by its number.
    pub(super) fn address(&self, pool: u8, number: u32) -> u32 {
        let mut ranges = self.outside.iter().chain(&self.former).filter(|range| range.pool == pool);
        let range =
            ranges.find(|range| (range.base..=range.base + (range.last - range.first)).contains(&number));
        range.map_or(0, |range| range.first + (number - range.base))
    }

    /// Where a static entry sends a packet to this endpoint. Without a protocol that has ports, only a whole address counts;
    /// the port stays what it was.
    #[inline(always)]
    pub(super) fn static_in(&self, protocol: Option<Protocol>, outside: Endpoint) -> Option<Endpoint> {
        if self.statics.is_empty() {
            return None;
        }
        fixed(&self.ports_in, &self.hosts_in, protocol, outside)
    }

    /// What a static entry makes of the source of a packet.
    #[inline(always)]
    pub(super) fn static_out(&self, protocol: Option<Protocol>, inside: Endpoint) -> Option<Endpoint> {
        if !self.is_fixed(inside.address) {
            return None;
        }
        fixed(&self.ports_out, &self.hosts_out, protocol, inside)
    }

    /// Ports of pools' addresses that are forwarded: where they are kept.
    pub(super) fn reserved_places(&self) -> impl Iterator<Item = (u8, Protocol, Place)> + '_ {
        self.statics.iter().filter_map(|entry| {
            let (protocol, port, _) = entry.port?;
            let (at, number) = self.pool_of_outside(entry.outside.into())?;
            let place = self.pools.get(usize::from(at))?.numbering.place(number, port)?;
            Some((at, protocol, place))
        })
    }

    /// Ports of a public address that are forwarded, and not to be given out.
    pub(super) fn reserved(&self, address: u32) -> impl Iterator<Item = (Protocol, u16)> + '_ {
        let here = self.statics.iter().filter(move |entry| u32::from(entry.outside) == address);
        here.filter_map(|entry| entry.port.map(|(protocol, public, _)| (protocol, public)))
    }

    /// The prefix translation of a UE's address.
    pub(super) fn prefix_out(&self, address: u128) -> Option<&Prefix> {
        self.prefixes.iter().find(|prefix| prefix.inside().contains(&Ipv6Addr::from_bits(address)))
    }

    /// The prefix translation of a public address.
    pub(super) fn prefix_in(&self, address: u128) -> Option<&Prefix> {
        self.prefixes.iter().find(|prefix| prefix.outside().contains(&Ipv6Addr::from_bits(address)))
    }
}

#[inline(never)]
fn fixed(
    ports: &BulkMap<u64, u64>,
    hosts: &BulkMap<u32, u32>,
    protocol: Option<Protocol>,
    endpoint: Endpoint,
) -> Option<Endpoint> {
    let port = protocol.and_then(|protocol| ports.get(&endpoint.key(protocol)).map(Endpoint::unpacked));
    port.or_else(|| hosts.get(&endpoint.address).map(|address| Endpoint { address, ..endpoint }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pool(inside: &str, outside: &str) -> Settings {
        Settings::new("test", vec![inside.parse().unwrap()], vec![outside.parse().unwrap()])
    }

    #[test]
    fn a_pool_must_have_a_block_for_every_shard() {
        let small = pool("10.0.0.0/16", "192.0.2.0/31");
        let error = Plan::new(std::slice::from_ref(&small), &[], &[]).unwrap_err();
        assert_eq!(error, PlanError::FewBlocks(0, 504, Some(128)));
        assert_eq!(
            error.to_string(),
            "the pool has 504 blocks of ports, and each of the 512 shards needs one: \
             take more addresses, or blocks of at most 128 ports"
        );
        assert!(Plan::new(&[Settings { block_size: 128, ..small.clone() }], &[], &[]).is_ok());
        for (settings, wrong) in [
            (Settings { block_size: 100, ..small.clone() }, PlanError::BlockSize(0)),
            (Settings { blocks_per_ue: 0, ..small.clone() }, PlanError::NoBlocks(0)),
            (Settings { inside: Vec::new(), ..small.clone() }, PlanError::Empty(0, "inside")),
            (pool("10.0.0.0/16", "172.16.0.0/15"), PlanError::TooManyAddresses(0)),
        ] {
            assert_eq!(Plan::new(&[settings], &[], &[]).unwrap_err(), wrong);
        }
    }

    #[test]
    fn nothing_may_overlap() {
        let first = pool("10.0.0.0/16", "192.0.2.0/24");
        let overlap = |second| Plan::new(&[first.clone(), second], &[], &[]).unwrap_err();
        assert!(matches!(overlap(pool("10.0.7.0/24", "198.51.100.0/24")), PlanError::Overlap(1, ..)));
        assert!(matches!(overlap(pool("10.1.0.0/16", "192.0.2.128/25")), PlanError::Overlap(1, ..)));
        assert!(matches!(overlap(pool("192.0.2.0/24", "198.51.100.0/24")), PlanError::Overlap(1, ..)));
    }

    #[test]
    fn static_entries_come_in_two_kinds() {
        let host = Static { outside: [198, 51, 100, 9].into(), inside: [10, 0, 0, 9].into(), port: None };
        let port = Static {
            outside: [192, 0, 2, 7].into(),
            inside: [10, 0, 0, 7].into(),
            port: Some((Protocol::Tcp, 443, 8443)),
        };
        let pools = [pool("10.0.0.0/16", "192.0.2.0/24")];
        let plan = Plan::new(&pools, &[host, port], &[]).unwrap();
        let at = |address: [u8; 4], port| Endpoint { address: u32::from_be_bytes(address), port };
        assert_eq!(
            plan.static_in(Some(Protocol::Tcp), at([192, 0, 2, 7], 443)),
            Some(at([10, 0, 0, 7], 8443))
        );
        assert_eq!(
            plan.static_out(Some(Protocol::Tcp), at([10, 0, 0, 7], 8443)),
            Some(at([192, 0, 2, 7], 443))
        );
        assert_eq!(plan.static_in(Some(Protocol::Udp), at([192, 0, 2, 7], 443)), None);
        assert_eq!(plan.static_in(None, at([198, 51, 100, 9], 5)), Some(at([10, 0, 0, 9], 5)));
        assert!(plan.is_public4(u32::from_be_bytes([198, 51, 100, 9])));
        assert_eq!(
            plan.reserved(u32::from_be_bytes([192, 0, 2, 7])).collect::<Vec<_>>(),
            [(Protocol::Tcp, 443)]
        );
        assert_eq!(plan.public().len(), 2);
        let refused = |entries: &[Static]| Plan::new(&pools, entries, &[]).unwrap_err();
        assert_eq!(refused(&[host, host]), PlanError::Duplicate(1));
        assert_eq!(refused(&[port, port]), PlanError::Duplicate(1));
        assert_eq!(refused(&[Static { outside: [192, 0, 2, 1].into(), ..host }]), PlanError::InPool(0));
        assert_eq!(refused(&[Static { port: Some((Protocol::Udp, 0, 1)), ..port }]), PlanError::PortZero(0));
    }
}
