//! Clients of servers outside of the cluster.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | the client of all HTTP servers: TLS, time limit, bounded answers |
//! | [`keycloak`] | Keycloak's admin API: accounts of Tenants, roles of Workspaces |
//! | [`mail`] | mail to Tenants about their Instances |

pub mod http;
pub mod keycloak;
pub mod mail;
