//! Tests of the pages of Templates.

mod crd;
mod requests;

use std::sync::Arc;

use maud::Markup;
use serde_json::{Value, json};

use super::actions::ACTIONS;
use super::choices::{Amounts, Choices, Room};
use super::cost::Cost;
use super::draft::Draft;
use super::editing::{Content, Editing, FormPage, Version};
use super::faults::Faults;
use super::fields::TEMPLATES;
use super::form_view;
use super::list_view::{self, One};
use super::place::Place;
use super::source::Sources;
use super::used::Used;
use super::yaml;
use crate::api::{GenericRef, Template};
use crate::config::Language;
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::course::Course;
use crate::controllers::dashboard::student::read::{NamespaceRules, Own};
use crate::controllers::dashboard::student::{Known, Rights, Student};
use crate::controllers::dashboard::tests::fixtures::{
    Everything, NAMESPACE, condition, read, settings, tenant, view as view_of, workspace,
};
use crate::controllers::dashboard::tests::people;
use crate::controllers::dashboard::texts::texts;
use crate::controllers::dashboard::ui::view::View;
use crate::runtime::client::Rules;

/// The rules of a user with these rights, as the API server lists them.
fn rules(namespace: &str, rights: &dyn Rights) -> NamespaceRules {
    let of_templates = ACTIONS.iter().map(|action| action.right);
    let granted = of_templates.filter(|right| rights.may(namespace, right));
    let rule = |Right { verb, group, resource }: Right| json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]});
    let rules: Rules = read(json!({"resourceRules": granted.map(rule).collect::<Vec<_>>()}));
    NamespaceRules { namespace: namespace.to_owned(), rules: Arc::new(rules) }
}

/// Returns a course, and the personal workspace of a user with these rights.
fn places(rights: &dyn Rights, text: &str) -> [Place; 2] {
    let course = people::course();
    let workspace = Arc::new(workspace("net", text, "", 3));
    let course = Course { workspace, rules: rules("workspace-net", rights), ..course };
    let known = Known::new(tenant(&json!([]), 9), vec![], vec![], vec![], vec![]);
    let own = Own { known, without_tenant: None, rules: rules(NAMESPACE, rights), topics: vec![] };
    [Place::Course(Box::new(course)), Place::Personal(Box::new(own))]
}

/// Returns a Template with a text in each field.
fn stored(namespace: &str, text: &str) -> Value {
    json!({
        "metadata": {
            "name": "lab", "namespace": namespace, "uid": "u1", "generation": 3, "labels": {"a": text},
        },
        "spec": {
            "prettyName": text, "description": text, "deleteAfter": text, "nodeSelector": {text: text},
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "net"},
            "cleanup": {"stopAfterInactivity": text},
            "environmentList": [{
                "name": text, "image": text, "environmentType": text, "mode": text, "storageClassName": text,
                "persistent": true, "mountMyDriveVolume": true, "nodeSelector": {},
                "containerStartupOptions": {"startupArgs": [text], "contentPath": text},
                "sharedVolumeMounts": [{"sharedVolume": {"name": text}, "mountPath": text, "readOnly": true}],
                "resources": {
                    "cpu": 2, "reservedCPUPercentage": 50, "memory": "4Gi", "disk": "8Gi",
                    "otherResources": {text: "1"},
                },
            }],
        },
        "status": {"conditions": [condition("Valid", "False", text, text)]},
    })
}

fn choices(text: &str) -> Choices {
    let amounts = |cpu: &str| -> Amounts { [("cpu".to_owned(), cpu.parse().expect("a quantity"))].into() };
    let mut allocatable = amounts("8");
    allocatable.insert(format!("example.org/{text}"), "2".parse().expect("a quantity"));
    let list = || vec![text.to_owned()];
    Choices {
        images: list(),
        storage_classes: list(),
        volumes: list(),
        labels: list(),
        room: Some(Room { allocatable, free: Some(amounts("4")) }),
    }
}

