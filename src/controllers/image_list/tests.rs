//! Plans and reports of image lists, without a cluster and without a registry.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::observe::{Observed, Query};
use super::plan::{Decision, Effect, decide, plan};
use super::report::report;
use crate::api::image_list::{ImageList, ImageListItem, ImageListKind, ImageListSpec};
use crate::api::reason::{IMAGE_LIST_NOT_WRITTEN, REGISTRY_FAILED, REGISTRY_READ};
use crate::clients::registry::{LeftOut, Listing, QueryError};
use crate::config::{ConfigDuration, ImageListConfig};
use crate::controllers::shared::queries::LastQuery;
use crate::runtime::apply::Failure;
use crate::runtime::component::Component;
use crate::runtime::error::ApiError;
use crate::runtime::plan::{Plan, Requeue};
use crate::runtime::reconciler::{Outcome, Reconciled, Report};

fn config() -> ImageListConfig {
    let registry = json!({
        "imageListName": "vms", "url": "https://r.example.org", "registryName": "pull.example.org", "project": "labs",
    });
    ImageListConfig {
        enabled: true,
        update_interval: ConfigDuration::from_secs(300),
        registries: vec![serde_json::from_value(registry).unwrap()],
        ..ImageListConfig::default()
    }
}

fn at(seconds: i64) -> Timestamp {
    "2026-11-24T06:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn item(name: &str, versions: &[&str]) -> ImageListItem {
    let versions = versions.iter().map(|tag| (*tag).to_owned()).collect();
    ImageListItem { name: name.to_owned(), versions }
}

fn listing() -> Arc<Listing> {
    Arc::new(Listing {
        images: vec![item("a", &["1", "2"]), item("b", &["x"])],
        left_out: LeftOut::default(),
    })
}

fn error() -> QueryError {
    QueryError::Status { request: "GET /v2/_catalog".to_owned(), status: 500, codes: String::new() }
}

/// The stored list, with this status.
fn stored(status: &Value) -> Arc<ImageList> {
    let list: ImageList = serde_json::from_value(json!({
        "metadata": {"name": "vms", "uid": "u1", "resourceVersion": "7", "generation": 2},
        "spec": {"registryName": "old", "images": [{"name": "a", "versions": ["1"]}]},
        "status": status,
    }))
    .unwrap();
    Arc::new(list)
}

fn absent() -> Arc<ImageList> {
    Arc::new(ImageList::new(None, "vms", ImageListSpec::default()))
}

/// A query that began at 0 and ended after 10 s.
fn ended(result: Result<Arc<Listing>, QueryError>) -> Query {
    let mut query =
        Query { begun: at(0), failures: 0, empty: 0, last_success: None, result: None, is_settled: true };
    query.end(at(10), result);
    query
}

fn observed(list: Arc<ImageList>, query: Option<Query>) -> Observed {
    Observed { list, query }
}

#[test]
fn a_registry_is_read_now_or_when_it_is_due() {
    let config = config();
    let decided = |query: Option<Query>, now: Timestamp| {
        let observed = observed(absent(), query);
        match decide(&observed, &config, now) {
            Decision::Query => "query",
            Decision::UnderWay => "under way",
            Decision::Current(..) => "current",
            Decision::Doubted(..) => "doubted",
            Decision::Failed(..) => "failed",
        }
    };
    let (read, failed) = (ended(Ok(listing())), ended(Err(error())));
    let again = |failures| Query { failures, ..failed.clone() };
    for (what, query, seconds, expected) in [
        ("at first", None, 0, "query"),
        ("under way", Some(Query { result: None, ..read.clone() }), 1_000, "under way"),
        ("read", Some(read.clone()), 11, "current"),
        ("read, shortly before", Some(read.clone()), 269, "current"),
        ("read, an interval and a tenth ago", Some(read), 331, "query"),
        ("failed", Some(failed.clone()), 36, "failed"),
        ("failed, half a minute and a tenth ago", Some(failed.clone()), 44, "query"),
        ("failed twice", Some(again(2)), 63, "failed"),
        ("failed twice, a minute ago", Some(again(2)), 77, "query"),
        ("failed often: no later than the interval", Some(again(40)), 279, "failed"),
        ("failed often, an interval ago", Some(again(u32::MAX)), 341, "query"),
    ] {
        assert_eq!(decided(query, at(seconds)), expected, "{what}");
    }
    let slow = Query { result: Some((at(1_000), Ok(listing()))), ..ended(Ok(listing())) };
    assert_eq!(decided(Some(slow.clone()), at(1_000)), "query", "slower than the interval: at once");
    let unsettled = Query { is_settled: false, ..slow };
    assert_eq!(decided(Some(unsettled.clone()), at(9_000)), "current", "but not before the list is written");
    let found = plan(&observed(absent(), Some(unsettled)), &config, at(9_000));
    assert_eq!((found.ensure.len(), found.requeue), (1, Requeue::After(Duration::ZERO)));
    let other = Arc::new(ImageList::new(None, "other", ImageListSpec::default()));
    let found = plan(&observed(other, None), &config, at(0));
    assert_eq!((found.requeue, found.effects), (Requeue::OnChange, Vec::new()));
}

