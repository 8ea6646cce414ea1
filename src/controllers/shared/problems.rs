//! Problems and failures of a reconcile, as conditions and events.

use std::time::Duration;

use jiff::Timestamp;

use super::waits::{self, passed};
use crate::api::condition::{
    ACCOUNT_EXISTS, Condition, ConditionType, NAME_CONFLICT, READY, RECONCILED, STALLED, TENANT_MISMATCH,
};
use crate::api::reason::{self, Reason};
use crate::api::{Kind, Object};
use crate::runtime::apply::Failure;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::error::ApiError;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::Outcome;

/// The problems that have their own condition.
const CONFLICTS: [(Reason, ConditionType); 3] = [
    (reason::NAME_CONFLICT, NAME_CONFLICT),
    (reason::TENANT_MISMATCH, TENANT_MISMATCH),
    (reason::ACCOUNT_EXISTS, ACCOUNT_EXISTS),
];

/// The reasons that resolve without a change to an object: quota becomes available, or an outage ends.
const TRANSIENT: [Reason; 3] =
    [reason::QUOTA_EXCEEDED, reason::KEYCLOAK_UNREACHABLE, reason::KEYCLOAK_UNAVAILABLE];

/// The reasons of problems that resolve without a change to the object but need an administrator.
const OF_ADMINISTRATORS: [Reason; 3] =
    [reason::KUBEVIRT_MISSING, reason::VOLUME_MISSING, reason::OBJECT_TERMINATING];

/// The problems of the plan, and the failed writes and effects. Transient failures are left out: the next attempt
/// usually succeeds, and their condition would disappear again at once. An object that is being deleted is reported
/// once that has lasted, unless the plan reports it. `describe` returns the reason and message of other failures,
/// except for a name conflict.
pub fn problems<E, R>(
    plan: &Plan<E>,
    outcome: &Outcome<R>,
    now: Timestamp,
    describe: impl Fn(&Failure) -> (Reason, String),
) -> Vec<Problem> {
    let planned = plan.problems.iter().cloned();
    let failed = outcome.failures.iter().filter_map(|failure| match &failure.error {
        ApiError::Leaving(leaving) => {
            let object = format!("{} {} ", leaving.kind, leaving.key);
            let is_planned = plan.problems.iter().any(|planned| planned.message.contains(&object));
            waits::of_leaving(leaving, failure.component.clone(), now).filter(|_| !is_planned)
        }
        error if error.is_transient() => None,
        _ => Some(of_failure(failure, &describe)),
    });
    planned.chain(failed).chain(outcome.effect_problems().cloned()).collect()
}

/// The problem of a failed write that is not transient.
fn of_failure(failure: &Failure, describe: impl Fn(&Failure) -> (Reason, String)) -> Problem {
    let component = failure.component.clone();
    if let error @ ApiError::NameConflict { .. } = &failure.error {
        return Problem::fault(component, reason::NAME_CONFLICT, format!("{error}: it is left alone"));
    }
    let (reason, message) = describe(failure);
    let stalled = matches!(failure.error, ApiError::Invalid(_));
    Problem { stalled, ..Problem::fault(component, reason, message) }
}

/// The reason and message of a failed write, for loops that do not distinguish kinds of failures.
pub fn describe(failure: &Failure) -> (Reason, String) {
    (reason::ENFORCEMENT_FAILED, failure.to_string())
}

/// The condition `Ready`. `state` is its reason and message if there is no problem.
pub fn ready(is_ready: bool, problems: &[Problem], state: (Reason, &str)) -> Observation {
    let problem = worst(problems).map(|problem| (problem.reason, problem.message.as_str()));
    let (reason, message) = problem.unwrap_or(state);
    Observation::new(READY, is_ready, reason, message)
}

/// The most urgent problem: a problem of the object itself, then one elsewhere, then one that resolves without a
/// change.
fn worst(problems: &[Problem]) -> Option<&Problem> {
    let first = |is_it: fn(&&Problem) -> bool| problems.iter().find(is_it);
    first(|problem| problem.stalled).or_else(|| first(|problem| !problem.waiting)).or(problems.first())
}

/// The condition [`STALLED`], if a problem needs human action. It is true at once for a problem of the object itself.
/// For a problem elsewhere it becomes true after `stalled_after`, because a missing object may still be applied.
pub fn stalled(
    old: &[Condition],
    problems: &[Problem],
    stalled_after: Duration,
    now: Timestamp,
) -> Option<Observation> {
    let needs_action = |problem: &&Problem| {
        if problem.waiting {
            OF_ADMINISTRATORS.contains(&problem.reason)
        } else {
            !TRANSIENT.contains(&problem.reason)
        }
    };
    let problem = worst(problems).filter(|problem| problem.stalled);
    let problem = problem.or_else(|| problems.iter().find(needs_action))?;
    let holds = problem.stalled || stalls_in(old, problem.reason, stalled_after, now).is_none();
    Some(Observation::new(STALLED, holds, problem.reason, &*problem.message))
}

