//! What signals ask of a running UPF: SIGINT, SIGTERM and SIGQUIT to stop, SIGHUP to read the configuration anew, SIGUSR1 and SIGUSR2 nothing.

use super::refused;
use crate::exit::{Exit, Failure};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads the configuration anew.
type Reload = Box<dyn FnMut() + Send>;

/// All signals that a UPF may be sent, from its start on: none of them ends it without a word to its SMFs, or leaves its socket behind.
pub struct Watch {
    stop: Arc<AtomicBool>,
    served: Arc<Mutex<Served>>,
}

/// What there is to do something with, once the UPF serves.
#[derive(Default)]
struct Served {
    reload: Option<Reload>,
    socket: Option<Socket>,
}

/// A socket's file: path, device and inode.
struct Socket(PathBuf, (u64, u64));

impl Socket {
    fn at(path: &Path) -> Option<Self> {
        let metadata = path.symlink_metadata().ok()?;
        Some(Self(path.to_owned(), (metadata.dev(), metadata.ino())))
    }

    /// Unless another one has taken its place.
    fn remove(&self) {
        if Self::at(&self.0).is_some_and(|found| found.1 == self.1) {
            // It is gone, or there is nobody left to tell.
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

impl Watch {
    /// Begins, in a thread of its own.
    pub fn start() -> Result<Self, Failure> {
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2]).map_err(refused)?;
        let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Served>>::default());
        let (asked, known) = (Arc::clone(&stop), Arc::clone(&served));
        let watching = move || {
            for signal in signals.forever() {
                match signal {
                    SIGHUP => reload(&known),
                    SIGUSR1 | SIGUSR2 => tracing::info!("SIGUSR1 and SIGUSR2 mean nothing here: ignored"),
                    _ if asked.swap(true, Ordering::Relaxed) => end_at_once(&known),
                    _ => tracing::info!("stopping; a second signal ends the process at once"),
                }
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(watching).map_err(refused)?;
        Ok(Self { stop, served })
    }

    /// Set by the first signal to stop.
    pub const fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// The UPF serves: what SIGHUP does, and the socket that is not to be left behind.
    pub fn serves(&self, socket: Option<&Path>, reload: impl FnMut() + Send + 'static) {
        let mut served = lock(&self.served);
        served.reload = Some(Box::new(reload));
        served.socket = socket.and_then(Socket::at);
    }
}

fn lock(served: &Mutex<Served>) -> MutexGuard<'_, Served> {
    served.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reload(served: &Mutex<Served>) {
    if let Some(reload) = &mut lock(served).reload {
        reload();
    } else {
        tracing::info!("SIGHUP: the UPF is only starting, and reads its configuration anyway");
    }
}

/// A second signal: whoever sent it doesn't want to wait.
fn end_at_once(served: &Mutex<Served>) {
    if let Some(socket) = &lock(served).socket {
        socket.remove();
    }
    signal_hook::low_level::exit(i32::from(Exit::Interrupted as u8));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_own_socket_is_removed() {
        let path = std::env::temp_dir().join(format!("millrace-signals-{}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        let own = Socket::at(&path).unwrap();
        // Another file takes the path over while this one is still there.
        let kept = path.with_extension("kept");
        std::fs::rename(&path, &kept).unwrap();
        std::fs::write(&path, "").unwrap();
        own.remove();
        assert!(path.exists());
        Socket::at(&path).unwrap().remove();
        assert!(!path.exists() && Socket::at(&path).is_none());
        std::fs::remove_file(kept).unwrap();
    }
}
