//! Tests of the log of accepted mails.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::controllers::cleanup::delivery::tests::notice;
use crate::controllers::shared::fixtures::running_instance;
use crate::fixtures::at;

/// The Instance that the mails of [`notice`] are about, with this annotation.
fn instance(annotation: Option<Timestamp>) -> Instance {
    let mut instance = running_instance(at(0));
    let key = record(MailKind::ExpirationWarning, false);
    instance.metadata.annotations = annotation.map(|time| (key, rfc3339(time))).into_iter().collect();
    instance
}

#[test]
fn each_kind_of_mail_has_a_separate_annotation() {
    assert_eq!(record(MailKind::ExpirationWarning, false), "crownlabs.polito.it/mailed-expiration-warning");
    assert_eq!(record(MailKind::Destroyed, true), "crownlabs.polito.it/mailed-destroyed-managers");
}

#[test]
fn the_last_mail_is_known_from_the_annotation_and_from_the_memory() {
    let (log, warning) = (MailLog::default(), record(MailKind::ExpirationWarning, false));
    let last = |annotation| {
        let instance = instance(annotation);
        log.of(&instance).last(&instance, &warning)
    };
    assert_eq!(last(None), None);
    assert_eq!(last(Some(at(500))), Some(at(500)));
    log.remember(&notice(MailKind::ExpirationWarning, 0), Sent::at(at(700)), at(700));
    assert_eq!(last(None), Some(at(700)), "the annotation was removed");
    assert_eq!(last(Some(at(500))), Some(at(700)));
    assert_eq!(last(Some(at(800))), Some(at(800)), "another leader wrote the annotation");
    // The Instance was deleted and created again with the same name.
    let mut other = instance(None);
    other.metadata.uid = "u2".into();
    assert_eq!(log.of(&other), Mailed::default());
    log.forget(&ObjectKey::of(&other));
    assert_eq!(last(None), None);
}

#[test]
fn a_missing_annotation_is_written_once() {
    let log = MailLog::default();
    let records = [record(MailKind::ExpirationWarning, false), record(MailKind::ExpirationWarning, true)];
    let lacks = |instance: &Instance| {
        log.of(instance).annotations(instance, &records.clone().map(|record| (record, None)))
    };
    assert!(lacks(&instance(None)).is_empty());
    log.remember(&notice(MailKind::ExpirationWarning, 0), Sent::at(at(700)), at(700));
    let written = json!({&records[0]: rfc3339(at(700))});
    assert_eq!(Value::Object(lacks(&instance(None))), written);
    assert_eq!(Value::Object(lacks(&instance(Some(at(699))))), written);
    assert!(lacks(&instance(Some(at(700)))).is_empty() && lacks(&instance(Some(at(701)))).is_empty());
    let patch = annotated(&instance(None), None, &lacks(&instance(None))).expect("a patch");
    assert_eq!(patch.patch, json!({"metadata": {"annotations": written}}));
    assert_eq!(annotated(&instance(None), None, &Map::new()), None);
    log.remember_managers(&notice(MailKind::ExpirationWarning, 0), at(800));
    assert_eq!(lacks(&instance(None)).len(), 2);
    assert_eq!(lacks(&instance(Some(at(700)))).len(), 1);
    let otherwise = [(record(MailKind::Expired, false), Some(at(900)))];
    assert_eq!(MailLog::default().of(&instance(None)).annotations(&instance(None), &otherwise).len(), 1);
}

#[test]
fn an_accepted_warning_counts_before_the_status_contains_it() {
    let log = MailLog::default();
    let terms = promise::Terms {
        after: crate::api::lifetime::Lifetime::Never,
        warnings: 1,
        interval: std::time::Duration::from_hours(1),
        final_mail: true,
        mailed: promise::LastMails::default(),
    };
    let sent = notice(MailKind::ExpirationWarning, 0);
    let box_ = Arc::new(instance(None));
    let stored = |deadline: Timestamp, warnings| Promise {
        sending: Some(Time(deadline)),
        warnings,
        ..Promise::default()
    };
    let of = |kind, promise: &Promise| log.of(&box_).accepted(&terms, kind, promise.clone());
    let sending = stored(sent.mail.deadline, 0);
    let warning = MailKind::ExpirationWarning;
    assert_eq!(of(warning, &sending), sending, "nothing was sent");
    log.remember(&sent, Sent::at(at(700)), at(700));
    let counted = of(warning, &sending);
    assert_eq!((counted.warnings, counted.sending.as_ref()), (1, None));
    assert_eq!(counted.last_warning, Some(Time(at(700))));
    // Other promises are not changed.
    for other in [stored(at(1), 0), stored(sent.mail.deadline, 1), Promise::default()] {
        assert_eq!(of(warning, &other), other);
    }
    assert_eq!(of(MailKind::InactivityWarning, &sending), sending);
    // While the status says that the warning is being sent, it may lack the acceptance.
    let key = ObjectKey::of(&*box_);
    log.settle(&key, Some(&sending));
    assert_eq!(of(warning, &sending).warnings, 1);
    log.settle(&key, None);
    assert_eq!(of(warning, &sending), sending, "it was withdrawn");
    assert!(log.of(&box_).last(&box_, &record(warning, false)).is_some(), "but it was sent");
}
