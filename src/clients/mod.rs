//! Clients of servers outside of the cluster.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | the HTTP client that all of them use: TLS, time limit, bounded answers |
//! | [`keycloak`] | Keycloak's admin API: accounts of Tenants, roles of Workspaces |
//! | [`status_check`] | the status URLs of exams |

pub mod http;
pub mod keycloak;
pub mod status_check;
