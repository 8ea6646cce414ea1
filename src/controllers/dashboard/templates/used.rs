//! The use of Templates: the machines that were made from them, and the students who may start one.

use futures::stream::{self, StreamExt as _};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::place::Place;
use crate::api::instance::InstanceKind;
use crate::api::tenant::TenantKind;
use crate::api::workspace::NameCreated;
use crate::api::{GenericRef, Instance, labels};
use crate::controllers::dashboard::student::read::Reads;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The maximum number of personal namespaces that a page reads one by one. The use of Templates in larger courses is
/// unknown to managers without rights in the whole cluster; the page of the class shows it.
const MOST_NAMESPACES: usize = 128;
/// The maximum number of concurrent requests of a page.
const AT_ONCE: usize = 32;

/// A machine that was made from a Template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its Template.
    pub template: GenericRef,
    /// Whether it should run.
    pub is_running: bool,
}

/// The numbers of machines of a Template.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All machines.
    pub all: usize,
    /// Those that should run.
    pub running: usize,
}

/// The part of an Instance that is decoded.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Listed {
    metadata: ListedMetadata,
    spec: ListedSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedMetadata {
    name: String,
    namespace: String,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
struct ListedSpec {
    #[serde(rename = "template.crownlabs.polito.it/TemplateRef")]
    template: GenericRef,
    running: bool,
}

impl Default for ListedSpec {
    fn default() -> Self {
        // An absent field counts as true, as in the schema.
        Self { template: GenericRef::default(), running: true }
    }
}

/// The part of a Tenant that is decoded.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Enrolled {
    status: EnrolledStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EnrolledStatus {
    personal_namespace: NameCreated,
}

impl From<Listed> for Used {
    fn from(Listed { metadata, spec }: Listed) -> Self {
        let ListedMetadata { name, namespace } = metadata;
        Self { namespace, name, template: spec.template, is_running: spec.running }
    }
}

impl From<&Instance> for Used {
    fn from(instance: &Instance) -> Self {
        Self {
            namespace: instance.namespace().to_owned(),
            name: instance.name().to_owned(),
            template: instance.spec.template_ref.clone(),
            is_running: instance.spec.running,
        }
    }
}

impl Used {
    /// Reads the machines of a place; `None` if the user may not list them, or if there are too many for a page.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn read(reads: &Reads<'_>, place: &Place) -> Result<Option<Vec<Self>>, ApiError> {
        let Some(course) = place.course() else {
            let own = place.own().known.instances.iter();
            return Ok(Some(own.map(|instance| Self::from(&**instance)).collect()));
        };
        let label = labels::WORKSPACE.replace('/', "%2F");
        let query = format!("&labelSelector={label}%3D{}", course.name());
        let (client, credential) = (&reads.users.client, &reads.user.credential);
        let kind = KindInfo::of::<InstanceKind>();
        let listed = match client.list_as::<Listed>(credential, kind, "", &query).await {
            Err(ApiError::Forbidden(_)) => Box::pin(of_namespaces(reads, course.name(), &query)).await?,
            listed => known(listed)?,
        };
        Ok(listed.map(|listed| listed.into_iter().map(Self::from).collect()))
    }

    /// Whether the machine was made from a Template.
    pub fn is_of(&self, namespace: &str, template: &str) -> bool {
        *self.template.name == *template && *self.template.namespace == *namespace
    }
}

impl Counts {
    /// Counts the machines of a Template.
    pub fn of(used: &[Used], namespace: &str, template: &str) -> Self {
        let own = used.iter().filter(|machine| machine.is_of(namespace, template));
        own.fold(Self::default(), |counts, machine| Self {
            all: counts.all + 1,
            running: counts.running + usize::from(machine.is_running),
        })
    }
}

/// Lists the machines that match `query` in the personal namespaces of a course's people, because the rights of its
/// managers may end there; `None` if they may not list them, or if there are too many namespaces.
async fn of_namespaces(
    reads: &Reads<'_>,
    course: &str,
    query: &str,
) -> Result<Option<Vec<Listed>>, ApiError> {
    let Some(label) = labels::workspace_role(course) else { return Ok(None) };
    let enrolled = format!("&labelSelector={}%20in%20%28user,manager%29", label.replace('/', "%2F"));
    let (client, credential) = (&reads.users.client, &reads.user.credential);
    let people = client.list_as::<Enrolled>(credential, KindInfo::of::<TenantKind>(), "", &enrolled).await;
    let Some(people) = known(people)? else { return Ok(None) };
    let mut namespaces: Vec<NameCreated> =
        people.into_iter().map(|person| person.status.personal_namespace).collect();
    namespaces.retain(|namespace| namespace.created);
    if namespaces.len() > MOST_NAMESPACES {
        return Ok(None);
    }
    let kind = KindInfo::of::<InstanceKind>();
    let lists = namespaces.into_iter().map(|namespace| async move {
        client.list_as::<Listed>(credential, kind, &namespace.name, query).await
    });
    let mut lists = stream::iter(lists).buffer_unordered(AT_ONCE);
    let mut found = Vec::new();
    while let Some(listed) = lists.next().await {
        let Some(listed) = known(listed)? else { return Ok(None) };
        found.extend(listed);
    }
    Ok(Some(found))
}

/// Counts the students of a place; `None` if the user may not list them. The personal workspace has one user.
///
/// # Errors
/// The error of the API server.
pub async fn students(reads: &Reads<'_>, place: &Place) -> Result<Option<usize>, ApiError> {
    let Some(course) = place.course() else { return Ok(Some(1)) };
    let Some(label) = labels::workspace_role(course.name()) else { return Ok(None) };
    let query = format!("&labelSelector={}%3Duser", label.replace('/', "%2F"));
    let (client, credential) = (&reads.users.client, &reads.user.credential);
    let listed = client.list_as::<IgnoredAny>(credential, KindInfo::of::<TenantKind>(), "", &query).await;
    Ok(known(listed)?.map(|students| students.len()))
}

/// Returns a list; `None` if the user may not read it, or if it is too long for a page.
fn known<A>(listed: Result<Vec<A>, ApiError>) -> Result<Option<Vec<A>>, ApiError> {
    match listed {
        Ok(listed) => Ok(Some(listed)),
        Err(ApiError::Forbidden(_) | ApiError::NotFound(_) | ApiError::TooLong(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod unit_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_machines_of_a_template_are_counted() {
        let machine = |template: &str, spec: serde_json::Value| -> Used {
            let mut spec = spec;
            spec["template.crownlabs.polito.it/TemplateRef"] =
                json!({"name": template, "namespace": "workspace-net"});
            let listed = json!({"metadata": {"name": "vm", "namespace": "tenant-ada"}, "spec": spec});
            serde_json::from_value::<Listed>(listed).expect("an Instance").into()
        };
        let used = [
            machine("web", json!({"running": false})),
            machine("web", json!({})),
            machine("desktop", json!({"running": true})),
        ];
        let of = |namespace, template| Counts::of(&used, namespace, template);
        assert_eq!(of("workspace-net", "web"), Counts { all: 2, running: 1 });
        assert_eq!(of("workspace-net", "none"), Counts::default());
        assert_eq!(of("workspace-data", "web"), Counts::default());
    }
}
