//! What all pages are shown with.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::words::{Language, Words};

/// Whether a page changes by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Live {
    /// It does, where the browser runs scripts.
    On,
    /// The scripts are not in this build.
    #[default]
    Absent,
    /// More pages are open than may be live (`maxPages`).
    Full,
    /// It says what is wrong, and has nothing that changes.
    Never,
}

/// What an action has led to, above the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// It is done.
    Done(Done),
    /// It was refused or has failed, for this reason.
    Failed(String),
}

/// Declares what can be done: the variants, and their words in an address.
macro_rules! done {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// What an action has done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Done {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Done {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its word in an address.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

done! {
    /// A machine is made.
    Created = "created",
    /// A machine is started.
    Started = "started",
    /// A machine is stopped.
    Stopped = "stopped",
    /// A machine counts as used.
    Kept = "kept",
    /// A machine is being deleted.
    Deleted = "deleted",
    /// A machine has another title.
    Renamed = "renamed",
    /// A port is being made public.
    Exposed = "exposed",
    /// A port is public no more.
    Unexposed = "unexposed",
    /// An image is being made.
    Saved = "saved",
    /// The user is in a course.
    Joined = "joined",
    /// The user has asked to be in a course.
    Asked = "asked",
    /// The user is in a course no more.
    Left = "left",
    /// A key is there.
    KeyAdded = "key-added",
    /// A key is there no more.
    KeyRemoved = "key-removed",
}

impl Done {
    /// What this word in an address stands for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|done| done.word() == word)
    }
}

/// What a user has typed into a form that was not accepted, or that was sent when the login had ended.
#[derive(Debug, Clone, Copy)]
pub struct Typed<'a> {
    /// Where the form is sent to, such as `/account/keys/add`.
    pub action: &'a str,
    /// The fields and what was typed.
    pub values: &'a [(String, String)],
    /// The field that is wrong, and why.
    pub error: Option<(&'a str, &'a str)>,
}

/// What all pages are shown with.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The language.
    pub language: Language,
    /// The languages that can be chosen.
    pub languages: &'a [Language],
    /// The time zone of the user.
    pub zone: &'a TimeZone,
    /// The time of the answer.
    pub now: Timestamp,
    /// The nonce of the answer, as in its `Content-Security-Policy`.
    pub nonce: &'a str,
    /// The path of the page, which is fetched again when something changes, without a query.
    pub path: &'a str,
    /// The name of the user; empty if nobody is logged in.
    pub user: &'a str,
    /// Where help is found (`helpUrl`); empty for nowhere.
    pub help: &'a str,
    /// The path of the style sheet.
    pub style: &'a str,
    /// The paths of the scripts, in their order.
    pub scripts: &'a [&'a str],
    /// The path of the stream of changes of what is on the page.
    pub events: &'a str,
    /// Whether the page changes by itself.
    pub live: Live,
    /// A random part of the names of what forms create, of small letters and digits.
    pub fresh: &'a str,
    /// The notice above the page.
    pub notice: Option<&'a Notice>,
    /// What was typed into a form that is shown again.
    pub typed: Option<Typed<'a>>,
    /// When the objects were read, if the API server does not answer now: then nothing can be done on the page.
    pub old: Option<Timestamp>,
}

impl<'a> View<'a> {
    /// The sentences of the language.
    pub fn words(&self) -> &'static Words {
        self.language.words()
    }

    /// What was typed into a field of the form with this action.
    pub fn typed_in(&self, action: &str, field: &str) -> Option<&'a str> {
        let typed = self.typed.filter(|typed| typed.action == action)?;
        typed.values.iter().find(|(name, _)| name == field).map(|(_, value)| value.as_str())
    }

    /// What is wrong with a field of the form with this action.
    pub fn error_of(&self, action: &str, field: &str) -> Option<&'a str> {
        let typed = self.typed.filter(|typed| typed.action == action)?;
        typed.error.filter(|(name, _)| *name == field).map(|(_, error)| error)
    }
}
