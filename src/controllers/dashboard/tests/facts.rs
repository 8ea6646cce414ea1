//! The page of a machine and `crownlabs why` show the same facts, each in its own words. The tests use the causes of
//! `tests/integration/causes`, which reports them for real objects.

use serde_json::{Value, json};

use super::fixtures::{Everything, condition, instance, now, settings, template, tenant, view, warning};
use crate::api::shown::message;
use crate::api::why::{Ender, Facts, Next, Step, Warning, Why};
use crate::api::{Instance, Template};
use crate::config::Language;
use crate::controllers::dashboard::machine::{model::Machine, view::machine};
use crate::controllers::dashboard::student::{Known, Student};
use crate::controllers::dashboard::texts::{Ending, texts};
use crate::explain::instance::text;
use crate::explain::words::times;

#[path = "../../../../tests/integration/causes/machines.rs"]
mod machines;
#[path = "../../../../tests/integration/causes/pods.rs"]
mod pods;

const POD: &str = "pods";
const CLAIM: &str = "persistentvolumeclaims";
const MACHINE: &str = "virtualmachines.kubevirt.io";
const RUNNING_MACHINE: &str = "virtualmachineinstances.kubevirt.io";
const DISK: &str = "datavolumes.cdi.kubevirt.io";

/// A cause: the kind of the object with the problem, and the phase, reason and message of the Instance.
struct Case {
    on: &'static str,
    phase: &'static str,
    reason: &'static str,
    words: &'static str,
}

impl Case {
    fn new(
        on: &'static str,
        _: Value,
        phase: &'static str,
        reason: &'static str,
        words: &'static str,
    ) -> Self {
        Self { on, phase, reason, words }
    }
}

/// An Instance, with the other input of the page.
struct Given {
    instance: Instance,
    template: Option<Template>,
    managers: Option<Vec<String>>,
    warnings: Result<Vec<Warning>, String>,
}

/// Returns an Instance for a case. The promises, warnings, managers and the Template depend on the number.
fn given(number: usize, case: &Case) -> Given {
    let time = |day: usize| format!("2026-12-{:02}T04:{:02}:00Z", day + number % 9, number % 60);
    let promise = |day: usize| match (number + day) % 4 {
        0 => Value::Null,
        1 => json!({"since": time(1), "warnings": 1, "lastWarning": time(2), "nextWarning": time(day)}),
        2 => json!({"since": time(1), "nextWarning": time(day)}),
        _ => json!({"since": time(1), "warnings": 2, "lastWarning": time(2), "deadline": time(day)}),
    };
    let words = format!("{} c{number}: {}", case.on, case.words);
    let mut conditions = vec![condition("Ready", "False", case.reason, &words)];
    match number % 3 {
        0 => conditions.push(condition("Stalled", "True", case.reason, &words)),
        1 => conditions.push(condition("Inactive", "True", "Overdue", "2 of 3 warnings were sent")),
        _ => conditions.push(condition("NameConflict", "True", "NameConflict", "Service c is another's")),
    }
    let status = json!({"phase": case.phase, "conditions": conditions,
        "inactivity": promise(10), "destruction": promise(13), "expiration": promise(16)});
    let mut instance =
        instance(&format!("c{number}"), "", ("workspace-net", "desktop"), number.is_multiple_of(2), status);
    instance.metadata.generation = Some(if number.is_multiple_of(5) { 2 } else { 1 });
    let kind = if number.is_multiple_of(2) { "VirtualMachine" } else { "Container" };
    let never = json!({"kinds": [kind], "cleanup": {}, "deleteAfter": "never"});
    let more = if number.is_multiple_of(7) { never } else { json!({"kinds": [kind]}) };
    let managers = [None, Some(vec![]), Some(vec!["bob".to_owned(), "eve".to_owned()])];
    let warnings =
        [Ok(vec![]), Ok(vec![warning("mount failed"), warning("<no> volume")]), Err("no events".to_owned())];
    Given {
        instance,
        template: (number % 4 != 3).then(|| template("net", "desktop", "Desktop", &more)),
        managers: managers[number % 3].clone(),
        warnings: warnings[number % 3].clone(),
    }
}

/// A fact: its text in the command, and its text on the page.
type Fact = (String, String);

