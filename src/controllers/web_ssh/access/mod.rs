//! Decides whether a user may open a terminal of a machine, and finds the machine's address.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::message::Request;
use crate::api::instance::{Instance, InstanceKind, InstancePhase};
use crate::api::names::{CanonicalName, check_dns_label, check_object_name};
use crate::api::template::TemplateKind;
use crate::api::tenant::{Tenant, TenantKind};
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::controllers::shared::entrance;
use crate::runtime::ObjectKey;
use crate::runtime::client::{Credential, Right, UserClient};
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
    /// The address of its SSH server.
    pub address: SocketAddr,
    /// The reason why the user may enter it.
    pub entitlement: Entitlement,
}

/// The reason why a user may enter a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entitlement {
    /// The user owns the machine or manages its course.
    Listed,
    /// The user has the right of administrators.
    Administrator,
}

impl fmt::Display for Entitlement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Listed => "the Tenant of the machine or a manager of its course",
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
    /// The user name is reserved, so it cannot be a Tenant.
    #[error("a user name that begins with {OF_THE_SYSTEM:?} gets no terminal")]
    System,
    /// The user has no right to enter the machine.
    #[error(
        "the user may read the Instance, and is neither its Tenant nor a manager of the Workspace of its Template, and \
         may not create instances/{TERMINAL} in its namespace"
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

/// The token in a request.
fn token(request: &Request) -> Result<Credential, ApiError> {
    Credential::token(request.token.strip_prefix("Bearer ").unwrap_or(&request.token).trim())
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
    /// The name of the user that the request's token belongs to.
    pub async fn user(&self, request: &Request) -> Result<String, Denied> {
        Ok(self.users.name(&token(request)?).await?)
    }

    /// The machine that the request is about, if `user` may enter it.
    pub async fn machine(&self, user: &str, request: &Request) -> Result<Machine, Denied> {
        let (key, token) = (instance_key(request)?, token(request)?);
        if user.starts_with(OF_THE_SYSTEM) {
            return Err(Denied::System);
        }
        let instance: Instance = self.users.get::<InstanceKind>(&token, &key).await?;
        let entitlement = self.entitlement(user, &token, &key, &instance).await?;
        if instance.status.phase != InstancePhase::Ready {
            return Err(Denied::NotReady(instance.status.phase));
        }
        let addresses = self.addresses.addresses_of(instance.namespace(), instance.uid());
        let address = choose(&instance, &request.environment, &addresses).ok_or(Denied::NoAddress)?;
        Ok(Machine { instance: key, address: SocketAddr::new(address, self.port), entitlement })
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
            let is_listed = |managers: &[Arc<Tenant>]| {
                entrance::users(owners.iter().map(String::as_str), managers).contains(user)
            };
            if is_listed(&[]) || is_listed(&self.managers(token, instance).await?) {
                return Ok(Entitlement::Listed);
            }
        }
        let kind = KindInfo::of::<InstanceKind>();
        let right = Right { verb: "create", kind, subresource: TERMINAL, object: key };
        let may = self.users.may(token, right).await?;
        if may { Ok(Entitlement::Administrator) } else { Err(Denied::Unrelated) }
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
