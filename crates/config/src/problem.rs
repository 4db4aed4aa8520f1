//! What is wrong with a configuration, where, and what would be right.

use super::nearest::{listed, nearest};
use datapath::nat::PlanError;
use ipnet::IpNet;
use std::net::IpAddr;
use std::ops::Range;

/// Where a value was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the file, at these bytes.
    File(Range<usize>),
    /// In an environment variable; the text is `NAME=value`.
    Environment(String),
    /// In a `--set` argument; the text is the argument.
    Argument(String),
}

impl Place {
    /// The beginning of the file: the place of what is missing from it altogether.
    pub const TOP: Self = Self::File(0..0);
}

/// One step of the way to a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Into a table, by key.
    Key(String),
    /// Into a list, by position.
    Index(usize),
}

/// Why a value can't stand. The message says what is wrong; [`Wrong::help`] says what would be right.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Wrong {
    /// The text is not TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// The file is greater than a configuration can be.
    #[error("the file has {bytes} bytes, which is no configuration")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// A key that no setting has.
    #[error("unknown key `{key}` in {section}")]
    UnknownKey {
        /// As written.
        key: String,
        /// The table, as its header is written.
        section: String,
        /// What the table can hold.
        known: Vec<String>,
    },
    /// A key that must be there.
    #[error("`{key}` is missing from {section}")]
    MissingKey {
        /// The key.
        key: String,
        /// The table, as its header is written.
        section: String,
    },
    /// A value of another kind.
    #[error("{found} is not {expected}")]
    NotThat {
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
    /// A word that is not one of those known.
    #[error("`{found}` is not one of the values of `{key}`")]
    UnknownWord {
        /// The key.
        key: String,
        /// As written.
        found: String,
        /// Those known.
        known: Vec<String>,
    },
    /// A number that is too small or too great.
    #[error("{value} is out of range")]
    OutOfRange {
        /// As written.
        value: String,
        /// Least.
        least: u64,
        /// Greatest.
        greatest: u64,
    },
    /// A duration that is too short or too long.
    #[error("`{key}` is out of range")]
    DurationOutOfRange {
        /// The key.
        key: &'static str,
        /// Shortest, as written.
        least: &'static str,
        /// Longest, as written.
        greatest: &'static str,
    },
    /// An override leads through something that is not there.
    #[error("`{path}` leads nowhere: {why}")]
    NoSuchPath {
        /// As written.
        path: String,
        /// The obstacle.
        why: String,
    },
    /// An override that is not `path=value`.
    #[error("`{argument}` is not an override")]
    NotAnOverride {
        /// As written.
        argument: String,
    },
    /// Two things of one kind with one name.
    #[error("there are two {kind}s named `{name}`")]
    DuplicateName {
        /// `port` or `interface`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A slice that no session can belong to.
    #[error("no session can belong to slice `{name}`")]
    SliceOfNobody {
        /// Its name.
        name: String,
    },
    /// Sessions that would belong to two slices.
    #[error("{what} belongs to two slices")]
    TwoSlices {
        /// By what.
        what: String,
    },
    /// A guaranteed rate without a maximum, or above it.
    #[error("`{key}` is more than the maximum")]
    GuaranteeBeyondMaximum {
        /// The key.
        key: &'static str,
    },
    /// An excess burst without a rate, or beside two.
    #[error("`{key}` goes with one rate")]
    ExcessOfNoSingleRate {
        /// The key.
        key: &'static str,
    },
    /// A QFI or a DSCP with two meanings.
    #[error("{what} is marked twice")]
    MarkedTwice {
        /// Which.
        what: String,
    },
    /// A name that can't be a name.
    #[error("`{name}` can't be the name of a {kind}")]
    BadName {
        /// `port` or `interface`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A name that nothing has.
    #[error("there is no {kind} named `{name}`")]
    UnknownName {
        /// `port` or `interface`.
        kind: &'static str,
        /// As written.
        name: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// A port names no device, or names it twice.
    #[error("port `{port}` names {what}")]
    Device {
        /// The port.
        port: String,
        /// `no device`, `its device twice`, …
        what: &'static str,
        /// What would be right.
        help: &'static str,
    },
    /// Two ports on one device.
    #[error("the device `{device}` is used twice")]
    DuplicateDevice {
        /// As DPDK knows it.
        device: String,
    },
    /// Two interfaces with one port and VLAN.
    #[error("two interfaces have port `{port}` {vlan}")]
    DuplicateAttachment {
        /// The port.
        port: String,
        /// `without a VLAN`, `and VLAN 7`.
        vlan: String,
    },
    /// An interface without addresses or roles.
    #[error("the interface `{interface}` has no {what}")]
    EmptyInterface {
        /// Its name.
        interface: String,
        /// `address` or `role`.
        what: &'static str,
    },
    /// No interface has a role that a UPF can't do without.
    #[error("no interface has the role {roles}")]
    RoleMissing {
        /// The role, or the alternatives.
        roles: &'static str,
        /// What it is for.
        purpose: &'static str,
    },
    /// An interface's MTU above its port's.
    #[error("the MTU {mtu} is greater than that of port `{port}`, which is {limit}")]
    MtuAbovePort {
        /// The interface's.
        mtu: u16,
        /// Its port.
        port: String,
        /// The port's.
        limit: u16,
    },
    /// One address twice.
    #[error("the address {address} is there twice")]
    DuplicateAddress {
        /// The address.
        address: IpAddr,
    },
    /// An address that no station can have.
    #[error("{address} can't be an interface's address: it is {what}")]
    NotAHost {
        /// The address.
        address: IpAddr,
        /// `a multicast address`, …
        what: &'static str,
    },
    /// Two subnets, pools or routes that cover the same addresses.
    #[error("{what} {first} and {second} overlap")]
    Overlap {
        /// `the subnets`, `the pools`.
        what: &'static str,
        /// As written.
        first: IpNet,
        /// The other.
        second: IpNet,
    },
    /// A prefix with bits set behind its length.
    #[error("{prefix} has bits set behind its prefix length")]
    HostBits {
        /// As written.
        prefix: IpNet,
    },
    /// A pool whose prefix is too short or too long to take addresses from.
    #[error("{prefix} can't be a pool: {why}")]
    PoolSize {
        /// As written.
        prefix: IpNet,
        /// Why.
        why: &'static str,
    },
    /// A pool of addresses that no host has.
    #[error("{prefix} can't be a pool: it has {what}")]
    PoolOfNobody {
        /// As written.
        prefix: IpNet,
        /// Which.
        what: &'static str,
    },
    /// A pool without any prefix.
    #[error("this pool has no prefix to take addresses from")]
    EmptyPool,
    /// A pool with an address of our own in it.
    #[error("the pool {pool} contains {owner} {address}")]
    PoolHasOwnAddress {
        /// The pool.
        pool: IpNet,
        /// `this UPF's own address`, …
        owner: &'static str,
        /// The address.
        address: IpAddr,
    },
    /// UEs that may speak N4.
    #[error("the pool {pool} and the SMFs' addresses {peers} overlap: a UE could delete sessions")]
    PoolHasPeers {
        /// The pool.
        pool: IpNet,
        /// The entry of `n4.peers`.
        peers: IpNet,
    },
    /// What is translated on N6 can't be.
    #[error("{error}")]
    Nat {
        /// Why.
        error: PlanError,
    },
    /// A static entry that says only half of which port is forwarded.
    #[error("a forwarded port needs `protocol` and `outside-port`")]
    NatStaticPort,
    /// A Forwarding Policy that no SMF can name.
    #[error("a forwarding policy has 1 to 255 octets")]
    PolicyId,
    /// A Forwarding Policy that is like none.
    #[error("a forwarding policy that says neither `next-hop` nor `network-instance`")]
    PolicyOfNothing,
    /// A Forwarding Policy with two routers for the same packets.
    #[error("{address} is a second next hop of one address family")]
    SecondNextHop {
        /// The router.
        address: IpAddr,
    },
    /// A Network Instance whose packets don't leave plain.
    #[error("no interface with the role `n6` has the network instance `{instance}`")]
    NotOnN6 {
        /// Its name.
        instance: String,
    },
    /// A route that says neither where nor through which interface.
    #[error("the route to {to} has neither `via` nor `interface`")]
    RouteNowhere {
        /// Destination.
        to: IpNet,
    },
    /// A default route that leads where UEs' packets may not go.
    #[error(
        "the default route {to} leads out of `{interface}`, which does not have the role `n6`: all packets of UEs that it \
             is to carry would be dropped"
    )]
    DefaultRoute {
        /// Destination.
        to: IpNet,
        /// The interface.
        interface: String,
        /// One with the role.
        n6: String,
    },
    /// A route whose next hop has the other address family.
    #[error("{via} can't be the next hop for {to}: one is IPv4, the other IPv6")]
    RouteFamily {
        /// Destination.
        to: IpNet,
        /// Next hop.
        via: IpAddr,
    },
    /// Two routes to one prefix.
    #[error("there are two routes to {to}")]
    DuplicateRoute {
        /// Destination.
        to: IpNet,
    },
    /// A next hop or neighbour that no subnet of ours contains.
    #[error("{address} is in no subnet of {scope}")]
    NotConnected {
        /// The address.
        address: IpAddr,
        /// `any interface`, ``interface `n6` ``.
        scope: String,
    },
    /// An address of ours where another's belongs.
    #[error("the {what} {address} is this UPF's own address")]
    Ourselves {
        /// `next hop`, `neighbour`, …
        what: &'static str,
        /// The address.
        address: IpAddr,
    },
    /// Copies of packets that a UE would get.
    #[error("the mirror's far end {address} is a UE's: it is in the pool {pool}")]
    MirrorToUe {
        /// The address.
        address: IpAddr,
        /// The pool.
        pool: IpNet,
    },
    /// One file that two logs would be written to.
    #[error("{file} would be the file of two logs")]
    OneFile {
        /// As written.
        file: String,
    },
    /// More devices than DPDK takes.
    #[error("from this port on there are more than {most} devices")]
    TooManyDevices {
        /// As many as there can be.
        most: usize,
    },
    /// A path that no socket can have.
    #[error("the control socket's path has {bytes} bytes")]
    SocketPath {
        /// So many.
        bytes: usize,
        /// As many as there can be.
        most: usize,
    },
    /// One table where there can be several.
    #[error("{section} is one table where a list of them belongs")]
    OneTable {
        /// The table, as its header is written.
        section: String,
    },
    /// A MAC address that no station can have.
    #[error("{mac} can't be a neighbour's MAC address")]
    NotAStation {
        /// As written.
        mac: String,
    },
    /// N4 listens where others can reach it, and nobody said who may.
    #[error("N4 listens on {listen}, and nothing says which SMFs may use it")]
    PeersMissing {
        /// The address.
        listen: String,
    },
    /// The Node ID can't be guessed from where N4 listens.
    #[error("N4 listens on any address, and nothing says what the Node ID is")]
    NodeIdMissing,
    /// One core twice.
    #[error("the core {core} is there twice")]
    DuplicateCore {
        /// Its number.
        core: u16,
    },
    /// Two settings of which only one can be.
    #[error("`{first}` and `{second}` exclude each other")]
    Exclusive {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A setting that another one would have to give a meaning.
    #[error("`{key}` has no effect: {section} has no `{needed}`")]
    NoEffect {
        /// The key.
        key: String,
        /// Its table, as its header is written.
        section: &'static str,
        /// What is missing from it.
        needed: &'static str,
    },
    /// Metrics for whoever reaches an address that isn't this machine's alone.
    #[error("other machines may reach {listen}, and whoever reaches it may read")]
    BeyondLoopback {
        /// The address.
        listen: std::net::SocketAddr,
    },
    /// A limit on a part that is greater than the limit on the whole.
    #[error("`{part}` is {value}, more than `{whole}`, which is {limit}")]
    LimitOrder {
        /// The part's key.
        part: &'static str,
        /// Its value.
        value: u32,
        /// The whole's key.
        whole: &'static str,
        /// Its value.
        limit: u32,
    },
    /// Classes or groups of queues that can't be.
    #[error("{what}")]
    Queues {
        /// Why.
        what: String,
    },
    /// A key of another kind of mirror.
    #[error("a mirror to `{kind}` has no `{key}`")]
    MirrorKey {
        /// The key.
        key: &'static str,
        /// What its mirror is to.
        kind: &'static str,
    },
    /// Thresholds between which the number of workers would go up and down for ever.
    #[error(
        "`low` is {low}, not less than half of `high`, which is {high}: the number of workers would swing"
    )]
    Swinging {
        /// In percent.
        low: u8,
        /// In percent.
        high: u8,
    },
    /// More memory than there is.
    #[error("{what} would take {megabytes} MB, and there are {available} MB ({says})")]
    Memory {
        /// What takes it.
        what: &'static str,
        /// How much.
        megabytes: u64,
        /// How much there is.
        available: u64,
        /// Who says so.
        says: String,
        /// How to make do with it.
        remedy: String,
    },
    /// A log filter that can't be read.
    #[error("`{filter}` is not a log filter")]
    LogFilter {
        /// As written.
        filter: String,
    },
}

