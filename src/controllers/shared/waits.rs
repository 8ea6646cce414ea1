//! Root causes: a claim waits for a storage class and a provisioner, a Job for a pod, a namespace for its
//! content, and an object that is being deleted for its finalizers.

use std::time::Duration;

use jiff::Timestamp;

use super::nfs_volume::is_bound;
use crate::api::condition::Condition;
use crate::api::meta::Metadata;
use crate::api::reason::{self, Reason};
use crate::api::requirements::{StorageClasses, class_of, has_class};
use crate::api::text::Text;
use crate::kinds::{Job, Namespace, NfsClaim};
use crate::runtime::component::Component;
use crate::runtime::error::Leaving;
use crate::runtime::object_events::{About, Events};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;

/// The time before the storage class of an unbound claim is checked. A volume that an administrator has created may
/// have a class that does not exist as an object.
pub const GRACE: Duration = Duration::from_secs(5);
/// The time before the events or conditions of a claim, a Job or a namespace are read, and before the finalizers
/// of an object that is being deleted are reported.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The reason why no volume can be provisioned for a claim with this storage class (empty for the default class);
/// `None` if one can be provisioned, or the classes are unknown.
pub fn class_fault(classes: Option<&StorageClasses>, class: &str) -> Option<String> {
    let fault = || match class {
        "" => "it names no storage class, and the cluster has no default one".to_owned(),
        class => format!("storageclass {class:?} not found"),
    };
    classes.filter(|classes| !has_class(classes, class)).map(|_| fault())
}

/// The problem of the storage class of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassFault {
    /// The reason for conditions.
    pub reason: Reason,
    /// The message.
    pub message: String,
}

/// The reason why no volume can be provisioned for the claim of an NFS volume with this storage class (empty for
/// the default class). The first consumer of the volume is the Job that prepares it, which is created after the
/// claim is bound, so the class must not wait for a consumer.
pub fn nfs_class_fault(classes: Option<&StorageClasses>, class: &str) -> Option<ClassFault> {
    if let Some(message) = class_fault(classes, class) {
        return Some(ClassFault { reason: reason::STORAGE_CLASS_NOT_FOUND, message });
    }
    let (name, _) = class_of(classes?, class).filter(|(_, found)| found.waits_for_consumer)?;
    let message = format!(
        "storageclass {name:?} has volumeBindingMode WaitForFirstConsumer, but the first consumer is created only \
         after the volume is bound; the class needs volumeBindingMode Immediate"
    );
    Some(ClassFault { reason: reason::VOLUME_UNBOUND, message })
}

/// A wait. The default is no wait.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wait {
    /// The problem to report, if the wait has lasted long enough.
    pub problem: Option<Problem>,
    /// The objects whose events are to be read.
    pub asks: Option<About>,
    /// The time until the next look.
    pub again: Option<Duration>,
}

impl Wait {
    /// Adds the wait to a plan.
    pub fn join<E>(self, plan: &mut Plan<E>) {
        plan.problems.extend(self.problem);
        plan.awaited = plan.awaited.take().or(self.asks);
        plan.requeue_after(self.again);
    }

    /// A wait that is too short to be checked yet.
    fn young(left: Duration) -> Self {
        Self { again: Some(left), ..Self::default() }
    }
}

/// The age of an object.
pub fn age(metadata: &Metadata, now: Timestamp) -> Duration {
    metadata.creation_timestamp.as_ref().map_or(Duration::ZERO, |made| passed(made.0, now))
}

/// The time that has passed since another time; zero if that time is in the future.
pub fn passed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// The wait of an unbound claim. `class_fault` comes from its storage class, and `stored` is the owner's condition
/// about the problem.
pub fn of_claim(
    claim: &NfsClaim,
    component: Component,
    class_fault: Option<&ClassFault>,
    events: &Events,
    stored: Option<&Condition>,
    now: Timestamp,
) -> Wait {
    if is_bound(claim) || claim.is_terminating() {
        return Wait::default();
    }
    let age = age(&claim.metadata, now);
    let subject = format!("PersistentVolumeClaim {}/{} is not bound", claim.namespace(), claim.name());
    if age < GRACE {
        return Wait::young(GRACE.saturating_sub(age));
    }
    if let Some(ClassFault { reason, message }) = class_fault {
        let problem = Problem::elsewhere(component, *reason, format!("{subject}: {message}"));
        return Wait { problem: Some(problem), ..Wait::default() };
    }
    if age < PATIENCE {
        return Wait::young(PATIENCE.saturating_sub(age));
    }
    let unexplained = "no event explains why; check whether the provisioner of its storage class is running";
    let message = explained(&subject, reason::VOLUME_UNBOUND, events, stored)
        .unwrap_or_else(|| format!("{subject}: {unexplained}"));
    let problem = Some(Problem::waiting(component, reason::VOLUME_UNBOUND, message));
    Wait { problem, asks: Some(about(claim.namespace(), claim.uid())), again: None }
}

