//! Faults of a Template that prevent its Instances, or some of their environments, from being created on any cluster.
//! The webhook, the conditions of the Template, and the loop that creates Instances use them.

use std::collections::BTreeSet;

use super::environment::{Environment, EnvironmentType};
use super::image::is_image;
use super::names::{check_dns_label, check_label_value, is_label_key};
use super::parts::reserved_for;
use super::reason::{self, Reason};
use super::resources::Resources;
use super::template::{Selector, TemplateSpec};
use super::usage::{Share, Usage};
use super::workspace::WorkspaceQuota;

/// A fault of a Template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// The environment with the fault; `None` for the whole Template.
    pub environment: Option<String>,
    /// The path of the invalid field: within the environment, such as `resources.memory`, or else within the spec; empty
    /// if no single field is invalid.
    pub field: String,
    /// The reason for conditions and events.
    pub reason: Reason,
    /// A sentence for teachers: the fault, its place, and a valid value.
    pub message: String,
}

impl TemplateFault {
    /// A fault of an environment. The name of the environment is put before the message.
    pub fn of(environment: &Environment, reason: Reason, message: &str) -> Self {
        let name = &environment.name;
        let (environment, message) = (Some(name.clone()), format!("environment {name}: {message}"));
        Self { environment, field: String::new(), reason, message }
    }

    fn of_template(field: &str, message: String) -> Self {
        Self { environment: None, field: field.to_owned(), reason: reason::INVALID_TEMPLATE, message }
    }

    /// Names the invalid field.
    #[must_use]
    pub fn at(self, field: &str) -> Self {
        Self { field: field.to_owned(), ..self }
    }

    /// Returns the path of the invalid field in the Template; `None` if no single field is invalid.
    pub fn path(&self, spec: &TemplateSpec) -> Option<String> {
        let Some(name) = &self.environment else {
            return Some(format!("spec.{}", self.field)).filter(|_| !self.field.is_empty());
        };
        let index = spec.environment_list.iter().position(|environment| environment.name == *name)?;
        let dot = if self.field.is_empty() { "" } else { "." };
        Some(format!("spec.environmentList[{index}]{dot}{}", self.field))
    }

    /// All faults of a Template.
    pub fn all(spec: &TemplateSpec) -> Vec<Self> {
        let list = &spec.environment_list;
        let mut faults = Vec::new();
        if list.is_empty() {
            let message = "spec.environmentList must name at least one environment".to_owned();
            faults.push(Self::of_template("environmentList", message));
        }
        let mut names = BTreeSet::new();
        for environment in list.iter().filter(|environment| !names.insert(&environment.name)) {
            let message = format!("two environments are named {}", environment.name);
            faults.push(Self::of_template("environmentList", message));
        }
        let selector = spec.node_selector.iter().filter_map(wrong_label);
        let of_selector = |label| Self::of_template("nodeSelector", format!("spec.nodeSelector: {label}"));
        faults.extend(selector.map(of_selector));
        faults.extend(list.iter().flat_map(Self::of_environment));
        faults
    }

    /// The fault that one Instance of the Template needs more than the quota of its Workspace gives to a Tenant.
    pub fn of_quota(spec: &TemplateSpec, workspace: &str, quota: &WorkspaceQuota) -> Option<Self> {
        let mut usage = Usage::default();
        usage.add(Some(spec));
        let exceeded: Vec<Share> = quota.shares(&usage).into_iter().filter(Share::is_exceeded).collect();
        let message = format!(
            "one Instance of this Template uses more than the quota of the Workspace {workspace} gives to a Tenant: {}",
            Share::list(&exceeded)
        );
        let fault = Self { reason: reason::EXCEEDS_QUOTA, ..Self::of_template("", message) };
        (!exceeded.is_empty()).then_some(fault)
    }

    /// The environments with a reserved name. Instances can be made with them, but then the part that the name is
    /// reserved for cannot be created. New Templates must not use such names.
    pub fn of_reserved_names(spec: &TemplateSpec) -> Vec<Self> {
        let reserved = spec.environment_list.iter().filter_map(|environment| {
            let part = reserved_for(&environment.name)?;
            let message = format!(
                "the name is reserved for {} of an Instance, whose objects have the same names: choose another name",
                part.called
            );
            Some(Self::of(environment, reason::NAME_CONFLICT, &message).at("name"))
        });
        reserved.collect()
    }

