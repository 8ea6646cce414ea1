//! The Instances that managers may write if their rights end at their courses (`controllers.tenant.managers: course`).
//!
//! The binding in a personal namespace names the managers of all courses of its Tenant, so RBAC does not separate these
//! courses. This rule does: a manager may create, change and delete only Instances whose Template belongs to a course of
//! theirs. A user who is not in a group of managers has their rights from a binding that an administrator made, so the rule
//! does not apply to them.

use std::collections::BTreeSet;

use serde::Deserialize as _;

use crate::api::denial::DenialReason;
use crate::api::names::managed_workspace;
use crate::api::tenancy::is_tenant_namespace;
use crate::api::{GenericRef, Instance};
use crate::webhook::bounded::BoundedObject;
use crate::webhook::decision::Denial;
use crate::webhook::requester::{Bypass, Requester};
use crate::webhook::review::{Operation, Request};
use crate::webhook::view::View;

/// Refuses a write of an Instance, or of its status, to a manager of other courses. An update needs the right on the
/// Template before and after it.
pub fn check(request: &Request, bypass: &Bypass, view: &dyn View) -> Result<(), Denial> {
    let user = &request.user_info;
    let managed: BTreeSet<&str> = user.groups.iter().filter_map(|group| managed_workspace(group)).collect();
    if managed.is_empty() || bypass.requester(user) != Requester::Other {
        return Ok(());
    }
    let owner = view.tenant_of_namespace(&request.namespace);
    if owner.is_some_and(|owner| owner == user.username) {
        return Ok(());
    }
    let written: Vec<&BoundedObject> = match request.operation {
        Operation::Create => vec![&request.object],
        Operation::Update => vec![&request.old_object, &request.object],
        Operation::Delete => vec![&request.old_object],
        Operation::Connect => Vec::new(),
    };
    written.into_iter().try_for_each(|object| {
        // An object that cannot be read names no Template, so no manager may write it.
        let template = Instance::deserialize(&**object).map(|instance| instance.spec.template_ref);
        let template = template.unwrap_or_default();
        match course(&template, view) {
            Some(course) if managed.contains(course.as_str()) => Ok(()),
            course => Err(refusal(request, &template, course.as_deref())),
        }
    })
}

/// The course that a Template belongs to; `None` if it belongs to a Tenant, or to no course.
fn course(template: &GenericRef, view: &dyn View) -> Option<String> {
    if template.is_empty() || is_tenant_namespace(&template.namespace) {
        return None;
    }
    let named = view.template(&template.namespace, &template.name);
    let named = named.map(|found| found.spec.workspace_ref.name.to_string()).filter(|name| !name.is_empty());
    // The namespace decides about a Template that is gone.
    named.or_else(|| template.namespace.strip_prefix("workspace-").map(str::to_owned))
}

fn refusal(request: &Request, template: &GenericRef, course: Option<&str>) -> Denial {
    let (namespace, name) = (&request.namespace, request.object_name());
    let (of, who) = match course {
        Some(course) => {
            (format!("of Workspace {course}, which you do not manage"), format!("a manager of {course} or "))
        }
        None => ("of no Workspace".to_owned(), String::new()),
    };
    let message = format!(
        "you may not create, change or delete the Instance {namespace}/{name}, because its Template {template} is {of}: ask {who}\
         the user of {namespace}"
    );
    Denial::forbidden(message).because(DenialReason::OfAnotherCourse, course.unwrap_or_default())
}
