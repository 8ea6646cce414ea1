//! The keys of the mail that Tenants get about their Instances; see `docs/mail.md`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use jiff::tz::TimeZone;
use lettre::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats::{self, Format};
use super::keys::keys;

keys! {
    /// The mail that Tenants get about their Instances; see `docs/mail.md`.
    pub struct MailConfig {
        /// How mail leaves: `none`, `smtp` for a mail server, or `file` for a Maildir folder, as in a demonstration.
        pub transport: MailTransport,
        /// The mail server, which is required for `smtp` unless `configDir` is set.
        pub host: String as MAIL_HOST,
        /// The port of the mail server; 0 for the usual one of `tls`: 465, 587 or 25.
        #[schemars(with = "usize", range(min = 0, max = 65535))]
        pub port: u16,
        /// The encryption: `implicit` from the first byte, `starttls` (required, not just offered), or `none` for
        /// a relay that is reached over a network which is trusted.
        pub tls: MailTls,
        /// The user name for the mail server; empty for no login.
        pub username: String,
        /// The file with the password for the mail server, which is read again for each mail.
        pub password_file: String,
        /// The user to act as, where it is not `username` (the authorization identity of SASL PLAIN); usually empty.
        pub identity: String,
        /// The sender, such as `noreply@example.com` or `CrownLabs <noreply@example.com>`.
        pub from: String as SENDER,
        /// The file with the certificates of the authorities to trust, in PEM, which is read again for each mail;
        /// empty for those of the operating system.
        pub ca_file: String,
        /// The folder with a file `smtp-config.yaml` as the Go operators read it, which takes the place of `host`,
        /// `port`, `username`, `passwordFile`, `identity` and `from`.
        pub config_dir: String,
        /// The Maildir folder that `file` writes mails to; it is created if necessary.
        pub folder: String,
        /// The folder with the templates of mails, which are read again for each mail; empty for the built-in ones.
        pub template_dir: String,
        /// The time zone of the times in mails, by its IANA name such as `Europe/Rome`.
        pub time_zone: String as TIME_ZONE = "UTC".to_owned(),
        /// The time in which a mail has to be accepted, from the connection to the answer.
        pub timeout: ConfigDuration = ConfigDuration::from_secs(30),
        /// What happens where a warning is refused for good, also without any text of the user: the managers of the
        /// course get a mail, and the Instance is kept (`keep`), or its deadline counts from that mail (`proceed`).
        pub undeliverable: Undeliverable,
    }
}

/// What happens to an Instance whose Tenant cannot be warned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Undeliverable {
    /// It is kept until a mail is accepted.
    #[default]
    Keep,
    /// A mail to the managers of its course counts as the warning.
    Proceed,
}

/// How mail leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MailTransport {
    /// Not at all.
    #[default]
    None,
    /// Through a mail server.
    Smtp,
    /// Into a Maildir folder.
    File,
}

/// How the connection to the mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MailTls {
    /// TLS from the first byte.
    #[default]
    Implicit,
    /// TLS after the command `STARTTLS`; without it, nothing is sent.
    Starttls,
    /// None.
    None,
}

impl MailTls {
    /// The port that servers usually have for it (RFC 8314 and RFC 5321).
    pub fn usual_port(self) -> u16 {
        match self {
            Self::Implicit => 465,
            Self::Starttls => 587,
            Self::None => 25,
        }
    }
}

/// A mailbox: an address, with or without a name before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    /// The name; empty for none.
    pub name: String,
    /// The address.
    pub address: Address,
}

impl fmt::Display for Mailbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            name if name.is_empty() => write!(formatter, "{}", self.address),
            name => write!(formatter, "{name} <{}>", self.address),
        }
    }
}

/// A text is no mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no e-mail address")]
pub struct NoMailbox;

impl FromStr for Mailbox {
    type Err = NoMailbox;

    fn from_str(text: &str) -> Result<Self, NoMailbox> {
        let (name, address) = split_mailbox(text).unwrap_or_else(|| (String::new(), text.trim()));
        let is_plain = |text: &str| !text.contains(char::is_control);
        if !is_plain(text) || name.contains(['<', '>']) {
            return Err(NoMailbox);
        }
        let address = address.parse().map_err(|_| NoMailbox)?;
        Ok(Self { name, address })
    }
}

/// The name, without quotes, and the address of `name <address>`.
pub fn split_mailbox(text: &str) -> Option<(String, &str)> {
    let (name, address) = text.trim().strip_suffix('>')?.rsplit_once('<')?;
    let name = name.trim();
    let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    let name =
        quoted.map_or_else(|| name.to_owned(), |inner| inner.replace("\\\"", "\"").replace("\\\\", "\\"));
    Some((name, address.trim()))
}

const MAIL_HOST: Format = Format::new(
    "crownlabs-mail-host",
    "a host name such as smtp.example.com or an IP address, without port, or \"\" for none",
    |text| text.is_empty() || text.parse::<IpAddr>().is_ok() || (formats::HOST.accepts)(text),
);
const SENDER: Format = Format::new(
    "crownlabs-mail-sender",
    "an address such as noreply@example.com or \"CrownLabs <noreply@example.com>\", or \"\" for none",
    |text| text.is_empty() || text.parse::<Mailbox>().is_ok(),
);
const TIME_ZONE: Format = Format::new(
    "crownlabs-time-zone",
    "a time zone of the IANA database, such as Europe/Rome or UTC",
    |text| TimeZone::get(text).is_ok(),
);

/// The formats of these keys.
pub(super) const FORMATS: [&Format; 3] = [&MAIL_HOST, &SENDER, &TIME_ZONE];
