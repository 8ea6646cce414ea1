//! Templates: descriptions of lab machines. Instances are made from them.

use std::collections::BTreeMap;

use macro_rules_attribute::apply;

use super::condition::Condition;
use super::custom::{AGE, Column, CustomResource, MESSAGE, REASON};
pub use super::environment::{
    ContainerStartupOptions, Environment, EnvironmentMode, EnvironmentResources, EnvironmentType,
    SharedVolumeMount,
};
use super::names::check_instance;
use super::object::kind;
use super::reference::GenericRef;
use super::wire::{Optional, resource_part, resource_part_without_default};

/// A node selector: labels that a node must have, by key.
pub type Selector = BTreeMap<String, String>;

/// The text of a duration that never elapses.
pub const NEVER: &str = "never";
/// The pattern of `deleteAfter` and `inactivityTimeout`: minutes, hours or days.
const DURATION_PATTERN: &str = "^(never|[0-9]+[mhd])$";
/// The pattern of the durations in `cleanup`, which may also be in seconds.
const CLEANUP_PATTERN: &str = "^(never|[0-9]+[smhd])$";

kind!(
    /// A Template as it is stored in the API server.
    TemplateKind, Template, super::GROUP, "v1alpha2", "Template", "templates", namespaced: true,
    TemplateSpec, TemplateStatus
);

impl CustomResource for TemplateKind {
    const SHORT_NAMES: &'static [&'static str] = &["tmpl"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Pretty Name", ".spec.prettyName"),
        Column::text("Mode", ".spec.environmentList[0].mode"),
        Column::wide("Image", ".spec.environmentList[0].image"),
        Column::wide("Type", ".spec.environmentList[0].environmentType"),
        Column::wide("GUI", ".spec.environmentList[0].guiEnabled"),
        Column::wide("Persistent", ".spec.environmentList[0].persistent"),
        REASON,
        MESSAGE,
        AGE,
    ];
    const DESCRIPTION: &'static str = "The description of a lab machine of a course: the environments \
        that each instance of it consists of, and when instances are cleaned up.";
}

/// Desired state of the template.
#[apply(resource_part_without_default)]
pub struct TemplateSpec {
    /// Name shown to users, for example `Network laboratory`. Required.
    pub pretty_name: String,
    /// Description shown to users, in one or two sentences. Required.
    pub description: String,
    /// Workspace that the template belongs to, for example `{name: netlab}`: its quota applies to the instances, and
    /// its managers can log in to them. Default: none.
    #[serde(rename = "workspace.crownlabs.polito.it/WorkspaceRef")]
    #[serde(skip_serializing_if = "GenericRef::is_empty")]
    #[schemars(default)]
    pub workspace_ref: GenericRef,
    /// Virtual machines and containers of each instance, at least one. Required.
    pub environment_list: Vec<Environment>,
    /// Deprecated: use `cleanup.deleteAfterCreation`, which takes precedence if it is set. Maximum age of an
    /// instance; older instances are deleted: `never` (default), or digits and one of `m`, `h`, `d`, for example
    /// `30d`.
    #[schemars(default = "never", extend("pattern" = DURATION_PATTERN))]
    pub delete_after: String,
    /// Deprecated: use `cleanup.stopAfterInactivity`, which takes precedence if it is set. Maximum time without use;
    /// after that, an instance is stopped: `never` (default), or a duration such as `14d`.
    #[schemars(default = "never", extend("pattern" = DURATION_PATTERN))]
    pub inactivity_timeout: String,
    /// When instances are stopped and deleted automatically. Default: never.
    #[schemars(default)]
    pub cleanup: Cleanup,
    /// Labels of the nodes that the instances may run on, for example `{disk: fast}`. An environment may have its own
    /// node selector. If it is present and empty, each instance may choose its nodes. Default: absent, any node.
    pub node_selector: Option<Selector>,
    /// Whether instances may expose ports on a public IP address (`spec.publicExposure` of the instance).
    /// Defaults to false.
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

/// When instances are stopped and deleted automatically: `never`, or digits and one of `s`, `m`, `h`, `d`. If a field
/// is absent, or all three fields are `never`, the older field of the template with the same purpose applies.
#[apply(resource_part)]
pub struct Cleanup {
    /// Maximum age of an instance, for example `30d`; older instances are deleted, even if they are in use. Default:
    /// the value of `spec.deleteAfter`.
    #[schemars(extend("pattern" = CLEANUP_PATTERN))]
    pub delete_after_creation: Option<String>,
    /// Maximum time without use, for example `24h`; after that, an instance is stopped, or deleted if it is not
    /// persistent. Default: the value of `spec.inactivityTimeout`.
    #[schemars(extend("pattern" = CLEANUP_PATTERN))]
    pub stop_after_inactivity: Option<String>,
    /// Maximum time that a persistent instance can stay stopped before it is deleted, for example `90d`. Default:
    /// `never`.
    #[schemars(extend("pattern" = CLEANUP_PATTERN))]
    pub delete_after_inactivity: Option<String>,
}

/// Effective values. The API has older and newer fields for the same purpose. The newer field takes precedence if it
/// is present, unless all newer fields are `never`. `Lifetime::parse` reads the durations.
impl TemplateSpec {
    /// Whether any environment is persistent. If so, an Instance can be stopped; otherwise it can only be deleted.
    pub fn is_persistent(&self) -> bool {
        self.environment_list.iter().any(|environment| environment.persistent)
    }

