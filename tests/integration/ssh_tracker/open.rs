//! Open connections: from the table of a kernel, in the daemon, and as a use of machines.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crownlabs::testing::{OpenConnections, Tracked, clock};

use super::connections::{network, server};
use super::in_the_daemon::await_metric;
use crate::daemon::{Daemon, Options, reserved_port};
use crate::expiration::mails;
use crate::inactivity::allow_idle;
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::config::only;
use cluster::network::Namespace;
use cluster::prometheus::PrometheusServer;
use cluster::sshd::{LocalAddress, Sshd, key_pair};

/// The series of the open connections in a namespace, and their values.
fn open_in(namespace: &Namespace, connections: &OpenConnections, ipv6: bool) -> Vec<String> {
    namespace.run(|| connections.read(Tracked { port: 22, ipv6 }, |_| true)).expect("the table");
    let mut text = String::new();
    connections.render(&mut text);
    let series =
        text.lines().filter_map(|line| line.strip_prefix("bastion_ssh_open_connections{destination_ip=\""));
    series.map(|line| line.replace("\",destination_port=\"22\"}", "")).collect()
}

#[test]
fn a_connection_from_a_pod_is_open_until_it_is_closed() {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("cap0", &there);
    network(&here, &there, "cap0");
    let machine = server(&there);
    let bastion = server(&here);
    let other = there.run(|| TcpListener::bind("10.1.0.2:443")).expect("a server");
    let connect = |from: &Namespace, to: &str| {
        let to: SocketAddr = to.parse().expect("an address");
        from.run(|| TcpStream::connect_timeout(&to, PATIENCE)).expect("connected")
    };
    let connections = OpenConnections::default();
    assert_eq!(open_in(&here, &connections, true), [""; 0]);
    let first = connect(&here, "10.1.0.2:22");
    let second = connect(&here, "10.1.0.2:22");
    let over_ipv6 = connect(&here, "[fd00::2]:22");
    // Another port; a connection to the bastion itself, from outside and from here.
    let others = [connect(&here, "10.1.0.2:443"), connect(&there, "10.1.0.1:22")];
    assert_eq!(open_in(&here, &connections, true), ["10.1.0.2 2", "fd00::2 1"]);
    assert_eq!(open_in(&here, &connections, false), ["10.1.0.2 2"]);
    assert_eq!(open_in(&there, &connections, true), ["10.1.0.1 1"], "there the other one is open");
    drop(first);
    assert_eq!(open_in(&here, &connections, true), ["10.1.0.2 1", "fd00::2 1"]);
    drop((second, over_ipv6));
    assert_eq!(open_in(&here, &connections, true), [""; 0]);
    drop((machine, bastion, other, others));
}

#[test]
fn a_connection_that_the_machine_has_closed_is_not_open() {
    let here = Namespace::new();
    let machine = server(&here);
    let address: SocketAddr = "127.0.0.1:22".parse().expect("an address");
    let client = here.run(|| TcpStream::connect_timeout(&address, PATIENCE)).expect("connected");
    let connections = OpenConnections::default();
    assert_eq!(open_in(&here, &connections, true), ["127.0.0.1 1"], "once, though both ends are here");
    drop(machine.accept().expect("a connection"));
    wait_until(PATIENCE, || match open_in(&here, &connections, true).as_slice() {
        [] => Ok(()),
        open => Err(format!("no connection: {open:?}")),
    });
    drop(client);
}

/// A session of OpenSSH's client, which is open until it is dropped.
struct Session(Child);

