//! A class for the tests of its page.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::controllers::dashboard::class::memory::{Class, Seen};
use crate::controllers::dashboard::class::objects::{Found, Member};
use crate::controllers::dashboard::course::Course;
use crate::controllers::dashboard::history::model::Recorded;
use crate::controllers::dashboard::student::Known;
use crate::controllers::dashboard::student::read::{NamespaceRules, Own};
use crate::controllers::dashboard::tests::fixtures::{condition, now, read, template, tenant, workspace};
use crate::runtime::client::Rules;

/// The students, with their first and last names.
pub const PEOPLE: [(&str, &str, &str); 4] =
    [("ada", "Ada", "Rossi"), ("bob", "Bob", "Bianchi"), ("eve", "Eve", "Verdi"), ("zoe", "Zoe", "bianchi")];

/// Returns a Tenant with a role in the course.
pub fn person(name: &str, first: &str, last: &str, role: &str) -> Value {
    let spec = json!({"firstName": first, "lastName": last, "email": format!("{name}@example.org"),
        "workspaces": [{"name": "tea", "role": role}]});
    let labels = json!({"crownlabs.polito.it/workspace-tea": role});
    json!({"metadata": {"name": name, "labels": labels, "resourceVersion": "1"}, "spec": spec})
}

/// Returns an Instance of the course in the namespace of a student.
pub fn machine(owner: &str, name: &str, phase: &str) -> Value {
    let labels = json!({"crownlabs.polito.it/workspace": "tea"});
    let metadata = json!({"name": name, "namespace": format!("tenant-{owner}"), "labels": labels,
        "uid": name, "resourceVersion": "1", "creationTimestamp": "2026-11-20T09:00:00Z"});
    let spec = json!({"template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "workspace-tea"},
        "tenant.crownlabs.polito.it/TenantRef": {"name": owner}, "running": phase != "Off", "prettyName": format!("VM {name}")});
    let ready = condition("Ready", "False", "PodUnschedulable", "Pod vm-0: 0/12 nodes are available");
    let is_well = matches!(phase, "Ready" | "Off");
    let conditions = if is_well { json!([]) } else { json!([ready]) };
    json!({"metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": conditions,
        "inactivity": {"since": "2026-11-25T10:00:00Z", "deadline": "2026-11-27T06:00:00Z"}}})
}

/// Returns the class of the course with the [`PEOPLE`] and these machines.
pub fn seen(machines: &[Value]) -> Seen {
    let mut class = Class::new(0);
    for (name, first, last) in PEOPLE {
        class.join(read::<Member>(person(name, first, last, "user")));
    }
    class.add("tea", machines.iter().map(|machine| read::<Found>(machine.clone())));
    let course = workspace("tea", "Tea laboratory", "", 3);
    let rules = json!([{"verbs": ["*"], "apiGroups": ["crownlabs.polito.it"], "resources": ["*"]}]);
    let rules: Rules = read(json!({"resourceRules": rules}));
    let rules = NamespaceRules { namespace: "workspace-tea".to_owned(), rules: Arc::new(rules) };
    let known = Known::new(
        tenant(&json!([{"name": "tea", "role": "manager"}]), 3),
        Vec::new(),
        Vec::new(),
        vec![course.clone()],
        Vec::new(),
    );
    let own = Own { known, without_tenant: None, rules: rules.clone(), topics: Vec::new() };
    let course = Course {
        own,
        workspace: Arc::new(course),
        namespace: "workspace-tea".to_owned(),
        rules,
        recorded: Recorded::default(),
    };
    let templates = vec![template("tea", "desktop", "Tea desktop", &json!({}))];
    Seen { at: now(), course, templates, class }
}
