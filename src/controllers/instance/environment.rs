//! An environment of an Instance: its names, labels and address. Everything else about it is built
//! from this.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::observe::Observed;
use crate::api::environment::{Environment, EnvironmentMode as Mode, EnvironmentType};
use crate::api::labels;
use crate::config::InstanceConfig;
use crate::controllers::shared::children;
use crate::runtime::ObjectKey;

/// The order in which an environment's objects are written.
///
/// The Service goes first and alone: whether its name is ours decides about all others, and its
/// address takes the API server longest. Then everything that the workload needs or that leads to
/// it, and the workload last.
pub mod wave {
    /// The Service.
    pub const SERVICE: u8 = 0;
    /// Ingress, route, claim, Secret.
    pub const DEPENDENCIES: u8 = 1;
    /// Deployment or machine.
    pub const WORKLOAD: u8 = 2;
}

/// An environment in its place.
#[derive(Debug, Clone)]
pub struct EnvironmentContext<'a> {
    /// What the Template says.
    pub environment: &'a Environment,
    /// Name of its Service, workload and disk.
    pub name: String,
    /// Whether its objects are named and labelled as those of the only environment of a Template
    /// (`<c>`), or as one of several (`<c>-<env>`).
    pub classic: bool,
    observed: &'a Observed,
    config: &'a InstanceConfig,
}

impl<'a> EnvironmentContext<'a> {
    /// Places an environment.
    pub fn new(
        observed: &'a Observed,
        config: &'a InstanceConfig,
        environment: &'a Environment,
        classic: bool,
    ) -> Self {
        let canonical = observed.canonical();
        let name = if classic { canonical } else { format!("{canonical}-{}", environment.name) };
        Self { environment, name, classic, observed, config }
    }

    /// Where one of its objects lives.
    pub fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.observed.instance.namespace(), name)
    }

    /// Name of its Ingress, `<name>-gui` or `<name>-app`.
    pub fn ingress_name(&self) -> String {
        let suffix =
            if self.environment.environment_type == EnvironmentType::Standalone { "app" } else { "gui" };
        format!("{}-{suffix}", self.name)
    }

    /// Labels that its pods carry, and by which its Service finds them.
    pub fn selector(&self) -> BTreeMap<String, String> {
        let spec = &self.observed.instance.spec;
        let mut selector = BTreeMap::from([
            (labels::INSTANCE.to_owned(), self.observed.instance.name().to_owned()),
            (labels::TEMPLATE.to_owned(), spec.template_ref.name.clone()),
            (labels::TENANT.to_owned(), spec.tenant_ref.name.clone()),
        ]);
        if !self.classic {
            selector.insert(labels::ENVIRONMENT.to_owned(), self.environment.name.clone());
        }
        selector
    }

    /// Labels that all its objects carry.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let mut all = self.selector();
        all.insert(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_INSTANCE.to_owned());
        all
    }

    /// Labels of its Service.
    pub fn service_labels(&self) -> BTreeMap<String, String> {
        let mut all = self.labels();
        if self.environment.environment_type == EnvironmentType::Container {
            all.insert(labels::METRICS_ENABLED.to_owned(), "true".to_owned());
        }
        all
    }

    /// The Instance as the owner of an object.
    pub fn owner(&self) -> OwnerReference {
        owner(self.observed)
    }

    /// Metadata of one of its objects.
    pub fn metadata(&self, name: &str, labels: &BTreeMap<String, String>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.observed.instance.namespace().to_owned()),
            labels: Some(labels.clone()),
            owner_references: Some(vec![self.owner()]),
            ..ObjectMeta::default()
        }
    }

    /// Whether it is a virtual machine.
    pub fn is_machine(&self) -> bool {
        self.environment.environment_type.is_vm()
    }

    /// Whether its mode is `Standard`: a course, not an examination.
    pub fn is_standard(&self) -> bool {
        self.environment.mode == Mode::Standard
    }

    /// The host name at which it is reached (02 §8.2).
    pub fn host(&self) -> String {
        let base = &self.config.website_base_url;
        match self.environment.mode {
            Mode::Exam => format!("exam.{base}"),
            Mode::Exercise => format!("exercise.{base}"),
            _ => base.clone(),
        }
    }

    /// The path at which its web interface is, without a slash at the end.
    pub fn base_path(&self) -> String {
        let uid = self.observed.instance.uid();
        if !self.classic {
            format!("/instance/{uid}/{}", self.environment.name)
        } else if self.is_machine() {
            format!("/instance/{uid}/vnc")
        } else {
            format!("/instance/{uid}/app")
        }
    }

    /// The path that its Ingress matches, and to what it is rewritten.
    pub fn ingress_path(&self) -> (String, Option<&'static str>) {
        let base = self.base_path();
        let rewrites = self.environment.rewrite_url
            && (self.environment.environment_type == EnvironmentType::Standalone || !self.classic);
        if self.is_machine() {
            if self.classic { (base, None) } else { (format!("{base}/(.*)"), Some("/$1")) }
        } else if rewrites {
            (format!("{base}(/|$)(.*)"), Some("/$2"))
        } else {
            (base, None)
        }
    }

    /// The address that a user opens.
    pub fn url(&self) -> String {
        let (host, uid) = (self.host(), self.observed.instance.uid());
        if self.classic && self.is_machine() {
            format!("https://{host}/instance/{uid}/")
        } else {
            format!("https://{host}{}/", self.base_path())
        }
    }

    /// The node selector of its pod (02 §8.1).
    pub fn node_selector(&self) -> Option<BTreeMap<String, String>> {
        node_selector(self.observed, self.environment).cloned()
    }
}

/// The node selector of an environment's pod (02 §8.1).
pub fn node_selector<'a>(
    observed: &'a Observed,
    environment: &'a Environment,
) -> Option<&'a BTreeMap<String, String>> {
    let template = observed.template.as_ref()?;
    observed.instance.spec.placement(template.spec.node_selector_of(environment))
}

/// The Instance as the owner of an object.
pub fn owner(observed: &Observed) -> OwnerReference {
    children::owner(&observed.instance)
}
