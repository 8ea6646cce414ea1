//! A kind that cannot be listed stops only the loops that need it.

use std::time::Duration;

use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::webhook;
use cluster::Options as ClusterOptions;
use cluster::proxy::{Fault, Proxy, matching};

#[test]
fn a_kind_that_cannot_be_listed_stops_only_the_loops_that_need_it() {
    let lab = Lab::shared();
    let _course = lab.course("broken");
    let proxy = Proxy::start(&lab.cluster).expect("a proxy");
    let snapshots = matching(|_, path| path.contains("/instancesnapshots?"));
    proxy.set(Fault::Status { code: 403, retry_after: None, matching: snapshots });
    let kubeconfig =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
    let daemon = Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: "broken", config: "" });
    lab.apply(&instance("broken", "one", "standalone"));
    lab.await_phase("tenant-broken", "one", "Ready");
    let line =
        "[-] snapshot: starting: the first lists have not ended: instancesnapshots.crownlabs.polito.it\n";
    daemon.wait_for("the report", |daemon| {
        let (status, report) = daemon.ready();
        status == 503 && report.contains(line) && report.contains("[+] instance: ready\n")
    });
    daemon.wait_for("the metric", |daemon| {
        let metrics = daemon.metrics();
        let stale = metrics.lines().find_map(|line| {
            line.strip_prefix("store_staleness_seconds{kind=\"instancesnapshots\"} ")?.parse::<f64>().ok()
        });
        stale.is_some_and(|seconds| seconds > 5.0)
            && metrics.contains("store_staleness_seconds{kind=\"instances\"} 0\n")
    });
    wait_until(2 * PATIENCE, || {
        let report = daemon.ready().1;
        let said = report.contains("[!] watch of instancesnapshots: broken for ")
            && daemon.log().contains("the watch is broken: cached objects may be stale");
        said.then_some(()).ok_or(report)
    });
    proxy.set(Fault::None);
    daemon.wait_for("readiness", |daemon| daemon.ready().0 == 200 && !daemon.ready().1.contains("watch of"));
}

/// The probe of the pod in the shipped Deployment.
fn readiness_probe() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/30-deployment.yaml");
    let text = std::fs::read_to_string(file).expect("the manifest");
    let deployment: serde_json::Value = serde_saphyr::from_str(&text).expect("YAML");
    let probe = &deployment["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"];
    assert_eq!(probe["port"], "health");
    probe["path"].as_str().expect("a path").to_owned()
}

#[test]
fn the_lease_is_taken_and_reviews_are_answered_although_a_kind_cannot_be_listed() {
    let lab = Lab::start(ClusterOptions::default());
    lab.create_fixtures("admitted");
    let proxy = Proxy::start(&lab.cluster).expect("a proxy");
    let kubeconfig =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
    let (port, probe) = (reserved_port(), readiness_probe());
    let config = format!(
        "webhook: {{enabled: true, listen: \"127.0.0.1:{port}\", instanceQuota: false}}\nleaderElection: {{}}\n"
    );
    webhook::grant_everybody(&lab);
    let started = "starting: the first lists have not ended";
    let missing = "waiting for CRDs that are not installed";
    for (code, sentence) in [(403, started), (503, started), (404, missing)] {
        let snapshots = matching(|_, path| path.contains("/instancesnapshots?"));
        proxy.set(Fault::Status { code, retry_after: None, matching: snapshots });
        let mut daemon =
            Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: "admitted", config: &config });
        daemon.wait_for("leadership", |daemon| {
            let metrics = daemon.metrics();
            metrics.contains("leader_election_master_status{name=\"crownlabs-controller-manager\"} 1\n")
        });
        // The request of the pod's probe.
        daemon.wait_for("the probe", |daemon| daemon.page(&probe).0 == 200);
        let name = format!("after-{code}");
        lab.apply(&instance("admitted", &name, "standalone"));
        lab.await_phase("tenant-admitted", &name, "Ready");
        // The first leader installs the configurations, and waits until edits are validated.
        if code == 403 {
            webhook::install(&lab, "admitted", port);
        }
        wait_until(PATIENCE, || {
            let edit = ["patch", "tenant", "probe", "--type=merge", "--dry-run=server", "-p"];
            let edit = [&["--as", "stranger"], &edit[..], &[r#"{"spec": {"firstName": "Y"}}"#]].concat();
            let refusal = lab.try_kubectl(&edit, "").expect_err("a stranger");
            let is_judged = refusal.contains("\"stranger\" not found");
            is_judged.then_some(()).ok_or(refusal)
        });
        let (status, report) = daemon.ready();
        assert_eq!(status, 503, "{code}: {report}");
        let line = format!("[-] snapshot: {sentence}: instancesnapshots.crownlabs.polito.it\n");
        assert!(report.contains(&line), "{code}: {report}");
        assert_eq!(daemon.page(&probe).0, 200, "{code}: {report}");
        daemon.signal("TERM");
        daemon.wait(Duration::from_secs(30)).expect("it ends");
    }
}
