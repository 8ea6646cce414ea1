//! Operations of an administrator on a running daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use crownlabs::testing::clock;
use jiff::Timestamp;
use serde_json::json;

use crate::daemon::{Daemon, Options, config, post, reserved_port};
use crate::lab::{Lab, instance};
use crate::tenants::tenant;

/// Lines of the metrics if no Tenant or Workspace has failed: an alert on an increase needs the zero.
const INTERNAL_ERRORS: [&str; 8] = [
    "# HELP tenant_operator_internal_errors_total Number of failures of Tenants and Workspaces by controller and \
     reason\n",
    "tenant_operator_internal_errors_total{controller=\"tenant\",reason=\"labels\"} 0\n",
    "tenant_operator_internal_errors_total{controller=\"tenant\",reason=\"mydrive\"} 0\n",
    "tenant_operator_internal_errors_total{controller=\"tenant\",reason=\"keycloak\"} 0\n",
    "tenant_operator_internal_errors_total{controller=\"tenant\",reason=\"status\"} 0\n",
    "tenant_operator_internal_errors_total{controller=\"workspace\",reason=\"workspaces\"} 0\n",
    // Existing dashboards use the former name.
    "# TYPE tenant_operator_internal_errors untyped\n",
    "tenant_operator_internal_errors{controller=\"tenant\",reason=\"labels\"} 0\n",
];

/// Asserts that `kubectl get` lists all kinds, and says why an Instance is ready.
fn assert_listed(lab: &Lab) {
    let wide = lab.kubectl(&["get", "inst", "-n", "tenant-ops", "-o", "wide"]);
    let row = wide.lines().find(|line| line.starts_with("one ")).unwrap_or_default();
    assert!(wide.contains("REASON") && wide.contains("MESSAGE"), "{wide}");
    assert!(row.contains("The environment can be used"), "{wide}");
    let all = lab.kubectl(&["get", "crownlabs", "-n", "tenant-ops", "-o", "name"]);
    assert!(all.contains("instance.crownlabs.polito.it/one"), "{all}");
    lab.kubectl(&["get", "ws,tnt,tmpl,inst,isnap,shvol,imglist,podcfg", "-A"]);
}

/// Asserts that the reference has every metric, with its type and labels.
fn assert_documented(metrics: &str) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/metrics.md");
    let page = std::fs::read_to_string(page).expect("the reference");
    let row = |name: &str| page.lines().find(|line| line.starts_with(&format!("| `{name}` | ")));
    let types: BTreeMap<&str, &str> =
        metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    assert!(types.len() > 20, "{types:?}");
    for line in metrics.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (name, labels) = line.split_once(['{', ' ']).expect("a name");
        let is_histogram = |family: &&str| types.get(family) == Some(&"histogram");
        let parts = ["_bucket", "_sum", "_count"].iter().filter_map(|part| name.strip_suffix(part));
        let family = parts.into_iter().find(is_histogram).unwrap_or(name);
        let kind = types.get(family).unwrap_or_else(|| panic!("{family} has no type"));
        let row = row(family).unwrap_or_else(|| panic!("{family} is not in docs/reference/metrics.md"));
        assert!(row.starts_with(&format!("| `{family}` | {kind} | ")), "{kind}: {row}");
        let labels = labels.rsplit_once('}').map_or("", |(labels, _)| labels);
        for label in labels.split("\",").filter_map(|label| Some(label.split_once("=\"")?.0)) {
            assert!(label == "le" || row.contains(&format!("`{label}`: ")), "label {label}: {row}");
        }
    }
}

/// Asserts that the process started after this time.
fn assert_started(metrics: &str, began: Timestamp) {
    let start = metrics.lines().find_map(|line| line.strip_prefix("process_start_time_seconds "));
    let whole = start.and_then(|start| start.split('.').next()).expect("a start");
    // The clock of the machine counts whole seconds since its own start.
    let start = Timestamp::from_second(whole.parse().expect("a number")).expect("a time");
    let tolerance = Duration::from_secs(2);
    assert!(began - tolerance <= start && start <= clock::now() + tolerance, "{start}, not after {began}");
}

