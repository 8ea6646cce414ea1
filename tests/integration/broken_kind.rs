//! A kind that cannot be listed stops only the loops that need it.

use crate::cluster::proxy::{Fault, Proxy, matching};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

#[test]
fn a_kind_that_cannot_be_listed_stops_only_the_loops_that_need_it() {
    let lab = Lab::shared();
    lab.create_fixtures("broken");
    let proxy = Proxy::start(&lab.cluster).expect("a proxy");
    let snapshots = matching(|_, path| path.contains("/instancesnapshots?"));
    proxy.set(Fault::Status { code: 403, retry_after: None, matching: snapshots });
    let kubeconfig =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
    let daemon = Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: "broken", config: "" });
    lab.apply(&instance("broken", "one", "standalone"));
    lab.await_phase("tenant-broken", "one", "Ready");
    let (status, report) = daemon.ready();
    assert_eq!(status, 503, "{report}");
    let line =
        "[-] snapshot: starting: the first lists have not ended: instancesnapshots.crownlabs.polito.it\n";
    assert!(report.contains(line) && report.contains("[+] instance: ready\n"), "{report}");
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
            && daemon.log().contains("the watch is broken: what is known of these objects is old");
        said.then_some(()).ok_or(report)
    });
    proxy.set(Fault::None);
    daemon.wait_for("readiness", |daemon| daemon.ready().0 == 200 && !daemon.ready().1.contains("watch of"));
    lab.delete_fixtures("broken");
}
