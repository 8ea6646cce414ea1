//! The notifier of a loop that warns Tenants. It holds the connection to the mail server, the accepted mails, and the
//! gauges about the promises of the loop.

use super::delivery::{Delivered, Notice, deliver};
use super::mail_log::{MailLog, Mailed};
use super::promises::Promises;
use crate::api::instance::Instance;
use crate::api::promise::Promise;
use crate::clients::mail::Mailer;
use crate::config::{Undeliverable, read};
use crate::controllers::setup::Setup;
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::EffectOutcome;

/// The mails of a loop and the gauges about its promises.
pub struct Notifier {
    /// `None` if no warnings are sent.
    mailer: Option<Mailer>,
    undeliverable: Undeliverable,
    log: MailLog,
    promises: Promises,
}

impl Notifier {
    /// Creates the notifier of the loop called `name`. It sends mails only if `notifications` is set.
    pub fn new(name: &'static str, setup: &mut Setup<'_>, notifications: bool) -> Self {
        let mailer = setup.mailer().filter(|_| notifications);
        let undeliverable = *read!(setup.config, integrations.mail.undeliverable);
        Self { mailer, undeliverable, log: MailLog::default(), promises: Promises::new(name) }
    }

    /// Sends a mail. A failure is returned as a problem.
    pub async fn send(&self, notice: &Notice) -> Delivered {
        match &self.mailer {
            Some(mailer) => deliver(mailer, &self.log, notice, self.undeliverable).await,
            None => EffectOutcome { result: None, error: None },
        }
    }

    /// The accepted mails about an Instance.
    pub fn mailed(&self, instance: &Instance) -> Mailed {
        self.log.of(instance)
    }

    /// Records the status of an Instance: `promise` is the current promise, `witness` the source of its last known use.
    /// Updates the gauges.
    pub fn record(&self, instance: &Instance, promise: Option<&Promise>, witness: Option<&str>) {
        let key = ObjectKey::of(instance);
        self.log.settle(&key, promise);
        self.promises.record(&key, promise, witness);
    }

    /// Drops the entry of the Instance with this key, which has no promise.
    pub fn forget(&self, key: &ObjectKey) {
        self.log.forget(key);
        self.promises.record(key, None, None);
    }
}