/// Asserts that the filter of the log can be changed, and that an invalid file changes nothing.
fn assert_filter_changes(lab: &Lab, daemon: &Daemon) {
    // A new log filter is used while the daemon runs.
    assert!(!daemon.log().contains("DEBUG"), "{}", daemon.log());
    let text = std::fs::read_to_string(daemon.config_file()).expect("the configuration");
    std::fs::write(daemon.config_file(), format!("{text}log: {{filter: debug}}\n")).expect("written");
    daemon.wait_for("the new filter", |daemon| daemon.log().contains("the log filter has changed"));
    lab.patch("instances", "tenant-ops", "one", r#"{"spec": {"running": false}}"#);
    daemon.wait_for("debug lines", |daemon| daemon.log().contains("DEBUG"));
    // An invalid file is reported, and the configuration stays as it was.
    std::fs::write(daemon.config_file(), "nonsense: [").expect("written");
    daemon.wait_for("the complaint", |daemon| daemon.log().contains("the changed configuration is invalid"));
}

#[test]
fn probes_metrics_log_filter_and_stop() {
    let lab = Lab::shared();
    let _course = lab.course("ops");
    let admin = lab.admin();
    let began = clock::now();
    let mut daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "ops", config: "" });
    assert_eq!(daemon.page("/healthz"), (200, "ok\n".to_owned()));
    // It is also ready as a standby, which it is for a short time.
    daemon.wait_for("leading", |daemon| daemon.ready().1.contains("[+] instance: ready"));
    assert_eq!(daemon.page("/nowhere").0, 404);
    lab.apply(&instance("ops", "one", "standalone"));
    lab.await_phase("tenant-ops", "one", "Ready");
    // It is recorded after the status is written, so the test may read the status earlier.
    daemon.wait_for("the ready time", |daemon| {
        daemon.metrics().contains("instance_initial_ready_time_second_bucket")
    });
    assert_listed(&lab);
    let metrics = daemon.metrics();
    for name in [
        "controller_runtime_reconcile_total{controller=\"instance\",result=\"success\"}",
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_reconcile_time_seconds_bucket",
        "controller_runtime_max_concurrent_reconciles{controller=\"instance\"} 16",
        "controller_runtime_active_workers",
        "workqueue_depth{name=\"instance\",controller=\"instance\"} 0",
        "workqueue_adds_total",
        "workqueue_queue_duration_seconds_bucket",
        "workqueue_work_duration_seconds_bucket",
        "workqueue_retries_total",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
        "controller_runtime_reconcile_panics_total{controller=\"instance\"} 0",
        "rest_client_requests_total{code=\"201\",method=\"POST\"",
        "instance_initial_ready_time_second_bucket",
        "process_resident_memory_bytes",
        "process_open_fds",
        concat!("crownlabs_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\",revision=\"unknown\"} 1\n"),
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"instance\",le=\"60\"}",
        "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total ",
    ]
    .into_iter()
    .chain(INTERNAL_ERRORS)
    {
        assert!(metrics.contains(name), "{name} is missing:\n{metrics}");
    }
    assert_documented(&metrics);
    assert_started(&metrics, began);
    assert_filter_changes(&lab, &daemon);
    assert_eq!(daemon.page("/healthz").0, 200);
    daemon.signal("TERM");
    let status = daemon.wait(Duration::from_secs(30)).expect("it ends within 30 s");
    assert!(status.success(), "{status}");
    assert!(daemon.log().contains("stopped"), "{}", daemon.log());
}

#[test]
fn events_about_foreign_accounts_are_accepted() {
    let (lab, port) = (Lab::shared(), reserved_port());
    let kubeconfig = lab.service_account();
    let config = format!("keycloakEvents: {{listen: \"127.0.0.1:{port}\"}}\n");
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "events", config: &config });
    lab.apply(&tenant("events", "events", ""));
    lab.await_ready("tenants", "events");
    let event = |name: &str| {
        let event = json!({"type": "access.CUSTOM_REQUIRED_ACTION", "authDetails": {"username": name}});
        post(port, "/tenant-webhook", &event.to_string()).0
    };
    // Each event wakes its Tenant: without one, it would be reconciled again after an hour.
    for _ in 0..3 {
        let before = daemon.reconciles("tenant");
        assert_eq!(event("events"), 200);
        daemon.wait_for("a reconcile", |daemon| daemon.reconciles("tenant") > before);
    }
    assert_eq!((event("nobody"), post(port, "/tenant-webhook", "no event").0), (200, 400));
    lab.delete("tenant", "", &["events"]);
}

#[test]
fn a_bad_configuration_is_rejected_with_every_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    let text = config("x", "resync: {min: 3h, max: 2h}\ncontrolers: {}\n");
    std::fs::write(&file, text.replace("health: \"127.0.0.1:0", "health: \"nowhere")).expect("written");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_crownlabs"))
        .args(["run", "--config"])
        .arg(&file)
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in ["crownlabs.yaml:4", "server.health", "controlers", "controllers"] {
        assert!(complaint.contains(part), "{part}:\n{complaint}");
    }
}

#[test]
fn a_namespace_without_the_selector_label_is_ignored_until_it_has_it() {
    let lab = Lab::shared();
    let _course = lab.course("foreign");
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "elsewhere", config: "" });
    lab.apply(&instance("foreign", "one", "standalone"));
    lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: tenant-elsewhere, labels: {crownlabs.polito.it/operator-selector: elsewhere}}}");
    lab.apply("{apiVersion: v1, kind: Secret, metadata: {name: mydrive-info, namespace: tenant-elsewhere}, stringData: {server-name: s, path: /p}}");
    lab.apply(
        &instance("foreign", "two", "standalone")
            .replace("namespace: tenant-foreign", "namespace: tenant-elsewhere"),
    );
    lab.await_phase("tenant-elsewhere", "two", "Ready");
    let object = lab.get("instances", "tenant-foreign", "one").expect("there");
    assert!(object["status"].is_null() && object["metadata"]["labels"].is_null(), "{object}");
    lab.kubectl(&[
        "label",
        "namespace",
        "tenant-foreign",
        "--overwrite",
        "crownlabs.polito.it/operator-selector=elsewhere",
    ]);
    lab.await_phase("tenant-foreign", "one", "Ready");
    lab.begin_delete("namespace", "", &["tenant-elsewhere"]);
}
