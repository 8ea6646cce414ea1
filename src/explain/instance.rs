//! `crownlabs why`: the facts about an Instance, as text.

use std::fmt::Write;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::words::{sentence, times};
use crate::api::condition::Condition;
use crate::api::openings::Way;
use crate::api::shown::{message, shown};
use crate::api::why::{Because, Ender, Limit, Next, Step, Warned, Warning, Why, span};

/// The text of `crownlabs why`: the objects that an Instance waits for, its next steps, and the users who may end it.
pub fn text(why: &Why, now: Timestamp) -> String {
    let mut text = String::new();
    head(&mut text, why, now);
    section(&mut text, "It waits for:", sentences(&why.waits, now));
    section(&mut text, "Its Template is not ready:", sentences(&why.template_waits, now));
    section(&mut text, "Warnings about its objects:", warnings(why, now));
    section(&mut text, "What happens next:", next(why, now));
    section(&mut text, "Users who may stop or delete it:", enders(why));
    text
}

/// Appends a heading and indented lines, if there are any.
fn section(text: &mut String, heading: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        let _ = writeln!(text, "{heading}");
        for line in lines {
            let _ = writeln!(text, "  {}", message(&line));
        }
    }
}

/// Appends the name of the Instance, its Tenant and its state.
fn head(text: &mut String, why: &Why, now: Timestamp) {
    let _ = writeln!(
        text,
        "Instance {}/{} of Tenant {}, Template {}/{}",
        why.instance.namespace,
        why.instance.name,
        shown(&why.tenant),
        shown(&why.template.namespace),
        shown(&why.template.name)
    );
    let age = |since: &Time| format!(", for {} ({})", span(since, now), since.0);
    let since = why.since.as_ref().map(age).unwrap_or_default();
    let asked = if why.is_to_run { "it should run" } else { "it should be off" };
    let phase = match why.phase.to_string() {
        phase if phase.is_empty() => "unknown".to_owned(),
        phase => phase,
    };
    let _ = writeln!(text, "Phase {}; {asked}{since}", shown(&phase));
    if !why.url.is_empty() {
        let _ = writeln!(text, "URL {}", shown(&why.url));
    }
    if why.opens == Some(Way::Console) && !why.url.is_empty() {
        let _ = writeln!(
            text,
            "This URL is a page of the official web interface; a dashboard with consoles opens the console"
        );
    }
    if why.environments.len() > 1 {
        for (name, phase) in &why.environments {
            let _ = writeln!(text, "Environment {}: {}", shown(name), shown(&phase.to_string()));
        }
    }
    if why.is_terminating {
        let _ = writeln!(text, "It is being deleted");
    }
    if why.is_behind {
        let _ = writeln!(text, "The daemon has not acted on the last change of its spec yet");
    }
}

/// Returns a sentence for each condition.
fn sentences<'a>(conditions: impl IntoIterator<Item = &'a Condition>, now: Timestamp) -> Vec<String> {
    conditions.into_iter().map(|condition| sentence(condition, now)).collect()
}

/// The warnings about its objects, or the reason why they are unknown.
fn warnings(why: &Why, now: Timestamp) -> Vec<String> {
    let line = |warning: &Warning| {
        let Warning { about, reason, message, times: number, last } = warning;
        let times = if *number > 1 { format!(", {}", times(*number)) } else { String::new() };
        let ago = last.as_ref().map_or_else(String::new, |last| format!(", {} ago", span(last, now)));
        format!("{} {}: {message} ({reason}{times}{ago})", about.kind, about.name)
    };
    match &why.warnings {
        Ok(warnings) => warnings.iter().map(line).collect(),
        Err(unknown) => vec![unknown.clone()],
    }
}

/// The conditions of the automation, its next steps, and the limits that the Template sets.
fn next(why: &Why, now: Timestamp) -> Vec<String> {
    let conditions = why.automation.iter().map(|condition| sentence(condition, now));
    let steps = why.next.iter().map(|next| step(next, &why.tenant, now));
    conditions.chain(steps).chain(why.limits.as_deref().map(limits)).collect()
}

