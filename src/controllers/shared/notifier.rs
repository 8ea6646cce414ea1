//! What the loops that warn Tenants keep in memory: the way to the mail server, and the gauges about their promises.

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
    promises: Promises,
}

impl Notifier {
    /// The notifier of the loop called `name`; it sends mails only with `notifications`.
    pub fn new(name: &'static str, setup: &Setup<'_>, notifications: bool) -> Self {
        let mailer = setup.mailer.clone().filter(|_| notifications);
        Self { mailer, promises: Promises::new(name) }
    }

    /// Sends a mail. The result is the time at which the server accepted it. A failure is a problem of the condition
    /// `component`.
    pub async fn send(&self, component: &str, mail: &Mail) -> EffectOutcome<Timestamp> {
        let Some(mailer) = &self.mailer else { return EffectOutcome { result: None, error: None } };
        match mailer.send(mail).await {
            Ok(()) => EffectOutcome::done(clock::stated()),
            Err(MailError::NotLeader) => EffectOutcome { result: None, error: Some(EffectError::NotLeader) },
            Err(error) => {
                let message = format!("{error}; it is sent again, and the deadline moves accordingly");
                let problem = Problem::fault(component, error.reason(), message);
                EffectOutcome { result: None, error: Some(EffectError::Failed(problem)) }
            }
        }
    }

    /// Updates the gauges: `promise` is what is promised about the Instance now, `witness` what its last use is known
    /// from.
    pub fn record(&self, instance: &Instance, promise: Option<&Promise>, witness: Option<&str>) {
        self.promises.record(&ObjectKey::of(instance), promise, witness);
    }

    /// Updates the gauges: nothing is promised about the Instance with this key.
    pub fn forget(&self, key: &ObjectKey) {
        self.promises.record(key, None, None);
    }
}
