//! The cluster: the API server, the kinds that it serves, classes, and the exam servers that Instances refer to.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use futures::future::join_all;
use http::Request;
use kube::Client;
use serde_json::Value;
use tokio::time::timeout;

use super::{Check, EACH, LIMIT, RightsOfLoops, rights, webhook, within};
use crate::api::instance::Instance;
use crate::api::{Kind as _, labels};
use crate::clients::status_check::{Verdict, host};
use crate::config::{Config, StorageMode};
use crate::controllers::setup::Setup;
use crate::controllers::termination::status_client;
use crate::kinds::HttpRouteKind;
use crate::loops::enabled;
use crate::manager::start_up::{self, ClusterOptions};
use crate::manager::{definitions, mirroring};
use crate::runtime::client;
use crate::runtime::cluster::{DEFAULT_CLASS, DEFAULT_INGRESS_CLASS};
use crate::runtime::error::with_sources;
use crate::runtime::gate::Gate;
use crate::runtime::outages::System;
use crate::runtime::plan::KindInfo;
use crate::runtime::store::StoreFactory;

/// The maximum number of exam servers to check.
const EXAM_SERVERS: usize = 20;

/// All checks of the cluster.
pub async fn checks(config: &Config, options: &ClusterOptions) -> Vec<Check> {
    let what = "API server";
    let (client, place) = match connect(options).await {
        Ok(connected) => connected,
        Err((place, fault)) => {
            let fault = format!("{fault}; the rest of the cluster was not checked");
            return vec![Check::failed(what, place, fault)];
        }
    };
    let mut found = vec![Check::ok(what, &place)];
    let rights = match rights_of_loops(config) {
        Ok(rights) => rights,
        Err(error) => return vec![Check::failed("configuration", "controllers", format!("{error:#}"))],
    };
    let (client, rights) = (&client, &rights);
    let mut checks = vec![
        within("kinds", place.clone(), kinds(client, config, rights)),
        within("CRDs", place.clone(), crds(client, rights)),
        within("storage classes", place.clone(), storage_classes(client, config)),
        within("rights", place.clone(), rights::checks(client, rights)),
    ];
    if config.storage.mode == StorageMode::Mirror {
        checks.push(within("mirrors", place.clone(), mirrors(client, config)));
    }
    if config.controllers.instance.enabled {
        checks.push(within("exposure", place.clone(), exposure(client, config)));
    }
    if config.server.webhook.enabled {
        checks.push(within("webhook", place.clone(), webhook::checks(client, config)));
    }
    if config.controllers.termination.enabled {
        checks.push(within(System::ExamServer.name(), place, exam_servers(client, config)));
    }
    found.extend(join_all(checks).await.into_iter().flatten());
    found
}

/// Returns a client and the URL of the API server, or the place and the description of the fault.
async fn connect(options: &ClusterOptions) -> Result<(Client, String), (String, String)> {
    let kubeconfig = start_up::kubeconfig(options).await;
    let kubeconfig = kubeconfig.map_err(|error| ("kubeconfig".to_owned(), format!("{error:#}")))?;
    let place = kubeconfig.cluster_url.to_string();
    // The gate is open for access reviews, which the API server does not store.
    let client = client::build(kubeconfig, Gate::open()).map_err(|error| (place.clone(), words(&error)))?;
    match timeout(LIMIT, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok((client, place)),
        Ok(Err(error @ kube::Error::Api(_))) => Err((place, words(&error))),
        Ok(Err(error)) => Err((place, client::why(&error))),
        Err(_) => Err((place, format!("no answer within {} s", LIMIT.as_secs()))),
    }
}

/// The requests that the enabled loops send.
fn rights_of_loops(config: &Config) -> anyhow::Result<RightsOfLoops> {
    let mut setup = Setup::new(config, Gate::closed());
    let mut factory = StoreFactory::default();
    for entry in enabled(&config.controllers) {
        (entry.build)(&mut setup, &mut factory)?;
    }
    #[cfg(feature = "daemon")]
    if config.server.webhook.enabled {
        let requirements = crate::config::Reader::new(config).requirements();
        crate::webhook::setup::stores(&mut factory, requirements);
    }
    Ok(factory.rights)
}