    /// The faults of an environment.
    fn of_environment(environment: &Environment) -> Vec<Self> {
        let invalid = |message: &str| Self::of(environment, reason::INVALID_TEMPLATE, message);
        let mut faults = Vec::new();
        if let Err(error) = check_dns_label(&environment.name) {
            faults.push(Self { message: format!("spec.environmentList: {error}"), ..invalid("").at("name") });
        }
        faults.extend(Self::of_type(environment));
        faults.extend(Self::of_persistence(environment));
        faults.extend(Self::of_image(environment));
        faults.extend(Resources::of(environment).err());
        if environment.persistent {
            faults.extend(Resources::disk(environment).err());
        }
        let selector = environment.node_selector.iter().filter_map(wrong_label);
        faults.extend(selector.map(|label| invalid(&format!("nodeSelector: {label}")).at("nodeSelector")));
        faults.extend(Self::of_mounts(environment));
        faults
    }

    /// The fault that the type of the environment is unknown.
    pub fn of_type(environment: &Environment) -> Option<Self> {
        let EnvironmentType::Other(name) = &environment.environment_type else { return None };
        let message = format!(
            "environmentType \"{name}\" is not known; VirtualMachine, CloudVM, LocalVM, Container or Standalone is \
             expected"
        );
        Some(Self::of(environment, reason::INVALID_TEMPLATE, &message).at("environmentType"))
    }

    /// The fault that a machine is not persistent although its image is a disk that has to be copied.
    pub fn of_persistence(environment: &Environment) -> Option<Self> {
        let kind = &environment.environment_type;
        let needs_disk = matches!(kind, EnvironmentType::CloudVm | EnvironmentType::LocalVm);
        let message = format!("a {kind} must be persistent because its image is a disk");
        (needs_disk && !environment.persistent)
            .then(|| Self::of(environment, reason::NOT_PERSISTENT, &message).at("persistent"))
    }

    fn of_image(environment: &Environment) -> Option<Self> {
        let image = &environment.image;
        let expected = match environment.environment_type {
            EnvironmentType::LocalVm => return Self::of_local_image(environment),
            EnvironmentType::Other(_) => return None,
            EnvironmentType::CloudVm if is_url(image) => return None,
            EnvironmentType::CloudVm => "a URL that begins with https:// or http:// is expected",
            _ if is_image(&lower_host(image)) => return None,
            _ => "an image such as registry.example.org/machines/ubuntu:24.04 is expected",
        };
        let message = format!("image is \"{image}\"; {expected}");
        Some(Self::of(environment, reason::INVALID_IMAGE, &message).at("image"))
    }

    /// The fault that the image of a `LocalVM` names no volume.
    pub fn of_local_image(environment: &Environment) -> Option<Self> {
        let image = &environment.image;
        let message = match image.split_once('/').filter(|(_, claim)| !claim.contains('/')) {
            None => format!("the image of a LocalVM is \"{image}\"; NAMESPACE/CLAIM is expected"),
            Some(("", _) | (_, "")) => format!("image \"{image}\" lacks a namespace or a claim"),
            Some(_) => return None,
        };
        Some(Self::of(environment, reason::INVALID_IMAGE, &message).at("image"))
    }

    /// The faults of paths that volumes cannot be mounted at.
    fn of_mounts(environment: &Environment) -> Vec<Self> {
        let mut paths = BTreeSet::new();
        let mounts = environment.shared_volume_mounts.iter();
        let wrong = mounts.filter_map(|mount| {
            let path = &*mount.mount_path;
            let why = if !path.starts_with('/') || path.contains(':') {
                "an absolute path without colons, such as /media/materials, is expected"
            } else if !paths.insert(path) {
                "another volume is mounted there, too"
            } else {
                return None;
            };
            let message = format!("sharedVolumeMounts: mountPath is \"{path}\": {why}");
            Some(Self::of(environment, reason::INVALID_TEMPLATE, &message).at("sharedVolumeMounts"))
        });
        wrong.collect()
    }
}

/// The error of the first label in a selector that cannot be the label of a node.
fn wrong_label(selector: &Selector) -> Option<String> {
    selector.iter().find_map(|(key, value)| {
        if !is_label_key(key) {
            return Some(format!(
                "\"{key}\" cannot be the key of a label; one such as example.org/disk is expected"
            ));
        }
        check_label_value(value).err().map(|error| format!("{key}: {error}"))
    })
}

