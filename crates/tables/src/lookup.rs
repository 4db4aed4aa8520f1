//! A look-up in phases: ask early, answer later.
//!
//! **Problem.** A look-up waits for memory one to five times, and each wait costs more than all of the work between. The waits of many
//! look-ups overlap if all of them ask before the first one reads. How often a table has to ask depends on the table, but
//! its callers (a stage of the packet path, a bulk, a benchmark) shouldn't depend on that, and shouldn't write the same loop once more.
//!
//! **Model.** [`Lookup::prepare`] makes a [`Lookup::Probe`] of a key and asks memory for what is read first. [`Lookup::step`] reads what
//! has arrived, asks for what is read next, and says whether another step has anything to do. [`Lookup::finish`] has the answer. Steps
//! may be left out, done once more, and done in any order: they make the answer come sooner, and never another one. A caller with
//! packets of many tables (one per shard) goes through the phases itself; a caller with one table has [`Lookup::lookup_bulk`].
//!
//! ```
//! use tables::{Lookup, Lpm4};
//! let mut routes = Lpm4::new(1000);
//! routes.insert("10.1.2.0".parse()?, 24, 2)?;
//! let burst = ["10.1.2.3".parse()?, "10.1.3.3".parse()?];
//! let mut probes = burst.map(|address| routes.prepare(&address));
//! for (probe, address) in probes.iter_mut().zip(&burst) {
//!     while routes.step(probe, address) {}
//! }
//! let found = [routes.finish(probes[0], &burst[0]), routes.finish(probes[1], &burst[1])];
//! assert_eq!(found, [Some(2), None]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **What if the table changes in between?** The tables of this crate answer what holds at [`Lookup::finish`]: whatever was inserted,
//! replaced or removed since the key was prepared, a moved entry is found, and a removed one isn't.
//!
//! **A device that answers later** (an accelerator with a copy of the table) fits behind the same calls: `prepare` puts the key into the
//! batch that is being filled, and its probe is the place there; `step` hands the batch over and asks whether it is back; `finish`
//! takes the answer, or looks into memory where there is none, because the queue was full or the device is slow or lost. Such a table answers what
//! held at some moment between `prepare` and `finish`, and has to say so.
//!
//! **Cost.** None: there is no `dyn`, and all of it is inlined into its callers. [`crate::conformance`] is the test body for whatever
//! implements this.

/// Look-ups of a bulk that are under way together: as many as processors have line-fill buffers, twice.
const GROUP: usize = 32;

/// A table whose look-ups come in phases; see the module's documentation.
pub trait Lookup {
    /// What is looked up.
    type Key;
    /// What is found.
    type Value;
    /// A look-up under way. It says nothing without its key and its table.
    type Probe: Copy + Default;

    /// First phase: asks memory for what is read first.
    fn prepare(&self, key: &Self::Key) -> Self::Probe;

    /// Reads what the phase before has asked for, and asks for what is read next. Whether another step has anything to do; if not, what
    /// [`Self::finish`] reads has been asked for.
    #[inline(always)]
    fn step(&self, probe: &mut Self::Probe, key: &Self::Key) -> bool {
        let _ = (probe, key);
        false
    }

    /// Last phase: the answer. `probe` comes from this table and this key.
    fn finish(&self, probe: Self::Probe, key: &Self::Key) -> Option<Self::Value>;

    /// Whether what look-ups read is in the processor's cache anyway. A bulk is looked up one by one then: the
    /// processor overlaps such look-ups well enough by itself.
    #[inline(always)]
    fn is_cached(&self) -> bool {
        false
    }

    /// All phases at once.
    #[inline(always)]
    fn lookup(&self, key: &Self::Key) -> Option<Self::Value> {
        self.finish(self.prepare(key), key)
    }

    /// Looks up `keys[i]` into `out[i]`, for as many as both slices have.
    #[inline]
    fn lookup_bulk(&self, keys: &[Self::Key], out: &mut [Option<Self::Value>]) {
        if self.is_cached() {
            for (key, out) in keys.iter().zip(out) {
                *out = self.lookup(key);
            }
        } else {
            in_phases(self, keys, out);
        }
    }
}

/// A bulk, phase by phase over groups.
#[inline]
pub(crate) fn in_phases<T: Lookup + ?Sized>(table: &T, keys: &[T::Key], out: &mut [Option<T::Value>]) {
    for (keys, out) in keys.chunks(GROUP).zip(out.chunks_mut(GROUP)) {
        let keys = keys.get(..out.len()).unwrap_or(keys);
        let mut probes = [T::Probe::default(); GROUP];
        for (probe, key) in probes.iter_mut().zip(keys) {
            *probe = table.prepare(key);
        }
        // The look-ups that have a step to do, and how many they are: all at first.
        let mut pending: [u8; GROUP] = std::array::from_fn(|position| position as u8);
        let mut count = keys.len();
        while count > 0 {
            let mut left = 0;
            for next in 0..count {
                let Some(position) = pending.get(next).copied() else { break };
                let (Some(probe), Some(key)) =
                    (probes.get_mut(position as usize), keys.get(position as usize))
                else {
                    break;
                };
                let goes_on = table.step(probe, key);
                if let Some(place) = pending.get_mut(left) {
                    *place = position;
                    // Without a branch: it couldn't be predicted.
                    left += usize::from(goes_on);
                }
            }
            count = left;
        }
        for ((probe, key), out) in probes.iter().zip(keys).zip(out) {
            *out = table.finish(*probe, key);
        }
    }
}
