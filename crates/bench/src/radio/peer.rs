//! Another implementation of AES-128 in counter mode, if the program brings one: this crate calls no foreign code itself.

/// A key's round keys, as the peer lays them out.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct RoundKeys(pub [u8; 176]);

/// A packet, in a shape that any implementation of counter mode takes.
pub struct Packet<'a> {
    /// Its key.
    pub key: &'a [u8; 16],
    /// The same, expanded by the peer.
    pub round_keys: &'a RoundKeys,
    /// The first counter block.
    pub counter: [u8; 16],
    /// What is changed.
    pub data: &'a mut [u8],
}

/// AES-128 in counter mode, many packets at a time.
pub trait Peer {
    /// What it is called in results.
    fn name(&self) -> &'static str;
    /// Its version, for the notes.
    fn version(&self) -> String;
    /// Expands a key.
    fn expand(&self, key: &[u8; 16]) -> RoundKeys;
    /// Applies the packets' key streams; with `expanded` from round keys that were expanded before, else from the keys. Whether it could.
    fn apply(&mut self, packets: &mut [Packet<'_>], expanded: bool) -> bool;
}

/// Brings it, or says why it isn't there.
pub type Bring = fn() -> Result<Box<dyn Peer>, String>;
