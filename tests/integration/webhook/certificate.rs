//! The certificate of the webhooks: from the daemon's own CA, renewed during requests, and from a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crownlabs::testing::{Authority, Bundle, clock};
use jiff::SignedDuration;
use k8s_openapi::ByteString;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    ENTRIES, Editor, SELECTOR, await_metric, configurations, daemon, edit, is_late, lab, reserved_port,
    trusted, validator,
};
use crate::daemon::Daemon;
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::tenant;
use cluster::audit::{Mark, writes};
use cluster::config::only;

/// The names in the certificate.
fn names() -> Vec<String> {
    let service = "crownlabs-webhook.crownlabs-system";
    [
        format!("{service}.svc"),
        format!("{service}.svc.cluster.local"),
        service.to_owned(),
        "127.0.0.1".to_owned(),
    ]
    .to_vec()
}

/// Threads in which a user changes their own Tenant repeatedly, until [`end`](Self::end). An administrator's requests
/// would succeed without the webhook, too.
struct Traffic {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Traffic {
    fn start(lab: &Lab, name: &str) -> Self {
        let traffic = Self {
            stop: Arc::default(),
            answered: Arc::default(),
            failures: Arc::default(),
            threads: Vec::new(),
        };
        let threads = (0..3).map(|number| {
            let (stop, answered, failures) =
                (Arc::clone(&traffic.stop), Arc::clone(&traffic.answered), Arc::clone(&traffic.failures));
            let (editor, name) = (Editor::new(lab, name), name.to_owned());
            thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let count = answered.load(Ordering::SeqCst);
                    let patch =
                        json!({"metadata": {"annotations": {format!("n{number}"): format!("{count}")}}});
                    match editor.edit(&name, &patch) {
                        Ok(()) => drop(answered.fetch_add(1, Ordering::SeqCst)),
                        Err(error) if is_late(&error) => {}
                        Err(error) => failures.lock().push(error),
                    }
                }
            })
        });
        let threads = threads.collect();
        Self { threads, ..traffic }
    }

    /// Waits for `count` further responses. Panics if a request has failed.
    fn await_answers(&self, count: usize) {
        let begin = self.answered.load(Ordering::SeqCst);
        wait_until(PATIENCE, || {
            let failures = self.failures.lock();
            assert!(failures.is_empty(), "{failures:?}");
            let answered = self.answered.load(Ordering::SeqCst) - begin;
            (answered >= count).then_some(()).ok_or_else(|| format!("{count} answers, {answered} came"))
        });
    }

    /// Ends the threads. Returns the number of responses. Panics if a request has failed.
    fn end(self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let failures = self.failures.lock();
        assert!(failures.is_empty(), "{failures:?}");
        self.answered.load(Ordering::SeqCst)
    }
}

#[test]
fn a_new_authority_breaks_no_request() {
    let lab = lab();
    let old = left_by_a_leader(&lab);
    let data = old.data();
    let port = reserved_port();
    let daemon = daemon(&lab, port, "", &format!("leaderElection: {{enabled: true}}\n{}", only(&[])));
    assert!(daemon.ready().1.contains("[+] webhook-certificate: standby"), "{}", daemon.ready().1);
    assert!(daemon.ready().1.contains("[+] webhook: ready"), "{}", daemon.ready().1);
    lab.apply(&configurations(SELECTOR, port, Some(&data["ca.crt"])));
    lab.apply(&tenant(SELECTOR, "ada", ""));
    let traffic = Traffic::start(&lab, "ada");
    await_metric(
        &daemon,
        "controller_runtime_webhook_requests_total{webhook=\"/validator-v1alpha2-tenant\",code=\"200\"}",
    );
    traffic.await_answers(50);
    assert_eq!(trusted(&lab), vec![data["ca.crt"].clone(); ENTRIES], "a standby writes nothing");

    let renewed = new_authority(&lab, &old);
    traffic.await_answers(50);
    // The served certificate is trusted with only the old authority and with only the new one: the API server opens a
    // connection for each of these configurations.
    let only_new = serde_json::to_value(ByteString(pem(&renewed.authorities[0]).into_bytes())).expect("text");
    lab.apply(&validator("only-old", port, &data["ca.crt"]));
    lab.apply(&validator("only-new", port, only_new.as_str().expect("text")));
    await_metric(
        &daemon,
        "controller_runtime_webhook_requests_total{webhook=\"/validate-v1alpha2-tenant\",code=\"200\"}",
    );
    traffic.await_answers(100);
    assert!(traffic.end() >= 200);

    repaired(&lab, &renewed, port, &data["ca.crt"]);
    only_bundles_are_written(&lab);
    reported_while_missing(&lab, &daemon, port);
}

