//! The ending of an Instance: the code that the inactivity and expiration loops share. The loops differ in the time
//! that they count from, in their mails, and in the action at the deadline.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::delivery::{Delivered, Managers, Notice, Sent};
use super::mail_log::record;
use super::promise::{self, Due, Terms, later, number};
use super::stores::Candidate;
use crate::api::condition::ConditionType;
use crate::api::instance::InstanceKind;
use crate::api::lifetime::LifetimeError;
use crate::api::openings::Site;
use crate::api::promise::{End, Promise};
use crate::api::reason::{INVALID_DURATION, Reason, TENANT_NOT_FOUND};
use crate::api::template::Template;
use crate::api::tenant::Tenant;
use crate::clients::mail::{Mail, MailKind, Manager, Wording};
use crate::config::Undeliverable;
use crate::runtime::clock::rfc3339;
use crate::runtime::component::Component;
use crate::runtime::plan::{KindInfo, Plan, Requeue};
use crate::runtime::problem::Problem;
use crate::runtime::{ObjectKey, reconciler};

/// The time between two checks of an Instance without a Tenant. A missing object wakes no loop.
const MISSING_RETRY: Duration = Duration::from_mins(10);

/// The maximum number of managers of a course that are notified about an undeliverable warning.
const MANAGERS: usize = 5;

/// A kind of ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndingKind {
    /// The type of its condition.
    pub condition: ConditionType,
    /// The mail that warns.
    pub warning: MailKind,
    /// The mail sent once the Instance has ended.
    pub last: MailKind,
    /// The reason of the event about a warning.
    pub warned: Reason,
    /// The reason of the event about the end.
    pub ended: Reason,
    /// The action at the deadline.
    pub end: End,
}

/// The effects of these loops outside of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Asks the sources of metrics for the last use of all Instances.
    Check,
    /// Sends a mail. The result says whether it was accepted or refused.
    Mail(Box<Notice>),
}

impl reconciler::Effect for Effect {
    type Result = Sent;
}

/// The ending of an Instance: when it is stopped or deleted, and which mails are sent first.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending<'a> {
    /// Its kind.
    pub kind: EndingKind,
    /// The Instance and the objects around it.
    pub candidate: &'a Candidate,
    /// The action if a warning is permanently rejected.
    pub undeliverable: Undeliverable,
    /// The terms, from the Template and the configuration.
    pub terms: Terms,
    /// The start of the terms.
    pub since: Timestamp,
    /// The promise that applies from now on; it has no warnings if the Instance has been used since.
    pub promise: Promise,
}

impl Ending<'_> {
    /// The step that is due.
    pub fn due(&self, now: Timestamp) -> Due {
        promise::due(&self.terms, self.since, &self.promise, now)
    }

    /// The mail that is due, if any, or the problem if its Tenant does not exist.
    pub fn notice(&self, now: Timestamp, site: &Site) -> Result<Option<Notice>, Problem> {
        let (kind, deadline) = match self.due(now) {
            Due::Warn(deadline) => (self.kind.warning, deadline),
            Due::Final(deadline) => (self.kind.last, deadline),
            Due::Never | Due::At(_) | Due::Act => return Ok(None),
        };
        let instance = &self.candidate.instance;
        let Some(tenant) = &self.candidate.tenant else {
            let name = &instance.spec.tenant_ref.name;
            let message = format!(
                "Tenant {name} does not exist or does not own the namespace; no warning can be sent, so the Instance is kept"
            );
            return Err(Problem::elsewhere(Component::Whole, TENANT_NOT_FOUND, message));
        };
        let left = self.terms.warnings.saturating_sub(number(&self.promise));
        let is_warning = kind == self.kind.warning;
        let mail = Mail {
            kind,
            // Two warnings may name the same deadline, so the key contains their number.
            key: format!("{}/{kind:?}-{}/{}", instance.uid(), self.promise.warnings, rfc3339(deadline)),
            end: Some(self.kind.end),
            warning: is_warning.then(|| (number(&self.promise).saturating_add(1), self.terms.warnings)),
            tenant_name: tenant.name().to_owned(),
            full_name: full_name(tenant),
            tenant_email: tenant.spec.email.clone(),
            pretty_name: instance.spec.pretty_name.clone(),
            instance_name: instance.name().to_owned(),
            namespace: instance.namespace().to_owned(),
            remaining: self.terms.interval.saturating_mul(if is_warning { left } else { 0 }),
            deadline,
            files: Vec::new(),
            link: site.page(instance),
            created: self.candidate.created(now),
            wording: Wording::Templates,
        };
        let template = self.candidate.template.as_ref();
        let course =
            template.map(|template| template.spec.workspace_ref.name.to_string()).unwrap_or_default();
        let (uid, number) = (instance.uid().to_owned(), self.promise.warnings);
        Ok(Some(Notice { mail, uid, number, course, managers: self.managers(kind, now) }))
    }

    /// The managers to notify if a mail cannot be delivered. If the Instance is kept, they are notified once, and at
    /// most once per interval.
    fn managers(&self, kind: MailKind, now: Timestamp) -> Managers {
        let Candidate { instance, managers, mailed, .. } = self.candidate;
        let sent = mailed.last(instance, &record(kind, true));
        let knows = |sent| self.promise.undeliverable.is_some() || now < later(sent, self.terms.interval);
        if self.undeliverable == Undeliverable::Keep && sent.is_some_and(knows) {
            return Managers::Notified;
        }
        let named = managers.iter().take(MANAGERS);
        let manager = |tenant: &Arc<Tenant>| Manager {
            name: tenant.name().to_owned(),
            full_name: full_name(tenant),
            email: tenant.spec.email.clone(),
        };
        Managers::Notify(named.map(manager).collect())
    }

    /// The annotations about accepted mails that are missing on the Instance; `is_last` selects the mail that says that
    /// the deadline has passed.
    pub fn mailed_annotations(&self, is_last: bool) -> Map<String, Value> {
        let Candidate { instance, mailed, .. } = self.candidate;
        if is_last {
            // Another process may have sent it.
            let sent = self.promise.final_mail.as_ref().map(|mail| mail.0);
            return mailed.annotations(instance, &[(record(self.kind.last, false), sent)]);
        }
        let kind = self.kind.warning;
        mailed.annotations(instance, &[(record(kind, false), None), (record(kind, true), None)])
    }

    /// The promise before a mail of the plan is sent (`outcome` is `None`), and after.
    pub fn promised(&self, notice: Option<&Notice>, outcome: Option<&Delivered>, now: Timestamp) -> Promise {
        let promise =
            notice.map_or_else(|| self.promise.clone(), |notice| self.after_mail(notice, outcome, now));
        Promise { next_warning: promise::next_warning(&self.terms, self.since, &promise), ..promise }
    }

    fn after_mail(&self, notice: &Notice, outcome: Option<&Delivered>, now: Timestamp) -> Promise {
        let sent = outcome.and_then(|outcome| outcome.result).unwrap_or_default();
        if notice.mail.kind == self.kind.last {
            let until = || promise::time(later(now, self.terms.interval));
            let sending = self.promise.sending.clone().or_else(until);
            let undeliverable = sent.refused.and_then(promise::time);
            let undeliverable = undeliverable.or_else(|| self.promise.undeliverable.clone());
            let final_mail = sent.accepted.and_then(promise::time);
            return Promise { sending, undeliverable, final_mail, ..self.promise.clone() };
        }
        if self.promise.warnings != notice.number {
            // The mail is in the log, so it already counts.
            return self.promise.clone();
        }
        let sending = Promise { sending: promise::time(notice.mail.deadline), ..self.promise.clone() };
        promise::sent(&self.terms, &sending, sent)
    }
}

