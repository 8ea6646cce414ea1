//! The input of the plan and the report of an Instance, read from the stores and never from the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use super::access::ProxySecrets;
use super::host_key::Hosts;
use super::mirrors::Mirrors;
use super::route_policy::Policies;
use super::validate::Validated;
use crate::api::environment::Environment;
use crate::api::instance::Instance;
use crate::api::names::CanonicalName;
use crate::api::reference::GenericRef;
use crate::api::requirements::Cluster;
use crate::api::shared_volume::SharedVolume;
use crate::api::template::Template;
use crate::api::tenant::Tenant;
use crate::api::text::Text;
use crate::api::{Kind, Object};
use crate::kinds::{Pod, Secret};
use crate::runtime::children::Children;
use crate::runtime::object_events::Events;
use crate::runtime::problem::Problem;

/// All inputs of the plan and the status of one Instance, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Instance.
    #[as_ref(Instance)]
    #[as_mut]
    pub instance: Arc<Instance>,
    /// The result of its validation, which the reconciler adds: the plan and the report of a reconcile read the same
    /// one.
    pub validated: Arc<Validated>,
    /// Its Template, if it exists.
    pub template: Option<Arc<Template>>,
    /// Its Tenant, if it exists.
    pub tenant: Option<Arc<Tenant>>,
    /// The managers of the Workspace of the Template, ordered by name.
    pub managers: Vec<Arc<Tenant>>,
    /// The Secret with the location of the user's `MyDrive`.
    pub my_drive: Option<Arc<Secret>>,
    /// How volumes are mirrored; `None` if new workloads mount them over NFS.
    pub mirrors: Option<Mirrors>,
    /// The existing shared volumes that the Template or a Deployment mounts.
    pub shared_volumes: Vec<Arc<SharedVolume>>,
    /// The Instance that owns the canonical name, if it is a different one.
    pub name_owner: Option<String>,
    /// The names of Services that another Instance owns, with the name of that Instance; see [`ServiceNames`].
    ///
    /// [`ServiceNames`]: crate::controllers::shared::service_names::ServiceNames
    pub taken: BTreeMap<String, String>,
    /// The problem that the Instance names another Tenant than the owner of its namespace.
    pub foreign_tenant: Option<Problem>,
    /// The content of the web terminal's public key file.
    pub master_key: Option<Arc<str>>,
    /// The inputs of its OAuth2 proxy, if proxies are configured.
    pub proxy: ProxySecrets,
    /// The key of the host names of its environments, if they have host names of their own.
    pub hosts: Hosts,
    /// The objects that the Instance owns, and foreign objects that have the names of its objects.
    pub children: Children,
    /// The classes of its Ingresses without an address, if other Ingresses of the class have one.
    pub published_classes: BTreeSet<Text>,
    /// The pods with the labels of the Instance.
    pub pods: Vec<Arc<Pod>>,
    /// The events about the objects, if the Instance has been waiting for long.
    pub events: Events,
    /// Whether the cluster serves `HTTPRoute`s.
    pub has_routes: bool,
    /// The kind of the policies that guard routes, if it is configured.
    pub policies: Option<Policies>,
    /// The parts of the cluster that environments need.
    pub cluster: Arc<Cluster>,
    /// Whether its namespace has the import Secret of CDI.
    pub has_import_secret: bool,
}

impl Observed {
    /// The shared volume of a reference, if it exists.
    pub fn shared_volume(&self, reference: &GenericRef) -> Option<&Arc<SharedVolume>> {
        self.shared_volumes
            .iter()
            .find(|volume| reference.name == volume.name() && reference.namespace == volume.namespace())
    }

    /// Whether the Tenant of the Instance manages the Workspace of its Template. This also counts in namespaces that do
    /// not belong to a Tenant: only managers of Workspaces and administrators may create Instances there, and they may
    /// also create them in the namespace of that Tenant.
    pub fn owner_is_manager(&self) -> bool {
        let owner = &self.instance.spec.tenant_ref.name;
        self.managers.iter().any(|manager| *owner == manager.name())
    }

    /// The object with this name, regardless of its owner.
    pub fn named<T: Kind>(&self, name: &str) -> Option<&Object<T>> {
        self.children.get(self.instance.namespace(), name)
    }

    /// The object with this name, if the Instance is its controller.
    pub fn own<T: Kind>(&self, name: &str) -> Option<&Object<T>> {
        self.children.own(&self.instance, name)
    }

    /// The environments of the Template.
    pub fn environments(&self) -> &[Environment] {
        self.template.as_ref().map_or(&[], |template| &template.spec.environment_list)
    }

    /// The canonical name of the Instance: the prefix of the names of its objects.
    pub fn canonical(&self) -> CanonicalName {
        CanonicalName::of(self.instance.name())
    }
}
