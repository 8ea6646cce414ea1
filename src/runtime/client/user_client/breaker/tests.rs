use std::sync::atomic::AtomicUsize;

use tokio::task::JoinHandle;

use super::*;
use crate::api::instance::InstanceKind;
use crate::runtime::ObjectKey;
use crate::runtime::plan::KindInfo;
use crate::runtime::silent::SilentServer;

const SECOND: Duration = Duration::from_secs(1);

/// A breaker whose API server answers probes, or hangs.
struct World {
    breaker: Breaker,
    answers: Arc<AtomicBool>,
    is_watched: Arc<AtomicBool>,
    probes: Arc<AtomicUsize>,
    watch: JoinHandle<()>,
}

impl World {
    fn start(answers: bool, is_watched: bool) -> Self {
        let breaker = Breaker::default();
        let [answers, is_watched] = [answers, is_watched].map(|value| Arc::new(AtomicBool::new(value)));
        let probes = Arc::<AtomicUsize>::default();
        let (of_watch, open, replies, sent) =
            (breaker.clone(), Arc::clone(&is_watched), Arc::clone(&answers), Arc::clone(&probes));
        let watch = tokio::spawn(async move {
            let probe = || {
                sent.fetch_add(1, Ordering::Relaxed);
                let replies = Arc::clone(&replies);
                async move {
                    while !replies.load(Ordering::Relaxed) {
                        sleep(Duration::from_millis(10)).await;
                    }
                    true
                }
            };
            of_watch.watch(|| open.load(Ordering::Relaxed), probe).await;
        });
        Self { breaker, answers, is_watched, probes, watch }
    }

    /// Sends a request that takes this long.
    async fn send(&self, effect: Effect, takes: Duration) -> (Result<(), ApiError>, Duration) {
        let begin = Instant::now();
        let request = Box::pin(async {
            sleep(takes).await;
            Ok(())
        });
        (self.breaker.pass(effect, request).await, begin.elapsed())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn probes_are_sent_only_while_pages_are_open_or_requests_are_slow() {
    let world = World::start(true, false);
    let sent = || world.probes.swap(0, Ordering::Relaxed);
    sleep(SECOND * 60).await;
    assert_eq!(sent(), 0, "no page is open");
    assert_eq!(world.send(Effect::Read, SECOND / 2).await, (Ok(()), SECOND / 2));
    sleep(SECOND * 60).await;
    assert_eq!(sent(), 0, "the request was quick");
    assert_eq!(world.send(Effect::Read, SECOND * 5).await, (Ok(()), SECOND * 5));
    sleep(SECOND * 60).await;
    assert!((1..=3).contains(&sent()), "the request was slow");
    world.is_watched.store(true, Ordering::Relaxed);
    sleep(SECOND * 60).await;
    assert!((29..=30).contains(&sent()), "one every two seconds");
}

#[tokio::test(start_paused = true)]
async fn requests_fail_within_eight_seconds_after_the_first_one_that_waits_and_then_at_once() {
    let world = World::start(false, false);
    let hours = SECOND * 3_600;
    let ((read, time), (write, _)) =
        tokio::join!(world.send(Effect::Read, hours), world.send(Effect::Write, hours));
    assert_eq!(read, Err(ApiError::Silent), "a read has changed nothing");
    assert_eq!(write, Err(ApiError::transient(UNCONFIRMED)), "a write that was sent may be done");
    assert!(time <= SECOND * 8, "{time:?}");
    for effect in [Effect::Read, Effect::Write] {
        assert_eq!(world.send(effect, SECOND).await, (Err(ApiError::Silent), Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn open_pages_learn_of_a_silence_within_seven_seconds_and_of_its_end_within_three() {
    let world = World::start(true, true);
    let mut silence = world.breaker.silence();
    sleep(SECOND * 60).await;
    assert!(!silence.is_now());
    for (answers, limit) in [(false, 7), (true, 3)] {
        world.answers.store(answers, Ordering::Relaxed);
        let begin = Instant::now();
        silence.becomes(!answers).await;
        assert!(begin.elapsed() <= SECOND * limit, "{answers}: {:?}", begin.elapsed());
    }
    assert_eq!(world.send(Effect::Write, SECOND).await.0, Ok(()));
    // The end is noticed also when the last page is closed.
    world.answers.store(false, Ordering::Relaxed);
    silence.becomes(true).await;
    world.is_watched.store(false, Ordering::Relaxed);
    world.answers.store(true, Ordering::Relaxed);
    silence.becomes(false).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_any_request_shows_that_the_api_server_is_not_silent() {
    let world = World::start(false, true);
    let silence = world.breaker.silence();
    for _ in 0..60 {
        assert_eq!(world.send(Effect::Read, SECOND / 2).await.0, Ok(()));
        assert!(!silence.is_now());
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_at_once_is_repeated() {
    let breaker = Breaker::default();
    let sent = Arc::<AtomicUsize>::default();
    let (of_watch, count) = (breaker.clone(), Arc::clone(&sent));
    let watch = tokio::spawn(async move {
        // Every third attempt succeeds.
        let probe = || std::future::ready((count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(3));
        of_watch.watch(|| true, probe).await;
    });
    sleep(SECOND * 60).await;
    assert!(!breaker.silence().is_now());
    assert!(sent.load(Ordering::Relaxed) > 30);
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn a_client_of_a_silent_api_server_answers_at_once_after_the_first_timeout() {
    let server = SilentServer::start();
    let client = UserClient::new(&server.config()).expect("a client");
    let watch = tokio::spawn({
        let client = client.clone();
        async move { client.watch_silence(|| false).await }
    });
    let user = Credential::token("token").expect("a token");
    let key = ObjectKey::new("ns", "vm");
    let times = async |limit: Duration| {
        let begin = Instant::now();
        assert_eq!(client.get::<InstanceKind>(&user, &key).await.map(drop), Err(ApiError::Silent));
        assert_eq!(client.list::<InstanceKind>(&user, "ns", "").await.map(drop), Err(ApiError::Silent));
        assert_eq!(client.name(&user).await, Err(ApiError::Silent));
        assert!(begin.elapsed() <= limit, "{:?}", begin.elapsed());
    };
    times(SECOND * 8).await;
    times(Duration::ZERO).await;
    assert_eq!(
        client.delete_as(&user, KindInfo::of::<InstanceKind>(), &key, "u1").await,
        Err(ApiError::Silent)
    );
    watch.abort();
}
