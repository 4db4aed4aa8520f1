//! One worker's state, and the order in which a burst meets it.

use crate::ahead;
use crate::counters::{Counters, InterfaceCounters, Traffic};
use crate::directory::Directory;
use crate::export::{Export, Ledger};
use crate::feeder::CheckSource;
use crate::flow::{Flow, Key, Lookup, NO_RULE};
use crate::forward::Link;
use crate::fragment::{FirstFragments, FragmentFlows, Reassembly};
use crate::limits::Rates;
use crate::load::ShardLoads;
use crate::mirror::Taps;
use crate::nat;
use crate::network::{Context, Network};
use crate::outbox::Outbox;
use crate::overload::Overload;
use crate::parse::{self, Kind, Meta};
use crate::peer::NO_PEER;
use crate::room::Room;
use crate::shard::Shard;
use crate::slice::{Share, SliceTraffic};
use crate::{Config, Reason};
use io::{BURST, Frame, FramePool};
use packet::rss;
use session::{SHARDS, ShardId};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tables::prefetch::{prefetch, prefetch_slice_at};
use tables::{Nanos, Piece, Probe, Supply, Wish};

/// Rounds of packets that arise from other packets (to another UE, or an answer to a UE) in one call. A packet from a
/// UE to a UE takes one, the ICMP error about it another.
const ROUNDS: usize = 4;

/// Shards whose flows one tick looks over: all of them in sixteen.
const SWEPT: usize = SHARDS / 16;

/// One worker's share of the user plane: the shards it owns, and its copies of everything else.
///
/// All methods take the time and leave their results in an [`Outbox`]; nothing blocks, logs or waits.
#[derive(Debug)]
pub struct Datapath<F: Frame> {
    pub(crate) config: Config,
    pub(crate) shards: Vec<Option<Box<Shard<F>>>>,
    pub(crate) network: Network<F>,
    pub(crate) directory: Directory,
    pub(crate) counters: Counters,
    pub(crate) rates: Rates,
    pub(crate) reassembly: Reassembly<F>,
    pub(crate) flows: FragmentFlows,
    /// Who wants copies.
    pub(crate) taps: Taps,
    /// What is translated on N6.
    pub(crate) nat: Option<Arc<nat::Plan>>,
    /// Shards that came since the last burst, whose translations may go by another plan.
    pub(crate) newcomers: Vec<ShardId>,
    /// Ports of first fragments, for the translation of others.
    pub(crate) nat_fragments: FirstFragments<u16>,
    /// To whom packets to public addresses are: for each packet of a burst.
    pub(crate) ahead: Vec<nat::Ahead>,
    /// Mappings of packets from UEs that are being fetched.
    pub(crate) sought: Vec<nat::Sought>,
    /// Internal frames that arose in this call.
    pub(crate) arisen: Vec<F>,
    /// Frames of a burst that other workers have no part in; empty between calls.
    staying: Vec<F>,
    pub(crate) metas: Vec<Meta>,
    probes: Vec<Option<Probe>>,
    /// What packets of sessions with flows are looked up by: for each packet of a burst, or none while no session here has flows.
    lookups: Vec<Option<Lookup>>,
    /// Sessions here whose rules have records of their own.
    pub(crate) divided: usize,
    overload: Overload,
    /// For flows.
    pub(crate) room: Room,
    /// Memory for more of them.
    pub(crate) supply: Supply<Key, Flow>,
    /// What is told of flows.
    pub(crate) export: Export,
    /// Its shares of slices, uplink and downlink of each in turn.
    pub(crate) slices: Vec<Share>,
    /// Shards whose flows are looked over next.
    sweep: usize,
    /// Which packets are sampled.
    sampled: u32,
    shard_loads: ShardLoads,
    /// Where the packets leave that their records served.
    pub(crate) links: Vec<Link>,
    /// Of the last outer IPv4 header.
    pub(crate) identification: u16,
    /// Reused by everything that builds packets of our own.
    pub(crate) scratch: Vec<u8>,
}

