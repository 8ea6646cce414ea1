//! Clients of servers other than the API server.
//!
//! | module | what it is |
//! |---|---|
//! | [`addresses`] | which addresses the URLs that users choose may lead to |
//! | [`cri`] | the container runtime of this node |
//! | [`http`] | the client of all HTTP servers: TLS, time limit, bounded answers |
//! | [`keycloak`] | Keycloak's admin API: accounts of Tenants, roles of Workspaces |
//! | [`mail`] | mail to Tenants, through a mail server or into a folder |
//! | [`oidc`] | the OpenID Connect provider by which users log in |
//! | [`prometheus`] | Prometheus' query API: the last use of Instances |
//! | [`registry`] | container registries: the names and tags of what they hold |
//! | [`ssh`] | shells on machines |
//! | [`status_check`] | the status URLs of exams |

pub mod addresses;
#[cfg(feature = "daemon")]
pub mod cri;
pub mod http;
pub mod keycloak;
pub mod mail;
#[cfg(feature = "daemon")]
pub mod oidc;
pub mod prometheus;
pub mod registry;
#[cfg(feature = "daemon")]
pub mod ssh;
pub mod status_check;
