//! What the models say of objects.

use serde_json::{Value, json};

use super::fixtures::{
    Everything, NAMESPACE, instance, known, now, read, settings, template, tenant, view, workspace,
};
use crate::api::{GenericRef, Instance};
use crate::controllers::dashboard::page::courses::Part;
use crate::controllers::dashboard::page::home::{Card, Start, new_name};
use crate::controllers::dashboard::page::standing::Standing;
use crate::controllers::dashboard::page::student::Blocked;
use crate::controllers::dashboard::page::words::Language;
use crate::controllers::dashboard::page::{Account, Courses, Home, Known, Machine, Settings, Student};

const NET: (&str, &str) = ("workspace-net", "desktop");

fn of_home<T>(known: &Known, settings: &Settings, may: bool, is_away: bool, then: impl Fn(&Home) -> T) -> T {
    let all = Everything(may);
    let student = Student::new(known, settings, &all, is_away.then(now));
    then(&Home::of(&view(Language::English, "/"), &student))
}

/// A student of the course `net`, of which one may have three machines of 2 cores, and these Instances.
fn student(instances: Vec<Instance>, most: i64) -> Known {
    let templates = vec![template("net", "desktop", "Desktop", &json!({}))];
    let workspaces = vec![workspace("net", "Networks", "", 3)];
    Known::new(
        tenant(&json!([{"name": "net", "role": "user"}]), most),
        instances,
        templates,
        workspaces,
        Vec::new(),
    )
}

fn machine(name: &str, running: bool, phase: &str) -> Instance {
    instance(name, name, NET, running, json!({"phase": phase}))
}

#[test]
fn the_state_is_what_the_user_has_asked_for() {
    for (running, phase, standing) in [
        (true, "", Standing::New),
        (true, "Ready", Standing::Ready),
        (false, "Ready", Standing::Stopping),
        (false, "Starting", Standing::Stopping),
        (false, "Off", Standing::Off),
        (true, "Off", Standing::Starting),
        (true, "ResourceQuotaExceeded", Standing::Quota),
        (true, "CreationLoopBackoff", Standing::Blocked),
        (false, "Failed", Standing::Failed),
        (true, "Unheard of", Standing::Unknown),
    ] {
        assert_eq!(Standing::of(&machine("a", running, phase)), standing, "{running} {phase}");
    }
    let mut deleted = machine("a", true, "Ready");
    deleted.metadata.deletion_timestamp = read(json!("2026-11-26T18:00:00Z"));
    assert_eq!(Standing::of(&deleted), Standing::Deleting);
}

fn card(known: &Known, may: bool, is_away: bool) -> Card {
    of_home(known, &settings(), may, is_away, |home| home.cards[0].clone())
}

#[test]
fn what_can_be_done_is_offered() {
    // Running, phase, may: connect, start, stop, keep, delete.
    for (running, phase, may, offered) in [
        (true, "Ready", true, [true, false, true, false, true]),
        (true, "Starting", true, [false, false, true, false, true]),
        (false, "Off", true, [false, true, false, false, true]),
        (true, "Ready", false, [true, false, false, false, false]),
        (false, "Off", false, [false, false, false, false, false]),
    ] {
        let card = card(&student(vec![machine("a", running, phase)], 9), may, false);
        let found =
            [card.connect.is_some(), card.start == Start::Yes, card.can_stop, card.can_keep, card.can_delete];
        assert_eq!(found, offered, "{running} {phase} {may}");
    }
    let away = card(&student(vec![machine("a", false, "Off")], 9), true, true);
    assert_eq!((away.start, away.can_delete), (Start::Blocked(Blocked::Away), false));
}

