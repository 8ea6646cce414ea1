//! Reads the state of an installation through the API server, with the rights of the user. Each part has its own
//! deadline, and a part that cannot be read does not prevent the others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use futures::{FutureExt, join};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use serde_json::Value;
use tokio::time::timeout;

use super::objects::{KindCount, Problem, add};
use super::{DaemonPod, Definition, Installation, LeaderLease, NotRead, parse};
use crate::api::crd::{crds, has_status};
use crate::manager::start_up::version;
use crate::runtime::client::{first_listed, page_of_pod};
use crate::runtime::error::{ApiError, with_sources};
use crate::runtime::readiness::pods::{self, PART_OF};
use crate::runtime::readiness::state::{PATH, ReplicaState};

/// The time limit for a part.
const PART: Duration = Duration::from_secs(10);
/// The time limit for the response of a pod.
const POD: Duration = Duration::from_secs(5);
/// The time limit for the objects of a kind.
const OBJECTS: Duration = Duration::from_secs(40);
/// The number of pods that are asked at the same time.
const CONCURRENT: usize = 50;
/// The maximum number of pods that are asked.
const MOST_PODS: usize = 100;
/// The maximum number of Leases, of namespaces, and of pods in a namespace that are read.
const MOST_LISTED: usize = 5_000;
/// The maximum number of objects of a kind that are read.
const MOST_OBJECTS: usize = 20_000;
/// The maximum size of the response of a pod, in bytes.
const LARGEST: usize = 1 << 20;

/// Reads an installation from the API server at `url`. `namespace` is its namespace; otherwise, all installations of the
/// cluster are read.
///
/// # Errors
/// When the API server does not answer.
pub async fn read(
    client: &Client,
    url: &str,
    namespace: Option<&str>,
    now: Timestamp,
) -> anyhow::Result<Installation> {
    let api_server = version(client, url, PART).await?;
    let (daemons, definitions, objects) = join!(
        daemons(client, namespace, now).boxed_local(),
        definitions(client).boxed_local(),
        objects(client, now).boxed_local()
    );
    let (leases, pods, mut not_read) = daemons;
    not_read.extend(definitions.1);
    let mut found =
        Installation { api_server, leases, pods, definitions: definitions.0, ..Installation::default() };
    for (count, problems, unread) in objects {
        found.kinds.push(count);
        found.problems.extend(problems);
        not_read.extend(unread);
    }
    found.problems.sort_by_key(|problem| problem.condition.last_transition_time.0);
    found.not_read = not_read;
    Ok(found)
}

/// Returns the pods of daemons with their states, and the parts that could not be read.
pub async fn daemon_pods(client: &Client, now: Timestamp) -> (Vec<DaemonPod>, Vec<NotRead>) {
    let (_, pods, not_read) = daemons(client, None, now).await;
    (pods, not_read)
}

/// Sends the requests of a part, with a time limit.
async fn part<T>(
    what: &str,
    limit: Duration,
    requests: impl Future<Output = kube::Result<T>>,
) -> Result<T, NotRead> {
    let reason = match timeout(limit, requests).await {
        Ok(Ok(read)) => return Ok(read),
        Ok(Err(error @ kube::Error::Api(_))) => ApiError::from(error).to_string(),
        Ok(Err(error)) => with_sources(&error),
        Err(_) => format!("no answer within {} s", limit.as_secs()),
    };
    Err(NotRead { what: what.to_owned(), reason })
}

/// Reads the first objects of a list. Objects that were read before a failure count.
async fn list<T>(
    client: &Client,
    (what, path, query): (&str, &str, &str),
    parse: impl Fn(&Value) -> Option<T>,
    not_read: &mut Vec<NotRead>,
) -> Vec<T> {
    let mut found = Vec::new();
    let each = |item: Value| found.extend(parse(&item));
    match part(what, PART, first_listed(client, path, query, MOST_LISTED, each)).await {
        Ok(true) => {}
        Ok(false) => not_read.push(truncated(what, MOST_LISTED)),
        Err(unread) => not_read.push(unread),
    }
    found
}

fn truncated(what: &str, most: usize) -> NotRead {
    NotRead { what: what.to_owned(), reason: format!("only the first {most} were read") }
}

