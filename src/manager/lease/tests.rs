//! What a standby makes of the events about the lease.

use kube::Config;

use super::*;

fn election() -> Election {
    let client =
        Client::try_from(Config::new("http://127.0.0.1:1".parse().expect("a URL"))).expect("a client");
    Election::new(client, LeaderElection::default(), "me".to_owned(), Gate::closed())
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
    // Rounded up: it has just begun.
    (observed.free_at + Duration::from_millis(999)).saturating_duration_since(Instant::now()).as_secs()
}

#[tokio::test]
async fn what_was_seen_ends_with_a_list_without_it() {
    let election = election();
    let mut observed = Observed::new();
    let see = |observed: &mut Observed, event| election.observe_event(observed, Some(Ok(event)));
    see(&mut observed, Event::Init);
    assert_eq!(observed.is_listed, None, "nothing is known before the first list");
    see(&mut observed, Event::InitApply(lease("other")));
    see(&mut observed, Event::InitDone);
    assert_eq!((left(&observed), observed.lease.is_some()), (15, true));
    // A list that has it changes nothing.
    see(&mut observed, Event::Init);
    see(&mut observed, Event::InitApply(lease("other")));
    see(&mut observed, Event::InitDone);
    assert!(observed.lease.is_some());
    // One without it clears what was seen; its holder may still lead for as long as it promised.
    see(&mut observed, Event::Init);
    see(&mut observed, Event::InitDone);
    assert_eq!((left(&observed), observed.lease.is_none()), (15, true));
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
