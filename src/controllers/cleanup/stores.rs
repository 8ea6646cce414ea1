//! The stores of the loops that end Instances after a time. A change in a store adds the affected Instances to the
//! queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use derive_more::{AsMut, AsRef};
use jiff::Timestamp;

use super::ending::EndingKind;
use super::mail_log::{Mailed, record};
use super::promise::{LastMails, Terms};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::lifetime::Lifetime;
use crate::api::template::{Template, TemplateKind};
use crate::api::tenancy::{is_tenant_namespace, tenant_of};
use crate::api::tenant::{Tenant, TenantKind};
use crate::controllers::shared::entrance::{ByManagedWorkspace, managers};
use crate::controllers::shared::references::{ByTemplate, ByTenant, is_exempt, template_of};
use crate::controllers::shared::tenancy::foreign_tenant;
use crate::kinds::{Namespace, NamespaceKind};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::store::{ByNamespace, Change, Store};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// The fields that the decisions of such a loop depend on. An Instance is queued when one of them changes.
pub trait Dependencies: 'static {
    /// The label of namespaces that the loop ignores.
    const EXEMPT: &'static str;

    /// The fields of an Instance that the loop reads, except its own status.
    fn of_instance(instance: &Instance) -> impl PartialEq;

    /// The fields of a Template that the loop reads.
    fn of_template(template: &Template) -> impl PartialEq;
}

/// The stores.
pub struct EndingStores {
    selector: BTreeMap<String, String>,
    exempt: &'static str,
    /// The Instances.
    pub instances: Arc<Store<InstanceKind>>,
    /// The Templates.
    pub templates: Arc<Store<TemplateKind>>,
    tenants: Arc<Store<TenantKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
}

/// An Instance that may end, with the data that the decisions depend on.
#[derive(Debug, Clone, PartialEq, AsRef, AsMut)]
pub struct Candidate {
    /// The Instance.
    #[as_ref(Instance)]
    #[as_mut]
    pub instance: Arc<Instance>,
    /// Its Template; `None` while it does not exist.
    pub template: Option<Arc<Template>>,
    /// Its Tenant, who gets the warnings; `None` if the Tenant does not exist or if another Tenant owns the namespace.
    pub tenant: Option<Arc<Tenant>>,
    /// The managers of the course of the Template; empty if a Tenant has written the Template.
    pub managers: Vec<Arc<Tenant>>,
    /// The accepted mails about it, as the leader remembers them.
    pub mailed: Mailed,
    /// Whether an administrator has exempted the namespace.
    pub is_exempt: bool,
}

impl Candidate {
    /// The time of its creation.
    pub fn created(&self, now: Timestamp) -> Timestamp {
        self.instance.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0)
    }

    /// The terms of one kind of ending. `notifications` enables the warnings and the final mail.
    pub fn terms(
        &self,
        kind: &EndingKind,
        after: Lifetime,
        interval: Duration,
        notifications: bool,
        warnings: u32,
    ) -> Terms {
        let accepted = |mail| self.mailed.last(&self.instance, &record(mail, false));
        let mailed = LastMails { warning: accepted(kind.warning), last: accepted(kind.last) };
        let warnings = if notifications { warnings } else { 0 };
        Terms { after, warnings, interval, final_mail: notifications, mailed }
    }
}

impl EndingStores {
    /// Declares the stores. Only Instances in namespaces that match `selector` are considered.
    pub fn declare<D: Dependencies>(set: &mut StoreSet<'_>, selector: &BTreeMap<String, String>) -> Self {
        let all = Selection::ALL;
        let instances = set.store::<InstanceKind>(&all).requests("get patch delete").listed(|_| true);
        // Status changes by other loops are frequent and irrelevant here.
        let instances = instances.on_foreign_change(|change, queue| {
            if let Some(instance) = change.object_if(D::of_instance) {
                queue.add(ObjectKey::of(&**instance), Priority::Background);
            }
        });
        let instances = &instances.index::<ByTemplate>().index::<ByTenant>().index::<ByNamespace>().get();
        let ours = selector.clone();
        let side = move |namespace: &Namespace| {
            let owner = tenant_of(namespace).map(str::to_owned);
            (namespace.has_labels(&ours), is_exempt(namespace, D::EXEMPT), owner)
        };
        let templates = set.store(&all).wakes_by::<ByTemplate, _, _>(instances, |change| {
            change.object_if(D::of_template).map(|template| ObjectKey::of(&**template))
        });
        let templates = templates.get();
        // Only the existence of the Tenant matters here. Its address is read when a mail is due.
        let tenants = set.store(&all).wakes_by::<ByTenant, _, _>(instances, |change: &Change<TenantKind>| {
            change.object_if(|_| ()).map(|tenant| tenant.metadata.name.clone())
        });
        let tenants = tenants.index::<ByManagedWorkspace>().get();
        let namespaces = set.store(&all).wakes_by::<ByNamespace, _, _>(instances, move |change| {
            change.object_if(&side).map(|namespace| namespace.metadata.name.clone())
        });
        let (namespaces, instances) = (namespaces.get(), Arc::clone(instances));
        Self { selector: selector.clone(), exempt: D::EXEMPT, instances, templates, tenants, namespaces }
    }

