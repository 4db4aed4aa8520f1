//! A worker's own copy of the network: its FIB, and all that is derived from it and from what the links told.

pub(crate) mod asked;
pub(crate) mod askers;
pub(crate) mod egress;
pub mod fib;
pub(crate) mod ingress;
pub(crate) mod interface;
pub(crate) mod near;
pub(crate) mod neighbour;
pub(crate) mod peer;
pub mod rib;
pub(crate) mod sources;

use crate::command::Event;
use crate::counters::{Counters, Traffic};
use crate::network::askers::Askers;
use crate::network::egress::Egress;
use crate::network::fib::{Fib, Hop, HopId};
use crate::network::neighbour::{Due, Held, Neighbours, User, Word};
use crate::network::peer::{Outer, Peers};
use crate::outbox::Outbox;
use crate::{Config, Reason};
use ingress::Ingress;
use io::{Frame, FramePool};
use packet::{MacAddr, arp, ethernet, ndp};
use session::PrefixLengths;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use tables::{Nanos, RateLimiter};

/// What every step of a call needs: the time, and where results go and frames come from.
pub struct Context<'a, F: Frame, P> {
    /// The time of the call.
    pub now: Nanos,
    /// Results.
    pub out: &'a mut Outbox<F>,
    /// New frames.
    pub pool: &'a mut P,
    /// Packets of unknown flows that may still be brought to their rules in this call (see [`crate::state::overload`]).
    pub strangers: u32,
}

impl<F: Frame, P> Context<'_, F, P> {
    /// Whether one more packet of an unknown flow may be brought to its rules.
    #[inline]
    pub const fn admits_stranger(&mut self) -> bool {
        let admits = self.strangers > 0;
        self.strangers = self.strangers.saturating_sub(1);
        admits
    }
}

/// What a route leads to for packets without a tunnel, with the way already made.
#[derive(Debug)]
pub enum Way {
    /// Nowhere.
    Unreachable,
    /// To ourselves.
    Own,
    /// To a UE.
    Ue,
    /// Out of an interface without the N6 role: the way of tunnels, and no user's packet leaves there as it is.
    Closed,
    /// To nobody.
    Martian,
    /// To the destination itself, on this interface's link.
    OnLink(u16),
    /// Through a router.
    Via(Egress),
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Network<F> {
    /// The FIB in force.
    pub fib: Arc<Fib>,
    /// Ports to interfaces.
    pub ingress: Ingress,
    /// How much of an IPv6 address is its key.
    pub prefixes: PrefixLengths,
    /// By [`HopId`].
    pub ways: Vec<Way>,
    /// Far ends of tunnels.
    pub peers: Peers,
    /// Hosts and routers on the links.
    pub neighbours: Neighbours<F>,
    /// Another one whenever a way that was known may have become another.
    pub generation: u64,
    /// Neighbours that moved, or were said to.
    reports: RateLimiter,
    askers: Askers,
}

/// Reports a second of neighbours that moved.
const REPORTS: u32 = 10;

impl<F: Frame> Network<F> {
    /// From the first FIB.
    pub fn new(config: &Config) -> Self {
        let fib = Arc::clone(&config.fib);
        let mut network = Self {
            ingress: Ingress::new(&fib),
            prefixes: config.prefixes.clone(),
            fib,
            ways: Vec::new(),
            peers: Peers::new(config.peers, Arc::clone(&config.peer_numbers)),
            neighbours: Neighbours::new(
                config.seed,
                config.neighbours,
                config.neighbour_queue,
                Arc::clone(&config.asked),
            ),
            generation: 0,
            reports: RateLimiter::new(REPORTS, REPORTS),
            askers: Askers::new(config.seed.rotate_left(7)),
        };
        // Nobody waits for a neighbour yet.
        network.neighbours.fix(&network.configured(), Nanos(0));
        network.derive();
        network
    }

