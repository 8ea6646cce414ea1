//! Requests without a response: the URL of the API server, the cause, and the remedy.

use std::sync::Arc;

use hyper_util::client::legacy;
use tower::BoxError;

use super::REQUEST_TIMEOUT;
use crate::runtime::cause::Cause;
use crate::runtime::error::with_sources;

/// The setting with the certificates of the authorities of the API server, for messages.
const AUTHORITY: &str = "certificate-authority in the kubeconfig";

/// The error of a request without a response.
#[derive(Debug, thiserror::Error)]
#[error("the API server {url} cannot be reached: {why}")]
pub struct Unreachable {
    url: Arc<str>,
    /// The cause and the remedy.
    why: String,
}

impl Unreachable {
    /// The error of a request that took longer than [`REQUEST_TIMEOUT`].
    pub(super) fn late(url: &Arc<str>) -> BoxError {
        let seconds = REQUEST_TIMEOUT.as_secs();
        let why = format!("no answer within {seconds} s; check the network, and the load of the API server");
        Box::new(Self { url: Arc::clone(url), why })
    }

    /// Adds the URL and the remedy to the error of a failed connection. Other errors stay as they are.
    pub(super) fn named(url: &Arc<str>, error: BoxError) -> BoxError {
        if !error.is::<legacy::Error>() {
            return error;
        }
        let why = Cause::of(&*error).with_remedy(AUTHORITY);
        Box::new(Self { url: Arc::clone(url), why })
    }
}

/// Describes why a request failed, without the URL, for sentences that already name it.
pub fn why(error: &kube::Error) -> String {
    if let kube::Error::Service(inner) = error
        && let Some(unreachable) = inner.downcast_ref::<Unreachable>()
    {
        return unreachable.why.clone();
    }
    with_sources(error)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http_body_util::Full;

    use super::*;
    use crate::runtime::client::{Writer, build};
    use crate::runtime::gate::Gate;

    #[tokio::test]
    async fn a_refused_connection_is_reported_with_the_url_and_the_remedy() {
        let mut config = kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"));
        config.root_cert = Some(Vec::new());
        let client = build(config.clone(), Gate::open()).expect("a client");
        let error = client.apiserver_version().await.expect_err("nothing listens");
        let writer = Writer::new(config, Gate::open()).expect("a writer");
        let request = Request::get("/version").body(Full::default()).expect("a request");
        let of_writer = writer.send(request).await.expect_err("nothing listens").to_string();
        for text in [with_sources(&error), of_writer] {
            let begin = "the API server http://127.0.0.1:1/ cannot be reached: client error";
            assert!(text.starts_with(begin) && text.contains("Connection refused"), "{text}");
            let end = ": nothing listens there; check host and port, and that the server runs";
            assert!(text.ends_with(end) && text.matches("client error").count() == 1, "{text}");
        }
        let why = why(&error);
        assert!(why.starts_with("client error") && why.contains("check host and port"), "{why}");
    }
}
