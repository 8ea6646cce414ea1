//! The reasons for the state of an Instance, and its next steps.

use std::fmt::Write;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::span::span;
use crate::api::condition::Condition;
use crate::api::instance::{EnvironmentStatus, Instance, InstanceStatus};
use crate::api::promise::End;
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

/// The same for programs.
pub fn value(facts: &Facts<'_>, now: Timestamp) -> Value {
    let (spec, status) = (&facts.instance.spec, &facts.instance.status);
    let environment = |of: &EnvironmentStatus| json!({"name": of.name, "phase": of.phase});
    json!({
        "namespace": facts.instance.namespace(),
        "name": facts.instance.name(),
        "tenant": facts.tenant(),
        "template": {"namespace": spec.template_ref.namespace, "name": spec.template_ref.name},
        "running": spec.running,
        "phase": status.phase,
        "url": status.open_url(),
        "environments": status.environments.iter().map(environment).collect::<Vec<_>>(),
        "waitsFor": waits(status, now),
        "warnings": facts.warnings,
        "next": next(facts, now),
        "mayEnd": enders(facts),
    })
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
    if !status.open_url().is_empty() {
        let _ = writeln!(text, "URL {}", shown(status.open_url()));
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
    let unused = template.map(|template| End::of_unused(template.spec.is_persistent()));
    for (because, end, promise) in [
        ("Because nobody uses it", unused, &status.inactivity),
        ("Because it stays stopped", Some(End::Deleted), &status.destruction),
        ("Because of its age", Some(End::Deleted), &status.expiration),
    ] {
        // Who asks may not read the Template.
        let then = |when: &str| {
            end.map_or_else(|| format!("the Instance is stopped or deleted{when}"), |end| end.sentence(when))
        };
        let Some(promise) = promise else { continue };
        let mut line = if let Some(deadline) = &promise.deadline {
            let left = if deadline.0 > now {
                format!(", in {}", span(&Time(now), deadline.0))
            } else {
                String::new()
            };
            format!("{because}, {}", then(&format!(" at {}{left}", deadline.0)))
        } else if let Some(time) = &promise.next_warning {
            format!("{because}, a warning is due at {}; {}", time.0, then(" after the warnings"))
        } else {
            continue;
        };
        if let (warnings @ 1.., Some(last)) = (promise.warnings, &promise.last_warning) {
            let tenant = facts.tenant();
            let _ = write!(line, "; {tenant} was warned {warnings} times, the last time at {}", last.0);
        }
        lines.push(line);
    }
    if let Some(template) = template {
        let spec = &template.spec;
        let times = [
            (End::of_unused(spec.is_persistent()), "after", spec.max_idle(), "without use"),
            (End::Deleted, "after", spec.max_off(), "off"),
            (End::Deleted, "at the age of", spec.max_age(), ""),
        ];
        let times = times.iter().filter(|(_, _, time, _)| *time != crate::api::template::NEVER);
        let said = |(end, after, time, how): &(End, &str, &str, &str)| {
            format!("{} {after} {time} {how}", end.action()).trim_end().to_owned()
        };
        let times: Vec<String> = times.map(said).collect();
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
            condition("Inactive", "True", "Overdue", "2 of 3 warnings were sent"),
        ]});
        let expected = "\
Instance tenant-ada/box of Tenant ada, Template workspace-tea/desktop
Phase Ready; it is to run, for 12 min (2026-01-01T00:00:00Z)
URL https://labs/box
What happens next:
  2 of 3 warnings were sent (Inactive: Overdue, for 12 min)
  Because nobody uses it, the Instance is stopped at 2026-01-02T03:12:30Z, in 1 d 3 h, and its disk is kept, so that it can be started again; ada was warned 2 times, the last time at 2025-12-31T00:00:00Z
  Because of its age, a warning is due at 2026-06-01T00:00:00Z; the Instance is deleted after the warnings, with all data in it
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
        let deleted = told(&status, Some(&lost), None);
        let line = "  Because nobody uses it, the Instance is deleted at 2026-01-02T03:12:30Z, in 1 d 3 h, with all data in it; ";
        assert!(deleted.contains(line), "{deleted}");
        assert!(deleted.contains("Its Template says: deleted after 7d without use, "), "{deleted}");
        // Who may not read the Template is told nothing that may be wrong.
        let unknown = told(&status, None, None);
        let line = "  Because nobody uses it, the Instance is stopped or deleted at 2026-01-02T03:12:30Z, in 1 d 3 h; ada";
        assert!(unknown.contains(line), "{unknown}");
    }
}
