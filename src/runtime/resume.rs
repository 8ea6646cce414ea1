//! Checks whether a watch may resume where it was interrupted.
//!
//! When etcd is restored from a backup, resource versions go backwards. If a watch resumes at a version that the API
//! server has not reached again, the API server accepts it and shows nothing until that version is reached, so changes
//! in between are missed. A watch that ended by its own time limit may resume directly. Before any other watch resumes,
//! one object is listed, because the response has the current version. If that version is older, the watch gets the API
//! server's response for a version that is too old, and all objects are listed again.
//!
//! A watch that resumes late, when the version has been reached again, cannot detect the restore. A restore that one
//! watch detects therefore applies to all watches of the process ([`Restores`]): each watch that listed its objects
//! before the restore was detected ends, and lists them again.

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

/// The duration of a watch that ended by its own time limit: kube asks for 290 s, and itself gives up after 295 s.
const WHOLE: std::ops::Range<Duration> = Duration::from_secs(280)..Duration::from_secs(294);

/// Requests only the metadata of the listed object, which may be large.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The frames of a body until the next restore.
type Until = TakeUntil<BodyStream<Body>, BoxFuture<'static, bool>>;

/// The number of times that the watches of a process have detected a restore of etcd from a backup. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Restores(Arc<watch::Sender<u64>>);

impl Restores {
    fn count(&self) -> u64 {
        *self.0.borrow()
    }

    /// Records that a watch has detected a restore since it listed its objects. `before` is the count at the time of
    /// the list. If another watch has recorded a restore since then, it is the same restore.
    fn seen(&self, before: u64) {
        self.0.send_if_modified(|count| {
            let is_news = *count == before;
            *count += u64::from(is_news);
            is_news
        });
    }

    /// Wraps the response to a watch so that it ends when the next restore after the first `before` ones is recorded.
    fn until_the_next(&self, before: u64, answer: Response<Body>) -> Response<StreamBody<Until>> {
        let mut restores = self.0.subscribe();
        // An error means that the process ends, too.
        let next = async move { restores.wait_for(|count| *count > before).await.is_ok() };
        answer.map(|body| StreamBody::new(BodyStream::new(body).take_until(next.boxed())))
    }
}

/// The state of the requests of one watch.
#[derive(Default)]
struct Requests {
    last: Last,
    /// The number of recorded restores when the last list began.
    restores: u64,
}

/// The result of the last request of a watch.
#[derive(Default)]
enum Last {
    /// A list succeeded, or there was no request yet.
    #[default]
    List,
    /// A watch began.
    Watch(Instant),
    /// A request failed, or got no response.
    Failure,
}

impl Last {
    /// Whether the next watch resumes without a gap.
    fn is_certain(&self) -> bool {
        match self {
            Self::List => true,
            Self::Watch(since) => WHOLE.contains(&since.elapsed()),
            Self::Failure => false,
        }
    }
}

/// Creates a client for one watch, which makes the watch list all objects again if it cannot resume. `restores` is
/// shared by the process.
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

/// Whether a request is for a page of a list other than the first one.
fn is_continued(uri: &Uri) -> bool {
    uri.query().unwrap_or_default().split('&').any(|pair| pair.starts_with("continue="))
}

/// Returns the resource version where a watch request begins; `None` if the request is not a watch.
fn watched_version(uri: &Uri) -> Option<u64> {
    let pairs = || uri.query().unwrap_or_default().split('&');
    let version = pairs().find_map(|pair| pair.strip_prefix("resourceVersion="))?;
    pairs().any(|pair| pair == "watch=true").then(|| version.parse().ok()).flatten()
}

/// Returns the request that lists one of the objects that `uri` watches.
fn head_of(uri: &Uri) -> String {
    let selectors = uri.query().unwrap_or_default().split('&').filter(|pair| pair.contains("Selector="));
    let query: Vec<&str> = selectors.chain(["limit=1"]).collect();
    format!("{}?{}", uri.path(), query.join("&"))
}

/// Returns the current version of the API server; `None` if it is not comparable.
async fn present_version(client: &Client, uri: &Uri) -> kube::Result<Option<u64>> {
    let request = Request::get(head_of(uri))
        .header(ACCEPT, METADATA)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    let ListHead { metadata } = client.request(request).await?;
    Ok(metadata.resource_version.parse().ok())
}

/// Returns the response to a watch from a version that no longer exists. `why` is the beginning of a sentence.
fn expired(why: &str) -> Response<Body> {
    let message = format!("{why} etcd was restored from a backup; all objects are listed again");
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
            // A host that was started recently has no such time.
            assert!(last.is_none_or(|last| last.is_certain() == expected));
        }
    }

    /// The requests that an API server got, and the part of the path that it rejects.
    type Asked = Arc<Mutex<(Vec<String>, &'static str)>>;

    /// Occurs in no path.
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
    async fn an_interrupted_watch_resumes_unless_the_api_server_went_back() {
        const HEAD: &str = "/api/v1/pods?limit=1";
        for (present, is_refused) in [("41", true), ("42", false), ("43", false), ("unknown", false)] {
            let (server, seen) = server(present);
            let client = checked(server, Restores::default());
            let asked = || std::mem::take(&mut seen.lock().0);
            // The first watch follows a list.
            send(&client, "/api/v1/pods?limit=500").await;
            assert!(!send(&client, WATCH).await.contains("410"), "{present}");
            assert_eq!(asked().len(), 2);
            // The next watch follows one that ended early. The one after that follows a rejected watch: rejected by the
            // API server, or because all objects have to be listed again; then the version is not requested again.
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
            assert_eq!(asked(), [WATCH], "a watch after a list is not checked");
            // A rejected list does not reveal the version of the API server.
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

    /// Returns the content of a watch until it ends; `None` if it does not end.
    async fn shown(client: &Client) -> Option<String> {
        tokio::time::timeout(Duration::from_mins(1), send(client, WATCH)).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_restore_seen_by_one_watch_ends_all_watches() {
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
        // The first watch finds an older version; the second one resumes when that version has been reached again.
        present.store(41, Ordering::SeqCst);
        let why = shown(&early).await.expect("an expired response");
        assert!(
            why.contains("at version 41, which is older than the last one seen, 42: etcd was restored"),
            "{why}"
        );
        let ended = tokio::time::timeout(Duration::from_mins(1), running).await;
        assert_eq!(ended.expect("a watch that was running ends").expect("no panic"), "");
        present.store(43, Ordering::SeqCst);
        for _ in 0..2 {
            let why = shown(&late).await.expect("an expired response");
            assert!(why.contains("another watch has seen that etcd was restored"), "{why}");
            assert!(why.contains("\"code\":410"), "{why}");
            // A page of a list that began before the restore is not a new list.
            send(&late, &format!("{LIST}&continue=abc")).await;
        }
        // After a new list the watch runs, also for the client that detected the restore.
        for client in [&late, &early] {
            send(client, LIST).await;
            assert_eq!(shown(client).await, None);
        }
        assert_eq!(restores.count(), 1);
        // Two watches detect the same restore. The next one is another restore.
        for (before, count) in [(0, 1), (1, 2), (1, 2)] {
            restores.seen(before);
            assert_eq!(restores.count(), count, "{before}");
        }
    }
}
