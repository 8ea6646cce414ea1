//! The model of the page of a link that starts a Template.

use crate::api::quota::{PERSONAL, Scope};
use crate::api::tenant::{Role, Tenant};
use crate::api::{GenericRef, Instance, Template};
use crate::controllers::dashboard::courses::model::{Course, Courses};
use crate::controllers::dashboard::home::actions::CREATE;
use crate::controllers::dashboard::home::model::Offer;
use crate::controllers::dashboard::student::{Student, created};
use crate::controllers::dashboard::ui::state::State;
use crate::controllers::dashboard::ui::view::View;

/// The page.
#[derive(Debug, Clone)]
pub enum New {
    /// The Template, with the title of its course.
    Offer(Box<Offer>, String),
    /// The course, in which the user is not enrolled.
    Join(Box<Course>),
}

impl New {
    /// Returns the page for a Template of a course.
    ///
    /// # Errors
    /// The page that replaces it, if the course or the Template does not exist or cannot be seen yet.
    pub fn of(view: &View<'_>, student: &Student<'_>, course: &str, template: &str) -> Result<Self, State> {
        if is_enrolled(student.tenant(), course) {
            let of_course = |of: &Template| student.scope(of).as_ref() == Some(&scope(course));
            // The account gets the right to see the Templates a little later than the enrolment.
            let lacks =
                if student.templates().any(of_course) { State::NoTemplate } else { State::CourseWaits };
            let template = found(student, course, template).ok_or(lacks)?;
            let title = student.scope_title(view.texts(), &scope(course));
            return Ok(Self::Offer(Box::new(Offer::of(view, student, template, &CREATE)), title));
        }
        let Courses { mine, others, .. } = Courses::of(student);
        let found = mine.into_iter().chain(others).find(|found| found.name == course);
        found.map(|course| Self::Join(Box::new(course))).ok_or(State::NoTemplate)
    }
}

/// Whether a Tenant is in a course, or the course is its personal workspace.
pub fn is_enrolled(tenant: &Tenant, course: &str) -> bool {
    let is_member = matches!(tenant.spec.role_in(course), Some(Role::User | Role::Manager));
    is_member || course == PERSONAL && tenant.spec.has_personal_workspace()
}

/// Returns the newest machine of the user from a Template of a course; `None` if there is none.
pub fn existing<'a>(student: &Student<'a>, course: &str, template: &str) -> Option<&'a Instance> {
    let template = found(student, course, template)?;
    let reference = GenericRef::new(template.namespace(), template.name());
    let is_of_it =
        |instance: &&Instance| instance.spec.template_ref == reference && !instance.is_terminating();
    student.instances().filter(is_of_it).max_by_key(|instance| created(instance))
}

/// Returns a Template of a course, if the user can read it.
fn found<'a>(student: &Student<'a>, course: &str, name: &str) -> Option<&'a Template> {
    let scope = scope(course);
    let is_it =
        |template: &&Template| template.name() == name && student.scope(template).as_ref() == Some(&scope);
    student.templates().find(is_it)
}

/// The quota of a course.
fn scope(course: &str) -> Scope {
    if course == PERSONAL { Scope::Personal } else { Scope::Workspace(course.to_owned()) }
}
