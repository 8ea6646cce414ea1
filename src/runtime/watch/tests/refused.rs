//! Responses that say that a kind is not served, or may not be read.

use super::*;

/// A response that rejects a request with this code.
fn refusal(code: u16) -> Response<Full<Bytes>> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "Any", "message": "no"});
    Response::builder().status(code).body(Full::<Bytes>::from(status.to_string())).expect("a response")
}

/// An API server that rejects every request with this code, and counts the requests.
fn refusing(code: u16) -> (Client, Log) {
    let log = Log::default();
    let asked = Arc::clone(&log);
    let service = service_fn(move |_: http::Request<Body>| {
        asked.lock().expect("no panic").push((Instant::now(), false));
        std::future::ready(Ok::<_, Infallible>(refusal(code)))
    });
    (Client::new(service, "default"), log)
}

#[tokio::test(start_paused = true)]
async fn the_watch_of_a_kind_that_is_not_served_is_retried_every_ten_seconds_or_once() {
    for (code, retry, asked, state) in [
        (404, true, 7, StoreState::Missing),
        (404, false, 2, StoreState::Missing),
        (403, false, 2, StoreState::Missing),
    ] {
        let (client, log) = refusing(code);
        let (store, health): (Arc<Store<NamespaceKind>>, _) =
            (Arc::new(Store::new(true)), WatchHealth::default());
        let running = run(client, Arc::clone(&store), Selection::ALL, health.clone(), retry);
        assert!(tokio::time::timeout(Duration::from_secs(65), running).await.is_err(), "it never ends");
        assert_eq!(log.lock().expect("no panic").len(), asked, "{code} {retry}");
        assert_eq!((store.state(), health.broken().is_some()), (state, false), "{code} {retry}");
    }
    // If a required kind may not be read, the watch is reported as broken, and the store is not treated as empty.
    for code in [403, 500] {
        let (client, log) = refusing(code);
        let (store, health) = watch(client, Duration::from_mins(2)).await;
        assert!(log.lock().expect("no panic").len() > 2, "{code}");
        assert_eq!((store.state(), health.broken().is_some()), (StoreState::Syncing, true), "{code}");
    }
}

/// An API server without objects that ends each watch after a second, and rejects the requests from the 10th second
/// until `end` with this code.
fn refusing_until(end: Duration, code: u16) -> Client {
    let begin = Instant::now();
    let service = service_fn(move |request: http::Request<Body>| async move {
        let elapsed = begin.elapsed();
        if elapsed >= Duration::from_secs(10) && elapsed < end {
            return Ok::<_, Infallible>(refusal(code));
        }
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Ok(Response::default());
        }
        Ok(Response::new(Full::from(EMPTY_LIST)))
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_was_served_is_missing_only_if_it_is_refused_for_ten_seconds() {
    use StoreState::{Missing, Synced, Syncing};
    for (code, retry, seconds, expected) in [
        (404, true, 8, vec![Syncing, Synced]),
        (404, false, 8, vec![Syncing, Synced]),
        (403, true, 8, vec![Syncing, Synced]),
        (403, false, 8, vec![Syncing, Synced]),
        (404, true, 60, vec![Syncing, Synced, Missing, Synced]),
        (404, false, 60, vec![Syncing, Synced, Missing]),
        (403, true, 60, vec![Syncing, Synced]),
        (403, false, 60, vec![Syncing, Synced, Missing]),
    ] {
        let client = refusing_until(Duration::from_secs(10 + seconds), code);
        let store: Arc<Store<NamespaceKind>> = Arc::new(Store::new(true));
        let mut state = store.watch_state();
        let running = run(client, store, Selection::ALL, WatchHealth::default(), retry);
        let mut states = vec![*state.borrow_and_update()];
        let noted = async {
            while state.changed().await.is_ok() {
                let state = *state.borrow_and_update();
                if states.last() != Some(&state) {
                    states.push(state);
                }
            }
        };
        let both = async { tokio::join!(running, noted) };
        assert!(tokio::time::timeout(Duration::from_mins(2), both).await.is_err(), "it never ends");
        assert_eq!(states, expected, "{code} {retry} {seconds}");
    }
}
