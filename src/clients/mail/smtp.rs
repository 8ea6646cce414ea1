//! The conversation with a mail server, on connections that are kept for a while.
//!
//! lettre's own pool of connections is not used: a mail that is given up because its time is over would leave a
//! connection in the middle of a conversation there, and the late answer to that mail would be taken for the
//! answer to the next one. Here a connection is kept only after a conversation that went to its end.

use std::error::Error as _;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lettre::Address;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use tokio::sync::{Mutex, Semaphore};

use super::error::{MailError, Refused};
use super::settings::{Login, Settings};
use crate::config::MailTls;
use crate::runtime::error::with_sources;
use crate::runtime::gate::Gate;

/// No more connections than this at a time; servers limit them by client.
const CONNECTIONS: usize = 4;
/// Shorter than servers wait for the next command (RFC 5321, section 4.5.3.2: at least 5 minutes).
const IDLE: Duration = Duration::from_secs(30);
/// The time that the server has to answer to NOOP and QUIT.
const BRIEFLY: Duration = Duration::from_secs(2);
/// What we call ourselves; a pod has no name in DNS.
const OWN_NAME: &str = "localhost";

/// The connections to the mail server.
pub(super) struct Smtp {
    permits: Semaphore,
    kept: Mutex<Kept>,
}

/// The connections that wait for the next mail.
#[derive(Default)]
struct Kept {
    idle: Vec<Idle>,
    /// Whether there is a task that closes them in time.
    is_watched: bool,
}

/// A connection on which a mail was accepted.
struct Idle {
    connection: AsyncSmtpConnection,
    settings: Settings,
    since: Instant,
}

impl Default for Smtp {
    fn default() -> Self {
        Self { permits: Semaphore::new(CONNECTIONS), kept: Mutex::default() }
    }
}

impl Smtp {
    /// Sends a message, with CRLF at the ends of lines. It has no time limit of its own.
    pub(super) async fn send(
        self: &Arc<Self>,
        settings: Settings,
        recipient: &Address,
        message: &[u8],
        gate: &Gate,
    ) -> Result<(), MailError> {
        // Fails only when the semaphore is closed, which it never is.
        let _permit = self.permits.acquire().await;
        let mut connection = match self.reuse(&settings).await {
            Some(connection) => connection,
            None => connect(&settings).await?,
        };
        converse(&mut connection, &settings, recipient, message, gate).await?;
        self.keep(connection, settings).await;
        Ok(())
    }

    /// A kept connection to this server with this login, if the server still answers on it.
    async fn reuse(&self, settings: &Settings) -> Option<AsyncSmtpConnection> {
        loop {
            let mut idle = self.kept.lock().await.idle.pop()?;
            // With other settings, such as a rotated password, a connection is of no use.
            if idle.settings != *settings {
                continue;
            }
            let answers = tokio::time::timeout(BRIEFLY, idle.connection.test_connected());
            if answers.await.unwrap_or(false) {
                return Some(idle.connection);
            }
        }
    }

    async fn keep(self: &Arc<Self>, connection: AsyncSmtpConnection, settings: Settings) {
        let mut kept = self.kept.lock().await;
        if !std::mem::replace(&mut kept.is_watched, true) {
            tokio::spawn(close_unused(Arc::downgrade(self)));
        }
        kept.idle.push(Idle { connection, settings, since: Instant::now() });
    }
}

/// Closes connections that are not used any more; ends when there is none left.
async fn close_unused(smtp: Weak<Smtp>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(smtp) = smtp.upgrade() else { return };
        let mut kept = smtp.kept.lock().await;
        let unused: Vec<Idle> = kept.idle.extract_if(.., |idle| idle.since.elapsed() >= IDLE).collect();
        kept.is_watched = !kept.idle.is_empty();
        let is_done = !kept.is_watched;
        drop(kept);
        for mut idle in unused {
            // The connection is closed whatever the server says.
            let _ = tokio::time::timeout(BRIEFLY, idle.connection.quit()).await;
        }
        if is_done {
            return;
        }
    }
}

/// Checks what can be checked without a connection: the authorities' certificates.
pub(super) fn check(settings: &Settings) -> Result<(), String> {
    match settings.tls {
        MailTls::None => Ok(()),
        MailTls::Implicit | MailTls::Starttls => tls_parameters(settings).map(drop),
    }
}

fn tls_parameters(settings: &Settings) -> Result<TlsParameters, String> {
    let unusable = |error: SmtpError| format!("the certificates of authorities: {}", with_sources(&error));
    let mut builder = TlsParameters::builder(settings.host.clone());
    if let Some(pem) = &settings.authorities {
        builder = builder
            .certificate_store(CertificateStore::None)
            .add_root_certificate(Certificate::from_pem(pem).map_err(unusable)?);
    }
    builder.build().map_err(unusable)
}

