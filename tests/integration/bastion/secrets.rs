//! The Secrets with host keys and with the key pair of the web terminal.

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use super::only_bastion;
use super::ssh::key_pair;
use crate::daemon::{Daemon, Options};
use crate::lab::Lab;

const HOST_KEYS: [&str; 3] = ["ssh_host_key_ecdsa", "ssh_host_key_ed25519", "ssh_host_key_rsa"];

/// The decoded value of a key of a Secret.
pub fn value(secret: &Value, key: &str) -> String {
    let encoded = secret["data"][key].as_str().unwrap_or_else(|| panic!("{key} in {secret}"));
    String::from_utf8(STANDARD.decode(encoded).expect("base64")).expect("text")
}

/// The public key of a private one, by `ssh-keygen`.
fn public_key(private: &Path) -> String {
    let output = Command::new("ssh-keygen").arg("-y").arg("-f").arg(private).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// A daemon with its own folder for host keys, and Secrets with these names.
fn daemon(lab: &Lab, folder: &Path, hosts: &str, web: &str) -> Daemon {
    fs::create_dir(folder).expect("a folder");
    let secrets = format!(
        "hostKeys: {{folder: {}, secretName: {hosts}}}, webSshKey: {{secretName: {web}}}",
        folder.display()
    );
    let config = only_bastion(&folder.join("keys"), &secrets);
    Daemon::spawn(&Options {
        kubeconfig: &lab.service_account(),
        selector: "bastion-secrets",
        config: &config,
    })
}

#[test]
fn keys_are_generated_once_for_all_replicas_and_never_again() {
    let (lab, dir) = (Lab::shared(), TempDir::new().expect("a folder"));
    let folder = |name: &str| dir.path().join(name);
    // Neither replica finds a Secret, and both generate keys.
    let replicas = ["a", "b"].map(|name| daemon(&lab, &folder(name), "once-hosts", "once-web"));
    replicas.iter().for_each(Daemon::await_ready);
    let secret = |name: &str| lab.get("secrets", "crownlabs-system", name).expect("created");
    let (hosts, web) = (secret("once-hosts"), secret("once-web"));
    assert_eq!((&hosts["type"], &web["type"]), (&"Opaque".into(), &"Opaque".into()));
    for name in HOST_KEYS {
        let files = ["a", "b"].map(|replica| folder(replica).join(name));
        for file in &files {
            assert_eq!(fs::read_to_string(file).expect("written"), value(&hosts, name));
        }
        // `ssh-keygen` rejects private keys of its user that others can read.
        let copy = folder(name);
        fs::write(&copy, value(&hosts, name)).expect("written");
        fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("ours");
        let kind = public_key(&copy);
        let expected = match name.rsplit('_').next() {
            Some("rsa") => "ssh-rsa ",
            Some("ecdsa") => "ecdsa-sha2-nistp256 ",
            _ => "ssh-ed25519 ",
        };
        assert!(kind.starts_with(expected), "{name}: {kind}");
    }
    let private = folder("web");
    fs::write(&private, value(&web, "webssh-bastion-master")).expect("written");
    fs::set_permissions(&private, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("ours");
    let public = value(&web, "webssh-bastion-master.pub");
    assert_eq!(public.trim(), public_key(&private));
    assert!(
        public.starts_with("ssh-ed25519 ") && public.ends_with(" webssh-bastion-master-key\n"),
        "{public}"
    );
    drop(replicas);

    let again = daemon(&lab, &folder("c"), "once-hosts", "once-web");
    again.await_ready();
    let version = |secret: &Value| secret["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&secret("once-hosts")), version(&hosts));
    assert_eq!(version(&secret("once-web")), version(&web));
}

#[test]
fn an_existing_secret_is_used_unchanged() {
    let (lab, dir) = (Lab::shared(), TempDir::new().expect("a folder"));
    let key = dir.path().join("key");
    key_pair(&key);
    let theirs = fs::read_to_string(&key).expect("written");
    let indented = format!("    {}\n", theirs.trim_end().replace('\n', "\n    "));
    let secret = |name: &str, key: &str| {
        format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: crownlabs-system}}\n\
             stringData:\n  {key}: |\n{indented}"
        )
    };
    lab.apply(&secret("theirs-hosts", "ssh_host_key_ed25519"));
    lab.apply(&secret("theirs-broken", "other"));
    let used = daemon(&lab, &dir.path().join("a"), "theirs-hosts", "''");
    used.await_ready();
    assert_eq!(fs::read_to_string(dir.path().join("a/ssh_host_key_ed25519")).expect("written"), theirs);
    assert!(!dir.path().join("a/ssh_host_key_rsa").exists());
    let broken = daemon(&lab, &dir.path().join("b"), "theirs-broken", "''");
    let reported =
        "[!] bastion: Secret crownlabs-system/theirs-broken has no ssh_host_key_ed25519: delete it";
    broken.wait_for("the report", |daemon| daemon.ready().1.contains(reported));
    let kept = lab.get("secrets", "crownlabs-system", "theirs-broken").expect("there");
    assert_eq!(value(&kept, "other"), theirs, "nothing is overwritten");
}
