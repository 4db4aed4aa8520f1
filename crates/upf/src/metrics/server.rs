//! The thread that speaks HTTP.
//!
//! **Bounds.** At most [`PLACES`] connections at a time, each for at most [`PATIENCE`], whatever its client does or doesn't: who sends his
//! request letter by letter, or doesn't read the answer, is cut off. Others wait in the kernel's queue meanwhile.

use super::text::Format;
use crate::view::View;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Sleep;

/// Connections at a time.
const PLACES: usize = 16;
/// A connection lasts for so long at most.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a connection that the kernel could not give: it is out of file descriptors.
const BREATH: Duration = Duration::from_millis(100);

/// Serves until it is dropped.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Errors: the address can't be listened on, or there is no thread.
    pub fn start(listen: SocketAddr, view: View) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                let serving = async {
                    let places = Arc::new(Semaphore::new(PLACES));
                    let listener = Bounded { listener: TcpListener::from_std(listener)?, places };
                    axum::serve(listener, router(view)).into_future().await
                };
                tokio::select! {
                    ended = serving => if let Err(error) = ended {
                        tracing::error!(%error, "metrics are not served any more");
                    },
                    // Dropped or told: the UPF ends.
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(serve)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // It has told what killed it.
            let _ = thread.join();
        }
    }
}

fn router(view: View) -> Router {
    Router::new().route("/metrics", get(metrics)).route("/healthz", get(health)).with_state(view)
}

/// A scrape is a connection: nobody keeps a place for the next one.
const CLOSE: (header::HeaderName, &str) = (header::CONNECTION, "close");

async fn metrics(State(view): State<View>, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accept);
    ([CLOSE, (header::CONTENT_TYPE, format.content_type())], super::metrics(&view, format))
}

async fn health(State(view): State<View>) -> impl IntoResponse {
    let ailments = super::ailments(view.clock.now(), &view.reports(), view.control().at);
    let (status, text) = if ailments.is_empty() {
        (StatusCode::OK, "well\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, ailments.join("\n") + "\n")
    };
    (status, [CLOSE], text)
}

/// Gives so many connections at a time.
struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl axum::serve::Listener for Bounded {
    type Io = Limited;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Limited, SocketAddr) {
        loop {
            if let Ok(place) = self.places.clone().acquire_owned().await
                && let Ok((stream, address)) = self.listener.accept().await
            {
                let end = Box::pin(tokio::time::sleep(PATIENCE));
                return (Limited { stream, end, _place: place }, address);
            }
            tokio::time::sleep(BREATH).await;
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends.
struct Limited {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Limited {
    /// The stream, as long as there is time; who waits is woken when there is none left.
    fn stream(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        use std::future::Future;
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(Pin::new(&mut self.stream)),
        }
    }
}

impl AsyncRead for Limited {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream(cx)?.poll_read(cx, into)
    }
}

impl AsyncWrite for Limited {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream(cx)?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(cx)?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(cx)?.poll_shutdown(cx)
    }
}
