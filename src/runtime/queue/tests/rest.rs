//! The state that a queue keeps of objects at rest.

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
        // It waits, and has no other state.
        (Action::RequeueAfter(Duration::from_secs(1)), vec![false]),
        // Only its number of failures is kept.
        (Action::Retry(Duration::ZERO), vec![false]),
        (Action::AwaitChange, vec![]),
    ] {
        queue.add(key("a"), Priority::Change);
        let job = queue.next().await.expect("open");
        queue.done(job, next);
        assert_eq!(entries(&queue), expected, "{next:?}");
    }
    // The time of a limited addition is kept as long as it matters.
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

#[tokio::test(start_paused = true)]
async fn a_change_of_the_spec_resets_the_backoff() {
    let queue = queue();
    queue.add(key("a"), Priority::Change);
    for failures in 0..9 {
        let job = take(&queue).await;
        assert_eq!(job.failures, failures);
        queue.done(job, Action::Retry(Duration::ZERO));
    }
    // The object is corrected, and its reconcile fails once more.
    queue.reset_failures(&key("a"));
    queue.add(key("a"), Priority::Change);
    let job = take(&queue).await;
    assert_eq!(job.failures, 0);
    queue.done(job, Action::Retry(Duration::ZERO));
    let begin = Instant::now();
    let job = take(&queue).await;
    assert!(begin.elapsed() <= Duration::from_secs(1), "{:?}", begin.elapsed());
    queue.done(job, Action::AwaitChange);
    queue.reset_failures(&key("unknown"));
    assert!(queue.inner.lock().entries.is_empty());
}
