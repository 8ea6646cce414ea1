//! The webhooks: the configurations that register them, and the server that they call.

use http::Uri;
use kube::Client;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::cluster::{get, list, words};
use super::{Check, EACH};
use crate::config::Config;

/// Checks the configurations that register the webhooks, and the endpoints that they call.
pub async fn checks(client: &Client, config: &Config) -> Vec<Check> {
    let (name, namespace) = (&config.server.webhook.service_name, &config.leader_election.namespace);
    let mut checks = Vec::new();
    for plural in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}");
        let place = format!("{plural}/{name}");
        match get(client, &path).await {
            Ok(registered) => checks.push(match unsigned(&registered) {
                Some(fault) => Check::failed("webhook", place, fault),
                None => Check::of(
                    "webhook",
                    &format!("{place}, which calls {}", called(&registered)),
                    reached(&registered).await,
                ),
            }),
            Err(kube::Error::Api(status)) if status.code == 404 => checks.push(Check::failed(
                "webhook",
                place,
                "it does not exist, so the writes of users are not validated; apply \
                 manifests/40-webhooks.yaml, or install the chart",
            )),
            Err(error) => checks.push(Check::failed("webhook", place, words(&error))),
        }
    }
    let place = format!("Service {namespace}/{name}");
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{name}"
    );
    checks.push(match list(client, &path).await {
        Ok(slices) if slices.iter().any(is_served) => Check::ok("webhook", place),
        Ok(_) => Check::failed(
            "webhook",
            place,
            "no pod is ready behind it, so the API server rejects writes; start the daemon, or correct server.webhook.serviceName \
             and leaderElection.namespace",
        ),
        Err(error) => Check::failed("webhook", place, words(&error)),
    });
    checks
}

/// Returns the fault of a webhook configuration without a certificate authority.
fn unsigned(registered: &Value) -> Option<String> {
    let is_unsigned =
        |webhook: &&Value| webhook["clientConfig"]["caBundle"].as_str().is_none_or(str::is_empty);
    let unsigned = registered["webhooks"].as_array()?.iter().find(is_unsigned)?;
    let name = unsigned["name"].as_str().unwrap_or_default();
    Some(format!("{name} has no caBundle; the leader writes it, so start the daemon, or see its log"))
}

/// Returns the URL or the Service of the first webhook.
fn called(registered: &Value) -> String {
    let text = |pointer: &str| registered.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/webhooks/0/clientConfig/url") {
        "" => {
            let namespace = text("/webhooks/0/clientConfig/service/namespace");
            format!("Service {namespace}/{}", text("/webhooks/0/clientConfig/service/name"))
        }
        url => url.to_owned(),
    }
}

/// Checks that the server at the URL of the first webhook accepts a connection. A Service is checked by its
/// [endpoints](is_served) instead.
async fn reached(registered: &Value) -> Result<(), String> {
    let Some(url) = registered["webhooks"][0]["clientConfig"]["url"].as_str() else { return Ok(()) };
    let url: Uri = url.parse().map_err(|error| format!("the URL is invalid: {error}"))?;
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let connecting = TcpStream::connect((host, url.port_u16().unwrap_or(443)));
    let fault = match timeout(EACH, connecting).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", EACH.as_secs()),
    };
    Err(format!(
        "{fault}, so the API server rejects writes; start the daemon, or correct the URL of the webhooks"
    ))
}

/// Whether an endpoint of the slice is ready.
fn is_served(slice: &Value) -> bool {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    endpoints.into_iter().any(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_server_of_a_url_is_tried_and_a_service_is_not() {
        let called = |client: Value| json!({"webhooks": [{"clientConfig": client}]});
        for host in ["127.0.0.1", "[::1]"] {
            let listener = TcpListener::bind(format!("{host}:0")).await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let registered = called(json!({"url": format!("https://{host}:{port}/validate")}));
            assert_eq!(reached(&registered).await, Ok(()), "{host}");
        }
        // Nothing listens at port 1.
        let fault =
            reached(&called(json!({"url": "https://127.0.0.1:1/validate"}))).await.expect_err("refused");
        assert!(fault.contains("refused") && fault.contains("correct the URL"), "{fault}");
        let service = json!({"service": {"name": "crownlabs-webhook", "namespace": "crownlabs-system"}});
        assert_eq!(reached(&called(service)).await, Ok(()));
    }
}
