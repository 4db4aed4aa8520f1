//! A worker's mirrors, and which of them each session has.

use super::{CaptureTx, MAX_MIRRORS, Mirror, MirrorCounters, Order, Scope, Target};
use crate::command::Event;
use crate::datapath::Datapath;
use crate::meta::{Meta, NONE};
use crate::network::Context;
use crate::network::egress::Egress;
use crate::network::interface::{Interface, Roles};
use crate::network::peer::NO_PEER;
use crate::state::record::flag;
use crate::state::shard::Shard;
use io::Frame;
use pfcp::Seid;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// A mirror as a worker has it.
#[derive(Debug)]
pub(super) struct Tap {
    pub mirror: Arc<Mirror>,
    pub way: TapWay,
    /// Packets to pass over before the next is copied.
    pub skip: u32,
    /// Of the next ERSPAN packet.
    pub sequence: u32,
}

/// The way to a mirror's target.
#[derive(Debug)]
pub(super) enum TapWay {
    Port(Egress),
    /// The tunnel's far end, in the worker's peer table; [`NO_PEER`]: the table is full.
    Peer(u16),
    Capture(CaptureTx),
    /// A capture without a reader.
    Nowhere,
}

/// All mirrors of a worker.
#[derive(Debug)]
pub(crate) struct Taps {
    /// By [`Mirror::number`].
    taps: Vec<Option<Box<Tap>>>,
    /// Those of all sessions.
    all: Vec<u16>,
    /// Those that a packet is copied for; reused.
    pub(super) chosen: Vec<u16>,
    /// Of the last copy's outer IPv4 header.
    pub(super) identification: u16,
    /// A record is fit to serve packets beside which nothing is to be done if, of these flags, it has just
    /// [`flag::LIVE`]. While all sessions are mirrored there are none here, so no record is.
    pub plain: u32,
}

impl Default for Taps {
    fn default() -> Self {
        Self {
            taps: Vec::new(),
            all: Vec::new(),
            chosen: Vec::new(),
            identification: 0,
            plain: flag::LIVE | flag::MIRRORED,
        }
    }
}

impl Taps {
    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut Tap> {
        self.taps.get_mut(number as usize)?.as_deref_mut()
    }

    /// Chooses the mirrors of a session that has these of its own.
    pub(super) fn choose(&mut self, own: &[u16]) {
        self.chosen.clear();
        self.chosen.extend_from_slice(own);
        self.chosen.extend_from_slice(&self.all);
    }

    /// Enters a mirror; that which had the number is returned.
    fn enter(&mut self, tap: Tap) -> Option<Box<Tap>> {
        let number = tap.mirror.number;
        let before = self.take(number);
        if tap.mirror.scope == Scope::All {
            self.all.push(number);
        }
        if self.taps.len() <= number as usize {
            self.taps.resize_with(number as usize + 1, || None);
        }
        if let Some(place) = self.taps.get_mut(number as usize) {
            *place = Some(Box::new(tap));
        }
        self.set_plain();
        before
    }

    fn take(&mut self, number: u16) -> Option<Box<Tap>> {
        let tap = self.taps.get_mut(number as usize)?.take();
        while self.taps.pop_if(|last| last.is_none()).is_some() {}
        self.all.retain(|other| *other != number);
        self.set_plain();
        tap
    }

    fn set_plain(&mut self) {
        self.plain = if self.all.is_empty() { flag::LIVE | flag::MIRRORED } else { 0 };
    }
}

impl<F> Shard<F> {
    /// Makes a mirror one of the session's. False: it isn't here.
    fn begin_mirror(&mut self, slot: u32, seid: Seid, number: u16) -> bool {
        let Some(session) = self.session_mut(slot).filter(|session| session.rules.seid == seid) else {
            return false;
        };
        // A shard that moved meanwhile may have brought it along.
        if !session.mirrors.contains(&number) {
            session.mirrors.push(number);
            self.mark_mirrored(slot);
        }
        true
    }