fn used(namespace: &str) -> Vec<Used> {
    let machine = |number: usize| Used {
        namespace: "tenant-bob".to_owned(),
        name: format!("vm-{number}"),
        template: GenericRef::new(namespace, "lab"),
        is_running: number == 0,
    };
    (0..22).map(machine).collect()
}

fn editing(place: Place, stored: Value, text: &str) -> Editing {
    let used = Some(used(place.namespace()));
    Editing { place, stored, choices: choices(text), used, students: Some(100) }
}

fn form_page(draft: Draft, stored: &Value) -> FormPage {
    FormPage::new(Content::Fields(Box::new(draft)), Version::of(stored))
}

/// Returns the pages with their names. A user with these rights sees them, and users have written this text.
pub fn pages(
    view: &View<'_>,
    student: &Student<'_>,
    rights: &dyn Rights,
    text: &str,
) -> Vec<(String, Markup)> {
    let mut pages = Vec::new();
    for (number, place) in places(rights, text).into_iter().enumerate() {
        let (namespace, kind) = (place.namespace().to_owned(), ["of-course", "own"][number]);
        let object = stored(&namespace, text);
        let template: Template = read(object.clone());
        let list =
            list_view::templates(view, &place, std::slice::from_ref(&template), Some(&used(&namespace)));
        pages.push((format!("templates-{kind}"), list));
        pages.push((format!("templates-none-{kind}"), list_view::templates(view, &place, &[], None)));
        let cost = Cost::of(&template.spec, Some(100), choices(text).room.as_ref());
        let (machines, link) = (used(&namespace), "https://labs.example.org/new/net/lab");
        let used = Some(machines.as_slice());
        let one = One { place: &place, template: &template, stored: &object, used, cost: &cost, link };
        pages.push((format!("template-{kind}"), list_view::one(view, student, &one)));
        let editing = editing(place, object.clone(), text);
        let mut changed = Draft::of(&object);
        changed.add();
        changed.spec["prettyName"] = json!(format!("{text} changed"));
        changed.spec["environmentList"][0]["image"] = json!("other");
        let faults = Faults {
            fields: [("e0.image".to_owned(), text.to_owned())].into(),
            others: vec![text.to_owned()],
            is_outdated: false,
        };
        let preview = editing.preview(&changed);
        let edited = FormPage { preview, faults: faults.clone(), ..form_page(changed, &object) };
        pages.push((format!("template-edit-{kind}"), form_view::page(view, student, &editing, &edited)));
        let content = Content::Text(yaml::write(&Draft::of(&object).object(&namespace)));
        let as_text = FormPage { faults, ..FormPage::new(content, Version::of(&object)) };
        pages.push((format!("template-yaml-{kind}"), form_view::page(view, student, &editing, &as_text)));
        let new = Editing { stored: Value::Null, ..editing };
        let sources = vec![("workspace-net/lab".to_owned(), text.to_owned())];
        let sources = Sources { templates: sources.clone(), snapshots: sources.clone(), machines: sources };
        let empty = FormPage { sources, ..form_page(Draft::new("net"), &Value::Null) };
        pages.push((format!("template-new-{kind}"), form_view::page(view, student, &new, &empty)));
    }
    pages
}

