//! Whether the CRDs that are installed are those of this version: a daemon that is newer than they are writes fields that
//! the API server drops.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use metrics::gauge;
use serde_json::Value;
use tracing::{info, warn};

use crate::api::GROUP;
use crate::api::crd::crds;
use crate::runtime::definitions::{dropped_fields, foreign_versions};
use crate::runtime::error::with_sources;
use crate::runtime::readiness::Readiness;
use crate::runtime::store::StoreFactory;
use crate::runtime::task::Task;

/// The name in the readiness.
const NAME: &str = "CRDs";
/// The metric, with the label `crd`.
const METRIC: &str = "crownlabs_crd_mismatch";
/// The time between two looks while something is wrong.
const AGAIN: Duration = Duration::from_secs(30);
/// The kinds whose status the loops write that this process runs. Those of others may be another program's, and their CRDs
/// with it.
fn written(factory: &StoreFactory) -> BTreeSet<&'static str> {
    let all = factory.rights.values().flat_map(BTreeMap::keys);
    all.filter(|(_, subresource)| *subresource == "status").map(|(kind, _)| kind.kind).collect()
}

/// The CRDs that are looked at: those of `CrownLabs`, and of other groups those that are written.
fn looked_at(written: &BTreeSet<&str>) -> impl Iterator<Item = CustomResourceDefinition> {
    crds().into_iter().filter(|crd| crd.spec.group == GROUP || written.contains(&*crd.spec.names.kind))
}
/// The number of fields that a sentence names.
const NAMED: usize = 5;

/// The task that looks at the CRDs of the kinds that loops with stores of this factory write.
pub fn task(client: &Client, factory: &StoreFactory, readiness: &Readiness) -> Task {
    Task::new(NAME, watch(client.clone(), written(factory), readiness.clone()))
}

/// Looks at the CRDs, and again until nothing is wrong: whoever installs others later, installs another version of the
/// daemon, too. Says what is wrong in the log, in the readiness and in the metric. The loops work all the same. Never returns.
async fn watch(client: Client, written: BTreeSet<&'static str>, readiness: Readiness) {
    let mut before = Vec::new();
    loop {
        let wrong = look(&client, &written).await;
        if wrong != before {
            for sentence in &wrong {
                warn!("{sentence}");
            }
            if wrong.is_empty() {
                info!("the CRDs are those of this version now");
            }
        }
        readiness.set_notice(NAME, (!wrong.is_empty()).then(|| wrong.join(" ")));
        if wrong.is_empty() {
            return std::future::pending().await;
        }
        tokio::time::sleep(AGAIN).await;
        before = wrong;
    }
}

/// What is wrong, a sentence each. A CRD that is not installed is missed by the loops that need it.
async fn look(client: &Client, written: &BTreeSet<&str>) -> Vec<String> {
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
                wrong.push(format!("It is not known whether the CRD {name} is that of this version: {why}."));
                // Of the others it would say the same.
                return wrong;
            }
        };
        let foreign = foreign_versions(&installed, &ours);
        let is_written = written.contains(&*ours.spec.names.kind);
        let dropped = if is_written { dropped_fields(&installed, &ours) } else { Vec::new() };
        let is_wrong = !(foreign.is_empty() && dropped.is_empty());
        gauge!(METRIC, "crd" => name.clone()).set(f64::from(u8::from(is_wrong)));
        wrong.extend((!dropped.is_empty()).then(|| of_fields(&name, &dropped)));
        wrong.extend((!foreign.is_empty()).then(|| of_versions(&name, &foreign)));
    }
    wrong
}

fn of_fields(name: &str, dropped: &[String]) -> String {
    let named = dropped.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = dropped.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "The CRD {name} is older than this daemon: the API server drops what is written to {named}{more}; apply the CRDs of \
         this version."
    )
}

fn of_versions(name: &str, foreign: &[String]) -> String {
    format!(
        "Objects of the CRD {name} may be stored as {}, which the CRDs of this version do not have, so the API server refuses \
         these; write the objects anew, then take that out of status.storedVersions.",
        foreign.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::run::build_loops;
    use super::*;
    use crate::config::Config;
    use crate::runtime::api_server::{ApiServer, refused};
    use crate::runtime::gate::Gate;

    /// The kinds whose status loops of the usual installation write.
    const WRITTEN: [&str; 6] =
        ["Instance", "InstanceSnapshot", "SharedVolume", "Template", "Tenant", "Workspace"];

    #[test]
    fn a_sentence_names_some_fields_and_counts_the_others() {
        let fields: Vec<String> = (1..=7).map(|field| format!("status.f{field}")).collect();
        let of = |count: usize| of_fields("x", &fields[..count]);
        assert!(
            of(5).contains("to status.f1, status.f2, status.f3, status.f4, status.f5; apply"),
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
            build_loops(config, &Gate::closed(), None, &mut factory).expect("built");
            let written = written(&factory);
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
    async fn a_crd_that_is_not_there_is_no_fault_and_one_that_cannot_be_read_is_said_once() {
        let server = ApiServer::start(|asked| match asked.name() {
            name if name.starts_with("imagelists.") => refused(404, "NotFound", "no such CRD"),
            name if name.starts_with("sharedvolumes.") => refused(403, "Forbidden", "not for you"),
            name => {
                let ours = crds().into_iter().find(|crd| crd.metadata.name.as_deref() == Some(name));
                (200, json!(ours.expect("a CRD of ours")))
            }
        })
        .await;
        let wrong = look(&server.client(), &WRITTEN.into()).await;
        let [sentence] = &*wrong else { panic!("{wrong:?}") };
        let begin =
            "It is not known whether the CRD sharedvolumes.crownlabs.polito.it is that of this version: ";
        assert!(sentence.starts_with(begin) && sentence.contains("not for you"), "{sentence}");
        assert_eq!(server.lines().len(), 6, "the others are not asked for");
    }
}
