//! The serving certificate of the webhooks, signed by the daemon's own authority, and the verification of client
//! certificates. `runtime::certificate` reads a certificate from a folder.

pub mod authority;
pub mod bundle;
pub mod clients;
pub mod registration;
pub mod rotator;

use std::collections::BTreeMap;

use rustls::pki_types::CertificateDer;

use crate::runtime::certificate::CertificateError;

/// A certificate.
type Certificate = CertificateDer<'static>;
/// The data of the Secret with the certificate.
type Data = BTreeMap<String, String>;
/// The result of creating or reading a certificate.
type Result<T, E = CertificateError> = std::result::Result<T, E>;