impl Wrong {
    /// What would be right, where that can be said.
    pub fn help(&self) -> Option<String> {
        let text = match self {
            Self::TooLarge { .. } => format!("a configuration has at most {} bytes", super::MAX_FILE_BYTES),
            Self::UnknownKey { key, known, section } => match nearest(key, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => return None,
                None => format!("{section} can hold {}", listed(known)),
            },
            Self::UnknownWord { found, known, .. } => match nearest(found, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the values are {}", listed(known)),
            },
            Self::UnknownName { name, known, kind } => match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => format!("add a [[{kind}]] with name = \"{name}\""),
                None => format!("the {kind}s are {}", listed(known)),
            },
            Self::MissingKey { key, section } => format!("add `{key} = …` to {section}"),
            Self::OutOfRange { least, greatest, .. } if *greatest == u64::MAX => {
                format!("at least {least}")
            }
            Self::OutOfRange { least, greatest, .. } => format!("from {least} to {greatest}"),
            Self::DurationOutOfRange { least, greatest, .. } => format!("from {least} to {greatest}"),
            Self::NotAnOverride { .. } => {
                "write it as path=value, such as n4.listen=192.0.2.1:8805 or port.0.mtu=9000".to_owned()
            }
            Self::DuplicateName { kind, .. } => format!("give every {kind} a name of its own"),
            Self::SliceOfNobody { .. } => "give it `s-nssai`, `network-instances`, or both".to_owned(),
            Self::TwoSlices { .. } => "leave it to one of them".to_owned(),
            Self::GuaranteeBeyondMaximum { key } => {
                format!("give `{}` too, at least as much", key.trim_end_matches("-guaranteed"))
            }
            Self::ExcessOfNoSingleRate { key } => {
                let rate = key.trim_end_matches("-excess-burst");
                format!("give `{rate}` too, and no `{rate}-guaranteed`")
            }
            Self::MarkedTwice { .. } => {
                "write one section for each QFI, and each DSCP that it accepts in one of them".to_owned()
            }
            Self::BadName { .. } => {
                "a name has 1 to 32 letters, digits, `-`, `_` and `.`, and is not just a number".to_owned()
            }
            Self::Device { help, .. } => (*help).to_owned(),
            Self::DuplicateDevice { .. } => {
                "one port drives a device; several interfaces can share the port, each with its own VLAN"
                    .to_owned()
            }
            Self::DuplicateAttachment { .. } => {
                "give each its own `vlan`, or put all addresses and roles on one interface".to_owned()
            }
            Self::EmptyInterface { what: "role", .. } => {
                "add roles = [\"n3\"] or whichever of n3, n6, n9 it serves".to_owned()
            }
            Self::EmptyInterface { .. } => "add addresses = [\"192.0.2.1/24\"]".to_owned(),
            Self::RoleMissing { purpose, .. } => (*purpose).to_owned(),
            Self::MtuAbovePort { limit, port, .. } => {
                format!("at most {limit}, or raise the `mtu` of port `{port}`")
            }
            Self::DuplicateAddress { .. } => "an address can be on one interface only".to_owned(),
            Self::NotAHost { .. } => "give it a host's address of the subnet".to_owned(),
            Self::Overlap { what: "the subnets", .. } => {
                "two interfaces can't share a subnet: it would not be known through which to send".to_owned()
            }
            Self::Overlap { what: "the subnet and the pool", .. } => {
                "stations on the link would look for UEs beside them: take other addresses for UEs".to_owned()
            }
            Self::Overlap { .. } => {
                "an address can be in one pool only: it is all that tells whose a downlink packet is"
                    .to_owned()
            }
            Self::PoolOfNobody { .. } => {
                "take private addresses (10.0.0.0/8, fd00::/8), shared ones (100.64.0.0/10) or public ones of your own".to_owned()
            }
            Self::Ourselves { .. } => "name the other station's address".to_owned(),
            Self::MirrorToUe { .. } => "send copies to a host behind N6 or N3 that is no UE".to_owned(),
            Self::OneFile { .. } => "give each a file of its own".to_owned(),
            Self::TooManyDevices { most } => {
                format!("DPDK takes {most}, each member of an aggregated port and the port itself counted; use VLANs")
            }
            Self::SocketPath { most, .. } => format!("from 1 to {most} bytes, such as /run/millrace/ctl.sock"),
            Self::OneTable { section } => format!("write [{section}], once for each"),
            Self::HostBits { prefix } => format!("write {}", prefix.trunc()),
            Self::EmptyPool => "add ipv4 = [\"10.45.0.0/16\"] or ipv6 = [\"2001:db8:45::/48\"]".to_owned(),
            Self::PoolHasPeers { .. } => "name the SMFs' own addresses in n4.peers, and nobody else's".to_owned(),
            Self::PoolHasOwnAddress { .. } => {
                "UEs need addresses of their own: move one of the two".to_owned()
            }
            Self::Nat { error } => match error {
                PlanError::FewBlocks(..) => "docs/nat.md says how large a pool has to be".to_owned(),
                PlanError::SameRule(..) => {
                    "give both pools an `inside` of their own, or one of them another policy or instance".to_owned()
                }
                PlanError::Overlap(..) => "an address has one meaning: take one of the two away".to_owned(),
                _ => "see docs/nat.md".to_owned(),
            },
            Self::PolicyOfNothing => "say by which router its packets leave, or by which network instance".to_owned(),
            Self::SecondNextHop { .. } => "keep one: packets of one family go one way".to_owned(),
            Self::PolicyId => "take what SMFs send in the Forwarding Policy of a FAR (TS 29.244 8.2.23)".to_owned(),
            Self::NotOnN6 { .. } => {
                "packets of that instance leave through an interface that has it: add it to `network-instances` there".to_owned()
            }
            Self::NatStaticPort => "add both, or none of them for the whole address".to_owned(),
            Self::RouteNowhere { .. } => {
                "add `via`, the address of the next router, or `interface` if the stations are on the link"
                    .to_owned()
            }
            Self::DefaultRoute { interface, n6, .. } => format!(
                "without a tunnel packets leave through interfaces with the role `n6` only: lead the default route through \
                 `{n6}`, and give what is behind a router on `{interface}` (gNBs, other UPFs) routes of its own"
            ),
            Self::RouteFamily { .. } => "route each family through a next hop of its own".to_owned(),
            Self::DuplicateRoute { .. } => "keep one of them".to_owned(),
            Self::NotConnected { .. } => {
                "it has to be reachable on a link: use an address in an interface's subnet".to_owned()
            }
            Self::NotAStation { .. } => {
                "use the station's own address: not zero, not broadcast, not multicast".to_owned()
            }
            Self::PeersMissing { .. } => {
                "name the SMFs' addresses: peers = [\"198.51.100.0/24\"] (\"0.0.0.0/0\" lets everyone in)"
                    .to_owned()
            }
            Self::NodeIdMissing => "add id = \"192.0.2.1\" (or a domain name) to [node]".to_owned(),
            Self::MirrorKey { key, .. } => format!("drop `{key}`, or choose another `to`"),
            Self::DuplicateCore { .. } => "each worker needs a core of its own".to_owned(),
            Self::Exclusive { first, second } => format!("keep either `{first}` or `{second}`"),
            Self::NoEffect { key, section, needed } => format!("add `{needed} = …` to {section}, or drop `{key}`"),
            Self::BeyondLoopback { listen } => {
                let (lo, port) = (if listen.is_ipv6() { "[::1]" } else { "127.0.0.1" }, listen.port());
                format!("listen on \"{lo}:{port}\"; or, if that is meant, add `beyond-loopback = true` to [metrics]")
            }
            Self::Swinging { high, .. } => format!("lower it to {} or less, or raise `high`", (high - 1) / 2),
            Self::LimitOrder { whole, .. } => format!("lower it, or raise `{whole}`"),
            Self::Queues { .. } => {
                "a code point is in one class and one group at most, and one class has no `dscp`: it takes the rest"
                    .to_owned()
            }
            Self::Memory { remedy, .. } => remedy.clone(),
            Self::LogFilter { .. } => {
                "a level (error, warn, info, debug, trace), or levels by module: `info,n4=debug`"
                    .to_owned()
            }
            Self::NotThat { found, expected } if expected == "a string" && found.parse::<f64>().is_ok() => {
                format!("put it in quotes: \"{found}\"")
            }
            Self::Syntax(_) | Self::NotThat { .. } | Self::NoSuchPath { .. } | Self::PoolSize { .. } => {
                return None;
            }
        };
        Some(text)
    }
}
