//! A certificate from a folder with the files `tls.crt` and `tls.key`, in the layout of a mounted cert-manager Secret.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::warn;

use super::CertificateError;
use super::pem::{CERTIFICATE, KEY, certificates, certified, key};
use super::resolver::CertificateResolver;
use crate::runtime::files::WatchedFile;

/// The content of the two files; `None` for a file that cannot be read.
#[derive(Default)]
struct Files {
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

/// Watches the two files in the folder that the configuration key `of` names. Each change is served at once if the key
/// matches the certificate; otherwise the current certificate stays in use.
pub fn watched(of: &'static str, folder: &Path, resolver: &Arc<CertificateResolver>) -> [WatchedFile; 2] {
    let files = Arc::new(Mutex::new(Files::default()));
    let watch = |name: &'static str, take: fn(&mut Files, Option<Vec<u8>>)| {
        let (files, resolver, path) = (Arc::clone(&files), Arc::clone(resolver), folder.join(name));
        let shown = path.display().to_string();
        WatchedFile::new(of, path, move |content| {
            let mut files = files.lock();
            take(&mut files, content.map(<[u8]>::to_vec));
            match load(&files) {
                Ok(certified) => resolver.set(certified),
                // Only one of the two files has changed so far; the other one follows.
                Err(CertificateError::Mismatch | CertificateError::Missing(_)) => {}
                Err(error) => {
                    warn!(file = shown, %error, "the certificate cannot be used; the current one stays in use");
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
