//! SIGINT, SIGTERM and SIGHUP: caught, so that the lab can clean up.

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The last signal that came and was not yet looked at.
#[derive(Debug)]
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Catches them from now on, in the whole process and for good.
    pub fn catch() -> std::io::Result<Self> {
        let came = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, Arc::clone(&came), signal as usize)?;
        }
        Ok(Self(came))
    }

    /// The last one since this was asked before.
    pub fn next(&self) -> Option<Signal> {
        i32::try_from(self.0.swap(0, Ordering::Relaxed)).ok().and_then(Signal::from_named_raw)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_is_told_once() {
        let signals = Signals::catch().unwrap();
        assert_eq!(signals.next(), None);
        for signal in [Signal::HUP, Signal::TERM] {
            rustix::process::kill_process(rustix::process::getpid(), signal).unwrap();
            let told = std::iter::repeat_with(|| signals.next()).find_map(|signal| signal);
            assert_eq!((told, signals.next()), (Some(signal), None));
        }
    }
}