    /// The ways to neighbours whose MAC addresses are configured.
    fn configured(&self) -> Vec<Egress> {
        let configured = self.fib.neighbours().iter();
        let way = |(index, address, mac): &(u16, IpAddr, MacAddr)| {
            Some(Egress::new(*index, self.fib.interface(*index)?, *address, Some(mac.0)))
        };
        configured.filter_map(way).collect()
    }

    fn derive(&mut self) {
        let (fib, neighbours) = (&*self.fib, &mut self.neighbours);
        neighbours.unpin();
        let towards_n6 = |index| fib.interface(index).is_some_and(|interface| interface.roles.n6);
        self.ways = (0..)
            .zip(fib.hops())
            .map(|(at, hop)| match *hop {
                Hop::Unreachable => Way::Unreachable,
                Hop::Own => Way::Own,
                Hop::Ue => Way::Ue,
                Hop::OnLink { interface } | Hop::Gateway { interface, .. } if !towards_n6(interface) => {
                    Way::Closed
                }
                Hop::Martian => Way::Martian,
                Hop::OnLink { interface } => Way::OnLink(interface),
                Hop::Gateway { interface: index, address } => {
                    let interface = fib.interface(index);
                    let way = interface.map(|interface| Egress::new(index, interface, address, None));
                    way.map_or(Way::Unreachable, |way| Way::Via(neighbours.pin(&way, User::Hop(at))))
                }
            })
            .collect();
        self.peers.rebuild(|number, address| {
            way_to_peer(fib, address, |way| neighbours.pin(way, User::Peer(number)))
        });
        self.neighbours.settle();
    }

    /// A new FIB is in force. If the interfaces are the same, neighbours stay known, and what waits goes on waiting, or is sent.
    pub fn replace<P>(&mut self, cx: &mut Context<'_, F, P>, counters: &mut Counters, fib: Arc<Fib>) {
        self.generation += 1;
        let same = self.fib.interfaces() == fib.interfaces();
        self.ingress = Ingress::new(&fib);
        self.fib = fib;
        if !same {
            for frame in self.neighbours.clear() {
                counters.held -= 1;
                counters.drop(Reason::NeighbourUnreachable);
                drop(frame);
            }
        }
        for (way, frames) in self.neighbours.fix(&self.configured(), cx.now) {
            release(cx, counters, &way, frames);
        }
        self.derive();
        self.drop_lost(counters);
    }

    /// The way that a route leads.
    pub fn way(&self, hop: HopId) -> &Way {
        self.ways.get(hop.0 as usize).unwrap_or(&Way::Unreachable)
    }

    /// The way to a host on a link.
    #[inline]
    pub fn on_link(&self, index: u16, target: IpAddr) -> Option<Egress> {
        let known = self.neighbours.way(index, target).copied();
        known.or_else(|| Some(Egress::new(index, self.fib.interface(index)?, target, None)))
    }

    /// Whether an address is one that a neighbour on this interface's link may have: of its subnets, of networks that are routed
    /// onto it, link-local, or one that we look for there anyway.
    pub fn may_be_neighbour(&self, interface: u16, address: IpAddr) -> bool {
        let link_local = matches!(address, IpAddr::V6(address) if session::rules::is_link_local(address));
        link_local
            || self.fib.hop(self.fib.route(address)) == Hop::OnLink { interface }
            || self.neighbours.knows(interface, address)
    }

    /// The port of an interface; 0 for none, which frames of our own making have.
    pub fn port(&self, interface: u16) -> u16 {
        self.fib.interfaces().get(interface as usize).map_or(0, |interface| interface.port)
    }

    /// One more user of the tunnel's far end. `None`: too many.
    pub fn acquire_peer(&mut self, address: IpAddr) -> Option<u16> {
        self.acquire_peers(address, 1)
    }

    /// So many more users.
    pub fn acquire_peers(&mut self, address: IpAddr, users: u32) -> Option<u16> {
        let (fib, neighbours) = (&self.fib, &mut self.neighbours);
        self.peers.acquire(address, users, |number| {
            way_to_peer(fib, address, |way| neighbours.pin(way, User::Peer(number)))
        })
    }

