//! The delivery of mails to Tenants, and to managers where a mail cannot be delivered.
//!
//! A mail that the server refuses for good, for its content or because there is no such mailbox, is sent once more without
//! any text of the user. If that is refused, too, the managers of the course are told of a warning. What fails for a while is
//! tried again.

use std::future::Future;

use jiff::Timestamp;

use super::mail_log::MailLog;
use super::promise;
use crate::api::reason::MAIL_UNDELIVERABLE;
use crate::clients::mail::{Mail, MailError, Mailer, Manager};
use crate::config::Undeliverable;
use crate::runtime::clock;
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{EffectError, EffectOutcome};

/// A mail to the Tenant of an Instance, and who is told if it cannot be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The mail.
    pub mail: Mail,
    /// The uid of the Instance.
    pub uid: String,
    /// How many warnings were accepted before.
    pub number: i64,
    /// The Workspace of the Template.
    pub course: String,
    /// Its managers.
    pub managers: Managers,
}

/// The managers of a course, who are told of a warning that cannot be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Managers {
    /// They know already.
    Notified,
    /// These are to be told.
    Notify(Vec<Manager>),
}

/// The result of the delivery of a mail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// When the mail server accepted it, or the mail to managers that counts as it.
    pub accepted: Option<Timestamp>,
    /// When the mail server refused it for good.
    pub refused: Option<Timestamp>,
}

impl Sent {
    /// The mail server has accepted the mail.
    pub fn at(accepted: Timestamp) -> Self {
        Self { accepted: Some(accepted), refused: None }
    }
}

/// A sender of mails.
pub trait Post: Sync {
    /// Sends a mail. Success means that the server has accepted it.
    fn send(&self, mail: &Mail) -> impl Future<Output = Result<(), MailError>> + Send;

    /// The time that acceptances are dated by.
    fn now(&self) -> Timestamp;
}

impl Post for Mailer {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        Self::send(self, mail).await
    }

    fn now(&self) -> Timestamp {
        clock::stated()
    }
}

/// Sends a mail, and remembers in the log what was accepted. A failure is a problem.
pub async fn deliver(
    post: &impl Post,
    log: &MailLog,
    notice: &Notice,
    undeliverable: Undeliverable,
) -> EffectOutcome<Sent> {
    let proceeds = undeliverable == Undeliverable::Proceed;
    let error = match send(post, &notice.mail).await {
        Ok(()) => {
            let at = whole(post.now());
            log.remember(notice, Sent::at(at), at);
            return EffectOutcome::done(Sent::at(at));
        }
        Err(error) if !error.is_final() => return postponed(&error),
        Err(error) => error,
    };
    let mut words = error.to_string();
    if !matches!(error, MailError::BadRecipient { .. }) {
        words.push_str("; it is refused without any text of the user, too");
    }
    let mut sent = Sent { accepted: None, refused: Some(whole(post.now())) };
    if notice.mail.kind.is_warning() {
        let is_known = match notify_managers(post, notice, !proceeds).await {
            Ok(is_known) => is_known,
            Err(error) => return postponed(&error),
        };
        let at = whole(post.now());
        if is_known && proceeds {
            sent.accepted = Some(at);
            log.remember(notice, sent, at);
        } else if is_known && notice.managers != Managers::Notified {
            log.remember_managers(notice, at);
        }
        words.push_str(match (is_known, proceeds) {
            (true, true) => "; the managers of the course were told, and the deadline counts from that",
            (true, false) => "; the managers of the course were told, and the Instance is kept",
            (false, _) => "; no manager of the course could be told, so the Instance is kept",
        });
    } else {
        // Nobody has to be told in time: the warnings were accepted.
        sent.accepted = sent.refused.filter(|_| proceeds);
    }
    let problem = Problem::fault(Component::Whole, MAIL_UNDELIVERABLE, words);
    EffectOutcome { result: Some(sent), error: Some(EffectError::Postponed(problem)) }
}

/// A time as the status holds it.
fn whole(time: Timestamp) -> Timestamp {
    promise::time(time).map_or(time, |time| time.0)
}

/// Sends a mail; if it is refused for good, once more in our words.
async fn send(post: &impl Post, mail: &Mail) -> Result<(), MailError> {
    match post.send(mail).await {
        // There is nobody to send anything to.
        Err(error @ MailError::BadRecipient { .. }) => Err(error),
        Err(error) if error.is_final() => post.send(&mail.plain()).await,
        result => result,
    }
}

/// Tells the managers that a mail cannot be delivered; returns whether any of them knows. An error where that is not known
/// yet, because a mail was not accepted for now.
async fn notify_managers(post: &impl Post, notice: &Notice, is_kept: bool) -> Result<bool, MailError> {
    let Managers::Notify(managers) = &notice.managers else { return Ok(true) };
    let mut is_known = false;
    let mut failed = None;
    for manager in managers {
        match post.send(&notice.mail.to_manager(manager, &notice.course, is_kept)).await {
            Ok(()) => is_known = true,
            Err(MailError::NotLeader) => return Err(MailError::NotLeader),
            Err(error) => failed = failed.or(Some(error).filter(|error| !error.is_final())),
        }
    }
    failed.filter(|_| !is_known).map_or(Ok(is_known), Err)
}

/// A mail was not accepted, for now.
fn postponed(error: &MailError) -> EffectOutcome<Sent> {
    let error = if *error == MailError::NotLeader {
        EffectError::NotLeader
    } else {
        let message = format!("{error}; it is sent again, and the deadline moves accordingly");
        EffectError::Failed(Problem::fault(Component::Whole, error.reason(), message))
    };
    EffectOutcome { result: None, error: Some(error) }
}

#[cfg(test)]
pub mod tests;
