//! The login of machines with the real API server: two replicas answer as ingress-nginx and Envoy ask. The codes, which the
//! dashboard seals, are sealed here.

mod peers;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use cluster::request::send;
use crownlabs::testing::{Code, HostKey, Keys, clock, ended_session};
use serde_json::json;
use tempfile::TempDir;

use crate::daemon::{Daemon, Options, config, reserved_port};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

const SESSION_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
const HOST_KEY: [u8; 32] = [7; 32];
const BASE: &str = "machines.example.com";
const SIGN_IN: &str = "https://labs.example.com/login/machine";

/// A daemon that reconciles Instances, two replicas of the login, and the Instances `vm` and `other` of a Tenant.
struct Site {
    lab: Arc<Lab>,
    name: &'static str,
    _daemon: Daemon,
    replicas: Vec<Daemon>,
    ports: [u16; 2],
    /// The ports of the hosts of peers.
    peers: [u16; 2],
    /// The labels of the hosts of both Instances.
    labels: [String; 2],
    keys: Keys,
    folder: TempDir,
    /// The number of the next code.
    next: u32,
}

/// The status, `Location` and the cookie of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reply {
    status: u16,
    location: String,
    cookie: String,
}

impl Reply {
    fn new(status: u16, location: &str, set_cookie: &str) -> Self {
        let cookie = set_cookie.split(';').next().unwrap_or_default().to_owned();
        Self { status, location: location.to_owned(), cookie }
    }
}

