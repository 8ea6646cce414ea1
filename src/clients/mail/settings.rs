//! The settings of the mail server: from the configuration, or from a file `smtp-config.yaml` in the format of the Go
//! operators. All files are read again for each mail, so that a rotated password takes effect at once.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::transport::smtp::extension::ClientId;
use serde::Deserialize;

use crate::clients::http::check_authorities;
use crate::config::{MailConfig, MailTls, Mailbox, file, parse_ehlo_name};

/// The file in `configDir`.
const FILE: &str = "smtp-config.yaml";

/// The settings of the mail server. The type has no `Debug`, because it contains the password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// The host, which must match the name in its certificate.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The encryption.
    pub tls: MailTls,
    /// The login, if one is configured.
    pub login: Option<Login>,
    /// The sender.
    pub from: Mailbox,
    /// The name of this client in EHLO.
    pub ehlo_name: ClientId,
    /// The certificates of the authorities, in PEM; `None` for the authorities of the operating system.
    pub authorities: Option<Vec<u8>>,
}

/// A login with SASL PLAIN or LOGIN.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    /// The authorization identity; empty for `username`.
    pub identity: String,
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
}

impl Login {
    /// The response to the server's challenge in SASL PLAIN (RFC 4616).
    pub(super) fn plain(&self) -> String {
        STANDARD.encode(format!("{}\0{}\0{}", self.identity, self.username, self.password))
    }

    /// The encodings of the password that are sent. A server may repeat them in a response.
    fn secrets(&self) -> [String; 3] {
        [self.plain(), STANDARD.encode(&self.password), self.password.clone()]
    }
}

/// The known keys of `smtp-config.yaml`. Numbers and booleans are read as text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    #[serde(rename = "smtpServer")]
    server: Option<String>,
    #[serde(rename = "smtpPort")]
    port: Option<String>,
    #[serde(rename = "smtpIdentity")]
    identity: Option<String>,
    #[serde(rename = "smtpUsername")]
    username: Option<String>,
    #[serde(rename = "smtpPassword")]
    password: Option<String>,
    #[serde(rename = "smtpFrom")]
    from: Option<String>,
    #[serde(rename = "smtpTLS")]
    tls: Option<String>,
    #[serde(rename = "smtpCAFile")]
    ca: Option<String>,
}

impl Settings {
    /// Reads the current settings. An error is a sentence.
    pub(super) fn read(config: &MailConfig) -> Result<Self, String> {
        if config.config_dir.is_empty() {
            return Self::from_keys(config);
        }
        let path = Path::new(&config.config_dir).join(FILE);
        let text = file::read_text(&path);
        let text = text.map_err(|problem| format!("{} cannot be read: {problem}", path.display()))?;
        Self::from_file(config, &text).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    fn from_keys(config: &MailConfig) -> Result<Self, String> {
        let mut login = None;
        if !config.username.is_empty() {
            let (identity, username) = (config.identity.clone(), config.username.clone());
            login = Some(Login { identity, username, password: password(&config.password_file)? });
        }
        let from: Mailbox = config.from.parse().map_err(|problem| format!("from: {problem}"))?;
        Ok(Self {
            host: config.host.clone(),
            port: if config.port == 0 { config.tls.usual_port() } else { config.port },
            tls: config.tls,
            login,
            ehlo_name: ehlo_name(config, &from)?,
            from,
            authorities: authorities(&config.ca_file)?,
        })
    }

    fn from_file(config: &MailConfig, text: &str) -> Result<Self, String> {
        let options = serde_saphyr::options! { with_snippet: false };
        let file: File = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            // The message of the parser may repeat data of the file, including the password.
            let line =
                error.location().map_or_else(String::new, |place| format!(" in line {}", place.line()));
            format!(
                "it is not valid YAML{line}; expected a mapping of texts with smtpServer and the other keys"
            )
        })?;
        let needed = |key: &str, value: Option<String>| {
            value.filter(|value| !value.is_empty()).ok_or_else(|| format!("{key} is missing or empty"))
        };
        let host = needed("smtpServer", file.server)?;
        let port = needed("smtpPort", file.port)?;
        let port = port.trim().parse().ok().filter(|port| *port != 0);
        let from = needed("smtpFrom", file.from)?;
        let from: Mailbox = from.parse().map_err(|problem| format!("smtpFrom: {problem}"))?;
        let tls = match file.tls.as_deref().unwrap_or_default() {
            "" => config.tls,
            "implicit" => MailTls::Implicit,
            "starttls" => MailTls::Starttls,
            "none" => MailTls::None,
            _ => return Err("smtpTLS is not valid; expected implicit, starttls or none".to_owned()),
        };
        let ca_file = file.ca.filter(|path| !path.is_empty());
        Ok(Self {
            host,
            port: port.ok_or("smtpPort is not a valid port; expected a whole number from 1 to 65535")?,
            tls,
            login: Some(Login {
                identity: file.identity.unwrap_or_default(),
                username: needed("smtpUsername", file.username)?,
                password: needed("smtpPassword", file.password)?,
            }),
            ehlo_name: ehlo_name(config, &from)?,
            from,
            authorities: authorities(ca_file.as_ref().unwrap_or(&config.ca_file))?,
        })
    }

    /// Host and port for messages.
    pub(super) fn server(&self) -> String {
        match self.host.parse::<std::net::Ipv6Addr>() {
            Ok(address) => format!("[{address}]:{}", self.port),
            Err(_) => format!("{}:{}", self.host, self.port),
        }
    }

    /// Formats a text of the server: one line of at most 300 characters, without the password.
    pub(super) fn said(&self, text: &str) -> String {
        let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for secret in self.login.iter().flat_map(Login::secrets) {
            line = line.replace(&secret, "…");
        }
        line.chars().take(300).collect()
    }
}

/// Returns the name of this client in EHLO: the configured name, or the domain of the sender. Pods have no DNS name,
/// and mail servers reject `localhost`.
fn ehlo_name(config: &MailConfig, from: &Mailbox) -> Result<ClientId, String> {
    let name = if config.ehlo_name.is_empty() { from.address.domain() } else { config.ehlo_name.as_str() };
    if !name.is_ascii() {
        return Err(format!(
            "the domain {name} of the sender is not in ASCII, as EHLO needs it; set ehloName, for example to the form of the \
             domain that begins with xn--"
        ));
    }
    // An unusual domain is left to the server to accept or reject.
    Ok(parse_ehlo_name(name).unwrap_or_else(|| ClientId::Domain(name.to_owned())))
}

fn password(path: &str) -> Result<String, String> {
    file::read_secret(Path::new(path))
        .map_err(|problem| format!("passwordFile {path} cannot be read: {problem}"))
}

fn authorities(path: &str) -> Result<Option<Vec<u8>>, String> {
    if path.is_empty() {
        return Ok(None);
    }
    // lettre would accept a file without certificates.
    let checked = check_authorities(Path::new(path)).and_then(|()| {
        let read = file::read(Path::new(path));
        read.map_err(|error| error.to_string())
    });
    checked.map(Some).map_err(|problem| format!("caFile {path} cannot be read: {problem}"))
}
