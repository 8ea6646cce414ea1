//! The reaction of a standby to events about the lease, and requests that hang or are rejected.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use super::*;
use crate::runtime::readiness::LoopState;
use crate::runtime::silent::SilentServer;

fn config() -> Config {
    Config { selector: [("a".to_owned(), "b".to_owned())].into(), ..Config::default() }
}

fn election() -> Election {
    let client =
        Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"))).expect("a client");
    Election::new(client, &config(), "me".to_owned(), Gate::closed(), Readiness::default())
}

fn lease(holder: &str) -> Lease {
    let spec = LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(15),
        ..LeaseSpec::default()
    };
    Lease { metadata: ObjectMeta::default(), spec: Some(spec) }
}

fn left(observed: &Observed) -> u64 {
    // Rounded up, because the time has just begun.
    (observed.free_at + Duration::from_millis(999)).saturating_duration_since(Instant::now()).as_secs()
}

#[tokio::test]
async fn a_list_without_the_lease_clears_the_observed_lease() {
    let election = election();
    let mut observed = Observed::new();
    let see = |observed: &mut Observed, event| election.observe_event(observed, Some(Ok(event)));
    see(&mut observed, Event::Init);
    assert_eq!(observed.is_listed, None, "nothing is known before the first list");
    see(&mut observed, Event::InitApply(lease("other")));
    see(&mut observed, Event::InitDone);
    assert_eq!((left(&observed), observed.lease.is_some()), (15, true));
    // A list that contains the lease changes nothing.
    see(&mut observed, Event::Init);
    see(&mut observed, Event::InitApply(lease("other")));
    see(&mut observed, Event::InitDone);
    assert!(observed.lease.is_some());
    // A list without the lease clears it. Its holder may still lead until the promised deadline.
    see(&mut observed, Event::Init);
    see(&mut observed, Event::InitDone);
    assert_eq!((left(&observed), observed.lease.is_none()), (15, true));
}

#[tokio::test]
async fn a_standby_says_what_it_waits_for() {
    let election = election();
    let lease_name = "Lease crownlabs-system/crownlabs-controller-manager";
    let missing = format!("waiting to lead: the {lease_name} does not exist yet");
    assert_eq!(election.awaited(None), missing);
    let free = format!("waiting to lead: no replica holds the {lease_name}");
    assert_eq!(election.awaited(Some(&lease(""))), free);
    assert_eq!(election.awaited(Some(&lease("me"))), free);
    assert_eq!(election.awaited(Some(&lease("other"))), "the replica other leads");
    election.readiness.set("instance", LoopState::Standby);
    let mut observed = Observed::new();
    for (lease, expected) in [(None, &*missing), (Some(lease("other")), "the replica other leads")] {
        election.observe(&mut observed, lease);
        let (_, text) = election.readiness.report();
        assert!(text.contains(&format!("[+] instance: standby: {expected}\n")), "{text}");
    }
}

#[tokio::test]
async fn a_refused_lease_is_in_the_readiness_until_a_request_succeeds() {
    let refusal = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
        "reason": "Forbidden", "message": "leases is forbidden",
    });
    let (election, _) = election_over(move |_, _| Some((403, refusal.clone())));
    let mut observed = Observed::new();
    election.read(&mut observed).await;
    assert!(election.acquire(None).await.is_none());
    let (_, text) = election.readiness.report();
    for name in [READS, WRITES] {
        let line = format!(
            "[!] {name}: this replica cannot lead, because the API server refuses access to the Lease \
             crownlabs-system/crownlabs-controller-manager: leases is forbidden; create the Role"
        );
        assert!(text.contains(&line), "{text}");
    }
    election.observe(&mut observed, Some(lease("other")));
    let (_, text) = election.readiness.report();
    let is_reported = |name: &str| text.contains(&format!("[!] {name}: "));
    assert!(!is_reported(READS) && is_reported(WRITES), "{text}");
}

