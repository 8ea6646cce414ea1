//! The rule for Templates: a Template that no Instance can be made of is refused when the teacher writes it, not when
//! students start it.

use serde::Deserialize as _;
use serde_json::Value;

use super::decision::{Decision, Denial};
use super::requester::{Bypass, Requester};
use super::review::{Request, decoded};
use super::view::View;
use crate::api::template_fault::TemplateFault;
use crate::api::tenancy::is_tenant_namespace;
use crate::api::{Template, reason};

/// Decides on a request to create or change a Template. Existing faults are only warnings, so that other parts can be
/// changed. Faults written by an administrator are also warnings, because an administrator may restore a stored
/// Template.
pub fn validate(request: &Request, bypass: &Bypass, view: &dyn View) -> Decision {
    let requester = bypass.requester(&request.user_info);
    if !request.is_write() || requester == Requester::Ourselves {
        return Decision::allowed();
    }
    let known =
        if request.old_object.is_null() { Vec::new() } else { faults(&request.old_object, request, view) };
    let faults = faults(&request.object, request, view);
    let (warned, refused): (Vec<_>, Vec<_>) =
        faults.into_iter().partition(|fault| requester == Requester::Administrator || known.contains(fault));
    let refusal = (!refused.is_empty()).then(|| {
        let messages: Vec<&str> = refused.iter().map(|fault| fault.message.as_str()).collect();
        let is_reserved = refused.iter().all(|fault| fault.reason == reason::NAME_CONFLICT);
        let what = if is_reserved { "" } else { "no Instance could be made of this Template: " };
        let message = format!("{what}{}", messages.join("; "));
        let is_quota = refused.iter().all(|fault| fault.reason == reason::EXCEEDS_QUOTA);
        let denial = if is_quota { Denial::forbidden(message) } else { Denial::malformed(message) };
        let spec = Template::deserialize(&*request.object).map(|template| template.spec).unwrap_or_default();
        refused.iter().fold(denial, |denial, fault| match fault.path(&spec) {
            Some(path) => denial.at(path, &fault.message),
            None => denial,
        })
    });
    let decision = refusal.map_or_else(Decision::allowed, Decision::denied);
    let is_valid = decision.is_allowed() && warned.is_empty();
    let decision = warned.into_iter().fold(decision, |decision, fault| decision.with_warning(fault.message));
    // The missing parts may be added to the cluster later, so the Template is accepted.
    let is_new = request.object["spec"] != request.old_object["spec"];
    let template = Template::deserialize(&*request.object).ok().filter(|_| is_valid && is_new);
    let obstacles = template.iter().flat_map(|template| view.obstacles(template));
    obstacles.fold(decision, Decision::with_warning)
}

/// The faults of a Template.
fn faults(object: &Value, request: &Request, view: &dyn View) -> Vec<TemplateFault> {
    let template: Template = match decoded(object, "Template") {
        Ok(template) => template,
        Err(Denial { message, .. }) => {
            let (environment, field) = (None, String::new());
            return vec![TemplateFault { environment, field, reason: reason::INVALID_SPEC, message }];
        }
    };
    let mut faults = TemplateFault::all(&template.spec);
    faults.extend(TemplateFault::of_reserved_names(&template.spec));
    // Instances in a user's own namespace count against the personal workspace.
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
    fn a_fault_is_refused_for_teachers_and_a_warning_for_administrators() {
        for (more, message) in [
            (json!({"image": "no image"}), "image is \"no image\""),
            (json!({"persistent": true}), "has no disk"),
            (json!({"resources": {"cpu": 8}}), "the Workspace tea gives to a Tenant: CPU (8 > 4)"),
        ] {
            let refused = decide("ada", Value::Null, template(&more));
            let said = refused.outcome.expect_err("a refusal").message;
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
    fn a_refusal_names_the_invalid_fields() {
        let faulty = template(&json!({"image": "no image", "name": "Desktop", "resources": {"cpu": 8}}));
        let denial = decide("ada", Value::Null, faulty).outcome.expect_err("a refusal");
        let paths: Vec<&str> = denial.fields.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["spec.environmentList[0].name", "spec.environmentList[0].image"]);
        assert!(denial.fields[1].message.contains("image is \"no image\""), "{denial:?}");
    }

    #[test]
    fn a_reserved_name_is_refused_in_new_environments_only() {
        for (name, what) in [("pe", "the public exposure"), ("oauth2-proxy", "the OAuth2 proxy")] {
            let reserved = template(&json!({"name": name}));
            let refused = decide("ada", Value::Null, reserved.clone());
            let said = refused.outcome.expect_err("a refusal").message;
            let begin = format!("environment {name}: the name is reserved for {what} of an Instance");
            assert!(said.starts_with(&begin), "{said}");
            let renamed = decide("ada", template(&json!({})), reserved.clone());
            assert!(!renamed.is_allowed(), "{renamed:?}");
            let edited = merged(reserved.clone(), &json!({"spec": {"prettyName": "Other"}}));
            let kept = decide("ada", reserved, edited);
            assert!(kept.is_allowed() && kept.warnings[0].starts_with(&begin), "{kept:?}");
        }
        // An upload creates Jobs, which no environment has.
        assert_eq!(decide("ada", Value::Null, template(&json!({"name": "submitter"}))), Decision::allowed());
    }

    #[test]
    fn a_valid_template_that_the_cluster_cannot_run_now_is_accepted_with_a_warning() {
        let bypass = Bypass { groups: Vec::new(), own_user: "daemon".to_owned() };
        let quota = json!({"cpu": 4, "memory": "4Gi", "instances": 2});
        let cluster =
            TestCluster::default().with_workspace("tea", "", &quota).with_obstacle("no node is large enough");
        let decide = |old: &Value, new: Value| {
            validate(&request("ada", "templates", old.clone(), new), &bypass, &cluster)
        };
        let valid = template(&json!({}));
        let accepted = decide(&Value::Null, valid.clone());
        assert!(accepted.is_allowed() && accepted.warnings == ["no node is large enough"], "{accepted:?}");
        assert_eq!(decide(&valid, valid.clone()).warnings, [""; 0], "its spec does not change");
        let faulty = decide(&Value::Null, template(&json!({"image": "no image"})));
        assert!(!faulty.is_allowed() && faulty.warnings.is_empty(), "{faulty:?}");
    }

    #[test]
    fn stored_faults_do_not_block_other_changes() {
        let faulty = template(&json!({"image": "no image", "resources": {"cpu": 8}}));
        let renamed = merged(faulty.clone(), &json!({"spec": {"prettyName": "Other"}}));
        let kept = decide("ada", faulty.clone(), renamed);
        assert!(kept.is_allowed() && kept.warnings.len() == 2, "{kept:?}");
        // One additional fault is refused, and only that fault is reported.
        let worse = template(&json!({"image": "no image", "persistent": true, "resources": {"cpu": 8}}));
        let refused = decide("ada", faulty.clone(), worse);
        let said = refused.outcome.expect_err("a refusal").message;
        assert!(said.contains("has no disk") && !said.contains("no image"), "{said}");
        // The reverse change is allowed.
        assert_eq!(decide("ada", faulty, template(&json!({}))), Decision::allowed());
    }

    #[test]
    fn the_quota_of_a_course_does_not_apply_in_the_namespace_of_a_tenant() {
        let mut own = template(&json!({"resources": {"cpu": 8}}));
        own["metadata"]["namespace"] = "tenant-ada".into();
        assert_eq!(decide("ada", Value::Null, own), Decision::allowed());
    }
}
