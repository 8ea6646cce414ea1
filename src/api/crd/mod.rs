//! The `CustomResourceDefinition`s of our kinds. `crownlabs crd` prints them.
//!
//! `manifests/crds` has one file for each, which a test generates from the types of the custom resources. The binary
//! contains these files, and not the code that generates them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use serde_json::Value;

use super::Kind;
use super::tenant::TenantKind;
use super::workspace::WorkspaceKind;

/// A file of `manifests/crds`.
macro_rules! manifest {
    ($name:literal) => {
        include_str!(concat!("../../../manifests/crds/", $name, ".yaml"))
    };
}

/// The files of the definitions, in a fixed order.
const FILES: [&str; 9] = [
    manifest!("workspaces.crownlabs.polito.it"),
    manifest!("tenants.crownlabs.polito.it"),
    manifest!("templates.crownlabs.polito.it"),
    manifest!("instances.crownlabs.polito.it"),
    manifest!("instancesnapshots.crownlabs.polito.it"),
    manifest!("sharedvolumes.crownlabs.polito.it"),
    manifest!("imagelists.crownlabs.polito.it"),
    manifest!("podconfigs.podconfig.opdev.io"),
    manifest!("announcements.lab.crownlabs.polito.it"),
];

/// The definitions of all our kinds, in a fixed order.
pub fn crds() -> Vec<CustomResourceDefinition> {
    // A test reads every file.
    FILES.iter().filter_map(|file| serde_json::from_value(serde_saphyr::from_str(file).ok()?).ok()).collect()
}

/// Whether the objects of a kind have a status. An `Announcement` has none.
pub fn has_status(definition: &CustomResourceDefinition) -> bool {
    definition.spec.versions.iter().any(|version| version.subresources.is_some())
}

/// The quotas whose processor cores may have to be whole numbers: the kind, and the member of its spec.
const QUOTAS: [(&str, &str); 2] = [(WorkspaceKind::KIND, "quota"), (TenantKind::KIND, "personalWorkspace")];

/// Restricts the processor cores of quotas to whole numbers of at least one. Other values that are already stored
/// stay valid until they are changed.
pub fn with_integer_cpu(definition: &mut CustomResourceDefinition) {
    let quotas = QUOTAS.iter().filter(|(kind, _)| definition.spec.names.kind == *kind);
    for (_, quota) in quotas {
        let schemas = definition.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
        let specs = schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut());
        for spec in specs {
            let mut path = ["spec", quota, "cpu"].into_iter();
            let cpu = path.try_fold(spec, |schema, member| schema.properties.as_mut()?.get_mut(member));
            if let Some(cpu) = cpu {
                *cpu = JSONSchemaProps {
                    description: Some("Processor cores, a whole number, for example `8`.".to_owned()),
                    type_: Some("integer".to_owned()),
                    format: Some("int64".to_owned()),
                    minimum: Some(1.0),
                    ..JSONSchemaProps::default()
                };
            }
        }
    }
}

/// Writes definitions as YAML, one document for each.
pub fn to_yaml(crds: &[CustomResourceDefinition]) -> String {
    let document = |crd| {
        // All keys are text and all numbers are finite, so neither conversion can fail.
        let mut value = serde_json::to_value(crd).unwrap_or_default();
        whole_numbers(&mut value);
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        serde_saphyr::to_string_with_options(&value, options).unwrap_or_default()
    };
    crds.iter().map(document).collect::<Vec<_>>().join("---\n")
}

/// Writes numbers without a fraction as integers, `1` instead of `1.0`: schemars writes bounds as floats.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) => {
            if let Some(whole) =
                number.to_string().strip_suffix(".0").and_then(|text| text.parse::<i64>().ok())
            {
                *value = whole.into();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod generated;
#[cfg(test)]
mod reference;
