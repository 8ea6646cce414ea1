//! The object or patch for a request to create or replace an Instance.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::access::is_own;
use super::body::WantedInstance;
use crate::api::instance::InstanceKind;
use crate::api::{Instance, Template};
use crate::config::ExamAgentConfig;
use crate::runtime::merge;
use crate::runtime::plan::KindInfo;

/// The key in `contentUrls` for the first environment, if its name is unknown.
const FIRST: &str = "default";

/// The write that a request needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// A new object.
    Create(Value),
    /// A merge patch for the object and version that were read.
    Patch(Value),
    /// Nothing: the Instance is up to date.
    Nothing,
}

/// The write for the Instance `name`. `current` is the object as it was read, as JSON and decoded. `template` is the
/// requested Template, if it was read.
///
/// The whole spec is replaced, except that the URL of the status check is kept if the client does not send one. Labels
/// are added or changed, and never removed.
pub fn write(
    config: &ExamAgentConfig,
    name: &str,
    wanted: &WantedInstance,
    template: Option<&Template>,
    current: Option<(&Value, &Instance)>,
) -> Write {
    let spec = spec(config, wanted, template, current.map(|(_, instance)| instance));
    let labels = wanted.labels.iter().filter(|(key, _)| !is_own(key));
    let labels: Map<String, Value> =
        labels.map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    let Some((current, _)) = current else {
        let mut metadata = json!({"name": name, "namespace": config.namespace});
        if !labels.is_empty() {
            metadata["labels"] = labels.into();
        }
        let kind = KindInfo::of::<InstanceKind>();
        return Write::Create(
            json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec}),
        );
    };
    let labels = merge::required(&current["metadata"]["labels"], &Value::Object(labels));
    let spec = merge::difference(&current["spec"], &spec);
    if labels.is_none() && spec.is_none() {
        return Write::Nothing;
    }
    let metadata = &current["metadata"];
    let mut patch =
        json!({"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}});
    if let Some(labels) = labels {
        patch["metadata"]["labels"] = labels;
    }
    if let Some(spec) = spec {
        patch["spec"] = spec;
    }
    Write::Patch(patch)
}

/// The requested spec. It has the fields of both generations that the client has set. The URL of the status check is
/// set in both, so that the Go operators find it, too.
fn spec(
    config: &ExamAgentConfig,
    wanted: &WantedInstance,
    template: Option<&Template>,
    current: Option<&Instance>,
) -> Value {
    let given = &wanted.customization;
    let customization = non_empty([
        ("contentOrigin", given.content_origin.as_str()),
        ("contentDestination", &given.content_destination),
        ("statusCheck", given.status_check.as_deref().unwrap_or_default()),
    ]);
    let mut spec = json!({
        "template.crownlabs.polito.it/TemplateRef": {"name": wanted.template, "namespace": config.namespace},
        "tenant.crownlabs.polito.it/TenantRef": {"name": config.tenant},
        "running": wanted.running,
        "prettyName": format!("Exam {}", wanted.id),
        "customizationUrls": customization,
    });
    let kept = || current.map_or("", |instance| instance.spec.effective_status_check_url());
    let check = given.status_check.as_deref().unwrap_or_else(kept);
    if !check.is_empty() {
        spec["statusCheckUrl"] = check.into();
    }
    let contents = contents(wanted, template);
    if !contents.is_empty() {
        spec["contentUrls"] = json!(contents);
    }
    spec
}

/// The URLs that are not empty, by key.
fn non_empty<'a>(urls: impl IntoIterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    let set = urls.into_iter().filter(|(_, url)| !url.is_empty());
    set.map(|(key, url)| (key.to_owned(), url.into())).collect()
}

