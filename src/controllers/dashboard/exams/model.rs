//! The model of the page: one row for each machine of an exam.

use std::collections::{BTreeMap, HashMap};

use super::actions::RETRY;
use super::facts::{Check, Exam, Upload};
use crate::api::text::Text;
use crate::controllers::dashboard::class::memory::{Class, Seen};
use crate::controllers::dashboard::class::objects::{Machine, Person};
use crate::controllers::dashboard::student::Rights;
use crate::runtime::ObjectKey;

/// The maximum number of rows on a page.
pub const ROWS: usize = 100;

/// The page.
pub struct Exams<'a> {
    /// The rows of the page: first those that need attention.
    pub rows: Vec<Row<'a>>,
    /// The number of its first row, from 0.
    pub first: usize,
    /// The number of rows on all pages.
    pub all: usize,
    /// The number of machines by the state of the upload.
    pub totals: BTreeMap<Upload, usize>,
    /// The number of students whose machines were not read yet.
    pub missing: usize,
    /// Whether the user may request uploads.
    pub can_retry: bool,
}

/// A machine of an exam.
pub struct Row<'a> {
    /// Its key.
    pub key: &'a ObjectKey,
    /// The machine.
    pub machine: &'a Machine,
    /// Its exam.
    pub exam: &'a Exam,
    /// The student whose namespace it is in, with the name of the Tenant; `None` for the Tenant of an exam server.
    pub student: Option<(&'a Text, &'a Person)>,
}

impl<'a> Exams<'a> {
    /// Returns a page of the table, from 0, for a user with these rights in the namespace of the course.
    pub fn of(seen: &'a Seen, page: usize, rights: &dyn Rights) -> Self {
        let mut exams = Self::whole(seen);
        // They tell nothing about a user who has rights in single namespaces: the API server decides.
        exams.can_retry = !seen.class.is_wide || rights.may(&seen.course.namespace, &RETRY.right);
        let pages = exams.all.div_ceil(ROWS);
        exams.first = page.min(pages.saturating_sub(1)) * ROWS;
        exams.rows = exams.rows.into_iter().skip(exams.first).take(ROWS).collect();
        exams
    }

    /// Returns all rows.
    pub fn whole(seen: &'a Seen) -> Self {
        let Class { people, machines, .. } = &seen.class;
        let students: HashMap<&str, (&Text, &Person)> =
            people.iter().map(|(name, person)| (person.namespace.as_str(), (name, person))).collect();
        let row = |(key, machine): (&'a ObjectKey, &'a Machine)| {
            let exam = machine.exam.as_deref()?;
            Some(Row { key, machine, exam, student: students.get(&*key.namespace).copied() })
        };
        let mut rows: Vec<Row<'a>> = machines.iter().filter_map(row).collect();
        rows.sort_by_cached_key(|row| (!row.needs_attention(), row.name().to_lowercase(), row.key.clone()));
        let mut totals = BTreeMap::new();
        for row in &rows {
            *totals.entry(row.exam.upload).or_default() += 1;
        }
        Self {
            first: 0,
            all: rows.len(),
            totals,
            missing: seen.class.missing().count(),
            can_retry: false,
            rows,
        }
    }
}

impl Row<'_> {
    /// Returns the name of the student: the last and the first name, or else the name of the Tenant.
    pub fn name(&self) -> String {
        let named = self.student.map(|(_, person)| format!("{} {}", person.last, person.first));
        let named = named.filter(|name| !name.trim().is_empty());
        named.unwrap_or_else(|| self.user().to_owned())
    }

    /// Returns the name of the Tenant.
    pub fn user(&self) -> &str {
        self.student.map_or(self.machine.tenant.as_str(), |(name, _)| name.as_str())
    }

    fn needs_attention(&self) -> bool {
        self.exam.check == Check::Failed || matches!(self.exam.upload, Upload::Blocked | Upload::Failed)
    }
}