/// Checks each API version that the enabled loops need.
async fn kinds(client: &Client, config: &Config, rights: &RightsOfLoops) -> Vec<Check> {
    // Without routes, the loops only remove leftover routes.
    let has_routes = config.controllers.instance.gateway_api.enabled;
    let is_needed = |group: &str| has_routes || group != HttpRouteKind::GROUP;
    let mut versions: BTreeMap<(&str, &str), BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (name, rights) in rights {
        for (KindInfo { group, version, plural, .. }, _) in
            rights.keys().filter(|(kind, _)| is_needed(kind.group))
        {
            versions.entry((group, version)).or_default().entry(plural).or_default().insert(name);
        }
    }
    let served = versions.into_iter().map(|((group, version), plurals)| async move {
        let root = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/{version}") };
        let place = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let answer = match get(client, &root).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Value::Null,
            Err(error) => return Check::failed("kinds", place, words(&error)),
            Ok(answer) => answer,
        };
        let resources = answer["resources"].as_array().into_iter().flatten();
        let present: BTreeSet<&str> = resources.filter_map(|resource| resource["name"].as_str()).collect();
        let missing: Vec<_> = plurals.iter().filter(|(plural, _)| !present.contains(*plural)).collect();
        if missing.is_empty() {
            return Check::ok("kinds", place);
        }
        let named: Vec<&str> = missing.iter().map(|(plural, _)| **plural).collect();
        let loops: BTreeSet<&str> = missing.iter().flat_map(|(_, loops)| loops.iter().copied()).collect();
        let loops = loops.into_iter().collect::<Vec<_>>().join(", ");
        let fault = format!("{} are not served, but {loops} use them; {}", named.join(", "), source(group));
        Check::failed("kinds", place, fault)
    });
    join_all(served).await
}

/// Describes how to install the kinds of an API group.
fn source(group: &str) -> &'static str {
    match group {
        "kubevirt.io" | "subresources.kubevirt.io" => {
            "install KubeVirt: without it no virtual machine starts"
        }
        "cdi.kubevirt.io" => "install CDI: without it no persistent virtual machine starts",
        "gateway.networking.k8s.io" => "install the CRDs of the Gateway API",
        group if group.ends_with("crownlabs.polito.it") => {
            "apply the CRDs of this version: `crownlabs crd | kubectl apply --server-side -f -`"
        }
        _ => "install the API that serves them, or update Kubernetes",
    }
}

/// The faults of the CRDs of CrownLabs.
async fn crds(client: &Client, rights: &RightsOfLoops) -> Vec<Check> {
    let wrong = definitions::faults(client, rights).await;
    if wrong.is_empty() {
        return vec![Check::ok("CRDs", "all have the fields of this version")];
    }
    wrong.into_iter().map(|sentence| Check::failed("CRDs", "CrownLabs", sentence)).collect()
}

/// Checks the storage classes that the configuration names, and the default class.
async fn storage_classes(client: &Client, config: &Config) -> Vec<Check> {
    let what = "storage class";
    let classes = match list(client, "/apis/storage.k8s.io/v1/storageclasses").await {
        Ok(classes) => classes,
        Err(error) => return vec![Check::failed(what, "all", words(&error))],
    };
    let controllers = &config.controllers;
    let (tenant, volumes) = (&controllers.tenant, &controllers.shared_volume);
    let drive = &tenant.my_drive.storage_class_name;
    let mut checks: Vec<Check> = [
        (tenant.enabled, "controllers.tenant.myDrive.storageClassName", drive),
        (volumes.enabled, "controllers.sharedVolume.storageClass", &volumes.storage_class),
    ]
    .into_iter()
    .filter(|(is_used, ..)| *is_used)
    .map(|(_, key, class)| {
        let place = format!("{class} of {key}");
        if let Some(found) = classes.iter().find(|found| name(found) == *class) {
            let fault = waits_for_consumer(found).then(|| {
                "its volumeBindingMode is WaitForFirstConsumer, but the first consumer is created only after the volume \
                 is bound; set the key to a class with volumeBindingMode Immediate"
                    .to_owned()
            });
            return Check { what: what.to_owned(), place, fault };
        }
        let known = classes.iter().map(name).collect::<Vec<_>>().join(", ");
        let fault =
            format!("it does not exist; set the key to a class in the cluster ({known}), or create it");
        Check::failed(what, place, fault)
    })
    .collect();
    if controllers.instance.enabled {
        let is_default = |class: &&Value| {
            DEFAULT_CLASS.iter().any(|key| class["metadata"]["annotations"][key].as_str() == Some("true"))
        };
        checks.push(match classes.iter().find(is_default) {
            Some(class) => Check::ok(what, format!("{}, the default", name(class))),
            None => Check::failed(
                what,
                "the default",
                "no class is the default, so disks of Templates without a class stay pending; annotate one with \
                 storageclass.kubernetes.io/is-default-class=true",
            ),
        });
    }
    checks
}

/// Checks the storage class of mirrors, and whether the API server keeps their origins.
async fn mirrors(client: &Client, config: &Config) -> Vec<Check> {
    let class = &config.storage.mirror_class;
    let found = get(client, &format!("/apis/storage.k8s.io/v1/storageclasses/{class}")).await;
    let found = found.map(|_| ()).map_err(|error| words(&error));
    let fault = mirroring::fault(client, class).await;
    vec![
        Check::of("storage class", &format!("{class} of storage.mirrorClass"), found),
        Check::of("mirrors", "CrossNamespaceVolumeDataSource", fault.map_or(Ok(()), Err)),
    ]
}

