//! Reads the validity period from a certificate (RFC 5280, section 4.1). It is the only field that we read
//! ourselves; everything else is left to the verifier that clients use.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

// The DER tags of the elements on the way to the dates.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The period in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// `notBefore`, the first second.
    pub begin: Timestamp,
    /// `notAfter`, the last second.
    pub end: Timestamp,
}

impl Validity {
    /// Reads the period from a certificate in DER; `None` if the bytes are no certificate.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let (body, _) = expect(certificate, SEQUENCE)?;
        let (mut fields, _) = expect(body, SEQUENCE)?;
        if fields.first() == Some(&VERSION) {
            (_, fields) = expect(fields, VERSION)?;
        }
        // The serial number, the signature algorithm and the issuer precede the validity.
        for _ in 0..3 {
            (_, _, fields) = element(fields)?;
        }
        let (dates, _) = expect(fields, SEQUENCE)?;
        let (begin, dates) = date(dates)?;
        let (end, _) = date(dates)?;
        Some(Self { begin, end })
    }
}

/// The tag and the content of the first DER element, and the bytes that follow it.
fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = input.split_first_chunk()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let fold = |length: usize, digit: &u8| length.checked_mul(256)?.checked_add(usize::from(*digit));
        (digits.iter().try_fold(0, fold)?, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The content of the first DER element and the bytes that follow it; `None` if it has another tag.
fn expect(input: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(input)?;
    (tag == wanted).then_some((content, rest))
}

/// Reads a `UTCTime` (`YYMMDDHHMMSSZ`, years 1950 to 2049) or a `GeneralizedTime` (`YYYYMMDDHHMMSSZ`), and
/// returns the bytes that follow it.
fn date(input: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (tag, content, rest) = element(input)?;
    let text = std::str::from_utf8(content).ok()?;
    let text = match tag {
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    Some((time.to_zoned(TimeZone::UTC).ok()?.timestamp(), rest))
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
    fn what_is_cut_off_is_no_certificate() {
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
