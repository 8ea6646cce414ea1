//! Templates: what instances are made from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{AGE, Column, CustomResource};
pub use super::environment::{
    ContainerStartupOptions, Environment, EnvironmentMode, EnvironmentResources, EnvironmentType,
    SharedVolumeMount,
};
use super::object::{Kind, Object};
use super::reference::GenericRef;

/// Labels that a node must carry.
pub type Selector = BTreeMap<String, String>;

/// A duration of a template that never passes.
pub const NEVER: &str = "never";
/// The pattern of the older durations.
const DURATION_PATTERN: &str = "^(never|[0-9]+[mhd])$";
/// The pattern of the newer durations, which may be given in seconds too.
const CLEANUP_PATTERN: &str = "^(never|[0-9]+[smhd])$";

/// The kind of [`Template`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateKind;

/// What instances are made from.
pub type Template = Object<TemplateKind>;

impl Kind for TemplateKind {
    const GROUP: &'static str = super::GROUP;
    const VERSION: &'static str = "v1alpha2";
    const KIND: &'static str = "Template";
    const PLURAL: &'static str = "templates";
    const NAMESPACED: bool = true;
    type Spec = TemplateSpec;
    type Status = TemplateStatus;
}

impl CustomResource for TemplateKind {
    const SHORT_NAMES: &'static [&'static str] = &["tmpl"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Pretty Name", ".spec.prettyName"),
        Column::text("Mode", ".spec.environmentList[0].mode"),
        Column::wide("Image", ".spec.environmentList[0].image"),
        Column::wide("Type", ".spec.environmentList[0].environmentType"),
        Column::wide("GUI", ".spec.environmentList[0].guiEnabled"),
        Column::wide("Persistent", ".spec.environmentList[0].persistent"),
        AGE,
    ];
    const DESCRIPTION: &'static str = "What the instances of a course are made from.";
}

/// What a template offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct TemplateSpec {
    /// The name that users see.
    pub pretty_name: String,
    /// What it is for.
    pub description: String,
    /// The workspace that it belongs to.
    #[serde(rename = "workspace.crownlabs.polito.it/WorkspaceRef")]
    #[serde(skip_serializing_if = "GenericRef::is_empty")]
    #[schemars(default)]
    pub workspace_ref: GenericRef,
    /// The machines and containers of each instance.
    pub environment_list: Vec<Environment>,
    /// The age at which an instance is deleted, or never.
    /// Deprecated: cleanup.deleteAfterCreation, where set, counts instead.
    #[schemars(default = "never", extend("pattern" = DURATION_PATTERN))]
    pub delete_after: String,
    /// How long an instance may be idle before it is stopped, or never.
    /// Deprecated: cleanup.stopAfterInactivity, where set, counts instead.
    #[schemars(default = "never", extend("pattern" = DURATION_PATTERN))]
    pub inactivity_timeout: String,
    /// When instances are stopped and deleted.
    #[schemars(default)]
    pub cleanup: Cleanup,
    /// The labels of the nodes that environments without a selector of their own run on. If it is
    /// present but empty, each instance may choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub node_selector: Option<Selector>,
    /// Whether instances may ask for ports on a public address.
    #[schemars(default)]
    pub allow_public_exposure: bool,
}

fn never() -> String {
    NEVER.to_owned()
}

impl Default for TemplateSpec {
    fn default() -> Self {
        Self {
            pretty_name: String::new(),
            description: String::new(),
            workspace_ref: GenericRef::default(),
            environment_list: Vec::new(),
            delete_after: never(),
            inactivity_timeout: never(),
            cleanup: Cleanup::default(),
            node_selector: None,
            allow_public_exposure: false,
        }
    }
}

/// When instances are stopped and deleted. An absent member leaves the decision to the older
/// members of the template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Cleanup {
    /// The age at which an instance is deleted, used or not, or never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, extend("pattern" = CLEANUP_PATTERN))]
    pub delete_after_creation: Option<String>,
    /// How long an instance may be idle before it is stopped, or deleted if it is not persistent,
    /// or never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, extend("pattern" = CLEANUP_PATTERN))]
    pub stop_after_inactivity: Option<String>,
    /// How long a persistent instance may stay stopped before it is deleted, or never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, extend("pattern" = CLEANUP_PATTERN))]
    pub delete_after_inactivity: Option<String>,
}

/// A member of [`Cleanup`] and an older member of the template that ask for different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupConflict<'a> {
    /// The newer member, whose value counts.
    pub cleanup: &'static str,
    /// Its value.
    pub effective: &'a str,
    /// The older member.
    pub older: &'static str,
    /// Its value.
    pub ignored: &'a str,
}

/// Which member counts where several say the same thing (01 §4.2).
impl TemplateSpec {
    /// The age at which an instance is deleted.
    #[must_use]
    pub fn max_age(&self) -> &str {
        either(self.cleanup.delete_after_creation.as_deref(), &self.delete_after)
    }

    /// How long an instance may be idle before it is stopped.
    #[must_use]
    pub fn max_idle(&self) -> &str {
        either(self.cleanup.stop_after_inactivity.as_deref(), &self.inactivity_timeout)
    }

    /// How long an instance may stay stopped before it is deleted.
    #[must_use]
    pub fn max_off(&self) -> &str {
        either(self.cleanup.delete_after_inactivity.as_deref(), NEVER)
    }