    /// So many users of a far end less.
    pub fn release_peers(&mut self, address: IpAddr, users: u32) {
        if let Some(number) = self.peers.number(address) {
            self.peers.release(number, users);
        }
    }

    /// Sends a complete frame, or keeps it until the neighbour's MAC address is known.
    #[inline(always)]
    pub fn send<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        egress: &Egress,
        frame: F,
    ) {
        if egress.resolved {
            transmit(cx.out, counters, egress.interface, egress.port, frame);
        } else {
            self.wait(cx, counters, egress, frame);
        }
    }

    /// Whether a user's packet may go this way, or make us ask for somebody new. `user`: an address, or the /64.
    #[inline(always)]
    pub fn may_ask(&mut self, way: &Egress, user: u64, now: Nanos) -> bool {
        way.resolved || self.neighbours.knows(way.interface, way.target) || self.askers.may_ask(user, now)
    }

    #[cold]
    #[inline(never)]
    fn wait<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        way: &Egress,
        frame: F,
    ) {
        counters.held += 1;
        match self.neighbours.hold(way, frame, cx.now) {
            Held::Waits => {}
            Held::Ask => {
                cx.out.events.push(Event::Unresolved { interface: way.interface, address: way.target });
                self.solicit(cx, counters, way.interface, way.target, None);
            }
            Held::Refused(_) => {
                counters.held -= 1;
                counters.drop(Reason::NeighbourPending);
            }
            Held::Known(frame, mac) => {
                let mut way = *way;
                way.set_mac(Some(mac));
                release(cx, counters, &way, [frame]);
            }
        }
        self.drop_lost(counters);
    }

    /// It was said where a neighbour is: whoever waits for him may go.
    pub fn hear<P>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        index: u16,
        address: IpAddr,
        mac: MacAddr,
        word: Word,
    ) {
        let Some(interface) = self.fib.interface(index) else { return };
        // No neighbour has our own: what is sent there comes back, or goes nowhere.
        if mac.is_multicast() || mac == MacAddr::ZERO || mac == interface.mac {
            return;
        }
        let way = Egress::new(index, interface, address, None);
        let news = self.neighbours.hear(&way, mac, word, cx.now);
        if news.tell {
            let confirmed = matches!(word, Word::Answer { .. });
            cx.out.events.push(Event::Neighbour { interface: index, address, mac, confirmed });
        }
        if let Some(from) = news.before
            && !matches!(word, Word::Shared { .. })
            && self.reports.allow(cx.now)
        {
            let believed = news.way.is_some();
            cx.out.events.push(Event::NeighbourMoved { interface: index, address, from, to: mac, believed });
        }
        if let Some((way, users)) = news.way {
            self.generation += u64::from(news.before.is_some());
            self.update(&way, &users);
            release(cx, counters, &way, news.frames);
        }
        self.drop_lost(counters);
    }

    /// Tells those who have copies of a way that it is another one now.
    fn update(&mut self, way: &Egress, users: &[User]) {
        for user in users {
            let copy = match *user {
                User::Hop(hop) => match self.ways.get_mut(hop as usize) {
                    Some(Way::Via(copy)) => Some(copy),
                    _ => None,
                },
                User::Peer(number) => self.peers.egress_mut(number),
            };
            if let Some(copy) = copy.filter(|copy| copy.is_to(way)) {
                copy.set_mac(way.mac());
            }
        }
        self.generation += u64::from(!users.is_empty());
    }

    /// What waited for neighbours that had to make room for others.
    fn drop_lost(&mut self, counters: &mut Counters) {
        for frame in self.neighbours.take_lost() {
            counters.held -= 1;
            counters.drop(Reason::NeighbourPending);
            drop(frame);
        }
    }

    /// Asks, asks again, or gives up, where it is time to.
    pub fn tick<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>, counters: &mut Counters) {
        let (ways, peers) = (&self.ways, &self.peers);
        let due = self.neighbours.due(cx.now, |way, user| {
            let copy = match user {
                User::Hop(hop) => match ways.get(hop as usize) {
                    Some(Way::Via(copy)) => Some(copy),
                    _ => None,
                },
                User::Peer(number) => peers.egress(number),
            };
            copy.is_some_and(|copy| copy.is_to(way))
        });
        for due in due {
            match due {
                Due::Ask(interface, address) => self.solicit(cx, counters, interface, address, None),
                Due::Probe(way) => self.solicit(cx, counters, way.interface, way.target, way.mac()),
                Due::Gone(way, users) => {
                    self.generation += 1;
                    self.update(&way, &users);
                }
                Due::Lost(frames) => {
                    for frame in frames {
                        counters.held -= 1;
                        counters.drop(Reason::NeighbourUnreachable);
                        drop(frame);
                    }
                }
            }
        }
    }

    /// Asks for a neighbour: ARP (RFC 826) or neighbour solicitation (RFC 4861 §7.2.2). `known`: asks him alone whether he is still there.
    fn solicit<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        index: u16,
        target: IpAddr,
        known: Option<MacAddr>,
    ) {
        let Some(interface) = self.fib.interface(index) else { return };
        let (everybody, payload, ether_type) = match target {
            IpAddr::V4(target) => {
                let Some(own) = interface.ipv4() else { return };
                let mut request = [0; arp::LEN];
                arp::emit_request(&mut request, interface.mac, own, target);
                (MacAddr::BROADCAST, request.to_vec(), packet::EtherType::ARP)
            }
            IpAddr::V6(target) => {
                let mut request = Vec::new();
                let source = source6(interface, target);
                match known {
                    Some(_) => ndp::emit_neighbour_probe(&mut request, source, interface.mac, target),
                    None => ndp::emit_neighbour_solicitation(&mut request, source, interface.mac, target),
                }
                let group = ndp::multicast_mac(ndp::solicited_node(target));
                (group, request, packet::EtherType::IPV6)
            }
        };
        let destination = known.unwrap_or(everybody);
        let mut header = Egress::new(index, interface, target, Some(destination.0)).header(true);
        let length = header.len();
        if let Some([t0, t1]) = header.get_mut(length - 2..).and_then(|t| t.first_chunk_mut::<2>()) {
            [*t0, *t1] = ether_type.0.to_be_bytes();
        }
        let port = interface.port;
        if let Some(frame) = make(cx.pool, counters, &[&header, &payload]) {
            transmit(cx.out, counters, index, port, frame);
        }
    }

    /// Sends a packet of our own making to the far end of a tunnel. `say` is told our address towards it.
    pub fn originate<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        destination: IpAddr,
        say: impl FnOnce(IpAddr) -> Vec<u8>,
    ) {
        let neighbours = &self.neighbours;
        let known = |way: &Egress| neighbours.way(way.interface, way.target).copied().unwrap_or(*way);
        let Some((egress, _)) = way_to_peer(&self.fib, destination, known) else { return };
        let interface = self.fib.interface(egress.interface);
        let own = interface.and_then(|interface| match destination {
            IpAddr::V4(_) => interface.ipv4().map(IpAddr::V4),
            IpAddr::V6(_) => interface.ipv6().map(IpAddr::V6),
        });
        let Some(own) = own else { return };
        if let Some(frame) = make(cx.pool, counters, &[&egress.header(own.is_ipv6()), &say(own)]) {
            self.send(cx, counters, &egress, frame);
        }
    }

    /// Sends a packet of our own making back through the interface that `request` (an Ethernet frame) came from, to the
    /// station it came from.
    pub fn answer<P: FramePool<Frame = F>>(
        &self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        index: u16,
        request: &[u8],
        packet: &[u8],
        v6: bool,
    ) -> bool {
        let Some(interface) = self.fib.interface(index) else { return false };
        let Ok(ethernet) = packet::EthernetView::parse(request) else { return false };
        let target = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let header = Egress::new(index, interface, target, Some(ethernet.source().0)).header(v6);
        match make(cx.pool, counters, &[&header, packet]) {
            Some(frame) => {
                transmit(cx.out, counters, index, interface.port, frame);
                true
            }
            None => false,
        }
    }

    /// Sends a received frame, turned into its own answer, back where it came from.
    pub fn reflect<P>(
        &self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        index: u16,
        mut frame: F,
        length: usize,
    ) {
        let Some(interface) = self.fib.interface(index) else {
            counters.drop(Reason::NoRoute);
            return;
        };
        frame.truncate(length);
        ethernet::swap_addresses(frame.bytes_mut());
        // The request may have come to a group address; the answer comes from us.
        if let Some(source) = frame.bytes_mut().get_mut(6..12) {
            source.copy_from_slice(&interface.mac.0);
        }
        transmit(cx.out, counters, index, interface.port, frame);
    }
}

