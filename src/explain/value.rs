//! `crownlabs why` for programs: the facts about an Instance as JSON.

use serde_json::{Value, json};

use super::obstacle::{self, About};
use crate::api::Kind as _;
use crate::api::condition::Condition;
use crate::api::instance::{InstanceKind, InstancePhase};
use crate::api::openings::Way;
use crate::api::promise::End;
use crate::api::template::TemplateKind;
use crate::api::text::Text;
use crate::api::why::{Because, Ender, Limit, Next, Step, Warning, Why};

/// Returns the facts as JSON. Parts that could not be read are in `notRead`.
pub fn value(why: &Why) -> Value {
    let (namespace, name) = (&*why.instance.namespace, &*why.instance.name);
    let of_instance = |condition: &Condition| {
        obstacle::value(&About { kind: InstanceKind::KIND, namespace, name }, condition)
    };
    let template = &why.template;
    let of_template = |condition: &Condition| {
        let about = About { kind: TemplateKind::KIND, namespace: &template.namespace, name: &template.name };
        obstacle::value(&about, condition)
    };
    let environment = |(name, phase): &(Text, InstancePhase)| json!({"name": name, "phase": phase});
    let (warnings, unread) = match &why.warnings {
        Ok(warnings) => (&**warnings, None),
        Err(reason) => (&[][..], Some(json!({"what": "events", "reason": reason}))),
    };
    json!({
        "namespace": namespace,
        "name": name,
        "tenant": why.tenant,
        "template": {"namespace": template.namespace, "name": template.name},
        "running": why.is_to_run,
        "phase": why.phase,
        "since": why.since,
        "ready": why.is_ready,
        "url": why.url,
        "opens": why.opens.map(way),
        "environments": why.environments.iter().map(environment).collect::<Vec<_>>(),
        "waitsFor": why.waits.iter().map(of_instance).collect::<Vec<_>>(),
        "templateWaitsFor": why.template_waits.iter().map(of_template).collect::<Vec<_>>(),
        "warnings": warnings.iter().map(|found| warning(namespace, found)).collect::<Vec<_>>(),
        "automation": why.automation.iter().map(of_instance).collect::<Vec<_>>(),
        "next": why.next.iter().map(step).collect::<Vec<_>>(),
        "limits": why.limits.as_ref().map(|limits| limits.iter().map(limit).collect::<Vec<_>>()),
        "mayEnd": why.enders.iter().map(ender).collect::<Vec<_>>(),
        "notRead": unread.into_iter().collect::<Vec<_>>(),
    })
}

/// The way in which the dashboard opens it.
fn way(way: Way) -> &'static str {
    match way {
        Way::Web => "url",
        Way::Console => "console",
        Way::Terminal => "terminal",
    }
}

fn warning(namespace: &str, Warning { about, reason, message, times, last }: &Warning) -> Value {
    json!({"kind": about.kind, "namespace": namespace, "name": about.name, "reason": reason, "message": message,
        "times": times, "last": last})
}

/// A step: the time of the action, or of the warning before it. The action is `null` if the Template could not be read.
fn step(Step { because, end, next, warned }: &Step) -> Value {
    let (action, warning) = match next {
        Next::End(time) => (Some(time), None),
        Next::Warning(time) => (None, Some(time)),
    };
    json!({"because": word(*because), "action": end.map(End::action), "actionAt": action, "warningAt": warning,
        "warnings": warned.as_ref().map_or(0, |warned| warned.times),
        "lastWarning": warned.as_ref().map(|warned| &warned.last)})
}

fn limit(Limit { because, end, after }: &Limit) -> Value {
    json!({"because": word(*because), "action": end.action(), "after": after})
}

fn word(because: Because) -> &'static str {
    match because {
        Because::Unused => "unused",
        Because::Off => "off",
        Because::Age => "age",
    }
}

