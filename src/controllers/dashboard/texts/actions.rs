//! The texts of an action.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::template::Template;

/// The texts of an action.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionTexts {
    /// The label of the button.
    pub label: String,
    /// The notice after the action.
    pub done: String,
    /// The notice after an action that creates a machine, with its name as the placeholder `{name}`.
    pub named: Option<Template>,
    /// The effect of the action, if the label does not explain it.
    pub hint: Option<String>,
    /// The question before the action, or the heading of its form; it can have the placeholder `{name}`.
    pub question: Option<Template>,
    /// The consequence of the action, such as the loss of data.
    pub consequence: Option<String>,
    /// The label of the button that answers the question.
    pub confirm: Option<String>,
    /// The visible fields of the form, by name.
    #[serde(default)]
    pub fields: BTreeMap<String, FieldTexts>,
}

/// The texts of a field.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldTexts {
    /// The label.
    pub label: String,
    /// The expected content; empty if the label is sufficient.
    #[serde(default)]
    pub hint: String,
    /// The words for the values of a choice; a value without one is shown itself.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}
