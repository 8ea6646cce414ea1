//! The actions on a machine. Each is one entry of [`ACTIONS`]; its route, its button and its form are derived from the
//! entry.

#![expect(clippy::unnecessary_wraps, reason = "all plans have one type")]

use serde_json::{Value, json};

use crate::api::exposed_ports::Taken;
use crate::api::instance::{ExposedPort, Instance, InstanceKind};
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::api::names::check_dns_label;
use crate::api::why::lacks_template;
use crate::api::{Template, labels};
use crate::controllers::dashboard::action::entry::{
    Action, Field, Form, Input, NewObject, Place, Plan, Right,
};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::student::{Blocked, Student};
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::plan::KindInfo;
use crate::runtime::{ObjectKey, clock};

/// The maximum number of characters of a display name.
const MAX_NAME: usize = 200;
/// The name of a port.
const PORT_NAME: &str = "[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?";
/// The name of an image: a part of a name in a registry.
const IMAGE_NAME: &str = "[a-z0-9]+([._-][a-z0-9]+)*";

/// An action on a machine.
#[derive(Debug)]
pub struct MachineAction {
    /// The action.
    pub action: Action,
    /// Whether the page offers it to a user with the right.
    pub offer: fn(&Situation<'_>) -> Offer,
}

/// Whether an action is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// No.
    No,
    /// Yes.
    Yes,
    /// No, and its disabled button shows the reason.
    Blocked(Blocked),
}

/// A machine, with the context that decides which actions are offered.
pub struct Situation<'a> {
    /// The user.
    pub student: &'a Student<'a>,
    /// The machine.
    pub instance: &'a Instance,
    /// Its Template, if it could be read.
    pub template: Option<&'a Template>,
}

const fn action(name: &'static str, path: &'static str, place: Place, plan: Plan) -> Action {
    let right = Right::to::<InstanceKind>("patch");
    Action { name, path, page: paths::MACHINE, right, place, fields: &[], plan }
}

/// Starts the machine.
pub const START: MachineAction = MachineAction {
    action: action(
        "machine.start",
        "/machines/{namespace}/{name}/start",
        Place::Main,
        Plan::PatchInstance(start),
    ),
    offer: can_start,
};
/// Stops the machine.
pub const STOP: MachineAction = MachineAction {
    action: action(
        "machine.stop",
        "/machines/{namespace}/{name}/stop",
        Place::Card,
        Plan::PatchInstance(stop),
    ),
    offer: |of| Offer::when(of.exists() && of.instance.spec.running && of.keeps_disk()),
};
/// Restarts the machine, which keeps its disk.
pub const RESTART: MachineAction = MachineAction {
    action: action(
        "machine.restart",
        "/machines/{namespace}/{name}/restart",
        Place::Question,
        Plan::PatchInstance(restart),
    ),
    offer: |of| Offer::when(of.exists() && of.instance.spec.running && of.keeps_disk()),
};
/// Counts as a use of the machine, which moves its deadlines.
pub const KEEP: MachineAction = MachineAction {
    action: action(
        "machine.keep",
        "/machines/{namespace}/{name}/keep",
        Place::Card,
        Plan::PatchInstance(keep),
    ),
    offer: |of| Offer::when(of.exists() && of.has_deadline()),
};
/// Deletes the machine.
pub const DELETE: MachineAction = MachineAction {
    action: Action {
        right: Right::to::<InstanceKind>("delete"),
        ..action(
            "machine.delete",
            "/machines/{namespace}/{name}/delete",
            Place::Question,
            Plan::DeleteInstance,
        )
    },
    offer: |of| Offer::when(of.exists()),
};
/// Changes its display name.
pub const RENAME: MachineAction = MachineAction {
    action: Action {
        fields: &[Field {
            name: "prettyName",
            id: "pretty-name",
            input: Input::Line { max: MAX_NAME, pattern: "" },
        }],
        ..action(
            "machine.rename",
            "/machines/{namespace}/{name}/rename",
            Place::Section,
            Plan::PatchInstance(rename),
        )
    },
    offer: |_| Offer::Yes,
};
/// Makes a port public.
pub const EXPOSE: MachineAction = MachineAction {
    action: Action {
        fields: &[
            Field { name: "name", id: "port-name", input: Input::Line { max: 15, pattern: PORT_NAME } },
            Field { name: "targetPort", id: "port-inside", input: Input::Number { min: 1, max: 65_535 } },
            Field { name: "port", id: "port-outside", input: Input::Number { min: 0, max: 65_535 } },
            Field { name: "protocol", id: "port-protocol", input: Input::OneOf(&["TCP", "UDP"]) },
        ],
        ..action(
            "machine.expose",
            "/machines/{namespace}/{name}/expose",
            Place::Folded,
            Plan::PatchInstance(expose),
        )
    },
    offer: |_| Offer::Yes,
};
/// Makes a port private again.
pub const UNEXPOSE: MachineAction = MachineAction {
    action: action(
        "machine.unexpose",
        "/machines/{namespace}/{name}/unexpose",
        Place::Section,
        Plan::PatchInstance(unexpose),
    ),
    offer: |_| Offer::Yes,
};
/// Creates an image of its disk.
pub const SAVE: MachineAction = MachineAction {
    action: Action {
        right: Right::to::<InstanceSnapshotKind>("create"),
        fields: &[Field {
            name: "imageName",
            id: "image-name",
            input: Input::Line { max: 128, pattern: IMAGE_NAME },
        }],
        ..action("machine.save", "/machines/{namespace}/{name}/save", Place::Section, Plan::Create(save))
    },
    offer: |of| Offer::when(Standing::of(of.instance) == Standing::Off),
};

