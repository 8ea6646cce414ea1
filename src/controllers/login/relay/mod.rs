//! The relay of peers: passes their requests on to the web interfaces of machines that their owners share.
//!
//! A gateway asks the login about a request only when it begins, so it keeps an open `WebSocket` of a user whose right has
//! ended. Each peer therefore has a host of their own for each machine, and all of its requests pass this relay, which checks
//! the right again every five seconds.
//!
//! | file | contents |
//! |---|---|
//! | `head.rs` | the heads of requests and responses, without the cookies of the login |
//! | `serve.rs` | the connections of gateways: one request for each, and its end |
//! | `activity.rs` | the time of the last activity of a connection |
//! | `users.rs` | the number of requests of each user |

mod activity;
mod head;
mod serve;
mod users;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONNECTION;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::{debug, info};

use self::activity::Watched;
use self::serve::Exchange;
use self::users::Users;
use super::answer::{denied, redirect};
use super::door::{Door, Guest, Visit};
use super::machines::Gui;
use crate::api::connection::Relation;
use crate::api::openings::Way;
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::controllers::shared::connections::Connections;
use crate::runtime::clock;
use crate::runtime::error::with_sources;
use crate::runtime::http_server::text;

/// The time limit of a connection to a machine.
const CONNECT: Duration = Duration::from_secs(10);
/// The maximum number of unread bytes that a connection buffers.
const BUFFER: usize = 32 << 10;

/// The body of a response.
type Content = UnsyncBoxBody<Bytes, hyper::Error>;

/// Passes requests of peers on to machines.
pub struct Relay {
    door: Arc<Door>,
    addresses: InstanceAddresses,
    /// The record of open desktops.
    connections: Arc<Connections>,
    users: Users,
}

impl Relay {
    /// Creates a relay for the machines of a login.
    pub fn new(door: Arc<Door>, addresses: InstanceAddresses, connections: Arc<Connections>) -> Self {
        Self { door, addresses, connections, users: Users::default() }
    }

    /// Returns the response to the request of a connection.
    async fn answer(&self, mut request: Request<Incoming>, exchange: &Exchange) -> Response<Content> {
        let upgrade = head::is_web_socket(&request).then(|| on(&mut request));
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head, ());
        match self.door.visit(&request, clock::now()).await {
            Visit::Answered(answer) => whole(answer),
            Visit::Allowed(guest) => self.forward(request, body, upgrade, &guest, exchange).await,
        }
    }

    /// Passes a request on.
    async fn forward(
        &self,
        request: Request<()>,
        body: Incoming,
        upgrade: Option<OnUpgrade>,
        guest: &Guest,
        exchange: &Exchange,
    ) -> Response<Content> {
        let Some(gui) = self.door.machines.gui(&guest.label, &self.addresses) else {
            return no_answer();
        };
        let requested = request.uri().path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        let target = gui.target(&requested);
        let sent = target.and_then(|target| head::to_machine(request, &target, upgrade.is_some()));
        let Some(sent) = sent else { return whole(elsewhere(&gui, &requested)) };
        let Some(entered) = self.users.enter(&guest.pass.user) else {
            let message = "You have too many open requests to this machine.\n";
            return whole(text(StatusCode::TOO_MANY_REQUESTS, message));
        };
        exchange.enter(guest.clone(), entered);
        let mut answer = match send(gui.address, sent.map(|()| body), exchange).await {
            Ok(answer) => answer,
            Err(why) => {
                debug!(instance = %gui.host.instance, why, "a machine did not answer a peer");
                return no_answer();
            }
        };
        let is_switching = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
        let headers = head::to_browser(answer.headers(), is_switching);
        if !is_switching {
            let (mut head, body) = answer.into_parts();
            (head.version, head.headers) = (Version::HTTP_11, headers);
            return Response::from_parts(head, body.boxed_unsync());
        }
        let Some(browser) = upgrade.filter(|_| head::is_upgrade(answer.headers())) else {
            return no_answer();
        };
        let (host, user) = (&gui.host, &guest.pass.user);
        let recorded =
            self.connections.begin(&host.instance, &host.environment, user, (Relation::Peer, Way::Web));
        exchange.open((browser, on(&mut answer)), recorded);
        info!(user, instance = %host.instance, "a peer opened a desktop");
        let mut switched =
            Response::new(Empty::<Bytes>::new().map_err(|never| match never {}).boxed_unsync());
        (*switched.status_mut(), *switched.headers_mut()) = (StatusCode::SWITCHING_PROTOCOLS, headers);
        switched
    }
}

/// Sends a request to a machine. The exchange drives its connection.
async fn send(
    address: SocketAddr,
    request: Request<Incoming>,
    exchange: &Exchange,
) -> Result<Response<Incoming>, String> {
    let stream = timeout(CONNECT, TcpStream::connect(address)).await;
    let stream = stream.map_err(|_| format!("no connection to {address} within {CONNECT:?}"))?;
    let stream = stream.map_err(|error| format!("no connection to {address}: {error}"))?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let io = TokioIo::new(Watched::new(stream, exchange.activity()));
    let client = http1::Builder::new().max_buf_size(BUFFER).handshake::<_, Incoming>(io).await;
    let (mut sender, connection) = client.map_err(|error| with_sources(&error))?;
    exchange.drive(async move {
        if let Err(error) = connection.with_upgrades().await {
            debug!(%error, "a connection to a machine ended early");
        }
    });
    sender.send_request(request).await.map_err(|error| with_sources(&error))
}

/// The response to a path outside of the web interface.
fn elsewhere(gui: &Gui, requested: &str) -> Response<Bytes> {
    let path = requested.split('?').next().unwrap_or_default();
    match gui.page() {
        Some(page) if path == "/" || page.strip_suffix('/') == Some(path) => redirect(&page),
        Some(_) => text(StatusCode::NOT_FOUND, "The machine has no such page.\n"),
        None => denied(),
    }
}

fn no_answer() -> Response<Content> {
    whole(text(StatusCode::BAD_GATEWAY, "The machine does not answer. It may be off, or still starting.\n"))
}

/// A response of the relay itself. It is the last one of its connection.
fn whole(answer: Response<Bytes>) -> Response<Content> {
    let mut answer = answer.map(|bytes| Full::new(bytes).map_err(|never| match never {}).boxed_unsync());
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
