//! A ring of small buffers that a device polls: the continuous kernel's, and a thread's that plays its part.
//!
//! **Problem.** To launch a kernel costs 5 to 10 µs, each time. A kernel that was launched once and never ends costs that once; but then host and device have
//! to talk to each other through memory, while both run.
//!
//! **Model.** The memory is laid out in slots ([`layout`]). Each slot has a *doorbell* that the host writes and the device polls, and a *done* line that the device
//! writes and the host polls. In both is a sequence number:
//!
//! - the slot is **idle** if both are the same. The host may then write its input, and release-store the doorbell's number plus one;
//! - the slot is **rung** if the doorbell's is another than the done line's. The device, which has acquired it, reads the input, writes the
//!   output, and release-stores the same number to the done line.
//!
//! There is nothing else to it. In particular, the device remembers nothing that isn't in the ring: told to leave, it ends what it has begun and goes, and when it
//! is started again, what was rung is still rung. So a GPU can be lent to others in between, and no batch notices. A slot belongs to one of
//! the two sides at any time, so there is no lock, and as many batches are in flight as there are slots: while some are copied, others are worked on.
//!
//! **Proof.** The host's and the device's side are each some hundred lines of safe code over atomic words. `tests/ring.rs` has loom go through the orders in
//! which the two may run and see each other's writes; `tests/kernels.rs` holds the kernel's side, compiled as C++ for the host, against the
//! thread's.
//!
//! ```
//! use accel::ring::{Host, Order, Serving, Shape, layout};
//! use std::sync::{Arc, atomic::AtomicU64};
//!
//! let shape = Shape::new(2, 64, 8).unwrap();
//! let memory: Arc<[AtomicU64]> = (0..shape.words()).map(|_| AtomicU64::new(0)).collect();
//! let mut host = Host::new(Arc::clone(&memory), shape).unwrap();
//! let mut device = Serving::new(memory).unwrap();
//! let order = Order { task: 1, items: 1, table: 0, octets: b"in", data: b"", output: 3 };
//! assert!(host.ring(1, order) && host.fetch(1, &mut []).is_none());
//! device.look(|| 0, |_, input, output| {
//!     output.copy_from_slice(if input.starts_with(b"in") { b"out" } else { b"???" });
//!     layout::DONE
//! });
//! let mut output = [0; 3];
//! assert!(host.fetch(1, &mut output).is_some() && output == *b"out");
//! ```

mod behind;
mod device;
mod host;
pub mod layout;
mod memory;
mod serving;

pub use behind::{Behind, Thread};
pub use device::RingDevice;
pub use host::{Done, Host, Order};
pub use layout::Shape;
pub use memory::{Memory, Word};
pub use serving::{Look, Rung, Serving};

use crate::copies::TableId;
use crate::copies::layout::KINDS;
use crate::task::{Hashes, Lookup, Task};

/// A task as a doorbell's word; none if it is too large for a ring, which is for small batches. Which table a look-up is in stands elsewhere.
pub(crate) fn encode(task: &Task) -> Option<u64> {
    let more = match task {
        Task::Hash(hashes) => u64::from(hashes.get()),
        Task::Nea2 => 0,
        Task::Lookup(lookup) => lookup.kind as u64,
        Task::LdpcEncode(_) | Task::LdpcDecode(_) => return None,
    };
    Some(task.kind() as u64 | more << 8)
}

/// The task of a doorbell's word, in that table.
pub(crate) fn decode(word: u64, table: u64) -> Option<Task> {
    let hashes = Hashes::new((word >> 8) as u8).ok().map(Task::Hash);
    let table = TableId(u32::try_from(table).ok()?);
    let lookups = KINDS.map(|kind| Some(Task::Lookup(Lookup { table, kind })));
    [hashes, Some(Task::Nea2)].into_iter().chain(lookups).flatten().find(|task| encode(task) == Some(word))
}

/// Where a batch's data begins in a slot's input, behind so many octets of items.
pub(crate) const fn data_from(items: usize) -> usize {
    items.next_multiple_of(16)
}
