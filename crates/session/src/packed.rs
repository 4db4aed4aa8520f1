//! A session between two requests: its [`Model`] packed into one allocation of some hundred octets.
//!
//! A million idle sessions are mostly this, so it pays to keep them small: integers take as many octets as they need
//! (LEB128), an absent field takes one. Thawing is what gives a modification its copy to work on; a refused one throws
//! the copy away, and the octets here were never touched. They are also what two sessions are compared by, and most of
//! the record that a session leaves the process as ([`crate::portable`]).
//!
//! So another process may have written them, or nobody: reading never panics, and octets that are not a model are `None`. Whoever changes
//! how something is packed gives [`crate::portable::VERSION`] another number (`tests/portable.rs` notices).

use crate::about::About;
use crate::model::{Apply, Bar, Endpoint, Far, Filter, Model, Outer, Pdr, Qer, Triggers, Urr};
use crate::rules::{Destination, OuterHeader, Prefix, Source, Tunnel, VolumeLimit};
use crate::sdf::{Extras, Flow, Side};
use crate::usage::{Trigger, Usage, Volume};
use crate::{ShardId, TeidRef};
use ipnet::{Ipv4Net, Ipv6Net};
use packet::{Dscp, Qfi, Teid};
use pfcp::ie::{FSeid, NodeId, RecoveryTimeStamp, UsageReportTrigger};
use pfcp::message::DownlinkDataReport;
use pfcp::message_type::MessageType;
use pfcp::node::{Association, Portable, Reply, Unanswered};
use pfcp::{BarId, FarId, PdrId, QerId, Seid, UrrId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tables::Nanos;

/// Packs a model into `out`, which is emptied first.
pub fn freeze(model: &Model, out: &mut Vec<u8>) {
    out.clear();
    model.pack(out);
}

/// Unpacks a model.
pub fn thaw(mut octets: &[u8]) -> Option<Model> {
    Model::unpack(&mut octets).filter(|_| octets.is_empty())
}

/// What a packed model says of whom the session is for, without unpacking it.
pub fn about(mut octets: &[u8]) -> About<'_> {
    // It is the first.
    counted(&mut octets).map(About::new).unwrap_or_default()
}

/// Something that can be packed.
pub trait Pack: Sized {
    /// Appends its octets.
    fn pack(&self, out: &mut Vec<u8>);
    /// Takes them off the front again; `None`: these are not such a thing's.
    fn unpack(from: &mut &[u8]) -> Option<Self>;
}

fn octet(from: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = from.split_first()?;
    *from = rest;
    Some(first)
}

fn octets<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*first)
}

impl Pack for u64 {
    fn pack(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let octet = octet(from)?;
            value |= ((octet & 0x7f) as u64).checked_shl(shift)?;
            if octet < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

macro_rules! pack_narrow {
    ($($int:ty),*) => {$(
        impl Pack for $int {
            fn pack(&self, out: &mut Vec<u8>) { (*self as u64).pack(out); }
            fn unpack(from: &mut &[u8]) -> Option<Self> { u64::unpack(from)?.try_into().ok() }
        }
    )*};
}
pack_narrow!(u16, u32);

impl Pack for u8 {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        octet(from)
    }
}

impl Pack for bool {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        match octet(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(0),
            Some(value) => {
                out.push(1);
                value.pack(out);
            }
        }
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        match octet(from)? {
            0 => Some(None),
            1 => Some(Some(T::unpack(from)?)),
            _ => None,
        }
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.len() as u64).pack(out);
        for item in self {
            item.pack(out);
        }
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let count = u64::unpack(from)? as usize;
        // Every item takes an octet at least: a count that the rest can't hold is not believed.
        let mut items = Self::with_capacity(count.min(from.len()));
        for _ in 0..count {
            items.push(T::unpack(from)?);
        }
        Some(items)
    }
}

impl Pack for Box<[u8]> {
    fn pack(&self, out: &mut Vec<u8>) {
        count(self, out);
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        counted(from).map(Into::into)
    }
}

impl<const N: usize> Pack for [u64; N] {
    fn pack(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|item| item.pack(out));
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let mut items = [0; N];
        for item in &mut items {
            *item = Pack::unpack(from)?;
        }
        Some(items)
    }
}

impl Pack for Box<str> {
    fn pack(&self, out: &mut Vec<u8>) {
        count(self.as_bytes(), out);
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        std::str::from_utf8(counted(from)?).ok().map(Into::into)
    }
}

impl Pack for SocketAddr {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.ip(), self.port()).pack(out);
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(<(IpAddr, u16)>::unpack(from)?.into())
    }
}

/// Appends octets with their number before them.
pub fn count(octets: &[u8], out: &mut Vec<u8>) {
    (octets.len() as u64).pack(out);
    out.extend_from_slice(octets);
}

/// Takes off what [`count`] appended.
pub fn counted<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u64::unpack(from)?;
    let (octets, rest) = from.split_at_checked(usize::try_from(length).ok()?)?;
    *from = rest;
    Some(octets)
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, out: &mut Vec<u8>) {
        self.0.pack(out);
        self.1.pack(out);
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some((A::unpack(from)?, B::unpack(from)?))
    }
}