/// All actions on a machine, in the order of their buttons.
pub const ACTIONS: &[&MachineAction] =
    &[&START, &STOP, &RESTART, &KEEP, &DELETE, &RENAME, &EXPOSE, &UNEXPOSE, &SAVE];

impl Offer {
    const fn when(is_offered: bool) -> Self {
        if is_offered { Self::Yes } else { Self::No }
    }
}

impl Situation<'_> {
    /// Returns the actions that the page offers, each with its offer.
    pub fn offers(&self) -> Vec<(&'static MachineAction, Offer)> {
        let offer = |action: &&'static MachineAction| {
            let has_right = self.student.rights.may(self.instance.namespace(), &action.action.right);
            match (action.offer)(self) {
                Offer::No => None,
                Offer::Yes if self.student.is_away => None,
                offer => has_right.then_some((*action, offer)),
            }
        };
        ACTIONS.iter().filter_map(offer).collect()
    }

    fn exists(&self) -> bool {
        !self.instance.is_terminating()
    }

    /// Whether the machine can be stopped and started again. If its Template cannot be read, its label decides.
    fn keeps_disk(&self) -> bool {
        if lacks_template(&self.instance.status) {
            return false;
        }
        self.template.map_or_else(
            || self.instance.label(labels::PERSISTENT) == Some("true"),
            |template| template.spec.is_persistent(),
        )
    }

    /// Whether the machine has a deadline that a use moves, or will have one. A use does not move the deadline for the
    /// maximum age.
    fn has_deadline(&self) -> bool {
        let status = &self.instance.status;
        let mut promises = status.inactivity.iter().chain(&status.destruction);
        promises.any(|promise| promise.deadline.is_some() || promise.next_warning.is_some())
    }
}

fn can_start(of: &Situation<'_>) -> Offer {
    if of.instance.spec.running || !of.exists() {
        return Offer::No;
    }
    match of.student.can_start(of.instance, &START.action.right) {
        Ok(()) => Offer::Yes,
        Err(Blocked::NoRight) => Offer::No,
        Err(blocked) => Offer::Blocked(blocked),
    }
}

fn start(_: &Instance, _: &Form<'_>) -> Result<Option<Value>, Problem> {
    Ok(Some(json!({"spec": {"running": true}})))
}

fn stop(_: &Instance, _: &Form<'_>) -> Result<Option<Value>, Problem> {
    Ok(Some(json!({"spec": {"running": false}})))
}

fn restart(_: &Instance, _: &Form<'_>) -> Result<Option<Value>, Problem> {
    Ok(Some(json!({"metadata": {"annotations": {labels::RESTARTED_AT: clock::rfc3339(clock::now())}}})))
}

