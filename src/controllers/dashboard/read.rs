//! What a page shows, read with the token of its user. What he may not read is absent.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use futures::join;

use super::live::Topic;
use super::page::{Known, Rights, State};
use super::route::{Page, key};
use super::users::{User, Users};
use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::names::CanonicalName;
use crate::api::template::TemplateKind;
use crate::api::tenant::{Role, TenantKind};
use crate::api::why::{Event, WARNINGS, Warning, is_waiting, pods_of, warnings};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Instance, InstanceSnapshot, Object, Template, Tenant, Workspace};
use crate::kinds::PodKind;
use crate::runtime::ObjectKey;
use crate::runtime::client::Rules;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The most courses of a user whose Templates are read: each is a request.
const MOST_COURSES: usize = 50;
/// The kind of events.
const EVENTS: KindInfo = KindInfo { group: "", version: "v1", kind: "Event", plural: "events" };

/// The reads of one page.
pub struct Reading<'a> {
    /// The API server, in the name of users.
    pub users: &'a Users,
    /// The user.
    pub user: &'a User,
}

/// The objects of a user.
pub struct Own {
    /// The objects.
    pub known: Known,
    /// What is said where his Tenant is not there, or he may not read it.
    pub without_tenant: Option<State>,
    /// What he may do in the namespace of his machines.
    pub rules: NamespaceRules,
    /// What has the page read anew.
    pub topics: Vec<Topic>,
}

/// A machine, with the objects that its page needs.
pub struct OneMachine {
    /// The machine.
    pub instance: Instance,
    /// Whether its Template does not exist.
    pub is_template_gone: bool,
    /// The objects of its user.
    pub own: Own,
    /// Whether it is in the user's own namespace.
    pub is_own: bool,
    /// The warnings about its objects, or why they are not known; none where the user may not read them.
    pub warnings: Result<Vec<Warning>, String>,
}

/// What a user may do in one namespace; elsewhere, the API server says it when he tries.
#[derive(Clone)]
pub struct NamespaceRules {
    pub(super) namespace: String,
    pub(super) rules: Arc<Rules>,
}

impl Rights for NamespaceRules {
    fn may(&self, namespace: &str, verb: &str, group: &str, resource: &str) -> bool {
        namespace != self.namespace || self.rules.allow(verb, group, resource, "")
    }
}

impl Own {
    /// What the user lacks before there is something to be shown on a page.
    pub fn lacks(&self, page: &Page) -> Option<State> {
        let tenant = self.known.tenant();
        let status = &tenant.status;
        let is_there = status.personal_namespace.created;
        if self.without_tenant.is_some() {
            self.without_tenant.clone()
        } else if !is_there && status.keycloak.user_created.created && !status.keycloak.user_confirmed {
            Some(State::Unconfirmed(tenant.spec.email.clone()))
        } else if !is_there && *page == Page::Home {
            Some(State::NoNamespace)
        } else if tenant.spec.workspaces.is_empty() && !self.known.has_instances() && *page == Page::Home {
            Some(State::NoCourse)
        } else {
            None
        }
    }
}

