//! The WebSockets of pages: which requests open one, and the codes with which they end.
//!
//! A page of another origin must not open a socket with the cookies of the user, so the header `Origin` has to be equal
//! to the origin of the dashboard. A page cannot read the status of a response without a socket, so a request from the
//! dashboard itself is always accepted, and the code of the close frame says why the socket ends.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use futures::StreamExt;
use http::StatusCode;
use http::header::ORIGIN;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::fetch::only;
use crate::controllers::dashboard::texts::template::table_key;

/// The WebSocket of a browser.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;
/// The status and text of the response to a request that opens no socket.
pub type Refused = (StatusCode, &'static str);

/// The time limit of the last messages, including the response of the browser.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
/// The size of a socket's buffers in bytes: one for reading, and one that collects messages to send.
const BUFFER: usize = 4 << 10;

table_key! {
    /// Why a socket ends. The pages have a sentence for each code.
    pub enum End {
        /// The connection between the browser and the dashboard is lost, or the browser has closed it.
        Left,
        /// The machine has ended the connection regularly.
        Done,
        /// The replica of the dashboard, or of the server behind it, stops.
        Stopping,
        /// The session has ended: the user has to log in again.
        SessionOver,
        /// The user may not open it, or the machine is not running.
        Denied,
        /// The machine has no screen: it is off, or begins to start.
        NoScreen,
        /// Nothing was sent for too long.
        Idle,
        /// Somebody else uses the screen.
        Taken,
        /// Too many sockets are open.
        Full,
        /// The connection to the machine is lost, or cannot be opened.
        Lost,
        /// The server behind the dashboard, or the API server, does not respond.
        Away,
    }
}

impl End {
    /// Returns the code of the close frame. RFC 6455 leaves 4000 to 4999 to applications; these resemble the codes of
    /// HTTP. A browser that gets no close frame reports 1006.
    pub const fn code(self) -> u16 {
        match self {
            Self::Left => 1_006,
            Self::Done => 1_000,
            Self::Stopping => 1_001,
            Self::SessionOver => 4_401,
            Self::Denied => 4_403,
            Self::NoScreen => 4_404,
            Self::Idle => 4_408,
            Self::Taken => 4_409,
            Self::Full => 4_429,
            Self::Lost => 4_502,
            Self::Away => 4_503,
        }
    }
}

/// Accepts a request for a WebSocket from a page of the origin `own`. The socket exists once the response is sent.
///
/// # Errors
/// The response to a request from elsewhere, or for something else.
pub fn accept(request: &mut Request, own: &str) -> Result<(Response, OnUpgrade), Refused> {
    if own.is_empty() || only(request.headers(), ORIGIN.as_str()) != Some(own.as_bytes()) {
        return Err((StatusCode::FORBIDDEN, "only pages of the dashboard open this connection\n"));
    }
    let Ok(answer) = create_response_with_body(request, Body::empty) else {
        return Err((StatusCode::BAD_REQUEST, "this is not a request for a WebSocket\n"));
    };
    Ok((answer, hyper::upgrade::on(request)))
}

/// Returns the settings of a WebSocket with messages of at most this many bytes.
pub fn settings(longest: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_write_buffer_size(longest + 16 * BUFFER)
        .max_message_size(Some(longest))
        .max_frame_size(Some(longest))
}

/// Returns the WebSocket on the connection of an accepted request.
pub async fn socket(connection: Upgraded, longest: usize) -> Socket {
    WebSocketStream::from_raw_socket(TokioIo::new(connection), Role::Server, Some(settings(longest))).await
}

/// Tells the page why its socket ends, and reads until the browser has closed it, too: a connection that is closed with
/// unread data is reset, and the last messages could be lost.
pub async fn close<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>, end: End) {
    if end == End::Left {
        return;
    }
    let talk = async {
        let frame = CloseFrame { code: end.code().into(), reason: "".into() };
        // If sending fails, the browser is closing the socket, too.
        let _ = socket.close(Some(frame)).await;
        while let Some(Ok(_)) = socket.next().await {}
    };
    // The browser may be gone, or may not answer. Nothing is left to send.
    let _ = timeout(CLOSE_LIMIT, talk).await;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http::{HeaderValue, Method};

    use super::*;
    use crate::controllers::dashboard::texts::template::Key as _;

    const OWN: &str = "https://labs.example.com";

    /// A request of a browser for a WebSocket, with these headers in place of its own.
    fn request(changes: &[(&'static str, &'static str)]) -> Request {
        let mut headers = vec![
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("origin", OWN),
        ];
        headers.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
        let mut request = Request::new(Body::empty());
        for (name, value) in headers.iter().chain(changes).filter(|(_, value)| !value.is_empty()) {
            request.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        request
    }

    #[test]
    fn only_pages_of_the_dashboard_open_a_socket() {
        for (changes, expected) in [
            (&[("origin", "")][..], Some(StatusCode::FORBIDDEN)),
            (&[], None),
            (&[("origin", "null")], Some(StatusCode::FORBIDDEN)),
            (&[("origin", "https://labs.example.com/")], Some(StatusCode::FORBIDDEN)),
            (&[("origin", "http://labs.example.com")], Some(StatusCode::FORBIDDEN)),
            (&[("origin", "https://machine.labs.example.com")], Some(StatusCode::FORBIDDEN)),
            (&[("origin", OWN), ("origin", "https://evil.example.com")], Some(StatusCode::FORBIDDEN)),
            (&[("upgrade", "")], Some(StatusCode::BAD_REQUEST)),
            (&[("sec-websocket-key", "short")], Some(StatusCode::BAD_REQUEST)),
            (&[("sec-websocket-version", "8")], Some(StatusCode::BAD_REQUEST)),
        ] {
            let accepted = accept(&mut request(changes), OWN);
            assert_eq!(accepted.err().map(|(status, _)| status), expected, "{changes:?}");
        }
        let mut post = request(&[]);
        *post.method_mut() = Method::POST;
        assert!(accept(&mut post, OWN).is_err());
        assert!(accept(&mut request(&[("origin", "")]), "").is_err(), "without a public URL");
    }

    #[test]
    fn the_response_has_the_key_of_the_request_and_no_extension() {
        let (answer, _) = accept(&mut request(&[]), OWN).expect("accepted");
        assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
        // The example of RFC 6455.
        assert_eq!(answer.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(!answer.headers().contains_key("sec-websocket-extensions"));
    }

    #[test]
    fn each_end_has_its_own_code() {
        let codes: BTreeSet<u16> = End::ALL.iter().map(|end| end.code()).collect();
        assert_eq!(codes.len(), End::ALL.len());
        let is_sent = |code: &u16| matches!(code, 1_000 | 1_001 | 4_000..5_000);
        assert!(codes.iter().filter(|code| **code != End::Left.code()).all(is_sent), "{codes:?}");
    }
}
