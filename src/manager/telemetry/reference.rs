//! The reference of metrics, and a test that the table lists the metrics that the code records.

use std::collections::BTreeSet;
use std::path::Path;

use super::former::{FORMER_NAMES, help};
use super::table::{RENDERED, metrics};
use crate::api::reason::reference::sources;
use crate::reference::{HEADER, check, code, table};
use crate::runtime::metric::{Kind, Metric};

const HEAD: [&str; 6] = ["metric", "type", "unit", "labels", "meaning", "what to look at"];

/// Returns the unit that the name of a metric implies.
fn unit(name: &str) -> &'static str {
    let is = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if is(&["_seconds", "_second", "_seconds_total"]) {
        "seconds"
    } else if is(&["_bytes"]) {
        "bytes"
    } else if is(&["_up", "_status", "_running", "_info", "_mismatch"]) {
        "0 or 1"
    } else {
        "number"
    }
}

fn row(Metric { name, help, kind, labels, look }: &Metric) -> Vec<String> {
    let type_ = match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram(_) => "histogram",
    };
    let labels: Vec<String> = labels.iter().map(|(label, values)| format!("`{label}`: {values}")).collect();
    vec![
        code(name),
        type_.to_owned(),
        unit(name).to_owned(),
        labels.join("; "),
        (*help).to_owned(),
        (*look).to_owned(),
    ]
}

/// Returns the row of a former name, which equals the row of the current name.
fn former_row(former: &&str) -> Vec<String> {
    let present = format!("{former}_total");
    let metric = all().find(|metric| metric.name == present).unwrap_or_else(|| panic!("{present}"));
    let labels = row(metric).swap_remove(3);
    let look = format!("Use {} in new dashboards.", code(&present));
    vec![code(former), "untyped".to_owned(), unit(former).to_owned(), labels, help(former), look]
}

/// All metrics, both recorded and rendered as text.
fn all() -> impl Iterator<Item = &'static Metric> {
    metrics().chain(RENDERED.iter().copied().flatten())
}

#[test]
fn the_page_is_up_to_date() {
    let mut page = format!(
        "# Metrics\n\n{HEADER}\n\n\
         `/metrics` at `server.metrics` (port 8080) has these. Those of controller-runtime and client-go have their names, \
         labels and buckets, so that dashboards and alerts for those work. Metrics of a loop are there while it is switched on; \
         a counter with labels appears when it first counts, unless its zero matters for alerts.\n\n\
         A histogram `x` consists of `x_bucket` with the label `le`, the upper bound in seconds; `x_sum`; and `x_count`.\n\n"
    );
    page.push_str(&table(&HEAD, all().map(row).chain(FORMER_NAMES.iter().map(former_row))));
    page.push_str(
        "What the chart watches by alerts is in [Operating](../operating.md#health-and-metrics).\n",
    );
    check("metrics.md", &page);
}

#[test]
fn names_of_counters_end_in_total_and_no_others_do() {
    for Metric { name, kind, .. } in all() {
        assert_eq!(name.ends_with("_total"), matches!(kind, Kind::Counter), "{name}");
    }
}

/// The source files without tests and without files that declare metrics.
fn recording() -> Vec<String> {
    let found = sources(Path::new("")).into_iter();
    let found = found.filter(|(path, text)| {
        !path.starts_with("manager/telemetry") && !text.contains("\ndeclare_metrics! {")
    });
    found.map(|(_, text)| text).collect()
}

/// The names that the code records as literals.
fn recorded(text: &str) -> impl Iterator<Item = &str> {
    ["counter!(\"", "gauge!(\"", "histogram!(\""]
        .into_iter()
        .flat_map(move |call| text.split(call).skip(1).filter_map(|rest| rest.split('"').next()))
}

#[test]
fn the_table_lists_exactly_the_recorded_metrics() {
    let sources = recording();
    let known: BTreeSet<&str> = metrics().map(|metric| metric.name).collect();
    assert_eq!(known.len(), metrics().count(), "a name twice");
    let recorded: BTreeSet<&str> = sources.iter().flat_map(|text| recorded(text)).collect();
    let undeclared: Vec<&&str> = recorded.difference(&known).collect();
    assert!(undeclared.is_empty(), "recorded, but not in the table: {undeclared:?}");
    assert!(recorded.len() > 30, "{recorded:?}");
    let is_used = |name: &str| sources.iter().any(|text| text.contains(&format!("\"{name}\"")));
    let unused: Vec<&&str> = known.iter().filter(|name| !is_used(name)).collect();
    assert!(unused.is_empty(), "in the table, but recorded nowhere: {unused:?}");
}

/// A client that knows the uid of an Instance knows the URLs of its environments. For some of them, this is the only
/// protection.
#[test]
fn no_metric_has_a_uid() {
    let labels: Vec<(&str, &str)> =
        all().flat_map(|metric| metric.labels.iter().map(|label| (metric.name, label.0))).collect();
    assert!(labels.len() > 50, "{labels:?}");
    let secret: Vec<_> =
        labels.iter().filter(|(_, label)| label.contains("uid") || label.contains("url")).collect();
    assert!(secret.is_empty(), "{secret:?}");
}

/// The calls that log at level `info` or above.
fn logged(text: &str) -> impl Iterator<Item = &str> {
    ["info!(", "warn!(", "error!("]
        .into_iter()
        .flat_map(move |call| text.split(call).skip(1).filter_map(|rest| rest.split(");").next()))
}

#[test]
fn no_log_line_has_a_uid() {
    // The uid of a pod gives no access to anything.
    let names_one = |call: &&str| {
        let mut words = call.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        words.any(|word| matches!(word, "uid" | "instance_uid" | "owner_uid" | "controller_uid"))
    };
    let sources = recording();
    let calls: Vec<&str> = sources.iter().flat_map(|text| logged(text)).collect();
    assert!(calls.len() > 80, "{}", calls.len());
    let secret: Vec<_> = calls.into_iter().filter(names_one).collect();
    assert!(secret.is_empty(), "{secret:#?}");
}
