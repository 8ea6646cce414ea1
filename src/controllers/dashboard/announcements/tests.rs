//! Tests of Announcements: what is shown, who sees a form, and that texts of users are harmless.

use std::sync::Arc;

use serde_json::{Value, json};

use super::actions::{ACTIONS, PUBLISH_FOR_EVERYONE, WITHDRAW_FROM_EVERYONE};
use super::model::{Published, sorted};
use super::view::{first_page, for_everyone};
use crate::api::Announcement;
use crate::clients::oidc::tests::Issuer;
use crate::config::Language;
use crate::controllers::dashboard::action::entry::{Form, NewObject, Plan, Right};
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::live::watches::Announced;
use crate::controllers::dashboard::student::read::Reads;
use crate::controllers::dashboard::student::{Rights, Student};
use crate::controllers::dashboard::tests::fixtures::{Everything, known, now, read, settings, view};
use crate::controllers::dashboard::tests::site::app;
use crate::controllers::dashboard::texts::Problem;
use crate::controllers::dashboard::user::users::User;
use crate::runtime::ObjectKey;
use crate::runtime::api_server::{ApiServer, refused};
use crate::runtime::client::Credential;

fn announcement(namespace: &str, name: &str, created: &str, more: &Value) -> Arc<Announcement> {
    let metadata = json!({"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1",
        "creationTimestamp": created});
    let mut spec = json!({"title": format!("Title {name}"), "text": "No laboratory\non Friday"});
    crate::runtime::merge::apply(&mut spec, more);
    Arc::new(read(json!({"metadata": metadata, "spec": spec})))
}

/// The current time of the tests is 2026-11-26T18:06:00Z.
fn all() -> Vec<Arc<Announcement>> {
    vec![
        announcement(
            "workspace-net",
            "old",
            "2026-11-01T00:00:00Z",
            &json!({"until": "2026-11-26T18:05:59Z"}),
        ),
        announcement(
            "workspace-net",
            "new",
            "2026-11-26T00:00:00Z",
            &json!({"until": "2026-11-26T18:06:01Z"}),
        ),
        announcement("crownlabs-system", "endless", "2026-11-20T00:00:00Z", &json!({})),
    ]
}

