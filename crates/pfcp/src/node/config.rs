//! What a node is told when it starts.

use crate::ie::{NodeId, RecoveryTimeStamp, UpFunctionFeatures};
use std::net::{IpAddr, SocketAddr};

/// Which side of N4 (or Sxb) this node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// User plane: a UPF.
    Up,
    /// Control plane: an SMF.
    Cp,
}

/// Where requests of our own go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestPort {
    /// To this port of the peer's address: 8805 in a network (TS 29.244 §4.2.2).
    Fixed(u16),
    /// To the port that the peer's association came from: for several nodes on one address.
    Source,
}

/// The most that there may be; they can change while the node runs ([`limit`](super::Node::limit)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Peers with an association.
    pub peers: usize,
    /// Own requests that wait for a response.
    pub outstanding: usize,
    /// Octets of replies kept for repeated requests. The oldest go first, of the peer that has most.
    pub reply_octets: usize,
}

/// Identity, timers and limits.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Our side.
    pub role: Role,
    /// Our Node ID.
    pub node_id: NodeId,
    /// When we started. Must not change within a run: peers take a change for a restart and drop their sessions.
    pub recovery: RecoveryTimeStamp,
    /// What we can do (sent by [`Role::Up`] only).
    pub features: UpFunctionFeatures,
    /// Where own requests go.
    pub request_port: RequestPort,
    /// Nanoseconds between heartbeat requests to a peer; 0: none.
    pub heartbeat_interval: u64,
    /// T1: nanoseconds until a request is sent again (§6.4).
    pub t1: u64,
    /// N1: how often a request is sent in all.
    pub n1: u32,
    /// What may grow, and how far.
    pub bounds: Bounds,
    /// Nanoseconds that a reply is kept.
    pub reply_cache_age: u64,
    /// Who may speak to us: address and prefix length. Empty: anybody.
    pub allowed: Vec<(IpAddr, u8)>,
}

impl NodeConfig {
    /// Usual timers and limits for this node.
    pub fn new(role: Role, node_id: NodeId, recovery: RecoveryTimeStamp) -> Self {
        Self {
            role,
            node_id,
            recovery,
            features: UpFunctionFeatures::default(),
            request_port: RequestPort::Fixed(packet::PFCP_PORT),
            heartbeat_interval: 10_000_000_000,
            t1: 3_000_000_000,
            n1: 3,
            bounds: Bounds { peers: 64, outstanding: 65_536, reply_octets: 160 << 20 },
            reply_cache_age: 30_000_000_000,
            allowed: Vec::new(),
        }
    }

    /// Whether the allow-list lets this address in.
    pub(super) fn allows(&self, from: IpAddr) -> bool {
        self.allowed.is_empty() || self.allowed.iter().any(|&(net, bits)| covers(net, bits, from))
    }

    /// The address under which a peer is known.
    pub(super) fn peer_key(&self, from: SocketAddr) -> SocketAddr {
        match self.request_port {
            RequestPort::Fixed(_) => SocketAddr::new(from.ip(), 0),
            RequestPort::Source => from,
        }
    }

    /// Whether a peer whose association came from `known` is expected to speak from here. A node may send requests from any port
    /// (§4.2.2), and keeps to the one that it has; what comes from another one may be anybody's on its host.
    pub(super) fn expects(&self, known: SocketAddr, from: SocketAddr) -> bool {
        known.ip() == from.ip()
            && match self.request_port {
                RequestPort::Fixed(port) => from.port() == known.port() || from.port() == port,
                RequestPort::Source => true,
            }
    }

    /// Where requests to the peer that speaks from here go.
    pub(super) fn request_address(&self, from: SocketAddr) -> SocketAddr {
        match self.request_port {
            RequestPort::Fixed(port) => SocketAddr::new(from.ip(), port),
            RequestPort::Source => from,
        }
    }
}

fn covers(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    fn same(a: u128, b: u128, width: u32, bits: u8) -> bool {
        let unused = width.saturating_sub(u32::from(bits));
        unused >= width || a >> unused == b >> unused
    }
    match (net, address.to_canonical()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32, bits),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128, bits),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn allow_list() {
        let mut config = NodeConfig::new(Role::Up, NodeId::Fqdn("upf".into()), RecoveryTimeStamp(1));
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(config.allows(ip("198.51.100.1")));
        config.allowed = vec![(ip("10.0.0.0"), 8), (ip("2001:db8::"), 32), (ip("192.0.2.7"), 32)];
        for yes in ["10.255.0.1", "2001:db8:1::1", "192.0.2.7", "::ffff:10.0.0.1"] {
            assert!(config.allows(ip(yes)), "{yes}");
        }
        for no in ["11.0.0.1", "2001:db9::1", "192.0.2.6", "::1"] {
            assert!(!config.allows(ip(no)), "{no}");
        }
        config.allowed = vec![(ip("0.0.0.0"), 0)];
        assert!(config.allows(ip("203.0.113.1")) && !config.allows(ip("::1")));
    }
}
