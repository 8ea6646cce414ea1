//! What the loops that warn Tenants keep in memory: the way to the mail server, which mails it has accepted, and the
//! gauges about their promises.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::promises::Promises;
use crate::api::instance::Instance;
use crate::api::promise::Promise;
use crate::clients::mail::{Mail, MailError, Mailer};
use crate::controllers::Setup;
use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{EffectError, EffectOutcome};

/// The mails of a loop and the gauges about its promises.
pub struct Notifier {
    /// `None` where nobody is warned.
    mailer: Option<Mailer>,
    accepted: AcceptedMails,
    promises: Promises,
}

/// The mails that were accepted and whose acceptance is not known to be in the status yet, one for each Instance. If
/// the status cannot be written, because somebody else has changed the Instance meanwhile, the mail is not sent again.
#[derive(Default)]
pub struct AcceptedMails {
    /// The key of the mail, and the time at which the server accepted it, by Instance.
    last: Mutex<BTreeMap<ObjectKey, (String, Timestamp)>>,
}

impl AcceptedMails {
    /// Takes that the server has accepted a mail at this time.
    pub fn remember(&self, mail: &Mail, accepted: Timestamp) {
        self.lock().insert(about(mail), (mail.key.clone(), accepted));
    }

    /// When the server accepted this mail; `None` if it is not known to have.
    pub fn recall(&self, mail: &Mail) -> Option<Timestamp> {
        let known = self.lock().get(&about(mail)).cloned();
        known.filter(|(key, _)| *key == mail.key).map(|(_, accepted)| accepted)
    }

    /// Drops the mail about an Instance whose status has this promise, unless the promise says that it is being sent:
    /// its acceptance has been written, or what it promised has been withdrawn.
    pub fn settle(&self, instance: &ObjectKey, promise: Option<&Promise>) {
        if promise.is_none_or(|promise| promise.sending.is_none()) {
            self.lock().remove(instance);
        }
    }

    /// No code that can panic runs while the map is changed.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (String, Timestamp)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Instance that a mail is about.
fn about(mail: &Mail) -> ObjectKey {
    ObjectKey::new(mail.namespace.as_str(), mail.instance_name.as_str())
}

impl Notifier {
    /// The notifier of the loop called `name`; it sends mails only with `notifications`.
    pub fn new(name: &'static str, setup: &Setup<'_>, notifications: bool) -> Self {
        let mailer = setup.mailer.clone().filter(|_| notifications);
        Self { mailer, accepted: AcceptedMails::default(), promises: Promises::new(name) }
    }

    /// Sends a mail, unless the server has accepted it already. The result is the time at which it did. A failure is a
    /// problem of the condition `component`.
    pub async fn send(&self, component: &str, mail: &Mail) -> EffectOutcome<Timestamp> {
        let Some(mailer) = &self.mailer else { return EffectOutcome { result: None, error: None } };
        if let Some(accepted) = self.accepted.recall(mail) {
            return EffectOutcome::done(accepted);
        }
        match mailer.send(mail).await {
            Ok(()) => {
                let accepted = clock::stated();
                self.accepted.remember(mail, accepted);
                EffectOutcome::done(accepted)
            }
            Err(MailError::NotLeader) => EffectOutcome { result: None, error: Some(EffectError::NotLeader) },
            Err(error) => {
                let message = format!("{error}; it is sent again, and the deadline moves accordingly");
                let problem = Problem::fault(component, error.reason(), message);
                EffectOutcome { result: None, error: Some(EffectError::Failed(problem)) }
            }
        }
    }

    /// Takes what the status of an Instance says: `promise` is what is promised about it now, `witness` what its last
    /// use is known from. Updates the gauges, and drops the mail whose acceptance is in the status.
    pub fn record(&self, instance: &Instance, promise: Option<&Promise>, witness: Option<&str>) {
        let key = ObjectKey::of(instance);
        self.accepted.settle(&key, promise);
        self.promises.record(&key, promise, witness);
    }

