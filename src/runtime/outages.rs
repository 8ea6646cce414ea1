//! The outages of systems outside the cluster: their start and their error.
//!
//! Clients record the results of their requests. An outage begins with the first failed request and ends with the first
//! successful one; both are logged once. `/readyz` has a line for each outage, and stays ready.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use metrics::gauge;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::warn;

use super::metrics::precise;

/// The name of the gauge with the number of failing servers of a system.
const METRIC: &str = "outside_systems_down";
/// The maximum number of failing servers of one system that are recorded: users choose the URLs of exam servers.
const MOST_SERVERS: usize = 64;
/// The time between two requests that check whether an outage is over.
const PAUSE: Duration = Duration::from_secs(30);
/// The maximum length of an error, in characters.
const LONGEST_ERROR: usize = 500;

/// A system outside the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// Keycloak's admin API.
    Keycloak,
    /// The metrics that show the use of Instances.
    Prometheus,
    /// The `OpenID` Connect provider of the dashboard.
    Issuer,
    /// The mail server.
    Mail,
    /// A container registry of the image lists.
    Registry,
    /// A server with the status URLs of exams.
    ExamServer,
}

impl System {
    /// All systems.
    const ALL: [Self; 6] =
        [Self::Keycloak, Self::Prometheus, Self::Issuer, Self::Mail, Self::Registry, Self::ExamServer];

    /// The display name, the value of the label `system` of metrics, and the effect of an outage.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Keycloak => ("Keycloak", "keycloak", "accounts and roles wait"),
            Self::Prometheus => ("Prometheus", "prometheus", "no Instance is stopped for inactivity"),
            Self::Issuer => ("issuer", "issuer", "logins at the dashboard fail"),
            Self::Mail => ("mail server", "mail", "mails wait, and deadlines move"),
            Self::Registry => ("registry", "registry", "its ImageList keeps what it has"),
            Self::ExamServer => ("exam server", "exam_server", "its Instances are kept"),
        }
    }

    /// The display name.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// An outage that no request has confirmed for this long is removed: the server is no longer used.
    fn forgotten_after(self) -> Duration {
        match self {
            Self::ExamServer => Duration::from_hours(1),
            _ => Duration::from_hours(24),
        }
    }
}

/// The outages of all systems. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Outages {
    known: Arc<Mutex<Known>>,
    /// The servers that [`Outages::watch`] monitors, once they were sent a request.
    watched: Arc<Mutex<BTreeSet<(System, String)>>>,
    changed: Arc<watch::Sender<()>>,
}

type Known = BTreeMap<(System, String), Outage>;

/// The state of a server outside the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerState {
    /// The display name of its system.
    pub system: String,
    /// Its URL, or host and port.
    pub server: String,
    /// The outage; `None` if the last request succeeded.
    pub outage: Option<OutageState>,
}

/// An outage of a server outside the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutageState {
    /// The time since the first request that failed.
    pub seconds: u64,
    /// The effect.
    pub effect: String,
    /// The error of the last request.
    pub error: String,
}

#[derive(Debug)]
struct Outage {
    /// The first request that failed.
    since: Instant,
    /// The last request that failed.
    last: Instant,
    /// The error of the last request.
    error: String,
}

impl Outages {
    /// Sets the metric of each system.
    pub fn measure(&self) {
        let mut known = self.known.lock();
        forget(&mut known);
        for system in System::ALL {
            gauge!(METRIC, "system" => system.words().1).set(precise(of(&known, system)));
        }
    }

    /// Records a successful request to the server at `url`.
    pub fn works(&self, system: System, url: &str) {
        let mut known = self.known.lock();
        if known.is_empty() {
            return;
        }
        let server = shown(url);
        let Some(outage) = known.remove(&(system, server.clone())) else { return };
        let (system, seconds) = (system.name(), outage.since.elapsed().as_secs());
        warn!(system, server, seconds, "requests to this {system} succeed again");
    }

    /// Records a failed request to the server at `url`.
    pub fn failed(&self, system: System, url: &str, error: &dyn Display) {
        self.failed_since(system, url, error, Instant::now());
    }

    /// Records a failed request to the server at `url`, for an outage that began at `since`.
    pub fn failed_since(&self, system: System, url: &str, error: &dyn Display, since: Instant) {
        let (server, now) = (shown(url), Instant::now());
        let error: String = error.to_string().chars().take(LONGEST_ERROR).collect();
        let mut known = self.known.lock();
        forget(&mut known);
        if let Some(outage) = known.get_mut(&(system, server.clone())) {
            (outage.last, outage.error) = (now, error);
        } else if of(&known, system) < MOST_SERVERS {
            let (name, _, effect) = system.words();
            warn!(system = name, server, error, "requests to this {name} fail: {effect}");
            known.insert((system, server), Outage { since, last: now, error });
        }
        drop(known);
        self.changed.send_replace(());
    }

