//! The names, labels and addresses of an environment of an Instance. All its objects are built from these.

use std::collections::BTreeMap;

use super::access;
use super::observe::Observed;
use crate::api::environment::{Environment, EnvironmentMode as Mode, EnvironmentType};
use crate::api::labels;
use crate::api::names::CanonicalName;
use crate::config::{AccessMode, InstanceConfig};
use crate::controllers::shared::children::Parent;
use crate::controllers::shared::environments::Chosen;
use crate::runtime::component::Component;

/// An environment of the Template, with the Instance that it is built for.
#[derive(Debug, Clone)]
pub struct EnvironmentContext<'a> {
    /// The environment as the Template specifies it.
    pub environment: &'a Environment,
    /// The name of its Service, workload and disk.
    pub name: CanonicalName,
    /// Whether its objects are named after the Instance alone; see [`Chosen`].
    pub classic: bool,
    /// What is observed of the Instance.
    pub observed: &'a Observed,
    /// The configuration of the loop.
    pub config: &'a InstanceConfig,
    /// The Instance as the parent of its objects.
    pub parent: Parent<'a>,
}

impl<'a> EnvironmentContext<'a> {
    /// The context of an environment of the observed Instance.
    pub fn new(
        observed: &'a Observed,
        config: &'a InstanceConfig,
        &Chosen { environment, classic }: &Chosen<'a>,
    ) -> Self {
        let canonical = observed.canonical();
        let name = if classic { canonical } else { canonical.environment(&environment.name) };
        let parent = Parent::new(&observed.instance, selector(observed, environment, classic))
            .with(&[(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE)])
            .seeing(&observed.children);
        Self { environment, name, classic, observed, config, parent }
    }

    /// The name of its Ingress: `<c>-gui` or `<c>-app`; with several environments that of all its objects, as the
    /// Go operator that knows several names it.
    pub fn ingress_name(&self) -> String {
        match self.environment.environment_type {
            _ if !self.classic => self.name.to_string(),
            EnvironmentType::Standalone => self.name.app(),
            _ => self.name.gui(),
        }
    }

    /// The labels of its pods, by which its Service selects them.
    pub fn selector(&self) -> BTreeMap<String, String> {
        selector(self.observed, self.environment, self.classic)
    }

    /// Its component of the plan.
    pub fn component(&self) -> Component {
        Component::environment(&self.environment.name)
    }

    /// Its name as it follows that of the Instance in the names of its objects; `None` where they have that of the Instance alone.
    pub fn suffix(&self) -> Option<&str> {
        (!self.classic).then_some(&*self.environment.name)
    }

    /// Whether it is a virtual machine, and not a container.
    pub fn is_machine(&self) -> bool {
        self.environment.environment_type.is_vm()
    }

    /// Whether its mode is `Standard`, and not an exam or an exercise.
    pub fn is_standard(&self) -> bool {
        self.environment.mode == Mode::Standard
    }

    /// The host name of its web interface, which depends on its mode.
    pub fn host(&self) -> String {
        let base = &self.config.website_base_url;
        match self.environment.mode {
            Mode::Exam => format!("exam.{base}"),
            Mode::Exercise => format!("exercise.{base}"),
            _ => base.clone(),
        }
    }

    /// The URL path of its web interface, without a trailing slash.
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

    /// The path that its Ingress matches, and the path that nginx rewrites it to.
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

    /// The URL that a user opens.
    pub fn url(&self) -> String {
        let (host, uid) = (self.host(), self.observed.instance.uid());
        if self.classic && self.is_machine() {
            // The page of the desktop belongs to the web site, which its own proxy guards. The desktop itself is a
            // WebSocket, at which nobody can log in.
            let is_guarded = self.config.access.mode == AccessMode::PerInstance && self.is_standard();
            let login = if is_guarded { access::login(uid) } else { String::new() };
            format!("https://{host}{login}/instance/{uid}/")
        } else {
            format!("https://{host}{}/", self.base_path())
        }
    }

    /// The node selector of its pod: that of the environment or of its Template; if that is empty, that of
    /// the Instance. `None` if neither environment nor Template has one.
    pub fn node_selector(&self) -> Option<&'a BTreeMap<String, String>> {
        let template = self.observed.template.as_ref()?;
        self.observed.instance.spec.placement(template.spec.node_selector_of(self.environment))
    }
}

/// The labels of the pods of an environment.
fn selector(observed: &Observed, environment: &Environment, classic: bool) -> BTreeMap<String, String> {
    let mut selector = labels::of_instance(&observed.instance);
    if !classic {
        selector.insert(labels::ENVIRONMENT.to_owned(), environment.name.clone());
    }
    selector
}
