//! Clients of servers other than the API server.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | the client of all HTTP servers: TLS, time limit, bounded answers |
//! | [`keycloak`] | Keycloak's admin API: accounts of Tenants, roles of Workspaces |
//! | [`mail`] | mail to Tenants, through a mail server or into a folder |
//! | [`prometheus`] | Prometheus' query API: the last use of Instances |
//! | [`ssh`] | shells on machines |
//! | [`status_check`] | the status URLs of exams |

pub mod http;
pub mod keycloak;
pub mod mail;
pub mod prometheus;
pub mod ssh;
pub mod status_check;
