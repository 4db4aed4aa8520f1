//! What a node knows of a peer.

use super::config::NodeConfig;
use super::portable::Association;
use super::replies::{Key, Likeness};
use crate::ie::{NodeId, RecoveryTimeStamp};
use std::collections::HashMap;
use std::net::SocketAddr;
use tables::Nanos;

/// A peer with an association; never used again for another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PeerId(pub u32);

/// A peer, as `ctl peers` shows it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its number here.
    pub id: PeerId,
    /// Its Node ID.
    pub node_id: NodeId,
    /// Where the association came from.
    pub address: SocketAddr,
    /// When it started, as it says.
    pub recovery: RecoveryTimeStamp,
    /// Since when the association stands.
    pub since: Nanos,
    /// When something was last heard of it.
    pub last_heard: Nanos,
    /// Nanoseconds between the last heartbeat request and its response.
    pub round_trip: Option<u64>,
    /// Whether it answered the last heartbeat, or was heard of since.
    pub alive: bool,
    /// Requests that it sent, each once.
    pub requests: u64,
    /// Requests that it sent again.
    pub repeated: u64,
    /// Requests of ours that were sent to it again.
    pub retransmitted: u64,
    /// Changes when it has forgotten its requests and sessions.
    pub(super) life: u32,
    /// It is being asked back, because somebody claims to be it from where it isn't expected.
    pub(super) asked_back: bool,
    /// What that one wants.
    pub(super) claim: Option<Claim>,
    /// When the next heartbeat is due; `None` while one waits for its response.
    pub(super) next_heartbeat: Option<Nanos>,
}

/// An association that somebody asks for who isn't known to be the peer that would lose its sessions by that.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub key: Key,
    pub likeness: Likeness,
    pub set_up: SetUp,
}

/// What an Association Setup says of its sender.
#[derive(Clone, Debug)]
pub(super) struct SetUp {
    pub node_id: NodeId,
    pub recovery: RecoveryTimeStamp,
    /// It wants to keep its sessions.
    pub retain: bool,
}

/// All peers, by number, Node ID and address.
#[derive(Debug, Default)]
pub(super) struct Peers {
    by_id: HashMap<PeerId, Peer>,
    by_node: HashMap<NodeId, PeerId>,
    by_address: HashMap<SocketAddr, PeerId>,
    last_id: u32,
    last_life: u32,
}

impl Peers {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// A number that no life of a peer had before.
    pub const fn new_life(&mut self) -> u32 {
        // 0 stands for no life at all.
        self.last_life = if self.last_life == u32::MAX { 1 } else { self.last_life + 1 };
        self.last_life
    }

    pub fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.by_id.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.by_id.values_mut()
    }

    pub fn get(&self, id: PeerId) -> Option<&Peer> {
        self.by_id.get(&id)
    }

    pub fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.by_id.get_mut(&id)
    }

    /// Notes something of a peer, if it is one.
    pub fn count(&mut self, id: Option<PeerId>, note: impl FnOnce(&mut Peer)) {
        if let Some(peer) = id.and_then(|id| self.by_id.get_mut(&id)) {
            note(peer);
        }
    }

    pub fn at(&self, config: &NodeConfig, from: SocketAddr) -> Option<PeerId> {
        self.by_address.get(&config.peer_key(from)).copied()
    }

    pub fn named(&self, node_id: &NodeId) -> Option<PeerId> {
        self.by_node.get(node_id).copied()
    }

    /// Adds a peer that is not known yet.
    pub fn add(
        &mut self,
        now: Nanos,
        config: &NodeConfig,
        node_id: NodeId,
        from: SocketAddr,
        recovery: RecoveryTimeStamp,
    ) -> PeerId {
        self.last_id += 1;
        let id = PeerId(self.last_id);
        let life = self.new_life();
        let next_heartbeat = (config.heartbeat_interval > 0).then(|| now.plus(config.heartbeat_interval));
        self.by_node.insert(node_id.clone(), id);
        self.by_address.insert(config.peer_key(from), id);
        let peer = Peer {
            id,
            node_id,
            address: from,
            recovery,
            since: now,
            last_heard: now,
            round_trip: None,
            alive: true,
            requests: 0,
            repeated: 0,
            retransmitted: 0,
            life,
            asked_back: false,
            claim: None,
            next_heartbeat,
        };
        self.by_id.insert(id, peer);
        id
    }

    /// Adds a peer of another process's, unless its name or address is another's. It is asked at once how it is.
    pub fn take_over(&mut self, now: Nanos, config: &NodeConfig, other: Association) -> Option<PeerId> {
        let Association { node_id, address, recovery, since, last_heard, alive, counts, life, .. } = other;
        if self.named(&node_id).is_some() || self.at(config, address).is_some() {
            return None;
        }
        let id = self.add(now, config, node_id, address, recovery);
        self.last_life = self.last_life.max(life);
        let peer = self.by_id.get_mut(&id)?;
        (peer.since, peer.last_heard, peer.alive) = (since.min(now), last_heard.min(now), alive);
        [peer.requests, peer.repeated, peer.retransmitted] = counts;
        peer.life = life;
        peer.next_heartbeat = peer.next_heartbeat.map(|_| now);
        Some(id)
    }

    /// The peer now speaks from here. Whoever was known under that address no longer is.
    pub fn moved(&mut self, config: &NodeConfig, id: PeerId, from: SocketAddr) {
        if let Some(peer) = self.by_id.get_mut(&id) {
            let old = config.peer_key(peer.address);
            peer.address = from;
            if self.by_address.get(&old) == Some(&id) {
                self.by_address.remove(&old);
            }
            self.by_address.insert(config.peer_key(from), id);
        }
    }

    pub fn remove(&mut self, config: &NodeConfig, id: PeerId) -> Option<Peer> {
        let peer = self.by_id.remove(&id)?;
        self.by_node.remove(&peer.node_id);
        let key = config.peer_key(peer.address);
        if self.by_address.get(&key) == Some(&id) {
            self.by_address.remove(&key);
        }
        Some(peer)
    }
}