/// The page of the form of a Template, as text.
fn form(language: Language, page: &FormPage, stored: Value) -> String {
    let [place, _] = places(&Everything(true), "Networks");
    let known = Known::new(tenant(&json!([]), 9), vec![], vec![], vec![], vec![]);
    let (settings, all) = (settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let view = view_of(language, "/courses/net/templates/lab/edit");
    form_view::page(&view, &student, &editing(place, stored, "choice"), page).into_string()
}

#[test]
fn a_fault_is_beside_its_field_and_opens_its_group() {
    let object = stored("workspace-net", "text");
    let faults = Faults::of_field("e0.contentPath", "it is not absolute".to_owned());
    let page = FormPage { faults, ..form_page(Draft::of(&object), &object) };
    let shown = form(Language::ENGLISH, &page, object);
    let (before, field) = shown.split_once("id=\"field-e0.contentPath\"").expect("the field");
    let (field, _) = field.split_once("</div>").expect("its end");
    assert!(field.contains("aria-invalid=\"true\"") && field.contains("it is not absolute"), "{field}");
    let group = before.rsplit("<details").next().expect("a group");
    assert!(group.contains(" open "), "{group}");
    assert_eq!(shown.matches("aria-invalid").count(), 1);
}

#[test]
fn choices_come_from_the_cluster_and_stored_values_stay() {
    let object = stored("workspace-net", "stored");
    let shown = form(Language::ENGLISH, &form_page(Draft::of(&object), &object), object);
    for part in [
        "<datalist id=\"choices-images\"><option value=\"choice\">",
        "<option value=\"stored\" selected>stored</option><option value=\"choice\">choice</option>",
        "<option value=\"example.org/choice\">example.org/choice: 2</option>",
        "list=\"choices-images\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_preview_has_the_cost_of_the_class_and_the_machines_that_stay() {
    let mut object = stored("workspace-net", "text");
    object["spec"]["environmentList"][0]["resources"]["otherResources"] = json!({});
    let mut draft = Draft::of(&object);
    draft.spec["environmentList"][0]["image"] = json!("other");
    let [place, _] = places(&Everything(true), "Networks");
    let preview = editing(place, object.clone(), "choice").preview(&draft);
    let shown = form(Language::ENGLISH, &FormPage { preview, ..form_page(draft, &object) }, object);
    let texts = texts(Language::ENGLISH);
    // Half of two cores is reserved for each machine.
    let needs = "100 students need 100 cores; 4 are free.";
    for part in [needs, texts.templates.not_touched.as_str(), "tenant-bob/vm-19", "and 2 more"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("tenant-bob/vm-20") && !shown.contains(texts.templates.for_all.as_str()));
}

#[test]
fn environments_keep_their_keys_while_others_are_removed() {
    let mut draft = Draft::new("net");
    draft.add();
    draft.add();
    draft.remove(1);
    let names: Vec<&str> = draft.environments().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!((draft.keys.as_slice(), names), (&[0, 2][..], vec!["desktop", "environment-3"]));
    draft.add();
    assert_eq!(draft.keys, [0, 2, 3]);
    for _ in 0..30 {
        draft.add();
    }
    assert_eq!(draft.keys.len(), 20);
}

#[test]
fn the_yaml_view_is_read_as_it_is_written_and_names_stay() {
    let mut object = stored("workspace-net", "it's: \"x\"");
    object["spec"]["description"] = json!("Two\nlines: x\n");
    let draft = Draft::of(&object);
    let text = yaml::write(&draft.object("workspace-net"));
    assert_eq!(yaml::read(&text, Some("lab")).map(|read| Draft::of(&read)), Ok(draft));
    let minimal =
        format!("apiVersion: {}\nkind: Template\nmetadata: {{name: lab}}\n", TEMPLATES.api_version());
    assert!(yaml::read(&minimal, None).is_ok());
    let tenant = minimal.replace("Template", "Tenant");
    let of_spec = |spec: &str| format!("{minimal}spec: {spec}");
    let [one, inner, of_environment] =
        ["{unheard: 1}", "{cleanup: {never: 1}}", "{environmentList: [{name: a, resources: {cpus: 1}}]}"]
            .map(of_spec);
    for (text, name, words) in [
        ("a: [", None, "not valid YAML"),
        ("kind: Template", None, "apiVersion is null"),
        (minimal.as_str(), Some("other"), "\"other\" is expected"),
        (tenant.as_str(), None, "kind is \"Tenant\""),
        ("a: 1\na: 2", None, "twice"),
        (one.as_str(), None, "spec.unheard is not a field"),
        (inner.as_str(), None, "spec.cleanup.never is"),
        (of_environment.as_str(), None, "spec.environmentList[0].resources.cpus is"),
    ] {
        let fault = yaml::read(text, name).expect_err(text);
        assert!(fault.contains(words), "{fault}");
    }
}
