//! A certificate from a folder with the files `tls.crt` and `tls.key`, in the layout of a mounted cert-manager Secret.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::sign::CertifiedKey;
use tracing::warn;

use super::pem::{CERTIFICATE, KEY, certificates, certified, key};
use super::resolver::CertificateResolver;
use super::validity::Validity;
use crate::config::file::{Content, FileError, text};
use crate::runtime::clock;
use crate::runtime::files::WatchedFile;

/// Watches the two files in the folder that the configuration key `of` names. Each change is served at once if the key
/// matches the certificate; otherwise the current certificate stays in use, and the log says why.
pub fn watched(of: &'static str, folder: &Path, resolver: &Arc<CertificateResolver>) -> WatchedFile {
    let (resolver, place) = (Arc::clone(resolver), format!("{of}: {}", folder.display()));
    let paths = [CERTIFICATE, KEY].map(|name| folder.join(name));
    WatchedFile::several(of, paths.into(), move |contents| match load(contents) {
        Ok(certified) => {
            if let Some(doubt) = doubt(&certified, clock::now()) {
                warn!("{place}: {doubt}");
            }
            resolver.set(certified);
        }
        Err(problem) => resolver.refuse(&place, &problem),
    })
}

/// The certificate in the contents of the two files. The error is a sentence about the folder, with the remedy.
fn load(contents: &[Content]) -> Result<CertifiedKey, String> {
    let [certificate, private] = contents else { return Err("it has no files".to_owned()) };
    let (certificate, private) = match (certificate, private) {
        (Ok(certificate), Ok(private)) => (certificate, private),
        (Err(FileError::NoFolder), _) => {
            return Err(format!(
                "the folder does not exist; create it with the files {CERTIFICATE} and {KEY}, or correct the path"
            ));
        }
        (Err(FileError::InFile), _) => {
            return Err(format!("it is a file; expected a folder with the files {CERTIFICATE} and {KEY}"));
        }
        (Err(FileError::Missing), Err(FileError::Missing)) => {
            return Err(format!(
                "the folder has neither {CERTIFICATE} nor {KEY}; add both in PEM, as in a Secret of type kubernetes.io/tls"
            ));
        }
        (Err(error), _) => return Err(format!("{CERTIFICATE} cannot be read: {error}")),
        (_, Err(error)) => return Err(format!("{KEY} cannot be read: {error}")),
    };
    for (name, content) in [(CERTIFICATE, certificate), (KEY, private)] {
        if content.is_empty() {
            return Err(format!("{name} is empty; write PEM into it"));
        }
        // The parser would find nothing in it. PEM itself is ASCII, and the text around it may have any encoding. A file
        // that begins with 0x30 is in DER.
        if content.first() != Some(&0x30) && text(content) == Err(FileError::Utf16) {
            return Err(format!("{name} cannot be read: {}", FileError::Utf16));
        }
    }
    certificates(CERTIFICATE, certificate)
        .and_then(|chain| certified(chain, key(KEY, private)?))
        .map_err(|error| format!("{error}; replace {CERTIFICATE} and {KEY} by a certificate and its key"))
}

