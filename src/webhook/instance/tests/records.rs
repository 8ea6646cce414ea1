//! The annotations that only this daemon writes.

use serde_json::{Value, json};

use super::{OURSELVES, small};
use crate::webhook::fixture::{merged, request};
use crate::webhook::instance::records::check;
use crate::webhook::requester::Bypass;

const RECORD: &str = "crownlabs.polito.it/mailed-expiration-warning";

/// The message for a user who changes an Instance from `old` to `new`.
fn told(user: &str, groups: &[&str], old: Value, new: Value) -> String {
    let bypass = Bypass { groups: vec!["admins".to_owned()], own_user: OURSELVES.to_owned() };
    let mut request = request(user, "instances", old, new);
    request.user_info.groups.extend(groups.iter().map(|&group| group.to_owned()));
    check(&request, &bypass).map_or_else(|denial| denial.message, |()| String::new())
}

fn with(annotations: &Value) -> Value {
    merged(small("box", true), &json!({"metadata": {"annotations": annotations}}))
}

#[test]
fn only_the_daemon_records_when_mails_were_accepted() {
    let now = || with(&json!({RECORD: "2026-11-20T17:00:00Z", "mine": "1"}));
    let other = || with(&json!({RECORD: "2026-11-20T18:00:00Z", "mine": "1"}));
    let none = || with(&json!({"mine": "1"}));
    let renamed =
        || merged(now(), &json!({"spec": {"prettyName": "x"}, "metadata": {"annotations": {"mine": "2"}}}));
    let refused = |rest: &str| {
        format!(
            "the annotation {RECORD} records when a mail about the Instance was accepted: only CrownLabs writes it, so leave \
             it {rest}"
        )
    };
    for (old, new, expected) in [
        (now(), other(), refused("as it is")),
        (now(), none(), refused("as it is")),
        (now(), small("box", true), refused("as it is")),
        (none(), now(), refused("out")),
        (Value::Null, now(), refused("out")),
        (Value::Null, none(), String::new()),
        (now(), renamed(), String::new()),
        (none(), small("box", true), String::new()),
    ] {
        assert_eq!(told("ada", &[], old.clone(), new.clone()), expected, "{old} {new}");
        let manager = "kubernetes:workspace-tea:manager";
        assert_eq!(told("grace", &[manager], old.clone(), new.clone()), expected, "a manager");
        assert_eq!(told(OURSELVES, &[], old.clone(), new.clone()), "");
        assert_eq!(told("root", &["admins"], old, new), "");
    }
}
