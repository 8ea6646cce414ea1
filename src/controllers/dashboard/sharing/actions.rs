//! The actions of an owner: they share the machine with a person, and end that. Both change an annotation of the Instance.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::{Value, json};

use crate::api::Instance;
use crate::api::instance::InstanceKind;
use crate::api::labels::SHARED_WITH;
use crate::api::names::check_object_name;
use crate::api::sharing::{self, Access, MOST, Peer};
use crate::controllers::dashboard::action::entry::{Action, Field, Form, Input, Patch, Place, Plan, Right};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::clock;

/// The maximum length of a user name: the personal namespace is `tenant-` and the name, and has at most 63 characters.
const MOST_OF_USER: usize = 56;
/// The maximum length of the name of a time zone.
const MOST_OF_ZONE: usize = 64;

/// The field with the user name.
pub const USER: &str = "user";
/// The hidden field with the time zone of the user, in which a day ends.
pub const ZONE: &str = "zone";
/// The ends: their names, and the days until their day. Each is at most [`sharing::LONGEST`] ahead.
const ENDS: [(&str, i64); 4] = [("today", 0), ("tomorrow", 1), ("week", 7), ("weeks", 28)];

/// Shares the machine with a person.
pub const SHARE: Action = Action {
    fields: &[
        Field { name: USER, id: "share-user", input: Input::Line { max: MOST_OF_USER, pattern: "" } },
        Field { name: "access", id: "share-access", input: Input::OneOf(&["view", "control"]) },
        Field {
            name: "until",
            id: "share-until",
            input: Input::OneOf(&[ENDS[0].0, ENDS[1].0, ENDS[2].0, ENDS[3].0]),
        },
    ],
    ..action("sharing.add", "/machines/{namespace}/{name}/share", Place::Folded, Plan::PatchInstance(share))
};
/// Ends that.
pub const END: Action =
    action("sharing.end", "/machines/{namespace}/{name}/unshare", Place::Section, Plan::PatchInstance(end));

/// Both actions.
pub const ACTIONS: &[&Action] = &[&SHARE, &END];

const fn action(name: &'static str, path: &'static str, place: Place, plan: Plan) -> Action {
    let right = Right::to::<InstanceKind>("patch");
    Action { name, path, page: paths::MACHINE, right, place, fields: &[], plan }
}

/// Adds a person, or replaces the entry of that person.
fn share(instance: &Instance, form: &Form<'_>) -> Patch<Value> {
    added(instance, form, clock::now())
}

fn added(instance: &Instance, form: &Form<'_>, now: Timestamp) -> Patch<Value> {
    let user = form.get(USER).trim();
    if check_object_name(user).is_err() || user.len() > MOST_OF_USER {
        return Err(Problem::ShareUser);
    }
    let access = match form.get("access") {
        "view" => Access::View,
        "control" => Access::Control,
        _ => return Err(Problem::Form),
    };
    let until = end_of_day(form.get("until"), form.get(ZONE), now).ok_or(Problem::Form)?;
    let (user, mut peers) = (user.to_owned(), current(instance, now));
    let peer = Peer { user, access, until };
    if peers.contains(&peer) {
        return Ok(None);
    }
    peers.retain(|other| other.user != peer.user);
    if peers.len() >= MOST {
        return Err(Problem::ShareFull);
    }
    peers.push(peer);
    Ok(Some(patch(&peers)))
}

/// Removes a person.
fn end(instance: &Instance, form: &Form<'_>) -> Patch<Value> {
    removed(instance, form, clock::now())
}

fn removed(instance: &Instance, form: &Form<'_>, now: Timestamp) -> Patch<Value> {
    let user = form.get(USER);
    if check_object_name(user).is_err() {
        return Err(Problem::Form);
    }
    let is_of = |peer: &Peer| peer.user == user;
    if !sharing::peers(instance).iter().any(is_of) {
        return Ok(None);
    }
    let mut peers = current(instance, now);
    peers.retain(|peer| !is_of(peer));
    Ok(Some(patch(&peers)))
}

/// Returns the people with whom a machine is shared now. A change drops the others.
fn current(instance: &Instance, now: Timestamp) -> Vec<Peer> {
    sharing::peers(instance).into_iter().filter(|peer| peer.is_current(now)).collect()
}

fn patch(peers: &[Peer]) -> Value {
    let annotation = if peers.is_empty() { Value::Null } else { sharing::written(peers).into() };
    json!({"metadata": {"annotations": {SHARED_WITH: annotation}}})
}

