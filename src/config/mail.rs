//! The keys of the mail that Tenants get about their Instances; see `docs/mail.md`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use jiff::tz::TimeZone;
use lettre::Address;
use lettre::transport::smtp::extension::ClientId;
use macro_rules_attribute::apply;

use super::bound::POSITIVE;
use super::duration::ConfigDuration;
use super::formats::{self, formats};
use super::keys::{choice, keys};

keys! {
    /// The mail that Tenants get about their Instances; see `docs/mail.md`.
    pub struct MailConfig {
        /// How mail is delivered: `none`, `smtp` for a mail server, or `file` for a Maildir folder, as in a
        /// demonstration.
        pub transport: MailTransport,
        /// The mail server, which is required for `smtp` unless `configDir` is set.
        pub host: String as MAIL_HOST,
        /// The port of the mail server; 0 for the usual one of `tls`: 465, 587 or 25.
        #[schemars(with = "usize")]
        pub port: u16 as 0..=65535,
        /// The encryption: `implicit` from the first byte, `starttls` (required, not just offered), or `none` for a
        /// relay on a trusted network.
        pub tls: MailTls,
        /// The user name for the mail server; empty for no login.
        pub username: String,
        /// The file with the password for the mail server, read again for each mail.
        pub password_file: String,
        /// The user to act as, if it differs from `username` (the authorization identity of SASL PLAIN); usually empty.
        pub identity: String,
        /// The sender, such as `noreply@example.com` or `CrownLabs <noreply@example.com>`.
        pub from: String as SENDER,
        /// The name of this client in the command `EHLO`: a domain such as `labs.example.com`, or an address such as
        /// `[192.0.2.1]`; empty for the domain of `from`. Mail servers check it.
        pub ehlo_name: String as EHLO_NAME,
        /// The PEM file with the certificate authorities to trust, read again for each mail; if empty, the operating
        /// system's authorities are trusted.
        pub ca_file: String,
        /// The folder with a file `smtp-config.yaml` as the Go operators read it. It replaces `host`, `port`,
        /// `username`, `passwordFile`, `identity` and `from`.
        pub config_dir: String,
        /// The Maildir folder for the transport `file`; created if necessary.
        pub folder: String,
        /// The folder with the templates of mails, read again for each mail; empty for the built-in templates.
        pub template_dir: String,
        /// The time zone of the times in mails, by its IANA name such as `Europe/Rome`.
        pub time_zone: String as TIME_ZONE = "UTC".to_owned(),
        /// The time limit for sending a mail, from the connection to the server's response.
        pub timeout: ConfigDuration where POSITIVE = ConfigDuration::from_secs(30),
        /// The fallback if a warning is permanently rejected, even without text written by users. The managers of the
        /// course get a mail, and the Instance is either kept (`keep`) or its deadline counts from that mail
        /// (`proceed`).
        pub undeliverable: Undeliverable,
    }
}

/// The fallback for an Instance whose Tenant cannot be warned.
#[apply(choice)]
pub enum Undeliverable {
    /// The Instance is kept until a mail is accepted.
    #[default]
    Keep,
    /// A mail to the managers of its course counts as the warning.
    Proceed,
}

/// How mail is delivered.
#[apply(choice)]
pub enum MailTransport {
    /// No mail is delivered.
    #[default]
    None,
    /// Through a mail server.
    Smtp,
    /// Into a Maildir folder.
    File,
}

/// How the connection to the mail server is encrypted.
#[apply(choice)]
pub enum MailTls {
    /// TLS from the first byte.
    #[default]
    Implicit,
    /// TLS after the command `STARTTLS`; without it, nothing is sent.
    Starttls,
    /// No encryption.
    None,
}

impl MailTls {
    /// The usual port of servers for this encryption (RFC 8314 and RFC 5321).
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

/// The error for a text that is not a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid e-mail address")]
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

/// Parses the name of a client in the command EHLO (RFC 5321, section 4.1.3): a domain, or an address literal such as
/// `[192.0.2.1]` or `[IPv6:2001:db8::1]`. Returns `None` for any other text.
pub fn parse_ehlo_name(text: &str) -> Option<ClientId> {
    let Some(literal) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
        let is_domain = (formats::HOST.accepts)(&text.to_lowercase()) && text.parse::<IpAddr>().is_err();
        return is_domain.then(|| ClientId::Domain(text.to_owned()));
    };
    match literal.split_once(':') {
        Some((tag, address)) if tag.eq_ignore_ascii_case("ipv6") => address.parse().map(ClientId::Ipv6).ok(),
        _ => literal.parse().map(ClientId::Ipv4).ok(),
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

formats! {
    MAIL_HOST = "crownlabs-mail-host",
        |text| text.is_empty() || text.parse::<IpAddr>().is_ok() || (formats::HOST.accepts)(text),
        "a host name such as smtp.example.com or an IP address, without port, or \"\" for none",
        concat!("^(", pattern!(host), "|", pattern!(ipv4), "|", pattern!(ipv6), ")?$");
    SENDER = "crownlabs-mail-sender", |text| text.is_empty() || text.parse::<Mailbox>().is_ok(),
        "an address such as noreply@example.com or \"CrownLabs <noreply@example.com>\", or \"\" for none",
        "^(.+@.+)?$";
    EHLO_NAME = "crownlabs-ehlo-name",
        |text| match parse_ehlo_name(text) {
            Some(ClientId::Domain(domain)) => domain.contains('.'),
            Some(_) => true,
            None => text.is_empty(),
        },
        "a domain such as labs.example.com, or an address in brackets such as [192.0.2.1] or [IPv6:2001:db8::1], or \"\" \
         for the domain of from",
        r"^([-A-Za-z0-9]+([.][-A-Za-z0-9]+)+|\[[0-9A-Za-z:.]+\])?$";
    TIME_ZONE = "crownlabs-time-zone", |text| TimeZone::get(text).is_ok(),
        "a time zone of the IANA database, such as Europe/Rome or UTC",
        "^[A-Za-z][-A-Za-z0-9_+/]*$";
}
