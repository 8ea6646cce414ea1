//! The kubeconfig, and the API server that it names.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::server::{self, Pair};
use super::{await_line, failed_command};
use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE};
use cluster::config::only;

#[test]
fn a_missing_or_invalid_kubeconfig_is_one_error_that_is_printed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kubeconfig");
    let shown = path.display().to_string();
    let missing = format!(
        "crownlabs: --kubeconfig {shown} cannot be read: it does not exist; create it, or correct the path\n"
    );
    assert_eq!(failed_command(&["why", "a/b", "--kubeconfig", &shown]), missing);
    let options = Options { kubeconfig: &path, selector: "messages", config: &only(&[("template", "")]) };
    let mut daemon = Daemon::spawn(&options).that_may_end();
    let status = daemon.wait(PATIENCE).expect("it ends");
    let log = daemon.log();
    assert_eq!((status.code(), log.matches(&shown).count()), (Some(1), 1), "{log}");
    assert!(log.ends_with(&missing), "{log}");

    fs::write(&path, "clusters: s3cret").expect("written");
    let invalid = failed_command(&["why", "a/b", "--kubeconfig", &shown]);
    let begin = format!("crownlabs: --kubeconfig {shown} cannot be read: it is not a kubeconfig");
    assert!(invalid.starts_with(&begin) && invalid.contains("; expected YAML"), "{invalid}");
    assert!(!invalid.contains("s3cret") && invalid.lines().count() == 1, "{invalid}");

    let lab = Lab::shared();
    let admin = lab.admin().display().to_string();
    let context = failed_command(&["why", "a/b", "--kubeconfig", &admin, "--context", "none"]);
    let expected = "there is no context none; pass the name of another one with --context (it has test)\n";
    assert_eq!(context, format!("crownlabs: --kubeconfig {admin} cannot be used: {expected}"));
}

#[test]
fn an_account_that_the_api_server_rejects_is_named_with_its_server() {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kubeconfig");
    let mut kubeconfig = read(&lab.service_account());
    kubeconfig["users"][0]["user"]["token"] = "none".into();
    fs::write(&path, kubeconfig.to_string()).expect("written");
    let options = Options { kubeconfig: &path, selector: "messages", config: &only(&[("template", "")]) };
    let mut daemon = Daemon::spawn(&options).that_may_end();
    assert_eq!(daemon.wait(PATIENCE).and_then(|status| status.code()), Some(1));
    let expected =
        "the API server rejects this account: Unauthorized; check the credentials for https://127.0.0.1:";
    assert!(daemon.log().contains(expected), "{}", daemon.log());
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("read")).expect("JSON")
}

#[test]
fn an_api_server_that_cannot_be_reached_is_named_with_its_url_and_the_cause() {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let own = Pair::create("127.0.0.1", 2090);
    let (wrong, expired) = (Pair::create("a.example.org", 2090), Pair::create("127.0.0.1", 2020));
    for (name, port, authority, cause) in [
        (
            "unknown",
            server::with_certificate(&Pair::create("127.0.0.1", 2090)),
            &own,
            [
                "its certificate is from an unknown authority",
                "certificate-authority in the kubeconfig must contain",
            ],
        ),
        (
            "wrong",
            server::with_certificate(&wrong),
            &wrong,
            ["its certificate is not valid for the name 127.0.0.1", "or correct the host name in the URL"],
        ),
        (
            "expired",
            server::with_certificate(&expired),
            &expired,
            ["its certificate expired at 2020-01-01T00:00:00Z", "renew the certificate"],
        ),
        (
            "refused",
            reserved_port(),
            &own,
            ["Connection refused", "nothing listens there; check host and port"],
        ),
        ("silent", server::silent(), &own, ["no answer within 5 s", "check the address"]),
    ] {
        let mut kubeconfig = read(&lab.service_account());
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        cluster["server"] = format!("https://127.0.0.1:{port}").into();
        let file = authority.authority(folder.path(), &format!("{name}.crt"));
        cluster["certificate-authority"] = file.display().to_string().into();
        let path = folder.path().join(name);
        fs::write(&path, kubeconfig.to_string()).expect("written");
        let config = only(&[("template", "")]);
        let daemon = Daemon::spawn(&Options { kubeconfig: &path, selector: "messages", config: &config });
        let url = format!("https://127.0.0.1:{port}/");
        let [problem, remedy] = cause;
        let line = format!("[-] start-up: waiting for the API server {url}: ");
        await_line(&daemon, &[&line, problem, remedy]);
        let line = format!("the API server {url} cannot be reached; trying again: ");
        await_line(&daemon, &["WARN", &line, problem, remedy]);
    }
}
