//! A certificate from a folder with the files `tls.crt` and `tls.key`, in the layout of a mounted cert-manager Secret.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::warn;

use super::CertificateError;
use super::pem::{CERTIFICATE, KEY, certificates, certified, key};
use super::resolver::CertificateResolver;
use crate::runtime::files::WatchedFile;

/// The content of each file; `None` for a file that cannot be read.
type Files = HashMap<&'static str, Option<Vec<u8>>>;

/// Watches the two files in the folder that the configuration key `of` names. Each change is served at once if the key
/// matches the certificate; otherwise the current certificate stays in use.
pub fn watched(of: &'static str, folder: &Path, resolver: &Arc<CertificateResolver>) -> [WatchedFile; 2] {
    let files = Arc::new(Mutex::new(Files::new()));
    [CERTIFICATE, KEY].map(|name| {
        let (files, resolver, path) = (Arc::clone(&files), Arc::clone(resolver), folder.join(name));
        let shown = path.display().to_string();
        WatchedFile::new(of, path, move |content| {
            let mut files = files.lock();
            files.insert(name, content.map(<[u8]>::to_vec));
            match load(&files) {
                Ok(certified) => resolver.set(certified),
                // Only one of the two files has changed so far; the other one follows.
                Err(CertificateError::Mismatch | CertificateError::Missing(_)) => {}
                Err(error) => {
                    warn!(file = shown, %error, "the certificate cannot be used; the current one stays in use");
                }
            }
        })
    })
}

fn load(files: &Files) -> Result<rustls::sign::CertifiedKey, CertificateError> {
    let content = |name: &'static str| {
        files.get(name).and_then(Option::as_deref).ok_or(CertificateError::Missing(name))
    };
    let (certificate, private) = (content(CERTIFICATE)?, content(KEY)?);
    certified(certificates(CERTIFICATE, certificate)?, key(KEY, private)?)
}
