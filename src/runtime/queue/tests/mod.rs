use std::sync::Arc;

use super::*;

mod rest;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

fn queue() -> Queue {
    let backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };
    Queue { backoff, ..Queue::new("test") }
}

async fn take(queue: &Queue) -> Job {
    queue.next().await.expect("the queue is open")
}

/// Whether no object is ready now. Time is paused, so waiting would advance it.
fn is_idle(queue: &Queue) -> bool {
    use futures::FutureExt;
    queue.next().now_or_never().is_none()
}

#[tokio::test(start_paused = true)]
async fn an_object_is_queued_once_and_reconciled_by_one_worker() {
    let queue = queue();
    queue.add(key("a"), Priority::Change);
    queue.add(key("a"), Priority::Change);
    let job = take(&queue).await;
    assert!(is_idle(&queue), "queued twice");
    queue.add(key("a"), Priority::Change);
    assert!(is_idle(&queue), "reconciled by two workers");
    queue.done(job, Action::AwaitChange);
    let again = take(&queue).await;
    assert_eq!(again.key, key("a"), "a change during the reconcile is not lost");
    queue.done(again, Action::AwaitChange);
    assert!(is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn changes_go_first_and_the_background_does_not_starve() {
    let queue = queue();
    queue.add(key("slow"), Priority::Background);
    for n in 0..20 {
        queue.add(key(&format!("fast-{n:02}")), Priority::Change);
    }
    let mut order = Vec::new();
    for _ in 0..21 {
        let job = take(&queue).await;
        order.push(job.key.name.clone());
        queue.done(job, Action::AwaitChange);
    }
    let place = order.iter().position(|name| name == "slow").expect("it was taken");
    assert_eq!(place, 8, "{order:?}");
    let fast: Vec<_> = order.iter().filter(|name| *name != "slow").collect();
    assert!(fast.is_sorted(), "first come, first served: {order:?}");
}

#[tokio::test(start_paused = true)]
async fn objects_queued_before_the_workers_start_do_not_precede_a_change() {
    let queue = queue();
    for n in 0..2000 {
        queue.add(key(&format!("listed-{n:04}")), Priority::Change);
    }
    queue.demote();
    queue.add(key("listed-1999"), Priority::Change);
    queue.add(key("login"), Priority::Change);
    let mut order = Vec::new();
    for _ in 0..2001 {
        let job = take(&queue).await;
        order.push(job.key.name.to_string());
        queue.done(job, Action::AwaitChange);
    }
    assert_eq!(order[..3], ["listed-1999", "login", "listed-0000"]);
    assert!(order[2..].is_sorted() && is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn a_change_raises_the_priority_of_a_queued_object() {
    let queue = queue();
    queue.add(key("a"), Priority::Background);
    queue.add(key("b"), Priority::Change);
    queue.add(key("a"), Priority::Change);
    assert_eq!(take(&queue).await.key, key("b"));
    assert_eq!(take(&queue).await.key, key("a"));
    assert!(is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_up_to_the_cap_and_are_reset_by_a_success() {
    let queue = queue();
    queue.add(key("a"), Priority::Change);
    let mut waits = Vec::new();
    for _ in 0..10 {
        let begin = Instant::now();
        let job = take(&queue).await;
        waits.push(begin.elapsed().as_secs_f64());
        queue.done(job, Action::Retry(Duration::ZERO));
    }
    assert!(waits[0] == 0.0, "{waits:?}");
    for (failures, wait) in waits.iter().enumerate().skip(1) {
        let whole = f64::from(1 << (failures - 1)).min(60.0);
        // The timer has a resolution of a millisecond.
        assert!(*wait >= whole / 2.0 && *wait <= whole + 0.002, "after {failures} failures: {wait} s");
    }
    let job = take(&queue).await;
    queue.done(job, Action::AwaitChange);
    queue.add(key("a"), Priority::Change);
    assert_eq!(take(&queue).await.failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_ends_a_backoff() {
    let queue = queue();
    queue.add(key("a"), Priority::Change);
    let job = take(&queue).await;
    queue.done(job, Action::Retry(Duration::ZERO));
    assert!(is_idle(&queue));
    let begin = Instant::now();
    queue.add(key("a"), Priority::Change);
    let job = take(&queue).await;
    assert_eq!((begin.elapsed(), job.failures), (Duration::ZERO, 1));
    queue.done(job, Action::RequeueAfter(Duration::from_secs(5)));
    let job = take(&queue).await;
    assert!(begin.elapsed() >= Duration::from_secs(5));
    queue.done(job, Action::AwaitChange);
    assert!(is_idle(&queue), "the old retry is cancelled");
}

#[tokio::test(start_paused = true)]
async fn retries_of_objects_that_fail_together_are_spread() {
    let queue = queue();
    for n in 0..100 {
        queue.add(key(&format!("{n}")), Priority::Change);
    }
    for _ in 0..100 {
        let job = take(&queue).await;
        queue.done(job, Action::Retry(Duration::ZERO));
    }
    let begin = Instant::now();
    let mut first_half = 0;
    for _ in 0..100 {
        let job = take(&queue).await;
        if begin.elapsed() < Duration::from_millis(750) {
            first_half += 1;
        }
        queue.done(job, Action::AwaitChange);
    }
    // Uniform over half a second: about half of them by the middle.
    assert!((30..=70).contains(&first_half), "{first_half} of 100 in the first half");
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_wakes_its_workers() {
    let queue = Arc::new(queue());
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.next().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.close();
    for worker in workers {
        assert!(worker.await.expect("no panic"));
    }
}

#[tokio::test]
async fn every_object_is_worked_on_with_many_workers() {
    let queue = Arc::new(queue());
    for n in 0..1000 {
        queue.add(key(&format!("{n}")), Priority::Change);
    }
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while let Some(job) = queue.next().await {
                    seen.push(job.key.clone());
                    queue.done(job, Action::Forget);
                    tokio::task::yield_now().await;
                }
                seen
            })
        })
        .collect();
    while !queue.inner.lock().entries.is_empty() {
        tokio::task::yield_now().await;
    }
    queue.close();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.expect("no panic"));
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn a_limited_add_counts_once_a_second_and_never_before_a_retry() {
    let queue = queue();
    let mut turns = Vec::new();
    let begin = Instant::now();
    let reported = async {
        for _ in 0..500 {
            queue.add_limited(key("a"));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let worked = async {
        while turns.len() < 6 {
            let job = take(&queue).await;
            turns.push(begin.elapsed());
            // The reconcile takes a while, and further additions arrive during it.
            tokio::time::sleep(Duration::from_millis(15)).await;
            queue.done(job, Action::AwaitChange);
        }
    };
    tokio::join!(reported, worked);
    assert!(turns.windows(2).all(|turn| turn[1] >= turn[0] + Duration::from_secs(1)), "{turns:?}");
    assert!(
        *turns.last().expect("a turn") >= Duration::from_millis(4_990),
        "the last addition counts: {turns:?}"
    );
    // A change of the object itself has precedence, and a retry keeps its backoff.
    queue.add(key("b"), Priority::Change);
    let job = take(&queue).await;
    queue.add_limited(key("b"));
    queue.done(job, Action::Retry(Duration::ZERO));
    queue.add_limited(key("b"));
    assert!(is_idle(&queue), "the backoff lasts");
    let failed = Instant::now();
    let retry = take(&queue).await;
    assert!(retry.key == key("b") && failed.elapsed() >= Duration::from_millis(500));
    queue.done(retry, Action::AwaitChange);
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_at_least_as_long_as_the_api_server_asks() {
    let queue = queue();
    for (asked, least, most) in [(0, 0, 1), (20, 20, 20), (100_000, 60, 60)] {
        queue.add(key("a"), Priority::Change);
        let job = take(&queue).await;
        queue.done(job, Action::Retry(Duration::from_secs(asked)));
        let begin = Instant::now();
        if asked > 0 {
            // A change does not shorten the wait, and is not lost.
            queue.add(key("a"), Priority::Change);
        }
        let job = take(&queue).await;
        let waited = begin.elapsed().as_secs();
        assert!((least..=most).contains(&waited), "{asked} s asked, {waited} s waited");
        queue.done(job, Action::AwaitChange);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limited_add_depends_on_the_reconciles_it_has_caused() {
    let queue = queue();
    let pause = LIMITED_PAUSE;
    // A waiting change is sufficient, and does not start a pause.
    queue.add(key("a"), Priority::Change);
    queue.add_limited(key("a"));
    queue.done(take(&queue).await, Action::AwaitChange);
    assert!(is_idle(&queue));
    queue.add_limited(key("a"));
    queue.done(take(&queue).await, Action::RequeueAfter(Duration::from_hours(1)));
    // From now on, limited additions lead to one reconcile each second, not only at the next periodic one.
    for _ in 0..3 {
        let begin = Instant::now();
        queue.add_limited(key("a"));
        queue.add_limited(key("a"));
        assert!(is_idle(&queue));
        let job = take(&queue).await;
        assert!((pause / 2..=pause).contains(&begin.elapsed()), "{:?}", begin.elapsed());
        queue.done(job, Action::RequeueAfter(Duration::from_hours(1)));
    }
    // A limited addition never precedes a retry.
    queue.add(key("b"), Priority::Change);
    queue.done(take(&queue).await, Action::Retry(Duration::from_secs(30)));
    let begin = Instant::now();
    queue.add_limited(key("b"));
    let job = loop {
        let job = take(&queue).await;
        if job.key == key("b") {
            break job;
        }
        queue.done(job, Action::AwaitChange);
    };
    assert_eq!(begin.elapsed(), Duration::from_secs(30));
    queue.done(job, Action::AwaitChange);
}

#[tokio::test(start_paused = true)]
async fn a_limited_add_does_not_shorten_a_backoff() {
    let queue = queue();
    queue.add(key("a"), Priority::Change);
    queue.done(take(&queue).await, Action::Retry(Duration::ZERO));
    let begin = Instant::now();
    queue.add_limited(key("a"));
    let job = take(&queue).await;
    assert!(begin.elapsed() >= Duration::from_millis(500), "{:?}", begin.elapsed());
    queue.done(job, Action::AwaitChange);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_added_again_keeps_its_place_and_its_priority() {
    let queue = queue();
    for (name, priority) in [
        ("a", Priority::Change),
        ("b", Priority::Change),
        ("a", Priority::Change),
        ("a", Priority::Background),
        ("c", Priority::Background),
        ("d", Priority::Background),
        ("c", Priority::Background),
    ] {
        queue.add(key(name), priority);
    }
    let mut order = Vec::new();
    while queue.waiting() > 0 {
        let job = take(&queue).await;
        order.push(job.key.name.to_string());
        queue.done(job, Action::AwaitChange);
    }
    assert_eq!(order, ["a", "b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_due_at_the_same_time_are_all_returned() {
    let queue = queue();
    let names = ["a", "b", "c"];
    for name in names {
        queue.add(key(name), Priority::Change);
    }
    let mut jobs = Vec::new();
    for _ in names {
        jobs.push(take(&queue).await);
    }
    for job in jobs {
        queue.done(job, Action::RequeueAfter(Duration::from_secs(5)));
    }
    let mut came = Vec::new();
    for _ in names {
        let job = take(&queue).await;
        came.push(job.key.name.to_string());
        queue.done(job, Action::AwaitChange);
    }
    assert_eq!(came, names);
}

#[test]
fn a_periodic_reconcile_comes_between_its_bounds() {
    let bounds = (Duration::from_secs(100), Duration::from_secs(200));
    let after = |name: &str, sooner| match resync(&key(name), bounds, sooner) {
        Action::RequeueAfter(after) => after,
        other => panic!("{other:?}"),
    };
    let times: Vec<Duration> = (0..200).map(|n| after(&n.to_string(), None)).collect();
    assert!(times.iter().all(|time| (bounds.0..bounds.1).contains(time)), "{times:?}");
    let (least, most) = (times.iter().min().expect("some"), times.iter().max().expect("some"));
    assert!(*least < Duration::from_secs(110) && *most > Duration::from_secs(190), "{least:?} to {most:?}");
    assert_eq!(after("a", Some(Duration::from_secs(7))), Duration::from_secs(7));
    assert_eq!(after("a", Some(Duration::from_hours(7))), after("a", None));
}

#[test]
fn the_time_of_running_reconciles_is_measured() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let queue = queue();
            for name in ["a", "b"] {
                queue.add(key(name), Priority::Change);
                let _ = take(&queue).await;
                tokio::time::advance(Duration::from_secs(3)).await;
            }
            queue.measure();
        });
    });
    let text = handle.render();
    for (metric, value) in
        [("workqueue_unfinished_work_seconds", 9), ("workqueue_longest_running_processor_seconds", 6)]
    {
        let line = format!("{metric}{{name=\"test\",controller=\"test\"}} {value}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
}
