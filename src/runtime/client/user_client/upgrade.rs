//! Requests of a user that continue in another protocol, such as the screen of a virtual machine. They have a connection of
//! their own, which offers HTTP/1.1 only: HTTP/2 has no upgrades.

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::HOST;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::Config;
use kube::client::ConfigExt;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower::{BoxError, service_fn};
use tracing::debug;

use super::breaker::Effect;
use super::{Credential, TIMEOUT, UserClient};
use crate::runtime::client::{LATE, Sender, prepared};
use crate::runtime::error::{ApiError, with_sources};

/// The only protocol that the TLS handshake offers.
const PROTOCOL: &[u8] = b"http/1.1";
/// The longest head of a response, in bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// The number of characters of a refusal that are kept.
const MOST_OF_REFUSAL: usize = 500;

/// The answer to a request that asks for another protocol.
#[derive(Debug)]
pub enum Upgrade {
    /// The connection continues in the protocol: the headers of the response, and the connection.
    Open(HeaderMap, Upgraded),
    /// The request is refused, with this status code and message.
    Refused(StatusCode, String),
}

impl UserClient {
    /// Sends a GET request whose headers ask for another protocol. The request has no further headers except for the
    /// credential, and the response is awaited for ten seconds.
    ///
    /// # Errors
    /// If there is no response.
    pub async fn upgrade(
        &self,
        user: &Credential,
        path: &str,
        headers: HeaderMap,
    ) -> Result<Upgrade, ApiError> {
        let uri: Uri = path.parse().map_err(|_| ApiError::Invalid(format!("{path} is not a path")))?;
        let mut request = Request::new(Full::new(Bytes::new()));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (Method::GET, uri, headers);
        request.headers_mut().extend(user.headers.clone());
        let sender = if user.is_of_account { self.account_upgrades.as_ref() } else { Some(&self.upgrades) };
        let no_sender = || ApiError::Forbidden("this client does not support impersonation".to_owned());
        let asked = Box::pin(sender.ok_or_else(no_sender)?.upgrade(request));
        self.breaker.pass(Effect::Read, asked).await
    }
}

impl Sender {
    /// Creates a sender whose requests have a connection each.
    pub(super) fn of_upgrades(config: Config) -> kube::Result<Self> {
        let config = prepared(config);
        let mut tls = config.rustls_client_config()?;
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let dialer = Arc::new(Dialer { tls: Arc::new(tls), server_name: config.tls_server_name.clone() });
        let dial = move |request| -> BoxFuture<'static, Result<Response<Incoming>, BoxError>> {
            let dialer = Arc::clone(&dialer);
            async move { dialer.exchange(request).await }.boxed()
        };
        Self::through(&config, service_fn(dial))
    }

    /// Sends a request, and returns its answer.
    async fn upgrade(&self, request: Request<Full<Bytes>>) -> Result<Upgrade, ApiError> {
        let begin = Instant::now();
        let answered = async {
            let mut answer = self.begin(request).await?;
            if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                let refused = self.read(answer).await?;
                let message: String =
                    String::from_utf8_lossy(&refused.body).trim().chars().take(MOST_OF_REFUSAL).collect();
                return Ok(Upgrade::Refused(refused.code, message));
            }
            let headers = std::mem::take(answer.headers_mut());
            Ok::<_, BoxError>(Upgrade::Open(headers, hyper::upgrade::on(&mut answer).await?))
        };
        let answer: Result<Upgrade, BoxError> =
            timeout(TIMEOUT, answered).await.unwrap_or_else(|_| Err(LATE.into()));
        let code = answer.as_ref().ok().map(|answer| match answer {
            Upgrade::Open(..) => StatusCode::SWITCHING_PROTOCOLS.as_u16(),
            Upgrade::Refused(code, _) => code.as_u16(),
        });
        self.metrics.count(&Method::GET, code, begin.elapsed());
        answer.map_err(|error| ApiError::transient(with_sources(&*error)))
    }
}

/// Opens a connection for each request.
struct Dialer {
    tls: Arc<ClientConfig>,
    /// The name in the certificate of the API server, if it is not the host of the URL.
    server_name: Option<String>,
}

impl Dialer {
    /// Sends a request with a complete URL.
    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, BoxError> {
        let uri = std::mem::take(request.uri_mut());
        let (Some(authority), Some(target)) = (uri.authority(), uri.path_and_query()) else {
            return Err("the URL of the API server has no host".into());
        };
        request.headers_mut().insert(HOST, HeaderValue::try_from(authority.as_str())?);
        *request.uri_mut() = target.clone().into();
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, port)).await?;
        // A key press must not wait for the next one.
        stream.set_nodelay(true)?;
        if !is_tls {
            return send(stream, request).await;
        }
        let name = self.server_name.as_deref().unwrap_or(host).to_owned();
        let tls = TlsConnector::from(Arc::clone(&self.tls));
        send(tls.connect(ServerName::try_from(name)?, stream).await?, request).await
    }
}

