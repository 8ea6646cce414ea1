//! Decides whether a user may open a terminal of a machine, and keep it open, and finds the machine's address.

mod open;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::message::Request;
use crate::api::connection::Relation;
use crate::api::instance::{Instance, InstanceKind, InstancePhase};
use crate::api::names::{CanonicalName, check_dns_label, check_object_name};
use crate::api::sharing;
use crate::api::template::TemplateKind;
use crate::api::tenant::{Tenant, TenantKind};
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::controllers::shared::entrance;
use crate::runtime::ObjectKey;
use crate::runtime::client::{Credential, PassedIdentity, Right, UserClient};
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;
use crate::runtime::store::Store;

/// The prefix of user names that Kubernetes reserves: service accounts, nodes, the anonymous user.
const OF_THE_SYSTEM: &str = "system:";
/// The subresource of Instances for administrators: a user who may `create` it may enter all machines of the namespace.
const TERMINAL: &str = "terminal";

/// Decides which users get a terminal.
pub struct Access {
    /// Sends requests to the API server with the user's token.
    pub users: UserClient,
    /// All Tenants, by [`entrance::ByManagedWorkspace`] and [`entrance::ByPersonalNamespace`].
    pub tenants: Arc<Store<TenantKind>>,
    /// All Instances. A peer has no right to read the Instance that its owner shares.
    pub instances: Arc<Store<InstanceKind>>,
    /// All Templates.
    pub templates: Arc<Store<TemplateKind>>,
    /// The addresses of the machines.
    pub addresses: InstanceAddresses,
    /// The SSH port.
    pub port: u16,
}

/// A machine and the user's right to open a terminal of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The Instance of the machine.
    pub instance: ObjectKey,
    /// Its uid.
    pub uid: String,
    /// The name of the environment; empty if the status has none.
    pub environment: String,
    /// The address of its SSH server.
    pub address: SocketAddr,
    /// The reason why the user may enter it.
    pub entitlement: Entitlement,
}

/// The reason why a user may enter a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entitlement {
    /// The user is the Tenant of the machine.
    Owner,
    /// The user manages its course.
    Manager,
    /// The owner shares the machine with the user.
    Peer(sharing::Access),
    /// The user has the right of administrators.
    Administrator,
}

impl Entitlement {
    /// Whether input of the user is discarded.
    pub fn is_view(self) -> bool {
        self == Self::Peer(sharing::Access::View)
    }

    /// The relation that the owner sees; `None` for the owner.
    pub fn relation(self) -> Option<Relation> {
        match self {
            Self::Owner => None,
            Self::Manager => Some(Relation::Manager),
            Self::Peer(_) => Some(Relation::Peer),
            Self::Administrator => Some(Relation::Administrator),
        }
    }
}

impl fmt::Display for Entitlement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Owner => "the Tenant of the machine",
            Self::Manager => "a manager of its course",
            Self::Peer(sharing::Access::Control) => "a peer who controls it",
            Self::Peer(sharing::Access::View) => "a peer who looks on",
            Self::Administrator => "an administrator",
        })
    }
}

/// The reason why a user gets no terminal. The browser only learns that the request is not valid, so that users cannot
/// find out which Instances exist.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// The namespace or the name is not a valid Kubernetes name. It is not repeated, because it may be long.
    #[error("the namespace or the name of the Instance is not valid")]
    Name,
    /// The API server rejects the token, or does not let the user read the Instance.
    #[error("{0}")]
    ByApiServer(ApiError),
    /// The API server does not answer correctly, so the user or the user's rights are unknown.
    #[error("cannot query the API server: {0}")]
    Unanswered(ApiError),
    /// The API server ignored the impersonation.
    #[error(
        "the API server, or a proxy in front of it, ignores impersonation: it identified the user as {0}"
    )]
    NotImpersonated(String),
    /// The user name is reserved, so it cannot be a Tenant.
    #[error("a user name that begins with {OF_THE_SYSTEM:?} gets no terminal")]
    System,
    /// The user has no right to enter the machine.
    #[error(
        "the user may read the Instance, and is neither its Tenant nor a manager of the Workspace of its Template, may \
         not create instances/{TERMINAL} in its namespace, and is no peer"
    )]
    Unrelated,
    /// The Instance cannot be used now.
    #[error("the Instance is not ready: its phase is {:?}", .0.as_str())]
    NotReady(InstancePhase),
    /// The Instance has no Service with an address.
    #[error("the Instance has no address")]
    NoAddress,
}

impl From<ApiError> for Denied {
    fn from(error: ApiError) -> Self {
        match error {
            error if error.is_away() => Self::Unanswered(error),
            error => Self::ByApiServer(error),
        }
    }
}

/// The credential in a request: the token of the user, or the token of an account that impersonates the user.
fn token(request: &Request) -> Result<Credential, ApiError> {
    let token = request.token.strip_prefix("Bearer ").unwrap_or(&request.token).trim().to_owned();
    Credential::passed(&PassedIdentity { token, user: request.user.clone(), groups: request.groups.clone() })
}

/// The Instance that a request names.
pub fn instance_key(request: &Request) -> Result<ObjectKey, Denied> {
    checked(&request.namespace, &request.instance).ok_or(Denied::Name)
}

