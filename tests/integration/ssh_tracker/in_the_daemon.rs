//! The loop in the daemon: readiness, metrics, and the Instances behind the addresses.

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use crate::daemon::{Daemon, Options, reserved_port};
use crate::inactivity::allow_idle;
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::network::{Sender, syn};
use cluster::prometheus::PrometheusServer;

/// The configuration with the tracker on that port.
fn config(port: u16) -> String {
    format!("controllers: {{sshTracker: {{enabled: true, port: {port}}}}}")
}

/// Waits until the metrics have a line that begins like this and has this value.
pub fn await_metric(daemon: &Daemon, series: &str, value: u64) {
    let line = format!("{series} {value}");
    wait_until(PATIENCE, || {
        let metrics = daemon.metrics();
        let found = metrics.lines().any(|found| found == line);
        let of_tracker =
            || metrics.lines().filter(|line| line.starts_with("bastion")).collect::<Vec<_>>().join("\n");
        if found { Ok(()) } else { Err(format!("{line}, there is:\n{}", of_tracker())) }
    });
}

/// Creates a Service in another namespace that claims to belong to the Instance with this uid; returns its address.
/// Its finalizer protects it from the garbage collector.
fn forged_service(lab: &Lab, name: &str, uid: &str) -> String {
    let namespace = format!("workspace-{name}");
    lab.apply(&format!(
        "apiVersion: v1
kind: Service
metadata:
  name: forged
  namespace: {namespace}
  finalizers: [example.org/kept]
  labels: {{crownlabs.polito.it/managed-by: instance}}
  ownerReferences: [{{apiVersion: crownlabs.polito.it/v1alpha2, kind: Instance, name: one, uid: {uid}, controller: true}}]
spec: {{ports: [{{port: 22}}]}}\n"
    ));
    let forged = lab.get("services", &namespace, "forged").expect("the Service");
    forged["spec"]["clusterIP"].as_str().expect("an address").to_owned()
}