    /// Records the result of a request.
    pub fn record<T, E: Display>(&self, system: System, url: &str, result: &Result<T, E>) {
        match result {
            Ok(_) => self.works(system, url),
            Err(error) => self.failed(system, url, error),
        }
    }

    /// Whether requests to the server at `url` fail.
    pub fn is_down(&self, system: System, url: &str) -> bool {
        self.known.lock().contains_key(&(system, shown(url)))
    }

    /// Sends one request to a server at once, so that an unreachable server is reported before it is needed. Sends
    /// further ones during an outage, so that its end is noticed even if nothing else uses the server. Never returns.
    pub async fn watch<A, E: Display>(self, system: System, url: String, ask: impl Fn() -> A)
    where
        A: Future<Output = Result<(), E>>,
    {
        let mut changed = self.changed.subscribe();
        self.record(system, &url, &ask().await);
        self.watched.lock().insert((system, shown(&url)));
        loop {
            if self.is_down(system, &url) {
                tokio::time::sleep(PAUSE).await;
                self.record(system, &url, &ask().await);
            } else if changed.changed().await.is_err() {
                // The sender lives as long as `self`.
                return;
            }
        }
    }

    /// Returns the states of the servers that are monitored and of those with an outage.
    pub fn states(&self) -> Vec<ServerState> {
        let known = self.known.lock();
        let mut servers = self.watched.lock().clone();
        let current = known.iter().filter(|((system, _), outage)| outage.is_current(*system));
        servers.extend(current.map(|(key, _)| key.clone()));
        let state = |(system, server): (System, String)| {
            let outage = known.get(&(system, server.clone())).map(|outage| OutageState {
                seconds: outage.since.elapsed().as_secs(),
                effect: system.words().2.to_owned(),
                error: outage.error.clone(),
            });
            ServerState { system: system.name().to_owned(), server, outage }
        };
        servers.into_iter().map(state).collect()
    }

    /// Formats a line for each outage, for `/readyz`.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        let known = self.known.lock();
        let current = known.iter().filter(|((system, _), outage)| outage.is_current(*system));
        for ((system, server), Outage { since, error, .. }) in current {
            let ((name, _, effect), seconds) = (system.words(), since.elapsed().as_secs());
            let _ = writeln!(text, "[!] {name} {server}: failing for {seconds} s, {effect}: {error}");
        }
        text
    }
}

impl Outage {
    fn is_current(&self, system: System) -> bool {
        self.last.elapsed() < system.forgotten_after()
    }
}

/// The number of failing servers of a system.
fn of(known: &Known, system: System) -> usize {
    known.keys().filter(|(of, _)| *of == system).count()
}

/// Removes the outages that no request has confirmed for a long time.
fn forget(known: &mut Known) {
    known.retain(|(system, _), outage| outage.is_current(*system));
}

