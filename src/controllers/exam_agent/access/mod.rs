//! The rights of clients to see, create, replace and delete objects: one pure function.
//!
//! The port is open to the browsers of students, so this module validates everything that a request claims.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::body::WantedInstance;
use crate::api::names::{check_label_value, check_object_name, is_label_key};
use crate::api::{Instance, Template, labels};
use crate::config::ExamAgentConfig;

/// The action that a client asks for.
#[derive(Debug, Clone, Copy)]
pub enum Action<'a> {
    /// List or show Templates.
    SeeTemplates,
    /// List the Instances that have these labels.
    List(&'a BTreeMap<String, String>),
    /// Show the Instance with this name.
    See(&'a str),
    /// Create or replace some Instance. The name and the body have not been read yet.
    PutAny,
    /// Create or replace the Instance with this name.
    Put(&'a str, &'a WantedInstance),
    /// Delete the Instance with this name.
    Delete(&'a str),
}

/// The result of a lookup of an object that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub enum Lookup<T> {
    /// The object has not been read yet.
    Unread,
    /// The object does not exist.
    Absent,
    /// The object exists.
    Found(T),
}

impl<T> From<Option<T>> for Lookup<T> {
    fn from(object: Option<T>) -> Self {
        object.map_or(Self::Absent, Self::Found)
    }
}

/// The objects that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    /// The requested Instance.
    pub instance: Lookup<&'a Instance>,
    /// The requested Template.
    pub template: Lookup<&'a Template>,
}

impl World<'_> {
    /// Nothing has been read yet.
    pub const UNREAD: Self = Self { instance: Lookup::Unread, template: Lookup::Unread };
}

/// The rights of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Whether the client has full access.
    pub is_allowed: bool,
    /// Whether the client sees the URLs of desktops, contents and status checks, which may contain secrets.
    pub sees_urls: bool,
}

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The client does not have the right. The reason is for the log.
    Forbidden(String),
    /// The path, the query or the body cannot be read. The reason is for the client.
    Malformed(String),
    /// The body does not describe a valid Instance. The reason is for the client.
    Invalid(String),
    /// The `Content-Type` of the body is not JSON.
    UnsupportedType,
    /// The object does not exist, or the client may not know that it exists.
    NotFound,
}

/// Decides whether a client may perform an action. It is called before anything is read, so that a client without the
/// right causes no requests to the API server, and again with the objects that were read. `client` is the client's
/// address, or `None` if it is unknown.
///
/// # Errors
/// The refusal, if the client may not perform the action.
pub fn decide(
    config: &ExamAgentConfig,
    client: Option<IpAddr>,
    action: Action<'_>,
    world: World<'_>,
) -> Result<Granted, Refusal> {
    let is_in = |client: IpAddr| config.allowed_ips.iter().any(|network| network.contains(client));
    let is_allowed = config.allow_anyone || client.is_some_and(is_in);
    let is_open = matches!(action, Action::SeeTemplates | Action::See(_));
    if !is_allowed && !is_open {
        return Err(Refusal::Forbidden("this client is not in allowedIps".to_owned()));
    }
    match action {
        Action::SeeTemplates => {
            if let Lookup::Found(template) = world.template {
                require(template.has_labels(&config.template_selector), || Refusal::NotFound)?;
            }
        }
        Action::List(labels) => {
            check_labels(labels).map_err(Refusal::Malformed)?;
            require(is_ours(config, world.instance), || Refusal::NotFound)?;
        }
        Action::See(name) | Action::Delete(name) => {
            check_name(name)?;
            let is_there = !matches!(world.instance, Lookup::Absent) && is_ours(config, world.instance);
            require(is_there, || Refusal::NotFound)?;
        }
        Action::PutAny => {}
        Action::Put(name, wanted) => {
            check_name(name)?;
            check_labels(&wanted.labels).map_err(Refusal::Invalid)?;
            let foreign = || Refusal::Forbidden("the Instance belongs to another Tenant".to_owned());
            require(is_ours(config, world.instance), foreign)?;
            check_own_labels(wanted, world.instance)?;
            check_template(config, &wanted.template, world.template)?;
        }
    }
    Ok(Granted { is_allowed, sees_urls: is_allowed || !config.hide_urls })
}

fn require(holds: bool, refusal: impl FnOnce() -> Refusal) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(refusal()) }
}

/// Whether an Instance, if it exists, belongs to the exam Tenant. An Instance whose spec cannot be read does not.
fn is_ours(config: &ExamAgentConfig, instance: Lookup<&Instance>) -> bool {
    match instance {
        Lookup::Found(instance) => {
            instance.malformed.is_none() && instance.spec.tenant_ref.name == config.tenant
        }
        Lookup::Unread | Lookup::Absent => true,
    }
}

/// Whether an object can have this name. The message does not repeat the name: it may be long or unprintable.
fn check_name(name: &str) -> Result<(), Refusal> {
    let message = "the name must be a valid Kubernetes name: at most 253 lower-case letters, digits, dashes and dots, with a letter \
                   or digit at both ends";
    check_object_name(name).map_err(|_| Refusal::Malformed(message.to_owned()))
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), String> {
    let is_valid = |(key, value): (&String, &String)| is_label_key(key) && check_label_value(value).is_ok();
    let message = "a label is not valid: expected a key such as example.org/course, and as its value at most 63 letters, \
                   digits, dashes, underscores and dots";
    if labels.iter().all(is_valid) { Ok(()) } else { Err(message.to_owned()) }
}

/// Labels of the daemon control what it does with an Instance, so clients may not set them. A client may send back the
/// values that it was shown.
fn check_own_labels(wanted: &WantedInstance, instance: Lookup<&Instance>) -> Result<(), Refusal> {
    let is_kept = |key: &str, value: &str| match instance {
        Lookup::Unread => true,
        Lookup::Absent => false,
        Lookup::Found(instance) => instance.label(key) == Some(value),
    };
    let mut own = wanted.labels.iter().filter(|(key, _)| is_own(key));
    let changed = own.find(|(key, value)| !is_kept(key, value));
    let message = |key| format!("the label {key} is reserved for the daemon: leave it out");
    changed.map_or(Ok(()), |(key, _)| Err(Refusal::Invalid(message(key))))
}

/// Whether the key of a label is in our domain or below it.
pub fn is_own(key: &str) -> bool {
    let domain = labels::PREFIX.trim_end_matches('/');
    let Some((prefix, _)) = key.split_once('/') else { return false };
    prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether an Instance may be created from the requested Template. Without a selector any valid name is accepted: the
/// Instance waits for its Template, and its conditions say so.
fn check_template(config: &ExamAgentConfig, name: &str, template: Lookup<&Template>) -> Result<(), Refusal> {
    let named = "choose one that GET templates/ returns";
    if name.is_empty() {
        return Err(Refusal::Invalid(format!("template is missing: {named}")));
    }
    if check_object_name(name).is_err() {
        return Err(Refusal::Invalid(format!("template is not the name of a Template: {named}")));
    }
    let is_for_exams = match template {
        Lookup::Unread => true,
        Lookup::Absent => config.template_selector.is_empty(),
        Lookup::Found(template) => template.has_labels(&config.template_selector),
    };
    require(is_for_exams, || Refusal::Forbidden(format!("the Template {name:?} is not for exams")))
}

#[cfg(test)]
mod tests;
