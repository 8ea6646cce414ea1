//! Reads the facts from a cluster, with the permissions of the user who runs the command.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures::StreamExt as _;
use futures::stream;
use http::Request;
use kube::Client;
use serde_json::Value;

use super::installation as whole;
use super::{course, instance, value};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::reference::GenericRef;
use crate::api::template::{Template, TemplateKind};
use crate::api::tenancy::tenant_of;
use crate::api::tenant::TenantKind;
use crate::api::why::{Event, Facts, Row, WARNINGS, Warning, is_waiting, managers, pods_of, sort};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, Object, labels, names};
use crate::config::nearest;
use crate::kinds::{NamespaceKind, PodKind};
use crate::manager::start_up::{self, ClusterOptions};
use crate::offline::format::Format;
use crate::runtime::error::ApiError;
use crate::runtime::gate::Gate;
use crate::runtime::plan::KindInfo;
use crate::runtime::{client, clock};

/// The time limit for all requests of a command.
const LIMIT: Duration = Duration::from_mins(1);

/// The maximum number of concurrent requests of a command.
const AT_ONCE: usize = 16;

/// The output of `crownlabs why`.
#[derive(Debug)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Whether the Instance is ready.
    pub is_ready: bool,
}

/// Returns the output of `crownlabs why` for an Instance. `name` is its namespace and name, separated by a slash. If it
/// is only the name, the namespace comes from the options or the kubeconfig context.
///
/// # Errors
/// When the Instance does not exist, or the cluster cannot be read.
pub async fn why(name: &str, cluster: &ClusterOptions, format: Option<Format>) -> anyhow::Result<Answer> {
    let (namespace, name) = name.split_once('/').map_or((None, name), |(of, name)| (Some(of), name));
    if let (Some(of), Some(other)) = (namespace, &cluster.namespace)
        && of != other
    {
        bail!("the name gives namespace {of:?} and --namespace gives {other:?}: omit one of them");
    }
    within(async {
        let (client, _) = connect(cluster).await?;
        let namespace = namespace.unwrap_or(client.default_namespace());
        let instance: Instance = match get::<InstanceKind>(&client, namespace, name).await {
            Err(error) if error.is::<Missing>() => return Err(others(&client, namespace, name, error).await),
            read => read?,
        };
        let reference = &instance.spec.template_ref;
        // The user may have fewer permissions than the daemon; the output then contains fewer facts.
        let template = get::<TemplateKind>(&client, &reference.namespace, &reference.name).await.ok();
        let workspace = template.as_ref().map(|template| template.spec.workspace_ref.name.clone());
        let managers = match workspace {
            Some(name) => list::<TenantKind>(&client, "", "").await.ok().map(|all| managers(&all, &name)),
            None => None,
        };
        let owner = get::<NamespaceKind>(&client, "", namespace).await.ok();
        let owner = owner.as_ref().and_then(tenant_of);
        let warnings =
            if is_waiting(&instance) { warnings(&client, &instance).await } else { Ok(Vec::new()) };
        let facts = Facts {
            instance: &instance,
            owner,
            template: template.as_ref(),
            managers: managers.as_deref(),
            warnings: warnings.map_err(|error| error.to_string()),
        };
        let why = facts.why();
        let text = match format {
            Some(format) => format.write(&value::value(&why))?,
            None => instance::text(&why, clock::now()),
        };
        Ok(Answer { text, is_ready: why.is_ready })
    })
    .await
}

/// Returns the text of `crownlabs status` for the installation in the namespace of the options, or for all
/// installations of the cluster. With `all`, it has all problems, and the loops of all pods.
///
/// # Errors
/// When the API server does not answer.
pub async fn installation(
    all: bool,
    cluster: &ClusterOptions,
    format: Option<Format>,
) -> anyhow::Result<String> {
    let namespace = cluster.namespace.as_deref();
    within(async {
        let (client, url) = connect(cluster).await?;
        let found = whole::read(&client, &url, namespace, clock::now()).await?;
        match format {
            Some(format) => format.write(&whole::value(&found, all, clock::now())),
            None => Ok(whole::text(&found, all, clock::now())),
        }
    })
    .await
}