    /// The maximum age of an Instance before it is deleted.
    pub fn max_age(&self) -> &str {
        either(self.newer(self.cleanup.delete_after_creation.as_deref()), &self.delete_after)
    }

    /// The maximum time without use before an Instance is stopped.
    pub fn max_idle(&self) -> &str {
        either(self.newer(self.cleanup.stop_after_inactivity.as_deref()), &self.inactivity_timeout)
    }

    /// The maximum time that an Instance stays stopped before it is deleted.
    pub fn max_off(&self) -> &str {
        either(self.cleanup.delete_after_inactivity.as_deref(), NEVER)
    }

    /// Returns the value of a newer field if it is present and applies. Dashboards write `never` into all three fields
    /// when they edit a Template that only has the older fields, so such a `cleanup` is ignored.
    fn newer<'a>(&self, value: Option<&'a str>) -> Option<&'a str> {
        let Cleanup { delete_after_creation, stop_after_inactivity, delete_after_inactivity } = &self.cleanup;
        let fields = [delete_after_creation, stop_after_inactivity, delete_after_inactivity];
        let is_default = fields.iter().all(|field| field.as_deref() == Some(NEVER));
        value.filter(|_| !is_default)
    }

    /// Returns a sentence for each older field whose value differs from the newer field with the same purpose. It
    /// says which of the two applies. An older field with the value `never` is ignored.
    pub fn cleanup_remarks(&self) -> Vec<String> {
        let cleanup = &self.cleanup;
        let age = (&cleanup.delete_after_creation, &self.delete_after, self.max_age());
        let idle = (&cleanup.stop_after_inactivity, &self.inactivity_timeout, self.max_idle());
        let pairs =
            [("deleteAfterCreation", "deleteAfter", age), ("stopAfterInactivity", "inactivityTimeout", idle)];
        let remarks = pairs.into_iter().filter_map(|(newer_name, older_name, (newer, older, counts))| {
            let newer =
                newer.as_deref().filter(|newer| older != newer && !older.is_empty() && older != NEVER)?;
            Some(if counts == older {
                format!("{older_name}: {older} applies, because all of cleanup is never")
            } else {
                format!("cleanup.{newer_name}: {newer} applies, not {older_name}: {older}")
            })
        });
        remarks.collect()
    }

    /// The node selector of an environment: its own if it is present, even if empty, and otherwise the one of the
    /// Template.
    pub fn node_selector_of<'a>(&'a self, environment: &'a Environment) -> Option<&'a Selector> {
        environment.node_selector.as_ref().or(self.node_selector.as_ref())
    }

    /// The environment with this name, if it exists.
    pub fn environment(&self, name: &str) -> Option<&Environment> {
        self.environment_list.iter().find(|environment| environment.name == name)
    }
}

