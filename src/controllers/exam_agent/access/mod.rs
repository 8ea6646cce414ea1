//! The rights of clients to see, create, replace and delete objects: one pure function.
//!
//! The port is open to the browsers of students, so nothing that a request says is believed before it is looked at here.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::body::WantedInstance;
use crate::api::names::{check_label_value, check_object_name, is_label_key};
use crate::api::{Instance, Template, labels};
use crate::config::ExamAgentConfig;

/// The action that a client asks for.
#[derive(Debug, Clone, Copy)]
pub enum Action<'a> {
    /// To see Templates.
    SeeTemplates,
    /// To see the Instances that have these labels.
    List(&'a BTreeMap<String, String>),
    /// To see the Instance of that name.
    See(&'a str),
    /// To create or replace any Instance: it has not been read yet which one, and how.
    PutAny,
    /// To create or replace the Instance of that name.
    Put(&'a str, &'a WantedInstance),
    /// To delete the Instance of that name.
    Delete(&'a str),
}

/// The result of a lookup of an object that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub enum Lookup<T> {
    /// It has not been read yet.
    Unread,
    /// There is none.
    Absent,
    /// There is this one.
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
    /// The Instance that is asked for.
    pub instance: Lookup<&'a Instance>,
    /// The Template that is asked for.
    pub template: Lookup<&'a Template>,
}

impl World<'_> {
    /// Before anything is read.
    pub const UNREAD: Self = Self { instance: Lookup::Unread, template: Lookup::Unread };
}

/// The rights of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Whether it is one of those that may do everything.
    pub is_allowed: bool,
    /// Whether it sees the URLs of desktops, contents and status checks, which may contain secrets.
    pub sees_urls: bool,
}

/// Why a client may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is not one of those that may, or nobody may; with the reason, for the log.
    Forbidden(String),
    /// The request is not valid; with the reason, for the client.
    Invalid(String),
    /// There is nothing that it may know of.
    NotFound,
}

/// Decides what a client may. It is called before anything is read, so that nobody has requests sent who may not, and again
/// with what was read. `client` is its address, `None` if that is not known.
///
/// # Errors
/// With the reason, if it may not.
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
            check_labels(labels)?;
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
            check_labels(&wanted.labels)?;
            let foreign = || Refusal::Forbidden("the Instance belongs to another Tenant".to_owned());
            require(is_ours(config, world.instance), foreign)?;
            check_own_labels(wanted, world.instance)?;
            check_template(config, wanted, world.template)?;
        }
    }
    Ok(Granted { is_allowed, sees_urls: is_allowed || !config.hide_urls })
}

fn require(holds: bool, refusal: impl FnOnce() -> Refusal) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(refusal()) }
}

/// Whether an Instance, if it is there, belongs to the Tenant of exams. One whose spec cannot be read belongs to nobody.
fn is_ours(config: &ExamAgentConfig, instance: Lookup<&Instance>) -> bool {
    match instance {
        Lookup::Found(instance) => {
            instance.malformed.is_none() && instance.spec.tenant_ref.name == config.tenant
        }
        Lookup::Unread | Lookup::Absent => true,
    }
}

/// Whether an object can have this name. The text is not repeated: it may be long, or no text at all.
fn check_name(name: &str) -> Result<(), Refusal> {
    let message = "the name must be one of Kubernetes: at most 253 lower-case letters, digits, dashes and dots, with a letter \
                   or digit at both ends";
    check_object_name(name).map_err(|_| Refusal::Invalid(message.to_owned()))
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let is_valid = |(key, value): (&String, &String)| is_label_key(key) && check_label_value(value).is_ok();
    let message = "a label is not valid: expected a key such as example.org/course, and as its value at most 63 letters, \
                   digits, dashes, underscores and dots";
    require(labels.iter().all(is_valid), || Refusal::Invalid(message.to_owned()))
}

/// Labels of the daemon decide what it does with an Instance, so no client sets them. One that sends back what it was shown
/// changes nothing.
fn check_own_labels(wanted: &WantedInstance, instance: Lookup<&Instance>) -> Result<(), Refusal> {
    let is_kept = |key: &str, value: &str| match instance {
        Lookup::Unread => true,
        Lookup::Absent => false,
        Lookup::Found(instance) => instance.label(key) == Some(value),
    };
    let mut own = wanted.labels.iter().filter(|(key, _)| is_own(key));
    match own.find(|(key, value)| !is_kept(key, value)) {
        Some((key, _)) => {
            let message = format!("the label {key} is the daemon's own: leave it out");
            Err(Refusal::Invalid(message))
        }
        None => Ok(()),
    }
}

/// Whether the key of a label is in our domain or below it.
pub fn is_own(key: &str) -> bool {
    let domain = labels::PREFIX.trim_end_matches('/');
    let Some((prefix, _)) = key.split_once('/') else { return false };
    prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether an Instance may be made from the Template that is wanted. Without a selector, any name is accepted: the Instance
/// waits for its Template, and its conditions say so.
fn check_template(
    config: &ExamAgentConfig,
    wanted: &WantedInstance,
    template: Lookup<&Template>,
) -> Result<(), Refusal> {
    let name = &wanted.template;
    if !name.is_empty() && check_object_name(name).is_err() {
        return Err(Refusal::Invalid("no Template can have this name".to_owned()));
    }
    let is_for_exams = match template {
        _ if config.template_selector.is_empty() => true,
        _ if name.is_empty() => false,
        Lookup::Unread => true,
        Lookup::Absent => false,
        Lookup::Found(template) => template.has_labels(&config.template_selector),
    };
    require(is_for_exams, || Refusal::Forbidden(format!("the Template {name:?} is not for exams")))
}

#[cfg(test)]
mod tests;
