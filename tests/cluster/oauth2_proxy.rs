//! oauth2-proxy, built once from its Go module.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::assets;
use super::folders::temporary_dir;
use super::ports::Port;
use super::processes::Process;
use super::prometheus::page;

/// The option for its address.
const LISTEN: &str = "--http-address=";

/// A running proxy. It is killed when it is dropped.
pub struct OAuth2Proxy {
    _process: Process,
    port: u16,
    _port: Port,
    _log: TempDir,
}

impl OAuth2Proxy {
    /// Starts the program with the arguments and the environment of its container, but on a loopback port, and waits
    /// until the path `probe` reports that it is ready.
    pub fn start(arguments: &[String], environment: &[(&str, &str)], probe: &str) -> Result<Self> {
        let folder = temporary_dir()?;
        let reserved = Port::reserve()?;
        let port = reserved.number();
        let mut arguments = arguments.to_vec();
        let listen = arguments.iter_mut().find(|argument| argument.starts_with(LISTEN));
        *listen.with_context(|| format!("{LISTEN} is missing"))? = format!("{LISTEN}127.0.0.1:{port}");
        let (program, log) = (assets::oauth2_proxy()?, folder.path().join("log"));
        let mut process = Process::start_with("oauth2-proxy", &program, &arguments, environment, log)?;
        let begin = Instant::now();
        while page(&format!("127.0.0.1:{port}"), probe).is_err() {
            process.check()?;
            ensure!(begin.elapsed() < Duration::from_mins(1), process.failure("does not become ready"));
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Self { _process: process, port, _port: reserved, _log: folder })
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
