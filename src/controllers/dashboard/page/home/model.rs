//! What the first page shows.

use crate::api::instance::InstanceKind;
use crate::api::names::check_instance;
use crate::api::promise::Promise;
use crate::api::quota::Scope;
use crate::api::usage::{self, Share};
use crate::api::why::Step;
use crate::api::{Instance, Template, labels};
use crate::controllers::dashboard::page::links;
use crate::controllers::dashboard::page::standing::Standing;
use crate::controllers::dashboard::page::student::{self, Blocked, Student, template_title, title};
use crate::controllers::dashboard::page::view::View;

/// The first page.
#[derive(Debug, Clone, Default)]
pub struct Home {
    /// The machines.
    pub cards: Vec<Card>,
    /// The courses with their Templates.
    pub courses: Vec<Course>,
}

/// Whether a machine can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// It runs, or is being deleted, or the user may not.
    No,
    /// It can.
    Yes,
    /// It cannot now.
    Blocked(Blocked),
}

/// A machine.
#[derive(Debug, Clone)]
pub struct Card {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid, for which an action is meant.
    pub uid: String,
    /// What it is called.
    pub title: String,
    /// What its Template is called; `None` if that is not known.
    pub template: Option<String>,
    /// What its course is called.
    pub course: String,
    /// Its state.
    pub standing: Standing,
    /// Reason and sentence of the first thing that it waits for.
    pub cause: Option<(String, String)>,
    /// The next deadline, or warning.
    pub next: Option<Step>,
    /// Where it is used.
    pub connect: Option<String>,
    /// Whether it can be started.
    pub start: Start,
    /// Whether it can be stopped.
    pub can_stop: bool,
    /// Whether "Keep" would move a deadline.
    pub can_keep: bool,
    /// Whether it can be deleted.
    pub can_delete: bool,
}

/// A course with its Templates.
#[derive(Debug, Clone)]
pub struct Course {
    /// What it is called; `None` for the personal workspace.
    pub title: Option<String>,
    /// How much of its quota is used.
    pub left: Vec<Share>,
    /// Its Templates.
    pub offers: Vec<Offer>,
}

/// A Template of which a machine can be made.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it is called.
    pub title: String,
    /// What it says of itself.
    pub description: String,
    /// What a machine of it uses.
    pub size: Vec<Share>,
    /// Whether machines of it keep a disk.
    pub is_persistent: bool,
    /// Why no machine can be made of it now.
    pub blocked: Option<Blocked>,
    /// The name of the machine that is made: sent twice, it is one.
    pub instance: String,
}

impl Home {
    /// The page of a user.
    pub fn of(view: &View<'_>, student: &Student<'_>) -> Self {
        let cards = student.instances().map(|instance| Card::of(view, student, instance)).collect();
        let courses = student.scopes().iter().map(|scope| Course::of(view, student, scope)).collect();
        Self { cards, courses }
    }
}

impl Card {
    /// The card of an Instance.
    pub fn of(view: &View<'_>, student: &Student<'_>, instance: &Instance) -> Self {
        let template = student.template(&instance.spec.template_ref);
        let standing = Standing::of(instance);
        let why = student.facts(instance).why();
        let first = why.waits.into_iter().next();
        let explains = matches!(
            standing,
            Standing::Importing | Standing::Starting | Standing::Quota | Standing::Failed | Standing::Blocked
        );
        let namespace = instance.namespace();
        let may_patch = student.may::<InstanceKind>(namespace, "patch");
        let is_there = !instance.is_terminating();
        Self {
            namespace: namespace.to_owned(),
            name: instance.name().to_owned(),
            uid: instance.uid().to_owned(),
            title: title(instance).to_owned(),
            template: template.map(|template| template_title(template).to_owned()),
            course: student::scope_title(student, view.language, scope(student, instance, template).as_ref()),
            standing,
            cause: first
                .filter(|_| explains)
                .map(|cause| (cause.reason.to_string(), cause.message.to_string())),
            next: why.next.into_iter().min_by_key(Step::order),
            connect: connect(instance, standing),
            start: start(student, instance),
            can_stop: is_there && may_patch && instance.spec.running && keeps_disk(instance, template),
            can_keep: is_there && may_patch && has_deadline(instance),
            can_delete: is_there && student.may::<InstanceKind>(namespace, "delete"),
        }
    }

