//! The SMTP client. Connections are kept open for some time.
//!
//! lettre's connection pool is not used. If a mail times out, the pool would keep a connection in the middle of an
//! exchange, and the late response to that mail would be taken for the response to the next mail. Here, a connection
//! is kept only after a complete exchange.

use std::error::Error as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{Extension, MailBodyParameter, MailParameter};
use parking_lot::Mutex as Lock;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::error::{MailError, Subject};
use super::response::{Stage, subject};
use super::settings::Settings;
use crate::config::MailTls;
use crate::runtime::cause::{Cause, Kind};
use crate::runtime::error::with_sources;
use crate::runtime::gate::Gate;

/// The limit for concurrent connections. Servers limit them for each client.
const CONNECTIONS: usize = 4;
/// The limit for idle connections. Servers wait longer for the next command (RFC 5321, section 4.5.3.2: at least 5
/// minutes).
const IDLE: Duration = Duration::from_secs(30);
/// The time limit for the responses to NOOP and QUIT.
const BRIEFLY: Duration = Duration::from_secs(2);
/// How long a rejection in the response to the content counts. Rejected mails are retried within 5 minutes.
const REJECTION: Duration = Duration::from_mins(15);

/// The connections to the mail server.
pub(super) struct Smtp {
    permits: Semaphore,
    kept: Mutex<Kept>,
    /// The last rejection of this installation in the response to the content, and its time.
    rejection: Lock<Option<(MailError, Instant)>>,
}

/// The connections that are open for the next mail.
#[derive(Default)]
struct Kept {
    /// The connections, each with the time when a mail was accepted.
    idle: Vec<(Session, Instant)>,
    /// Whether a task that closes them in time is running.
    is_watched: bool,
}

/// A connection with these settings.
struct Session {
    connection: AsyncSmtpConnection,
    settings: Settings,
}

impl Default for Smtp {
    fn default() -> Self {
        Self { permits: Semaphore::new(CONNECTIONS), kept: Mutex::default(), rejection: Lock::default() }
    }
}

impl Smtp {
    /// Sends a message whose lines end with CRLF. The caller must set a time limit.
    pub(super) async fn send(
        self: &Arc<Self>,
        settings: Settings,
        recipient: &Address,
        message: &[u8],
        gate: &Gate,
    ) -> Result<(), MailError> {
        // This fails only if the semaphore is closed, which never happens.
        let _permit = self.permits.acquire().await;
        let mut session = match self.reuse(&settings).await {
            Some(session) => session,
            None => Session::open(settings).await?,
        };
        session.announce(recipient, message).await?;
        // Checked last, because opening the connection may have taken some time.
        if !gate.is_open() {
            return Err(MailError::NotLeader);
        }
        let result = session.deliver(message).await;
        self.note(&result);
        result?;
        self.keep(session).await;
        Ok(())
    }

    /// Returns the rejection of this installation in the response to the content of a mail, unless a later
    /// mail was accepted, or it is too old. A request without a mail does not show its end.
    pub(super) fn rejection(&self) -> Option<MailError> {
        let rejection = self.rejection.lock();
        let (error, since) = rejection.as_ref()?;
        (since.elapsed() < REJECTION).then(|| error.clone())
    }

    /// Records the result of a mail whose recipient was accepted.
    fn note(&self, result: &Result<(), MailError>) {
        let subject = match result {
            Ok(()) => None,
            Err(MailError::Refused { subject, .. } | MailError::Unavailable { subject, .. }) => {
                Some(*subject)
            }
            Err(_) => return,
        };
        // The server may accept another mail.
        if !matches!(subject, Some(Subject::Recipient | Subject::Mail)) {
            *self.rejection.lock() = result.clone().err().map(|error| (error, Instant::now()));
        }
    }

