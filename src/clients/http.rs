//! The HTTP client for every server outside of the cluster: reqwest with our TLS, one time limit for a
//! whole exchange and answers of bounded length. The proxies of the environment are not used, and redirects are
//! not followed: a request with a secret goes only to the server that the administrator configured. Redirects are
//! followed only from URLs that are chosen by users ([`HttpClient::for_any_url`]), which carry no secret of ours, and only
//! on the same host.

use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION};
use http::{StatusCode, Uri};
use kube::client::ConfigExt;
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response};
use tracing::warn;

use super::addresses::AddressRules;
use crate::runtime::client::USER_AGENT;
use crate::runtime::error::with_sources;

/// No answer of a server that the administrator configured comes near this length, in bytes.
const LONGEST_ANSWER: usize = 4 << 20;
/// How many redirects are followed from a URL that a user has chosen.
const MOST_REDIRECTS: usize = 10;
/// Shorter than servers and proxies keep an idle connection (60 s and more), so that no connection is
/// used just as the other side closes it.
const IDLE: Duration = Duration::from_secs(30);

/// A pool of connections. Clones share it.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client,
    timeout: Duration,
    /// The longest answer, in bytes.
    longest: usize,
}

/// An answer, read to its end.
#[derive(Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The `Location` header.
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The server cannot be reached, or breaks the connection.
    #[error("{0}")]
    NoAnswer(String),
    /// The server takes longer than the time limit.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The answer is longer than any that was asked for.
    #[error("the answer is longer than {}", size(*.0))]
    TooLong(usize),
    /// The server redirects to where the request must not go.
    #[error("{0}")]
    Redirect(String),
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file with the authorities' certificates cannot be used.
    #[error("the certificates of {} cannot be used: {source}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: kube::Error,
    },
    /// There are no authorities to check a certificate against.
    #[error("this system has no certificates of authorities; give caFile: {0}")]
    NoPlatformRoots(kube::Error),
    /// reqwest refuses these settings.
    #[error("there is no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

impl HttpClient {
    /// A client of the server at `url`, whose certificate is checked against the authorities in
    /// `ca_file`, else against those of the platform. An exchange may take `timeout` from its first byte
    /// to the last of the answer.
    ///
    /// # Errors
    /// When the authorities' certificates cannot be read.
    pub fn new(url: &Uri, ca_file: Option<PathBuf>, timeout: Duration) -> Result<Self, SetupError> {
        let tls = tls_config(url, ca_file)?;
        let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let client = builder(tls, timeout).default_headers(accept).redirect(Policy::none()).build()?;
        Ok(Self { client, timeout, longest: LONGEST_ANSWER })
    }

    /// A client for URLs that users choose, with `http` or `https`: names are resolved by `rules`, by which a URL with an
    /// address has to be checked before ([`AddressRules::check`]). It follows up to ten redirects to URLs of the same host,
    /// and reads answers of at most `longest` bytes. Certificates are checked as in [`HttpClient::new`]; where the
    /// platform has no authorities, no certificate is valid.
    ///
    /// # Errors
    /// When the authorities' certificates cannot be read.
    pub fn for_any_url(
        ca_file: Option<PathBuf>,
        timeout: Duration,
        longest: usize,
        rules: AddressRules,
    ) -> Result<Self, SetupError> {
        let tls = match tls_config(&Uri::from_static("https://localhost"), ca_file) {
            Err(SetupError::NoPlatformRoots(error)) => {
                let error = with_sources(&error);
                warn!(
                    error,
                    "this system has no certificates of authorities: URLs with https cannot be checked"
                );
                tls_config(&Uri::from_static("http://localhost"), None)?
            }
            tls => tls?,
        };
        // Without `Referer`, because the query of the URL may contain a secret.
        let builder = builder(tls, timeout).referer(false).redirect(Policy::custom(follow));
        let client = builder.dns_resolver(Arc::new(rules)).build()?;
        Ok(Self { client, timeout, longest })
    }

