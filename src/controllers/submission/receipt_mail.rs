//! The mail with the receipts of an upload. It is sent once, after the request has ended, so it never affects the upload.
//!
//! The annotation `crownlabs.polito.it/mailed-submission-receipt` of the Instance has the time of the upload whose receipts
//! were sent. Until it is written, the leader knows that the mail was accepted.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::Settings;
use super::observe::{Observed, stored_condition};
use crate::api::condition::SUBMITTED;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::reason::{MAIL_UNDELIVERABLE, SUBMISSION_COMPLETED};
use crate::clients::mail::{Mail, MailError, MailKind, Wording};
use crate::controllers::cleanup::delivery::{Delivered, Managers, Notice, Post, Sent, send};
use crate::controllers::cleanup::ending::{Effect, full_name};
use crate::controllers::cleanup::mail_log::{MailLog, Mailed, annotated, record};
use crate::controllers::shared::waits::passed;
use crate::runtime::ObjectKey;
use crate::runtime::clock::rfc3339;
use crate::runtime::component::Component;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::events::EventNote;
use crate::runtime::plan::{KindInfo, Plan};
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{EffectError, EffectOutcome, Outcome, Report};

/// How long after an upload the mail is tried.
const TRIED_FOR: Duration = Duration::from_hours(7 * 24);
/// The time between two attempts to send a mail that the server permanently rejects, as for warnings.
const REFUSED_RETRY: Duration = Duration::from_hours(1);

/// What the leader remembers about the mail of an Instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mailing {
    /// The accepted mails.
    pub accepted: Mailed,
    /// When the server permanently rejected the mail.
    pub refused: Option<Timestamp>,
}

/// The mails of the loop.
#[derive(Default)]
pub struct Mailings {
    accepted: MailLog,
    refused: Mutex<BTreeMap<ObjectKey, Timestamp>>,
}

impl Mailings {
    /// What is remembered about the mail of an Instance.
    pub fn of(&self, instance: &Instance) -> Mailing {
        let refused = self.refused.lock().get(&ObjectKey::of(instance)).copied();
        Mailing { accepted: self.accepted.of(instance), refused }
    }

    /// Drops the entry of an Instance that no longer exists.
    pub fn forget(&self, instance: &ObjectKey) {
        self.accepted.forget(instance);
        self.refused.lock().remove(instance);
    }

    /// Sends a mail. A failure is returned as a problem.
    pub async fn send(&self, post: &impl Post, notice: &Notice) -> Delivered {
        let mail = &notice.mail;
        let key = ObjectKey::new(mail.namespace.as_str(), mail.instance_name.as_str());
        let (result, error) = match send(post, mail).await {
            Ok(()) => {
                self.refused.lock().remove(&key);
                // The time of the upload, not of the mail: it does not depend on the clock of this machine.
                self.accepted.remember(notice, Sent::at(mail.deadline), mail.deadline);
                return EffectOutcome::done(Sent::at(mail.deadline));
            }
            Err(MailError::NotLeader) => (None, EffectError::NotLeader),
            Err(error) if error.is_undeliverable() => {
                let now = post.now();
                self.refused.lock().insert(key, now);
                let problem = Problem::fault(Component::Whole, MAIL_UNDELIVERABLE, error.to_string());
                (Some(Sent { accepted: None, refused: Some(now) }), EffectError::Postponed(problem))
            }
            Err(error) => {
                let problem = Problem::fault(Component::Whole, error.reason(), error.to_string());
                (None, EffectError::Failed(problem))
            }
        };
        EffectOutcome { result, error: Some(error) }
    }
}

/// The record of the mail.
fn mail_record() -> String {
    record(MailKind::SubmissionReceipt, false)
}

/// The time of the upload that has receipts, and whether they were sent; `None` without receipts.
fn uploaded(instance: &Instance, accepted: &Mailed) -> Option<(Timestamp, bool)> {
    let is_complete = stored_condition(instance).is_some_and(|known| known.reason == SUBMISSION_COMPLETED);
    let uploaded = instance.status.automation.submission_time.as_ref()?.0;
    let is_sent = accepted.last(instance, &mail_record()).is_some_and(|sent| sent >= uploaded);
    (is_complete && !instance.status.receipts().is_empty()).then_some((uploaded, is_sent))
}

