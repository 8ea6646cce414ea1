//! The model of the page of a machine.

use jiff::Timestamp;

use super::actions::SAVE;
use super::card::Card;
use super::ports::Ports;
use super::technical::Technical;
use crate::api::condition::READY;
use crate::api::instance::EnvironmentStatus;
use crate::api::instance_snapshot::SnapshotPhase;
use crate::api::names::{CanonicalName, check_dns_label};
use crate::api::why::{Facts, Step, Warning, Why};
use crate::api::{Condition, Instance, InstanceSnapshot, Template, labels};
use crate::controllers::dashboard::history::model::History;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::sharing::model::Sharing;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::student::{Settings, Student};
use crate::controllers::dashboard::ui::links;
use crate::controllers::dashboard::ui::view::View;

/// The page of a machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its card.
    pub card: Card,
    /// Why it is not ready, and what happens next.
    pub why: Why,
    /// Whether it belongs to the user.
    pub is_own: bool,
    /// Whether its Template is known to be gone.
    pub is_template_gone: bool,
    /// Its environments.
    pub environments: Vec<Part>,
    /// Its public ports; `None` if it has no ports and cannot have any.
    pub ports: Option<Ports>,
    /// The people with whom its owner shares it; `None` on the page of another user.
    pub sharing: Option<Sharing>,
    /// Its images; `None` without a persistent disk, or without images and the right to create them.
    pub images: Option<Images>,
    /// The namespace and name of its Template.
    pub template: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// The time until it was ready for the first time; empty if it never was.
    pub ready_in: String,
    /// The last known use.
    pub last_use: Option<Timestamp>,
    /// Its status in technical words, on the page of another user.
    pub technical: Option<Technical>,
    /// The course whose class it belongs to, on the page of another user.
    pub class: Option<String>,
    /// Who did what with it, and when.
    pub history: History,
}

/// An environment.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its state.
    pub standing: Standing,
    /// The URL that opens it.
    pub url: Option<String>,
    /// Whether the URL opens a desktop, and not a web application.
    pub is_desktop: bool,
    /// The path of its terminal.
    pub terminal: Option<String>,
    /// The path of its console, also while it boots.
    pub console: Option<String>,
    /// The login by SSH; `None` without SSH.
    pub ssh: Option<Ssh>,
}

/// The login by SSH.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// The command; `None` until the name or the address of the machine is known.
    pub command: Option<String>,
    /// The fingerprint of the bastion's host key; empty if it is not known.
    pub fingerprint: String,
}

/// The images of a machine.
#[derive(Debug, Clone)]
pub struct Images {
    /// The environment that new images are created from.
    pub environment: String,
    /// The requested images.
    pub all: Vec<Image>,
}

/// An image of a machine.
#[derive(Debug, Clone)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// Its phase.
    pub phase: SnapshotPhase,
    /// Its condition.
    pub cause: Option<Condition>,
}

impl Part {
    /// Whether the page has a link that opens it.
    pub fn can_be_opened(&self) -> bool {
        self.url.is_some() || self.terminal.is_some() || self.console.is_some()
    }
}

impl Machine {
    /// Returns the page of an Instance. `warnings` are the warnings about its objects, and `managers` the managers of
    /// its course, if they are known. `is_template_gone` is true if its Template does not exist, and false if it only
    /// cannot be read.
    pub fn of(
        view: &View<'_>,
        student: &Student<'_>,
        instance: &Instance,
        is_template_gone: bool,
        warnings: Result<Vec<Warning>, String>,
        managers: Option<&[String]>,
    ) -> Self {
        let template = student.template(&instance.spec.template_ref);
        let mut why = Facts { managers, warnings, ..student.facts(instance) }.why();
        why.next.sort_by_key(Step::order);
        let status = &instance.status;
        let promise = status.inactivity.as_ref().or(status.destruction.as_ref());
        // The namespace decides: the owner can write any Tenant into the spec.
        let own = CanonicalName::of(student.tenant().name()).tenant_namespace();
        let is_own = own == instance.namespace();
        let course = instance.label(labels::WORKSPACE).filter(|name| check_dns_label(name).is_ok());
        Self {
            card: Card::of(view, student, instance),
            is_own,
            why,
            is_template_gone,
            environments: parts(student, instance),
            ports: Ports::of(instance, template),
            sharing: is_own.then(|| Sharing::of(student, instance, template, view.now)),
            images: images(student, instance, template),
            template: instance.spec.template_ref.to_string(),
            created: instance.metadata.creation_timestamp.as_ref().map(|time| time.0),
            ready_in: status.initial_ready_time.to_string(),
            last_use: promise.and_then(|promise| promise.since.as_ref()).map(|time| time.0),
            technical: (!is_own).then(|| Technical::of(instance)),
            class: course.filter(|_| !is_own).map(str::to_owned),
            history: History::default(),
        }
    }
}

