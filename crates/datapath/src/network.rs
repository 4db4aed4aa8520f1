//! A worker's own copy of the network: its view, and all that is derived from it and from what the links told.

use crate::command::Event;
use crate::counters::{Counters, Traffic};
use crate::egress::Egress;
use crate::neighbour::{Due, Held, Neighbours};
use crate::net::{Hop, HopId, NetView};
use crate::outbox::Outbox;
use crate::parse::Ingress;
use crate::peer::{Outer, Peers};
use crate::{Config, Reason};
use io::{Frame, FramePool};
use packet::{MacAddr, arp, ethernet, ndp};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use tables::Nanos;

/// What every step of a call needs: the time, and where results go and frames come from.
pub struct Context<'a, F: Frame, P> {
    /// The time of the call.
    pub now: Nanos,
    /// Results.
    pub out: &'a mut Outbox<F>,
    /// New frames.
    pub pool: &'a mut P,
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
    /// The view in force.
    pub view: Arc<NetView>,
    /// Ports to interfaces.
    pub ingress: Ingress,
    /// By [`HopId`].
    ways: Vec<Way>,
    /// Far ends of tunnels.
    pub peers: Peers,
    /// Hosts and routers on the links.
    pub neighbours: Neighbours<F>,
    /// Another one whenever a way that was known may have become another.
    pub generation: u64,
}

impl<F: Frame> Network<F> {
    /// From the first view.
    pub fn new(config: &Config) -> Self {
        let view = Arc::clone(&config.view);
        let mut network = Self {
            ingress: Ingress::new(&view),
            view,
            ways: Vec::new(),
            peers: Peers::new(config.peers, Arc::clone(&config.peer_numbers)),
            neighbours: Neighbours::new(config.seed, config.neighbours, config.neighbour_queue),
            generation: 0,
        };
        network.derive();
        network
    }

    fn derive(&mut self) {
        for (interface, address, mac) in self.view.neighbours() {
            // Nobody waits for a neighbour of the first view; a later view's are learned one by one.
            self.neighbours.learn(*interface, *address, *mac, true);
        }
        let towards_n6 = |index| self.view.interface(index).is_some_and(|interface| interface.roles.n6);
        let hops = self.view.hops().iter();
        self.ways = hops
            .map(|hop| match *hop {
                Hop::Unreachable => Way::Unreachable,
                Hop::Own => Way::Own,
                Hop::Ue => Way::Ue,
                Hop::OnLink { interface } | Hop::Gateway { interface, .. } if !towards_n6(interface) => {
                    Way::Closed
                }
                Hop::Martian => Way::Martian,
                Hop::OnLink { interface } => Way::OnLink(interface),
                Hop::Gateway { interface, address } => {
                    egress(&self.view, &self.neighbours, interface, address)
                        .map_or(Way::Unreachable, Way::Via)
                }
            })
            .collect();
        let (view, neighbours) = (&self.view, &self.neighbours);
        self.peers.rebuild(|address| way_to_peer(view, neighbours, address));
    }

    /// A new view is in force. If only neighbours changed, what waits goes on waiting, or is sent.
    pub fn replace<P>(&mut self, cx: &mut Context<'_, F, P>, counters: &mut Counters, view: Arc<NetView>) {
        self.generation += 1;
        let same = self.view.interfaces() == view.interfaces();
        self.ingress = Ingress::new(&view);
        self.view = view;
        if !same {
            for frame in self.neighbours.clear() {
                counters.held -= 1;
                counters.drop(Reason::NeighbourUnreachable);
                drop(frame);
            }
        }
        let learned: Vec<_> = self.view.neighbours().to_vec();
        for (interface, address, mac) in learned {
            if let Some(frames) = self.neighbours.learn(interface, address, mac, true) {
                self.release(cx, counters, interface, mac, frames);
            }
        }
        self.derive();
    }

    /// The way that a route leads.
    #[inline(always)]
    pub fn way(&self, hop: HopId) -> &Way {
        self.ways.get(hop.0 as usize).unwrap_or(&Way::Unreachable)
    }

    /// The way to a host on a link.
    #[inline]
    pub fn on_link(&self, interface: u16, target: IpAddr) -> Option<Egress> {
        egress(&self.view, &self.neighbours, interface, target)
    }

    /// The port of an interface; 0 for none, which frames of our own making have.
    pub fn port(&self, interface: u16) -> u16 {
        self.view.interfaces().get(interface as usize).map_or(0, |interface| interface.port)
    }

    /// One more user of the tunnel's far end. `None`: too many.
    pub fn acquire_peer(&mut self, address: IpAddr) -> Option<u16> {
        self.acquire_peers(address, 1)
    }

    /// So many more users.
    pub fn acquire_peers(&mut self, address: IpAddr, users: u32) -> Option<u16> {
        let (view, neighbours) = (&self.view, &self.neighbours);
        self.peers.acquire(address, users, || way_to_peer(view, neighbours, address))
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
            self.wait(cx, counters, egress.interface, egress.target, frame);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        interface: u16,
        target: IpAddr,
        frame: F,
    ) {
        match self.neighbours.hold(interface, target, frame, cx.now) {
            Held::Waits => counters.held += 1,
            Held::Ask => {
                counters.held += 1;
                cx.out.events.push(Event::Unresolved { interface, address: target });
                self.solicit(cx, counters, interface, target);
            }
            Held::Refused(_) => counters.drop(Reason::NeighbourPending),
        }
    }

