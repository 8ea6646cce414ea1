//! The objects of a user, the rights of the user, and the machines that the user can start.

pub mod read;
mod settings;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

pub use self::settings::Settings;
use crate::api::condition::{READY, VALID};
use crate::api::names::CanonicalName;
use crate::api::openings::Facts as Openings;
use crate::api::quota::{Amounts, Holder, Objects, Places, Quotas, Refusal, Rule, Scope, Start};
use crate::api::tenant::Role;
use crate::api::usage::Share;
use crate::api::why::Facts;
use crate::api::{
    Announcement, Condition, GenericRef, Instance, InstanceSnapshot, Quantity, Template, Tenant, Workspace,
    reason,
};
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::sharing::with_me::SharedMachine;
use crate::controllers::dashboard::texts::Texts;

/// The right to open the console of a virtual machine: `KubeVirt`'s VNC.
pub const CONSOLE: Right =
    Right { verb: "get", group: "subresources.kubevirt.io", resource: "virtualmachineinstances/vnc" };

/// The rights of a user.
pub trait Rights {
    /// Whether the user has a right in a namespace. An unknown right counts as granted: the API server decides.
    fn may(&self, namespace: &str, right: &Right) -> bool;
}

/// The objects of a user, read with their token.
#[derive(Debug, Clone)]
pub struct Known {
    /// The Tenant.
    pub tenant: Arc<Tenant>,
    /// The Instances. Instances that should run come first, the newest one at the top. Stopped ones follow, the last used
    /// one at the top.
    pub instances: Vec<Arc<Instance>>,
    templates: BTreeMap<GenericRef, Arc<Template>>,
    workspaces: BTreeMap<String, Arc<Workspace>>,
    snapshots: Vec<InstanceSnapshot>,
    announcements: Vec<Arc<Announcement>>,
    /// The machines of others that are shared with the user.
    shared: Vec<SharedMachine>,
}

impl Known {
    /// Collects the objects: the Tenant, the Instances and snapshots of the user's namespace, the Templates of the
    /// user's courses and Instances, and the Workspaces that the user can read.
    pub fn new(
        tenant: Tenant,
        mut instances: Vec<Instance>,
        templates: Vec<Template>,
        workspaces: Vec<Workspace>,
        snapshots: Vec<InstanceSnapshot>,
    ) -> Self {
        // This order changes only when the user acts, so nothing moves while they read. The last use of a running Instance
        // does not count, because it changes all the time.
        instances.sort_by_cached_key(|instance| {
            let is_off = !instance.spec.running;
            let time = last_use(instance).filter(|_| is_off).or_else(|| created(instance));
            (is_off, Reverse(time), title(instance).to_lowercase(), instance.name().to_owned())
        });
        let key = |template: &Template| GenericRef::new(template.namespace(), template.name());
        Self {
            tenant: Arc::new(tenant),
            instances: instances.into_iter().map(Arc::new).collect(),
            templates: templates.into_iter().map(|found| (key(&found), Arc::new(found))).collect(),
            workspaces: workspaces
                .into_iter()
                .map(|found| (found.name().to_owned(), Arc::new(found)))
                .collect(),
            snapshots,
            announcements: Vec::new(),
            shared: Vec::new(),
        }
    }

    /// Adds the Announcements for the user.
    pub fn announce(&mut self, announcements: Vec<Arc<Announcement>>) {
        self.announcements = announcements;
    }

    /// Adds the machines of others that are shared with the user.
    pub fn share(&mut self, shared: Vec<SharedMachine>) {
        self.shared = shared;
    }

    /// Returns the number of objects.
    pub fn objects(&self) -> usize {
        let Self { tenant: _, instances, templates, workspaces, snapshots, announcements, shared } = self;
        let others = snapshots.len() + announcements.len() + shared.len();
        1 + instances.len() + templates.len() + workspaces.len() + others
    }
}

impl Objects for Known {
    fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        (self.tenant.name() == name).then(|| Arc::clone(&self.tenant))
    }
    fn workspace(&self, name: &str) -> Option<Arc<Workspace>> {
        self.workspaces.get(name).cloned()
    }
    fn template(&self, namespace: &str, name: &str) -> Option<Arc<Template>> {
        self.templates.get(&GenericRef::new(namespace, name)).cloned()
    }
}

/// Why a machine cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// The API server does not respond.
    Away,
    /// The user has no namespace yet.
    NoNamespace,
    /// The user lacks the right.
    NoRight,
    /// The Template cannot be used, as its condition says.
    Template(Condition),
    /// The webhook would reject it. The second value has the titles of the machines that use the quota.
    Refused(Refusal, Vec<String>),
}

/// A user, with the known objects and rights.
pub struct Student<'a> {
    known: &'a Known,
    /// The settings.
    pub settings: &'a Settings,
    /// The rights of the user.
    pub rights: &'a dyn Rights,
    running: Vec<Holder<'a>>,
    stopped: Vec<Holder<'a>>,
    /// The namespace of the user; empty until it exists.
    pub namespace: &'a str,
    /// Whether the API server does not respond.
    pub is_away: bool,
}