/// A new connection, encrypted and logged in as the settings say.
async fn connect(settings: &Settings) -> Result<AsyncSmtpConnection, MailError> {
    let failed = |error| failure(settings, Refused::Connection, &error);
    let own_name = ClientId::Domain(OWN_NAME.to_owned());
    let tls = || tls_parameters(settings).map_err(MailError::Settings);
    let implicit = if settings.tls == MailTls::Implicit { Some(tls()?) } else { None };
    let address = (settings.host.as_str(), settings.port);
    // The caller limits the time.
    let mut connection = AsyncSmtpConnection::connect_tokio1(address, None, &own_name, implicit, None)
        .await
        .map_err(failed)?;
    if settings.tls == MailTls::Starttls {
        if !connection.can_starttls() {
            let said = "it does not offer STARTTLS".to_owned();
            return Err(MailError::Refused { server: settings.server(), what: Refused::Connection, said });
        }
        connection.starttls(tls()?, &own_name).await.map_err(failed)?;
    }
    if let Some(login) = &settings.login {
        log_in(&mut connection, settings, login).await?;
    }
    Ok(connection)
}

async fn log_in(
    connection: &mut AsyncSmtpConnection,
    settings: &Settings,
    login: &Login,
) -> Result<(), MailError> {
    let refused = |said: String| MailError::Login { server: settings.server(), said };
    let offered = [Mechanism::Plain, Mechanism::Login];
    let offered = offered.into_iter().find(|way| connection.server_info().supports_auth_mechanism(*way));
    let answer = match offered {
        None => return Err(refused("it offers neither PLAIN nor LOGIN on this connection".to_owned())),
        // lettre has no authorization identity.
        Some(Mechanism::Plain) if !login.identity.is_empty() => {
            connection.command(format!("AUTH PLAIN {}\r\n", login.plain())).await
        }
        Some(way) => {
            let credentials = Credentials::new(login.username.clone(), login.password.clone());
            connection.auth(&[way], &credentials).await
        }
    };
    answer.map(drop).map_err(|error| match failure(settings, Refused::Connection, &error) {
        MailError::Refused { said, .. } => refused(said),
        other => other,
    })
}

/// Hands a message over.
async fn converse(
    connection: &mut AsyncSmtpConnection,
    settings: &Settings,
    recipient: &Address,
    message: &[u8],
    gate: &Gate,
) -> Result<(), MailError> {
    let failed = |what| move |error| failure(settings, what, &error);
    let from = settings.from.address.clone();
    let server = connection.server_info();
    let mut parameters = Vec::new();
    // A server that does not offer it mostly takes eight bits all the same.
    if !message.is_ascii() && server.supports_feature(Extension::EightBitMime) {
        parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
    if !is_ascii(&from) || !is_ascii(recipient) {
        if !server.supports_feature(Extension::SmtpUtfEight) {
            let said = "it does not know addresses with other than ASCII characters (SMTPUTF8)".to_owned();
            let what = if is_ascii(&from) { Refused::Recipient } else { Refused::Sender };
            return Err(MailError::Refused { server: settings.server(), what, said });
        }
        parameters.push(MailParameter::SmtpUtfEight);
    }
    connection.command(Mail::new(Some(from), parameters)).await.map_err(failed(Refused::Sender))?;
    let recipient = Rcpt::new(recipient.clone(), Vec::new());
    connection.command(recipient).await.map_err(failed(Refused::Recipient))?;
    // Asked last of all: the connection may have taken a while.
    if !gate.is_open() {
        return Err(MailError::NotLeader);
    }
    connection.command(Data).await.map_err(failed(Refused::Mail))?;
    // lettre sends a line end before the final dot.
    let message = message.strip_suffix(b"\r\n").unwrap_or(message);
    connection.message(message).await.map(drop).map_err(failed(Refused::Mail))
}

/// What an error of lettre means when `what` was asked for.
fn failure(settings: &Settings, what: Refused, error: &SmtpError) -> MailError {
    let server = settings.server();
    // Its own words only name the kind of error; the source says what happened.
    let problem = settings.said(&error.source().map_or_else(|| error.to_string(), with_sources));
    if let Some(status) = error.status() {
        let said = format!("{status} {problem}");
        return if error.is_permanent() {
            MailError::Refused { server, what, said }
        } else {
            MailError::Unavailable { server, said }
        };
    }
    if is_certificate(error) {
        return MailError::Certificate { server, problem };
    }
    MailError::Unreachable { server, problem }
}

/// Whether a certificate was not accepted, anywhere among the sources.
fn is_certificate(error: &SmtpError) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = error.downcast_ref::<rustls::Error>().or_else(|| inner?.downcast_ref::<rustls::Error>());
        if matches!(tls, Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        source = error.source();
    }
    false
}
