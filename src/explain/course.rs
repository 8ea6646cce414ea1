//! The Instances of a course as a table.

use std::fmt::Write;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::instance::sentence;
use crate::api::Template;
use crate::api::shown::{message, shown};
use crate::api::why::{Row, not_ready, span};

/// Returns the rows as JSON.
pub fn value(workspace: &str, rows: &[Row], templates: &[Template], now: Timestamp) -> Value {
    let row = |row: &Row| {
        let Row { tenant, instance, template, phase, idle_since, cores } = row;
        json!({"tenant": tenant, "instance": instance, "template": template, "phase": phase, "idleSince": idle_since,
            "cores": cores})
    };
    let template = |(name, waits): (&str, String)| json!({"template": name, "waitsFor": waits});
    json!({
        "workspace": workspace,
        "instances": rows.iter().map(row).collect::<Vec<_>>(),
        "templatesNotReady": waiting(templates, now).map(template).collect::<Vec<_>>(),
    })
}

/// The Templates that are not ready, with a sentence for each.
fn waiting(templates: &[Template], now: Timestamp) -> impl Iterator<Item = (&str, String)> {
    templates.iter().filter_map(move |template| Some((template.name(), sentence(not_ready(template)?, now))))
}

/// Returns the Templates that are not ready as text, below the table.
pub fn templates(templates: &[Template], now: Timestamp) -> String {
    let line = |(name, waits): (&str, String)| format!("  {}: {}\n", shown(name), message(&waits));
    let lines: String = waiting(templates, now).map(line).collect();
    if lines.is_empty() { lines } else { format!("\nTemplates that are not ready:\n{lines}") }
}

/// Returns the table, with the totals below it.
pub fn table(rows: &[Row], now: Timestamp) -> String {
    let heading = ["TENANT", "INSTANCE", "TEMPLATE", "PHASE", "IDLE", "CORES"].map(str::to_owned);
    let mut lines = vec![heading];
    lines.extend(rows.iter().map(|row| {
        let idle = row.idle_since.as_ref().map_or_else(|| "-".to_owned(), |since| span(since, now));
        let (phase, cores) = (row.phase.to_string(), row.cores.to_string());
        let cells = [row.tenant.clone(), row.instance.clone(), row.template.clone(), phase, idle, cores];
        cells.map(|cell| shown(&cell).into_owned())
    }));
    let mut widths = [0; 6];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "{}", cells.join("   ").trim_end());
    }
    let running = rows.iter().filter(|row| row.cores > 0).count();
    let cores: i64 = rows.iter().map(|row| row.cores).sum();
    let _ = writeln!(text, "\n{} Instances, {running} of them running, {cores} cores", rows.len());
    text
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
        let value = value("tea", &rows[2..], &[], now);
        let first = json!({"tenant": "bob", "instance": "tenant-bob/box", "template": "desktop", "phase": "Ready",
            "idleSince": "2026-01-02T00:00:00Z", "cores": 2});
        assert_eq!((&value["workspace"], &value["instances"][0]), (&json!("tea"), &first));
        assert_eq!(value["instances"][1]["idleSince"], Value::Null);
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
        let value = value("tea", &[], &all, now);
        let waits =
            json!({"template": "gpu", "waitsFor": "no node is large enough (Ready: NoNode, for 5 min)"});
        assert_eq!(value["templatesNotReady"], json!([waits]));
    }
}
