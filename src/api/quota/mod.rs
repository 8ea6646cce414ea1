//! Whether a Tenant may start an Instance: whether the Tenant may use the Template, and whether the quota allows it.
//! The webhook rejects Instances by this rule. The dashboard uses it to say in advance what would be rejected, and to
//! show the quota.
//!
//! The Template of the Instance determines the Workspace whose quota applies. The other Instances of the namespace
//! determine how much of the quota is used. A stopped Instance uses none of it, but it counts for the number of
//! Instances that the namespace may have.

mod amounts;
mod refusal;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use self::amounts::{Amounts, Places};
pub use self::refusal::Refusal;
use super::names::CanonicalName;
use super::tenancy::is_tenant_namespace;
use super::tenant::Role;
use super::usage::{Share, Usage};
use super::{GenericRef, Instance, Template, Tenant, Workspace, labels};

/// The name that a Template uses for the personal workspace of its user.
pub const PERSONAL: &str = "personal";

/// The prefix of the names of the namespaces of Workspaces.
const WORKSPACE_NAMESPACE: &str = "workspace-";

/// The configurable parts of the rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rule {
    /// Whether the Tenant must be enrolled (`server.webhook.requireEnrolment`).
    pub require_enrolment: bool,
    /// Whether personal workspaces are enabled.
    pub personal_workspaces: bool,
}

/// Looks up the objects that the rule needs, in memory.
pub trait Objects {
    /// The Tenant with this name.
    fn tenant(&self, name: &str) -> Option<Arc<Tenant>>;
    /// The Workspace with this name.
    fn workspace(&self, name: &str) -> Option<Arc<Workspace>>;
    /// The Template with this name.
    fn template(&self, namespace: &str, name: &str) -> Option<Arc<Template>>;
}

/// The quota that an Instance counts towards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The quota of the Workspace with this name.
    Workspace(String),
    /// The quota of the Tenant's personal workspace.
    Personal,
}

impl Scope {
    /// The name that Templates use for this quota.
    pub fn workspace(&self) -> &str {
        match self {
            Self::Workspace(name) => name,
            Self::Personal => PERSONAL,
        }
    }
}

/// An Instance that may use part of a quota.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its Template.
    pub template: &'a GenericRef,
    /// The label with the name of its Workspace. It decides if the Template does not exist.
    pub label: Option<&'a str>,
}

impl<'a> Holder<'a> {
    /// Returns the Instance, whether it is to run or not.
    pub fn of(instance: &'a Instance) -> Self {
        Self {
            name: instance.name(),
            template: &instance.spec.template_ref,
            label: instance.label(labels::WORKSPACE),
        }
    }

    /// Divides Instances into those whose spec asks for them to run, and those that are to be off.
    pub fn divide(instances: impl IntoIterator<Item = &'a Instance>) -> (Vec<Self>, Vec<Self>) {
        let (running, stopped): (Vec<&Instance>, Vec<&Instance>) =
            instances.into_iter().partition(|instance| instance.spec.running);
        let holders = |instances: Vec<&'a Instance>| instances.into_iter().map(Self::of).collect();
        (holders(running), holders(stopped))
    }
}

/// A request to start an Instance.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The name of the Instance; empty if it is not known yet.
    pub name: &'a str,
    /// The Tenant that its spec names.
    pub tenant: &'a str,
    /// Its Template.
    pub template: &'a GenericRef,
    /// Whether it is created, and not started again.
    pub is_new: bool,
}

/// The Instances of one namespace, with everything that the rule needs.
pub struct Quotas<'a> {
    /// The settings.
    pub rule: Rule,
    /// The Tenants, Workspaces and Templates.
    pub objects: &'a dyn Objects,
    /// The namespace.
    pub namespace: &'a str,
    /// The Instances of the namespace that are to run.
    pub running: &'a [Holder<'a>],
    /// The other Instances of the namespace.
    pub stopped: &'a [Holder<'a>],
}

