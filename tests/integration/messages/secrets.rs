//! Files with secrets that are missing or unusable while the daemon runs.

use std::fs;
use std::path::PathBuf;

use super::await_line;
use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::Lab;
use cluster::config::only;

/// A file that a key names, and the effect of its absence.
struct Secret {
    key: &'static str,
    path: PathBuf,
    effect: &'static str,
}

#[test]
fn each_unusable_file_is_named_with_its_key_and_its_effect() {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let [client, events, master] = [
        ("controllers.dashboard.clientSecretFile", "client", "Users cannot log in at the dashboard"),
        ("server.keycloakEvents.secretFile", "events", "No events of Keycloak are accepted"),
        ("controllers.instance.websshMasterKeyFile", "master", "Machines are created without this key"),
    ]
    .map(|(key, name, effect)| Secret { key, path: path(name), effect });
    let (session, token, password) = (path("session"), path("token"), path("password"));
    let dashboard = format!(
        "listen: \"127.0.0.1:{}\", publicUrl: \"https://a.example.org\", issuerUrl: \"https://127.0.0.1:1/realms/a\", \
         clientId: labs, clientSecretFile: \"{}\", sessionKeyFile: \"{}\"",
        reserved_port(),
        client.path.display(),
        session.display()
    );
    let images = format!(
        "updateInterval: 5s, registries: [{{imageListName: messages-secrets, url: \"http://127.0.0.1:1\", \
         registryName: r.example.org, username: u, passwordFile: \"{}\"}}]",
        password.display()
    );
    let instance = format!("websshMasterKeyFile: \"{}\"", master.path.display());
    let loops = [
        ("tenant", ""),
        ("inactivity", "notifications: false"),
        ("instance", &*instance),
        ("dashboard", &*dashboard),
        ("imageList", &*images),
    ];
    let config = format!(
        "keycloakEvents: {{listen: \"127.0.0.1:{}\", secretFile: \"{}\"}}\n{}integrations: {{prometheus: {{url: \
         \"http://127.0.0.1:1\", bearerTokenFile: \"{}\"}}}}\n",
        reserved_port(),
        events.path.display(),
        only(&loops),
        token.display()
    );
    let kubeconfig = lab.service_account();
    let daemon =
        Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: "messages-secrets", config: &config });
    let missing = "it does not exist; create it, or correct the path";
    for Secret { key, path, effect } in [&client, &events, &master] {
        let line = format!("{key}: {} cannot be used: {missing}. {effect}", path.display());
        await_line(&daemon, &["WARN", &line]);
    }
    let of_session = format!(
        "controllers.dashboard.sessionKeyFile: {} cannot be read; waiting for it: ",
        session.display()
    );
    let of_token = format!("integrations.prometheus.bearerTokenFile: {} cannot be used: ", token.display());
    let of_password = format!("passwordFile cannot be used: {}: ", password.display());
    for (begin, file) in [
        ("[!] dashboard: ", &of_session),
        ("[!] Prometheus http://127.0.0.1:1: failing for ", &of_token),
        ("[!] registry 127.0.0.1:1 of ImageList messages-secrets: failing for ", &of_password),
    ] {
        await_line(&daemon, &[begin, file, missing]);
    }

    let utf16: Vec<u8> = "s3cret".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for path in [&client.path, &events.path, &master.path, &password] {
        fs::write(path, &utf16).expect("written");
    }
    fs::write(&session, "not a key\n").expect("written");
    for Secret { key, path, .. } in [&client, &events, &master] {
        let line = format!("{key}: {} cannot be used: it is encoded in UTF-16; save", path.display());
        await_line(&daemon, &["WARN", &line]);
    }
    await_line(&daemon, &[&of_password, "it is encoded in UTF-16; save the file as UTF-8"]);
    await_line(&daemon, &["[!] dashboard: ", &of_session, "it has 3 lines; expected one"]);

    fs::write(&master.path, "\n").expect("written");
    fs::write(&client.path, "\n").expect("written");
    let line = format!("{}: {} cannot be used: it is empty", client.key, client.path.display());
    await_line(&daemon, &["WARN", &line, client.effect]);
    let line = format!("{}: {} cannot be used: it is not ", master.key, master.path.display());
    await_line(&daemon, &["WARN", &line, master.effect]);
    assert!(!daemon.log().contains("s3cret") && !daemon.ready().1.contains("s3cret"), "{}", daemon.log());
    drop(daemon);
    lab.kubectl(&["delete", "imagelist", "messages-secrets", "--ignore-not-found"]);
}
