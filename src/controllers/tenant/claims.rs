//! The claims of personal volumes, and the namespace of each.
//!
//! A Tenant keeps its volume when `controllers.tenant.myDrive.namespace` changes: its claim is found in every namespace,
//! by the uid of the Tenant. Only a new claim is created in the configured namespace. Namespaces of Tenants and
//! Workspaces are ignored, because users may create claims there. A claim that was kept for a former Tenant has another
//! uid, so it is found only in the configured namespace.

use std::sync::Arc;

use super::children::{OWNER, TENANT_UID};
use super::names::Names;
use crate::api::labels;
use crate::api::tenant::Tenant;
use crate::api::text::Text;
use crate::kinds::{NamespaceKind, NfsClaimKind};
use crate::runtime::ObjectKey;
use crate::runtime::store::{Store, index};

index! {
    /// Claims by the uid of their Tenant: their controller, or the Tenant in the annotation.
    pub struct ByTenant of NfsClaimKind by Text;
    |claim| {
        let controller = claim.metadata.controller().map(|owner| owner.uid.clone());
        controller.into_iter().chain(claim.annotation(TENANT_UID).map(Text::from)).collect()
    }
}

/// Finds the claims of personal volumes.
pub struct Claims {
    /// The claims that this loop manages, with the index [`ByTenant`].
    managed: Arc<Store<NfsClaimKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    /// The namespace of new claims.
    configured: String,
}

impl Claims {
    /// Creates the finder for new claims in the namespace `configured`.
    pub fn new(
        claims: &Arc<Store<NfsClaimKind>>,
        namespaces: &Arc<Store<NamespaceKind>>,
        configured: &str,
    ) -> Self {
        let (managed, namespaces) = (Arc::clone(claims), Arc::clone(namespaces));
        Self { managed, namespaces, configured: configured.to_owned() }
    }

    /// The namespace of the personal volume of a Tenant. If it has several claims, the one in the configured namespace
    /// counts, or else the oldest one.
    pub fn namespace(&self, tenant: &Tenant) -> String {
        let name = Names::of(tenant.name()).claim;
        let mut own = self.managed.keys_by::<ByTenant>(tenant.uid());
        own.retain(|key| *key.name == *name && self.is_trusted(&key.namespace));
        let rank = |key: &ObjectKey| {
            let is_elsewhere = *key.namespace != *self.configured;
            let created = || self.managed.get(&key.namespace, &key.name)?.metadata.creation_timestamp.clone();
            (is_elsewhere, is_elsewhere.then(created).flatten(), key.namespace.clone())
        };
        let found = own.into_iter().min_by_key(rank);
        found.map_or_else(|| self.configured.clone(), |key| key.namespace.to_string())
    }

    /// Whether no user can create claims in a namespace.
    fn is_trusted(&self, namespace: &str) -> bool {
        let is_free = || {
            let found = self.namespaces.get("", namespace)?;
            Some(found.label(labels::TYPE).is_none() && found.metadata.controller().is_none())
        };
        namespace == self.configured || is_free() == Some(true)
    }

