//! Templates of mails: seven files with the content of one kind of mail each, a file with shared texts, and the whole
//! mail with its headers and parts. They have the same names and format as in the Go operators, so that existing
//! files can be used; `docs/mail.md` describes them.

mod header;
mod placeholder;
mod plain;
mod render;
mod values;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde_json::Value;
use serde_saphyr::{DefaultMessageFormatter, MessageFormatter};

use super::notice::{MailKind, Wording};
pub(super) use render::{Letter, TemplateSet};

/// The file with the whole mail.
const MESSAGE: &str = "defaults_crownlabs_mail.eml";
/// The file with the texts that all mails share.
const FRAGMENTS: &str = "defaults_crownlabs_headers.yaml";

/// The required keys of a content file. Without them, a mail would be empty or contain a placeholder.
const NEEDED: [&str; 4] = ["to", "subject", "plaintext_content", "html_content"];

/// The reason why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct TemplateError {
    /// The file.
    pub file: String,
    /// The error.
    pub problem: String,
}

/// The source of templates. A folder is read again for each mail.
pub(super) struct Templates {
    folder: Option<PathBuf>,
}

impl Templates {
    /// The templates in a folder, or the built-in templates if `folder` is empty.
    pub(super) fn new(folder: &str) -> Self {
        Self { folder: (!folder.is_empty()).then(|| PathBuf::from(folder)) }
    }

    /// Reads all templates. Returns a sentence for each possible mistake.
    pub(super) fn check(&self) -> Result<Vec<String>, TemplateError> {
        let mut doubts = Vec::new();
        let mut undefined: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for kind in MailKind::ALL {
            let set = self.load(kind)?;
            for key in set.undefined() {
                undefined.entry(key).or_default().push(kind.file());
            }
            for text in set.content.values() {
                for name in placeholder::unknown(text, values::is_known) {
                    let known = values::ALL.map(|(known, _)| known).join(", ");
                    let file = kind.file();
                    doubts.push(format!(
                        "{file}: {{ {name} }} is not replaced, because it is not one of the placeholders {known}"
                    ));
                }
            }
        }
        doubts.extend(undefined.into_iter().map(|(key, files)| {
            let files = files.join(", ");
            format!(
                "{MESSAGE}: {{ {key} }} is not replaced, because neither {FRAGMENTS} nor {files} has this key"
            )
        }));
        Ok(doubts)
    }

    /// Returns the templates of a mail: the configured templates, or the built-in ones if the mail has a built-in
    /// text.
    pub(super) fn of(&self, letter: &Letter) -> Result<TemplateSet, TemplateError> {
        let Letter { mail, zone, zone_name, .. } = letter;
        match &mail.wording {
            Wording::Templates => self.load(mail.kind),
            Wording::Plain | Wording::Manager { .. } => {
                let content = plain::content(mail, zone, zone_name);
                Ok(TemplateSet { content, ..Self { folder: None }.load(mail.kind)? })
            }
        }
    }

    /// Reads the templates of a kind of mail.
    pub(super) fn load(&self, kind: MailKind) -> Result<TemplateSet, TemplateError> {
        let content = kind.file();
        // Folders that were made before these mails existed do not have their templates.
        let is_later =
            matches!(kind, MailKind::DestructionWarning | MailKind::Destroyed | MailKind::SubmissionReceipt);
        let message = with_lf(&self.text(MESSAGE)?);
        let (head, body) =
            message.split_once("\n\n").filter(|(head, _)| !head.is_empty()).ok_or_else(|| TemplateError {
                file: self.name(MESSAGE),
                problem: "there is no empty line between the headers and the text".to_owned(),
            })?;
        let is_built_in = is_later && self.lacks(content);
        let source = if is_built_in { &Self { folder: None } } else { self };
        let (fragments, texts) = (self.texts(FRAGMENTS)?, source.texts(content)?);
        let mut set = TemplateSet { head: head.to_owned(), body: body.to_owned(), fragments, content: texts };
        if is_built_in {
            // The built-in template does not know the keys of the folder's own content files.
            set.content.extend(set.undefined().into_iter().map(|key| (key, String::new())));
        }
        match set.undefined().iter().find(|key| NEEDED.contains(&key.as_str())) {
            None => Ok(set),
            Some(key) => Err(TemplateError {
                file: self.name(content),
                problem: format!("{key} is missing, and {MESSAGE} has the placeholder {{ {key} }}"),
            }),
        }
    }

    /// Returns the name of a file for messages.
    fn name(&self, file: &str) -> String {
        let path = self.folder.as_ref().map(|folder| folder.join(file).display().to_string());
        path.unwrap_or_else(|| format!("the built-in {file}"))
    }

    /// Whether a file is missing in the folder.
    fn lacks(&self, file: &str) -> bool {
        let found = self.folder.as_ref().map(|folder| std::fs::metadata(folder.join(file)));
        matches!(found, Some(Err(error)) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Reads the text of a file.
    fn text(&self, file: &'static str) -> Result<String, TemplateError> {
        let bad = |problem: &str| TemplateError { file: self.name(file), problem: problem.to_owned() };
        let Some(folder) = &self.folder else { return Ok(built_in(file).to_owned()) };
        let text = match std::fs::read(folder.join(file)) {
            Ok(content) => String::from_utf8(content).map_err(|_| bad("it is not UTF-8 text"))?,
            Err(error) => return Err(bad(&format!("it cannot be read: {error}"))),
        };
        if text.trim().is_empty() { Err(bad("it is empty")) } else { Ok(text) }
    }

    /// Reads the texts of a YAML file by their keys.
    fn texts(&self, file: &'static str) -> Result<BTreeMap<String, String>, TemplateError> {
        let text = self.text(file)?;
        let bad = |problem: String| TemplateError { file: self.name(file), problem };
        let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
        let values: BTreeMap<String, Value> =
            serde_saphyr::from_str_with_options(&text, options).map_err(|error| {
                let line =
                    error.location().map_or_else(String::new, |place| format!("line {}: ", place.line()));
                bad(format!("{line}not valid YAML: {}", DefaultMessageFormatter.format_message(&error)))
            })?;
        let text = |(key, value)| match value {
            Value::String(text) => Ok((key, with_lf(&text))),
            _ => Err(bad(format!("{key} is not text; expected every value to be in quotes or behind |-"))),
        };
        values.into_iter().map(text).collect()
    }
}

/// Converts all line ends to LF.
fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Returns a built-in file.
fn built_in(file: &str) -> &'static str {
    macro_rules! files {
        ($($name:literal),*) => {
            match file {
                $($name => include_str!(concat!("../../../../config/mail/", $name)),)*
                _ => "",
            }
        };
    }
    files!(
        "defaults_crownlabs_mail.eml",
        "defaults_crownlabs_headers.yaml",
        "instautoctrl_inactivity_notification.yaml",
        "instautoctrl_inactivity_stopped_notification.yaml",
        "instautoctrl_destruction_warning_notification.yaml",
        "instautoctrl_destruction_notification.yaml",
        "instautoctrl_expiration_warning_notification.yaml",
        "instautoctrl_expiration_notification.yaml",
        "instautoctrl_submission_receipt_notification.yaml"
    )
}
