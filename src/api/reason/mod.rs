//! The reasons of conditions and events: every word that the daemon writes as one, with what it means.
//!
//! A [`Reason`] can only be one of the constants here, so no condition and no event has another one. Each is declared with
//! the kinds on which it is written, the conditions that have it (or `Event`), and who does what about it. Only the
//! constants are in the program; all of it is in `docs/reference/reasons.md`, which the tests keep as it is here.

use super::text::word;

mod causes;
mod courses;
mod instances;
mod pod_networks;
mod services;

#[cfg(test)]
pub(crate) mod reference;

pub use causes::{CAUSES, CauseRow, Source};
pub use courses::*;
pub use instances::*;
pub use pod_networks::*;
pub use services::*;

word!(
    /// A reason: a stable word in `CamelCase`, one of the constants of this module.
    Reason
);

impl Reason {
    /// The reason with this text; `None` if none is declared with it, for example one of another version.
    pub fn named(text: &str) -> Option<Self> {
        let mut all = [COURSES, INSTANCES, POD_NETWORKS, SERVICES].into_iter().flatten();
        all.find(|reason| reason.0 == text).copied()
    }
}

/// What the reference says about a reason.
#[cfg(test)]
#[derive(Clone, Copy)]
pub struct Row {
    /// The reason.
    pub reason: Reason,
    /// What it means.
    pub meaning: &'static str,
    /// The kinds on which it is written, and the types of their conditions that have it, or `Event`.
    pub seen: &'static [(Words, Words)],
    /// Who has to do something: `Student`, `Teacher`, `Administrator` or `Nobody`.
    pub who: &'static [&'static str],
    /// What.
    pub remedy: &'static str,
}

/// Words of a row.
#[cfg(test)]
pub type Words = &'static [&'static str];

#[cfg(test)]
impl Row {
    /// All rows.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        [COURSES_ROWS, INSTANCES_ROWS, POD_NETWORKS_ROWS, SERVICES_ROWS].into_iter().flatten()
    }

    /// Whether a reason is declared for the condition of this type, or for `Event`.
    pub fn declares(reason: Reason, place: &str) -> bool {
        let mut rows = Self::all().filter(|row| row.reason == reason);
        rows.any(|row| row.seen.iter().any(|(_, places)| places.contains(&place)))
    }
}

/// Declares reasons. `$all` and `$rows` are the names of the list of them, and of that with everything else.
macro_rules! reasons {
    ($all:ident, $rows:ident; $(
        $(#[doc = $meaning:literal])+
        $name:ident = $text:literal $(on [$($kind:ident),*] in [$($place:ident),*])+ by $($who:ident),+: $remedy:literal;
    )+) => {
        $($(#[doc = $meaning])+ pub const $name: Reason = Reason($text);)+

        /// All reasons of this file.
        pub(super) const $all: &[Reason] = &[$($name),+];

        /// What the reference says about them.
        #[cfg(test)]
        pub(super) const $rows: &[$crate::api::reason::Row] = &[$($crate::api::reason::Row {
            reason: $name,
            meaning: concat!($($meaning),+),
            seen: &[$((&[$(stringify!($kind)),*], &[$(stringify!($place)),*])),+],
            who: &[$(stringify!($who)),+],
            remedy: $remedy,
        }),+];
    };
}
use reasons;
