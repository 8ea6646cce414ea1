//! Templates of mails: six files with the content of one mail each, a file with texts that all of them share, and
//! the mail as a whole with its headers and parts. They have the names and the form that the Go operators gave
//! them, so existing files can be used; `docs/mail.md` describes them.

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

/// The file with the mail as a whole.
const MESSAGE: &str = "defaults_crownlabs_mail.eml";
/// The file with the texts that all mails share.
const FRAGMENTS: &str = "defaults_crownlabs_headers.yaml";

/// The keys of a content file without which a mail would say nothing, or go out with a placeholder in its place.
const NEEDED: [&str; 4] = ["to", "subject", "plaintext_content", "html_content"];

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct TemplateError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Where templates come from. A folder is read again for each mail.
pub(super) struct Templates {
    folder: Option<PathBuf>,
}

impl Templates {
    /// The templates in a folder; the built-in ones if it is empty.
    pub(super) fn new(folder: &str) -> Self {
        Self { folder: (!folder.is_empty()).then(|| PathBuf::from(folder)) }
    }

    /// Reads all templates. Returns what may be a mistake in them, as sentences.
    pub(super) fn check(&self) -> Result<Vec<String>, TemplateError> {
        let mut doubts = Vec::new();
        let mut undefined: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for kind in MailKind::ALL {
            let set = self.load(kind)?;
            for key in set.undefined() {
                undefined.entry(key).or_default().push(kind.file());
            }
            let known = |name: &str| values::NAMES.contains(&name);
            for text in set.content.values() {
                for name in placeholder::unknown(text, known) {
                    let known = values::NAMES.join(", ");
                    let file = kind.file();
                    doubts.push(format!(
                        "{file}: {{ {name} }} stays as it is, because it is none of the placeholders {known}"
                    ));
                }
            }
        }
        doubts.extend(undefined.into_iter().map(|(key, files)| {
            let files = files.join(", ");
            format!(
                "{MESSAGE}: {{ {key} }} stays as it is, because neither {FRAGMENTS} nor {files} has this key"
            )
        }));
        Ok(doubts)
    }

    /// The templates of a mail: those that are read, or, where it is said in our words, the built-in ones.
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
        // Folders that were made before there were these mails do not have them.
        let is_later = matches!(kind, MailKind::DestructionWarning | MailKind::Destroyed);
        let message = with_lf(&self.text(MESSAGE)?);
        let (head, body) =
            message.split_once("\n\n").filter(|(head, _)| !head.is_empty()).ok_or_else(|| TemplateError {
                file: self.name(MESSAGE),
                problem: "there is no empty line between the headers and the text".to_owned(),
            })?;
        let is_built_in = is_later && self.lacks(content);
        let source = if is_built_in { &Self { folder: None } } else { self };
        let mut set = TemplateSet {
            head: head.to_owned(),
            body: body.to_owned(),
            fragments: self.texts(FRAGMENTS)?,
            content: source.texts(content)?,
        };
        if is_built_in {
            // The keys of the folder's own content files, of which a built-in one knows nothing.
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

    /// The name of a file in messages.
    fn name(&self, file: &str) -> String {
        match &self.folder {
            Some(folder) => folder.join(file).display().to_string(),
            None => format!("the built-in {file}"),
        }
    }

    /// Whether the folder does not have a file.
    fn lacks(&self, file: &str) -> bool {
        let found = self.folder.as_ref().map(|folder| std::fs::metadata(folder.join(file)));
        matches!(found, Some(Err(error)) if error.kind() == io::ErrorKind::NotFound)
    }

    /// The text of a file.
    fn text(&self, file: &'static str) -> Result<String, TemplateError> {
        let bad = |problem: &str| TemplateError { file: self.name(file), problem: problem.to_owned() };
        let Some(folder) = &self.folder else { return Ok(built_in(file).to_owned()) };
        let text = match std::fs::read(folder.join(file)) {
            Ok(content) => String::from_utf8(content).map_err(|_| bad("it is not UTF-8 text"))?,
            Err(error) => return Err(bad(&format!("it cannot be read: {error}"))),
        };
        if text.trim().is_empty() { Err(bad("it is empty")) } else { Ok(text) }
    }

    /// The texts in a YAML file, by their keys.
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

/// A text with LF at the ends of its lines, whatever it had there.
fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// A built-in file.
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
        "instautoctrl_expiration_notification.yaml"
    )
}
