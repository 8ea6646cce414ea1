//! How to reach the mail server: from keys of our own, or from a file `smtp-config.yaml` as the Go operators
//! read it. All files are read again for each mail, so a rotated password counts at once.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::config::{MailConfig, MailTls, Mailbox};

/// The file in `configDir`.
const FILE: &str = "smtp-config.yaml";

/// How to reach the mail server. It has no `Debug`, because the password is in it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// The host, which is also the name in its certificate.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The encryption.
    pub tls: MailTls,
    /// The login, if there is one.
    pub login: Option<Login>,
    /// The sender.
    pub from: Mailbox,
    /// The certificates of the authorities, in PEM; `None` for those of the operating system.
    pub authorities: Option<Vec<u8>>,
}

/// A login by SASL PLAIN or LOGIN.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    /// The user to act as; empty for `username`.
    pub identity: String,
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
}

impl Login {
    /// The answer to the server's question by SASL PLAIN (RFC 4616).
    pub(super) fn plain(&self) -> String {
        STANDARD.encode(format!("{}\0{}\0{}", self.identity, self.username, self.password))
    }

    /// The forms in which the password is sent, which a server may repeat.
    fn secrets(&self) -> [String; 3] {
        [self.plain(), STANDARD.encode(&self.password), self.password.clone()]
    }
}

/// The known keys of `smtp-config.yaml`. A number or a boolean is taken as it is written.
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
    /// The settings as they are now, or a sentence about what is wrong with them.
    pub(super) fn read(config: &MailConfig) -> Result<Self, String> {
        if config.config_dir.is_empty() {
            Self::from_keys(config)
        } else {
            let path = Path::new(&config.config_dir).join(FILE);
            let name = path.display().to_string();
            let text = read_text(&path)?;
            Self::from_file(config, &text).map_err(|problem| format!("{name}: {problem}"))
        }
    }

    fn from_keys(config: &MailConfig) -> Result<Self, String> {
        let login = if config.username.is_empty() {
            None
        } else {
            Some(Login {
                identity: config.identity.clone(),
                username: config.username.clone(),
                password: password(&config.password_file)?,
            })
        };
        Ok(Self {
            host: config.host.clone(),
            port: if config.port == 0 { config.tls.usual_port() } else { config.port },
            tls: config.tls,
            login,
            from: config.from.parse().map_err(|problem| format!("from: {problem}"))?,
            authorities: authorities(&config.ca_file)?,
        })
    }

    fn from_file(config: &MailConfig, text: &str) -> Result<Self, String> {
        let options = serde_saphyr::options! { with_snippet: false };
        let file: File = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            // The words of the parser may repeat what it read, which may be the password.
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
            port: port.ok_or("smtpPort is no port; expected a whole number from 1 to 65535")?,
            tls,
            login: Some(Login {
                identity: file.identity.unwrap_or_default(),
                username: needed("smtpUsername", file.username)?,
                password: needed("smtpPassword", file.password)?,
            }),
            from: from.parse().map_err(|problem| format!("smtpFrom: {problem}"))?,
            authorities: authorities(ca_file.as_ref().unwrap_or(&config.ca_file))?,
        })
    }

    /// Host and port, for messages.
    pub(super) fn server(&self) -> String {
        match self.host.parse::<std::net::Ipv6Addr>() {
            Ok(address) => format!("[{address}]:{}", self.port),
            Err(_) => format!("{}:{}", self.host, self.port),
        }
    }

    /// A text of the server's on one line of at most 300 characters, without the password.
    pub(super) fn said(&self, text: &str) -> String {
        let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for secret in self.login.iter().flat_map(Login::secrets) {
            line = line.replace(&secret, "…");
        }
        line.chars().take(300).collect()
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let content =
        std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    String::from_utf8(content).map_err(|_| format!("{} is not text", path.display()))
}

fn password(file: &str) -> Result<String, String> {
    let text = read_text(Path::new(file)).map_err(|problem| format!("passwordFile {problem}"))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(format!("passwordFile {file} is empty")),
        password => Ok(password.to_owned()),
    }
}

fn authorities(file: &str) -> Result<Option<Vec<u8>>, String> {
    if file.is_empty() {
        return Ok(None);
    }
    let content = std::fs::read(file).map_err(|error| format!("caFile {file} cannot be read: {error}"))?;
    // lettre would take none for enough.
    let blocks = pem::parse_many(&content).map_err(|error| format!("caFile {file} is not PEM: {error}"))?;
    if blocks.iter().any(|block| block.tag() == "CERTIFICATE") {
        Ok(Some(content))
    } else {
        Err(format!("caFile {file} has no certificate in it"))
    }
}
