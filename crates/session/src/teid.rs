//! Tunnel endpoints: those that Millrace names, and those that an SMF named.
//!
//! A TEID of our own making says where its record is ([`TeidRef`]). One that an SMF chose (free5GC always does) is
//! whatever it is, so its record gets a slot whose own name is kept off the wire, and a directory leads from the one to
//! the other. A TEID is held by one session: a request that names another session's is refused, or anybody who reaches
//! N4 could divert a stranger's uplink (docs/interop.md, "Nobody else's").

use crate::ids::{Epoch, SHARDS, SessionRef, ShardId, TEID_SLOTS, TeidRef};
use crate::rules::Tunnel;
use crate::slots::{SHORT, Slots};
use crate::teid_key::TeidKey;
use packet::Teid;
use std::collections::HashMap;

/// Why a tunnel can't be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TunnelError {
    /// All slots of the session's shard are taken.
    #[error("no tunnel is left in the session's shard")]
    Exhausted,
    /// Another session has it, which lives in this shard.
    #[error("the TEID belongs to another session")]
    Taken(ShardId),
    /// TEID 0 is for signalling (TS 29.281 §5.1).
    #[error("TEID 0 can't be a tunnel's")]
    Zero,
}

/// All tunnel endpoints of the process.
#[derive(Clone, Debug)]
pub struct Tunnels {
    shards: Box<[Slots]>,
    key: TeidKey,
    chosen: HashMap<Teid, TeidRef>,
    /// By shard and slot, the slot of the session that has the tunnel, or had it last: both are of one shard.
    owners: Box<[Vec<u32>]>,
    live: usize,
}

impl Tunnels {
    /// None yet. Generations begin where `seed` says: see [`crate::config::Config::seed`]. `key` hides from strangers what TEIDs say.
    pub fn new(seed: u32, epoch: Epoch, key: TeidKey) -> Self {
        let shards = (0..SHARDS).map(|_| Slots::new(TEID_SLOTS, SHORT, epoch, seed)).collect();
        Self { shards, key, chosen: HashMap::new(), owners: vec![Vec::new(); SHARDS].into(), live: 0 }
    }

    /// A tunnel with a TEID of our own making.
    pub fn allocate(&mut self, shard: ShardId) -> Result<Tunnel, TunnelError> {
        let slots = self.shards.get_mut(shard.index()).ok_or(TunnelError::Exhausted)?;
        let (slot, mut generation) = slots.allocate().ok_or(TunnelError::Exhausted)?;
        let place = TeidRef { shard, slot: slot as u16 };
        // An SMF may have chosen the very name that this slot makes. It can't have chosen those of all generations of the epoch
        // unless it set out to, and then this slot stays out of use until one is given back. One of all names is 0.
        for _ in 0..SHORT.per_epoch() {
            let teid = self.key.seal(place.teid(generation as u8));
            if teid.0 != 0 && !self.chosen.contains_key(&teid) {
                self.live += 1;
                return Ok(Tunnel { teid, place });
            }
            match slots.bump(slot) {
                Some(next) => generation = next,
                None => break,
            }
        }
        slots.release(slot);
        Err(TunnelError::Exhausted)
    }

    /// A tunnel with the TEID that the SMF chose.
    pub fn adopt(&mut self, shard: ShardId, teid: Teid) -> Result<Tunnel, TunnelError> {
        if teid.0 == 0 {
            return Err(TunnelError::Zero);
        }
        if let Some(taken) = self.shard_of(teid) {
            return Err(TunnelError::Taken(taken));
        }
        let slots = self.shards.get_mut(shard.index()).ok_or(TunnelError::Exhausted)?;
        let (slot, _) = slots.allocate().ok_or(TunnelError::Exhausted)?;
        slots.hide(slot);
        let place = TeidRef { shard, slot: slot as u16 };
        self.chosen.insert(teid, place);
        self.live += 1;
        Ok(Tunnel { teid, place })
    }

