//! A real mail server with TLS and login, for one test: aiosmtpd, run by `server.py`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use crownlabs::testing::mail::Mailer;
use crownlabs::testing::{Gate, MailConfig, MailTls, MailTransport};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::PATIENCE;
use cluster::processes::Process;

/// The password of the user `crownlabs`.
pub const PASSWORD: &str = "hunter2 ü";

/// A Python with aiosmtpd: the first on the path, or the system's Python, which gets it from Debian.
static PYTHON: LazyLock<&'static str> = LazyLock::new(|| {
    let has = |python: &&str| {
        let check = Command::new(python).args(["-c", "import aiosmtpd"]).output();
        check.is_ok_and(|output| output.status.success())
    };
    let pythons = ["python3", "/usr/bin/python3"].into_iter().find(has);
    pythons.expect("a Python 3 with aiosmtpd is needed (on Debian: python3-aiosmtpd)")
});

/// The properties of a server.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The encryption.
    pub tls: MailTls,
    /// Whether a login is required.
    pub login: bool,
    /// The name or address in its certificate.
    pub name: &'static str,
    /// A login mechanism that it does not offer.
    pub without: &'static str,
    /// The command that it rejects: `EHLO`, or `EHLO at RCPT`, for a client name without a dot; `RCPT` for any name.
    pub refuses: &'static str,
}

impl Default for Kind {
    fn default() -> Self {
        Self { tls: MailTls::Implicit, login: true, name: "127.0.0.1", without: "", refuses: "" }
    }
}

/// A running server.
pub struct MailServer {
    _process: Process,
    folder: TempDir,
    kind: Kind,
    port: u16,
}

/// A mail that was accepted.
#[derive(Debug, Deserialize)]
pub struct Accepted {
    /// The sender of the envelope.
    pub from: String,
    /// The parameters of `MAIL FROM`.
    pub options: Vec<String>,
    /// The recipients of the envelope.
    pub to: Vec<String>,
    /// Headers and body as they were sent.
    pub text: String,
    /// The port of the client, which tells connections apart.
    pub peer: u16,
    /// The name in the client's `EHLO`.
    pub hello: String,
    /// Whether the connection was encrypted.
    pub tls: bool,
    /// Name and identity of the login; null without one.
    pub login: Value,
}

impl MailServer {
    /// Starts a server and waits until it listens.
    pub fn start(kind: Kind) -> Self {
        let folder = TempDir::new().expect("a folder");
        certificates(folder.path(), kind.name);
        fs::write(folder.path().join("password"), format!("{PASSWORD}\n")).expect("written");
        let without: Vec<&str> = Some(kind.without).into_iter().filter(|way| !way.is_empty()).collect();
        let settings = json!({
            "tls": kind.tls, "login": kind.login, "password": PASSWORD, "without": without, "refuses": kind.refuses
        });
        fs::write(folder.path().join("settings.json"), settings.to_string()).expect("written");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/mail/server.py");
        let arguments = [script.display().to_string(), folder.path().display().to_string()];
        let log = folder.path().join("log");
        let mut process =
            Process::start("aiosmtpd", Path::new(*PYTHON), &arguments, log).expect("the server starts");
        let begin = Instant::now();
        let port = loop {
            if let Ok(port) = fs::read_to_string(folder.path().join("port")) {
                break port.parse().expect("a port");
            }
            process.check().expect("the server runs");
            assert!(begin.elapsed() < PATIENCE, "the server does not listen");
            thread::sleep(Duration::from_millis(20));
        };
        Self { _process: process, folder, kind, port }
    }

    /// A file of the server: `ca.crt`, `password`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Host and port, as messages have them.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A configuration for it.
    pub fn config(&self) -> MailConfig {
        let login = |text: String| if self.kind.login { text } else { String::new() };
        MailConfig {
            transport: MailTransport::Smtp,
            host: "127.0.0.1".to_owned(),
            port: self.port,
            tls: self.kind.tls,
            username: login("crownlabs".to_owned()),
            password_file: login(self.file("password").display().to_string()),
            from: "CrownLabs <noreply@example.com>".to_owned(),
            ca_file: self.file("ca.crt").display().to_string(),
            ..MailConfig::default()
        }
    }

    /// A client that can use it.
    pub fn mailer(&self) -> Mailer {
        Mailer::new(&self.config(), Gate::open()).expect("a client")
    }

    /// The mails that it has accepted, the oldest first.
    pub fn accepted(&self) -> Vec<Accepted> {
        let lines = fs::read_to_string(self.file("mails")).unwrap_or_default();
        lines.lines().map(|line| serde_json::from_str(line).expect("a mail")).collect()
    }
}

/// Writes a certificate for this name or address, its key, and the certificate of the authority that signed it.
pub fn certificates(folder: &Path, name: &str) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let server = server.signed_by(&key, &authority).expect("a certificate");
    for (file, text) in
        [("ca.crt", authority.pem()), ("server.crt", server.pem()), ("server.key", key.serialize_pem())]
    {
        fs::write(folder.join(file), text).expect("written");
    }
}
