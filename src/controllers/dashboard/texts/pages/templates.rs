//! The texts of the pages about Templates.

use std::collections::BTreeMap;

use crate::controllers::dashboard::templates::fields::Group;
use crate::controllers::dashboard::texts::actions::FieldTexts;
use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::{Plural, Table, Template};

catalogue! {
    /// The texts of the Templates of a course and of the personal workspace.
    pub struct TemplateTexts;
    String:
        own, new, edit, edit_yaml, copy, unchecked, usable, unused, use_unknown, link, preview_title, per_machine,
        sources, sources_hint, from_template, from_snapshot, from_machine, name, name_hint, reserved, required,
        not_saved, preview, as_yaml, as_form, yaml_hint, add_environment, remove_environment, more_fields, edit_hint,
        for_all_hint, changes, no_changes, for_all, for_new, not_touched, environments_added, environments_removed,
        default_choice, users_choose, label_column, resource_column, amount_column, volume_column, path_column,
        read_only;
    Template: used, class_needs, class_has, environment;
    Plural: students, more;
    Table<Group>: groups;
    BTreeMap<String, FieldTexts>: fields;
}
