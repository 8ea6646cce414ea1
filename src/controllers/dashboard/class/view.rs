//! The HTML of the page of a class.

use maud::{Markup, html};

use super::export::unread;
use super::filter::{Filter, MOST_OF_SEARCH, Sort, State};
use super::memory::Seen;
use super::model::{ROWS, Row, Table};
use super::objects::{Machine, Person};
use crate::api::instance::InstanceKind;
use crate::api::shown::{escaped, shown};
use crate::api::usage;
use crate::api::why::{Next, Step};
use crate::class::model::Verb;
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::course::Tab;
use crate::controllers::dashboard::course::view::frame;
use crate::controllers::dashboard::history::model::History;
use crate::controllers::dashboard::history::view::history;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::template_title;
use crate::controllers::dashboard::texts::Ending;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{links, parts, time};

/// The maximum number of further machines of a student that a row lists.
const MOST_FURTHER: usize = 20;

/// Renders the page.
pub fn class(view: &View<'_>, seen: &Seen, table: &Table<'_>, filter: &Filter, past: &History) -> Markup {
    let texts = view.texts();
    // Only the states that need attention are announced: the others change all the time while a class starts.
    let announced = html! {
        @for (state, count) in table.totals.iter().filter(|(state, _)| state.rank() == 0) {
            span id=(parts::id("said", &state.name())) aria-atomic="true" { (word(view, *state)) ": " (count) ". " }
        }
    };
    let content = html! {
        h2 { (texts.course_pages.class) }
        (totals(view, table, filter))
        @if table.missing > 0 { p.notice { (texts.class.counting.of(&table.missing.to_string())) } }
        (search(view, table, filter))
        @if table.people == 0 {
            p.empty { (texts.class.empty) }
        } @else if table.rows.is_empty() {
            p.empty { (texts.class.nothing) }
        } @else {
            (selection(view, seen, table, filter))
            (pager(view, table, filter))
            p { a href=(export(seen, filter)) { (texts.class.export) } }
        }
        (history(view, past))
    };
    frame(view, &seen.course, Tab::Class, &announced, &content)
}

