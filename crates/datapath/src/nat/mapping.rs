//! One shard's translations: which public endpoint stands for which endpoint of a UE, and until when.
//!
//! A mapping is independent of whom the UE talks to (RFC 4787 REQ-1): the first packet from an endpoint makes it, all others
//! use it, and a timer ends it when the UE has been silent for long enough. Packets from outside keep nothing alive (§4.3),
//! but TCP's flags are watched both ways. It is found from inside by a hash look-up, from outside by two arrays: the shard's
//! blocks and the block's ports.

use super::plan::{Endpoint, Filtering, Logging, Plan, Pool, Protocol, Timeouts};
use super::pool::{BlockId, Blocks, Place};
use super::translate::{Head, tcp};
use super::{Ledger, Told};
use crate::Reason;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tables::hash::mix;
use tables::wheel::TimerId;
use tables::{BulkMap, Lookup, Nanos, Probe, Slab, Wheel};

/// Hosts that a mapping remembers to have sent to, with address-dependent filtering: the latest ones.
const REMOTES: usize = 64;
/// Granularity of timeouts.
const TICK: u64 = 50_000_000;

/// What TCP's flags said.
mod seen {
    /// A segment came from outside.
    pub const ANSWER: u8 = 1 << 0;
    /// The UE closed.
    pub const FIN_OUT: u8 = 1 << 1;
    /// The other side closed.
    pub const FIN_IN: u8 = 1 << 2;
    /// Either side reset.
    pub const RESET: u8 = 1 << 3;
}

#[derive(Clone, Debug)]
struct Mapping {
    inside: Endpoint,
    outside: Endpoint,
    /// Where the public port is.
    block: BlockId,
    offset: u16,
    protocol: Protocol,
    pool: u8,
    seen: u8,
    /// When the UE last sent, or the state changed.
    last: Nanos,
    subscriber: u32,
    timer: Option<TimerId>,
}

impl Mapping {
    const fn timeout(&self, timeouts: &Timeouts) -> u64 {
        let closed = seen::FIN_OUT | seen::FIN_IN;
        match self.protocol {
            Protocol::Udp => timeouts.udp,
            Protocol::Icmp => timeouts.icmp,
            Protocol::Tcp if self.seen & seen::RESET != 0 || self.seen & closed == closed => {
                timeouts.tcp_closed
            }
            Protocol::Tcp if self.seen == seen::ANSWER => timeouts.tcp_established,
            Protocol::Tcp => timeouts.tcp_transitory,
        }
    }

    const fn deadline(&self, timeouts: &Timeouts) -> Nanos {
        self.last.plus(self.timeout(timeouts))
    }
}

/// A UE that has blocks.
#[derive(Debug)]
struct Subscriber {
    address: u32,
    pool: u8,
    /// The shard's number of the public address that all its blocks are on.
    public: u32,
    blocks: Vec<BlockId>,
}

/// Hosts that a mapping has sent to.
#[derive(Clone, Debug, Default)]
struct Remotes {
    addresses: Vec<u32>,
    oldest: usize,
}