impl Reading<'_> {
    /// The namespace of the user's machines.
    fn namespace(&self) -> String {
        CanonicalName::of(&self.user.name).tenant_namespace()
    }

    async fn tenant(&self) -> Result<Option<Tenant>, ApiError> {
        let key = ObjectKey::new("", self.user.name.as_str());
        or_none(self.users.client().get::<TenantKind>(&self.user.credential, &key).await)
    }

    async fn workspaces(&self) -> Result<Vec<Workspace>, ApiError> {
        or_nothing(self.users.client().list::<WorkspaceKind>(&self.user.credential, "", "").await)
    }

    async fn instances(&self, namespace: &str) -> Result<Vec<Instance>, ApiError> {
        or_nothing(self.users.client().list::<InstanceKind>(&self.user.credential, namespace, "").await)
    }

    async fn templates(&self, namespace: &str) -> Result<Vec<Template>, ApiError> {
        or_nothing(self.users.client().list::<TemplateKind>(&self.user.credential, namespace, "").await)
    }

    async fn snapshots(&self, namespace: &str) -> Result<Vec<InstanceSnapshot>, ApiError> {
        or_nothing(
            self.users.client().list::<InstanceSnapshotKind>(&self.user.credential, namespace, "").await,
        )
    }

    async fn rules(&self, namespace: &str) -> Result<NamespaceRules, ApiError> {
        let rules = self.users.rules(self.user, namespace).await?;
        Ok(NamespaceRules { namespace: namespace.to_owned(), rules })
    }

    /// The user's Tenant and machines, and what he can start.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn own(&self) -> Result<Own, ApiError> {
        let namespace = self.namespace();
        let (tenant, instances, workspaces, rules) =
            join!(self.tenant(), self.instances(&namespace), self.workspaces(), self.rules(&namespace));
        let (tenant, mut workspaces) = (tenant?, workspaces?);
        let entries = tenant.iter().flat_map(|tenant| &tenant.spec.workspaces);
        let courses: BTreeSet<&str> =
            entries.filter(|entry| entry.role != Role::Candidate).map(|entry| entry.name.as_str()).collect();
        workspaces.retain(|workspace| courses.contains(workspace.name()));
        let namespaces: Vec<String> =
            courses.into_iter().take(MOST_COURSES).map(|course| namespace_of(course, &workspaces)).collect();
        let lists = join_all(namespaces.iter().map(|namespace| self.templates(namespace))).await;
        let templates: Result<Vec<_>, ApiError> = lists.into_iter().collect();
        let templates = templates?.into_iter().flatten().collect();
        let mut topics = vec![Topic::Instances(namespace), Topic::Tenant(self.user.name.clone())];
        topics.extend(namespaces.into_iter().map(Topic::Templates));
        let without_tenant = self.without_tenant(tenant.as_ref());
        let known = Known::new(self.named(tenant), instances?, templates, workspaces, Vec::new());
        Ok(Own { known, without_tenant, rules: rules?, topics })
    }

    /// The user's Tenant and all courses.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn courses(&self) -> Result<Own, ApiError> {
        let namespace = self.namespace();
        let (tenant, workspaces, rules) = join!(self.tenant(), self.workspaces(), self.rules(&namespace));
        let tenant = tenant?;
        let without_tenant = self.without_tenant(tenant.as_ref());
        let known = Known::new(self.named(tenant), Vec::new(), Vec::new(), workspaces?, Vec::new());
        let topics = vec![Topic::Tenant(self.user.name.clone()), Topic::Workspaces];
        Ok(Own { known, without_tenant, rules: rules?, topics })
    }

    /// A machine, the user's or that of somebody whose machines he may see.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn machine(&self, machine: &ObjectKey) -> Result<OneMachine, ApiError> {
        let namespace = &*machine.namespace;
        let instance = self.users.client().get::<InstanceKind>(&self.user.credential, machine);
        let (instance, tenant, workspaces, instances, snapshots, rules) = join!(
            instance,
            self.tenant(),
            self.workspaces(),
            self.instances(namespace),
            self.snapshots(namespace),
            self.rules(namespace),
        );
        let instance = instance?;
        let reference = &instance.spec.template_ref;
        let template = match key(&reference.namespace, &reference.name) {
            Some(key) => self.users.client().get::<TemplateKind>(&self.user.credential, &key).await,
            None => Err(ApiError::NotFound(String::new())),
        };
        let rules = rules?;
        let warnings = self.warnings(&instance, &rules).await.map_err(|error| error.to_string());
        let is_template_gone = matches!(template, Err(ApiError::NotFound(_)));
        let templates = or_none(template)?.into_iter().collect();
        let tenant = tenant?;
        let without_tenant = self.without_tenant(tenant.as_ref());
        let topics = vec![Topic::Instance(machine.clone()), Topic::Templates(reference.namespace.clone())];
        let known = Known::new(self.named(tenant), instances?, templates, workspaces?, snapshots?);
        let own = Own { known, without_tenant, rules, topics };
        Ok(OneMachine { instance, is_template_gone, own, is_own: namespace == self.namespace(), warnings })
    }

    /// The warnings about the objects of a machine that is not ready.
    async fn warnings(&self, instance: &Instance, rules: &NamespaceRules) -> Result<Vec<Warning>, ApiError> {
        let may_list = |resource| rules.rules.allow("list", "", resource, "");
        if !is_waiting(instance) || !may_list("events") || !may_list("pods") {
            return Ok(Vec::new());
        }
        let (client, credential, namespace) =
            (self.users.client(), &self.user.credential, instance.namespace());
        let query = pods_of(instance);
        let (pods, events) = join!(
            client.list::<PodKind>(credential, namespace, &query),
            client.list_as::<Event>(credential, EVENTS, namespace, WARNINGS),
        );
        Ok(warnings(instance, pods?.iter().map(Object::name), events?))
    }

    /// What is said without a Tenant. Before an address is confirmed, the daemon gives nobody the right to read his own.
    fn without_tenant(&self, tenant: Option<&Tenant>) -> Option<State> {
        let unconfirmed = self.user.unconfirmed.clone().map(State::Unconfirmed);
        tenant.is_none().then(|| unconfirmed.unwrap_or(State::NoTenant))
    }

    /// The Tenant, or one of the user's name that has nothing.
    fn named(&self, tenant: Option<Tenant>) -> Tenant {
        tenant
            .unwrap_or_else(|| Tenant::new(None, &self.user.name, crate::api::tenant::TenantSpec::default()))
    }
}

/// The namespace of the Templates of a course.
fn namespace_of(course: &str, workspaces: &[Workspace]) -> String {
    let known = workspaces.iter().find(|workspace| workspace.name() == course);
    let stated = known.map(|workspace| workspace.status.namespace.name.as_str()).unwrap_or_default();
    if stated.is_empty() { format!("workspace-{course}") } else { stated.to_owned() }
}

/// An object, if there is one and the user may read it.
fn or_none<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(ApiError::NotFound(_) | ApiError::Forbidden(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The objects of a list that the user may read.
fn or_nothing<T>(answer: Result<Vec<T>, ApiError>) -> Result<Vec<T>, ApiError> {
    or_none(answer).map(Option::unwrap_or_default)
}
