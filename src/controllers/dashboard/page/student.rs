//! The objects of a user as they were read, what he may do, and what he can start.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::condition::{READY, VALID};
use crate::api::instance::InstanceKind;
use crate::api::names::CanonicalName;
use crate::api::quota::{Objects, PERSONAL, Quotas, Refusal, Rule, Running, Scope};
use crate::api::tenant::Role;
use crate::api::why::Facts;
use crate::api::{GenericRef, Instance, InstanceSnapshot, Kind, Template, Tenant, Workspace};
use crate::controllers::dashboard::page::words::Language;

/// What the pages need to know of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The host of the SSH bastion (`sshHost`); empty for none.
    pub ssh_host: String,
    /// Where terminals are opened in the browser (`webSshUrl`); empty for nowhere.
    pub web_ssh: String,
    /// The Template by which a user looks at his MyDrive (`driveTemplate`).
    pub drive_template: Option<GenericRef>,
    /// The size of MyDrive, such as `1Gi`; empty if it is not known.
    pub drive_size: String,
    /// The rule by which the webhook refuses to start an Instance; `None` if it does not.
    pub rule: Option<Rule>,
}

/// What a user may do in a namespace.
pub trait Rights {
    /// Whether he may do this with any object of a kind. What is not known counts as allowed: the API server decides.
    fn may(&self, namespace: &str, verb: &str, group: &str, resource: &str) -> bool;
}

/// The objects of a user, as they were read with his token.
#[derive(Debug, Clone)]
pub struct Known {
    tenant: Arc<Tenant>,
    instances: Vec<Arc<Instance>>,
    templates: BTreeMap<GenericRef, Arc<Template>>,
    workspaces: BTreeMap<String, Arc<Workspace>>,
    snapshots: Vec<InstanceSnapshot>,
}

impl Known {
    /// The objects: the Tenant, the Instances and snapshots of his namespace, the Templates of his courses and those that his
    /// Instances name, and the Workspaces that he can read.
    pub fn new(
        tenant: Tenant,
        mut instances: Vec<Instance>,
        templates: Vec<Template>,
        workspaces: Vec<Workspace>,
        snapshots: Vec<InstanceSnapshot>,
    ) -> Self {
        // Those that are to run come first, which changes by what the user does only: nothing moves while he reads.
        instances.sort_by_cached_key(|instance| {
            (!instance.spec.running, title(instance).to_lowercase(), instance.name().to_owned())
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
        }
    }
}

impl Known {
    /// How many objects these are.
    pub fn objects(&self) -> usize {
        let Self { tenant: _, instances, templates, workspaces, snapshots } = self;
        1 + instances.len() + templates.len() + workspaces.len() + snapshots.len()
    }

    /// The Tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Whether there are machines.
    pub fn has_instances(&self) -> bool {
        !self.instances.is_empty()
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
    /// The API server does not answer.
    Away,
    /// The user has no namespace yet.
    NoNamespace,
    /// The user may not.
    NoRight,
    /// The Template cannot be used, for this reason, in the words of its condition.
    Template {
        /// The reason of the condition.
        reason: String,
        /// Its sentence.
        message: String,
    },
    /// The webhook would refuse it; the machines that use the quota.
    Refused(Refusal, Vec<String>),
    /// The namespace has as many Instances as it may have.
    Full(i64),
}

/// A user with what is known of him.
pub struct Student<'a> {
    known: &'a Known,
    settings: &'a Settings,
    rights: &'a dyn Rights,
    running: Vec<Running<'a>>,
    namespace: &'a str,
    is_away: bool,
}

impl<'a> Student<'a> {
    /// A user. `old` is when the objects were read, if the API server does not answer now.
    pub fn new(
        known: &'a Known,
        settings: &'a Settings,
        rights: &'a dyn Rights,
        old: Option<Timestamp>,
    ) -> Self {
        let running = known.instances.iter().filter_map(|instance| Running::of(instance)).collect();
        let namespace = &known.tenant.status.personal_namespace;
        let namespace = if namespace.created { namespace.name.as_str() } else { "" };
        Self { known, settings, rights, running, namespace, is_away: old.is_some() }
    }

    /// The Tenant.
    pub fn tenant(&self) -> &'a Tenant {
        &self.known.tenant
    }