#[tokio::test]
async fn a_lease_is_free_when_it_is_released_and_not_when_it_vanishes() {
    let election = election();
    let renew_deadline = Duration::from(LeaderElection::default().renew_deadline).as_secs();
    for (events, wanted) in [
        (vec![None], renew_deadline),
        (vec![Some("")], 0),
        (vec![Some("me")], 0),
        (vec![Some("other")], 15),
        (vec![Some("other"), None], 15),
        (vec![Some("other"), Some("")], 0),
        (vec![Some("other"), Some(""), None], 0),
    ] {
        let mut observed = Observed::new();
        for holder in &events {
            election.observe(&mut observed, holder.map(lease));
        }
        assert_eq!(left(&observed), wanted, "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_about_the_lease_that_hangs_costs_half_of_the_renew_deadline() {
    let server = SilentServer::start();
    let client = Client::try_from(server.config()).expect("a client");
    let half = Duration::from(config().leader_election.renew_deadline) / 2;
    let election = Election::new(client, &config(), "me".to_owned(), Gate::closed(), Readiness::default());
    let mut observed = Observed::new();
    let begin = tokio::time::Instant::now();
    let error = election.put(&lease("me"), LeaseSpec::default()).await.expect_err("there is no answer");
    assert!(matches!(error, LeaseError::Silent(limit) if limit == half), "{error}");
    assert_eq!(begin.elapsed().as_secs(), half.as_secs());
    election.read(&mut observed).await;
    assert_eq!(begin.elapsed().as_secs(), 2 * half.as_secs());
    assert!(server.was_asked() && !observed.is_known);
}

/// The requests that were sent: the method, the last part of the path, and the time in seconds.
type Log = Arc<Mutex<Vec<(Method, String, u64)>>>;

/// An election with an API server that answers according to `answer`, by method and last part of the path; `None` means
/// no answer.
fn election_over(answer: impl Fn(&Method, &str) -> Option<(u16, Value)> + Send + 'static) -> (Election, Log) {
    let (log, begin) = (Log::default(), tokio::time::Instant::now());
    let asked = Arc::clone(&log);
    let service = service_fn(move |request: Request<Body>| {
        let last = request.uri().to_string().rsplit('/').next().unwrap_or_default().to_owned();
        let method = request.method().clone();
        let answer = answer(&method, &last);
        asked.lock().expect("no panic").push((method, last, begin.elapsed().as_secs()));
        async move {
            let Some((code, body)) = answer else { return std::future::pending().await };
            let answer = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
            answer.map_err(BoxError::from)
        }
    });
    let client = Client::new(service, "default");
    (Election::new(client, &config(), "me".to_owned(), Gate::closed(), Readiness::default()), log)
}

/// The lease as stored in the API server.
fn stored(holder: &str) -> Value {
    let mut stored = serde_json::to_value(lease(holder)).expect("JSON");
    stored["metadata"] =
        json!({"name": LeaderElection::default().name, "namespace": "n", "resourceVersion": "7"});
    stored
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_is_tried_again() {
    let hangs = std::sync::atomic::AtomicBool::new(true);
    let (election, log) = election_over(move |method, _| {
        let answers = *method != Method::PUT || !hangs.swap(false, Ordering::SeqCst);
        answers.then(|| (200, stored("me")))
    });
    let config = LeaderElection::default();
    let [retry, deadline] =
        [config.retry_period, config.renew_deadline].map(|time| Duration::from(time).as_secs());
    let held = serde_json::from_value(stored("me")).expect("a Lease");
    let holds = tokio::time::timeout(Duration::from_secs(2 * deadline), election.hold(held)).await;
    assert!(holds.is_err(), "the lease is still held");
    let times: Vec<u64> = log.lock().expect("no panic").iter().map(|(_, _, at)| *at).collect();
    assert_eq!(times[..3], [retry, 2 * retry + deadline / 2, 3 * retry + deadline / 2]);
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_a_standby_reads_the_lease() {
    let (election, log) = election_over(|method, last| {
        if *method == Method::PUT {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "reason": "Conflict", "code": 409, "message": "the object has been modified",
            });
            return Some((409, status));
        }
        if last.contains("watch=true") {
            // The watch is stalled: it delivers nothing.
            return None;
        }
        let list = json!({
            "kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {"resourceVersion": "7"},
            "items": [stored("")],
        });
        // The lease was free when it was listed, but another replica has taken it since.
        Some((200, if last.starts_with("leases?") { list } else { stored("other") }))
    });
    let leads = tokio::time::timeout(Duration::from_secs(5), election.lead()).await;
    assert!(leads.is_err(), "the other replica leads");
    let log = log.lock().expect("no panic").clone();
    let steps: Vec<(&str, &str)> = log
        .iter()
        .filter(|(_, last, _)| !last.starts_with("leases?"))
        .map(|(method, last, _)| (method.as_str(), last.split('?').next().unwrap_or_default()))
        .collect();
    let name = LeaderElection::default().name;
    assert_eq!(steps, [("PUT", &*name), ("GET", &*name)], "{log:?}");
}

#[tokio::test]
async fn a_lease_is_read_often_while_its_watch_is_behind() {
    let renewals = std::sync::atomic::AtomicI32::new(0);
    let (election, _) = election_over(move |_, _| {
        let mut renewed = stored("other");
        renewed["spec"]["leaseTransitions"] = json!(renewals.fetch_add(1, Ordering::SeqCst));
        Some((200, renewed))
    });
    let retry = Duration::from(LeaderElection::default().retry_period);
    let mut observed = Observed::new();
    election.observe_event(&mut observed, Some(Ok(Event::Apply(lease("other")))));
    assert!(observed.patience(retry) > retry, "its holder renews it once in a retry period");
    election.read(&mut observed).await;
    assert_eq!(observed.patience(retry), retry / 2, "the watch had not delivered this");
    election.observe_event(&mut observed, None);
    assert_eq!(observed.patience(retry), retry / 2, "nothing came");
    election.observe_event(&mut observed, Some(Ok(Event::Apply(lease("other")))));
    assert!(observed.patience(retry) > retry, "the watch has caught up");
}
