//! The time that is left, and machines whose Template was deleted.

use serde_json::{Value, json};

use super::fixtures::{Everything, condition, instance, known, settings, template, tenant, view, workspace};
use crate::api::quota::Refusal;
use crate::api::{GenericRef, Instance, Template};
use crate::config::Language;
use crate::controllers::dashboard::home::model::Home;
use crate::controllers::dashboard::home::view::home as home_page;
use crate::controllers::dashboard::machine::actions::{KEEP, Offer, RESTART, STOP};
use crate::controllers::dashboard::machine::card::Card;
use crate::controllers::dashboard::machine::model::Machine;
use crate::controllers::dashboard::machine::view::machine;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::student::{Known, Student};
use crate::controllers::dashboard::texts::texts;

const NET: (&str, &str) = ("workspace-net", "desktop");

fn known_of(instance: Instance, templates: Vec<Template>) -> Known {
    let tenant = tenant(&json!([{"name": "net", "role": "user"}]), 9);
    Known::new(tenant, vec![instance], templates, vec![workspace("net", "Networks", "", 3)], vec![])
}

/// The card of an Instance, and the text of the home page.
fn shown(instance: Instance, templates: Vec<Template>) -> (Card, String) {
    let (known, settings, all) = (known_of(instance, templates), settings(), Everything(true));
    let (student, view) = (Student::new(&known, &settings, &all, None), view(Language::ENGLISH, "/"));
    let home = Home::of(&view, &student);
    (home.cards[0].clone(), home_page(&view, &home).into_string())
}

#[test]
fn every_card_says_how_much_time_is_left_with_a_button_that_extends_it() {
    let never = json!({"cleanup": {}, "deleteAfter": "never"});
    let (deadline, warning) = ("2026-11-27T15:06:00Z", "2026-12-01T18:06:00Z");
    for (running, status, more, text, can_keep) in [
        (
            true,
            json!({"inactivity": {"deadline": deadline}}),
            json!({}),
            "in 21 hours</time> (not used)",
            true,
        ),
        (
            true,
            json!({"inactivity": {"nextWarning": warning}}),
            json!({}),
            "in 5 days</time>, then stopped.",
            true,
        ),
        (true, json!({}), json!({}), "Stopped after 7 days without use.", false),
        (false, json!({}), json!({}), "Deleted with all its data after 30 days without a start.", false),
        (
            true,
            json!({"expiration": {"deadline": deadline}}),
            json!({}),
            "in 21 hours</time> with all its data",
            false,
        ),
        (true, json!({}), never, "will not be stopped or deleted automatically", false),
    ] {
        let mut of_phase = status.clone();
        of_phase["phase"] = if running { "Ready".into() } else { "Off".into() };
        let machine = instance("a", "A", NET, running, of_phase);
        let (card, page) = shown(machine, vec![template("net", "desktop", "Desktop", &more)]);
        let article = page.split("</article>").next().unwrap_or_default();
        assert!(article.contains(text), "{status}: {article}");
        assert_eq!(card.offer(&KEEP) == Some(&Offer::Yes), can_keep, "{status}");
        assert_eq!(article.matches("/keep\"").count(), usize::from(can_keep), "{status}: {article}");
    }
}

#[test]
fn a_machine_without_its_template_keeps_connect_and_warns_that_this_is_its_last_run() {
    let gone = |running: bool, phase: &str| {
        let status = json!({"phase": phase, "conditions": [
            condition("Ready", "True", phase, "words"),
            condition("Reconciled", "False", "TemplateNotFound", "Template workspace-net/desktop not found")]});
        let mut instance = instance("a", "A", NET, running, status);
        instance.metadata.labels =
            serde_json::from_value(json!({"crownlabs.polito.it/persistent": "true"})).expect("labels");
        instance
    };
    let words = texts(Language::ENGLISH);
    let (card, page) = shown(gone(true, "Ready"), vec![]);
    assert_eq!((card.standing, !card.openings.is_empty()), (Standing::Ready, true));
    assert!(page.contains(words.last_run.as_str()), "{page}");
    // The daemon cannot stop it without its Template.
    assert_eq!([&STOP, &RESTART].map(|action| card.offer(action).cloned()), [None, None]);
    let (card, page) = shown(gone(false, "Off"), vec![]);
    let no_template = words.refusal(&Refusal::NoTemplate(GenericRef::new("workspace-net", "desktop")));
    assert_eq!((card.standing, card.is_last_run), (Standing::Off, false));
    assert!(!page.contains(words.last_run.as_str()) && page.contains(&*no_template), "{page}");
}

#[test]
fn the_heading_of_the_causes_and_the_title_fit_the_state() {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let view = view(Language::ENGLISH, "/");
    let words = texts(Language::ENGLISH);
    let page = |phase: &str, conditions: Value| {
        let instance = instance("a", "A", NET, true, json!({"phase": phase, "conditions": conditions}));
        machine(&view, &Machine::of(&view, &student, &instance, false, Ok(vec![]), None)).into_string()
    };
    let exposed = condition("PublicExposureReady", "False", "NoFreePort", "words");
    for (phase, other, heading, title) in [
        ("Ready", condition("Ready", "True", "Ready", "words"), &words.wrong, "<title>Ready – A"),
        ("Starting", condition("Ready", "False", "Starting", "more"), &words.why, "<title>Starting – A"),
    ] {
        let page = page(phase, json!([other, exposed]));
        assert!(page.contains(&format!("<h2 id=\"why\">{heading}</h2>")), "{page}");
        assert!(page.contains(title), "{page}");
    }
}

#[test]
fn each_obstacle_to_a_start_has_its_own_sentence() {
    let words = texts(Language::ENGLISH);
    let sentence = |conditions: Value| {
        let status = json!({"phase": "Starting", "conditions": conditions});
        let (_, page) = shown(instance("a", "A", NET, true, status), vec![]);
        ["PodUnschedulable", "NoNode"].map(|reason| page.contains(words.reason(reason).expect("a sentence")))
    };
    let unschedulable = |words: &str| condition("Ready", "False", "PodUnschedulable", words);
    let [full, unsuitable] = [[true, false], [false, true]];
    for (words, expected) in [
        ("0/3 nodes are available: 3 Insufficient cpu.", full),
        (
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector.",
            full,
        ),
        ("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", unsuitable),
        ("0/1 nodes are available: 1 node(s) had untolerated taint {a: b}.", unsuitable),
    ] {
        assert_eq!(sentence(json!([unschedulable(words)])), expected, "{words}");
    }
    // The missing node explains why the pod waits.
    let no_node =
        condition("Reconciled", "False", "NoNode", "no node has the labels of its node selector, disk=fast");
    assert_eq!(
        sentence(json!([unschedulable("0/1 nodes are available: 1 Insufficient cpu."), no_node])),
        unsuitable
    );
}