#[test]
fn the_newest_comes_first_and_an_announcement_ends_at_its_time() {
    let mut known = known();
    known.announce(sorted(all()));
    let (settings, all) = (settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let shown = Published::all(&student, now());
    let names: Vec<&str> = shown.iter().map(|of| of.announcement.name()).collect();
    assert_eq!(names, ["new", "endless"]);
    let page = first_page(&view(Language::ENGLISH, "/"), &shown).into_string();
    assert!(page.contains("No laboratory\non Friday") && page.contains("18 hours ago"), "{page}");
    assert_eq!(first_page(&view(Language::ENGLISH, "/"), &[]).into_string(), "");
}

#[test]
fn a_text_of_a_user_is_text() {
    let hostile =
        json!({"title": "<b>x</b>\u{202e}", "text": "<script>alert(1)</script>\u{1b}[31m [a](https://b)"});
    let of = announcement("workspace-net", "x", "2026-11-26T00:00:00Z", &hostile);
    let shown = [Published { course: Some("<i>tea</i>".to_owned()), announcement: of }];
    let page = first_page(&view(Language::ENGLISH, "/"), &shown).into_string();
    for part in ["<b>", "<i>", "<script", "\u{202e}", "\u{1b}", "<a "] {
        assert!(!page.contains(part), "{part:?} in {page}");
    }
}

/// The rights of a user who may do one thing with Announcements.
struct Only(&'static str);

impl Rights for Only {
    fn may(&self, _: &str, right: &Right) -> bool {
        right.verb == self.0 && right.resource == "announcements"
    }
}

#[test]
fn a_form_is_shown_with_its_right() {
    let page = |rights: &dyn Rights| {
        let view = view(Language::ENGLISH, "/admin");
        for_everyone(&view, rights, "crownlabs-system", &all()).into_string()
    };
    let has = |page: &str| {
        [&PUBLISH_FOR_EVERYONE, &WITHDRAW_FROM_EVERYONE]
            .map(|action| page.contains(&format!("action=\"{}\"", action.path)))
    };
    assert_eq!(has(&page(&Only("create"))), [true, false]);
    assert_eq!(has(&page(&Only("delete"))), [false, true]);
    assert_eq!(has(&page(&Everything(false))), [false, false]);
}

fn publish(fields: &str) -> Result<NewObject, Problem> {
    let Plan::Create(plan) = ACTIONS[0].plan else { panic!("it creates an object") };
    plan(&Form { fields: Fields::parse(fields.as_bytes()), ..Form::default() })
}

#[test]
fn a_published_announcement_has_its_end_from_the_time_of_the_page() {
    let hidden = "namespace=workspace-net&name=announcement-k3x9&at=2026-11-26T18:06:00Z";
    let new = publish(&format!("{hidden}&title=+Friday+&text=No%0D%0Alaboratory&days=7")).expect("an object");
    assert_eq!(new.key, ObjectKey::new("workspace-net", "announcement-k3x9"));
    let spec = json!({"title": "Friday", "text": "No\nlaboratory", "until": "2026-12-03T18:06:00Z"});
    assert_eq!(new.body, json!({"spec": spec}));
    let long = |count: usize| "x".repeat(count);
    for (fields, problem) in [
        ("title=&text=x&days=7", Problem::AnnouncementTitle),
        ("title=a%0Ab&text=x&days=7", Problem::AnnouncementTitle),
        (&*format!("title={}&text=x&days=7", long(201)), Problem::AnnouncementTitle),
        ("title=x&text=+%0A&days=7", Problem::AnnouncementText),
        (&*format!("title=x&text={}&days=7", long(2_001)), Problem::AnnouncementText),
        ("title=x&text=a%1Bb&days=7", Problem::AnnouncementText),
        ("title=x&text=x&days=0", Problem::AnnouncementDays),
        ("title=x&text=x&days=366", Problem::AnnouncementDays),
        ("title=x&text=x&days=soon", Problem::AnnouncementDays),
    ] {
        assert_eq!(publish(&format!("{hidden}&{fields}")).err(), Some(problem), "{fields}");
    }
    let valid = "title=x&text=x&days=7";
    for hidden in ["", "namespace=../a&name=b&at=2026-11-26T18:06:00Z", "namespace=a&name=b&at=now"] {
        assert_eq!(publish(&format!("{hidden}&{valid}")).err(), Some(Problem::Form), "{hidden}");
    }
}

/// Reads the home page of a user in the courses `net` and `data`. Only `net` has an Announcement, which the user may read
/// or not.
async fn announced(is_allowed: bool) -> (Vec<String>, Vec<String>) {
    let api = ApiServer::start(move |asked| match asked.name() {
        "ada" => (
            200,
            json!({"metadata": {"name": "ada"}, "spec": {"workspaces": [
            {"name": "net", "role": "user"}, {"name": "data", "role": "user"}]}}),
        ),
        "announcements" if is_allowed => (200, json!({"metadata": {}, "items": [&*all()[1]]})),
        "announcements" => refused(403, "Forbidden", "announcements is forbidden"),
        _ if asked.is("POST ") => (201, json!({"status": {"resourceRules": []}})),
        _ => (200, json!({"metadata": {}, "items": []})),
    })
    .await;
    let (app, _keys) = app(&api, &Issuer::start().await);
    let announced = Announced::default();
    let signal = json!({"metadata": {"namespace": "workspace-net", "name": "new", "resourceVersion": "1"}});
    announced.signals.apply_event(read(signal));
    announced.for_everyone.apply_event((*all()[2]).clone());
    let user =
        User::new(Credential::token("token").expect("a token"), "ada".to_owned(), jiff::Timestamp::MAX);
    let reads = Reads { users: &app.users, user: &user };
    let mut own = reads.own().await.expect("the objects");
    api.lines();
    reads.announce(&announced, &mut own).await.expect("the Announcements");
    let (settings, all) = (settings(), Everything(true));
    let student = Student::new(&own.known, &settings, &all, None);
    let names = student.announcements().iter().map(|of| of.name().to_owned()).collect();
    let lines = api.lines().into_iter().filter(|line| line.contains("announcements")).collect();
    (names, lines)
}

#[tokio::test]
async fn only_courses_with_announcements_are_read_with_the_token_of_the_user() {
    let line = "GET /apis/lab.crownlabs.polito.it/v1alpha1/namespaces/workspace-net/announcements?limit=50";
    let lines = vec![line.to_owned()];
    assert_eq!(announced(true).await, (vec!["endless".to_owned(), "new".to_owned()], lines.clone()));
    assert_eq!(announced(false).await.0, ["endless"], "a course whose Announcements the user may not read");
}
