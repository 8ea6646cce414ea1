//! The fields of specs that request features which the configuration can turn off.
//!
//! The API server stores such a field either way. [`SWITCHES`] pairs each field with its key. The webhook warns the
//! user who writes the field, and the loop of the object reports it in the condition `SwitchedOff`.

use serde::Deserialize;
use serde_json::Value;

use super::types::Controllers;
use crate::api::Kind;
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::instance::{InstanceKind, InstanceSpec};
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::{NEVER, TemplateKind, TemplateSpec};
use crate::api::tenant::{TenantKind, TenantSpec};

use Switch::{Every, Instance, Template, Tenant};

/// A field: the key below `controllers` that must be on for the field to have an effect, and the consequence of the key
/// being off. The function finds the field in the spec of its kind, and returns its name. It returns `None` if the spec
/// does not request anything there.
enum Switch {
    Tenant(&'static str, &'static str, fn(&TenantSpec) -> Option<&'static str>),
    Template(&'static str, &'static str, fn(&TemplateSpec) -> Option<&'static str>),
    Instance(&'static str, &'static str, fn(&InstanceSpec) -> Option<&'static str>),
    /// Every object of the kind with this plural.
    Every(&'static str, &'static str, &'static str),
}

/// All fields.
static SWITCHES: [Switch; 12] = [
    Tenant("tenant.personalWorkspace.enabled", "the Tenant has no personal workspace", |spec| match spec {
        TenantSpec { personal_workspace: Some(_), .. } => Some("personalWorkspace"),
        spec => spec.create_personal_workspace.then_some("createPersonalWorkspace"),
    }),
    Template("publicExposure.enabled", "no port of its Instances is exposed", |spec| {
        spec.allow_public_exposure.then_some("allowPublicExposure")
    }),
    Template("expiration.enabled", "no Instance is deleted for its age", |spec| {
        match &spec.cleanup.delete_after_creation {
            Some(newer) if spec.max_age() == newer => asked(newer, "cleanup.deleteAfterCreation"),
            _ => asked(spec.max_age(), "deleteAfter"),
        }
    }),
    Template("inactivity.enabled", "no Instance is stopped because it is not used", |spec| {
        match &spec.cleanup.stop_after_inactivity {
            Some(newer) if spec.max_idle() == newer => asked(newer, "cleanup.stopAfterInactivity"),
            _ => asked(spec.max_idle(), "inactivityTimeout"),
        }
    }),
    Template("inactivity.enabled", "no Instance is deleted because it stays stopped", |spec| {
        asked(spec.max_off(), "cleanup.deleteAfterInactivity")
    }),
    Template("instance.localVm.enabled", "no Instance can be started", |spec| {
        let is_local = |one: &Environment| one.environment_type == EnvironmentType::LocalVm;
        spec.environment_list.iter().any(is_local).then_some("environmentList[].environmentType: LocalVM")
    }),
    Template("sharedVolume.enabled", "only volumes that are provisioned already can be mounted", |spec| {
        let mounts = |one: &Environment| !one.shared_volume_mounts.is_empty();
        spec.environment_list.iter().any(mounts).then_some("environmentList[].sharedVolumeMounts")
    }),
    Instance("publicExposure.enabled", "no port is exposed", |spec| {
        spec.public_exposure.as_ref().filter(|asked| !asked.ports.is_empty()).map(|_| "publicExposure")
    }),
    Instance(
        "termination.enabled",
        "the URL is not queried, and the Instance is not stopped when the exam is over",
        |spec| match spec.effective_status_check_url() {
            "" => None,
            _ if spec.status_check_url.is_empty() => Some("customizationUrls.statusCheck"),
            _ => Some("statusCheckUrl"),
        },
    ),
    Instance("submission.enabled", "nothing is uploaded", |spec| {
        match &spec.customization_urls.content_destination {
            _ if spec.content_urls.values().any(|urls| !urls.destination.is_empty()) => {
                Some("contentUrls[].destination")
            }
            older => (!older.is_empty()).then_some("customizationUrls.contentDestination"),
        }
    }),
    Every("sharedVolume.enabled", "the volume is not provisioned", SharedVolumeKind::PLURAL),
    Every("snapshot.enabled", "no image is made", InstanceSnapshotKind::PLURAL),
];

impl Switch {
    /// The key, and the consequence of the key being off.
    fn key(&self) -> (&'static str, &'static str) {
        let (Tenant(key, so, _) | Template(key, so, _) | Instance(key, so, _) | Every(key, so, _)) = self;
        (key, so)
    }
}

/// A duration that is not `never`.
fn asked(duration: &str, field: &'static str) -> Option<&'static str> {
    (duration != NEVER && !duration.is_empty()).then_some(field)
}

/// The rows of [`SWITCHES`] whose key is off, by their position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchedOff(Vec<usize>);

impl SwitchedOff {
    /// The keys below `controllers` that turn features off.
    pub(super) fn keys() -> impl Iterator<Item = &'static str> {
        SWITCHES.iter().map(|switch| switch.key().0)
    }

    /// The rows whose key is off in a configuration.
    pub fn of(controllers: &Controllers) -> Self {
        // Plain data can always be converted to a JSON value.
        let values = serde_json::to_value(controllers).unwrap_or_default();
        let is_off =
            |row: &usize| values.pointer(&pointer(SWITCHES[*row].key().0)) == Some(&Value::Bool(false));
        Self((0..SWITCHES.len()).filter(is_off).collect())
    }

    /// A sentence for each field of a Tenant that has no effect.
    pub fn in_tenant(&self, spec: &TenantSpec) -> Vec<String> {
        self.sentences(|switch| if let Tenant(.., field) = switch { field(spec) } else { None })
    }

    /// A sentence for each field of a Template that has no effect.
    pub fn in_template(&self, spec: &TemplateSpec) -> Vec<String> {
        self.sentences(|switch| if let Template(.., field) = switch { field(spec) } else { None })
    }

    /// A sentence for each field of an Instance that has no effect.
    pub fn in_instance(&self, spec: &InstanceSpec) -> Vec<String> {
        self.sentences(|switch| if let Instance(.., field) = switch { field(spec) } else { None })
    }

    /// The same for an object of the kind with this plural. Returns nothing for an object that cannot be decoded.
    pub fn in_object(&self, plural: &str, object: &Value) -> Vec<String> {
        let spec = &object["spec"];
        match plural {
            _ if self.0.is_empty() => Vec::new(),
            TenantKind::PLURAL => read(spec).map(|spec| self.in_tenant(&spec)).unwrap_or_default(),
            TemplateKind::PLURAL => read(spec).map(|spec| self.in_template(&spec)).unwrap_or_default(),
            InstanceKind::PLURAL => read(spec).map(|spec| self.in_instance(&spec)).unwrap_or_default(),
            _ => self.sentences(|switch| match switch {
                Every(.., of) if *of == plural => Some(""),
                _ => None,
            }),
        }
    }

    fn sentences(&self, field: impl Fn(&Switch) -> Option<&'static str>) -> Vec<String> {
        let of = |row: &usize| {
            let switch = SWITCHES.get(*row)?;
            let ((key, so), field) = (switch.key(), field(switch)?);
            let spec = if field.is_empty() { "spec".to_owned() } else { format!("spec.{field}") };
            Some(format!("{spec} has no effect: controllers.{key} is false in this installation, so {so}"))
        };
        self.0.iter().filter_map(of).collect()
    }
}

/// The JSON pointer of a key.
fn pointer(key: &str) -> String {
    format!("/{}", key.replace('.', "/"))
}

fn read<T: for<'de> Deserialize<'de>>(spec: &Value) -> Option<T> {
    T::deserialize(spec).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::api::crd::crds;
    use crate::config::Config;

    /// The configuration with every key of the table on, or off.
    fn controllers(is_on: bool) -> Controllers {
        let mut document = serde_json::to_value(Config::default()).expect("the configuration is JSON");
        for (key, _) in SWITCHES.iter().map(Switch::key) {
            let pointer = format!("/controllers{}", pointer(key));
            *document.pointer_mut(&pointer).expect("every row names a key") = is_on.into();
        }
        serde_json::from_value::<Config>(document).expect("a configuration").controllers
    }

    /// An object of each kind that sets every field of the table.
    fn asking() -> [(&'static str, Value); 5] {
        let mount = json!({"sharedVolume": {"name": "data"}, "mountPath": "/data"});
        let environment = json!({"name": "vm", "environmentType": "LocalVM", "sharedVolumeMounts": [mount]});
        let cleanup = json!({
            "deleteAfterCreation": "30d", "stopAfterInactivity": "1d", "deleteAfterInactivity": "60d",
        });
        [
            ("tenants", json!({"spec": {"personalWorkspace": {"cpu": 1}}})),
            (
                "templates",
                json!({"spec": {
                    "allowPublicExposure": true, "cleanup": cleanup, "environmentList": [environment],
                }}),
            ),
            (
                "instances",
                json!({"spec": {
                    "publicExposure": {"ports": [{"name": "ssh"}]}, "statusCheckUrl": "https://exam.example.org",
                    "contentUrls": {"vm": {"destination": "https://exam.example.org/up"}},
                }}),
            ),
            ("sharedvolumes", json!({"spec": {}})),
            ("instancesnapshots", json!({"spec": {}})),
        ]
    }

    #[test]
    fn every_row_warns_while_its_key_is_off_and_only_then() {
        let (on, off) = (SwitchedOff::of(&controllers(true)), SwitchedOff::of(&controllers(false)));
        let mut sentences = BTreeSet::new();
        for (plural, object) in asking() {
            assert_eq!(on.in_object(plural, &object), Vec::<String>::new(), "{plural}");
            sentences.extend(off.in_object(plural, &object));
        }
        assert_eq!(sentences.len(), SWITCHES.len(), "{sentences:#?}");
        let expected = "spec.personalWorkspace has no effect: controllers.tenant.personalWorkspace.enabled is false in this \
                        installation, so the Tenant has no personal workspace";
        assert!(sentences.contains(expected), "{sentences:#?}");
        for (plural, _) in &asking()[..3] {
            assert_eq!(
                off.in_object(plural, &json!({"spec": {}})),
                Vec::<String>::new(),
                "{plural} asks for nothing"
            );
        }
    }

    #[test]
    fn the_older_field_is_named_where_it_counts() {
        let off = SwitchedOff::of(&controllers(false));
        let older = json!({"spec": {"deleteAfter": "30d", "inactivityTimeout": "1d", "cleanup": {}}});
        let said = off.in_object("templates", &older);
        assert!(
            said[0].starts_with("spec.deleteAfter ") && said[1].starts_with("spec.inactivityTimeout "),
            "{said:?}"
        );
        let older = json!({"spec": {"customizationUrls": {"statusCheck": "https://a", "contentDestination": "https://b"}}});
        let said = off.in_object("instances", &older);
        assert!(
            said[0].starts_with("spec.customizationUrls.statusCheck ")
                && said[1].starts_with("spec.customizationUrls.contentDestination "),
            "{said:?}"
        );
        let older = json!({"spec": {"createPersonalWorkspace": true}});
        assert!(off.in_object("tenants", &older)[0].starts_with("spec.createPersonalWorkspace "));
    }

    #[test]
    fn every_field_that_is_named_is_in_the_crd_of_its_kind() {
        let off = SwitchedOff::of(&controllers(false));
        for (plural, object) in asking() {
            let crd = crds().into_iter().find(|crd| crd.spec.names.plural == plural).expect("a CRD");
            let schema = serde_json::to_value(&crd.spec.versions[0].schema).expect("a schema");
            for sentence in off.in_object(plural, &object) {
                let path = sentence.split([' ', ':']).next().unwrap_or_default();
                let mut place = &schema["openAPIV3Schema"];
                for name in path.split('.') {
                    place = match name.strip_suffix("[]") {
                        None => &place["properties"][name],
                        Some(list) => {
                            let inner = &place["properties"][list];
                            if inner["items"].is_null() {
                                &inner["additionalProperties"]
                            } else {
                                &inner["items"]
                            }
                        }
                    };
                }
                assert!(!place.is_null(), "{plural}: {path}");
            }
        }
    }
}
