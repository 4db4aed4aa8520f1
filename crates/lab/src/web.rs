//! The data network's web server: a page, and as many bytes as one asks for.

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use std::future::IntoFuture;
use tokio::net::TcpListener;

/// The largest answer of `/bytes/N`: kept in memory while it is sent.
const LARGEST: usize = 1 << 30;

/// Serves HTTP on these sockets, for as long as the runtime lives.
///
/// Errors: a socket can't be listened on.
pub async fn serve(listeners: Vec<std::net::TcpListener>) -> std::io::Result<()> {
    let router = Router::new().route("/", get(page)).route("/bytes/{count}", get(bytes));
    let mut servers = Vec::new();
    for listener in listeners {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        servers.push(tokio::spawn(axum::serve(listener, router.clone()).into_future()));
    }
    for server in servers {
        server.await??;
    }
    Ok(())
}

async fn page() -> Html<&'static str> {
    Html(
        "<!doctype html><title>Millrace lab</title><h1>You reached the data network</h1>\
         <p>Your packets travelled through GTP-U and Millrace. Try <a href=/bytes/100000000>100 MB</a>.</p>\n",
    )
}

async fn bytes(Path(count): Path<usize>) -> impl IntoResponse {
    if count > LARGEST {
        return (StatusCode::PAYLOAD_TOO_LARGE, format!("at most {LARGEST} bytes\n")).into_response();
    }
    Bytes::from(pattern(count)).into_response()
}

/// The content of `/bytes/N`: the same for everyone, without a period that a lost or doubled segment could hide in.
pub fn pattern(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut content = Vec::with_capacity(count + 8);
    while content.len() < count {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.extend_from_slice(&state.to_le_bytes());
    }
    content.truncate(count);
    content
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn the_pattern_is_a_prefix_of_itself() {
        let long = pattern(1_000);
        for count in [0, 1, 7, 8, 9, 999] {
            assert_eq!(pattern(count), long[..count]);
        }
        assert_ne!(long[..500], long[500..]);
    }
}
