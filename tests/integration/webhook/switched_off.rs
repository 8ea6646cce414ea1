//! Fields that the configuration turns off: the webhook warns, and the object has a condition.

use serde_json::json;

use super::act;
use super::quota::template;
use super::rules::expect;
use crate::lab::{Lab, PATIENCE, wait_until};

const NAMESPACE: &str = "workspace-closed";

/// The message of the condition `SwitchedOff` of a Template; empty if it is missing.
fn message(lab: &Lab, name: &str) -> String {
    let found = lab.get("templates", NAMESPACE, name).unwrap_or_default();
    let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == "SwitchedOff");
    found.map_or_else(String::new, |found| found["message"].as_str().unwrap_or_default().to_owned())
}

/// A Template with an age, which is never reached because expiration is off.
pub fn switched_off(lab: &Lab) {
    let warning = "spec.deleteAfter has no effect: controllers.expiration.enabled is false";
    let dated = template(NAMESPACE, "dated", "closed") + "  deleteAfter: 30d\n";
    // kubectl stores the object, prints the warning, and fails because of it.
    expect("a warning", act(lab, "teacher", &["create", "--warnings-as-errors", "-f", "-"], &dated), warning);
    wait_until(PATIENCE, || {
        let found = message(lab, "dated");
        found.contains(warning).then_some(()).ok_or_else(|| format!("{warning}: {found}"))
    });
    let never = json!({"spec": {"deleteAfter": "never"}}).to_string();
    let patch =
        ["patch", "template", "-n", NAMESPACE, "dated", "--type=merge", "--warnings-as-errors", "-p", &never];
    expect("no warning", act(lab, "teacher", &patch, ""), "");
    wait_until(PATIENCE, || {
        let found = message(lab, "dated");
        found.is_empty().then_some(()).ok_or_else(|| format!("no condition: {found}"))
    });
    lab.delete("templates", NAMESPACE, &["dated"]);
}