/// Returns the end of a day in the time zone of the user, with its last second; `None` for a day that the form does not
/// offer.
fn end_of_day(until: &str, zone: &str, now: Timestamp) -> Option<Timestamp> {
    let (_, days) = ENDS.into_iter().find(|(name, _)| *name == until)?;
    let zone = Some(zone).filter(|zone| zone.len() <= MOST_OF_ZONE);
    let zone = zone.and_then(|zone| TimeZone::get(zone).ok()).unwrap_or(TimeZone::UTC);
    let day = now.to_zoned(zone.clone()).date().checked_add(Span::new().days(days)).ok()?;
    Some(day.at(23, 59, 59, 0).to_zoned(zone).ok()?.timestamp())
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::api::instance::InstanceSpec;
    use crate::api::meta::TextMap;
    use crate::api::sharing::{LONGEST, written};
    use crate::controllers::dashboard::http::fields::Fields;
    use crate::fixtures::{now, time};

    fn form(fields: &[(&str, &str)]) -> Form<'static> {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Form { fields: Fields(fields), ..Form::default() }
    }

    fn of(user: &str, access: &str, until: &str) -> Form<'static> {
        form(&[(USER, user), ("access", access), ("until", until), (ZONE, "Europe/Rome")])
    }

    fn peer(user: &str, access: Access, until: &str) -> Peer {
        Peer { user: user.to_owned(), access, until: time(until) }
    }

    /// A machine that is shared with these people.
    fn shared(peers: &[Peer]) -> Instance {
        let mut instance = Instance::new(Some("tenant-ada"), "vm", InstanceSpec::default());
        instance.metadata.annotations = TextMap::from_iter([(SHARED_WITH, written(peers))]);
        instance
    }

    /// Returns the annotation that a patch writes.
    fn annotation(patch: Patch<Value>) -> Value {
        patch.expect("a valid form").expect("a change")["metadata"]["annotations"][SHARED_WITH].clone()
    }

    const TODAY: &str = "2026-03-04T22:59:59Z";

    #[test]
    fn a_person_is_added_until_the_end_of_a_day_of_the_user() {
        let lee = peer("lee", Access::View, TODAY);
        let over = peer("max", Access::View, "2026-03-04T05:00:00Z");
        let machine = shared(&[lee.clone(), over]);
        let added = |form: &Form<'_>| annotation(added(&machine, form, now()));
        let kim = peer("kim", Access::Control, TODAY);
        assert_eq!(added(&of(" kim ", "control", "today")), written(&[lee.clone(), kim]).as_str());
        let longer = peer("lee", Access::View, "2026-03-05T22:59:59Z");
        assert_eq!(added(&of("lee", "view", "tomorrow")), written(&[longer]).as_str());
    }

    #[test]
    fn a_form_that_was_sent_twice_changes_nothing() {
        let machine = shared(&[peer("kim", Access::View, TODAY)]);
        assert_eq!(added(&machine, &of("kim", "view", "today"), now()).expect("a valid form"), None);
        assert_eq!(removed(&machine, &form(&[(USER, "lee")]), now()).expect("a valid form"), None);
    }

    #[test]
    fn an_invalid_form_is_refused() {
        let full: Vec<Peer> =
            (0..MOST).map(|number| peer(&format!("p{number}"), Access::View, TODAY)).collect();
        for (machine, form, problem) in [
            (shared(&[]), of("", "view", "today"), Problem::ShareUser),
            (shared(&[]), of("Kim Lee", "view", "today"), Problem::ShareUser),
            (shared(&[]), of(&"k".repeat(57), "view", "today"), Problem::ShareUser),
            (shared(&[]), of("kim", "own", "today"), Problem::Form),
            (shared(&[]), of("kim", "view", "forever"), Problem::Form),
            (shared(&full), of("kim", "view", "today"), Problem::ShareFull),
        ] {
            assert_eq!(added(&machine, &form, now()).err(), Some(problem), "{:?}", form.fields);
        }
        assert_eq!(removed(&shared(&[]), &form(&[(USER, "")]), now()).err(), Some(Problem::Form));
        let again = added(&shared(&full), &of("p0", "control", "today"), now());
        assert!(again.is_ok_and(|patch| patch.is_some()), "an entry is replaced");
    }

    #[test]
    fn the_last_person_takes_the_annotation_away() {
        let [kim, lee] = ["kim", "lee"].map(|user| peer(user, Access::View, TODAY));
        let end = |peers: &[Peer]| annotation(removed(&shared(peers), &form(&[(USER, "kim")]), now()));
        assert_eq!(end(&[kim.clone(), lee.clone()]), written(&[lee]).as_str());
        assert_eq!(end(&[kim]), Value::Null);
    }

    #[test]
    fn each_end_is_in_the_zone_of_the_user_and_not_too_far_away() {
        for (until, zone, expected) in [
            ("today", "Europe/Rome", TODAY),
            ("today", "UTC", "2026-03-04T23:59:59Z"),
            ("today", "Pacific/Auckland", "2026-03-04T10:59:59Z"),
            ("today", "nowhere", "2026-03-04T23:59:59Z"),
            ("week", "Europe/Rome", "2026-03-11T22:59:59Z"),
            // Summer has begun.
            ("weeks", "Europe/Rome", "2026-04-01T21:59:59Z"),
        ] {
            assert_eq!(end_of_day(until, zone, now()), Some(time(expected)), "{until} {zone}");
        }
        // The first second of a day, before the clock goes back.
        let early = time("2026-10-24T22:00:00Z");
        let last = end_of_day("weeks", "Europe/Rome", early).expect("an end");
        assert!(last.duration_since(early) <= LONGEST);
        assert_eq!(end_of_day("never", "UTC", now()), None);
    }
}
