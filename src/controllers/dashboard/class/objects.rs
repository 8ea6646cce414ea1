//! The objects of a class in memory: its people and machines, with only the fields that its pages show.

use jiff::Timestamp;
use serde::Deserialize;

use crate::api::names::CanonicalName;
use crate::api::shown::cut;
use crate::api::tenant::Role;
use crate::api::text::Text;
use crate::api::why::{Facts, Step};
use crate::api::{Condition, GenericRef, Instance, Tenant, labels};
use crate::controllers::dashboard::exams::facts::Exam;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::student::{created, last_use, title};
use crate::runtime::ObjectKey;

/// The maximum number of characters of a text of a user. Pages show fewer.
const MOST_OF_TEXT: usize = 200;
/// The maximum number of characters of the message of a cause.
const MOST_OF_CAUSE: usize = 300;

/// A student.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The first name.
    pub first: Text,
    /// The last name.
    pub last: Text,
    /// The email address.
    pub email: Text,
    /// The personal namespace.
    pub namespace: Text,
}

/// A Tenant, with the courses in which it is a student.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Tenant")]
pub struct Member {
    /// The name of the Tenant.
    pub name: Text,
    /// The student.
    pub person: Person,
    courses: Vec<Text>,
}

impl Member {
    /// Whether the Tenant is a student of a course. Users may patch the labels of their Tenant, so its spec decides.
    pub fn is_student_of(&self, course: &str) -> bool {
        self.courses.iter().any(|known| known.as_str() == course)
    }
}

impl From<Tenant> for Member {
    fn from(tenant: Tenant) -> Self {
        let spec = &tenant.spec;
        let of_status = &tenant.status.personal_namespace;
        let namespace = if of_status.created {
            Text::from(&of_status.name)
        } else {
            Text::from(CanonicalName::of(tenant.name()).tenant_namespace())
        };
        let student = spec.workspaces.iter().filter(|entry| entry.role == Role::User);
        Self {
            name: tenant.metadata.name.clone(),
            person: Person {
                first: short(&spec.first_name),
                last: short(&spec.last_name),
                email: short(&spec.email),
                namespace,
            },
            courses: student.map(|entry| Text::interned(&entry.name)).collect(),
        }
    }
}

/// A machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its title.
    pub title: Text,
    /// Its Template.
    pub template: GenericRef,
    /// The Tenant that it names.
    pub tenant: Text,
    /// Its state.
    pub standing: Standing,
    /// The condition that explains why it should run, but is not ready.
    pub cause: Option<Box<Condition>>,
    /// The last known use.
    pub last_use: Option<Timestamp>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// The next step of its automation.
    pub next: Option<Step>,
    /// Its exam, if it is the machine of one.
    pub exam: Option<Box<Exam>>,
}

/// An Instance.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Instance")]
pub struct Found {
    /// Its key.
    pub key: ObjectKey,
    /// The course that it counts against.
    pub course: Text,
    /// The machine.
    pub machine: Machine,
}

impl From<Instance> for Found {
    fn from(instance: Instance) -> Self {
        let standing = Standing::of(&instance);
        let facts = Facts {
            instance: &instance,
            owner: None,
            template: None,
            managers: None,
            warnings: Ok(Vec::new()),
        };
        let why = facts.why();
        let cause = why.cause().filter(|_| standing.is_unready()).map(|cause| {
            let message = Text::from(&*cut(&cause.message, MOST_OF_CAUSE));
            Box::new(Condition { message, ..cause.clone() })
        });
        let machine = Machine {
            title: short(title(&instance)),
            template: instance.spec.template_ref.clone(),
            tenant: instance.spec.tenant_ref.name.clone(),
            standing,
            cause,
            last_use: last_use(&instance),
            created: created(&instance),
            next: why.next.iter().min_by_key(|step| step.order()).cloned(),
            exam: Exam::of(&instance).map(Box::new),
        };
        let course = instance.label(labels::WORKSPACE).map(Text::interned).unwrap_or_default();
        Self { key: ObjectKey::of(&instance), course, machine }
    }
}

fn short(text: &str) -> Text {
    Text::from(&*cut(text, MOST_OF_TEXT))
}

