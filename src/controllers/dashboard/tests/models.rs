//! Tests of the models of the pages.

use serde_json::{Value, json};

use super::fixtures::{
    Everything, NAMESPACE, condition, instance, known, now, read, settings, template, tenant, view, workspace,
};
use crate::api::Instance;
use crate::api::quota::{Places, Refusal};
use crate::api::template::instance_name;
use crate::config::Language;
use crate::controllers::dashboard::account::model::Account;
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::courses::enrolment::Part;
use crate::controllers::dashboard::courses::model::{self, Course, Courses};
use crate::controllers::dashboard::home::model::Home;
use crate::controllers::dashboard::machine::actions::{DELETE, KEEP, Offer, RESTART, START, STOP};
use crate::controllers::dashboard::machine::card::Card;
use crate::controllers::dashboard::machine::model::Machine;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::student::{Blocked, Known, Rights, Settings, Student};

const NET: (&str, &str) = ("workspace-net", "desktop");

fn of_home<T>(known: &Known, settings: &Settings, may: bool, is_away: bool, then: impl Fn(&Home) -> T) -> T {
    let all = Everything(may);
    let student = Student::new(known, settings, &all, is_away.then(now));
    then(&Home::of(&view(Language::ENGLISH, "/"), &student))
}

/// Returns a student with these Instances, in the course `net`, which grants three machines. The Template has 2 cores.
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
fn the_state_follows_the_request_of_the_user() {
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
    // A machine with a part that has not started yet is not almost ready.
    for (part, standing) in [("Starting", Standing::Starting), ("Running", Standing::Running)] {
        let parts = json!([{"name": "a", "phase": "Ready"}, {"name": "b", "phase": part}]);
        let two = instance("a", "a", NET, true, json!({"phase": "Running", "environments": parts}));
        assert_eq!(Standing::of(&two), standing, "{part}");
    }
    let mut deleted = machine("a", true, "Ready");
    deleted.metadata.deletion_timestamp = read(json!("2026-11-26T18:00:00Z"));
    assert_eq!(Standing::of(&deleted), Standing::Deleting);
}

fn card(known: &Known, may: bool, is_away: bool) -> Card {
    of_home(known, &settings(), may, is_away, |home| home.cards[0].clone())
}

#[test]
fn actions_are_offered_by_state_and_right() {
    // Running, phase, may: connect, start, stop, restart, keep, delete.
    for (running, phase, may, offered) in [
        (true, "Ready", true, [true, false, true, true, false, true]),
        (true, "Starting", true, [false, false, true, true, false, true]),
        (false, "Off", true, [false, true, false, false, false, true]),
        (true, "Ready", false, [true, false, false, false, false, false]),
        (false, "Off", false, [false, false, false, false, false, false]),
    ] {
        let card = card(&student(vec![machine("a", running, phase)], 9), may, false);
        let can = |action| card.offer(action) == Some(&Offer::Yes);
        let found =
            [!card.openings.is_empty(), can(&START), can(&STOP), can(&RESTART), can(&KEEP), can(&DELETE)];
        assert_eq!(found, offered, "{running} {phase} {may}");
    }
    let away = card(&student(vec![machine("a", false, "Off")], 9), true, true);
    assert_eq!(away.offer(&START), Some(&Offer::Blocked(Blocked::Away)));
    assert_eq!(away.offer(&DELETE), None);
}

#[test]
fn only_machines_with_a_persistent_disk_can_be_stopped_and_restarted() {
    let container = vec![template("net", "desktop", "Desktop", &json!({"kinds": ["Container"]}))];
    let spec = tenant(&json!([{"name": "net", "role": "user"}]), 9);
    let known = Known::new(
        spec,
        vec![machine("a", true, "Ready")],
        container,
        vec![workspace("net", "", "", 3)],
        vec![],
    );
    let offers = |known: &Known| {
        let card = card(known, true, false);
        [&STOP, &RESTART].map(|action| card.offer(action).cloned())
    };
    assert_eq!(offers(&known), [None, None]);
    // If the Template is missing, the label decides.
    let mut labelled = machine("a", true, "Ready");
    labelled.metadata.labels = read(json!({"crownlabs.polito.it/persistent": "true"}));
    let gone = |instance| Known::new(tenant(&json!([]), 9), vec![instance], vec![], vec![], vec![]);
    assert_eq!(offers(&gone(labelled)), [Some(Offer::Yes), Some(Offer::Yes)]);
    assert_eq!(offers(&gone(machine("a", true, "Ready"))), [None, None]);
}

fn blocked(known: &Known, may: bool, is_away: bool) -> Option<Blocked> {
    of_home(known, &settings(), may, is_away, |home| home.courses[0].offers[0].blocked.clone())
}

