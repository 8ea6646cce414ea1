//! Records which mails about an Instance were accepted, and when. At most one mail of a kind is sent per interval, even
//! if the status is reverted in between.
//!
//! The time of the last mail of each kind is stored in an annotation of the Instance that only the daemon may write;
//! the webhook enforces this. Until the annotation is written, and in clusters without webhooks, the leader keeps the
//! time in memory.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::delivery::{Notice, Sent};
use super::promise;
use crate::api::instance::Instance;
use crate::api::labels::MAILED_PREFIX;
use crate::api::promise::Promise;
use crate::clients::mail::MailKind;
use crate::runtime::clock::rfc3339;
use crate::runtime::plan::ObjectPatch;
use crate::runtime::{ObjectKey, merge};

/// The key of the annotation with the time of the last mail of a kind, or of the last mail that told managers that a
/// mail of this kind cannot be delivered.
pub fn record(kind: MailKind, is_to_managers: bool) -> String {
    let name = kind.label().replace('_', "-");
    format!("{MAILED_PREFIX}{name}{}", if is_to_managers { "-managers" } else { "" })
}

/// The accepted mails about an Instance, as the leader remembers them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mailed {
    /// When the last mail of each [`record`] was accepted, in whole seconds.
    times: BTreeMap<String, Timestamp>,
    /// The last warning, until the status is known to contain its acceptance.
    unsettled: Option<Warned>,
}

/// A warning that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Warned {
    kind: MailKind,
    number: i64,
    deadline: Timestamp,
    sent: Sent,
}

impl Mailed {
    /// When the last mail of a record was accepted, from the annotation or from memory. The result may be later than
    /// the current time that decisions use, because a clock may be slow.
    pub fn last(&self, instance: &Instance, record: &str) -> Option<Timestamp> {
        let annotated = instance.annotation(record).and_then(|text| text.parse().ok());
        annotated.into_iter().chain(self.times.get(record).copied()).max()
    }

    /// Updates a promise whose status says that a warning of this kind is being sent, if the leader knows that the
    /// warning was accepted.
    pub fn accepted(&self, terms: &promise::Terms, kind: MailKind, promise: Promise) -> Promise {
        let Some(known) = self.unsettled.as_ref().filter(|known| known.kind == kind) else { return promise };
        let sending = promise.sending.as_ref().map(|sending| sending.0);
        if sending != Some(known.deadline) || promise.warnings != known.number {
            return promise;
        }
        promise::sent(terms, &promise, known.sent)
    }

    /// The annotations of these records that are missing on an Instance. Each record comes with the time known from
    /// elsewhere, if any.
    pub fn annotations(
        &self,
        instance: &Instance,
        records: &[(String, Option<Timestamp>)],
    ) -> Map<String, Value> {
        let known = records.iter().filter_map(|(record, otherwise)| {
            let remembered = self.times.get(record).copied();
            Some((record, remembered.max(*otherwise)?))
        });
        let lacks = known.filter(|(record, time)| {
            let annotated = instance.annotation(record).and_then(|text| text.parse::<Timestamp>().ok());
            annotated.is_none_or(|annotated| annotated < *time)
        });
        lacks.map(|(record, time)| (record.clone(), rfc3339(time).into())).collect()
    }
}

/// Adds these annotations to a patch of an Instance.
pub fn annotated(
    instance: &Instance,
    patch: Option<ObjectPatch>,
    annotations: &Map<String, Value>,
) -> Option<ObjectPatch> {
    if annotations.is_empty() {
        return patch;
    }
    let mut patch = patch.unwrap_or_else(|| ObjectPatch::exactly(instance, json!({})));
    merge::apply(&mut patch.patch, &json!({"metadata": {"annotations": annotations}}));
    Some(patch)
}

/// All accepted mails that the leader remembers, by the Instance that they are about, with its uid.
#[derive(Default)]
pub struct MailLog {
    known: Mutex<BTreeMap<ObjectKey, (String, Mailed)>>,
}

impl MailLog {
    /// The accepted mails about an Instance.
    pub fn of(&self, instance: &Instance) -> Mailed {
        let known = self.known.lock();
        let mailed = known.get(&ObjectKey::of(instance)).filter(|(uid, _)| uid == instance.uid());
        mailed.map(|(_, mailed)| mailed.clone()).unwrap_or_default()
    }

    /// Records that the server has accepted a mail to the Tenant, or the mails to managers that count as a substitute.
    pub fn remember(&self, notice: &Notice, sent: Sent, at: Timestamp) {
        let mail = &notice.mail;
        let warned = Warned { kind: mail.kind, number: notice.number, deadline: mail.deadline, sent };
        self.change(notice, |mailed| {
            mailed.times.insert(record(mail.kind, false), at);
            mailed.unsettled = mail.kind.is_warning().then_some(warned);
        });
    }

    /// Records that managers were notified that a mail cannot be delivered.
    pub fn remember_managers(&self, notice: &Notice, at: Timestamp) {
        self.change(notice, |mailed| {
            mailed.times.insert(record(notice.mail.kind, true), at);
        });
    }

    fn change(&self, notice: &Notice, change: impl FnOnce(&mut Mailed)) {
        let key = ObjectKey::new(notice.mail.namespace.as_str(), notice.mail.instance_name.as_str());
        let mut known = self.known.lock();
        let (uid, mailed) = known.entry(key).or_default();
        if *uid != notice.uid {
            (*uid, *mailed) = (notice.uid.clone(), Mailed::default());
        }
        change(mailed);
    }

    /// Called when the status of an Instance contains this promise. Unless it says that a mail is being sent, the last
    /// acceptance is in the status, or the promise was withdrawn.
    pub fn settle(&self, instance: &ObjectKey, promise: Option<&Promise>) {
        if promise.is_none_or(|promise| promise.sending.is_none())
            && let Some((_, mailed)) = self.known.lock().get_mut(instance)
        {
            mailed.unsettled = None;
        }
    }

    /// Drops the entry of an Instance that no longer exists.
    pub fn forget(&self, instance: &ObjectKey) {
        self.known.lock().remove(instance);
    }
}

#[cfg(test)]
mod tests;
