//! The desktops of peers: two replicas of the login pass the requests of a peer on to a machine, and end an open desktop soon
//! after the right.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use cluster::request::{Answer, send};
use cluster::sshd::LocalAddress;
use crownlabs::testing::{clock, ended_session, peer_label};
use jiff::SignedDuration;
use serde_json::json;

use super::{BASE, SIGN_IN, Site};
use crate::lab::{PATIENCE, wait_until};

/// The longest time between the end of a right and the end of an open desktop, on a busy machine.
const OUT: Duration = Duration::from_secs(10);

/// The machine `vm`: it responds with the request that it gets, and echoes the bytes of `WebSockets`.
struct Machine {
    _address: LocalAddress,
    /// The path of its page.
    page: String,
    uid: String,
}

impl Machine {
    fn start(site: &Site) -> Self {
        let namespace = format!("tenant-{}", site.name);
        let found = site.lab.get("instances", &namespace, "vm").expect("the Instance");
        let uid = found["metadata"]["uid"].as_str().expect("a uid").to_owned();
        let service = site.lab.get("services", &namespace, "vm").expect("its Service");
        let address: IpAddr =
            service["spec"]["clusterIP"].as_str().and_then(|ip| ip.parse().ok()).expect("an address");
        let own = LocalAddress::add(address).expect("the address");
        let listener = TcpListener::bind(SocketAddr::new(address, 6_080)).expect("a port");
        // It ends with the test program.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream));
            }
        });
        Self { _address: own, page: format!("/instance/{uid}/vnc/"), uid }
    }
}

/// Serves one request of the machine. An error means that the other side is gone.
fn serve(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim_end().parse().ok()?;
        }
        head += &line;
    }
    if head.contains("upgrade: websocket") {
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        stream.write_all(answer.as_bytes()).ok()?;
        let mut piece = [0; 1_024];
        loop {
            let read = reader.read(&mut piece).ok().filter(|read| *read > 0)?;
            stream.write_all(&piece[..read]).ok()?;
        }
    }
    let got = std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink()).ok()?;
    let body = format!("{head}body: {got}\r\n");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nSet-Cookie: own=1\r\n\
         Set-Cookie: __Host-crownlabs-machine=x; Path=/; Secure\r\nSet-Cookie: all=1; Domain={BASE}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).ok()
}

impl Site {
    /// Creates or changes the Tenant of a person of these Workspaces.
    fn enrol(&self, who: &str, workspaces: &[&str]) -> String {
        let user = format!("{}-{who}", self.name);
        let workspaces: Vec<_> =
            workspaces.iter().map(|name| json!({"name": name, "role": "user"})).collect();
        let tenant = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant",
            "metadata": {"name": user},
            "spec": {
                "firstName": "Kim", "lastName": "Verdi", "email": format!("{who}@example.org"), "workspaces": workspaces,
            },
        });
        self.lab.apply(&tenant.to_string());
        user
    }

    /// Shares the machine `vm` with these users for a time.
    fn share(&self, people: &[(&str, &str)], time: SignedDuration) {
        let until = (clock::now() + time).to_string();
        let entry = |(user, access): &(&str, &str)| json!({"user": user, "access": access, "until": until});
        let people = json!(people.iter().map(entry).collect::<Vec<_>>()).to_string();
        let annotations = json!({"crownlabs.polito.it/shared-with": people});
        let patch = json!({"metadata": {"annotations": annotations}}).to_string();
        self.lab.patch("instances", &format!("tenant-{}", self.name), "vm", &patch);
    }

    /// Sends a request to a host of a peer.
    fn relayed(&self, replica: usize, label: &str, target: &str, cookie: &str) -> Answer {
        let (host, address) = (format!("{label}.{BASE}"), format!("127.0.0.1:{}", self.peers[replica]));
        request(&address, &host, target, cookie)
    }

    /// Waits until both replicas respond at a host of a peer with a status.
    fn await_relayed(&self, label: &str, cookie: &str, status: u16) {
        wait_until(PATIENCE, || {
            match [0, 1].map(|replica| self.relayed(replica, label, "/", cookie).status) {
                found if found == [status; 2] => Ok(()),
                found => Err(format!("{status} instead of {found:?}")),
            }
        });
    }

    /// Waits until both replicas let a peer with a cookie in.
    fn await_entry(&self, label: &str, cookie: &str, machine: &Machine) {
        wait_until(PATIENCE, || {
            let pages =
                [0, 1].map(|replica| self.relayed(replica, label, "/", cookie).header("location").to_owned());
            if pages.iter().all(|page| *page == machine.page) { Ok(()) } else { Err(format!("{pages:?}")) }
        });
    }

    /// Logs a user in at the host of a peer, as soon as the replica knows the right. Returns the cookie.
    fn log_in_at(&mut self, label: &str, user: &str) -> String {
        let page = format!("https://{label}.{BASE}/page?a=b");
        wait_until(PATIENCE, || {
            let exchange = self.exchange_at(label, user, 0);
            let reply = self.relayed(0, label, &exchange, "");
            match (reply.header("location"), reply.header("set-cookie").split_once(';')) {
                (location, Some((cookie, _))) if location == page => Ok(cookie.to_owned()),
                (location, _) => Err(format!("{} {location}", reply.status)),
            }
        })
    }

    /// Opens a `WebSocket` of the machine.
    fn open_desktop(&self, replica: usize, label: &str, machine: &Machine, cookie: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.peers[replica])).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a limit");
        let request = format!(
            "GET {}websockify HTTP/1.1\r\nHost: {label}.{BASE}\r\nOrigin: https://{label}.{BASE}\r\nCookie: {cookie}\r\n\
             Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Version: 13\r\n\r\n",
            machine.page
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("the head");
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        stream.write_all(b"a picture").expect("sent");
        let mut echo = [0; 9];
        stream.read_exact(&mut echo).expect("the echo");
        assert_eq!(&echo, b"a picture");
        stream
    }
}

