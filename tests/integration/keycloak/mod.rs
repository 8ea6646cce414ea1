//! The Keycloak client on a real Keycloak. One server serves all tests; each has a realm of its own, reached
//! through a proxy that counts and breaks.

mod faults;
mod people;
pub mod realm;
mod rights;
mod roles;
pub mod tenants;
