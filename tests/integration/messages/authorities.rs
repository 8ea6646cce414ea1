//! The files with certificates of authorities, and the password of the mail server: a daemon that cannot use them ends
//! with an error that names the key, the file and the remedy.

use std::fs;
use std::path::Path;

use super::failed_start;
use super::server::Pair;
use crate::daemon::reserved_port;
use crate::lab::Lab;
use cluster::config::only;

/// The configuration of a mail server with these further keys.
fn mail(keys: &str) -> String {
    let mail = format!("mail: {{transport: smtp, host: 127.0.0.1, from: a@example.org, {keys}}}");
    let prometheus = "prometheus: {url: \"http://127.0.0.1:1\"}";
    format!("{}integrations: {{{prometheus}, {mail}}}\n", only(&[("inactivity", "")]))
}

/// The configuration of Prometheus with this file of authorities.
fn prometheus(file: &Path) -> String {
    let prometheus = format!("prometheus: {{url: \"https://127.0.0.1:1\", caFile: \"{}\"}}", file.display());
    format!("{}integrations: {{{prometheus}}}\n", only(&[("inactivity", "notifications: false")]))
}

/// The configurations that name this file, each with the beginning of the error.
fn configurations(file: &Path) -> [(String, String); 6] {
    let shown = file.display();
    let keycloak = format!(
        "integrations: {{keycloak: {{enabled: true, url: \"https://127.0.0.1:1\", realm: a, clientId: b, \
         clientSecretFile: /none, caFile: \"{shown}\"}}}}\n"
    );
    let dashboard = format!(
        "listen: \"127.0.0.1:{}\", publicUrl: \"https://a.example.org\", issuerUrl: \"https://127.0.0.1:1/realms/a\", \
         clientId: b, clientSecretFile: /none, sessionKeyFile: /none, caFile: \"{shown}\"",
        reserved_port()
    );
    [
        (
            only(&[("tenant", "")]) + &keycloak,
            format!("integrations.keycloak.caFile: {shown} cannot be used: "),
        ),
        (prometheus(file), format!("integrations.prometheus.caFile: {shown} cannot be used: ")),
        (
            only(&[("dashboard", &dashboard)]),
            format!("controllers.dashboard.caFile: {shown} cannot be used: "),
        ),
        (
            only(&[("termination", &format!("caFile: \"{shown}\""))]),
            format!("controllers.termination.caFile: {shown} cannot be used: "),
        ),
        (
            mail(&format!("caFile: \"{shown}\"")),
            format!("integrations.mail: caFile {shown} cannot be read: "),
        ),
        (
            mail(&format!("username: u, passwordFile: \"{shown}\"")),
            format!("integrations.mail: passwordFile {shown} cannot be read: "),
        ),
    ]
}

#[test]
fn a_missing_file_is_named_by_each_key_that_names_it() {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.crt");
    for (config, begin) in configurations(&file) {
        let log = failed_start(&lab, &config);
        let expected = format!("{begin}it does not exist; create it, or correct the path\n");
        assert!(log.contains(&expected), "{expected} is not in\n{log}");
        assert_eq!(log.matches(&file.display().to_string()).count(), 1, "{log}");
    }
}

#[test]
fn each_problem_of_a_file_of_authorities_is_named_with_its_remedy() {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.crt");
    let pair = Pair::create("a.example.org", 2090);
    let utf16: Vec<u8> = pair.certificate.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (content, expected) in [
        (&b""[..], "it is empty; write the value into it"),
        (
            pair.key.as_bytes(),
            "it has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----; expected",
        ),
        (utf16.as_slice(), "it is encoded in UTF-16; save the file as UTF-8"),
    ] {
        fs::write(&file, content).expect("written");
        let log = failed_start(&lab, &prometheus(&file));
        let begin = format!("integrations.prometheus.caFile: {} cannot be used: {expected}", file.display());
        assert!(log.contains(&begin), "{begin} is not in\n{log}");
    }
    let log = failed_start(&lab, &prometheus(folder.path()));
    assert!(log.contains("cannot be used: it is a folder; expected the path of a file"), "{log}");
    let log = failed_start(&lab, &prometheus(&file.join("x")));
    assert!(log.contains("cannot be used: a part of its path is a file; expected folders"), "{log}");
}