impl Session {
    fn open(folder: &Path, address: SocketAddr) -> Self {
        let (key, port) = (folder.join("key"), address.port().to_string());
        let child = Command::new("/usr/bin/ssh")
            .args(["-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"])
            .args(["-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-p", &port, "-i"])
            .arg(key)
            .args([format!("root@{}", address.ip()), "anything".to_owned()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.expect("ssh starts"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The configuration of an inactivity loop that gets SSH usage only from this Prometheus.
fn watching(folder: &Path, prometheus: &PrometheusServer) -> String {
    let keys = "maxNumberOfAlerts: 1, notificationInterval: 10m, checkInterval: 1s";
    format!(
        "{}integrations:
  mail: {{transport: file, folder: \"{}\", from: labs@example.org}}
  prometheus:
    url: \"{}\"
    queryStep: 1s
    timeout: 30s
    queries: {{nginxData: '', bastionSshAvailable: sum(bastion_ssh_tracker_running), webSshData: ''}}
",
        only(&[("inactivity", keys)]),
        folder.display(),
        prometheus.url()
    )
}

/// A Prometheus that has scraped this daemon.
fn scraping(daemon: &Daemon) -> PrometheusServer {
    let address = format!("127.0.0.1:{}", daemon.port("metrics").expect("it serves"));
    let prometheus = PrometheusServer::scraping(&address).expect("Prometheus starts");
    let scrapes = "count_over_time(bastion_ssh_tracker_running[1m])";
    wait_until(PATIENCE, || match prometheus.value(scrapes) {
        Ok(Some(number)) if number >= 5.0 => Ok(()),
        other => Err(format!("five scrapes: {other:?}")),
    });
    prometheus
}

#[test]
fn a_long_session_is_a_use_until_it_is_closed() {
    let (lab, name, port) = (Lab::shared(), "sitting", reserved_port());
    let namespace = "tenant-sitting";
    let _course = lab.course(name);
    let idle = Duration::from_secs(30);
    allow_idle(&lab, name, "container-persistent", &format!("{}s", idle.as_secs()));
    let config = format!("controllers: {{sshTracker: {{enabled: true, port: {port}}}}}");
    let kubeconfig = lab.service_account();
    let tracker = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: name, config: &config });
    await_metric(&tracker, "bastion_ssh_tracker_running", 1);
    let folder = tempfile::tempdir().expect("a folder");
    key_pair(&folder.path().join("key")).expect("a key");
    let machines = ["held", "left"].map(|machine| {
        lab.apply(&instance(name, machine, "container-persistent"));
        let object = lab.await_phase(namespace, machine, "Ready");
        let address = object["status"]["ip"].as_str().and_then(|ip| ip.parse().ok()).expect("an address");
        let own = LocalAddress::add(address).expect("the address");
        let sshd = Sshd::start(folder.path(), (address, port).into(), "cat").expect("sshd");
        let session = Session::open(folder.path(), (address, port).into());
        (address, own, sshd, session)
    });
    let series = |address| {
        format!(r#"bastion_ssh_open_connections{{destination_ip="{address}",destination_port="{port}"}}"#)
    };
    for (address, ..) in &machines {
        await_metric(&tracker, &series(*address), 1);
    }
    let prometheus = scraping(&tracker);
    let config = watching(folder.path(), &prometheus);
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: name, config: &config });
    let warned = |machine: &str| {
        wait_until(PATIENCE, || {
            let found = mails(folder.path()).into_iter().find(|(_, mail)| mail.contains(machine));
            found
                .map(|(accepted, _)| accepted)
                .ok_or_else(|| format!("a mail about {machine}: {}", daemon.log()))
        })
    };
    // There are no new connections. The Tenant of the closed session is warned, and the other is not, although the
    // sessions began at the same time.
    let [held, left] = machines;
    drop(left.3);
    warned("left");
    await_metric(&daemon, r#"automation_instances{controller="inactivity",witness="open"}"#, 2);
    assert_eq!(mails(folder.path()).len(), 1, "{}", daemon.log());
    let last = clock::now();
    drop(held.3);
    let accepted = warned("held");
    assert!(accepted >= last, "it was warned about at {accepted}, and the session was open at {last}");
    let object = lab.await_value("instances", namespace, "held", "/status/inactivity/witness", "open");
    assert_eq!(object["spec"]["running"], true);
    // Closed connections have no series.
    let metrics = tracker.metrics();
    assert!(!metrics.contains(&series(held.0)), "{metrics}");
}

#[test]
fn a_session_that_the_daemon_sees_itself_is_a_use_while_prometheus_is_away() {
    let (lab, name, port) = (Lab::shared(), "watched", reserved_port());
    let _course = lab.course(name);
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
    let object = lab.await_phase("tenant-watched", "one", "Ready");
    let address = object["status"]["ip"].as_str().and_then(|ip| ip.parse().ok()).expect("an address");
    let _own = LocalAddress::add(address).expect("the address");
    let _server = TcpListener::bind((address, port)).expect("a server");
    let _open = TcpStream::connect((address, port)).expect("connected");
    await_metric(&daemon, r#"automation_instances{controller="inactivity",witness="open"}"#, 1);
}

#[test]
fn all_trackers_share_the_open_connections() {
    let connections = Arc::new(OpenConnections::default());
    let address: SocketAddr = "127.0.0.1:22".parse().expect("an address");
    let here = Namespace::new();
    let _server = server(&here);
    let _client = here.run(|| TcpStream::connect_timeout(&address, PATIENCE)).expect("connected");
    let _terminal = connections.begin(address);
    assert_eq!(open_in(&here, &connections, true), ["127.0.0.1 1"], "the terminal is the connection");
}