/// Creates the objects that another leader would have left: the Secret with a certificate of an authority that expires
/// in a year and a half, and the lease, which has not been released. Returns the content of the Secret.
fn left_by_a_leader(lab: &Lab) -> Bundle {
    let now = clock::now();
    let old = Authority::create(now - SignedDuration::from_hours(24 * 365 * 17 / 2)).expect("an authority");
    let old = Bundle::issue(&old, &names(), now).expect("a bundle");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": old.data(),
        "metadata": {"name": "crownlabs-webhook", "namespace": "crownlabs-system"},
    });
    lab.apply(&secret.to_string());
    let lease = |holder: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "crownlabs-controller-manager", "namespace": "crownlabs-system"},
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": 3600, "leaseTransitions": 1,
                "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z",
            },
        })
    };
    lab.apply(&lease("the-leader").to_string());
    old
}

/// Releases the lease, and waits until the daemon has created a new authority, which is trusted in addition to
/// the old one. Returns the new content of the Secret.
fn new_authority(lab: &Lab, old: &Bundle) -> Bundle {
    let data = old.data();
    lab.patch(
        "lease",
        "crownlabs-system",
        "crownlabs-controller-manager",
        r#"{"spec": {"holderIdentity": ""}}"#,
    );
    let renewed = wait_until(PATIENCE, || {
        let secret = lab.get("secrets", "crownlabs-system", "crownlabs-webhook").ok_or("the Secret")?;
        let bundles = trusted(lab);
        let authorities = secret["data"]["ca.crt"].as_str().unwrap_or_default().to_owned();
        let done = authorities != data["ca.crt"] && bundles == vec![authorities; ENTRIES];
        done.then_some(secret).ok_or_else(|| format!("a new authority in {bundles:?}"))
    });
    let renewed: BTreeMap<String, String> =
        serde_json::from_value(renewed["data"].clone()).expect("its data");
    let renewed = Bundle::read(&renewed).expect("readable");
    assert_eq!(renewed.authorities.len(), 2);
    assert_eq!(renewed.authorities[1..], old.authorities[..]);
    renewed
}

/// A deleted Secret is created again with the same content; changed CA bundles are repaired.
fn repaired(lab: &Lab, renewed: &Bundle, port: u16, old_ca: &str) {
    lab.delete("secret", "crownlabs-system", &["crownlabs-webhook"]);
    wait_until(PATIENCE, || {
        let secret = lab.get("secrets", "crownlabs-system", "crownlabs-webhook").ok_or("the Secret")?;
        assert_eq!(secret["data"], json!(renewed.data()));
        assert_eq!(secret["type"], "kubernetes.io/tls");
        Ok(())
    });
    lab.apply(&configurations(SELECTOR, port, Some(old_ca)));
    wait_until(PATIENCE, || {
        let bundles = trusted(lab);
        let done = bundles == vec![renewed.data()["ca.crt"].clone(); ENTRIES];
        done.then_some(()).ok_or_else(|| format!("the CA bundles again, not {bundles:?}"))
    });
}

/// The daemon writes only the CA bundles of the webhook configurations.
fn only_bundles_are_written(lab: &Lab) {
    let object = lab.kubectl(&[
        "get",
        "validatingwebhookconfigurations",
        "crownlabs-webhook",
        "-o",
        "json",
        "--show-managed-fields",
    ]);
    let object: Value = serde_json::from_str(&object).expect("JSON");
    let fields = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let ours: Vec<&Value> = fields.iter().filter(|entry| entry["manager"] == "crownlabs").collect();
    assert!(!ours.is_empty());
    for entry in ours {
        let entry = entry["fieldsV1"].to_string();
        let leaves = entry.matches("{}").count();
        assert_eq!(entry.matches("\"f:caBundle\":{}").count(), leaves, "{entry}");
    }
}