/// Returns the name of a new Instance: the name of its Template, shortened so that the names of all objects are valid,
/// and a suffix of at most 20 lowercase letters and digits.
pub fn instance_name(template: &Template, suffix: &str) -> String {
    let environments = &template.spec.environment_list;
    let fits = |name: &str| {
        environments.iter().all(|environment| check_instance(name, Some(&environment.name)).is_ok())
            && check_instance(name, None).is_ok()
    };
    let plain = template.name().replace('.', "-");
    let begins = (1..=plain.len()).rev().filter_map(|length| plain.get(..length));
    let mut names = begins.map(|begin| format!("{}-{suffix}", begin.trim_end_matches('-')));
    names.find(|name| fits(name)).unwrap_or_else(|| format!("m-{suffix}"))
}

/// Returns the newer value if it is present, and otherwise the older one. An empty older value means never.
fn either<'a>(newer: Option<&'a str>, older: &'a str) -> &'a str {
    match newer {
        Some(newer) => newer,
        None if older.is_empty() => NEVER,
        None => older,
    }
}

/// Observed state of the template.
#[apply(resource_part)]
pub struct TemplateStatus {
    /// Generation of the spec that the status describes. If it is less than `metadata.generation`, the last change
    /// has not been processed yet.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Conditions of the template. `Valid` says whether instances can be made from it at all. `Ready` says whether
    /// its environments can start on this cluster now.
    pub conditions: Optional<Vec<Condition>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(value: &str) -> Selector {
        Selector::from([("disk".to_owned(), value.to_owned())])
    }

    /// A spec with these values of the older fields `deleteAfter` and `inactivityTimeout`, and of the newer fields.
    fn spec(older: [&str; 2], newer: [Option<&str>; 3]) -> TemplateSpec {
        let [delete_after, inactivity_timeout] = older.map(str::to_owned);
        let [delete_after_creation, stop_after_inactivity, delete_after_inactivity] =
            newer.map(|text| text.map(str::to_owned));
        let cleanup = Cleanup { delete_after_creation, stop_after_inactivity, delete_after_inactivity };
        TemplateSpec { delete_after, inactivity_timeout, cleanup, ..TemplateSpec::default() }
    }

    #[test]
    fn newer_durations_apply_unless_all_of_them_are_never() {
        let no = Some(NEVER);
        for (older, newer, effective) in [
            (["30d", "24h"], [None; 3], ["30d", "24h", NEVER]),
            (["30d", "24h"], [no, Some("90s"), Some("7d")], [NEVER, "90s", "7d"]),
            (["30d", "24h"], [no, no, Some("7d")], [NEVER, NEVER, "7d"]),
            (["30d", "24h"], [no, no, None], [NEVER, NEVER, NEVER]),
            // The values that dashboards write.
            (["30d", "24h"], [no; 3], ["30d", "24h", NEVER]),
            ([NEVER, "24h"], [no; 3], [NEVER, "24h", NEVER]),
            (["", ""], [None; 3], [NEVER; 3]),
            (["", ""], [no; 3], [NEVER; 3]),
        ] {
            let spec = spec(older, newer);
            assert_eq!([spec.max_age(), spec.max_idle(), spec.max_off()], effective, "{older:?} {newer:?}");
        }
    }

    #[test]
    fn conflicting_durations_are_reported_with_the_one_that_applies() {
        let no = Some(NEVER);
        for (older, newer, remarks) in [
            (["1d", "1h"], [None; 3], &[][..]),
            (["1d", "1h"], [Some("1d"), Some("1h"), None], &[]),
            ([NEVER, ""], [Some("1d"), Some("1h"), None], &[]),
            (
                ["2d", "1h"],
                [Some("1d"), Some("1h"), no],
                &["cleanup.deleteAfterCreation: 1d applies, not deleteAfter: 2d"],
            ),
            (
                [NEVER, "1h"],
                [Some("1d"), no, None],
                &["cleanup.stopAfterInactivity: never applies, not inactivityTimeout: 1h"],
            ),
            (
                ["2d", "1h"],
                [no; 3],
                &[
                    "deleteAfter: 2d applies, because all of cleanup is never",
                    "inactivityTimeout: 1h applies, because all of cleanup is never",
                ],
            ),
        ] {
            assert_eq!(spec(older, newer).cleanup_remarks(), remarks, "{older:?} {newer:?}");
        }
    }

    #[test]
    fn the_selector_of_the_environment_applies_even_if_empty() {
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