/// Frames that waited for the neighbour at the end of this way.
fn release<F: Frame, P>(
    cx: &mut Context<'_, F, P>,
    counters: &mut Counters,
    way: &Egress,
    frames: impl IntoIterator<Item = F>,
) {
    for mut frame in frames {
        counters.held -= 1;
        if let (Some(destination), Some(mac)) = (frame.bytes_mut().first_chunk_mut::<6>(), way.mac()) {
            *destination = mac.0;
        }
        transmit(cx.out, counters, way.interface, way.port, frame);
    }
}

/// Our address towards a neighbour: link-local to link-local, global (if there is one) otherwise.
fn source6(interface: &crate::network::interface::Interface, target: Ipv6Addr) -> Ipv6Addr {
    match interface.ipv6() {
        Some(own) if !session::rules::is_link_local(target) => own,
        _ => interface.link_local(),
    }
}

/// The way to the far end of a tunnel; `known` says what is known of the neighbour that it leads to.
fn way_to_peer(fib: &Fib, address: IpAddr, known: impl FnOnce(&Egress) -> Egress) -> Option<(Egress, Outer)> {
    let (index, target) = match fib.hop(fib.route(address)) {
        Hop::OnLink { interface } => (interface, address),
        Hop::Gateway { interface, address } => (interface, address),
        Hop::Unreachable | Hop::Own | Hop::Ue | Hop::Martian => return None,
    };
    let interface = fib.interface(index)?;
    let own: IpAddr = match address {
        IpAddr::V4(_) => interface.ipv4()?.into(),
        IpAddr::V6(_) => interface.ipv6()?.into(),
    };
    let outer = Outer::new(own, address)?;
    Some((known(&Egress::new(index, interface, target, None)), outer))
}

