//! Client authentication. With `server.webhook.clientCaFile`, only clients with a certificate of that authority are
//! served. The API server presents one if its `AdmissionConfiguration` names it.

use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};
use tracing::{info, warn};

use crate::runtime::certificate::pem::{certificates, provider};
use crate::runtime::files::WatchedFile;

/// The key of the configuration.
const KEY: &str = "server.webhook.clientCaFile";

/// Verifies the certificates of clients with the authorities in a file, which may change. Until the file has been read
/// once, no client is accepted.
#[derive(Debug, Default)]
pub struct ClientVerifier {
    current: RwLock<Option<Arc<dyn ClientCertVerifier>>>,
}

impl ClientVerifier {
    /// Creates the verifier and the watch of its file. If the file becomes unreadable, the previous authorities stay in
    /// effect.
    pub fn watched(path: &Path) -> (Arc<Self>, WatchedFile) {
        let verifier = Arc::<Self>::default();
        let (changed, shown) = (Arc::clone(&verifier), path.display().to_string());
        let file = WatchedFile::new(KEY, path.to_owned(), move |content| {
            match content.ok_or_else(|| "it cannot be read".to_owned()).and_then(of_authorities) {
                Ok(current) => {
                    info!(file = shown, "only clients with a certificate of these authorities are served");
                    *changed.current.write() = Some(current);
                }
                Err(problem) => {
                    warn!(file = shown, problem, "{KEY} is invalid; the previous authorities stay in effect");
                }
            }
        });
        (verifier, file)
    }

    fn current(&self) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let current = self.current.read().clone();
        current.ok_or_else(|| Error::General(format!("{KEY} could not be read: no client is accepted")))
    }
}

/// Creates the verifier for the authorities of a PEM file.
fn of_authorities(content: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("the file", content).map_err(|error| error.to_string())? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let built = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    built.map_err(|error| error.to_string())
}

impl ClientCertVerifier for ClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let current = self.current().map_err(|_| CertificateError::UnknownIssuer)?;
        current.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current()?.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current()?.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
