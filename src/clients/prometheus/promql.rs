//! The queries that are sent, as `PromQL` text.
//!
//! The last use of every machine in a part of a window is one instant query. For a counter `c`, it is
//!
//! ```text
//! max by (ip) (max_over_time(timestamp(
//!     changes(last_over_time(c{ip!=""}[35m])[300001ms:5m]) > 0
//!     or
//!     (last_over_time(c{ip!=""}[35m]) unless last_over_time(c{ip!=""}[35m] offset 5m)) > 0
//! )[1d:5m]))
//! ```
//!
//! From the inside: at each point, the series whose value is another than at the point before
//! (`last_over_time` is the value at a point; the subquery of `changes` has two), be it that the counter has
//! grown or that it has been reset, and the series that had no value at the point before and have one above 0:
//! a first connection makes a counter begin at 1. These were used in the step before the point. `timestamp`
//! replaces their values by the time of the point, of which the latest is wanted: of each series in the part
//! of the window (`max_over_time` of the outer subquery), then of all series of a machine (`max by`).
//!
//! Values are looked for half an hour (and a step) back. So a series that is missing for some scrapes keeps
//! its value, nothing is seen in the gap, and a change over the gap is seen at its end.
//!
//! Of a gauge, the points count in whose step it was above 0 at any time: `max_over_time(c{ip!=""}[5m]) > 0`.
//!
//! Most of the time, Prometheus decodes samples, once for each `c{…}`, and puts series into results. So the
//! expression has few of the first and drops almost all series before they get into a result.

use std::fmt::Write as _;

use super::grid::{Beginning, Grid, Part};
use crate::config::{QueryTemplate, quoted};

/// The last use of every machine in a part of the window, by a counter that has changed: a series for each, whose value is a
/// time in seconds. A series that begins at one of the points of `beginnings` is taken to have been there before.
pub(super) fn last_change(
    template: &QueryTemplate,
    grid: &Grid,
    part: Part,
    beginnings: &[Beginning],
) -> String {
    let (selector, step, lookback) = (template.selector(), grid.step, grid.lookback());
    let value = format!("last_over_time({selector}[{lookback}s])");
    // Both points belong to a range of a millisecond more, whether or not it includes its own beginning.
    let changed = format!("changes({value}[{}ms:{step}s]) > 0", step * 1_000 + 1);
    let mut begun = format!("({value} unless last_over_time({selector}[{lookback}s] offset {step}s)) > 0");
    for (first, last) in beginnings.iter().filter(|(first, last)| *first <= part.last && *last >= part.first)
    {
        // Writing to a String cannot fail.
        let _ = write!(begun, " unless on () (vector(time()) >= {first} <= {last})");
    }
    last(template, &format!("{changed} or {begun}"), grid, part)
}

/// The same by a gauge that was above 0 at any time in the step before a point.
pub(super) fn last_positive(template: &QueryTemplate, grid: &Grid, part: Part) -> String {
    last(template, &format!("max_over_time({}[{}s]) > 0", template.selector(), grid.step), grid, part)
}

/// The last point of a part at which a condition held for any series of a machine, by machine.
fn last(template: &QueryTemplate, condition: &str, grid: &Grid, part: Part) -> String {
    let labels = template.labels().join(", ");
    let range = subquery(grid, part);
    let mut query = format!("max by ({labels}) (max_over_time(timestamp({condition}){range}))");
    for extraction in template.extractions() {
        let group = extraction.group();
        let (label, pattern) = (quoted(extraction.label), quoted(extraction.pattern));
        query = format!("label_replace({query}, \"{group}\", \"${{{group}}}\", {label}, {pattern})");
    }
    query
}

/// The first point at which a source was there.
pub(super) fn first_available(available: &str, grid: &Grid) -> String {
    let is_there = format!("timestamp(({available}\n) >= 1)");
    format!("min(min_over_time({is_there}{}))", subquery(grid, grid.past()))
}

/// The last point at which a source had not been there for longer than a gap.
pub(super) fn last_missing(available: &str, grid: &Grid) -> String {
    let recently = format!("max_over_time(({available}\n)[{}s:{}s]) >= 1", grid.lookback(), grid.step);
    let is_missing = format!("timestamp(vector(1) unless on () ({recently}))");
    format!("max(max_over_time({is_missing}{}))", subquery(grid, grid.past()))
}

/// The points of a part as the range of a subquery that is evaluated at its last point. A millisecond less
/// than to the point before the first: whether a range includes its beginning depends on the version.
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
    fn a_gauge_is_a_use_at_each_point_in_whose_step_it_was_above_0() {
        let template =
            QueryTemplate::parse(&PrometheusQueries::default().open_data, Subject::Address).unwrap();
        assert_eq!(
            last_positive(&template, &GRID, PART),
            r#"max by (destination_ip) (max_over_time(timestamp(max_over_time(bastion_ssh_open_connections{destination_ip!=""}[300s]) > 0)[86399999ms:300s]))"#
        );
    }

    #[test]
    fn what_begins_with_the_data_was_there_before() {
        let template = template("c{a=%q,b=%q}");
        let beginnings = [(900, 1_199), (1_200, 1_500), (87_300, 88_000), (87_301, 88_000)];
        let query = last_change(&template, &GRID, PART, &beginnings);
        let clauses: Vec<&str> = query.split(" unless on () ").skip(1).collect();
        assert_eq!(clauses.len(), 2, "only what is in the part: {query}");
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
    fn availability_is_asked_for_until_now() {
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
