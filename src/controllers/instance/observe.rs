//! The input of the plan and the report of an Instance, read from the stores and never from the API server.

use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use super::access::ProxySecrets;
use crate::api::environment::Environment;
use crate::api::instance::Instance;
use crate::api::names::CanonicalName;
use crate::api::reference::GenericRef;
use crate::api::shared_volume::SharedVolume;
use crate::api::template::Template;
use crate::api::tenant::Tenant;
use crate::api::{Kind, Object};
use crate::kinds::{Pod, Secret};
use crate::runtime::children::Children;
use crate::runtime::problem::Problem;

/// The optional APIs that the cluster serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Platform {
    /// Virtual machines.
    pub kubevirt: bool,
    /// `HTTPRoute`s.
    pub gateway: bool,
}

/// Everything that the plan and the status of one Instance depend on, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Instance.
    #[as_ref(Instance)]
    #[as_mut]
    pub instance: Arc<Instance>,
    /// Its Template, if it exists.
    pub template: Option<Arc<Template>>,
    /// Its Tenant, if it exists.
    pub tenant: Option<Arc<Tenant>>,
    /// The managers of the Workspace of the Template, in the order of their names.
    pub managers: Vec<Arc<Tenant>>,
    /// The Secret with the location of the user's `MyDrive`.
    pub my_drive: Option<Arc<Secret>>,
    /// The shared volumes that the Template or a Deployment mounts and that exist.
    pub shared_volumes: Vec<Arc<SharedVolume>>,
    /// The Instance that owns the canonical name, if it is another one with the same canonical name.
    pub name_owner: Option<String>,
    /// The problem that the Instance names another Tenant than its namespace belongs to.
    pub foreign_tenant: Option<Problem>,
    /// The content of the web terminal's public key file.
    pub master_key: Option<Arc<str>>,
    /// What its OAuth2 proxy needs, if there are such.
    pub proxy: ProxySecrets,
    /// The objects that the Instance owns, and any other objects that have the names of its objects.
    pub children: Children,
    /// The pods with the labels of the Instance.
    pub pods: Vec<Arc<Pod>>,
    /// The optional APIs that the cluster serves.
    pub platform: Platform,
}

impl Observed {
    /// The shared volume of a reference, if it exists.
    pub fn shared_volume(&self, reference: &GenericRef) -> Option<&Arc<SharedVolume>> {
        self.shared_volumes
            .iter()
            .find(|volume| volume.name() == reference.name && volume.namespace() == reference.namespace)
    }

    /// Whether the Tenant of the Instance manages the Workspace of its Template. This counts in namespaces that are no
    /// Tenant's, too: only managers of Workspaces and administrators may create Instances there, and they may create them
    /// in the namespace of that Tenant as well.
    pub fn owner_is_manager(&self) -> bool {
        let owner = &self.instance.spec.tenant_ref.name;
        self.managers.iter().any(|manager| manager.name() == owner)
    }

    /// The object of that name, whoever owns it.
    pub fn named<T: Kind>(&self, name: &str) -> Option<&Object<T>> {
        self.children.get(self.instance.namespace(), name)
    }

    /// The object of that name, if the Instance is its controller.
    pub fn own<T: Kind>(&self, name: &str) -> Option<&Object<T>> {
        self.named(name).filter(|object| object.is_controlled_by(&self.instance))
    }

    /// The environments of the Template.
    pub fn environments(&self) -> &[Environment] {
        self.template.as_ref().map_or(&[], |template| &template.spec.environment_list)
    }

    /// The canonical name of the Instance, which the names of its objects begin with.
    pub fn canonical(&self) -> CanonicalName {
        CanonicalName::of(self.instance.name())
    }
}
