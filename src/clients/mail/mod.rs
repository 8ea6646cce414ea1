//! Mail to Tenants about their Instances. `docs/mail.md` describes settings and templates for administrators.
//!
//! | module | content |
//! |---|---|
//! | [`notice`] | the content of mails, and their recipients |
//! | [`template`] | rendering of a mail from a template |
//! | [`settings`] | the settings of the mail server |
//! | [`smtp`], [`maildir`] | the two transports |
//! | [`response`] | the subjects of negative responses of a mail server |
//! | [`error`] | errors |
//!
//! A call sends a mail once and stores nothing. The caller repeats failed calls, and knows which mails were accepted.
//! Each attempt for a mail with the same key has the same Message-ID, so that mail servers and mail programs
//! recognise copies.

mod error;
mod maildir;
mod notice;
mod response;
mod settings;
mod smtp;
pub mod telemetry;
mod template;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use jiff::tz::TimeZone;
use metrics::{counter, histogram};
use ring::digest::{SHA256, digest};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;
use tracing::warn;

use crate::api::reason::Reason;
use crate::config::{MailConfig, MailTls, MailTransport, Mailbox};
use crate::runtime::clock;
use crate::runtime::gate::Gate;
use crate::runtime::outages::{Outages, System};
use maildir::Maildir;
use notice::TO_MANAGERS;
use settings::Settings;
use smtp::Smtp;
use template::{Letter, Templates};

pub use error::{MailError, Subject};
pub use notice::{End, Mail, MailKind, Manager, Wording};
pub use template::TemplateError;

/// Sends mails. Clones share connections.
#[derive(Clone, derive_more::Debug)]
#[debug("Mailer")] // the settings are not for logs
pub struct Mailer {
    shared: Arc<Shared>,
    outages: Outages,
}

struct Shared {
    config: MailConfig,
    zone: TimeZone,
    templates: Templates,
    transport: Transport,
    gate: Gate,
    /// The threads for rendering mails.
    threads: Arc<Semaphore>,
}

enum Transport {
    Smtp {
        connections: Arc<Smtp>,
        /// Host and port at startup, for messages.
        server: String,
    },
    File {
        maildir: Maildir,
        from: Mailbox,
    },
}

/// The limit for threads that read settings and templates or write to the Maildir folder. A folder can be slow or
/// hang.
const THREADS: usize = 4;

/// The rendered mail for the mail server, with the settings of the server; `None` for a mail in the folder.
type Made = Option<(Settings, Vec<u8>)>;

impl Mailer {
    /// Checks settings and templates. Mails are sent only while `gate` is open. Nothing is sent yet.
    ///
    /// # Errors
    /// When mail is disabled, or a setting, a template or a file is invalid.
    pub fn new(config: &MailConfig, gate: Gate) -> anyhow::Result<Self> {
        let transport = match config.transport {
            MailTransport::None => bail!(
                "integrations.mail.transport is none, so there is no mail server for notifications; expected smtp or file"
            ),
            MailTransport::Smtp => {
                let unusable = |problem| anyhow!("integrations.mail: {problem}");
                let settings = Settings::read(config).map_err(unusable)?;
                let server = settings.server();
                if settings.tls != MailTls::None {
                    smtp::tls_parameters(&settings).map_err(unusable)?;
                } else if settings.login.is_some() {
                    warn!(server, "the login to the mail server is sent without encryption");
                }
                Transport::Smtp { connections: Arc::default(), server }
            }
            MailTransport::File => {
                let from = config.from.parse::<Mailbox>();
                let from = from.map_err(|problem| anyhow!("integrations.mail.from: {problem}"))?;
                Transport::File { maildir: Maildir::new(&config.folder)?, from }
            }
        };
        let name = &config.time_zone;
        let no_zone =
            |_| anyhow!("integrations.mail.timeZone: {name:?} is not a time zone of the IANA database");
        let zone = TimeZone::get(name).map_err(no_zone)?;
        let templates = Templates::new(&config.template_dir);
        let doubts = templates.check().map_err(|error| anyhow!("integrations.mail.templateDir: {error}"))?;
        for doubt in doubts {
            warn!("{doubt}");
        }
        // `increase()` misses the first mail of a kind, and the first failure, unless the series starts at 0.
        for label in MailKind::ALL.map(MailKind::label).into_iter().chain([TO_MANAGERS]) {
            for result in [ACCEPTED].into_iter().chain(MailError::REASONS.map(Reason::as_str)) {
                count(label, result, 0);
            }
        }
        let (config, threads) = (config.clone(), Arc::new(Semaphore::new(THREADS)));
        let shared = Arc::new(Shared { config, zone, templates, transport, gate, threads });
        Ok(Self { shared, outages: Outages::default() })
    }

    /// Returns the client, which then reports outages of the mail server to `outages`.
    #[must_use]
    pub fn reporting_to(self, outages: &Outages) -> Self {
        Self { outages: outages.clone(), ..self }
    }

    /// Host and port of the mail server; `None` if mails are written to a folder.
    pub fn server(&self) -> Option<String> {
        match &self.shared.transport {
            Transport::Smtp { server, .. } => Some(server.clone()),
            Transport::File { .. } => None,
        }
    }

