//! Mail to Tenants about their Instances. `docs/mail.md` describes settings and templates for administrators.
//!
//! | module | what it is |
//! |---|---|
//! | [`notice`] | what a mail says, and to whom |
//! | [`template`] | from a template and a mail to the bytes that are sent |
//! | [`settings`] | how to reach the mail server |
//! | [`smtp`], [`maildir`] | the two ways that mail can take |
//! | [`error`] | what can go wrong |
//!
//! A mail is sent once per call and nothing is remembered: the caller repeats a call that failed, and knows
//! which mails were accepted. A mail of the same key has the same Message-ID in each attempt, by which mail
//! servers and mail programs recognise a copy.

mod error;
mod maildir;
mod notice;
mod settings;
mod smtp;
pub mod telemetry;
mod template;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
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
use maildir::Maildir;
use settings::Settings;
use smtp::Smtp;
use template::{Letter, Templates};

pub use error::{MailError, Refused};
pub use notice::{End, Mail, MailKind, Manager, Wording};
pub use template::TemplateError;

/// Sends mails. Clones share connections.
#[derive(Clone, derive_more::Debug)]
#[debug("Mailer")] // the settings are not for logs
pub struct Mailer {
    shared: Arc<Shared>,
}

struct Shared {
    config: MailConfig,
    zone: TimeZone,
    templates: Templates,
    transport: Transport,
    gate: Gate,
    /// The threads on which mails are made.
    threads: Arc<Semaphore>,
}

enum Transport {
    Smtp(Arc<Smtp>),
    File { maildir: Maildir, from: Mailbox },
}

/// So many threads at a time read settings and templates, and write into the Maildir folder: a folder can be slow, or hang.
const THREADS: usize = 4;

/// The bytes of a mail for the mail server, and how to reach it; `None` for one that is in the folder.
type Made = Option<(Settings, Vec<u8>)>;

impl Mailer {
    /// Checks settings and templates. Mails are sent only while `gate` is open. Nothing is sent yet.
    ///
    /// # Errors
    /// When mail is turned off, or a setting, a template or a file cannot be used.
    pub fn new(config: &MailConfig, gate: Gate) -> anyhow::Result<Self> {
        let transport = match config.transport {
            MailTransport::None => bail!(
                "integrations.mail.transport is none, so there is no mail server for notifications; expected smtp or file"
            ),
            MailTransport::Smtp => {
                let unusable = |problem| anyhow!("integrations.mail: {problem}");
                let settings = Settings::read(config).map_err(unusable)?;
                smtp::check(&settings).map_err(unusable)?;
                if settings.tls == MailTls::None && settings.login.is_some() {
                    let server = settings.server();
                    warn!(server, "the login to the mail server is sent without encryption");
                }
                Transport::Smtp(Arc::default())
            }
            MailTransport::File => {
                let from = config.from.parse::<Mailbox>();
                let from = from.map_err(|problem| anyhow!("integrations.mail.from: {problem}"))?;
                Transport::File { maildir: Maildir::new(&config.folder)?, from }
            }
        };
        let no_zone = |_| {
            anyhow!("integrations.mail.timeZone: {:?} is no time zone of the IANA database", config.time_zone)
        };
        let zone = TimeZone::get(&config.time_zone).map_err(no_zone)?;
        let templates = Templates::new(&config.template_dir);
        let doubts = templates.check().map_err(|error| anyhow!("integrations.mail.templateDir: {error}"))?;
        for doubt in doubts {
            warn!("{doubt}");
        }
        // `increase()` sees the first mail of a kind, and the first failure, only if there was a 0 before.
        for label in MailKind::ALL.map(MailKind::label).into_iter().chain([Wording::TO_MANAGERS]) {
            for result in [ACCEPTED].into_iter().chain(MailError::REASONS.map(Reason::as_str)) {
                count(label, result, 0);
            }
        }
        let (config, threads) = (config.clone(), Arc::new(Semaphore::new(THREADS)));
        Ok(Self { shared: Arc::new(Shared { config, zone, templates, transport, gate, threads }) })
    }