/// The wait of an unfinished Job. Only events show the cause.
pub fn of_job(
    job: &Job,
    component: Component,
    events: &Events,
    stored: Option<&Condition>,
    now: Timestamp,
) -> Wait {
    if job.end().is_some() || job.is_terminating() {
        return Wait::default();
    }
    let age = age(&job.metadata, now);
    if age < PATIENCE {
        return Wait::young(PATIENCE.saturating_sub(age));
    }
    let subject = format!("the volume is not prepared yet: Job {}/{}", job.namespace(), job.name());
    let message = explained(&subject, reason::PROVISIONING, events, stored);
    let problem = message.map(|message| Problem::waiting(component, reason::PROVISIONING, message));
    Wait { problem, asks: Some(about_job(job)), again: None }
}

/// The wait for a namespace that is being deleted. `whose` follows its name in the message. The obstacles to the
/// deletion are left out at first, because the content of a namespace takes a moment to disappear.
pub fn of_namespace(namespace: &Namespace, whose: &str, component: Component, now: Timestamp) -> Wait {
    let begun = namespace.metadata.deletion_timestamp.as_ref();
    let left = begun.map_or(PATIENCE, |begun| held_in(begun.0, now));
    let again = Some(left).filter(|left| !left.is_zero());
    let conditions = namespace.status.conditions.iter().filter(|_| again.is_none());
    let obstacles: Vec<&str> = conditions.map(|condition| &*condition.message).collect();
    let keeps = if obstacles.is_empty() { String::new() } else { format!(": {}", obstacles.join("; ")) };
    let name = namespace.name();
    let message = format!("namespace {name}{whose} is being deleted{keeps}; it is created again after that");
    let problem = Problem::waiting(component, reason::NAMESPACE_TERMINATING, message);
    Wait { problem: Some(problem), asks: None, again }
}

/// The wait for an object that is being deleted; `None` until that has lasted for [`PATIENCE`].
pub fn of_leaving(leaving: &Leaving, component: Component, now: Timestamp) -> Option<Problem> {
    let Leaving { kind, key, former_owner, since, finalizers } = leaving;
    let since = since.filter(|since| held_in(*since, now).is_zero())?;
    let whose = |owner: &String| format!(" of a deleted {owner} of the same name");
    let (of, held) = (former_owner.as_ref().map(whose).unwrap_or_default(), held(since, finalizers, now));
    let message = format!("{kind} {key}{of} is being deleted{held}; it is created again after that");
    Some(Problem::waiting(component, reason::OBJECT_TERMINATING, message))
}

/// The part of a message about an object that is being deleted since this time: the time, and the finalizers that
/// hold the object. It is empty until the deletion has lasted for [`PATIENCE`], because controllers need a moment.
pub fn held(since: Timestamp, finalizers: &[Text], now: Timestamp) -> String {
    if !held_in(since, now).is_zero() {
        return String::new();
    }
    let names: Vec<&str> = finalizers.iter().map(Text::as_str).collect();
    match names.join(", ") {
        names if names.is_empty() => format!(" (since {since})"),
        names => format!(" (since {since}; its finalizers remain: {names})"),
    }
}

/// The time until the deletion of an object has lasted for [`PATIENCE`]; zero if it has.
pub fn held_in(since: Timestamp, now: Timestamp) -> Duration {
    PATIENCE.saturating_sub(passed(since, now))
}

/// An object with this uid.
pub fn about(namespace: &str, uid: &str) -> About {
    About { namespace: namespace.to_owned(), uids: [uid.to_owned()].into(), ..About::default() }
}

/// A Job and its pods.
pub fn about_job(job: &Job) -> About {
    let created = job.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |created| created.0);
    About { jobs: [(job.name().to_owned(), created)].into(), ..about(job.namespace(), job.uid()) }
}

