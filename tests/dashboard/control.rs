//! The control server of the browser tests: they use it to act as an administrator and to cause outages. Requests and
//! responses are JSON.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Weak};
use std::thread;

use serde_json::{Value, json};

use crate::site::Site;

/// The control server, which runs as long as the tests.
pub struct Control {
    port: u16,
}

impl Control {
    /// Starts it.
    pub fn start(site: &Arc<Site>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        // A weak reference, so that this thread does not keep the site alive after the tests.
        let site = Arc::downgrade(site);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(site) = Weak::upgrade(&site) else { return };
                thread::spawn(move || serve(&site, stream));
            }
        });
        Self { port }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

fn serve(site: &Site, mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let answer = act(site, &serde_json::from_slice(&body).expect("JSON")).to_string();
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
    // After a timeout, the test has closed the connection.
    let _ = stream.write_all(format!("{head}{answer}").as_bytes());
}

fn answer(result: Result<String, String>) -> Value {
    match result {
        Ok(output) => json!({"output": output}),
        Err(error) => json!({"error": error}),
    }
}

fn act(site: &Site, request: &Value) -> Value {
    let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
    match request["do"].as_str().expect("what to do") {
        "kubectl" => {
            let arguments: Vec<String> =
                serde_json::from_value(request["arguments"].clone()).expect("arguments");
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            // With a token, kubectl uses no other credentials.
            let token = request["token"].as_str().map(|token| site.by_token(token)).unwrap_or_default();
            let arguments: Vec<&str> = token.iter().map(String::as_str).chain(arguments).collect();
            answer(site.lab.try_kubectl(&arguments, &text("input")))
        }
        "keycloak" => answer(site.keycloak(&text("method"), &text("path"), &request["body"])),
        "public-key" => json!({"output": site.bastion.public_key}),
        "ssh" => answer(site.bastion.run(&text("command"))),
        "terminal-at" => {
            site.terminals.answer_at(&text("address"));
            json!({})
        }
        "desktop-at" => {
            site.desktops.open_at(&text("address"));
            json!({})
        }
        "host-of-peer" => {
            site.logins.lead_to_relay(&text("label"));
            json!({})
        }
        "screen" => {
            site.screens.set(&text("name"), &text("show"));
            json!({})
        }
        "screen-output" => json!({"output": site.screens.output()}),
        "screen-requests" => json!({"output": site.screens.requests()}),
        "stop-apiserver" => {
            site.lab.cluster.stop_apiserver();
            json!({})
        }
        "start-apiserver" => {
            site.lab.cluster.start_apiserver().expect("the API server");
            site.lab.cluster.start_ended_programs().expect("the programs");
            json!({})
        }
        "restart-replica" => {
            site.restart(usize::try_from(request["number"].as_u64().expect("a number")).expect("small"));
            json!({})
        }
        "restart-logins" => {
            site.logins.restart();
            json!({})
        }
        "set-managers" => {
            site.set_managers(&text("managers"));
            json!({})
        }
        "start-replica" => json!({"output": site.start_other(&request["keys"])}),
        "stop-keycloak" => {
            site.keycloak.lock().stop();
            json!({})
        }
        "start-keycloak" => {
            site.keycloak.lock().start_again().expect("Keycloak");
            json!({})
        }
        // The process accepts connections and does not respond until it is resumed.
        "pause" => {
            site.pause(&text("what"), "STOP");
            json!({})
        }
        "resume" => {
            site.pause(&text("what"), "CONT");
            json!({})
        }
        "server" => json!({"output": site.lab.cluster.server()}),
        "logs" => json!({"output": site.logs()}),
        "mails" => json!({"output": site.mails()}),
        "metrics" => json!({"output": site.metrics()}),
        "audit" => {
            let log = std::fs::read_to_string(site.lab.cluster.dir().join("audit.log")).expect("the log");
            let (part, lines) = (text("containing"), log.lines());
            let lines: Vec<&str> = lines.filter(|line| line.contains(&part)).collect();
            json!({"output": lines.join("\n")})
        }
        other => panic!("unknown request {other}"),
    }
}
