//! The daemon's certificate authority. It signs only the serving certificate of the webhooks and the authority that
//! succeeds it.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{Certificate, Result};

/// The common name of all our authorities. Verifiers distinguish them by their keys.
const NAME: &str = "crownlabs-webhook-ca";
/// How long an authority is valid.
pub const AUTHORITY_YEARS: i16 = 10;
/// How long a serving certificate is valid.
pub const SERVING_YEARS: i16 = 1;

/// A certificate authority with its key.
pub struct Authority {
    /// The self-signed certificate of the authority.
    pub certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority with a new key. It is valid from the day before `now`, in case clocks differ.
    ///
    /// # Errors
    /// When the system cannot provide random numbers for the key.
    pub fn create(now: Timestamp) -> Result<Self> {
        let (key, params) = (KeyPair::generate()?, params(now));
        let certificate = params.self_signed(&key)?.der().clone();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// Loads the authority with this certificate and this key (PKCS#8).
    ///
    /// # Errors
    /// When the key is invalid.
    pub fn load(certificate: Certificate, key: &PrivateKeyDer<'_>) -> Result<Self> {
        let key = KeyPair::try_from(key)?;
        // Only the name and the key usages are read from the parameters; they are the same for all authorities.
        Ok(Self { certificate, issuer: Issuer::new(params(Timestamp::UNIX_EPOCH), key) })
    }

    /// The private key of the authority.
    pub fn key(&self) -> PrivateKeyDer<'static> {
        key_of(self.issuer.key())
    }

    /// Signs a serving certificate for these host names and IP addresses. Returns it with its new private key.
    ///
    /// # Errors
    /// When a certificate cannot contain one of the names, or the system cannot provide random numbers for the key.
    pub fn sign(&self, names: &[String], now: Timestamp) -> Result<(Certificate, PrivateKeyDer<'static>)> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = named(names.first().map_or("crownlabs-webhook", String::as_str));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, now, SERVING_YEARS);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.der().clone();
        Ok((certificate, key_of(&key)))
    }

    /// Returns a certificate for the key of `successor`, signed by this authority. With it as an intermediate, a client
    /// that trusts only this authority accepts certificates that the successor signs.
    ///
    /// # Errors
    /// When the certificate cannot be signed.
    pub fn cross_sign(&self, successor: &Self, now: Timestamp) -> Result<Certificate> {
        let mut params = params(now);
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(successor.issuer.key(), &self.issuer)?.der().clone())
    }
}

/// The parameters of an authority's certificate.
fn params(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    set_validity(&mut params, now, AUTHORITY_YEARS);
    params
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    // A common name has at most 64 characters (RFC 5280, ub-common-name).
    name.push(DnType::CommonName, common_name.chars().take(64).collect::<String>());
    name
}

/// Sets the validity of a certificate from midnight (UTC) of the day before `now` until midnight of the day `years`
/// after `now`.
fn set_validity(params: &mut CertificateParams, now: Timestamp, years: i16) {
    let today = now.to_zoned(TimeZone::UTC).date();
    let midnight = |date: Date| {
        date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    params.not_before = midnight(today.saturating_sub(Span::new().days(1)));
    params.not_after = midnight(today.saturating_add(Span::new().years(years)));
}

fn key_of(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(key.serialize_der()).into()
}
