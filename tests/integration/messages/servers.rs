//! Servers outside the cluster that cannot be reached: the readiness names each with its address and the cause.

use std::fs;
use std::path::Path;

use super::await_line;
use super::server::{self, Pair};
use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::Lab;
use cluster::config::only;

/// The configuration of a daemon whose servers all have this port, and a certificate of this authority.
fn config(folder: &Path, port: u16, authority: &Path, list: &str) -> String {
    let (own, authority) = (reserved_port(), authority.display());
    let file = |name: &str| folder.join(name).display().to_string();
    fs::write(folder.join("secret"), "secret").expect("written");
    fs::write(folder.join("key"), "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n").expect("written");
    let (secret, key) = (file("secret"), file("key"));
    let url = format!("https://127.0.0.1:{port}");
    let dashboard = format!(
        "listen: \"127.0.0.1:{own}\", publicUrl: \"https://a.example.org\", issuerUrl: \"{url}/realms/none\", \
         clientId: labs, clientSecretFile: \"{secret}\", sessionKeyFile: \"{key}\", caFile: \"{authority}\""
    );
    let images = format!(
        "updateInterval: 5s, registries: [{{imageListName: {list}, url: \"{url}\", registryName: r.example.org, \
         caFile: \"{authority}\"}}]"
    );
    let loops = [("tenant", ""), ("inactivity", ""), ("dashboard", &*dashboard), ("imageList", &*images)];
    format!(
        "{}integrations: {{keycloak: {{enabled: true, url: \"{url}\", realm: labs, clientId: operator, timeout: 2s, \
         clientSecretFile: \"{secret}\", caFile: \"{authority}\"}}, \
         prometheus: {{url: \"{url}\", timeout: 2s, caFile: \"{authority}\"}}, \
         mail: {{transport: smtp, host: 127.0.0.1, port: {port}, tls: implicit, from: labs@example.org, timeout: 2s, \
         caFile: \"{authority}\"}}}}\n",
        only(&loops)
    )
}

/// Starts a daemon, and waits until the readiness has a line for each server with these words.
fn await_lines(name: &str, port: u16, authority: &Pair, words: &[&str]) {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let list = format!("messages-{name}");
    let config = config(folder.path(), port, &authority.authority(folder.path(), "ca.crt"), &list);
    let kubeconfig = lab.service_account();
    let daemon = Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: &list, config: &config });
    for begin in [
        format!("[!] Keycloak https://127.0.0.1:{port}: failing for "),
        format!("[!] Prometheus https://127.0.0.1:{port}: failing for "),
        format!("[!] issuer https://127.0.0.1:{port}/realms/none: failing for "),
        format!("[!] mail server 127.0.0.1:{port}: failing for "),
        format!("[!] registry 127.0.0.1:{port} of ImageList {list}: failing for "),
    ] {
        let words = [words, &[begin.as_str()]].concat();
        await_line(&daemon, &words);
    }
    drop(daemon);
    lab.kubectl(&["delete", "imagelist", &list, "--ignore-not-found"]);
}

#[test]
fn a_certificate_from_an_unknown_authority_is_named() {
    let (trusted, used) = (Pair::create("127.0.0.1", 2090), Pair::create("127.0.0.1", 2090));
    let words = ["is from an unknown authority", "caFile"];
    await_lines("unknown", server::with_certificate(&used), &trusted, &words);
}

#[test]
fn a_certificate_for_another_host_is_named() {
    let pair = Pair::create("a.example.org", 2090);
    let words = ["is not valid for the name 127.0.0.1"];
    await_lines("host", server::with_certificate(&pair), &pair, &words);
}

#[test]
fn an_expired_certificate_is_named() {
    let pair = Pair::create("127.0.0.1", 2020);
    let words = ["expired at 2020-01-01T00:00:00Z"];
    await_lines("expired", server::with_certificate(&pair), &pair, &words);
}

#[test]
fn a_refused_connection_is_named_with_the_address() {
    let pair = Pair::create("127.0.0.1", 2090);
    let words = ["Connection refused", "nothing listens there; check host and port"];
    await_lines("refused", reserved_port(), &pair, &words);
}

#[test]
fn a_server_that_never_responds_is_named_after_the_time_limit() {
    let pair = Pair::create("127.0.0.1", 2090);
    // The time limit of requests to issuers and registries is 10 s.
    await_lines("silent", server::silent(), &pair, &["within "]);
}
