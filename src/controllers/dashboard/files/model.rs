//! The model of the page.

use super::actions::OPEN;
use crate::api::Instance;
use crate::controllers::dashboard::home::model::Offer;
use crate::controllers::dashboard::machine::card::Card;
use crate::controllers::dashboard::student::Student;
use crate::controllers::dashboard::ui::view::View;

/// The page.
#[derive(Debug, Clone)]
pub struct Files {
    /// The size of `MyDrive`; empty if it is not known.
    pub size: String,
    /// The machine that opens it, if it exists.
    pub machine: Option<Card>,
    /// The Template of that machine; `None` if the user cannot read it.
    pub offer: Option<Offer>,
    /// Whether the last form has created or started the machine.
    pub is_asked: bool,
}

impl Files {
    /// Returns the page of a user.
    pub fn of(view: &View<'_>, student: &Student<'_>) -> Self {
        let settings = student.settings;
        let reference = settings.drive_template.as_ref();
        let is_of_it = |instance: &&Instance| {
            reference == Some(&instance.spec.template_ref) && !instance.is_terminating()
        };
        let template = reference.and_then(|reference| student.template(reference));
        Self {
            size: settings.drive_size.clone(),
            machine: student.instances().find(is_of_it).map(|instance| Card::of(view, student, instance)),
            offer: template.map(|template| Offer::of(view, student, template, &OPEN)),
            is_asked: false,
        }
    }
}
