//! How long the Jetson takes, fitted to the thesis' tables.
//!
//! **Accelerator.** A kernel takes a fixed time and a time by what is in the batch. For decoding that is codewords of 1,944 bits (243 octets, of which the packets of the tables
//! have one, two and six); the line goes through Table 4.3's IMIX exactly (128 packets in 6.125 ms: 130 Mbit/s) and is the least-squares fit to the three others through that point. For
//! ciphering, it is the line through Table 4.5's shortest and longest packets. Where decoding and ciphering alternate, Table 4.7 is slower than the sum of both, and so is the
//! stress test (128 packets in 9.06 ms): each change of kernel costs [`CHANGE`].
//!
//! **Cores.** A packet takes a time by its octets (Tables 4.3 and 4.5: 4.7 and 308 Mbit/s). Two that decode at the same time get in each other's way: round-robin's cores take 34 % of 3,046 and 13 % of 8,127
//! packets a second, both 1.0 thousand, where 1.5 thousand would be expected, and twice as many cores take "30 %" more (§6.1.6). [`CROWD`] is the factor for that.

use crate::sched::Class;
use crate::sched::packet::Step;

/// Nanoseconds of a decoding kernel, whatever is in it.
pub const DECODE_FIXED: f64 = 3_710_000.0;
/// Nanoseconds of a decoding kernel for each octet: 5.89 us for a codeword.
pub const DECODE_OCTET: f64 = 5_890.0 / 243.0;
/// Nanoseconds of a ciphering kernel, whatever is in it.
pub const CIPHER_FIXED: f64 = 560_000.0;
/// Nanoseconds of a ciphering kernel for each octet.
pub const CIPHER_OCTET: f64 = 3.79;
/// Nanoseconds more for a kernel that isn't the same as the one before.
pub const CHANGE: f64 = 850_000.0;
/// Nanoseconds in which a core decodes an octet: 4.7 Mbit/s.
pub const CPU_DECODE_OCTET: f64 = 8e3 / 4.7;
/// Nanoseconds in which a core ciphers an octet: 308 Mbit/s.
pub const CPU_CIPHER_OCTET: f64 = 8e3 / 308.0;
/// By what more a core takes to decode for each other core that decodes at the same time.
pub const CROWD: f64 = 0.5;

/// Nanoseconds of a kernel, or of a core's packet.
///
/// `changes`: whether the accelerator's last kernel was for the other step. `beside`: other cores that decode at the same time.
pub fn nanos(class: Class, step: Step, octets: u64, changes: bool, beside: usize) -> f64 {
    let octets = octets as f64;
    match (class, step) {
        (Class::Cpu, Step::Decode) => CPU_DECODE_OCTET * octets * (1.0 + CROWD * beside as f64),
        (Class::Cpu, Step::Cipher) => CPU_CIPHER_OCTET * octets,
        (Class::Accelerator, step) => {
            let (fixed, octet) = match step {
                Step::Decode => (DECODE_FIXED, DECODE_OCTET),
                Step::Cipher => (CIPHER_FIXED, CIPHER_OCTET),
            };
            fixed + octet * octets + if changes { CHANGE } else { 0.0 }
        }
    }
}
