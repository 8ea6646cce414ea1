//! A real Prometheus. It has samples that a test chooses, of any time, which are written into its storage before it
//! starts, so that no test waits for scrapes; or it scrapes a daemon, or an [`Exporter`](super::exporter::Exporter).

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::assets;
use super::folders::temporary_dir;
use super::ports::Port;
use super::processes::Process;

/// Samples in the text format of `OpenMetrics`.
#[derive(Debug, Default)]
pub struct Samples {
    text: String,
}

impl Samples {
    /// Adds a series, such as `up{container="webssh"}`, with its samples as time in seconds and value, in order of time.
    pub fn series(&mut self, series: &str, samples: impl IntoIterator<Item = (i64, i64)>) {
        for (time, value) in samples {
            // Writing to a String cannot fail.
            let _ = writeln!(self.text, "{series} {value} {time}");
        }
    }
}

/// A target of the scrapes.
#[derive(Debug, Clone)]
pub struct Target {
    /// The name of the job.
    pub job: String,
    /// Host and port.
    pub address: String,
    /// The path of its metrics.
    pub path: &'static str,
    /// Labels of all its series, in addition to `job` and `instance`.
    pub labels: Vec<(&'static str, String)>,
}

/// A running Prometheus. When it is dropped, the server ends and its data is removed.
pub struct PrometheusServer {
    _process: Process,
    port: u16,
    _folder: TempDir,
    _port: Port,
}

impl PrometheusServer {
    /// Starts a server that has these samples and scrapes nothing, and waits until it answers.
    pub fn start(samples: &Samples) -> Result<Self> {
        let folder = temporary_dir()?;
        let (input, data) = (folder.path().join("samples"), folder.path().join("data"));
        std::fs::write(&input, format!("{}# EOF\n", samples.text))?;
        let mut blocks = Command::new("promtool");
        blocks
            .args(["tsdb", "create-blocks-from", "--max-block-duration=1000h", "--quiet", "openmetrics"])
            .arg(&input)
            .arg(&data);
        assets::run_logged(&mut blocks, &folder.path().join("promtool.log"))
            .context("Prometheus and promtool are needed (on Debian: prometheus)")?;
        Self::start_in(folder, "")
    }

    /// Starts a server that scrapes the metrics at this address every second, and waits until it answers.
    pub fn scraping(address: &str) -> Result<Self> {
        Self::scraping_all(&[Target {
            job: "daemon".to_owned(),
            address: address.to_owned(),
            path: "/metrics",
            labels: Vec::new(),
        }])
    }

    /// The same with several targets.
    pub fn scraping_all(targets: &[Target]) -> Result<Self> {
        let jobs = targets.iter().map(|Target { job, address, path, labels }| {
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}: '{value}'")).collect();
            let labels = labels.join(", ");
            format!(
                "- {{job_name: {job}, scrape_interval: 1s, metrics_path: {path}, \
                 static_configs: [{{targets: ['{address}'], labels: {{{labels}}}}}]}}\n"
            )
        });
        Self::start_in(temporary_dir()?, &format!("scrape_configs:\n{}", jobs.collect::<String>()))
    }

    fn start_in(folder: TempDir, configuration: &str) -> Result<Self> {
        let (data, config) = (folder.path().join("data"), folder.path().join("prometheus.yml"));
        std::fs::write(&config, configuration)?;
        let reserved = Port::reserve()?;
        let port = reserved.number();
        let args = [
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", data.display()),
            // Samples may be of any time, and blocks stay as they are.
            "--storage.tsdb.retention.time=100y".to_owned(),
            "--storage.tsdb.min-block-duration=2h".to_owned(),
            "--storage.tsdb.max-block-duration=2h".to_owned(),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ];
        let log = folder.path().join("prometheus.log");
        let mut process = Process::start("prometheus", Path::new("prometheus"), &args, log)?;
        let begin = Instant::now();
        while page(&format!("127.0.0.1:{port}"), "/-/ready").is_err() {
            process.check()?;
            if begin.elapsed() > Duration::from_mins(1) {
                return Err(process.failure("does not become ready"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(Self { _process: process, port, _folder: folder, _port: reserved })
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The value of a query with one series as its result; `None` if the result is empty.
    pub fn value(&self, query: &str) -> Result<Option<f64>> {
        let query = query.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
        let answer: Value =
            serde_json::from_str(&page(&self.address(), &format!("/api/v1/query?query={query}"))?)?;
        let value = answer.pointer("/data/result/0/value/1").and_then(Value::as_str);
        value.map(|value| value.parse().context("a number")).transpose()
    }

    /// The number of requests that the server has answered, according to its own metrics, without requests
    /// for those metrics.
    pub fn requests(&self) -> Result<u64> {
        self.counted(|labels| !labels.contains("handler=\"/metrics\""))
    }

    /// The same for the requests to one path.
    pub fn requests_of(&self, path: &str) -> Result<u64> {
        self.counted(|labels| labels.contains(&format!("handler=\"{path}\"")))
    }

    fn counted(&self, is_meant: impl Fn(&str) -> bool) -> Result<u64> {
        let text = page(&self.address(), "/metrics")?;
        let is_counted = |line: &&str| line.starts_with("prometheus_http_requests_total{") && is_meant(line);
        let counts = text.lines().filter(is_counted).map(|line| {
            let number = line.rsplit(' ').next().unwrap_or_default();
            number.parse::<u64>().with_context(|| format!("no count: {line}"))
        });
        counts.sum()
    }
}

/// The body of a page of a server, without TLS. Fails unless the status is 200.
pub fn page(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.0 200") => Ok(body.to_owned()),
        _ => bail!("{path}: {}", answer.lines().next().unwrap_or_default()),
    }
}
