//! Warnings that a mail server rejects permanently, and Tenants that try to get more warnings than the limit.

use std::sync::Arc;
use std::time::Duration;

use crownlabs::testing::{MailTls, clock};

use super::server::{Accepted, Kind, MailServer};
use crate::course::Course;
use crate::daemon::{Daemon, Options};
use crate::expiration::{config, expire};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::termination::await_condition;

/// The configuration of the expiration loop with this mail server.
fn with_server(server: &MailServer, interval: &str, undeliverable: &str) -> String {
    let text = config(std::path::Path::new("/unused"), interval);
    let (loops, _) = text.split_once("integrations:").expect("the mails");
    format!(
        "{loops}integrations: {{mail: {{transport: smtp, host: 127.0.0.1, port: {}, tls: none, from: labs@example.org, \
         undeliverable: {undeliverable}}}}}\n",
        server.config().port
    )
}

fn server() -> MailServer {
    MailServer::start(Kind { tls: MailTls::None, login: false, ..Kind::default() })
}

/// A manager of the course of the fixtures.
fn manager(fixtures: &str, address: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: grace-{fixtures}}}
spec: {{firstName: Grace, lastName: H, email: {address}, workspaces: [{{name: {fixtures}, role: manager}}]}}
"
    )
}

/// The mails to an address.
fn mails_to(server: &MailServer, address: &str) -> Vec<Accepted> {
    server.accepted().into_iter().filter(|mail| mail.to == [address]).collect()
}

/// The value of a series; 0 if it is missing.
fn value(daemon: &Daemon, series: &str) -> u64 {
    let metrics = daemon.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    line.unwrap_or_default()
}

