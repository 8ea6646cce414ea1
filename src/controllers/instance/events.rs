//! The events of Instances. The Go operators published all failures of an environment under a single reason, which
//! alerts may rely on. This module publishes that reason in addition to a specific one.

use super::host_key;
use crate::api::condition::Condition;
use crate::api::reason::{ENVIRONMENT_ENFORCEMENT_FAILED, QUOTA_EXCEEDED, Reason};
use crate::controllers::shared::problems;
use crate::runtime::apply::Failure;
use crate::runtime::component::Component;
use crate::runtime::error::ApiError;
use crate::runtime::events::EventNote;
use crate::runtime::problem::Problem;

/// Reason and message of a failed write.
pub fn describe(failure: &Failure) -> (Reason, String) {
    let Failure { component, kind, name, error } = failure;
    match error {
        ApiError::QuotaExceeded(message) => (
            QUOTA_EXCEEDED,
            format!("Resource quota exceeded, retrying automatically: {kind} {name}: {message}"),
        ),
        error => (
            ENVIRONMENT_ENFORCEMENT_FAILED,
            format!("Failed to enforce {}: {kind} {name}: {error}", subject(component)),
        ),
    }
}

/// Describes a component of the plan.
fn subject(component: &Component) -> String {
    match component {
        Component::Environment(name) => format!("environment {name}"),
        Component::Whole => "the Instance".to_owned(),
        Component::Part(host_key::PART) => "the host names of machines".to_owned(),
        // The proxy is the only other part that is not an environment.
        Component::Part(_) | Component::Within(..) => "the OAuth2 proxy".to_owned(),
    }
}

/// The events about the problems that the stored conditions do not contain yet.
pub fn events(old: &[Condition], problems: &[Problem]) -> Vec<EventNote> {
    let news = problems::news(old, problems);
    news.flat_map(|problem| [Some(problems::event(problem)), enforcement(problem)]).flatten().collect()
}

/// The general event that an environment cannot be created. `None` for a problem of the whole Instance, a problem that
/// resolves on its own, and a problem whose event already has this reason.
fn enforcement(problem: &Problem) -> Option<EventNote> {
    let Problem { component, reason, message, waiting, .. } = problem;
    if *component == Component::Whole || *waiting || *reason == ENVIRONMENT_ENFORCEMENT_FAILED {
        return None;
    }
    let text = if *reason == QUOTA_EXCEEDED {
        message.clone()
    } else {
        format!("Failed to enforce {}: {message}", subject(component))
    };
    Some(EventNote::warning(ENVIRONMENT_ENFORCEMENT_FAILED, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::reason;
    use crate::runtime::events::EventType;

    fn told(problem: Problem) -> Vec<(EventType, String, String)> {
        let notes = events(&[], &[problem]);
        notes.into_iter().map(|note| (note.type_, note.reason.to_string(), note.message)).collect()
    }

    fn event(type_: EventType, reason: &str, message: &str) -> (EventType, String, String) {
        (type_, reason.to_owned(), message.to_owned())
    }

    #[test]
    fn an_environment_that_cannot_be_made_has_the_event_of_the_go_operators_beside_its_reason() {
        assert_eq!(
            told(Problem::fault(
                Component::environment("main"),
                reason::DISK_MISSING,
                "resources.disk must be set"
            )),
            [
                event(EventType::Warning, "DiskMissing", "resources.disk must be set"),
                event(
                    EventType::Warning,
                    "EnvironmentEnforcementFailed",
                    "Failed to enforce environment main: resources.disk must be set",
                ),
            ]
        );
    }

    #[test]
    fn a_refused_write_has_one_event_and_an_exceeded_quota_two() {
        let failed = |error: ApiError| {
            let failure = Failure {
                component: Component::environment("main"),
                kind: "Service",
                name: "lab".to_owned(),
                error,
            };
            let (reason, message) = describe(&failure);
            told(Problem::fault(Component::environment("main"), reason, message))
        };
        let text = "Failed to enforce environment main: Service lab: ";
        let refused = failed(ApiError::Invalid("no".to_owned()));
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].1, "EnvironmentEnforcementFailed");
        assert!(refused[0].2.starts_with(text), "{}", refused[0].2);
        let text = "Resource quota exceeded, retrying automatically: Service lab: exceeded quota: q";
        assert_eq!(
            failed(ApiError::QuotaExceeded("exceeded quota: q".to_owned())),
            [
                event(EventType::Warning, "ResourceQuotaExceeded", text),
                event(EventType::Warning, "EnvironmentEnforcementFailed", text),
            ]
        );
    }

    #[test]
    fn problems_of_the_whole_instance_and_temporary_problems_have_one_event() {
        assert_eq!(
            told(Problem::fault(Component::Whole, reason::TEMPLATE_NOT_FOUND, "Template w/t not found")),
            [event(EventType::Warning, "TemplateNotFound", "Template w/t not found")]
        );
        assert_eq!(
            told(Problem::waiting(
                Component::environment("main"),
                reason::SHARED_VOLUME_NOT_READY,
                "SharedVolume w/data is not exported yet"
            )),
            [event(EventType::Normal, "SharedVolumeNotReady", "SharedVolume w/data is not exported yet")]
        );
    }
}
