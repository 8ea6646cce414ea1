//! The health of the watches: how long the API server has not responded to a watch, or has shown nothing, and why.

use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use super::readiness::Readiness;

/// A watch that has been broken for this long is reported.
const REPORTED_AFTER: Duration = Duration::from_mins(1);
/// A watch that has shown nothing for this long is silent: the API server sends a bookmark each minute, and ends every
/// watch after 290 s, as `kube` requests; 5 s later, `kube` abandons it and starts another.
const SILENT_AFTER: Duration = Duration::from_mins(5);
/// The time between two checks.
const PERIOD: Duration = Duration::from_secs(5);

/// The health of one watch. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct WatchHealth {
    state: Arc<Mutex<State>>,
    interruptions: Interruptions,
}

/// Signals that a watch has ended before its time. The API server ends the watches of a kind when its CRD changes. Clones
/// share it.
#[derive(Debug, Clone, Default)]
pub struct Interruptions(Arc<watch::Sender<()>>);

impl Interruptions {
    /// Becomes changed at each interruption from now on.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

#[derive(Debug, Default)]
struct State {
    /// The time of the first request since the last success.
    broken_since: Option<Instant>,
    /// The error of the last request.
    reason: Option<String>,
    /// The last time the API server showed something: a list, an event, a bookmark, or the end of a watch.
    heard: Option<Instant>,
}

impl WatchHealth {
    /// Creates the health of a watch that signals its interruptions to `interruptions`.
    pub fn signalling(interruptions: &Interruptions) -> Self {
        Self { state: Arc::default(), interruptions: interruptions.clone() }
    }

    /// Records that the watch has ended before its time.
    pub fn was_interrupted(&self) {
        self.interruptions.0.send_replace(());
    }

    /// Records that a request was sent.
    pub fn asks(&self) {
        self.state.lock().broken_since.get_or_insert_with(Instant::now);
    }

    /// Records that the kind is not served, so no events are expected.
    pub fn rests(&self) {
        *self.state.lock() = State::default();
    }

    /// Records a successful response.
    pub fn works(&self) {
        let mut state = self.state.lock();
        (state.broken_since, state.reason) = (None, None);
    }

    /// Records that the API server has shown something.
    pub fn hears(&self) {
        self.state.lock().heard = Some(Instant::now());
    }

    /// Records that the watch was interrupted, or could not begin.
    pub fn broke(&self, reason: &str) {
        let mut state = self.state.lock();
        state.broken_since.get_or_insert_with(Instant::now);
        state.reason = Some(reason.to_owned());
    }