/// The key, if namespace and name are valid in Kubernetes: they become parts of a path.
fn checked(namespace: &str, name: &str) -> Option<ObjectKey> {
    let is_valid = check_dns_label(namespace).is_ok() && check_object_name(name).is_ok();
    is_valid.then(|| ObjectKey::new(namespace, name))
}

impl Access {
    /// The name of the user of a request: the one that its token belongs to, or the one that the account of the token
    /// impersonates. A proxy that drops the headers of impersonation would make the account the user.
    pub async fn user(&self, request: &Request) -> Result<String, Denied> {
        let name = self.users.name(&token(request)?).await?;
        if request.user.as_ref().is_some_and(|user| *user != name) {
            return Err(Denied::NotImpersonated(name));
        }
        Ok(name)
    }

    /// The machine that the request is about, if `user` may enter it.
    pub async fn machine(&self, user: &str, request: &Request) -> Result<Machine, Denied> {
        let (key, token) = (instance_key(request)?, token(request)?);
        if user.starts_with(OF_THE_SYSTEM) {
            return Err(Denied::System);
        }
        let (instance, entitlement) = match self.by_token(user, &token, &key).await {
            Err(denied @ (Denied::Unrelated | Denied::ByApiServer(_))) => {
                self.shared(user, &key).ok_or(denied)?
            }
            found => found?,
        };
        if instance.status.phase != InstancePhase::Ready {
            return Err(Denied::NotReady(instance.status.phase.clone()));
        }
        let addresses = self.addresses.addresses_of(instance.namespace(), instance.uid());
        let address = choose(&instance, &request.environment, &addresses).ok_or(Denied::NoAddress)?;
        let address = SocketAddr::new(address, self.port);
        let environment = name_of(&instance, &request.environment);
        Ok(Machine { instance: key, uid: instance.uid().to_owned(), environment, address, entitlement })
    }

    /// The Instance, if the user may read it and enter its machines.
    async fn by_token(
        &self,
        user: &str,
        token: &Credential,
        key: &ObjectKey,
    ) -> Result<(Arc<Instance>, Entitlement), Denied> {
        let instance: Instance = self.users.get::<InstanceKind>(token, key).await?;
        let entitlement = self.entitlement(user, token, key, &instance).await?;
        Ok((Arc::new(instance), entitlement))
    }

    /// The reason why a user may enter the machines of an Instance. The user can read the Instance.
    async fn entitlement(
        &self,
        user: &str,
        token: &Credential,
        key: &ObjectKey,
        instance: &Instance,
    ) -> Result<Entitlement, Denied> {
        let tenant = self.tenants.get("", user).filter(|tenant| !tenant.is_terminating());
        if tenant.is_some() {
            let owners = entrance::owners(&self.tenants, instance);
            if owners.iter().any(|owner| owner == user) {
                return Ok(Entitlement::Owner);
            }
            if is_among(user, &self.managers(token, instance).await?) {
                return Ok(Entitlement::Manager);
            }
        }
        let may = self.is_administrator(token, key).await?;
        if may { Ok(Entitlement::Administrator) } else { Err(Denied::Unrelated) }
    }

    /// Whether the user has the right of administrators.
    async fn is_administrator(&self, token: &Credential, key: &ObjectKey) -> Result<bool, ApiError> {
        let kind = KindInfo::of::<InstanceKind>();
        self.users.may(token, Right { verb: "create", kind, subresource: TERMINAL, object: key }).await
    }

    /// The managers of the course of an Instance. None if the user may not read its Template, which every manager may.
    /// Users write the reference to the Template, so it is checked first.
    async fn managers(&self, token: &Credential, instance: &Instance) -> Result<Vec<Arc<Tenant>>, Denied> {
        let reference = &instance.spec.template_ref;
        let Some(key) = checked(&reference.namespace, &reference.name) else { return Ok(Vec::new()) };
        match self.users.get::<TemplateKind>(token, &key).await {
            Ok(template) => Ok(entrance::managers(&self.tenants, &template)),
            Err(error) if error.is_away() => Err(Denied::Unanswered(error)),
            Err(_) => Ok(Vec::new()),
        }
    }
}

/// Whether a user is one of these Tenants.
fn is_among(user: &str, tenants: &[Arc<Tenant>]) -> bool {
    tenants.iter().any(|tenant| tenant.name() == user)
}

/// The name of the environment of a request. An unknown name stands for the first environment.
fn name_of(instance: &Instance, requested: &str) -> String {
    let known = &instance.status.environments;
    let meant = known.iter().find(|known| known.name.as_str() == requested).or(known.first());
    meant.map(|known| known.name.to_string()).unwrap_or_default()
}

/// The address of an environment of an Instance: the Service named after the environment, otherwise the Service of the
/// only or first environment. `addresses` has the Services of the Instance by name.
fn choose(instance: &Instance, environment: &str, addresses: &[(String, IpAddr)]) -> Option<IpAddr> {
    let canonical = CanonicalName::of(instance.name());
    let known = instance.status.environments.iter().map(|known| known.name.as_str());
    let names = [canonical.environment(environment), canonical.clone()].into_iter();
    let mut names = names.chain(known.map(|known| canonical.environment(known)));
    names
        .find_map(|name| addresses.iter().find(|(service, _)| *service == *name).map(|(_, address)| *address))
}

#[cfg(test)]
mod tests;