/// Strips possible secrets from a URL: user, password, query and fragment. `host:port` is not changed.
pub fn shown(url: &str) -> String {
    let Some((scheme, _)) = url.split_once("://") else { return url.to_owned() };
    let Ok(parsed) = url.parse::<Uri>() else { return format!("{scheme}://…") };
    let host_and_port = parsed.authority().map_or("", |authority| {
        let text = authority.as_str();
        text.rsplit_once('@').map_or(text, |(_, host)| host)
    });
    format!("{scheme}://{host_and_port}{}", parsed.path().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const URL: &str = "https://user:secret@prometheus.example.com:9090/base/?token=secret";

    /// Returns the number of warnings that are logged while `test` runs.
    fn warnings(test: impl FnOnce()) -> usize {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let written = log.reopen().expect("the same file");
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(Arc::new(written)).finish();
        tracing::subscriber::with_default(subscriber, test);
        let lines = std::fs::read_to_string(log.path()).expect("the log");
        assert!(!lines.contains("secret"), "{lines}");
        lines.matches("WARN").count()
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_logged_at_its_start_and_its_end() {
        let outages = Outages::default();
        let logged = warnings(|| {
            outages.works(System::Prometheus, URL);
            assert_eq!(outages.lines(), "");
            outages.failed(System::Prometheus, URL, &"connection refused");
        });
        assert_eq!(logged, 1);
        tokio::time::advance(Duration::from_secs(85)).await;
        assert_eq!(warnings(|| outages.failed(System::Prometheus, URL, &"no answer within 10s")), 0);
        assert_eq!(
            outages.lines(),
            "[!] Prometheus https://prometheus.example.com:9090/base: failing for 85 s, no Instance is stopped for inactivity: \
             no answer within 10s\n"
        );
        assert_eq!(warnings(|| outages.works(System::Prometheus, URL)), 1);
        assert_eq!(outages.lines(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn outages_are_bounded_for_each_system_and_expire_without_requests() {
        let outages = Outages::default();
        for number in 0..1_000 {
            outages.failed(System::ExamServer, &format!("exam-{number}.example.com"), &"it is not reachable");
        }
        outages.failed(System::Mail, "mail.example.com:25", &"refused");
        assert_eq!(outages.lines().lines().count(), MOST_SERVERS + 1);
        tokio::time::advance(System::ExamServer.forgotten_after()).await;
        assert_eq!(outages.lines().lines().count(), 1, "{}", outages.lines());
        tokio::time::advance(System::Mail.forgotten_after()).await;
        assert_eq!(outages.lines(), "");
        outages.failed(System::ExamServer, "new.example.com", &"it is not reachable");
        assert_eq!(outages.lines().lines().count(), 1, "{}", outages.lines());
    }

    #[tokio::test(start_paused = true)]
    async fn the_metric_counts_the_current_outages_of_each_system() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        let outages = Outages::default();
        // The values of mail and of exam servers at a scrape.
        let counted = || {
            metrics::with_local_recorder(&recorder, || outages.measure());
            let text = handle.render();
            ["mail", "exam_server"].map(|system| {
                let series = format!("{METRIC}{{system=\"{system}\"}} ");
                let value = text.lines().find_map(|line| line.strip_prefix(series.as_str()));
                value.and_then(|value| value.parse::<u32>().ok())
            })
        };
        assert_eq!(counted(), [Some(0), Some(0)]);
        outages.failed(System::ExamServer, "exam-1.example.com", &"it is not reachable");
        outages.failed(System::ExamServer, "exam-2.example.com", &"it is not reachable");
        outages.failed(System::Mail, "mail.example.com:25", &"refused");
        assert_eq!(counted(), [Some(1), Some(2)]);
        outages.works(System::ExamServer, "exam-2.example.com");
        assert_eq!(counted(), [Some(1), Some(1)]);
        // No request confirms the outages.
        tokio::time::advance(System::ExamServer.forgotten_after()).await;
        assert_eq!(counted(), [Some(1), Some(0)]);
        tokio::time::advance(System::Mail.forgotten_after()).await;
        assert_eq!(counted(), [Some(0), Some(0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_gets_one_request_at_the_start_and_more_only_during_an_outage() {
        let (outages, asked) = (Outages::default(), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&asked);
        let ask = move || {
            let number = count.fetch_add(1, Ordering::SeqCst);
            async move { if (1..3).contains(&number) { Err("no answer".to_owned()) } else { Ok(()) } }
        };
        let watch = tokio::spawn(outages.clone().watch(System::Issuer, URL.to_owned(), ask));
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(asked.load(Ordering::SeqCst), 1, "no request is sent at rest");
        outages.failed(System::Issuer, URL, &"no answer");
        tokio::time::sleep(2 * PAUSE + Duration::from_secs(1)).await;
        assert!(outages.is_down(System::Issuer, URL));
        let states = outages.states();
        let outage = states[0].outage.as_ref().expect("an outage");
        assert_eq!((states.len(), &*states[0].system, &*outage.error), (1, "issuer", "no answer"));
        assert_eq!(outage.effect, "logins at the dashboard fail");
        tokio::time::sleep(PAUSE).await;
        assert!(!outages.is_down(System::Issuer, URL));
        let works = ServerState {
            system: "issuer".to_owned(),
            server: "https://prometheus.example.com:9090/base".to_owned(),
            outage: None,
        };
        assert_eq!(outages.states(), [works]);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(asked.load(Ordering::SeqCst), 4);
        watch.abort();
    }

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        for (url, expected) in [
            ("http://p:9090", "http://p:9090"),
            ("https://u:p@h/a/?q=1#f", "https://h/a"),
            ("https://u@[::1]:1/", "https://[::1]:1"),
            ("mail.example.com:25", "mail.example.com:25"),
            ("https://u:p@h h", "https://…"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }
}