    fn end_mirror(&mut self, slot: u32, seid: Seid, number: u16) {
        if let Some(session) = self.session_mut(slot).filter(|session| session.rules.seid == seid) {
            session.mirrors.retain(|other| *other != number);
            self.mark_mirrored(slot);
        }
    }

    /// Tells a session's records whether it has mirrors.
    pub(crate) fn mark_mirrored(&mut self, slot: u32) {
        self.with_records(slot, |session, _, records| {
            let mark = if session.mirrors.is_empty() { 0 } else { flag::MIRRORED };
            for record in records.iter_mut() {
                record.flags = record.flags & !flag::MIRRORED | mark;
            }
        });
    }
}

impl<F: Frame> Datapath<F> {
    /// Whether a packet of this session is to be copied. Asked behind [`Taps::plain`], or where that was not asked.
    #[inline(always)]
    pub(crate) fn is_mirrored(&self, meta: &Meta) -> bool {
        let marked = || {
            let shard = self.shards.get(meta.shard as usize).and_then(Option::as_deref);
            shard.and_then(|shard| shard.record(meta)).is_some_and(|record| record.has(flag::MIRRORED))
        };
        self.taps.plain == 0 || (!self.taps.taps.is_empty() && marked())
    }

    /// Begins or ends a mirror.
    pub(crate) fn change_mirrors<P>(&mut self, cx: &mut Context<'_, F, P>, order: Order) {
        match order {
            Order::Add { mirror, capture } if mirror.number < MAX_MIRRORS => {
                self.begin_mirror(cx, mirror, capture);
            }
            Order::Add { mirror, .. } => {
                cx.out.events.push(Event::MirrorsEnded { numbers: vec![mirror.number] });
            }
            Order::Remove { number } => {
                let tap = self.taps.take(number);
                self.end_mirror(tap);
                self.count_anew(number);
            }
        }
    }

    fn begin_mirror<P>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        mirror: Arc<Mirror>,
        capture: Option<CaptureTx>,
    ) {
        let number = mirror.number;
        let way = match (mirror.target, mirror.target.far_end()) {
            (_, Some(address)) => TapWay::Peer(self.network.acquire_peer(address).unwrap_or(NO_PEER)),
            (Target::Port { port, vlan, source, destination, mtu }, _) => {
                let link = Interface {
                    name: String::new(),
                    port,
                    vlan,
                    mac: source,
                    mtu,
                    roles: Roles::default(),
                    addresses: Vec::new(),
                    network_instances: Vec::new(),
                };
                let nobody = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
                TapWay::Port(Egress::new(NONE, &link, nobody, Some(destination.0)))
            }
            _ => capture.map_or(TapWay::Nowhere, TapWay::Capture),
        };
        let scope = mirror.scope;
        let before = self.taps.enter(Tap { mirror, way, skip: 0, sequence: 0 });
        self.end_mirror(before);
        self.count_anew(number);
        // Those workers whose shard it isn't keep the mirror for the day on which the shard comes.
        if let Scope::Session { place, seid } = scope
            && let Some(shard) = self.shard_mut(place.shard)
            && !shard.begin_mirror(place.slot, seid, number)
        {
            cx.out.events.push(Event::MirrorsEnded { numbers: vec![number] });
        }
    }

    /// Forgets a mirror that was taken out.
    fn end_mirror(&mut self, tap: Option<Box<Tap>>) {
        let Some(tap) = tap else { return };
        if let TapWay::Peer(peer) = tap.way {
            self.network.peers.release(peer, 1);
        }
        if let Scope::Session { place, seid } = tap.mirror.scope
            && let Some(shard) = self.shard_mut(place.shard)
        {
            shard.end_mirror(place.slot, seid, tap.mirror.number);
        }
    }

    fn count_anew(&mut self, number: u16) {
        let counters = &mut self.counters.mirrors;
        if counters.len() <= number as usize && number < MAX_MIRRORS {
            counters.resize(number as usize + 1, MirrorCounters::default());
        }
        if let Some(counters) = counters.get_mut(number as usize) {
            *counters = MirrorCounters::default();
        }
    }
}