    /// Sends a mail. Success means that the server has accepted it, or that it is in the folder. It takes no
    /// longer than the time limit of the configuration.
    ///
    /// # Errors
    /// When the mail was not accepted. After [`MailError::Timeout`] it may have been.
    pub async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let begin = Instant::now();
        let result = self.deliver(mail).await;
        count(mail.label(), result.as_ref().err().map_or(ACCEPTED, |error| error.reason().as_str()), 1);
        histogram!("crownlabs_mail_duration_seconds").record(begin.elapsed());
        result
    }

    async fn deliver(&self, mail: &Mail) -> Result<(), MailError> {
        let Shared { config, transport, gate, .. } = &*self.shared;
        if !gate.is_open() {
            return Err(MailError::NotLeader);
        }
        let recipient = mail.recipient()?;
        let limit = Duration::from(config.timeout);
        let deadline = tokio::time::Instant::now() + limit;
        let made = timeout_at(deadline, self.make(mail.clone())).await;
        match (transport, made.unwrap_or_else(|_| Err(self.shared.slow(limit)))?) {
            (Transport::Smtp(smtp), Some((settings, message))) => {
                let server = settings.server();
                let exchange = smtp.send(settings, &recipient, &message, gate);
                let timeout = |_| Err(MailError::Timeout { server, limit });
                timeout_at(deadline, exchange).await.unwrap_or_else(timeout)
            }
            _ => Ok(()),
        }
    }

    /// Makes a mail on a thread of its own. If nobody waits for it any more, the thread goes on all the same.
    async fn make(&self, mail: Mail) -> Result<Made, MailError> {
        // Fails only when the semaphore is closed, which it never is.
        let permit = Arc::clone(&self.shared.threads).acquire_owned().await;
        let shared = Arc::clone(&self.shared);
        let made = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            shared.make(&mail)
        });
        match made.await {
            Ok(made) => made,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The process ends.
            Err(_) => Err(MailError::NotLeader),
        }
    }
}

impl Shared {
    /// Makes a mail, and puts it into the folder where that is the way. It reads and writes files.
    fn make(&self, mail: &Mail) -> Result<Made, MailError> {
        match &self.transport {
            Transport::File { maildir, from } => {
                let message = self.message(mail, from)?;
                // Asked last of all: the thread may have waited for a while.
                if !self.gate.is_open() {
                    return Err(MailError::NotLeader);
                }
                maildir.deliver(&name_of(&mail.key), &message).map(|()| None)
            }
            Transport::Smtp(_) => {
                let settings = Settings::read(&self.config).map_err(MailError::Settings)?;
                let message = self.message(mail, &settings.from)?;
                Ok(Some((settings, message)))
            }
        }
    }

    /// The bytes of a mail.
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

    /// The files are not read or written in time.
    fn slow(&self, limit: Duration) -> MailError {
        let problem = format!("it takes longer than {limit:?}");
        match &self.transport {
            Transport::File { .. } => MailError::Folder { path: self.config.folder.as_str().into(), problem },
            Transport::Smtp(_) => MailError::Settings(format!(
                "reading passwordFile, caFile, configDir or templateDir: {problem}"
            )),
        }
    }
}

/// The value of the label `result` for mails that were accepted.
const ACCEPTED: &str = "success";

/// Counts mails with this label and result.
fn count(label: &'static str, result: &'static str, number: u64) {
    counter!("crownlabs_mails_total", "kind" => label, "result" => result).increment(number);
}

/// A name of 32 letters and digits that stands for the key of a mail.
fn name_of(key: &str) -> String {
    let hash = digest(&SHA256, key.as_bytes());
    hash.as_ref().iter().take(16).fold(String::new(), |mut name, byte| {
        // Writing to a String cannot fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}