macro_rules! pack_tuple_struct {
    ($($name:ident),*) => {$(
        impl Pack for $name {
            fn pack(&self, out: &mut Vec<u8>) { self.0.pack(out); }
            fn unpack(from: &mut &[u8]) -> Option<Self> { Some(Self(Pack::unpack(from)?)) }
        }
    )*};
}
pack_tuple_struct!(
    PdrId,
    FarId,
    QerId,
    UrrId,
    BarId,
    Teid,
    Seid,
    Nanos,
    RecoveryTimeStamp,
    UsageReportTrigger,
    MessageType
);

macro_rules! pack_struct {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl Pack for $name {
            fn pack(&self, out: &mut Vec<u8>) { $(self.$field.pack(out);)* }
            fn unpack(from: &mut &[u8]) -> Option<Self> { Some(Self { $($field: Pack::unpack(from)?),* }) }
        }
    )*};
}
pack_struct! {
    Model { about, ipv4, ipv6, tunnels, pdrs, fars, qers, urrs, bars, quotas, inactivity_timer, slice }
    Endpoint { tunnel, choose_id }
    Tunnel { teid, place }
    TeidRef { shard, slot }
    Pdr {
        id, precedence, source, instance, tunnel, qfis, filters, application, framed_ipv4, framed_ipv6,
        outer_header_removal, far, qers, urrs,
    }
    Filter { id, by_id, flow, extras }
    Flow { protocol, remote, remote_ports, local, local_ports }
    Extras { tos, spi, flow_label }
    Far { id, apply, destination, outer_header, marking, instance, policy, redirect, bar }
    OuterHeader { teid, peer }
    FSeid { seid, ipv4, ipv6 }
    Qer {
        id, uplink_open, downlink_open, uplink_mbr, downlink_mbr, uplink_gbr, downlink_gbr, qfi, reflective,
        paging_policy,
    }
    Triggers { periodic, volume_threshold, time_threshold, start_of_traffic, stop_of_traffic, volume_quota, time_quota }
    VolumeLimit { total, uplink, downlink }
    Urr {
        id, volume, duration, before_enforcement, inactive, reduced, triggers, threshold, quota, quota_generation, blocked,
        period, time_threshold, time_quota, quota_validity, quota_holding,
    }
    Bar { id, delay, packets }
    Volume { uplink_packets, uplink_bytes, downlink_packets, downlink_bytes }
    Usage { urr, trigger, volume, packets_seen }
    DownlinkDataReport { pdrs, service }
    Portable { associations, last_sequence }
    Association { number, node_id, address, recovery, since, last_heard, alive, counts, life }
    Unanswered { sequence, to, token, message_type, sent, octets }
    Reply { peer, request, since, body, life, octets }
}

impl Pack for Qfi {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(self.get());
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(Self::from_wire(octet(from)?))
    }
}

impl Pack for Dscp {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(self.to_tos());
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(Self::from_tos(octet(from)?))
    }
}

impl Pack for ShardId {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.index() as u32).pack(out);
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(Self::from_hash(Pack::unpack(from)?))
    }
}

impl Pack for Ipv4Addr {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.octets());
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(octets::<4>(from)?.into())
    }
}

impl Pack for Ipv6Addr {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.octets());
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(octets::<16>(from)?.into())
    }
}

impl Pack for Ipv4Net {
    fn pack(&self, out: &mut Vec<u8>) {
        self.addr().pack(out);
        out.push(self.prefix_len());
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Self::new(Pack::unpack(from)?, octet(from)?).ok()
    }
}

impl Pack for Ipv6Net {
    fn pack(&self, out: &mut Vec<u8>) {
        self.addr().pack(out);
        out.push(self.prefix_len());
    }
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Self::new(Pack::unpack(from)?, octet(from)?).ok()
    }
}

/// Enums are their variant's number, then its fields.
macro_rules! pack_enum {
    ($($name:ident { $($number:literal = $variant:ident $(($field:ident))? $({ $named:ident })?),* $(,)? })*) => {$(
        impl Pack for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                match self { $(
                    Self::$variant $(($field))? $({ $named })? => {
                        out.push($number);
                        $($field.pack(out);)? $($named.pack(out);)?
                    }
                )* }
            }
            fn unpack(from: &mut &[u8]) -> Option<Self> {
                Some(match octet(from)? {
                    $($number => Self::$variant
                        $(({ let $field = Pack::unpack(from)?; $field }))?
                        $({ $named: Pack::unpack(from)? })?,)*
                    _ => return None,
                })
            }
        }
    )*};
}
pack_enum! {
    Source { 0 = Access, 1 = Core, 2 = N6Lan, 3 = CpFunction }
    Destination { 0 = Access, 1 = Core, 2 = N6Lan, 3 = CpFunction }
    Outer { 0 = Tunnel(header), 1 = Nowhere, 2 = Unsupported }
    Apply { 0 = Drop, 1 = Forward, 2 = Buffer { notify } }
    Prefix { 4 = V4(net), 6 = V6(net) }
    Side { 0 = Any, 1 = Assigned, 2 = Prefix(prefix) }
    IpAddr { 4 = V4(address), 6 = V6(address) }
    NodeId { 0 = Ip(address), 1 = Fqdn(name) }
    Trigger {
        0 = Periodic, 1 = VolumeThreshold, 2 = TimeThreshold, 3 = VolumeQuota, 4 = TimeQuota, 5 = QuotaValidity,
        6 = QuotaHolding, 7 = StartOfTraffic, 8 = Immediate, 9 = Termination, 10 = Stop,
    }
}
