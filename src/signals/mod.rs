//! What signals ask for: SIGINT and SIGTERM to stop; what a running UPF makes of others is `watch`.

#[cfg(feature = "dpdk")]
mod watch;

#[cfg(feature = "dpdk")]
pub use watch::Watch;

use crate::exit::{Exit, Failure};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a first signal is answered with where something has to be ended in order, and a second one doesn't wait for that ([`stop_flag`]).
pub const STOPPING: &str = "stopping; another Ctrl-C ends it at once";

/// A flag that the first SIGINT or SIGTERM sets. The second one ends the process at once, for when a clean stop hangs.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let registered = signal_hook::flag::register_conditional_shutdown(
            signal,
            i32::from(Exit::Interrupted as u8),
            flag.clone(),
        )
        .and_then(|_| signal_hook::flag::register(signal, flag.clone()));
        registered.map_err(refused)?;
    }
    Ok(flag)
}

/// How long work has to hear that it is to end.
const HEARD_WITHIN: Duration = Duration::from_millis(500);

/// Work that is asked by a signal to end in order, and is ended wherever it is if it doesn't hear that soon: not everything that takes long
/// can look at a flag.
pub struct Asked {
    flag: Arc<AtomicBool>,
    /// It has, or it is over.
    heard: Arc<Mutex<bool>>,
}

impl Asked {
    /// Whether it is to end. Whoever asks has heard the answer, and sees to the rest.
    pub fn is_to_end(&self) -> bool {
        let asked = self.flag.load(Ordering::Relaxed);
        if asked {
            self.over();
        }
        asked
    }

    /// The work is done. Doesn't return if it is being ended.
    pub fn over(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// The first SIGINT or SIGTERM asks the work to end. If it hasn't [heard](Asked::is_to_end) of it in half a second, the process ends with
/// [`Exit::Interrupted`] after `last_words`; so it does at the second one, without them. Only for work that leaves nothing behind.
pub fn ask_to_end(last_words: impl FnOnce() + Send + 'static) -> Result<Asked, Failure> {
    let flag = stop_flag()?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(refused)?;
    let heard = Arc::<Mutex<bool>>::default();
    let known = Arc::clone(&heard);
    let waiting = move || {
        if signals.forever().next().is_some() {
            std::thread::sleep(HEARD_WITHIN);
            unless_heard(&known, || {
                last_words();
                signal_hook::low_level::exit(i32::from(Exit::Interrupted as u8));
            });
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(waiting).map_err(refused)?;
    Ok(Asked { flag, heard })
}

/// Ends work that has not heard. It can't hear any more while it is being ended, or two would say what became of it.
fn unless_heard(heard: &Mutex<bool>, end: impl FnOnce()) {
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    if !*heard {
        end();
    }
}

/// Work that a signal ends wherever it is.
pub struct Ended(Arc<AtomicBool>);

impl Ended {
    /// The work is done: a signal ends what follows without a word. Doesn't return if one has come before.
    pub fn not_any_more(&self) {
        while self.0.swap(true, Ordering::AcqRel) {
            // The process ends when the last words have been said.
            std::thread::park();
        }
    }
}

/// The first SIGINT or SIGTERM ends the process, with [`Exit::Interrupted`], after `last_words` on a thread of their own. The second one
/// doesn't wait for these. Only for work that leaves nothing behind.
pub fn end_with(last_words: impl FnOnce() + Send + 'static) -> Result<Ended, Failure> {
    stop_flag()?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(refused)?;
    let over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&over);
    let waiting = move || {
        if signals.forever().next().is_some() {
            if !seen.swap(true, Ordering::AcqRel) {
                last_words();
            }
            signal_hook::low_level::exit(i32::from(Exit::Interrupted as u8));
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(waiting).map_err(refused)?;
    Ok(Ended(over))
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("can't handle signals: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn work_that_hears_is_left_to_itself() {
        let asked = Asked { flag: Arc::default(), heard: Arc::default() };
        let ended = |asked: &Asked| {
            let mut ended = false;
            unless_heard(&asked.heard, || ended = true);
            ended
        };
        // It looks, but nobody has asked yet: that says nothing of the next stage.
        assert!(!asked.is_to_end() && ended(&asked));
        asked.flag.store(true, Ordering::Relaxed);
        assert!(asked.is_to_end() && !ended(&asked));
        // Nor is it ended when it is done.
        let done = Asked { flag: Arc::default(), heard: Arc::default() };
        done.over();
        assert!(!ended(&done));
    }

    #[test]
    fn who_is_being_ended_says_nothing_more() {
        let asked = Asked { flag: Arc::new(AtomicBool::new(true)), heard: Arc::default() };
        let ([begun, said], heard) = ([false; 2].map(AtomicBool::new), Arc::clone(&asked.heard));
        std::thread::scope(|scope| {
            unless_heard(&heard, || {
                scope.spawn(|| {
                    begun.store(true, Ordering::Relaxed);
                    said.store(asked.is_to_end(), Ordering::Relaxed);
                });
                while !begun.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                // It asks about now, and the process would be gone by then.
                std::thread::sleep(Duration::from_millis(20));
                assert!(!said.load(Ordering::Relaxed));
            });
        });
        assert!(said.load(Ordering::Relaxed), "it waited, and no longer than that");
    }
}