/// Returns the facts of an Instance.
fn facts(why: &Why, language: Language) -> Vec<Fact> {
    let words = texts(language);
    let same = |text: &str| (text.to_owned(), text.to_owned());
    let mut facts = vec![same(&why.instance.to_string()), same(&why.tenant), same(&why.template.to_string())];
    for condition in why.waits.iter().chain(&why.automation) {
        let meaning = texts(language).meaning(condition).expect("each reason has its meaning").to_owned();
        facts.push((condition.reason.to_string(), meaning));
        facts.push((format!("{}, for ", condition.reason), format!("({})", condition.reason)));
        facts.push(same(&message(&condition.message)));
        facts.push(("for 12 min".to_owned(), time(condition.last_transition_time.0)));
    }
    match &why.warnings {
        Err(unknown) => facts.push(same(unknown)),
        Ok(warnings) => warnings.iter().for_each(|warning| {
            facts.push(same(&format!("Pod {}: {} (BackOff, 12", warning.about.name, warning.message)));
            facts.push(("12 times, 1 min ago".to_owned(), time(warning.last.clone().expect("a time").0)));
        }),
    }
    for Step { because, end, next, warned } in &why.next {
        let (command, table) = match next {
            Next::End(at) => (format!("at {}, in ", at.0), &words.until),
            Next::Warning(at) => (format!("due at {}; ", at.0), &words.warning_due),
        };
        let (before, after) = table.of(Ending::of(*end, *because)).around();
        facts.extend([before, after].map(|page| (command.clone(), page.to_owned())));
        facts.push(("the Instance is".to_owned(), time(next.at().0)));
        if let Some(warned) = warned {
            facts.push((times(warned.times), words.warned.of(&warned.times.to_string())));
            facts.push((format!("at {}", warned.last.0), time(warned.last.0)));
        }
    }
    for limit in why.limits.iter().flatten() {
        let days = words.days.of(limit.after.trim_end_matches('d'));
        let ending = Ending::of(Some(limit.end), limit.because);
        let said = words.template_says.of(ending).fill(&[("time", &days)]);
        facts.push((format!("{} ", limit.end.action()), said));
        facts.push((limit.after.clone(), days));
    }
    if why.limits.as_deref() == Some(&[]) {
        facts.push(("Its Template sets no time limit".to_owned(), words.next_nothing.clone()));
    }
    if why.is_behind {
        facts.push(("has not acted on the last change".to_owned(), words.pending_change.clone()));
    }
    facts.extend(why.enders.iter().map(|ender| match ender {
        Ender::Tenant(name) => (format!("{name}, its Tenant"), words.you.clone()),
        Ender::Managers(names) => same(&names.join(", ")),
        Ender::UnknownManagers => ("the managers of its course".to_owned(), words.managers.clone()),
        Ender::Administrators => ("administrators".to_owned(), words.administrators.clone()),
    }));
    facts
}

/// Returns the attribute of an element that shows a time.
fn time(at: jiff::Timestamp) -> String {
    format!("datetime={at}")
}

/// Returns the text of the content of a page, with its times.
fn content(page: &str) -> String {
    let begin = page.find("<main").expect("a content");
    let mut text = String::new();
    for piece in page[begin..].split('<') {
        let (tag, after) = piece.split_once('>').unwrap_or(("", piece));
        let time = tag.strip_prefix("time ").and_then(|tag| tag.split('"').nth(1));
        if let Some(time) = time {
            text.extend(["datetime=", time, " "]);
        }
        text.push_str(after);
    }
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")]
        .into_iter()
        .fold(text, |text, (escaped, plain)| text.replace(escaped, plain))
}

#[test]
fn the_number_of_warnings_is_shown_only_to_the_tenant() {
    let time = |day: u8| format!("2026-12-{day:02}T04:00:00Z");
    let warned = json!({"since": time(1), "warnings": 2, "lastWarning": time(2), "deadline": time(10)});
    let status = json!({"phase": "Ready", "inactivity": warned});
    let instance = instance("c", "", ("workspace-net", "desktop"), true, status);
    for (name, is_shown) in [("ada.rossi", true), ("carlo.verdi", false)] {
        let mut user = tenant(&json!([]), 9);
        user.metadata.name = name.into();
        let known = Known::new(user, vec![], vec![], vec![], vec![]);
        let (settings, all) = (settings(), Everything(true));
        let student = Student::new(&known, &settings, &all, None);
        let view = view(Language::ENGLISH, "/machines/tenant-ada-rossi/c");
        let shown = Machine::of(&view, &student, &instance, false, Ok(vec![]), None);
        let page = machine(&view, &shown).into_string();
        assert_eq!(page.contains("You received 2 warnings"), is_shown, "{name}");
    }
}

#[test]
fn the_page_and_the_command_show_the_same_facts_for_every_cause() {
    let cases: Vec<Case> = pods::cases().into_iter().chain(machines::cases()).collect();
    assert!(cases.len() >= 40, "{} causes", cases.len());
    for language in Language::all() {
        for (number, case) in cases.iter().enumerate() {
            same(number, case, language);
        }
    }
}

fn same(number: usize, case: &Case, language: Language) {
    let Given { instance, template, managers, warnings } = given(number, case);
    let (settings, all) = (settings(), Everything(true));
    let templates = template.iter().cloned().collect();
    let known = Known::new(tenant(&json!([]), 9), vec![instance.clone()], templates, vec![], vec![]);
    let student = Student::new(&known, &settings, &all, None);
    let facts_of = Facts {
        instance: &instance,
        owner: Some("ada.rossi"),
        template: template.as_ref(),
        managers: managers.as_deref(),
        warnings: warnings.clone(),
    };
    let why = facts_of.why();
    assert!(why.waits.iter().any(|wait| wait.reason == case.reason && wait.message.contains(case.words)));
    let told = text(&why, now());
    let view = view(language, "/machines/tenant-ada-rossi/c");
    let shown = Machine::of(&view, &student, &instance, false, warnings, managers.as_deref());
    let page = machine(&view, &shown).into_string();
    let content = content(&page);
    for (command, page) in facts(&why, language) {
        assert!(told.contains(&command), "{command:?} is missing in the output of the command: {told}");
        assert!(content.contains(&page), "{page:?}, for {command:?}, is missing on the page: {content}");
    }
    // The page has no other causes and deadlines.
    let lines = why.waits.len() + why.automation.len() + why.warnings.as_ref().map_or(1, Vec::len);
    let causes: usize = page
        .split("<ul class=\"causes\">")
        .skip(1)
        .map(|list| list.split("</ul>").next().unwrap_or_default().matches("<li>").count())
        .sum();
    assert_eq!(causes, lines, "{content}");
    let steps = page.matches("class=\"deadline\"").count();
    let ends = why.next.iter().filter(|step| matches!(step.next, Next::End(_))).count();
    assert_eq!(steps, ends, "{content}");
}