    /// Checks whether the mail server accepts this client, its login and the sender. No mail is sent.
    ///
    /// # Errors
    /// When the server rejects one of them, does not respond within the configured time limit, or has
    /// rejected the last mail because of this installation only after its content.
    pub async fn ask(&self) -> Result<(), MailError> {
        let Transport::Smtp { connections, server } = &self.shared.transport else { return Ok(()) };
        let (server, limit) = (server.clone(), Duration::from(self.shared.config.timeout));
        let asked = async {
            let settings =
                self.on_a_thread(|shared| Settings::read(&shared.config).map_err(MailError::Settings));
            smtp::ask(settings.await?).await
        };
        let timeout = |_| Err(MailError::Timeout { server, limit });
        tokio::time::timeout(limit, asked).await.unwrap_or_else(timeout)?;
        connections.rejection().map_or(Ok(()), Err)
    }

    /// Sends a mail. Success means that the server has accepted it, or that it is in the folder. The configured time
    /// limit applies.
    ///
    /// # Errors
    /// When the mail was not accepted. After [`MailError::Timeout`], it may have been accepted.
    pub async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let begin = Instant::now();
        let result = self.deliver(mail).await;
        self.report(mail, &result);
        count(mail.label(), result.as_ref().err().map_or(ACCEPTED, |error| error.reason().as_str()), 1);
        histogram!("crownlabs_mail_duration_seconds").record(begin.elapsed());
        result
    }

    /// Reports an outage of the mail server, or its end, after the result of a mail.
    fn report(&self, mail: &Mail, result: &Result<(), MailError>) {
        let Transport::Smtp { connections, server } = &self.shared.transport else { return };
        match result {
            Err(
                MailError::NotLeader
                | MailError::BadRecipient { .. }
                | MailError::Template(_)
                | MailError::Unavailable { subject: Subject::Recipient | Subject::Mail, .. },
            ) => {}
            // Whether the server accepts the content of mails again is unknown.
            Err(MailError::Refused { subject: Subject::Recipient, .. })
                if connections.rejection().is_some() => {}
            // The server rejects only this mailbox.
            Ok(()) | Err(MailError::Refused { subject: Subject::Recipient, .. }) => {
                self.outages.works(System::Mail, server);
            }
            // A mail without the texts of users follows.
            Err(MailError::Refused { subject: Subject::Mail, .. }) if mail.wording == Wording::Templates => {}
            Err(error) => self.outages.failed(System::Mail, server, error),
        }
    }

    async fn deliver(&self, mail: &Mail) -> Result<(), MailError> {
        let Shared { config, transport, gate, .. } = &*self.shared;
        if !gate.is_open() {
            return Err(MailError::NotLeader);
        }
        let recipient = mail.recipient()?;
        let limit = Duration::from(config.timeout);
        let deadline = tokio::time::Instant::now() + limit;
        let made = mail.clone();
        let made = timeout_at(deadline, self.on_a_thread(move |shared| shared.make(&made))).await;
        match (transport, made.unwrap_or_else(|_| Err(self.shared.slow(limit)))?) {
            (Transport::Smtp { connections, .. }, Some((settings, message))) => {
                let server = settings.server();
                let exchange = connections.send(settings, &recipient, &message, gate);
                let timeout = |_| Err(MailError::Timeout { server, limit });
                timeout_at(deadline, exchange).await.unwrap_or_else(timeout)
            }
            _ => Ok(()),
        }
    }

    /// Runs work that reads and writes files on another thread. The thread continues if the caller stops waiting.
    async fn on_a_thread<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<R, MailError> + Send + 'static,
    ) -> Result<R, MailError> {
        // This fails only if the semaphore is closed, which never happens.
        let permit = Arc::clone(&self.shared.threads).acquire_owned().await;
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&shared)
        });
        match done.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The process is shutting down.
            Err(_) => Err(MailError::NotLeader),
        }
    }
}

impl Shared {
    /// Renders a mail, and writes it to the folder if the transport is a folder. This reads and writes files.
    fn make(&self, mail: &Mail) -> Result<Made, MailError> {
        match &self.transport {
            Transport::File { maildir, from } => {
                let message = self.message(mail, from)?;
                // Checked last, because waiting for the thread may have taken some time.
                if !self.gate.is_open() {
                    return Err(MailError::NotLeader);
                }
                maildir.deliver(&name_of(&mail.key), &message).map(|()| None)
            }
            Transport::Smtp { .. } => {
                let settings = Settings::read(&self.config).map_err(MailError::Settings)?;
                let message = self.message(mail, &settings.from)?;
                Ok(Some((settings, message)))
            }
        }
    }

    /// Renders a mail.
    fn message(&self, mail: &Mail, from: &Mailbox) -> Result<Vec<u8>, MailError> {
        let domain = from.address.domain().to_lowercase();
        let letter = Letter {
            mail,
            from,
            message_id: format!("<{}@{domain}>", name_of(&mail.key)),
            date: clock::now(),
            zone: &self.zone,
            zone_name: &self.config.time_zone,
        };
        Ok(self.templates.of(&letter)?.render(&letter))
    }

    /// The error when files are not read or written in time.
    fn slow(&self, limit: Duration) -> MailError {
        let problem = format!("it takes longer than {limit:?}");
        match &self.transport {
            Transport::File { .. } => MailError::Folder { path: self.config.folder.as_str().into(), problem },
            Transport::Smtp { .. } => MailError::Settings(format!(
                "reading passwordFile, caFile, configDir or templateDir: {problem}"
            )),
        }
    }
}

/// The value of the label `result` for accepted mails.
const ACCEPTED: &str = "success";

/// Counts mails with this label and result.
fn count(label: &'static str, result: &'static str, number: u64) {
    counter!("crownlabs_mails_total", "kind" => label, "result" => result).increment(number);
}

/// Returns a name of 32 letters and digits that is derived from the key of a mail.
fn name_of(key: &str) -> String {
    let hash = digest(&SHA256, key.as_bytes());
    let first = hash.as_ref().first_chunk::<16>().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(first))
}
