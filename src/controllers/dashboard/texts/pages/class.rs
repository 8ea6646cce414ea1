//! The texts of the page of a class.

use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::{Plural, Template};

catalogue! {
    /// The page of a class.
    pub struct Class;
    String:
        search, state, any, person, machine, deadline, size, caption, without, not_yet, forbidden, too_many, empty,
        nothing, pages, previous, next, export, select, select_all, hint, start, stop, collect, delete;
    Template: range;
    Plural: people, counting, more;
}