/// Describes a step: the action, its reason and time, and the warnings that were sent.
fn step(step: &Step, tenant: &str, now: Timestamp) -> String {
    let because = match step.because {
        Because::Unused => "Because it is unused",
        Because::Off => "Because it stays stopped",
        Because::Age => "Because of its age",
    };
    // `end` is `None` if the user may not read the Template.
    let then = |when: &str| {
        step.end.map_or_else(|| format!("the Instance is stopped or deleted{when}"), |end| end.sentence(when))
    };
    let mut line = match &step.next {
        Next::End(deadline) => {
            let left = if deadline.0 > now {
                format!(", in {}", span(&Time(now), deadline.0))
            } else {
                String::new()
            };
            format!("{because}, {}", then(&format!(" at {}{left}", deadline.0)))
        }
        Next::Warning(time) => {
            format!("{because}, a warning is due at {}; {}", time.0, then(" after the warnings"))
        }
    };
    if let Some(Warned { times: number, last }) = &step.warned {
        let when = if *number == 1 { "at" } else { "the last time at" };
        let _ = write!(line, "; {tenant} was warned {}, {when} {}", times(*number), last.0);
    }
    line
}

/// The time limits that its Template sets.
fn limits(limits: &[Limit]) -> String {
    let said = |Limit { because, end, after }: &Limit| match because {
        Because::Unused => format!("{} after {after} without use", end.action()),
        Because::Off => format!("{} after {after} off", end.action()),
        Because::Age => format!("{} at the age of {after}", end.action()),
    };
    if limits.is_empty() {
        return "Its Template sets no time limit for stopping or deleting it".to_owned();
    }
    format!("Limits set by its Template: {}", limits.iter().map(said).collect::<Vec<_>>().join(", "))
}

