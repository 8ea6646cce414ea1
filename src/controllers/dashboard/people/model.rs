//! The models of the pages about people.

use crate::api::names::CanonicalName;
use crate::api::tenant::Role;
use crate::api::why::Facts;
use crate::api::{GenericRef, Instance, Template, Tenant};
use crate::controllers::dashboard::machine::left::Left;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::student::title;

/// The number of people on a page.
pub const ROWS: usize = 100;
/// The maximum number of candidates that are approved or rejected at once.
const MOST_AT_ONCE: usize = 1_000;
/// The maximum number of machines on the page of a person.
const MOST_MACHINES: usize = 50;

/// A person of a course.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The user name.
    pub user: String,
    /// The uid of the Tenant.
    pub uid: String,
    /// The first and the last name.
    pub name: String,
    /// The e-mail address.
    pub email: String,
    /// The role; `None` if the person is not in the course.
    pub role: Option<Role>,
    /// Whether it is the user.
    pub is_own: bool,
}

impl Row {
    /// Returns the row of a Tenant. `own` is the name of the user.
    pub fn of(tenant: &Tenant, course: &str, own: &str) -> Self {
        let spec = &tenant.spec;
        let name = format!("{} {}", spec.first_name.trim(), spec.last_name.trim());
        let name = if name.trim().is_empty() { tenant.name() } else { name.trim() };
        Self {
            user: tenant.name().to_owned(),
            uid: tenant.uid().to_owned(),
            name: name.to_owned(),
            email: spec.email.clone(),
            role: spec.role_in(course).cloned(),
            is_own: tenant.name() == own,
        }
    }

    /// Whether the texts of the person have all words of a search.
    fn is_found(&self, search: &str) -> bool {
        let texts = [&self.user, &self.name, &self.email].map(|text| text.to_lowercase());
        let is_in = |word: &str| texts.iter().any(|text| text.contains(word));
        search.to_lowercase().split_whitespace().all(is_in)
    }
}

/// The people of a course.
#[derive(Debug, Clone, PartialEq)]
pub struct People {
    /// The number of candidates.
    pub asking: usize,
    /// The candidates of the page.
    pub candidates: Vec<Row>,
    /// The user names of the candidates that are approved or rejected at once.
    pub at_once: Vec<String>,
    /// The number of students and managers that the search finds.
    pub found: usize,
    /// The students and managers of the page.
    pub enrolled: Vec<Row>,
    /// The number of the page, from 1.
    pub page: usize,
    /// The number of pages.
    pub pages: usize,
    /// Whether the user may change the people.
    pub can_change: bool,
}

impl People {
    /// Returns a page of the people of a course: managers first, then students by their last names.
    pub fn of(
        tenants: &[Tenant],
        course: &str,
        own: &str,
        search: &str,
        page: usize,
        can_change: bool,
    ) -> Self {
        let mut tenants: Vec<&Tenant> =
            tenants.iter().filter(|tenant| tenant.spec.role_in(course).is_some()).collect();
        tenants.sort_by_cached_key(|tenant| {
            let spec = &tenant.spec;
            let names = [&spec.last_name, &spec.first_name].map(|name| name.trim().to_lowercase());
            (spec.role_in(course) != Some(&Role::Manager), names, tenant.name().to_owned())
        });
        let rows = tenants.into_iter().map(|tenant| Row::of(tenant, course, own));
        let (candidates, enrolled): (Vec<Row>, Vec<Row>) =
            rows.filter(|row| row.is_found(search)).partition(|row| row.role == Some(Role::Candidate));
        let (asking, found) = (candidates.len(), enrolled.len());
        let pages = found.div_ceil(ROWS).max(1);
        let page = page.clamp(1, pages);
        Self {
            asking,
            at_once: candidates.iter().take(MOST_AT_ONCE).map(|row| row.user.clone()).collect(),
            candidates: candidates.into_iter().take(ROWS).collect(),
            found,
            enrolled: enrolled.into_iter().skip((page - 1) * ROWS).take(ROWS).collect(),
            page,
            pages,
            can_change,
        }
    }
}

/// A person, with their machines of the course.
#[derive(Debug, Clone)]
pub struct OfPerson {
    /// The person.
    pub row: Row,
    /// The machines; `None` if the user may not list them.
    pub machines: Option<Vec<Machine>>,
    /// The number of machines that are left out.
    pub more: usize,
    /// Whether the user may change the role.
    pub can_change: bool,
}

/// A machine of a person.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its state.
    pub standing: Standing,
    /// The time until it is stopped or deleted.
    pub left: Option<Left>,
}

impl OfPerson {
    /// Returns the page of a person. `instances` are those of the personal namespace, and `templates` those of the
    /// course, which are in the namespace `namespace`.
    pub fn of(
        row: Row,
        instances: Option<&[Instance]>,
        templates: &[Template],
        namespace: &str,
        can_change: bool,
    ) -> Self {
        let of_course = |instance: &&Instance| instance.spec.template_ref.namespace == namespace;
        let machine = |instance: &Instance| {
            let of = |template: &&Template| {
                GenericRef::new(template.namespace(), template.name()) == instance.spec.template_ref
            };
            let is_own = CanonicalName::of(&row.user).tenant_namespace() == instance.namespace();
            let facts = Facts {
                instance,
                owner: is_own.then_some(row.user.as_str()),
                template: templates.iter().find(of),
                managers: None,
                warnings: Ok(Vec::new()),
            };
            Machine {
                namespace: instance.namespace().to_owned(),
                name: instance.name().to_owned(),
                title: title(instance).to_owned(),
                standing: Standing::of(instance),
                left: Left::of(instance, &facts.why()),
            }
        };
        let machines: Option<Vec<&Instance>> =
            instances.map(|instances| instances.iter().filter(of_course).collect());
        let more = machines.as_ref().map_or(0, |machines| machines.len().saturating_sub(MOST_MACHINES));
        let machines =
            machines.map(|machines| machines.into_iter().take(MOST_MACHINES).map(machine).collect());
        Self { row, machines, more, can_change }
    }
}