impl Site {
    fn start(name: &'static str) -> Self {
        let lab = Lab::shared();
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("session"), SESSION_KEY).expect("written");
        fs::write(folder.path().join("hosts"), HOST_KEY).expect("written");
        let daemon = Daemon::start(&Options { kubeconfig: &lab.admin(), selector: name, config: "" });
        lab.create_fixtures(name);
        // The manager of the course, and a manager of another one.
        for (who, workspace) in [("manager", name.to_owned()), ("other", format!("{name}-other"))] {
            lab.apply(&format!(
                "apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: {name}-{who}}}
spec: {{firstName: Max, lastName: Rossi, email: {who}@example.org, workspaces: [{{name: {workspace}, role: manager}}]}}
"
            ));
        }
        lab.write_tenant_status(name);
        lab.apply(&format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: crownlabs-login-codes, namespace: workspace-{name}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: crownlabs-peers, namespace: workspace-{name}}}\n"
        ));
        let labels = ["vm", "other"].map(|machine| {
            lab.apply(&instance(name, machine, "vm"));
            let namespace = format!("tenant-{name}");
            let found = lab.await_phase(&namespace, machine, "Ready");
            let uid = found["metadata"]["uid"].as_str().expect("a uid");
            let environment = found["status"]["environments"][0]["name"].as_str().expect("an environment");
            HostKey::parse(&HOST_KEY).expect("a key").label(uid, environment)
        });
        let [ports, peers] = [(); 2].map(|()| [reserved_port(), reserved_port()]);
        let keys = Keys::parse(SESSION_KEY.as_bytes()).expect("a key");
        let (replicas, next) = (Vec::new(), 0);
        let mut site =
            Self { lab, name, _daemon: daemon, replicas, ports, peers, labels, keys, folder, next };
        site.replicas = (0..2).map(|number| site.replica(number)).collect();
        site.replicas.iter().for_each(Daemon::await_ready);
        site.await_known();
        site
    }

    /// Starts a replica.
    fn replica(&self, number: usize) -> Daemon {
        let off = ["workspace", "tenant", "template", "publicExposure", "sharedVolume", "snapshot"];
        let off = off.map(|name| format!("{name}: {{enabled: false}}, ")).concat();
        let (folder, name) = (self.folder.path().display(), self.name);
        let more = format!(
            "leaderElection: {{enabled: false, namespace: workspace-{name}}}\n\
             controllers: {{{off}instance: {{enabled: false, websiteBaseUrl: {BASE}, access: {{daemon: {{signInUrl: \"{SIGN_IN}\"}}}}}}, \
             login: {{enabled: true, listen: \"127.0.0.1:{}\", peersListen: \"127.0.0.1:{}\", \
             sessionKeyFile: \"{folder}/session\", hostKeyFile: \"{folder}/hosts\"}}}}\n",
            self.ports[number], self.peers[number]
        );
        let kubeconfig = self.lab.admin();
        let command = [env!("CARGO_BIN_EXE_crownlabs")];
        Daemon::launch(&command, &config(name, &more), &kubeconfig, "127.0.0.1".to_owned())
    }

    /// Kills a replica, and starts it again.
    fn restart(&mut self, number: usize) {
        self.replicas[number].stop();
        self.replicas[number] = self.replica(number);
        self.replicas[number].await_ready();
        self.await_known();
    }

    /// Waits until both replicas know both hosts.
    fn await_known(&self) {
        wait_until(PATIENCE, || {
            for (replica, machine) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let reply = self.open(replica, machine, "/", "");
                if reply.status != 401 {
                    return Err(format!("replica {replica}, machine {machine}: {reply:?}"));
                }
            }
            Ok(())
        });
    }

    fn host(&self, machine: usize) -> String {
        format!("{}.{BASE}", self.labels[machine])
    }

    /// Sends a request for a machine as ingress-nginx does.
    fn open(&self, replica: usize, machine: usize, target: &str, cookie: &str) -> Reply {
        let address = format!("127.0.0.1:{}", self.ports[replica]);
        let url = format!("https://{}{target}", self.host(machine));
        let headers = [("X-Original-URL", url.as_str()), ("X-Original-Method", "GET"), ("Cookie", cookie)];
        let path = format!("/auth/{}", self.labels[machine]);
        let answer = send(&address, "GET", &path, &headers, "").expect("a response");
        Reply::new(answer.status, answer.header("location"), answer.header("set-cookie"))
    }

    /// Sends a request for a machine as Envoy does.
    fn open_by_envoy(&self, replica: usize, machine: usize, target: &str, cookie: &str) -> Reply {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[replica])).expect("the daemon listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let host = self.host(machine);
        let request = format!(
            "GET /authz{target} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("a response");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let header = |wanted: &str| {
            let mut headers = answer.lines().filter_map(|line| line.split_once(": "));
            headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map_or("", |(_, value)| value)
        };
        Reply::new(status, header("location"), header("set-cookie"))
    }

    /// Returns the path of the exchange of a new code for a machine, which is this many seconds old.
    fn exchange(&mut self, user: &str, machine: usize, age: i64) -> String {
        let label = self.labels[machine].clone();
        self.exchange_at(&label, user, age)
    }

    /// The same for the host with this label.
    fn exchange_at(&mut self, label: &str, user: &str, age: i64) -> String {
        self.next += 1;
        let code = Code {
            id: format!("code-{}", self.next),
            since: clock::now().as_second() - age,
            user: user.to_owned(),
            session: format!("session of {user}"),
            path: "/page?a=b".to_owned(),
        };
        format!("/_crownlabs/login?code={}", code.seal(&self.keys, label))
    }

    /// Logs a user in to a machine. Returns the cookie.
    fn log_in(&mut self, user: &str, machine: usize) -> String {
        let exchange = self.exchange(user, machine, 0);
        let reply = self.open(0, machine, &exchange, "");
        assert_eq!((reply.status, reply.cookie.is_empty()), (401, false), "{reply:?}");
        reply.cookie
    }

    /// The statuses of both replicas for a machine with a cookie.
    fn statuses(&self, machine: usize, cookie: &str) -> [u16; 2] {
        [0, 1].map(|replica| self.open(replica, machine, "/", cookie).status)
    }

    /// Waits until both replicas respond with a status.
    fn await_statuses(&self, machine: usize, cookie: &str, status: u16) {
        wait_until(PATIENCE, || match self.statuses(machine, cookie) {
            found if found == [status; 2] => Ok(()),
            found => Err(format!("{status} instead of {found:?}")),
        });
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.lab.delete_fixtures(self.name);
    }
}

