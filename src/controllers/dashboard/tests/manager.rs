//! The page of a student's machine, opened by a manager of the course.

use maud::Markup;
use serde_json::json;

use super::fixtures::{
    Everything, NAMESPACE, condition, instance, now, read, settings, template, tenant, view, workspace,
};
use crate::api::Instance;
use crate::config::Language;
use crate::controllers::dashboard::history::model::{Did, History};
use crate::controllers::dashboard::machine::{model::Machine, view::machine};
use crate::controllers::dashboard::student::{Known, Student};
use crate::controllers::dashboard::texts::texts;

/// The message of a condition, which is in no text of the pages.
const MESSAGE: &str = "Pod desktop-0: 0/12 nodes are available: 12 Insufficient memory";

/// Returns a machine of Ada, which does not start.
fn waits() -> Instance {
    let status = json!({"phase": "Starting", "nodeName": "node-7",
        "environments": [{"name": "desktop", "phase": "Starting", "step": "Scheduling"}],
        "conditions": [condition("Reconciled", "True", "Reconciled", "applied"),
            condition("Ready", "False", "PodUnschedulable", MESSAGE)]});
    let mut instance = instance("net-2", "Firewall", ("workspace-net", "desktop"), true, status);
    instance.metadata.labels = read(json!({"crownlabs.polito.it/workspace": "net"}));
    instance
}

/// Returns the page of a machine for a manager with this name.
fn of(language: Language, instance: &Instance, user: &str) -> Markup {
    let mut manager = tenant(&json!([{"name": "net", "role": "manager"}]), 9);
    manager.metadata.name = user.into();
    let templates = vec![template("net", "desktop", "Network desktop", &json!({}))];
    let known = Known::new(
        manager,
        vec![instance.clone()],
        templates,
        vec![workspace("net", "Networks", "", 3)],
        vec![],
    );
    let (settings, all) = (settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let view = view(language, "/machines/tenant-ada-rossi/net-2");
    let shown = Machine::of(&view, &student, instance, false, Ok(vec![]), None);
    let history = History::of(&read(json!({})), &[], &[(now(), Did::Kept)], Ok(vec![]), now());
    machine(&view, &Machine { history, ..shown })
}

/// Returns the page for a manager.
pub fn page(language: Language) -> Markup {
    of(language, &waits(), "carlo.verdi")
}

#[test]
fn a_manager_sees_the_status_in_technical_words_and_a_student_does_not() {
    for language in Language::all() {
        let words = texts(language);
        let seen = page(language).into_string();
        let (_, section) = seen.split_once("id=\"technical\"").expect("the section");
        let (section, _) = section.split_once("</section>").expect("its end");
        for expected in ["PodUnschedulable", MESSAGE, "Starting, Scheduling", "node-7", "Reconciled"] {
            assert!(section.contains(expected), "{expected}: {section}");
        }
        let [false_one, true_one] =
            ["PodUnschedulable", "<th scope=\"row\">Reconciled"].map(|of| section.find(of));
        assert!(false_one < true_one, "conditions that do not hold come first: {section}");
        assert!(seen.contains("href=\"/courses/net\""), "{seen}");
        assert!(seen.contains(words.history.did.of(Did::Kept)), "{seen}");
        let own = of(language, &waits(), "ada.rossi").into_string();
        assert!(!own.contains("id=\"technical\"") && !own.contains("href=\"/courses/net\""), "{own}");
    }
}

#[test]
fn a_machine_that_names_its_manager_as_the_tenant_is_not_the_managers() {
    let named: Instance = read(json!({
        "metadata": {"name": "net-2", "namespace": NAMESPACE, "uid": "u2", "resourceVersion": "1"},
        "spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "carlo.verdi"}},
        "status": {"phase": "Ready"},
    }));
    let seen = of(Language::ENGLISH, &named, "carlo.verdi").into_string();
    assert!(seen.contains("id=\"technical\""), "the namespace decides: {seen}");
}

#[test]
fn hostile_texts_of_a_machine_are_escaped_for_its_manager() {
    let hostile = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[2J";
    let status = json!({"phase": hostile, "nodeName": hostile, "environments": [{"name": hostile, "phase": hostile}],
        "conditions": [condition(hostile, hostile, hostile, hostile)]});
    let instance = instance("net-2", hostile, ("workspace-net", hostile), true, status);
    for language in Language::all() {
        let page = of(language, &instance, "carlo.verdi").into_string();
        // The field for the name has the text as it is stored.
        let (before, field) = page.split_once("name=\"prettyName\"").expect("the field for the name");
        let (_, after) = field.split_once('>').expect("the end of the field");
        for part in [before, after] {
            assert!(!part.contains("<img src=x") && !part.contains(['\u{202e}', '\u{1b}']), "{part}");
        }
    }
}
