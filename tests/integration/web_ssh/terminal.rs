//! A terminal in use.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::json;
use tempfile::TempDir;

use super::Site;
use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::browser::{Browser, Received, request};
use cluster::sshd::{LocalAddress, Sshd, key_pair};

#[test]
fn a_terminal_from_the_first_message_to_the_end_of_the_shell() {
    let site = Site::start("web-terminal", "");
    assert_eq!(site.metric("bastion_web_ssh_sessions"), Some(0.0));
    let mut browser = site.open();
    site.await_sessions(1.0);
    browser.enter("stty size; echo $TERM\n");
    assert_eq!(browser.until("256color\r\n"), "24 80\r\nxterm-256color\r\n");
    browser.send_binary(&json!({"Type": "resize", "Cols": 132, "rows": 50}));
    browser.enter("stty size; echo end\n");
    assert_eq!(browser.until("end\r\n"), "50 132\r\nend\r\n");
    browser.send(&json!({"type": "resize", "cols": 0, "rows": 100_000}));
    browser.enter("stty size; echo end\n");
    assert_eq!(browser.until("end\r\n"), "1000 1\r\nend\r\n", "the size is bounded");
    browser.send(&json!({"type": "ping"}));
    browser.send(&json!({"type": "new", "more": {"x": [1]}}));
    browser.enter("read line; echo \"<$line>\"\n");
    browser.enter("Grüße, 世界 😀\n");
    assert_eq!(browser.until(">\r\n"), "<Grüße, 世界 😀>\r\n", "other messages are ignored");
    browser.enter("exit\n");
    assert_eq!(browser.end(), ("SSH session closed".to_owned(), 1000));
    site.await_sessions(0.0);
}

#[test]
fn output_is_complete_across_message_boundaries() {
    let site = Site::start("web-output", "");
    let mut browser = site.open();
    // A character of three bytes at every position of the cut.
    for shift in 0..3 {
        browser.enter(&format!(
            "printf %{shift}s | tr ' ' a; i=0; while [ $i -lt 3000 ]; do printf '€'; i=$((i+1)); done; echo .\n"
        ));
        assert_eq!(browser.until("\r\n"), format!("{}{}.\r\n", "a".repeat(shift), "€".repeat(3_000)));
    }
    // A byte that is not UTF-8 does not hold back the following output.
    browser.enter("printf 'a\\377b\\n'\n");
    assert_eq!(browser.until("\r\n"), "a\u{fffd}b\r\n");
    // Much output, while the next command is typed already.
    browser.enter("seq 200000\n");
    browser.enter("echo end\n");
    let output = browser.until("end\r\n");
    let expected = (1..=200_000).map(|n: u32| n.to_string()).chain(["end".to_owned()]);
    assert!(output.trim_end().split("\r\n").eq(expected), "{} bytes", output.len());
}

#[test]
fn a_flood_of_output_can_be_interrupted() {
    let site = Site::start("web-interrupt", "");
    let mut browser = site.open();
    browser.enter("trap 'echo interrupted' INT; yes\n");
    browser.until("y\r\ny\r\n");
    browser.enter("\u{3}");
    browser.until("interrupted\r\n");
    browser.enter("echo ali''ve\n");
    browser.until("alive\r\n");
}

#[test]
fn the_browser_may_leave_in_any_way() {
    let site = Site::start("web-leave", "");
    for code in [Some(1000), Some(1001), None] {
        let mut browser = site.open();
        browser.close(code);
        assert_eq!(browser.receive(), Received::Close(code.unwrap_or(1005)), "the close frame is answered");
        assert_eq!(browser.receive(), Received::End);
        site.await_sessions(0.0);
    }
    let browser = site.open();
    drop(browser);
    site.await_sessions(0.0);
    let log = site.daemon.log();
    // Other tests may leave objects with their selectors.
    let of_sessions =
        |line: &&str| line.contains("web_ssh") && (line.contains("ERROR") || line.contains("WARN"));
    assert_eq!(log.lines().find(of_sessions), None, "{log}");
}

#[test]
fn a_lost_machine_ends_its_terminal() {
    let site = Site::start("web-lost", "");
    let mut browser = site.open();
    // The shell is a child of the server's process for this connection.
    browser.enter("kill -9 $PPID\n");
    assert_eq!(browser.end(), ("Internal server error".to_owned(), 1011));
    let mut browser = site.open();
    browser.send_text("not JSON");
    assert_eq!(browser.end(), ("Invalid message format".to_owned(), 1011));
}

#[test]
fn an_invalid_first_message_gets_an_answer() {
    let site = Site::without_machine("web-first", "");
    let complete = site.request();
    for key in ["token", "vmName", "namespace", "Environment", "InitialWidth", "InitialHeight"] {
        let mut request = complete.clone();
        request.as_object_mut().expect("an object").remove(key);
        let expected = "Missing required fields in the initialization message";
        assert_eq!(site.answer(&request), (expected.to_owned(), 1011), "without {key}");
    }
    for text in ["", "{", "[]", "null"] {
        let mut browser = Browser::connect(site.port);
        browser.send_text(text);
        assert_eq!(browser.end(), ("Invalid fist message format".to_owned(), 1011), "{text:?}");
    }
}

