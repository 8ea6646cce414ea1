//! The model of the home page.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::actions::CREATE;
use crate::api::quota::{Amounts, Places, Scope};
use crate::api::template::instance_name;
use crate::api::usage::{self, Share};
use crate::api::{Condition, GenericRef, Instance, Template};
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::announcements::model::Published;
use crate::controllers::dashboard::machine::card::Card;
use crate::controllers::dashboard::session::Favourites;
use crate::controllers::dashboard::sharing::model::SharedCard;
use crate::controllers::dashboard::student::{self, Blocked, Student, template_title};
use crate::controllers::dashboard::ui::view::View;

/// The home page.
#[derive(Debug, Clone, Default)]
pub struct Home {
    /// The Announcements.
    pub announcements: Vec<Published>,
    /// The machines.
    pub cards: Vec<Card>,
    /// The number of machines, with its limit; `None` if the limit is not known.
    pub places: Option<Places>,
    /// The courses with their Templates.
    pub courses: Vec<Course>,
    /// Whether the user has a personal workspace, with its own Templates.
    pub has_personal: bool,
    /// The machines of others that are shared with the user.
    pub shared: Vec<SharedCard>,
}

/// A course with its Templates.
#[derive(Debug, Clone)]
pub struct Course {
    /// Its title.
    pub title: String,
    /// The amounts of its quota.
    pub amounts: Vec<Amounts>,
    /// Its Templates.
    pub offers: Vec<Offer>,
}

/// A Template for new machines.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key of the favourite.
    pub key: String,
    /// Whether it is a favourite.
    pub is_favourite: bool,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// The resources of a machine.
    pub size: Vec<Share>,
    /// Whether machines keep their disks when they stop.
    pub is_persistent: bool,
    /// Why no machine can be created now.
    pub blocked: Option<Blocked>,
    /// The condition that says why a machine may not start immediately.
    pub warning: Option<Condition>,
    /// When the user last created a machine from it that still exists.
    pub last_used: Option<Timestamp>,
    /// The node labels to choose from; empty if the Template does not leave the choice of nodes to the user.
    pub nodes: Vec<String>,
    /// The name of the new machine. A form that is sent twice has the same name, and creates one machine.
    pub instance: String,
}

impl Home {
    /// Returns the page of a user.
    pub fn of(view: &View<'_>, student: &Student<'_>) -> Self {
        let cards = student.instances().map(|instance| Card::of(view, student, instance)).collect();
        let scopes = student.scopes();
        let courses = scopes.iter().map(|scope| Course::of(view, student, scope)).collect();
        let has_personal = scopes.contains(&Scope::Personal);
        let announcements = Published::all(student, view.now);
        let shared = SharedCard::all(student);
        Self { announcements, cards, places: student.places(), courses, has_personal, shared }
    }
}

impl Course {
    fn of(view: &View<'_>, student: &Student<'_>, scope: &Scope) -> Self {
        let is_of = |template: &&Template| student.scope(template).as_ref() == Some(scope);
        let mut offers: Vec<Offer> = student
            .templates()
            .filter(is_of)
            .map(|template| Offer::of(view, student, template, &CREATE))
            .collect();
        // Favourites come first, then the Templates of the user's machines, the last used one at the top.
        offers.sort_by_cached_key(|offer| {
            let used = Reverse((offer.is_favourite, offer.last_used));
            (used, offer.title.to_lowercase(), offer.name.clone())
        });
        let title = student.scope_title(view.texts(), scope);
        Self { title, amounts: student.amounts(scope), offers }
    }
}

impl Offer {
    /// Returns the offer of a Template, from which an action creates a machine.
    pub fn of(view: &View<'_>, student: &Student<'_>, template: &Template, action: &Action) -> Self {
        let key = Favourites::key(template.namespace(), template.name());
        Self {
            namespace: template.namespace().to_owned(),
            name: template.name().to_owned(),
            is_favourite: view.favourites.has(&key),
            key,
            title: template_title(template).to_owned(),
            description: template.spec.description.clone(),
            size: usage::size(&template.spec),
            is_persistent: template.spec.is_persistent(),
            blocked: student.can_create(template, &action.right).err(),
            warning: student::warning(template).cloned(),
            last_used: last_used(student, template),
            nodes: if leaves_nodes(template) { student.settings.node_labels.clone() } else { Vec::new() },
            instance: instance_name(template, view.fresh),
        }
    }
}

/// Returns when the user last created a machine from a Template that still exists.
fn last_used(student: &Student<'_>, template: &Template) -> Option<Timestamp> {
    let reference = GenericRef::new(template.namespace(), template.name());
    let of_it = |instance: &&Instance| instance.spec.template_ref == reference;
    student.instances().filter(of_it).filter_map(student::created).max()
}

/// Whether a Template leaves the choice of nodes to the user: the node selector of an environment is present and empty.
fn leaves_nodes(template: &Template) -> bool {
    let spec = &template.spec;
    let mut selectors =
        spec.environment_list.iter().filter_map(|environment| spec.node_selector_of(environment));
    selectors.any(BTreeMap::is_empty)
}
