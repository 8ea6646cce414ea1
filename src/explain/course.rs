//! The Instances of a course as a table.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::obstacle;
use super::words::{self, count, sentence};
use crate::api::Kind as _;
use crate::api::shown::{message, shown};
use crate::api::template::{Template, TemplateKind};
use crate::api::why::{Row, not_ready, span};

/// Returns the rows as JSON.
pub fn value(workspace: &str, rows: &[Row], templates: &[Template]) -> Value {
    let row = |row: &Row| {
        let Row { tenant, instance, template, phase, idle_since, cores } = row;
        json!({"tenant": tenant, "instance": instance, "template": template, "phase": phase, "idleSince": idle_since,
            "cores": cores})
    };
    let template = |template: &Template| {
        let about = obstacle::About {
            kind: TemplateKind::KIND,
            namespace: template.namespace(),
            name: template.name(),
        };
        not_ready(template).map(|condition| obstacle::value(&about, condition))
    };
    json!({
        "workspace": workspace,
        "instances": rows.iter().map(row).collect::<Vec<_>>(),
        "templatesNotReady": templates.iter().filter_map(template).collect::<Vec<_>>(),
    })
}

/// Returns the Templates that are not ready as text, below the table.
pub fn templates(templates: &[Template], now: Timestamp) -> String {
    let line = |template: &Template| {
        let waits = sentence(not_ready(template)?, now);
        Some(format!("  {}: {}\n", shown(template.name()), message(&waits)))
    };
    let lines: String = templates.iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("\nTemplates that are not ready:\n{lines}") }
}

/// Returns the table, with the totals below it.
pub fn table(rows: &[Row], now: Timestamp) -> String {
    let heading = ["TENANT", "INSTANCE", "TEMPLATE", "PHASE", "IDLE", "CORES"].map(str::to_owned);
    let mut lines = vec![heading];
    lines.extend(rows.iter().map(|row| {
        let idle = row.idle_since.as_ref().map_or_else(|| "-".to_owned(), |since| span(since, now));
        let (phase, cores) = (row.phase.to_string(), row.cores.to_string());
        [row.tenant.clone(), row.instance.clone(), row.template.clone(), phase, idle, cores]
    }));
    let running = rows.iter().filter(|row| row.cores > 0).count();
    let cores: i64 = rows.iter().map(|row| row.cores).sum();
    let (all, cores) = (count(rows.len(), "Instance"), count(cores, "core"));
    format!("{}\n{all}, {running} of them running, {cores}\n", words::table(&lines, ""))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::api::why::sort;
    use crate::fixtures::time;

    fn row(tenant: &str, phase: &str, idle: Option<&str>, cores: i64) -> Row {
        Row {
            tenant: tenant.to_owned(),
            instance: format!("tenant-{tenant}/box"),
            template: "desktop".to_owned(),
            phase: serde_json::from_value(json!(phase)).expect("a phase"),
            idle_since: idle.map(|time| Time(time.parse().expect("a time"))),
            cores,
        }
    }

    #[test]
    fn rows_are_sorted_by_cores_then_by_idle_time() {
        let mut rows = vec![
            row("ada", "Off", None, 0),
            row("bob", "Ready", Some("2026-01-02T00:00:00Z"), 2),
            row("eve", "Ready", Some("2026-01-01T00:00:00Z"), 2),
            row("joe", "Starting", None, 8),
        ];
        let expected = "\
TENANT   INSTANCE         TEMPLATE   PHASE      IDLE    CORES
joe      tenant-joe/box   desktop    Starting   -       8
eve      tenant-eve/box   desktop    Ready      1 d     2
bob      tenant-bob/box   desktop    Ready      5 min   2
ada      tenant-ada/box   desktop    Off        -       0

4 Instances, 3 of them running, 12 cores
";
        let now = time("2026-01-02T00:05:00Z");
        sort(&mut rows, now);
        assert_eq!(table(&rows, now), expected);
        let value = value("tea", &rows[2..], &[]);
        let first = json!({"tenant": "bob", "instance": "tenant-bob/box", "template": "desktop", "phase": "Ready",
            "idleSince": "2026-01-02T00:00:00Z", "cores": 2});
        assert_eq!((&value["workspace"], &value["instances"][0]), (&json!("tea"), &first));
        assert_eq!(value["instances"][1]["idleSince"], Value::Null);
        let one = table(&rows[2..3], now);
        assert!(one.ends_with("\n1 Instance, 1 of them running, 2 cores\n"), "{one}");
    }

    #[test]
    fn templates_that_are_not_ready_are_listed_with_the_reason() {
        let now = time("2026-01-02T00:05:00Z");
        let template = |name: &str, status: &str| -> Template {
            let ready = json!({"type": "Ready", "status": status, "reason": "NoNode", "message": "no node is large enough",
                "lastTransitionTime": "2026-01-02T00:00:00Z"});
            let value = json!({"metadata": {"name": name, "namespace": "workspace-tea"}, "spec": {},
                "status": {"conditions": [ready]}});
            serde_json::from_value(value).expect("a Template")
        };
        let all = [template("gpu", "False"), template("web", "True")];
        let expected =
            "\nTemplates that are not ready:\n  gpu: no node is large enough (Ready: NoNode, for 5 min)\n";
        assert_eq!(templates(&all, now), expected);
        assert_eq!(templates(&all[1..], now), "");
        let value = value("tea", &[], &all);
        let waits = json!({"kind": "Template", "namespace": "workspace-tea", "name": "gpu", "cause": null,
            "condition": "Ready", "status": "False", "reason": "NoNode", "message": "no node is large enough",
            "since": "2026-01-02T00:00:00Z", "whoCanAct": ["teacher", "administrator"]});
        assert_eq!(value["templatesNotReady"], json!([waits]));
    }
}
