//! The expiration loop on a real control plane, with mails in a folder.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crownlabs::testing::clock;
use jiff::Timestamp;
use serde_json::Value;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::termination::await_condition;
use cluster::config::only;

/// The time between the warning and the deletion.
const INTERVAL: Duration = Duration::from_secs(4);

/// The configuration with only this loop.
pub fn config(folder: &Path, interval: &str) -> String {
    format!(
        "{}integrations: {{mail: {{transport: file, folder: \"{}\", from: labs@example.org}}}}\n",
        only(&[("expiration", &format!("notificationInterval: {interval}"))]),
        folder.display()
    )
}

/// A mail: when it was accepted, and its text.
pub fn mails(folder: &Path) -> Vec<(Timestamp, String)> {
    let files = fs::read_dir(folder.join("new")).into_iter().flatten().flatten();
    let read = |file: fs::DirEntry| {
        let accepted = Timestamp::try_from(file.metadata().ok()?.modified().ok()?).ok()?;
        Some((accepted, fs::read_to_string(file.path()).ok()?))
    };
    let mut mails: Vec<(Timestamp, String)> = files.filter_map(read).collect();
    mails.sort();
    mails
}

/// The time between two times.
pub fn passed(since: Timestamp, until: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(since)).expect("not before")
}

/// An Instance in the namespace of the fixtures' Workspace, whose Tenant has its own name.
pub fn elsewhere(fixtures: &str, name: &str, template: &str, tenant: &str) -> String {
    instance(fixtures, name, template)
        .replace(&format!("namespace: tenant-{fixtures}"), &format!("namespace: workspace-{fixtures}"))
        .replace(&format!("TenantRef: {{name: {fixtures}}}"), &format!("TenantRef: {{name: {tenant}}}"))
}

/// A Tenant with an address.
fn tenant(name: &str) -> String {
    format!(
        "apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: {name}}}
spec: {{firstName: Ada, lastName: Rossi, email: {name}@example.org}}
"
    )
}

/// Makes the Instances of a Template expire at an age.
pub fn expire(lab: &Lab, name: &str, template: &str, age: &str) {
    let patch = format!(r#"{{"spec": {{"cleanup": {{"deleteAfterCreation": "{age}"}}}}}}"#);
    lab.patch("templates", &format!("workspace-{name}"), template, &patch);
}

#[test]
fn an_old_instance_is_warned_about_then_deleted() {
    let lab = Lab::shared();
    let name = "expiry";
    let _course = lab.course(name);
    lab.apply(&instance(name, "old", "container"));
    expire(&lab, name, "container", "1s");
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options {
        kubeconfig: &kubeconfig,
        selector: name,
        config: &config(folder.path(), &format!("{}s", INTERVAL.as_secs())),
    });
    let namespace = "tenant-expiry";
    let warned = wait_until(PATIENCE, || {
        let object =
            lab.get("instances", namespace, "old").ok_or("deleted before it was seen to be warned")?;
        let promise = object["status"]["expiration"].clone();
        if promise["warnings"] == 1 { Ok(promise) } else { Err(format!("a warning: {promise}")) }
    });
    assert!(warned["deadline"].is_string() && warned["lastWarning"].is_string(), "{warned}");
    lab.await_gone("instances", namespace, "old");
    let ended = clock::now();
    let mails = mails(folder.path());
    assert_eq!(mails.len(), 2, "{mails:?}\n{}", daemon.log());
    assert!(passed(mails[0].0, ended) >= INTERVAL, "the promised time has passed");
    for (_, mail) in &mails {
        assert!(mail.contains("To: ") && mail.contains("expiry@example.org"), "{mail}");
    }
    lab.await_event(namespace, "old", "ExpirationWarning: ");
    lab.await_event(namespace, "old", "Expired: ");
    let metrics = daemon.metrics();
    for kind in ["expiration_warning", "expired"] {
        let counter = format!(r#"crownlabs_mails_total{{kind="{kind}",result="success"}} 1"#);
        assert!(metrics.contains(&counter), "{metrics}");
    }
}

#[test]
fn no_instance_is_deleted_while_mails_are_rejected() {
    let lab = Lab::shared();
    let name = "refused";
    let _course = lab.course(name);
    expire(&lab, name, "container", "1s");
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options {
        kubeconfig: &kubeconfig,
        selector: name,
        config: &config(folder.path(), &format!("{}s", INTERVAL.as_secs())),
    });
    // No mail can be put into the folder: a file is in its place.
    let (new, away) = (folder.path().join("new"), folder.path().join("away"));
    fs::rename(&new, &away).expect("renamed");
    fs::write(&new, "").expect("written");
    lab.apply(&instance(name, "old", "container"));
    let namespace = "tenant-refused";
    let refused = |metrics: &str| -> u64 {
        let failed = |line: &&str| line.starts_with("crownlabs_mails_total{") && !line.contains("success");
        let counts =
            metrics.lines().filter(failed).filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum()
    };
    wait_until(PATIENCE, || {
        let count = refused(&daemon.metrics());
        (count >= 4).then_some(()).ok_or_else(|| format!("four attempts, not {count}: {}", daemon.log()))
    });
    // Before each attempt the condition says that the Instance is overdue.
    wait_until(PATIENCE, || {
        let object = lab.get("instances", namespace, "old").expect("the Instance is still there");
        assert_eq!(object["status"]["expiration"]["warnings"].as_i64(), None);
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let expiring = conditions.iter().find(|condition| condition["type"] == "Expiring").cloned();
        let expiring = expiring.unwrap_or_default();
        let says = expiring["message"].as_str().is_some_and(|message| message.contains("is retried"));
        (says && expiring["status"] == "True").then_some(()).ok_or_else(|| format!("the reason: {expiring}"))
    });
    fs::remove_file(&new).expect("removed");
    fs::rename(&away, &new).expect("renamed");
    let mended = clock::now();
    lab.await_gone("instances", namespace, "old");
    let ended = clock::now();
    let mails = mails(folder.path());
    assert!(mails[0].0 >= mended && passed(mails[0].0, ended) >= INTERVAL, "{mails:?}");
}