fn keep(_: &Instance, _: &Form<'_>) -> Result<Option<Value>, Problem> {
    Ok(Some(json!({"metadata": {"annotations": {labels::KEPT_AT: clock::rfc3339(clock::now())}}})))
}

fn rename(_: &Instance, form: &Form<'_>) -> Result<Option<Value>, Problem> {
    let name = form.get("prettyName").trim();
    if name.chars().count() > MAX_NAME {
        return Err(Problem::Name);
    }
    Ok(Some(json!({"spec": {"prettyName": name}})))
}

/// Adds a public port; changes nothing if it is public already.
fn expose(instance: &Instance, form: &Form<'_>) -> Result<Option<Value>, Problem> {
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let target = number(form.get("targetPort")).ok_or(Problem::Port)?;
    // The daemon assigns a port for 0.
    let public = match form.get("port").trim() {
        "" | "0" => 0,
        text => number(text).ok_or(Problem::PublicPort)?,
    };
    let protocol = match form.get("protocol") {
        protocol @ ("TCP" | "UDP") => protocol,
        "" => "TCP",
        _ => return Err(Problem::Form),
    };
    let name = match form.get("name").trim() {
        "" => format!("{}-{target}", protocol.to_ascii_lowercase()),
        name => name.to_owned(),
    };
    if name.len() > 15 || check_dns_label(&name).is_err() {
        return Err(Problem::PortName);
    }
    let (port, target_port) = (i32::from(public), i32::from(target));
    let added = ExposedPort { name, port, target_port, protocol: protocol.into() };
    let ports = exposed(instance);
    if ports.contains(&added) {
        return Ok(None);
    }
    if let Some(fault) = ports.iter().collect::<Taken<'_>>().fault(&added) {
        return Err((&fault).into());
    }
    let ports: Vec<Value> = ports.iter().chain([&added]).map(|port| json!(port)).collect();
    Ok(Some(json!({"spec": {"publicExposure": {"ports": ports}}})))
}

/// Returns the content of a port in the form that removes it.
pub fn entry(port: &ExposedPort) -> String {
    let ExposedPort { name, port, target_port, protocol } = port;
    format!("{name} {port} {target_port} {protocol}")
}

/// Removes one public port. The form contains the port, its position, and the number of equal ports. Nothing is changed
/// if there are fewer equal ports now, because the form was sent twice.
fn unexpose(instance: &Instance, form: &Form<'_>) -> Result<Option<Value>, Problem> {
    let number = |field: &str| form.get(field).parse::<usize>().ok();
    let (at, same) = number("at").zip(number("same")).ok_or(Problem::Form)?;
    let ports = exposed(instance);
    let is_it = |at: &usize| ports.get(*at).is_some_and(|port| entry(port) == form.get("entry"));
    let equal: Vec<usize> = (0..ports.len()).filter(is_it).collect();
    let first = equal.first().filter(|_| equal.len() >= same);
    let Some(removed) = first.map(|first| if is_it(&at) { at } else { *first }) else { return Ok(None) };
    let rest = ports.iter().enumerate().filter(|(position, _)| *position != removed);
    let rest: Vec<Value> = rest.map(|(_, port)| json!(port)).collect();
    Ok(Some(json!({"spec": {"publicExposure": {"ports": rest}}})))
}

fn exposed(instance: &Instance) -> &[ExposedPort] {
    instance.spec.public_exposure.as_ref().map_or(&[][..], |exposure| &exposure.ports)
}

fn save(form: &Form<'_>) -> Result<NewObject, Problem> {
    let machine = form.machine().ok_or(Problem::Form)?;
    let body = json!({
        "spec": {
            "instanceRef": {"name": &*machine.name, "namespace": &*machine.namespace},
            "environmentRef": {"name": form.get("environment")},
            "imageName": form.get("imageName"),
        },
    });
    let key = ObjectKey::new(machine.namespace, form.new_name()?);
    Ok(NewObject { kind: KindInfo::of::<InstanceSnapshotKind>(), key, body })
}
