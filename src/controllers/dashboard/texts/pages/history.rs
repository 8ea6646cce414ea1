//! The texts of histories, and of the technical details of a machine.

use crate::controllers::dashboard::history::model::Did;
use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::{Table, Template};

catalogue! {
    /// The texts of a history.
    pub struct HistoryTexts;
    String: heading, hint, no_events;
    Template: by, wrote, became;
    Table<Did>: did;
}

catalogue! {
    /// The texts of the technical details of a machine.
    pub struct TechnicalTexts;
    String: heading, hint, caption, kind, status, reason, message, since, phase, environments, node, behind;
}
