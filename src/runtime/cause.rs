//! The cause of a failed connection, in plain words: errors of HTTP clients wrap the error of TLS or of the operating
//! system several times.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use jiff::Timestamp;
use rustls::CertificateError;
use rustls::pki_types::UnixTime;

use super::error::with_sources;

/// The kind of a cause, which decides what an administrator can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The certificate of the server is from an authority that the client does not trust.
    Authority,
    /// The certificate of the server is not valid for another reason.
    Certificate,
    /// Nothing listens at the address, or a firewall refuses connections.
    Refused,
    /// The host name is unknown.
    Name,
    /// Another cause.
    Other,
}

/// The cause of a failed connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Its kind.
    pub kind: Kind,
    /// Its description, with the words of the library in parentheses.
    pub words: String,
}

impl Cause {
    /// Finds the cause of an error.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let (words, all) = (with_sources(error), chain(error));
        let certificate = all.iter().find_map(|error| match error.downcast_ref::<rustls::Error>() {
            Some(rustls::Error::InvalidCertificate(error)) => Some(error),
            _ => None,
        });
        if let Some(error) = certificate {
            // The authority of a cluster that was created again has the name of the former one.
            let is_unknown =
                matches!(error, CertificateError::UnknownIssuer | CertificateError::BadSignature);
            let kind = if is_unknown { Kind::Authority } else { Kind::Certificate };
            return Self { kind, words: format!("{} (invalid peer certificate: {error})", fault(error)) };
        }
        let is_refused = |error: &io::Error| error.kind() == ErrorKind::ConnectionRefused;
        let kind = if all.iter().any(|error| error.downcast_ref::<io::Error>().is_some_and(is_refused)) {
            Kind::Refused
        } else if words.contains("dns error") || words.contains("failed to lookup address") {
            Kind::Name
        } else {
            Kind::Other
        };
        Self { kind, words }
    }

    /// The description with the remedy. `authority` is the setting that names the certificates of the authorities.
    pub fn with_remedy(&self, authority: &str) -> String {
        let Self { kind, words } = self;
        match kind {
            Kind::Authority => {
                format!("{words}; {authority} must contain the certificate of its authority, in PEM")
            }
            Kind::Certificate => {
                format!("{words}; renew the certificate, or correct the host name in the URL")
            }
            Kind::Refused => {
                format!("{words}: nothing listens there; check host and port, and that the server runs")
            }
            Kind::Name => format!("{words}; check the host name, and the DNS of this host"),
            Kind::Other => words.clone(),
        }
    }
}

/// Describes the fault of a server's certificate.
fn fault(error: &CertificateError) -> String {
    let date = |time: &UnixTime| {
        let seconds = i64::try_from(time.as_secs()).ok();
        seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(Timestamp::MAX)
    };
    match error {
        CertificateError::UnknownIssuer => "its certificate is from an unknown authority".to_owned(),
        CertificateError::BadSignature => {
            "its certificate is from an unknown authority, which has the name of a known one".to_owned()
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("its certificate expired at {}", date(not_after))
        }
        CertificateError::Expired => "its certificate has expired".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("its certificate is not valid before {}", date(not_before))
        }
        CertificateError::NotValidForNameContext { expected, .. } => {
            format!("its certificate is not valid for the name {}", expected.to_str())
        }
        CertificateError::NotValidForName => "its certificate is not valid for this host name".to_owned(),
        _ => "its certificate is not valid".to_owned(),
    }
}

/// An error with all its sources. `io::Error` does not return the error that it wraps as its source.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let (mut all, mut next) = (Vec::new(), Some(error));
    while let Some(error) = next {
        all.push(error);
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    all
}

/// The description of a request without a response within this time.
pub fn no_answer(limit: Duration) -> String {
    format!(
        "no answer within {} s; check the address, and that no firewall drops the packets",
        limit.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;

    use super::*;

    /// An error of TLS, as the connectors wrap it.
    fn tls(error: CertificateError) -> io::Error {
        let inner = io::Error::new(ErrorKind::InvalidData, rustls::Error::InvalidCertificate(error));
        io::Error::other(inner)
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn the_fault_of_a_certificate_is_described_with_its_remedy() {
        let expected = ServerName::try_from("labs.example.org").expect("a name");
        let wrong = CertificateError::NotValidForNameContext { expected, presented: Vec::new() };
        let expired =
            CertificateError::ExpiredContext { time: at(1_800_000_000), not_after: at(1_790_000_000) };
        let early = CertificateError::NotValidYetContext { time: at(0), not_before: at(1_790_000_000) };
        for (error, kind, begin, remedy) in [
            (
                CertificateError::UnknownIssuer,
                Kind::Authority,
                "its certificate is from an unknown authority (invalid peer certificate: UnknownIssuer)",
                "; a.caFile must contain the certificate of its authority, in PEM",
            ),
            (expired, Kind::Certificate, "its certificate expired at 2026-09-21T14:13:20Z (", "; renew "),
            (
                early,
                Kind::Certificate,
                "its certificate is not valid before 2026-09-21T14:13:20Z (",
                "; renew ",
            ),
            (
                wrong,
                Kind::Certificate,
                "its certificate is not valid for the name labs.example.org (",
                "or correct the host name in the URL",
            ),
            (CertificateError::Revoked, Kind::Certificate, "its certificate is not valid (", "; renew "),
            (
                CertificateError::BadSignature,
                Kind::Authority,
                "its certificate is from an unknown authority, which has the name of a known one (",
                "; a.caFile must contain",
            ),
        ] {
            let cause = Cause::of(&tls(error));
            let text = cause.with_remedy("a.caFile");
            assert_eq!(cause.kind, kind, "{text}");
            assert!(text.starts_with(begin) && text.contains(remedy), "{text}");
        }
    }

    #[test]
    fn a_refused_connection_and_an_unknown_name_have_a_remedy() {
        for (error, kind, remedy) in [
            (io::Error::from(ErrorKind::ConnectionRefused), Kind::Refused, "check host and port"),
            (io::Error::other("dns error: no such name"), Kind::Name, "check the host name"),
            (io::Error::other("broken pipe"), Kind::Other, "broken pipe"),
        ] {
            let cause = Cause::of(&io::Error::other(error));
            assert_eq!(cause.kind, kind, "{cause:?}");
            assert!(cause.with_remedy("a.caFile").contains(remedy), "{cause:?}");
        }
    }
}
