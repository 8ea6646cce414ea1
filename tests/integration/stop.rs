//! How the daemon stops, whatever the API server does.

use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, instance};
use cluster::proxy::{Fault, Proxy, everything};

#[test]
fn a_stop_during_the_first_connection_ends_at_once() {
    // It accepts connections, because the kernel does so, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    let mut kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    write!(
        kubeconfig,
        "apiVersion: v1
kind: Config
clusters: [{{name: silent, cluster: {{server: \"http://{address}\"}}}}]
users: [{{name: nobody, user: {{token: x}}}}]
contexts: [{{name: silent, context: {{cluster: silent, user: nobody}}}}]
current-context: silent
"
    )
    .expect("written");
    let mut daemon =
        Daemon::spawn(&Options { kubeconfig: kubeconfig.path(), selector: "silent", config: "" });
    let _connection = silent.accept().expect("the daemon connects");
    daemon.signal("TERM");
    let begin = Instant::now();
    let status = daemon.wait(Duration::from_secs(30)).expect("it ends");
    assert!(status.success(), "{status}");
    // It does not wait for the response, which may take 30 s.
    assert!(begin.elapsed() <= Duration::from_secs(25), "{:?}", begin.elapsed());
}

#[test]
fn a_stop_while_nothing_is_answered_ends_in_time_and_is_no_lost_lease() {
    let lab = Lab::shared();
    let _course = lab.course("halting");
    // With a separate lease, which the account of the daemon may not use.
    lab.apply(
        "apiVersion: v1
kind: ServiceAccount
metadata: {name: halting, namespace: tenant-halting}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: halting}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: halting, namespace: tenant-halting}]
",
    );
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    let kubeconfig =
        lab.cluster.kubeconfig_via(&proxy.url(), "tenant-halting", "halting").expect("a kubeconfig");
    let config = "leaderElection: {name: halting}\n";
    let mut daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "halting", config });
    daemon.wait_for("leadership", |daemon| {
        daemon.metrics().contains("leader_election_master_status{name=\"halting\"} 1")
    });
    proxy.set(Fault::Delay { pause: Duration::from_hours(1), matching: everything() });
    lab.apply(&instance("halting", "one", "standalone"));
    daemon.wait_for("a reconcile that hangs", |daemon| {
        daemon.metrics().contains("controller_runtime_active_workers{controller=\"instance\"} 1")
    });
    daemon.signal("TERM");
    let begin = Instant::now();
    let status = daemon.wait(Duration::from_mins(1)).expect("it ends");
    assert!(begin.elapsed() <= Duration::from_secs(28), "{:?}", begin.elapsed());
    assert!(status.success(), "{status}");
    assert!(daemon.log().contains("stop requested"), "{}", daemon.log());
    lab.delete("clusterrolebinding", "", &["halting"]);
}
