//! The texts of the pages about the people of a course.

use crate::controllers::dashboard::people::step::Step;
use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::{Plural, Table, Template};

catalogue! {
    /// The texts of the people of a course.
    pub struct PeopleTexts;
    String:
        candidates, no_candidates, approve_all, reject_all, enrolled, no_people, none_found, student, manager,
        candidate, outside, search, add, add_hint, import, pages, previous, next, role, machines,
        hidden_machines, no_machines, removal_hint, list, list_hint, file, preview, check, results, apply, go_on,
        back, correct, not_yet;
    Template: page_of, line;
    Plural: more, planned, made, faults, late;
    Table<Step, Template>: steps;
}