#[test]
fn a_blocked_start_has_a_reason() {
    let run =
        |count: usize| (0..count).map(|at| machine(&format!("m{at}"), true, "Ready")).collect::<Vec<_>>();
    assert_eq!(blocked(&student(run(2), 9), true, false), None);
    let full = blocked(&student(run(3), 9), true, false).expect("blocked");
    let Blocked::Refused(refusal, holders) = &full else { panic!("{full:?}") };
    assert_eq!(refusal.to_string(), "quota exceeded: Instances (4 > 3)");
    assert_eq!(holders, &["m0", "m1", "m2"]);
    // Stopped machines count only against the limit of the namespace.
    let off = vec![machine("a", false, "Off"), machine("b", false, "Off")];
    assert_eq!(blocked(&student(off.clone(), 9), true, false), None);
    let full = Refusal::Full(Places { running: 0, stopped: 2, limit: 2 });
    assert_eq!(blocked(&student(off, 2), true, false), Some(Blocked::Refused(full, vec![])));
    assert_eq!(blocked(&student(vec![], 9), false, false), Some(Blocked::NoRight));
    assert_eq!(blocked(&student(vec![], 9), true, true), Some(Blocked::Away));
    let rule = Settings { is_rule_enforced: false, ..settings() };
    let free =
        of_home(&student(run(3), 9), &rule, true, false, |home| home.courses[0].offers[0].blocked.clone());
    assert_eq!(free, None, "without a rule, the webhook rejects nothing");
}

#[test]
fn a_template_that_is_not_ready_warns_and_an_invalid_one_blocks() {
    let known = known();
    let offers = of_home(&known, &settings(), true, false, |home| home.courses[1].offers.clone());
    let gpu = offers.iter().find(|offer| offer.name == "gpu").expect("an offer");
    assert_eq!(gpu.blocked, None);
    let warning = gpu.warning.as_ref().expect("a warning");
    assert!(warning.reason == "NoNode" && warning.message.contains("nvidia.com/gpu"), "{warning:?}");
    let offered = |type_: &str, status: &str, reason: &str| {
        let conditions = json!({"status": {"conditions": [condition(type_, status, reason, "words")]}});
        let templates = vec![template("net", "desktop", "Desktop", &conditions)];
        let tenant = tenant(&json!([{"name": "net", "role": "user"}]), 9);
        let known = Known::new(tenant, vec![], templates, vec![workspace("net", "", "", 3)], vec![]);
        of_home(&known, &settings(), true, false, |home| {
            let offer = home.courses[0].offers[0].clone();
            (offer.blocked.is_some(), offer.warning.map(|warning| warning.reason.to_string()))
        })
    };
    assert_eq!(offered("Valid", "False", "InvalidImage"), (true, None));
    assert_eq!(offered("Ready", "True", "NodeOnDemand"), (false, Some("NodeOnDemand".to_owned())));
    assert_eq!(offered("Ready", "True", "Ready"), (false, None));
}

#[test]
fn a_student_without_a_namespace_cannot_start_machines() {
    let mut spec = tenant(&json!([{"name": "net", "role": "user"}]), 9);
    spec.status.personal_namespace.created = false;
    let templates = vec![template("net", "desktop", "Desktop", &json!({}))];
    let known = Known::new(spec, vec![], templates, vec![workspace("net", "", "", 3)], vec![]);
    assert_eq!(blocked(&known, true, false), Some(Blocked::NoNamespace));
}

