//! What the pages say, in each language. A sentence that one language lacks does not compile.

mod en;
mod it;
mod reasons;
#[cfg(test)]
mod tests;

use super::amounts::amount;
use super::standing::Standing;
use super::view::Done;
use crate::api::instance_snapshot::SnapshotPhase;
use crate::api::promise::End;
use crate::api::public_key::PublicKeyError;
use crate::api::quota::Refusal;
use crate::api::usage::{Measure, Share};
use crate::api::why::Because;

/// A language of the pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Italian.
    Italian,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::English, Self::Italian];

    /// The code of the language, as in `lang` and `?lang=`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Italian => "it",
        }
    }

    /// The language of a code; `None` if there are no pages in it.
    pub fn of(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.code() == code)
    }

    /// Its name in the language itself.
    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Italian => "Italiano",
        }
    }

    /// Its sentences.
    pub const fn words(self) -> &'static Words {
        match self {
            Self::English => &en::WORDS,
            Self::Italian => &it::WORDS,
        }
    }

    /// What a reason of a condition means for a student; `None` where the sentence of the condition is all that is known.
    pub fn reason(self, code: &str) -> Option<&'static str> {
        reasons::of(self, code)
    }
}

/// A state or an error on a page of its own. `{}` stands for what differs: an address, a name, a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// The heading.
    pub heading: &'static str,
    /// What has happened.
    pub happened: &'static str,
    /// What happens next, or what the user can do.
    pub next: &'static str,
    /// The name of the one thing to do.
    pub action: &'static str,
}

/// All states and errors, see [`State`](super::State).
pub struct States {
    pub no_tenant: Said,
    pub unconfirmed: Said,
    pub no_namespace: Said,
    pub no_course: Said,
    pub not_found: Said,
    pub refused: Said,
    pub changed: Said,
    pub away: Said,
    pub issuer_refused: Said,
    pub login_away: Said,
    pub login_failed: Said,
    pub session_over: Said,
    pub logged_out: Said,
    pub too_many: Said,
    pub not_here: Said,
    pub broken: Said,
}

/// A unit of a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 86,400 seconds.
    Days,
    /// 3,600 seconds.
    Hours,
    /// 60 seconds.
    Minutes,
    /// Less than a minute.
    Moments,
}

/// The sentences and words of a language. Functions take what differs.
pub struct Words {
    // The frame of each page.
    pub skip: &'static str,
    pub pages: &'static str,
    pub home: &'static str,
    pub courses: &'static str,
    pub account: &'static str,
    pub log_out: &'static str,
    pub help: &'static str,
    pub languages: &'static str,
    pub reload: &'static str,
    pub not_live: &'static str,
    pub no_scripts: &'static str,
    pub live_absent: &'static str,
    pub live_full: &'static str,
    pub old: &'static str,
    pub details: &'static str,
    pub done: fn(Done) -> &'static str,

