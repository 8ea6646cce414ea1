//! The table of a class: one row for each student, with the machine that needs attention first.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use super::filter::{Filter, Sort, State};
use super::memory::{Class, Seen, Unread};
use super::objects::{Machine, Person};
use crate::api::promise::End;
use crate::api::tenancy::is_tenant_namespace;
use crate::api::text::Text;
use crate::api::why::{Because, Step};
use crate::api::{GenericRef, Template};
use crate::controllers::dashboard::student::template_title;
use crate::runtime::ObjectKey;

/// The maximum number of rows on a page.
pub const ROWS: usize = 100;

/// A machine of a student.
pub type Of<'a> = (&'a ObjectKey, &'a Machine);

/// The table.
pub struct Table<'a> {
    /// The rows of the page.
    pub rows: Vec<Row<'a>>,
    /// The number of its first row, from 0.
    pub first: usize,
    /// The number of rows on all pages.
    pub matching: usize,
    /// The number of students.
    pub people: usize,
    /// The number of students in each state, whatever state the filter selects.
    pub totals: BTreeMap<State, usize>,
    /// The number of students whose machines were not read yet.
    pub missing: usize,
    /// The Templates of the course by name, with their titles.
    pub templates: Vec<(&'a str, &'a str)>,
    by_reference: HashMap<GenericRef, &'a Template>,
}

/// A student.
pub struct Row<'a> {
    /// The name of the Tenant.
    pub name: &'a str,
    /// The student.
    pub person: &'a Person,
    /// The machines, first the one that needs attention.
    pub machines: Vec<Of<'a>>,
    /// Why the machines are not known.
    pub unread: Option<Unread>,
    /// The state.
    pub state: State,
}

impl Row<'_> {
    /// Returns the machine of the row.
    pub fn machine(&self) -> Option<&Machine> {
        self.machines.first().map(|(_, machine)| *machine)
    }

    /// Whether the texts of the row have all words of a search.
    fn has(&self, words: &[String]) -> bool {
        let Person { first, last, email, .. } = self.person;
        let of_person = [self.name, first.as_str(), last.as_str(), email.as_str()].map(str::to_lowercase);
        let of_machines = self.machines.iter().map(|(_, machine)| machine.title.to_lowercase());
        let texts: Vec<String> = of_person.into_iter().chain(of_machines).collect();
        words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }
}

impl<'a> Table<'a> {
    /// Returns the page of the table that a filter selects.
    pub fn of(seen: &'a Seen, filter: &Filter) -> Self {
        let mut table = Self::whole(seen, filter);
        let pages = table.rows.len().div_ceil(ROWS);
        table.first = filter.page.min(pages.saturating_sub(1)) * ROWS;
        table.rows = table.rows.into_iter().skip(table.first).take(ROWS).collect();
        table
    }

    /// Returns all rows that a filter selects, in their order.
    pub fn whole(seen: &'a Seen, filter: &Filter) -> Self {
        let Seen { class, course, templates, .. } = seen;
        let reference = |template: &Template| GenericRef::new(template.namespace(), template.name());
        let of_filter =
            (!filter.template.is_empty()).then(|| GenericRef::new(&course.namespace, &filter.template));
        let words: Vec<String> = filter.search.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let mut rows = rows(class, of_filter.as_ref());
        rows.retain(|row| row.has(&words));
        let mut totals = BTreeMap::new();
        for row in &rows {
            *totals.entry(row.state).or_default() += 1;
        }
        rows.retain(|row| filter.state.is_none_or(|state| state == row.state));
        sort(&mut rows, filter);
        let mut titles: Vec<(&str, &str)> =
            templates.iter().map(|template| (template.name(), template_title(template))).collect();
        titles.sort_by_cached_key(|(name, title)| (title.to_lowercase(), (*name).to_owned()));
        Self {
            first: 0,
            matching: rows.len(),
            people: class.people.len(),
            totals,
            missing: class.missing().count(),
            templates: titles,
            by_reference: templates.iter().map(|template| (reference(template), template)).collect(),
            rows,
        }
    }