impl<F: Frame> Datapath<F> {
    /// A worker without shards.
    pub fn new(config: Config) -> Self {
        let network = Network::new(&config);
        let mut datapath = Self {
            shards: (0..SHARDS).map(|_| None).collect(),
            directory: Directory::new(config.seed, config.teids),
            counters: Counters::default(),
            rates: Rates::new(&config),
            reassembly: Reassembly::new(config.reassemblies, config.fragment_timeout),
            flows: FragmentFlows::new(config.fragment_flows, config.fragment_timeout),
            taps: Taps::default(),
            nat: config.view.nat().cloned(),
            newcomers: Vec::new(),
            nat_fragments: FirstFragments::new(config.fragment_flows, config.fragment_timeout),
            ahead: Vec::new(),
            sought: Vec::new(),
            arisen: Vec::with_capacity(BURST),
            staying: Vec::with_capacity(BURST),
            sampled: 0,
            shard_loads: ShardLoads::default(),
            metas: Vec::with_capacity(4 * BURST),
            probes: Vec::with_capacity(4 * BURST),
            lookups: Vec::with_capacity(4 * BURST),
            divided: 0,
            overload: Overload::default(),
            room: Room::new(config.flows),
            supply: Supply::new(config.flow_supply),
            export: Export::new(config.export),
            slices: Share::of(&config.slices),
            sweep: 0,
            links: Vec::with_capacity(4 * BURST),
            scratch: Vec::with_capacity(2048),
            identification: 0,
            network,
            config,
        };
        datapath.size_counters();
        datapath
    }

    pub(crate) fn size_counters(&mut self) {
        let interfaces = self.network.view.interfaces().len();
        let pools = self.nat.as_ref().map_or(0, |plan| plan.names().count());
        if self.counters.nat.len() < pools {
            self.counters.nat.resize(pools, nat::PoolCounters::default());
        }
        if self.counters.interfaces.len() < interfaces {
            self.counters.interfaces.resize(interfaces, InterfaceCounters::default());
        }
    }

    /// Takes over a shard, with its sessions and their buffered packets. A shard that was here under the same number is
    /// returned. Takes as long as the shard's sessions have different peers, unless it comes from workers whose peers have other
    /// numbers ([`Config::peer_numbers`]): then all sessions are gone through.
    pub fn adopt(&mut self, mut shard: Box<Shard<F>>) -> Option<Box<Shard<F>>> {
        let network = &mut self.network;
        if let Some(luggage) = shard.luggage.take() {
            let mut strange = false;
            for (address, number, users) in &luggage.peers {
                strange |= network.acquire_peers(*address, *users) != Some(*number);
            }
            if strange {
                for (address, _, users) in &luggage.peers {
                    network.release_peers(*address, *users);
                }
                // A peer too many leaves the FAR without a way: its packets are dropped and counted.
                shard.relink(|address| network.acquire_peer(address).unwrap_or(NO_PEER));
            }
        }
        let index = shard.id().index();
        match (&self.nat, &shard.nat) {
            (Some(plan), None) => shard.nat = Some(Self::translations(&self.config, plan, shard.id())),
            (Some(_), Some(_)) => self.newcomers.push(shard.id()),
            (None, _) => {}
        }
        let before = self.release(shard.id());
        self.counters.buffered += shard.buffered() as u64;
        // The frames come with the shard.
        self.counters.handed_in += shard.buffered() as u64;
        self.divided += shard.divided();
        self.room.come(shard.id(), shard.flows.len());
        // It may come from before a change of limits.
        shard.flows.set_limit(self.config.flows);
        shard.check_sources(self.config.check_source);
        shard.flows.join(&mut self.supply);
        if let Some(place) = self.shards.get_mut(index) {
            *place = Some(shard);
        }
        before
    }

    /// Gives a shard away.
    pub fn release(&mut self, id: ShardId) -> Option<Box<Shard<F>>> {
        let mut shard = self.shards.get_mut(id.index())?.take()?;
        shard.luggage = Some(self.network.peers.pack(shard.peers()));
        self.counters.buffered -= shard.buffered() as u64;
        self.counters.handed_out += shard.buffered() as u64;
        self.divided -= shard.divided();
        self.room.go(id);
        shard.flows.leave(&mut self.supply);
        Some(shard)
    }

    /// Shards that are here.
    pub fn owned(&self) -> usize {
        self.shards.iter().flatten().count()
    }

