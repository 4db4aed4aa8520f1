//! Reading the time for a handful of cycles.
//!
//! **Problem.** A burst needs the time once, and benchmarks count cycles; `clock_gettime` costs about 25 ns even through
//! the vDSO, and says nothing of cycles. The time-stamp counter costs about half and is both.
//!
//! **Model.** A [`Tsc`] is calibrated once against the operating system's monotonic clock, then copied to every thread, so that all
//! threads of a process agree on [`Nanos`]. Where the counter isn't constant and continuous (no invariant TSC), or on other
//! processors, the same type reads the monotonic clock and a tick is a nanosecond.
//!
//! **Cost.** [`Tsc::now`]: the counter, a 64x64-bit multiplication and a shift. Calibration blocks for 20 ms. The frequency's
//! error stays below some tens of parts per million: this clock measures intervals, it doesn't keep the date.
//!
//! **When not to use it.** For time of day, and for anything compared with another machine's clock.

use crate::time::Nanos;
use std::sync::OnceLock;
#[cfg(target_arch = "x86_64")]
use std::time::Duration;
use std::time::Instant;

/// How long calibration watches the counter.
#[cfg(target_arch = "x86_64")]
const CALIBRATION: Duration = Duration::from_millis(20);
/// Fraction bits of the nanoseconds in a tick: enough for 1 ppb at 4 GHz.
#[cfg(target_arch = "x86_64")]
const FRACTION: u32 = 32;

/// A calibrated time-stamp counter; see the module's documentation.
#[derive(Clone, Copy, Debug)]
pub struct Tsc {
    source: Source,
    hz: u64,
    /// Nanoseconds that it shows at its start.
    first: u64,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// Counter at the start, nanoseconds per tick with [`FRACTION`] bits of fraction.
    #[cfg(target_arch = "x86_64")]
    Counter { start: u64, nanos_per_tick: u64 },
    /// The operating system's monotonic clock.
    System { start: Instant },
}

impl Tsc {
    /// The process's clock: calibrated at the first call, the same for every thread.
    pub fn process() -> Self {
        static CLOCK: OnceLock<Tsc> = OnceLock::new();
        *CLOCK.get_or_init(Self::calibrate)
    }

