//! The notifier of a loop that warns Tenants: the connection to the mail server, the mails that it has accepted, and the gauges
//! about the promises of the loop.

use super::delivery::{Notice, Sent, deliver};
use super::mail_log::{MailLog, Mailed};
use super::promises::Promises;
use crate::api::instance::Instance;
use crate::api::promise::Promise;
use crate::clients::mail::Mailer;
use crate::config::Undeliverable;
use crate::controllers::setup::Setup;
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::EffectOutcome;

/// The mails of a loop and the gauges about its promises.
pub struct Notifier {
    /// `None` where nobody is warned.
    mailer: Option<Mailer>,
    undeliverable: Undeliverable,
    log: MailLog,
    promises: Promises,
}

impl Notifier {
    /// The notifier of the loop called `name`; it sends mails only with `notifications`.
    pub fn new(name: &'static str, setup: &Setup<'_>, notifications: bool) -> Self {
        let mailer = setup.mailer.clone().filter(|_| notifications);
        let undeliverable = setup.config.integrations.mail.undeliverable;
        Self { mailer, undeliverable, log: MailLog::default(), promises: Promises::new(name) }
    }

    /// Sends a mail. A failure is a problem.
    pub async fn send(&self, notice: &Notice) -> EffectOutcome<Sent> {
        match &self.mailer {
            Some(mailer) => deliver(mailer, &self.log, notice, self.undeliverable).await,
            None => EffectOutcome { result: None, error: None },
        }
    }

    /// The mails about an Instance that were accepted.
    pub fn mailed(&self, instance: &Instance) -> Mailed {
        self.log.of(instance)
    }

    /// Takes what the status of an Instance says: `promise` is what is promised about it now, `witness` what its last
    /// use is known from. Updates the gauges.
    pub fn record(&self, instance: &Instance, promise: Option<&Promise>, witness: Option<&str>) {
        let key = ObjectKey::of(instance);
        self.log.settle(&key, promise);
        self.promises.record(&key, promise, witness);
    }

    /// Drops what is known of the Instance with this key: nothing is promised about it.
    pub fn forget(&self, key: &ObjectKey) {
        self.log.forget(key);
        self.promises.record(key, None, None);
    }
}
