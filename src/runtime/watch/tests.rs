use std::convert::Infallible;
use std::sync::Mutex;

use futures::stream::{Pending, pending};
use http::{Request, Response};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Resource;
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;
use tower::service_fn;

use super::*;
use crate::api::instance::InstanceKind;
use crate::kinds::NamespaceKind;
use crate::runtime::store::StoreState;

/// An answer with a whole body, or one whose body never comes.
type Answer = Response<Either<Full<Bytes>, StreamBody<Pending<Result<Frame<Bytes>, Infallible>>>>>;

const EMPTY_LIST: &str =
    r#"{"kind": "NamespaceList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}"#;

/// When each request was sent, and whether it was a watch.
type Log = Arc<Mutex<Vec<(Instant, bool)>>>;

/// An API server that accepts every watch and shows nothing. The bodies of the first `hanging` lists never come.
fn server(hanging: usize) -> (Client, Log) {
    let log = Log::default();
    let asked = Arc::clone(&log);
    let service = service_fn(move |request: Request<Body>| {
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

/// Watches for this time.
async fn watch(client: Client, time: Duration) -> (Arc<Store<NamespaceKind>>, WatchHealth) {
    let (store, health) = (Arc::new(Store::new(true)), WatchHealth::default());
    let running = run(client, Arc::clone(&store), Selection::All, health.clone(), true);
    assert!(tokio::time::timeout(time, running).await.is_err(), "a watch never ends");
    (store, health)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_shows_nothing_is_given_up_and_told() {
    let (client, log) = server(0);
    let begin = Instant::now();
    let (store, health) = watch(client, Duration::from_mins(16)).await;
    assert_eq!(store.state(), StoreState::Synced);
    let log = log.lock().expect("no panic").clone();
    let starts: Vec<u64> =
        log.iter().filter(|(_, is_watch)| *is_watch).map(|(at, _)| (*at - begin).as_secs()).collect();
    assert_eq!(starts, [0, 295, 590, 885], "each is given up 5 s after its end was due");
    let (silence, reason) = health.broken().expect("it is silent");
    assert!(silence >= Duration::from_mins(15) && reason.contains("sends nothing"), "{silence:?} {reason}");
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_body_never_comes_costs_one_attempt() {
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
async fn only_the_selection_is_listed_page_by_page_and_watched() {
    const IN: &str = "/api/v1/namespaces/ns/namespaces";
    let namespace = || "ns".to_owned();
    for (selection, path, selector) in [
        (Selection::All, "/api/v1/namespaces", ""),
        (Selection::label("a", "b"), "/api/v1/namespaces", "labelSelector=a%3Db"),
        (Selection::named("a"), "/api/v1/namespaces", "fieldSelector=metadata.name%3Da"),
        (Selection::In(namespace()), IN, ""),
        (Selection::LabelledIn { namespace: namespace(), key: "a" }, IN, "labelSelector=a"),
        (Selection::LabelIn { namespace: namespace(), key: "a", value: "b" }, IN, "labelSelector=a%3Db"),
        (
            Selection::NamedIn { namespace: namespace(), name: "a".to_owned() },
            IN,
            "fieldSelector=metadata.name%3Da",
        ),
    ] {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&asked);
        let service = service_fn(move |request: Request<Body>| {
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
fn a_selection_is_the_same_in_a_request_and_for_an_object() {
    const NO: bool = false;
    let key = "crownlabs.polito.it/type";
    let of_label =
        Selection::LabelIn { namespace: "ns".to_owned(), key: "crownlabs.polito.it/type", value: "x" };
    let named_in = Selection::NamedIn { namespace: "ns".to_owned(), name: "a".to_owned() };
    let of_namespace = Selection::Named { namespace: Some("ns".to_owned()), name: "a".to_owned() };
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
        (Selection::All, String::new(), [true; 6]),
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
            Selection::LabelledIn { namespace: "ns".to_owned(), key: "crownlabs.polito.it/type" },
            labelled.to_owned(),
            [NO, NO, NO, true, NO, true],
        ),
        (of_label, format!("{labelled}%3Dx"), [NO, NO, NO, true, NO, true]),
        (named_in, "fieldSelector=metadata.name%3Da".to_owned(), [NO, NO, NO, true, NO, NO]),
        (
            Selection::Unlabelled("crownlabs.polito.it/type"),
            labelled.replacen('=', "=!", 1),
            [true, NO, NO, NO, NO, NO],
        ),
        (Selection::named("a"), "fieldSelector=metadata.name%3Da".to_owned(), [NO, NO, NO, true, true, NO]),
        (
            of_namespace,
            "fieldSelector=metadata.name%3Da%2Cmetadata.namespace%3Dns".to_owned(),
            [NO, NO, NO, true, NO, NO],
        ),
    ] {
        assert_eq!(selection.query(), query, "{selection:?}");
        assert_eq!(matching(&selection), expected, "{selection:?}");
    }
}

type Of = Watched<false>;

#[test]
fn kube_asks_for_the_kind() {
    let kind = KindInfo::of::<InstanceKind>();
    let names = [Of::kind(&kind), Of::plural(&kind), Of::group(&kind), Of::version(&kind)];
    assert_eq!(names, ["Instance", "instances", "crownlabs.polito.it", "v1alpha2"]);
    let json = r#"{"metadata": {"name": "a", "resourceVersion": "12"}}"#;
    let mut watched: Of = serde_json::from_str(json).expect("an Instance");
    assert_eq!(watched.meta().resource_version.as_deref(), Some("12"), "from here a watch resumes");
    watched.meta_mut().resource_version = None;
    assert_eq!(watched.meta().resource_version, None);
}

/// An API server that refuses everything with this code, and counts.
fn refusing(code: u16) -> (Client, Log) {
    let log = Log::default();
    let asked = Arc::clone(&log);
    let service = service_fn(move |_: Request<Body>| {
        asked.lock().expect("no panic").push((Instant::now(), false));
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "Any", "message": "no"});
        let answer = Response::builder().status(code).body(Full::<Bytes>::from(status.to_string()));
        std::future::ready(answer)
    });
    (Client::new(service, "default"), log)
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_asked_for_every_ten_seconds_or_never_again() {
    for (code, retry, asked, state) in [
        (404, true, 7, StoreState::Missing),
        (404, false, 1, StoreState::Missing),
        (403, false, 1, StoreState::Missing),
    ] {
        let (client, log) = refusing(code);
        let (store, health): (Arc<Store<NamespaceKind>>, _) =
            (Arc::new(Store::new(true)), WatchHealth::default());
        let running = run(client, Arc::clone(&store), Selection::All, health.clone(), retry);
        assert!(tokio::time::timeout(Duration::from_secs(65), running).await.is_err(), "it never ends");
        assert_eq!(log.lock().expect("no panic").len(), asked, "{code} {retry}");
        assert_eq!((store.state(), health.broken().is_some()), (state, false), "{code} {retry}");
    }
    // Who may not read a kind that is needed is told, and the store is not taken for empty.
    for code in [403, 500] {
        let (client, log) = refusing(code);
        let (store, health) = watch(client, Duration::from_mins(2)).await;
        assert!(log.lock().expect("no panic").len() > 2, "{code}");
        assert_eq!((store.state(), health.broken().is_some()), (StoreState::Syncing, true), "{code}");
    }
}