/// `contentUrls` by environment: the same URLs for each environment of the Template.
fn contents(wanted: &WantedInstance, template: Option<&Template>) -> BTreeMap<String, Value> {
    let content = &wanted.content;
    let urls = non_empty([("origin", content.origin.as_str()), ("destination", &content.destination)]);
    if urls.is_empty() {
        return BTreeMap::new();
    }
    let environments = template.map_or(&[][..], |template| &template.spec.environment_list);
    let mut names: Vec<&str> = environments.iter().map(|environment| environment.name.as_str()).collect();
    if names.is_empty() {
        names.push(FIRST);
    }
    names.into_iter().map(|name| (name.to_owned(), Value::Object(urls.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::exam_agent::body;

    fn config() -> ExamAgentConfig {
        let (namespace, tenant) = ("exams".to_owned(), "service-tenant".to_owned());
        ExamAgentConfig { namespace, tenant, ..ExamAgentConfig::default() }
    }

    fn wanted(body: &Value) -> WantedInstance {
        body::read(body.to_string().as_bytes()).expect("a body")
    }

    fn template(environments: &[&str]) -> Template {
        let environments: Vec<Value> = environments.iter().map(|name| json!({"name": name})).collect();
        serde_json::from_value(json!({"metadata": {"name": "t"}, "spec": {"environmentList": environments}}))
            .expect("a Template")
    }

    fn created(body: &Value) -> Value {
        match write(&config(), "exam-1", &wanted(body), None, None) {
            Write::Create(object) => object,
            other => panic!("{other:?}"),
        }
    }

    /// The write that changes an existing object.
    fn over(current: &Value, body: &Value) -> Write {
        let instance: Instance = serde_json::from_value(current.clone()).expect("an Instance");
        write(&config(), "exam-1", &wanted(body), None, Some((current, &instance)))
    }

    /// The object as the API server stores it.
    fn stored(mut object: Value) -> Value {
        object["metadata"]["uid"] = "u".into();
        object["metadata"]["resourceVersion"] = "7".into();
        object
    }

    #[test]
    fn a_new_instance_is_of_the_tenant_of_exams_and_from_the_namespace() {
        let body = json!({
            "id": "s123456", "template": "desktop", "labels": {"course": "tsr"},
            "customizationUrls": {"contentOrigin": "https://o", "statusCheck": "https://s"},
        });
        assert_eq!(
            created(&body),
            json!({
                "apiVersion": "crownlabs.polito.it/v1alpha2",
                "kind": "Instance",
                "metadata": {"name": "exam-1", "namespace": "exams", "labels": {"course": "tsr"}},
                "spec": {
                    "template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "exams"},
                    "tenant.crownlabs.polito.it/TenantRef": {"name": "service-tenant"},
                    "running": true,
                    "prettyName": "Exam s123456",
                    "customizationUrls": {"contentOrigin": "https://o", "statusCheck": "https://s"},
                    "statusCheckUrl": "https://s",
                },
            })
        );
        let bare = created(&json!({}));
        assert_eq!(
            (&bare["spec"]["prettyName"], &bare["spec"]["customizationUrls"]),
            (&json!("Exam "), &json!({}))
        );
        assert_eq!(bare["metadata"], json!({"name": "exam-1", "namespace": "exams"}));
    }

    #[test]
    fn contents_are_stored_under_the_names_of_the_environments() {
        let body = wanted(&json!({"contentUrls": {"origin": "https://o", "destination": "https://d"}}));
        let urls = json!({"origin": "https://o", "destination": "https://d"});
        for (template, expected) in [
            (Some(template(&["desktop"])), json!({"desktop": urls})),
            (Some(template(&["a", "b"])), json!({"a": urls, "b": urls})),
            (Some(template(&[])), json!({"default": urls})),
            (None, json!({"default": urls})),
        ] {
            assert_eq!(json!(contents(&body, template.as_ref())), expected);
        }
        assert_eq!(contents(&wanted(&json!({"contentUrls": {"origin": ""}})), None), BTreeMap::new());
    }

    #[test]
    fn the_whole_spec_is_replaced_and_labels_are_added() {
        let body = json!({"id": "x", "template": "desktop", "labels": {"course": "tsr"}});
        let mut current = stored(created(&body));
        assert_eq!(over(&current, &body), Write::Nothing);
        current["spec"]["running"] = false.into();
        current["spec"]["nodeSelector"] = json!({"disk": "fast"});
        current["spec"]["publicExposure"] = json!({"ports": []});
        current["spec"]["customizationUrls"] = json!({"contentOrigin": "https://old"});
        current["metadata"]["labels"] =
            json!({"course": "old", "kept": "1", "crownlabs.polito.it/template": "desktop"});
        let again = json!({"id": "x", "template": "desktop",
            "labels": {"course": "tsr", "new": "1", "crownlabs.polito.it/template": "desktop"}});
        assert_eq!(
            over(&current, &again),
            Write::Patch(json!({
                "metadata": {"uid": "u", "resourceVersion": "7", "labels": {"course": "tsr", "new": "1"}},
                "spec": {
                    "running": true, "nodeSelector": null, "publicExposure": null,
                    "customizationUrls": {"contentOrigin": null},
                },
            }))
        );
        // An Instance without labels gets them, too.
        let Some(metadata) = current["metadata"].as_object_mut() else { panic!("metadata") };
        metadata.remove("labels");
        let Write::Patch(patch) = over(
            &current,
            &json!({"id": "x", "template": "desktop", "running": false, "labels": {"a": "1"}}),
        ) else {
            panic!("a patch")
        };
        assert_eq!(patch["metadata"]["labels"], json!({"a": "1"}));
    }

    #[test]
    fn the_status_check_is_kept_unless_the_client_names_one() {
        let current = stored(created(&json!({"customizationUrls": {"statusCheck": "https://s"}})));
        let after = |body: &Value| {
            let mut object = current.clone();
            if let Write::Patch(patch) = over(&current, body) {
                merge::apply(&mut object, &patch);
            }
            let instance: Instance = serde_json::from_value(object).expect("an Instance");
            instance.spec.effective_status_check_url().to_owned()
        };
        for (body, expected) in [
            (json!({}), "https://s"),
            (json!({"customizationUrls": {}}), "https://s"),
            (json!({"customizationUrls": {"statusCheck": null}}), "https://s"),
            (json!({"contentUrls": {"origin": "https://o"}}), "https://s"),
            (json!({"customizationUrls": {"statusCheck": "https://other"}}), "https://other"),
            (json!({"customizationUrls": {"statusCheck": ""}}), ""),
        ] {
            assert_eq!(after(&body), expected, "{body}");
        }
    }

    #[test]
    fn a_second_request_after_any_first_one_writes_nothing() {
        for body in [
            json!({}),
            json!({"id": "a", "template": "t", "running": false, "labels": {"a": ""}}),
            json!({"contentUrls": {"origin": "https://o"}, "customizationUrls": {"statusCheck": "https://s"}}),
        ] {
            let mut current = stored(created(&json!({"customizationUrls": {"contentOrigin": "https://x"}})));
            if let Write::Patch(patch) = over(&current, &body) {
                merge::apply(&mut current, &patch);
            }
            assert_eq!(over(&current, &body), Write::Nothing, "{body}");
        }
    }
}
