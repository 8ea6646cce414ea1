//! The HTML of the overview.

use std::sync::Arc;

use maud::{Markup, html};

use super::Overview;
use super::loops::{Loops, NotRead};
use super::problems::{Cause, Problems};
use crate::api::Announcement;
use crate::api::shown::{escaped, message, shown};
use crate::controllers::dashboard::admin::cluster::view::capacity;
use crate::controllers::dashboard::admin::frame::{Administrator, Tab, frame, group, unread};
use crate::controllers::dashboard::admin::read::{Count, Part};
use crate::controllers::dashboard::announcements::view::for_everyone;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{links, time};

/// Renders the page.
pub fn overview(
    view: &View<'_>,
    administrator: &Administrator<'_>,
    overview: &Overview,
    announcements: &[Arc<Announcement>],
) -> Markup {
    let texts = view.texts();
    let content = html! {
        section aria-labelledby="numbers" {
            h2 #numbers { (texts.admin.numbers) }
            (numbers(view, overview))
        }
        (loops(view, &overview.loops))
        section aria-labelledby="problems" {
            h2 #problems { (texts.admin.problems) }
            @match &overview.problems {
                Ok(found) => { (problems(view, found)) },
                Err(reason) => { (unread(view, reason)) },
            }
        }
        (for_everyone(view, administrator.rights, administrator.namespace, announcements))
    };
    frame(view, Tab::Overview, "", &content)
}

/// Returns a number as it is shown: `500+` if there are more.
pub fn number(count: Count) -> String {
    format!("{}{}", count.count, if count.is_more { "+" } else { "" })
}

fn numbers(view: &View<'_>, overview: &Overview) -> Markup {
    let texts = view.texts();
    let of = |part: &Part<Count>| match part {
        Ok(count) => html! { (number(*count)) },
        Err(reason) => html! { (message(reason)) },
    };
    html! {
        dl {
            dt { a href=(paths::ADMIN_COURSES) { (texts.courses) } } dd { (of(&overview.courses)) }
            dt { a href=(paths::ADMIN_PEOPLE) { (texts.course_pages.people) } } dd { (number(overview.people)) }
            dt { a href=(paths::ADMIN_CLUSTER) { (texts.admin.capacity) } }
            dd {
                @match &overview.capacity {
                    Ok(found) => { (capacity(view, found)) },
                    Err(reason) => { (message(reason)) },
                }
            }
        }
    }
}

/// The loops, with what each of them waits for, the faults, and the servers outside of the cluster.
fn loops(view: &View<'_>, loops: &Loops) -> Markup {
    let texts = &view.texts().admin;
    let versions = loops.versions.iter().map(|version| shown(version)).collect::<Vec<_>>().join(", ");
    html! {
        section aria-labelledby="loops" {
            h2 #loops { (texts.loops) }
            p.hint { (texts.loops_hint) }
            @if !loops.rows.is_empty() { (group(&texts.loops, &rows(view, loops))) }
            @if !loops.versions.is_empty() { p { (texts.versions) ": " (versions) } }
            @if !loops.faults.is_empty() || !loops.servers.is_empty() {
                ul.rows {
                    @for fault in &loops.faults { li { p.error { (shown(&fault.about)) ": " (message(&fault.message)) } } }
                    @for ((system, server), outage) in &loops.servers {
                        li {
                            (shown(system)) " " (shown(server)) ": "
                            @match outage {
                                None => { (texts.works) },
                                Some(outage) => { span.error { (message(&format!("{}: {}", outage.effect, outage.error))) } },
                            }
                        }
                    }
                }
            }
            @for NotRead { what, reason } in &loops.not_read { (unread(view, &format!("{what}: {reason}"))) }
        }
    }
}

fn rows(view: &View<'_>, loops: &Loops) -> Markup {
    let texts = &view.texts().admin;
    html! {
        table {
            thead {
                tr {
                    th scope="col" { (texts.loop_name) }
                    th scope="col" { (texts.state) }
                    th scope="col" { (texts.message) }
                    th scope="col" { (texts.pods) }
                }
            }
            tbody {
                @for (row, pods) in &loops.rows {
                    @let names = pods.iter().map(|pod| leading(view, loops, pod)).collect::<Vec<_>>().join(", ");
                    tr {
                        th scope="row" { (shown(&row.name)) }
                        td { span.badge.(row.state.mark()) { (texts.loop_state.of(row.state)) } }
                        td { (message(&row.message)) }
                        td { (names) }
                    }
                }
            }
        }
    }
}

/// Returns the name of a pod, and whether it leads.
fn leading(view: &View<'_>, loops: &Loops, pod: &str) -> String {
    let name = shown(pod);
    if loops.leader == pod { format!("{name} ({})", view.texts().admin.leader) } else { name.into_owned() }
}

fn problems(view: &View<'_>, problems: &Problems) -> Markup {
    let texts = &view.texts().admin;
    let (total, read) = (problems.total().to_string(), problems.read.to_string());
    html! {
        p { (escaped(&texts.problems_of.fill(&[("count", &total), ("machines", &read)]))) }
        @if !problems.is_whole { p.hint { (texts.first_machines) } }
        ul.rows { @for of in problems.causes() { li { (cause(view, &of)) } } }
    }
}

/// A cause: its number of machines, who can act, and the machines with the latest problems.
fn cause(view: &View<'_>, cause: &Cause) -> Markup {
    let texts = view.texts();
    let roles = cause.roles.iter().filter_map(|role| texts.admin.roles.get(role));
    let roles = roles.map(String::as_str).collect::<Vec<_>>().join(", ");
    html! {
        p {
            strong { (shown(&cause.reason)) } ": " (texts.amount_instances.of(&cause.count.to_string()))
            @if !roles.is_empty() { " – " (texts.admin.can_act) ": " (roles) }
        }
        ul {
            @for (key, condition) in &cause.latest {
                @let path = links::of_machine(paths::MACHINE, &key.namespace, &key.name);
                li {
                    a href=(path) { (shown(&key.namespace)) "/" (shown(&key.name)) } " "
                    span.soft { (time::ago(view, condition.last_transition_time.0)) ": " } (message(&condition.message))
                }
            }
        }
    }
}
