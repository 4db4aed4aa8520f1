//! Telling a sender why its packet did not arrive: ICMP and ICMPv6 errors, as a router owes them (RFC 1812 §4.3, RFC 4443).

use crate::datapath::Datapath;
use crate::meta::{self, Kind, Meta, Translated, packet_of};
use crate::network::fib::HopId;
use crate::network::{Context, make};
use crate::stages::judge::Trouble;
use crate::stages::parse::internal_header;
use io::{Frame, FramePool};
use packet::icmpv4::{self, Icmpv4Error};
use packet::icmpv6::{self, Icmpv6Error};
use std::net::{Ipv4Addr, Ipv6Addr};

impl<F: Frame> Datapath<F> {
    /// Tells the sender of a packet, if the rate limit allows. The packet itself has been counted already.
    ///
    /// A UE is told through its own session's downlink, a host of the data network through the interface that its packet
    /// came from. The sender of a packet from another UPF's tunnel is beyond our reach and hears nothing.
    #[cold]
    pub(crate) fn complain<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: &F,
        trouble: Trouble,
    ) {
        let from_ue = meta.internal || meta.kind == Kind::Tunnel;
        let sender = self.network.fib.route(meta::inner_source(frame.bytes(), meta));
        // A forged sender that is ourselves hears nothing either.
        if (from_ue && sender != HopId::UE) || sender == HopId::OWN {
            return;
        }
        if !self.rates.icmp.allow(cx.now) {
            return;
        }
        let offending = packet_of(frame.bytes(), meta);
        let sent = if meta.translated == Translated::No { Vec::new() } else { self.as_sent(meta, offending) };
        let offending = if meta.translated == Translated::No { offending } else { &sent };
        self.scratch.clear();
        let said = if meta.v6 {
            let Some(own) = self.own_ipv6(meta.interface) else { return };
            let error = match trouble {
                Trouble::TimeExceeded => Icmpv6Error::TimeExceeded,
                // Never below the minimum that every IPv6 link has (RFC 8200 §5).
                Trouble::TooBig(mtu) => Icmpv6Error::PacketTooBig { mtu: (mtu as u32).max(1280) },
            };
            icmpv6::emit_error(&mut self.scratch, own, error, offending)
        } else {
            let Some(own) = self.own_ipv4(meta.interface) else { return };
            let error = match trouble {
                Trouble::TimeExceeded => Icmpv4Error::TimeExceeded,
                Trouble::TooBig(mtu) => Icmpv4Error::FragmentationNeeded { mtu },
            };
            icmpv4::emit_error(&mut self.scratch, own, error, offending)
        };
        if !said {
            return;
        }
        if !from_ue {
            let counters = &mut self.counters;
            self.network.answer(cx, counters, meta.interface, frame.bytes(), &self.scratch, meta.v6);
        } else if let Some(answer) =
            make(cx.pool, &mut self.counters, &[&internal_header(meta.v6), &self.scratch])
        {
            self.arisen.push(answer);
        }
    }

    /// The address that an error comes from: the interface's own, or any that we have.
    fn own_ipv4(&self, interface: u16) -> Option<Ipv4Addr> {
        let fib = &self.network.fib;
        let here = fib.interface(interface).and_then(crate::network::interface::Interface::ipv4);
        here.or_else(|| fib.interfaces().iter().find_map(crate::network::interface::Interface::ipv4))
    }

    fn own_ipv6(&self, interface: u16) -> Option<Ipv6Addr> {
        let fib = &self.network.fib;
        let here = fib.interface(interface).and_then(crate::network::interface::Interface::ipv6);
        here.or_else(|| fib.interfaces().iter().find_map(crate::network::interface::Interface::ipv6))
    }
}
