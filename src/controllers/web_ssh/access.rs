//! Whether a user may have a terminal of a machine, and where that machine is.

use std::net::{IpAddr, SocketAddr};

use super::message::Request;
use crate::api::Instance;
use crate::api::instance::{InstanceKind, InstancePhase};
use crate::api::names::{CanonicalName, DnsLabel, ObjectName};
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::runtime::ObjectKey;
use crate::runtime::client::UserReader;
use crate::runtime::error::ApiError;

/// Decides who gets a terminal.
pub struct Access {
    /// Asks the API server in the name of the user.
    pub users: UserReader,
    /// The addresses of the machines.
    pub addresses: InstanceAddresses,
    /// The port of SSH.
    pub port: u16,
}

/// A machine of which a user may have a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The Instance.
    pub instance: ObjectKey,
    /// Where it serves SSH.
    pub address: SocketAddr,
}

/// Why a user gets no terminal. The browser is only told that the request is not valid, so that nobody learns which
/// Instances exist.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// Namespace or name are none of Kubernetes. They are not repeated, because they may be long.
    #[error("the namespace or the name of the Instance is not valid")]
    Name,
    /// The API server does not show the Instance to the user.
    #[error("{0}")]
    ByApiServer(#[from] ApiError),
    /// The Instance cannot be used now.
    #[error("the Instance is not ready: its phase is {:?}", .0.as_str())]
    NotReady(InstancePhase),
    /// The Instance has no Service with an address.
    #[error("the Instance has no address")]
    NoAddress,
}

impl Access {
    /// The machine that a request is about, if the user may read its Instance.
    pub async fn machine(&self, request: &Request) -> Result<Machine, Denied> {
        let namespace = DnsLabel::new(&request.namespace).map_err(|_| Denied::Name)?;
        let name = ObjectName::new(&request.instance).map_err(|_| Denied::Name)?;
        let key = ObjectKey::new(namespace.as_str(), name.as_str());
        let token = request.token.strip_prefix("Bearer ").unwrap_or(&request.token).trim();
        let instance: Instance = self.users.get::<InstanceKind>(token, &key).await?;
        if instance.status.phase != InstancePhase::Ready {
            return Err(Denied::NotReady(instance.status.phase));
        }
        let addresses = self.addresses.addresses_of(instance.namespace(), instance.uid());
        let address = choose(&instance, &request.environment, &addresses).ok_or(Denied::NoAddress)?;
        Ok(Machine { instance: key, address: SocketAddr::new(address, self.port) })
    }
}

/// The address of an environment of an Instance: that of the Service named after it, else that of the only or first
/// environment. `addresses` has the Services of the Instance by name.
fn choose(instance: &Instance, environment: &str, addresses: &[(String, IpAddr)]) -> Option<IpAddr> {
    let canonical = CanonicalName::of(instance.name());
    let known = instance.status.environments.iter().map(|known| known.name.as_str());
    let names = [canonical.environment(environment), canonical.clone()].into_iter();
    let mut names = names.chain(known.map(|known| canonical.environment(known)));
    names
        .find_map(|name| addresses.iter().find(|(service, _)| *service == *name).map(|(_, address)| *address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::instance::{EnvironmentStatus, InstanceSpec};

    #[test]
    fn the_service_of_the_environment_is_chosen() {
        let mut instance = Instance::new(Some("tenant-ada"), "exam.1", InstanceSpec::default());
        let ip = |last: u8| IpAddr::from([10, 0, 0, last]);
        let one = [("exam-1".to_owned(), ip(1)), ("exam-1-pe".to_owned(), ip(9))];
        assert_eq!(choose(&instance, "main", &one), Some(ip(1)));
        let several = [("exam-1-client".to_owned(), ip(2)), ("exam-1-server".to_owned(), ip(3))];
        assert_eq!(choose(&instance, "client", &several), Some(ip(2)));
        assert_eq!(choose(&instance, "other", &several), None, "it is not known yet which is the first");
        let status = |name: &str| EnvironmentStatus { name: name.to_owned(), ..EnvironmentStatus::default() };
        instance.status.environments = vec![status("server"), status("client")];
        assert_eq!(choose(&instance, "other", &several), Some(ip(3)), "the first one of the Instance");
        assert_eq!(choose(&instance, "client", &several), Some(ip(2)));
        assert_eq!(choose(&instance, "main", &[]), None);
    }
}
