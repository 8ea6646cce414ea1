//! What the page of a machine shows.

use jiff::Timestamp;

use crate::api::condition::READY;
use crate::api::instance::{ExposedPort, ExposurePhase, InstanceKind};
use crate::api::instance_snapshot::{InstanceSnapshotKind, SnapshotPhase};
use crate::api::why::{Facts, Step, Warning, Why};
use crate::api::{Instance, InstanceSnapshot, Template};
use crate::controllers::dashboard::page::home::Card;
use crate::controllers::dashboard::page::links;
use crate::controllers::dashboard::page::standing::Standing;
use crate::controllers::dashboard::page::student::Student;
use crate::controllers::dashboard::page::view::View;

/// The page of a machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// What its card shows.
    pub card: Card,
    /// Why it is not ready, and what happens next.
    pub why: Why,
    /// Whether it is the user's.
    pub is_own: bool,
    /// Whether its Template is known to be gone.
    pub is_template_gone: bool,
    /// Its environments.
    pub environments: Vec<Part>,
    /// Its public ports; `None` where it can have none.
    pub ports: Option<Ports>,
    /// Whether it can be renamed.
    pub can_rename: bool,
    /// Its images; `None` where none can be made.
    pub images: Option<Images>,
    /// The namespace and name of its Template.
    pub template: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// How long it took until it was ready for the first time; empty if it was not.
    pub ready_in: String,
    /// The last use that is known.
    pub last_use: Option<Timestamp>,
}

/// An environment.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its state.
    pub standing: Standing,
    /// Where it is used.
    pub url: Option<String>,
    /// How one logs in by SSH; `None` where there is no SSH.
    pub ssh: Option<Ssh>,
}

/// How one logs in by SSH.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// The command; `None` until the address is known.
    pub command: Option<String>,
    /// Where a terminal is opened in the browser.
    pub terminal: Option<String>,
}

/// The public ports of a machine.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Each port.
    pub all: Vec<Port>,
    /// Why they cannot be reached, as reason and sentence.
    pub trouble: Option<(String, String)>,
    /// Whether they can be changed.
    pub can_change: bool,
}

/// A public port.
#[derive(Debug, Clone)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The port of the machine.
    pub inside: i32,
    /// The protocol.
    pub protocol: String,
    /// The public address and port, once they are assigned.
    pub outside: Option<String>,
}

/// The images of a machine.
#[derive(Debug, Clone)]
pub struct Images {
    /// The environment of which an image is made.
    pub environment: String,
    /// Whether the machine is off.
    pub is_off: bool,
    /// The images that were asked for.
    pub all: Vec<Image>,
}

/// An image of a machine.
#[derive(Debug, Clone)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// How far it is.
    pub phase: SnapshotPhase,
    /// Reason and sentence of its condition.
    pub cause: Option<(String, String)>,
}

impl Machine {
    /// The page of an Instance. `warnings` are those about its objects, and `managers` the managers of its course, if they are
    /// known; `is_template_gone` says that its Template does not exist, and not only that it cannot be read.
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
        Self {
            card: Card::of(view, student, instance),
            is_own: student.tenant().name() == why.tenant,
            why,
            is_template_gone,
            environments: parts(student, instance, template),
            ports: ports(student, instance, template),
            can_rename: student.may::<InstanceKind>(instance.namespace(), "patch"),
            images: images(student, instance, template),
            template: instance.spec.template_ref.to_string(),
            created: instance.metadata.creation_timestamp.as_ref().map(|time| time.0),
            ready_in: status.initial_ready_time.clone(),
            last_use: promise.and_then(|promise| promise.since.as_ref()).map(|time| time.0),
        }
    }
}