    /// The older members that are set to something else than the newer ones.
    #[must_use]
    pub fn cleanup_conflicts(&self) -> Vec<CleanupConflict<'_>> {
        let age = self.cleanup.delete_after_creation.as_deref();
        let idle = self.cleanup.stop_after_inactivity.as_deref();
        let pairs = [
            (age, "cleanup.deleteAfterCreation", self.delete_after.as_str(), "deleteAfter"),
            (idle, "cleanup.stopAfterInactivity", self.inactivity_timeout.as_str(), "inactivityTimeout"),
        ];
        let set = |value: &str| value != NEVER && !value.is_empty();
        pairs
            .into_iter()
            .filter_map(|(effective, cleanup, ignored, older)| {
                let effective = effective.filter(|value| set(value) && set(ignored) && *value != ignored)?;
                Some(CleanupConflict { cleanup, effective, older, ignored })
            })
            .collect()
    }

    /// The node selector of an environment: its own if present, even empty, else the template's.
    #[must_use]
    pub fn node_selector_of<'a>(&'a self, environment: &'a Environment) -> Option<&'a Selector> {
        environment.node_selector.as_ref().or(self.node_selector.as_ref())
    }

    /// The environment of that name.
    #[must_use]
    pub fn environment(&self, name: &str) -> Option<&Environment> {
        self.environment_list.iter().find(|environment| environment.name == name)
    }
}

/// The first that is present; an empty older one means never.
fn either<'a>(newer: Option<&'a str>, older: &'a str) -> &'a str {
    match newer {
        Some(newer) => newer,
        None if older.is_empty() => NEVER,
        None => older,
    }
}

/// What is reported of a template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct TemplateStatus {
    /// The state of the template in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(value: &str) -> Selector {
        Selector::from([("disk".to_owned(), value.to_owned())])
    }

    #[test]
    fn newer_durations_count_even_if_never() {
        let spec = TemplateSpec {
            delete_after: "30d".to_owned(),
            inactivity_timeout: "24h".to_owned(),
            ..TemplateSpec::default()
        };
        assert_eq!((spec.max_age(), spec.max_idle(), spec.max_off()), ("30d", "24h", NEVER));
        let cleanup = Cleanup {
            delete_after_creation: Some(never()),
            stop_after_inactivity: Some("90s".to_owned()),
            delete_after_inactivity: Some("7d".to_owned()),
        };
        let spec = TemplateSpec { cleanup, ..spec };
        assert_eq!((spec.max_age(), spec.max_idle(), spec.max_off()), (NEVER, "90s", "7d"));
        let spec = TemplateSpec { delete_after: String::new(), ..TemplateSpec::default() };
        assert_eq!((spec.max_age(), spec.max_idle(), spec.max_off()), (NEVER, NEVER, NEVER));
    }

    #[test]
    fn only_two_limits_that_differ_are_a_conflict() {
        let conflicts = |newer: &str, older: &str| {
            let cleanup = Cleanup { stop_after_inactivity: Some(newer.to_owned()), ..Cleanup::default() };
            let spec =
                TemplateSpec { cleanup, inactivity_timeout: older.to_owned(), ..TemplateSpec::default() };
            spec.cleanup_conflicts().len()
        };
        assert_eq!(conflicts("1h", "1h"), 0);
        assert_eq!(conflicts("never", "1h"), 0);
        assert_eq!(conflicts("1h", "never"), 0);
        assert_eq!(conflicts("1h", ""), 0);
        assert_eq!(conflicts("1h", "2h"), 1);
        let cleanup = Cleanup { delete_after_creation: Some("1d".to_owned()), ..Cleanup::default() };
        let spec = TemplateSpec { cleanup, delete_after: "2d".to_owned(), ..TemplateSpec::default() };
        let conflict = CleanupConflict {
            cleanup: "cleanup.deleteAfterCreation",
            effective: "1d",
            older: "deleteAfter",
            ignored: "2d",
        };
        assert_eq!(spec.cleanup_conflicts(), [conflict]);
    }

    #[test]
    fn the_selector_of_the_environment_counts_even_if_empty() {
        let template = |node_selector| TemplateSpec { node_selector, ..TemplateSpec::default() };
        let environment = |node_selector| Environment { node_selector, ..Environment::default() };
        let (fast, slow, empty) = (selector("fast"), selector("slow"), Selector::new());
        let cases = [
            (None, None, None),
            (None, Some(&fast), Some(&fast)),
            (Some(&slow), Some(&fast), Some(&slow)),
            (Some(&empty), Some(&fast), Some(&empty)),
            (Some(&slow), None, Some(&slow)),
        ];
        for (own, general, effective) in cases {
            let (template, environment) = (template(general.cloned()), environment(own.cloned()));
            assert_eq!(template.node_selector_of(&environment), effective, "{own:?} {general:?}");
        }
    }

    #[test]
    fn environments_are_found_by_name() {
        let environment = Environment { name: "db".to_owned(), ..Environment::default() };
        let spec = TemplateSpec { environment_list: vec![environment.clone()], ..TemplateSpec::default() };
        assert_eq!(spec.environment("db"), Some(&environment));
        assert_eq!(spec.environment("web"), None);
    }
}
