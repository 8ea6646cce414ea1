//! CRDs as the API server returns them.

use serde_json::Value;

use super::Definition;
pub use crate::runtime::readiness::pods::text;
use crate::runtime::readiness::pods::{holds, list};

/// An installed CRD.
pub fn definition(name: &str, installed: &Value) -> Definition {
    let versions = |flag: &'static str| {
        let with = list(installed, "/spec/versions").filter(move |version| version[flag] == true);
        with.map(|version| text(version, "/name"))
    };
    Definition {
        name: name.to_owned(),
        is_installed: true,
        is_established: holds(installed, "Established"),
        served: versions("served").collect(),
        stored: versions("storage").next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_has_the_served_versions_and_the_stored_one() {
        let installed = json!({
            "spec": {"versions": [
                {"name": "v1alpha1", "served": false, "storage": false},
                {"name": "v1alpha2", "served": true, "storage": true},
                {"name": "v1beta1", "served": true, "storage": false},
            ]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        let found = definition("a.b", &installed);
        assert_eq!(found.served, ["v1alpha2", "v1beta1"]);
        assert_eq!((&*found.stored, found.is_installed, found.is_established), ("v1alpha2", true, true));
        assert!(!definition("a.b", &Value::Null).is_established);
    }
}
