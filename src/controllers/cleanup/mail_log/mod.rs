//! The mails about an Instance that were accepted, and their times: at most one of a kind is sent in an interval,
//! whoever takes the status back meanwhile.
//!
//! The time of the last one is in an annotation of the Instance, which the webhook lets nobody else write. Until it is
//! there, and where there are no webhooks, the memory of the leader has it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::delivery::{Notice, Sent};
use super::promise::{self, LastMails};
use crate::api::instance::Instance;
use crate::api::labels::MAILED_PREFIX;
use crate::api::promise::Promise;
use crate::clients::mail::MailKind;
use crate::runtime::ObjectKey;
use crate::runtime::clock::rfc3339;
use crate::runtime::merge;
use crate::runtime::plan::ObjectPatch;

/// The key of the annotation with the time of the last mail of a kind, or of the last one that told managers that it cannot
/// be delivered.
pub fn record(kind: MailKind, is_to_managers: bool) -> String {
    let name = kind.label().replace('_', "-");
    format!("{MAILED_PREFIX}{name}{}", if is_to_managers { "-managers" } else { "" })
}

/// The mails about an Instance that were accepted, as the leader remembers them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mailed {
    /// The times at which the last ones were accepted, in whole seconds, by [`record`].
    times: BTreeMap<String, Timestamp>,
    /// The last warning, while it is not known that its acceptance is in the status.
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
    /// When the last mail of a record was accepted, by the annotation or the memory. It may be later than the time by which is
    /// judged, which a clock that is behind decides.
    pub fn last(&self, instance: &Instance, record: &str) -> Option<Timestamp> {
        let annotated = instance.annotation(record).and_then(|text| text.parse().ok());
        annotated.into_iter().chain(self.times.get(record).copied()).max()
    }

    /// When the last warning, and the last mail that the deadline has passed, were accepted.
    pub fn last_mails(&self, instance: &Instance, warning: MailKind, last: MailKind) -> LastMails {
        let of = |kind| self.last(instance, &record(kind, false));
        LastMails { warning: of(warning), last: of(last) }
    }

    /// The promise, which says that a warning of this kind is being sent, where the leader knows that it was accepted.
    pub fn accepted(&self, terms: &promise::Terms, kind: MailKind, promise: Promise) -> Promise {
        let Some(known) = self.unsettled.as_ref().filter(|known| known.kind == kind) else { return promise };
        let sending = promise.sending.as_ref().map(|sending| sending.0);
        if sending != Some(known.deadline) || promise.warnings != known.number {
            return promise;
        }
        promise::sent(terms, &promise, known.sent)
    }

    /// The annotations of these records that an Instance lacks; with each the time that is known of it otherwise.
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

/// A patch of an Instance that sets these annotations, too.
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

/// All mails that were accepted, as the leader remembers them: by the Instance that they are about, with its uid.
#[derive(Default)]
pub struct MailLog {
    known: Mutex<BTreeMap<ObjectKey, (String, Mailed)>>,
}

impl MailLog {
    /// The mails about an Instance that were accepted.
    pub fn of(&self, instance: &Instance) -> Mailed {
        let known = self.known.lock();
        let mailed = known.get(&ObjectKey::of(instance)).filter(|(uid, _)| uid == instance.uid());
        mailed.map(|(_, mailed)| mailed.clone()).unwrap_or_default()
    }

    /// Takes that the server has accepted a mail to the Tenant, or those to managers that count as it.
    pub fn remember(&self, notice: &Notice, sent: Sent, at: Timestamp) {
        let mail = &notice.mail;
        let warned = Warned { kind: mail.kind, number: notice.number, deadline: mail.deadline, sent };
        self.change(notice, |mailed| {
            mailed.times.insert(record(mail.kind, false), at);
            mailed.unsettled = mail.kind.is_warning().then_some(warned);
        });
    }

    /// Takes that managers were told that a mail cannot be delivered.
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

    /// The status of an Instance has this promise. Unless it says that a mail is being sent, the acceptance of the last one is
    /// in the status, or what it promised was withdrawn.
    pub fn settle(&self, instance: &ObjectKey, promise: Option<&Promise>) {
        if promise.is_none_or(|promise| promise.sending.is_none())
            && let Some((_, mailed)) = self.known.lock().get_mut(instance)
        {
            mailed.unsettled = None;
        }
    }

    /// Drops what is known of an Instance that does not exist any more.
    pub fn forget(&self, instance: &ObjectKey) {
        self.known.lock().remove(instance);
    }
}

#[cfg(test)]
mod tests;
