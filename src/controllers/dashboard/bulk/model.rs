//! The model of an action on a class.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::api::Template;
use crate::api::names::check_object_name;
use crate::class::model::{ActionId, People, Refusal, Row, State, Totals, Verb};
use crate::controllers::dashboard::course::{Course, Tab};
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Texts;
use crate::controllers::dashboard::ui::links::{self, queried};
use crate::controllers::dashboard::ui::state::State as Page;
use crate::runtime::error::ApiError;

/// The maximum number of changes that the API server is asked about before they are made.
pub const CHECKED: usize = 100;
/// The maximum number of rows on the page. The CSV file has all rows.
pub const MOST_ROWS: usize = 200;
/// The maximum length of a query, in bytes: proxies accept 8 KiB with the rest of the request line.
const MOST_OF_QUERY: usize = 7_000;
/// How long the script continues an action without a click. A page that is opened later must not act by itself.
const AUTOMATIC: SignedDuration = SignedDuration::from_mins(3);

/// The action that a page is about, as its path and query say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The name of the course.
    pub course: String,
    /// What to do.
    pub verb: Verb,
    /// The identifier; `None` before the action.
    pub id: Option<ActionId>,
    /// The name of the Template; empty for all, or for the only one.
    pub template: String,
    /// The students.
    pub people: People,
    /// The number of changes before the last form.
    pub to_do: Option<usize>,
}

/// The Template of the machines.
#[derive(Debug, Clone, PartialEq)]
pub enum Chosen<T> {
    /// It has to be chosen first.
    Open,
    /// The machines of all Templates.
    All,
    /// The machines of one.
    One(T),
}

/// An action, as the cluster is now.
pub struct Found {
    /// The course.
    pub course: Course,
    /// Its Templates, by name.
    pub templates: Vec<Template>,
    /// The Template of the machines.
    pub chosen: Chosen<Template>,
    /// The identifier.
    pub id: ActionId,
    /// The rows.
    pub rows: Vec<Row>,
    /// The number of changes, including those that the API server refuses.
    pub to_do: usize,
}

/// Returns the path of the class of a course.
pub fn class_path(course: &str) -> String {
    Tab::Class.path(course)
}

impl Asked {
    /// Reads the path and the fields of a query or a form.
    ///
    /// # Errors
    /// The page about the fault.
    pub fn of(course: &str, verb: &str, fields: &Fields, texts: &Texts) -> Result<Self, Page> {
        let verb = Verb::named(verb).ok_or(Page::NotFound)?;
        let id = match fields.get("id") {
            "" => None,
            text => Some(ActionId::parse(text).ok_or(Page::NotFound)?),
        };
        let names: Vec<&str> =
            fields.0.iter().filter(|(name, _)| name == "who").map(|(_, value)| value.as_str()).collect();
        // A selection of invalid names is not the whole class.
        let valid = names.iter().filter(|name| check_object_name(name).is_ok());
        let valid: BTreeSet<String> = valid.map(|name| (*name).to_owned()).collect();
        let people = match (names.is_empty(), valid.is_empty()) {
            (true, _) => People::All,
            (false, false) => People::Named(valid),
            (false, true) => return Err(Page::NotFound),
        };
        let asked = Self {
            course: course.to_owned(),
            verb,
            id,
            template: fields.get("template").to_owned(),
            people,
            to_do: fields.get("todo").parse().ok(),
        };
        if asked.path().len() > MOST_OF_QUERY {
            return Err(Page::Refused(texts.bulk.too_many.clone()));
        }
        Ok(asked)
    }

    /// Returns the fields of its forms.
    pub fn fields<'a>(&'a self, id: &'a str) -> Vec<(&'a str, &'a str)> {
        let named = match &self.people {
            People::All => None,
            People::Named(names) => Some(names.iter().map(|name| ("who", name.as_str()))),
        };
        let fields = [("id", id), ("template", self.template.as_str())];
        fields.into_iter().filter(|(_, value)| !value.is_empty()).chain(named.into_iter().flatten()).collect()
    }

    /// Returns the path of the page without its query.
    pub fn page(&self) -> String {
        self.filled(paths::CLASS_ACTION)
    }

    /// Returns the path of the page.
    pub fn path(&self) -> String {
        queried(&self.page(), &self.query())
    }

    /// Returns the path of the table for spreadsheets.
    pub fn csv(&self) -> String {
        queried(&self.filled(paths::CLASS_ACTION_CSV), &self.query())
    }

    fn filled(&self, pattern: &str) -> String {
        let value = |name: &str| if name == "course" { self.course.as_str() } else { self.verb.name() };
        paths::fill(pattern, |name| links::encoded(value(name)))
    }

    fn query(&self) -> String {
        let id = self.id.as_ref().map(ToString::to_string).unwrap_or_default();
        let to_do = self.to_do.map(|number| number.to_string()).unwrap_or_default();
        let fields = self.fields(&id).into_iter().chain([("todo", to_do.as_str())]);
        Fields(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()).encoded()
    }

    /// Returns the Template of the machines.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] if the course has no Template with this name.
    pub fn template_of<'t>(&self, templates: &'t [Template]) -> Result<Chosen<&'t Template>, ApiError> {
        let name = self.template.as_str();
        match (templates, self.verb) {
            _ if !name.is_empty() => {
                let found = templates.iter().find(|template| template.name() == name);
                let gone = || ApiError::NotFound(format!("the course has no Template {name}"));
                found.map(Chosen::One).ok_or_else(gone)
            }
            ([only], Verb::Start) => Ok(Chosen::One(only)),
            (_, Verb::Start) => Ok(Chosen::Open),
            (_, Verb::Stop | Verb::Collect | Verb::Delete) => Ok(Chosen::All),
        }
    }
}

impl Found {
    /// Returns the rows in the order of the page: first those that need attention.
    pub fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| match &row.state {
            State::Refused(_) => 0,
            State::ToDo(_) => 1,
            State::Running => 2,
            State::Done => 3,
            State::Unchanged(_) => 4,
        });
        rows
    }

    /// Returns the number of refused rows that a retry may change.
    pub fn retried(&self) -> usize {
        let can_change = |row: &&Row| match &row.state {
            State::Refused(why) => !matches!(why, Refusal::NotEnrolled | Refusal::NoDestination),
            State::Done | State::Running | State::Unchanged(_) | State::ToDo(_) => false,
        };
        self.rows.iter().filter(can_change).count()
    }

    /// Whether the script continues the action: some changes were made since the last form, and others are still to do.
    pub fn is_automatic(&self, asked: &Asked, now: Timestamp) -> bool {
        let left = Totals::of(&self.rows).to_do;
        let is_new = now.duration_since(self.id.time()) < AUTOMATIC;
        is_new && left > 0 && asked.to_do.is_some_and(|before| left < before)
    }
}
