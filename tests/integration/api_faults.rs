//! Faults of the API server: rejections, lost responses, broken watches.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use http::Method;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, TEMPLATES, instance, wait_until};
use cluster::proxy::{Fault, Matcher, Proxy, everything, matching};

const NAMESPACE: &str = "tenant-fault";

/// Matches the first `count` requests that satisfy `what`.
fn first(count: u32, what: impl Fn(&Method, &str) -> bool + Send + Sync + 'static) -> Matcher {
    let seen = AtomicU32::new(0);
    matching(move |method, path| what(method, path) && seen.fetch_add(1, Ordering::SeqCst) < count)
}

fn is_write(method: &Method, _: &str) -> bool {
    *method != Method::GET
}

#[test]
fn it_recovers_without_a_restart_and_without_a_flood_of_requests() {
    let lab = Lab::shared();
    let _course = lab.course("fault");
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    let kubeconfig =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "fault", config: "" });
    failed_writes(&lab, &proxy);
    broken_watches(&lab, &proxy);
    outage(&lab, &proxy);
    hanging_events(&lab, &proxy);
    a_busy_server(&lab, &proxy);
    assert_eq!(daemon.ready().0, 200);
}

/// The first 25 writes fail in each of five ways; the Instances still become ready.
fn failed_writes(lab: &Lab, proxy: &Proxy) {
    let faults: [(&str, Fault); 5] = [
        ("busy", Fault::Status { code: 429, retry_after: Some(1), matching: first(25, is_write) }),
        ("down", Fault::Status { code: 503, retry_after: None, matching: first(25, is_write) }),
        ("broken", Fault::Status { code: 500, retry_after: None, matching: first(25, is_write) }),
        ("cut", Fault::Break { matching: first(25, is_write) }),
        ("unanswered", Fault::LoseAnswer { matching: first(25, is_write) }),
    ];
    for (name, fault) in faults {
        proxy.reset();
        proxy.set(fault);
        for template in TEMPLATES {
            lab.apply(&instance("fault", &format!("{name}-{template}"), template));
        }
        for template in TEMPLATES {
            lab.await_phase(NAMESPACE, &format!("{name}-{template}"), "Ready");
        }
        // 25 lost requests, and the requests for 6 Instances. Without backoff there would be hundreds more.
        let writes = proxy.request_log().iter().filter(|request| request.method != Method::GET).count();
        assert!(writes < 250, "{name}: {writes} writes");
        let instances = lab.list("instances.crownlabs.polito.it", NAMESPACE);
        assert!(
            !instances.iter().any(|i| i["status"]["phase"] == "CreationLoopBackoff"),
            "{name}: the user is not blamed for an outage"
        );
        lab.delete_all("instances", NAMESPACE);
    }
    proxy.set(Fault::None);
}

/// After each break of all watches, the daemon sees the changes that it missed.
fn broken_watches(lab: &Lab, proxy: &Proxy) {
    proxy.reset();
    for round in 0..3 {
        proxy.drop_watches();
        let name = format!("watch-{round}");
        lab.apply(&instance("fault", &name, "standalone"));
        lab.await_phase(NAMESPACE, &name, "Ready");
    }
    let log = proxy.request_log();
    let watches = log.iter().filter(|request| request.path.contains("watch=")).count();
    assert!(watches <= 3 * 16 * 3, "{watches} watches for three breaks of about 16");
}

/// Every request, watches included, is rejected for a while.
fn outage(lab: &Lab, proxy: &Proxy) {
    proxy.set(Fault::Status { code: 503, retry_after: None, matching: everything() });
    proxy.drop_watches();
    lab.apply(&instance("fault", "outage", "container"));
    proxy.reset();
    wait_until(PATIENCE, || {
        let refused = proxy.request_log().len();
        (refused >= 16).then_some(()).ok_or_else(|| format!("{refused} refused requests"))
    });
    proxy.set(Fault::None);
    lab.await_phase(NAMESPACE, "outage", "Ready");
}

/// A request for an event that is never answered delays no status.
fn hanging_events(lab: &Lab, proxy: &Proxy) {
    let events = matching(|method, path| is_write(method, path) && path.contains("/events"));
    proxy.set(Fault::Delay { pause: Duration::from_hours(1), matching: events });
    for name in ["silent-a", "silent-b"] {
        lab.apply(&instance("fault", name, "absent"));
        wait_until(PATIENCE, || {
            let status = lab.get("instance", NAMESPACE, name).expect("there")["status"].clone();
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let is_said = conditions.iter().any(|condition| condition["reason"] == "TemplateNotFound");
            is_said.then_some(()).ok_or_else(|| format!("the reason in the status of {name}: {status}"))
        });
    }
    proxy.set(Fault::None);
    lab.delete_all("instances", NAMESPACE);
}

/// A server that asks for a pause of four seconds gets it, for writes and for watches.
fn a_busy_server(lab: &Lab, proxy: &Proxy) {
    let services: Asked = |method, path| *method == Method::POST && path.contains("/services?");
    let templates: Asked = |method, path| *method == Method::GET && path.contains("/templates?");
    for code in [429, 503] {
        for (what, asked) in [("services", services), ("templates", templates)] {
            proxy.reset();
            proxy.set(Fault::Status { code, retry_after: Some(4), matching: matching(asked) });
            // Not later than the first attempt.
            let begin = Instant::now();
            proxy.drop_watches();
            let name = format!("patient-{code}-{what}");
            lab.apply(&instance("fault", &name, "standalone"));
            await_attempts(proxy, asked, 3);
            assert!(begin.elapsed() >= Duration::from_secs(7), "{code} {what}: {:?}", begin.elapsed());
            proxy.set(Fault::None);
            lab.await_phase(NAMESPACE, &name, "Ready");
        }
    }
    lab.delete_all("instances", NAMESPACE);
}

/// Whether a request is rejected.
type Asked = fn(&Method, &str) -> bool;

/// Waits until this many of these requests were answered.
fn await_attempts(proxy: &Proxy, asked: Asked, number: usize) {
    // After the previous outage, a watch waits for up to a minute between two attempts.
    wait_until(3 * PATIENCE, || {
        let log = proxy.request_log();
        let sent = log.iter().filter(|request| asked(&request.method, &request.path)).count();
        (sent >= number).then_some(()).ok_or_else(|| format!("{sent} attempts"))
    });
}
