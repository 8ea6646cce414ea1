//! An action: its path, the right that it needs, the place of its form, its fields, and what it changes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::names::{check_dns_label, check_object_name};
use crate::api::{GenericRef, Instance, Kind, Tenant, Workspace};
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::ObjectKey;
use crate::runtime::plan::KindInfo;

/// A change that users request with a form.
#[derive(Debug)]
pub struct Action {
    /// The name, which is also the key of its texts.
    pub name: &'static str,
    /// The path that receives the form, as a pattern of the router.
    pub path: &'static str,
    /// The page with the form, as a pattern with the same parameters. It follows [`Plan::Create`] and [`Plan::Delete`]
    /// also if another page has sent the form, so it is the page that lists the objects.
    pub page: &'static str,
    /// The right that it needs. Pages offer it only to users with this right; the API server enforces it.
    pub right: Right,
    /// The place of its form, which decides how its button looks and which texts it has.
    pub place: Place,
    /// The fields that the user fills in.
    pub fields: &'static [Field],
    /// The change.
    pub plan: Plan,
}

/// A right in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// The verb.
    pub verb: &'static str,
    /// The API group.
    pub group: &'static str,
    /// The resource, in the plural.
    pub resource: &'static str,
}

impl Right {
    /// The right to do this with any object of a kind.
    pub const fn to<T: Kind>(verb: &'static str) -> Self {
        Self { verb, group: T::GROUP, resource: T::PLURAL }
    }
}

/// The place of a form on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The main button of a card, which can have a warning.
    Main,
    /// A button of a card.
    Card,
    /// A button of a card that asks a question first.
    Question,
    /// A section of the page.
    Section,
    /// A section of the page, below a question that opens the form.
    Folded,
}

/// A field that the user fills in.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// The id of its element, which live updates use to find it.
    pub id: &'static str,
    /// The expected input.
    pub input: Input,
}

/// The input of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A line of text.
    Line {
        /// The maximum number of characters.
        max: usize,
        /// The regular expression that the text has to match; empty for any text.
        pattern: &'static str,
    },
    /// A line of text that may be empty.
    OptionalLine {
        /// The maximum number of characters.
        max: usize,
    },
    /// A whole number.
    Number {
        /// The minimum.
        min: u32,
        /// The maximum.
        max: u32,
    },
    /// Several lines of text.
    Lines,
    /// One of these values.
    OneOf(&'static [&'static str]),
}

/// The change of an action, as a function of the form and of the current object. It returns `None` if nothing has to
/// change, for example because the form was sent twice.
#[derive(Debug, Clone, Copy)]
pub enum Plan {
    /// Creates an Instance in the namespace of the user.
    CreateInstance(fn(&Form<'_>) -> Result<NewInstance, Problem>),
    /// Changes the Instance of the path with a merge patch.
    PatchInstance(fn(&Instance, &Form<'_>) -> Patch<Value>),
    /// Deletes the Instance of the path.
    DeleteInstance,
    /// Changes the Tenant of the user with the operations of a JSON patch.
    PatchTenant(fn(&Tenant, &Form<'_>) -> Patch<Vec<Value>>),
    /// Enrols the user in the Workspace of the path. Returns the name of the completed action, because the Workspace
    /// decides whether a manager has to approve.
    Enrol(fn(&Tenant, &Workspace) -> Result<Enrolment, Problem>),
    /// Creates an object of any kind.
    Create(fn(&Form<'_>) -> Result<NewObject, Problem>),
    /// Changes an object of any kind with a merge patch, or with the operations of a JSON patch if the patch is a list.
    Patch(Target, fn(&Value, &Form<'_>) -> Patch<Value>),
    /// Deletes an object of any kind.
    Delete(Target),
    /// Creates an object of any kind, or changes it if it exists.
    CreateOrPatch {
        /// Its kind.
        kind: KindInfo,
        /// Its name.
        key: fn(&Form<'_>) -> Result<ObjectKey, Problem>,
        /// The members of a new object except `apiVersion`, `kind` and its name.
        create: fn(&Form<'_>) -> Result<Value, Problem>,
        /// The change of an existing one, as in [`Plan::Patch`].
        patch: fn(&Value, &Form<'_>) -> Patch<Value>,
    },
}

/// The object that a form changes. The hidden field `uid` of the form has its uid.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its kind.
    pub kind: KindInfo,
    /// Its name, as a function of the form; `None` if it is invalid.
    pub key: fn(&Form<'_>) -> Option<ObjectKey>,
}

/// An object to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewObject {
    /// Its kind.
    pub kind: KindInfo,
    /// Its name.
    pub key: ObjectKey,
    /// Its members except `apiVersion`, `kind` and its name.
    pub body: Value,
}

/// A patch; `None` if nothing has to change.
pub type Patch<T> = Result<Option<T>, Problem>;

/// An Instance to create.
#[derive(Debug, PartialEq, Eq)]
pub struct NewInstance {
    /// Its name.
    pub name: String,
    /// Its Template.
    pub template: ObjectKey,
    /// Its display name; empty to let the daemon choose one.
    pub pretty_name: String,
    /// The labels of the nodes that it may run on; empty for any node that the Template allows.
    pub node_selector: BTreeMap<String, String>,
}

impl NewInstance {
    /// Creates an Instance without a display name, for any node.
    pub const fn new(name: String, template: ObjectKey) -> Self {
        Self { name, template, pretty_name: String::new(), node_selector: BTreeMap::new() }
    }
}

/// An enrolment in a course.
#[derive(Debug)]
pub struct Enrolment {
    /// The name of the completed action.
    pub done: &'static str,
    /// The operations of a JSON patch; `None` if the Tenant is enrolled already.
    pub operations: Option<Vec<Value>>,
}

/// A submitted form.
#[derive(Debug, Default)]
pub struct Form<'a> {
    /// The parameters of the path.
    pub parameters: Fields,
    /// The fields.
    pub fields: Fields,
    /// The Template of the machine that opens MyDrive, if it is configured.
    pub drive_template: Option<&'a GenericRef>,
}

impl Form<'_> {
    /// Returns the value of a field; empty if it is missing.
    pub fn get(&self, field: &str) -> &str {
        self.fields.get(field)
    }

    /// Returns the machine of the path; `None` if its name is invalid.
    pub fn machine(&self) -> Option<ObjectKey> {
        paths::machine(self.parameters.get("namespace"), self.parameters.get("name"))
    }

    /// Returns the course of the path; `None` if its name is invalid.
    pub fn course(&self) -> Option<&str> {
        Some(self.parameters.get("course")).filter(|name| check_dns_label(name).is_ok())
    }

    /// Returns the uid of the object that the page was rendered for, which the page has written into a hidden field.
    ///
    /// # Errors
    /// [`Problem::Form`] if it is missing.
    pub fn uid(&self) -> Result<&str, Problem> {
        Some(self.get("uid")).filter(|uid| !uid.is_empty()).ok_or(Problem::Form)
    }

    /// Returns the name of a new object, which the page has written into a hidden field.
    ///
    /// # Errors
    /// [`Problem::Form`] if the name is invalid.
    pub fn new_name(&self) -> Result<&str, Problem> {
        Some(self.get("name")).filter(|name| check_object_name(name).is_ok()).ok_or(Problem::Form)
    }
}
