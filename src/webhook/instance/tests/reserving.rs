//! Tests of the reservations of admitted Instances.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use super::{NAMESPACE, course, creation, quota, refusal, settings, small};
use crate::api::GenericRef;
use crate::webhook::fixture::merged;
use crate::webhook::instance::quota::validate;
use crate::webhook::instance::reservations::{Admitted, Reservations};
use crate::webhook::review::Request;

fn admitted(name: &str) -> Admitted {
    Admitted {
        review: format!("review of {name}"),
        namespace: NAMESPACE.to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        template: GenericRef::new("workspace-tea", "small"),
    }
}

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_millis(milliseconds)
}

#[test]
fn reservations_count() {
    let cluster = course(&quota(2));
    let two = creation(small("two", true));
    let (decision, reserved) = validate(&two, &settings(), &cluster, &[admitted("one")]);
    let reviewed = Admitted { review: two.uid.clone(), ..admitted("two") };
    assert_eq!((refusal(&decision).as_str(), reserved), ("", Some(reviewed)));
    let pending = [admitted("one"), admitted("zero")];
    let (decision, reserved) = validate(&two, &settings(), &cluster, &pending);
    assert_eq!((refusal(&decision).as_str(), reserved), ("quota exceeded: Instances (3 > 2)", None));
    // An Instance that has reached the store is not counted twice; neither is the Instance itself.
    let seen = course(&quota(2)).with_instance(&small("one", true));
    assert_eq!(refusal(&validate(&two, &settings(), &seen, &[admitted("one"), admitted("two")]).0), "");
    // Another running Instance is not the admitted one, whose uid was not known yet.
    let others = course(&quota(2)).with_instance(&small("zero", true));
    let created = Admitted { uid: String::new(), ..admitted("one") };
    let (decision, _) = validate(&two, &settings(), &others, &[created]);
    assert_eq!(refusal(&decision), "quota exceeded: Instances (3 > 2)");
    // Reservations in other namespaces do not count.
    let foreign = Admitted { namespace: "tenant-eve".to_owned(), ..admitted("zero") };
    assert_eq!(refusal(&validate(&two, &settings(), &cluster, &[admitted("one"), foreign]).0), "");
}

#[test]
fn reservations_end_when_the_instance_is_stored_or_after_a_while() {
    let empty = course(&quota(2));
    let mut reservations = Reservations::default();
    reservations.add(admitted("one"), at(0));
    reservations.add(admitted("one"), at(1));
    assert_eq!(reservations.pending(&empty, at(2)), [admitted("one")], "reserved once for a repeated review");
    assert_eq!(reservations.pending(&empty, at(5_000)), [admitted("one")]);
    assert_eq!(reservations.pending(&empty, at(5_001)), []);
    reservations.add(admitted("one"), at(0));
    let starting = course(&quota(2)).with_instance(&small("one", false));
    assert_eq!(reservations.pending(&starting, at(1)), [admitted("one")], "still stopped in the store");
    let other_uid = merged(small("one", true), &json!({"metadata": {"uid": "another"}}));
    let other_uid = course(&quota(2)).with_instance(&other_uid);
    assert_eq!(reservations.pending(&other_uid, at(2)), [admitted("one")], "the same name with another uid");
    let shown = course(&quota(2)).with_instance(&small("one", true));
    assert_eq!(reservations.pending(&shown, at(3)), []);
    assert_eq!(reservations.pending(&empty, at(4)), [], "it does not come back");
    reservations.add(admitted("one"), at(0));
    reservations.add(admitted("two"), at(0));
    let stored = |namespace: &str, name: &str, running| {
        let stored = merged(small(name, running), &json!({"metadata": {"namespace": namespace}}));
        serde_json::from_value(stored).expect("an Instance")
    };
    reservations.stored(&stored("tenant-eve", "one", true));
    reservations.stored(&stored(NAMESPACE, "two", false));
    assert_eq!(reservations.pending(&empty, at(1)), [admitted("one"), admitted("two")]);
    reservations.stored(&stored(NAMESPACE, "one", true));
    assert_eq!(reservations.pending(&empty, at(1)), [admitted("two")], "one is stored");
    reservations.deleted(&stored(NAMESPACE, "two", false));
    assert_eq!(reservations.pending(&empty, at(1)), [], "two came and went");
}

#[test]
fn reservations_are_kept_by_review_and_are_bounded() {
    let large = |review: &str| Admitted {
        review: review.to_owned(),
        template: GenericRef::new("workspace-tea", "large"),
        ..admitted("one")
    };
    let empty = course(&quota(2));
    let mut reservations = Reservations::default();
    reservations.add(admitted("one"), at(0));
    reservations.add(large("swap"), at(0));
    reservations.add(large("swap"), at(1));
    reservations.add(large("the same again"), at(2));
    let both = [admitted("one"), large("the same again")];
    assert_eq!(reservations.pending(&empty, at(3)), both, "which one is stored is not known yet");
    let running = course(&quota(2)).with_instance(&small("one", true));
    assert_eq!(reservations.pending(&running, at(4)), [large("the same again")], "the swap is still to come");
    for n in 0..2_000 {
        reservations.add(admitted(&n.to_string()), at(5));
    }
    let kept = reservations.pending(&empty, at(6));
    assert_eq!((kept.len(), kept[0].name.as_str()), (1_000, "1000"), "the youngest");
}

proptest! {
    /// The number of admitted Instances never exceeds the quota, in whatever order Instances are created, even if the
    /// view shows none of them yet.
    #[test]
    fn the_quota_is_never_exceeded(limit in 1..6_i64, names in prop::collection::vec("[a-f]", 1..20)) {
        let cluster = course(&quota(limit));
        let mut reservations = Reservations::default();
        let mut running = std::collections::BTreeSet::new();
        for (name, time) in names.iter().zip(0..) {
            let pending = reservations.pending(&cluster, at(time));
            let review = Request { uid: time.to_string(), ..creation(small(name, true)) };
            let (decision, reserved) = validate(&review, &settings(), &cluster, &pending);
            prop_assert_eq!(decision.is_allowed(), reserved.is_some());
            if let Some(reserved) = reserved {
                reservations.add(reserved, at(time));
                running.insert(name.clone());
            }
            prop_assert!(i64::try_from(running.len()).unwrap_or(i64::MAX) <= limit);
        }
    }
}
