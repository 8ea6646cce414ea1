//! Requests to one server of the outside world: TLS against the platform's authorities or those of a
//! file, a time limit, and answers of bounded length. Redirects are not followed: a request with a
//! secret goes only where the administrator said.

use std::path::PathBuf;
use std::time::Duration;

use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt};

use crate::runtime::client::USER_AGENT;
use crate::runtime::error::with_sources;

/// No answer that we ask for comes near this.
const LONGEST_ANSWER: usize = 4 << 20;
/// Shorter than servers and proxies keep an idle connection (60 s and more), so that none is used
/// just as the other side closes it.
const IDLE: Duration = Duration::from_secs(30);

/// A pool of connections to one server. Clones share it.
#[derive(Clone)]
pub struct HttpClient {
    pool: BoxCloneSyncService<Request<Full<Bytes>>, Response<Incoming>, BoxError>,
    timeout: Duration,
}

/// An answer, whole.
#[derive(Clone)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its `Location` header.
    pub location: Option<String>,
    /// Its body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The server cannot be reached, or breaks the connection.
    #[error("{0}")]
    NoAnswer(String),
    /// The server takes too long.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The answer is longer than any that was asked for.
    #[error("the answer is longer than 4 MiB")]
    TooLong,
}

/// Why requests cannot be made at all.
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
}

impl HttpClient {
    /// Connections to the server of `url`, whose certificate is checked against the authorities in
    /// `ca_file`, else against those of the platform. An exchange may take `timeout` in all.
    ///
    /// # Errors
    /// When the authorities' certificates cannot be read.
    pub fn new(url: &Uri, ca_file: Option<PathBuf>, timeout: Duration) -> Result<Self, SetupError> {
        let mut config = kube::Config::new(url.clone());
        // Those of the platform are read only where they are needed: a plain image has none.
        if ca_file.is_some() || url.scheme() != Some(&http::uri::Scheme::HTTPS) {
            config.root_cert = Some(Vec::new());
        }
        // Read again once a minute by the verifier.
        config.root_cert_file.clone_from(&ca_file);
        let connector = config.rustls_https_connector().map_err(|source| match ca_file {
            Some(path) => SetupError::CaFile { path, source },
            None => SetupError::NoPlatformRoots(source),
        })?;
        let pool = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self { pool: BoxCloneSyncService::new(pool.map_err(BoxError::from)), timeout })
    }

    /// Sends a request and reads its answer, whatever its status.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Answer, HttpError> {
        match tokio::time::timeout(self.timeout, self.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::Timeout(self.timeout)),
        }
    }

    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<Answer, HttpError> {
        let name = header::HeaderValue::from_static(USER_AGENT);
        request.headers_mut().insert(header::USER_AGENT, name);
        let response = self.pool.clone().oneshot(request).await.map_err(|error| no_answer(&error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER).collect().await.map_err(|error| no_answer(&error))?;
        let location = head.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        Ok(Answer { status: head.status, location: location.map(str::to_owned), body: body.to_bytes() })
    }
}

fn no_answer(error: &BoxError) -> HttpError {
    if error.is::<LengthLimitError>() {
        return HttpError::TooLong;
    }
    HttpError::NoAnswer(with_sources(&**error))
}