#[test]
fn connections_are_counted_by_destination_and_by_instance() {
    let (lab, name, port) = (Lab::shared(), "tracked", reserved_port());
    let _course = lab.course(name);
    let (kubeconfig, config) = (lab.service_account(), config(port));
    let mut daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: name, config: &config });
    let ready = daemon.ready().1;
    assert!(ready.contains("[+] sshTracker: ready"), "{ready}");
    await_metric(&daemon, "bastion_ssh_tracker_running", 1);
    await_metric(&daemon, "bastion_ssh_tracker_drops_total", 0);
    // The address of an Instance has a series before the first connection.
    lab.apply(&instance(name, "one", "container"));
    let object = lab.await_phase("tenant-tracked", "one", "Ready");
    let address = object["status"]["ip"].as_str().expect("an address").to_owned();
    let uid = object["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let by_address =
        format!(r#"bastion_ssh_connections{{destination_ip="{address}",destination_port="{port}"}}"#);
    let by_instance = r#"bastion_instance_ssh_connections{namespace="tenant-tracked",instance="one"}"#;
    await_metric(&daemon, &by_address, 0);
    await_metric(&daemon, by_instance, 0);
    // Nothing has this address here; the packet is sent as if something had.
    let sender = Sender::new("lo");
    sender.send(&syn(&address, port, 1));
    sender.send(&syn(&address, port, 1));
    sender.send(&syn(&address, port, 2));
    await_metric(&daemon, &by_address, 2);
    await_metric(&daemon, by_instance, 2);
    // A uid gives access to machines without other protection: it must be neither in metrics nor in the log.
    assert!(!daemon.metrics().contains(&uid), "{}", daemon.metrics());
    assert!(!daemon.log().contains(&uid), "{}", daemon.log());
    let forged = forged_service(&lab, name, &uid);
    // The daemon has seen the Service once it has seen a later one.
    lab.apply(&instance(name, "two", "container"));
    let later = lab.await_phase("tenant-tracked", "two", "Ready");
    let later = later["status"]["ip"].as_str().expect("an address");
    let later = format!(r#"bastion_ssh_connections{{destination_ip="{later}",destination_port="{port}"}}"#);
    await_metric(&daemon, &later, 0);
    assert!(!daemon.metrics().contains(&format!("\"{forged}\"")), "{}", daemon.metrics());
    lab.patch("services", "workspace-tracked", "forged", r#"{"metadata": {"finalizers": null}}"#);
    // An unknown destination: its series starts at 0.
    let _server = TcpListener::bind(("127.0.0.1", port)).expect("a server");
    let local = format!(r#"bastion_ssh_connections{{destination_ip="127.0.0.1",destination_port="{port}"}}"#);
    drop(TcpStream::connect(("127.0.0.1", port)).expect("connected"));
    let mut values = Vec::new();
    wait_until(PATIENCE, || {
        let metrics = daemon.metrics();
        let value = metrics.lines().find_map(|line| line.strip_prefix(&local));
        values.extend(value.map(|value| value.trim().to_owned()));
        if values.len() == 3 { Ok(()) } else { Err("the connection on loopback".to_owned()) }
    });
    assert_eq!(values, ["0", "1", "1"]);
    await_metric(&daemon, "bastion_ssh_tracker_packets_total", 4);
    await_metric(&daemon, "bastion_ssh_tracker_freezes_total", 0);
    daemon.signal("TERM");
    assert!(daemon.wait(PATIENCE).expect("it ends").success());
    assert!(!daemon.log().contains("did not end in time"), "{}", daemon.log());
}

#[test]
fn the_first_connection_is_an_increase_for_prometheus() {
    let (lab, name, port) = (Lab::shared(), "increase", reserved_port());
    let _course = lab.course(name);
    let (kubeconfig, config) = (lab.service_account(), config(port));
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: name, config: &config });
    await_metric(&daemon, "bastion_ssh_tracker_running", 1);
    let prometheus =
        PrometheusServer::scraping(&format!("127.0.0.1:{}", daemon.port("metrics").expect("it serves")))
            .expect("Prometheus starts");
    let value = |query: &str| prometheus.value(query).expect("an answer");
    wait_until(PATIENCE, || value("bastion_ssh_tracker_running").ok_or("a scrape".to_owned()));
    let _server = TcpListener::bind(("127.0.0.1", port)).expect("a server");
    drop(TcpStream::connect(("127.0.0.1", port)).expect("connected"));
    let increase = format!(
        r#"increase(bastion_ssh_connections{{destination_ip="127.0.0.1",destination_port="{port}"}}[5m])"#
    );
    wait_until(PATIENCE, || match value(&increase) {
        Some(more) if more > 0.0 => Ok(()),
        other => Err(format!("{increase} is {other:?}")),
    });
}

#[test]
fn a_connection_that_the_daemon_saw_is_a_use_while_prometheus_is_away() {
    let (lab, name, port) = (Lab::shared(), "witnessed", reserved_port());
    let _course = lab.course(name);
    // Overdue at once: it is checked every second, and left running while its usage is unknown.
    allow_idle(&lab, name, "container", "1s");
    lab.apply(&instance(name, "one", "container"));
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!(
        "controllers: {{sshTracker: {{enabled: true, port: {port}}}, inactivity: {{enabled: true, checkInterval: 1s}}}}
integrations: {{mail: {{transport: file, folder: \"{}\", from: labs@example.org}}, \
         prometheus: {{url: \"http://127.0.0.1:{}\", queryStep: 1s, timeout: 2s}}}}\n",
        folder.path().display(),
        reserved_port()
    );
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: name, config: &config });
    let object = lab.await_phase("tenant-witnessed", "one", "Ready");
    await_metric(&daemon, "bastion_ssh_tracker_running", 1);
    Sender::new("lo").send(&syn(object["status"]["ip"].as_str().expect("an address"), port, 1));
    await_metric(&daemon, r#"automation_instances{controller="inactivity",witness="ssh"}"#, 1);
}

#[test]
fn a_missing_capability_is_reported_and_other_loops_work() {
    let (lab, name) = (Lab::shared(), "no-right");
    let _course = lab.course(name);
    let (kubeconfig, config) = (lab.service_account(), config(reserved_port()));
    let without = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"];
    let options = Options { kubeconfig: &kubeconfig, selector: name, config: &config };
    let daemon = Daemon::spawn_through(&without, &options);
    let sentence = "[!] sshTracker: the capability NET_RAW is missing: add it to the container's \
                    securityContext.capabilities";
    daemon.wait_for("the missing capability", |daemon| daemon.ready().1.contains(sentence));
    lab.apply(&instance(name, "one", "container"));
    lab.await_phase("tenant-no-right", "one", "Ready");
    await_metric(&daemon, "bastion_ssh_tracker_running", 0);
    daemon.wait_for("the report", |daemon| {
        let (status, ready) = daemon.ready();
        status == 200 && ready.contains("[+] instance: ready") && ready.contains(sentence)
    });
    assert_eq!(daemon.page("/readyz/sshTracker").0, 503);
    assert_eq!(daemon.log().matches("NET_RAW").count(), 1, "{}", daemon.log());
}

#[test]
fn without_the_toggle_no_capability_and_no_library_is_needed() {
    let (lab, name) = (Lab::shared(), "no-tracker");
    let _course = lab.course(name);
    let kubeconfig = lab.service_account();
    let without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"];
    let options = Options { kubeconfig: &kubeconfig, selector: name, config: "" };
    let daemon = Daemon::spawn_through(&without, &options);
    daemon.await_ready();
    lab.apply(&instance(name, "one", "container"));
    lab.await_phase("tenant-no-tracker", "one", "Ready");
    let process = Path::new("/proc").join(daemon.id().to_string());
    let read = |file: &str| fs::read_to_string(process.join(file)).expect("a running process");
    assert!(read("status").contains("CapEff:\t0000000000000000\n"), "{}", read("status"));
    // This list identifies packet sockets by their inode, which is also the inode of a file of the process.
    let listed = read("net/packet");
    let sockets: Vec<&str> =
        listed.lines().skip(1).filter_map(|line| line.split_whitespace().next_back()).collect();
    for file in fs::read_dir(process.join("fd")).expect("its files").flatten() {
        let target = fs::read_link(file.path()).unwrap_or_default().display().to_string();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        assert!(inode.is_none_or(|inode| !sockets.contains(&inode)), "{target}: {listed}");
    }
    // The system libraries that every Rust program has; no libpcap.
    let mapped = read("maps");
    let files = mapped.lines().filter_map(|line| Path::new(line.split_whitespace().nth(5)?).file_name());
    let libraries: BTreeSet<String> = files
        .map(|file| file.to_string_lossy().into_owned())
        .filter(|name| name.contains(".so"))
        .map(|name| name.split(['.', '-']).next().unwrap_or_default().to_owned())
        .collect();
    let allowed = ["ld", "libc", "libgcc_s", "libm"].map(str::to_owned).into();
    assert!(libraries.is_subset(&allowed), "{libraries:?}");
}