    /// A message about volumes in other namespaces than the configured one; `None` if there are no such volumes.
    /// `tenant` returns the selected Tenant with a name.
    pub fn outside(&self, tenant: impl Fn(&str) -> Option<Arc<Tenant>>) -> Option<String> {
        let configured = &self.configured;
        let mut outside = self.managed.keys();
        outside.retain(|key| *key.namespace != **configured);
        outside.retain(|key| {
            let claim = self.managed.get(&key.namespace, &key.name);
            let owner = claim.as_ref().and_then(|claim| tenant(claim.annotation(OWNER)?));
            owner.is_some_and(|owner| *self.namespace(&owner) == *key.namespace)
        });
        let first = outside.iter().min()?;
        Some(format!(
            "{} personal volumes are outside of namespace {configured} (controllers.tenant.myDrive.namespace), such as \
             {first}, and stay there. Correct the key; or, if the change is intended, do not delete the former namespace",
            outside.len()
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::api::labels;
    use crate::config::Config;
    use crate::controllers::setup::{Definition, Setup};
    use crate::controllers::tenant::children::{EMAIL, OWNER, TENANT_UID};
    use crate::controllers::tenant::{Settings, TenantReconciler};
    use crate::fixtures::at;
    use crate::kinds::{NfsClaimKind, SecretKind};
    use crate::runtime::ObjectKey;
    use crate::runtime::gate::Gate;
    use crate::runtime::plan::KindInfo;
    use crate::runtime::reconciler::Reconciler;
    use crate::runtime::store::StoreFactory;
    use crate::runtime::store_set::StoreSet;

    /// The loop with new claims in this namespace, and its message about claims elsewhere.
    struct World {
        factory: StoreFactory,
        reconciler: TenantReconciler,
        settings: Settings,
        outside: Box<dyn Fn() -> Option<String> + Send + Sync>,
    }

    impl World {
        fn new(namespace: &str) -> Self {
            let mut config = Config::default();
            namespace.clone_into(&mut config.controllers.tenant.my_drive.namespace);
            let mut factory = StoreFactory::default();
            let mut setup = Setup::new(&config, Gate::open());
            let mut set = StoreSet::new("tenant", &mut factory);
            let (reconciler, settings) = TenantReconciler::build(&mut setup, &mut set).expect("built");
            let mut notices = setup.notices.into_iter();
            let outside = notices.find(|notice| notice.name == "myDrive").expect("the notice").sentence;
            let world = Self { factory, reconciler, settings, outside };
            for (name, of) in
                [("mydrive-pvcs", None), ("mydrive-pvsc", None), ("sandbox-mallory", Some("sandbox"))]
            {
                let labels = of.map_or_else(|| json!({}), |of: &str| json!({labels::TYPE: of}));
                world.offer("v1", "Namespace", json!({"metadata": {"name": name, "labels": labels}}));
            }
            for (name, uid) in [("ada.rossi", "u1"), ("new.one", "u2")] {
                let labels = json!({"crownlabs.polito.it/operator-selector": "production"});
                let spec = json!({
                    "firstName": "A", "lastName": "B", "email": "a@example.org", "lastLogin": "1970-01-01T00:00:00Z",
                });
                let tenant = json!({"metadata": {"name": name, "uid": uid, "labels": labels}, "spec": spec});
                world.offer("crownlabs.polito.it/v1alpha2", "Tenant", tenant);
            }
            world
        }

        fn offer(&self, version: &str, kind: &str, mut object: Value) {
            object["apiVersion"] = version.into();
            object["kind"] = kind.into();
            assert!(self.factory.offer(&object).expect("an object"), "no store takes {object}");
        }

        /// Shows the bound claim of a Tenant in a namespace.
        fn claim(&self, namespace: &str, claim: &str, (owner, uid): (&str, &str), created: &str) {
            let volume = format!("pv-{namespace}-{claim}");
            let annotations = json!({OWNER: owner, EMAIL: "a@example.org", TENANT_UID: uid});
            let metadata = json!({
                "name": claim, "namespace": namespace, "uid": volume, "annotations": annotations,
                "creationTimestamp": created, "labels": {labels::MANAGED_BY: labels::MANAGED_BY_TENANT},
            });
            let spec = json!({"volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}});
            let claim = json!({"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}});
            self.offer("v1", "PersistentVolumeClaim", claim);
            let source =
                json!({"csi": {"volumeAttributes": {"server": "nfs", "share": format!("/{volume}")}}});
            let volume = json!({"metadata": {"name": volume, "uid": volume}, "spec": source});
            self.offer("v1", "PersistentVolume", volume);
        }

        /// The namespace of the claim that the plan of a Tenant contains, and whether it contains the Secret of an
        /// existing volume.
        fn planned(&self, tenant: &str) -> (String, bool) {
            let observed = self.reconciler.observe(&ObjectKey::new("", tenant)).expect("selected");
            let plan = TenantReconciler::plan(&observed, &self.settings, at(0));
            assert_eq!(plan.problems, []);
            let of = |kind: KindInfo| plan.ensure.iter().find(|desired| desired.kind == kind);
            let claim = of(KindInfo::of::<NfsClaimKind>()).expect("a claim");
            (claim.key.namespace.to_string(), of(KindInfo::of::<SecretKind>()).is_some())
        }
    }

    const EARLY: &str = "2026-01-01T00:00:00Z";
    const LATE: &str = "2026-01-02T00:00:00Z";

    #[test]
    fn a_tenant_keeps_its_volume_when_the_namespace_changes_and_a_new_one_gets_the_new_namespace() {
        let (ada, new) = (("ada.rossi", "u1"), ("new.one", "u2"));
        let world = World::new("mydrive-pvsc");
        assert_eq!((world.outside)(), None);
        world.claim("mydrive-pvcs", "ada-rossi-drive", ada, EARLY);
        assert_eq!(world.planned("ada.rossi"), ("mydrive-pvcs".to_owned(), true));
        assert_eq!(world.planned("new.one"), ("mydrive-pvsc".to_owned(), false));
        let said = (world.outside)().expect("a message");
        assert!(said.starts_with("1 personal volumes are outside of namespace mydrive-pvsc "), "{said}");
        assert!(said.contains("such as mydrive-pvcs/ada-rossi-drive, and stay there"), "{said}");
        // An administrator has moved it.
        world.claim("mydrive-pvsc", "ada-rossi-drive", ada, LATE);
        assert_eq!(world.planned("ada.rossi").0, "mydrive-pvsc");
        assert_eq!((world.outside)(), None);
        // The key is corrected: claims that were created in the meantime stay, too.
        let world = World::new("mydrive-pvcs");
        world.claim("mydrive-pvcs", "ada-rossi-drive", ada, EARLY);
        world.claim("mydrive-pvsc", "new-one-drive", new, LATE);
        assert_eq!(world.planned("ada.rossi").0, "mydrive-pvcs");
        assert_eq!(world.planned("new.one").0, "mydrive-pvsc");
    }

    #[test]
    fn claims_of_users_and_of_former_tenants_in_other_namespaces_are_ignored() {
        let world = World::new("mydrive-pvcs");
        world.claim("sandbox-mallory", "ada-rossi-drive", ("ada.rossi", "u1"), EARLY);
        world.claim("unknown", "ada-rossi-drive", ("ada.rossi", "u1"), EARLY);
        world.claim("mydrive-pvsc", "ada-rossi-drive", ("ada.rossi", "former"), EARLY);
        world.claim("mydrive-pvsc", "another-drive", ("ada.rossi", "u1"), EARLY);
        assert_eq!(world.planned("ada.rossi"), ("mydrive-pvcs".to_owned(), false));
        assert_eq!((world.outside)(), None);
        // In the configured namespace, a former Tenant with the same name and address had this volume.
        world.claim("mydrive-pvcs", "ada-rossi-drive", ("ada.rossi", "former"), EARLY);
        assert_eq!(world.planned("ada.rossi"), ("mydrive-pvcs".to_owned(), true));
    }
}