/// Returns the environments in the status of an Instance.
fn parts(student: &Student<'_>, instance: &Instance) -> Vec<Part> {
    let status = &instance.status;
    let whole = Standing::of(instance);
    let is_single = status.environments.len() == 1;
    let facts = student.openings(instance);
    let part = |environment: &EnvironmentStatus| {
        let ways = facts.ways(environment);
        let settings = student.settings;
        let is_on = instance.spec.running && !environment.ip.is_empty();
        let host = host_by_name(settings, instance, environment)
            .or_else(|| is_on.then(|| environment.ip.to_string()));
        let ssh = Ssh {
            command: host.and_then(|host| command(&settings.ssh_host, &host)),
            fingerprint: settings.ssh_fingerprint.clone(),
        };
        let path = |pattern| {
            links::of_environment(pattern, instance.namespace(), instance.name(), &environment.name)
        };
        Part {
            name: environment.name.to_string(),
            standing: if is_single { whole } else { Standing::of_phase(&environment.phase) },
            url: ways.web.and_then(links::web).map(str::to_owned),
            is_desktop: ways.is_desktop(),
            terminal: ways.has_terminal.then(|| path(paths::TERMINAL)),
            console: ways.has_console.then(|| path(paths::CONSOLE)),
            ssh: (ways.has_ssh() && !settings.ssh_host.is_empty()).then_some(ssh),
        }
    };
    status.environments.iter().map(part).collect()
}

/// Returns the name of an environment in the cluster, if the bastion resolves it. It does not change when the machine stops
/// and starts. Users may write the status, so the name is checked.
fn host_by_name(settings: &Settings, instance: &Instance, environment: &EnvironmentStatus) -> Option<String> {
    let is_known = settings.ssh_by_name && check_dns_label(&environment.service).is_ok();
    is_known.then(|| format!("{}.{}", environment.service, instance.namespace()))
}

/// Returns the command that logs in through the bastion, if both hosts are safe in a command without quoting.
fn command(bastion: &str, address: &str) -> Option<String> {
    let is_host = |host: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
        !host.is_empty() && !host.starts_with('-') && host.bytes().all(is_plain)
    };
    (is_host(bastion) && is_host(address)).then(|| format!("ssh -J bastion@{bastion} crownlabs@{address}"))
}

fn images(student: &Student<'_>, instance: &Instance, template: Option<&Template>) -> Option<Images> {
    let environments = template.iter().flat_map(|template| &template.spec.environment_list);
    let mut machines =
        environments.filter(|environment| environment.persistent && environment.environment_type.is_vm());
    let environment = machines.next()?.name.clone();
    let may = student.may(&SAVE.action.right, instance.namespace());
    let image = |snapshot: &InstanceSnapshot| Image {
        name: snapshot.spec.image_name.clone(),
        phase: snapshot.status.phase.clone(),
        cause: snapshot.status.conditions.iter().find(|condition| condition.type_ == READY).cloned(),
    };
    let all: Vec<Image> = student.snapshots(instance.name()).map(image).collect();
    (may || !all.is_empty()).then_some(Images { environment, all })
}