/// Returns the text of `crownlabs status` for a course: a table of its Instances, or only of those in the namespace of
/// the options.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn status(
    workspace: &str,
    cluster: &ClusterOptions,
    format: Option<Format>,
) -> anyhow::Result<String> {
    names::check_dns_label(workspace)
        .with_context(|| format!("{workspace:?} is not a valid Workspace name"))?;
    within(async {
        let (client, _) = connect(cluster).await?;
        let namespace = cluster.namespace.as_deref().unwrap_or_default();
        let label = labels::WORKSPACE.replace('/', "%2F");
        let query = format!("&labelSelector={label}%3D{workspace}");
        let instances: Vec<Instance> = match list::<InstanceKind>(&client, namespace, &query).await {
            Err(refused) if namespace.is_empty() && refused.is::<Refused>() => {
                Box::pin(in_personal_namespaces(&client, workspace, &query, refused)).await?
            }
            listed => listed?,
        };
        if instances.is_empty() {
            exists(&client, workspace).await?;
        }
        // A user without the permission to list Templates sees only the table.
        let own = format!("workspace-{workspace}");
        let of_course: Vec<Template> = list::<TemplateKind>(&client, &own, "").await.unwrap_or_default();
        let key = |template: &Template| GenericRef::new(template.namespace(), template.name());
        let mut templates: BTreeMap<GenericRef, Option<Template>> =
            of_course.iter().map(|template| (key(template), Some(template.clone()))).collect();
        let mut rows = Vec::new();
        for instance in &instances {
            let reference = &instance.spec.template_ref;
            if !templates.contains_key(reference) {
                let read = get::<TemplateKind>(&client, &reference.namespace, &reference.name).await;
                templates.insert(reference.clone(), read.ok());
            }
            rows.push(Row::of(instance, templates.get(reference).and_then(Option::as_ref)));
        }
        let now = clock::now();
        sort(&mut rows, now);
        match format {
            Some(format) => format.write(&course::value(workspace, &rows, &of_course)),
            None => Ok(course::table(&rows, now) + &course::templates(&of_course, now)),
        }
    })
    .await
}

/// Lists the Instances that match `query` in the personal namespaces of a Workspace's Tenants, because the rights of its
/// managers may end there. Returns the error `refused` if the user may not read any of these namespaces.
async fn in_personal_namespaces(
    client: &Client,
    workspace: &str,
    query: &str,
    refused: anyhow::Error,
) -> anyhow::Result<Vec<Instance>> {
    let Some(role) = labels::workspace_role(workspace) else { return Err(refused) };
    let enrolled = format!("&labelSelector={}%20in%20%28user,manager%29", role.replace('/', "%2F"));
    let Ok(tenants) = list::<TenantKind>(client, "", &enrolled).await else { return Err(refused) };
    let namespaces = tenants.into_iter().map(|tenant| tenant.status.personal_namespace);
    let lists = namespaces
        .filter(|namespace| namespace.created)
        .map(|namespace| async move { list::<InstanceKind>(client, &namespace.name, query).await });
    let mut lists = stream::iter(lists).buffer_unordered(AT_ONCE);
    let (mut instances, mut is_allowed) = (Vec::new(), false);
    while let Some(listed) = lists.next().await {
        match listed {
            Ok(listed) => {
                is_allowed = true;
                instances.extend(listed);
            }
            Err(error) if error.is::<Refused>() => {}
            Err(error) => return Err(error),
        }
    }
    if is_allowed { Ok(instances) } else { Err(refused) }
}

async fn within<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(LIMIT, work).await.context("the API server did not answer within a minute")?
}

/// Returns a client for the cluster of a command, which sends no writes, and the URL of the API server.
pub async fn connect(cluster: &ClusterOptions) -> anyhow::Result<(Client, String)> {
    let kubeconfig = start_up::kubeconfig(cluster).await?;
    let url = kubeconfig.cluster_url.to_string();
    Ok((client::build(kubeconfig, Gate::closed())?, url))
}

/// The latest warnings about the objects of an Instance.
async fn warnings(client: &Client, instance: &Instance) -> anyhow::Result<Vec<Warning>> {
    let pods = list::<PodKind>(client, instance.namespace(), &pods_of(instance)).await?;
    let mut found = Vec::new();
    let path = format!("/api/v1/namespaces/{}/events", instance.namespace());
    let read = |item| found.extend(serde_json::from_value::<Event>(item));
    let listed = client::each_listed(client, &path, WARNINGS, read).await;
    listed.map_err(|error| sentence("the events", error))?;
    Ok(crate::api::why::warnings(instance, pods.iter().map(Object::name), found))
}

