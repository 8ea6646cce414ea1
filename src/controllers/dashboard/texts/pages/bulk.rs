//! The texts of the actions on a class.

use crate::class::model::Verb;
use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::{Key, Plural, Table, Template};

impl Key for Verb {
    const ALL: &'static [Self] = Self::ALL;
}

catalogue! {
    /// The texts of the actions on a class.
    pub struct Bulk;
    String:
        all, any_template, next, nothing, too_many, over, result, reason, running, to_do, unchanged, refused,
        no_machine, later, newer, not_enrolled, no_namespace, leaving, no_destination, csv, back;
    Template: not_uploaded, quota;
    Plural: selected, checked, go_on, again, more;
    Table<Verb>: heading, consequence, done, already;
    Table<Verb, Plural>: question, confirm;
}
