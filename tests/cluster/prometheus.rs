//! A real Prometheus with samples that a test chooses, of any time: they are written into its storage before it starts,
//! so that no test waits for scrapes. It scrapes nothing.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::assets;
use super::folders::temporary_dir;
use super::ports::Ports;
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

/// A running Prometheus. When it is dropped, the server ends and its data is removed.
pub struct PrometheusServer {
    _process: Process,
    port: u16,
    _folder: TempDir,
    _ports: Ports,
}

impl PrometheusServer {
    /// Starts a server that has these samples, and waits until it answers.
    pub fn start(samples: &Samples) -> Result<Self> {
        let folder = temporary_dir()?;
        let (input, data, config) =
            (folder.path().join("samples"), folder.path().join("data"), folder.path().join("prometheus.yml"));
        std::fs::write(&input, format!("{}# EOF\n", samples.text))?;
        std::fs::write(&config, "")?;
        let mut blocks = Command::new("promtool");
        blocks
            .args(["tsdb", "create-blocks-from", "--max-block-duration=1000h", "--quiet", "openmetrics"])
            .arg(&input)
            .arg(&data);
        assets::run_logged(&mut blocks, &folder.path().join("promtool.log"))
            .context("Prometheus and promtool are needed (on Debian: prometheus)")?;
        let ports = Ports::reserve(&assets::cache_dir()?)?;
        let port = ports.first();
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
        Ok(Self { _process: process, port, _folder: folder, _ports: ports })
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// How many requests the server has answered, by itself counted, without those for its metrics.
    pub fn requests(&self) -> Result<u64> {
        self.counted(|labels| !labels.contains("handler=\"/metrics\""))
    }

    /// The same, of those to one path.
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
