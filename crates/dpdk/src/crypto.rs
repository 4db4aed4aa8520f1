//! A device for NEA2 on DPDK's cryptodev: proof that what `accel` asks of a device is what DPDK's devices give.
//!
//! It stands here and not in `accel`, as ports of `io` do: `accel` builds without DPDK, and whoever uses a device sees the trait alone. Any cryptodev
//! that has AES-CTR serves; tried with `crypto_aesni_mb`, which is intel-ipsec-mb on the processor. A key is a session, which takes longer to make than a packet to
//! cipher, so sessions are kept, up to [`KEYS`] of them.

use crate::eal::{Eal, alone, take_log};
use crate::error::{DpdkError, cause};
use accel::device::Unit;
use accel::task::{Descriptor, Task};
use accel::{Batch, Completion, Device, Failure, Kind, Limits, Refusal, Rejected, Times};
use std::collections::{HashMap, VecDeque};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::NonNull;
use tables::Nanos;

/// Keys that sessions are kept for.
pub const KEYS: usize = 4096;

/// Packets of a batch.
const ITEMS: usize = 256;

/// Batches in flight.
const IN_FLIGHT: usize = 16;

/// Octets of a packet.
const ROOM: u16 = 9216;

/// Looks at a device that is given up, after which what it hasn't done is given back.
const LAST_LOOKS: u32 = 100_000;

/// As the shim's.
const BURST: usize = 64;

#[repr(C)]
struct RawCrypto {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawPacket {
    session: *mut c_void,
    data: *const u8,
    tag: u64,
    length: u32,
    iv: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawDone {
    op: *mut c_void,
    tag: u64,
    good: u64,
}

const _: () = assert!(size_of::<RawPacket>() == 48 && size_of::<RawDone>() == 24);

unsafe extern "C" {
    fn mr_crypto_open(
        name: *const c_char,
        packets: u32,
        room: u16,
        keys: u32,
        out: *mut *mut RawCrypto,
    ) -> c_int;
    fn mr_crypto_close(crypto: *mut RawCrypto);
    fn mr_crypto_session(crypto: *mut RawCrypto, key: *const u8) -> *mut c_void;
    fn mr_crypto_session_free(crypto: *mut RawCrypto, session: *mut c_void);
    fn mr_crypto_enqueue(crypto: *mut RawCrypto, packets: *const RawPacket, count: u32) -> u32;
    fn mr_crypto_dequeue(crypto: *mut RawCrypto, done: *mut RawDone, room: u32) -> u32;
    fn mr_crypto_finish(op: *mut c_void, to: *mut u8, length: u32);
}

/// A batch in flight.
#[derive(Debug)]
struct Under {
    number: u64,
    batch: Batch,
    descriptors: Vec<Descriptor>,
    submitted: Nanos,
    /// The first packet that the device has not got yet.
    next: usize,
    /// Packets that are not done.
    left: usize,
    bad: u64,
}

/// The device.
#[derive(Debug)]
pub struct CryptoDevice {
    name: String,
    raw: NonNull<RawCrypto>,
    sessions: HashMap<[u8; 16], NonNull<c_void>>,
    /// Batches, the oldest first.
    under: VecDeque<Under>,
    number: u64,
    /// Packets that the device has.
    held: usize,
    failed: Option<Failure>,
    eal: Eal,
}

// SAFETY: the device's one queue pair is used by whoever has this, alone; DPDK doesn't mind which thread that is.
unsafe impl Send for CryptoDevice {}

impl CryptoDevice {
    /// Makes the virtual device of that name: `crypto_aesni_mb0`, `crypto_openssl0`.
    pub fn open(eal: &Eal, name: &str) -> Result<Self, DpdkError> {
        let c_name = CString::new(name).map_err(|_| DpdkError::Device(name.to_owned()))?;
        let mut raw = std::ptr::null_mut();
        let packets = (ITEMS * IN_FLIGHT).next_power_of_two() as u32;
        alone(|| {
            // SAFETY: a C string that outlives the call; a pointer is written.
            let errno = unsafe { mr_crypto_open(c_name.as_ptr(), packets, ROOM, KEYS as u32, &raw mut raw) };
            let raw = if errno == 0 { NonNull::new(raw) } else { None };
            let raw = raw.ok_or_else(|| DpdkError::Probe {
                device: name.to_owned(),
                cause: cause(errno),
                remedy: "",
                log: take_log(),
            })?;
            Ok(Self {
                name: name.to_owned(),
                raw,
                sessions: HashMap::new(),
                under: VecDeque::new(),
                number: 0,
                held: 0,
                failed: None,
                eal: eal.clone(),
            })
        })
    }