    /// Takes a tunnel that a session had in a former life, which knew the same key. Afterwards, and before anything else, [`Self::settle`].
    /// `is_chosen`: an SMF chose its TEID, which may look like one of ours.
    pub fn restore(&mut self, tunnel: Tunnel, is_chosen: bool) -> Result<(), TunnelError> {
        let Tunnel { teid, place } = tunnel;
        if teid.0 == 0 {
            return Err(TunnelError::Zero);
        }
        if let Some(taken) = self.shard_of(teid) {
            return Err(TunnelError::Taken(taken));
        }
        let plain = self.key.open(teid);
        // One of ours says where it is; the name of a chosen one's slot is never seen.
        let generation = if is_chosen { 1 } else { plain.0 >> 24 };
        let slots = self.shards.get_mut(place.shard.index()).ok_or(TunnelError::Exhausted)?;
        let is_there = is_chosen || TeidRef::of(plain) == place;
        if !is_there || !slots.restore(place.slot.into(), generation) {
            return Err(TunnelError::Taken(place.shard));
        }
        if is_chosen {
            slots.hide(place.slot.into());
            self.chosen.insert(teid, place);
        }
        self.live += 1;
        Ok(())
    }

    /// What was restored is all that there is.
    pub fn settle(&mut self) {
        self.shards.iter_mut().for_each(Slots::settle);
    }

    /// Gives a tunnel back. Whether it was one that an SMF had chosen, so that the workers' directories must forget it.
    pub fn release(&mut self, tunnel: Tunnel) -> bool {
        let chosen = self.chosen.get(&tunnel.teid) == Some(&tunnel.place);
        if chosen {
            self.chosen.remove(&tunnel.teid);
        }
        if self
            .shards
            .get_mut(tunnel.place.shard.index())
            .is_some_and(|s| s.release(tunnel.place.slot as u32))
        {
            self.live -= 1;
        }
        chosen
    }

    /// The session in this slot has the tunnel.
    pub fn own(&mut self, TeidRef { shard, slot }: TeidRef, session: u32) {
        let Some(owners) = self.owners.get_mut(shard.index()) else { return };
        let slot = usize::from(slot);
        if owners.len() <= slot {
            owners.resize(slot + 1, u32::MAX);
        }
        if let Some(owner) = owners.get_mut(slot) {
            *owner = session;
        }
    }

    /// The session that has the tunnel with this TEID, if one has.
    pub fn session_of(&self, teid: Teid) -> Option<SessionRef> {
        let TeidRef { shard, slot } = self.place_of(teid)?;
        let slot = *self.owners.get(shard.index())?.get(usize::from(slot))?;
        Some(SessionRef { shard, slot })
    }

    /// The shard of the session that has the tunnel with this TEID, if one has.
    pub fn shard_of(&self, teid: Teid) -> Option<ShardId> {
        self.place_of(teid).map(|place| place.shard)
    }

    fn place_of(&self, teid: Teid) -> Option<TeidRef> {
        let plain = self.key.open(teid);
        let own = TeidRef::of(plain);
        let slots = self.shards.get(own.shard.index());
        let visible = slots.is_some_and(|slots| slots.is_visible(own.slot as u32, plain.0 >> 24));
        if visible { Some(own) } else { self.chosen.get(&teid).copied() }
    }

    /// Whether an SMF chose this tunnel's TEID.
    pub fn is_chosen(&self, tunnel: Tunnel) -> bool {
        self.chosen.get(&tunnel.teid) == Some(&tunnel.place)
    }

    /// Tunnels in use.
    pub const fn live(&self) -> usize {
        self.live
    }