    /// Calibrates a clock that starts at zero now. Use [`Tsc::process`] unless it should differ from everyone else's.
    pub fn calibrate() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(clock) = Self::calibrate_counter() {
            return clock;
        }
        Self::system()
    }

    /// A clock on the operating system's monotonic time, whatever the processor has.
    fn system() -> Self {
        Self { source: Source::System { start: Instant::now() }, hz: Nanos::SECOND, first: 0 }
    }

    #[cfg(target_arch = "x86_64")]
    fn calibrate_counter() -> Option<Self> {
        if !x86::invariant_counter() {
            return None;
        }
        let (first, began) = x86::paired();
        std::thread::sleep(CALIBRATION);
        let (last, ended) = x86::paired();
        let ticks = last.checked_sub(first).filter(|ticks| *ticks > 0)?;
        let nanos = ended.duration_since(began).as_nanos();
        let measured = u64::try_from(u128::from(ticks) * u128::from(Nanos::SECOND) / nanos.max(1)).ok()?;
        // What the processor says of itself is exact, but a hypervisor may have scaled the counter: believe it only where
        // the measurement agrees.
        let hz = x86::nominal_hz().filter(|hz| hz.abs_diff(measured) < measured / 5_000).unwrap_or(measured);
        let nanos_per_tick =
            u64::try_from((u128::from(Nanos::SECOND) << FRACTION) / u128::from(hz.max(1))).ok()?;
        // Below 10 MHz (and above 1 THz) it isn't a counter that this code knows.
        (10_000_000..1_000_000_000_000).contains(&hz).then_some(Self {
            source: Source::Counter { start: first, nanos_per_tick },
            hz,
            first: 0,
        })
    }

    /// The same clock, ahead by so many nanoseconds: whoever goes on with what another process measured goes on with its clock, so that what
    /// happened before stays before.
    #[must_use]
    pub const fn ahead(self, nanos: u64) -> Self {
        Self { first: self.first.saturating_add(nanos), ..self }
    }

    /// Time since the clock's start, or since whose clock it goes on with began.
    #[inline(always)]
    pub fn now(&self) -> Nanos {
        let since = match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Counter { start, nanos_per_tick } => {
                let ticks = x86::counter().saturating_sub(start);
                ((u128::from(ticks) * u128::from(nanos_per_tick)) >> FRACTION) as u64
            }
            Source::System { start } => start.elapsed().as_nanos() as u64,
        };
        Nanos(self.first.saturating_add(since))
    }

    /// The raw counter, for cycles per packet: [`Tsc::hz`] ticks a second, from an arbitrary start.
    #[inline(always)]
    pub fn ticks(&self) -> u64 {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Counter { .. } => x86::counter(),
            Source::System { start } => start.elapsed().as_nanos() as u64,
        }
    }

    /// Ticks per second. The counter runs at a fixed rate, near the processor's base frequency, not at its momentary one.
    pub const fn hz(&self) -> u64 {
        self.hz
    }

    /// Whether this is the processor's counter (and not the operating system's clock).
    pub const fn is_counter(&self) -> bool {
        !matches!(self.source, Source::System { .. })
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__cpuid, _rdtsc};
    use std::time::Instant;

    /// The time-stamp counter.
    #[inline(always)]
    pub(super) fn counter() -> u64 {
        // SAFETY: RDTSC exists on every x86-64 processor, reads no memory, and user mode may execute it unless the
        // process asked for PR_SET_TSC, which nothing here does.
        unsafe { _rdtsc() }
    }

    /// A counter value and the monotonic time that belong together: of several tries the one read fastest, so that a
    /// preemption between the two reads doesn't spoil the calibration.
    pub(super) fn paired() -> (u64, Instant) {
        let mut best: Option<(u64, u64, Instant)> = None;
        for _ in 0..16 {
            let before = counter();
            let time = Instant::now();
            let took = counter().saturating_sub(before);
            if best.is_none_or(|(fastest, _, _)| took < fastest) {
                best = Some((took, before + took / 2, time));
            }
        }
        best.map_or_else(|| (counter(), Instant::now()), |(_, counter, time)| (counter, time))
    }

    /// Whether the counter runs at a constant rate in all power states (CPUID 8000_0007h, EDX bit 8).
    pub(super) fn invariant_counter() -> bool {
        const ADVANCED_POWER: u32 = 0x8000_0007;
        __cpuid(0x8000_0000).eax >= ADVANCED_POWER && __cpuid(ADVANCED_POWER).edx & 1 << 8 != 0
    }

    /// The counter's frequency as CPUID leaf 15h states it (crystal times ratio), where it does.
    pub(super) fn nominal_hz() -> Option<u64> {
        if __cpuid(0).eax < 0x15 {
            return None;
        }
        let leaf = __cpuid(0x15);
        (leaf.eax != 0 && leaf.ebx != 0 && leaf.ecx != 0)
            .then(|| u64::from(leaf.ecx) * u64::from(leaf.ebx) / u64::from(leaf.eax))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn agrees_with_the_system(clock: Tsc) {
        let began = Instant::now();
        let (now, ticks) = (clock.now(), clock.ticks());
        std::thread::sleep(Duration::from_millis(30));
        let (nanos, ticks) = (clock.now().since(now) as f64, (clock.ticks() - ticks) as f64);
        let expected = began.elapsed().as_nanos() as f64;
        // Generous, because a loaded machine may preempt between the reads.
        assert!((nanos / expected - 1.0).abs() < 0.1, "{nanos} ns instead of {expected}");
        assert!((ticks / clock.hz() as f64 * 1e9 / nanos - 1.0).abs() < 0.1);
    }

    #[test]
    fn counter_agrees_with_the_system_clock() {
        agrees_with_the_system(Tsc::process());
    }

    #[test]
    fn fallback_agrees_with_the_system_clock() {
        let clock = Tsc::system();
        assert!(!clock.is_counter());
        agrees_with_the_system(clock);
    }

    #[test]
    fn a_clock_that_is_ahead_is_so_by_that() {
        for clock in [Tsc::process(), Tsc::system()] {
            let ahead = clock.ahead(5).ahead(Nanos::SECOND * 86_400);
            let (before, now, after) = (clock.now(), ahead.now(), clock.now());
            let by = Nanos::SECOND * 86_400 + 5;
            assert!(before.plus(by) <= now && now <= after.plus(by), "{before:?} {now:?} {after:?}");
            assert!(clock.ahead(u64::MAX).now() == Nanos(u64::MAX));
        }
    }

    #[test]
    fn time_does_not_run_backwards() {
        let clock = Tsc::process();
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