    /// The session for a key; a new one, if there is none.
    fn session(&mut self, key: &[u8; 16]) -> Option<NonNull<c_void>> {
        if let Some(session) = self.sessions.get(key) {
            return Some(*session);
        }
        if self.sessions.len() >= KEYS {
            // None of them may be in use when they go.
            if self.held > 0 {
                return None;
            }
            self.forget_sessions();
        }
        // SAFETY: 16 octets of a key, which the device copies.
        let session = NonNull::new(unsafe { mr_crypto_session(self.raw.as_ptr(), key.as_ptr()) })?;
        self.sessions.insert(*key, session);
        Some(session)
    }

    fn forget_sessions(&mut self) {
        for (_, session) in self.sessions.drain() {
            // SAFETY: the device's own session, which no packet in it uses.
            unsafe { mr_crypto_session_free(self.raw.as_ptr(), session.as_ptr()) };
        }
    }

    /// Hands over what the device has not got yet, oldest first, until it is full.
    fn push(&mut self) {
        for at in 0..self.under.len() {
            while let Some(under) = self.under.get(at)
                && under.next < under.descriptors.len()
            {
                let (number, first) = (under.number, under.next);
                let last = (first + BURST).min(under.descriptors.len());
                let keys: Vec<[u8; 16]> =
                    under.descriptors[first..last].iter().map(|packet| packet.packet.key).collect();
                let sessions: Vec<_> = keys.iter().map_while(|key| self.session(key)).collect();
                let Some(under) = self.under.get_mut(at) else { return };
                let packets: Vec<RawPacket> = under.descriptors[first..last]
                    .iter()
                    .zip(&sessions)
                    .enumerate()
                    .map(|(nth, (descriptor, session))| RawPacket {
                        session: session.as_ptr(),
                        data: under.batch.data()[descriptor.place..].as_ptr(),
                        tag: number << 16 | (first + nth) as u64,
                        length: descriptor.length as u32,
                        iv: counter(descriptor),
                    })
                    .collect();
                // SAFETY: each packet's data lies in the batch, as its descriptor says, and no packet is longer than a buffer; what is taken is copied.
                let taken = unsafe {
                    mr_crypto_enqueue(self.raw.as_ptr(), packets.as_ptr(), packets.len() as u32) as usize
                };
                under.next += taken;
                self.held += taken;
                if taken < last - first {
                    return;
                }
            }
        }
    }

    /// Takes back what the device has done.
    fn pull(&mut self) {
        let mut done = [RawDone { op: std::ptr::null_mut(), tag: 0, good: 0 }; BURST];
        loop {
            // SAFETY: as many are written at most as there is room for.
            let found =
                unsafe { mr_crypto_dequeue(self.raw.as_ptr(), done.as_mut_ptr(), BURST as u32) as usize };
            for done in &done[..found.min(BURST)] {
                self.held = self.held.saturating_sub(1);
                let packet = (done.tag & 0xffff) as usize;
                let under = self.under.iter_mut().find(|under| under.number == done.tag >> 16);
                let (mut to, mut length) = (std::ptr::null_mut(), 0);
                if let Some(under) = under
                    && let Some(descriptor) = under.descriptors.get(packet)
                {
                    under.left -= 1;
                    under.bad += u64::from(done.good == 0);
                    let octets = descriptor.place..descriptor.place + descriptor.length;
                    if let Some(output) = under.batch.parts().2.get_mut(octets) {
                        (to, length) = (output.as_mut_ptr(), output.len() as u32);
                    }
                }
                // SAFETY: an operation that was just dequeued, and room for as many octets in the batch's output, or none.
                unsafe { mr_crypto_finish(done.op, to, length) };
            }
            if found < BURST {
                return;
            }
        }
    }