    /// Returns an open connection to this server with this login, if the server still responds on it.
    async fn reuse(&self, settings: &Settings) -> Option<Session> {
        loop {
            let (mut session, _) = self.kept.lock().await.idle.pop()?;
            // A connection with other settings, such as an old password, cannot be used.
            if session.settings != *settings {
                continue;
            }
            let answers = tokio::time::timeout(BRIEFLY, session.connection.test_connected());
            if answers.await.unwrap_or(false) {
                return Some(session);
            }
        }
    }

    async fn keep(self: &Arc<Self>, session: Session) {
        let mut kept = self.kept.lock().await;
        if !std::mem::replace(&mut kept.is_watched, true) {
            tokio::spawn(close_unused(Arc::downgrade(self)));
        }
        kept.idle.push((session, Instant::now()));
    }
}

/// Closes unused connections. Ends when no connection is left.
async fn close_unused(smtp: Weak<Smtp>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(smtp) = smtp.upgrade() else { return };
        let mut kept = smtp.kept.lock().await;
        let unused: Vec<_> = kept.idle.extract_if(.., |(_, since)| since.elapsed() >= IDLE).collect();
        kept.is_watched = !kept.idle.is_empty();
        let is_done = !kept.is_watched;
        drop(kept);
        for (mut session, _) in unused {
            // The connection is closed regardless of the response.
            let _ = tokio::time::timeout(BRIEFLY, session.connection.quit()).await;
        }
        if is_done {
            return;
        }
    }
}

/// Checks the certificates of the authorities, and returns the settings for TLS.
pub(super) fn tls_parameters(settings: &Settings) -> Result<TlsParameters, String> {
    let unusable = |error: SmtpError| format!("the CA certificates: {}", with_sources(&error));
    let mut builder = TlsParameters::builder(settings.host.clone());
    if let Some(pem) = &settings.authorities {
        builder = builder
            .certificate_store(CertificateStore::None)
            .add_root_certificate(Certificate::from_pem(pem).map_err(unusable)?);
    }
    builder.build().map_err(unusable)
}

/// Checks, without sending a mail, whether the server accepts this client, its login and the sender. The sender is
/// the recipient, too, because some servers reject a client only in the response to RCPT TO.
pub(super) async fn ask(settings: Settings) -> Result<(), MailError> {
    let mut session = Session::open(settings).await?;
    let sender = session.settings.from.address.clone();
    let result = session.envelope(&sender, Vec::new()).await;
    // The connection is closed regardless of the response.
    let _ = tokio::time::timeout(BRIEFLY, session.connection.quit()).await;
    match result {
        Err(
            MailError::Refused { subject: Subject::Recipient, .. }
            | MailError::Unavailable { subject: Subject::Recipient, .. },
        ) => Ok(()),
        result => result,
    }
}

impl Session {
    /// Opens a connection, with the configured encryption and login.
    async fn open(settings: Settings) -> Result<Self, MailError> {
        let tls = |settings: &Settings| tls_parameters(settings).map_err(MailError::Settings);
        let implicit = if settings.tls == MailTls::Implicit { Some(tls(&settings)?) } else { None };
        let (address, name) = ((settings.host.as_str(), settings.port), &settings.ehlo_name);
        // The caller sets the time limit.
        let connection = AsyncSmtpConnection::connect_tokio1(address, None, name, implicit, None).await;
        let connection = connection.map_err(|error| failure(&settings, Stage::Greeting, &error))?;
        let mut session = Self { connection, settings };
        if session.settings.tls == MailTls::Starttls {
            if !session.connection.can_starttls() {
                return Err(session.refused(Subject::Client, "it does not offer STARTTLS"));
            }
            let (tls, name) = (tls(&session.settings)?, &session.settings.ehlo_name);
            session.connection.starttls(tls, name).await.map_err(session.failed(Stage::Greeting))?;
        }
        session.log_in().await?;
        Ok(session)
    }

