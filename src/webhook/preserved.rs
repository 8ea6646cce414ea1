//! The fields of a Template that a client drops because it does not know them.
//!
//! The official page edits a Template by replacing the whole list of environments, and `cleanup`, with the fields that
//! it knows. The API server sees an ordinary replacement, and fills in defaults before it calls webhooks. The page is
//! recognised by its field manager, whose name begins with [`PAGE`]. If such a request does not contain a field that
//! the page does not send, the stored value is kept. `kubectl` and all other clients have other field managers, and
//! their requests are not changed.

use std::collections::{BTreeMap, BTreeSet};

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use serde_json::Value;

use super::decision::Decision;
use super::review::{Operation, Request};
use crate::api::template::NEVER;

/// The prefix of the page's field manager.
const PAGE: &str = "frontend-";

/// The list of environments in a Template.
const ENVIRONMENTS: &str = "environmentList";

/// The path of a field of an environment, and the value that the API server fills in, if there is one.
type Field = (&'static [&'static str], Option<&'static str>);

/// The fields that the page does not send, or that it did not send in an earlier version.
const FIELDS: [Field; 5] = [
    (&["mode"], Some("Standard")),
    (&["nodeSelector"], None),
    (&["storageClassName"], None),
    (&["containerStartupOptions"], None),
    (&["resources", "otherResources"], None),
];

/// Returns the member at a path.
fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(*name))
}

/// Returns the value of a field; `None` if it is absent or the default.
fn value(environment: &Value, (path, default): Field) -> Option<&Value> {
    let is_set = |value: &&Value| !value.is_null() && value.as_str().is_none_or(|text| Some(text) != default);
    at(environment, path).filter(is_set)
}

/// Whether a field can be set in an environment, because its parent object exists.
fn has_place(environment: &Value, (path, _): Field) -> bool {
    let above = path.split_last().map_or(&[][..], |(_, above)| above);
    at(environment, above).is_some_and(Value::is_object)
}

/// The members of `cleanup` with an older field, which is effective while the member is absent. The page writes `never`
/// into an absent member.
const CLEANUP: [(&str, &str); 2] =
    [("deleteAfterCreation", "deleteAfter"), ("stopAfterInactivity", "inactivityTimeout")];

/// Decides on a change of a Template, and keeps the fields that the page does not know.
pub fn complete(request: &Request) -> Decision {
    let is_of_page = request.options.field_manager.starts_with(PAGE);
    if request.operation != Operation::Update || !is_of_page {
        return Decision::allowed();
    }
    let (old, new) = (&request.old_object["spec"], &request.object["spec"]);
    Decision::patched([environments(old, new), cleanup(old, new)].concat())
}

/// Restores the fields of environments.
fn environments(old: &Value, new: &Value) -> Vec<PatchOperation> {
    let (Some(old), Some(new)) = (old[ENVIRONMENTS].as_array(), new[ENVIRONMENTS].as_array()) else {
        return Vec::new();
    };
    let mut operations = Vec::new();
    for (index, before) in pairs(old, new) {
        let (Some(before), Some(after)) = (old.get(before), new.get(index)) else { continue };
        let index = index.to_string();
        for field in FIELDS {
            let is_lost = value(after, field).is_none() && has_place(after, field);
            let Some(value) = value(before, field).filter(|_| is_lost) else { continue };
            let path = PointerBuf::from_tokens([&["spec", ENVIRONMENTS, &index][..], field.0].concat());
            operations.push(PatchOperation::Add(AddOperation { path, value: value.clone() }));
        }
    }
    operations
}

/// Returns the positions of environments in the new list and in the old one. They are matched by name, and the rest by
/// their order, since the page can rename an environment.
fn pairs(old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    fn name(environment: &Value) -> &str {
        environment["name"].as_str().unwrap_or_default()
    }
    let by_name: BTreeMap<&str, usize> = old.iter().enumerate().map(|(at, one)| (name(one), at)).collect();
    let named = |(at, one)| Some((at, *by_name.get(name(one))?));
    let mut found: Vec<(usize, usize)> = new.iter().enumerate().filter_map(named).collect();
    let (taken, known): (BTreeSet<usize>, BTreeSet<usize>) = found.iter().copied().unzip();
    let left = (0..new.len()).filter(|at| !taken.contains(at));
    found.extend(left.zip((0..old.len()).filter(|at| !known.contains(at))));
    found
}

