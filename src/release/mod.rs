//! `crownlabs release`: removes the finalizers from objects that were managed under a selector that no daemon uses any
//! more. A change of the configuration leaves such objects as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, bail};
use http::Request;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::Value;

use crate::api::labels::{SHARED_VOLUME_FINALIZER, TENANT_FINALIZER, selector_labels, selector_string};
use crate::api::names::{check_label_value, is_label_key};
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::tenant::TenantKind;
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, Object};
use crate::controllers::shared::responsibility::{Mark, released};
use crate::manager::start_up::{self, ClusterOptions};
use crate::runtime::client::{self, each_listed};
use crate::runtime::error::ApiError;
use crate::runtime::gate::Gate;
use crate::runtime::plan::{KindInfo, ObjectPatch};
use crate::runtime::sighting::Sighting;
use crate::runtime::{ObjectKey, finalizer};

/// The interval between two reads of a Lease.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a Lease must stay free: within this time, a replica would take a released Lease.
const GRACE: Duration = Duration::from_secs(4);
/// The maximum number of selectors in a message.
const NAMED: usize = 10;

/// The arguments of the command.
#[derive(Debug, Clone)]
pub struct Release {
    /// The former selector, such as `key=value,other=value`.
    pub selector: String,
    /// Whether to only print the actions.
    pub is_dry: bool,
}

/// The objects that were managed under the selector.
#[derive(Debug, Default)]
struct Found {
    /// The patches that release the objects.
    patches: Vec<ObjectPatch>,
    /// Objects that are being deleted.
    terminating: Vec<String>,
    /// The Leases that the objects' marks name.
    leases: BTreeSet<String>,
    /// The selectors of all marks.
    selectors: BTreeSet<String>,
}

/// Releases the objects. `say` receives each line as soon as the step is complete.
///
/// # Errors
/// When a daemon still manages objects of the selector, or an object cannot be read or changed.
pub async fn release(
    Release { selector, is_dry }: Release,
    cluster: &ClusterOptions,
    say: &dyn Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let labels = labels(&selector)?;
    let selector = selector_string(&labels);
    let client = client::build(start_up::kubeconfig(cluster).await?, Gate::open())?;
    let mut found = Found::default();
    collect::<TenantKind>(&client, TENANT_FINALIZER, &selector, &mut found).await?;
    collect::<WorkspaceKind>(&client, TENANT_FINALIZER, &selector, &mut found).await?;
    collect::<SharedVolumeKind>(&client, SHARED_VOLUME_FINALIZER, &selector, &mut found).await?;
    if found.patches.is_empty() && found.terminating.is_empty() {
        let selectors: Vec<&str> = found.selectors.iter().take(NAMED).map(String::as_str).collect();
        let others = if selectors.is_empty() { "none".to_owned() } else { selectors.join("; ") };
        say(&format!(
            "no object is managed under {selector}; selectors of objects in this cluster: {others}"
        ))?;
        return Ok(());
    }
    for lease in &found.leases {
        free(&client, lease, &selector, say).await?;
    }
    for object in &found.terminating {
        say(&format!(
            "{object} is being deleted, and stays as it is: the daemon with its Lease completes the deletion; see docs/operating.md"
        ))?;
    }
    let mut failed = 0;
    for patch in &found.patches {
        let what = format!("{} {}", patch.kind.kind, patch.key);
        if is_dry {
            say(&format!("{what} would be released"))?;
            continue;
        }
        match send(&client, patch).await {
            Ok(()) => say(&format!("{what} released"))?,
            Err(error) => {
                failed += 1;
                say(&format!("{what} could not be released: {error}"))?;
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {} objects could not be released; run the command again", found.patches.len());
    }
    Ok(())
}

/// The labels of a selector.
fn labels(selector: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let labels = selector_labels(selector).filter(|labels| {
        labels.iter().all(|(key, value)| is_label_key(key) && check_label_value(value).is_ok())
    });
    labels.with_context(|| {
        format!(
            "--selector {selector:?} is not a selector: expected labels such as \
             crownlabs.polito.it/operator-selector=production, separated by commas"
        )
    })
}

/// Adds the objects of a kind, if the kind is served.
async fn collect<K: Kind>(
    client: &Client,
    finalizer: &str,
    selector: &str,
    found: &mut Found,
) -> anyhow::Result<()> {
    let mut objects: Vec<Result<Object<K>, _>> = Vec::new();
    let path = KindInfo::of::<K>().path("");
    let read = |item: Value| objects.push(serde_json::from_value(item));
    match each_listed(client, &path, "", read).await.map_err(ApiError::from) {
        Ok(()) => {}
        Err(ApiError::NotFound(_)) => return Ok(()),
        Err(error) => bail!("the {} cannot be read: {error}", K::PLURAL),
    }
    for object in objects {
        let object = object.with_context(|| format!("one of the {} cannot be read", K::PLURAL))?;
        let Some(mark) = Mark::of(&object).filter(|_| finalizer::holds(&object, finalizer)) else { continue };
        found.selectors.insert(mark.selector.to_owned());
        if mark.selector != selector {
            continue;
        }
        found.leases.extend(mark.lease.map(str::to_owned));
        if object.is_terminating() {
            found.terminating.push(format!("{} {}", K::KIND, ObjectKey::of(&object)));
        } else if let Some(mut patch) = released(&object, finalizer) {
            // Restricted to this version of the object, because the patch replaces the list of finalizers.
            patch.patch["metadata"]["resourceVersion"] = object.resource_version().into();
            patch.patch["metadata"]["uid"] = patch.uid.clone().into();
            found.patches.push(patch);
        }
    }
    Ok(())
}

/// Waits until a Lease is free.
///
/// # Errors
/// When a daemon that manages objects of this selector holds the Lease, or the Lease cannot be read.
async fn free(
    client: &Client,
    lease: &str,
    selector: &str,
    say: &dyn Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some((namespace, name)) = lease.split_once('/') else { return Ok(()) };
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let read = async || leases.get_opt(name).await.with_context(|| format!("Lease {lease} cannot be read"));
    let mut sighting = Sighting::new(read().await?);
    if sighting.holder(selector).is_none() {
        return Ok(());
    }
    say(&format!("checking whether the holder of Lease {lease} renews it"))?;
    while !sighting.is_free(selector, GRACE) {
        if sighting.is_renewed(selector) {
            bail!(
                "a daemon holds Lease {lease} and manages the objects with the labels {selector}: nothing is released; give it \
                 another selector or uninstall it first, or change the labels of single objects"
            );
        }
        tokio::time::sleep(PERIOD).await;
        sighting.see(read().await?, selector);
    }
    Ok(())
}

async fn send(client: &Client, patch: &ObjectPatch) -> Result<(), ApiError> {
    let url = format!("{}/{}", patch.kind.path(&patch.key.namespace), patch.key.name);
    let request = Request::patch(url).header("content-type", "application/merge-patch+json");
    let body = serde_json::to_vec(&patch.patch).unwrap_or_default();
    let request = request.body(body).map_err(|error| ApiError::from(kube::Error::HttpError(error)))?;
    client.request::<Value>(request).await.map(drop).map_err(ApiError::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_checked_before_anything_is_read() {
        assert!(labels("crownlabs.polito.it/operator-selector=production,zone=").is_ok());
        for text in ["", "production", "a=b c", "a==b", "a=b,"] {
            let error = labels(text).expect_err(text).to_string();
            assert!(error.contains("is not a selector: expected labels such as"), "{error}");
        }
    }
}
