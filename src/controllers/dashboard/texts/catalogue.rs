//! The catalogue of a language: all texts, with their types.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::actions::ActionTexts;
use super::declare::catalogue;
use super::pages::admin::AdminTexts;
use super::pages::announcements::AnnouncementTexts;
use super::pages::bulk::Bulk;
use super::pages::class::Class;
use super::pages::console::ConsoleTexts;
use super::pages::course::CoursePages;
use super::pages::exams::ExamTexts;
use super::pages::history::{HistoryTexts, TechnicalTexts};
use super::pages::people::PeopleTexts;
use super::pages::sharing::SharingTexts;
use super::pages::templates::TemplateTexts;
use super::pages::terminal::TerminalTexts;
use super::pages::volumes::VolumeTexts;
use super::phrases::{Ending, Progress};
use super::problems::Problem;
use super::template::{Plural, Table, Template};
use crate::api::denial::DenialReason;
use crate::config::Language;
use crate::controllers::dashboard::http::socket::End;
use crate::controllers::dashboard::progress::Step;
use crate::controllers::dashboard::standing::Standing;

/// The catalogues, in the order of the languages.
#[expect(clippy::panic, reason = "the files are part of the program, and a test reads each of them")]
static CATALOGUES: LazyLock<Vec<Texts>> = LazyLock::new(|| {
    // A test reads each of the files, which are compiled into the program.
    let read =
        |language: Language| read(language).unwrap_or_else(|error| panic!("{}: {error}", language.code()));
    Language::all().map(read).collect()
});

pub fn read(language: Language) -> Result<Texts, String> {
    serde_saphyr::from_str(language.file()).map_err(|error| error.to_string())
}

/// Returns the texts of a language.
pub fn texts(language: Language) -> &'static Texts {
    &CATALOGUES[language.index()]
}

catalogue! {
    /// The texts of a language. Comments in the files explain them.
    pub struct Texts;
    String:
        language, skip, pages, home, courses, account, log_out, help, languages, reload, not_live, silent,
        no_scripts, live_absent, live_full, old, details, moments_ago, in_moments, measure_instances,
        measure_cpu, measure_memory, measure_disk, unlimited, of_course, connect, no_machine, personal,
        no_course_name, new_machine, no_templates_here, keeps_disk, loses_disk, used_by, no_right,
        may_wait, no_namespace, away, why, warnings, next, next_nothing, pending_change, open,
        ssh, ssh_hint, to_terminal, to_console, no_ssh_yet, ports, ports_hint, no_ports, port_soon, name, save_hint,
        save_running, snapshots, facts, template, course, created, identity, ready_in, last_use, enders, you,
        managers, administrators, of_tenant, state_since, my_courses, other_courses, no_courses,
        no_other_courses, role_user, role_manager, role_candidate, failing, join_hint, ask_hint, gives,
        person, email, user_name, keys, keys_hint, no_keys, key_unused, key_without_name, fingerprint, quota,
        quota_all, used, granted, what, drive, drive_hint, my_files, files_wait, files_absent, lost, logout_late, desktops_stay,
        error, to_field, contact, cancel, copy, copied, options, any_node,
        running, stopped, all_machines, stopped_hint, wrong, off_and_empty, so_far, usually, notify, last_run,
        search, search_label, show_all, favourite, join_first_hint;
    Template:
        ago, in_time, amount_memory, amount_disk, quota_line, instead_of, port_line, quota_of,
        drive_size, start_it, join_first;
    Plural:
        seconds, minutes, hours, days, found, amount_instances, amount_cpu, warned;
    Table<Standing>: standing, because;
    Table<Step>: step;
    [String; 7]: weekdays;
    [String; 12]: months;
    char: decimal;
    Table<Ending, Template>: until, warning_due, template_says;
    Table<DenialReason, Template>: refusal;
    Table<Progress>: snapshot;
    ConnectHelp: connect_help;
    CoursePages: course_pages;
    AdminTexts: admin;
    AnnouncementTexts: announcements;
    Bulk: bulk;
    Class: class;
    ConsoleTexts: console;
    ExamTexts: exams;
    VolumeTexts: volumes;
    HistoryTexts: history;
    PeopleTexts: people;
    SharingTexts: sharing;
    TechnicalTexts: technical;
    TemplateTexts: templates;
    TerminalTexts: terminal;
    Table<End>: ends;
    BTreeMap<String, ActionTexts>: actions;
    Table<Problem>: problems;
    States: states;
    BTreeMap<String, String>: reasons;
}

/// The texts of a page about a state.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateTexts {
    /// The heading.
    pub heading: String,
    /// The explanation.
    pub happened: Template,
    /// The next step, of the platform or of the user.
    pub next: Template,
    /// The label of the link.
    pub action: String,
}

catalogue! {
    /// The texts of the pages about states, see [`State`](super::ui::state::State).
    pub struct States;
    StateTexts:
        no_tenant, unconfirmed, no_namespace, no_course, not_found, no_template, course_waits, refused,
        changed, away, issuer_refused, login_away, login_failed, no_machine, no_cookie, session_over, logged_out,
        logged_out_here, too_many, not_here, broken;
}

catalogue! {
    /// The help beside the ways to connect to a machine.
    pub struct ConnectHelp;
    String:
        how, none, address, host_key, desktop, clipboard, clipboard_hint, keyboard, keyboard_hint,
        full_screen, full_screen_hint, tablet, tablet_hint, ssh, create_key, create_key_hint, windows, mac,
        linux, add_key, to_account, log_in, host_key_hint, short_name, short_name_hint;
    Template: then;
}

impl Texts {
    /// Returns the meaning of a condition's reason for a student; `None` for a reason that the file does not have.
    pub fn reason(&self, code: &str) -> Option<&str> {
        self.reasons.get(code).map(String::as_str)
    }
}
