//! The rows of an action: pure functions of the cluster as it is now.
//!
//! | verb | changes | does not change |
//! |---|---|---|
//! | start | a person without a machine of the Template gets one, whose name derives from the action; otherwise the newest stopped one is started | a person with a running machine |
//! | stop | running machines | |
//! | collect | machines with a destination for their content: they are stopped, and the upload is requested | machines whose content is uploaded |
//! | delete | machines | machines that are newer than the action |
//!
//! A machine whose annotation names this action, or a later one, is not changed.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::model::{ActionId, Change, Class, Person, Refusal, Row, State, Unchanged, Verb};
use crate::api::condition::SUBMITTED;
use crate::api::labels::{self, CLASS_ACTION, SUBMISSION_COMPLETED, SUBMISSION_REQUESTED};
use crate::api::template::instance_name;
use crate::api::{GenericRef, Instance, Template};
use crate::runtime::ObjectKey;
use crate::runtime::client::Preconditions;

/// The difference of the clocks of two computers. An annotation with a later time was not written by an action: a student
/// cannot exclude a machine from actions.
const SKEW: SignedDuration = SignedDuration::from_mins(1);

/// An action on a class.
#[derive(Debug, Clone, Copy)]
pub struct Action<'a> {
    /// What it does.
    pub verb: Verb,
    /// Its identifier.
    pub id: &'a ActionId,
    /// The name of the course, for new machines.
    pub course: &'a str,
    /// The Template of the machines; `None` for the machines of all Templates.
    pub template: Option<&'a Template>,
    /// Whether failed uploads are requested again.
    pub is_retry: bool,
    /// The time.
    pub now: Timestamp,
}

/// Which action has changed a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changed {
    /// An earlier one, or none.
    Before,
    /// This one.
    Now,
    /// A later one.
    Later,
}