    /// The parts of its path, and of that of an action.
    pub fn path<'a>(&'a self, action: &[&'a str]) -> Vec<&'a str> {
        let own = ["machines", self.namespace.as_str(), self.name.as_str()];
        own.into_iter().chain(action.iter().copied()).collect()
    }
}

/// The quota that it counts against. Of one whose Template is gone, its label says it.
pub fn scope(student: &Student<'_>, instance: &Instance, template: Option<&Template>) -> Option<Scope> {
    match template {
        Some(template) => student.scope(template),
        None => instance.label(labels::WORKSPACE).map(|name| Scope::Workspace(name.to_owned())),
    }
}

/// Where a machine is used, once it can be.
fn connect(instance: &Instance, standing: Standing) -> Option<String> {
    let url = instance.status.open_url();
    (standing == Standing::Ready).then(|| links::web(url).map(str::to_owned)).flatten()
}

/// Whether it can be stopped and started again. Of one whose Template is gone, its label says it.
fn keeps_disk(instance: &Instance, template: Option<&Template>) -> bool {
    template.map_or_else(
        || instance.label(labels::PERSISTENT) == Some("true"),
        |template| template.spec.is_persistent(),
    )
}

fn start(student: &Student<'_>, instance: &Instance) -> Start {
    if instance.spec.running || instance.is_terminating() {
        return Start::No;
    }
    match student.can_start(instance) {
        Ok(()) => Start::Yes,
        Err(Blocked::NoRight) => Start::No,
        Err(blocked) => Start::Blocked(blocked),
    }
}

/// Whether there is a deadline that a use moves: its age is none.
fn has_deadline(instance: &Instance) -> bool {
    let status = &instance.status;
    let has =
        |promise: &Option<Box<Promise>>| promise.as_ref().is_some_and(|promise| promise.deadline.is_some());
    has(&status.inactivity) || has(&status.destruction)
}

impl Course {
    fn of(view: &View<'_>, student: &Student<'_>, scope: &Scope) -> Self {
        let quotas = student.quotas();
        let used = quotas.used(scope, "", &mut Vec::new());
        let left = quotas.shares(scope, student.tenant().name(), &used).unwrap_or_default();
        let is_of = |template: &&Template| student.scope(template).as_ref() == Some(scope);
        let mut offers: Vec<Offer> =
            student.templates().filter(is_of).map(|template| Offer::of(view, student, template)).collect();
        offers.sort_by_cached_key(|offer| (offer.title.to_lowercase(), offer.name.clone()));
        let title = match scope {
            Scope::Workspace(name) => Some(student.course(name)),
            Scope::Personal => None,
        };
        Self { title, left: left.into_iter().filter(|share| share.limit.is_some()).collect(), offers }
    }
}

impl Offer {
    /// A Template.
    pub fn of(view: &View<'_>, student: &Student<'_>, template: &Template) -> Self {
        Self {
            namespace: template.namespace().to_owned(),
            name: template.name().to_owned(),
            title: template_title(template).to_owned(),
            description: template.spec.description.clone(),
            size: usage::size(&template.spec),
            is_persistent: template.spec.is_persistent(),
            blocked: student.can_create(template).err(),
            instance: new_name(template, view.fresh),
        }
    }
}

/// The name of a new machine: that of its Template and a random part, as short as its objects need it.
pub fn new_name(template: &Template, fresh: &str) -> String {
    let environments = &template.spec.environment_list;
    let fits = |name: &str| {
        environments.iter().all(|environment| check_instance(name, Some(&environment.name)).is_ok())
            && check_instance(name, None).is_ok()
    };
    let plain = template.name().replace('.', "-");
    let lengths = (0..=plain.len()).rev();
    let mut names = lengths.filter_map(|length| {
        let begin = plain.get(..length)?.trim_end_matches('-');
        Some(if begin.is_empty() { format!("m-{fresh}") } else { format!("{begin}-{fresh}") })
    });
    names.find(|name| fits(name)).unwrap_or_else(|| format!("m-{fresh}"))
}