    /// The settings.
    pub fn settings(&self) -> &'a Settings {
        self.settings
    }

    /// His namespace; empty until it is there.
    pub fn namespace(&self) -> &'a str {
        self.namespace
    }

    /// His Instances: those that are to run first, then by their titles.
    pub fn instances(&self) -> impl Iterator<Item = &'a Instance> + use<'a> {
        self.known.instances.iter().map(|instance| &**instance)
    }

    /// His snapshots of an Instance.
    pub fn snapshots<'i>(
        &self,
        instance: &'i str,
    ) -> impl Iterator<Item = &'a InstanceSnapshot> + use<'a, 'i> {
        self.known.snapshots.iter().filter(move |snapshot| snapshot.spec.instance_ref.name == instance)
    }

    /// The Templates that he can read, by namespace and name.
    pub fn templates(&self) -> impl Iterator<Item = &'a Template> + use<'a> {
        self.known.templates.values().map(|template| &**template)
    }

    /// A Template.
    pub fn template(&self, reference: &GenericRef) -> Option<&'a Template> {
        self.known.templates.get(reference).map(|template| &**template)
    }

    /// The facts about an Instance, but what has to be read for them alone.
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

    /// The Workspaces that he can read, by name.
    pub fn workspaces(&self) -> impl Iterator<Item = &'a Workspace> + use<'a> {
        self.known.workspaces.values().map(|workspace| &**workspace)
    }

    /// What a course is called: by its Workspace if that can be read, else by its name.
    pub fn course(&self, name: &str) -> String {
        let found = self.known.workspaces.get(name).map(|workspace| workspace.spec.pretty_name.as_str());
        found.filter(|title| !title.is_empty()).unwrap_or(name).to_owned()
    }

    /// The courses that he is in, and not only asks to be, by name; and his personal workspace.
    pub fn scopes(&self) -> Vec<Scope> {
        let spec = &self.known.tenant.spec;
        let enrolled =
            spec.workspaces.iter().filter(|entry| matches!(entry.role, Role::User | Role::Manager));
        let courses = enrolled.map(|entry| Scope::Workspace(entry.name.clone()));
        let rule = self.settings.rule.unwrap_or_default();
        let personal = (rule.personal_workspaces && spec.has_personal_workspace()).then_some(Scope::Personal);
        courses.chain(personal).collect()
    }

    /// The quota that Instances of a Template count against.
    pub fn scope(&self, template: &Template) -> Option<Scope> {
        let reference = GenericRef::new(template.namespace(), template.name());
        self.quotas().scope(&reference, template)
    }

    /// Whether he may do something with the objects of a kind in a namespace, and it can be done now.
    pub fn may<T: Kind>(&self, namespace: &str, verb: &str) -> bool {
        !self.is_away && self.rights.may(namespace, verb, T::GROUP, T::PLURAL)
    }

    /// The rule of the webhook about the Instances of his namespace.
    pub fn quotas(&self) -> Quotas<'_> {
        Quotas {
            rule: self.settings.rule.unwrap_or_default(),
            objects: self.known,
            namespace: self.namespace,
            running: &self.running,
        }
    }

    /// Whether he can create an Instance of a Template.
    pub fn can_create(&self, template: &Template) -> Result<(), Blocked> {
        let reference = GenericRef::new(template.namespace(), template.name());
        self.can(&reference, "create", "")?;
        let most = self.known.tenant.status.quota.instances;
        let count = i64::try_from(self.known.instances.len()).unwrap_or(i64::MAX);
        // The limit of the `ResourceQuota` of the namespace, which the Tenant has in its status.
        if count >= most { Err(Blocked::Full(most)) } else { Ok(()) }
    }

    /// Whether he can start an Instance that is off.
    pub fn can_start(&self, instance: &Instance) -> Result<(), Blocked> {
        self.can(&instance.spec.template_ref, "patch", instance.name())
    }

    fn can(&self, reference: &GenericRef, verb: &str, name: &str) -> Result<(), Blocked> {
        if self.is_away {
            return Err(Blocked::Away);
        }
        if self.namespace.is_empty() {
            return Err(Blocked::NoNamespace);
        }
        if !self.may::<InstanceKind>(self.namespace, verb) {
            return Err(Blocked::NoRight);
        }
        if let Some(template) = self.template(reference) {
            usable(template)?;
        }
        if self.settings.rule.is_none() {
            return Ok(());
        }
        let checked = self.quotas().may_start(name, self.known.tenant.name(), reference, &mut Vec::new());
        checked.map_err(|refusal| {
            let scope = self.template(reference).and_then(|template| self.scope(template));
            let holders = scope.filter(|_| matches!(refusal, Refusal::Exceeded(_)));
            Blocked::Refused(refusal, holders.map_or_else(Vec::new, |scope| self.holders(&scope)))
        })
    }

    /// The titles of the machines that use a quota.
    fn holders(&self, scope: &Scope) -> Vec<String> {
        let quotas = self.quotas();
        let counts = |instance: &&Instance| {
            Running::of(instance).is_some_and(|running| quotas.counts(scope, &running))
        };
        self.instances().filter(counts).map(|instance| title(instance).to_owned()).collect()
    }
}

/// Whether a Template says of itself that its environments can start.
fn usable(template: &Template) -> Result<(), Blocked> {
    let conditions = &template.status.conditions;
    let refused =
        |type_| conditions.iter().find(|condition| condition.type_ == type_ && condition.status == "False");
    match refused(VALID).or_else(|| refused(READY)) {
        Some(condition) => Err(Blocked::Template {
            reason: condition.reason.to_string(),
            message: condition.message.to_string(),
        }),
        None => Ok(()),
    }
}

/// What a machine is called.
pub fn title(instance: &Instance) -> &str {
    let title = instance.spec.pretty_name.as_str();
    if title.trim().is_empty() { instance.name() } else { title }
}

/// What a Template is called.
pub fn template_title(template: &Template) -> &str {
    let title = template.spec.pretty_name.as_str();
    if title.trim().is_empty() { template.name() } else { title }
}

/// What the quota of a course is called, in a language.
pub fn scope_title(student: &Student<'_>, language: Language, scope: Option<&Scope>) -> String {
    match scope {
        None => language.words().no_course_name.to_owned(),
        Some(Scope::Personal) => language.words().personal.to_owned(),
        Some(Scope::Workspace(name)) if name == PERSONAL => language.words().personal.to_owned(),
        Some(Scope::Workspace(name)) => student.course(name),
    }
}