    /// An empty shard with this worker's limits.
    pub fn new_shard(&self, id: ShardId) -> Box<Shard<F>> {
        let seed = self.config.seed ^ (id.index() as u64) << 48;
        let Config { sessions_per_shard, flows, meter_burst, .. } = self.config;
        let mut shard = Shard::new(id, sessions_per_shard, flows, meter_burst, seed);
        shard.flows.reserve(self.config.flows_reserved_per_shard);
        shard.nat = self.nat.as_ref().map(|plan| Self::translations(&self.config, plan, id));
        Box::new(shard)
    }

    /// Whether this worker owns the shard.
    pub fn owns(&self, id: ShardId) -> bool {
        self.shards.get(id.index()).is_some_and(Option::is_some)
    }

    /// The shard, if it is here.
    pub fn shard(&self, id: ShardId) -> Option<&Shard<F>> {
        self.shards.get(id.index())?.as_deref()
    }

    /// What this worker counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What this worker counted of each slice: uplink, downlink.
    pub fn slices(&self) -> Vec<[SliceTraffic; 2]> {
        let (pairs, _) = self.slices.as_chunks::<2>();
        pairs.iter().map(|[up, down]| [up.traffic, down.traffic]).collect()
    }

    /// For the engine, which learns what became of the outbox.
    pub const fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Which shards keep this worker busy, readable by others at any time.
    pub const fn shard_loads(&self) -> &ShardLoads {
        &self.shard_loads
    }

    /// Sessions in this worker's shards.
    pub fn sessions(&self) -> usize {
        self.shards.iter().flatten().map(|shard| shard.len()).sum()
    }

    /// Bytes of memory that flow entries take, and what is ready for more.
    pub fn flow_memory(&self) -> usize {
        let tables: usize = self.shards.iter().flatten().map(|shard| shard.flows.memory()).sum();
        tables + self.supply.memory()
    }

    /// A piece of memory that flow tables will need: to be made on another thread ([`FlowMemory::make`]), and brought.
    pub fn wish(&mut self) -> Option<Wish> {
        self.supply.wish()
    }

    /// Brings what was wished for.
    pub fn stock(&mut self, memory: FlowMemory) {
        self.supply.stock(memory.0);
    }

    /// The shard that a UE address belongs to, unless the address directory says otherwise.
    pub fn shard_of(address: IpAddr) -> ShardId {
        ShardId::from_hash(rss::ue_hash(address))
    }

    /// So many quarters of the queue that a port's bursts come from are full, if that is known ([`io::RxQueue::quarters`]): in overload,
    /// whether new flows may begin depends on it. To be told with each burst that is full.
    pub fn queue_fills(&mut self, port: u16, quarters: Option<u8>) {
        self.overload.fills(port, quarters);
    }

