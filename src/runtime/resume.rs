//! Whether a watch may resume where it broke off.
//!
//! When etcd is restored from a backup, resource versions go backwards. A watch that resumes at a version which the API
//! server has not reached again is accepted, and shows nothing until it is reached: whatever changes meanwhile is missed.
//! So before a watch resumes that did not end by its own time limit, one object is listed, whose list has the present
//! version. If that is older, the watch is answered as the API server answers one whose version is too old, and all
//! objects are listed anew.
//!
//! A watch that comes back late, when that version has been reached again, cannot tell. So what one watch has seen holds for
//! all watches of the process ([`Restores`]): each that has listed its objects before ends, and lists them anew.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{StreamExt, TakeUntil};
use http::header::ACCEPT;
use http::{Request, Response, Uri};
use http_body_util::{BodyStream, Either, StreamBody};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tower::service_fn;

use super::answer::ListHead;

/// How long a watch lasts that ends by its own time limit: kube asks for 290 s, and gives up after 295 s itself.
const WHOLE: std::ops::Range<Duration> = Duration::from_secs(280)..Duration::from_secs(294);

/// Of the object that is listed nothing is read, and it may be large.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The frames of a body until something happens.
type Until = TakeUntil<BodyStream<Body>, BoxFuture<'static, bool>>;

/// How often the watches of a process have seen that etcd was restored from a backup. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Restores(Arc<watch::Sender<u64>>);

impl Restores {
    fn count(&self) -> u64 {
        *self.0.borrow()
    }

    /// A watch has seen that etcd was restored, since it listed its objects. `before` is the count when it did: if another
    /// one has seen a restore since, it is the same.
    fn seen(&self, before: u64) {
        self.0.send_if_modified(|count| {
            let is_news = *count == before;
            *count += u64::from(is_news);
            is_news
        });
    }

    /// The answer to a watch, which ends when a restore is seen after the first `before` ones.
    fn until_the_next(&self, before: u64, answer: Response<Body>) -> Response<StreamBody<Until>> {
        let mut restores = self.0.subscribe();
        // An error means that the process ends, too.
        let next = async move { restores.wait_for(|count| *count > before).await.is_ok() };
        answer.map(|body| StreamBody::new(BodyStream::new(body).take_until(next.boxed())))
    }
}

/// What is known about the requests of one watch.
#[derive(Default)]
struct Requests {
    last: Last,
    /// The number of restores that had been seen when the last list began.
    restores: u64,
}

/// What the last request of a watch came to.
#[derive(Default)]
enum Last {
    /// A list was answered, or nothing was asked yet.
    #[default]
    List,
    /// A watch began.
    Watch(Instant),
    /// A request was not answered, or with an error.
    Failure,
}

impl Last {
    /// Whether the next watch begins where nothing can have happened unseen.
    fn is_certain(&self) -> bool {
        match self {
            Self::List => true,
            Self::Watch(since) => WHOLE.contains(&since.elapsed()),
            Self::Failure => false,
        }
    }
}

/// A client for one watch, which lists everything anew where it cannot resume. `restores` is that of the process.
pub fn checked(client: Client, restores: Restores) -> Client {
    let namespace = client.default_namespace().to_owned();
    let requests = Arc::new(Mutex::new(Requests::default()));
    let service = service_fn(move |request: Request<Body>| {
        let (client, requests, restores) = (client.clone(), Arc::clone(&requests), restores.clone());
        async move {
            let watched = watched_version(request.uri());
            if watched.is_none() && !is_continued(request.uri()) {
                requests.lock().restores = restores.count();
            }
            let before = requests.lock().restores;
            if watched.is_some() && restores.count() > before {
                return Ok(expired("another watch has seen that").map(Either::Left));
            }
            let is_certain = requests.lock().last.is_certain();
            if let Some(version) = watched.filter(|_| !is_certain)
                && let Some(present) = present_version(&client, request.uri()).await?
                && present < version
            {
                restores.seen(before);
                let why = format!(
                    "the API server is at version {present}, which is older than the last one seen, {version}:"
                );
                return Ok(expired(&why).map(Either::Left));
            }
            let answer = client.send(request).await;
            let is_answered = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
            requests.lock().last = match watched {
                _ if !is_answered => Last::Failure,
                Some(_) => Last::Watch(Instant::now()),
                None => Last::List,
            };
            Ok::<_, kube::Error>(if watched.is_some() && is_answered {
                restores.until_the_next(before, answer?).map(Either::Right)
            } else {
                answer?.map(Either::Left)
            })
        }
    });
    Client::new(service, namespace)
}