    /// The same client for answers of at most `longest` bytes.
    #[must_use]
    pub fn with_longest_answer(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    /// The client to make a request with, for [`HttpClient::send`] or for a crate that sends by itself.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request and reads its answer, whatever its status.
    pub async fn send(&self, request: RequestBuilder) -> Result<Answer, HttpError> {
        let response = self.begin(request).await?;
        let mut answer = Answer::without_body(&response);
        answer.body = self.body(response).await?;
        Ok(answer)
    }

    /// Sends a request and reads the head of its answer, whatever its status.
    pub async fn begin(&self, request: RequestBuilder) -> Result<Response, HttpError> {
        request.send().await.map_err(|error| self.error(error))
    }

    /// Reads the body of an answer.
    pub async fn body(&self, mut response: Response) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.error(error))? {
            if body.len() + chunk.len() > self.longest {
                return Err(HttpError::TooLong(self.longest));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// What an error of reqwest means. Its own words are left out, because they repeat the URL, in which
    /// a person may be named; its sources say what happened.
    pub fn error(&self, error: reqwest::Error) -> HttpError {
        if error.is_timeout() {
            return HttpError::Timeout(self.timeout);
        }
        let is_redirect = error.is_redirect();
        let error = error.without_url();
        let words = error.source().map_or_else(|| error.to_string(), with_sources);
        if is_redirect { HttpError::Redirect(words) } else { HttpError::NoAnswer(words) }
    }
}

/// Whether a redirect from a URL that a user has chosen is followed. The host stays the same, so its address is one that
/// was checked.
fn follow(attempt: Attempt<'_>) -> Action {
    let is_same_host = attempt.previous().last().is_some_and(|last| last.host() == attempt.url().host());
    if attempt.previous().len() > MOST_REDIRECTS {
        attempt.error(format!("it redirects more than {MOST_REDIRECTS} times"))
    } else if !matches!(attempt.url().scheme(), "http" | "https") {
        attempt.error("it redirects to a URL that is neither http nor https")
    } else if !is_same_host {
        attempt.error("it redirects to another host")
    } else {
        attempt.follow()
    }
}

/// A number of bytes as text.
fn size(bytes: usize) -> String {
    let (kibibytes, mebibytes) = (bytes >> 10, bytes >> 20);
    if mebibytes > 0 { format!("{mebibytes} MiB") } else { format!("{kibibytes} KiB") }
}

/// How certificates are checked: against the authorities in `ca_file`, else, for a URL with `https`, against those of the
/// platform, else against none.
fn tls_config(url: &Uri, ca_file: Option<PathBuf>) -> Result<rustls::ClientConfig, SetupError> {
    let mut config = kube::Config::new(url.clone());
    // The platform's are read only where they are needed: a plain container image has none.
    if ca_file.is_some() || url.scheme() != Some(&http::uri::Scheme::HTTPS) {
        config.root_cert = Some(Vec::new());
    }
    // kube's verifier, because it reads the file again once a minute; reqwest's own never does.
    config.root_cert_file.clone_from(&ca_file);
    config.rustls_client_config().map_err(|source| match ca_file {
        Some(path) => SetupError::CaFile { path, source },
        None => SetupError::NoPlatformRoots(source),
    })
}

/// What all clients have in common.
fn builder(tls: rustls::ClientConfig, timeout: Duration) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(USER_AGENT)
        .no_proxy()
        .pool_idle_timeout(IDLE)
        .timeout(timeout)
}

impl Answer {
    /// Status and location of a response, whose body is not read.
    pub fn without_body(response: &Response) -> Self {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        Self { status: response.status(), location: location.map(str::to_owned), body: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::ServerConfig;
    use rustls::crypto::ring::default_provider;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    #[tokio::test]
    async fn the_certificate_is_checked_against_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, other] = ["ours", "other"].map(|name| {
            let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
            std::fs::write(folder.path().join(name), made.cert.pem()).unwrap();
            made
        });
        drop(other);
        let key = ours.signing_key.serialize_der().try_into().unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![ours.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // The client that does not know the certificate ends the handshake.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = [0; 1_024];
                let length = stream.read(&mut request).await.unwrap();
                let text = String::from_utf8_lossy(&request[..length]).into_owned();
                let answer = format!("HTTP/1.1 418 \r\ncontent-length: {length}\r\n\r\n{text}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let client = |name| {
            let file = Some(folder.path().join(name));
            HttpClient::new(&url.parse().unwrap(), file, Duration::from_secs(10)).unwrap()
        };
        let (ours, other) = (client("ours"), client("other"));
        let answer = ours.send(ours.client().get(&url)).await.unwrap();
        assert_eq!(answer.status, StatusCode::IM_A_TEAPOT);
        let request = String::from_utf8(answer.body).unwrap();
        assert!(request.contains(&format!("user-agent: {USER_AGENT}\r\n")), "{request}");
        let error = other.send(other.client().get(&url)).await.err().unwrap().to_string();
        assert!(error.contains("invalid peer certificate"), "{error}");
    }
}
