use std::convert::Infallible;
use std::sync::Mutex;

use futures::StreamExt;
use futures::stream::{self, BoxStream, Pending, pending};
use http::Response;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;
use tower::service_fn;

use super::*;
use crate::kinds::{NamespaceKind, SecretKind};
use crate::runtime::pieces::LARGEST_OBJECT;
use crate::runtime::selection::Label;
use crate::runtime::store::StoreState;

mod refused;

/// A response with a whole body, or with a body that never arrives.
type Answer = Response<Either<Full<Bytes>, StreamBody<Pending<Result<Frame<Bytes>, Infallible>>>>>;

const EMPTY_LIST: &str =
    r#"{"kind": "NamespaceList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}"#;

/// The time of each request, and whether it was a watch.
type Log = Arc<Mutex<Vec<(Instant, bool)>>>;

/// An API server that accepts every watch and shows nothing. The bodies of the first `hanging` lists never arrive.
fn server(hanging: usize) -> (Client, Log) {
    let log = Log::default();
    let asked = Arc::clone(&log);
    let service = service_fn(move |request: http::Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let mut asked = asked.lock().expect("no panic");
        asked.push((Instant::now(), is_watch));
        let lists = asked.iter().filter(|(_, is_watch)| !is_watch).count();
        let body = if is_watch || lists <= hanging {
            Either::Right(StreamBody::new(pending()))
        } else {
            Either::Left(Full::from(EMPTY_LIST))
        };
        std::future::ready(Ok::<Answer, Infallible>(Response::new(body)))
    });
    (Client::new(service, "default"), log)
}