/// The time of the upload whose receipts must still be sent; `None` if there are none, or if they were sent.
pub fn owed(instance: &Instance, accepted: &Mailed) -> Option<Timestamp> {
    uploaded(instance, accepted).filter(|(_, is_sent)| !is_sent).map(|(uploaded, _)| uploaded)
}

/// Adds the mail to the plan of an Instance without a request, or the time of the next attempt.
pub fn add(observed: &Observed, settings: &Settings, now: Timestamp, plan: &mut Plan<Effect>) {
    let Mailing { accepted, refused } = &observed.mailing;
    let uploaded = owed(&observed.instance, accepted).filter(|_| settings.sends);
    let Some(uploaded) = uploaded.filter(|uploaded| passed(*uploaded, now) < TRIED_FOR) else { return };
    let since_refusal = refused.map(|refused| passed(refused, now));
    if let Some(left) =
        since_refusal.and_then(|passed| REFUSED_RETRY.checked_sub(passed)).filter(|left| !left.is_zero())
    {
        plan.requeue_after(left);
    } else if let Some(notice) = notice(observed, settings, uploaded) {
        plan.effects.push(Effect::Mail(Box::new(notice)));
        // Another leader may have sent it.
        plan.confirm.push((KindInfo::of::<InstanceKind>(), ObjectKey::of(&*observed.instance)));
    }
}

/// The mail; `None` without a Tenant.
fn notice(observed: &Observed, settings: &Settings, uploaded: Timestamp) -> Option<Notice> {
    let (instance, tenant) = (&observed.instance, observed.tenant.as_ref()?);
    let kind = MailKind::SubmissionReceipt;
    let mail = Mail {
        kind,
        end: None,
        warning: None,
        key: format!("{}/{kind:?}/{}", instance.uid(), rfc3339(uploaded)),
        tenant_name: tenant.name().to_owned(),
        full_name: full_name(tenant),
        tenant_email: tenant.spec.email.clone(),
        pretty_name: instance.spec.pretty_name.clone(),
        instance_name: instance.name().to_owned(),
        namespace: instance.namespace().to_owned(),
        remaining: Duration::ZERO,
        deadline: uploaded,
        files: instance.status.receipts().into_iter().cloned().collect(),
        link: settings.site.page(instance),
        created: instance.metadata.creation_timestamp.as_ref().map_or(uploaded, |time| time.0),
        wording: Wording::Templates,
    };
    let uid = instance.uid().to_owned();
    Some(Notice { mail, uid, number: 0, course: String::new(), managers: Managers::Notified })
}

/// The report about an Instance without a request: whether its mail was sent is a part of the message of the condition.
pub fn report(observed: &Observed, outcome: &Outcome<Sent>, now: Timestamp) -> Report<InstanceKind> {
    let instance = &observed.instance;
    let mut report = Report::unchanged(instance);
    let lacking = observed.mailing.accepted.annotations(instance, &[(mail_record(), None)]);
    report.patch = annotated(instance, None, &lacking);
    let effect = outcome.effects.first();
    let problem = outcome.effect_problems().next();
    let is_sent = || uploaded(instance, &observed.mailing.accepted).is_some_and(|(_, is_sent)| is_sent);
    let message = match problem {
        Some(problem) => {
            format!("the content was uploaded; the receipt is not sent yet: {}", problem.message)
        }
        // A former leader may have sent it, and ended before it wrote the condition.
        None if effect.is_some() || is_sent() => "the content was uploaded; the receipt was sent".to_owned(),
        None => return report,
    };
    let observation = Observation::new(SUBMITTED, true, SUBMISSION_COMPLETED, message);
    let is_known = stored_condition(instance).is_some_and(|known| *known.message == *observation.message);
    if let Some(problem) = problem.filter(|_| !is_known) {
        report.events.push(EventNote::warning(problem.reason, &*problem.message));
    }
    let (known, generation) = (&instance.status.conditions, instance.metadata.generation);
    report.status.conditions = conditions::merge(known, &[observation], &[], generation, now);
    report.requeue_after =
        effect.and_then(|effect| effect.result).and_then(|sent| sent.refused).map(|_| REFUSED_RETRY);
    report
}
