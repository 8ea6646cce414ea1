//! The limits of each client, so that one of them does not slow down the others: the number of requests and of streams
//! of a session, and of an address. An address can have many users, so it may use half of the replica.
//!
//! A request above a limit is answered late, with a connection that has no slot: a client that sends the next request
//! after the response does not take processor time from others.

mod address;
mod clients;
pub mod sockets;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use self::clients::{Allowance, Clients, Running};
use super::http::headers;
use super::session::{Keys, Session};
use crate::config::Network;
use crate::runtime::http_server::{Body, text};

/// The requests of a session, and its streams. A page is one request, and so is its update: browsers cache style and
/// scripts.
const SESSION: Allowance = Allowance { running: 16, rate: 20, burst: 100 };
/// The requests of an address: `running` is half of the connections.
const ADDRESS: Allowance = Allowance { running: 64, rate: 400, burst: 2_000 };
/// The time until a request above a limit is answered. A connection that repeats the request costs one response in this time.
const LATE: Duration = Duration::from_secs(5);
/// The maximum number of requests that wait for this answer. Above it, they are answered at once.
const MOST_LATE: usize = 4_096;
/// The time after which the client may send the request again, in seconds.
const RETRY: u64 = 5;

/// The limits of a replica.
pub struct Limits {
    proxies: Vec<Network>,
    requests: ByClient,
    streams: ByClient,
    late: Arc<Semaphore>,
}

/// The client of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The id of its session.
    session: Option<String>,
    /// Its address, if it is known.
    address: Option<IpAddr>,
}

/// The requests or the streams by their clients.
struct ByClient {
    sessions: Arc<Clients<String>>,
    addresses: Arc<Clients<IpAddr>>,
}

/// A request or a stream within the limits, until it is dropped.
pub struct Admission {
    _session: Option<Running<String>>,
    _address: Option<Running<IpAddr>>,
}

impl ByClient {
    fn new(address: Allowance) -> Self {
        Self { sessions: Clients::new(SESSION), addresses: Clients::new(address) }
    }

    fn begin(&self, client: &Client) -> Option<Admission> {
        let session = client.session.as_ref().map(|session| self.sessions.begin(session).ok_or(()));
        let session = session.transpose().ok()?;
        let address = client.address.as_ref().map(|address| self.addresses.begin(address).ok_or(()));
        Some(Admission { _session: session, _address: address.transpose().ok()? })
    }
}

impl Limits {
    /// Creates the limits of a replica with these trusted proxies and this maximum number of open pages.
    pub fn new(proxies: &[Network], max_pages: usize) -> Self {
        let streams = Allowance { running: max_pages.div_ceil(2), ..ADDRESS };
        Self {
            proxies: proxies.to_vec(),
            requests: ByClient::new(ADDRESS),
            streams: ByClient::new(streams),
            late: Arc::new(Semaphore::new(MOST_LATE)),
        }
    }

    /// Returns the client of a request from this peer.
    pub fn client(&self, headers: &HeaderMap, peer: Option<IpAddr>, keys: Option<&Keys>) -> Client {
        Client {
            session: keys.and_then(|keys| Session::read(headers, keys)).map(|session| session.id),
            address: peer.and_then(|peer| address::client(peer, headers, &self.proxies)),
        }
    }

    /// Begins a request; `None` above a limit.
    pub fn request(&self, client: &Client) -> Option<Admission> {
        self.requests.begin(client)
    }

    /// Begins a stream; `None` above a limit.
    pub fn stream(&self, client: &Client) -> Option<Admission> {
        self.streams.begin(client)
    }

    /// Returns the response to a request above a limit.
    pub fn refusal(&self) -> Response<Body> {
        let sentence = "too many requests from this browser: wait a few seconds\n";
        let mut answer = headers::protect(text(StatusCode::TOO_MANY_REQUESTS, sentence));
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY));
        let Ok(permit) = Arc::clone(&self.late).try_acquire_owned() else {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return answer.map(Body::from);
        };
        answer.map(|body: Bytes| {
            Body::late(async move {
                sleep(LATE).await;
                drop(permit);
                body
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(session: &str, address: &str) -> Client {
        let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Client {
            session: known(session),
            address: known(address).map(|address| address.parse().expect("an address")),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_and_an_address_have_their_own_limits_and_an_unknown_client_has_none() {
        let limits = Limits::new(&[], 2_000);
        let most = |client: &Client| {
            let running: Vec<_> = (0..5_000).map_while(|_| limits.request(client)).collect();
            running.len()
        };
        assert_eq!(most(&client("one", "")), 16);
        assert_eq!(most(&client("two", "")), 16);
        assert_eq!(most(&client("", "192.0.2.1")), 64);
        assert_eq!(most(&client("", "")), 5_000);
        // The sessions of one address share its limit.
        let sessions: Vec<String> = (0..10).map(|number| format!("session {number}")).collect();
        let of_one = |session: &String| client(session, "192.0.2.2");
        let running: Vec<_> = sessions
            .iter()
            .flat_map(|session| (0..16).filter_map(|_| limits.request(&of_one(session))).collect::<Vec<_>>())
            .collect();
        assert_eq!(running.len(), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_limited_apart_from_requests() {
        let limits = Limits::new(&[], 100);
        let most = |client: &Client| (0..500).map_while(|_| limits.stream(client)).collect::<Vec<_>>().len();
        assert_eq!(most(&client("one", "")), 16);
        assert_eq!(most(&client("", "192.0.2.1")), 50, "half of the pages");
        assert!(limits.request(&client("one", "192.0.2.1")).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_above_a_limit_is_answered_late_unless_too_many_wait() {
        let limits = Limits::new(&[], 1);
        let late: Vec<Response<Body>> = (0..MOST_LATE).map(|_| limits.refusal()).collect();
        assert!(late.iter().all(|answer| matches!(answer.body(), Body::Late(_))));
        let answer = limits.refusal();
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!([&answer.headers()[RETRY_AFTER], &answer.headers()[CONNECTION]], ["5", "close"]);
        assert!(answer.body().whole().starts_with(b"too many requests"));
        drop(late);
        assert!(matches!(limits.refusal().body(), Body::Late(_)), "the others have gone");
    }
}