    /// Gives back batches of which all packets are done.
    fn settle(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        let is_done = |under: &mut Under| under.left == 0;
        let mut rest = VecDeque::with_capacity(self.under.len());
        for mut under in self.under.drain(..) {
            if !is_done(&mut under) {
                rest.push_back(under);
                continue;
            }
            let outcome = if under.bad == 0 { Ok(()) } else { Err(Failure::Status(under.bad)) };
            let times = Times {
                submitted: under.submitted,
                started: under.submitted,
                ended: now.max(under.submitted),
            };
            ended.push(Completion { batch: under.batch, outcome, times, steady: true });
        }
        self.under = rest;
    }
}

/// The first counter block (TS 33.401 B.1.3).
fn counter(descriptor: &Descriptor) -> [u8; 16] {
    let packet = &descriptor.packet;
    let mut block = [0; 16];
    block[..4].copy_from_slice(&packet.count.0.to_be_bytes());
    block[4] = packet.bearer.number() << 3 | (packet.direction as u8) << 2;
    block
}

impl Device for CryptoDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        Limits {
            kinds: vec![Kind::Nea2],
            in_flight: IN_FLIGHT,
            items: ITEMS,
            input: ITEMS * usize::from(ROOM),
            output: ITEMS * usize::from(ROOM),
        }
    }

    fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), Rejected> {
        if let Err(why) = self.accepts(&batch) {
            return Err(Rejected { batch, why });
        }
        if let Some(failure) = &self.failed {
            return Err(Rejected { batch, why: Refusal::Failed(failure.clone()) });
        }
        debug_assert_eq!(*batch.task(), Task::Nea2);
        // Where there is nothing to be ciphered, there is nothing to be done either.
        let descriptors: Vec<Descriptor> =
            batch.descriptors().filter(|descriptor| descriptor.length > 0).collect();
        let longest = descriptors.iter().map(|descriptor| descriptor.length).max().unwrap_or(0);
        if longest > usize::from(ROOM) {
            let why = Refusal::TooLarge { given: longest, most: ROOM.into(), unit: Unit::PacketOctets };
            return Err(Rejected { batch, why });
        }
        if self.under.len() >= IN_FLIGHT {
            return Err(Rejected { batch, why: Refusal::Full });
        }
        self.number += 1;
        let left = descriptors.len();
        let number = self.number;
        self.under.push_back(Under { number, batch, descriptors, submitted: now, next: 0, left, bad: 0 });
        self.push();
        Ok(())
    }

    fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
        let before = ended.len();
        self.pull();
        self.push();
        self.settle(now, ended);
        ended.len() - before
    }

    fn in_flight(&self) -> usize {
        self.under.len()
    }

    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        let mut looks = 0;
        while self.held > 0 && looks < LAST_LOOKS {
            self.pull();
            looks += 1;
        }
        self.settle(now, ended);
        ended.extend(
            self.under
                .drain(..)
                .map(|under| Completion::failed(under.batch, Failure::Abandoned, under.submitted, now)),
        );
        self.failed.get_or_insert(Failure::Abandoned);
    }

    fn revive(&mut self, _now: Nanos) -> Result<(), Failure> {
        self.pull();
        if self.held > 0 {
            return Err(Failure::Abandoned);
        }
        self.failed = None;
        Ok(())
    }
}

impl Drop for CryptoDevice {
    fn drop(&mut self) {
        let (mut ended, mut looks) = (Vec::new(), 0);
        self.abandon(Nanos(0), &mut ended);
        while self.held > 0 && looks < LAST_LOOKS {
            self.pull();
            looks += 1;
        }
        if self.held > 0 {
            // What it still has lies in its pools.
            self.eal.keep_forever();
            return;
        }
        self.forget_sessions();
        // SAFETY: nothing is in it, and nobody else has it.
        alone(|| unsafe { mr_crypto_close(self.raw.as_ptr()) });
    }
}
