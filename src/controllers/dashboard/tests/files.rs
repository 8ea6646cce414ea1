//! The links that open machines, and the page *My files*.

use serde_json::{Value, json};

use super::fixtures::{Everything, instance, known, settings, template, tenant, view, workspace};
use crate::api::{Instance, Template};
use crate::config::Language;
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::files::{model::Files, view::files};
use crate::controllers::dashboard::machine::card::{Card, Opening};
use crate::controllers::dashboard::student::{CONSOLE, Known, Rights, Settings, Student};
use crate::controllers::dashboard::ui::state::{State, state};
use crate::controllers::dashboard::ui::view::View;

const DRIVE: (&str, &str) = ("workspace-drive", "drive");

/// The rights of a user who may do everything except open consoles.
struct NoConsole;

impl Rights for NoConsole {
    fn may(&self, _: &str, right: &Right) -> bool {
        *right != CONSOLE
    }
}

/// What a student in the courses `net` and `drive` has with this machine and this Template.
fn with<T>(
    machine: Option<Instance>,
    template: Template,
    (rights, settings): (&dyn Rights, &Settings),
    then: impl Fn(&Student<'_>) -> T,
) -> T {
    let enrolled = tenant(&json!([{"name": "net", "role": "user"}, {"name": "drive", "role": "user"}]), 9);
    let workspaces = vec![workspace("net", "", "", 3), workspace("drive", "", "", 3)];
    let known = Known::new(enrolled, machine.into_iter().collect(), vec![template], workspaces, vec![]);
    then(&Student::new(&known, settings, rights, None))
}

#[test]
fn a_machine_without_a_page_has_a_terminal_and_a_console() {
    let path = |page: &str| format!("/machines/tenant-ada-rossi/vm/desktop/{page}");
    let (terminal, console) = (path("terminal"), path("console"));
    let site = "https://labs.example.org/instance/vm/";
    let (all, none): (&dyn Rights, &dyn Rights) = (&Everything(true), &NoConsole);
    // The URL, the rights, whether terminals are configured, and the links.
    for (url, rights, has_terminals, expected) in [
        (
            "https://labs.example.org/x",
            all,
            true,
            vec![Opening::Connect("https://labs.example.org/x".to_owned())],
        ),
        ("", all, true, vec![Opening::Terminal(terminal.clone()), Opening::Console(console.clone())]),
        ("", none, true, vec![Opening::Terminal(terminal.clone())]),
        ("", all, false, vec![Opening::Connect(console.clone())]),
        ("", none, false, vec![]),
        (site, all, true, vec![Opening::Connect(console.clone())]),
        (site, none, true, vec![Opening::Connect(site.to_owned())]),
        ("javascript:x", all, true, vec![]),
    ] {
        let environments = json!([{"name": "desktop", "phase": "Ready", "ip": "10.96.3.7", "url": url}]);
        let status = json!({"phase": "Ready", "environments": environments});
        let machine = instance("vm", "", ("workspace-net", "desktop"), true, status);
        let web_ssh = if has_terminals { settings().web_ssh } else { String::new() };
        let settings = Settings { web_ssh, ..settings() };
        let of_net = template("net", "desktop", "", &json!({}));
        let links = with(Some(machine.clone()), of_net, (rights, &settings), |student| {
            Card::of(&view(Language::ENGLISH, "/"), student, &machine).openings
        });
        assert_eq!(links, expected, "{url} {has_terminals}");
    }
}

#[test]
fn the_files_are_opened_by_their_machine_which_is_created_or_started_first() {
    let (all, settings) = (Everything(true), settings());
    let asked = |machine: Option<(bool, &str)>, is_asked: bool| {
        let drive = template("drive", "drive", "Files", &json!({"kinds": ["Standalone"]}));
        let machine = machine.map(|(running, phase)| {
            let mut status = json!({"phase": phase});
            if phase == "Ready" {
                status["environments"] =
                    json!([{"name": "part-0", "phase": phase, "url": "https://files.example.org/"}]);
            }
            instance("drive-1", "Files", DRIVE, running, status)
        });
        with(machine, drive, (&all, &settings), |student| {
            let view = view(Language::ENGLISH, "/files");
            files(&view, &Files { is_asked, ..Files::of(&view, student) }).into_string()
        })
    };
    let page = |machine| asked(machine, false);
    let new = page(None);
    assert!(new.contains("action=\"/files/open\"") && !new.contains("data-waits"), "{new}");
    let off = page(Some((false, "Off")));
    assert!(off.contains("/drive-1/start\"") && !off.contains("data-waits"), "{off}");
    let starts = page(Some((true, "Starting")));
    assert!(starts.contains(" data-waits") && !starts.contains("data-opens"), "{starts}");
    let ready = page(Some((true, "Ready")));
    assert!(
        ready.contains(" data-opens=\"https://files.example.org/\"") && !ready.contains("data-waits"),
        "{ready}"
    );
    let soon = asked(Some((true, "Ready")), true);
    assert!(soon.contains(" data-waits") && soon.contains(" data-opens"), "ready before its page: {soon}");
}

#[test]
fn only_a_site_with_files_has_the_link_to_them_and_a_machine_of_another_template_is_none() {
    for (has_files, expected) in [(true, true), (false, false)] {
        let view = View { has_files, ..view(Language::ENGLISH, "/") };
        let page = state(&view, &State::NotFound).into_string();
        assert_eq!(page.contains("href=\"/files\""), expected);
    }
    let (known, settings, all) = (known(), settings(), Everything(true));
    let of = Files::of(&view(Language::ENGLISH, "/files"), &Student::new(&known, &settings, &all, None));
    assert!(of.machine.is_none());
    let offer = of.offer.map(|offer| (offer.namespace, offer.name));
    assert_eq!(offer, Some((DRIVE.0.to_owned(), DRIVE.1.to_owned())));
    let none: Value = json!([]);
    let stranger = Known::new(tenant(&none, 9), vec![], vec![], vec![], vec![]);
    let of = Files::of(&view(Language::ENGLISH, "/files"), &Student::new(&stranger, &settings, &all, None));
    assert!(of.offer.is_none() && of.machine.is_none());
}
