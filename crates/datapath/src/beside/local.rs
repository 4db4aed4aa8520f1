//! Packets to Millrace itself: ARP, neighbour discovery, ping; and packets that turn out to be nobody's.

use crate::Reason;
use crate::datapath::Datapath;
use crate::meta::{self, Meta, destination6};
use crate::network::Context;
use crate::network::interface::Interface;
use crate::network::neighbour::Word;
use crate::network::sources;
use io::{Frame, FramePool};
use packet::ndp::{self, Message, NeighbourAdvertisement};
use packet::{ArpView, Icmpv6View, IpProtocol, Ipv6View, MacAddr, arp, icmpv4, icmpv6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl<F: Frame> Datapath<F> {
    /// Whether a packet's destination is one of our own addresses.
    pub(crate) fn is_own(&self, meta: &Meta, frame: &[u8]) -> bool {
        self.network.fib.is_own(meta::inner_destination(frame, meta))
    }

    /// A packet to an address that no session has.
    #[cold]
    #[inline(never)]
    pub(crate) fn unknown_ue<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: F,
    ) {
        if !self.is_own(meta, frame.bytes()) {
            self.counters.drop(Reason::UnknownUe);
        } else if meta.internal {
            self.counters.drop(Reason::OwnAddress);
        } else {
            self.local(cx, meta, frame);
        }
    }

    /// ARP (RFC 826).
    pub(crate) fn arp<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        mut frame: F,
    ) {
        let place = meta.l3 as usize..meta.l3 as usize + arp::LEN;
        let Some(interface) = self.network.fib.interface(meta.interface) else {
            self.counters.drop(Reason::UnknownVlan);
            return;
        };
        let Ok(message) = ArpView::parse(frame.bytes().get(place.clone()).unwrap_or_default()) else {
            self.counters.drop(Reason::Malformed);
            return;
        };
        let (sender, mac) = (message.sender_ip(), message.sender_mac());
        let for_us = interface.owns(IpAddr::V4(message.target_ip()))
            || self.stands_for(interface, message.target_ip());
        let request = message.operation() == arp::Operation::Request;
        let mut reply = [0; arp::LEN];
        arp::emit_reply(&mut reply, interface.mac, &message);
        let answer = !request && interface.owns(IpAddr::V4(message.target_ip()));
        // Our own address claimed by another station is not a neighbour; nor is a probe without a sender (RFC 5227).
        let heard = !sender.is_unspecified() && !self.network.fib.is_own(IpAddr::V4(sender));
        if heard && !self.network.may_be_neighbour(meta.interface, IpAddr::V4(sender)) {
            self.counters.drop(Reason::ForeignNeighbour);
            return;
        }
        let answered = request && for_us && self.rates.icmp.allow(cx.now);
        if heard {
            let word = if answer {
                Word::Answer { replace: true }
            } else {
                Word::Unasked { replace: true, to_us: answered }
            };
            self.network.hear(cx, &mut self.counters, meta.interface, IpAddr::V4(sender), mac, word);
        }
        if !request || !for_us {
            self.counters.consumed += 1;
        } else if answered {
            if let Some(to) = frame.bytes_mut().get_mut(place) {
                to.copy_from_slice(&reply);
            }
            let length = meta.l3 as usize + arp::LEN;
            self.network.reflect(cx, &mut self.counters, meta.interface, frame, length);
        } else {
            self.counters.drop(Reason::ErrorRateLimited);
        }
    }

    /// Whether an address on an interface's link is a public one of ours, for which we answer (RFC 1027).
    fn stands_for(&self, interface: &Interface, address: Ipv4Addr) -> bool {
        interface.roles.n6
            && interface.addresses.iter().any(|net| net.contains(&IpAddr::V4(address)))
            && self.nat.as_ref().is_some_and(|plan| plan.is_public4(address.into()))
    }

    /// Any other packet to us, or to a group on the link.
    pub(crate) fn local<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        mut frame: F,
    ) {
        let place = meta.l3 as usize..meta.l3 as usize + meta.len as usize;
        // Whatever we said to it would go to ourselves, by way of the network.
        let source = meta::inner_source(frame.bytes(), &Meta { inner: meta.l3, ..*meta });
        if self.network.fib.is_own(source) {
            self.counters.drop(Reason::MartianSource);
            return;
        }
        // Only neighbour discovery has words from nobody (duplicate address detection).
        if meta.v6 && self.neighbour_discovery(cx, meta, &frame) {
            return;
        }
        if sources::is_no_far_end(&self.network.fib, source) {
            self.counters.drop(Reason::MartianSource);
            return;
        }
        if meta.v6 && !self.is_own(&Meta { inner: meta.l3, ..*meta }, frame.bytes()) {
            let first = destination6(frame.bytes(), meta.l3) >> 120;
            self.counters.drop(if first == 0xff { Reason::IgnoredMulticast } else { Reason::NotForUs });
            return;
        }
        // A protected address (N4) belongs to the host's own stack; only our interfaces' are answered here.
        let destination = meta::inner_destination(frame.bytes(), &Meta { inner: meta.l3, ..*meta });
        if !self.network.fib.interfaces().iter().any(|interface| interface.owns(destination)) {
            self.counters.drop(Reason::UnsupportedProtocol);
            return;
        }
        let Some(packet) = frame.bytes_mut().get_mut(place) else {
            self.counters.drop(Reason::Malformed);
            return;
        };
        let echo =
            if meta.v6 { icmpv6::echo_reply_in_place(packet) } else { icmpv4::echo_reply_in_place(packet) };
        if !echo {
            self.counters.drop(Reason::UnsupportedProtocol);
        } else if self.rates.icmp.allow(cx.now) {
            let length = meta.l3 as usize + meta.len as usize;
            self.network.reflect(cx, &mut self.counters, meta.interface, frame, length);
        } else {
            self.counters.drop(Reason::ErrorRateLimited);
        }
    }

    /// Neighbour solicitations and advertisements (RFC 4861 §7). False: the packet is something else.
    fn neighbour_discovery<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: &F,
    ) -> bool {
        let bytes = frame.bytes();
        let Ok(ip) = Ipv6View::parse(bytes.get(meta.l3 as usize..).unwrap_or_default()) else { return false };
        if ip.next_header() != IpProtocol::ICMPV6 {
            return false;
        }
        let Ok(icmp) = Icmpv6View::parse(ip.payload()) else { return false };
        let message = match ndp::parse(&ip, &icmp) {
            Ok(Some(message)) => message,
            Ok(None) => return false,
            Err(_) => {
                self.counters.drop(Reason::Malformed);
                return true;
            }
        };
        match message {
            Message::NeighbourSolicitation { target, options } => {
                let source = IpAddr::V6(ip.source());
                if !ip.source().is_unspecified() && !self.network.may_be_neighbour(meta.interface, source) {
                    self.counters.drop(Reason::ForeignNeighbour);
                    return true;
                }
                let ours = self.network.fib.interface(meta.interface);
                let Some(mac) = ours.filter(|i| i.owns(IpAddr::V6(target))).map(|i| i.mac) else {
                    self.counters.drop(Reason::IgnoredMulticast);
                    return true;
                };
                let answered = self.rates.icmp.allow(cx.now);
                if let Some(sender) = options.source_mac()
                    && !ip.source().is_unspecified()
                {
                    let word = Word::Unasked { replace: true, to_us: answered };
                    self.network.hear(cx, &mut self.counters, meta.interface, source, sender, word);
                }
                if !answered {
                    self.counters.drop(Reason::ErrorRateLimited);
                    return true;
                }
                self.advertise(cx, meta, bytes, ip.source(), target, mac);
                self.counters.consumed += 1;
            }
            Message::NeighbourAdvertisement { neighbour, options } => {
                let address = IpAddr::V6(neighbour.target);
                let own = self.network.fib.is_own(address);
                if !own && !self.network.may_be_neighbour(meta.interface, address) {
                    self.counters.drop(Reason::ForeignNeighbour);
                    return true;
                }
                // Who was asked alone need not say where he is (§4.4).
                let known = || self.network.neighbours.way(meta.interface, address)?.mac();
                if let Some(mac) = options.target_mac().or_else(known)
                    && !own
                {
                    let replace = neighbour.replace;
                    let word = if neighbour.solicited {
                        Word::Answer { replace }
                    } else {
                        Word::Unasked { replace, to_us: false }
                    };
                    self.network.hear(cx, &mut self.counters, meta.interface, address, mac, word);
                }
                self.counters.consumed += 1;
            }
            // Routers are configured; we are no router to hosts on N6.
            Message::RouterSolicitation { .. } | Message::RouterAdvertisement { .. } => {
                self.counters.drop(Reason::IgnoredMulticast);
            }
        }
        true
    }

    fn advertise<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        request: &[u8],
        asker: Ipv6Addr,
        target: Ipv6Addr,
        mac: MacAddr,
    ) {
        let solicited = !asker.is_unspecified();
        // Duplicate address detection is answered to all nodes (§7.2.4).
        let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let to = if solicited { asker } else { all_nodes };
        let neighbour = NeighbourAdvertisement { target, router: true, solicited, replace: true };
        self.scratch.clear();
        ndp::emit_neighbour_advertisement(&mut self.scratch, to, mac, &neighbour);
        self.network.answer(cx, &mut self.counters, meta.interface, request, &self.scratch, true);
    }
}
