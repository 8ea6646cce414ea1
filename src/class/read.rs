//! Reads the people of a course and their machines, with the rights of the user.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, join, stream};

use super::cluster::Cluster;
use super::model::{Class, People, Person};
use super::run::AT_ONCE;
use crate::api::instance::InstanceKind;
use crate::api::labels::{MANAGED_BY, WORKSPACE, workspace_role};
use crate::api::names::{CanonicalName, check_dns_label};
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::{Instance, Object};
use crate::runtime::error::ApiError;

/// The number of selected people up to which the machines of each of them are listed, instead of those of the course.
const FEW: usize = 8;

/// The machines by their namespaces, and the errors of the namespaces that could not be read.
type Machines = (BTreeMap<String, Vec<Instance>>, BTreeMap<String, ApiError>);

/// Reads the students of a course, and their machines of the course. `namespace` is the namespace of its Templates.
///
/// # Errors
/// The error of the API server. A user who may not list the machines of the cluster gets those of the namespaces that
/// they may read.
pub async fn read<C: Cluster>(
    cluster: &C,
    course: &str,
    namespace: &str,
    people: &People,
) -> Result<Class, ApiError> {
    check_dns_label(course).map_err(|error| ApiError::Invalid(error.to_string()))?;
    let role = workspace_role(course).ok_or_else(|| ApiError::Invalid(format!("{course:?} is too long")))?;
    let tenants: Vec<Tenant> = cluster.list::<TenantKind>("", &selector(&format!("{role}=user"))).await?;
    let mut class = selected(&tenants, people);
    let namespaces: BTreeSet<String> = class
        .people
        .iter()
        .filter(|person| person.has_namespace)
        .map(|person| person.namespace.clone())
        .collect();
    let of_course = |machine: &Instance| match machine.label(WORKSPACE) {
        Some(label) => label == course,
        // The daemon has not added the label yet.
        None => &*machine.spec.template_ref.namespace == namespace,
    };
    let of_cluster = if namespaces.len() <= FEW { None } else { of_cluster(cluster, course).await? };
    let (machines, unread) = match of_cluster {
        Some(machines) => (machines, BTreeMap::new()),
        None => of_namespaces(cluster, namespaces).await?,
    };
    (class.machines, class.unread) = (machines, unread);
    class.machines.values_mut().for_each(|machines| machines.retain(of_course));
    Ok(class)
}

/// Returns the encoded parameter that selects objects by their labels.
fn selector(requirement: &str) -> String {
    let encoded = requirement.replace('/', "%2F").replace('=', "%3D").replace('!', "%21").replace(',', "%2C");
    format!("labelSelector={encoded}")
}

/// Returns the selected students, without machines.
fn selected(tenants: &[Tenant], people: &People) -> Class {
    let is_selected = |tenant: &&Tenant| match people {
        People::All => true,
        People::Named(names) => names.contains(tenant.name()),
    };
    let mut found: Vec<Person> = tenants.iter().filter(is_selected).map(person).collect();
    found.sort_by_cached_key(|person| (person.title.to_lowercase(), person.name.clone()));
    let strangers = match people {
        People::All => Vec::new(),
        People::Named(names) => {
            let known: BTreeSet<&str> = tenants.iter().map(Object::name).collect();
            names.iter().filter(|name| !known.contains(name.as_str())).cloned().collect()
        }
    };
    Class { people: found, strangers, ..Class::default() }
}

fn person(tenant: &Tenant) -> Person {
    let spec = &tenant.spec;
    Person {
        name: tenant.name().to_owned(),
        title: format!("{} {}", spec.first_name, spec.last_name).trim().to_owned(),
        namespace: CanonicalName::of(tenant.name()).tenant_namespace(),
        has_namespace: tenant.status.personal_namespace.created,
    }
}

/// Lists the machines of the course, and those that the daemon has not labelled yet; `None` if the user may not list the
/// machines of all namespaces, or if there are too many.
async fn of_cluster<C: Cluster>(
    cluster: &C,
    course: &str,
) -> Result<Option<BTreeMap<String, Vec<Instance>>>, ApiError> {
    let [labelled, new] = [format!("{WORKSPACE}={course}"), format!("!{WORKSPACE},!{MANAGED_BY}")];
    let (labelled, new) = (selector(&labelled), selector(&new));
    let (labelled, new) =
        join!(cluster.list::<InstanceKind>("", &labelled), cluster.list::<InstanceKind>("", &new));
    let all = match (labelled, new) {
        (Err(ApiError::Forbidden(_) | ApiError::TooLong(_)), _) | (_, Err(ApiError::TooLong(_))) => {
            return Ok(None);
        }
        (labelled, new) => labelled?.into_iter().chain(new?),
    };
    let mut machines = BTreeMap::<String, Vec<Instance>>::new();
    for machine in all {
        machines.entry(machine.namespace().to_owned()).or_default().push(machine);
    }
    Ok(Some(machines))
}

/// Lists the machines of each namespace.
async fn of_namespaces<C: Cluster>(cluster: &C, namespaces: BTreeSet<String>) -> Result<Machines, ApiError> {
    let lists = namespaces.into_iter().map(|namespace| async move {
        let listed = cluster.list::<InstanceKind>(&namespace, "").await;
        (namespace, listed)
    });
    let lists: Vec<_> = stream::iter(lists).buffer_unordered(AT_ONCE).collect().await;
    let (mut machines, mut unread) = (BTreeMap::new(), BTreeMap::new());
    for (namespace, listed) in lists {
        match listed {
            Ok(listed) => drop(machines.insert(namespace, listed)),
            Err(error) if error.is_away() => return Err(error),
            Err(error) => drop(unread.insert(namespace, error)),
        }
    }
    Ok((machines, unread))
}