    // Times and amounts.
    pub ago: fn(Unit, i64) -> String,
    pub in_time: fn(Unit, i64) -> String,
    pub weekdays: [&'static str; 7],
    pub months: [&'static str; 12],
    pub duration: fn(char, u64) -> String,
    pub measure: fn(&Measure) -> String,
    pub amount: fn(&Measure, &str) -> String,
    pub decimal: char,
    pub share: fn(&str, &str) -> String,
    pub unlimited: &'static str,

    // Machines.
    pub standing: fn(Standing) -> &'static str,
    pub because: fn(Standing) -> &'static str,
    pub of_course: &'static str,
    pub connect: &'static str,
    pub start: &'static str,
    pub stop: &'static str,
    pub keep: &'static str,
    pub delete: &'static str,
    pub delete_question: fn(&str) -> String,
    pub delete_data: &'static str,
    pub delete_yes: &'static str,
    pub until: fn(Option<End>, Because) -> &'static str,
    pub warning_due: fn(Option<End>, Because) -> &'static str,
    pub keep_hint: &'static str,
    pub no_machine: &'static str,
    pub personal: &'static str,
    pub no_course_name: &'static str,

    // Templates.
    pub new_machine: &'static str,
    pub no_templates_here: &'static str,
    pub left: &'static str,
    pub keeps_disk: &'static str,
    pub loses_disk: &'static str,
    pub refusal: fn(&Refusal) -> String,
    pub too_many_machines: fn(i64) -> String,
    pub used_by: &'static str,
    pub no_right: &'static str,
    pub no_namespace: &'static str,
    pub away: &'static str,

    // The page of a machine.
    pub why: &'static str,
    pub warnings: &'static str,
    pub next: &'static str,
    pub next_nothing: &'static str,
    pub template_says: fn(End, Because, &str) -> String,
    pub warned: fn(i64) -> String,
    pub pending_change: &'static str,
    pub environments: &'static str,
    pub open: &'static str,
    pub ssh: &'static str,
    pub ssh_hint: &'static str,
    pub web_ssh: &'static str,
    pub no_ssh_yet: &'static str,
    pub ports: &'static str,
    pub ports_hint: &'static str,
    pub no_ports: &'static str,
    pub port_line: fn(i32) -> String,
    pub port_soon: &'static str,
    pub remove: &'static str,
    pub add: &'static str,
    pub add_port: &'static str,
    pub port_name: &'static str,
    pub port_name_hint: &'static str,
    pub port_inside: &'static str,
    pub port_outside: &'static str,
    pub port_outside_hint: &'static str,
    pub protocol: &'static str,
    pub name: &'static str,
    pub rename: &'static str,
    pub rename_hint: &'static str,
    pub save: &'static str,
    pub save_hint: &'static str,
    pub save_running: &'static str,
    pub image_name: &'static str,
    pub image_name_hint: &'static str,
    pub save_button: &'static str,
    pub snapshots: &'static str,
    pub snapshot: fn(&SnapshotPhase) -> &'static str,
    pub facts: &'static str,
    pub template: &'static str,
    pub course: &'static str,
    pub created: &'static str,
    pub identity: &'static str,
    pub ready_in: &'static str,
    pub last_use: &'static str,
    pub enders: &'static str,
    pub you: &'static str,
    pub managers: &'static str,
    pub administrators: &'static str,
    pub of_tenant: &'static str,
    pub state_since: &'static str,

    // Courses.
    pub my_courses: &'static str,
    pub other_courses: &'static str,
    pub no_courses: &'static str,
    pub no_other_courses: &'static str,
    pub role_user: &'static str,
    pub role_manager: &'static str,
    pub role_candidate: &'static str,
    pub failing: &'static str,
    pub join: &'static str,
    pub join_hint: &'static str,
    pub ask: &'static str,
    pub ask_hint: &'static str,
    pub leave: &'static str,
    pub withdraw: &'static str,
    pub leave_question: &'static str,
    pub gives: &'static str,

    // The account.
    pub person: &'static str,
    pub email: &'static str,
    pub user_name: &'static str,
    pub keys: &'static str,
    pub keys_hint: &'static str,
    pub no_keys: &'static str,
    pub key_error: fn(PublicKeyError) -> &'static str,
    pub key_unused: &'static str,
    pub key_without_name: &'static str,
    pub fingerprint: &'static str,
    pub add_key: &'static str,
    pub key_label: &'static str,
    pub key_hint: &'static str,
    pub quota: &'static str,
    pub quota_all: &'static str,
    pub quota_of: fn(&str) -> String,
    pub used: &'static str,
    pub granted: &'static str,
    pub what: &'static str,
    pub drive: &'static str,
    pub drive_hint: &'static str,
    pub drive_size: fn(&str) -> String,
    pub drive_open: &'static str,
    pub drive_is_open: &'static str,

    // States.
    pub states: States,
}

/// Shares of a quota as a list: `Memory: 5 GiB instead of 4 GiB`, where `said` puts both amounts together.
fn list(words: &Words, shares: &[Share], said: impl Fn(&str, &str) -> String) -> String {
    let one = |share: &Share| {
        let used = amount(words, &share.measure, &share.used);
        let limit = share.limit.as_ref().map(|limit| amount(words, &share.measure, limit));
        let name = (words.measure)(&share.measure);
        format!("{name}: {}", said(&used, limit.as_deref().unwrap_or(words.unlimited)))
    };
    shares.iter().map(one).collect::<Vec<_>>().join("; ")
}
