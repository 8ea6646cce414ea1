//! A bundle over many years of renewals.

use super::*;
use crate::fixtures::time;

fn names() -> Vec<String> {
    let texts = ["crownlabs-webhook.crownlabs-system.svc", "crownlabs-webhook", "127.0.0.1"];
    texts.map(str::to_owned).to_vec()
}

fn day(number: i64) -> Timestamp {
    let start: Timestamp = time("2026-11-20T15:30:00Z");
    start + SignedDuration::from_hours(24 * number)
}

fn next(current: &Bundle, number: i64) -> Option<Bundle> {
    renewed(Some(current), &names(), day(number)).expect("a certificate")
}

fn accepts(client: &Bundle, server: &Bundle, number: i64) -> bool {
    server.is_accepted(&client.authorities, &names(), day(number))
}

#[test]
fn the_first_bundle_needs_no_renewal_for_months() {
    let first = renewed(None, &names(), day(0)).expect("a certificate").expect("the first");
    assert!(accepts(&first, &first, 0));
    assert!(!accepts(&first, &first, 366), "a year");
    assert_eq!(next(&first, 0), None);
    assert_eq!(next(&first, 274), None, "90 days and a bit before the end");
    let validity = Validity::of(&first.authorities[0]).expect("a certificate");
    assert_eq!(
        [validity.begin, validity.end].map(|time| time.to_string()),
        ["2026-11-19T00:00:00Z", "2036-11-20T00:00:00Z",]
    );
}

#[test]
fn a_client_with_a_clock_one_day_behind_accepts_the_certificate() {
    let first = Bundle::create(&names(), day(0)).expect("a bundle");
    assert!(accepts(&first, &first, -1));
}

#[test]
fn the_certificate_is_renewed_under_the_same_authority() {
    let first = Bundle::create(&names(), day(0)).expect("a bundle");
    let second = next(&first, 276).expect("renewed");
    assert_eq!(first.authorities, second.authorities);
    assert_ne!(first.chain, second.chain);
    assert_ne!(first.key, second.key);
    assert!(accepts(&first, &second, 276) && accepts(&second, &first, 276));
    assert_eq!(next(&second, 276), None);
    // A renewal that comes after the old certificate has expired.
    assert!(accepts(&first, &next(&first, 400).expect("renewed"), 400));
}

#[test]
fn other_names_need_another_certificate() {
    let first = Bundle::create(&names(), day(0)).expect("a bundle");
    let fewer = &names()[..1];
    assert_eq!(
        renewed(Some(&first), fewer, day(0)).expect("no fault"),
        None,
        "the certificate is for these too"
    );
    let more = [names(), vec!["other.example.org".to_owned()]].concat();
    let second = renewed(Some(&first), &more, day(0)).expect("a certificate").expect("renewed");
    assert_eq!(first.authorities, second.authorities);
    assert!(second.is_accepted(&first.authorities, &more, day(0)));
    assert!(!first.is_accepted(&first.authorities, &more, day(0)));
}

#[test]
fn old_and_new_authority_work_in_all_combinations() {
    let first = Bundle::create(&names(), day(0)).expect("a bundle");
    // Its certificate has been renewed several times.
    let days = (0..10).map(|number| number * 300);
    let old = days.fold(first, |bundle, number| next(&bundle, number).unwrap_or(bundle));
    assert_eq!(old.authorities.len(), 1);
    let time = 8 * 366;
    let new = next(&old, time).expect("the authority ends in two years");
    assert_eq!(new.authorities.len(), 2);
    assert_eq!(new.authorities[1..], old.authorities[..]);
    assert_ne!(new.authority_key, old.authority_key);
    // The API server and the replica may each have received the change or not.
    for (client, server) in [(&old, &old), (&old, &new), (&new, &old), (&new, &new)] {
        assert!(accepts(client, server, time));
    }
    // Clients that trust only the new authority accept it too.
    assert!(new.is_accepted(&new.authorities[..1], &names(), day(time)));
    assert_eq!(next(&new, time), None);
    // While the old authority is valid, every certificate comes with the cross-signed one.
    let renewed = next(&new, time + 300).expect("renewed");
    assert_eq!(renewed.chain.len(), 2);
    assert!(accepts(&old, &renewed, time + 300));
    // Afterwards the cross-signed certificate is dropped.
    let end = 10 * 366 + 1;
    let alone = next(&renewed, end).expect("the old authority has ended");
    assert_eq!((alone.authorities.as_slice(), alone.chain.len()), (&new.authorities[..1], 1));
    assert!(accepts(&renewed, &alone, end) && accepts(&alone, &alone, end));
    assert_eq!(next(&alone, end), None);
}

