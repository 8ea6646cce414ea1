//! The `PromQL` text of the queries.
//!
//! The last use of every machine in a part of a window is one instant query. For a counter `c`, the query is
//!
//! ```text
//! max by (ip) (max_over_time(timestamp(
//!     changes(last_over_time(c{ip!=""}[35m])[300001ms:5m]) > 0
//!     or
//!     (last_over_time(c{ip!=""}[35m]) unless last_over_time(c{ip!=""}[35m] offset 5m)) > 0
//! )[1d:5m]))
//! ```
//!
//! From the inside out: at each point, the query selects the series whose value differs from the value at the point
//! before (`last_over_time` is the value at a point; the subquery of `changes` has two points). The counter has grown
//! or was reset. It also selects the series that had no value at the point before and have a value above 0, because
//! the counter of a first connection begins at 1. The selected series were used in the step before the point.
//! `timestamp` replaces their values by the time of the point. Then the latest time is taken: for each series in the
//! part of the window (`max_over_time` of the outer subquery), and for all series of a machine (`max by`).
//!
//! Values are searched for up to half an hour (and a step) before a point. So a series that is missing for some
//! scrapes keeps its value: no use is recorded in the gap, and a change over the gap is recorded at its end.
//!
//! For a gauge, a point counts if the gauge was above 0 at any time in its step: `max_over_time(c{ip!=""}[5m]) > 0`.
//!
//! Prometheus spends most of the time on decoding samples, once for each `c{…}`, and on adding series to results. So
//! the expression has few selectors and drops almost all series before they become part of a result.

use std::fmt::Write as _;

use super::grid::{Beginning, Grid, Part};
use crate::config::{QueryTemplate, quoted};

/// The last use of every machine in a part of the window, from changes of a counter. The result has one series for
/// each machine with the time in seconds as the value. A series that begins in one of the ranges `beginnings` is
/// taken to have existed before.
pub(super) fn last_change(template: &QueryTemplate, grid: &Grid, part: Part, starts: &[Beginning]) -> String {
    let (selector, step, lookback) = (&template.selector, grid.step, grid.lookback());
    let value = format!("last_over_time({selector}[{lookback}s])");
    // The range is a millisecond longer, so that it contains both points in versions that exclude the start of a
    // range, too.
    let changed = format!("changes({value}[{}ms:{step}s]) > 0", step * 1_000 + 1);
    let mut begun = format!("({value} unless last_over_time({selector}[{lookback}s] offset {step}s)) > 0");
    for (first, last) in starts.iter().filter(|(first, last)| *first <= part.last && *last >= part.first) {
        // Writing to a `String` cannot fail.
        let _ = write!(begun, " unless on () (vector(time()) >= {first} <= {last})");
    }
    last(template, &format!("{changed} or {begun}"), grid, part)
}

/// The same for a gauge that was above 0 at any time in the step before a point.
pub(super) fn last_positive(template: &QueryTemplate, grid: &Grid, part: Part) -> String {
    last(template, &format!("max_over_time({}[{}s]) > 0", template.selector, grid.step), grid, part)
}

/// The last point of a part where a condition held for any series of a machine, by machine.
fn last(template: &QueryTemplate, condition: &str, grid: &Grid, part: Part) -> String {
    let labels = template.labels.join(", ");
    let range = subquery(grid, part);
    let mut query = format!("max by ({labels}) (max_over_time(timestamp({condition}){range}))");
    for extraction in template.extractions() {
        let group = extraction.group;
        let (label, pattern) = (quoted(extraction.label), quoted(extraction.pattern));
        query = format!("label_replace({query}, \"{group}\", \"${{{group}}}\", {label}, {pattern})");
    }
    query
}

/// The first point where a source existed.
pub(super) fn first_available(available: &str, grid: &Grid) -> String {
    let is_there = format!("timestamp(({available}\n) >= 1)");
    format!("min(min_over_time({is_there}{}))", subquery(grid, grid.past()))
}

/// The last point where a source had been missing for longer than a gap.
pub(super) fn last_missing(available: &str, grid: &Grid) -> String {
    let recently = format!("max_over_time(({available}\n)[{}s:{}s]) >= 1", grid.lookback(), grid.step);
    let is_missing = format!("timestamp(vector(1) unless on () ({recently}))");
    format!("max(max_over_time({is_missing}{}))", subquery(grid, grid.past()))
}