/// Whether a request is for a page of a list, and not the first one.
fn is_continued(uri: &Uri) -> bool {
    uri.query().unwrap_or_default().split('&').any(|pair| pair.starts_with("continue="))
}

/// The resource version from which a request watches; `None` if it is no watch.
fn watched_version(uri: &Uri) -> Option<u64> {
    let pairs = || uri.query().unwrap_or_default().split('&');
    let version = pairs().find_map(|pair| pair.strip_prefix("resourceVersion="))?;
    pairs().any(|pair| pair == "watch=true").then(|| version.parse().ok()).flatten()
}

/// The request that lists one of the objects that `uri` watches.
fn head_of(uri: &Uri) -> String {
    let selectors = uri.query().unwrap_or_default().split('&').filter(|pair| pair.contains("Selector="));
    let query: Vec<&str> = selectors.chain(["limit=1"]).collect();
    format!("{}?{}", uri.path(), query.join("&"))
}

/// The version that the API server has now; `None` if it names none that can be compared.
async fn present_version(client: &Client, uri: &Uri) -> kube::Result<Option<u64>> {
    let request = Request::get(head_of(uri))
        .header(ACCEPT, METADATA)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    let ListHead { metadata } = client.request(request).await?;
    Ok(metadata.resource_version.parse().ok())
}

