//! Checks that the API server keeps the origins of mirrors. Without its feature gate `CrossNamespaceVolumeDataSource`, which
//! is off by default, it drops them without an error, and the mirrors stay unbound.

use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch as channel;
use tracing::{info, warn};

use crate::controllers::shared::mirrors::{CLAIM, is_of, spec};
use crate::kinds::DataSource;
use crate::runtime::ObjectKey;
use crate::runtime::error::with_sources;
use crate::runtime::readiness::Readiness;
use crate::runtime::store::StoreFactory;
use crate::runtime::task::Task;

/// The name in the readiness.
const NAME: &str = "mirrors";
/// The time between two checks while there is a fault.
const AGAIN: Duration = Duration::from_secs(30);
/// A dry run of a claim in the namespace that every cluster has.
const PATH: &str = "/api/v1/namespaces/default/persistentvolumeclaims?dryRun=All";

/// Returns the task that checks whether the API server keeps the origins of mirrors of this class.
pub fn task(client: &Client, factory: &StoreFactory, readiness: &Readiness, class: &str) -> Task {
    let interruptions = factory.interruptions.subscribe();
    Task::new(NAME, watch(client.clone(), class.to_owned(), readiness.clone(), interruptions))
}

/// Checks the API server, again while there is a fault, and again when a watch was interrupted, because it may have been
/// restarted with other feature gates. Reports a fault in the log and the readiness. Never returns.
async fn watch(
    client: Client,
    class: String,
    readiness: Readiness,
    mut interruptions: channel::Receiver<()>,
) {
    let mut before = None;
    loop {
        interruptions.mark_unchanged();
        let fault = fault(&client, &class).await;
        if fault != before {
            if let Some(sentence) = &fault {
                warn!("{sentence}");
            } else {
                info!("the API server keeps the origins of mirrors");
            }
        }
        readiness.set_notice(NAME, fault.clone());
        let changed = interruptions.changed();
        if fault.is_none() {
            // The sender lives as long as the watches, which never end.
            drop(changed.await);
        } else {
            drop(tokio::time::timeout(AGAIN, changed).await);
        }
        // All watches end together.
        tokio::time::sleep(Duration::from_secs(1)).await;
        before = fault;
    }
}

/// Returns the fault of the API server, from a dry run of a mirror of this class, which it does not store.
pub async fn fault(client: &Client, class: &str) -> Option<String> {
    let origin = ObjectKey::new("kube-system", "origin");
    let mut claim = spec(class, &origin);
    claim["apiVersion"] = "v1".into();
    claim["kind"] = CLAIM.into();
    claim["metadata"] = json!({"generateName": "crownlabs-dry-run-"});
    let request = Request::post(PATH).header("content-type", "application/json");
    let request = request.body(claim.to_string().into_bytes()).unwrap_or_default();
    let stored: Value = match client.request(request).await {
        Ok(stored) => stored,
        Err(error) => {
            let why = with_sources(&error);
            return Some(format!(
                "Cannot determine whether the API server keeps the origins of mirrors: {why}."
            ));
        }
    };
    let kept: Option<DataSource> = serde_json::from_value(stored["spec"]["dataSourceRef"].clone()).ok();
    (!is_of(kept.as_ref(), &origin)).then(|| {
        "The API server drops the origins of mirrors, so no mirror gets a volume (storage.mode: mirror): start it with \
         --feature-gates=CrossNamespaceVolumeDataSource=true, and delete the mirrors that it has stored without an origin."
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::api_server::{ApiServer, refused};

    #[tokio::test]
    async fn an_api_server_that_drops_the_origin_is_reported() {
        let source = json!({"kind": "PersistentVolumeClaim", "name": "origin", "namespace": "kube-system"});
        for (spec, begin) in [
            (json!({"dataSourceRef": source}), None),
            (json!({}), Some("The API server drops the origins of mirrors")),
        ] {
            let server =
                ApiServer::start(move |_| (200, json!({"metadata": {"name": "a"}, "spec": spec}))).await;
            let fault = fault(&server.client(), "pvc-mirror").await;
            assert_eq!(fault.is_none(), begin.is_none());
            assert!(fault.is_none_or(|fault| begin.is_some_and(|begin| fault.starts_with(begin))));
            assert_eq!(server.lines(), [format!("POST {PATH}")]);
        }
        let server = ApiServer::start(|_| refused(403, "Forbidden", "not for you")).await;
        let fault = fault(&server.client(), "pvc-mirror").await.expect("a fault");
        assert!(fault.starts_with("Cannot determine whether") && fault.contains("not for you"), "{fault}");
    }
}