/// First and last name of a Tenant.
pub fn full_name(tenant: &Tenant) -> String {
    format!("{} {}", tenant.spec.first_name.trim(), tenant.spec.last_name.trim()).trim().to_owned()
}

/// Describes the ending of an Instance in a sentence for `crownlabs plan`. Returns nothing if the Instance has no end.
pub fn remarks(ending: Result<Option<Ending<'_>>, LifetimeError>, now: Timestamp) -> Vec<String> {
    let Ok(Some(ending)) = ending else { return Vec::new() };
    let action = format!("the Instance is {}", ending.kind.end.action());
    let (when, due) = match ending.due(now) {
        Due::At(time) => (format!("at {}", rfc3339(time)), ending.due(time)),
        due => ("now".to_owned(), due),
    };
    vec![match due {
        Due::Warn(deadline) => {
            format!("a warning is due {when}; {action} at {} at the earliest", rfc3339(deadline))
        }
        Due::Final(_) => format!("{action} {when}, after a last mail"),
        Due::Act => format!("{action} {when}"),
        Due::Never | Due::At(_) => format!("{action} never"),
    }]
}

/// The effective number of warnings of a Template: the number in its annotation if that is valid, or the configured
/// number. A negative number means no warnings.
pub fn warnings(template: &Template, configured: u32) -> u32 {
    let own = template.annotation(crate::api::labels::CUSTOM_NUMBER_ALERTS);
    let own = own.and_then(|text| text.trim().parse::<i64>().ok());
    own.map_or(configured, |number| u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}

/// Returns the ending of an Instance if there is one. Otherwise the plan waits for a change. If the time in the
/// Template cannot be parsed, the plan reports that, and the time counts as never.
pub fn sound<'e>(
    ending: Result<Option<Ending<'e>>, LifetimeError>,
    unreadable: impl FnOnce(LifetimeError) -> String,
    plan: &mut Plan<Effect>,
) -> Option<Ending<'e>> {
    let ending = ending.unwrap_or_else(|error| {
        plan.problems.push(Problem::fault(Component::Whole, INVALID_DURATION, unreadable(error)));
        None
    });
    if ending.is_none() {
        // The Template, the namespace and the Instance are watched.
        plan.requeue = Requeue::OnChange;
    }
    ending
}

/// Adds the step that is due to a plan: a mail, or the time of the next check. Returns whether the Instance is to be
/// stopped or deleted now. Both happen only after the API server has confirmed the Instance.
pub fn proceed(ending: &Ending<'_>, now: Timestamp, site: &Site, plan: &mut Plan<Effect>) -> bool {
    let due = ending.due(now);
    match (due, ending.notice(now, site)) {
        (Due::Never, _) => plan.requeue = Requeue::OnChange,
        (Due::At(time), _) => {
            plan.requeue_after(Duration::try_from(time.duration_since(now)).unwrap_or_default());
        }
        (_, Err(problem)) => {
            plan.problems.push(problem);
            plan.requeue_after(MISSING_RETRY);
        }
        (_, Ok(notice)) => {
            plan.effects.extend(notice.map(|notice| Effect::Mail(Box::new(notice))));
            plan.confirm.push((KindInfo::of::<InstanceKind>(), ObjectKey::of(&*ending.candidate.instance)));
            plan.announce = true;
        }
    }
    due == Due::Act
}