/// The answer to a watch from a version that does not exist any more. `why` is the beginning of a sentence.
fn expired(why: &str) -> Response<Body> {
    let message = format!("{why} etcd was restored from a backup; everything is listed anew");
    let event = json!({"type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "Expired", "code": 410,
    }});
    Response::new(Body::from(format!("{event}\n").into_bytes()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures::stream::pending;
    use http_body_util::Full;
    use hyper::body::{Bytes, Frame};

    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().expect("a URI")
    }

    #[test]
    fn only_a_watch_from_a_version_is_checked() {
        let version = |query: &str| watched_version(&uri(&format!("/api/v1/secrets?{query}")));
        assert_eq!(version("watch=true&timeoutSeconds=290&resourceVersion=42"), Some(42));
        assert_eq!(version("limit=100&resourceVersion=42"), None);
        assert_eq!(version("watch=true&resourceVersion=abc"), None);
        assert_eq!(watched_version(&uri("/api/v1/secrets")), None);
    }

    #[test]
    fn the_list_has_the_selectors_of_the_watch() {
        let watch = "/api/v1/secrets?watch=true&fieldSelector=metadata.name%3Dx&labelSelector=a%3Db&resourceVersion=4";
        let head = "/api/v1/secrets?fieldSelector=metadata.name%3Dx&labelSelector=a%3Db&limit=1";
        assert_eq!(head_of(&uri(watch)), head);
        assert_eq!(head_of(&uri("/api/v1/pods?watch=true")), "/api/v1/pods?limit=1");
    }

    #[test]
    fn a_watch_that_ended_by_its_own_limit_resumes_unchecked() {
        let began = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).map(Last::Watch);
        for (last, expected) in [
            (Some(Last::List), true),
            (Some(Last::Failure), false),
            (Some(Last::Watch(Instant::now())), false),
            (began(100), false),
            (began(290), true),
            (began(300), false),
        ] {
            // A machine that has just been started has no such time.
            assert!(last.is_none_or(|last| last.is_certain() == expected));
        }
    }

    /// What an API server was asked, and what it refuses: the requests whose path contains this.
    type Asked = Arc<Mutex<(Vec<String>, &'static str)>>;

    /// Part of no path.
    const NOTHING: &str = "nothing";

    /// An API server at the version `present`.
    fn server(present: &'static str) -> (Client, Asked) {
        let seen = Arc::new(Mutex::new((Vec::new(), NOTHING)));
        let noted = Arc::clone(&seen);
        let service = service_fn(move |request: Request<Body>| {
            let path = request.uri().to_string();
            let mut noted = noted.lock();
            let code = if path.contains(noted.1) { 503 } else { 200 };
            noted.0.push(path);
            let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": present}, "items": []});
            let answer = Response::builder().status(code).body(Body::from(list.to_string().into_bytes()));
            std::future::ready(answer.map_err(tower::BoxError::from))
        });
        (Client::new(service, "default"), seen)
    }

    async fn send(client: &Client, path: &str) -> String {
        let request = Request::get(path).body(Body::from(Vec::new())).expect("a request");
        let answer = client.send(request).await.expect("an answer");
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.expect("a body");
        String::from_utf8(body.to_bytes().to_vec()).expect("text")
    }

    #[tokio::test]
    async fn a_watch_that_broke_off_resumes_where_the_api_server_still_is() {
        const HEAD: &str = "/api/v1/pods?limit=1";
        for (present, is_refused) in [("41", true), ("42", false), ("43", false), ("unknown", false)] {
            let (server, seen) = server(present);
            let client = checked(server, Restores::default());
            let asked = || std::mem::take(&mut seen.lock().0);
            // The first watch follows a list.
            send(&client, "/api/v1/pods?limit=500").await;
            assert!(!send(&client, WATCH).await.contains("410"), "{present}");
            assert_eq!(asked().len(), 2);
            // The next one follows a watch that ended early, and the one after that a watch that was refused: by the API
            // server, or because everything has to be listed anew, for which it is not asked again.
            for (refused, of_old_world) in [(NOTHING, &[HEAD][..]), ("watch=true", &[])] {
                seen.lock().1 = refused;
                let answer = send(&client, WATCH).await;
                assert_eq!(answer.contains("\"code\":410"), is_refused, "{present}: {answer}");
                let expected = if is_refused { of_old_world } else { &[HEAD, WATCH] };
                assert_eq!(asked(), expected, "{present}");
            }
            seen.lock().1 = NOTHING;
            send(&client, "/api/v1/pods?limit=500").await;
            asked();
            send(&client, WATCH).await;
            assert_eq!(asked(), [WATCH], "after a list nothing is checked");
            // A list that was refused says nothing about where the API server is.
            seen.lock().1 = "limit=500";
            send(&client, "/api/v1/pods?limit=500").await;
            asked();
            send(&client, WATCH).await;
            assert_eq!(asked()[0], HEAD, "{present}");
        }
    }

    const LIST: &str = "/api/v1/pods?limit=100";
    const WATCH: &str = "/api/v1/pods?watch=true&resourceVersion=42";

    /// An API server at a version that changes. Its watches show nothing and do not end.
    fn silent_server(present: &Arc<AtomicU64>) -> Client {
        let present = Arc::clone(present);
        let service = service_fn(move |request: Request<Body>| {
            let version = present.load(Ordering::SeqCst).to_string();
            let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": []});
            let body = if watched_version(request.uri()).is_some() {
                Either::Left(StreamBody::new(pending::<Result<Frame<Bytes>, Infallible>>()))
            } else {
                Either::Right(Full::<Bytes>::from(list.to_string()))
            };
            std::future::ready(Ok::<_, Infallible>(Response::new(body)))
        });
        Client::new(service, "default")
    }

    /// What a watch shows until it ends; `None` if it does not end.
    async fn shown(client: &Client) -> Option<String> {
        tokio::time::timeout(Duration::from_mins(1), send(client, WATCH)).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_watch_has_seen_holds_for_all() {
        let present = Arc::new(AtomicU64::new(42));
        let (server, restores) = (silent_server(&present), Restores::default());
        let (early, late) = (checked(server.clone(), restores.clone()), checked(server, restores.clone()));
        for client in [&early, &late] {
            send(client, LIST).await;
        }
        assert_eq!(shown(&early).await, None);
        let running = late.clone();
        let running = tokio::spawn(async move { send(&running, WATCH).await });
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!running.is_finished());
        // The first one is answered by an older world, the second one comes back when that has reached the version again.
        present.store(41, Ordering::SeqCst);
        let why = shown(&early).await.expect("refused");
        assert!(
            why.contains("at version 41, which is older than the last one seen, 42: etcd was restored"),
            "{why}"
        );
        let ended = tokio::time::timeout(Duration::from_mins(1), running).await;
        assert_eq!(ended.expect("a watch that was running ends").expect("no panic"), "");
        present.store(43, Ordering::SeqCst);
        for _ in 0..2 {
            let why = shown(&late).await.expect("refused");
            assert!(why.contains("another watch has seen that etcd was restored"), "{why}");
            assert!(why.contains("\"code\":410"), "{why}");
            // A page of a list that began before is no new list.
            send(&late, &format!("{LIST}&continue=abc")).await;
        }
        // Once all is listed anew, the watch runs; and so it is with the one that has seen it.
        for client in [&late, &early] {
            send(client, LIST).await;
            assert_eq!(shown(client).await, None);
        }
        assert_eq!(restores.count(), 1);
        // Two watches see the same restore. The next one is another.
        for (before, count) in [(0, 1), (1, 2), (1, 2)] {
            restores.seen(before);
            assert_eq!(restores.count(), count, "{before}");
        }
    }
}