    async fn log_in(&mut self) -> Result<(), MailError> {
        let Some(login) = &self.settings.login else { return Ok(()) };
        let server = self.connection.server_info();
        let mut ways = [Mechanism::Plain, Mechanism::Login].into_iter();
        let answer = match ways.find(|way| server.supports_auth_mechanism(*way)) {
            None => {
                let said = "it offers neither PLAIN nor LOGIN on this connection";
                return Err(self.refused(Subject::Login, said));
            }
            // lettre does not support an authorization identity.
            Some(Mechanism::Plain) if !login.identity.is_empty() => {
                self.connection.command(format!("AUTH PLAIN {}\r\n", login.plain())).await
            }
            Some(way) => {
                let credentials = Credentials::new(login.username.clone(), login.password.clone());
                self.connection.auth(&[way], &credentials).await
            }
        };
        answer.map(drop).map_err(self.failed(Stage::Login))
    }

    /// Sends the sender and the recipient of a message.
    async fn announce(&mut self, to: &Address, message: &[u8]) -> Result<(), MailError> {
        let mut parameters = Vec::new();
        // A server that does not announce 8BITMIME usually accepts eight-bit data anyway.
        if !message.is_ascii() && self.connection.server_info().supports_feature(Extension::EightBitMime) {
            parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        self.envelope(to, parameters).await
    }

    /// Sends the message.
    async fn deliver(&mut self, message: &[u8]) -> Result<(), MailError> {
        self.connection.command(Data).await.map_err(self.failed(Stage::Data))?;
        // lettre sends a line end before the final dot.
        let message = message.strip_suffix(b"\r\n").unwrap_or(message);
        self.connection.message(message).await.map(drop).map_err(self.failed(Stage::Content))
    }

    /// Sends the sender, with these parameters, and the recipient.
    async fn envelope(&mut self, to: &Address, mut parameters: Vec<MailParameter>) -> Result<(), MailError> {
        let from = self.settings.from.address.clone();
        let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
        if !is_ascii(&from) || !is_ascii(to) {
            if !self.connection.server_info().supports_feature(Extension::SmtpUtfEight) {
                let said = "it does not support addresses with non-ASCII characters (SMTPUTF8)";
                let subject = if is_ascii(&from) { Subject::Recipient } else { Subject::Sender };
                return Err(self.refused(subject, said));
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        let from = Mail::new(Some(from), parameters);
        self.connection.command(from).await.map_err(self.failed(Stage::Sender))?;
        let to = Rcpt::new(to.clone(), Vec::new());
        self.connection.command(to).await.map(drop).map_err(self.failed(Stage::Recipient))
    }

    fn refused(&self, subject: Subject, said: &str) -> MailError {
        MailError::Refused { server: self.settings.server(), subject, said: said.to_owned() }
    }

    fn failed(&self, stage: Stage) -> impl Fn(SmtpError) -> MailError {
        move |error| failure(&self.settings, stage, &error)
    }
}

/// Maps an error of lettre at a stage of the conversation to a `MailError`.
fn failure(settings: &Settings, stage: Stage, error: &SmtpError) -> MailError {
    let server = settings.server();
    // The error itself only names the kind of error. Its source has the cause.
    let cause = error.source().map(Cause::of);
    let problem = settings.said(&error.source().map_or_else(|| error.to_string(), with_sources));
    if let Some(status) = error.status() {
        let subject = subject(stage, status.into(), &problem);
        let said = format!("{status} {problem}");
        return if error.is_permanent() {
            MailError::Refused { server, subject, said }
        } else {
            MailError::Unavailable { server, subject, said }
        };
    }
    match cause {
        Some(Cause { kind: Kind::Authority | Kind::Certificate, words }) => {
            MailError::Certificate { server, problem: settings.said(&words) }
        }
        Some(cause) => {
            MailError::Unreachable { server, problem: settings.said(&cause.with_remedy("caFile")) }
        }
        None => MailError::Unreachable { server, problem },
    }
}
