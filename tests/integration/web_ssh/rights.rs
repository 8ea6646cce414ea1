//! The users who get a terminal, and the machines that they get it for.

use std::net::TcpListener;

use serde_json::json;

use super::Site;
use crate::lab::{PATIENCE, instance, wait_until};
use cluster::browser::{Browser, request};
use cluster::sshd::{LocalAddress, OPEN, Sshd, key_pair};

/// The answer to every user who gets no terminal.
fn refused() -> (String, u16) {
    ("Invalid request".to_owned(), 1011)
}

#[test]
fn the_right_to_read_an_instance_does_not_open_its_machine() {
    let site = Site::start("web-people", "");
    let enters = |who: &str| {
        let mut browser = Browser::open(site.port, &site.request_of(who));
        browser.until(OPEN);
        browser.enter("exit\n");
        assert_eq!(browser.end(), ("SSH session closed".to_owned(), 1000), "{who}");
    };
    let opened = "opened a terminal";
    let refused_as = "refused a terminal";
    let is_logged = |what: &str, who: &str, why: &str| {
        let user = if who.is_empty() { site.name.to_owned() } else { format!("{}-{who}", site.name) };
        let (user, instance) = (format!("\"{user}\""), format!("{}/vm", site.namespace()));
        let log = site.daemon.log();
        let is_meant = |line: &str| [what, &user, &instance, why].iter().all(|part| line.contains(part));
        assert!(log.lines().any(is_meant), "{what} {user} {instance} {why}\n{log}");
    };
    for (who, standing) in [
        ("", "the Tenant of the machine"),
        ("manager", "a manager of its course"),
        ("admin", "an administrator"),
    ] {
        enters(who);
        is_logged(opened, who, standing);
    }
    // They may all read the Instance and its Template, and the first may even write the Instance.
    for who in ["other", "viewer"] {
        assert_eq!(site.answer(&site.request_of(who)), refused(), "{who}");
        is_logged(refused_as, who, "neither its Tenant nor a manager of the Workspace of its Template");
    }
    assert_eq!(site.answer(&site.request_of("nobody")), refused());
    is_logged(refused_as, "nobody", "the API server rejected the request");
    // A manager of another course who claims to own the machine.
    let named = format!(
        r#"{{"spec": {{"tenant.crownlabs.polito.it/TenantRef": {{"name": "{}-other"}}}}}}"#,
        site.name
    );
    site.lab.patch("instances", &site.namespace(), "vm", &named);
    assert_eq!(site.answer(&site.request_of("other")), refused(), "another tenant's namespace");
    enters("");
    // A former manager of the course.
    let left = r#"{"spec": {"workspaces": []}}"#;
    site.lab.patch("tenants", "", &format!("{}-manager", site.name), left);
    wait_until(PATIENCE, || {
        let answer = site.answer(&site.request_of("manager"));
        if answer == refused() { Ok(()) } else { Err(format!("{answer:?}")) }
    });
}

#[test]
fn service_accounts_get_no_terminal_whatever_their_rights() {
    let site = Site::start("web-system", "");
    let namespace = site.namespace();
    site.lab.apply(&format!(
        "apiVersion: v1
kind: ServiceAccount
metadata: {{name: robot, namespace: {namespace}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: robot, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-open-terminals}}
subjects: [{{kind: ServiceAccount, name: robot, namespace: {namespace}}}]
"
    ));
    let robot = site.lab.cluster.token(&namespace, "robot").expect("a token");
    assert_eq!(site.answer(&request(&robot, &namespace, "vm")), refused());
    let (log, name) = (site.daemon.log(), format!("system:serviceaccount:{namespace}:robot"));
    assert!(log.contains(&name) && log.contains("begins with"), "{log}");
}

#[test]
fn the_api_server_decides_by_the_token() {
    let site = Site::start("web-tokens", "");
    let (ada, bob) = (site.token(""), site.token("nobody"));
    let of = |token: &str| request(token, &site.namespace(), "vm");
    for token in [ada.clone(), format!("Bearer {ada}")] {
        let mut browser = Browser::open(site.port, &of(&token));
        browser.until(OPEN);
        browser.enter("exit\n");
        assert_eq!(browser.end(), ("SSH session closed".to_owned(), 1000));
    }
    let cut = &ada[..ada.len() - 4];
    let expired = site.lab.cluster.user_token(site.name, &[], -600).expect("a token");
    // The claims of the Tenant, with the signature of another token.
    let (claims, _) = ada.rsplit_once('.').expect("three parts");
    let (_, signature) = bob.rsplit_once('.').expect("three parts");
    let forged = format!("{claims}.{signature}");
    // The daemon itself may read every Instance with a client certificate. Users get none of these rights.
    for (what, token) in [
        ("not a token", "garbage"),
        ("only the prefix", "Bearer "),
        ("blanks, which alone would count as no token", "   "),
        ("a blank before it", &format!(" x {ada}")),
        ("a separate header", &format!("{ada}\r\nImpersonate-User: admin")),
        ("a signature that is cut", cut),
        ("the signature of another token", &forged),
        ("expired", &expired),
        ("of a user without rights", &bob),
        ("characters that are not ASCII", "ä"),
    ] {
        assert_eq!(site.answer(&of(token)), refused(), "{what}");
    }
    let log = site.daemon.log();
    assert!(!log.contains(&ada) && !log.contains(&bob) && !log.contains(cut), "the log has a token");
}

