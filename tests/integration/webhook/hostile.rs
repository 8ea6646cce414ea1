//! Clients of the webhooks that are not the API server: they exhaust neither memory nor connections, and with
//! `clientCaFile` they are rejected.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;

use super::{SELECTOR, daemon, edit, install, lab, reserved_port};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::tenant;
use cluster::config::only;

/// The number of clients that send long reviews, and of clients that send nothing.
const SENDERS: usize = 40;
const SILENT: usize = 300;
/// The length of a long review.
const LENGTH: usize = 6_600_000;
/// The memory that the daemon may have taken, in MiB.
const MOST_MEMORY: usize = 64;

/// The trust of a client: the authority of the daemon.
fn trust(lab: &Lab) -> Arc<ClientConfig> {
    let secret = lab.get("secret", "crownlabs-system", "crownlabs-webhook").expect("the Secret");
    let ca: k8s_openapi::ByteString =
        serde_json::from_value(secret["data"]["ca.crt"].clone()).expect("the authorities");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&ca.0) {
        roots.add(certificate.expect("PEM")).expect("an authority");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

type Connection = StreamOwned<ClientConnection, TcpStream>;

fn connect(port: u16, trusted: &Arc<ClientConfig>) -> Connection {
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    StreamOwned::new(ClientConnection::new(Arc::clone(trusted), name).expect("a client"), stream)
}

/// Sends a review. Returns the status of the response; an error if the connection ended before.
fn send(connection: &mut Connection, body: &str) -> std::io::Result<String> {
    let length = body.len();
    let head = "POST /validator-v1alpha2-tenant HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    connection.write_all(format!("{head}content-length: {length}\r\n\r\n").as_bytes())?;
    connection.write_all(body.as_bytes())?;
    let mut begin = [0; 12];
    connection.read_exact(&mut begin)?;
    Ok(String::from_utf8_lossy(&begin[9..]).into_owned())
}

/// Long reviews. In each of them, another part has very many short values.
fn long_reviews() -> Vec<String> {
    let many = |value: &str| vec![value; LENGTH / (value.len() + 1)].join(",");
    let names = |value: &str| {
        let members = (0..LENGTH / (value.len() + 12)).map(|n| format!("\"k{n:07}\":{value}"));
        members.collect::<Vec<_>>().join(",")
    };
    let review = |user: &str, object: &str| {
        format!(
            r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{"uid": "u",
"resource": {{"group": "crownlabs.polito.it", "version": "v1alpha2", "resource": "tenants"}},
"operation": "UPDATE", "userInfo": {user}, "object": {object}}}}}"#
        )
    };
    let eve = r#"{"username": "eve"}"#;
    vec![
        format!("[{}]", many("0")),
        review(eve, &format!("[{}]", many("0"))),
        review(eve, &format!(r#"{{"spec": {{"publicKeys": [{}]}}}}"#, many("\"\""))),
        review(eve, &format!(r#"{{"metadata": {{"labels": {{{}}}}}}}"#, names("\"\""))),
        review(eve, &format!(r#"{{"spec": {{{}}}}}"#, names("[]"))),
        review(&format!(r#"{{"username": "eve", "groups": [{}]}}"#, many("\"\"")), "null"),
    ]
}

#[test]
fn hostile_clients_exhaust_neither_memory_nor_connections() {
    let lab = lab();
    let port = reserved_port();
    let daemon = daemon(&lab, port, "", &only(&[]));
    install(&lab, SELECTOR, port);
    lab.apply(&tenant(SELECTOR, "ada", ""));
    let (trusted, reviews) = (trust(&lab), long_reviews());
    let silent: Vec<Connection> = (0..SILENT).map(|_| connect(port, &trusted)).collect();
    let answered: usize = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|n| {
                let (trusted, review) = (&trusted, &reviews[n % reviews.len()]);
                scope.spawn(move || send(&mut connect(port, trusted), review))
            })
            .collect();
        for n in 0..20 {
            let login = json!({"spec": {"publicKeys": [format!("key {n}")]}});
            // The API server gives a webhook five seconds, which a busy machine may take.
            wait_until(PATIENCE, || edit(&lab, "ada", "ada", &login).map(drop));
        }
        senders.into_iter().map(|sender| usize::from(sender.join().expect("no panic").is_ok())).sum()
    });
    drop(silent);
    assert!(answered > 0, "no long review was read at all");
    // A build for tests has a large program file, whose pages do not count.
    let peak = daemon.size("VmHWM") - daemon.size("RssFile");
    assert!(peak < MOST_MEMORY, "{peak} MiB with {answered} long reviews answered");
}

/// The API server of the tests presents a certificate of its own authority to webhooks, according to its admission
/// configuration.
#[test]
fn only_clients_of_the_authority_are_served() {
    let lab = lab();
    let port = reserved_port();
    let authority = lab.cluster.authority();
    let shown = format!(", clientCaFile: {}", authority.display());
    let daemon = daemon(&lab, port, &shown, &only(&[]));
    install(&lab, SELECTOR, port);
    lab.apply(&tenant(SELECTOR, "ada", ""));
    edit(&lab, "ada", "ada", &json!({"spec": {"publicKeys": ["a key"]}})).expect("admitted");
    let trusted = trust(&lab);
    let mut connection = connect(port, &trusted);
    let mut refused = send(&mut connection, "{}").expect_err("no certificate").to_string();
    if refused.contains("Broken pipe") {
        // The response arrived before the review was sent; it must be read without another attempt to send.
        let Connection { conn, sock } = &mut connection;
        refused = loop {
            assert_ne!(conn.read_tls(sock).expect("the refusal"), 0, "the end without a refusal");
            if let Err(refusal) = conn.process_new_packets() {
                break std::io::Error::other(refusal).to_string();
            }
        };
    }
    assert!(refused.contains("CertificateRequired"), "{refused}");
    drop(daemon);
}
