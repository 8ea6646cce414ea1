//! The certificate that new TLS connections get. It can be replaced while the server runs.

use std::sync::Arc;

use metrics::gauge;
use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tracing::info;

use super::validity::Validity;

/// What a certificate is for.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    /// What is served with it, for the log.
    pub what: &'static str,
    /// The gauge with the time at which it expires.
    pub gauge: &'static str,
}

/// Holds the certificate that is served, if there is one yet, and gives it to each TLS handshake. Open
/// connections keep the certificate that they began with.
#[derive(Debug)]
pub struct CertificateResolver {
    served: Served,
    current: RwLock<Option<Arc<CertifiedKey>>>,
    present: watch::Sender<bool>,
}

impl CertificateResolver {
    /// One without a certificate.
    pub fn new(served: Served) -> Self {
        Self { served, current: RwLock::default(), present: watch::Sender::new(false) }
    }

    /// Serves this certificate from the next handshake on, and records its end in the metrics.
    pub fn set(&self, certified: CertifiedKey) {
        if let Some(validity) = certified.cert.first().and_then(|certificate| Validity::of(certificate)) {
            info!(until = %validity.end, "serving {} with a new certificate", self.served.what);
            // Seconds since 1970 are exact in an f64 for longer than certificates last.
            #[expect(clippy::cast_precision_loss)]
            gauge!(self.served.gauge).set(validity.end.as_second() as f64);
        }
        let certified = Some(Arc::new(certified));
        *self.current.write() = certified;
        self.present.send_replace(true);
    }

    /// Is true as soon as there is a certificate to serve.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.present.subscribe()
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().clone()
    }
}
