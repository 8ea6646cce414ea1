//! `KubeVirt` is installed in the cluster while the daemon runs.

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::Options as ClusterOptions;

#[test]
fn containers_work_without_kubevirt_and_machines_start_when_it_is_installed() {
    let lab = Lab::start(ClusterOptions { kubevirt: false, ..ClusterOptions::default() });
    lab.create_fixtures("bare");
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "bare", config: "" });
    lab.apply(&instance("bare", "box", "container"));
    lab.apply(&instance("bare", "machine", "vm-persistent"));
    lab.await_phase("tenant-bare", "box", "Ready");
    let message = lab.await_fault("tenant-bare", "machine", "KubeVirtMissing");
    assert!(message.contains("KubeVirt's CRDs are not installed"), "{message}");
    daemon.wait_for("the report", |daemon| daemon.ready().1.contains("virtualmachines.kubevirt.io"));
    let (status, report) = daemon.ready();
    assert_eq!(status, 200, "{report}");
    // The Gateway API is not installed either, but the report does not mention it, because it is not configured.
    assert!(!report.contains("httproutes"), "{report}");
    wait_until(PATIENCE, || {
        let events = lab.events("crownlabs-system", "crownlabs-controller-manager");
        events
            .iter()
            .any(|e| e.contains("virtualmachines.kubevirt.io"))
            .then_some(())
            .ok_or_else(|| format!("{events:?}"))
    });
    lab.cluster.install_kubevirt().expect("KubeVirt's CRDs");
    lab.await_phase("tenant-bare", "machine", "Ready");
    daemon.wait_for("readiness without a missing kind", |daemon| !daemon.ready().1.contains("kubevirt"));

    // After a restart of the API server, the daemon continues without a restart.
    lab.cluster.stop_apiserver();
    lab.cluster.start_apiserver().expect("it starts again");
    lab.apply(&instance("bare", "after", "container"));
    lab.await_phase("tenant-bare", "after", "Ready");
    let (status, report) = daemon.ready();
    assert_eq!(status, 200, "{report}");
}