/// Sends a request on a connection, which lasts until its end in a task of its own.
async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, BoxError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(LONGEST_HEAD).handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            debug!(%error, "a connection to the API server ended early");
        }
    });
    Ok(sender.send_request(request).await?)
}

#[cfg(test)]
mod unit_tests {
    use http::header::{CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
    use rustls::ServerConfig;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::runtime::certificate::pem::provider;

    /// Returns the client of a server that prefers HTTP/2, sends this answer, and then returns all bytes that it gets. The
    /// other end of the channel gets the heads of the requests.
    async fn client(answer: &'static str) -> (UserClient, tokio::sync::mpsc::UnboundedReceiver<String>) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = made.signing_key.serialize_der().try_into().expect("a key");
        let mut server = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a certificate");
        server.alpn_protocols = vec![b"h2".to_vec(), PROTOCOL.to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(server));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        let (asked, heads) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = acceptor.accept(stream).await.expect("a handshake");
                assert_eq!(stream.get_ref().1.alpn_protocol(), Some(PROTOCOL));
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a head"));
                }
                asked.send(String::from_utf8(head).expect("text")).expect("the test waits");
                stream.write_all(answer.as_bytes()).await.expect("sent");
                let (mut reader, mut writer) = tokio::io::split(stream);
                // The client closes the connection.
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
            }
        });
        let mut config = Config::new(url.parse().expect("a URL"));
        config.root_cert = Some(vec![made.cert.der().to_vec()]);
        (UserClient::new(&config).expect("a client"), heads)
    }

    fn asks() -> HeaderMap {
        let header = |name, value| (name, HeaderValue::from_static(value));
        HeaderMap::from_iter([
            header(CONNECTION, "Upgrade"),
            header(UPGRADE, "websocket"),
            header(SEC_WEBSOCKET_PROTOCOL, "plain.kubevirt.io"),
        ])
    }

    #[tokio::test]
    async fn a_request_of_a_user_continues_in_the_other_protocol() {
        let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                      sec-websocket-protocol: plain.kubevirt.io\r\n\r\nRFB";
        let (client, mut heads) = client(answer).await;
        let user = Credential::token("token").expect("a token");
        let opened = client.upgrade(&user, "/apis/x?preserveSession=true", asks()).await.expect("an answer");
        let Upgrade::Open(headers, connection) = opened else { panic!("{opened:?}") };
        assert_eq!(headers[SEC_WEBSOCKET_PROTOCOL], "plain.kubevirt.io");
        let mut connection = TokioIo::new(connection);
        connection.write_all(b" 003.008").await.expect("sent");
        let mut bytes = [0; 11];
        connection.read_exact(&mut bytes).await.expect("an echo");
        assert_eq!(&bytes, b"RFB 003.008", "with the bytes that came with the head");
        let head = heads.recv().await.expect("a request");
        let mut lines: Vec<&str> = head.trim_end().split("\r\n").collect();
        assert_eq!(lines.remove(0), "GET /apis/x?preserveSession=true HTTP/1.1");
        let mut names: Vec<&str> = lines.iter().filter_map(|line| Some(line.split_once(':')?.0)).collect();
        names.sort_unstable();
        let expected =
            ["authorization", "connection", "host", "sec-websocket-protocol", "upgrade", "user-agent"];
        assert_eq!(names, expected, "{head}");
        assert!(lines.contains(&"authorization: Bearer token"), "{head}");
    }

    #[tokio::test]
    async fn a_refusal_has_its_code_and_its_message() {
        let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 22\r\n\r\nActive VNC connection.";
        let (client, _heads) = client(answer).await;
        let user = Credential::token("token").expect("a token");
        let opened = client.upgrade(&user, "/apis/x", asks()).await.expect("an answer");
        let Upgrade::Refused(code, message) = opened else { panic!("{opened:?}") };
        assert_eq!((code.as_u16(), message.as_str()), (503, "Active VNC connection."));
    }

    #[tokio::test]
    async fn an_impersonated_user_needs_a_client_that_impersonates() {
        let (client, _heads) = client("").await;
        let user = Credential::impersonated("ada", &[]).expect("a user");
        let error = client.upgrade(&user, "/apis/x", asks()).await.expect_err("no sender");
        assert!(matches!(error, ApiError::Forbidden(_)), "{error}");
    }
}
