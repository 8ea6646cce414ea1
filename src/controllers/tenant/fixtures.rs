//! Test fixtures: a Tenant as it is observed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Settings;
use super::observe::Observed;
use crate::api::{Kind, Object};
use crate::config::TenantConfig;
use crate::controllers::shared::responsibility::Responsibility;
use crate::runtime::children::Children;

/// An object as the API server has it.
pub fn object<T: Kind>(value: Value) -> Arc<Object<T>> {
    Arc::new(serde_json::from_value(value).expect("objects are read leniently"))
}

/// The default settings.
pub fn settings() -> Settings {
    let selector = ("crownlabs.polito.it/operator-selector".to_owned(), "test".to_owned());
    Settings {
        responsibility: Responsibility { selector: [selector].into(), lease: None },
        config: TenantConfig::default(),
        has_keycloak: false,
    }
}

/// A Tenant with these members of the spec, a login at the epoch, and these Workspaces: name, spec.
pub fn observed(spec: &Value, workspaces: &[(&str, Value)]) -> Observed {
    let mut whole = json!({
        "firstName": "Ada", "lastName": "Rossi", "email": "ada@example.org", "lastLogin": "1970-01-01T00:00:00Z",
    });
    crate::runtime::merge::apply(&mut whole, spec);
    let workspaces = workspaces.iter().map(|(name, spec)| {
        ((*name).to_owned(), object(json!({"metadata": {"name": name, "uid": name}, "spec": spec})))
    });
    Observed {
        tenant: object(json!({"metadata": {"name": "ada.rossi", "uid": "u1"}, "spec": whole})),
        is_deselected: false,
        workspaces: workspaces.collect(),
        name_owner: None,
        instances: 0,
        templates: 0,
        has_my_drive_namespace: true,
        children: Children::default(),
        volume: None,
    }
}

/// The reference to the Tenant of [`observed`].
pub fn owners(uid: &str) -> Value {
    json!([{
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant", "name": "ada.rossi", "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }])
}