    /// Drops what is known of the Instance with this key: nothing is promised about it.
    pub fn forget(&self, key: &ObjectKey) {
        self.accepted.settle(key, None);
        self.promises.record(key, None, None);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;
    use crate::clients::mail::MailKind;
    use crate::config::{Config, MailConfig, MailTransport};
    use crate::runtime::gate::Gate;

    /// A notifier that puts mails into a folder.
    fn notifier(folder: &Path) -> Notifier {
        let mail = MailConfig {
            transport: MailTransport::File,
            folder: folder.display().to_string(),
            from: "labs@example.org".to_owned(),
            ..MailConfig::default()
        };
        let config = Config::default();
        let mut setup = Setup::new(&config, Gate::open());
        setup.mailer = Some(Mailer::new(&mail, Gate::open()).expect("a mailer"));
        Notifier::new("expiration", &setup, true)
    }

    fn mail(key: &str, instance: &str) -> Mail {
        Mail {
            kind: MailKind::ExpirationWarning,
            key: key.to_owned(),
            tenant_name: "ada".to_owned(),
            tenant_email: "ada@example.org".to_owned(),
            pretty_name: String::new(),
            instance_name: instance.to_owned(),
            namespace: "tenant-ada".to_owned(),
            remaining: Duration::from_hours(24),
            deadline: Timestamp::UNIX_EPOCH,
            link: String::new(),
        }
    }

    fn instance(name: &str) -> Instance {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "tenant-ada", "uid": name},
            "spec": {
                "template.crownlabs.polito.it/TemplateRef": {"name": "vm", "namespace": "workspace-tea"},
                "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
            },
        }))
        .expect("an Instance")
    }

    /// Sends a mail, and returns whether the folder got one. The folder is emptied, because it takes no mail twice.
    async fn arrives(notifier: &Notifier, folder: &Path, mail: &Mail) -> bool {
        let outcome = notifier.send("Expiring", mail).await;
        assert!(outcome.result.is_some() && outcome.error.is_none(), "{outcome:?}");
        let new = || fs::read_dir(folder.join("new")).expect("a folder").flatten();
        let files: Vec<_> = new().map(|file| file.path()).collect();
        for file in &files {
            fs::remove_file(file).expect("removed");
        }
        !files.is_empty()
    }

    #[tokio::test]
    async fn a_mail_whose_acceptance_is_not_in_the_status_yet_is_not_sent_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let (notifier, folder) = (notifier(folder.path()), folder.path());
        let warning = mail("a/0/soon", "a");
        let accepted = notifier.send("Expiring", &warning).await.result.expect("accepted");
        arrives(&notifier, folder, &warning).await;
        // The status has what was announced before the mail, not that it was accepted.
        let sending = Promise { sending: Some(Time(Timestamp::UNIX_EPOCH)), ..Promise::default() };
        notifier.record(&instance("a"), Some(&sending), None);
        assert!(!arrives(&notifier, folder, &warning).await, "sent twice");
        assert_eq!(notifier.send("Expiring", &warning).await.result, Some(accepted), "the first time");
        // A mail with another deadline, and one about another Instance, have not been accepted.
        assert!(arrives(&notifier, folder, &mail("b/0/soon", "b")).await);
        assert!(!arrives(&notifier, folder, &warning).await, "that about the other one changes nothing");
        assert!(arrives(&notifier, folder, &mail("a/0/later", "a")).await);
    }

    #[tokio::test]
    async fn what_is_remembered_of_mails_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let (notifier, folder) = (notifier(folder.path()), folder.path());
        let warning = mail("a/0/soon", "a");
        let known = |notifier: &Notifier| notifier.accepted.lock().len();
        let promise = Promise { warnings: 1, ..Promise::default() };
        for promise in [Some(&promise), None] {
            assert!(arrives(&notifier, folder, &warning).await);
            assert_eq!(known(&notifier), 1);
            notifier.record(&instance("a"), promise, None);
            assert_eq!(known(&notifier), 0, "it is written, or withdrawn");
        }
        assert!(arrives(&notifier, folder, &warning).await);
        notifier.forget(&ObjectKey::new("tenant-ada", "a"));
        assert_eq!(known(&notifier), 0, "the Instance is gone");
        // However many mails there are about an Instance, one is remembered.
        for key in ["a/0/soon", "a/0/later", "a/1/later"] {
            assert!(arrives(&notifier, folder, &mail(key, "a")).await);
        }
        assert_eq!(known(&notifier), 1);
    }
}
