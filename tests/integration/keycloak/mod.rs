//! The Keycloak client on a real Keycloak. All tests share one server; each has its own realm, which it reaches through
//! a proxy that counts requests and causes faults.

mod accounts;
mod faults;
mod people;
pub mod realm;
mod rights;
mod roles;
mod silent;
pub mod tenants;
mod user;