/// The Leases and pods of daemons. Pods are read in namespaces with a Lease of a daemon or with the label of
/// installations: users may create pods with any labels in their own namespaces, but neither Leases nor labels of
/// namespaces.
async fn daemons(
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> (Vec<LeaderLease>, Vec<DaemonPod>, Vec<NotRead>) {
    let (mut not_read, selected) = (Vec::new(), format!("&{PART_OF}"));
    let path = namespace.map_or_else(
        || "/apis/coordination.k8s.io/v1/leases".to_owned(),
        |namespace| format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
    );
    let leases = list(client, ("Leases", path.as_str(), ""), pods::lease, &mut not_read).await;
    let mut places: BTreeSet<String> = match namespace {
        Some(namespace) => [namespace.to_owned()].into(),
        None => leases.iter().map(|lease| lease.namespace.clone()).collect(),
    };
    if namespace.is_none() {
        let name = |namespace: &Value| Some(parse::text(namespace, "/metadata/name"));
        let labelled =
            list(client, ("namespaces", "/api/v1/namespaces", &*selected), name, &mut not_read).await;
        places.extend(labelled);
    }
    let mut pods = Vec::new();
    for place in places {
        let what = format!("pods of namespace {place}");
        let path = format!("/api/v1/namespaces/{place}/pods");
        pods.extend(list(client, (what.as_str(), path.as_str(), &*selected), pods::pod, &mut not_read).await);
    }
    for pod in &mut pods {
        let holds = |lease: &&LeaderLease| lease.namespace == pod.namespace && lease.pod() == pod.name;
        pod.leads = leases.iter().find(holds).is_some_and(|lease| lease.is_held(now));
    }
    pods.sort_by_key(|pod| (!pod.leads, pod.namespace.clone(), pod.name.clone()));
    not_read.extend(ask(client, &mut pods).await);
    (leases, pods, not_read)
}

/// Sets the states of the first pods, and returns the reasons why others are not known, each with its pods.
async fn ask(client: &Client, pods: &mut [DaemonPod]) -> Vec<NotRead> {
    let states = stream::iter(pods.iter().take(MOST_PODS)).map(|pod| state(client, pod));
    let states: Vec<_> = states.buffered(CONCURRENT).collect().await;
    let mut unknown = BTreeMap::<String, Vec<String>>::new();
    for (pod, state) in pods.iter_mut().zip(states) {
        match state {
            Ok(state) => pod.state = Some(state),
            Err(reason) => unknown.entry(reason).or_default().push(pod.name.clone()),
        }
    }
    let mut not_read: Vec<NotRead> = unknown
        .into_iter()
        .map(|(reason, names)| NotRead { what: format!("state of {}", names.join(", ")), reason })
        .collect();
    not_read.extend((pods.len() > MOST_PODS).then(|| truncated("states of pods", MOST_PODS)));
    not_read
}

/// Reads the state of a pod through the API server.
async fn state(client: &Client, pod: &DaemonPod) -> Result<ReplicaState, String> {
    let DaemonPod { namespace, name, port, .. } = pod;
    let Some(port) = port else { return Err("the pod has no port with the name health".to_owned()) };
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy{PATH}");
    let answer = match timeout(POD, page_of_pod(client, &path, LARGEST)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
            return Err(format!("you are not allowed to get pods/proxy in namespace {namespace}"));
        }
        Ok(Err(error)) => return Err(ApiError::from(error).to_string()),
        Err(_) => return Err(format!("no answer within {} s", POD.as_secs())),
    };
    serde_json::from_slice(&answer).map_err(|error| format!("the response is not a state: {error}"))
}

/// The CRDs. The first failure ends the reads, because the others would fail in the same way.
async fn definitions(client: &Client) -> (Vec<Definition>, Option<NotRead>) {
    let mut found = Vec::new();
    for ours in crds() {
        let name = ours.metadata.name.unwrap_or_default();
        match part("CRDs", PART, definition(client, &name)).await {
            Ok(definition) => found.push(definition),
            Err(unread) => return (found, Some(unread)),
        }
    }
    (found, None)
}

async fn definition(client: &Client, name: &str) -> kube::Result<Definition> {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    match client.request::<Value>(request).await {
        Ok(installed) => Ok(parse::definition(name, &installed)),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Ok(Definition { name: name.to_owned(), ..Definition::default() })
        }
        Err(error) => Err(error),
    }
}

/// The objects of all kinds with a status.
async fn objects(client: &Client, now: Timestamp) -> Vec<(KindCount, Vec<Problem>, Option<NotRead>)> {
    let definitions = crds();
    let definitions = definitions.iter().filter(|definition| has_status(definition));
    join_all(definitions.map(|definition| of_kind(client, definition, now).boxed_local())).await
}

async fn of_kind(
    client: &Client,
    definition: &CustomResourceDefinition,
    now: Timestamp,
) -> (KindCount, Vec<Problem>, Option<NotRead>) {
    let spec = &definition.spec;
    let (kind, plural) = (&spec.names.kind, &spec.names.plural);
    let stored = spec.versions.iter().find(|version| version.storage).map_or("", |version| &*version.name);
    let path = format!("/apis/{}/{stored}/{plural}", spec.group);
    let mut count = KindCount { kind: kind.clone(), ..KindCount::default() };
    let mut problems = Vec::new();
    let each = |item: Value| problems.extend(add(&mut count, item, now));
    let list = async {
        match first_listed(client, &path, "", MOST_OBJECTS, each).await {
            // Its CRD is not installed.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
            other => other,
        }
    };
    let unread = match part(plural, OBJECTS, list).await {
        Ok(true) => None,
        Ok(false) => Some(truncated(plural, MOST_OBJECTS)),
        Err(unread) => Some(unread),
    };
    (count, problems, unread)
}
