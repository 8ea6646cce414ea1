//! The reasons of conditions and events: every reason that the daemon writes, with its meaning.
//!
//! A [`Reason`] can only be one of the constants here, so conditions and events have no other reasons. Each constant
//! is declared with the kinds that have it, the conditions that use it (or `Event`), and the roles that can act, with
//! the action. The program contains only the constants and the roles. `docs/reference/reasons.md` has all of it, and a
//! test keeps it up to date.

use super::text::word;

mod causes;
mod courses;
mod instances;
mod pod_networks;
mod services;

#[cfg(test)]
pub(crate) mod reference;

pub use causes::{CauseRow, Source};
pub use courses::*;
pub use instances::*;
pub use pod_networks::*;
pub use services::*;

word!(
    /// A reason: a stable word in `CamelCase`, one of the constants of this module.
    Reason
);

impl Reason {
    /// The reason with this text; `None` if it is not declared, for example because another version wrote it.
    pub fn named(text: &str) -> Option<Self> {
        Declared::named(text).map(|declared| declared.reason)
    }

    /// The roles that can act on the reason with this text, in lower case: `student`, `teacher`, `administrator`. Empty
    /// if no one has to act; `None` if the reason is not declared.
    pub fn actors(text: &str) -> Option<Vec<String>> {
        let roles = Declared::named(text)?.who.iter().filter(|role| **role != NOBODY);
        Some(roles.map(|role| role.to_lowercase()).collect())
    }
}

/// The role of reasons that no one has to act on.
const NOBODY: &str = "Nobody";

/// A reason, and the roles that can act.
struct Declared {
    reason: Reason,
    who: &'static [&'static str],
}

impl Declared {
    /// All reasons.
    fn all() -> impl Iterator<Item = &'static Self> {
        [COURSES, INSTANCES, POD_NETWORKS, SERVICES].into_iter().flatten()
    }

    fn named(text: &str) -> Option<&'static Self> {
        Self::all().find(|declared| declared.reason.0 == text)
    }
}

/// The entry of a reason in the reference.
#[cfg(test)]
#[derive(Clone, Copy)]
pub struct Row {
    /// The reason.
    pub reason: Reason,
    /// Its meaning.
    pub meaning: &'static str,
    /// The kinds that have the reason, each with the types of its conditions that use it, or `Event`.
    pub seen: &'static [(Words, Words)],
    /// The roles that have to act: `Student`, `Teacher`, `Administrator` or `Nobody`.
    pub who: &'static [&'static str],
    /// The action.
    pub remedy: &'static str,
}

/// A list of words in a row.
#[cfg(test)]
pub type Words = &'static [&'static str];

#[cfg(test)]
impl Row {
    /// All rows.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        [COURSES_ROWS, INSTANCES_ROWS, POD_NETWORKS_ROWS, SERVICES_ROWS].into_iter().flatten()
    }

    /// Whether a reason is declared for conditions of this type, or for `Event`.
    pub fn declares(reason: Reason, place: &str) -> bool {
        let mut rows = Self::all().filter(|row| row.reason == reason);
        rows.any(|row| row.seen.iter().any(|(_, places)| places.contains(&place)))
    }
}

/// Declares reasons. `$all` and `$rows` name the list of the reasons, and the list of their entries in the reference.
macro_rules! reasons {
    ($all:ident, $rows:ident; $(
        $(#[doc = $meaning:literal])+
        $name:ident = $text:literal $(on [$($kind:ident),*] in [$($place:ident),*])+ by $($who:ident),+: $remedy:literal;
    )+) => {
        $($(#[doc = $meaning])+ pub const $name: Reason = Reason($text);)+

        /// All reasons of this file.
        pub(super) const $all: &[$crate::api::reason::Declared] =
            &[$($crate::api::reason::Declared { reason: $name, who: &[$(stringify!($who)),+] }),+];

        /// The entries of the reasons in the reference.
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