/// Removes each `never` from `cleanup` that would replace an older field.
fn cleanup(old: &Value, new: &Value) -> Vec<PatchOperation> {
    let has_older = |older: &str| new[older].as_str().is_some_and(|text| text != NEVER && !text.is_empty());
    let is_added = |newer: &str| old["cleanup"][newer].is_null() && new["cleanup"][newer] == NEVER;
    let lost = CLEANUP.into_iter().filter(|(newer, older)| is_added(newer) && has_older(older));
    let path = |newer: &str| PointerBuf::from_tokens(["spec", "cleanup", newer]);
    lost.map(|(newer, _)| PatchOperation::Remove(RemoveOperation { path: path(newer) })).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::crd::crds;
    use crate::webhook::fixture::{merged, request};

    /// The fields of an environment that the page sends in each request.
    const SENT: [&str; 11] = [
        "name",
        "mountMyDriveVolume",
        "guiEnabled",
        "persistent",
        "environmentType",
        "image",
        "disableControls",
        "rewriteURL",
        "sharedVolumeMounts",
        "resources",
        "containerStartupOptions",
    ];

    /// An environment as the page sends it, after the API server has filled in defaults.
    fn sent(name: &str) -> Value {
        json!({
            "name": name, "environmentType": "Container", "image": "example.org/exam", "guiEnabled": true,
            "mode": "Standard", "persistent": false, "mountMyDriveVolume": true, "sharedVolumeMounts": [],
            "resources": {"cpu": 2, "reservedCPUPercentage": 50, "memory": "2Gi"},
        })
    }

    /// The same environment with every field that the page does not know.
    fn stored(name: &str) -> Value {
        let more = json!({
            "mode": "Exam", "nodeSelector": {"room": "exam"}, "storageClassName": "fast",
            "containerStartupOptions": {"startupArgs": ["--kiosk"], "enforceWorkdir": false},
            "resources": {"otherResources": {"nvidia.com/gpu": "1"}},
        });
        merged(sent(name), &more)
    }

    fn template(environments: &[Value], more: &Value) -> Value {
        let spec = json!({"prettyName": "Exam", "description": "d", "environmentList": environments});
        json!({"metadata": {"name": "exam", "namespace": "workspace-tea"}, "spec": merged(spec, more)})
    }

    /// The stored Template after a change by a client with this field manager.
    fn written(manager: &str, old: &Value, new: &Value) -> Value {
        let mut review = request("teacher", "templates", old.clone(), new.clone());
        review.options.field_manager = manager.to_owned();
        let patch = complete(&review).outcome.expect("nothing is refused");
        let mut written = new.clone();
        json_patch::patch(&mut written, &patch).expect("the patch applies");
        written
    }

    #[test]
    fn the_page_keeps_the_fields_that_it_does_not_know() {
        let none = json!({});
        let old = template(&[stored("exam")], &none);
        let renamed = json!({"prettyName": "Exam of June"});
        let edited = template(&[sent("exam")], &renamed);
        assert_eq!(written("frontend-template-patch", &old, &edited), template(&[stored("exam")], &renamed));
        for other in ["", "kubectl-edit", "kubectl-patch", "kustomize-controller", "my-frontend-"] {
            assert_eq!(written(other, &old, &edited), edited, "{other}: what it sends counts");
        }
    }

    #[test]
    fn a_field_that_the_page_sends_counts() {
        let none = json!({});
        let old = template(&[stored("exam")], &none);
        let explicit = json!({
            "mode": "Exercise", "nodeSelector": {}, "storageClassName": "slow",
            "containerStartupOptions": {}, "resources": {"otherResources": {}},
        });
        let new = template(&[merged(sent("exam"), &explicit)], &none);
        assert_eq!(written("frontend-template-patch", &old, &new), new);
    }

    #[test]
    fn environments_are_matched_by_name_and_then_in_their_order() {
        let none = json!({});
        let of = |list: &[Value]| template(list, &none);
        for (old, new, expected) in [
            (vec![stored("a"), sent("b")], vec![sent("b"), sent("a")], vec![sent("b"), stored("a")]),
            (vec![stored("a")], vec![sent("other")], vec![stored("other")]),
            (vec![stored("a")], vec![sent("a"), sent("new")], vec![stored("a"), sent("new")]),
            (vec![sent("a"), stored("b")], vec![sent("c"), sent("a")], vec![stored("c"), sent("a")]),
            (vec![], vec![sent("a")], vec![sent("a")]),
        ] {
            assert_eq!(written("frontend-template-patch", &of(&old), &of(&new)), of(&expected));
        }
    }

    #[test]
    fn never_does_not_take_the_place_of_an_older_field() {
        let with = |cleanup: Value| {
            template(&[], &json!({"deleteAfter": "30d", "inactivityTimeout": "never", "cleanup": cleanup}))
        };
        let page = json!({
            "deleteAfterCreation": "never", "stopAfterInactivity": "never", "deleteAfterInactivity": "60d",
        });
        let kept = json!({"stopAfterInactivity": "never", "deleteAfterInactivity": "60d"});
        assert_eq!(written("frontend-template-patch", &with(json!({})), &with(page.clone())), with(kept));
        // An administrator has written the value, so the page sends it unchanged.
        let explicit = with(json!({"deleteAfterCreation": "never"}));
        assert_eq!(written("frontend-template-patch", &explicit, &with(page.clone())), with(page));
    }

    #[test]
    fn an_object_that_is_no_template_is_left_alone() {
        let old = template(&[stored("exam")], &json!({}));
        for new in
            [json!({}), json!({"spec": 1}), json!({"spec": {"environmentList": [1, {"resources": 1}]}})]
        {
            let mut review = request("teacher", "templates", old.clone(), new.clone());
            review.options.field_manager = "frontend-template-patch".to_owned();
            assert!(complete(&review).is_allowed(), "{new}");
        }
    }

    #[test]
    fn every_field_of_an_environment_is_sent_by_the_page_or_kept() {
        let crd = crds().into_iter().find(|crd| crd.spec.names.kind == "Template").expect("the CRD");
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).expect("JSON");
        let fields = &schema["openAPIV3Schema"]["properties"]["spec"]["properties"][ENVIRONMENTS]["items"];
        let fields = fields["properties"].as_object().expect("an object");
        let kept: Vec<&str> = FIELDS.iter().map(|field| field.0[0]).collect();
        let lost: Vec<&String> = fields
            .keys()
            .filter(|name| !SENT.contains(&name.as_str()) && !kept.contains(&name.as_str()))
            .collect();
        assert_eq!(lost, Vec::<&String>::new(), "the page would drop these");
        let default = |field: &Field| fields[field.0[0]]["default"].as_str().map(str::to_owned);
        assert!(FIELDS.iter().all(|field| default(field).as_deref() == field.1), "defaults of the CRD");
    }
}
