//! The HTTP client for all servers outside the cluster: reqwest with our TLS settings, one time limit for a whole
//! exchange, and a limit for the length of responses. Proxies from environment variables are not used, and redirects
//! are not followed, so that a request with a secret goes only to the server that the administrator configured. Only
//! URLs that users choose ([`HttpClient::for_any_url`]) may redirect, and only on the same host. Requests to them
//! carry no secret of the daemon.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION};
use http::{StatusCode, Uri};
use kube::client::ConfigExt;
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response};
use tracing::warn;

use super::addresses::AddressRules;
use crate::config::file::{self, FileError};
use crate::runtime::cause::Cause;
use crate::runtime::certificate::pem::certificates;
use crate::runtime::client::USER_AGENT;
use crate::runtime::error::with_sources;

/// The limit for a response from a URL that a user has chosen, in bytes. The expected object has three short members.
const LONGEST_ANSWER: usize = 64 << 10;
/// The limit for redirects from a URL that a user has chosen.
const MOST_REDIRECTS: usize = 10;
/// The limit for idle connections. It is shorter than on servers and proxies (60 s and more), so that a connection is
/// not used while the other side closes it.
const IDLE: Duration = Duration::from_secs(30);

/// A pool of connections. Clones share it.
#[derive(Debug, Clone)]
pub struct HttpClient {
    /// The underlying client, to build requests for [`HttpClient::send`] or for a crate that sends requests itself.
    pub client: Client,
    timeout: Duration,
    /// The limit for a response in bytes.
    longest: usize,
}

/// A response with its complete body.
#[derive(Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The `Location` header.
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The reason why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The server cannot be reached, or the connection was interrupted.
    #[error("{0}")]
    NoAnswer(String),
    /// The request timed out.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The response is longer than the limit.
    #[error("the answer is longer than {}", size(*.0))]
    TooLong(usize),
    /// The server redirects to a URL that must not be requested.
    #[error("{0}")]
    Redirect(String),
}

/// The reason why a client cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file with the certificates of the certificate authorities cannot be used.
    #[error("{} cannot be used: {problem}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// The problem, with the remedy.
        problem: String,
    },
    /// The system has no certificate authorities to verify a certificate.
    #[error("this system has no CA certificates; set caFile: {0}")]
    NoPlatformRoots(kube::Error),
    /// reqwest rejects the settings.
    #[error("the HTTP client cannot be created: {0}")]
    Client(#[from] reqwest::Error),
}

impl HttpClient {
    /// A client of the server at `url`. The authorities in `ca_file`, or those of the platform if it is empty, verify the
    /// server's certificate. An exchange may take `timeout` from its
    /// first byte to the last byte of the response. A response may have up to `longest` bytes.
    ///
    /// # Errors
    /// When the certificates of the authorities cannot be read.
    pub fn new(url: &Uri, ca_file: &str, timeout: Duration, longest: usize) -> Result<Self, SetupError> {
        let tls = tls_config(url, ca_file)?;
        let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let client = builder(tls, timeout).default_headers(accept).redirect(Policy::none()).build()?;
        Ok(Self { client, timeout, longest })
    }

    /// A client for URLs that users choose, with `http` or `https`. Names are resolved by `rules`. Callers must check
    /// a URL with an IP address first ([`AddressRules::check`]). The client follows up to ten redirects to URLs of
    /// the same host, and reads responses of at most 64 KiB. Certificates are verified as in
    /// [`HttpClient::new`]. If the platform has no certificate authorities, no certificate is valid.
    ///
    /// # Errors
    /// When the certificates of the authorities cannot be read.
    pub fn for_any_url(ca_file: &str, timeout: Duration, rules: AddressRules) -> Result<Self, SetupError> {
        let tls = match tls_config(&Uri::from_static("https://localhost"), ca_file) {
            Err(SetupError::NoPlatformRoots(error)) => {
                let error = with_sources(&error);
                warn!(
                    error,
                    "this system has no CA certificates: certificates of https URLs cannot be verified"
                );
                tls_config(&Uri::from_static("http://localhost"), "")?
            }
            tls => tls?,
        };
        // Without `Referer`, because the query of the URL may contain a secret.
        let builder = builder(tls, timeout).referer(false).redirect(Policy::custom(follow));
        let client = builder.dns_resolver(Arc::new(rules)).build()?;
        Ok(Self { client, timeout, longest: LONGEST_ANSWER })
    }

    /// Sends a request and reads the response, whatever its status.
    pub async fn send(&self, request: RequestBuilder) -> Result<Answer, HttpError> {
        let response = self.begin(request).await?;
        let mut answer = Answer::without_body(&response);
        answer.body = self.body(response).await?;
        Ok(answer)
    }

    /// Sends a request and reads the head of the response, whatever its status.
    pub async fn begin(&self, request: RequestBuilder) -> Result<Response, HttpError> {
        request.send().await.map_err(|error| self.error(error))
    }

    /// Reads the body of a response.
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

    /// Maps an error of reqwest. Its own text is left out, because it repeats the URL, which may contain the name of
    /// a user. Its sources have the cause.
    pub fn error(&self, error: reqwest::Error) -> HttpError {
        if error.is_timeout() {
            return HttpError::Timeout(self.timeout);
        }
        let is_redirect = error.is_redirect();
        let error = error.without_url();
        if is_redirect {
            return HttpError::Redirect(error.source().map_or_else(|| error.to_string(), with_sources));
        }
        let cause = error.source().map(Cause::of);
        HttpError::NoAnswer(cause.map_or_else(|| error.to_string(), |cause| cause.with_remedy("caFile")))
    }
}

