//! The actions on Announcements: the same two for a course and for everyone, each pair with the page that has its forms.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::api::announcement::{AnnouncementKind, MOST_OF_TEXT, MOST_OF_TITLE};
use crate::api::shown::is_control;
use crate::controllers::dashboard::action::entry::{
    Action, Field, Form, Input, NewObject, Place, Plan, Right, Target,
};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::plan::KindInfo;
use crate::runtime::{ObjectKey, clock};

const KIND: KindInfo = KindInfo::of::<AnnouncementKind>();
/// The maximum number of days that an Announcement is shown.
const MOST_DAYS: u32 = 365;
/// The fields of a new Announcement.
const FIELDS: &[Field] = &[
    Field { name: "title", id: "announcement-title", input: Input::Line { max: MOST_OF_TITLE, pattern: "" } },
    Field { name: "text", id: "announcement-text", input: Input::Lines },
    Field { name: "days", id: "announcement-days", input: Input::Number { min: 1, max: MOST_DAYS } },
];

/// Publishes an Announcement for a course.
pub const PUBLISH: Action =
    publish("announcements.publish", "/courses/{course}/announcements/publish", paths::ANNOUNCEMENTS);
/// Withdraws an Announcement for a course.
pub const WITHDRAW: Action =
    withdraw("announcements.withdraw", "/courses/{course}/announcements/withdraw", paths::ANNOUNCEMENTS);
/// Publishes an Announcement for everyone.
pub const PUBLISH_FOR_EVERYONE: Action =
    publish("admin.announcements.publish", "/admin/announcements/publish", paths::ADMIN);
/// Withdraws an Announcement for everyone.
pub const WITHDRAW_FROM_EVERYONE: Action =
    withdraw("admin.announcements.withdraw", "/admin/announcements/withdraw", paths::ADMIN);

/// All actions on Announcements.
pub const ACTIONS: &[&Action] = &[&PUBLISH, &WITHDRAW, &PUBLISH_FOR_EVERYONE, &WITHDRAW_FROM_EVERYONE];

const fn publish(name: &'static str, path: &'static str, page: &'static str) -> Action {
    let right = Right::to::<AnnouncementKind>("create");
    Action {
        name,
        path,
        page,
        right,
        place: Place::Section,
        fields: FIELDS,
        plan: Plan::Create(announcement),
    }
}

const fn withdraw(name: &'static str, path: &'static str, page: &'static str) -> Action {
    let right = Right::to::<AnnouncementKind>("delete");
    let plan = Plan::Delete(Target { kind: KIND, key });
    Action { name, path, page, right, place: Place::Question, fields: &[], plan }
}

/// Returns the Announcement of a form, whose hidden fields have its namespace and name. The API server decides whether
/// the user may write there.
fn key(form: &Form<'_>) -> Option<ObjectKey> {
    paths::machine(form.get("namespace"), form.get("name"))
}

fn announcement(form: &Form<'_>) -> Result<NewObject, Problem> {
    let key = key(form).ok_or(Problem::Form)?;
    let (title, text) = (form.get("title").trim(), form.get("text").replace("\r\n", "\n").replace('\t', " "));
    let (text, is_mark) = (text.trim(), |character: char| is_control(character) && character != '\n');
    let length = |text: &str| text.chars().count();
    if title.is_empty() || length(title) > MOST_OF_TITLE || title.contains(is_control) {
        return Err(Problem::AnnouncementTitle);
    }
    if text.is_empty() || length(text) > MOST_OF_TEXT || text.contains(is_mark) {
        return Err(Problem::AnnouncementText);
    }
    let days: Option<u32> = form.get("days").trim().parse().ok();
    let days = days.filter(|days| (1..=MOST_DAYS).contains(days)).ok_or(Problem::AnnouncementDays)?;
    // The page has written its time, so a form that is sent twice asks for the same object.
    let at: Timestamp = form.get("at").parse().map_err(|_| Problem::Form)?;
    let until = at.checked_add(SignedDuration::from_hours(24 * i64::from(days)));
    let until = clock::rfc3339(until.map_err(|_| Problem::Form)?);
    Ok(NewObject { kind: KIND, key, body: json!({"spec": {"title": title, "text": text, "until": until}}) })
}
