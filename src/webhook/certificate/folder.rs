//! A certificate from a folder, as cert-manager fills it: `tls.crt` and `tls.key`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::warn;

use super::CertificateError;
use super::bundle::{CERTIFICATE, KEY, certificates, certified, key};
use super::resolver::CertificateResolver;
use crate::manager::Watched;

/// What the two files hold; `None` for one that cannot be read.
#[derive(Default)]
struct Files {
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

/// The two files, watched. Each change is served as soon as both fit together.
pub fn watched(folder: &Path, resolver: &Arc<CertificateResolver>) -> [Watched; 2] {
    let files = Arc::new(Mutex::new(Files::default()));
    let watch = |name: &'static str, take: fn(&mut Files, Option<Vec<u8>>)| {
        let (files, resolver, place) = (Arc::clone(&files), Arc::clone(resolver), folder.join(name));
        let shown = place.display().to_string();
        Watched::new(place, move |content| {
            // Nothing between the two lines can panic.
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            take(&mut files, content.map(<[u8]>::to_vec));
            match load(&files) {
                Ok(certified) => resolver.set(certified),
                // The other file is read next.
                Err(CertificateError::Mismatch | CertificateError::Missing(_)) => {}
                Err(error) => {
                    warn!(file = shown, %error, "the certificate cannot be used; the old one stays");
                }
            }
        })
    };
    [
        watch(CERTIFICATE, |files, content| files.certificate = content),
        watch(KEY, |files, content| files.key = content),
    ]
}

fn load(files: &Files) -> Result<rustls::sign::CertifiedKey, CertificateError> {
    let certificate = files.certificate.as_deref().ok_or(CertificateError::Missing(CERTIFICATE))?;
    let private = files.key.as_deref().ok_or(CertificateError::Missing(KEY))?;
    certified(certificates(CERTIFICATE, certificate)?, key(KEY, private)?)
}
