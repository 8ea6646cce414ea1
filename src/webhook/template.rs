//! The rule for Templates: what can never become an Instance is refused to the teacher who writes it, and not to the students
//! who start it.

use serde::Deserialize as _;
use serde_json::Value;

use super::decision::{Decision, Denial};
use super::requester::{Bypass, Requester};
use super::review::{Operation, Request};
use super::view::View;
use crate::api::Template;
use crate::api::reason;
use crate::api::template_fault::TemplateFault;
use crate::api::tenancy::is_tenant_namespace;

/// Decides on a request to create or change a Template. Faults that it had before are warnings, so that everything else of
/// it can be changed; and so are those that an administrator writes, who may restore what was stored once.
pub fn validate(request: &Request, bypass: &Bypass, view: &dyn View) -> Decision {
    let requester = bypass.requester(&request.user_info);
    if !matches!(request.operation, Operation::Create | Operation::Update)
        || requester == Requester::Ourselves
    {
        return Decision::allowed();
    }
    let known =
        if request.old_object.is_null() { Vec::new() } else { faults(&request.old_object, request, view) };
    let faults = faults(&request.object, request, view);
    let (warned, refused): (Vec<_>, Vec<_>) =
        faults.into_iter().partition(|fault| requester == Requester::Administrator || known.contains(fault));
    let refusal = (!refused.is_empty()).then(|| {
        let messages: Vec<&str> = refused.iter().map(|fault| fault.message.as_str()).collect();
        let message = format!("no Instance could be made of this Template: {}", messages.join("; "));
        let is_quota = refused.iter().all(|fault| fault.reason == reason::EXCEEDS_QUOTA);
        if is_quota { Denial::forbidden(message) } else { Denial::malformed(message) }
    });
    let decision = refusal.map_or_else(Decision::allowed, Decision::denied);
    warned.into_iter().fold(decision, |decision, fault| decision.with_warning(fault.message))
}

/// The faults of a Template.
fn faults(object: &Value, request: &Request, view: &dyn View) -> Vec<TemplateFault> {
    let unreadable = |why: &dyn std::fmt::Display| {
        let message = format!("the Template cannot be read: {why}");
        vec![TemplateFault { environment: None, reason: reason::INVALID_SPEC, message }]
    };
    let template = match Template::deserialize(object) {
        Ok(template) => template,
        Err(error) => return unreadable(&error),
    };
    if let Some(why) = &template.malformed {
        return unreadable(why);
    }
    let mut faults = TemplateFault::all(&template.spec);
    // What users write in their own namespaces counts against their personal workspaces.
    let workspace = &template.spec.workspace_ref.name;
    let workspace =
        Some(workspace).filter(|name| !name.is_empty() && !is_tenant_namespace(&request.namespace));
    if let Some(workspace) = workspace.and_then(|name| view.workspace(name)) {
        faults.extend(TemplateFault::of_quota(&template.spec, workspace.name(), &workspace.spec.quota));
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::webhook::fixture::{TestCluster, merged, request};

    fn template(more: &Value) -> Value {
        let environment = merged(
            json!({
                "name": "desktop", "environmentType": "Container", "image": "example.org/desktop",
                "resources": {"cpu": 2, "reservedCPUPercentage": 25, "memory": "2Gi"},
            }),
            more,
        );
        json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Template",
            "metadata": {"name": "lab", "namespace": "workspace-tea"},
            "spec": {
                "prettyName": "Lab", "description": "d",
                "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "tea"}, "environmentList": [environment],
            },
        })
    }

    fn decide(user: &str, old: Value, new: Value) -> Decision {
        let quota = json!({"cpu": 4, "memory": "4Gi", "instances": 2});
        let cluster = TestCluster::default().with_workspace("tea", "", &quota);
        let bypass = Bypass { groups: vec!["admins".to_owned()], own_user: "daemon".to_owned() };
        let mut review = request(user, "templates", old, new);
        if user == "boss" {
            review.user_info.groups.push("admins".to_owned());
        }
        validate(&review, &bypass, &cluster)
    }

    #[test]
    fn a_fault_is_refused_to_teachers_and_told_to_administrators() {
        for (more, message) in [
            (json!({"image": "no image"}), "image is \"no image\""),
            (json!({"persistent": true}), "has no disk"),
            (json!({"resources": {"cpu": 8}}), "the Workspace tea gives to a Tenant: CPU (8 > 4)"),
        ] {
            let refused = decide("ada", Value::Null, template(&more));
            let said = refused.outcome.expect_err("a refusal").message().clone();
            assert!(
                said.starts_with("no Instance could be made of this Template: ") && said.contains(message),
                "{said}"
            );
            let told = decide("boss", Value::Null, template(&more));
            assert!(told.is_allowed() && told.warnings[0].contains(message), "{told:?}");
            assert_eq!(decide("daemon", Value::Null, template(&more)), Decision::allowed());
        }
        assert_eq!(decide("ada", Value::Null, template(&json!({}))), Decision::allowed());
    }

    #[test]
    fn what_is_stored_stays_possible() {
        let faulty = template(&json!({"image": "no image", "resources": {"cpu": 8}}));
        let renamed = merged(faulty.clone(), &json!({"spec": {"prettyName": "Other"}}));
        let kept = decide("ada", faulty.clone(), renamed);
        assert!(kept.is_allowed() && kept.warnings.len() == 2, "{kept:?}");
        // One more fault is refused, for that alone.
        let worse = template(&json!({"image": "no image", "persistent": true, "resources": {"cpu": 8}}));
        let refused = decide("ada", faulty.clone(), worse);
        let said = refused.outcome.expect_err("a refusal").message().clone();
        assert!(said.contains("has no disk") && !said.contains("no image"), "{said}");
        // The other way is open.
        assert_eq!(decide("ada", faulty, template(&json!({}))), Decision::allowed());
    }

    #[test]
    fn the_quota_of_a_course_is_nothing_to_the_namespace_of_a_tenant() {
        let mut own = template(&json!({"resources": {"cpu": 8}}));
        own["metadata"]["namespace"] = "tenant-ada".into();
        assert_eq!(decide("ada", Value::Null, own), Decision::allowed());
    }
}
