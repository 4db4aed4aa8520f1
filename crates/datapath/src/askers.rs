//! How many unknown neighbours each sender may make us ask for.
//!
//! A packet to a host of a link whom nobody has asked for yet is a question to the whole link, by ARP or neighbour discovery: a UE that scans
//! a /64 makes us shout as fast as it sends, and what we shout costs us and everybody there more than its packets. One limit for all would
//! do the scanner's work: nobody else's new neighbours would be found. So senders have limits of their own, as many as a table of a fixed size
//! tells apart; who shares one with a scanner waits for new neighbours, not for known ones. Routers and tunnels' far ends, which the
//! configuration and SMFs name, are asked for without it.

use packet::ipv6::HEADER_LEN as V6;
use tables::hash::mix;
use tables::{Nanos, RateLimiter};

/// Senders that are told apart, at best.
const SENDERS: usize = 256;
/// New neighbours of one sender in a second, and at once.
const RATE: u32 = 100;

/// See the module's documentation.
#[derive(Debug)]
pub struct Askers {
    seed: u64,
    limits: Box<[RateLimiter]>,
}

impl Askers {
    /// Nobody has asked. `seed`: random.
    pub fn new(seed: u64) -> Self {
        Self { seed, limits: (0..SENDERS).map(|_| RateLimiter::new(RATE, RATE)).collect() }
    }

    /// Whether the sender of this IP packet may make us ask for somebody new.
    pub fn may_ask(&mut self, packet: &[u8], now: Nanos) -> bool {
        let sender = sender(packet);
        let place = (mix(sender ^ self.seed, self.seed.rotate_left(23) | 1) >> 32) as usize % SENDERS;
        self.limits.get_mut(place).is_none_or(|limit| limit.allow(now))
    }
}

/// An IPv4 address, or an IPv6 address's prefix: a UE has all of a /64.
fn sender(packet: &[u8]) -> u64 {
    let v6 = packet.first().is_some_and(|octet| octet >> 4 == 6) && packet.len() >= V6;
    let octets = |at: usize| packet.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let word = |at: usize| octets(at).map_or(0, |octets| u64::from(u32::from_be_bytes(*octets)));
    if v6 { word(8) << 32 | word(12) } else { word(12) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use packet::PacketBuilder;
    use std::net::IpAddr;

    fn packet(from: &str) -> Vec<u8> {
        let to = if from.contains(':') { "2001:db8::9" } else { "192.0.2.9" };
        let [from, to] = [from, to].map(|text| text.parse::<IpAddr>().unwrap());
        PacketBuilder::new().ip(from, to).udp(1, 2).build(&[])
    }

    #[test]
    fn who_scans_uses_up_his_own_questions() {
        let mut askers = Askers::new(0x9e37_79b9_7f4a_7c15);
        for scanner in [packet("10.0.0.1"), packet("2001:db8:1::1")] {
            let asked = (0..100_000).filter(|n| askers.may_ask(&scanner, Nanos(n * 20_000))).count();
            // Two seconds, and what may be at once.
            assert!((290..=310).contains(&asked), "{asked}");
        }
        let now = Nanos(2 * Nanos::SECOND);
        let others = (2..=101).filter(|host| askers.may_ask(&packet(&format!("10.0.0.{host}")), now)).count();
        assert!(others >= 95, "{others}");
        // A /64 is one sender.
        let hosts = (0..200).filter(|n| askers.may_ask(&packet(&format!("2001:db8:2::{n:x}")), now)).count();
        assert!(hosts <= 100, "{hosts}");
    }

    #[test]
    fn what_is_no_packet_is_somebodys_too() {
        let mut askers = Askers::new(7);
        assert!((0..40).all(|length| askers.may_ask(&vec![0x60; length], Nanos(0))));
    }
}
