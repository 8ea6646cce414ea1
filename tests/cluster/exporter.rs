//! A small exporter for Prometheus. It counts requests and connections like an NGINX Ingress controller, the SSH
//! tracker and web SSH, with the same names and labels, and can raise its counters as if machines were in use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::background::Background;
use super::prometheus::Target;

/// The time between two connections to a machine that is in use.
const PAUSE: Duration = Duration::from_millis(200);

/// The exporters that this one simulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Ingress,
    Ssh,
    WebSsh,
}

impl Source {
    const ALL: [Self; 3] = [Self::Ingress, Self::Ssh, Self::WebSsh];

    fn path(self) -> &'static str {
        match self {
            Self::Ingress => "/ingress",
            Self::Ssh => "/ssh",
            Self::WebSsh => "/web-ssh",
        }
    }

    fn metric(self) -> &'static str {
        match self {
            Self::Ingress => "nginx_ingress_controller_requests",
            Self::Ssh => "bastion_ssh_connections",
            Self::WebSsh => "bastion_web_ssh_connections",
        }
    }

    /// The labels that the Prometheus operator gives to the targets. Labels of a counter with the same names get the
    /// prefix `exported_`.
    fn labels(self) -> Vec<(&'static str, String)> {
        let labels = match self {
            Self::Ingress => {
                [("namespace", "ingress-nginx"), ("service", "ingress-nginx-external-controller-metrics")]
            }
            Self::Ssh => [("namespace", "bastion"), ("container", "bastion-operator-tracker-sidecar")],
            Self::WebSsh => [("namespace", "bastion"), ("container", "webssh")],
        };
        labels.map(|(name, value)| (name, value.to_owned())).into()
    }
}

/// A counter of the requests or connections to one machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counter {
    source: Source,
    labels: String,
}

impl Counter {
    /// The counter of requests to a Service through the Ingress.
    pub fn requests(namespace: &str, service: &str) -> Self {
        let labels = format!(
            r#"namespace="{namespace}",service="{service}",ingress="{service}",method="GET",status="200""#
        );
        Self { source: Source::Ingress, labels }
    }

    /// The counter of SSH connections through the bastion to an address.
    pub fn ssh(address: &str) -> Self {
        let labels = format!(r#"destination_ip="{address}",destination_port="22""#);
        Self { source: Source::Ssh, labels }
    }

    /// The counter of SSH connections in the browser to an address.
    pub fn web_ssh(address: &str) -> Self {
        let labels = format!(r#"destination_ip="{address}",destination_port="22""#);
        Self { source: Source::WebSsh, labels }
    }
}

/// A running exporter; it ends when it is dropped.
pub struct Exporter {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _background: Background,
}

#[derive(Default)]
struct State {
    values: BTreeMap<Counter, u64>,
    used: BTreeSet<Counter>,
}

impl State {
    fn count(&mut self, counter: &Counter) {
        *self.values.entry(counter.clone()).or_default() += 1;
    }

    /// The metrics of a source in the text format of Prometheus.
    fn page(&self, source: Source) -> String {
        let metric = source.metric();
        let mut page = format!("# TYPE {metric} counter\n");
        for (counter, value) in self.values.iter().filter(|(counter, _)| counter.source == source) {
            // Writing to a String cannot fail.
            let _ = writeln!(page, "{metric}{{{}}} {value}", counter.labels);
        }
        page
    }
}

impl Exporter {
    /// Starts an exporter without counters.
    pub fn start() -> Result<Self> {
        let background = Background::start("exporter")?;
        let listener = background.run(TcpListener::bind("127.0.0.1:0"))?.context("listening on loopback")?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        background.handle().spawn(serve(listener, Arc::clone(&state)));
        background.handle().spawn(connect(Arc::clone(&state)));
        Ok(Self { address, state, _background: background })
    }

    /// The targets for Prometheus: one for each source.
    pub fn targets(&self) -> Vec<Target> {
        Source::ALL.map(|source| self.target(source, source.labels())).into()
    }

    /// The requests alone, as the `ServiceMonitor` of ingress-nginx's own chart scrapes them. That chart has a Service
    /// for the metrics, which is named after the release.
    pub fn ingress_nginx(&self, release: &str) -> Target {
        let service = format!("{release}-controller-metrics");
        let labels = [
            ("namespace", "ingress-nginx".to_owned()),
            ("service", service),
            ("pod", format!("{release}-controller-0")),
            ("container", "controller".to_owned()),
            ("endpoint", "metrics".to_owned()),
        ];
        self.target(Source::Ingress, labels.into())
    }

    fn target(&self, source: Source, labels: Vec<(&'static str, String)>) -> Target {
        Target {
            job: source.path().trim_start_matches('/').to_owned(),
            address: self.address.to_string(),
            path: source.path(),
            labels,
        }
    }

    /// Counts one request or connection.
    pub fn count(&self, counter: &Counter) {
        self.state.lock().count(counter);
    }

    /// From now on, the machine of that counter is in use: its counter rises five times a second.
    pub fn begin(&self, counter: &Counter) {
        self.state.lock().used.insert(counter.clone());
    }

    /// From now on, no machine is in use. The counters stay as they are.
    pub fn end_all(&self) {
        self.state.lock().used.clear();
    }
}

/// Counts the connections to the machines that are in use.
async fn connect(state: Arc<Mutex<State>>) {
    loop {
        {
            let mut state = state.lock();
            for counter in state.used.clone() {
                state.count(&counter);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    // Fails when the process is out of file descriptors: then the test fails, too.
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            // Prometheus tries again a second later.
            let _ = answer(stream, &state).await;
        });
    }
}

/// Answers one request with the metrics of the source at its path.
async fn answer(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 && !line.trim_end().is_empty() {
        head.push(std::mem::take(&mut line));
    }
    let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let source = Source::ALL.into_iter().find(|source| source.path() == path);
    let (status, page) =
        source.map_or(("404 Not Found", String::new()), |source| ("200 OK", state.lock().page(source)));
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n{page}",
        page.len()
    );
    stream.write_all(answer.as_bytes()).await
}