/// Returns an error with similar names if the Workspace does not exist. Succeeds if the user may not list Workspaces.
async fn exists(client: &Client, workspace: &str) -> anyhow::Result<()> {
    let Ok(all) = list::<WorkspaceKind>(client, "", "").await else { return Ok(()) };
    if all.iter().any(|found| found.name() == workspace) {
        return Ok(());
    }
    let meant = nearest(workspace, all.iter().map(Object::name));
    let others: Vec<&str> = all.iter().take(10).map(Object::name).collect();
    match meant {
        Some(meant) => bail!("Workspace {workspace} not found; did you mean {meant}?"),
        None if others.is_empty() => bail!("Workspace {workspace} not found; no Workspace exists"),
        None => bail!("Workspace {workspace} not found; existing Workspaces include {}", others.join(", ")),
    }
}

/// Adds other Instances of the namespace to the error that an Instance does not exist, if the user may list them.
async fn others(client: &Client, namespace: &str, name: &str, error: anyhow::Error) -> anyhow::Error {
    let all = match list::<InstanceKind>(client, namespace, "").await {
        Ok(all) => all,
        Err(not_served) if not_served.is::<NotServed>() => return not_served,
        Err(_) => return error,
    };
    if let Some(meant) = nearest(name, all.iter().map(Object::name)) {
        return anyhow!("{error}; did you mean {meant}?");
    }
    if all.is_empty() {
        return anyhow!(
            "{error}; the namespace {namespace} has no Instance: list all with `kubectl get instances.crownlabs.polito.it -A`"
        );
    }
    let others: Vec<&str> = all.iter().take(10).map(Object::name).collect();
    anyhow!("{error}; Instances of this namespace include {}", others.join(", "))
}

/// The error for an object that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0} not found")]
struct Missing(String);

/// The error for a kind whose CRD is not installed.
#[derive(Debug, thiserror::Error)]
#[error("this cluster does not have {0}: check --kubeconfig and --context, or install the CRDs")]
struct NotServed(String);

/// The error for objects that the user may not read.
#[derive(Debug, thiserror::Error)]
#[error("you are not allowed to read {0}")]
struct Refused(String);

/// Turns a failed request into one plain sentence.
fn sentence(what: &str, error: kube::Error) -> anyhow::Error {
    if let kube::Error::Api(status) = &error
        && status.code == 401
    {
        let message = &status.message;
        return anyhow!(
            "the API server rejects this account: {message}; check the credentials in the kubeconfig"
        );
    }
    match ApiError::from(error) {
        ApiError::NotFound(_) => Missing(what.to_owned()).into(),
        ApiError::Forbidden(message) => Refused(format!("{what}: {message}")).into(),
        error => anyhow!("{what} cannot be read: {error}"),
    }
}

/// Reads an object.
async fn get<K: Kind>(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Object<K>> {
    if K::NAMESPACED {
        names::check_dns_label(namespace)
            .with_context(|| format!("{namespace:?} is not a valid namespace name"))?;
    }
    names::check_object_name(name).with_context(|| format!("{name:?} is not a valid name of {}", K::KIND))?;
    let path = format!("{}/{name}", KindInfo::of::<K>().path(namespace));
    let what = format!("{} {namespace}/{name}", K::KIND);
    // In two steps: the stores already deserialise objects from values, and deserialising them from text as well would
    // add much code.
    let value: Result<Value, _> = client.request(Request::get(path).body(Vec::new())?).await;
    let value = value.map_err(|error| sentence(&what, error))?;
    serde_json::from_value(value).with_context(|| format!("{what} cannot be read"))
}

/// Lists the objects of a namespace, or of all namespaces, that match `query`; all objects if it is empty. `query` is
/// part of a URL, so it must be encoded.
async fn list<K: Kind>(client: &Client, namespace: &str, query: &str) -> anyhow::Result<Vec<Object<K>>> {
    let mut objects = Vec::new();
    let read = |item| objects.push(serde_json::from_value(item));
    let listed = client::each_listed(client, &KindInfo::of::<K>().path(namespace), query, read).await;
    listed.map_err(|error| match error {
        kube::Error::Api(status) if status.code == 404 => {
            anyhow::Error::from(NotServed(format!("{}.{}", K::PLURAL, K::GROUP)))
        }
        error => sentence(&format!("the {}", K::PLURAL), error),
    })?;
    Ok(objects.into_iter().collect::<Result<_, _>>()?)
}