#[test]
fn only_what_keeps_its_disk_can_be_stopped() {
    let container = vec![template("net", "desktop", "Desktop", &json!({"kinds": ["Container"]}))];
    let spec = tenant(&json!([{"name": "net", "role": "user"}]), 9);
    let known = Known::new(
        spec,
        vec![machine("a", true, "Ready")],
        container,
        vec![workspace("net", "", "", 3)],
        vec![],
    );
    assert!(!card(&known, true, false).can_stop);
    // Its Template is gone: its label says it.
    let mut labelled = machine("a", true, "Ready");
    labelled.metadata.labels = read(json!({"crownlabs.polito.it/persistent": "true"}));
    let gone = |instance| Known::new(tenant(&json!([]), 9), vec![instance], vec![], vec![], vec![]);
    assert!(card(&gone(labelled), true, false).can_stop);
    assert!(!card(&gone(machine("a", true, "Ready")), true, false).can_stop);
}

fn blocked(known: &Known, may: bool, is_away: bool) -> Option<Blocked> {
    of_home(known, &settings(), may, is_away, |home| home.courses[0].offers[0].blocked.clone())
}

#[test]
fn what_cannot_be_started_says_why() {
    let run =
        |count: usize| (0..count).map(|at| machine(&format!("m{at}"), true, "Ready")).collect::<Vec<_>>();
    assert_eq!(blocked(&student(run(2), 9), true, false), None);
    let full = blocked(&student(run(3), 9), true, false).expect("blocked");
    let Blocked::Refused(refusal, holders) = &full else { panic!("{full:?}") };
    assert_eq!(refusal.to_string(), "quota exceeded: Instances (4 > 3)");
    assert_eq!(holders, &["m0", "m1", "m2"]);
    // Those that are off count in the namespace alone.
    let off = vec![machine("a", false, "Off"), machine("b", false, "Off")];
    assert_eq!(blocked(&student(off.clone(), 9), true, false), None);
    assert_eq!(blocked(&student(off, 2), true, false), Some(Blocked::Full(2)));
    assert_eq!(blocked(&student(vec![], 9), false, false), Some(Blocked::NoRight));
    assert_eq!(blocked(&student(vec![], 9), true, true), Some(Blocked::Away));
    let rule = Settings { rule: None, ..settings() };
    let free =
        of_home(&student(run(3), 9), &rule, true, false, |home| home.courses[0].offers[0].blocked.clone());
    assert_eq!(free, None, "the webhook does not refuse it");
}

#[test]
fn a_template_that_cannot_start_says_why() {
    let known = known();
    let offers = of_home(&known, &settings(), true, false, |home| home.courses[1].offers.clone());
    let gpu = offers.iter().find(|offer| offer.name == "gpu").and_then(|offer| offer.blocked.clone());
    assert!(matches!(&gpu, Some(Blocked::Template { reason, .. }) if reason == "NoNode"), "{gpu:?}");
}

#[test]
fn a_student_without_a_namespace_starts_nothing() {
    let mut spec = tenant(&json!([{"name": "net", "role": "user"}]), 9);
    spec.status.personal_namespace.created = false;
    let templates = vec![template("net", "desktop", "Desktop", &json!({}))];
    let known = Known::new(spec, vec![], templates, vec![workspace("net", "", "", 3)], vec![]);
    assert_eq!(blocked(&known, true, false), Some(Blocked::NoNamespace));
}

#[test]
fn the_first_page_has_all_courses_and_what_is_left_of_them() {
    let known = known();
    of_home(&known, &settings(), true, false, |home| {
        let titles: Vec<_> = home.courses.iter().map(|course| course.title.as_deref()).collect();
        assert_eq!(titles, [Some("Computer networks"), Some("Databases"), Some("old")]);
        let left: Vec<String> = home.courses[0]
            .left
            .iter()
            .filter_map(crate::api::usage::Share::left)
            .map(|left| left.to_string())
            .collect();
        assert_eq!(left, ["1", "4", "8Gi"], "two of three machines run, each of 2 cores and 4Gi");
        let titles: Vec<&str> = home.courses[0].offers.iter().map(|offer| &*offer.title).collect();
        assert_eq!(titles, ["Network desktop", "Three routers", "Web server"]);
        let names: Vec<&str> = home.cards.iter().map(|card| &*card.name).collect();
        assert_eq!(names, ["sql", "net-2", "net-1", "net-3"], "those that are to run, by their titles");
    });
}