/// Returns the word for a state.
fn word(view: &View<'_>, state: State) -> &'static str {
    let texts = view.texts();
    match state {
        State::Machine(standing) => texts.standing.of(standing),
        State::Without => &texts.class.without,
        State::Unknown => &texts.class.not_yet,
    }
}

/// A state with its mark.
fn badge(view: &View<'_>, state: State) -> Markup {
    match state {
        State::Machine(standing) => parts::badge(view, standing),
        State::Without | State::Unknown => html! { span.badge.quiet { (word(view, state)) } },
    }
}

/// The number of students in each state, which selects them.
fn totals(view: &View<'_>, table: &Table<'_>, filter: &Filter) -> Markup {
    let path = |state| Filter { state, page: 0, ..filter.clone() }.path(view.path);
    let current = |state| (filter.state == state).then_some("true");
    html! {
        ul.totals {
            li { a href=(path(None)) aria-current=[current(None)] { (view.texts().class.people.of(&table.people.to_string())) } }
            @for (state, count) in &table.totals {
                li {
                    @if *state == State::Unknown {
                        (badge(view, *state)) " " (count)
                    } @else {
                        a href=(path(Some(*state))) aria-current=[current(Some(*state))] { (badge(view, *state)) " " (count) }
                    }
                }
            }
        }
    }
}

/// The search and the filters, a form that requests the page again.
fn search(view: &View<'_>, table: &Table<'_>, filter: &Filter) -> Markup {
    let (texts, nonce, order) = (view.texts(), view.nonce, filter.order());
    let is_all = filter.search.is_empty() && filter.state.is_none() && filter.template.is_empty();
    let states = State::all().map(|state| (state.name(), word(view, state).to_owned()));
    let templates =
        table.templates.iter().map(|(name, title)| ((*name).to_owned(), shown(title).into_owned()));
    let selects = [
        ("state", &texts.class.state, filter.state.map(State::name).unwrap_or_default(), states.collect()),
        ("template", &texts.template, filter.template.clone(), templates.collect::<Vec<_>>()),
    ];
    html! {
        form.search role="search" method="get" action=(view.path) {
            div.field {
                label for="search" { (texts.class.search) }
                input type="search" id="search" name="q" value=(filter.search) maxlength=(MOST_OF_SEARCH) hx-morph-skip hx-nonce=(nonce);
            }
            @for (name, label, chosen, options) in &selects {
                div.field {
                    label for=(name) { (label) }
                    select id=(name) name=(name) hx-morph-skip hx-nonce=(nonce) {
                        option value="" { (texts.class.any) }
                        @for (value, title) in options { option value=(value) selected[value == chosen] { (title) } }
                    }
                }
            }
            @if !order.is_empty() { input type="hidden" name="sort" value=(order); }
            button type="submit" { (texts.search) }
            @if !is_all { a href=(Filter { sort: filter.sort, is_descending: filter.is_descending, ..Filter::default() }.path(view.path)) { (texts.show_all) } }
        }
    }
}

/// The table with the actions on its selected rows. Each leads to a question.
fn selection(view: &View<'_>, seen: &Seen, table: &Table<'_>, filter: &Filter) -> Markup {
    let texts = &view.texts().class;
    let verbs: Vec<Verb> = Verb::ALL.iter().copied().filter(|verb| may(view, seen, *verb)).collect();
    html! {
        form.selection method="get" action=(view.path) {
            @if !verbs.is_empty() {
                @if !filter.template.is_empty() { input type="hidden" name="template" value=(filter.template); }
                div.actions {
                    @for verb in &verbs {
                        button.danger[*verb == Verb::Delete] type="submit" formaction=(action(seen, *verb)) { (label(view, *verb)) }
                    }
                }
                p.hint { (texts.hint) }
                button.plain.scripted type="button" data-selects="who" { (texts.select_all) }
            }
            div.scroll role="region" aria-label=(texts.caption) tabindex="0" {
                table.class {
                    caption.unseen { (texts.caption) }
                    thead { (heads(view, filter, !verbs.is_empty())) }
                    tbody { @for row in &table.rows { (student(view, seen, table, row, !verbs.is_empty())) } }
                }
            }
        }
    }
}

/// Whether an action is offered. The rights in the namespace of the course tell nothing about a user who has rights in
/// single namespaces.
fn may(view: &View<'_>, seen: &Seen, verb: Verb) -> bool {
    let right = match verb {
        Verb::Start => Right::to::<InstanceKind>("create"),
        Verb::Stop | Verb::Collect => Right::to::<InstanceKind>("patch"),
        Verb::Delete => Right::to::<InstanceKind>("delete"),
    };
    let Right { verb, group, resource } = right;
    view.old.is_none() && (!seen.class.is_wide || seen.course.rules.rules.allow(verb, group, resource, ""))
}

/// Returns the path of the question before an action.
fn action(seen: &Seen, verb: Verb) -> String {
    let value = |name: &str| if name == "course" { seen.course.name() } else { verb.name() };
    paths::fill(paths::CLASS_ACTION, |name| links::encoded(value(name)))
}

fn label(view: &View<'_>, verb: Verb) -> &'static str {
    let texts = &view.texts().class;
    match verb {
        Verb::Start => &texts.start,
        Verb::Stop => &texts.stop,
        Verb::Collect => &texts.collect,
        Verb::Delete => &texts.delete,
    }
}

/// The heads of the columns, which sort the table.
fn heads(view: &View<'_>, filter: &Filter, has_boxes: bool) -> Markup {
    let texts = view.texts();
    let columns = [
        (Sort::Person, &texts.class.person),
        (Sort::Machine, &texts.class.machine),
        (Sort::State, &texts.class.state),
        (Sort::Used, &texts.last_use),
        (Sort::Deadline, &texts.class.deadline),
    ];
    let direction = if filter.is_descending { "descending" } else { "ascending" };
    html! {
        tr {
            @if has_boxes { th scope="col" { (parts::unseen(&texts.class.select)) } }
            @for (sort, label) in columns {
                th scope="col" aria-sort=[(filter.sort == sort).then_some(direction)] {
                    a href=(filter.sorted(sort).path(view.path)) { (label) }
                }
            }
            th scope="col" { (texts.class.size) }
        }
    }
}

/// The row of a student. A live update finds it by its id, and leaves its box as it is.
fn student(view: &View<'_>, seen: &Seen, table: &Table<'_>, row: &Row<'_>, has_box: bool) -> Markup {
    let part = |name: &str| if name == "course" { seen.course.name() } else { row.name };
    let person = paths::fill(paths::PERSON, |name| links::encoded(part(name)));
    let id = parts::id("who", row.name);
    html! {
        tr id=(parts::id("row", row.name)) {
            @if has_box {
                td { input type="checkbox" id=(id) name="who" value=(row.name) hx-morph-skip hx-nonce=(view.nonce); }
            }
            th scope="row" {
                @if has_box { label for=(id) { (name(row)) } } @else { (name(row)) }
                div.soft { a href=(person) { (shown(row.name)) } }
            }
            @match row.machine() {
                Some(machine) => { (cells(view, table, row, machine)) },
                None => {
                    td {}
                    td { (badge(view, row.state)) @if let Some(why) = row.unread { p.said { (unread(view.texts(), why)) } } }
                    td {} td {} td {}
                },
            }
        }
    }
}

/// Returns the name of a student: the last and the first name, or else the user name.
fn name(row: &Row<'_>) -> String {
    let Person { first, last, .. } = row.person;
    let name = format!("{} {}", shown(last), shown(first));
    if name.trim().is_empty() { shown(row.name).into_owned() } else { name }
}

/// The cells of a machine.
fn cells(view: &View<'_>, table: &Table<'_>, row: &Row<'_>, machine: &Machine) -> Markup {
    let texts = view.texts();
    let template = table.template(machine);
    let sizes = template.map(|template| usage::size(&template.spec)).unwrap_or_default();
    let sizes: Vec<String> = sizes.iter().map(|share| texts.named(&share.measure, &share.used)).collect();
    html! {
        td {
            @if let Some(of) = row.machines.first() { (link(of.0.namespace.as_str(), of.0.name.as_str(), of.1)) }
            @if let Some(template) = template { div.soft { (shown(template_title(template))) } }
            (further(view, row))
        }
        td {
            (badge(view, row.state))
            @if let Some(cause) = &machine.cause { p.said { (parts::sentence(view, cause)) } }
        }
        td { @if let Some(at) = machine.last_use { (time::ago(view, at)) } }
        td { @if let Some(step) = table.next(machine) { (deadline(view, &step)) } }
        td { (escaped(&sizes.join(", "))) }
    }
}

/// The link to a machine.
fn link(namespace: &str, name: &str, machine: &Machine) -> Markup {
    html! { a href=(links::of_machine(paths::MACHINE, namespace, name)) { (shown(&machine.title)) } }
}

/// The further machines of a student.
fn further(view: &View<'_>, row: &Row<'_>) -> Markup {
    let count = row.machines.len().saturating_sub(1);
    let machines = row.machines.iter().skip(1).take(MOST_FURTHER);
    html! {
        @if count > 0 {
            details id=(parts::id("more", row.name)) hx-nonce=(view.nonce) {
                summary { (view.texts().class.more.of(&count.to_string())) }
                ul {
                    @for (key, machine) in machines {
                        li { (link(&key.namespace, &key.name, machine)) " " (badge(view, State::Machine(machine.standing))) }
                    }
                }
            }
        }
    }
}

/// The next step of a machine.
fn deadline(view: &View<'_>, step: &Step) -> Markup {
    let texts = view.texts();
    let table = if matches!(step.next, Next::End(_)) { &texts.until } else { &texts.warning_due };
    let (before, after) = table.of(Ending::of(step.end, step.because)).around();
    html! { (before) (time::ago(view, step.next.at().0)) (after) }
}

/// The links to the other pages of the table.
fn pager(view: &View<'_>, table: &Table<'_>, filter: &Filter) -> Markup {
    let texts = &view.texts().class;
    if table.matching <= ROWS {
        return Markup::default();
    }
    let (page, last) = (table.first / ROWS, table.first + table.rows.len());
    let path = |page| Filter { page, ..filter.clone() }.path(view.path);
    let [from, to, total] = [table.first + 1, last, table.matching].map(|number| number.to_string());
    html! {
        nav aria-label=(texts.pages) {
            ul {
                @if page > 0 { li { a href=(path(page - 1)) { (texts.previous) } } }
                li { (texts.range.fill(&[("first", &from), ("last", &to), ("total", &total)])) }
                @if last < table.matching { li { a href=(path(page + 1)) { (texts.next) } } }
            }
        }
    }
}

/// Returns the path of the exported table, with all rows that the filter selects.
fn export(seen: &Seen, filter: &Filter) -> String {
    let path = paths::fill(paths::CLASS_CSV, |_| links::encoded(seen.course.name()));
    Filter { page: 0, ..filter.clone() }.path(&path)
}
