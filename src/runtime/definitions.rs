//! Compares the CRDs installed in a cluster with the CRDs of this version.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// Returns the stored versions of an installed CRD that `ours` does not have. While there are any, the API server
/// rejects `ours`.
pub fn foreign_versions(installed: &Value, ours: &CustomResourceDefinition) -> Vec<String> {
    let stored = installed["status"]["storedVersions"].as_array().into_iter().flatten();
    let is_ours = |version: &&str| ours.spec.versions.iter().any(|known| known.name == **version);
    let foreign = stored.filter_map(Value::as_str).filter(|version| !is_ours(version));
    foreign.map(str::to_owned).collect()
}

/// Returns the versions of `ours` that an installed CRD does not serve; none if the CRD is not installed.
pub fn unserved_versions(installed: &Value, ours: &CustomResourceDefinition) -> Vec<String> {
    let Some(versions) = installed["spec"]["versions"].as_array() else { return Vec::new() };
    let is_served =
        |name: &str| versions.iter().any(|version| version["name"] == *name && version["served"] == true);
    let ours = ours.spec.versions.iter().map(|version| version.name.clone());
    ours.filter(|name| !is_served(name)).collect()
}

/// Returns the paths of the status fields that `ours` has and an installed CRD does not. The API server silently drops
/// these fields from writes. A version that is not installed is not served either, so it is not reported here.
pub fn dropped_fields(installed: &Value, ours: &CustomResourceDefinition) -> Vec<String> {
    let mut found = Vec::new();
    for version in &ours.spec.versions {
        let versions = installed["spec"]["versions"].as_array().into_iter().flatten();
        let Some(theirs) = versions.into_iter().find(|theirs| theirs["name"] == *version.name) else {
            continue;
        };
        let ours = version.schema.as_ref().and_then(|schema| serde_json::to_value(schema).ok());
        let status = |schema: &Value| schema["openAPIV3Schema"]["properties"]["status"].clone();
        let ours = status(&ours.unwrap_or_default());
        if ours.is_object() {
            compare("status", &ours, &status(&theirs["schema"]), &mut found);
        }
    }
    found
}

/// Adds the paths of the fields that the schema `ours` has and `theirs` does not.
fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    if theirs["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    if !theirs.is_object() {
        found.push(path.to_owned());
        return;
    }
    let others = &theirs["additionalProperties"];
    for (name, inner) in ours["properties"].as_object().into_iter().flatten() {
        let known = theirs["properties"].get(name).unwrap_or(others);
        // `true`, or no schema at all: any value is kept.
        if *known != true {
            compare(&format!("{path}.{name}"), inner, known, found);
        }
    }
    for (inner, step) in [("items", "[]"), ("additionalProperties", ".*")] {
        if ours[inner].is_object() && theirs[inner] != true {
            compare(&format!("{path}{step}"), &ours[inner], &theirs[inner], found);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::crd::crds;

    /// Returns our CRD of a kind, as returned by the API server.
    fn installed(kind: &str) -> (CustomResourceDefinition, Value) {
        let ours = crds().into_iter().find(|crd| crd.spec.names.kind == kind).expect("a kind of ours");
        let value = serde_json::to_value(&ours).expect("JSON");
        (ours, value)
    }

    /// The properties of the installed status.
    fn status(installed: &mut Value) -> &mut Value {
        &mut installed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    }

    fn remove(members: &mut Value, name: &str) {
        members.as_object_mut().expect("members").remove(name).expect(name);
    }

    #[test]
    fn our_own_crds_lack_no_field() {
        for ours in crds() {
            let installed = serde_json::to_value(&ours).expect("JSON");
            assert_eq!(dropped_fields(&installed, &ours), [""; 0]);
            assert_eq!(foreign_versions(&installed, &ours), [""; 0]);
            assert_eq!(unserved_versions(&installed, &ours), [""; 0]);
        }
    }

    #[test]
    fn a_version_that_is_missing_or_not_served_is_reported() {
        let (ours, mut older) = installed("Tenant");
        older["spec"]["versions"][0]["served"] = false.into();
        assert_eq!(unserved_versions(&older, &ours), ["v1alpha2"]);
        older["spec"]["versions"][0] = json!({"name": "v1alpha1", "served": true});
        assert_eq!(unserved_versions(&older, &ours), ["v1alpha2"]);
        assert_eq!(unserved_versions(&Value::Null, &ours), [""; 0], "a missing CRD is reported by its loops");
    }

    #[test]
    fn a_missing_field_is_reported_by_its_path() {
        let (ours, mut older) = installed("Instance");
        let status = status(&mut older);
        remove(status, "observedGeneration");
        remove(&mut status["environments"]["items"]["properties"], "phase");
        remove(&mut status["inactivity"]["properties"], "deadline");
        let mut found = dropped_fields(&older, &ours);
        found.sort();
        assert_eq!(
            found,
            ["status.environments[].phase", "status.inactivity.deadline", "status.observedGeneration"]
        );
    }

    #[test]
    fn a_schema_that_preserves_unknown_fields_lacks_no_field() {
        let (ours, mut open) = installed("Instance");
        let properties = status(&mut open);
        properties["inactivity"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        properties["automation"] = json!({"type": "object", "additionalProperties": true});
        properties["nodeSelector"] = json!({"type": "object", "additionalProperties": true});
        assert_eq!(dropped_fields(&open, &ours), [""; 0]);
        status(&mut open)["nodeSelector"] = json!({"type": "object"});
        assert_eq!(dropped_fields(&open, &ours), ["status.nodeSelector.*"]);
    }

    #[test]
    fn a_status_without_a_schema_is_dropped_as_a_whole() {
        let (ours, mut bare) = installed("Tenant");
        remove(&mut bare["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"], "status");
        assert_eq!(dropped_fields(&bare, &ours), ["status"]);
        // A version that is not installed is not compared.
        bare["spec"]["versions"][0]["name"] = "v9".into();
        assert_eq!(dropped_fields(&bare, &ours), [""; 0]);
    }

    #[test]
    fn a_stored_version_that_our_crd_lacks_is_foreign() {
        let (ours, mut installed) = installed("Tenant");
        installed["status"] = json!({"storedVersions": ["v1alpha1", "v1alpha2"]});
        assert_eq!(foreign_versions(&installed, &ours), ["v1alpha1"]);
    }
}
