//! The outside world: what the daemon asks of servers that are not the cluster's API server.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | requests to one server: TLS, time limit, bounded answers |
//! | [`keycloak`] | Keycloak's admin API: accounts of Tenants, roles of Workspaces |

pub mod http;
pub mod keycloak;