/// Whether a redirect from a URL that a user has chosen is followed. It must stay on the same host, whose address was
/// checked.
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

/// Formats a number of bytes.
fn size(bytes: usize) -> String {
    let (kibibytes, mebibytes) = (bytes >> 10, bytes >> 20);
    if mebibytes > 0 { format!("{mebibytes} MiB") } else { format!("{kibibytes} KiB") }
}

/// The TLS settings. Certificates are verified against the authorities in `ca_file`. Without it, URLs with `https`
/// use the authorities of the platform, and other URLs use none.
fn tls_config(url: &Uri, ca_file: &str) -> Result<rustls::ClientConfig, SetupError> {
    let ca_file = (!ca_file.is_empty()).then(|| PathBuf::from(ca_file));
    let mut config = kube::Config::new(url.clone());
    // The authorities of the platform are read only if they are needed, because a plain container image has none.
    if ca_file.is_some() || url.scheme() != Some(&http::uri::Scheme::HTTPS) {
        config.root_cert = Some(Vec::new());
    }
    // kube's verifier is used because it reads the file again every minute, unlike reqwest's own.
    config.root_cert_file.clone_from(&ca_file);
    if let Some(path) = &ca_file {
        check_authorities(path).map_err(|problem| SetupError::CaFile { path: path.clone(), problem })?;
    }
    config.rustls_client_config().map_err(|source| match ca_file {
        Some(path) => SetupError::CaFile { path, problem: with_sources(&source) },
        None => SetupError::NoPlatformRoots(source),
    })
}

/// Checks a file with the certificates of authorities. The error is a sentence with the remedy.
///
/// # Errors
/// When the file cannot be read, or has no certificate.
pub fn check_authorities(path: &Path) -> Result<(), String> {
    let content = file::read(path).map_err(|error| error.to_string())?;
    if content.is_empty() {
        return Err(FileError::Empty.to_string());
    }
    // PEM itself is ASCII, and the text around it may have any other encoding. A file that begins with 0x30 is in DER.
    if content.first() != Some(&0x30) && file::text(&content) == Err(FileError::Utf16) {
        return Err(FileError::Utf16.to_string());
    }
    let remedy = "expected the certificates of the authorities, in PEM";
    certificates("it", &content).map(drop).map_err(|error| format!("{error}; {remedy}"))
}

/// The settings that all clients share.
fn builder(tls: rustls::ClientConfig, timeout: Duration) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(USER_AGENT)
        .no_proxy()
        .pool_idle_timeout(IDLE)
        .timeout(timeout)
}

impl Answer {
    /// The status and location of a response. The body is not read.
    pub fn without_body(response: &Response) -> Self {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        Self { status: response.status(), location: location.map(str::to_owned), body: Vec::new() }
    }

    /// Whether the server is temporarily unavailable (408, 429, 5xx).
    pub fn is_unavailable(&self) -> bool {
        let later = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
        self.status.is_server_error() || later.contains(&self.status)
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
                // The client does not trust the certificate and aborts the handshake.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = [0; 1_024];
                let length = stream.read(&mut request).await.unwrap();
                let text = String::from_utf8_lossy(&request[..length]).into_owned();
                let answer = format!("HTTP/1.1 418 \r\ncontent-length: {length}\r\n\r\n{text}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let client = |name| {
            let file = folder.path().join(name).display().to_string();
            HttpClient::new(&url.parse().unwrap(), &file, Duration::from_secs(10), 1_024).unwrap()
        };
        let (ours, other) = (client("ours"), client("other"));
        let answer = ours.send(ours.client.get(&url)).await.unwrap();
        assert_eq!(answer.status, StatusCode::IM_A_TEAPOT);
        let request = String::from_utf8(answer.body).unwrap();
        assert!(request.contains(&format!("user-agent: {USER_AGENT}\r\n")), "{request}");
        let error = other.send(other.client.get(&url)).await.err().unwrap().to_string();
        assert!(error.starts_with("its certificate is from an unknown authority"), "{error}");
        assert!(
            error.ends_with("); caFile must contain the certificate of its authority, in PEM"),
            "{error}"
        );
    }

    #[test]
    fn a_file_of_authorities_without_a_certificate_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.crt");
        let refused = |content: Option<&[u8]>| {
            if let Some(content) = content {
                std::fs::write(&file, content).unwrap();
            }
            check_authorities(&file)
        };
        assert_eq!(refused(None), Err(FileError::Missing.to_string()));
        assert_eq!(refused(Some(&b""[..])), Err(FileError::Empty.to_string()));
        assert_eq!(refused(Some(&b"-\0-\0"[..])), Err(FileError::Utf16.to_string()));
        let made = rcgen::generate_simple_self_signed(["a.example.org".to_owned()]).unwrap();
        let key = made.signing_key.serialize_pem();
        let missing = "it has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----; expected the certificates of \
                       the authorities, in PEM";
        for content in [key.as_bytes(), made.cert.der().as_ref(), &b"nonsense"[..]] {
            assert_eq!(refused(Some(content)), Err(missing.to_owned()));
        }
        let text = format!("autorit\u{e9}\n{}", made.cert.pem());
        assert_eq!(refused(Some(text.as_bytes())), Ok(()));
        let error = HttpClient::new(
            &Uri::from_static("https://a.example.org"),
            "/does/not/exist",
            Duration::from_secs(1),
            1,
        );
        let expected = format!("/does/not/exist cannot be used: {}", FileError::NoFolder);
        assert_eq!(error.err().unwrap().to_string(), expected);
    }
}