    /// A neighbour said where it is: whoever waits for it may go.
    pub fn learn<P>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        interface: u16,
        address: IpAddr,
        mac: MacAddr,
        create: bool,
    ) {
        if mac.is_multicast() || mac == MacAddr::ZERO {
            return;
        }
        let Some(frames) = self.neighbours.learn(interface, address, mac, create) else { return };
        cx.out.events.push(Event::Neighbour { interface, address, mac });
        let gateways = self.ways.iter_mut().filter_map(|way| match way {
            Way::Via(egress) => Some(egress),
            _ => None,
        });
        let mut changed = false;
        for egress in gateways.chain(self.peers.egresses()) {
            if egress.interface == interface && egress.target == address {
                changed |= egress.set_mac(Some(mac));
            }
        }
        self.generation += u64::from(changed);
        self.release(cx, counters, interface, mac, frames);
    }

    fn release<P>(
        &self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        interface: u16,
        mac: MacAddr,
        frames: impl IntoIterator<Item = F>,
    ) {
        let port = self.view.interface(interface).map_or(0, |i| i.port);
        for mut frame in frames {
            counters.held -= 1;
            if let Some(destination) = frame.bytes_mut().first_chunk_mut::<6>() {
                *destination = mac.0;
            }
            transmit(cx.out, counters, interface, port, frame);
        }
    }

    /// Asks again, or gives up, where an answer is overdue.
    pub fn tick<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>, counters: &mut Counters) {
        while let Some(due) = self.neighbours.due(cx.now) {
            match due {
                Due::Ask(interface, address) => self.solicit(cx, counters, interface, address),
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

    /// Asks for a neighbour: ARP (RFC 826) or neighbour solicitation (RFC 4861 §7.2.2).
    fn solicit<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        index: u16,
        target: IpAddr,
    ) {
        let Some(interface) = self.view.interface(index) else { return };
        let (destination, payload, ether_type) = match target {
            IpAddr::V4(target) => {
                let Some(own) = interface.ipv4() else { return };
                let mut request = [0; arp::LEN];
                arp::emit_request(&mut request, interface.mac, own, target);
                (MacAddr::BROADCAST, request.to_vec(), packet::EtherType::ARP)
            }
            IpAddr::V6(target) => {
                let mut request = Vec::new();
                let source = source6(interface, target);
                ndp::emit_neighbour_solicitation(&mut request, source, interface.mac, target);
                let group = ndp::multicast_mac(ndp::solicited_node(target));
                (group, request, packet::EtherType::IPV6)
            }
        };
        let mut header = Egress::new(index, interface, target, Some(destination.0)).header(true);
        let length = header.len();
        if let Some([t0, t1]) = header.get_mut(length - 2..).and_then(|t| t.first_chunk_mut::<2>()) {
            [*t0, *t1] = ether_type.0.to_be_bytes();
        }
        let port = interface.port;
        if let Some(frame) = build(cx.pool, &[&header, &payload]) {
            counters.originated += 1;
            transmit(cx.out, counters, index, port, frame);
        }
    }

    /// Sends a packet of our own making to the far end of a tunnel. `make` is told our address towards it.
    pub fn originate<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        counters: &mut Counters,
        destination: IpAddr,
        make: impl FnOnce(IpAddr) -> Vec<u8>,
    ) {
        let Some((egress, _)) = way_to_peer(&self.view, &self.neighbours, destination) else { return };
        let interface = self.view.interface(egress.interface);
        let own = interface.and_then(|interface| match destination {
            IpAddr::V4(_) => interface.ipv4().map(IpAddr::V4),
            IpAddr::V6(_) => interface.ipv6().map(IpAddr::V6),
        });
        let Some(own) = own else { return };
        if let Some(frame) = build(cx.pool, &[&egress.header(own.is_ipv6()), &make(own)]) {
            counters.originated += 1;
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
        let Some(interface) = self.view.interface(index) else { return false };
        let Ok(ethernet) = packet::EthernetView::parse(request) else { return false };
        let target = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let header = Egress::new(index, interface, target, Some(ethernet.source().0)).header(v6);
        match build(cx.pool, &[&header, packet]) {
            Some(frame) => {
                counters.originated += 1;
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
        let Some(interface) = self.view.interface(index) else {
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

/// Our address towards a neighbour: link-local to link-local, global (if there is one) otherwise.
fn source6(interface: &crate::net::Interface, target: Ipv6Addr) -> Ipv6Addr {
    match interface.ipv6() {
        Some(own) if !session::rules::is_link_local(target) => own,
        _ => interface.link_local(),
    }
}

fn egress<F>(view: &NetView, neighbours: &Neighbours<F>, index: u16, target: IpAddr) -> Option<Egress> {
    let interface = view.interface(index)?;
    Some(Egress::new(index, interface, target, neighbours.mac(index, target).map(|mac| mac.0)))
}

fn way_to_peer<F>(view: &NetView, neighbours: &Neighbours<F>, address: IpAddr) -> Option<(Egress, Outer)> {
    let (index, target) = match view.hop(view.route(address)) {
        Hop::OnLink { interface } => (interface, address),
        Hop::Gateway { interface, address } => (interface, address),
        Hop::Unreachable | Hop::Own | Hop::Ue | Hop::Martian => return None,
    };
    let interface = view.interface(index)?;
    let own: IpAddr = match address {
        IpAddr::V4(_) => interface.ipv4()?.into(),
        IpAddr::V6(_) => interface.ipv6()?.into(),
    };
    Some((egress(view, neighbours, index, target)?, Outer::new(own, address)?))
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
