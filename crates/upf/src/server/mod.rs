//! The side of the control socket that answers.
//!
//! [`CtlServer`] owns the socket, with a thread of its own and one per connection; what it tells comes from a
//! [`Responder`], which [`Backend`](crate::Backend) is. [`api::CtlClient`] is the other side.
//!
//! **Who may ask.** The socket file belongs to the user that runs the UPF and has mode 0600: whoever can open it may
//! ask. There is no other authentication, and the socket is not for the network.
//!
//! **Bounds.** Those of [`api`]; and a connection that takes longer than its time over a request or an answer
//! is closed. None of it touches the packet path: who answers asks workers by message.

use api::{CtlError, ErrorCode, MAX_CONNECTIONS, MAX_REQUEST_BYTES, Request, Told, distrust};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Who answers. Called from the server's threads, several at once; may take a while, for instance to ask
/// the workers, but has to come back.
pub trait Responder: Send + Sync + 'static {
    /// The answer, or why there is none.
    fn respond(&self, request: Request) -> Result<Told, CtlError>;
}

/// How long a connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Between an answer and the next request's first byte.
    pub idle: Duration,
    /// Between a request's first byte and its newline.
    pub request: Duration,
    /// For each write of an answer to make progress.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { idle: Duration::from_mins(1), request: Duration::from_secs(5), answer: Duration::from_secs(5) }
    }
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum CtlBindError {
    /// Another UPF answers there.
    #[error("a UPF is running already: it answers on {path} (set another `ctl.socket` to run a second)", path = path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// Something that is not a socket is in the way.
    #[error("{path} is in the way: it is not a socket, and is left alone", path = path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// Its directory in `/tmp` may be another user's trap.
    #[error("the control socket can't be in {path}: {why}; or set another `ctl.socket`", path = path.parent().unwrap_or(path).display())]
    Directory {
        /// The socket's path.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The system refuses.
    #[error("can't make the control socket {path}: {source}", path = path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A control socket that is being served; dropping it ends that and removes the socket file.
pub struct CtlServer {
    path: PathBuf,
    identity: (u64, u64),
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How often threads that wait look whether the server has been stopped.
const TICK: Duration = Duration::from_millis(50);

impl CtlServer {
    /// Makes the socket, mode 0600, with its directory if that is missing (mode 0700), and starts to answer.
    ///
    /// A socket file that nobody answers on is replaced; one that a running UPF answers on is an error.
    pub fn start(
        path: &Path,
        responder: Arc<dyn Responder>,
        timeouts: Timeouts,
    ) -> Result<Self, CtlBindError> {
        let failed = |source| CtlBindError::Io { path: path.to_owned(), source };
        match path.symlink_metadata() {
            Ok(metadata) if !metadata.file_type().is_socket() => {
                return Err(CtlBindError::NotASocket { path: path.to_owned() });
            }
            Ok(_) if UnixStream::connect(path).is_ok() => {
                return Err(CtlBindError::InUse { path: path.to_owned() });
            }
            _ => {}
        }
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty() && !d.exists()) {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        }
        if let Some(why) = distrust(path) {
            return Err(CtlBindError::Directory { path: path.to_owned(), why });
        }
        // Made aside, closed to others, then moved into place: it is never there with a wider mode, and a stale file is
        // replaced in one step.
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".{}", std::process::id()));
        let aside = PathBuf::from(aside);
        let made = (|| {
            let listener = UnixListener::bind(&aside)?;
            std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            let metadata = aside.symlink_metadata()?;
            std::fs::rename(&aside, path)?;
            Ok((listener, (metadata.dev(), metadata.ino())))
        })();
        let (listener, identity) = made.map_err(|error| {
            // Best effort: the error that is told is the first one.
            let _ = std::fs::remove_file(&aside);
            failed(error)
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let server = Server { responder, timeouts, stop: Arc::clone(&stop), connections: Arc::default() };
        let thread = std::thread::Builder::new()
            .name("ctl".into())
            .spawn(move || server.accept(&listener))
            .map_err(failed)?;
        Ok(Self { path: path.to_owned(), identity, stop, thread: Some(thread) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CtlServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in the accept loop has been reported by its hook; there is nothing to add while dropping.
            let _ = thread.join();
        }
        // Only if it is still ours: another UPF may have taken the path over.
        let ours = self.path.symlink_metadata().is_ok_and(|m| (m.dev(), m.ino()) == self.identity);
        if ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[derive(Clone)]
struct Server {
    responder: Arc<dyn Responder>,
    timeouts: Timeouts,
    stop: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
}

/// Counts a connection for as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn accept(&self, listener: &UnixListener) {
        let tick = rustix::time::Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as _ };
        while !self.stopped() {
            let mut ready = [rustix::event::PollFd::new(listener, rustix::event::PollFlags::IN)];
            if !matches!(rustix::event::poll(&mut ready, Some(&tick)), Ok(1..)) {
                continue;
            }
            match listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => {
                    // Out of file descriptors, most likely: the connection stays in the queue.
                    tracing::warn!(%error, "control socket");
                    std::thread::sleep(TICK);
                }
            }
        }
    }

    fn admit(&self, mut stream: UnixStream) {
        let timed = stream.set_nonblocking(false).and(stream.set_read_timeout(Some(TICK)));
        if timed.and(stream.set_write_timeout(Some(self.timeouts.answer))).is_err() {
            return;
        }
        let counted = Counted(Arc::clone(&self.connections));
        if self.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            let message = format!("{MAX_CONNECTIONS} connections are open already");
            // The client may be gone; then there is nobody to tell. The line fits any socket buffer.
            let _ = stream.write_all(Told::refused(&CtlError::new(ErrorCode::Busy, message)).line());
            return;
        }
        let server = self.clone();
        let spawned = std::thread::Builder::new().name("ctl-client".into()).spawn(move || {
            let _counted = counted;
            // An error is the client's end of the conversation.
            let _ = server.converse(&mut stream);
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "control connection");
        }
    }

    fn converse(&self, stream: &mut UnixStream) -> std::io::Result<()> {
        let mut pending = Vec::new();
        loop {
            match self.read_line(stream, &mut pending)? {
                Line::Request(line) => {
                    let asked = serde_json::from_slice(&line).map_err(|error| {
                        CtlError::new(ErrorCode::BadRequest, format!("this is not a request: {error}"))
                    });
                    let told = asked.and_then(|request| self.responder.respond(request));
                    stream.write_all(told.unwrap_or_else(|error| Told::refused(&error)).line())?;
                }
                Line::Refused(error) => return stream.write_all(Told::refused(&error).line()),
                Line::End => return Ok(()),
            }
        }
    }

    /// The next line, without its newline. `pending` keeps what came behind it.
    fn read_line(&self, stream: &mut UnixStream, pending: &mut Vec<u8>) -> std::io::Result<Line> {
        let begun = Instant::now();
        let mut first_byte = (!pending.is_empty()).then_some(begun);
        let mut searched = 0;
        loop {
            if let Some(at) = pending.iter().skip(searched).position(|b| *b == b'\n') {
                let rest = pending.split_off(searched + at + 1);
                let mut line = std::mem::replace(pending, rest);
                line.pop();
                return Ok(Line::Request(line));
            }
            searched = pending.len();
            if searched >= MAX_REQUEST_BYTES {
                let message = format!("a request has at most {MAX_REQUEST_BYTES} bytes");
                return Ok(Line::Refused(CtlError::new(ErrorCode::TooLong, message)));
            }
            let mut chunk = [0; 4096];
            let room = chunk.len().min(MAX_REQUEST_BYTES - searched);
            match stream.read(&mut chunk[..room]) {
                Ok(0) => return Ok(Line::End),
                Ok(count) => {
                    first_byte.get_or_insert_with(Instant::now);
                    pending.extend(chunk.iter().take(count));
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
            if self.stopped() {
                return Ok(Line::End);
            }
            match first_byte {
                None if begun.elapsed() > self.timeouts.idle => return Ok(Line::End),
                Some(first) if first.elapsed() > self.timeouts.request && !pending.contains(&b'\n') => {
                    let error = CtlError::new(ErrorCode::TimedOut, "the request took too long to arrive");
                    return Ok(Line::Refused(error));
                }
                _ => {}
            }
        }
    }
}

/// What a connection said.
enum Line {
    Request(Vec<u8>),
    Refused(CtlError),
    End,
}

#[cfg(test)]
mod tests;
