//! The certificate that our own authority signs for the webhooks, and whose certificates of clients are accepted. One from a
//! folder is read by `runtime::certificate`.

pub mod authority;
pub mod bundle;
pub mod clients;
pub mod rotator;
