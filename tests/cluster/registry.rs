//! Debian's docker-registry, and pushes of the smallest image to it.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::folders::temporary_dir;
use super::processes::Process;
use super::request::send;

/// How long the start may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// An index without entries: the smallest that a registry accepts as an image.
const INDEX: &str =
    r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// The digest of the blob `{}`.
const BLOB: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/// A running registry. It ends when it is dropped.
pub struct Registry {
    process: Process,
    address: String,
    authorization: String,
    _folder: TempDir,
}

impl Registry {
    /// Starts an empty registry at this address (host and port), without login.
    pub fn start(address: &str) -> Result<Self> {
        Self::start_in(temporary_dir()?, address, "", "")
    }

    /// Starts an empty registry in a folder, with the lines `auth` in its configuration. Pushes send this value of
    /// the header `Authorization`.
    pub fn start_in(folder: TempDir, address: &str, auth: &str, authorization: &str) -> Result<Self> {
        let (config, images) = (folder.path().join("config.yml"), folder.path().join("images"));
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: \"{}\"}}}}\nhttp: {{addr: \"{address}\"}}\n{auth}",
            images.display()
        );
        fs::write(&config, text)?;
        let arguments = ["serve".to_owned(), config.display().to_string()];
        let log = folder.path().join("registry.log");
        let process = Process::start("registry", Path::new("docker-registry"), &arguments, log)?;
        let authorization = authorization.to_owned();
        let mut registry = Self { process, address: address.to_owned(), authorization, _folder: folder };
        registry.await_start()?;
        Ok(registry)
    }

    /// Ends the process.
    pub fn stop(&mut self) {
        self.process.kill();
    }

    /// Restarts the process with its earlier data.
    pub fn start_again(&mut self) -> Result<()> {
        self.process.start_again()?;
        self.await_start()
    }

    fn await_start(&mut self) -> Result<()> {
        let begin = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            self.process.check()?;
            ensure!(begin.elapsed() < PATIENCE, self.process.failure("does not answer"));
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Its host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Pushes an image under these tags.
    pub fn push(&self, repository: &str, tags: &[impl AsRef<str>]) -> Result<()> {
        let created = |method: &str, path: &str, content: &str, body: &str| {
            let headers = [("Content-Type", content), ("Authorization", self.authorization.as_str())];
            let headers: Vec<_> = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
            let answer = send(&self.address, method, path, &headers, body)?;
            ensure!(matches!(answer.status, 201 | 202), "{method} {path}: {} {}", answer.status, answer.body);
            Ok(answer)
        };
        // A repository without a blob is not in the catalogue.
        let upload = created("POST", &format!("/v2/{repository}/blobs/uploads/"), "", "")?;
        let location = upload.header("Location");
        let location =
            location.find("/v2/").and_then(|begin| location.get(begin..)).context("a place to upload")?;
        created("PUT", &format!("{location}&digest={BLOB}"), "application/octet-stream", "{}")?;
        for tag in tags {
            let manifest = format!("/v2/{repository}/manifests/{}", tag.as_ref());
            created("PUT", &manifest, INDEX_TYPE, INDEX)?;
        }
        Ok(())
    }
}
