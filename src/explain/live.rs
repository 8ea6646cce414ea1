//! Reads what is explained from a cluster, with the rights of whoever asks.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use http::Request;
use kube::Client;
use serde_json::Value;

use super::course::{Row, table};
use super::instance::{self, Facts};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::names;
use crate::api::template::{Template, TemplateKind};
use crate::api::tenant::{Role, Tenant, TenantKind};
use crate::api::{Kind, Object};
use crate::manager::start_up;
use crate::runtime::client;
use crate::runtime::clock;
use crate::runtime::gate::Gate;
use crate::runtime::plan::KindInfo;

/// How long all requests of a command may take.
const LIMIT: Duration = Duration::from_mins(1);

/// The text of `crownlabs why` for an Instance. `name` is its namespace and name, with a slash between them.
///
/// # Errors
/// When there is no such Instance, or the cluster cannot be read.
pub async fn why(name: &str, kubeconfig: Option<&Path>) -> anyhow::Result<String> {
    let expected =
        || format!("{name:?} is no Instance: expected NAMESPACE/INSTANCE, such as tenant-ada/desktop");
    let (namespace, name) = name.split_once('/').with_context(expected)?;
    within(async {
        let client = connect(kubeconfig).await?;
        let instance: Instance = get::<InstanceKind>(&client, namespace, name).await?;
        let reference = &instance.spec.template_ref;
        // Who asks may see less than the daemon; then less is said.
        let template = get::<TemplateKind>(&client, &reference.namespace, &reference.name).await.ok();
        let course = template.as_ref().map(|template| template.spec.workspace_ref.name.clone());
        let managers = match course {
            Some(course) => list::<TenantKind>(&client, "").await.ok().map(|all| managers(&all, &course)),
            None => None,
        };
        let facts = Facts { instance: &instance, template: template.as_ref(), managers: managers.as_deref() };
        Ok(instance::why(&facts, clock::now()))
    })
    .await
}

/// The text of `crownlabs status` for a course: a table of its Instances.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn status(workspace: &str, kubeconfig: Option<&Path>) -> anyhow::Result<String> {
    names::check_dns_label(workspace).with_context(|| format!("{workspace:?} is no Workspace"))?;
    within(async {
        let client = connect(kubeconfig).await?;
        let label = labels::WORKSPACE.replace('/', "%2F");
        let query = format!("&labelSelector={label}%3D{workspace}");
        let instances: Vec<Instance> = list::<InstanceKind>(&client, &query).await?;
        let mut templates: BTreeMap<(String, String), Option<Template>> = BTreeMap::new();
        let mut rows = Vec::new();
        for instance in &instances {
            let reference = &instance.spec.template_ref;
            let key = (reference.namespace.clone(), reference.name.clone());
            if !templates.contains_key(&key) {
                let read = get::<TemplateKind>(&client, &reference.namespace, &reference.name).await;
                templates.insert(key.clone(), read.ok());
            }
            rows.push(Row::of(instance, templates.get(&key).and_then(Option::as_ref)));
        }
        Ok(table(rows, clock::now()))
    })
    .await
}

/// The managers of a course, by their specs.
fn managers(tenants: &[Tenant], course: &str) -> Vec<String> {
    let manages = |tenant: &&Tenant| {
        tenant.spec.workspaces.iter().any(|entry| entry.name == course && entry.role == Role::Manager)
    };
    tenants.iter().filter(manages).map(|tenant| tenant.name().to_owned()).collect()
}

async fn within(work: impl Future<Output = anyhow::Result<String>>) -> anyhow::Result<String> {
    tokio::time::timeout(LIMIT, work).await.context("the API server did not answer within a minute")?
}

async fn connect(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    Ok(client::build(start_up::kubeconfig(kubeconfig).await?, Gate::closed())?)
}

/// An object.
async fn get<K: Kind>(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Object<K>> {
    names::check_dns_label(namespace).with_context(|| format!("{namespace:?} is no namespace"))?;
    names::check_object_name(name).with_context(|| format!("{name:?} is no name of {}", K::KIND))?;
    let path = format!("{}/{name}", KindInfo::of::<K>().path(namespace));
    // In two steps, since the stores read objects from values, too: once more from text would be much code.
    let read = async {
        let value: Value = client.request(Request::get(path).body(Vec::new())?).await?;
        Ok::<_, anyhow::Error>(serde_json::from_value(value)?)
    };
    read.await.with_context(|| format!("{} {namespace}/{name} cannot be read", K::KIND))
}

/// The objects with a label; all where `query` is empty. It is part of a path, so it must be encoded.
async fn list<K: Kind>(client: &Client, query: &str) -> anyhow::Result<Vec<Object<K>>> {
    let mut objects = Vec::new();
    let read = |item| objects.push(serde_json::from_value(item));
    let listed = client::each_listed(client, &KindInfo::of::<K>().path(""), query, read).await;
    listed.with_context(|| format!("the {} cannot be listed", K::PLURAL))?;
    Ok(objects.into_iter().collect::<Result<_, _>>()?)
}
