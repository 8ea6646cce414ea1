//! Checks that the installed CRDs match this version: a daemon that is newer than its CRDs writes fields that the API
//! server drops.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use metrics::gauge;
use serde_json::Value;
use tokio::sync::watch as channel;
use tracing::{info, warn};

use crate::api::GROUP;
use crate::api::crd::crds;
use crate::runtime::definitions::{dropped_fields, foreign_versions, unserved_versions};
use crate::runtime::error::{ApiError, with_sources};
use crate::runtime::readiness::Readiness;
use crate::runtime::store::{Rights, StoreFactory};
use crate::runtime::task::Task;

/// The name in the readiness.
const NAME: &str = "CRDs";
/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The metric, with the label `crd`.
const METRIC: &str = "crownlabs_crd_mismatch";
/// The time between two checks while there is a fault.
const AGAIN: Duration = Duration::from_secs(30);
/// The time from an interruption of a watch to the check.
const SETTLING: Duration = Duration::from_secs(1);
/// The kinds whose status is written by loops of this process. Other kinds may belong to another program, including
/// their CRDs.
fn written(rights: &BTreeMap<&'static str, Rights>) -> BTreeSet<&'static str> {
    let all = rights.values().flat_map(BTreeMap::keys);
    all.filter(|(_, subresource)| *subresource == "status").map(|(kind, _)| kind.kind).collect()
}

/// The CRDs to check: the CRDs of `CrownLabs`, and CRDs of other groups that the loops write.
fn looked_at(written: &BTreeSet<&str>) -> impl Iterator<Item = CustomResourceDefinition> {
    crds()
        .into_iter()
        .filter(|crd| crd.spec.group.ends_with(GROUP) || written.contains(&*crd.spec.names.kind))
}
/// The maximum number of fields in a message.
const NAMED: usize = 5;

/// Returns the task that checks the CRDs of the kinds that are written by loops with stores of this factory.
pub fn task(client: &Client, factory: &StoreFactory, readiness: &Readiness) -> Task {
    let (written, interruptions) = (written(&factory.rights), factory.interruptions.subscribe());
    Task::new(NAME, watch(client.clone(), written, readiness.clone(), interruptions))
}

/// Checks the CRDs, again while there is a fault, and again when a watch was interrupted: the API server interrupts the
/// watches of a kind when its CRD changes. So no requests are sent at rest. Reports faults in the log, the readiness and
/// the metric. The loops keep working. Never returns.
async fn watch(
    client: Client,
    written: BTreeSet<&'static str>,
    readiness: Readiness,
    mut interruptions: channel::Receiver<()>,
) {
    let (mut before, mut is_first) = (Vec::new(), true);
    loop {
        interruptions.mark_unchanged();
        let Found { wrong, is_away } = look(&client, &written).await;
        // Nothing is known about the CRDs while the API server restarts.
        if is_away && !is_first {
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        is_first = false;
        if wrong != before {
            for sentence in &wrong {
                warn!("{sentence}");
            }
            if wrong.is_empty() {
                info!("the CRDs now match this version");
            }
        }
        readiness.set_notice(NAME, (!wrong.is_empty()).then(|| wrong.join(" ")));
        let changed = interruptions.changed();
        if wrong.is_empty() {
            // The sender lives as long as the watches, which never end.
            drop(changed.await);
        } else {
            drop(tokio::time::timeout(AGAIN, changed).await);
        }
        // All watches of a kind end together.
        tokio::time::sleep(SETTLING).await;
        before = wrong;
    }
}

/// The faults of the CRDs of the kinds that loops with these rights write, one sentence each.
pub async fn faults(client: &Client, rights: &BTreeMap<&'static str, Rights>) -> Vec<String> {
    look(client, &written(rights)).await.wrong
}

/// The result of a check.
#[derive(Debug)]
struct Found {
    /// The faults, one sentence each.
    wrong: Vec<String>,
    /// Whether the API server did not respond, so that there may be other faults.
    is_away: bool,
}

/// Returns the faults. A CRD that is not installed is reported by the loops that need it.
async fn look(client: &Client, written: &BTreeSet<&str>) -> Found {
    let mut wrong = Vec::new();
    for ours in looked_at(written) {
        let name = ours.metadata.name.clone().unwrap_or_default();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let request = Request::get(path).body(Vec::new());
        let installed: Value = match client.request(request.unwrap_or_default()).await {
            Ok(installed) => installed,
            Err(kube::Error::Api(status)) if status.code == 404 => Value::Null,
            Err(error) => {
                let why = with_sources(&error);
                wrong.push(format!("Cannot determine whether the CRD {name} matches this version: {why}."));
                // The other requests would fail in the same way.
                return Found { wrong, is_away: ApiError::from(error).is_away() };
            }
        };
        let foreign = foreign_versions(&installed, &ours);
        let unserved = unserved_versions(&installed, &ours);
        let is_written = written.contains(&*ours.spec.names.kind);
        let dropped = if is_written { dropped_fields(&installed, &ours) } else { Vec::new() };
        let is_wrong = !(foreign.is_empty() && unserved.is_empty() && dropped.is_empty());
        gauge!(METRIC, "crd" => name.clone()).set(f64::from(u8::from(is_wrong)));
        wrong.extend((!unserved.is_empty()).then(|| of_unserved(&name, &unserved)));
        wrong.extend((!dropped.is_empty()).then(|| of_fields(&name, &dropped)));
        wrong.extend((!foreign.is_empty()).then(|| of_versions(&name, &foreign)));
    }
    Found { wrong, is_away: false }
}

fn of_unserved(name: &str, unserved: &[String]) -> String {
    format!(
        "The CRD {name} does not serve the version {}, which this daemon uses; apply the CRDs of version {VERSION}.",
        unserved.join(", ")
    )
}

fn of_fields(name: &str, dropped: &[String]) -> String {
    let named = dropped.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = dropped.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "The CRD {name} is older than this daemon: the API server drops the fields {named}{more}; apply the CRDs of \
         version {VERSION}."
    )
}

fn of_versions(name: &str, foreign: &[String]) -> String {
    format!(
        "Objects of the CRD {name} may be stored as {}. The CRDs of this version do not have that version, so the API server \
         rejects them; rewrite the objects, then remove it from status.storedVersions.",
        foreign.join(", ")
    )
}

#[cfg(all(test, feature = "daemon"))]
mod tests {
    use serde_json::json;

    use super::super::run::build_loops;
    use super::*;
    use crate::config::Config;
    use crate::runtime::api_server::{ApiServer, refused};
    use crate::runtime::gate::Gate;

    /// The kinds whose status is written by the loops of a default installation.
    const WRITTEN: [&str; 6] =
        ["Instance", "InstanceSnapshot", "SharedVolume", "Template", "Tenant", "Workspace"];

    #[test]
    fn a_sentence_names_some_fields_and_counts_the_others() {
        let fields: Vec<String> = (1..=7).map(|field| format!("status.f{field}")).collect();
        let of = |count: usize| of_fields("x", &fields[..count]);
        assert!(
            of(5).contains("fields status.f1, status.f2, status.f3, status.f4, status.f5; apply"),
            "{}",
            of(5)
        );
        assert!(of(7).contains("status.f5 and 2 more; apply") && !of(7).contains("f6"), "{}", of(7));
    }

    #[test]
    fn kinds_of_loops_that_are_off_by_default_are_written_where_these_are_on() {
        let mut config = Config::default();
        let kinds = |config: &Config| {
            let mut factory = StoreFactory::default();
            build_loops(config, &Gate::closed(), &Readiness::default(), None, &mut factory).expect("built");
            let written = written(&factory.rights);
            let looked_at: Vec<String> = looked_at(&written).map(|crd| crd.spec.names.kind).collect();
            (written, looked_at)
        };
        let (written, looked_at) = kinds(&config);
        assert_eq!(written, WRITTEN.into());
        let has = |kinds: &[String], kind: &str| kinds.iter().any(|known| known == kind);
        assert!(has(&looked_at, "ImageList") && !has(&looked_at, "PodConfig"), "{looked_at:?}");
        config.controllers.image_list.enabled = true;
        config.controllers.pod_config.enabled = true;
        config.controllers.tenant.enabled = false;
        let (written, looked_at) = kinds(&config);
        assert!(written.contains("ImageList") && written.contains("PodConfig"), "{written:?}");
        assert!(!written.contains("Tenant") && has(&looked_at, "Tenant"), "{written:?}");
        assert!(has(&looked_at, "PodConfig"), "{looked_at:?}");
    }

    #[tokio::test]
    async fn a_missing_crd_is_not_a_fault_and_an_unreadable_one_is_reported_once() {
        let server = ApiServer::start(|asked| match asked.name() {
            name if name.starts_with("imagelists.") => refused(404, "NotFound", "no such CRD"),
            name if name.starts_with("sharedvolumes.") => refused(403, "Forbidden", "not for you"),
            name => {
                let ours = crds().into_iter().find(|crd| crd.metadata.name.as_deref() == Some(name));
                (200, json!(ours.expect("a CRD of ours")))
            }
        })
        .await;
        let Found { wrong, is_away } = look(&server.client(), &WRITTEN.into()).await;
        let [sentence] = &*wrong else { panic!("{wrong:?}") };
        assert!(!is_away, "the API server has responded");
        let begin =
            "Cannot determine whether the CRD sharedvolumes.crownlabs.polito.it matches this version: ";
        assert!(sentence.starts_with(begin) && sentence.contains("not for you"), "{sentence}");
        assert_eq!(server.lines().len(), 6, "the other CRDs are not requested");
    }
}
