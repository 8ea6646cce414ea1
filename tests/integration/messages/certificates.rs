//! The folder with the certificate of the webhooks, and the file with the authorities of their clients.

use std::fs;

use super::server::Pair;
use super::{await_line, logged};
use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::Lab;
use cluster::config::only;

/// Starts a daemon with webhooks, and these further keys of them.
fn start(lab: &Lab, keys: &str) -> Daemon {
    let port = reserved_port();
    let webhook = format!("webhook: {{enabled: true, listen: \"127.0.0.1:{port}\", {keys}}}\n");
    let config = format!("{webhook}{}", only(&[]));
    let kubeconfig = lab.service_account();
    Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: "messages", config: &config })
}

#[test]
fn each_problem_of_the_certificate_folder_is_named_until_the_webhooks_are_served() {
    let lab = Lab::shared();
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("certificates");
    let place = format!("server.webhook.certificateDir: {}", folder.display());
    let daemon = start(&lab, &format!("certificateDir: \"{}\"", folder.display()));
    let begin = format!(
        "[-] webhook: waiting for a serving certificate: {place} cannot be used, so the webhooks cannot be"
    );
    let await_problem = |words: &str| {
        await_line(&daemon, &[&begin, words]);
        await_line(&daemon, &["WARN", &place, words]);
        assert_eq!(daemon.page("/readyz/webhook").0, 503, "{words}");
    };
    await_problem("the folder does not exist; create it with the files tls.crt and tls.key");
    fs::write(&folder, "x").expect("written");
    await_problem("it is a file; expected a folder");
    fs::remove_file(&folder).expect("removed");
    fs::create_dir(&folder).expect("created");
    await_problem("the folder has neither tls.crt nor tls.key; add both in PEM");

    let (pair, other) = (Pair::create("a.example.org", 2090), Pair::create("b.example.org", 2090));
    let write = |certificate: &[u8], key: &[u8]| {
        fs::write(folder.join("tls.crt"), certificate).expect("written");
        fs::write(folder.join("tls.key"), key).expect("written");
    };
    let (certificate, key) = (pair.certificate.as_bytes(), pair.key.as_bytes());
    write(key, key);
    await_problem(
        "tls.crt has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----; replace",
    );
    write(certificate, certificate);
    await_problem("tls.key has no private key in PEM");
    write(certificate, b"");
    await_problem("tls.key is empty; write PEM into it");
    write(certificate, other.key.as_bytes());
    await_problem("the key does not match the certificate; replace tls.crt and tls.key");
    let utf16: Vec<u8> = pair.key.encode_utf16().flat_map(u16::to_le_bytes).collect();
    write(certificate, &utf16);
    await_problem("tls.key cannot be read: it is encoded in UTF-16; save the file as UTF-8");
    fs::remove_file(folder.join("tls.key")).expect("removed");
    await_problem("tls.key cannot be read: it does not exist; create it");

    Pair::create("a.example.org", 2020).write(&folder);
    await_line(&daemon, &["WARN", &place, "expired at 2020-01-01T00:00:00Z", "renew it"]);
    await_line(&daemon, &["[+] webhook: ready"]);
    pair.write(&folder);
    await_line(&daemon, &["serving the webhooks with a new certificate", "2090-01-01"]);
    fs::remove_dir_all(&folder).expect("removed");
    let stays = "cannot be used, so the previous certificate stays in use: the folder does not exist";
    await_line(&daemon, &["WARN", &place, stays]);
    assert_eq!(daemon.page("/readyz/webhook").0, 200, "the last certificate is still served");
}

#[test]
fn each_problem_of_the_authorities_of_clients_is_named_with_its_effect() {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.crt");
    let daemon = start(&lab, &format!("clientCaFile: \"{}\"", file.display()));
    let place = format!("server.webhook.clientCaFile: {} cannot be used: ", file.display());
    let no_client = "Until then, the webhooks accept no client";
    await_line(&daemon, &["WARN", &place, "it does not exist; create it", no_client]);
    fs::write(&file, Pair::create("a.example.org", 2090).key).expect("written");
    await_line(&daemon, &["WARN", &place, "it has no certificate in PEM", "; expected", no_client]);
    fs::write(&file, Pair::create("a.example.org", 2090).certificate).expect("written");
    await_line(&daemon, &["only clients with a certificate of these authorities are served"]);
    fs::write(&file, "").expect("written");
    await_line(&daemon, &["WARN", &place, "The previous authorities stay in effect"]);
    assert_eq!(logged(&daemon, "WARN", &place), 3, "{}", daemon.log());
}
