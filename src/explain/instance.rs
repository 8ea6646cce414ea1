//! The reasons for the state of an Instance, and its next steps.

use std::fmt::Write;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::span::span;
use crate::api::condition::Condition;
use crate::api::instance::{Instance, InstanceStatus};
use crate::api::shown::{message, shown};
use crate::api::template::Template;

/// The conditions that say what an Instance is in need of while they do not hold.
const NEEDED: [&str; 3] = ["Ready", "Reconciled", "PublicExposureReady"];
/// The conditions that say what is in its way while they hold.
const HINDERING: [&str; 3] = ["Stalled", "NameConflict", "TenantMismatch"];
/// The end of the message of `Ready` where another condition says more.
const REFERENCE: &str = "ee condition Reconciled";

/// The facts about an Instance.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The Instance.
    pub instance: &'a Instance,
    /// The Tenant of its namespace, if it is one's.
    pub owner: Option<&'a str>,
    /// Its Template, if it could be read.
    pub template: Option<&'a Template>,
    /// The names of the managers of its course, if they could be read.
    pub managers: Option<&'a [String]>,
    /// The warnings about its objects, or why they are not known.
    pub warnings: Vec<String>,
}

impl Facts<'_> {
    /// The Tenant that it belongs to: that of its namespace, whatever its spec says.
    fn tenant(&self) -> &str {
        self.owner.unwrap_or(&self.instance.spec.tenant_ref.name)
    }
}

/// The text of `crownlabs why`: the objects that an Instance waits for, its next steps, and the users who may end it.
pub fn why(facts: &Facts<'_>, now: Timestamp) -> String {
    let mut text = String::new();
    head(&mut text, facts, now);
    section(&mut text, "It waits for:", waits(&facts.instance.status, now));
    section(&mut text, "Warnings about its objects:", facts.warnings.clone());
    section(&mut text, "What happens next:", next(facts, now));
    section(&mut text, "Who may stop or delete it:", enders(facts));
    text
}

/// A heading and indented lines, if there are any.
fn section(text: &mut String, heading: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        let _ = writeln!(text, "{heading}");
        for line in lines {
            let _ = writeln!(text, "  {}", message(&line));
        }
    }
}

/// Its name, its Tenant and its state.
fn head(text: &mut String, facts: &Facts<'_>, now: Timestamp) {
    let instance = facts.instance;
    let (spec, status) = (&instance.spec, &instance.status);
    let template = &spec.template_ref;
    let _ = writeln!(
        text,
        "Instance {}/{} of Tenant {}, Template {}/{}",
        instance.namespace(),
        instance.name(),
        shown(facts.tenant()),
        shown(&template.namespace),
        shown(&template.name)
    );
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
    let since = ready.map_or_else(String::new, |ready| {
        format!(", for {} ({})", span(&ready.last_transition_time, now), ready.last_transition_time.0)
    });
    let asked = if spec.running { "it is to run" } else { "it is to be off" };
    let phase = match status.phase.to_string() {
        phase if phase.is_empty() => "unknown".to_owned(),
        phase => phase,
    };
    let _ = writeln!(text, "Phase {}; {asked}{since}", shown(&phase));
    if !status.url.is_empty() {
        let _ = writeln!(text, "URL {}", shown(&status.url));
    }
    if status.environments.len() > 1 {
        for environment in &status.environments {
            let (name, phase) = (&environment.name, environment.phase.to_string());
            let _ = writeln!(text, "Environment {}: {}", shown(name), shown(&phase));
        }
    }
    if instance.is_terminating() {
        let _ = writeln!(text, "It is being deleted");
    }
    if status.observed_generation < instance.metadata.generation {
        let _ = writeln!(text, "The daemon has not acted on the last change of its spec yet");
    }
}

/// The conditions that keep it from being ready.
fn waits(status: &InstanceStatus, now: Timestamp) -> Vec<String> {
    let is_wait = |condition: &&Condition| {
        let type_ = &*condition.type_;
        let hinders = HINDERING.contains(&type_) && condition.status == "True";
        let is_missing = NEEDED.contains(&type_) && condition.status != "True";
        (hinders || is_missing) && !condition.message.ends_with(REFERENCE)
    };
    let mut told: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for condition in status.conditions.iter().filter(is_wait) {
        // `Stalled` and others repeat what `Reconciled` says.
        let message = condition.message.as_str();
        if !told.iter().any(|told| told.contains(message) || message.contains(told)) {
            told.push(&condition.message);
            lines.push(sentence(condition, now));
        }
    }
    lines
}

/// The message of a condition, its reason and its time.
fn sentence(condition: &Condition, now: Timestamp) -> String {
    let Condition { type_, reason, message, last_transition_time, .. } = condition;
    format!("{message} ({type_}: {reason}, for {})", span(last_transition_time, now))
}