#[test]
fn the_home_page_has_all_courses_and_their_quota() {
    let known = known();
    of_home(&known, &settings(), true, false, |home| {
        let titles: Vec<&str> = home.courses.iter().map(|course| &*course.title).collect();
        assert_eq!(titles, ["Computer networks", "Databases", "old"]);
        let amounts = home.courses[0].amounts.iter().map(|of| {
            let stopped = of.stopped.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
            format!("{} {stopped} {}", of.running, of.limit)
        });
        let amounts: Vec<String> = amounts.collect();
        assert_eq!(
            amounts,
            ["2 1 3", "4 - 8", "8Gi - 16Gi"],
            "two of three machines run, each with 2 cores and 4Gi"
        );
        assert_eq!(home.places, Some(Places { running: 3, stopped: 1, limit: 9 }));
        let titles: Vec<&str> = home.courses[0].offers.iter().map(|offer| &*offer.title).collect();
        assert_eq!(titles, ["Network desktop", "Three routers", "Web server"]);
        let names: Vec<&str> = home.cards.iter().map(|card| &*card.name).collect();
        assert_eq!(names, ["sql", "net-2", "net-1", "net-3"], "machines that should run come first");
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
        let made = instance_name(&template, "k3x9");
        assert_eq!(made, expected);
        assert!(crate::api::names::check_instance(&made, Some("part-0")).is_ok(), "{made}");
    }
}

/// Returns the name of each course, the relation of the user to it, and the name of the offered action.
fn offered(courses: &[Course]) -> Vec<(&str, Part, Option<&str>)> {
    let action = |course: &Course| course.action.map(|action| action.name);
    courses.iter().map(|course| (course.name.as_str(), course.part, action(course))).collect()
}

#[test]
fn courses_offer_join_ask_and_leave_where_possible() {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let courses = Courses::of(&Student::new(&known, &settings, &all, None));
    let expected = [
        ("net", Part::User, Some("course.leave")),
        ("data", Part::Manager, None),
        ("ml", Part::Candidate, Some("course.withdraw")),
        ("old", Part::User, None),
    ];
    assert_eq!(offered(&courses.mine), expected);
    let expected = [("os", Part::CanJoin, Some("course.join")), ("sec", Part::CanAsk, Some("course.ask"))];
    assert_eq!(offered(&courses.others), expected);
    assert!(courses.mine[3].is_failing);
}

/// The rights of a user who may use these verbs with Tenants and Workspaces.
struct May(&'static [(&'static str, &'static str)]);

impl Rights for May {
    fn may(&self, namespace: &str, right: &Right) -> bool {
        assert_eq!(namespace, NAMESPACE);
        self.0.contains(&(right.verb, right.resource))
    }
}

#[test]
fn managers_see_the_classes_of_their_courses_and_administrators_all() {
    const LIST: (&str, &str) = ("list", "tenants");
    const PATCH: (&str, &str) = ("patch", "workspaces");
    let (known, settings) = (known(), settings());
    let managed = |rights: May| {
        let courses = model::managed(&Student::new(&known, &settings, &rights, None));
        courses.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(managed(May(&[])), Vec::<String>::new());
    assert_eq!(managed(May(&[PATCH])), Vec::<String>::new(), "the page needs the Tenants");
    assert_eq!(managed(May(&[LIST])), ["data"]);
    // Sorted by title.
    assert_eq!(managed(May(&[LIST, PATCH])), ["net", "data", "ml", "drive", "os", "sec"]);
}

#[test]
fn a_machine_has_ssh_and_web_links() {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let view = view(Language::ENGLISH, "/");
    let page = |status: Value| {
        Machine::of(&view, &student, &instance("net-1", "", NET, true, status), false, Ok(vec![]), None)
    };
    let machine = page(json!({"phase": "Ready"}));
    let ssh = machine.environments[0].ssh.clone().expect("SSH");
    assert_eq!(ssh.command.as_deref(), Some("ssh -J bastion@bastion.example.org crownlabs@10.96.3.7"));
    let path = |page: &str| Some(format!("/machines/{NAMESPACE}/net-1/desktop/{page}"));
    let main = &machine.environments[0];
    assert_eq!([main.terminal.clone(), main.console.clone()], ["terminal", "console"].map(path));
    // The bastion resolves the name of the Service, which the machine keeps while it is off.
    let command = |running: bool, service: &str, ssh_by_name: bool| {
        let environment =
            json!({"name": "desktop", "ip": if running { "10.96.3.7" } else { "" }, "service": service});
        let status = json!({"phase": "Ready", "environments": [environment]});
        let instance = instance("net-1", "", NET, running, status);
        let settings = Settings { ssh_by_name, ..settings.clone() };
        let student = Student::new(&known, &settings, &all, None);
        let machine = Machine::of(&view, &student, &instance, false, Ok(vec![]), None);
        let command = machine.environments[0].ssh.clone().expect("SSH").command;
        command.map(|command| command.replace("ssh -J bastion@bastion.example.org crownlabs@", ""))
    };
    let name = format!("net-1-desktop.{NAMESPACE}");
    for (running, service, ssh_by_name, expected) in [
        (true, "net-1-desktop", true, Some(name.as_str())),
        (false, "net-1-desktop", true, Some(name.as_str())),
        (true, "net-1-desktop", false, Some("10.96.3.7")),
        (false, "net-1-desktop", false, None),
        (true, "", true, Some("10.96.3.7")),
        (false, "", true, None),
        (true, "evil.example.org", true, Some("10.96.3.7")),
        (true, "$(reboot)", true, Some("10.96.3.7")),
    ] {
        let found = command(running, service, ssh_by_name);
        assert_eq!(found.as_deref(), expected, "{running} {service} {ssh_by_name}");
    }
    // Texts of other users never become part of a command.
    let hostile = json!([{"name": "desktop", "phase": "Ready", "ip": "$(reboot)", "url": "javascript:x"}]);
    let machine = page(json!({"phase": "Ready", "url": "javascript:x", "environments": hostile}));
    assert_eq!(machine.environments[0].ssh.clone().expect("SSH").command, None);
    assert_eq!((machine.card.openings.len(), machine.environments[0].url.clone()), (0, None));
}

#[test]
fn the_account_has_keys_and_quotas() {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let account = Account::of(&view(Language::ENGLISH, "/account"), &student);
    assert_eq!(account.keys[0].description.as_ref().map(|key| key.comment.as_str()), Ok("ada@laptop"));
    assert!(account.keys[1].description.is_err());
    // Three of the four machines run: 2 cores, 2 cores, and 4 cores in two environments.
    let used: Vec<String> = account
        .all
        .iter()
        .map(|share| format!("{} {:?}", share.used, share.limit.as_ref().map(ToString::to_string)))
        .collect();
    assert_eq!(used[0], "4 Some(\"9\")");
    assert_eq!(account.drive_size, "1Gi");
}
