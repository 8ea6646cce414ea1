//! The certificate that is served, exchanged while connections come and go.

use std::sync::{Arc, PoisonError, RwLock};

use metrics::gauge;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tracing::info;

use super::validity::Validity;

/// The certificate that is served now, if there is one yet. Connections that are open keep theirs.
#[derive(Debug)]
pub struct Exchange {
    current: RwLock<Option<Arc<CertifiedKey>>>,
    present: watch::Sender<bool>,
}

impl Default for Exchange {
    fn default() -> Self {
        Self { current: RwLock::default(), present: watch::Sender::new(false) }
    }
}

impl Exchange {
    /// Serves this certificate from now on.
    pub fn set(&self, certified: CertifiedKey) {
        if let Some(validity) = certified.cert.first().and_then(|certificate| Validity::of(certificate)) {
            info!(until = %validity.end, "serving admission reviews with a new certificate");
            // Seconds since 1970 are exact in an f64 for longer than certificates last.
            #[expect(clippy::cast_precision_loss)]
            gauge!("crownlabs_webhook_certificate_expiration_timestamp_seconds")
                .set(validity.end.as_second() as f64);
        }
        let certified = Some(Arc::new(certified));
        // The value is replaced as a whole.
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = certified;
        self.present.send_replace(true);
    }

    /// Tells when there is a certificate to serve.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.present.subscribe()
    }
}

impl ResolvesServerCert for Exchange {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