/// The message about the event that explains the wait of a subject. Until this process has read the events, it is the
/// message of the stored condition with this reason.
pub fn explained(
    subject: &str,
    reason: Reason,
    events: &Events,
    stored: Option<&Condition>,
) -> Option<String> {
    match events {
        Events::Read(told) => told.first().map(|told| format!("{subject}: {told}")),
        Events::Unknown => {
            let stored = stored.filter(|stored| stored.status == "False" && stored.reason == *reason)?;
            Some(&*stored.message).filter(|message| message.starts_with(subject)).map(str::to_owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::requirements::ClassProperties;
    use crate::fixtures::time;
    use crate::runtime::ObjectKey;
    use crate::runtime::object_events::Told;

    const VOLUME: Component = Component::Part("volume");

    fn claim(phase: &str) -> NfsClaim {
        let metadata = json!({"name": "ada-drive", "namespace": "drives", "uid": "c",
            "creationTimestamp": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).expect("a claim")
    }

    fn at(second: i64) -> Timestamp {
        let begin: Timestamp = time("2026-01-01T00:00:00Z");
        begin + jiff::SignedDuration::from_secs(second)
    }

    fn told(word: &str) -> Events {
        let (kind, name) = ("PersistentVolumeClaim".into(), "ada-drive".into());
        Events::Read(vec![Told { word: word.into(), kind, name, uid: "c".into(), message: "why".into() }])
    }

    /// The reason and message of the problem, whether it only waits, and whether events are read.
    fn said(wait: Wait) -> (String, String, bool, bool) {
        let problem = wait.problem.expect("a problem");
        (problem.reason.to_string(), problem.message, problem.waiting, wait.asks.is_some())
    }

    #[test]
    fn a_claim_waits_for_its_class_and_then_for_its_provisioner() {
        let claim = claim("Pending");
        let of = |fault: Option<&ClassFault>, events: &Events, second| {
            of_claim(&claim, VOLUME, fault, events, None, at(second))
        };
        let young = |left| Wait::young(Duration::from_secs(left));
        let fault = nfs_class_fault(Some(&StorageClasses::new()), "rook-nfs");
        let fault = fault.as_ref();
        assert_eq!(of(fault, &Events::Unknown, 2), young(3), "a volume may have that class");
        let (reason, message, waiting, asks) = said(of(fault, &Events::Unknown, 5));
        assert_eq!((&*reason, waiting, asks), ("StorageClassNotFound", false, false));
        let subject = "PersistentVolumeClaim drives/ada-drive is not bound";
        assert_eq!(message, format!("{subject}: storageclass \"rook-nfs\" not found"));
        assert_eq!(of(None, &Events::Unknown, 5), young(55));
        let (reason, message, waiting, asks) = said(of(None, &told("ProvisioningFailed"), 60));
        assert_eq!((&*reason, waiting, asks), ("VolumeUnbound", true, true));
        assert_eq!(message, format!("{subject}: PersistentVolumeClaim ada-drive: ProvisioningFailed: why"));
        let (_, message, ..) = said(of(None, &Events::Read(vec![]), 60));
        assert!(message.ends_with(
            "no event explains why; check whether the provisioner of its storage class is running"
        ));
    }

    #[test]
    fn a_process_that_has_not_read_the_events_keeps_the_stored_cause() {
        let stored = |reason: &str, message: &str| Condition {
            status: "False".into(),
            reason: reason.into(),
            message: message.into(),
            ..Condition::default()
        };
        let known = "PersistentVolumeClaim drives/ada-drive is not bound: no space";
        let of = |stored: &Condition| {
            said(of_claim(&claim("Pending"), VOLUME, None, &Events::Unknown, Some(stored), at(600))).1
        };
        assert_eq!(of(&stored("VolumeUnbound", known)), known);
        assert_ne!(of(&stored("VolumeUnbound", "another claim is not bound: no space")), known);
        assert_ne!(of(&stored("NamespaceMissing", known)), known);
    }

    #[test]
    fn a_namespace_that_stays_names_its_obstacles() {
        let namespace = |conditions: serde_json::Value| -> Namespace {
            let metadata = json!({"name": "tenant-ada", "deletionTimestamp": "2026-01-01T00:00:00Z"});
            serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}}))
                .expect("lenient")
        };
        let said = |namespace: &Namespace, second| {
            let wait = of_namespace(namespace, "", VOLUME, at(second));
            (wait.problem.expect("a problem").message, wait.again)
        };
        let message = |keeps: &str| {
            format!("namespace tenant-ada is being deleted{keeps}; it is created again after that")
        };
        let stuck = namespace(json!([
            {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "finalizers remaining: a.b/c"},
            {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "All content deleted"},
            {"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1 resource instances"}]));
        assert_eq!(said(&stuck, 20), (message(""), Some(Duration::from_secs(40))), "it may still go");
        let obstacles = message(": pods. has 1 resource instances; finalizers remaining: a.b/c");
        assert_eq!(said(&stuck, 60), (obstacles, None));
        assert_eq!(said(&namespace(json!([])), 60), (message(""), None));
    }

    #[test]
    fn a_class_that_waits_for_a_consumer_is_a_fault_of_an_nfs_volume_only() {
        let class = |is_default, waits_for_consumer| ClassProperties { is_default, waits_for_consumer };
        let classes = StorageClasses::from([
            ("usual".to_owned(), class(true, true)),
            ("now".to_owned(), class(false, false)),
        ]);
        for (name, is_fault) in [("now", false), ("usual", true), ("", true)] {
            let fault = nfs_class_fault(Some(&classes), name);
            let expected = is_fault.then_some(reason::VOLUME_UNBOUND);
            assert_eq!(fault.as_ref().map(|fault| fault.reason), expected, "{name:?}");
            assert!(fault.is_none_or(|fault| {
                fault.message.starts_with("storageclass \"usual\" has volumeBindingMode WaitForFirstConsumer")
            }));
            assert_eq!(class_fault(Some(&classes), name), None, "{name:?} of the disk of an Instance");
        }
        let missing = nfs_class_fault(Some(&classes), "gone").map(|fault| fault.reason);
        assert_eq!(missing, Some(reason::STORAGE_CLASS_NOT_FOUND));
        assert_eq!(nfs_class_fault(None, "gone"), None, "the classes are unknown");
        let fault = nfs_class_fault(Some(&classes), "usual");
        let (reason, message, waiting, asks) =
            said(of_claim(&claim("Pending"), VOLUME, fault.as_ref(), &Events::Unknown, None, at(5)));
        assert_eq!((&*reason, waiting, asks), ("VolumeUnbound", false, false));
        assert!(message.ends_with("the class needs volumeBindingMode Immediate"), "{message}");
    }

    #[test]
    fn an_object_that_stays_names_its_finalizers() {
        let leaving = |former_owner: Option<&str>, finalizers: &[&str]| Leaving {
            kind: "VirtualMachine",
            key: ObjectKey::new("tenant-ada", "lab"),
            former_owner: former_owner.map(str::to_owned),
            since: Some(at(0)),
            finalizers: finalizers.iter().copied().map(Text::from).collect(),
        };
        let message = |leaving: &Leaving, second| {
            let problem = of_leaving(leaving, VOLUME, at(second))?;
            assert!(problem.waiting && problem.reason == reason::OBJECT_TERMINATING, "{problem:?}");
            Some(problem.message)
        };
        let stuck = leaving(Some("Instance"), &["a.b/c", "d.e/f"]);
        assert_eq!(message(&stuck, 59), None, "it may still go");
        let expected = "VirtualMachine tenant-ada/lab of a deleted Instance of the same name is being deleted \
                        (since 2026-01-01T00:00:00Z; its finalizers remain: a.b/c, d.e/f); it is created again \
                        after that";
        assert_eq!(message(&stuck, 60).as_deref(), Some(expected));
        let expected = "VirtualMachine tenant-ada/lab is being deleted (since 2026-01-01T00:00:00Z); it is \
                        created again after that";
        assert_eq!(message(&leaving(None, &[]), 60).as_deref(), Some(expected));
        assert_eq!(message(&Leaving { since: None, ..stuck }, 600), None, "its deletion has not begun");
    }

    #[test]
    fn a_claim_that_is_bound_and_a_job_that_has_ended_wait_for_nothing() {
        let fault = ClassFault { reason: reason::STORAGE_CLASS_NOT_FOUND, message: "no".to_owned() };
        let bound = of_claim(&claim("Bound"), VOLUME, Some(&fault), &Events::Unknown, None, at(600));
        assert_eq!(bound, Wait::default());
        let job = |status: serde_json::Value| -> Job {
            let metadata = json!({"name": "prepare", "namespace": "drives", "uid": "j",
                "creationTimestamp": "2026-01-01T00:00:00Z"});
            serde_json::from_value(json!({"metadata": metadata, "status": status})).expect("a Job")
        };
        let of = |job: &Job, events: &Events| of_job(job, VOLUME, events, None, at(60));
        let ended = job(json!({"conditions": [{"type": "Complete", "status": "True"}]}));
        assert_eq!(of(&ended, &told("FailedMount")), Wait::default());
        let runs = of(&job(json!({"active": 1})), &Events::Read(vec![]));
        assert_eq!((runs.problem, runs.asks.is_some()), (None, true), "it may take long");
        let (reason, message, waiting, _) = said(of(&job(json!({"active": 1})), &told("FailedMount")));
        assert_eq!((&*reason, waiting), ("Provisioning", true));
        let subject = "the volume is not prepared yet: Job drives/prepare";
        assert_eq!(message, format!("{subject}: PersistentVolumeClaim ada-drive: FailedMount: why"));
    }
}
