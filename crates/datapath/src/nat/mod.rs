//! Translation of addresses on N6: NAT44 with blocks of ports, static entries, and prefix translation for IPv6.
//!
//! **Problem.** UEs have private addresses; the data network knows public ones, of which there are fewer. Every packet that leaves
//! plain on N6 gets a public source, and every packet to a public address must find the UE again, at the speed of everything
//! else. An operator has to be able to say who had which port at which time, without a line of log for each connection.
//!
//! **Model.** Translation stands around all the rest. A packet from a UE is translated last, when rules, route, TTL, MTU and
//! accounting are done with it; a packet to a public address first, and from then on it is a downlink packet to the UE. So filters,
//! counters and flows only ever see the UE's own address. Nothing is shared:
//!
//! - `plan` is what was configured, immutable.
//! - `pool`: the ports of each public address are cut into *blocks*. Arithmetic says which shard owns a block, so that any worker
//!   hands a packet from outside to the right one, as it does by TEID. A UE gets blocks of its shard one by one, and a block that
//!   its last mapping left goes back. One line of log per block says all that is needed (RFC 6888 REQ-13, RFC 7422).
//! - `mapping`: one shard's mappings and their timers; from inside by hash, from outside by arrays.
//! - `translate`: the bytes, and those of packets that ICMP errors quote. `prefix`: IPv6, stateless (RFC 6296).
//! - `path`: where packets meet all this; `follow`: how another plan takes its place.
//!
//! Behaviour follows RFC 4787 (UDP), RFC 5382 (TCP), RFC 5508 (ICMP), RFC 6888 (carrier-grade NAT) and RFC 7857: mapping is
//! endpoint-independent, pooling paired, hairpinning works, ports are chosen at random within a block (RFC 6056) and keep their
//! parity where they can. `docs/nat.md` says how it is configured and how large a pool has to be.
//!
//! **Cost.** Without a plan, one branch per burst and one per packet that leaves plain. With one, uplink reads a bucket and a mapping,
//! downlink a block, a slot and a mapping, fetched for all packets of a burst together.
//!
//! **When not to use it.** For protocols without ports (but whole static addresses), for payloads that carry addresses (there are no
//! application gateways), and where UEs in one shard want more ports than its share of the pool has.

mod follow;
mod mapping;
mod path;
mod plan;
mod pool;
mod prefix;
#[cfg(test)]
mod tests;
mod translate;

pub(crate) use mapping::State;
pub(crate) use path::{Ahead, Sought, leave, peek};
pub use plan::{
    BLOCK_SIZES, Choice, Endpoint, Filtering, Logging, MAX_ADDRESSES, MAX_POOLS, Plan, PlanError, Protocol,
    Settings, Static, Timeouts,
};

use crate::command::Event;
use std::net::{Ipv4Addr, SocketAddrV4};
use tables::Nanos;

/// News for the log of bindings. `pool` is the position in [`Plan::pools`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// A UE was given a block of ports, or it is its no longer.
    Block {
        /// Of this pool.
        pool: u8,
        /// Given; otherwise returned.
        taken: bool,
        /// The UE.
        inside: Ipv4Addr,
        /// The public address.
        outside: Ipv4Addr,
        /// First and last port.
        ports: (u16, u16),
    },
    /// A mapping was made ([`Logging::Bindings`] only).
    Mapped {
        /// Of this pool.
        pool: u8,
        /// TCP, UDP or ICMP.
        protocol: Protocol,
        /// The UE's endpoint.
        inside: SocketAddrV4,
        /// The public one.
        outside: SocketAddrV4,
    },
    /// A mapping ended ([`Logging::Bindings`] only).
    Unmapped {
        /// Of this pool.
        pool: u8,
        /// TCP, UDP or ICMP.
        protocol: Protocol,
        /// The UE's endpoint.
        inside: SocketAddrV4,
        /// The public one.
        outside: SocketAddrV4,
    },
}

counters::counters! {
    /// What happened in one pool, in one worker's shards.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PoolCounters {
        /// Mappings made.
        pub mappings_made: u64 = "mappings-made", Counter;
        /// Mappings that ended.
        pub mappings_ended: u64 = "mappings-ended", Counter;
        /// Blocks given to UEs.
        pub blocks_taken: u64 = "blocks-taken", Counter;
        /// Blocks returned.
        pub blocks_returned: u64 = "blocks-returned", Counter;
    }
    also {
        /// Mappings now.
        mappings = "mappings", Gauge;
        /// Blocks that UEs have now.
        blocks = "blocks", Gauge;
    }
}

impl PoolCounters {
    /// Mappings now, of all workers together.
    pub const fn mappings(&self) -> u64 {
        self.mappings_made.saturating_sub(self.mappings_ended)
    }

    /// Blocks that UEs have now, of all workers together.
    pub const fn blocks(&self) -> u64 {
        self.blocks_taken.saturating_sub(self.blocks_returned)
    }
}

/// Time, and where a change is told and counted.
pub(crate) struct Ledger<'a> {
    /// The time of the call.
    pub now: Nanos,
    /// News.
    pub events: &'a mut Vec<Event>,
    /// By pool.
    pub counters: &'a mut Vec<PoolCounters>,
}

impl Ledger<'_> {
    fn tell(&mut self, told: Told) {
        self.events.push(Event::Nat(told));
    }

    fn count(&mut self, pool: u8, count: impl FnOnce(&mut PoolCounters)) {
        // A shard may come from a worker that was told of more pools than this one.
        let places = usize::from(pool) + 1;
        if self.counters.len() < places {
            self.counters.resize(places, PoolCounters::default());
        }
        if let Some(counters) = self.counters.get_mut(usize::from(pool)) {
            count(counters);
        }
    }
}
