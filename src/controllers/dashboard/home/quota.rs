//! The quota of the user, as one table.

use maud::{Markup, html};

use super::model::{Course, Home};
use crate::api::quota::{Amounts, Places};
use crate::api::shown::{escaped, shown};
use crate::controllers::dashboard::ui::view::View;

/// The table, below its summary: the number of machines. It is open while something is used up.
pub fn quota(view: &View<'_>, home: &Home) -> Markup {
    let texts = view.texts();
    let limited: Vec<&Course> = home.courses.iter().filter(|course| !course.amounts.is_empty()).collect();
    if limited.is_empty() && home.places.is_none() {
        return Markup::default();
    }
    let has_total = limited.len() != 1;
    html! {
        details #quota open[is_used_up(home)] hx-nonce=(view.nonce) {
            summary { (summary(view, home.places)) }
            table {
                thead {
                    tr {
                        @for head in [&texts.what, &texts.running, &texts.stopped, &texts.granted] { th scope="col" { (head) } }
                    }
                }
                @for course in &limited {
                    tbody {
                        @if has_total { tr { th colspan="4" scope="rowgroup" { strong { (shown(&course.title)) } } } }
                        @for amounts in &course.amounts { (row(view, amounts)) }
                    }
                }
                @if let Some(Places { running, stopped, limit }) = home.places.filter(|_| has_total) {
                    tbody {
                        tr { th scope="row" { strong { (texts.all_machines) } } td { (running) } td { (stopped) } td { (limit) } }
                    }
                }
            }
            p.hint { (texts.stopped_hint) }
        }
    }
}

/// Whether a limit is reached, so that the user may ask why a machine cannot be started.
fn is_used_up(home: &Home) -> bool {
    let is_full = home.places.is_some_and(|places| places.left() == 0);
    is_full || home.courses.iter().flat_map(|course| &course.amounts).any(Amounts::is_used_up)
}

/// Returns the number of machines in one line.
fn summary(view: &View<'_>, places: Option<Places>) -> String {
    let texts = view.texts();
    let Some(Places { running, stopped, limit }) = places else { return texts.quota.clone() };
    let [running, stopped, limit] = [running.to_string(), stopped.to_string(), limit.to_string()];
    texts.quota_line.fill(&[("running", &running), ("stopped", &stopped), ("limit", &limit)])
}

fn row(view: &View<'_>, amounts: &Amounts) -> Markup {
    let texts = view.texts();
    let Amounts { measure, running, stopped, limit } = amounts;
    html! {
        tr {
            th scope="row" { (escaped(texts.measure(measure))) }
            td { (texts.quantity(measure, running)) }
            td { @if let Some(stopped) = stopped { (texts.quantity(measure, stopped)) } @else { "–" } }
            td { (texts.quantity(measure, limit)) }
        }
    }
}