/// Returns an image with its registry, if any, in lower case: the host name of a registry may be in upper case.
fn lower_host(image: &str) -> String {
    match image.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) => format!("{}/{path}", host.to_ascii_lowercase()),
        _ => image.to_owned(),
    }
}

/// Whether a text is a URL that a disk can be downloaded from.
fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.starts_with(['/', ':', '?', '#']) && !rest.is_empty())
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn environment(more: &Value) -> Value {
        let mut environment = json!({
            "name": "desktop", "environmentType": "VirtualMachine", "image": "registry.example.org/machines/ubuntu:24.04",
            "persistent": true,
            "resources": {"cpu": 2, "reservedCPUPercentage": 50, "memory": "4Gi", "disk": "10Gi"},
        });
        json_patch::merge(&mut environment, more);
        environment
    }

    fn faults(spec: Value) -> Vec<(Reason, String)> {
        let spec: TemplateSpec = serde_json::from_value(spec).expect("a spec");
        TemplateFault::all(&spec).into_iter().map(|fault| (fault.reason, fault.message)).collect()
    }

    #[test]
    fn each_fault_is_reported_with_its_environment() {
        for (more, reason, message) in [
            (json!({"name": "Desktop"}), reason::INVALID_TEMPLATE, "spec.environmentList: name \"Desktop\""),
            (
                json!({"environmentType": "VM"}),
                reason::INVALID_TEMPLATE,
                "environmentType \"VM\" is not known",
            ),
            (
                json!({"environmentType": "CloudVM", "image": "https://a.b/disk.qcow2", "persistent": false}),
                reason::NOT_PERSISTENT,
                "a CloudVM must be persistent",
            ),
            (json!({"resources": {"disk": null}}), reason::DISK_MISSING, "is persistent but has no disk"),
            (json!({"resources": {"disk": "0"}}), reason::DISK_MISSING, "is persistent but has no disk"),
            (
                json!({"resources": {"memory": "0"}}),
                reason::INVALID_QUANTITY,
                "memory must be more than zero",
            ),
            (json!({"resources": {"cpu": 0}}), reason::INVALID_QUANTITY, "cpu must be at least 1"),
            (json!({"image": "Ubuntu 24"}), reason::INVALID_IMAGE, "image is \"Ubuntu 24\""),
            (json!({"image": ""}), reason::INVALID_IMAGE, "image is \"\""),
            (json!({"image": "docker://a.b/c"}), reason::INVALID_IMAGE, "image is \"docker://a.b/c\""),
            (json!({"environmentType": "CloudVM"}), reason::INVALID_IMAGE, "begins with https:// or http://"),
            (
                json!({"environmentType": "CloudVM", "image": "https:///disk"}),
                reason::INVALID_IMAGE,
                "begins with https:// or http://",
            ),
            (json!({"environmentType": "LocalVM"}), reason::INVALID_IMAGE, "NAMESPACE/CLAIM is expected"),
            (
                json!({"environmentType": "LocalVM", "image": "/a"}),
                reason::INVALID_IMAGE,
                "lacks a namespace",
            ),
            (json!({"nodeSelector": {"a b": ""}}), reason::INVALID_TEMPLATE, "nodeSelector: \"a b\""),
            (
                json!({"nodeSelector": {"a": "b c"}}),
                reason::INVALID_TEMPLATE,
                "nodeSelector: a: label value \"b c\"",
            ),
            (
                json!({"sharedVolumeMounts": [{"mountPath": "media"}]}),
                reason::INVALID_TEMPLATE,
                "mountPath is \"media\"",
            ),
            (
                json!({"sharedVolumeMounts": [{"mountPath": "/a"}, {"mountPath": "/a"}]}),
                reason::INVALID_TEMPLATE,
                "mounted there, too",
            ),
        ] {
            let found = faults(json!({"environmentList": [environment(&more)]}));
            let [(found, said)] = &found[..] else { panic!("{more}: {found:?}") };
            assert!(*found == reason && said.contains(message), "{more}: {found:?}: {said}");
        }
    }

    #[test]
    fn a_fault_has_the_path_of_its_field() {
        let other = environment(&json!({"name": "other"}));
        let paths = |spec: Value| {
            let spec: TemplateSpec = serde_json::from_value(spec).expect("a spec");
            TemplateFault::all(&spec).iter().map(|fault| fault.path(&spec)).collect::<Vec<_>>()
        };
        for (more, field) in [
            (json!({"name": "Desktop"}), ".name"),
            (json!({"environmentType": "VM"}), ".environmentType"),
            (json!({"environmentType": "LocalVM", "image": "a/b", "persistent": false}), ".persistent"),
            (json!({"environmentType": "LocalVM"}), ".image"),
            (json!({"image": "Ubuntu 24"}), ".image"),
            (json!({"resources": {"disk": null}}), ".resources.disk"),
            (json!({"resources": {"memory": "0"}}), ".resources.memory"),
            (json!({"resources": {"memory": "x"}}), ".resources.memory"),
            (json!({"resources": {"cpu": 0}}), ".resources.cpu"),
            (json!({"resources": {"otherResources": {"cpu": "1"}}}), ".resources.otherResources"),
            (json!({"resources": {"otherResources": {"a.b/c": "1500m"}}}), ".resources.otherResources"),
            (json!({"nodeSelector": {"a b": ""}}), ".nodeSelector"),
            (json!({"sharedVolumeMounts": [{"mountPath": "media"}]}), ".sharedVolumeMounts"),
        ] {
            let found = paths(json!({"environmentList": [other, environment(&more)]}));
            assert_eq!(found, [Some(format!("spec.environmentList[1]{field}"))], "{more}");
        }
        let selector = json!({"environmentList": [other], "nodeSelector": {"disk/": "x"}});
        assert_eq!(paths(selector), [Some("spec.nodeSelector".to_owned())]);
        assert_eq!(paths(json!({})), [Some("spec.environmentList".to_owned())]);
    }

    #[test]
    fn faults_of_the_whole_template_are_reported() {
        for (spec, message) in [
            (json!({}), "at least one environment"),
            (
                json!({"environmentList": [environment(&json!({})), environment(&json!({}))]}),
                "are named desktop",
            ),
            (
                json!({"environmentList": [environment(&json!({}))], "nodeSelector": {"disk/": "x"}}),
                "spec.nodeSelector: \"disk/\"",
            ),
        ] {
            let found = faults(spec.clone());
            assert!(found.len() == 1 && found[0].1.contains(message), "{spec}: {found:?}");
        }
    }

    #[test]
    fn valid_templates_have_no_fault() {
        for more in [
            json!({}),
            json!({"environmentType": "Container", "image": "Harbor.Example.org:5000/a/b@sha256:0123456789abcdef0123456789abcdef"}),
            json!({"environmentType": "Standalone", "persistent": false, "resources": {"disk": null}}),
            json!({"environmentType": "CloudVM", "image": "https://a.b:8443/x y".replace(' ', "%20")}),
            json!({"environmentType": "CloudVM", "image": "http://[2001:db8::1]/disk"}),
            json!({"environmentType": "LocalVM", "image": "images/golden"}),
            json!({"nodeSelector": {"example.org/disk": "", "gpu": "true"}}),
            json!({"sharedVolumeMounts": [{"mountPath": "/a"}, {"mountPath": "/b"}]}),
        ] {
            assert_eq!(faults(json!({"environmentList": [environment(&more)]})), [], "{more}");
        }
    }

    #[test]
    fn a_template_that_no_quota_allows_is_named_with_both_amounts() {
        let spec = json!({"environmentList": [environment(&json!({})), environment(&json!({"name": "db"}))]});
        let spec: TemplateSpec = serde_json::from_value(spec).expect("a spec");
        let said = |quota: Value| {
            let quota = serde_json::from_value(quota).expect("a quota");
            TemplateFault::of_quota(&spec, "tea", &quota).map(|fault| fault.message).unwrap_or_default()
        };
        assert_eq!(said(json!({"cpu": 4, "memory": "8Gi", "instances": 1})), "");
        let message = said(json!({"cpu": 3, "memory": "7Gi", "instances": 1}));
        assert!(
            message.ends_with("the Workspace tea gives to a Tenant: CPU (4 > 3), Memory (8Gi > 7Gi)"),
            "{message}"
        );
    }
}