#[test]
fn the_name_of_a_new_machine_fits_its_objects() {
    let long = "a".repeat(60);
    for (name, kinds, expected) in [
        ("desktop", json!(["Container"]), "desktop-k3x9".to_owned()),
        ("a.b", json!(["Container"]), "a-b-k3x9".to_owned()),
        (&long, json!(["Container"]), format!("{}-k3x9", "a".repeat(51))),
    ] {
        let template = template("net", name, "", &json!({"kinds": kinds}));
        let made = new_name(&template, "k3x9");
        assert_eq!(made, expected);
        assert!(crate::api::names::check_instance(&made, Some("part-0")).is_ok(), "{made}");
    }
}

#[test]
fn courses_are_joined_asked_for_and_left_where_that_is_possible() {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let courses = Courses::of(&Student::new(&known, &settings, &all, None));
    let of = |courses: &[super::super::courses::Course]| -> Vec<(String, Part, bool)> {
        courses.iter().map(|course| (course.name.clone(), course.part, course.can_change)).collect()
    };
    let expected = [
        ("net", Part::User, true),
        ("data", Part::Manager, false),
        ("ml", Part::Candidate, true),
        ("old", Part::User, false),
    ];
    assert_eq!(of(&courses.mine), expected.map(|(name, part, can)| (name.to_owned(), part, can)));
    let expected = [("os", Part::CanJoin, true), ("sec", Part::CanAsk, true)];
    assert_eq!(of(&courses.others), expected.map(|(name, part, can)| (name.to_owned(), part, can)));
    assert!(courses.mine[3].is_failing);
}

#[test]
fn a_machine_is_entered_by_its_links() {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let view = view(Language::English, "/");
    let page = |status: Value| {
        Machine::of(&view, &student, &instance("net-1", "", NET, true, status), false, Ok(vec![]), None)
    };
    let machine = page(json!({"phase": "Ready"}));
    let ssh = machine.environments[0].ssh.clone().expect("SSH");
    assert_eq!(ssh.command.as_deref(), Some("ssh -J bastion@bastion.example.org crownlabs@10.96.3.7"));
    let terminal =
        format!("https://labs.example.org/ssh?namespace={NAMESPACE}&name=net-1&environment=desktop");
    assert_eq!(ssh.terminal, Some(terminal));
    // Nobody else's words become a part of a command.
    let hostile = json!([{"name": "desktop", "phase": "Ready", "ip": "$(reboot)", "url": "javascript:x"}]);
    let machine = page(json!({"phase": "Ready", "url": "javascript:x", "environments": hostile}));
    assert_eq!(machine.environments[0].ssh.clone().expect("SSH").command, None);
    assert_eq!((machine.card.connect, machine.environments[0].url.clone()), (None, None));
}

#[test]
fn the_account_has_keys_and_quotas() {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let account = Account::of(&view(Language::English, "/account"), &student);
    assert_eq!(account.keys[0].description.as_ref().map(|key| key.comment.as_str()), Ok("ada@laptop"));
    assert!(account.keys[1].description.is_err());
    // Four machines, of which three run: 2 cores, 2 cores, and 4 cores in two parts.
    let used: Vec<String> = account
        .all
        .iter()
        .map(|share| format!("{} {:?}", share.used, share.limit.as_ref().map(ToString::to_string)))
        .collect();
    assert_eq!(used[0], "4 Some(\"9\")");
    let reference = GenericRef::new("workspace-drive", "drive");
    assert_eq!(
        account.drive.offer.map(|offer| (offer.namespace, offer.name)),
        Some((reference.namespace, reference.name))
    );
}
