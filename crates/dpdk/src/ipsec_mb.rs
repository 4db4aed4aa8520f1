//! intel-ipsec-mb's AES-128 in counter mode, to compare with: no part of the user plane uses it.
//!
//! It is DPDK's own engine for that cipher (`crypto_aesni_mb`), called here without what a crypto device costs around it. `shim/ipsec_mb.c` loads the
//! library when it is asked for.

use crate::ffi::{self, CounterPacket};
use std::ptr::NonNull;

/// Why there is no intel-ipsec-mb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoIpsecMb {
    /// What its structures look like was not known when this was built.
    #[error("built without its header (on Debian 12: apt-get install libipsec-mb-dev, and build again)")]
    Header,
    /// It can't be loaded.
    #[error("libIPSec_MB.so.1 is not installed (on Debian 12: apt-get install libipsec-mb1)")]
    Library,
    /// It is not the version that the header was of.
    #[error("libIPSec_MB.so.1 is of another version than the header that this was built with")]
    Version,
    /// It gets no memory.
    #[error("no memory for it")]
    Memory,
}

/// The round keys of AES-128, as the library lays them out.
pub type RoundKeys = [u8; 176];

/// What a packet is ciphered with.
#[derive(Debug, Clone, Copy)]
pub enum CounterKey<'a> {
    /// A key, which is expanded first.
    Fresh(&'a [u8; 16]),
    /// One that was expanded by [`IpsecMb::expand`].
    Expanded(&'a RoundKeys),
}

/// The library, with a manager of its own.
#[derive(Debug)]
pub struct IpsecMb {
    loaded: NonNull<ffi::IpsecMb>,
    version: u32,
    packets: Vec<CounterPacket>,
}

impl IpsecMb {
    /// Loads it.
    ///
    /// # Errors
    /// When it is not installed, or not the one that this was built for.
    pub fn load() -> Result<Self, NoIpsecMb> {
        let (mut loaded, mut version) = (std::ptr::null_mut(), 0);
        // SAFETY: both places are ours, and written before 0 is returned.
        let result = unsafe { ffi::mr_ipsec_mb_load(&raw mut loaded, &raw mut version) };
        match (result, NonNull::new(loaded)) {
            (0, Some(loaded)) => Ok(Self { loaded, version, packets: Vec::new() }),
            (1, _) => Err(NoIpsecMb::Header),
            (2, _) => Err(NoIpsecMb::Library),
            (3, _) => Err(NoIpsecMb::Version),
            _ => Err(NoIpsecMb::Memory),
        }
    }

    /// Its version, and which of its implementations it has chosen.
    pub fn version(&self) -> String {
        let (arch, [_, major, minor, patch]) = (self.version >> 24, self.version.to_be_bytes());
        let arch = match arch {
            2 => "SSE",
            3 => "AVX",
            4 => "AVX2",
            5 => "AVX-512",
            _ => "no AES instructions",
        };
        format!("intel-ipsec-mb {major}.{minor}.{patch} ({arch})")
    }

    /// Expands a key.
    pub fn expand(&self, key: &[u8; 16]) -> RoundKeys {
        #[repr(align(16))]
        struct Aligned(RoundKeys);
        let mut keys = Aligned([0; 176]);
        // SAFETY: the manager lives as long as `self`; 16 octets are read, 176 written, at a multiple of 16.
        unsafe { ffi::mr_ipsec_mb_expand(self.loaded.as_ptr(), key.as_ptr(), keys.0.as_mut_ptr()) };
        keys.0
    }

    /// Applies key streams to packets: the key, the first counter block and the octets of each. Whether the library took all of them.
    pub fn counter_mode<'a>(
        &mut self,
        packets: impl Iterator<Item = (CounterKey<'a>, [u8; 16], &'a mut [u8])>,
    ) -> bool {
        self.packets.clear();
        self.packets.extend(packets.map(|(key, counter, data)| {
            let (key, round_keys) = match key {
                CounterKey::Fresh(key) => (key.as_ptr(), std::ptr::null()),
                CounterKey::Expanded(keys) => (std::ptr::null(), keys.as_ptr()),
            };
            CounterPacket { key, round_keys, data: data.as_mut_ptr(), length: data.len() as u64, counter }
        }));
        let count = self.packets.len() as u64;
        // SAFETY: the manager lives as long as `self`; of each packet, keys and octets are borrowed until this returns, and octets by nobody else.
        let done = unsafe { ffi::mr_ipsec_mb_counter(self.loaded.as_ptr(), self.packets.as_ptr(), count) };
        self.packets.clear();
        done == count
    }
}

impl Drop for IpsecMb {
    fn drop(&mut self) {
        // SAFETY: it was made by `mr_ipsec_mb_load` and is not used again.
        unsafe { ffi::mr_ipsec_mb_free(self.loaded.as_ptr()) };
    }
}
