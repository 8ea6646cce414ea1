//! The names, labels and addresses of an environment of an Instance. All objects of the environment are built from
//! them.

use std::collections::BTreeMap;

use super::access;
use super::observe::Observed;
use crate::api::environment::{Environment, EnvironmentMode as Mode, EnvironmentType};
use crate::api::labels;
use crate::api::names::CanonicalName;
use crate::api::openings::Page;
use crate::config::{AccessMode, ExamAccess, InstanceConfig, Urls};
use crate::controllers::shared::children::Parent;
use crate::controllers::shared::machine_path::{self, is_rewritten_for_container};
use crate::runtime::component::Component;

/// An environment of the Template, with the Instance that it is built for.
#[derive(Debug, Clone)]
pub struct EnvironmentContext<'a> {
    /// The environment as the Template specifies it.
    pub environment: &'a Environment,
    /// The name of its Service, workload and disk.
    pub name: CanonicalName,
    /// Whether its objects are named after the Instance alone; see [`Chosen`](crate::controllers::shared::environments::Chosen).
    pub classic: bool,
    /// The observed state of the Instance.
    pub observed: &'a Observed,
    /// The configuration of the loop.
    pub config: &'a InstanceConfig,
    /// The Instance as the parent of its objects.
    pub parent: Parent<'a>,
}

impl<'a> EnvironmentContext<'a> {
    /// The contexts of the valid environments of the observed Instance.
    pub fn all(observed: &'a Observed, config: &'a InstanceConfig) -> Vec<Self> {
        let environments = observed.validated.environments.iter();
        environments.map(|valid| Self::new(observed, config, &valid.environment, valid.classic)).collect()
    }

    /// The context of an environment of the observed Instance.
    pub fn new(
        observed: &'a Observed,
        config: &'a InstanceConfig,
        environment: &'a Environment,
        classic: bool,
    ) -> Self {
        let canonical = observed.canonical();
        let name = if classic { canonical } else { canonical.environment(&environment.name) };
        let parent = Parent::new(&observed.instance, selector(observed, environment, classic))
            .with(&[(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE)])
            .seeing(&observed.children);
        Self { environment, name, classic, observed, config, parent }
    }

    /// The name of its Ingress: `<c>-gui` or `<c>-app`. With several environments, it is the common name of the
    /// environment's objects, as in the Go operator with several environments.
    pub fn ingress_name(&self) -> String {
        match self.environment.environment_type {
            _ if !self.classic => self.name.to_string(),
            EnvironmentType::Standalone => self.name.app(),
            _ => self.name.gui(),
        }
    }

    /// The labels of its pods, which its Service selects.
    pub fn selector(&self) -> BTreeMap<String, String> {
        selector(self.observed, self.environment, self.classic)
    }

    /// Its component of the plan.
    pub fn component(&self) -> Component {
        Component::environment(&self.environment.name)
    }

    /// The suffix of its objects' names after the name of the Instance; `None` if they have the name of the Instance
    /// alone.
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

    /// The host name of its web interface; `None` while the key of host names is unknown.
    pub fn host(&self) -> Option<String> {
        if self.config.urls == Urls::Path {
            return Some(self.common_host());
        }
        Some(format!("{}.{}", self.label()?, self.config.website_base_url))
    }

    /// The first label of a host name of its own; `None` while the key of host names is unknown.
    pub fn label(&self) -> Option<String> {
        let key = self.observed.hosts.known()?;
        Some(key.label(self.observed.instance.uid(), &self.environment.name))
    }

    /// The host name of all web interfaces with the same mode.
    pub fn common_host(&self) -> String {
        let base = &self.config.website_base_url;
        match self.environment.mode {
            Mode::Exam => format!("exam.{base}"),
            Mode::Exercise => format!("exercise.{base}"),
            _ => base.clone(),
        }
    }

    /// The URL path of its web interface, without a trailing slash.
    pub fn base_path(&self) -> String {
        machine_path::base_path(self.observed.instance.uid(), self.environment, self.classic)
    }

    /// How its users are authenticated.
    pub fn access(&self) -> AccessMode {
        match self.config.access.exams {
            _ if self.is_standard() => self.config.access.mode,
            ExamAccess::None => AccessMode::None,
            ExamAccess::Shared => AccessMode::Shared,
            ExamAccess::Daemon => AccessMode::Daemon,
        }
    }

    /// Whether its desktop is a page of the web site, which only the common host has.
    fn is_opened_by_site(&self) -> bool {
        self.classic && self.is_machine() && self.config.urls == Urls::Path
    }

    /// The path that its Ingress matches, and the path that nginx rewrites it to.
    pub fn ingress_path(&self) -> (String, Option<&'static str>) {
        let base = self.base_path();
        if self.is_machine() && !self.is_opened_by_site() {
            (format!("{base}/(.*)"), Some("/$1"))
        } else if !self.is_machine() && is_rewritten_for_container(self.environment, self.classic) {
            (format!("{base}(/|$)(.*)"), Some("/$2"))
        } else {
            (base, None)
        }
    }

    /// The URL of its page; `None` while the key of host names is unknown.
    pub fn url(&self) -> Option<String> {
        let (host, uid) = (self.host()?, self.observed.instance.uid());
        Some(if self.is_opened_by_site() {
            // The web site is protected by its own proxy. The desktop itself is a WebSocket, which cannot show a login.
            let is_guarded = self.access() == AccessMode::PerInstance;
            let login = if is_guarded { access::login(uid) } else { String::new() };
            Page::OfSite(&login).url(&host, uid)
        } else {
            Page::Own(&self.base_path()).url(&host, uid)
        })
    }

    /// The node selector of its pod, from the environment or its Template. If that selector is empty, the Instance's is
    /// used. `None` if neither environment nor Template has one, or if it is empty.
    pub fn node_selector(&self) -> Option<&'a BTreeMap<String, String>> {
        let template = self.observed.template.as_ref()?;
        let placement =
            self.observed.instance.spec.placement(template.spec.node_selector_of(self.environment));
        placement.filter(|selector| !selector.is_empty())
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
