//! The certificate for new TLS connections. It can be replaced while the server runs.

use std::sync::Arc;

use metrics::gauge;
use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tracing::{info, warn};

use super::validity::Validity;
use crate::runtime::files::Awaited;

/// The purpose of a certificate.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    /// The server that uses it, for messages: `the webhooks`.
    pub what: &'static str,
    /// The gauge of its expiry time.
    pub gauge: &'static str,
}

/// Holds the current certificate, if there is one yet, and returns it for each TLS handshake. Open connections keep the
/// certificate from their handshake.
#[derive(Debug)]
pub struct CertificateResolver {
    served: Served,
    current: RwLock<Option<Arc<CertifiedKey>>>,
    /// The reason why there is no certificate yet; `None` once there is one.
    awaited: watch::Sender<Option<String>>,
}

impl CertificateResolver {
    /// Creates a resolver without a certificate.
    pub fn new(served: Served) -> Self {
        Self { served, current: RwLock::default(), awaited: watch::Sender::new(Some(String::new())) }
    }

    /// Serves this certificate from the next handshake on, and records its expiry in the metrics.
    pub fn set(&self, certified: CertifiedKey) {
        if let Some(validity) = certified.cert.first().and_then(|certificate| Validity::of(certificate)) {
            info!(until = %validity.end, "serving {} with a new certificate", self.served.what);
            // An f64 represents seconds since 1970 exactly, far beyond the lifetime of certificates.
            #[expect(clippy::cast_precision_loss)]
            gauge!(self.served.gauge).set(validity.end.as_second() as f64);
        }
        *self.current.write() = Some(Arc::new(certified));
        self.awaited.send_replace(None);
    }

    /// Reports that the certificate from `place` cannot be used because of this problem: in the log, and to the server
    /// that waits for its first certificate.
    pub fn refuse(&self, place: &str, problem: &str) {
        let is_served = self.current.read().is_some();
        if is_served {
            warn!("{place} cannot be used, so the previous certificate stays in use: {problem}");
            return;
        }
        let what = self.served.what;
        let why = format!("{place} cannot be used, so {what} cannot be served: {problem}");
        warn!("{why}");
        self.awaited.send_replace(Some(why));
    }

    /// The reason why there is no certificate to serve yet, in a sentence, which is empty while the reason is unknown;
    /// `None` once there is one.
    pub fn watch(&self) -> Awaited {
        self.awaited.subscribe()
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().clone()
    }
}
