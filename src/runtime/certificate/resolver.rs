//! The certificate for new TLS connections. It can be replaced while the server runs.

use std::sync::Arc;

use metrics::gauge;
use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tracing::info;

use super::validity::Validity;

/// The purpose of a certificate.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    /// The server that uses it, for the log.
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
    present: watch::Sender<bool>,
}

impl CertificateResolver {
    /// Creates a resolver without a certificate.
    pub fn new(served: Served) -> Self {
        Self { served, current: RwLock::default(), present: watch::Sender::new(false) }
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
        self.present.send_replace(true);
    }

    /// Becomes true once there is a certificate to serve.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.present.subscribe()
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().clone()
    }
}