    /// Returns the Template of a machine, if the user can read it.
    pub fn template(&self, machine: &Machine) -> Option<&'a Template> {
        self.by_reference.get(&machine.template).copied()
    }

    /// Returns the next step of a machine. Its Template decides whether it is stopped or deleted.
    pub fn next(&self, machine: &Machine) -> Option<Step> {
        let step = machine.next.clone()?;
        let end = self.template(machine).map(|template| End::of_unused(template.spec.is_persistent()));
        let is_unused = step.because == Because::Unused;
        Some(Step { end: step.end.or(end.filter(|_| is_unused)), ..step })
    }
}

/// Returns the rows of all students, with their machines of a Template, or with all of them.
fn rows<'a>(class: &'a Class, template: Option<&GenericRef>) -> Vec<Row<'a>> {
    let mut machines = machines(class, template);
    let row = |(name, person): (&'a Text, &'a Person)| {
        let mut machines = machines.remove(name.as_str()).unwrap_or_default();
        machines.sort_by_cached_key(|(key, machine)| {
            (State::Machine(machine.standing).rank(), Reverse(machine.created), (*key).clone())
        });
        let unread = class.unread.get(&person.namespace).copied();
        let state = match (machines.first(), unread) {
            (Some((_, machine)), _) => State::Machine(machine.standing),
            (None, Some(_)) => State::Unknown,
            (None, None) => State::Without,
        };
        Row { name: name.as_str(), person, machines, unread, state }
    };
    let mut rows: Vec<Row<'a>> = class.people.iter().map(row).collect();
    rows.sort_by_cached_key(|row| {
        let Person { last, first, .. } = row.person;
        (last.to_lowercase(), first.to_lowercase(), row.name)
    });
    rows
}

/// Returns the machines of each student. In a personal namespace, its Tenant is the owner, whatever Tenant the
/// Instance names.
fn machines<'a>(class: &'a Class, template: Option<&GenericRef>) -> HashMap<&'a str, Vec<Of<'a>>> {
    let by_namespace: HashMap<&str, &str> =
        class.people.iter().map(|(name, person)| (person.namespace.as_str(), name.as_str())).collect();
    let owner = |(key, machine): &Of<'a>| {
        let of_namespace = by_namespace.get(key.namespace.as_str()).copied();
        let named = Some(machine.tenant.as_str()).filter(|_| !is_tenant_namespace(&key.namespace));
        of_namespace.or(named)
    };
    let is_wanted = |(_, machine): &Of<'a>| template.is_none_or(|template| machine.template == *template);
    let mut by_owner: HashMap<&str, Vec<Of<'a>>> = HashMap::new();
    for of in class.machines.iter().filter(is_wanted) {
        if let Some(owner) = owner(&of) {
            by_owner.entry(owner).or_default().push(of);
        }
    }
    by_owner
}

/// Sorts rows that are in the order of the people. Rows without a value come last.
fn sort(rows: &mut [Row<'_>], filter: &Filter) {
    let Filter { sort, is_descending, .. } = *filter;
    let used = |row: &Row<'_>| row.machine().and_then(|machine| machine.last_use);
    let deadline = |row: &Row<'_>| -> Option<Timestamp> { Some(row.machine()?.next.as_ref()?.next.at().0) };
    let title = |row: &Row<'_>| row.machine().map(|machine| machine.title.to_lowercase());
    match sort {
        Sort::Person if is_descending => rows.reverse(),
        Sort::Person => {}
        Sort::Machine => rows.sort_by(|one, other| compare(title(one), title(other), is_descending)),
        Sort::State => rows
            .sort_by(|one, other| compare(Some(one.state.rank()), Some(other.state.rank()), is_descending)),
        Sort::Used => rows.sort_by(|one, other| compare(used(one), used(other), is_descending)),
        Sort::Deadline => rows.sort_by(|one, other| compare(deadline(one), deadline(other), is_descending)),
    }
}

fn compare<T: Ord>(one: Option<T>, other: Option<T>, is_descending: bool) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) if is_descending => other.cmp(&one),
        (Some(one), Some(other)) => one.cmp(&other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}
