//! Clients of servers outside of the cluster.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | the HTTP client that all of them use: TLS, time limit, bounded answers |
//! | [`keycloak`] | Keycloak's admin API: accounts of Tenants, roles of Workspaces |
//! | [`prometheus`] | Prometheus' query API: the last use of Instances |

pub mod http;
pub mod keycloak;
pub mod prometheus;