/// Runs a watch for this time.
async fn watch(client: Client, time: Duration) -> (Arc<Store<NamespaceKind>>, WatchHealth) {
    let (store, health) = (Arc::new(Store::new(true)), WatchHealth::default());
    let running = run(client, Arc::clone(&store), Selection::ALL, health.clone(), true);
    assert!(tokio::time::timeout(time, running).await.is_err(), "a watch never ends");
    (store, health)
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_abandoned_and_reported() {
    let (client, log) = server(0);
    let begin = Instant::now();
    let (store, health) = watch(client, Duration::from_mins(16)).await;
    assert_eq!(store.state(), StoreState::Synced);
    let log = log.lock().expect("no panic").clone();
    let starts: Vec<u64> =
        log.iter().filter(|(_, is_watch)| *is_watch).map(|(at, _)| (*at - begin).as_secs()).collect();
    assert_eq!(starts, [0, 295, 590, 885], "each is abandoned 5 s after it should have ended");
    let (silence, reason) = health.broken().expect("it is silent");
    assert!(silence >= Duration::from_mins(15) && reason.contains("sends nothing"), "{silence:?} {reason}");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_body_fails_one_attempt() {
    let (client, log) = server(1);
    let (store, health) = watch(client, Duration::from_mins(1)).await;
    assert_eq!(store.state(), StoreState::Synced);
    assert_eq!(health.broken(), None);
    let log = log.lock().expect("no panic").clone();
    let (first, second) = (log[0].0, log[1].0);
    assert_eq!(log.iter().map(|(_, is_watch)| *is_watch).collect::<Vec<_>>(), [false, false, true]);
    let waited = (second - first).as_secs();
    assert!((30..35).contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn the_watch_resumes_within_seconds_after_an_outage() {
    const OUTAGE: Duration = Duration::from_mins(10);
    let (log, begin) = (Log::default(), Instant::now());
    let asked = Arc::clone(&log);
    let service = service_fn(move |request: http::Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let mut asked = asked.lock().expect("no panic");
        asked.push((Instant::now(), is_watch));
        let status =
            |code| Full::from(json!({"kind": "Status", "status": "Failure", "code": code}).to_string());
        let (code, body) = match (is_watch, begin.elapsed() < OUTAGE) {
            (true, true) => (503, Either::Left(status(503))),
            // A new API server does not know the versions of the previous one.
            (true, false) if asked.iter().filter(|(_, is_watch)| !is_watch).count() == 1 => {
                (410, Either::Left(status(410)))
            }
            (true, false) => (200, Either::Right(StreamBody::new(pending()))),
            (false, _) => (200, Either::Left(Full::from(EMPTY_LIST))),
        };
        let answer = Response::builder().status(code).body(body).expect("an answer");
        std::future::ready(Ok::<Answer, Infallible>(answer))
    });
    watch(Client::new(service, "default"), OUTAGE + Duration::from_secs(20)).await;
    let log = log.lock().expect("no panic").clone();
    let (mut refused, back): (Vec<_>, Vec<_>) = log.into_iter().partition(|(at, _)| *at - begin < OUTAGE);
    assert_eq!(back.iter().map(|(_, is_watch)| *is_watch).collect::<Vec<_>>(), [true, false, true]);
    assert!((50..80).contains(&refused.len()), "the pauses grow to ten seconds: {refused:?}");
    refused.push(back[0]);
    let pauses = refused.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(pauses.max() <= Some(LONGEST_PAUSE + Duration::from_millis(1)), "{refused:?}");
    assert!(back[1].0 - back[0].0 < Duration::from_secs(2), "{back:?}");
}

#[tokio::test(start_paused = true)]
async fn only_the_selection_is_listed_page_by_page_and_watched() {
    const IN: &str = "/api/v1/namespaces/ns/namespaces";
    let namespace = || "ns".to_owned();
    for (selection, path, selector) in [
        (Selection::ALL, "/api/v1/namespaces", ""),
        (Selection::label("a", "b"), "/api/v1/namespaces", "labelSelector=a%3Db"),
        (Selection::named("a"), "/api/v1/namespaces", "fieldSelector=metadata.name%3Da"),
        (Selection::ALL.within(namespace()), IN, ""),
        (Selection::labelled("a").within(namespace()), IN, "labelSelector=a"),
        (Selection::label("a", "b").within(namespace()), IN, "labelSelector=a%3Db"),
        (Selection::named("a").within(namespace()), IN, "fieldSelector=metadata.name%3Da"),
    ] {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&asked);
        let service = service_fn(move |request: http::Request<Body>| {
            let line = request.uri().to_string();
            let is_watch = line.contains("watch=true");
            noted.lock().expect("no panic").push(line);
            let body = if is_watch {
                Either::Right(StreamBody::new(pending()))
            } else {
                Either::Left(Full::from(EMPTY_LIST))
            };
            std::future::ready(Ok::<Answer, Infallible>(Response::new(body)))
        });
        let store: Arc<Store<NamespaceKind>> = Arc::new(Store::new(true));
        let running = run(Client::new(service, "default"), store, selection, WatchHealth::default(), true);
        assert!(tokio::time::timeout(Duration::from_secs(1), running).await.is_err(), "it never ends");
        let asked = asked.lock().expect("no panic").clone();
        let [list, watch] = asked.as_slice() else { panic!("a list and a watch: {asked:?}") };
        assert!(list.contains(&format!("limit={PAGE}")), "{list}");
        for line in [list, watch] {
            let (asked, query) = line.split_once('?').expect("a query");
            assert_eq!(asked, path);
            let found: Vec<&str> = query.split('&').filter(|part| part.contains("Selector=")).collect();
            let wanted: Vec<&str> = [selector].into_iter().filter(|selector| !selector.is_empty()).collect();
            assert_eq!(found, wanted);
        }
    }
}

#[test]
fn a_selection_matches_the_same_objects_as_its_query() {
    const NO: bool = false;
    let key = "crownlabs.polito.it/type";
    let of_label = Selection::label("crownlabs.polito.it/type", "x").within("ns");
    let named_in = Selection::named("a").within("ns");
    let labelled = "labelSelector=crownlabs.polito.it%2Ftype";
    let matching = |selection: &Selection| -> Vec<bool> {
        let labels = [json!({}), json!({key: "tenant"}), json!({key: "other"})];
        let of_labels = labels.iter().map(|labels| json!({"metadata": {"name": "b", "labels": labels}}));
        let named = [("a", "ns"), ("a", "other"), ("b", "ns")];
        let of_names = named
            .iter()
            .map(|(name, ns)| json!({"metadata": {"name": name, "namespace": ns, "labels": {key: "x"}}}));
        of_labels.chain(of_names).map(|object| selection.matches(&object)).collect()
    };
    for (selection, query, expected) in [
        (Selection::ALL, String::new(), [true; 6]),
        (
            Selection::labelled("crownlabs.polito.it/type"),
            labelled.to_owned(),
            [NO, true, true, true, true, true],
        ),
        (
            Selection::label("crownlabs.polito.it/type", "tenant"),
            format!("{labelled}%3Dtenant"),
            [NO, true, NO, NO, NO, NO],
        ),
        (
            Selection::labelled("crownlabs.polito.it/type").within("ns"),
            labelled.to_owned(),
            [NO, NO, NO, true, NO, true],
        ),
        (of_label, format!("{labelled}%3Dx"), [NO, NO, NO, true, NO, true]),
        (named_in, "fieldSelector=metadata.name%3Da".to_owned(), [NO, NO, NO, true, NO, NO]),
        (
            Selection::of(Label::Absent("crownlabs.polito.it/type")),
            labelled.replacen('=', "=!", 1),
            [true, NO, NO, NO, NO, NO],
        ),
        (Selection::named("a"), "fieldSelector=metadata.name%3Da".to_owned(), [NO, NO, NO, true, true, NO]),
    ] {
        assert_eq!(selection.query(), query, "{selection:?}");
        assert_eq!(matching(&selection), expected, "{selection:?}");
    }
}

/// The body of a response that arrives in pieces, and then ends or not.
type Pieces = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// An API server that responds with the result of `answer`; `None` is a watch that shows nothing.
fn answering(answer: impl Fn(&str) -> Option<(Vec<String>, bool)> + Send + 'static) -> Client {
    let service = service_fn(move |request: http::Request<Body>| {
        let (pieces, is_over) = answer(&request.uri().to_string()).unwrap_or_default();
        let pieces = stream::iter(pieces.into_iter().map(|piece| Ok(Frame::data(Bytes::from(piece)))));
        let body: Pieces =
            StreamBody::new(if is_over { pieces.boxed() } else { pieces.chain(pending()).boxed() });
        std::future::ready(Ok::<_, Infallible>(Response::new(body)))
    });
    Client::new(service, "default")
}

fn secret(name: &str, version: u64, length: usize) -> String {
    let metadata =
        json!({"name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string()});
    json!({"metadata": metadata, "data": {"k": "x".repeat(length)}}).to_string()
}

const END: &str = r#"],"metadata":{"resourceVersion":"9"}}"#;

/// Watches Secrets until `is_expected` returns true.
async fn secrets_until(client: Client, store: &Arc<Store<SecretKind>>, is_expected: impl Fn() -> bool) {
    let running = run(client, Arc::clone(store), Selection::ALL, WatchHealth::default(), true);
    let expected = async {
        while !is_expected() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let either = async {
        tokio::select! { () = running => {}, () = expected => {} }
    };
    tokio::time::timeout(Duration::from_mins(10), either).await.expect("the expected state");
}

fn names(store: &Store<SecretKind>) -> Vec<String> {
    let mut names: Vec<String> = store.keys().iter().map(|key| key.name.to_string()).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn an_object_is_stored_before_the_list_is_complete() {
    let list = move |line: &str| {
        (!line.contains("watch=true")).then(|| {
            let begin = format!(r#"{{"items":[{},{}"#, secret("a", 1, 900 << 10), &secret("b", 2, 10)[..20]);
            (vec![begin], false)
        })
    };
    let store: Arc<Store<SecretKind>> = Arc::new(Store::new(false));
    secrets_until(answering(list), &store, || !store.keys().is_empty()).await;
    assert_eq!((names(&store), store.state()), (vec!["a".to_owned()], StoreState::Syncing));
    let kept = store.get("ns", "a").expect("taken").spec.get("k").map(str::len);
    assert!(kept.is_some_and(|length| length < 100), "the digest of a long value is kept");
}

#[tokio::test(start_paused = true)]
async fn the_page_size_shrinks_after_a_large_page_and_grows_again() {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&asked);
    let sizes = [10_usize, 9 << 20, 9 << 20, 3 << 20, 10, 10, 10];
    let list = move |line: &str| {
        let limit = line.split(['?', '&']).find_map(|part| part.strip_prefix("limit="))?.to_owned();
        let mut noted = noted.lock().expect("no panic");
        noted.push(limit);
        let objects: Vec<String> =
            (0..3).map(|n| secret(&format!("{}-{n}", noted.len()), 1, sizes[noted.len() - 1] / 3)).collect();
        let next = if noted.len() < sizes.len() { "more" } else { "" };
        let head = json!({"resourceVersion": "9", "continue": next});
        Some((vec![format!(r#"{{"metadata":{head},"items":[{}]}}"#, objects.join(","))], true))
    };
    let store: Arc<Store<SecretKind>> = Arc::new(Store::new(false));
    secrets_until(answering(list), &store, || store.state() == StoreState::Synced).await;
    assert_eq!(*asked.lock().expect("no panic"), ["250", "250", "125", "62", "62", "124", "248"]);
    assert_eq!(store.keys().len(), 3 * sizes.len());
}

#[tokio::test(start_paused = true)]
async fn only_too_large_or_malformed_objects_are_skipped_and_stay_unchanged() {
    let odd = r#"{"metadata":{"name":"odd","namespace":"ns","finalizers":5}}"#;
    let frame = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    let huge = |name: &str| secret(name, 5, LARGEST_OBJECT);
    let (listed, watched) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let answer = move |line: &str| {
        if line.contains("watch=true") {
            let mut watched = watched.lock().expect("no panic");
            *watched += 1;
            let frames = match *watched {
                // The first watch ends so that all objects are listed again.
                1 => vec![frame("ERROR", r#"{"kind":"Status","code":410,"message":"old"}"#)],
                2 => vec![
                    frame("MODIFIED", &huge("b")),
                    frame("ADDED", odd),
                    frame("BOOKMARK", r#"{"metadata":{"resourceVersion":"12"}}"#),
                    frame("ADDED", &secret("d", 13, 10)),
                ],
                _ => return None,
            };
            return Some((frames, true));
        }
        let mut listed = listed.lock().expect("no panic");
        *listed += 1;
        let a = if *listed == 1 { secret("a", 3, 10) } else { huge("a") };
        let objects = [a, secret("b", 4, 10), odd.to_owned(), huge("c")].join(",");
        Some((vec![r#"{"items":["#.to_owned(), objects, END.to_owned()], true))
    };
    let store: Arc<Store<SecretKind>> = Arc::new(Store::new(false));
    secrets_until(answering(answer), &store, || store.get("ns", "d").is_some()).await;
    assert_eq!(names(&store), ["a", "b", "d"], "a was listed before, c and odd never were");
    let version = |name| store.get("ns", name).and_then(|secret| secret.resource_version());
    assert_eq!((version("a").as_deref(), version("b").as_deref()), (Some("3"), Some("4")));
}

#[tokio::test(start_paused = true)]
async fn a_truncated_list_is_requested_again() {
    let count = Arc::new(Mutex::new(0));
    for broken in [
        r#"{"items":[{"metadata":"#,
        "<html>",
        r#"{"items":[]}"#,
        r#"{"items":[{"metadata":{"name":x}}],"metadata":{}}"#,
    ] {
        let asked = Arc::clone(&count);
        *count.lock().expect("no panic") = 0;
        let list = move |line: &str| {
            let mut asked = asked.lock().expect("no panic");
            *asked += usize::from(!line.contains("watch=true"));
            let text = if *asked == 1 {
                broken.to_owned()
            } else {
                format!(r#"{{"items":[{}{END}"#, secret("a", 1, 10))
            };
            (!line.contains("watch=true")).then(|| (vec![text], true))
        };
        let store: Arc<Store<SecretKind>> = Arc::new(Store::new(false));
        secrets_until(answering(list), &store, || store.state() == StoreState::Synced).await;
        assert_eq!((*count.lock().expect("no panic"), names(&store)), (2, vec!["a".to_owned()]), "{broken}");
    }
}
