//! The action of the page.

use serde_json::{Value, json};

use crate::api::instance::InstanceKind;
use crate::api::labels::{SUBMISSION_COMPLETED, SUBMISSION_REQUESTED};
use crate::controllers::dashboard::action::entry::{Action, Form, Patch, Place, Plan, Right, Target};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::ObjectKey;
use crate::runtime::plan::KindInfo;

/// Requests an upload again that has failed.
pub const RETRY: Action = Action {
    name: "exam.retry",
    path: "/courses/{course}/exams/retry",
    page: paths::EXAMS,
    right: Right::to::<InstanceKind>("patch"),
    place: Place::Card,
    fields: &[],
    plan: Plan::Patch(Target { kind: KindInfo::of::<InstanceKind>(), key }, retry),
};

/// All actions.
pub const ACTIONS: &[&Action] = &[&RETRY];

/// Returns the machine that the hidden fields of a form name.
fn key(form: &Form<'_>) -> Option<ObjectKey> {
    paths::machine(form.get("namespace"), form.get("name"))
}

fn retry(instance: &Value, _: &Form<'_>) -> Patch<Value> {
    let is_true = |label: &str| instance["metadata"]["labels"][label] == "true";
    match (is_true(SUBMISSION_COMPLETED), is_true(SUBMISSION_REQUESTED)) {
        // It has succeeded meanwhile.
        (true, _) => Err(Problem::Changed),
        (false, true) => Ok(None),
        (false, false) => {
            let labels = json!({SUBMISSION_REQUESTED: "true", SUBMISSION_COMPLETED: "false"});
            Ok(Some(json!({"metadata": {"labels": labels}})))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_upload_is_requested_once() {
        let of = |labels: &Value| retry(&json!({"metadata": {"labels": labels}}), &Form::default());
        let wanted =
            json!({"metadata": {"labels": {SUBMISSION_REQUESTED: "true", SUBMISSION_COMPLETED: "false"}}});
        for labels in
            [json!(null), json!({}), json!({SUBMISSION_REQUESTED: "false", SUBMISSION_COMPLETED: "false"})]
        {
            assert_eq!(of(&labels), Ok(Some(wanted.clone())), "{labels}");
        }
        assert_eq!(of(&wanted["metadata"]["labels"]), Ok(None), "the form was sent twice");
        let completed = json!({SUBMISSION_REQUESTED: "false", SUBMISSION_COMPLETED: "true"});
        assert_eq!(of(&completed), Err(Problem::Changed));
    }

    #[test]
    fn the_hidden_fields_name_the_machine() {
        let form = |namespace: &str, name: &str| {
            let fields = format!("namespace={namespace}&name={name}");
            key(&Form {
                fields: crate::controllers::dashboard::http::fields::Fields::parse(fields.as_bytes()),
                ..Form::default()
            })
        };
        assert_eq!(form("tenant-ada", "exam.1"), Some(ObjectKey::new("tenant-ada", "exam.1")));
        assert_eq!([form("", "exam"), form("a", ".."), form("a.b", "exam")], [None, None, None]);
    }
}
