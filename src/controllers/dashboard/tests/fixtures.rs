//! A student with machines in many states, for the tests of the pages.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::api::quota::Rule;
use crate::api::why::{About, Warning};
use crate::api::{GenericRef, Instance, InstanceSnapshot, Template, Tenant, Workspace};
use crate::config::{AppearanceConfig, Language};
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::http::brand::Brand;
use crate::controllers::dashboard::session::Favourites;
use crate::controllers::dashboard::student::{Known, Rights, Settings};
use crate::controllers::dashboard::ui::view::{Live, View};
use crate::fixtures::time;

pub const NAMESPACE: &str = "tenant-ada-rossi";
pub const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3 ada@laptop";

/// Parses an object.
pub fn read<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("an object")
}

pub fn now() -> Timestamp {
    time("2026-11-26T18:06:00Z")
}

/// The rights of a user who may do everything, or nothing.
pub struct Everything(pub bool);

impl Rights for Everything {
    fn may(&self, _: &str, _: &Right) -> bool {
        self.0
    }
}

pub fn view(language: Language, path: &'static str) -> View<'static> {
    static ZONE: std::sync::LazyLock<TimeZone> =
        std::sync::LazyLock::new(|| TimeZone::get("Europe/Rome").expect("a zone"));
    static LANGUAGES: std::sync::LazyLock<Vec<Language>> =
        std::sync::LazyLock::new(|| Language::all().collect());
    static BRAND: std::sync::LazyLock<Brand> = std::sync::LazyLock::new(brand);
    static FAVOURITES: std::sync::LazyLock<Favourites> =
        std::sync::LazyLock::new(|| favourites(&[("workspace-net", "desktop")]));
    View {
        language,
        languages: &LANGUAGES,
        zone: &ZONE,
        now: now(),
        nonce: "bm9uY2U",
        path,
        query: "",
        search: "",
        user: "Ada Rossi",
        is_administrator: true,
        has_files: true,
        brand: &BRAND,
        help: "https://labs.example.org/help",
        style: "dashboard.css",
        scripts: &["htmx.js", "hx-csp.js", "hx-sse.js"],
        events: "/events",
        live: Live::On,
        fresh: "k3x9",
        favourites: &FAVOURITES,
        notice: None,
        typed: None,
        old: None,
    }
}

/// Returns the favourites with these Templates, by namespace and name.
pub fn favourites(templates: &[(&str, &str)]) -> Favourites {
    templates.iter().fold(Favourites::default(), |all, (namespace, name)| {
        all.changed(&Favourites::key(namespace, name), true).expect("a key")
    })
}

/// A university with its own name, logo, colors and contact.
fn brand() -> Brand {
    Brand::of(&AppearanceConfig {
        name: "Labs of Example".to_owned(),
        logo: "data:image/svg+xml;base64,PHN2Zy8+".to_owned(),
        color: "#0b57a4".to_owned(),
        dark_color: "#86bdff".to_owned(),
        contact: "labs@example.org".to_owned(),
    })
}

pub fn settings() -> Settings {
    Settings {
        ssh_host: "bastion.example.org".to_owned(),
        ssh_by_name: true,
        ssh_fingerprint: format!("SHA256:{}", "a".repeat(43)),
        node_labels: vec!["disk=fast".to_owned(), "gpu=".to_owned()],
        selector: "crownlabs.polito.it/operator-selector=production".to_owned(),
        namespace: "crownlabs-system".to_owned(),
        machines: "machines.example.org".to_owned(),
        peer_desktops: "machines.example.org:8443".to_owned(),
        web_ssh: "https://labs.example.org/ssh".to_owned(),
        drive_template: Some(GenericRef::new("workspace-drive", "drive")),
        drive_size: "1Gi".to_owned(),
        rule: Rule { require_enrolment: true, personal_workspaces: false },
        is_rule_enforced: true,
    }
}

pub fn tenant(workspaces: &Value, instances: i64) -> Tenant {
    read(json!({
        "metadata": {"name": "ada.rossi", "uid": "t1", "resourceVersion": "1"},
        "spec": {
            "firstName": "Ada", "lastName": "Rossi", "email": "ada.rossi@example.org", "workspaces": workspaces,
            "publicKeys": [KEY, "ssh-rsa nonsense"],
        },
        "status": {
            "personalNamespace": {"created": true, "name": NAMESPACE},
            "quota": {"cpu": "12", "memory": "24Gi", "instances": instances}, "failingWorkspaces": ["old"],
        },
    }))
}

pub fn workspace(name: &str, title: &str, auto_enroll: &str, instances: i64) -> Workspace {
    let quota = json!({"cpu": "8", "memory": "16Gi", "instances": instances});
    let spec = json!({"prettyName": title, "autoEnroll": auto_enroll, "quota": quota});
    read(json!({"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": spec}))
}

pub fn template(workspace: &str, name: &str, title: &str, more: &Value) -> Template {
    let resources = json!({"cpu": 2, "memory": "4Gi", "reservedCPUPercentage": 25, "disk": "20Gi"});
    let environment = |name: &str, kind: &str| json!({"name": name, "environmentType": kind, "image": "x", "persistent": kind == "VirtualMachine", "resources": resources});
    let mut spec = json!({
        "prettyName": title, "description": "Ubuntu 24.04 with Wireshark and GNS3.\nTwo hours with routing tables.",
        "workspace.crownlabs.polito.it/WorkspaceRef": {"name": workspace},
        "environmentList": [environment("desktop", "VirtualMachine")], "allowPublicExposure": true,
        "cleanup": {"stopAfterInactivity": "7d", "deleteAfterInactivity": "30d"}, "deleteAfter": "365d",
    });
    let mut status = json!({});
    for (key, value) in more.as_object().into_iter().flatten() {
        match key.as_str() {
            "status" => status = value.clone(),
            "kinds" => {
                let kinds = value.as_array().expect("kinds").iter().filter_map(Value::as_str);
                spec["environmentList"] =
                    kinds.enumerate().map(|(at, kind)| environment(&format!("part-{at}"), kind)).collect();
            }
            _ => spec[key] = value.clone(),
        }
    }
    let metadata = json!({"name": name, "namespace": format!("workspace-{workspace}"), "uid": name, "resourceVersion": "1"});
    read(json!({"metadata": metadata, "spec": spec, "status": status}))
}

pub fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-26T17:54:00Z"})
}