/// The points of a part as the range of a subquery that is evaluated at its last point. The range starts a
/// millisecond after the point before the first one, because it depends on the version whether a range includes its
/// start.
fn subquery(grid: &Grid, part: Part) -> String {
    let range = (part.last - part.first + grid.step) * 1_000 - 1;
    format!("[{range}ms:{}s]", grid.step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{PrometheusQueries, Subject};

    const GRID: Grid = Grid { step: 300, first: 1_200, last: 87_300, last_past: 87_000 };
    const PART: Part = Part { first: 1_200, last: 87_300 };

    fn template(text: &str) -> QueryTemplate {
        QueryTemplate::parse(text, Subject::Service).unwrap()
    }

    #[test]
    fn the_last_use_of_every_service() {
        let query = last_change(&template(&PrometheusQueries::default().nginx_data), &GRID, PART, &[]);
        let selector = r#"nginx_ingress_controller_requests{exported_namespace!="",exported_service!=""}"#;
        let expected = format!(
            "max by (exported_namespace, exported_service) (max_over_time(timestamp(\
             changes(last_over_time({selector}[2100s])[300001ms:300s]) > 0 \
             or (last_over_time({selector}[2100s]) unless last_over_time({selector}[2100s] offset 300s)) > 0\
             )[86399999ms:300s]))"
        );
        assert_eq!(query, expected);
    }

    #[test]
    fn a_gauge_above_0_within_a_step_is_a_use_at_the_point() {
        let template =
            QueryTemplate::parse(&PrometheusQueries::default().open_data, Subject::Address).unwrap();
        assert_eq!(
            last_positive(&template, &GRID, PART),
            r#"max by (destination_ip) (max_over_time(timestamp(max_over_time(bastion_ssh_open_connections{destination_ip!=""}[300s]) > 0)[86399999ms:300s]))"#
        );
    }

    #[test]
    fn series_that_begin_with_the_data_are_not_new() {
        let template = template("c{a=%q,b=%q}");
        let beginnings = [(900, 1_199), (1_200, 1_500), (87_300, 88_000), (87_301, 88_000)];
        let query = last_change(&template, &GRID, PART, &beginnings);
        let clauses: Vec<&str> = query.split(" unless on () ").skip(1).collect();
        assert_eq!(clauses.len(), 2, "only the ranges in the part: {query}");
        assert_eq!(clauses[0], "(vector(time()) >= 1200 <= 1500)");
        assert!(clauses[1].starts_with("(vector(time()) >= 87300 <= 88000))[86399999ms:300s]"));
    }

    #[test]
    fn values_within_a_label_are_extracted() {
        let query = last_change(&template(r#"envoy{name=~"httproute/%s/%s/rule/.*"}"#), &GRID, PART, &[]);
        let begin = "label_replace(label_replace(max by (name) (max_over_time(timestamp(changes(last_over_time(\
                     envoy{name=~\"httproute/(?:[a-z0-9.:-]+)/(?:[a-z0-9.:-]+)/rule/.*\"}[2100s])";
        let end = ", \"crownlabs_0\", \"${crownlabs_0}\", \"name\", \
                   \"httproute/(?P<crownlabs_0>[a-z0-9.:-]+)/(?:[a-z0-9.:-]+)/rule/.*\"), \
                   \"crownlabs_1\", \"${crownlabs_1}\", \"name\", \
                   \"httproute/(?:[a-z0-9.:-]+)/(?P<crownlabs_1>[a-z0-9.:-]+)/rule/.*\")";
        assert!(query.starts_with(begin), "{query}");
        assert!(query.ends_with(end), "{query}");
    }

    #[test]
    fn availability_is_queried_until_now() {
        assert_eq!(
            first_available("count(up) # all", &GRID),
            "min(min_over_time(timestamp((count(up) # all\n) >= 1)[86099999ms:300s]))"
        );
        assert_eq!(
            last_missing("count(up)", &GRID),
            "max(max_over_time(timestamp(vector(1) unless on () \
             (max_over_time((count(up)\n)[2100s:300s]) >= 1))[86099999ms:300s]))"
        );
    }
}