impl Action<'_> {
    /// Returns the rows: one for each person, or for each machine of a person with several.
    pub fn rows(&self, class: &Class) -> Vec<Row> {
        let people = class.people.iter().flat_map(|person| self.of_person(class, person));
        let strangers = class.strangers.iter().map(|name| Row {
            person: name.clone(),
            title: String::new(),
            machine: None,
            state: State::Refused(Refusal::NotEnrolled),
        });
        people.chain(strangers).collect()
    }

    fn of_person(&self, class: &Class, person: &Person) -> Vec<Row> {
        let row = |machine: Option<ObjectKey>, state| Row {
            person: person.name.clone(),
            title: person.title.clone(),
            machine,
            state,
        };
        if let Some(error) = class.unread.get(&person.namespace) {
            return vec![row(None, State::Refused(Refusal::Api(error.clone())))];
        }
        let machines = class.machines.get(&person.namespace).map_or(&[][..], Vec::as_slice);
        let machines: Vec<&Instance> =
            machines.iter().filter(|machine| self.is_of_template(machine)).collect();
        if let (Verb::Start, Some(template)) = (self.verb, self.template) {
            let (machine, state) = self.start(person, template, &machines);
            return vec![row(Some(machine), state)];
        }
        if machines.is_empty() {
            return vec![row(None, State::Unchanged(Unchanged::NoMachine))];
        }
        machines.iter().map(|machine| row(Some(ObjectKey::of(machine)), self.of_machine(machine))).collect()
    }

    fn is_of_template(&self, machine: &Instance) -> bool {
        self.template.is_none_or(|template| {
            machine.spec.template_ref == GenericRef::new(template.namespace(), template.name())
        })
    }

    /// Returns the machine that a person uses after the start, and its state.
    fn start(&self, person: &Person, template: &Template, machines: &[&Instance]) -> (ObjectKey, State) {
        let name = instance_name(template, &self.id.suffix(&person.name));
        let key = ObjectKey::new(person.namespace.as_str(), name);
        // Also if the person has stopped or deleted it since.
        if machines.iter().any(|machine| machine.name() == &*key.name) {
            return (key, State::Done);
        }
        let mut machines: Vec<&Instance> =
            machines.iter().copied().filter(|machine| !machine.is_terminating()).collect();
        // The machine that decides comes first: one that this action has started, one that runs, the newest one.
        machines.sort_by_key(|machine| {
            let is_changed = self.changed(machine) == Changed::Now;
            let created = machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
            std::cmp::Reverse((is_changed, machine.spec.running, created))
        });
        if let Some(machine) = machines.first() {
            return (ObjectKey::of(machine), self.of_machine(machine));
        }
        if !person.has_namespace {
            return (key, State::Refused(Refusal::NoNamespace));
        }
        let body = self.new_machine(person, template, &key.name);
        (key.clone(), State::ToDo(Change::Create(key, body)))
    }

    /// Returns a new machine, with the labels that find it before the daemon has added them.
    fn new_machine(&self, person: &Person, template: &Template, name: &str) -> Value {
        json!({
            "metadata": {
                "name": name,
                "labels": {labels::WORKSPACE: self.course},
                "annotations": {CLASS_ACTION: self.id.to_string()},
            },
            "spec": {
                "template.crownlabs.polito.it/TemplateRef": {"name": template.name(), "namespace": template.namespace()},
                "tenant.crownlabs.polito.it/TenantRef": {"name": person.name},
                "running": true,
            },
        })
    }

    /// Returns the state of a machine.
    pub fn of_machine(&self, machine: &Instance) -> State {
        match (self.verb, self.changed(machine)) {
            (Verb::Delete, _) => self.delete(machine),
            (_, Changed::Later) => State::Unchanged(Unchanged::Later),
            (Verb::Collect, changed) => self.collect(machine, changed),
            (Verb::Start | Verb::Stop, Changed::Now) => State::Done,
            (Verb::Start | Verb::Stop, Changed::Before) => {
                let wanted = self.verb == Verb::Start;
                if machine.spec.running == wanted || machine.is_terminating() {
                    return State::Unchanged(Unchanged::Already);
                }
                self.patch(machine, json!({"spec": {"running": wanted}}))
            }
        }
    }

    fn changed(&self, machine: &Instance) -> Changed {
        let id = machine.annotation(CLASS_ACTION).and_then(ActionId::parse);
        match id.filter(|id| id.time().duration_since(self.now) <= SKEW) {
            Some(id) if id == *self.id => Changed::Now,
            Some(id) if id > *self.id => Changed::Later,
            _ => Changed::Before,
        }
    }

    /// Builds a patch that also names the action.
    fn patch(&self, machine: &Instance, mut change: Value) -> State {
        change["metadata"]["annotations"] = json!({CLASS_ACTION: self.id.to_string()});
        let patch = Preconditions::of(machine).merge(change);
        State::ToDo(Change::Patch(ObjectKey::of(machine), patch))
    }

    fn collect(&self, machine: &Instance, changed: Changed) -> State {
        let has = |label: &str| machine.label(label) == Some("true");
        let (is_requested, is_uploaded) = (has(SUBMISSION_REQUESTED), has(SUBMISSION_COMPLETED));
        let is_ours = changed == Changed::Now;
        match (is_uploaded, is_requested) {
            (true, _) if is_ours => return State::Done,
            (true, _) if !machine.spec.running => return State::Unchanged(Unchanged::Already),
            (false, true) if is_ours || !machine.spec.running => return State::Running,
            (false, false) if is_ours && !self.is_retry => {
                let conditions = &machine.status.conditions;
                let condition = conditions.iter().find(|condition| condition.type_ == SUBMITTED);
                let message = condition.map(|condition| condition.message.to_string()).unwrap_or_default();
                return State::Refused(Refusal::NotUploaded(message));
            }
            _ => {}
        }
        if machine.is_terminating() {
            return State::Refused(Refusal::Leaving);
        }
        if !machine.spec.has_content_destination() {
            return State::Refused(Refusal::NoDestination);
        }
        let mut labels = json!({SUBMISSION_REQUESTED: "true"});
        if is_uploaded {
            labels[SUBMISSION_COMPLETED] = "false".into();
        }
        self.patch(machine, json!({"metadata": {"labels": labels}, "spec": {"running": false}}))
    }

    fn delete(&self, machine: &Instance) -> State {
        if machine.is_terminating() {
            return State::Done;
        }
        let created = machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
        if created.is_none_or(|created| created > self.id.time()) {
            return State::Unchanged(Unchanged::Later);
        }
        State::ToDo(Change::Delete(ObjectKey::of(machine), machine.uid().to_owned()))
    }
}