/// The next steps of the automation, and its last ones.
fn next(facts: &Facts<'_>, now: Timestamp) -> Vec<String> {
    let Facts { instance, template, .. } = facts;
    let status = &instance.status;
    let is_other = |condition: &&Condition| {
        !NEEDED.contains(&&*condition.type_) && !HINDERING.contains(&&*condition.type_)
    };
    let mut lines: Vec<String> =
        status.conditions.iter().filter(is_other).map(|condition| sentence(condition, now)).collect();
    let is_kept = template.is_none_or(|template| template.spec.is_persistent());
    let unused = if is_kept { "stopped because nobody uses it" } else { "deleted because nobody uses it" };
    for (what, promise) in [
        (unused, &status.inactivity),
        ("deleted because it stays stopped", &status.destruction),
        ("deleted because of its age", &status.expiration),
    ] {
        let Some(promise) = promise else { continue };
        let mut line = String::new();
        if let Some(deadline) = &promise.deadline {
            let _ = write!(line, "Not {what} before {}", deadline.0);
            if deadline.0 > now {
                let _ = write!(line, ", in {}", span(&Time(now), deadline.0));
            }
        } else if let Some(time) = &promise.next_warning {
            let _ = write!(line, "Not {what} before a warning, which is due at {}", time.0);
        } else {
            continue;
        }
        if let (warnings @ 1.., Some(last)) = (promise.warnings, &promise.last_warning) {
            let tenant = facts.tenant();
            let _ = write!(line, "; {tenant} was warned {warnings} times, the last time at {}", last.0);
        }
        lines.push(line);
    }
    if let Some(template) = template {
        let spec = &template.spec;
        let times = [
            (if is_kept { "stopped after" } else { "deleted after" }, spec.max_idle(), "without use"),
            ("deleted after", spec.max_off(), "off"),
            ("deleted at the age of", spec.max_age(), ""),
        ];
        let times = times.iter().filter(|(_, time, _)| *time != crate::api::template::NEVER);
        let times: Vec<String> =
            times.map(|(what, time, how)| format!("{what} {time} {how}").trim_end().to_owned()).collect();
        lines.push(if times.is_empty() {
            "Its Template sets no time after which it is stopped or deleted".to_owned()
        } else {
            format!("Its Template says: {}", times.join(", "))
        });
    }
    lines
}

/// The users who may end it.
fn enders(facts: &Facts<'_>) -> Vec<String> {
    let tenant = format!("{}, its Tenant", facts.tenant());
    let managers = match facts.managers {
        Some([]) => None,
        Some(names) => Some(format!("{}, who manage its course", names.join(", "))),
        None => Some("the managers of its course".to_owned()),
    };
    [Some(tenant), managers, Some("administrators".to_owned())].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn instance(status: &Value) -> Instance {
        let spec = json!({
            "template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
        });
        let metadata = json!({"name": "box", "namespace": "tenant-ada", "uid": "1", "resourceVersion": "1", "generation": 2});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status}))
            .expect("an Instance")
    }

    fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn told(status: &Value, template: Option<&Template>, managers: Option<&[String]>) -> String {
        let instance = instance(status);
        let now = "2026-01-01T00:12:30Z".parse().expect("a time");
        let facts =
            Facts { instance: &instance, owner: Some("ada"), template, managers, warnings: Vec::new() };
        why(&facts, now)
    }

    #[test]
    fn what_an_instance_waits_for_is_said_once_with_its_reason_and_since_when() {
        let message = "Template workspace-tea/desktop not found";
        let status = json!({"phase": "CreationLoopBackoff", "observedGeneration": 1, "conditions": [
            condition("Ready", "False", "TemplateNotFound", "See condition Reconciled"),
            condition("Reconciled", "False", "TemplateNotFound", message),
            condition("Stalled", "True", "TemplateNotFound", message),
        ]});
        let expected = "\
Instance tenant-ada/box of Tenant ada, Template workspace-tea/desktop
Phase CreationLoopBackoff; it is to run, for 12 min (2026-01-01T00:00:00Z)
The daemon has not acted on the last change of its spec yet
It waits for:
  Template workspace-tea/desktop not found (Reconciled: TemplateNotFound, for 12 min)
Who may stop or delete it:
  ada, its Tenant
  the managers of its course
  administrators
";
        assert_eq!(told(&status, None, None), expected);
    }

    #[test]
    fn promises_are_told_with_their_deadline_and_who_was_warned() {
        let template = json!({"metadata": {"name": "desktop", "namespace": "workspace-tea"}, "spec": {
            "environmentList": [{"name": "a", "persistent": true}], "cleanup": {"stopAfterInactivity": "7d", "deleteAfterInactivity": "30d"},
            "deleteAfter": "365d"}});
        let template: Template = serde_json::from_value(template).expect("a Template");
        let status = json!({"phase": "Ready", "url": "https://labs/box", "observedGeneration": 2,
        "inactivity": {"warnings": 2, "lastWarning": "2025-12-31T00:00:00Z", "deadline": "2026-01-02T03:12:30Z"},
        "expiration": {"nextWarning": "2026-06-01T00:00:00Z"},
        "conditions": [
            condition("Ready", "True", "Ready", "The Instance can be used"),
            condition("Inactive", "True", "Overdue", "2 of 3 warnings were accepted by the mail server"),
        ]});
        let expected = "\
Instance tenant-ada/box of Tenant ada, Template workspace-tea/desktop
Phase Ready; it is to run, for 12 min (2026-01-01T00:00:00Z)
URL https://labs/box
What happens next:
  2 of 3 warnings were accepted by the mail server (Inactive: Overdue, for 12 min)
  Not stopped because nobody uses it before 2026-01-02T03:12:30Z, in 1 d 3 h; ada was warned 2 times, the last time at 2025-12-31T00:00:00Z
  Not deleted because of its age before a warning, which is due at 2026-06-01T00:00:00Z
  Its Template says: stopped after 7d without use, deleted after 30d off, deleted at the age of 365d
Who may stop or delete it:
  ada, its Tenant
  bob, eve, who manage its course
  administrators
";
        assert_eq!(told(&status, Some(&template), Some(&["bob".to_owned(), "eve".to_owned()])), expected);
        // Without a disk it cannot be started again.
        let mut lost = template.clone();
        lost.spec.environment_list[0].persistent = false;
        let told = told(&status, Some(&lost), None);
        assert!(told.contains("  Not deleted because nobody uses it before 2026-01-02T03:12:30Z"), "{told}");
        assert!(told.contains("Its Template says: deleted after 7d without use, "), "{told}");
    }
}
