//! Reads the validity period from a certificate (RFC 5280, section 4.1). It is the only field that we parse; everything
//! else is left to the clients' verifiers.

use jiff::Timestamp;
use yasna::tags::TAG_UTCTIME;
use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result, BERReader, BERReaderSeq, Tag, parse_der};

/// The validity period of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// `notBefore`, the first valid second.
    pub begin: Timestamp,
    /// `notAfter`, the last valid second.
    pub end: Timestamp,
}

impl Validity {
    /// Reads the period from a DER certificate; `None` if the bytes are not a certificate.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let read = parse_der(certificate, |reader| {
            reader.read_sequence(|reader| {
                let validity = reader.next().read_sequence(Self::of_body)?;
                skip_rest(reader)?;
                Ok(validity)
            })
        });
        read.ok()
    }

    fn of_body(reader: &mut BERReaderSeq<'_, '_>) -> ASN1Result<Self> {
        // The optional version, the serial number, the signature algorithm and the issuer precede the validity.
        reader.read_optional(|reader| reader.read_tagged(Tag::context(0), element))?;
        for _ in 0..3 {
            reader.next().read_der()?;
        }
        let validity = reader
            .next()
            .read_sequence(|reader| Ok(Self { begin: date(reader.next())?, end: date(reader.next())? }))?;
        skip_rest(reader)?;
        Ok(validity)
    }
}

/// Reads an element of any kind.
fn element(reader: BERReader<'_, '_>) -> ASN1Result<Vec<u8>> {
    reader.read_der()
}

fn skip_rest(reader: &mut BERReaderSeq<'_, '_>) -> ASN1Result<()> {
    while reader.read_optional(element)?.is_some() {}
    Ok(())
}

/// Reads a `UTCTime`, for the years 1950 to 2049, or a `GeneralizedTime`.
fn date(reader: BERReader<'_, '_>) -> ASN1Result<Timestamp> {
    let second = if reader.lookahead_tag()? == TAG_UTCTIME {
        reader.read_utctime()?.datetime().unix_timestamp()
    } else {
        reader.read_generalized_time()?.datetime().unix_timestamp()
    };
    Timestamp::from_second(second).map_err(|_| ASN1Error::new(ASN1ErrorKind::Invalid))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(begin: (i32, u8, u8), end: (i32, u8, u8)) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.example.org".to_owned()]).expect("a name");
        params.not_before = date_time_ymd(begin.0, begin.1, begin.2);
        params.not_after = date_time_ymd(end.0, end.1, end.2);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn dates_before_and_after_2050_are_read() {
        for (begin, end, texts) in [
            ((1999, 12, 31), (2049, 12, 31), ["1999-12-31T00:00:00Z", "2049-12-31T00:00:00Z"]),
            ((2026, 2, 28), (2050, 1, 1), ["2026-02-28T00:00:00Z", "2050-01-01T00:00:00Z"]),
        ] {
            let validity = Validity::of(&certificate(begin, end)).expect("a certificate");
            assert_eq!([validity.begin, validity.end].map(|time| time.to_string()), texts);
        }
    }

    #[test]
    fn a_truncated_certificate_is_rejected() {
        let whole = certificate((2026, 1, 1), (2027, 1, 1));
        for length in 0..whole.len() {
            assert_eq!(Validity::of(&whole[..length]), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Validity::of(&bytes);
        }
    }
}
