//! Clients of servers other than the API server.
//!
//! | module | content |
//! |---|---|
//! | [`addresses`] | the addresses that URLs of users may lead to |
//! | [`cri`] | the container runtime of this node |
//! | [`http`] | the client for all HTTP servers: TLS, time limit, size limit for responses |
//! | [`keycloak`] | Keycloak's admin API: accounts of Tenants, roles of Workspaces |
//! | [`mail`] | mail to Tenants, through a mail server or into a folder |
//! | [`oidc`] | the OpenID Connect provider for logins |
//! | [`prometheus`] | Prometheus' query API: the last use of Instances |
//! | [`registry`] | container registries: names and tags of their images |
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
