//! What a queue keeps of objects that need nothing now.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_object_at_rest_needs_no_memory() {
    let queue = queue();
    let entries = |queue: &Queue| {
        let inner = queue.inner.lock();
        inner.entries.values().map(|entry| entry.work.is_some()).collect::<Vec<_>>()
    };
    for (next, expected) in [
        (Action::AwaitChange, vec![]),
        (Action::Forget, vec![]),
        // It waits, and nothing else is known of it.
        (Action::RequeueAfter(Duration::from_secs(1)), vec![false]),
        // Its failure counts.
        (Action::Retry(Duration::ZERO), vec![false]),
        (Action::AwaitChange, vec![]),
    ] {
        queue.add(key("a"), Priority::Change);
        let job = queue.next().await.expect("open");
        queue.done(job, next);
        assert_eq!(entries(&queue), expected, "{next:?}");
    }
    // How often a user may change it is remembered as long as it matters.
    queue.add_limited(key("a"));
    let job = queue.next().await.expect("open");
    queue.done(job, Action::AwaitChange);
    assert_eq!(entries(&queue), [true]);
    tokio::time::advance(LIMITED_PAUSE).await;
    queue.add(key("a"), Priority::Change);
    let job = queue.next().await.expect("open");
    queue.done(job, Action::AwaitChange);
    assert!(entries(&queue).is_empty());
}