/// Sends a request and returns the head and the body of the answer.
fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the daemon listens");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.to_ascii_lowercase()
}

#[test]
fn the_pages_beside_the_web_socket() {
    let site = Site::without_machine("web-pages", "");
    let upgrade = "connection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n";
    let answer = |line: &str, headers: &str| {
        exchange(
            site.port,
            &format!(
                "{line} HTTP/1.1\r\nhost: x\r\norigin: https://evil.example\r\nconnection: close\r\n{headers}\r\n"
            ),
        )
    };
    for (line, headers, status) in [
        ("GET /webssh", "", "400 bad request"),
        ("POST /webssh", "", "400 bad request"),
        ("POST /webssh", upgrade, "405 method not allowed"),
        ("GET /healthz", "", "200 ok"),
        ("POST /ready", "", "200 ok"),
        ("GET /webssh/", upgrade, "404 not found"),
        ("GET /", "", "404 not found"),
    ] {
        let answer = answer(line, headers);
        assert!(answer.starts_with(&format!("http/1.1 {status}\r\n")), "{line}: {answer}");
        assert_eq!(
            answer.contains("\r\nsec-websocket-version: 13\r\n"),
            status.starts_with("400"),
            "{answer}"
        );
        assert_eq!(answer.ends_with("\r\n\r\nok"), status.starts_with("200"), "{answer}");
    }
    for origin in
        ["https://evil.example", "null", "https://crownlabs.example.com\r\norigin: https://evil.example"]
    {
        let request = format!("GET /webssh HTTP/1.1\r\nhost: x\r\norigin: {origin}\r\n{upgrade}\r\n");
        let answer = exchange(site.port, &request);
        assert!(answer.starts_with("http/1.1 403 forbidden\r\n"), "{origin}: {answer}");
    }
    // The response to the key in the example of RFC 6455. No subprotocol, no extension.
    let mut stream = TcpStream::connect(("127.0.0.1", site.port)).expect("the daemon listens");
    let request = format!(
        "GET /webssh HTTP/1.1\r\nhost: x\r\norigin: https://crownlabs.example.com\r\nsec-websocket-protocol: a\r\nsec-websocket-extensions: permessage-deflate\r\n{upgrade}\r\n"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        answer.extend(byte);
    }
    let answer = String::from_utf8(answer).expect("text").to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 101 switching protocols\r\n"), "{answer}");
    assert!(answer.contains("\r\nsec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"), "{answer}");
    assert!(!answer.contains("sec-websocket-protocol") && !answer.contains("extensions"), "{answer}");
}

#[test]
fn the_environment_chooses_the_machine() {
    let mut site = Site::without_machine("web-environments", "");
    let template = site.lab.get("templates", "workspace-web-environments", "vm").expect("the Template");
    let environment = |name: &str| {
        let mut environment = template["spec"]["environmentList"][0].clone();
        environment["name"] = json!(name);
        environment
    };
    let two = json!([environment("server"), environment("client")]);
    site.lab.create_template("web-environments", "pair", "vm-persistent", &two);
    site.lab.apply(&instance("web-environments", "exam", "pair"));
    site.lab.await_phase(&site.namespace(), "exam", "Ready");
    let mut servers = Vec::new();
    for name in ["client", "server"] {
        let service =
            site.lab.get("services", &site.namespace(), &format!("exam-{name}")).expect("a Service");
        let ip = service["spec"]["clusterIP"].as_str().and_then(|ip| ip.parse().ok()).expect("an address");
        site.addresses.push(LocalAddress::add(ip).expect("the address"));
        let address = SocketAddr::new(ip, site.ssh_port);
        key_pair(&site.key()).expect("a key");
        let command = format!("echo this is {name}");
        servers.push(Sshd::start(site.folder.path(), address, &command).expect("sshd"));
    }
    for (wanted, got) in [("client", "client"), ("server", "server"), ("other", "server")] {
        let mut message = request(&site.token(""), &site.namespace(), "exam");
        message["Environment"] = json!(wanted);
        let mut browser = Browser::open(site.port, &message);
        browser.until(&format!("this is {got}\r\n"));
        assert_eq!(browser.end().0, "SSH session closed");
    }
}

#[test]
fn the_address_is_tried_until_it_is_free() {
    let port = reserved_port();
    let other = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    let lab = Lab::shared();
    let folder = TempDir::new().expect("a folder");
    let key = key_pair(&folder.path().join("key")).expect("a key");
    let config = format!(
        "controllers: {{webSsh: {{enabled: true, listen: \"127.0.0.1:{port}\", privateKeyFile: {}}}}}",
        key.display()
    );
    let options = Options { kubeconfig: &lab.admin(), selector: "web-address", config: &config };
    let daemon = Daemon::spawn(&options);
    let expected = format!("[!] webSsh: controllers.webSsh.listen: cannot listen on 127.0.0.1:{port}: ");
    daemon.wait_for("the fault", |daemon| daemon.ready().1.contains(&expected));
    drop(other);
    daemon.wait_for("the address", |daemon| daemon.page("/readyz/webSsh").0 == 200);
    wait_until(PATIENCE, || {
        match exchange(port, "GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n") {
            answer if answer.ends_with("ok") => Ok(()),
            answer => Err(answer),
        }
    });
}
