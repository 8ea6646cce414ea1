//! The input of all pages.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::links;
use crate::config::Language;
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::http::brand::Brand;
use crate::controllers::dashboard::session::Favourites;
use crate::controllers::dashboard::texts::{ActionTexts, Texts, texts};

/// Whether a page updates automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Live {
    /// It does, if the browser runs scripts.
    On,
    /// The scripts are not in this build.
    Absent,
    /// The maximum number of live pages is open (`maxPages`).
    Full,
    /// It is a page about a state, which has no updates.
    Never,
}

/// The outcome of an action, shown above the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The action succeeded.
    Done(String),
    /// The action failed for this reason.
    Failed(String),
}

/// The content of a form that was rejected, or that was sent after the session had expired.
#[derive(Debug, Clone, Copy)]
pub struct Typed<'a> {
    /// The path that receives the form, such as `/account/keys/add`.
    pub action: &'a str,
    /// The fields with their values.
    pub values: &'a [(String, String)],
    /// The invalid field: its name, and the id of its element.
    pub wrong: Option<(&'a str, &'a str)>,
}

/// The input of all pages.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The language.
    pub language: Language,
    /// The available languages.
    pub languages: &'a [Language],
    /// The time zone of the user.
    pub zone: &'a TimeZone,
    /// The time of the response.
    pub now: Timestamp,
    /// The nonce of the response, as in its `Content-Security-Policy`.
    pub nonce: &'a str,
    /// The path of the page without its query.
    pub path: &'a str,
    /// The query that selects the content of the page, encoded; empty without one.
    pub query: &'a str,
    /// The text that the user searches for; empty without a search.
    pub search: &'a str,
    /// The name of the user; empty without a login.
    pub user: &'a str,
    /// Whether the user has the rights of administrators, who get a link to their pages.
    pub is_administrator: bool,
    /// Whether the page *My files* exists (`driveTemplate`).
    pub has_files: bool,
    /// The appearance of the university.
    pub brand: &'a Brand,
    /// The URL of the help page (`helpUrl`); empty if it is not configured.
    pub help: &'a str,
    /// The path of the style sheet.
    pub style: &'a str,
    /// The paths of the scripts, in the order of execution.
    pub scripts: &'a [&'a str],
    /// The address of the stream of updates.
    pub events: &'a str,
    /// Whether the page updates automatically.
    pub live: Live,
    /// A random suffix for the names of new objects, of lowercase letters and digits.
    pub fresh: &'a str,
    /// The favourite Templates.
    pub favourites: &'a Favourites,
    /// The notice above the page.
    pub notice: Option<&'a Notice>,
    /// The content of a form that is shown again.
    pub typed: Option<Typed<'a>>,
    /// When the objects were read, if the API server does not respond now. Actions are then disabled.
    pub old: Option<Timestamp>,
}

impl<'a> View<'a> {
    /// Returns the texts of the language.
    pub fn texts(&self) -> &'static Texts {
        texts(self.language)
    }

    /// Returns the path of the page with its query.
    pub fn own_path(&self) -> String {
        links::queried(self.path, self.query)
    }

    /// Returns the texts of an action. Every language has them, which a test shows.
    pub fn action(&self, action: &Action) -> &'static ActionTexts {
        &self.texts().actions[action.name]
    }

    /// Returns the reason why the form with this path was rejected, if it is about this field.
    pub fn wrong_in(&self, action: &str, field: &str) -> Option<&'a str> {
        let typed = self.typed.filter(|typed| typed.action == action)?;
        let is_wrong = typed.wrong.is_some_and(|(name, _)| name == field);
        match self.notice {
            Some(Notice::Failed(why)) if is_wrong => Some(why.as_str()),
            _ => None,
        }
    }

    /// Returns the typed value of a field of the form with this path.
    pub fn typed_in(&self, action: &str, field: &str) -> Option<&'a str> {
        let typed = self.typed.filter(|typed| typed.action == action)?;
        typed.values.iter().find(|(name, _)| name == field).map(|(_, value)| value.as_str())
    }
}