    /// Returns how long the store has not followed the cluster, and why; `None` while it does.
    pub fn broken(&self) -> Option<(Duration, String)> {
        let state = self.state.lock();
        let silence = state.heard.map(|heard| heard.elapsed()).filter(|silence| *silence >= SILENT_AFTER);
        let Some(since) = state.broken_since else {
            let reason = "the API server keeps the watch open but sends nothing";
            return silence.map(|silence| (silence, reason.to_owned()));
        };
        let reason = state.reason.clone().unwrap_or_else(|| "the API server does not answer".to_owned());
        Some((silence.unwrap_or_default().max(since.elapsed()), reason))
    }
}

/// Reports broken watches in the metric `store_staleness_seconds`, in the readiness, and in the log. Each watch has the
/// plural name of its kind; if there are several watches of one kind, the worst counts. Never returns.
pub async fn report(watches: Vec<(&'static str, WatchHealth)>, readiness: Readiness) {
    let mut kinds: Vec<&'static str> = watches.iter().map(|(kind, _)| *kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kinds = kinds.into_iter().map(|kind| (kind, gauge!("store_staleness_seconds", "kind" => kind)));
    let kinds: Vec<_> = kinds.collect();
    let mut tick = tokio::time::interval(PERIOD);
    loop {
        tick.tick().await;
        for (kind, gauge) in &kinds {
            let of_kind = watches.iter().filter(|(other, _)| other == kind);
            let worst = of_kind.filter_map(|(_, health)| health.broken()).max();
            let stale = worst.as_ref().map_or(Duration::ZERO, |(stale, _)| *stale);
            gauge.set(stale.as_secs_f64());
            let broken = worst.filter(|(stale, _)| *stale >= REPORTED_AFTER);
            let sentence = broken.as_ref().map(|(stale, reason)| {
                format!("broken for {} s, cached objects may be stale: {reason}", stale.as_secs())
            });
            let was_broken = readiness.set_watch(kind, sentence);
            match broken {
                Some((stale, reason)) if !was_broken => {
                    let seconds = stale.as_secs();
                    warn!(kind, seconds, reason, "the watch is broken: cached objects may be stale");
                }
                None if was_broken => info!(kind, "the watch works again"),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_broken_from_its_first_request_without_a_response() {
        let health = WatchHealth::default();
        assert_eq!(health.broken(), None);
        health.asks();
        let (first, reason) = health.broken().expect("no response yet");
        assert_eq!(reason, "the API server does not answer");
        health.broke("forbidden");
        health.asks();
        let (second, reason) = health.broken().expect("still no response");
        assert!(second >= first && reason == "forbidden", "{reason}");
        health.works();
        assert_eq!(health.broken(), None);
    }

    #[test]
    fn an_interruption_of_any_watch_is_signalled() {
        let interruptions = Interruptions::default();
        let signal = interruptions.subscribe();
        let health = WatchHealth::signalling(&interruptions);
        let is_signalled = || signal.has_changed().expect("the sender lives");
        health.broke("forbidden");
        assert!(!is_signalled(), "a request failed");
        health.clone().was_interrupted();
        assert!(is_signalled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_broken_if_it_is_silent_for_longer_than_any_watch_lasts() {
        let health = WatchHealth::default();
        health.works();
        tokio::time::advance(SILENT_AFTER).await;
        assert_eq!(health.broken(), None, "nothing was shown yet: the first list is pending");
        health.hears();
        tokio::time::advance(Duration::from_secs(SILENT_AFTER.as_secs() - 1)).await;
        assert_eq!(health.broken(), None);
        // A restarted watch that is silent again is still silent.
        health.asks();
        health.works();
        tokio::time::advance(Duration::from_secs(1)).await;
        let (silence, reason) = health.broken().expect("it is silent");
        assert_eq!(silence, SILENT_AFTER);
        assert!(reason.contains("sends nothing"), "{reason}");
        health.hears();
        assert_eq!(health.broken(), None);
        // A kind whose CRD has been removed is not silent.
        tokio::time::advance(SILENT_AFTER).await;
        health.rests();
        assert_eq!(health.broken(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_stays_broken_is_reported_until_it_works_again() {
        let (one, other, fine) = (WatchHealth::default(), WatchHealth::default(), WatchHealth::default());
        let readiness = Readiness::default();
        readiness.complete();
        let watches = vec![("pods", one.clone()), ("pods", other.clone()), ("nodes", fine)];
        let log = tempfile::NamedTempFile::new().expect("a file");
        let written = log.reopen().expect("the same file");
        // Only for this thread, which runs the whole test.
        let _guard = tracing::subscriber::set_default(
            tracing_subscriber::fmt().with_ansi(false).with_writer(Arc::new(written)).finish(),
        );
        let logged = || {
            let text = std::fs::read_to_string(log.path()).expect("the log");
            ["the watch is broken", "the watch works again"].map(|line| text.matches(line).count())
        };
        let task = tokio::spawn(report(watches, readiness.clone()));
        let line = async |seconds: u64| {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            readiness.report().1.lines().next().unwrap_or_default().to_owned()
        };
        other.asks();
        tokio::time::sleep(Duration::from_secs(10)).await;
        one.asks();
        one.broke("no answer");
        other.broke("refused");
        assert_eq!(line(30).await, "ready");
        assert_eq!(logged(), [0, 0]);
        let said = line(30).await;
        assert!(said.starts_with("[!] watch of pods: broken for ") && said.ends_with(": refused"), "{said}");
        other.works();
        let said = line(10).await;
        assert!(
            said.starts_with("[!] watch of pods: broken for ") && said.ends_with(": no answer"),
            "{said}"
        );
        assert_eq!(logged(), [1, 0], "once");
        one.works();
        assert_eq!(line(10).await, "ready");
        assert_eq!(logged(), [1, 1]);
        one.broke("no answer");
        assert_ne!(line(70).await, "ready");
        one.works();
        assert_eq!(line(70).await, "ready");
        assert_eq!(logged(), [2, 2]);
        task.abort();
    }
}
