//! The reads of a page, with the token of its user. Objects that the user may not read are absent.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use futures::join;

use super::{Known, Rights};
use crate::api::instance::InstanceKind;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::names::CanonicalName;
use crate::api::template::TemplateKind;
use crate::api::tenant::{Role, TenantKind, TenantSpec};
use crate::api::why::{Event, WARNINGS, Warning, is_waiting, pods_of, warnings};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Instance, InstanceSnapshot, Kind, Object, Tenant, Workspace};
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::history::model::{Recorded, Told};
use crate::controllers::dashboard::history::read::{EVENTS, events};
use crate::controllers::dashboard::live::broadcast::Topic;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::state::State;
use crate::controllers::dashboard::user::users::{User, Users};
use crate::kinds::PodKind;
use crate::runtime::ObjectKey;
use crate::runtime::client::Rules;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The maximum number of courses of a user for which Templates are read. Each course is one request.
const MOST_COURSES: usize = 50;

/// The reads of one page.
pub struct Reads<'a> {
    /// The users, with the client that sends requests as a user.
    pub users: &'a Users,
    /// The user.
    pub user: &'a User,
}

/// The objects of a user.
pub struct Own {
    /// The objects.
    pub known: Known,
    /// The page that replaces every page, if the Tenant does not exist or the user may not read it.
    pub without_tenant: Option<State>,
    /// The rights of the user in the namespace of the machines.
    pub rules: NamespaceRules,
    /// The topics whose changes make the page stale.
    pub topics: Vec<Topic>,
}

/// A machine, with the objects that its page needs.
pub struct OneMachine {
    /// The machine.
    pub instance: Instance,
    /// Whether its Template does not exist.
    pub is_template_gone: bool,
    /// The objects of the user.
    pub own: Own,
    /// Whether it is in the namespace of the user.
    pub is_own: bool,
    /// The warnings about its objects, or why they are unknown; empty if the user may not read them.
    pub warnings: Result<Vec<Warning>, String>,
    /// The fields that tell its history.
    pub recorded: Recorded,
    /// The events about it, or why they are unknown; empty if the user may not read them.
    pub events: Result<Vec<Event>, String>,
}

/// The rights of a user in one namespace. In other namespaces, every right counts as granted, and the API server
/// decides.
#[derive(Clone)]
pub struct NamespaceRules {
    pub namespace: String,
    pub rules: Arc<Rules>,
}

impl Rights for NamespaceRules {
    fn may(&self, namespace: &str, right: &Right) -> bool {
        let Right { verb, group, resource } = right;
        namespace != self.namespace || self.rules.allow(verb, group, resource, "")
    }
}

impl Own {
    /// Returns the page that replaces every page, if the account of the user is missing or not confirmed.
    pub fn lacks(&self) -> Option<State> {
        let tenant = &self.known.tenant;
        let status = &tenant.status;
        let is_unconfirmed = !status.personal_namespace.created
            && status.keycloak.user_created.created
            && !status.keycloak.user_confirmed;
        let unconfirmed = || is_unconfirmed.then(|| State::Unconfirmed(tenant.spec.email.clone()));
        self.without_tenant.clone().or_else(unconfirmed)
    }

    /// Returns the page that replaces the home page, which also requires a namespace and a course.
    pub fn lacks_for_home(&self) -> Option<State> {
        let Known { tenant, instances, .. } = &self.known;
        self.lacks().or_else(|| {
            if !tenant.status.personal_namespace.created {
                return Some(State::NoNamespace);
            }
            let has_courses = !tenant.spec.workspaces.is_empty() || has_own_templates(tenant);
            (instances.is_empty() && !has_courses).then_some(State::NoCourse)
        })
    }
}