    /// Those among them whose TEID an SMF chose.
    pub fn chosen(&self) -> usize {
        self.chosen.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SHARD: ShardId = ShardId::from_hash(5);

    #[test]
    fn our_own_names_say_where_the_record_is() {
        let mut tunnels = Tunnels::new(0, Epoch::default(), TeidKey::default());
        let a = tunnels.allocate(SHARD).unwrap();
        let b = tunnels.allocate(SHARD).unwrap();
        assert_eq!(a.teid, Teid(0x0102_8000));
        assert_eq!(b.teid, Teid(0x0102_8001));
        assert_eq!(TeidRef::of(a.teid), a.place);
        assert!(!tunnels.release(a));
        assert_eq!(tunnels.live(), 1);
    }

    #[test]
    fn a_chosen_name_is_held_by_one_session() {
        let mut tunnels = Tunnels::new(0, Epoch::default(), TeidKey::default());
        let mine = tunnels.adopt(SHARD, Teid(7)).unwrap();
        assert_eq!(mine.teid, Teid(7));
        assert_eq!(tunnels.adopt(ShardId::from_hash(9), Teid(7)), Err(TunnelError::Taken(SHARD)));
        assert_eq!(tunnels.adopt(SHARD, Teid(0)), Err(TunnelError::Zero));
        assert!(tunnels.release(mine));
        assert!(tunnels.adopt(SHARD, Teid(7)).is_ok());
        assert_eq!((tunnels.live(), tunnels.chosen()), (1, 1));
    }

    #[test]
    fn names_of_both_kinds_never_meet() {
        let mut tunnels = Tunnels::new(0, Epoch::default(), TeidKey::default());
        let ours = tunnels.allocate(SHARD).unwrap();
        assert_eq!(tunnels.adopt(SHARD, ours.teid), Err(TunnelError::Taken(SHARD)));
        // The SMF takes the names that the next two slots would make: one hides a slot, the other is stepped over.
        let next = TeidRef { shard: SHARD, slot: 2 };
        tunnels.adopt(SHARD, next.teid(1)).unwrap();
        let stepped = tunnels.allocate(SHARD).unwrap();
        assert_eq!(stepped.place, next);
        assert_eq!(stepped.teid, next.teid(2));
    }

    /// With a secret, names of both kinds are told apart all the same.
    #[test]
    fn a_sealed_name_is_held_by_one_session() {
        let key = TeidKey::new([0xdead_beef_0bad_cafe, 0x0123_4567_89ab_cdef, 0xfeed_f00d_d00d_feed, 0x5eed]);
        let mut tunnels = Tunnels::new(3, Epoch::default(), key);
        let ours = tunnels.allocate(SHARD).unwrap();
        assert_eq!(TeidRef::of(key.open(ours.teid)), ours.place);
        assert_eq!(tunnels.adopt(SHARD, ours.teid), Err(TunnelError::Taken(SHARD)));
        let next = TeidRef { shard: SHARD, slot: 2 };
        tunnels.adopt(SHARD, key.seal(next.teid(4))).unwrap();
        let stepped = tunnels.allocate(SHARD).unwrap();
        assert_eq!((stepped.place, key.open(stepped.teid)), (next, next.teid(5)));
    }

    /// The one place whose name would be TEID 0 takes its next generation.
    #[test]
    fn no_tunnel_is_named_zero() {
        let mut random = 0u64;
        let (key, plain) = loop {
            random += 1;
            let key = TeidKey::new([random, random << 7, random << 33, random << 40]);
            let plain = key.open(Teid(0));
            if (1..64).contains(&(plain.0 >> 24)) && plain.0 & 0x7fff < 64 {
                break (key, plain);
            }
        };
        let place = TeidRef::of(plain);
        let mut tunnels = Tunnels::new((plain.0 >> 24) - 1, Epoch::default(), key);
        for _ in 0..=place.slot {
            assert_ne!(tunnels.allocate(place.shard).unwrap().teid, Teid(0));
        }
    }

    /// An SMF that chose all names of a slot but one, which is the last to be tried; and one that chose them all.
    #[test]
    fn every_name_of_a_slot_is_tried_and_none_twice() {
        let per_epoch = SHORT.per_epoch();
        for left in [1, 0] {
            let mut tunnels = Tunnels::new(0, Epoch::default(), TeidKey::default());
            let slot = TeidRef { shard: SHARD, slot: 0 };
            for generation in 1..=per_epoch - left {
                tunnels.adopt(ShardId::from_hash(9), slot.teid(generation as u8)).unwrap();
            }
            let found = tunnels.allocate(SHARD).map(|tunnel| tunnel.teid);
            let last = Ok(slot.teid(per_epoch as u8));
            assert_eq!(found, if left == 1 { last } else { Err(TunnelError::Exhausted) });
            assert_eq!(tunnels.live(), per_epoch as usize);
            assert_eq!(tunnels.allocate(SHARD).unwrap().place.slot, 1, "the next slot has names");
        }
    }

    #[test]
    fn a_shard_runs_out_of_tunnels_with_an_error() {
        let mut tunnels = Tunnels::new(0, Epoch::default(), TeidKey::default());
        for _ in 0..TEID_SLOTS {
            tunnels.allocate(SHARD).unwrap();
        }
        assert_eq!(tunnels.allocate(SHARD), Err(TunnelError::Exhausted));
        assert_eq!(tunnels.adopt(SHARD, Teid(0xff00_0001)), Err(TunnelError::Exhausted));
        assert_eq!(tunnels.chosen(), 0, "a failed adoption leaves nothing behind");
        assert!(tunnels.allocate(ShardId::from_hash(6)).is_ok());
    }
}