#[test]
fn names_that_kubernetes_does_not_allow_are_never_used_in_a_path() {
    let site = Site::start("web-names", "");
    let (token, namespace) = (site.token(""), site.namespace());
    let lengthy = "a".repeat(254);
    for name in
        ["../vm", "vm/", "vm/status", "x?y", "vm?watch=1", "vm#", "VM", "%76m", "v m", "vm\n", ".", &lengthy]
    {
        assert_eq!(site.answer(&request(&token, &namespace, name)), refused(), "{name:?}");
    }
    let dotted = format!("x/../{namespace}");
    for name in ["..", &dotted, &format!("{namespace}/instances/vm?"), "Tenant", &lengthy] {
        assert_eq!(site.answer(&request(&token, name, "vm")), refused(), "{name:?}");
    }
    assert_eq!(site.answer(&request(&token, &namespace, "missing")), refused());
    assert_eq!(site.answer(&request(&token, "workspace-web-names", "vm")), refused(), "no rights there");
    let log = site.daemon.log();
    assert!(!log.contains(&lengthy), "the log repeats what users send");
}

#[test]
fn a_machine_that_is_off_has_no_terminal() {
    let site = Site::start("web-off", "");
    drop(site.open());
    site.lab.patch("instances", &site.namespace(), "vm", r#"{"spec": {"running": false}}"#);
    wait_until(PATIENCE, || {
        let phase =
            site.lab.get("instances", &site.namespace(), "vm").expect("it")["status"]["phase"].clone();
        if phase == "Ready" { Err(phase.to_string()) } else { Ok(()) }
    });
    assert_eq!(site.answer(&site.request()), refused());
}

#[test]
fn fields_written_by_users_do_not_change_the_target() {
    let mut site = Site::start("web-forged", "");
    // An address where an attacker waits for the key.
    let trap = std::net::IpAddr::from([10, 255, 0, 7]);
    site.addresses.push(LocalAddress::add(trap).expect("the address"));
    let listener = TcpListener::bind((trap, site.ssh_port)).expect("a port");
    listener.set_nonblocking(true).expect("not blocking");
    let namespace = site.namespace();
    let forged =
        json!({"status": {"ip": trap, "environments": [{"name": "main", "ip": trap, "phase": "Ready"}]}});
    site.lab.patch_status("instances", &namespace, "vm", &forged.to_string());
    // A Service in another namespace that claims to belong to the Instance. Its finalizer protects it from the
    // garbage collector, which removes objects whose owner is in another namespace.
    let uid = site.lab.get("instances", &namespace, "vm").expect("it")["metadata"]["uid"].clone();
    site.lab.apply(&format!(
        "apiVersion: v1
kind: Service
metadata:
  name: vm-main
  namespace: workspace-web-forged
  finalizers: [example.org/kept]
  labels: {{crownlabs.polito.it/managed-by: instance}}
  ownerReferences: [{{apiVersion: crownlabs.polito.it/v1alpha2, kind: Instance, name: vm, uid: {uid}, controller: true}}]
spec: {{ports: [{{port: {}}}]}}
",
        site.ssh_port
    ));
    let service = site.lab.get("services", "workspace-web-forged", "vm-main").expect("the Service");
    let address = service["spec"]["clusterIP"].as_str().and_then(|ip| ip.parse().ok()).expect("an address");
    site.addresses.push(LocalAddress::add(address).expect("the address"));
    let second = TcpListener::bind((address, site.ssh_port)).expect("a port");
    second.set_nonblocking(true).expect("not blocking");
    // The daemon has seen the Service once it has seen a later one.
    site.lab.apply(&instance("web-forged", "later", "vm"));
    site.lab.await_phase(&namespace, "later", "Ready");
    for _ in 0..3 {
        drop(site.open());
    }
    let kept = site.lab.get("services", "workspace-web-forged", "vm-main").expect("the Service");
    assert_eq!(kept["metadata"]["ownerReferences"][0]["uid"], uid, "it was there all the time");
    site.lab.patch("services", "workspace-web-forged", "vm-main", r#"{"metadata": {"finalizers": null}}"#);
    for listener in [listener, second] {
        let accepted = listener.accept().map(|(_, from)| from);
        assert!(accepted.is_err(), "the daemon has connected to the trap: {accepted:?}");
    }
}

#[test]
fn a_connection_counts_once_the_shell_is_there() {
    let mut site = Site::without_machine("web-count", "");
    let address = site.await_machine("vm");
    let labels = format!("{{destination_ip=\"{}\",destination_port=\"{}\"}}", address.ip(), address.port());
    let [series, open] = ["bastion_web_ssh_connections", "bastion_ssh_open_connections"]
        .map(|family| format!("{family}{labels}"));
    site.addresses.push(LocalAddress::add(address.ip()).expect("the address"));
    let no_connection = ("Failed to establish SSH connection".to_owned(), 1011);
    assert_eq!(site.answer(&site.request()), no_connection, "nobody listens");
    let stranger = tempfile::TempDir::new().expect("a folder");
    key_pair(&stranger.path().join("key")).expect("a key");
    let mut sshd = Sshd::start(stranger.path(), address, "echo wrong").expect("sshd");
    assert_eq!(site.answer(&site.request()), no_connection, "the machine does not accept the key");
    assert_eq!((site.metric(&series), site.metric(&open)), (Some(0.0), None), "nothing was connected");
    sshd.kill();
    site.sshd = Some(Sshd::start(site.folder.path(), address, super::SHELL).expect("sshd"));
    for opened in [1.0, 2.0] {
        let terminals = [site.open(), site.open()];
        assert_eq!(site.metric(&series), Some(2.0 * opened));
        // No tracker watches the connections of this process, so the gauge counts the terminals themselves.
        assert_eq!(site.metric(&open), Some(2.0));
        drop(terminals);
        site.await_sessions(0.0);
        assert_eq!(site.metric(&open), None, "closed");
    }
    assert_eq!(site.answer(&request(&site.token("nobody"), &site.namespace(), "vm")), refused());
    assert_eq!(site.metric(&series), Some(4.0), "rejected users are not connected");
}