impl Reads<'_> {
    /// Returns the namespace of the user's machines.
    fn namespace(&self) -> String {
        CanonicalName::of(&self.user.name).tenant_namespace()
    }

    /// Reads the Tenant. If it does not exist or the user may not read it, returns an empty one with the name of the
    /// user, and the page that replaces every page. Users may read their own Tenant once their address is confirmed.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn tenant(&self) -> Result<(Tenant, Option<State>), ApiError> {
        let User { name, unconfirmed, credential, .. } = self.user;
        let key = ObjectKey::new("", name.as_str());
        if let Some(tenant) = or_none(self.users.client.get::<TenantKind>(credential, &key).await)? {
            return Ok((tenant, None));
        }
        let state = unconfirmed.clone().map_or(State::NoTenant, State::Unconfirmed);
        Ok((Tenant::new(None, name, TenantSpec::default()), Some(state)))
    }

    /// Lists the objects of a kind in a namespace; empty if the user may not read them.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn list<T: Kind>(&self, namespace: &str) -> Result<Vec<Object<T>>, ApiError> {
        let listed = self.users.client.list::<T>(&self.user.credential, namespace, "").await;
        or_none(listed).map(Option::unwrap_or_default)
    }

    /// Reads the rights of the user in a namespace.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn rules(&self, namespace: &str) -> Result<NamespaceRules, ApiError> {
        let rules = self.users.rules(self.user, namespace).await?;
        Ok(NamespaceRules { namespace: namespace.to_owned(), rules })
    }

    /// Reads the user's Tenant and machines, and the Templates of the courses and of the personal workspace.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn own(&self) -> Result<Own, ApiError> {
        let namespace = self.namespace();
        let (tenant, instances, workspaces, rules) = join!(
            self.tenant(),
            self.list::<InstanceKind>(&namespace),
            self.list::<WorkspaceKind>(""),
            self.rules(&namespace),
        );
        let ((tenant, without_tenant), mut workspaces) = (tenant?, workspaces?);
        let entries = tenant.spec.workspaces.iter();
        let courses: BTreeSet<&str> =
            entries.filter(|entry| entry.role != Role::Candidate).map(|entry| entry.name.as_str()).collect();
        workspaces.retain(|workspace| courses.contains(workspace.name()));
        let mut namespaces: Vec<String> =
            courses.into_iter().take(MOST_COURSES).map(|course| namespace_of(course, &workspaces)).collect();
        namespaces.extend(has_own_templates(&tenant).then(|| namespace.clone()));
        let lists = join_all(namespaces.iter().map(|namespace| self.list::<TemplateKind>(namespace))).await;
        let templates: Result<Vec<_>, ApiError> = lists.into_iter().collect();
        let templates = templates?.into_iter().flatten().collect();
        let mut topics = vec![Topic::Instances(namespace), Topic::Tenant(self.user.name.clone())];
        topics.extend(namespaces.into_iter().map(Topic::Templates));
        let known = Known::new(tenant, instances?, templates, workspaces, Vec::new());
        Ok(Own { known, without_tenant, rules: rules?, topics })
    }

    /// Reads the user's Tenant and all courses.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn courses(&self) -> Result<Own, ApiError> {
        let namespace = self.namespace();
        let (tenant, workspaces, rules) =
            join!(self.tenant(), self.list::<WorkspaceKind>(""), self.rules(&namespace));
        let (tenant, without_tenant) = tenant?;
        let known = Known::new(tenant, Vec::new(), Vec::new(), workspaces?, Vec::new());
        let topics = vec![Topic::Tenant(self.user.name.clone()), Topic::Workspaces];
        Ok(Own { known, without_tenant, rules: rules?, topics })
    }

    /// Reads a machine of the user, or of another user whose machines the user may see.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn machine(&self, machine: &ObjectKey) -> Result<OneMachine, ApiError> {
        let namespace = &*machine.namespace;
        let (client, credential) = (&self.users.client, &self.user.credential);
        let instance =
            client.get_as::<Told<InstanceKind>>(credential, KindInfo::of::<InstanceKind>(), machine);
        let (instance, tenant, workspaces, instances, rules) = join!(
            instance,
            self.tenant(),
            self.list::<WorkspaceKind>(""),
            self.list::<InstanceKind>(namespace),
            self.rules(namespace),
        );
        let (Told { object: instance, recorded }, rules) = (instance?, rules?);
        let reference = &instance.spec.template_ref;
        let template = async {
            match paths::machine(&reference.namespace, &reference.name) {
                Some(key) => self.users.client.get::<TemplateKind>(&self.user.credential, &key).await,
                None => Err(ApiError::NotFound(String::new())),
            }
        };
        let events = events(self.users, self.user, namespace, instance.uid());
        let (template, snapshots, events) = join!(template, self.snapshots(&rules), events);
        let events = events.map_err(|error| error.to_string());
        let warnings = self.warnings(&instance, &rules).await.map_err(|error| error.to_string());
        let is_template_gone = matches!(template, Err(ApiError::NotFound(_)));
        let templates = or_none(template)?.into_iter().collect();
        let (tenant, without_tenant) = tenant?;
        let topics = vec![
            topic_of(machine, &rules),
            Topic::Tenant(self.user.name.clone()),
            Topic::Templates(reference.namespace.to_string()),
        ];
        let known = Known::new(tenant, instances?, templates, workspaces?, snapshots?);
        let own = Own { known, without_tenant, rules, topics };
        let is_own = namespace == self.namespace();
        Ok(OneMachine { instance, is_template_gone, own, is_own, warnings, recorded, events })
    }

    /// Lists the snapshots of a namespace; empty if the user may not list them, like most students. Without this
    /// check, the API server would refuse a request of each of their pages, and each refusal costs a probe.
    async fn snapshots(&self, rules: &NamespaceRules) -> Result<Vec<InstanceSnapshot>, ApiError> {
        let namespace = rules.namespace.as_str();
        if !rules.may(namespace, &Right::to::<InstanceSnapshotKind>("list")) {
            return Ok(Vec::new());
        }
        self.list::<InstanceSnapshotKind>(namespace).await
    }

    /// Reads the warnings about the objects of a machine that is not ready.
    async fn warnings(&self, instance: &Instance, rules: &NamespaceRules) -> Result<Vec<Warning>, ApiError> {
        let may_list = |resource| rules.rules.allow("list", "", resource, "");
        if !is_waiting(instance) || !may_list("events") || !may_list("pods") {
            return Ok(Vec::new());
        }
        let (client, credential, namespace) =
            (&self.users.client, &self.user.credential, instance.namespace());
        let query = pods_of(instance);
        let (pods, events) = join!(
            client.list::<PodKind>(credential, namespace, &query),
            client.list_as::<Event>(credential, EVENTS, namespace, WARNINGS),
        );
        Ok(warnings(instance, pods?.iter().map(Object::name), events?))
    }
}