/// The reason why clients reject a certificate that can be served: it has expired, or is not valid yet.
fn doubt(certified: &CertifiedKey, now: Timestamp) -> Option<String> {
    let Validity { begin, end } = Validity::of(certified.cert.first()?)?;
    if end <= now {
        Some(format!("the certificate in {CERTIFICATE} expired at {end}, so clients reject it; renew it"))
    } else if begin > now {
        Some(format!(
            "the certificate in {CERTIFICATE} is not valid before {begin}, so clients reject it until then; replace it, or \
             correct the clock of this host"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::super::resolver::Served;
    use super::*;
    use crate::fixtures::time;

    /// A certificate for the years 2026 to 2030, and its key.
    fn pair() -> (String, String) {
        let mut params = CertificateParams::new(vec!["a.example.org".to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2030, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    #[expect(clippy::unnecessary_wraps, reason = "the content of a file that was read")]
    fn content(text: &str) -> Content {
        Ok(text.as_bytes().to_vec())
    }

    fn problem(certificate: Content, key: Content) -> String {
        load(&[certificate, key]).expect_err("it cannot be used")
    }

    #[test]
    fn each_problem_of_the_folder_is_named_with_its_remedy() {
        let (certificate, key) = pair();
        let (other, _) = pair();
        let missing = || Err(FileError::Missing);
        let of_both = "; replace tls.crt and tls.key by a certificate and its key";
        for (found, expected) in [
            (
                problem(Err(FileError::NoFolder), Err(FileError::NoFolder)),
                "the folder does not exist; create it with the files tls.crt and tls.key, or correct the path".to_owned(),
            ),
            (
                problem(Err(FileError::InFile), Err(FileError::InFile)),
                "it is a file; expected a folder with the files tls.crt and tls.key".to_owned(),
            ),
            (
                problem(missing(), missing()),
                "the folder has neither tls.crt nor tls.key; add both in PEM, as in a Secret of type kubernetes.io/tls"
                    .to_owned(),
            ),
            (
                problem(content(&certificate), missing()),
                format!("tls.key cannot be read: {}", FileError::Missing),
            ),
            (
                problem(missing(), content(&key)),
                format!("tls.crt cannot be read: {}", FileError::Missing),
            ),
            (
                problem(Err(FileError::Denied), content(&key)),
                format!("tls.crt cannot be read: {}", FileError::Denied),
            ),
            (problem(content(""), content(&key)), "tls.crt is empty; write PEM into it".to_owned()),
            (
                problem(content(&certificate), content("k\0e\0y\0")),
                "tls.key cannot be read: it is encoded in UTF-16; save the file as UTF-8".to_owned(),
            ),
            (
                problem(Ok(vec![0x30, 0x82, 0, 1]), content(&key)),
                format!(
                    "tls.crt has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----{of_both}"
                ),
            ),
            (
                problem(content(&key), content(&key)),
                format!(
                    "tls.crt has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----{of_both}"
                ),
            ),
            (
                problem(content(&certificate), content(&certificate)),
                format!("tls.key has no private key in PEM, which begins with -----BEGIN PRIVATE KEY-----{of_both}"),
            ),
            (
                problem(content(&other), content(&key)),
                format!("the key does not match the certificate{of_both}"),
            ),
        ] {
            assert_eq!(found, expected);
        }
        assert!(load(&[content(&certificate), content(&key)]).is_ok());
    }

    #[test]
    fn a_certificate_outside_of_its_validity_is_served_with_a_warning() {
        let (certificate, key) = pair();
        let loaded = load(&[content(&certificate), content(&key)]).expect("a pair");
        for (now, expected) in [
            ("2025-12-31T23:59:59Z", Some("is not valid before 2026-01-01T00:00:00Z")),
            ("2026-01-01T00:00:00Z", None),
            ("2029-12-31T23:59:59Z", None),
            ("2030-01-01T00:00:00Z", Some("expired at 2030-01-01T00:00:00Z")),
        ] {
            let doubt = doubt(&loaded, time(now));
            assert_eq!(doubt.is_some(), expected.is_some(), "{now}: {doubt:?}");
            assert!(doubt.unwrap_or_default().contains(expected.unwrap_or_default()), "{now}");
        }
    }

    #[test]
    fn a_server_without_a_certificate_waits_for_one_and_later_keeps_the_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("certificates");
        let served = Served { what: "the webhooks", gauge: "expiry" };
        let resolver = Arc::new(CertificateResolver::new(served));
        let look = || {
            watched("a.certificateDir", &path, &resolver);
            resolver.watch().borrow().clone()
        };
        let begin = format!(
            "a.certificateDir: {} cannot be used, so the webhooks cannot be served: ",
            path.display()
        );
        let why = look().expect("there is no certificate");
        assert!(why.starts_with(&format!("{begin}the folder does not exist")), "{why}");
        std::fs::create_dir(&path).expect("created");
        let why = look().expect("there is no certificate");
        assert!(why.starts_with(&format!("{begin}the folder has neither")), "{why}");
        let (certificate, key) = pair();
        std::fs::write(path.join("tls.crt"), certificate).expect("written");
        std::fs::write(path.join("tls.key"), key).expect("written");
        assert_eq!(look(), None);
        std::fs::write(path.join("tls.key"), "nonsense").expect("written");
        assert_eq!(look(), None, "the last certificate stays in use");
    }
}