/// Whether a storage class binds a claim only after a pod uses it.
fn waits_for_consumer(class: &Value) -> bool {
    class["volumeBindingMode"] == "WaitForFirstConsumer"
}

/// Checks the Ingress class, or the Gateways of the configuration.
async fn exposure(client: &Client, config: &Config) -> Vec<Check> {
    let gateways = &config.controllers.instance.gateway_api;
    if gateways.enabled {
        let parents = gateways.parent_refs.iter();
        return join_all(parents.map(|parent| gateway(client, &parent.namespace, &parent.name).boxed()))
            .await;
    }
    let what = "Ingress class";
    let classes = match list(client, "/apis/networking.k8s.io/v1/ingressclasses").await {
        Ok(classes) => classes,
        Err(error) => return vec![Check::failed(what, "all", words(&error))],
    };
    let is_default = |class: &&Value| class["metadata"]["annotations"][DEFAULT_INGRESS_CLASS] == "true";
    let names = classes.iter().map(name).collect::<Vec<_>>().join(", ");
    vec![match classes.iter().find(is_default) {
        Some(class) => Check::ok(what, format!("{}, the default", name(class))),
        None if classes.is_empty() => Check::failed(
            what,
            "none",
            "no Ingress controller is installed, so no Instance can be opened in a browser; install one",
        ),
        None => Check::ok(
            what,
            format!("{names}; none is the default, so the controller must accept Ingresses without a class"),
        ),
    }]
}

async fn gateway(client: &Client, namespace: &str, name: &str) -> Check {
    let path = format!("/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/gateways/{name}");
    let read = get(client, &path).await;
    let fault = read.map_or_else(|error| Some(words(&error)), |gateway| refusal(&gateway));
    Check { what: "Gateway".to_owned(), place: format!("{namespace}/{name}"), fault }
}

/// Returns the message of the controller of a Gateway that is not accepted or programmed.
fn refusal(gateway: &Value) -> Option<String> {
    let refused = gateway["status"]["conditions"].as_array()?.iter().find(|condition| {
        (condition["type"] == "Accepted" || condition["type"] == "Programmed")
            && condition["status"] != "True"
    })?;
    let text = |member: &str| refused[member].as_str().unwrap_or_default().to_owned();
    Some(format!("it is not {}: {} ({})", text("type"), text("message"), text("reason")))
}

/// Checks the exam servers that Instances name, one line for each, at most [`EXAM_SERVERS`].
async fn exam_servers(client: &Client, config: &Config) -> Vec<Check> {
    let what = System::ExamServer.name();
    let path = format!(
        "/apis/crownlabs.polito.it/v1alpha2/instances?limit=500&labelSelector={}%3Dtrue",
        labels::WATCH_FOR_TERMINATION.replace('/', "%2F")
    );
    let instances: Vec<Instance> = match list(client, &path).await {
        Ok(found) => found.into_iter().filter_map(|found| serde_json::from_value(found).ok()).collect(),
        Err(error) => return vec![Check::failed(what, "all", words(&error))],
    };
    let queries = match status_client(&config.controllers.termination) {
        Ok(queries) => queries,
        Err(error) => {
            return vec![Check::failed(what, "controllers.termination.caFile", with_sources(&error))];
        }
    };
    let urls = instances.iter().map(|instance| instance.spec.effective_status_check_url());
    let servers: BTreeMap<String, &str> = urls.filter_map(|url| Some((host(url)?, url))).collect();
    let tried = servers.into_iter().take(EXAM_SERVERS).map(async |(place, url)| {
        let fault = match timeout(EACH, queries.check(url)).await {
            Ok(Verdict::Keep { .. } | Verdict::Gone { .. }) => Ok(()),
            Ok(Verdict::Failed { reason, .. }) => Err(reason),
            Err(_) => Err(format!("no answer within {} s", EACH.as_secs())),
        };
        Check::of(what, &place, fault)
    });
    join_all(tried).await
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// Reads the objects of a list.
pub async fn list(client: &Client, path: &str) -> kube::Result<Vec<Value>> {
    let mut list = get(client, path).await?;
    Ok(serde_json::from_value(list["items"].take()).unwrap_or_default())
}

/// Reads an object.
pub async fn get(client: &Client, path: &str) -> kube::Result<Value> {
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

/// Posts an object that the API server answers but does not store.
pub async fn post(client: &Client, path: &str, body: &Value) -> kube::Result<Value> {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(body.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

/// Describes an error of the API server.
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!("HTTP 403: {}; grant that, or use the kubeconfig of an administrator", status.message)
        }
        kube::Error::Api(status) => format!("HTTP {}: {}", status.code, status.message),
        error => with_sources(error),
    }
}