    /// The Instance with this key, with the mails about it (`mailed`). `None` if it does not exist or if its namespace
    /// does not match the selector.
    pub fn find(&self, key: &ObjectKey, mailed: impl FnOnce(&Instance) -> Mailed) -> Option<Candidate> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace)?;
        let template = template_of(&instance, &self.templates);
        let is_personal = is_tenant_namespace(&instance.spec.template_ref.namespace);
        let course = template.as_ref().filter(|_| !is_personal);
        let managers = course.map_or_else(Vec::new, |template| managers(&self.tenants, template));
        let tenant = self.tenants.get("", &instance.spec.tenant_ref.name);
        namespace.has_labels(&self.selector).then(|| Candidate {
            managers,
            mailed: mailed(&instance),
            template,
            tenant: tenant.filter(|_| foreign_tenant(&instance, &namespace).is_none()),
            is_exempt: is_exempt(&namespace, self.exempt),
            instance,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::Object;
    use crate::runtime::queue::Action;
    use crate::runtime::store::StoreFactory;

    struct Nothing;

    impl Dependencies for Nothing {
        const EXEMPT: &'static str = "exempt";

        fn of_instance(_: &Instance) -> impl PartialEq {}

        fn of_template(_: &Template) -> impl PartialEq {}
    }

    fn object<T: crate::api::Kind>(value: &serde_json::Value) -> Object<T> {
        serde_json::from_value(value.clone()).expect("an object")
    }

    #[test]
    fn labels_and_annotations_exempt_a_namespace() {
        for (metadata, expected) in [
            (json!({}), false),
            (json!({"labels": {"exempt": "true"}}), true),
            (json!({"annotations": {"exempt": "True"}}), true),
            (json!({"labels": {"exempt": "false"}, "annotations": {"exempt": "true"}}), true),
            (json!({"labels": {"exempt": "no"}, "annotations": {"exempt": ""}}), false),
        ] {
            assert_eq!(is_exempt(&object(&json!({"metadata": metadata})), "exempt"), expected, "{metadata}");
        }
    }

    #[tokio::test]
    async fn a_tenant_is_not_warned_about_an_instance_in_the_namespace_of_another_tenant() {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("test", &mut factory);
        let stores = EndingStores::declare::<Nothing>(&mut set, &BTreeMap::new());
        let queue = Arc::clone(set.queue());
        stores.tenants.apply_event(object(&json!({"metadata": {"name": "grace", "uid": "t"}})));
        stores.instances.apply_event(object(&json!({
            "metadata": {"name": "box", "namespace": "tenant-ada", "uid": "i"},
            "spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": "grace"}},
        })));
        let key = ObjectKey::new("tenant-ada", "box");
        let mut version = 0;
        // The owner of the namespace by its label, and whether Grace is warned.
        for (owner, is_warned) in [(None, true), (Some("ada"), false), (Some("grace"), true)] {
            version += 1;
            let labels = owner.map_or_else(|| json!({}), |owner| json!({"crownlabs.polito.it/name": owner}));
            stores.namespaces.apply_event(object(&json!({"metadata": {
                "name": "tenant-ada", "uid": "n", "resourceVersion": version.to_string(), "labels": labels,
            }})));
            let found = stores.find(&key, |_| Mailed::default()).expect("it is ours");
            assert_eq!(found.tenant.is_some(), is_warned, "{owner:?}");
            assert!(queue.waiting() > 0, "{owner:?}: the change of the label is noticed");
            let job = queue.next().await.expect("it is open");
            assert_eq!(job.key, key);
            queue.done(job, Action::AwaitChange);
        }
    }
}