/// The environments of an Instance, as its status has them.
fn parts(student: &Student<'_>, instance: &Instance, template: Option<&Template>) -> Vec<Part> {
    let status = &instance.status;
    let whole = Standing::of(instance);
    let is_single = status.environments.len() == 1;
    let part = |environment: &crate::api::instance::EnvironmentStatus| {
        let spec = template.and_then(|template| template.spec.environment(&environment.name));
        // Containers have no SSH server.
        let has_ssh = spec.is_none_or(|spec| spec.environment_type.is_vm());
        let settings = student.settings();
        let is_on = instance.spec.running && !environment.ip.is_empty();
        let terminal =
            links::terminal(&settings.web_ssh, instance.namespace(), instance.name(), &environment.name);
        let ssh = Ssh {
            command: command(&settings.ssh_host, &environment.ip).filter(|_| is_on),
            terminal: terminal.filter(|_| is_on),
        };
        let is_offered = !settings.ssh_host.is_empty() || !settings.web_ssh.is_empty();
        Part {
            name: environment.name.clone(),
            standing: if is_single { whole } else { Standing::of_phase(&environment.phase) },
            url: links::web(&environment.url).map(str::to_owned),
            ssh: (has_ssh && is_offered).then_some(ssh),
        }
    };
    status.environments.iter().map(part).collect()
}

/// The command that logs in through the bastion, if both hosts can stand in a command as they are.
fn command(bastion: &str, address: &str) -> Option<String> {
    let is_host = |host: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
        !host.is_empty() && !host.starts_with('-') && host.bytes().all(is_plain)
    };
    (is_host(bastion) && is_host(address)).then(|| format!("ssh -J bastion@{bastion} crownlabs@{address}"))
}

fn ports(student: &Student<'_>, instance: &Instance, template: Option<&Template>) -> Option<Ports> {
    let asked = instance.spec.public_exposure.iter().flat_map(|exposure| &exposure.ports);
    let asked: Vec<&ExposedPort> = asked.collect();
    let is_allowed = template.is_some_and(|template| {
        template.spec.allow_public_exposure && template.spec.environment_list.len() == 1
    });
    if !is_allowed && asked.is_empty() {
        return None;
    }
    let status = instance.status.public_exposure.as_ref();
    let outside = |port: &ExposedPort| {
        let status =
            status.filter(|status| status.phase == ExposurePhase::Ready && !status.external_ip.is_empty())?;
        let assigned = status.ports.iter().find(|assigned| assigned.name == port.name)?;
        let address = &status.external_ip;
        Some(if address.contains(':') {
            format!("[{address}]:{}", assigned.port)
        } else {
            format!("{address}:{}", assigned.port)
        })
    };
    let port = |port: &&ExposedPort| Port {
        name: port.name.clone(),
        inside: port.target_port,
        protocol: port.protocol.to_string(),
        outside: outside(port),
    };
    let conditions = &instance.status.conditions;
    let trouble = conditions.iter().find(|condition| {
        condition.type_ == crate::api::condition::PUBLIC_EXPOSURE_READY && condition.status != "True"
    });
    Some(Ports {
        all: asked.iter().map(port).collect(),
        trouble: trouble.map(|condition| (condition.reason.to_string(), condition.message.to_string())),
        can_change: student.may::<InstanceKind>(instance.namespace(), "patch"),
    })
}

fn images(student: &Student<'_>, instance: &Instance, template: Option<&Template>) -> Option<Images> {
    let environments = template.iter().flat_map(|template| &template.spec.environment_list);
    let mut machines =
        environments.filter(|environment| environment.persistent && environment.environment_type.is_vm());
    let environment = machines.next()?.name.clone();
    let may = student.may::<InstanceSnapshotKind>(instance.namespace(), "create");
    let all: Vec<Image> = student.snapshots(instance.name()).map(Image::of).collect();
    (may || !all.is_empty()).then(|| Images {
        environment,
        is_off: may && Standing::of(instance) == Standing::Off,
        all,
    })
}

impl Image {
    fn of(snapshot: &InstanceSnapshot) -> Self {
        let conditions = &snapshot.status.conditions;
        let ready = conditions.iter().find(|condition| condition.type_ == READY);
        Self {
            name: snapshot.spec.image_name.clone(),
            phase: snapshot.status.phase.clone(),
            cause: ready.map(|condition| (condition.reason.to_string(), condition.message.to_string())),
        }
    }
}