/// Sends a request for a host.
fn request(address: &str, host: &str, target: &str, cookie: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("a response");
    Answer::parse(&answer).expect("a response")
}

/// Asserts that a desktop ends soon.
fn assert_ends(mut desktop: TcpStream, why: &str) {
    let begin = Instant::now();
    let mut rest = Vec::new();
    // A reset is an end, too.
    let _ = desktop.read_to_end(&mut rest);
    assert!(begin.elapsed() <= OUT, "{why}: {:?}", begin.elapsed());
    assert!(rest.is_empty(), "{why}: {rest:?}");
}

#[test]
fn a_peer_opens_the_machine_at_a_host_of_their_own() {
    let mut site = Site::start("desk-open");
    let machine = Machine::start(&site);
    let course = site.name;
    let users =
        [("kim", course), ("lee", course), ("max", "another")].map(|(who, of)| site.enrol(who, &[of]));
    let [kim, lee, max] = users.each_ref().map(String::as_str);
    let label = peer_label(&machine.uid, "main", kim);
    assert_eq!(site.relayed(0, &label, "/", "").status, 403, "it is not shared yet");
    site.share(&[(kim, "control"), (lee, "view"), (max, "control")], SignedDuration::from_hours(1));
    site.await_relayed(&label, "", 302);
    let to_login = site.relayed(0, &label, "/", "");
    assert!(
        to_login.header("location").starts_with(&format!("{SIGN_IN}?rd=")),
        "{}",
        to_login.header("location")
    );
    let cookie = site.log_in_at(&label, kim);
    for replica in [0, 1] {
        let reply = site.relayed(replica, &label, "/", &cookie);
        assert_eq!((reply.status, reply.header("location")), (302, machine.page.as_str()));
        let reply =
            site.relayed(replica, &label, &format!("{}a?b=c", machine.page), &format!("{cookie}; own=1"));
        assert_eq!(reply.status, 200);
        assert!(reply.body.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{}", reply.body);
        assert!(
            reply.body.contains("cookie: own=1\r\n"),
            "the cookie of the login is left out: {}",
            reply.body
        );
        assert_eq!(reply.header("set-cookie"), "own=1");
        assert_eq!(site.relayed(replica, &label, "/other", &cookie).status, 404);
    }
    // An upload that is larger than all buffers.
    let address = format!("127.0.0.1:{}", site.peers[0]);
    let mut stream = TcpStream::connect(&address).expect("it listens");
    let (length, page) = (64 << 20, &machine.page);
    let head = format!(
        "POST {page}up HTTP/1.1\r\nHost: {label}.{BASE}\r\nCookie: {cookie}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    std::io::copy(&mut std::io::repeat(7).take(length), &mut stream).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("a response");
    assert!(answer.contains(&format!("body: {length}\r\n")), "{answer}");
    // The others: who looks on, who is in another course, and those who have another host.
    for (peer, user) in [(lee, lee), (max, max), (kim, lee), (kim, course)] {
        let label = peer_label(&machine.uid, "main", peer);
        assert_eq!(site.relayed(1, &label, "/", "").status, 302, "the host of {peer} exists");
        let exchange = site.exchange_at(&label, user, 0);
        let reply = site.relayed(1, &label, &exchange, "");
        let found = (reply.status, reply.header("set-cookie"));
        assert_eq!(found, (403, ""), "{user} at the host of {peer}");
    }
    // A cookie that was given before the right changed.
    site.share(&[(kim, "view")], SignedDuration::from_hours(1));
    site.await_relayed(&label, &cookie, 403);
    // The gateways leave the decision about these hosts to the relay, and the machine's own host to its users.
    let own = site.labels[0].clone();
    assert_eq!(site.relayed(0, &own, "/", &cookie).status, 403, "the host of the owner");
    let url = format!("https://{label}.{BASE}/");
    let headers = [("X-Original-URL", url.as_str()), ("X-Original-Method", "GET")];
    let address = format!("127.0.0.1:{}", site.ports[0]);
    let path = format!("/auth/{label}");
    assert_eq!(send(&address, "GET", &path, &headers, "").expect("a response").status, 200);
}

#[test]
fn an_open_desktop_ends_soon_after_the_right() {
    let mut site = Site::start("desk-ends");
    let machine = Machine::start(&site);
    let course = site.name;
    let user = site.enrol("kim", &[course]);
    let kim = user.as_str();
    let label = peer_label(&machine.uid, "main", kim);
    let hour = SignedDuration::from_hours(1);
    let begun = |site: &mut Site, replica: usize| {
        site.share(&[(kim, "control")], hour);
        site.await_relayed(&label, "", 302);
        let cookie = site.log_in_at(&label, kim);
        site.await_entry(&label, &cookie, &machine);
        site.open_desktop(replica, &label, &machine, &cookie)
    };
    let desktop = begun(&mut site, 0);
    wait_until(PATIENCE, || match record(&site) {
        entries if entries.contains(kim) && entries.contains(WEB) => Ok(()),
        entries => Err(entries),
    });
    site.share(&[], hour);
    assert_ends(desktop, "removed by the owner");
    wait_until(PATIENCE, || match record(&site) {
        entries if entries.contains(WEB) => Err(entries),
        _ => Ok(()),
    });
    let desktop = begun(&mut site, 1);
    site.share(&[(kim, "view")], hour);
    assert_ends(desktop, "only looking on");
    let desktop = begun(&mut site, 0);
    site.enrol("kim", &["another"]);
    assert_ends(desktop, "the enrolment");
    site.enrol("kim", &[course]);
    let desktop = begun(&mut site, 1);
    let ended = ended_session(&format!("session of {kim}"));
    let patch = json!({"metadata": {"annotations": {ended.clone(): "2026-11-20T10:00:00Z"}}});
    site.lab.patch("tenants", "", kim, &patch.to_string());
    assert_ends(desktop, "a logout");
    site.lab.patch("tenants", "", kim, &json!({"metadata": {"annotations": {ended: null}}}).to_string());
    let desktop = begun(&mut site, 0);
    let soon = SignedDuration::from_secs(3);
    let end = clock::now() + soon;
    site.share(&[(kim, "control")], soon);
    assert_ends(desktop, "the end, three seconds later");
    assert!(clock::now() >= end, "not before the end");
    let desktop = begun(&mut site, 1);
    site.lab.delete("tenants", "", &[kim]);
    assert_ends(desktop, "the Tenant is deleted");
}

/// The way of a desktop in the entries.
const WEB: &str = r#"way\":\"web\""#;

/// The entries of the record of connections.
fn record(site: &Site) -> String {
    let record = site.lab.get("configmaps", &format!("workspace-{}", site.name), "crownlabs-peers");
    record.map(|record| record["data"].to_string()).unwrap_or_default()
}