#[test]
fn the_instances_of_an_exempt_namespace_stay() {
    let lab = Lab::shared();
    let name = "exempt";
    let course = lab.course(name);
    let namespace = "tenant-exempt";
    let exempt = |value: &str| {
        let labels = format!(r#"{{"crownlabs.polito.it/expiration-ignore": {value}}}"#);
        lab.patch("namespaces", "", namespace, &format!(r#"{{"metadata": {{"labels": {labels}}}}}"#));
    };
    // The case of the value does not matter: exempting too many is the safe direction.
    exempt("\"TRUE\"");
    expire(&lab, name, "container", "1s");
    lab.apply(&instance(name, "kept", "container"));
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), "1s");
    let daemon = course.daemon(&config);
    let series = r#"controller_runtime_reconcile_total{controller="expiration",result="#;
    let has_ended = |line: &str| line.starts_with(series) && !line.ends_with(" 0");
    wait_until(PATIENCE, || {
        let metrics = daemon.metrics();
        metrics.lines().any(has_ended).then_some(()).ok_or(metrics)
    });
    assert_eq!(lab.get("instances", namespace, "kept").expect("kept")["status"]["expiration"], Value::Null);
    assert!(mails(folder.path()).is_empty());
    // Once the exemption ends, the Instance is reconciled again at once.
    exempt("null");
    lab.await_gone("instances", namespace, "kept");
    assert_eq!(mails(folder.path()).len(), 2);
}

#[test]
fn an_instance_is_reconciled_when_its_namespace_is_selected_and_when_its_tenant_appears() {
    let lab = Lab::shared();
    let name = "latecomer";
    let course = lab.course(name);
    let namespace = "tenant-latecomer";
    let select = |value: &str| {
        let labels = format!(r#"{{"crownlabs.polito.it/operator-selector": {value}}}"#);
        lab.patch("namespaces", "", namespace, &format!(r#"{{"metadata": {{"labels": {labels}}}}}"#));
    };
    select("null");
    lab.delete("tenants", "", &[name]);
    lab.apply(&tenant("latecomer-other"));
    expire(&lab, name, "container", "1s");
    lab.apply(&instance(name, "late", "container"));
    // This Instance shows what would have happened to the other one.
    lab.apply(&elsewhere(name, "marker", "container", "latecomer-other"));
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), "1s");
    let daemon = course.daemon(&config);
    lab.await_gone("instances", "workspace-latecomer", "marker");
    assert_eq!(lab.get("instances", namespace, "late").expect("not ours")["status"], Value::Null);
    select(&format!("\"{name}\""));
    await_condition(&lab, namespace, "late", "Expiring", "TenantNotFound");
    assert_eq!(mails(folder.path()).len(), 2, "those about the other: {}", daemon.log());
    lab.apply(&tenant(name));
    lab.await_gone("instances", namespace, "late");
    assert_eq!(mails(folder.path()).len(), 4, "{}", daemon.log());
}

#[test]
fn a_broken_mail_template_delays_only_its_own_mails() {
    let lab = Lab::shared();
    let name = "template";
    let course = lab.course(name);
    expire(&lab, name, "container", "1s");
    let (folder, templates) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/mail")).expect("templates") {
        let file = file.expect("a file");
        fs::copy(file.path(), templates.path().join(file.file_name())).expect("copied");
    }
    let config = config(folder.path(), &format!("{}s", INTERVAL.as_secs()));
    let config = config.replace(
        "{transport: file,",
        &format!("{{transport: file, templateDir: \"{}\",", templates.path().display()),
    );
    let daemon = course.daemon(&config);
    let namespace = "tenant-template";
    lab.apply(&instance(name, "warned", "container"));
    wait_until(PATIENCE, || match mails(folder.path()).len() {
        0 => Err(format!("a warning: {}", daemon.log())),
        _ => Ok(()),
    });
    let warning = templates.path().join("instautoctrl_expiration_warning_notification.yaml");
    let good = fs::read(&warning).expect("a template");
    fs::write(&warning, "to: a\nsubject: b\nplaintext_content: c\n").expect("written");
    lab.apply(&instance(name, "old", "container"));
    let condition = await_condition(&lab, namespace, "old", "Expiring", "MailTemplateInvalid");
    let message = condition["message"].as_str().unwrap_or_default();
    let expected = format!("the mail has no usable template: {}: html_content is missing", warning.display());
    assert!(message.starts_with(&expected), "{condition}");
    // The last mail has another template.
    lab.await_gone("instances", namespace, "warned");
    assert_eq!(mails(folder.path()).len(), 2, "{}", daemon.log());
    let kept = lab.get("instances", namespace, "old").expect("it was not warned about");
    assert_eq!(kept["status"]["expiration"]["warnings"].as_i64(), None, "{kept}");
    fs::write(&warning, good).expect("written");
    lab.await_gone("instances", namespace, "old");
    assert_eq!(mails(folder.path()).len(), 4, "{}", daemon.log());
}