    /// Processes frames that arrived at a port, and leaves `burst` empty.
    pub fn process<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        port: u16,
        burst: &mut Vec<F>,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        self.overload.begin(port, burst.len(), self.config.new_flows_in_overload);
        self.arrive(now, port, burst, out, pool);
    }

    /// As [`Datapath::process`], for a queue that the port steers to ahead of its ordinary one, of which these bursts say
    /// nothing.
    pub fn process_steered<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        port: u16,
        burst: &mut Vec<F>,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        self.overload.begin_beside(port, self.config.new_flows_in_overload);
        self.arrive(now, port, burst, out, pool);
    }

    fn arrive<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        port: u16,
        burst: &mut Vec<F>,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        let mut cx = Context { now, out, pool };
        self.counters.received += burst.len() as u64;
        self.metas.clear();
        let into_tunnels = self.network.ingress.leads_into_tunnels(port);
        for frame in burst.iter() {
            frame.prefetch(into_tunnels);
        }
        let (network, counters) = (&self.network, &mut self.counters);
        self.metas.resize(burst.len(), Meta::EMPTY);
        // A port has one interface, mostly: counted in registers until another one turns up.
        let (mut interface, mut traffic) = (parse::NONE, Traffic::default());
        let arrival = network.arrival(port);
        for (meta, frame) in self.metas.iter_mut().zip(burst.iter()) {
            arrival.parse_into(frame.bytes(), meta);
            if meta.interface != interface {
                counters.arrived(interface, traffic);
                (interface, traffic) = (meta.interface, Traffic::default());
            }
            traffic.add(frame.len());
        }
        counters.arrived(interface, traffic);
        self.run(&mut cx, burst);
        self.settle(&mut cx);
    }

    /// Processes frames that another worker handed over ([`Outbox::hand_off`]), each with the port it arrived at, and
    /// leaves `frames` empty. A frame whose shard isn't here, because it has just moved, is handed on.
    pub fn process_handed_off<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        frames: &mut Vec<(u16, F)>,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        let mut cx = Context { now, out, pool };
        self.counters.handed_in += frames.len() as u64;
        self.overload.begin_unlimited();
        self.metas.clear();
        let mut burst = std::mem::take(&mut self.arisen);
        for (_, frame) in frames.iter() {
            frame.prefetch_from_afar();
        }
        for (port, frame) in frames.drain(..) {
            self.metas.push(self.network.arrival(port).handed_off(true).parse(frame.bytes()));
            burst.push(frame);
        }
        self.run(&mut cx, &mut burst);
        // `run` may have filled the list that was taken.
        burst.append(&mut self.arisen);
        self.arisen = burst;
        self.settle(&mut cx);
    }

    /// The phases of a burst whose frames are parsed.
    fn run<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>, burst: &mut Vec<F>) {
        if self.nat.is_some() {
            self.follow_newcomers(cx.now, &mut cx.out.events);
            self.translate_in(cx.now, burst);
        }
        // Where is the record? A tunnel's place is in its TEID; a plain packet's bucket has to be read first.
        self.probes.clear();
        let (shards, directory) = (&self.shards, &self.directory);
        let (mut hashed, mut away) = (false, false);
        self.probes.extend(self.metas.iter_mut().zip(burst.iter()).map(|(meta, frame)| {
            let mut probe = None;
            match meta.kind {
                Kind::Tunnel => {
                    let (shard, slot) = directory.teid(meta.teid);
                    meta.shard = shard;
                    meta.slot = slot as u32;
                    match shards.get(shard as usize) {
                        Some(Some(shard)) => prefetch_slice_at(&shard.tunnels, slot as usize),
                        _ => away = true,
                    }
                }
                Kind::Plain => {
                    let found = if meta.v6 {
                        directory.ipv6(meta.key, || destination6(frame.bytes(), meta.inner))
                    } else {
                        directory.ipv4(meta.key as u32)
                    };
                    if let Some((shard, slot)) = found {
                        meta.shard = shard;
                        meta.slot = slot;
                        match shards.get(shard as usize) {
                            Some(Some(shard)) => prefetch_slice_at(&shard.downlink, slot as usize),
                            _ => away = true,
                        }
                    } else {
                        let hash = if meta.v6 {
                            rss::ue_hash_prefix64(meta.key)
                        } else {
                            rss::ue_hash_ipv4(Ipv4Addr::from_bits(meta.key as u32))
                        };
                        let id = ShardId::from_hash(hash).index();
                        meta.shard = id as u16;
                        if let Some(Some(shard)) = shards.get(id) {
                            hashed = true;
                            probe = Some(if meta.v6 {
                                shard.by_prefix.prepare(&meta.key)
                            } else {
                                shard.by_ipv4.prepare(&(meta.key as u32))
                            });
                        } else {
                            away = true;
                        }
                    }
                }
                _ => {}
            }
            probe
        }));
        let second = if hashed { self.probes.as_slice() } else { &[] };
        for (meta, probe) in self.metas.iter_mut().zip(second) {
            if let (Some(probe), Some(Some(shard))) = (probe, self.shards.get(meta.shard as usize)) {
                let slot = if meta.v6 {
                    shard.by_prefix.finish(*probe, &meta.key)
                } else {
                    shard.by_ipv4.finish(*probe, &(meta.key as u32))
                };
                if let Some(slot) = slot {
                    meta.slot = slot;
                    if let Some(record) = shard.downlink.get(slot as usize) {
                        prefetch(record);
                    }
                }
            }
        }
        if away {
            self.pass_on(cx, burst);
        }
        self.sample();
        // What is known of this burst is out of reach of packets that arise from it and are run in its midst.
        let (mut metas, mut lookups) = (std::mem::take(&mut self.metas), std::mem::take(&mut self.lookups));
        if self.config.check_source != CheckSource::Off {
            self.check_sources(cx.now, &mut metas, burst);
        }
        if self.divided > 0 {
            self.look_closer(&metas, burst, &mut lookups);
        }
        if self.nat.is_some() {
            self.fetch_mappings(&metas, &lookups, burst);
        }
        let served = self.serve_first(cx, &metas, &lookups, burst);
        for (at, (meta, frame)) in (served..).zip(metas.iter().skip(served).zip(burst.drain(..))) {
            let lookup = lookups.get(at).and_then(Option::as_ref);
            if let Err(frame) = self.serve_one(cx, meta, lookup, frame) {
                if lookup.is_some_and(|lookup| lookup.rule == NO_RULE) && !self.overload.admits() {
                    self.counters.drop(Reason::NewFlowInOverload);
                } else {
                    self.dispatch(cx, meta, lookup, frame);
                }
            }
        }
        metas.clear();
        lookups.clear();
        (self.metas, self.lookups) = (metas, lookups);
    }

    /// Takes the packets of shards that other workers own out of the burst. None overtakes another of its session, which is in one
    /// shard.
    #[inline(never)]
    fn pass_on<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>, burst: &mut Vec<F>) {
        let (mut kept, before) = (0, cx.out.hand_off.len());
        for (at, frame) in burst.drain(..).enumerate() {
            let Some(meta) = self.metas.get(at).copied() else { break };
            let is_users = matches!(meta.kind, Kind::Tunnel | Kind::Plain);
            if is_users && !self.has(meta.shard) && !self.is_ours(&meta, frame.bytes()) {
                cx.out.hand_off.push((
                    ShardId::from_hash(meta.shard.into()),
                    self.network.port(meta.interface),
                    frame,
                ));
                continue;
            }
            if let Some(place) = self.metas.get_mut(kept) {
                *place = meta;
            }
            kept += 1;
            self.staying.push(frame);
        }
        self.metas.truncate(kept);
        std::mem::swap(burst, &mut self.staying);
        self.counters.handed_out += (cx.out.hand_off.len() - before) as u64;
    }

    fn has(&self, shard: u16) -> bool {
        matches!(self.shards.get(shard as usize), Some(Some(_)))
    }

    /// Whether it is a packet to ourselves that parsing took for a UE's.
    fn is_ours(&self, meta: &Meta, frame: &[u8]) -> bool {
        meta.kind == Kind::Plain && self.is_own(meta, frame)
    }

    /// Counts one packet of each burst for all, for whoever wants to know which shards are busy.
    #[inline(always)]
    fn sample(&mut self) {
        self.sampled = self.sampled.wrapping_add(0x9e37_79b9);
        // Any packet of the burst, as likely as any other.
        let at = ((u64::from(self.sampled) * self.metas.len() as u64) >> 32) as usize;
        if let Some(meta) = self.metas.get(at)
            && matches!(meta.kind, Kind::Tunnel | Kind::Plain)
        {
            self.shard_loads.add(meta.shard, self.metas.len() as u64);
        }
    }

    /// The sessions' rules that have records of their own: which one is it? Looks up the flows of the burst in phases, as
    /// [`Self::run`] does the sessions, so that all lines that the packets need are on their way together.
    #[inline(never)]
    fn look_closer(&mut self, metas: &[Meta], burst: &[F], lookups: &mut Vec<Option<Lookup>>) {
        let shards = &self.shards;
        lookups.extend(metas.iter().zip(burst).map(|(meta, frame)| {
            let shard = shards.get(meta.shard as usize)?.as_deref()?;
            shard.prepare(meta, frame.bytes())
        }));
        let mut all_found = true;
        for (meta, lookup) in metas.iter().zip(lookups.iter_mut()) {
            if let Some(lookup) = lookup
                && let Some(Some(shard)) = shards.get(meta.shard as usize)
            {
                all_found &= shard.locate(lookup);
            }
        }
        if !all_found {
            for (meta, lookup) in metas.iter().zip(lookups.iter_mut()) {
                if let Some(lookup) = lookup
                    && let Some(Some(shard)) = shards.get(meta.shard as usize)
                {
                    shard.locate_other(lookup);
                }
            }
        }
        let mut all_known = true;
        for (meta, lookup) in metas.iter().zip(lookups.iter_mut()) {
            if let Some(lookup) = lookup
                && let Some(Some(shard)) = self.shards.get_mut(meta.shard as usize)
            {
                all_known &= shard.prefetch_rule(lookup);
            }
        }
        if !all_known {
            ahead::fetch(&self.shards, metas, lookups, self.overload.left() as usize);
        }
        for (meta, lookup) in metas.iter().zip(&*lookups) {
            if let Some(lookup) = lookup
                && let Some(Some(shard)) = self.shards.get(meta.shard as usize)
            {
                shard.prefetch_meters(lookup);
            }
        }
    }

    /// Whatever a record didn't serve.
    #[inline(never)]
    fn dispatch<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        lookup: Option<&Lookup>,
        frame: F,
    ) {
        match meta.kind {
            // `pass_on` has left none of another worker's users, but it has left our own packets.
            Kind::Tunnel | Kind::Plain if !self.has(meta.shard) => self.local(cx, meta, frame),
            Kind::Tunnel | Kind::Plain => self.unserved(cx, meta, lookup, frame),
            Kind::Public => {
                self.counters.handed_out += 1;
                let port = self.network.port(meta.interface);
                cx.out.hand_off.push((ShardId::from_hash(meta.shard.into()), port, frame));
            }
            Kind::Bad(reason) => self.counters.drop(reason),
            Kind::Signalling => self.signalling(cx, meta, &frame),
            Kind::UnknownExtension(_) => self.unknown_extension(cx, meta, &frame),
            Kind::Arp => self.arp(cx, meta, frame),
            Kind::Local => self.local(cx, meta, frame),
            Kind::OuterFragment => self.outer_fragment(cx, meta, frame),
        }
    }

    /// Processes a frame of our own making as if it had just arrived.
    pub(crate) fn again<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>, port: u16, frame: F) {
        let meta = self.network.arrival(port).parse(frame.bytes());
        self.metas.clear();
        self.metas.push(meta);
        self.run(cx, &mut vec![frame]);
    }

    /// Processes the internal frames that arose, and those that arise from them, and sees to it that not too many are held.
    pub(crate) fn settle<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>) {
        for _ in 0..ROUNDS {
            if self.arisen.is_empty() {
                break;
            }
            let mut burst = std::mem::take(&mut self.arisen);
            self.metas.clear();
            self.metas.extend(burst.iter().map(|frame| parse::internal(frame.bytes())));
            self.run(cx, &mut burst);
            burst.append(&mut self.arisen);
            self.arisen = burst;
        }
        for frame in self.arisen.drain(..) {
            self.counters.drop(Reason::TtlExpired);
            drop(frame);
        }
        self.keep_budget();
    }

    pub(crate) fn shard_mut(&mut self, id: ShardId) -> Option<&mut Shard<F>> {
        self.shards.get_mut(id.index())?.as_deref_mut()
    }

    /// Regular work: unanswered solicitations, fragments that wait too long, flows that ended. Call about every millisecond.
    pub fn tick<P: FramePool<Frame = F>>(&mut self, now: Nanos, out: &mut Outbox<F>, pool: &mut P) {
        let mut cx = Context { now, out, pool };
        self.network.tick(&mut cx, &mut self.counters);
        self.reassembly.expire(now, &mut self.counters);
        for _ in 0..SWEPT {
            if let Some(Some(shard)) = self.shards.get_mut(self.sweep) {
                let (export, counters) = (&mut self.export, &mut self.counters.flows);
                let mut ledger = Ledger { now, export, counters, room: &mut self.room };
                shard.sweep_flows(&mut ledger);
                shard.purge_flows(&mut ledger);
                let nat_ledger =
                    &mut nat::Ledger { now, events: &mut cx.out.events, counters: &mut self.counters.nat };
                if let Some(state) = &mut shard.nat {
                    state.expire(nat_ledger);
                }
            }
            self.sweep = (self.sweep + 1) % SHARDS;
        }
        self.look_back(now);
        self.export.flush(&mut cx.out.events);
        self.counters.flows.memory = self.supply.counters();
    }
}

/// Memory for more flows, which was written to.
#[derive(Debug)]
pub struct FlowMemory(Piece<Key, Flow>);

impl FlowMemory {
    /// Takes as long as the system does to find it.
    pub fn make(wish: Wish) -> Self {
        Self(wish.make())
    }
}

/// The destination of an IPv6 packet that was checked in parsing.
pub(crate) fn destination6(frame: &[u8], inner: u16) -> u128 {
    let bytes = frame.get(inner as usize + 24..).and_then(|rest| rest.first_chunk::<16>());
    bytes.map_or(0, |bytes| u128::from_be_bytes(*bytes))
}