impl Quotas<'_> {
    /// Whether an Instance may be started. Adds a warning for each Instance whose resources cannot be counted.
    ///
    /// # Errors
    /// When it may not be started.
    pub fn may_start(&self, start: &Start<'_>, warnings: &mut Vec<String>) -> Result<(), Refusal> {
        let Start { name, tenant, template: reference, is_new } = *start;
        let template = self.objects.template(&reference.namespace, &reference.name);
        let template = template.ok_or_else(|| Refusal::NoTemplate(reference.clone()))?;
        writes_own_volumes_only(reference, &template)?;
        let Some(scope) = self.scope(reference, &template) else {
            warnings.push(format!("the Template {reference} names no Workspace: no quota is checked"));
            return Ok(());
        };
        self.may_use(tenant, reference, &scope)?;
        let mut usage = self.used(&scope, name, warnings);
        usage.add(Some(&template.spec));
        let shares = self.shares(&scope, tenant, &usage)?;
        if let Some(places) = self.places(tenant, name).filter(|places| is_new && places.left() == 0) {
            return Err(Refusal::Full(places));
        }
        let exceeded: Vec<Share> = shares.into_iter().filter(Share::is_exceeded).collect();
        if exceeded.is_empty() { Ok(()) } else { Err(Refusal::Exceeded(exceeded)) }
    }

    /// Rejects the Template of a Workspace that the Tenant is not enrolled in, and the Template of another Tenant.
    fn may_use(&self, tenant: &str, reference: &GenericRef, scope: &Scope) -> Result<(), Refusal> {
        if !self.rule.require_enrolment {
            return Ok(());
        }
        match scope {
            Scope::Personal => {
                let own = CanonicalName::of(tenant).tenant_namespace();
                // Instances in other namespaces are rejected later, with a reason that names the namespace.
                let is_elsewhere = self.namespace != own;
                if !is_tenant_namespace(&reference.namespace) || reference.namespace == own || is_elsewhere {
                    return Ok(());
                }
                Err(Refusal::OfAnotherTenant { template: reference.clone(), own })
            }
            // A missing Workspace is reported later: its quota is not known.
            Scope::Workspace(name) if self.objects.workspace(name).is_none() => Ok(()),
            Scope::Workspace(name) => {
                let found = self.objects.tenant(tenant);
                let found = found.ok_or_else(|| Refusal::NoTenant(tenant.to_owned()))?;
                if matches!(found.spec.role_in(name), Some(Role::User | Role::Manager)) {
                    return Ok(());
                }
                Err(Refusal::NotEnrolled { tenant: tenant.to_owned(), workspace: name.clone() })
            }
        }
    }

    /// The quota that Instances of a Template count towards; `None` if the Template names no Workspace. A Template in
    /// the namespace of a Tenant always counts towards the personal workspace, whatever Workspace it names, because
    /// users write these Templates themselves.
    pub fn scope(&self, reference: &GenericRef, template: &Template) -> Option<Scope> {
        let workspace = template.spec.workspace_ref.name.as_str();
        let is_own = is_tenant_namespace(&reference.namespace) || workspace == PERSONAL;
        if is_own && self.rule.personal_workspaces {
            return Some(Scope::Personal);
        }
        (!workspace.is_empty()).then(|| Scope::Workspace(workspace.to_owned()))
    }

    /// The amount of a quota that Instances other than `but` use. All Instances of the namespace count, whatever
    /// Tenant they name, because users write that name themselves.
    pub fn used(&self, scope: &Scope, but: &str, warnings: &mut Vec<String>) -> Usage {
        let mut usage = Usage::default();
        for other in self.running.iter().filter(|other| other.name != but) {
            match self.counted(scope, other) {
                Counted::Not => {}
                Counted::As(spec) => usage.add(Some(&spec.spec)),
                Counted::Unknown => {
                    warnings.push(format!(
                        "the Template {} of the Instance {} does not exist: its resources are not counted",
                        other.template, other.name
                    ));
                    usage.add(None);
                }
            }
        }
        usage
    }

    /// The quota that an Instance counts towards; `None` if it counts towards none. If its Template does not exist, its
    /// label decides, or else the namespace of the Template.
    pub fn scope_of(&self, holder: &Holder<'_>) -> Option<Scope> {
        let reference = holder.template;
        if let Some(template) = self.objects.template(&reference.namespace, &reference.name) {
            return self.scope(reference, &template);
        }
        if is_tenant_namespace(&reference.namespace) && self.rule.personal_workspaces {
            return Some(Scope::Personal);
        }
        let label = holder.label.filter(|label| !label.is_empty());
        match label.or_else(|| reference.namespace.strip_prefix(WORKSPACE_NAMESPACE))? {
            PERSONAL if self.rule.personal_workspaces => Some(Scope::Personal),
            name => Some(Scope::Workspace(name.to_owned())),
        }
    }

    /// How an Instance counts.
    fn counted(&self, scope: &Scope, holder: &Holder<'_>) -> Counted {
        if self.scope_of(holder).as_ref() != Some(scope) {
            return Counted::Not;
        }
        let reference = holder.template;
        let template = self.objects.template(&reference.namespace, &reference.name);
        template.map_or(Counted::Unknown, Counted::As)
    }

    /// The usage of each limit of a quota; empty if only the `ResourceQuota` of the namespace is a limit.
    ///
    /// # Errors
    /// When the Workspace, the Tenant or its personal workspace does not exist.
    pub fn shares(&self, scope: &Scope, tenant: &str, usage: &Usage) -> Result<Vec<Share>, Refusal> {
        match scope {
            Scope::Workspace(name) => {
                let workspace = self.objects.workspace(name);
                let workspace = workspace.ok_or_else(|| Refusal::NoWorkspace(name.clone()))?;
                // The quota of a malformed Workspace is not known.
                if workspace.malformed.is_some() {
                    return Ok(Vec::new());
                }
                Ok(workspace.spec.quota.shares(usage))
            }
            Scope::Personal => {
                // The Instance must name the Tenant whose personal workspace it uses, and be in the Tenant's namespace.
                let namespace = CanonicalName::of(tenant).tenant_namespace();
                if namespace != self.namespace {
                    return Err(Refusal::Elsewhere { tenant: tenant.to_owned(), namespace });
                }
                let found = self.objects.tenant(tenant);
                let tenant = found.ok_or_else(|| Refusal::NoTenant(tenant.to_owned()))?;
                match &tenant.spec.personal_workspace {
                    Some(quota) => Ok(quota.shares(usage)),
                    // The personal workspace has no separate quota.
                    None if tenant.spec.create_personal_workspace => Ok(Vec::new()),
                    None => Err(Refusal::NoPersonalWorkspace(tenant.name().to_owned())),
                }
            }
        }
    }
}

/// How an Instance counts towards a quota.
enum Counted {
    /// It does not count.
    Not,
    /// The resources of its Template count.
    As(Arc<Template>),
    /// Only the number of Instances grows, because its Template does not exist.
    Unknown,
}

/// Rejects a Template in the namespace of a Tenant that mounts shared volumes of other namespaces for writing.
fn writes_own_volumes_only(reference: &GenericRef, template: &Template) -> Result<(), Refusal> {
    let mounts =
        template.spec.environment_list.iter().flat_map(|environment| &environment.shared_volume_mounts);
    let own = &reference.namespace;
    let mut foreign = mounts.filter(|mount| !mount.read_only && mount.shared_volume.namespace != *own);
    foreign.next().filter(|_| is_tenant_namespace(own)).map_or(Ok(()), |mount| {
        let (template, volume) = (reference.clone(), mount.shared_volume.clone());
        Err(Refusal::WritesForeignVolume { template, volume })
    })
}