impl Person {
    /// Returns about the number of bytes in memory.
    pub fn bytes(&self) -> usize {
        let Self { first, last, email, namespace } = self;
        let texts = [first, last, email, namespace];
        size_of::<Self>() + texts.iter().map(|text| text.len() + 32).sum::<usize>()
    }
}

impl Machine {
    /// Returns about the number of bytes in memory.
    pub fn bytes(&self) -> usize {
        let cause = self.cause.as_ref().map_or(0, |cause| size_of::<Condition>() + cause.message.len());
        let exam = self.exam.as_ref().map_or(0, |exam| exam.bytes());
        size_of::<Self>() + self.title.len() + cause + exam
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controllers::dashboard::tests::fixtures::{condition, read};

    fn member(status: &Value) -> Member {
        let workspaces = json!([{"name": "tea", "role": "user"}, {"name": "net", "role": "manager"},
            {"name": "os", "role": "candidate"}, {"name": "ml", "role": "guest"}]);
        let spec = json!({"firstName": "Ada", "lastName": "R".repeat(500), "email": "ada@example.org", "workspaces": workspaces});
        // Users may patch these labels.
        let labels = json!({"crownlabs.polito.it/workspace-net": "user"});
        read(json!({"metadata": {"name": "ada.rossi", "labels": labels}, "spec": spec, "status": status}))
    }

    #[test]
    fn a_tenant_is_a_student_of_the_courses_that_its_spec_names_with_the_role_user() {
        let member = member(&json!({}));
        let courses = ["tea", "net", "os", "ml", "none"].map(|course| member.is_student_of(course));
        assert_eq!(courses, [true, false, false, false, false]);
        assert_eq!(member.person.last.chars().count(), MOST_OF_TEXT);
    }

    #[test]
    fn the_namespace_of_a_person_is_the_one_in_the_status_or_the_one_that_will_be_created() {
        let namespace = |status: Value| member(&status).person.namespace;
        assert_eq!(&*namespace(json!({})), "tenant-ada-rossi");
        let created = json!({"personalNamespace": {"created": true, "name": "tenant-other"}});
        assert_eq!(&*namespace(created), "tenant-other");
    }

    #[test]
    fn a_machine_keeps_what_the_page_shows() {
        let status = json!({"phase": "Failed", "conditions": [condition("Ready", "False", "ImagePullFailed", &"x".repeat(5_000))],
            "inactivity": {"since": "2026-11-19T10:00:00Z", "deadline": "2026-11-27T06:00:00Z"},
            "expiration": {"since": "2026-11-19T10:00:00Z", "nextWarning": "2026-11-26T06:00:00Z"}});
        let object = |status: &Value| -> Found {
            let labels = json!({"crownlabs.polito.it/workspace": "tea"});
            let metadata = json!({"name": "vm", "namespace": "tenant-ada", "labels": labels, "creationTimestamp": "2026-11-20T09:00:00Z"});
            let spec = json!({"template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "workspace-tea"},
                "tenant.crownlabs.polito.it/TenantRef": {"name": "eve"}, "running": true});
            read(json!({"metadata": metadata, "spec": spec, "status": status}))
        };
        let Found { key, course, machine } = object(&status);
        assert_eq!((key, &*course), (ObjectKey::new("tenant-ada", "vm"), "tea"));
        assert_eq!((machine.standing, &*machine.title, &*machine.tenant), (Standing::Failed, "vm", "eve"));
        let cause = machine.cause.as_deref().expect("a cause");
        assert_eq!((&*cause.reason, cause.message.chars().count()), ("ImagePullFailed", MOST_OF_CAUSE));
        let at = |machine: &Machine| machine.next.as_ref().map(|step| step.next.at().0.to_string());
        assert_eq!(at(&machine).as_deref(), Some("2026-11-27T06:00:00Z"), "an action comes before a warning");
        assert_eq!(machine.last_use.map(|at| at.to_string()).as_deref(), Some("2026-11-19T10:00:00Z"));
        let ready =
            object(&json!({"phase": "Ready", "conditions": [condition("Reconciled", "False", "X", "y")]}));
        assert_eq!((ready.machine.standing, ready.machine.cause), (Standing::Ready, None));
        assert!(machine.bytes() < 2_000);
    }
}