/// Whether a Tenant has its own Templates, which are in its namespace once the personal workspace exists.
fn has_own_templates(tenant: &Tenant) -> bool {
    tenant.spec.has_personal_workspace() && tenant.status.personal_workspace_created == Some(true)
}

/// Returns the topic of the page of a machine: all Instances of its namespace, because they use the quota that a
/// start needs, or the machine alone if the user may not list them.
fn topic_of(machine: &ObjectKey, rules: &NamespaceRules) -> Topic {
    if rules.may(&machine.namespace, &Right::to::<InstanceKind>("list")) {
        Topic::Instances(machine.namespace.to_string())
    } else {
        Topic::Instance(machine.clone())
    }
}

/// Returns the namespace of the Templates of a course.
pub fn namespace_of(course: &str, workspaces: &[Workspace]) -> String {
    let known = workspaces.iter().find(|workspace| workspace.name() == course);
    let stated = known.map(|workspace| workspace.status.namespace.name.as_str()).unwrap_or_default();
    if stated.is_empty() { format!("workspace-{course}") } else { stated.to_owned() }
}

/// Returns the object; `None` if it does not exist or the user may not read it.
pub fn or_none<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(ApiError::NotFound(_) | ApiError::Forbidden(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::clients::oidc::{Provider, Settings};
    use crate::config::Identity;
    use crate::runtime::api_server::{ApiServer, Asked, refused};
    use crate::runtime::client::{Credential, UserClient};

    /// An API server with one machine, whose user may do everything with these resources.
    fn answer(asked: &Asked, resources: &Value) -> (u16, Value) {
        if asked.is("POST ") {
            let rule = json!({"verbs": ["*"], "apiGroups": ["crownlabs.polito.it"], "resources": resources});
            return (201, json!({"status": {"resourceRules": [rule]}}));
        }
        match asked.name() {
            "vm" => {
                let metadata =
                    json!({"name": "vm", "namespace": "tenant-ada", "uid": "u1", "resourceVersion": "7"});
                let reference = json!({"name": "desktop", "namespace": "workspace-tea"});
                let spec = json!({"template.crownlabs.polito.it/TemplateRef": reference});
                (200, json!({"metadata": metadata, "spec": spec}))
            }
            "instances" | "workspaces" | "instancesnapshots" => (200, json!({"metadata": {}, "items": []})),
            _ => refused(404, "NotFound", "it is not there"),
        }
    }

    /// Returns the topics of the page of the machine, and whether the snapshots were requested.
    async fn read(resources: Value) -> (Vec<Topic>, bool) {
        let api = ApiServer::start(move |asked| answer(asked, &resources)).await;
        let (provider, _file) = Provider::new(Settings {
            issuer: "https://auth.example.com".to_owned(),
            client_id: "dashboard".to_owned(),
            client_secret_file: String::new(),
            ca_file: String::new(),
            redirect_uri: String::new(),
        })
        .expect("a provider");
        let users = Users::new(UserClient::new(&api.config).expect("a client"), provider, Identity::Token);
        let credential = Credential::token("token").expect("a token");
        let user = User::new(credential, "ada".to_owned(), Timestamp::MAX);
        let machine = Reads { users: &users, user: &user }.machine(&ObjectKey::new("tenant-ada", "vm")).await;
        let topics = machine.expect("a machine").own.topics;
        (topics, api.lines().iter().any(|line| line.contains("instancesnapshots")))
    }

    #[tokio::test]
    async fn the_page_of_a_machine_reads_and_follows_what_the_user_may_list() {
        let instances = Topic::Instances("tenant-ada".to_owned());
        let instance = Topic::Instance(ObjectKey::new("tenant-ada", "vm"));
        for (resources, topic, has_snapshots) in [
            (json!(["instances"]), instances.clone(), false),
            (json!(["instances", "instancesnapshots"]), instances, true),
            (json!(["instancesnapshots"]), instance, true),
        ] {
            let others = [Topic::Tenant("ada".to_owned()), Topic::Templates("workspace-tea".to_owned())];
            let expected = [vec![topic], others.to_vec()].concat();
            assert_eq!(read(resources.clone()).await, (expected, has_snapshots), "{resources}");
        }
    }
}