impl<'a> Student<'a> {
    /// Creates a user. `old` is the time when the objects were read, if the API server does not respond now.
    pub fn new(
        known: &'a Known,
        settings: &'a Settings,
        rights: &'a dyn Rights,
        old: Option<Timestamp>,
    ) -> Self {
        let (running, stopped) = Holder::divide(known.instances.iter().map(AsRef::as_ref));
        let namespace = &known.tenant.status.personal_namespace;
        let namespace = if namespace.created { namespace.name.as_str() } else { "" };
        Self { known, settings, rights, running, stopped, namespace, is_away: old.is_some() }
    }

    /// The Tenant.
    pub fn tenant(&self) -> &'a Tenant {
        &self.known.tenant
    }

    /// Returns the Instances of the user, in the order of [`Known::instances`].
    pub fn instances(&self) -> impl Iterator<Item = &'a Instance> + use<'a> {
        self.known.instances.iter().map(|instance| &**instance)
    }

    /// Returns the snapshots of an Instance.
    pub fn snapshots<'i>(
        &self,
        instance: &'i str,
    ) -> impl Iterator<Item = &'a InstanceSnapshot> + use<'a, 'i> {
        self.known.snapshots.iter().filter(move |snapshot| snapshot.spec.instance_ref.name == instance)
    }

    /// Returns the Announcements for the user, in the order of the page.
    pub fn announcements(&self) -> &'a [Arc<Announcement>] {
        &self.known.announcements
    }

    /// Returns the machines of others that are shared with the user.
    pub fn shared(&self) -> &'a [SharedMachine] {
        &self.known.shared
    }

    /// Returns the Templates that the user can read, sorted by namespace and name.
    pub fn templates(&self) -> impl Iterator<Item = &'a Template> + use<'a> {
        self.known.templates.values().map(|template| &**template)
    }

    /// Returns a Template, if the user can read it.
    pub fn template(&self, reference: &GenericRef) -> Option<&'a Template> {
        self.known.templates.get(reference).map(|template| &**template)
    }

    /// Returns the facts about an Instance, without managers and warnings, which need further reads.
    pub fn facts<'i>(&self, instance: &'i Instance) -> Facts<'i>
    where
        'a: 'i,
    {
        let own = self.known.tenant.name();
        let is_own = CanonicalName::of(own).tenant_namespace() == instance.namespace();
        Facts {
            instance,
            owner: is_own.then_some(own),
            template: self.template(&instance.spec.template_ref),
            managers: None,
            warnings: Ok(Vec::new()),
        }
    }

    /// Returns the facts that decide how an Instance is opened.
    pub fn openings<'i>(&self, instance: &'i Instance) -> Openings<'i>
    where
        'a: 'i,
    {
        Openings {
            instance,
            template: self.template(&instance.spec.template_ref),
            has_terminals: !self.settings.web_ssh.is_empty(),
            has_consoles: self.may(&CONSOLE, instance.namespace()),
        }
    }

    /// Returns the Workspaces that the user can read, sorted by name.
    pub fn workspaces(&self) -> impl Iterator<Item = &'a Workspace> + use<'a> {
        self.known.workspaces.values().map(|workspace| &**workspace)
    }

    /// Returns the title of a quota: the name of the personal workspace, or the title of a course.
    pub fn scope_title(&self, texts: &Texts, scope: &Scope) -> String {
        match scope {
            Scope::Personal => texts.personal.clone(),
            Scope::Workspace(name) => self.course(name),
        }
    }

    /// Returns the title of a course: the display name of its Workspace if that can be read, else its name.
    pub fn course(&self, name: &str) -> String {
        let found = self.known.workspaces.get(name).map(|workspace| workspace.spec.pretty_name.as_str());
        found.filter(|title| !title.is_empty()).unwrap_or(name).to_owned()
    }

    /// Returns the courses that the user is enrolled in, without requests to join, and the personal workspace.
    pub fn scopes(&self) -> Vec<Scope> {
        let spec = &self.known.tenant.spec;
        let enrolled =
            spec.workspaces.iter().filter(|entry| matches!(entry.role, Role::User | Role::Manager));
        let courses = enrolled.map(|entry| Scope::Workspace(entry.name.clone()));
        let is_enabled = self.rule().personal_workspaces && spec.has_personal_workspace();
        let personal = is_enabled.then_some(Scope::Personal);
        courses.chain(personal).collect()
    }

    /// Returns the quota that Instances of a Template count against.
    pub fn scope(&self, template: &Template) -> Option<Scope> {
        let reference = GenericRef::new(template.namespace(), template.name());
        self.quotas().scope(&reference, template)
    }

    /// Whether the user has a right in a namespace, and the API server responds.
    pub fn may(&self, right: &Right, namespace: &str) -> bool {
        !self.is_away && self.rights.may(namespace, right)
    }

    /// Returns the rule of the webhook. If the user has a personal workspace, personal workspaces are enabled.
    fn rule(&self) -> Rule {
        let rule = self.settings.rule;
        let has_own = self.known.tenant.status.personal_workspace_created == Some(true);
        Rule { personal_workspaces: rule.personal_workspaces || has_own, ..rule }
    }

    /// Returns the rule of the webhook, applied to the Instances of the user's namespace.
    pub fn quotas(&self) -> Quotas<'_> {
        Quotas {
            rule: self.rule(),
            objects: self.known,
            namespace: self.namespace,
            running: &self.running,
            stopped: &self.stopped,
        }
    }

    /// Returns the amounts of each limited resource of a quota; empty if no limit is known.
    pub fn amounts(&self, scope: &Scope) -> Vec<Amounts> {
        self.quotas().amounts(scope, self.tenant().name())
    }

    /// Returns the number of the user's machines, with its limit; `None` if the limit is not known.
    pub fn places(&self) -> Option<Places> {
        self.quotas().places(self.tenant().name(), "")
    }

    /// Returns the usage of each limit of a quota; empty if no limit is known. Resources that may not be used and are not
    /// used are left out.
    pub fn shares(&self, scope: &Scope) -> Vec<Share> {
        let quotas = self.quotas();
        let used = quotas.used(scope, "", &mut Vec::new());
        let mut shares = quotas.shares(scope, self.tenant().name(), &used).unwrap_or_default();
        shares.retain(|share| !(share.used.is_zero() && share.limit.as_ref().is_some_and(Quantity::is_zero)));
        shares
    }

    /// Checks whether the user can create an Instance of a Template with an action that needs this right.
    pub fn can_create(&self, template: &Template, right: &Right) -> Result<(), Blocked> {
        let reference = GenericRef::new(template.namespace(), template.name());
        self.can(&reference, right, "", true)
    }

    /// Checks whether the user can start a stopped Instance with an action that needs this right.
    pub fn can_start(&self, instance: &Instance, right: &Right) -> Result<(), Blocked> {
        self.can(&instance.spec.template_ref, right, instance.name(), false)
    }

    fn can(&self, template: &GenericRef, right: &Right, name: &str, is_new: bool) -> Result<(), Blocked> {
        if self.is_away {
            return Err(Blocked::Away);
        }
        if self.namespace.is_empty() {
            return Err(Blocked::NoNamespace);
        }
        if !self.may(right, self.namespace) {
            return Err(Blocked::NoRight);
        }
        let found = self.template(template);
        let mut conditions = found.into_iter().flat_map(|template| &template.status.conditions);
        let is_fault = |condition: &&Condition| condition.type_ == VALID && condition.status == "False";
        if let Some(fault) = conditions.find(is_fault) {
            return Err(Blocked::Template(fault.clone()));
        }
        if !self.settings.is_rule_enforced {
            return Ok(());
        }
        let start = Start { name, tenant: self.known.tenant.name(), template, is_new };
        self.quotas().may_start(&start, &mut Vec::new()).map_err(|refusal| {
            let scope = found.and_then(|template| self.scope(template));
            let holders = scope.filter(|_| matches!(refusal, Refusal::Exceeded(_)));
            Blocked::Refused(refusal, holders.map_or_else(Vec::new, |scope| self.holders(&scope)))
        })
    }

    /// Returns the titles of the machines that use a quota.
    fn holders(&self, scope: &Scope) -> Vec<String> {
        let quotas = self.quotas();
        let counts = |instance: &&Instance| {
            instance.spec.running && quotas.scope_of(&Holder::of(instance)).as_ref() == Some(scope)
        };
        self.instances().filter(counts).map(|instance| title(instance).to_owned()).collect()
    }
}

/// Returns the condition of a Template that says why a machine may not start soon: the cluster currently lacks
/// something, or has to add a node. This does not block the start, because an autoscaler adds a node only for a waiting
/// machine.
pub fn warning(template: &Template) -> Option<&Condition> {
    let ready = template.status.conditions.iter().find(|condition| condition.type_ == READY)?;
    (ready.status == "False" || ready.reason == *reason::NODE_ON_DEMAND).then_some(ready)
}

/// Returns when an Instance was created.
pub fn created(instance: &Instance) -> Option<Timestamp> {
    instance.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// Returns the last known use of an Instance.
pub fn last_use(instance: &Instance) -> Option<Timestamp> {
    let status = &instance.status;
    let promise = status.inactivity.as_ref().or(status.destruction.as_ref());
    promise.and_then(|promise| promise.since.as_ref()).map(|time| time.0)
}

/// Returns the title of a machine.
pub fn title(instance: &Instance) -> &str {
    let title = instance.spec.pretty_name.as_str();
    if title.trim().is_empty() { instance.name() } else { title }
}

/// Returns the title of a Template.
pub fn template_title(template: &Template) -> &str {
    let title = template.spec.pretty_name.as_str();
    if title.trim().is_empty() { template.name() } else { title }
}