/// The users who may stop or delete it.
fn enders(why: &Why) -> Vec<String> {
    let said = |ender: &Ender| match ender {
        Ender::Tenant(name) => format!("{name}, its Tenant"),
        Ender::Managers(names) => {
            let end = if names.len() == 1 { "" } else { "s" };
            format!("manager{end} of its course: {}", names.join(", "))
        }
        Ender::UnknownManagers => "the managers of its course".to_owned(),
        Ender::Administrators => "administrators".to_owned(),
    };
    why.enders.iter().map(said).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::instance::Instance;
    use crate::api::template::Template;
    use crate::api::why::{About, Facts};
    use crate::fixtures::time;

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
        let now = time("2026-01-01T00:12:30Z");
        let facts =
            Facts { instance: &instance, owner: Some("ada"), template, managers, warnings: Ok(Vec::new()) };
        text(&facts.why(), now)
    }

    #[test]
    fn an_obstacle_is_shown_once_with_its_reason_and_age() {
        let message = "Template workspace-tea/desktop not found";
        let status = json!({"phase": "CreationLoopBackoff", "observedGeneration": 1, "conditions": [
            condition("Ready", "False", "TemplateNotFound", "See condition Reconciled"),
            condition("Reconciled", "False", "TemplateNotFound", message),
            condition("Stalled", "True", "TemplateNotFound", message),
        ]});
        let expected = "\
Instance tenant-ada/box of Tenant ada, Template workspace-tea/desktop
Phase CreationLoopBackoff; it should run, for 12 min (2026-01-01T00:00:00Z)
The daemon has not acted on the last change of its spec yet
It waits for:
  Template workspace-tea/desktop not found (Reconciled: TemplateNotFound, for 12 min)
Users who may stop or delete it:
  ada, its Tenant
  the managers of its course
  administrators
";
        assert_eq!(told(&status, None, None), expected);
    }

    #[test]
    fn the_console_opens_instead_of_a_page_of_the_official_web_interface() {
        let with = |url: &str| {
            let main = json!({"name": "main", "phase": "Ready", "url": url, "ip": "10.96.3.7"});
            told(&json!({"phase": "Ready", "url": url, "environments": [main]}), None, None)
        };
        let line =
            "This URL is a page of the official web interface; a dashboard with consoles opens the console\n";
        assert!(with("https://labs/instance/1/").contains(&format!("URL https://labs/instance/1/\n{line}")));
        let own = with("https://labs/instance/1/main/");
        assert!(own.contains("URL https://labs/instance/1/main/\n") && !own.contains(line), "{own}");
        assert!(!with("").contains("URL "));
    }

    #[test]
    fn next_steps_are_shown_with_their_deadline_and_the_warnings_sent() {
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
Phase Ready; it should run, for 12 min (2026-01-01T00:00:00Z)
URL https://labs/box
What happens next:
  2 of 3 warnings were sent (Inactive: Overdue, for 12 min)
  Because it is unused, the Instance is stopped at 2026-01-02T03:12:30Z, in 1 d 3 h, and its disk is kept, so that it can be started again; ada was warned 2 times, the last time at 2025-12-31T00:00:00Z
  Because of its age, a warning is due at 2026-06-01T00:00:00Z; the Instance is deleted after the warnings, with all data in it
  Limits set by its Template: stopped after 7d without use, deleted after 30d off, deleted at the age of 365d
Users who may stop or delete it:
  ada, its Tenant
  managers of its course: bob, eve
  administrators
";
        assert_eq!(told(&status, Some(&template), Some(&["bob".to_owned(), "eve".to_owned()])), expected);
        let mut warned = status.clone();
        warned["inactivity"]["warnings"] = 1.into();
        let one = told(&warned, Some(&template), Some(&["carlo.verdi".to_owned()]));
        assert!(one.contains("  manager of its course: carlo.verdi\n"), "{one}");
        assert!(one.contains("; ada was warned once, at 2025-12-31T00:00:00Z\n"), "{one}");
        // Without a persistent disk it cannot be started again.
        let mut lost = template.clone();
        lost.spec.environment_list[0].persistent = false;
        let deleted = told(&status, Some(&lost), None);
        let line = "  Because it is unused, the Instance is deleted at 2026-01-02T03:12:30Z, in 1 d 3 h, with all data in it; ";
        assert!(deleted.contains(line), "{deleted}");
        assert!(deleted.contains("Limits set by its Template: deleted after 7d without use, "), "{deleted}");
        // If the user may not read the Template, the sentence claims neither outcome.
        let unknown = told(&status, None, None);
        let line = "  Because it is unused, the Instance is stopped or deleted at 2026-01-02T03:12:30Z, in 1 d 3 h; ada";
        assert!(unknown.contains(line), "{unknown}");
    }

    #[test]
    fn obstacles_of_the_template_are_shown_unless_the_instance_repeats_them() {
        let words = "environment a: the cluster has no Ingress class";
        let template = json!({"metadata": {"name": "desktop", "namespace": "workspace-tea"}, "spec": {},
            "status": {"conditions": [condition("Ready", "False", "IngressClassMissing", words)]}});
        let template: Template = serde_json::from_value(template).expect("a Template");
        let ready =
            json!({"phase": "Ready", "conditions": [condition("Ready", "True", "Ready", "It can be used")]});
        let lines = "Its Template is not ready:\n  environment a: the cluster has no Ingress class (Ready: IngressClassMissing, for 12 min)\n";
        let text = told(&ready, Some(&template), None);
        assert!(text.contains(lines), "{text}");
        let reconciled = condition("Reconciled", "False", "IngressClassMissing", &format!("{words}; more"));
        let text = told(&json!({"phase": "Starting", "conditions": [reconciled]}), Some(&template), None);
        assert!(!text.contains("Its Template is not ready") && text.contains(words), "{text}");
    }

    #[test]
    fn warnings_about_its_objects_are_shown() {
        let about = About { kind: "Pod".to_owned(), name: "lab-1".to_owned() };
        let warning = |message: &str, times, last| Warning {
            about: about.clone(),
            reason: "FailedMount".to_owned(),
            message: message.to_owned(),
            times,
            last,
        };
        let instance =
            instance(&json!({"phase": "Starting", "environments": [{"name": "a", "phase": "Off"}]}));
        let warnings = vec![
            warning("not yet", 7, Some(Time(time("2026-01-01T00:11:30Z")))),
            warning("mount failed", 1, None),
        ];
        let mut facts = Facts {
            instance: &instance,
            owner: None,
            template: None,
            managers: None,
            warnings: Ok(warnings),
        };
        let now = time("2026-01-01T00:12:30Z");
        let expected = "\
Warnings about its objects:
  Pod lab-1: not yet (FailedMount, 7 times, 1 min ago)
  Pod lab-1: mount failed (FailedMount)
Users who may stop";
        let told = text(&facts.why(), now);
        assert!(told.contains(expected), "{told}");
        facts.warnings = Err("you are not allowed to read the events".to_owned());
        let told = text(&facts.why(), now);
        assert!(told.contains("objects:\n  you are not allowed to read the events\n"), "{told}");
    }
}