/// A warning about a pod.
pub fn warning(message: &str) -> Warning {
    Warning {
        about: About { kind: "Pod".to_owned(), name: message.replace(' ', "-") },
        reason: "BackOff".to_owned(),
        message: message.to_owned(),
        times: 12,
        last: Some(Time(now() - jiff::SignedDuration::from_secs(90))),
    }
}

/// Returns an Instance. Its environment has the same phase.
pub fn instance(name: &str, title: &str, template: (&str, &str), running: bool, status: Value) -> Instance {
    let phase = status["phase"].clone();
    let mut status = status;
    if status["environments"].is_null() {
        status["environments"] = json!([{"name": "desktop", "phase": phase, "ip": if running { "10.96.3.7" } else { "" },
            "url": if phase == "Ready" { format!("https://labs.example.org/instance/{name}/app/") } else { String::new() }}]);
    }
    status["observedGeneration"] = json!(1);
    let metadata = json!({"name": name, "namespace": NAMESPACE, "uid": name, "resourceVersion": "1", "generation": 1,
        "creationTimestamp": "2026-11-20T09:00:00Z"});
    read(json!({"metadata": metadata, "status": status, "spec": {
        "template.crownlabs.polito.it/TemplateRef": {"namespace": template.0, "name": template.1},
        "tenant.crownlabs.polito.it/TenantRef": {"name": "ada.rossi"}, "running": running, "prettyName": title,
    }}))
}

const NET: (&str, &str) = ("workspace-net", "desktop");

