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
            let content = content.as_deref().map_err(ToString::to_string);
            match content.and_then(of_authorities) {
                Ok(current) => {
                    info!(file = shown, "only clients with a certificate of these authorities are served");
                    *changed.current.write() = Some(current);
                }
                Err(problem) => warn!("{}", changed.refusal(&shown, &problem)),
            }
        });
        (verifier, file)
    }

    /// Describes the problem of the file, and its effect.
    fn refusal(&self, file: &str, problem: &str) -> String {
        let is_known = self.current.read().is_some();
        let effect = if is_known {
            "The previous authorities stay in effect"
        } else {
            "Until then, the webhooks accept no client, and the API server rejects the writes of users"
        };
        format!("{KEY}: {file} cannot be used: {problem}. {effect}")
    }

    fn current(&self) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let current = self.current.read().clone();
        current.ok_or_else(|| Error::General(format!("{KEY} could not be read: no client is accepted")))
    }
}

/// Creates the verifier for the authorities of a PEM file.
fn of_authorities(content: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    let remedy = "expected the certificate of the authority of the API server's client certificate, in PEM";
    let added = certificates("it", content).map_err(|error| error.to_string()).and_then(|all| {
        all.into_iter().try_for_each(|certificate| roots.add(certificate).map_err(|error| error.to_string()))
    });
    added.map_err(|error| format!("{error}; {remedy}"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_authorities_is_reported_with_its_effect() {
        let folder = tempfile::tempdir().expect("a folder");
        let (verifier, _) = ClientVerifier::watched(&folder.path().join("none"));
        assert_eq!(
            verifier.refusal("/ca.crt", "it does not exist"),
            "server.webhook.clientCaFile: /ca.crt cannot be used: it does not exist. Until then, the webhooks accept no \
             client, and the API server rejects the writes of users"
        );
        let file = folder.path().join("ca.crt");
        let made = rcgen::generate_simple_self_signed(["a.example.org".to_owned()]).expect("a certificate");
        std::fs::write(&file, made.cert.pem()).expect("written");
        let (verifier, _) = ClientVerifier::watched(&file);
        let text = verifier.refusal("/ca.crt", "it does not exist");
        assert!(text.ends_with("it does not exist. The previous authorities stay in effect"), "{text}");
        let error = of_authorities(b"nonsense").expect_err("no certificate");
        assert!(error.starts_with("it has no certificate in PEM") && error.contains("; expected"), "{error}");
    }
}