/// The number of reconciles of the loop.
fn reconciles(daemon: &Daemon) -> u64 {
    let metrics = daemon.metrics();
    let begin = r#"controller_runtime_reconcile_total{controller="expiration","#;
    let counts = metrics.lines().filter(|line| line.starts_with(begin));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[test]
fn a_name_rejected_by_a_mail_filter_does_not_keep_its_instance_alive() {
    let lab = Lab::shared();
    let name = "spam";
    let server = server();
    let course = lab.course(name);
    expire(&lab, name, "container", "1s");
    let daemon = course.daemon(&with_server(&server, "2s", "keep"));
    lab.apply(
        &instance(name, "casino-1", "container").replace("spec:\n", "spec:\n  prettyName: CASINO bonus\n"),
    );
    lab.await_gone("instances", "tenant-spam", "casino-1");
    let accepted = server.accepted();
    assert_eq!(accepted.len(), 2, "the warning and the last mail: {accepted:?}\n{}", daemon.log());
    for mail in &accepted {
        assert_eq!(mail.to, ["spam@example.org"]);
        assert!(!mail.text.to_lowercase().contains("casino"), "{}", mail.text);
        assert!(
            mail.text.contains("One of your machines") && mail.text.contains("tenant-spam"),
            "{}",
            mail.text
        );
    }
    let refused = value(&daemon, r#"crownlabs_mails_total{kind="expiration_warning",result="MailRefused"}"#);
    assert_eq!(refused, 1, "it was first sent as the template has it");
}

/// Creates a course whose student has a closed mailbox.
fn unreachable(lab: &Arc<Lab>, name: &str) -> Course {
    let course = lab.course(name);
    lab.patch("tenants", "", name, r#"{"spec": {"email": "refused@example.org"}}"#);
    expire(lab, name, "container", "1s");
    course
}

#[test]
fn an_unreachable_tenant_keeps_the_machine_and_the_managers_get_one_mail() {
    let lab = Lab::shared();
    let name = "closedbox";
    let server = server();
    let _course = unreachable(&lab, name);
    lab.apply(&manager(name, "grace@example.org"));
    let daemon = Daemon::start(&Options {
        kubeconfig: &lab.service_account(),
        selector: name,
        config: &with_server(&server, "1s", "keep"),
    });
    lab.apply(&instance(name, "kept", "container"));
    let namespace = "tenant-closedbox";
    let condition = await_condition(&lab, namespace, "kept", "Expiring", "MailUndeliverable");
    let message = condition["message"].as_str().unwrap_or_default();
    for words in
        ["550 5.1.1 no such mailbox", "the managers of the course were notified", "the Instance is kept"]
    {
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(condition["status"], "True");
    lab.await_event(namespace, "kept", "MailUndeliverable: ");
    // The mail is retried, each time also without the texts of the user.
    let series = r#"crownlabs_mails_total{kind="expiration_warning",result="MailRecipientRefused"}"#;
    wait_until(PATIENCE, || {
        let tried = value(&daemon, series);
        (tried >= 6)
            .then_some(())
            .ok_or_else(|| format!("three attempts of two mails, not {tried}: {}", daemon.log()))
    });
    assert_eq!(value(&daemon, r#"automation_mails_undeliverable{controller="expiration"}"#), 1);
    assert_eq!(value(&daemon, r#"automation_mails_waiting{controller="expiration"}"#), 0);
    let kept = lab.get("instances", namespace, "kept").expect("it is kept");
    assert!(kept["status"]["expiration"]["undeliverable"].is_string(), "{kept}");
    let told = mails_to(&server, "grace@example.org");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].text.contains("your course closedbox.") && told[0].text.contains("is kept"),
        "{}",
        told[0].text
    );
    // The address is corrected: the Tenant is warned, and the Instance expires.
    lab.patch("tenants", "", name, r#"{"spec": {"email": "found@example.org"}}"#);
    lab.await_gone("instances", namespace, "kept");
    assert_eq!(mails_to(&server, "found@example.org").len(), 2, "{}", daemon.log());
    assert_eq!(mails_to(&server, "grace@example.org").len(), 1);
    drop(daemon);
    lab.delete("tenants", "", &["grace-closedbox"]);
}

#[test]
fn a_rejection_of_this_installation_does_not_count_as_a_bad_recipient() {
    let lab = Lab::shared();
    let name = "relay";
    let kind = Kind { tls: MailTls::None, login: false, refuses: "RCPT", ..Kind::default() };
    let server = MailServer::start(kind);
    let course = lab.course(name);
    expire(&lab, name, "container", "1s");
    lab.apply(&manager(name, "grace@example.org"));
    let daemon = course.daemon(&with_server(&server, "1s", "proceed"));
    lab.apply(&instance(name, "kept", "container"));
    let namespace = "tenant-relay";
    let condition = await_condition(&lab, namespace, "kept", "Expiring", "MailConnectionRefused");
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(message.contains("rejects mail from this installation: 554 5.7.1"), "{message}");
    let (status, ready) = daemon.ready();
    let line = format!("[!] mail server {}: failing for ", server.address());
    assert!(status == 200 && ready.contains(&line), "{ready}");
    let tried = |kind: &str, result: &str| {
        value(&daemon, &format!(r#"crownlabs_mails_total{{kind="{kind}",result="{result}"}}"#))
    };
    wait_until(PATIENCE, || {
        let again = tried("expiration_warning", "MailConnectionRefused") >= 2;
        again.then_some(()).ok_or_else(|| format!("it is not sent again: {}", daemon.log()))
    });
    assert_eq!(value(&daemon, r#"automation_mails_undeliverable{controller="expiration"}"#), 0);
    assert_eq!(value(&daemon, r#"automation_mails_waiting{controller="expiration"}"#), 1);
    assert_eq!(tried("undeliverable", "MailConnectionRefused"), 0, "a manager was written to");
    assert!(lab.get("instances", namespace, "kept").is_some());
    drop(daemon);
    lab.delete("tenants", "", &["grace-relay"]);
}

#[test]
fn with_proceed_the_deadline_counts_from_the_mail_to_the_managers() {
    let lab = Lab::shared();
    let name = "proceedbox";
    let (server, interval) = (server(), Duration::from_secs(3));
    let _course = unreachable(&lab, name);
    let daemon = Daemon::start(&Options {
        kubeconfig: &lab.service_account(),
        selector: name,
        config: &with_server(&server, "3s", "proceed"),
    });
    lab.apply(&instance(name, "ends", "container"));
    let namespace = "tenant-proceedbox";
    // Without a manager there is no mail that could count as the warning.
    let condition = await_condition(&lab, namespace, "ends", "Expiring", "MailUndeliverable");
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(
        message.ends_with("no manager of the course could be notified, so the Instance is kept"),
        "{message}"
    );
    let before = clock::now();
    lab.apply(&manager(name, "hopper@example.org"));
    lab.await_gone("instances", namespace, "ends");
    let passed = Duration::try_from(clock::now().duration_since(before)).expect("not before");
    let told = mails_to(&server, "hopper@example.org");
    assert_eq!(told.len(), 1, "{told:?}\n{}", daemon.log());
    assert!(told[0].text.contains("It will be deleted on "), "{}", told[0].text);
    assert!(passed >= interval, "{passed:?} after the manager was there");
    drop(daemon);
    lab.delete("tenants", "", &["grace-proceedbox"]);
}

/// The annotation with the time of a Tenant's warning.
const RECORD: &str = "crownlabs.polito.it/mailed-expiration-warning";

/// The Tenant reverts its warning, with or without the annotation that the webhook would protect, and triggers a
/// reconcile.
fn take_back(lab: &Lab, daemon: &Daemon, with_record: bool, round: usize) {
    let seen = reconciles(daemon);
    let record = if with_record { format!(r#", "{RECORD}": null"#) } else { String::new() };
    let annotations = format!(
        r#"{{"crownlabs.polito.it/expiring-warning-notification-timestamp": null,
             "crownlabs.polito.it/sent-expiring-warning-notification": null{record}}}"#
    );
    let patch = format!(r#"{{"metadata": {{"annotations": {annotations}}}}}"#);
    // The daemon must see both changes at once; otherwise it restores each from the other.
    daemon.signal("STOP");
    lab.patch("instances", "tenant-flood", "mailed", &patch);
    let status = r#"{"status": {"expiration": null, "conditions": null}}"#;
    lab.patch_status("instances", "tenant-flood", "mailed", status);
    daemon.signal("CONT");
    // The Tenant's own Template triggers the loop. The Instance is older than either time.
    expire(lab, "flood", "container", ["2s", "1s"][round % 2]);
    wait_until(PATIENCE, || {
        let now = reconciles(daemon);
        (now > seen).then_some(()).ok_or_else(|| format!("a reconcile after {seen}: {}", daemon.log()))
    });
}

#[test]
fn a_tenant_resetting_the_status_gets_no_more_mails() {
    let lab = Lab::shared();
    let name = "flood";
    let _course = lab.course(name);
    expire(&lab, name, "container", "1s");
    // No two mails look the same to it, as they would in a folder within a minute.
    let server = server();
    let kubeconfig = lab.service_account();
    // No other mail is due while this test runs.
    let config = with_server(&server, "2h", "keep");
    let options = Options { kubeconfig: &kubeconfig, selector: name, config: &config };
    let mut daemon = Daemon::start(&options);
    lab.apply(&instance(name, "mailed", "container"));
    let namespace = "tenant-flood";
    let warned = |count: usize| {
        wait_until(PATIENCE, || {
            let object = lab.get("instances", namespace, "mailed").expect("it is there");
            let is_written = object["metadata"]["annotations"][RECORD].is_string();
            (server.accepted().len() == count && is_written).then_some(()).ok_or_else(|| object.to_string())
        });
    };
    warned(1);
    // Without the webhooks, the leader still remembers the warning if a Tenant removes the annotation, and writes it
    // again.
    for round in 0..5 {
        take_back(&lab, &daemon, true, round);
        warned(1);
    }
    // With the webhooks, the annotation is there for the next leader.
    daemon.stop();
    daemon = Daemon::start(&options);
    for round in 5..8 {
        take_back(&lab, &daemon, false, round);
        assert_eq!(server.accepted().len(), 1, "round {round}: {}", daemon.log());
    }
}