impl Remotes {
    fn add(&mut self, address: u32) {
        if self.addresses.len() < REMOTES {
            self.addresses.push(address);
        } else if let Some(place) = self.addresses.get_mut(self.oldest) {
            *place = address;
            self.oldest = (self.oldest + 1) % REMOTES;
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct State {
    plan: Arc<Plan>,
    pools: Vec<Blocks>,
    mappings: Slab<Mapping>,
    by_inside: BulkMap<u64, u32>,
    subscribers: Slab<Subscriber>,
    by_address: BulkMap<u64, u32, 5>,
    timers: Wheel<u32>,
    /// With address-dependent filtering only.
    remotes: HashMap<u32, Remotes>,
    /// Reused by [`State::expire`].
    due: Vec<u32>,
    limit: u32,
    random: u64,
    shard: u16,
    leaving: Leaving,
}

/// Who has blocks of pools that are left: what they were given ends piece by piece.
#[derive(Debug)]
enum Leaving {
    /// Nobody, or these.
    Subscribers(Vec<u32>),
    /// It is to be found out.
    Unknown,
}

/// Subscribers that one [`State::expire`] ends because their pool is left, at most: each may have some hundred mappings.
const LEAVE_AT_ONCE: usize = 4;

impl State {
    /// Nothing translated yet; never more than `limit` mappings. The seed should be random.
    pub fn new(plan: Arc<Plan>, shard: u16, limit: u32, seed: u64) -> Self {
        Self {
            pools: plan.pools.iter().map(|pool| Blocks::new(pool.numbering, shard)).collect(),
            plan,
            mappings: Slab::new(limit),
            by_inside: BulkMap::new(seed.rotate_left(7)),
            subscribers: Slab::new(limit),
            by_address: BulkMap::new(seed.rotate_left(23)),
            timers: Wheel::new(Nanos(0), TICK, limit),
            remotes: HashMap::new(),
            due: Vec::new(),
            limit,
            random: seed,
            shard,
            leaving: Leaving::Subscribers(Vec::new()),
        }
    }

    /// Goes by this plan from now on, if it comes after its own ([`Plan::succeeded_by`]). What pools gave that it doesn't have ends,
    /// piece by piece, as [`Self::expire`] is called.
    pub fn follow(&mut self, plan: &Arc<Plan>, ledger: &mut Ledger<'_>) {
        if plan.number <= self.plan.number {
            return;
        }
        // A place must be empty before it can be another pool's.
        self.end_what_is_left(usize::MAX, ledger);
        let taken = |(at, former): (usize, &Pool)| {
            let new = plan.pools.get(at)?;
            (!former.is_left && !new.is_left && !former.is_as(new)).then_some(at as u8)
        };
        let taken: Vec<u8> = self.plan.pools.iter().enumerate().filter_map(taken).collect();
        self.leaving = Leaving::Subscribers(self.subscribers_of(|pool| taken.contains(&pool)));
        self.end_subscribers(usize::MAX, ledger, |pool| taken.contains(&pool));
        let before = std::mem::replace(&mut self.plan, Arc::clone(plan));
        for (at, pool) in plan.pools.iter().enumerate() {
            let stays = before.pools.get(at).is_some_and(|former| former.is_as(pool));
            match self.pools.get_mut(at) {
                Some(_) if stays || pool.is_left => {}
                Some(blocks) => *blocks = Blocks::new(pool.numbering, self.shard),
                None => self.pools.push(Blocks::new(pool.numbering, self.shard)),
            }
        }
        // What leads to somebody for good is nobody else's; what did so before is reserved, and nobody's mapping.
        let shard = self.shard;
        for (pool, protocol, place) in plan.reserved_places().filter(|(.., at)| at.shard == shard) {
            if let Some(number) = self.mapping_at(pool, place, protocol) {
                self.end(number, ledger);
            }
            if let Some(blocks) = self.pools.get_mut(usize::from(pool)) {
                blocks.reserve(place.block, protocol, place.offset);
            }
        }
        self.leaving = Leaving::Unknown;
    }

    /// Ends what so many subscribers of pools have that are left.
    fn end_what_is_left(&mut self, subscribers: usize, ledger: &mut Ledger<'_>) {
        if matches!(&self.leaving, Leaving::Subscribers(leaving) if leaving.is_empty()) {
            return;
        }
        let plan = Arc::clone(&self.plan);
        let is_left = |pool: u8| plan.pools.get(usize::from(pool)).is_some_and(|pool| pool.is_left);
        if matches!(self.leaving, Leaving::Unknown) {
            self.leaving = Leaving::Subscribers(self.subscribers_of(is_left));
        }
        self.end_subscribers(subscribers, ledger, is_left);
    }

    fn subscribers_of(&self, pools: impl Fn(u8) -> bool) -> Vec<u32> {
        self.subscribers.iter().filter(|(_, owner)| pools(owner.pool)).map(|(number, _)| number).collect()
    }

    /// Ends so many of the list, if they still are of these pools.
    fn end_subscribers(&mut self, most: usize, ledger: &mut Ledger<'_>, pools: impl Fn(u8) -> bool) {
        for _ in 0..most {
            let Leaving::Subscribers(leaving) = &mut self.leaving else { return };
            let Some(number) = leaving.pop() else { return };
            // Its last mapping may have ended meanwhile, and another one have its number.
            if self.subscribers.get(number).is_some_and(|owner| pools(owner.pool)) {
                self.forget_subscriber(number, ledger);
            }
        }
    }

    /// The plan that it goes by.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Mappings now.
    #[cfg(test)]
    pub const fn len(&self) -> usize {
        self.mappings.len()
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.random, self.random.rotate_left(32) | 1)
    }

    /// First step of the way from inside: fetches the table's bucket.
    #[inline(always)]
    pub fn prepare(&self, pool: u8, protocol: Protocol, inside: Endpoint) -> Probe {
        self.by_inside.prepare(&inside.key_in(pool, protocol))
    }

    /// Second step: fetches the mapping.
    #[inline(always)]
    pub fn locate(&self, probe: Probe, pool: u8, protocol: Protocol, inside: Endpoint) {
        if let Some(number) = self.by_inside.finish(probe, &inside.key_in(pool, protocol)) {
            self.mappings.prefetch(number);
        }
    }

    /// The mapping of a UE's endpoint in a pool.
    #[inline(always)]
    pub fn find(&self, pool: u8, protocol: Protocol, inside: Endpoint) -> Option<u32> {
        self.by_inside.get(&inside.key_in(pool, protocol))
    }

    /// The public endpoint of a UE's.
    pub fn outside_of(&self, pool: u8, protocol: Protocol, inside: Endpoint) -> Option<Endpoint> {
        self.mappings.get(self.find(pool, protocol, inside)?).map(|mapping| mapping.outside)
    }

    /// The same for whom it isn't known which pool it is about: in this one, or else in the first of the plan's that has one. What one gave
    /// that is left stands for nobody, even before it has ended.
    pub fn outside_in_any(
        &self,
        plan: &Plan,
        first: Option<u8>,
        protocol: Protocol,
        inside: Endpoint,
    ) -> Option<Endpoint> {
        let all = plan.placed().map(|(place, _)| place as u8);
        let mut pools = first.into_iter().chain(all);
        pools.find_map(|pool| self.outside_of(pool, protocol, inside))
    }

    /// Whether a packet by this mapping needs nothing but to be translated.
    #[inline(always)]
    pub fn is_routine(&self, number: u32, remote: u32) -> bool {
        self.remotes.is_empty()
            || self.remotes.get(&number).is_none_or(|known| known.addresses.contains(&remote))
    }

    /// A packet leaves by a mapping: what its source becomes.
    #[inline(always)]
    pub fn leave(&mut self, number: u32, head: &Head, now: Nanos) -> Option<Endpoint> {
        let mapping = self.mappings.get_mut(number)?;
        mapping.last = now;
        let outside = mapping.outside;
        if mapping.protocol == Protocol::Tcp {
            let flags = head.kind;
            // Whatever is new after the end is another connection from the same port.
            let revived = mapping.seen & !seen::ANSWER != 0
                && (flags & tcp::SYN != 0 || closed_but_talks(mapping, head));
            if flags & (tcp::FIN | tcp::RST) != 0 || revived {
                self.turn(number, head, revived);
            }
        }
        Some(outside)
    }

    #[cold]
    fn turn(&mut self, number: u32, head: &Head, revived: bool) {
        let Some(mapping) = self.mappings.get_mut(number) else { return };
        if revived {
            mapping.seen &= seen::ANSWER;
            if head.kind & tcp::SYN != 0 {
                mapping.seen = 0;
            }
        }
        if head.kind & tcp::FIN != 0 {
            mapping.seen |= seen::FIN_OUT;
        }
        if head.kind & tcp::RST != 0 {
            mapping.seen |= seen::RESET;
        }
        self.reschedule(number);
    }

    /// A packet arrives at a public port: whose it is, or why it may not pass.
    #[inline(always)]
    pub fn arrive(&mut self, pool: u8, place: Place, head: &Head, now: Nanos) -> Result<Endpoint, Reason> {
        let protocol = head.protocol().ok_or(Reason::NatUnsupported)?;
        let Some(number) = self.mapping_at(pool, place, protocol) else {
            let opens = protocol == Protocol::Tcp && head.kind & (tcp::SYN | tcp::ACK) == tcp::SYN;
            return Err(if opens { Reason::NatUnsolicited } else { Reason::NatNoMapping });
        };
        if !self.admits(pool, number, head.source.address) {
            return Err(Reason::NatFiltered);
        }
        let mapping = self.mappings.get_mut(number).ok_or(Reason::NatNoMapping)?;
        let inside = mapping.inside;
        if protocol == Protocol::Tcp {
            let flags = head.kind;
            let mut seen = mapping.seen;
            if flags & tcp::RST != 0 {
                seen |= seen::RESET;
            } else if flags & tcp::ACK != 0 {
                seen |= seen::ANSWER;
            }
            if flags & tcp::FIN != 0 {
                seen |= seen::FIN_IN;
            }
            if seen != mapping.seen {
                mapping.seen = seen;
                mapping.last = now;
                self.reschedule(number);
            }
        }
        Ok(inside)
    }

    /// The UE's endpoint behind a public port, for an ICMP error about a packet from there.
    pub fn inside_of(&self, pool: u8, place: Place, protocol: Protocol) -> Option<Endpoint> {
        self.mappings.get(self.mapping_at(pool, place, protocol)?).map(|mapping| mapping.inside)
    }

    #[inline(always)]
    fn mapping_at(&self, pool: u8, place: Place, protocol: Protocol) -> Option<u32> {
        self.pools.get(pool as usize)?.get(place.block, protocol, place.offset)
    }

    /// First of three steps that fetch what [`Self::arrive`] reads, for all packets of a burst.
    #[inline(always)]
    pub fn prefetch_block(&self, pool: u8, place: Place) {
        if let Some(blocks) = self.pools.get(pool as usize) {
            blocks.prefetch_block(place.block);
        }
    }

    /// Second step.
    #[inline(always)]
    pub fn prefetch_slot(&self, pool: u8, place: Place, protocol: Protocol) {
        if let Some(blocks) = self.pools.get(pool as usize) {
            blocks.prefetch_slot(place.block, protocol, place.offset);
        }
    }

    /// Third step.
    #[inline(always)]
    pub fn prefetch_mapping(&self, pool: u8, place: Place, protocol: Protocol) {
        if let Some(number) = self.mapping_at(pool, place, protocol) {
            self.mappings.prefetch(number);
        }
    }

    #[inline(always)]
    fn admits(&self, pool: u8, number: u32, remote: u32) -> bool {
        match self.plan.pools.get(pool as usize).map(|pool| pool.settings.filtering) {
            Some(Filtering::EndpointIndependent) | None => true,
            Some(Filtering::AddressDependent) => {
                self.remotes.get(&number).is_some_and(|known| known.addresses.contains(&remote))
            }
        }
    }

    /// The mapping of a UE's endpoint that sends to `remote`; made if there is none.
    pub fn open(
        &mut self,
        pool: u8,
        protocol: Protocol,
        inside: Endpoint,
        remote: u32,
        ledger: &mut Ledger<'_>,
    ) -> Result<u32, Reason> {
        let number = match self.find(pool, protocol, inside) {
            Some(number) => number,
            None => self.create(pool, protocol, inside, ledger)?,
        };
        let filtering = self.plan.pools.get(pool as usize).map(|pool| pool.settings.filtering);
        if filtering == Some(Filtering::AddressDependent) {
            let known = self.remotes.entry(number).or_default();
            if !known.addresses.contains(&remote) {
                known.add(remote);
            }
        }
        Ok(number)
    }

    fn create(
        &mut self,
        pool: u8,
        protocol: Protocol,
        inside: Endpoint,
        ledger: &mut Ledger<'_>,
    ) -> Result<u32, Reason> {
        if self.mappings.len() as u32 >= self.limit {
            return Err(Reason::NatExhausted);
        }
        let (block, offset, subscriber) = self.port(pool, protocol, inside, ledger)?;
        let outside = self.endpoint(pool, block, offset);
        let mapping = Mapping {
            inside,
            outside,
            block,
            offset,
            protocol,
            pool,
            seen: 0,
            last: ledger.now,
            subscriber,
            timer: None,
        };
        let number = self.mappings.insert(mapping).map_err(|_| Reason::NatExhausted)?;
        if let Some(blocks) = self.pools.get_mut(pool as usize) {
            blocks.set(block, protocol, offset, number);
        }
        ledger.count(pool, |counters| counters.mappings_made += 1);
        if self.by_inside.insert(inside.key_in(pool, protocol), number).is_err() {
            self.end(number, ledger);
            return Err(Reason::NatExhausted);
        }
        self.reschedule(number);
        if self.logs(pool, Logging::Bindings) {
            ledger.tell(Told::Mapped { pool, protocol, inside: shown(inside), outside: shown(outside) });
        }
        Ok(number)
    }

    /// A free port for a UE: of its blocks, or of one more.
    fn port(
        &mut self,
        pool: u8,
        protocol: Protocol,
        inside: Endpoint,
        ledger: &mut Ledger<'_>,
    ) -> Result<(BlockId, u16, u32), Reason> {
        let (random, plan) = (self.random(), Arc::clone(&self.plan));
        // A worker may still go by an earlier plan.
        let settings = plan.pools.get(pool as usize).filter(|pool| !pool.is_left);
        let settings = settings.map(|pool| &pool.settings).ok_or(Reason::NatExhausted)?;
        let blocks = self.pools.get_mut(pool as usize).ok_or(Reason::NatExhausted)?;
        let whose = subscriber_key(pool, inside.address);
        let known = self.by_address.get(&whose);
        let held = known.and_then(|number| self.subscribers.get(number));
        for block in held.iter().flat_map(|held| &held.blocks) {
            if let (Some(offset), Some(number)) =
                (blocks.choose(*block, protocol, random, inside.port), known)
            {
                return Ok((*block, offset, number));
            }
        }
        if held.is_some_and(|held| held.blocks.len() >= usize::from(settings.blocks_per_ue)) {
            return Err(Reason::NatUserLimit);
        }
        let public = match held {
            Some(held) => held.public,
            None => blocks.any_address(random).ok_or(Reason::NatExhausted)?,
        };
        let number = if let Some(number) = known {
            number
        } else {
            let new = Subscriber { address: inside.address, pool, public, blocks: Vec::new() };
            let number = self.subscribers.insert(new).map_err(|_| Reason::NatExhausted)?;
            if self.by_address.insert(whose, number).is_err() {
                self.subscribers.remove(number);
                return Err(Reason::NatExhausted);
            }
            number
        };
        let address = plan.address(pool, blocks.number(public));
        let taken = blocks.take(public, number, plan.reserved(address));
        let offset = taken.and_then(|block| blocks.choose(block, protocol, random, inside.port));
        if let (Some(block), Some(subscriber)) = (taken, self.subscribers.get_mut(number)) {
            subscriber.blocks.push(block);
            self.tell_block(pool, block, inside.address, true, ledger);
        }
        match (taken, offset) {
            (Some(block), Some(offset)) => Ok((block, offset, number)),
            // A block all of whose ports are forwarded serves nobody, and goes back.
            (Some(block), None) => {
                if let Some(blocks) = self.pools.get_mut(pool as usize) {
                    blocks.give_back(block);
                }
                self.block_left(pool, block, number, ledger);
                Err(Reason::NatExhausted)
            }
            // The address has no block left, and a UE keeps its address.
            (None, _) => {
                self.forget_idle(number);
                Err(Reason::NatExhausted)
            }
        }
    }

    fn endpoint(&self, pool: u8, block: BlockId, offset: u16) -> Endpoint {
        let Some(blocks) = self.pools.get(pool as usize) else { return Endpoint { address: 0, port: 0 } };
        let (address, first) = blocks.port(block);
        Endpoint { address: self.plan.address(pool, address), port: first + offset }
    }

    fn logs(&self, pool: u8, least: Logging) -> bool {
        self.plan.pools.get(pool as usize).is_some_and(|pool| pool.settings.logging >= least)
    }

    fn tell_block(&self, pool: u8, block: BlockId, inside: u32, taken: bool, ledger: &mut Ledger<'_>) {
        ledger.count(pool, |counters| {
            if taken {
                counters.blocks_taken += 1;
            } else {
                counters.blocks_returned += 1;
            }
        });
        if self.logs(pool, Logging::Blocks) {
            let first = self.endpoint(pool, block, 0);
            let size = self.plan.pools.get(pool as usize).map_or(1, |pool| pool.numbering.size());
            let told = Told::Block {
                pool,
                taken,
                inside: inside.into(),
                outside: first.address.into(),
                ports: (first.port, first.port + (size - 1)),
            };
            ledger.tell(told);
        }
    }

    /// Sets the timer of a mapping to its present deadline.
    fn reschedule(&mut self, number: u32) {
        let Some(mapping) = self.mappings.get_mut(number) else { return };
        let Some(pool) = self.plan.pools.get(mapping.pool as usize) else { return };
        let deadline = mapping.deadline(&pool.settings.timeouts);
        if let Some(timer) = mapping.timer.take() {
            self.timers.cancel(timer);
        }
        // There is a timer for every mapping that the slab has room for.
        mapping.timer = self.timers.insert(deadline, number).ok();
    }

    /// Ends what is due. A bounded piece of work; the next call goes on from there.
    pub fn expire(&mut self, ledger: &mut Ledger<'_>) {
        self.end_what_is_left(LEAVE_AT_ONCE, ledger);
        if self.mappings.is_empty() {
            return;
        }
        let mut due = std::mem::take(&mut self.due);
        self.timers.advance(ledger.now, &mut |number| due.push(number));
        for number in due.drain(..) {
            let Some(mapping) = self.mappings.get_mut(number) else { continue };
            mapping.timer = None;
            let timeouts = self.plan.pools.get(mapping.pool as usize).map(|pool| pool.settings.timeouts);
            if timeouts.is_some_and(|timeouts| mapping.deadline(&timeouts) > ledger.now) {
                self.reschedule(number);
            } else {
                self.end(number, ledger);
            }
        }
        self.due = due;
    }

    fn end(&mut self, number: u32, ledger: &mut Ledger<'_>) {
        let Some(mapping) = self.mappings.remove(number) else { return };
        if let Some(timer) = mapping.timer {
            self.timers.cancel(timer);
        }
        self.remotes.remove(&number);
        let key = mapping.inside.key_in(mapping.pool, mapping.protocol);
        if self.by_inside.get(&key) == Some(number) {
            self.by_inside.remove(&key);
        }
        let Mapping { pool, protocol, inside, outside, block, offset, subscriber, .. } = mapping;
        ledger.count(pool, |counters| counters.mappings_ended += 1);
        if self.logs(pool, Logging::Bindings) {
            ledger.tell(Told::Unmapped { pool, protocol, inside: shown(inside), outside: shown(outside) });
        }
        let blocks = self.pools.get_mut(pool as usize);
        if blocks.and_then(|blocks| blocks.clear(block, protocol, offset)).is_some() {
            self.block_left(pool, block, subscriber, ledger);
        }
    }

    /// A block was returned.
    fn block_left(&mut self, pool: u8, block: BlockId, subscriber: u32, ledger: &mut Ledger<'_>) {
        let Some(owner) = self.subscribers.get_mut(subscriber) else { return };
        owner.blocks.retain(|held| *held != block);
        let address = owner.address;
        self.tell_block(pool, block, address, false, ledger);
        self.forget_idle(subscriber);
    }

    /// Forgets a subscriber without blocks.
    fn forget_idle(&mut self, subscriber: u32) {
        if let Some(owner) = self.subscribers.get(subscriber).filter(|owner| owner.blocks.is_empty()) {
            self.by_address.remove(&subscriber_key(owner.pool, owner.address));
            self.subscribers.remove(subscriber);
        }
    }

    /// A UE's address is no longer its own: ends all its mappings, so that who gets the address next begins anew.
    pub fn forget(&mut self, address: u32, ledger: &mut Ledger<'_>) {
        for pool in 0..self.pools.len() as u8 {
            if let Some(number) = self.by_address.get(&subscriber_key(pool, address)) {
                self.forget_subscriber(number, ledger);
            }
        }
    }

    /// Ends all mappings that somebody has in a pool.
    fn forget_subscriber(&mut self, number: u32, ledger: &mut Ledger<'_>) {
        let Some(owner) = self.subscribers.get(number) else { return };
        let (pool, held) = (owner.pool, owner.blocks.clone());
        for block in held {
            let numbers =
                self.pools.get(pool as usize).map(|blocks| blocks.mappings(block)).unwrap_or_default();
            for number in numbers {
                self.end(number, ledger);
            }
        }
    }

    /// The same for all addresses that `gone` says.
    pub fn forget_all(&mut self, gone: impl Fn(Ipv4Addr) -> bool, ledger: &mut Ledger<'_>) {
        let addresses: Vec<u32> = self
            .subscribers
            .iter()
            .map(|(_, owner)| owner.address)
            .filter(|address| gone(Ipv4Addr::from(*address)))
            .collect();
        for address in addresses {
            self.forget(address, ledger);
        }
    }
}

/// What a UE's blocks in a pool are found by.
const fn subscriber_key(pool: u8, address: u32) -> u64 {
    (pool as u64) << 32 | address as u64
}

/// Data after the end.
const fn closed_but_talks(mapping: &Mapping, head: &Head) -> bool {
    let closed = seen::FIN_OUT | seen::FIN_IN;
    head.data && (mapping.seen & seen::RESET != 0 || mapping.seen & closed == closed)
}

fn shown(endpoint: Endpoint) -> std::net::SocketAddrV4 {
    std::net::SocketAddrV4::new(endpoint.address.into(), endpoint.port)
}
