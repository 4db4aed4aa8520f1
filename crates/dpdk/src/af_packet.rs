//! Kernel interfaces through `net_af_packet`: how its rings are laid out, what they lose, and what about an interface makes them
//! lose. The rest is in `shim/af_packet.c`, which stands between the driver and the kernel.

use crate::ffi::{self, RawInterface};
use std::ffi::CString;

/// Whether this is the driver of a device.
pub(crate) fn drives(id: &str) -> bool {
    id.starts_with("net_af_packet") || id.starts_with("eth_af_packet")
}

/// The driver's arguments that lay out a ring.
pub(crate) const RING: [&str; 3] = ["framesz", "blocksz", "framecnt"];

/// Slots of a block. A block is whole pages, and slots are whole KiB.
const PER_BLOCK: usize = 4;

/// Values for [`RING`]: so many slots for frames in buffers that hold `room` bytes, whole KiB. A slot begins with 66 bytes of the
/// kernel's, and the driver wants it no more than 32 longer than a buffer: it is as long.
pub(crate) fn ring(room: u16, descriptors: u16) -> [usize; 3] {
    let slot = usize::from(room);
    [slot, slot * PER_BLOCK, usize::from(descriptors).next_multiple_of(PER_BLOCK)]
}

/// Packets that never got from an interface into a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// The ring was full: nobody took packets out of it in time, or had buffers for them.
    pub(crate) missed: u64,
    /// Longer than a slot.
    pub(crate) cut: u64,
}

impl std::iter::Sum for Lost {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self { missed: a.missed + b.missed, cut: a.cut + b.cut })
    }
}

/// What the rings of a DPDK port lost since they were made; nothing where it has none.
pub(crate) fn lost(port: u16) -> Lost {
    let mut lost = Lost::default();
    // SAFETY: room for two numbers.
    unsafe { ffi::mr_rings_lost(port, &raw mut lost.missed, &raw mut lost.cut) };
    lost
}

/// A kernel interface of this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    name: String,
    /// Its largest layer-3 packet; at most what fits the type.
    pub mtu: u16,
    /// Whether it receives what is for others.
    pub promiscuous: bool,
    up: bool,
    merges: bool,
}

impl Interface {
    /// What the kernel says of the interface; `None`: there is none of that name.
    pub fn look(name: &str) -> Option<Self> {
        let c_name = CString::new(name).ok()?;
        let mut raw = RawInterface::default();
        // SAFETY: a C string and room for one struct; the call opens and closes a socket of its own.
        unsafe { ffi::mr_interface(c_name.as_ptr(), &raw mut raw) };
        (raw.mtu > 0).then(|| Self {
            name: name.into(),
            mtu: u16::try_from(raw.mtu).unwrap_or(u16::MAX),
            promiscuous: raw.promiscuous != 0,
            up: raw.up != 0,
            merges: raw.merges != 0,
        })
    }

    /// What will cost packets, with the remedy.
    pub fn warnings(&self) -> Vec<String> {
        let Self { name, .. } = self;
        let mut warnings = Vec::new();
        if !self.up {
            warnings.push(format!("the interface {name} is down: ip link set {name} up"));
        }
        if self.merges {
            warnings.push(format!(
                "the kernel puts TCP packets that come in by {name} together, to longer ones than the ring takes: ethtool \
                 -K {name} gro off lro off"
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_what_kernel_and_driver_take() {
        for mtu in 1280..=9600_u16 {
            let spec =
                crate::DeviceSpec { mtu, ..crate::DeviceSpec::new("n3", "net_af_packet0,iface=veth0") };
            let room = usize::from(spec.room());
            for descriptors in [64, 65, 1023, 32_768] {
                let [slot, block, count] = ring(spec.room(), descriptors);
                // The kernel: aligned slots that fill blocks, blocks of whole pages, as many slots as all blocks have.
                assert!(slot % 16 == 0 && block % slot == 0 && block % 4096 == 0, "{mtu}");
                assert!(count % (block / slot) == 0 && count >= usize::from(descriptors), "{mtu}");
                // A frame with a VLAN tag inside another, which the kernel leaves where it is, fits behind its header.
                assert!(slot - 66 >= usize::from(mtu) + 18, "{mtu}");
                // The driver: what a slot can hold fits into a buffer.
                assert!(slot - 32 <= room, "{mtu}");
            }
        }
    }

    fn completed(frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        // SAFETY: a buffer of that length.
        unsafe { ffi::mr_complete_checksum(frame.as_mut_ptr(), frame.len()) };
        frame
    }

    /// An Ethernet frame around an IPv4 packet of this protocol, with `flags` in its fragment field.
    fn ipv4(protocol: u8, flags: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((20 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(flags.to_be_bytes());
        frame.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(payload);
        frame
    }

    #[test]
    fn checksums_are_completed_where_there_is_one() {
        // A UDP datagram of one octet; the sum by hand.
        let udp = [0x10, 0, 0x20, 0, 0, 9, 0xff, 0xff, 0xaa];
        let done = completed(&ipv4(17, 0, &udp));
        let sum: u32 = 0x0a00 + 1 + 0x0a00 + 2 + 17 + 9 + 0x1000 + 0x2000 + 9 + 0xaa00;
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        assert_eq!(done[40..42], sum.to_be_bytes());
        // Padding behind the packet isn't part of it; a tag before it makes no difference.
        let mut padded = ipv4(17, 0, &udp);
        padded.extend([0xff; 8]);
        assert_eq!(completed(&padded)[..43], done);
        let tagged = [&padded[..12], &[0x81, 0, 0, 7], &padded[12..]].concat();
        assert_eq!(completed(&tagged)[16..47], done[12..]);
        // CRC32c (RFC 9260 Appendix A) of a header of zeros.
        let sctp = completed(&ipv4(132, 0, &[0; 12]));
        assert_eq!(sctp[34..46], [0, 0, 0, 0, 0, 0, 0, 0, 0x5d, 0xb5, 0x60, 0x2b]);
    }

    #[test]
    fn what_has_no_checksum_to_complete_stays_as_it_is() {
        let tcp = [0x77; 20];
        let untouched = [
            ipv4(6, 0x2000, &tcp),
            ipv4(6, 0x0010, &tcp),
            ipv4(17, 0, &[1, 2, 3, 4, 0, 8, 0, 0]),
            ipv4(1, 0, &tcp),
            ipv4(6, 0, &tcp[..19]),
            ipv4(17, 0, &[1; 7]),
        ];
        for frame in untouched {
            assert_eq!(completed(&frame), frame);
        }
        // Cut anywhere, nothing outside is touched.
        let whole = ipv4(6, 0, &tcp);
        for end in 0..whole.len() {
            assert_eq!(completed(&whole[..end]), whole[..end]);
        }
    }
}
