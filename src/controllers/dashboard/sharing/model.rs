//! The models of the sections about sharing.

use jiff::Timestamp;

use super::actions::SHARE;
use super::with_me::SharedMachine;
use crate::api::connection::Connection;
use crate::api::environment::{Environment, EnvironmentMode};
use crate::api::names::label_sized;
use crate::api::sharing::{Access, Peer, course, peers};
use crate::api::{Instance, Template};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::{Student, template_title};
use crate::controllers::dashboard::ui::links;
use crate::controllers::shared::machine_host::peer_label;
use crate::runtime::ObjectKey;

/// The other people on a machine of the user: the section on its page, and the connections at the top of it.
#[derive(Debug, Clone)]
pub struct Sharing {
    /// The name of the Instance.
    pub machine: ObjectKey,
    /// The uid of the Instance, which the actions send along.
    pub uid: String,
    /// The people with whom it is shared now.
    pub peers: Vec<Peer>,
    /// Whether it can be shared: it has a course, and the user has the right.
    pub is_offered: bool,
    /// Whether the user can end a share.
    pub can_end: bool,
    /// The open connections of others.
    pub connections: Vec<Connection>,
}

impl Sharing {
    /// Returns those of an Instance, without the connections.
    pub fn of(
        student: &Student<'_>,
        instance: &Instance,
        template: Option<&Template>,
        now: Timestamp,
    ) -> Self {
        let may = student.may(&SHARE.right, instance.namespace());
        Self {
            machine: ObjectKey::of(instance),
            uid: instance.uid().to_owned(),
            peers: peers(instance).into_iter().filter(|peer| peer.is_current(now)).collect(),
            is_offered: may && !instance.is_terminating() && template.and_then(course).is_some(),
            can_end: may,
            connections: Vec::new(),
        }
    }

    /// Whether the page has the section.
    pub fn is_shown(&self) -> bool {
        self.is_offered || !self.peers.is_empty()
    }

    /// Returns the path of an action.
    pub fn path(&self, pattern: &str) -> String {
        links::of_machine(pattern, &self.machine.namespace, &self.machine.name)
    }
}

/// A machine of another user on the first page.
#[derive(Debug, Clone)]
pub struct SharedCard {
    /// The part of the ids of its elements.
    pub id: String,
    /// The title of its Template; the name of the machine if the Template is not known.
    pub title: String,
    /// The user name of its owner.
    pub owner: String,
    /// What the user may do.
    pub access: Access,
    /// The end.
    pub until: Timestamp,
    /// The ways to open it, for each environment.
    pub doors: Vec<Door>,
}

/// The ways to open an environment of a shared machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// The name of the environment; empty if there is no other.
    pub environment: String,
    /// The path of its terminal.
    pub terminal: Option<String>,
    /// The URL of its desktop or web application.
    pub desktop: Option<String>,
}

impl SharedCard {
    /// Returns the machines that are shared with a user.
    pub fn all(student: &Student<'_>) -> Vec<Self> {
        student.shared().iter().map(|machine| Self::of(student, machine)).collect()
    }

    /// The user may not read the Instance, so its Template tells how it can be opened. The servers decide.
    fn of(student: &Student<'_>, machine: &SharedMachine) -> Self {
        let is_its = |template: &&Template| {
            label_sized(template.name(), "") == machine.template
                && course(template) == Some(machine.course.as_str())
        };
        let template = student.templates().find(is_its);
        let environments = template.map_or(&[][..], |template| &template.spec.environment_list);
        let door = |environment: &Environment| {
            let name = if environments.len() == 1 { String::new() } else { environment.name.clone() };
            Door { environment: name, ..Door::of(student, machine, environment) }
        };
        let ObjectKey { namespace, name } = &machine.key;
        Self {
            id: format!("{namespace}-{name}"),
            title: template.map_or_else(|| name.to_string(), |of| template_title(of).to_owned()),
            owner: machine.owner.clone(),
            access: machine.access,
            until: machine.until,
            doors: environments.iter().map(door).filter(Door::is_there).collect(),
        }
    }
}

impl Door {
    fn of(student: &Student<'_>, machine: &SharedMachine, environment: &Environment) -> Self {
        let (settings, name) = (student.settings, environment.name.as_str());
        let ObjectKey { namespace, name: instance } = &machine.key;
        let has_terminal = environment.environment_type.is_vm() && !settings.web_ssh.is_empty();
        // A web application cannot be restricted to looking on.
        let has_desktop = machine.access == Access::Control
            && environment.gui_enabled
            && environment.mode == EnvironmentMode::Standard
            && !settings.peer_desktops.is_empty();
        let host = || peer_label(&machine.uid, name, student.tenant().name());
        Self {
            environment: name.to_owned(),
            terminal: has_terminal.then(|| links::of_environment(paths::TERMINAL, namespace, instance, name)),
            desktop: has_desktop.then(|| format!("https://{}.{}/", host(), settings.peer_desktops)),
        }
    }

    fn is_there(&self) -> bool {
        self.terminal.is_some() || self.desktop.is_some()
    }
}