/// Puts a frame into the outbox.
#[inline(always)]
pub fn transmit<F: Frame>(out: &mut Outbox<F>, counters: &mut Counters, interface: u16, port: u16, frame: F) {
    let Some(queue) = out.transmit.get_mut(port as usize) else {
        counters.drop(Reason::NoRoute);
        return;
    };
    counters.sent(interface, Traffic::of(frame.len()));
    queue.push(frame);
}

/// A frame of our own making. If the pool is exhausted, that is counted as its drop.
pub fn make<F: Frame>(
    pool: &mut impl FramePool<Frame = F>,
    counters: &mut Counters,
    parts: &[&[u8]],
) -> Option<F> {
    let frame = build(pool, parts);
    counters.originated += 1;
    if frame.is_none() {
        counters.drop(Reason::NoBuffer);
    }
    frame
}

/// A new frame with these parts in it; `None` if the pool is exhausted, or the parts don't fit.
pub fn build<F: Frame>(pool: &mut impl FramePool<Frame = F>, parts: &[&[u8]]) -> Option<F> {
    let mut frame = pool.alloc()?;
    let length = parts.iter().map(|part| part.len()).sum();
    if !frame.append(length) {
        return None;
    }
    let mut rest = frame.bytes_mut();
    for part in parts {
        let (place, after) = rest.split_at_mut_checked(part.len())?;
        place.copy_from_slice(part);
        rest = after;
    }
    Some(frame)
}