#[test]
fn a_broken_bundle_is_replaced() {
    let whole = Bundle::create(&names(), day(0)).expect("a bundle");
    let other = Bundle::create(&names(), day(0)).expect("a bundle");
    let copy = || Bundle::read(&whole.data()).expect("readable");
    // The key of another certificate: the authority signs a new certificate.
    let swapped = Bundle { key: other.key.clone_key(), ..copy() };
    assert!(matches!(swapped.certified(), Err(CertificateError::Mismatch)));
    let repaired = next(&swapped, 0).expect("renewed");
    assert!(accepts(&whole, &repaired, 0));
    // A certificate of another authority.
    let foreign = Bundle { chain: other.chain.clone(), key: other.key.clone_key(), ..copy() };
    assert!(accepts(&whole, &next(&foreign, 0).expect("renewed"), 0));
    // The key of another authority: certificates that it signs are not accepted.
    let usurped = Bundle { authority_key: other.authority_key.clone_key(), ..copy() };
    let late = next(&usurped, 300).expect("renewed");
    assert!(accepts(&late, &late, 300));
    // All certificates have expired.
    let anew = next(&whole, 4000).expect("renewed");
    assert_eq!(anew.authorities.len(), 1);
    assert!(accepts(&anew, &anew, 4000));
}

#[test]
fn impossible_names_are_an_error() {
    for impossible in ["ä.example.org", "a b", "a..b"] {
        let error = renewed(None, &[impossible.to_owned()], day(0)).expect_err(impossible).to_string();
        assert!(error.contains("certificate"), "{error}");
    }
}

#[test]
fn the_secret_reads_back() {
    let bundle = Bundle::create(&names(), day(0)).expect("a bundle");
    let data = bundle.data();
    assert_eq!(
        data.keys().map(String::as_str).collect::<Vec<_>>(),
        [CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY]
    );
    assert_eq!(Bundle::read(&data).expect("readable"), bundle);
    assert!(encode(&bundle.authorities).starts_with("-----BEGIN CERTIFICATE-----"));
    for part in [CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY] {
        let mut without = data.clone();
        without.remove(part);
        let error = Bundle::read(&without).expect_err(part).to_string();
        assert_eq!(error, format!("{part} is missing"));
        // `###` is not base64; `eHl6` is, of "xyz".
        for nonsense in ["###", "eHl6", ""] {
            let broken = BTreeMap::from([(part.to_owned(), nonsense.to_owned())]);
            let broken = data.clone().into_iter().chain(broken).collect();
            let error = Bundle::read(&broken).expect_err(part).to_string();
            let is_named = ["cannot be read: ", "has no certificate in PEM", "has no private key"]
                .iter()
                .any(|words| error.starts_with(&format!("{part} {words}")));
            assert!(is_named, "{error}");
        }
    }
}

#[test]
fn keys_are_not_printed() {
    let bundle = Bundle::create(&names(), day(0)).expect("a bundle");
    let printed = format!("{bundle:?}");
    assert_eq!(printed.matches("[secret key elided]").count(), 2, "{printed}");
}