#[test]
fn a_code_lets_one_user_into_one_machine_once() {
    let mut site = Site::start("enter-codes");
    let name = site.name;
    let exchange = site.exchange(name, 0, 0);
    let first = site.open(0, 0, &exchange, "");
    assert_eq!((first.status, first.cookie.is_empty()), (401, false), "{first:?}");
    let without = Reply::new(401, "", "");
    for replica in [0, 1, 0] {
        assert_eq!(site.open(replica, 0, &exchange, ""), without, "it was used at the first replica");
    }
    assert_eq!(site.statuses(0, &first.cookie), [200; 2]);
    assert_eq!(site.statuses(1, &first.cookie), [401; 2], "the cookie of another machine");
    let of_other = site.exchange(name, 1, 0);
    assert_eq!(site.open(0, 0, &of_other, ""), without, "the code of another machine");
    for age in [31, 3_600, -60] {
        let exchange = site.exchange(name, 0, age);
        assert_eq!(site.open(0, 0, &exchange, ""), without, "{age} seconds old");
    }
    assert_eq!(site.open(0, 0, "/_crownlabs/login?code=x", ""), without, "not a code");
    assert_eq!(site.open(0, 0, "/_crownlabs/login", &first.cookie).status, 403, "no machine gets this path");
    // A user without a right, and one without a Tenant, get no cookie.
    for user in [format!("{name}-other"), "nobody".to_owned(), "system:admin".to_owned()] {
        let exchange = site.exchange(&user, 0, 0);
        assert_eq!(site.open(0, 0, &exchange, ""), Reply::new(403, "", ""), "{user}");
    }
    // The Ingress of the other machine got the request, and the header `Host` names this one.
    let address = format!("127.0.0.1:{}", site.ports[0]);
    let url = format!("https://{}/", site.host(0));
    let headers =
        [("X-Original-URL", url.as_str()), ("X-Original-Method", "GET"), ("Cookie", first.cookie.as_str())];
    let of = |machine: usize| {
        let path = format!("/auth/{}", site.labels[machine]);
        send(&address, "GET", &path, &headers, "").expect("a response").status
    };
    assert_eq!([of(0), of(1)], [200, 403]);
}

#[test]
fn a_code_is_exchanged_once_although_both_replicas_get_it_at_the_same_time() {
    let mut site = Site::start("enter-race");
    let exchanges: Vec<String> = (0..10).map(|_| site.exchange(site.name, 0, 0)).collect();
    let site = &site;
    let cookies: Vec<usize> = thread::scope(|scope| {
        let all = exchanges.iter().map(|exchange| {
            [0, 1, 0, 1]
                .map(|replica| scope.spawn(move || !site.open(replica, 0, exchange, "").cookie.is_empty()))
        });
        let all: Vec<_> = all.collect();
        all.into_iter()
            .map(|attempts| attempts.map(|one| usize::from(one.join().expect("a reply"))).iter().sum())
            .collect()
    });
    // Rarely, the replicas displace each other too often, and a user has to try again.
    assert!(cookies.iter().all(|cookies| *cookies <= 1), "{cookies:?}");
    assert!(cookies.iter().sum::<usize>() >= 8, "{cookies:?}");
}