/// The machines: ready, starting with a cause, failed, off with a deadline.
pub fn instances() -> Vec<Instance> {
    let ready = json!({"phase": "Ready", "initialReadyTime": "1m30s",
        "inactivity": {"since": "2026-11-19T10:00:00Z", "warnings": 2, "lastWarning": "2026-11-26T06:00:00Z", "deadline": "2026-11-27T06:00:00Z"},
        "conditions": [condition("Ready", "True", "Ready", "The Instance can be used"), condition("Inactive", "True", "Overdue", "2 of 3 warnings were sent")]});
    let waits = "Pod desktop-0: 0/12 nodes are available: 12 Insufficient memory";
    let starting =
        json!({"phase": "Starting", "conditions": [condition("Ready", "False", "PodUnschedulable", waits)]});
    let image = "Pod sql-0: image registry.example.org/sql:15 cannot be pulled: not found";
    let failed = json!({"phase": "Failed", "conditions": [
        condition("Ready", "False", "ImagePullFailed", image), condition("Stalled", "True", "ImagePullFailed", image)],
        "environments": [
            {"name": "desktop", "phase": "Ready", "ip": "10.96.3.8", "url": "https://labs.example.org/instance/sql/desktop/"},
            {"name": "database", "phase": "Failed"}]});
    let off = json!({"phase": "Off", "destruction": {"since": "2026-11-01T00:00:00Z", "nextWarning": "2026-12-20T00:00:00Z"},
        "conditions": [condition("Ready", "True", "Off", "The Instance is off")]});
    vec![
        instance("net-1", "Routing exercise", NET, true, ready),
        instance("net-2", "Firewall", NET, true, starting),
        instance("sql", "Databases", ("workspace-data", "sql"), true, failed),
        instance("net-3", "Old exam", NET, false, off),
    ]
}

/// Returns the objects that a student of two courses can see.
pub fn known() -> Known {
    let workspaces = json!([{"name": "net", "role": "user"}, {"name": "data", "role": "manager"},
        {"name": "ml", "role": "candidate"}, {"name": "old", "role": "user"}]);
    let no_node =
        condition("Ready", "False", "NoNode", "environment gpu: no node has 8 cores and nvidia.com/gpu");
    Known::new(
        tenant(&workspaces, 9),
        instances(),
        vec![
            template("net", "desktop", "Network desktop", &json!({})),
            template("net", "web", "Web server", &json!({"kinds": ["Standalone"], "nodeSelector": {}})),
            template(
                "net",
                "large",
                "Three routers",
                &json!({"kinds": ["VirtualMachine", "VirtualMachine", "VirtualMachine"]}),
            ),
            template("data", "sql", "SQL and desktop", &json!({"kinds": ["VirtualMachine", "Container"]})),
            template("data", "gpu", "Training on a GPU", &json!({"status": {"conditions": [no_node]}})),
            template("drive", "drive", "MyDrive", &json!({"kinds": ["Container"]})),
        ],
        vec![
            workspace("net", "Computer networks", "immediate", 3),
            workspace("data", "Databases", "", 4),
            workspace("ml", "Machine learning", "withApproval", 2),
            workspace("os", "Operating systems", "immediate", 2),
            workspace("sec", "Security", "withApproval", 2),
            workspace("drive", "MyDrive", "", 1),
        ],
        snapshots(),
    )
}

fn snapshots() -> Vec<InstanceSnapshot> {
    let snapshot = |name: &str, phase: &str, reason: &str| {
        let ready =
            condition("Ready", "False", reason, "registry.example.org/ada-rossi/lab-1:20261126t170000");
        read(json!({"metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "resourceVersion": "1"},
            "spec": {"instanceRef": {"name": "net-3"}, "imageName": name}, "status": {"phase": phase, "conditions": [ready]}}))
    };
    vec![snapshot("lab-1", "Completed", "Completed"), snapshot("lab-2", "Processing", "JobRunning")]
}