/// The remaining time until a problem with this reason makes [`STALLED`] true; `None` if the time has passed. While
/// [`STALLED`] is false, its last transition is the beginning of the problem.
pub fn stalls_in(
    conditions: &[Condition],
    reason: Reason,
    stalled_after: Duration,
    now: Timestamp,
) -> Option<Duration> {
    let stored = conditions.iter().find(|condition| condition.type_ == STALLED);
    let left = match stored {
        Some(stored) if stored.status == "True" && stored.reason == *reason => Duration::ZERO,
        Some(stored) if stored.status == "False" => {
            stalled_after.saturating_sub(passed(stored.last_transition_time.0, now))
        }
        _ => stalled_after,
    };
    Some(left).filter(|left| !left.is_zero())
}

/// The time until [`STALLED`] turns from false to true, when the object is reported again.
pub fn requeue_after(conditions: &[Condition], stalled_after: Duration, now: Timestamp) -> Option<Duration> {
    let stalled = conditions.iter().find(|condition| condition.type_ == STALLED)?;
    let reason = Reason::named(&stalled.reason)?;
    stalls_in(conditions, reason, stalled_after, now)
}

/// The conditions of an object after a reconcile: `own`, [`RECONCILED`], [`STALLED`], and any of [`CONFLICTS`] that
/// applies. The conditions of other loops stay unchanged. `well` is the message of [`RECONCILED`] if there is no
/// problem. A true [`STALLED`] in `own` stays, unless the object itself has a fault: two reasons must not take turns.
pub fn conditions<T: Kind>(
    object: &Object<T>,
    old: &[Condition],
    mut own: Vec<Observation>,
    problems: &[Problem],
    well: &str,
    stalled_after: Duration,
    now: Timestamp,
) -> Vec<Condition> {
    own.push(match worst(problems) {
        None => Observation::new(RECONCILED, true, reason::RECONCILED, well),
        Some(worst) => {
            let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
            Observation::new(RECONCILED, false, worst.reason, messages.join("; "))
        }
    });
    let is_stalled = own.iter().any(|known| known.type_ == STALLED && known.holds == Some(true));
    let of_problems = stalled(old, problems, stalled_after, now);
    let has_fault = problems.iter().any(|problem| problem.stalled);
    if let Some(stalled) = of_problems.filter(|_| !is_stalled || has_fault) {
        own.retain(|observation| observation.type_ != STALLED);
        own.push(stalled);
    }
    let mut retired = Vec::new();
    if !own.iter().any(|observation| observation.type_ == STALLED) {
        retired.push(STALLED);
    }
    for (conflict, type_) in CONFLICTS {
        match problems.iter().find(|problem| problem.reason == conflict) {
            Some(found) => own.push(Observation::new(type_, true, conflict, &*found.message)),
            None => retired.push(type_),
        }
    }
    conditions::merge(old, &own, &retired, object.metadata.generation, now)
}

/// Whether the condition [`RECONCILED`] is about the current generation, so the spec has not changed since.
pub fn is_observed<T: Kind>(object: &Object<T>, conditions: &[Condition]) -> bool {
    let reconciled = conditions.iter().find(|condition| condition.type_ == RECONCILED);
    reconciled.is_some_and(|condition| condition.observed_generation == object.metadata.generation)
}

/// One event for each problem that the stored conditions do not contain yet.
pub fn events(old: &[Condition], problems: &[Problem]) -> Vec<EventNote> {
    news(old, problems).map(event).collect()
}

/// The problems that the stored conditions do not contain yet.
pub fn news<'a>(old: &'a [Condition], problems: &'a [Problem]) -> impl Iterator<Item = &'a Problem> {
    let reported = old.iter().find(|condition| condition.type_ == RECONCILED && condition.status == "False");
    let reported = reported.map_or("", |condition| condition.message.as_str());
    problems.iter().filter(move |problem| !reported.contains(&problem.message))
}

