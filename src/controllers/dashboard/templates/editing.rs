//! The content of the page with the form of a Template.

use futures::join;
use serde_json::Value;

use super::actions::{CHANGE, CHANGE_OWN, CREATE, CREATE_OWN};
use super::changes::Changes;
use super::choices::Choices;
use super::cost::Cost;
use super::draft::Draft;
use super::faults::Faults;
use super::place::Place;
use super::source::{self, Sources};
use super::used::{Used, students};
use crate::api::Template;
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::read::Reads;
use crate::runtime::error::ApiError;

/// The objects that the form needs.
pub struct Editing {
    /// The place of the Template.
    pub place: Place,
    /// The Template as it is stored; `Null` for a new one.
    pub stored: Value,
    /// The choices.
    pub choices: Choices,
    /// The machines of the place; `None` if they are not known.
    pub used: Option<Vec<Used>>,
    /// The number of students; `None` if it is not known.
    pub students: Option<usize>,
}

/// The page.
pub struct FormPage {
    /// The content of the form.
    pub content: Content,
    /// Its faults.
    pub faults: Faults,
    /// The preview, if the user has asked for it.
    pub preview: Option<Preview>,
    /// The sources of a new Template.
    pub sources: Sources,
    /// The version of the Template that it shows.
    pub version: Version,
    /// The source of the form, which distinguishes the drafts that the script keeps.
    pub source: String,
}

/// The version of a Template that a form shows.
pub struct Version {
    /// Its uid.
    pub uid: String,
    /// The generation of its spec.
    pub generation: String,
}

/// The content of the form.
pub enum Content {
    /// The fields.
    Fields(Box<Draft>),
    /// The text of the YAML view.
    Text(String),
}

/// The preview of a Template.
pub struct Preview {
    /// The Template.
    pub template: Box<Template>,
    /// Its cost.
    pub cost: Cost,
    /// The changes of a stored Template.
    pub changes: Option<Changes>,
    /// The machines that were made from it; `None` if they are not known.
    pub machines: Option<Vec<Used>>,
}

impl Editing {
    /// Reads the objects for a page. `labels` are the configured labels of nodes.
    ///
    /// # Errors
    /// The error of the API server; [`ApiError::NotFound`] also for a name that no Template can have.
    pub async fn read(reads: &Reads<'_>, parameters: &Fields, labels: &[String]) -> Result<Self, ApiError> {
        let place = Place::read(reads, parameters).await?;
        let stored = match parameters.get("template") {
            "" => Value::Null,
            name => {
                let key = paths::machine(place.namespace(), name);
                let key =
                    key.ok_or_else(|| ApiError::NotFound(format!("no Template can have the name {name:?}")))?;
                source::template(reads, &key).await?
            }
        };
        let (choices, used, students) =
            join!(Choices::read(reads, &place, labels), Used::read(reads, &place), students(reads, &place),);
        let (choices, used, students) = (choices?, used?, students?);
        Ok(Self { place, stored, choices, used, students })
    }

    /// Whether the Template is new.
    pub fn is_new(&self) -> bool {
        self.stored.is_null()
    }

    /// Returns the action that stores the Template.
    pub fn action(&self) -> &'static Action {
        match (self.place.course().is_some(), self.is_new()) {
            (true, true) => &CREATE,
            (true, false) => &CHANGE,
            (false, true) => &CREATE_OWN,
            (false, false) => &CHANGE_OWN,
        }
    }

    /// Returns the name of the stored Template; empty for a new one.
    pub fn name(&self) -> &str {
        self.stored["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Returns the preview of a draft; `None` if it cannot be read as a Template.
    pub fn preview(&self, draft: &Draft) -> Option<Preview> {
        let namespace = self.place.namespace();
        let template: Template = serde_json::from_value(draft.object(namespace)).ok()?;
        let own = |used: &Vec<Used>| {
            let is_of_it = |machine: &&Used| machine.is_of(namespace, self.name());
            used.iter().filter(is_of_it).cloned().collect()
        };
        Some(Preview {
            cost: Cost::of(&template.spec, self.students, self.choices.room.as_ref()),
            template: Box::new(template),
            changes: (!self.is_new()).then(|| Changes::between(&self.stored["spec"], &draft.spec)),
            machines: self.used.as_ref().filter(|_| !self.is_new()).map(own),
        })
    }
}

impl Version {
    /// Returns the version of a stored Template.
    pub fn of(stored: &Value) -> Self {
        let metadata = &stored["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        Self { uid, generation: metadata["generation"].to_string() }
    }
}

impl FormPage {
    /// Returns the page with this content, which shows this version of the Template.
    pub fn new(content: Content, version: Version) -> Self {
        let (faults, sources) = (Faults::default(), Sources::default());
        Self { content, faults, preview: None, sources, version, source: String::new() }
    }
}