#[test]
fn a_right_that_ends_and_a_logout_count_without_a_new_login() {
    let mut site = Site::start("enter-rights");
    let (owner, manager) = (site.name.to_owned(), format!("{}-manager", site.name));
    let [of_owner, of_manager] = [&owner, &manager].map(|user| site.log_in(user, 0));
    assert_eq!([site.statuses(0, &of_owner), site.statuses(0, &of_manager)], [[200; 2]; 2]);
    site.lab.patch("tenants", "", &manager, r#"{"spec": {"workspaces": []}}"#);
    site.await_statuses(0, &of_manager, 403);
    // The dashboard writes this annotation when the user logs out.
    let ended = json!({"metadata": {"annotations": {ended_session(&format!("session of {owner}")): "2026-11-20T10:00:00Z"}}});
    site.lab.patch("tenants", "", &owner, &ended.to_string());
    site.await_statuses(0, &of_owner, 401);
    site.lab.delete("instances", &format!("tenant-{owner}"), &["other"]);
    wait_until(PATIENCE, || match site.open(0, 1, "/", "").status {
        403 => Ok(()),
        found => Err(format!("403 for a machine that does not exist instead of {found}")),
    });
}

#[test]
fn logins_survive_the_restart_of_a_replica_and_codes_stay_used() {
    let mut site = Site::start("enter-restart");
    let cookie = site.log_in(site.name, 0);
    let used = site.exchange(site.name, 0, 0);
    assert!(!site.open(0, 0, &used, "").cookie.is_empty());
    let begun = site.exchange(site.name, 0, 0);
    site.restart(0);
    assert_eq!(site.open(0, 0, &used, "").cookie, "", "a used code");
    // The restart can take longer than a code is valid.
    if site.open(0, 0, &begun, "").cookie.is_empty() {
        let again = site.exchange(site.name, 0, 0);
        assert!(!site.open(0, 0, &again, "").cookie.is_empty());
    }
    assert_eq!(site.statuses(0, &cookie), [200; 2]);
}

#[test]
fn the_login_starts_before_the_first_machine_and_keeps_the_last_key() {
    let mut site = Site::start("enter-key");
    let hosts = site.folder.path().join("hosts");
    fs::remove_file(&hosts).expect("removed");
    site.replicas[0].stop();
    site.replicas[0] = site.replica(0);
    site.replicas[0].await_ready();
    assert_eq!(site.open(0, 0, "/", "").status, 403, "no machine is known");
    assert_eq!(site.open(1, 0, "/", "").status, 401, "the last valid key stays in use");
    fs::write(&hosts, HOST_KEY).expect("written");
    site.await_known();
}

#[test]
fn without_a_record_of_codes_no_login_begins_and_the_others_go_on() {
    let mut site = Site::start("enter-record");
    let cookie = site.log_in(site.name, 0);
    let namespace = format!("workspace-{}", site.name);
    site.lab.delete("configmaps", &namespace, &["crownlabs-login-codes"]);
    let exchange = site.exchange(site.name, 0, 0);
    assert_eq!(site.open(1, 0, &exchange, ""), Reply::new(401, "", ""));
    assert_eq!(site.statuses(0, &cookie), [200; 2]);
    assert!(site.replicas[1].log().contains("cannot record the code"), "{}", site.replicas[1].log());
}

#[test]
fn envoy_gets_redirects_with_the_cookie() {
    let mut site = Site::start("enter-envoy");
    let host = site.host(0);
    let to_login = site.open_by_envoy(0, 0, "/page?a=b", "");
    assert_eq!(to_login.status, 302, "{to_login:?}");
    assert!(to_login.location.starts_with(&format!("{SIGN_IN}?rd=https%3A%2F%2F")), "{to_login:?}");
    let exchange = site.exchange(site.name, 0, 0);
    let reply = site.open_by_envoy(1, 0, &exchange, "");
    assert_eq!((reply.status, reply.location), (302, format!("https://{host}/page?a=b")));
    assert_eq!(site.open_by_envoy(0, 0, "/page?a=b", &reply.cookie).status, 200);
    let again = site.open_by_envoy(0, 0, &exchange, "");
    assert_eq!((again.status, &*again.cookie), (302, ""), "the page begins another login");
    let exchange = site.exchange(&format!("{}-other", site.name), 0, 0);
    assert_eq!(site.open_by_envoy(0, 0, &exchange, ""), Reply::new(403, "", ""));
}
