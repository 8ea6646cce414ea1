//! Test fixtures: an observed Tenant.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::Settings;
use super::observe::Observed;
use crate::config::{Storage, SwitchedOff, TenantConfig};
use crate::controllers::shared::responsibility::{Responsibility, Standing};
use crate::fixtures::object;
use crate::runtime::children::Children;
use crate::runtime::object_events::Events;

/// How long a problem elsewhere must last to make a Tenant `Stalled`.
pub const STALLED_AFTER: Duration = Duration::from_mins(2);

/// The default settings.
pub fn settings() -> Settings {
    let selector = ("crownlabs.polito.it/operator-selector".to_owned(), "test".to_owned());
    Settings {
        responsibility: Responsibility { selector: [selector].into(), ..Responsibility::default() },
        config: TenantConfig::default(),
        has_keycloak: false,
        storage: Storage::default(),
        restricts_exams: false,
        off: SwitchedOff::default(),
        stalled_after: STALLED_AFTER,
    }
}

/// A Tenant with these members of the spec, a login at the epoch, and these Workspaces (name and spec).
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
        standing: Standing::Selected,
        workspaces: workspaces.collect(),
        name_owner: None,
        instances: 0,
        templates: 0,
        volume_namespace: "mydrive-pvcs".to_owned(),
        has_my_drive_namespace: true,
        has_instances_role: true,
        has_sandbox_role: true,
        cluster_bindings: BTreeSet::new(),
        children: Children::default(),
        class_fault: None,
        events: Events::Unknown,
        nfs_servers: BTreeSet::new(),
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