/// Users who may end it: a role, and their names. The names are `null` if they are not known.
fn ender(ender: &Ender) -> Value {
    let (role, names) = match ender {
        Ender::Tenant(name) => ("tenant", Some(std::slice::from_ref(name))),
        Ender::Managers(names) => ("manager", Some(&**names)),
        Ender::UnknownManagers => ("manager", None),
        Ender::Administrators => ("administrator", None),
    };
    json!({"role": role, "names": names})
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::api::reference::GenericRef;
    use crate::api::why::{About as Object, Warned};
    use crate::fixtures::time;

    const MIDNIGHT: &str = "2026-01-01T00:00:00Z";

    fn condition(type_: &str, reason: &str, message: &str) -> Condition {
        let value = json!({"type": type_, "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": MIDNIGHT});
        serde_json::from_value(value).expect("a condition")
    }

    fn why() -> Why {
        let at = || Time(time(MIDNIGHT));
        let warning = Warning {
            about: Object { kind: "Pod".to_owned(), name: "lab-1".to_owned() },
            reason: "FailedMount".to_owned(),
            message: "mount failed".to_owned(),
            times: 7,
            last: Some(at()),
        };
        let warned = Some(Warned { times: 2, last: at() });
        Why {
            instance: GenericRef::new("tenant-ada", "box"),
            tenant: "ada".to_owned(),
            template: GenericRef::new("workspace-tea", "desktop"),
            is_to_run: true,
            phase: InstancePhase::Starting,
            since: Some(at()),
            url: String::new(),
            opens: Some(Way::Terminal),
            environments: vec![("a".into(), InstancePhase::Off)],
            is_ready: false,
            is_terminating: false,
            is_behind: false,
            waits: vec![condition(
                "Reconciled",
                "TemplateNotFound",
                "Template workspace-tea/desktop not found",
            )],
            template_waits: Some(condition("Ready", "IngressClassMissing", "no class")),
            warnings: Ok(vec![warning]),
            automation: vec![condition("Inactive", "Made up", "in use")],
            next: vec![
                Step { because: Because::Unused, end: None, next: Next::End(at()), warned },
                Step {
                    because: Because::Age,
                    end: Some(End::Deleted),
                    next: Next::Warning(at()),
                    warned: None,
                },
            ],
            limits: Some(vec![Limit { because: Because::Off, end: End::Deleted, after: "30d".to_owned() }]),
            enders: vec![
                Ender::Tenant("ada".to_owned()),
                Ender::Managers(vec!["bob".to_owned(), "eve".to_owned()]),
                Ender::Administrators,
            ],
        }
    }

    #[test]
    fn the_facts_are_objects() {
        let about = |kind: &str, namespace: &str, name: &str, condition: [&str; 3], who: Value| {
            json!({"kind": kind, "namespace": namespace, "name": name, "cause": null, "condition": condition[0],
                "status": "False", "reason": condition[1], "message": condition[2], "since": MIDNIGHT, "whoCanAct": who})
        };
        let waits = ["Reconciled", "TemplateNotFound", "Template workspace-tea/desktop not found"];
        let expected = json!({
            "namespace": "tenant-ada", "name": "box", "tenant": "ada",
            "template": {"namespace": "workspace-tea", "name": "desktop"},
            "running": true, "phase": "Starting", "since": MIDNIGHT, "ready": false, "url": "", "opens": "terminal",
            "environments": [{"name": "a", "phase": "Off"}],
            "waitsFor": [about("Instance", "tenant-ada", "box", waits, json!(["teacher"]))],
            "templateWaitsFor": [about("Template", "workspace-tea", "desktop",
                ["Ready", "IngressClassMissing", "no class"], json!(["administrator"]))],
            "warnings": [{"kind": "Pod", "namespace": "tenant-ada", "name": "lab-1", "reason": "FailedMount",
                "message": "mount failed", "times": 7, "last": MIDNIGHT}],
            "automation": [about("Instance", "tenant-ada", "box", ["Inactive", "Made up", "in use"], Value::Null)],
            "next": [
                {"because": "unused", "action": null, "actionAt": MIDNIGHT, "warningAt": null, "warnings": 2,
                    "lastWarning": MIDNIGHT},
                {"because": "age", "action": "deleted", "actionAt": null, "warningAt": MIDNIGHT, "warnings": 0,
                    "lastWarning": null},
            ],
            "limits": [{"because": "off", "action": "deleted", "after": "30d"}],
            "mayEnd": [{"role": "tenant", "names": ["ada"]}, {"role": "manager", "names": ["bob", "eve"]},
                {"role": "administrator", "names": null}],
            "notRead": [],
        });
        assert_eq!(value(&why()).to_string(), expected.to_string(), "the order counts too");
    }

    #[test]
    fn unknown_facts_are_null_or_in_not_read() {
        let reason = "you are not allowed to read the events";
        let why = Why {
            warnings: Err(reason.to_owned()),
            limits: None,
            enders: vec![Ender::UnknownManagers],
            ..why()
        };
        let value = value(&why);
        assert_eq!(value["notRead"], json!([{"what": "events", "reason": reason}]));
        assert_eq!((&value["warnings"], &value["limits"]), (&json!([]), &Value::Null));
        assert_eq!(value["mayEnd"], json!([{"role": "manager", "names": null}]));
    }
}
