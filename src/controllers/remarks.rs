//! What kept a pass from doing all of its work, as users are told of it.

use crate::runtime::apply::Failure;
use crate::runtime::conditions::Observation;
use crate::runtime::error::ApiError;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::plan::{Notice, Plan};

/// Condition: whether everything that the object asks for is as it should be.
pub const RECONCILED: &str = "Reconciled";
/// Condition: whether something of another owner stands in the way; absent when not.
pub const NAME_CONFLICT: &str = "NameConflict";

/// A fault or a wait, whatever it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The part of the work that it concerns; empty for all.
    pub component: String,
    /// A stable word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Whether waiting is all there is to do.
    pub waiting: bool,
}

impl From<&Notice> for Remark {
    fn from(notice: &Notice) -> Self {
        Self {
            component: notice.component.clone(),
            reason: notice.reason.to_owned(),
            message: notice.message.clone(),
            waiting: notice.waiting,
        }
    }
}

/// What the plan could not do, and what failed when it was carried out. A failure that the next
/// try is likely to mend is no news for a user (02 D9); `describe` words all others but those of names.
pub fn remarks(
    plan: &Plan,
    failures: &[Failure],
    describe: impl Fn(&Failure) -> (&'static str, String),
) -> Vec<Remark> {
    let noticed = plan.notices.iter().map(Remark::from);
    let failed = failures.iter().filter(|failure| !failure.error.is_transient()).map(|failure| {
        let (reason, message) = match &failure.error {
            error @ ApiError::NameConflict { .. } => (NAME_CONFLICT, format!("{error}: it is left alone")),
            _ => describe(failure),
        };
        Remark { component: failure.component.clone(), reason: reason.to_owned(), message, waiting: false }
    });
    noticed.chain(failed).collect()
}

/// The condition [`RECONCILED`], and [`NAME_CONFLICT`] if there is one; `well` says that all is.
pub fn observations(remarks: &[Remark], well: &str) -> Vec<Observation> {
    let worst = remarks.iter().find(|remark| !remark.waiting).or(remarks.first());
    let reconciled = match worst {
        None => Observation {
            type_: RECONCILED,
            holds: Some(true),
            reason: RECONCILED.to_owned(),
            message: well.to_owned(),
        },
        Some(worst) => Observation {
            type_: RECONCILED,
            holds: Some(false),
            reason: worst.reason.clone(),
            message: remarks.iter().map(|remark| remark.message.as_str()).collect::<Vec<_>>().join("; "),
        },
    };
    let conflict = remarks.iter().find(|remark| remark.reason == NAME_CONFLICT).map(|conflict| Observation {
        type_: NAME_CONFLICT,
        holds: Some(true),
        reason: NAME_CONFLICT.to_owned(),
        message: conflict.message.clone(),
    });
    [reconciled].into_iter().chain(conflict).collect()
}

/// The types of conditions that no longer apply.
pub fn retired(observations: &[Observation]) -> &'static [&'static str] {
    if observations.iter().any(|observation| observation.type_ == NAME_CONFLICT) {
        &[]
    } else {
        &[NAME_CONFLICT]
    }
}

/// One event for each remark that the stored conditions do not tell of yet.
pub fn events(old: &[crate::api::condition::Condition], remarks: &[Remark]) -> Vec<EventNote> {
    let told = old.iter().find(|condition| condition.type_ == RECONCILED && condition.status == "False");
    let told = told.map_or("", |condition| condition.message.as_str());
    remarks
        .iter()
        .filter(|remark| !told.contains(&remark.message))
        .map(|remark| EventNote {
            type_: if remark.waiting { EventType::Normal } else { EventType::Warning },
            reason: remark.reason.clone(),
            message: remark.message.clone(),
        })
        .collect()
}