#[test]
fn the_interval_has_a_jitter_of_a_tenth() {
    let dues: Vec<i64> = (0..100)
        .map(|seconds| {
            let query = Query { begun: at(seconds), ..ended(Ok(listing())) };
            let observed = observed(absent(), Some(query));
            match decide(&observed, &config(), at(10)) {
                Decision::Current(_, due) => due.as_second() - at(seconds).as_second(),
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert!(dues.iter().all(|due| (270..=330).contains(due)), "{dues:?}");
    assert!(dues.iter().max() > dues.iter().min(), "{dues:?}");
}

#[test]
fn only_the_images_of_a_list_are_enforced() {
    let found = plan(&observed(stored(&json!({})), Some(ended(Ok(listing())))), &config(), at(10));
    let [desired] = &found.ensure[..] else { panic!("{found:?}") };
    let images = json!([{"name": "a", "versions": ["1", "2"]}, {"name": "b", "versions": ["x"]}]);
    let spec = json!({"registryName": "pull.example.org", "projectBaseName": "labs", "images": images});
    assert_eq!((&desired.fields, &desired.manifest), (&json!({"spec": spec}), &None));
    assert!(desired.labels.is_empty() && desired.annotations.is_empty());
    let Requeue::After(after) = found.requeue else { panic!("{found:?}") };
    assert!(Duration::from_secs(260) <= after && after <= Duration::from_secs(320), "{after:?}");
    // A list that does not exist is created in the desired state.
    let mut without_project = config();
    without_project.registries[0].project = String::new();
    let found = plan(&observed(absent(), Some(ended(Ok(listing())))), &without_project, at(10));
    let made = found.ensure[0].manifest.as_ref().expect("a manifest").json();
    let expected = json!({
        "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "ImageList", "metadata": {"name": "vms"},
        "spec": {"registryName": "pull.example.org", "images": images},
    });
    assert_eq!(made, &expected);
    assert_eq!(
        found.ensure[0].fields["spec"]["projectBaseName"],
        Value::Null,
        "one that is there is removed"
    );
}

#[test]
fn a_failure_changes_no_list() {
    let found = plan(&observed(stored(&json!({})), Some(ended(Err(error())))), &config(), at(10));
    assert!(found.ensure.is_empty() && found.patches.is_empty() && found.effects.is_empty(), "{found:?}");
    assert!(matches!(found.requeue, Requeue::After(after) if after <= Duration::from_secs(33)), "{found:?}");
    // A list that does not exist is created without images, so that the problem is visible.
    let found = plan(&observed(absent(), Some(ended(Err(error())))), &config(), at(10));
    assert_eq!(found.ensure[0].fields["spec"]["images"], json!([]));
    let found = plan(&observed(stored(&json!({})), None), &config(), at(10));
    assert_eq!((found.effects, found.ensure), (vec![Effect::Query], Vec::new()));
}

#[test]
fn an_empty_registry_empties_a_list_after_three_queries() {
    let none = || Arc::new(Listing { images: Vec::new(), left_out: LeftOut::default() });
    let mut query = Query { last_success: Some(at(-300)), ..ended(Ok(none())) };
    let seen = |query: &Query| observed(stored(&json!({})), Some(query.clone()));
    for round in 1..=2 {
        let observed = seen(&query);
        let found = plan(&observed, &config(), at(10));
        assert!(found.ensure.is_empty() && found.effects.is_empty(), "round {round}: {found:?}");
        assert!(matches!(found.requeue, Requeue::After(after) if after > Duration::from_secs(250)));
        let since = "2026-11-24T05:55:00Z";
        let message = format!(
            "True RegistryEmpty: the registry at https://r.example.org is now empty: the list dates from \
             {since}, until 3 queries in a row confirm it ({round} so far)"
        );
        let expected = (message, since.to_owned(), vec!["RegistryEmpty".to_owned()]);
        assert_eq!(told(&reported(&observed, &Outcome::default())), expected);
        query.end(at(10), Ok(none()));
    }
    let emptied = plan(&seen(&query), &config(), at(10));
    assert_eq!(emptied.ensure[0].fields["spec"]["images"], json!([]), "the third");
    let (condition, ..) = told(&reported(&seen(&query), &Outcome::default()));
    assert!(condition.starts_with("False RegistryRead: "), "{condition}");
    // Any other result restarts the count.
    for between in [Ok(listing()), Err(error())] {
        query.end(at(10), between);
        query.end(at(10), Ok(none()));
        assert!(plan(&seen(&query), &config(), at(10)).ensure.is_empty());
    }
    // A list without images has none to lose.
    let made = plan(&observed(absent(), Some(ended(Ok(none())))), &config(), at(10));
    assert_eq!(made.ensure.len(), 1);
}

/// The report after a plan that was carried out.
fn reported(observed: &Observed, outcome: &Outcome<()>) -> Report<ImageListKind> {
    report(&Reconciled::of(observed, &config(), &Plan::default(), outcome, at(20)))
}

/// The condition, the time of the last success, and the events of a report.
fn told(report: &Report<ImageListKind>) -> (String, String, Vec<String>) {
    let conditions = &report.status.conditions;
    assert_eq!(conditions.len(), 1, "{conditions:?}");
    let condition = format!("{} {}: {}", conditions[0].status, conditions[0].reason, conditions[0].message);
    let last = report.status.last_success_time.as_ref().map_or_else(String::new, |time| time.0.to_string());
    let events = report.events.iter().map(|event| event.reason.as_str().to_owned()).collect();
    (condition, last, events)
}

const READ: &str = "the registry at https://r.example.org offers 2 images with 3 tags";
const FAILED: &str =
    "the registry at https://r.example.org could not be read: GET /v2/_catalog was answered 500";

#[test]
fn the_condition_says_whether_the_list_is_stale() {
    let success = Outcome::default();
    let current = observed(stored(&json!({})), Some(ended(Ok(listing()))));
    let first = reported(&current, &success);
    assert_eq!(told(&first), (format!("False {REGISTRY_READ}: {READ}"), String::new(), Vec::new()));
    assert_eq!(first.status.conditions[0].observed_generation, Some(2));

    // The same result again writes nothing.
    let as_read = serde_json::to_value(&first.status).unwrap();
    let same = reported(&observed(stored(&as_read), current.query.clone()), &success);
    assert_eq!(serde_json::to_value(&same.status).unwrap(), as_read);

    // It fails: the time of the last success is the time of the previous query.
    let query = Query { last_success: Some(at(-300)), ..ended(Err(error())) };
    let stale = reported(&observed(stored(&as_read), Some(query)), &success);
    let since = "2026-11-24T05:55:00Z";
    let message = format!("True {REGISTRY_FAILED}: {FAILED}; the list dates from {since}");
    assert_eq!(told(&stale), (message.clone(), since.to_owned(), vec!["RegistryFailed".to_owned()]));

    // It fails again, also in another process, which reads the time from the status.
    let as_stale = serde_json::to_value(&stale.status).unwrap();
    let again = reported(&observed(stored(&as_stale), Some(ended(Err(error())))), &success);
    assert_eq!(told(&again), (message, since.to_owned(), Vec::new()));
    assert_eq!(serde_json::to_value(&again.status).unwrap(), as_stale, "nothing is written");

    // It recovers.
    let well = reported(&observed(stored(&as_stale), current.query.clone()), &success);
    let told = told(&well);
    assert_eq!(
        told,
        (format!("False {REGISTRY_READ}: {READ}"), String::new(), vec!["RegistryRead".to_owned()])
    );
}

#[test]
fn unknown_states_are_not_reported() {
    let success = Outcome::default();
    let unchanged = |observed: &Observed, outcome: &Outcome<()>| {
        let report = reported(observed, outcome);
        assert_eq!(report.status, observed.list.status);
        assert!(report.events.is_empty() && report.log.is_none());
    };
    let under_way = Query { result: None, ..ended(Ok(listing())) };
    unchanged(&observed(stored(&json!({})), Some(under_way)), &success);
    unchanged(&observed(stored(&json!({})), None), &success);
    // The query that this reconcile has started has ended in the meantime.
    let begun = Plan { effects: vec![Effect::Query], ..Plan::default() };
    let early = observed(stored(&json!({})), Some(ended(Ok(listing()))));
    let early = report(&Reconciled::of(&early, &config(), &begun, &success, at(20)));
    assert!(early.status.conditions.is_empty() && early.log.is_none(), "{early:?}");
    // It could not be created, so there is no status to write.
    unchanged(&observed(absent(), Some(ended(Err(error())))), &success);
    let of = |error| {
        let name = "vms".to_owned();
        Outcome::of(vec![Failure { component: Component::Whole, kind: "ImageList", name, error }])
    };
    let current = observed(stored(&json!({})), Some(ended(Ok(listing()))));
    unchanged(&current, &of(ApiError::Conflict("it changed".to_owned())));
    let (condition, last, _) = told(&reported(&current, &of(ApiError::Invalid("too large".to_owned()))));
    let end = "could not be written: the API server rejected the object as invalid: too large";
    assert!(
        condition.starts_with(&format!("True {IMAGE_LIST_NOT_WRITTEN}")) && condition.ends_with(end),
        "{condition}"
    );
    assert_eq!(last, at(10).to_string());
    // Neither this process nor the status knows the time of the last read.
    let (condition, last, _) =
        told(&reported(&observed(stored(&json!({})), Some(ended(Err(error())))), &success));
    assert!(condition.ends_with("; the list is as it was before this daemon started"), "{condition}");
    assert_eq!(last, "");
    let mut empty = (*stored(&json!({}))).clone();
    empty.spec.images = Vec::new();
    let (condition, ..) = told(&reported(&observed(Arc::new(empty), Some(ended(Err(error())))), &success));
    assert!(condition.ends_with("; the list stays empty until it can be read"), "{condition}");
}

#[test]
fn omitted_images_are_counted() {
    for (images, repositories, tags, expected) in [
        (vec![], 0, 0, "0 images with 0 tags"),
        (vec![item("a", &["1"])], 0, 0, "1 image with 1 tag"),
        (
            vec![item("a", &["1", "2"])],
            1,
            2,
            "1 image with 2 tags; left out: 1 repository and 2 tags with invalid names",
        ),
        (vec![], 2, 1, "0 images with 0 tags; left out: 2 repositories and 1 tag with invalid names"),
    ] {
        let listing = Arc::new(Listing { images, left_out: LeftOut { repositories, tags } });
        let query = Query { empty: 3, ..ended(Ok(listing)) };
        let (condition, ..) =
            told(&reported(&observed(stored(&json!({})), Some(query)), &Outcome::default()));
        let expected = format!("False RegistryRead: the registry at https://r.example.org offers {expected}");
        assert_eq!(condition, expected);
    }
}
