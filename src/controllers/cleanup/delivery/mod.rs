//! Delivers mails to Tenants, and to managers if a mail cannot be delivered.
//!
//! If the server permanently rejects a mail because of its content or because the mailbox does not exist, the mail is
//! sent once more without any text of the user. If the server then rejects the mailbox, the managers of the course are
//! notified about the undelivered warning. Every other failure, such as a rejected login or a policy against this
//! installation, counts as an outage, and the mail is retried.

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

/// A mail to the Tenant of an Instance, and the managers to notify if it cannot be delivered.
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

/// The managers of a course, who are notified if a warning cannot be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Managers {
    /// They have already been notified.
    Notified,
    /// They must still be notified.
    Notify(Vec<Manager>),
}

/// The result of the delivery of a mail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// When the mail server accepted the mail, or the mail to the managers that counts as a substitute.
    pub accepted: Option<Timestamp>,
    /// When the mail server permanently rejected it.
    pub refused: Option<Timestamp>,
}

/// The outcome of sending a mail.
pub type Delivered = EffectOutcome<Sent>;

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

    /// The time used as the time of acceptance.
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

/// Sends a mail and records an accepted mail in the log. A failure is returned as a problem.
pub async fn deliver(
    post: &impl Post,
    log: &MailLog,
    notice: &Notice,
    undeliverable: Undeliverable,
) -> Delivered {
    let proceeds = undeliverable == Undeliverable::Proceed;
    let error = match send(post, &notice.mail).await {
        Ok(()) => {
            let at = whole(post.now());
            log.remember(notice, Sent::at(at), at);
            return EffectOutcome::done(Sent::at(at));
        }
        Err(error) if !error.is_undeliverable() => return postponed(&error),
        Err(error) => error,
    };
    let mut words = error.to_string();
    if !matches!(error, MailError::BadRecipient { .. }) {
        words.push_str("; the server also rejects a mail without any text of the user");
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
            (true, true) => "; the managers of the course were notified, and the deadline counts from then",
            (true, false) => "; the managers of the course were notified, and the Instance is kept",
            (false, _) => "; no manager of the course could be notified, so the Instance is kept",
        });
    } else {
        // A final mail has no deadline to protect: the warnings were accepted.
        sent.accepted = sent.refused.filter(|_| proceeds);
    }
    let problem = Problem::fault(Component::Whole, MAIL_UNDELIVERABLE, words);
    EffectOutcome { result: Some(sent), error: Some(EffectError::Postponed(problem)) }
}

/// Rounds a time as the status stores it.
fn whole(time: Timestamp) -> Timestamp {
    promise::time(time).map_or(time, |time| time.0)
}

/// Sends a mail. If the server permanently rejects it, sends it once more without any text of the user.
///
/// # Errors
/// The error of the last attempt.
pub async fn send(post: &impl Post, mail: &Mail) -> Result<(), MailError> {
    match post.send(mail).await {
        Err(error) if error.is_about_the_mail() => post.send(&mail.plain()).await,
        result => result,
    }
}

/// Notifies the managers that a mail cannot be delivered. Returns whether any of them was notified, or an error if that
/// is not known yet because a mail was temporarily rejected.
async fn notify_managers(post: &impl Post, notice: &Notice, is_kept: bool) -> Result<bool, MailError> {
    let Managers::Notify(managers) = &notice.managers else { return Ok(true) };
    let mut is_known = false;
    let mut failed = None;
    for manager in managers {
        match post.send(&notice.mail.to_manager(manager, &notice.course, is_kept)).await {
            Ok(()) => is_known = true,
            Err(MailError::NotLeader) => return Err(MailError::NotLeader),
            Err(error) => failed = failed.or(Some(error).filter(|error| !error.is_undeliverable())),
        }
    }
    failed.filter(|_| !is_known).map_or(Ok(is_known), Err)
}

/// The outcome of a mail that was not accepted for now.
fn postponed(error: &MailError) -> Delivered {
    let error = if *error == MailError::NotLeader {
        EffectError::NotLeader
    } else {
        let message = format!("{error}; the mail is retried, and the deadline moves accordingly");
        EffectError::Failed(Problem::fault(Component::Whole, error.reason(), message))
    };
    EffectOutcome { result: None, error: Some(error) }
}

#[cfg(test)]
pub mod tests;