/// Readiness and log report a missing webhook configuration, until it exists again.
fn reported_while_missing(lab: &Lab, daemon: &Daemon, port: u16) {
    let said = "MutatingWebhookConfiguration crownlabs-webhook does not exist";
    let line = format!("[!] webhook configurations: {said}");
    lab.delete("mutatingwebhookconfiguration", "", &["crownlabs-webhook"]);
    daemon.wait_for("the line about the configuration", |daemon| daemon.ready().1.contains(&line));
    lab.apply(&configurations(SELECTOR, port, None));
    daemon.wait_for("the line is gone", |daemon| !daemon.ready().1.contains("webhook configurations"));
    assert_eq!(daemon.log().matches(said).count(), 1, "{}", daemon.log());
}

fn pem(der: &[u8]) -> String {
    pem::encode(&pem::Pem::new("CERTIFICATE", der))
}

/// Writes the certificate and its key into a folder, as cert-manager mounts them.
fn write_files(folder: &Path, bundle: &Bundle) {
    for name in ["tls.crt", "tls.key"] {
        let text: ByteString = serde_json::from_value(bundle.data()[name].clone().into()).expect("base64");
        fs::write(folder.join(name), text.0).expect("written");
    }
}

#[test]
fn a_certificate_from_a_folder_is_replaced_while_requests_run() {
    let lab = lab();
    let folder = tempfile::tempdir().expect("a folder");
    let bundles = [0, 1].map(|_| Bundle::create(&names(), clock::now()).expect("a bundle"));
    let authority = bundles.each_ref().map(|bundle| bundle.data()["ca.crt"].clone());
    write_files(folder.path(), &bundles[0]);
    let port = reserved_port();
    let webhook = format!(", certificateDir: {}", folder.path().display());
    let daemon = daemon(&lab, port, &webhook, &only(&[]));
    lab.apply(&configurations(SELECTOR, port, Some(&authority[0])));
    lab.apply(&tenant(SELECTOR, "ada", ""));
    let refused = |word: &str| {
        wait_until(PATIENCE, || match edit(&lab, "stranger", "ada", &json!({"spec": {"firstName": "X"}})) {
            Err(refusal) if refusal.contains(word) => Ok(()),
            other => Err(format!("{word}: {other:?}")),
        });
    };
    refused("\"stranger\" not found");
    // The files are replaced during requests; open connections are kept.
    let traffic = Traffic::start(&lab, "ada");
    traffic.await_answers(20);
    write_files(folder.path(), &bundles[1]);
    let served = |daemon: &Daemon| daemon.log().matches("with a new certificate").count();
    daemon.wait_for("the second certificate", |daemon| served(daemon) == 2);
    traffic.await_answers(20);
    traffic.end();
    lab.apply(&validator("second", port, &authority[1]));
    lab.delete("validatingwebhookconfiguration", "", &["crownlabs-webhook"]);
    lab.delete("mutatingwebhookconfiguration", "", &["crownlabs-webhook"]);
    refused("\"stranger\" not found");
    await_metric(
        &daemon,
        "controller_runtime_webhook_requests_total{webhook=\"/validate-v1alpha2-tenant\",code=\"200\"}",
    );
    // A key that does not belong to the certificate is reported and not used.
    fs::write(folder.path().join("tls.key"), "nonsense").expect("written");
    daemon.wait_for("the complaint", |daemon| {
        daemon.log().contains("so the previous certificate stays in use")
    });
    refused("\"stranger\" not found");
    // With a folder, the daemon writes neither the Secret nor the CA bundles.
    let entries = lab.cluster.audit().since(Mark::default()).expect("the audit log");
    let ours: Vec<_> = writes(&entries)
        .filter(|entry| {
            entry.user.ends_with(":crownlabs")
                && !["events", "selfsubjectreviews"].contains(&entry.resource.as_str())
        })
        .collect();
    assert!(ours.is_empty(), "{ours:#?}");
    assert!(lab.get("secrets", "crownlabs-system", "crownlabs-webhook").is_none());
}
