//! The places of Templates: the courses, and the personal workspace of each user.

use axum::extract::RawPathParams;

use crate::api::quota::PERSONAL;
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::course::Course;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::live::broadcast::Topic;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::Rights as _;
use crate::controllers::dashboard::student::read::{NamespaceRules, Own, Reads};
use crate::controllers::dashboard::ui::links;
use crate::runtime::error::ApiError;

/// The patterns of a page: in a course, and in the personal workspace.
pub type Pages = (&'static str, &'static str);

/// The lists of Templates.
pub const LIST: Pages = (paths::TEMPLATES, paths::OWN_TEMPLATES);
/// The forms of new Templates.
pub const NEW: Pages = (paths::NEW_TEMPLATE, paths::NEW_OWN_TEMPLATE);
/// The pages of a Template.
pub const ONE: Pages = (paths::TEMPLATE, paths::OWN_TEMPLATE);
/// The forms of a Template.
pub const EDIT: Pages = (paths::EDIT_TEMPLATE, paths::EDIT_OWN_TEMPLATE);

/// Returns the parameters of a path.
pub fn parameters(raw: &RawPathParams) -> Fields {
    Fields(raw.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The place of Templates, as the user may read it.
pub enum Place {
    /// A course.
    Course(Box<Course>),
    /// The personal workspace of the user.
    Personal(Box<Own>),
}

impl Place {
    /// Reads the place of a page, which its path names.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn read(reads: &Reads<'_>, parameters: &Fields) -> Result<Self, ApiError> {
        match parameters.get("course") {
            "" => Ok(Self::Personal(Box::new(reads.own().await?))),
            course => Ok(Self::Course(Box::new(reads.course(course).await?))),
        }
    }

    /// Returns the objects of the user.
    pub fn own(&self) -> &Own {
        match self {
            Self::Course(course) => &course.own,
            Self::Personal(own) => own,
        }
    }

    fn own_mut(&mut self) -> &mut Own {
        match self {
            Self::Course(course) => &mut course.own,
            Self::Personal(own) => own,
        }
    }

    /// Adds the topics of a page that shows the Templates and the number of their machines.
    pub fn follow(&mut self) {
        let topics = self.course().map(|course| Topic::Class(course.name().to_owned()));
        let topics = topics.into_iter().chain([Topic::Templates(self.namespace().to_owned())]);
        let topics: Vec<Topic> = topics.collect();
        self.own_mut().topics.extend(topics);
    }

    /// Returns the course; `None` for the personal workspace.
    pub fn course(&self) -> Option<&Course> {
        match self {
            Self::Course(course) => Some(course),
            Self::Personal(_) => None,
        }
    }

    fn rules(&self) -> &NamespaceRules {
        match self {
            Self::Course(course) => &course.rules,
            Self::Personal(own) => &own.rules,
        }
    }

    /// Returns the namespace of the Templates.
    pub fn namespace(&self) -> &str {
        &self.rules().namespace
    }

    /// Returns the name that Templates have for the place.
    pub fn workspace(&self) -> &str {
        self.course().map_or(PERSONAL, Course::name)
    }

    /// Whether the user has a right in the namespace, or in the whole cluster.
    pub fn may(&self, right: &Right) -> bool {
        self.rules().may(self.namespace(), right)
    }

    /// Returns the path of a page of the place; `template` is the name of a Template.
    pub fn path(&self, (course, personal): Pages, template: &str) -> String {
        let pattern = if self.course().is_some() { course } else { personal };
        let name = |parameter: &str| if parameter == "course" { self.workspace() } else { template };
        paths::fill(pattern, |parameter| links::encoded(name(parameter)))
    }
}
