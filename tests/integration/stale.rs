//! Watches that stay open and deliver nothing although objects change, and connections that hang: nothing is deleted
//! because of stale objects, and the daemon keeps working.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::shared_volumes::{mount, shared_volume};
use crate::tenants::life::{login, time};
use crate::tenants::tenant;
use cluster::proxy::{Fault, Matcher, Proxy, matching, nth};

/// The log message of the daemon when it finds that its copy was stale.
const FOUND: &str = "objects were stale: they are read again before a deletion";

/// The lists and watches of a kind in all namespaces.
fn of(plural: &'static str) -> Matcher {
    matching(move |_, path| path.contains(&format!("/{plural}?")))
}

/// The number of requests to delete something whose path contains `part`.
fn deletions(proxy: &Proxy, part: &str) -> usize {
    let log = proxy.request_log();
    log.iter().filter(|request| request.method == Method::DELETE && request.path.contains(part)).count()
}

/// Starts a proxy, and a daemon that uses it.
fn start(lab: &Lab, selector: &str, config: &str) -> (Proxy, Daemon) {
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    let kubeconfig =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector, config });
    (proxy, daemon)
}

#[test]
fn a_login_that_no_watch_shows_keeps_the_namespace() {
    let lab = Lab::shared();
    let (proxy, daemon) = start(&lab, "staletenant", "controllers: {tenant: {keepAlive: 45s}}\n");
    lab.apply(&tenant("staletenant", "stale.ada", "").replace("2099-01-01T00:00:00Z", &time(0)));
    lab.await_ready("tenants", "stale.ada");
    let namespace = lab.get("namespaces", "", "tenant-stale-ada").expect("made");
    proxy.silence(Some(of("tenants")));
    login(&lab, "stale.ada", 3600);
    daemon.wait_for("the discovery", |daemon| daemon.log().contains(&format!("Tenant {FOUND}")));
    lab.await_ready("tenants", "stale.ada");
    let after = lab.get("namespaces", "", "tenant-stale-ada").expect("kept");
    assert_eq!(after["metadata"]["uid"], namespace["metadata"]["uid"]);
    assert_eq!(after["metadata"]["deletionTimestamp"], Value::Null);
    assert_eq!(deletions(&proxy, "/namespaces/tenant-stale-ada"), 0);
    proxy.silence(None);
    proxy.drop_watches();
    login(&lab, "stale.ada", -3600);
    lab.await_gone("namespaces", "", "tenant-stale-ada");
    lab.delete("tenant", "", &["stale.ada"]);
}

#[test]
fn a_template_that_no_watch_shows_keeps_the_shared_volume() {
    let lab = Lab::shared();
    let _course = lab.course("stalevol");
    let course = "workspace-stalevol";
    let (proxy, daemon) = start(&lab, "stalevol", "");
    lab.apply(&shared_volume("stalevol", "data", "1Gi"));
    lab.await_value("sharedvolumes", course, "data", "/status/phase", "Ready");
    // A response to a later write of the status would show the mount.
    lab.await_observed("templates", course, "container", "Ready");
    proxy.silence(Some(of("templates")));
    mount(&lab, "stalevol", "container", &["data"]);
    lab.begin_delete("sharedvolume", course, &["data"]);
    lab.await_value("sharedvolumes", course, "data", "/status/phase", "Deleting");
    assert!(daemon.log().contains(&format!("Template {FOUND}")), "{}", daemon.log());
    let volume = lab.get("sharedvolumes", course, "data").expect("kept");
    let conditions = volume["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let blocked = conditions.iter().find(|condition| condition["type"] == "DeletionBlocked");
    let message = blocked.expect("it is used")["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("(Templates workspace-stalevol/container)"), "{message}");
    proxy.silence(None);
    proxy.drop_watches();
    mount(&lab, "stalevol", "container", &[]);
    lab.await_gone("sharedvolumes", course, "data");
}

#[test]
fn a_permission_that_no_watch_shows_keeps_the_public_address() {
    let lab = Lab::shared();
    let _course = lab.course("staleports");
    let (namespace, course) = ("tenant-staleports", "workspace-staleports");
    let (proxy, daemon) =
        start(&lab, "staleports", "controllers: {publicExposure: {ipPool: [172.18.9.1]}}\n");
    let allow = |allowed: bool| {
        let patch = json!({"spec": {"allowPublicExposure": allowed}}).to_string();
        lab.patch("templates", course, "standalone", &patch);
    };
    allow(true);
    lab.apply(&instance("staleports", "one", "standalone"));
    lab.patch(
        "instances",
        namespace,
        "one",
        r#"{"spec": {"publicExposure": {"ports": [{"name": "http", "targetPort": 80}]}}}"#,
    );
    lab.await_value("instances", namespace, "one", "/status/publicExposure/phase", "Ready");
    // The permission is removed and restored; the daemon sees only the removal.
    let removal =
        |method: &Method, path: &str| *method == Method::DELETE && path.contains("/services/one-pe");
    proxy.set(Fault::Status { code: 503, retry_after: None, matching: matching(removal) });
    allow(false);
    wait_until(PATIENCE, || {
        (deletions(&proxy, "/services/one-pe") > 0).then_some(()).ok_or_else(|| "an attempt".to_owned())
    });
    // A response to a later write of the status would show the restored permission.
    lab.await_observed("templates", course, "standalone", "Ready");
    proxy.silence(Some(of("templates")));
    allow(true);
    // Until then the removals fail: the check of one may precede the restored permission.
    daemon.wait_for("the discovery", |daemon| daemon.log().contains(&format!("Template {FOUND}")));
    proxy.set(Fault::None);
    lab.await_value("instances", namespace, "one", "/status/publicExposure/phase", "Ready");
    let log = proxy.request_log();
    let removed = log.iter().filter(|request| {
        removal(&request.method, &request.path) && request.status.is_some_and(|status| status.is_success())
    });
    assert_eq!(removed.count(), 0);
    proxy.silence(None);
    proxy.drop_watches();
}

#[test]
fn a_first_list_that_hangs_costs_one_attempt() {
    let lab = Lab::shared();
    let _course = lab.course("stalelist");
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    // The first list of Templates is accepted and never answered; the next ones are.
    let first = nth(0);
    let list = of("templates");
    let hangs = matching(move |method, path| list(method, path) && first(method, path));
    proxy.set(Fault::Delay { pause: Duration::from_hours(1), matching: hangs });
    let kubeconfig =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
    let daemon = Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: "stalelist", config: "" });
    lab.apply(&instance("stalelist", "one", "standalone"));
    // Much earlier than the five minutes after which a watch is closed.
    lab.await_phase("tenant-stalelist", "one", "Ready");
    assert!(daemon.log().contains("cannot be reached: no answer within 30 s"), "{}", daemon.log());
}