/// The event about a problem.
pub fn event(problem: &Problem) -> EventNote {
    let type_ = if problem.waiting { EventType::Normal } else { EventType::Warning };
    EventNote::new(type_, problem.reason, &*problem.message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::instance::InstanceKind;
    use crate::fixtures::at;
    use crate::runtime::ObjectKey;
    use crate::runtime::component::Component;
    use crate::runtime::error::Leaving;

    const STALLED_AFTER: Duration = Duration::from_mins(2);

    /// The condition [`STALLED`] at this time, and the time until the next reconcile.
    fn stall(
        old: &mut Vec<Condition>,
        problems: &[Problem],
        seconds: i64,
    ) -> (Option<String>, Option<Duration>) {
        let observation = stalled(old, problems, STALLED_AFTER, at(seconds));
        let retired: &[ConditionType] = if observation.is_some() { &[] } else { &[STALLED] };
        *old = conditions::merge(old, observation.as_slice(), retired, None, at(seconds));
        let status = old.iter().find(|condition| condition.type_ == STALLED);
        let status = status.map(|condition| format!("{} {}", condition.status, condition.reason));
        (status, requeue_after(old, STALLED_AFTER, at(seconds)))
    }

    #[test]
    fn a_problem_elsewhere_stalls_the_object_once_it_has_lasted() {
        let missing = || Problem::elsewhere(Component::Whole, reason::TEMPLATE_NOT_FOUND, "no Template");
        let other = || Problem::elsewhere(Component::Whole, reason::TENANT_NOT_FOUND, "no Tenant");
        let fault = || Problem::fault(Component::Whole, reason::INVALID_SPEC, "wrong");
        let waiting = || Problem::waiting(Component::Whole, reason::NAMESPACE_TERMINATING, "soon");
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let mut old = Vec::new();
        for (problems, time, status, again) in [
            (vec![], 0, None, None),
            (vec![missing()], 10, Some("False TemplateNotFound"), seconds(120)),
            (vec![missing()], 100, Some("False TemplateNotFound"), seconds(30)),
            // All problems together share one time.
            (vec![other()], 110, Some("False TenantNotFound"), seconds(20)),
            (vec![other()], 130, Some("True TenantNotFound"), None),
            (vec![other()], 500, Some("True TenantNotFound"), None),
            // A later problem has its own time.
            (vec![missing()], 510, Some("False TemplateNotFound"), seconds(120)),
            (vec![], 520, None, None),
            // A problem that resolves without a change never stalls the object.
            (vec![waiting()], 530, None, None),
            (vec![waiting()], 9_000, None, None),
            // A fault of the object itself stalls it immediately, and takes precedence over all others.
            (vec![missing(), fault()], 9_010, Some("True InvalidSpec"), None),
        ] {
            let found = stall(&mut old, &problems, time);
            assert_eq!((found.0.as_deref(), found.1), (status, again), "{problems:?} at {time}");
        }
    }

    #[test]
    fn a_deletion_that_lasts_is_reported_unless_the_plan_reports_it() {
        let (kind, key) = ("Secret", ObjectKey::new("ns", "a"));
        let leaving = Leaving { kind, key, since: Some(at(0)), ..Leaving::default() };
        let failed =
            |error| Failure { component: Component::Whole, kind: "Secret", name: "a".to_owned(), error };
        let failures =
            vec![failed(ApiError::transient("no answer")), failed(ApiError::Leaving(Box::new(leaving)))];
        let outcome = Outcome::<()>::of(failures);
        let found = |plan: &Plan, seconds| -> Vec<Reason> {
            let found = problems(plan, &outcome, at(seconds), describe);
            found.iter().map(|problem| problem.reason).collect()
        };
        assert!(found(&Plan::default(), 59).is_empty());
        assert_eq!(found(&Plan::default(), 60), [reason::OBJECT_TERMINATING]);
        let message = "Secret ns/a is being removed";
        let planned = Problem::waiting(Component::Whole, reason::CLAIM_TERMINATING, message);
        let plan = Plan { problems: vec![planned], ..Plan::default() };
        assert_eq!(found(&plan, 60), [reason::CLAIM_TERMINATING]);
    }

    #[test]
    fn a_cause_and_a_problem_that_both_last_do_not_take_turns() {
        let object = crate::fixtures::object::<InstanceKind>(json!({}));
        let problem = Problem::elsewhere(Component::Whole, reason::NO_NODE, "no node");
        let late = reason::VOLUME_NOT_MOUNTED;
        let mut old = Vec::new();
        for (seconds, expected) in [
            (0, "False NoNode"),
            (60, "False NoNode"),
            (120, "True VolumeNotMounted"),
            (121, "True VolumeNotMounted"),
            (300, "True VolumeNotMounted"),
        ] {
            let has_lasted = stalls_in(&old, late, STALLED_AFTER, at(seconds)).is_none();
            let own = vec![Observation::new(STALLED, has_lasted, late, "late")];
            let problems = std::slice::from_ref(&problem);
            old = conditions(&object, &old, own, problems, "well", STALLED_AFTER, at(seconds));
            let stalled = old.iter().find(|condition| condition.type_ == STALLED).expect("Stalled");
            assert_eq!(format!("{} {}", stalled.status, stalled.reason), expected, "at {seconds}");
        }
    }

    #[test]
    fn a_full_quota_and_an_outage_never_stall_and_a_missing_installation_does() {
        for (reason, waiting, expected) in [
            (reason::QUOTA_EXCEEDED, false, None),
            (reason::KEYCLOAK_UNREACHABLE, false, None),
            (reason::KEYCLOAK_UNAVAILABLE, false, None),
            (reason::KEYCLOAK_FORBIDDEN, false, Some("True KeycloakForbidden")),
            (reason::KUBEVIRT_MISSING, true, Some("True KubeVirtMissing")),
            (reason::VOLUME_MISSING, true, Some("True VolumeMissing")),
            (reason::OBJECT_TERMINATING, true, Some("True ObjectTerminating")),
            (reason::CLAIM_TERMINATING, true, None),
        ] {
            let problem = Problem { waiting, ..Problem::elsewhere(Component::Whole, reason, "why") };
            let mut old = Vec::new();
            stall(&mut old, std::slice::from_ref(&problem), 0);
            assert_eq!(stall(&mut old, &[problem], 120).0.as_deref(), expected);
        }
    }
}
