//! Whether the name of an exposure's Service is free.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::children;
use super::observe::{Observed, service_name};
use super::validate::{Validated, name_conflict, own_environment};
use crate::api::environment::Environment;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::names::CanonicalName;
use crate::controllers::shared::children::name_owner;
use crate::controllers::shared::references::{ByCanonicalName, canonical_key, template_of};
use crate::controllers::shared::service_names::ServiceNames;
use crate::kinds::{LoadBalancerServiceKind, Service, ServiceKind};
use crate::runtime::store::Store;

/// The result for an exposure whose Service name is used by another Service; `None` if the name is free or belongs to
/// the exposure itself. `services` are the Services of environments.
pub fn refused(
    observed: &Observed,
    rivals: &ServiceNames<'_>,
    services: &Store<ServiceKind>,
) -> Option<Validated> {
    let instance = &observed.instance;
    let name = service_name(instance.name());
    let template = template_of(instance, rivals.templates);
    let environments = template.as_deref().map_or(&[][..], |template| &template.spec.environment_list);
    if let Some(refused) = of_own_environment(observed, &name, environments) {
        return Some(refused);
    }
    let component = (labels::COMPONENT.to_owned(), labels::COMPONENT_PUBLIC_EXPOSURE.to_owned());
    let parent = children::parent(observed, [component].into());
    if let Some(conflict) = parent.conflict::<ServiceKind>(&name) {
        return Some(Validated::Kept(name_conflict(&conflict)));
    }
    // A Service of an Instance with the same name belongs to a deleted predecessor and is still being removed.
    if observed.service().is_some_and(|service| service.metadata.controller().is_some()) {
        let conflict = parent.conflict::<LoadBalancerServiceKind>(&name)?;
        return Some(Validated::Kept(name_conflict(&conflict)));
    }
    let has_service = |other: &Instance, name: &str| {
        services.get(other.namespace(), name).is_some_and(|service| is_of_environment(&service, other))
    };
    let mut siblings: Vec<Arc<Instance>> = rivals.instances.by::<ByCanonicalName>(&canonical_key(instance));
    siblings.extend(rivals.of(instance, &name, has_service));
    let owner = name_owner::<InstanceKind>(instance, &siblings, &BTreeSet::new())?;
    Some(Validated::Kept(name_conflict(&format!("Service {name} belongs to Instance {owner}"))))
}

/// The result for an exposure whose Instance has an environment with the same Service name. The environment takes
/// precedence. The naming of the Instance's objects is known once one of them exists.
fn of_own_environment(observed: &Observed, name: &str, environments: &[Environment]) -> Option<Validated> {
    let instance = &observed.instance;
    let canonical = CanonicalName::of(instance.name());
    let of_environment = |name: &str| {
        let found = observed.children.get::<ServiceKind>(instance.namespace(), name);
        found.is_some_and(|service| is_of_environment(service, instance))
    };
    let was_of_environment =
        observed.own_service().is_some_and(|service| service.label(labels::ENVIRONMENT).is_some());
    if of_environment(name) || was_of_environment {
        return Some(Validated::Denied(own_environment(name)));
    }
    let has_it = environments.iter().any(|environment| *canonical.environment(&environment.name) == *name);
    (has_it && !of_environment(&canonical)).then_some(Validated::Unknown)
}

/// Whether a Service belongs to an environment of the Instance.
fn is_of_environment(service: &Service, instance: &Instance) -> bool {
    service.is_controlled_by(instance) && service.label(labels::COMPONENT).is_none()
}
