//! The model of the card of a machine.

use super::actions::{MachineAction, Offer, Situation};
use super::left::Left;
use crate::api::openings::Way;
use crate::api::quota::{Holder, PERSONAL, Scope};
use crate::api::why::lacks_template;
use crate::api::{Condition, Instance};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::progress::Progress;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::student::{self, Student, template_title, title};
use crate::controllers::dashboard::texts::Texts;
use crate::controllers::dashboard::ui::links;
use crate::controllers::dashboard::ui::view::View;

/// A machine.
#[derive(Debug, Clone)]
pub struct Card {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid, which actions send along.
    pub uid: String,
    /// Its title.
    pub title: String,
    /// The title of its Template; `None` if it is not known.
    pub template: Option<String>,
    /// The title of its course.
    pub course: String,
    /// Its state.
    pub standing: Standing,
    /// The condition that explains its state.
    pub cause: Option<Condition>,
    /// The progress of its start.
    pub progress: Option<Progress>,
    /// Whether it runs and cannot be started again, because its Template was deleted.
    pub is_last_run: bool,
    /// Whether it is off and keeps no disk.
    pub is_empty: bool,
    /// The time until it is stopped or deleted.
    pub left: Option<Left>,
    /// The links that open it, the main one first; empty until it is ready.
    pub openings: Vec<Opening>,
    /// The condition that says why it may not start immediately.
    pub warning: Option<Condition>,
    /// The actions that the user can do.
    pub offers: Vec<(&'static MachineAction, Offer)>,
}

/// A link that opens a machine, with its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// Its desktop or web application, or the console in its place.
    Connect(String),
    /// A terminal.
    Terminal(String),
    /// The console.
    Console(String),
}

impl Opening {
    /// Returns the URL.
    pub fn url(&self) -> &str {
        match self {
            Self::Connect(url) | Self::Terminal(url) | Self::Console(url) => url,
        }
    }
}

impl Card {
    /// Returns the card of an Instance.
    pub fn of(view: &View<'_>, student: &Student<'_>, instance: &Instance) -> Self {
        let template = student.template(&instance.spec.template_ref);
        let standing = Standing::of(instance);
        let why = student.facts(instance).why();
        Self {
            namespace: instance.namespace().to_owned(),
            name: instance.name().to_owned(),
            uid: instance.uid().to_owned(),
            title: title(instance).to_owned(),
            template: template.map(|template| template_title(template).to_owned()),
            course: course(view.texts(), student, instance),
            standing,
            cause: why.cause().filter(|_| standing.is_unready()).cloned(),
            progress: Progress::of(instance, student.instances()),
            is_last_run: instance.spec.running && lacks_template(&instance.status),
            is_empty: standing == Standing::Off
                && template.is_some_and(|template| !template.spec.is_persistent()),
            left: Left::of(instance, &why),
            openings: if standing == Standing::Ready { openings(student, instance) } else { Vec::new() },
            warning: template.and_then(student::warning).cloned(),
            offers: Situation { student, instance, template }.offers(),
        }
    }

    /// Returns the path of its page, or the path of an action on it, for a pattern of the router.
    pub fn path(&self, pattern: &str) -> String {
        links::of_machine(pattern, &self.namespace, &self.name)
    }

    /// Returns the offer of an action.
    pub fn offer(&self, action: &MachineAction) -> Option<&Offer> {
        let mut offers = self.offers.iter();
        offers.find(|(offered, _)| offered.action.name == action.action.name).map(|(_, offer)| offer)
    }
}

/// Returns the links that open a machine. Without a page of its own, it has a terminal and a console.
fn openings(student: &Student<'_>, instance: &Instance) -> Vec<Opening> {
    let facts = student.openings(instance);
    let Some((environment, ways)) = facts.connect() else { return Vec::new() };
    let path = |pattern| links::of_environment(pattern, instance.namespace(), instance.name(), environment);
    let console = || ways.has_console.then(|| path(paths::CONSOLE));
    match ways.connect {
        None => Vec::new(),
        Some(Way::Web) => {
            ways.web.and_then(links::web).map(|url| Opening::Connect(url.to_owned())).into_iter().collect()
        }
        Some(Way::Console) => console().map(Opening::Connect).into_iter().collect(),
        Some(Way::Terminal) => {
            let terminal = Opening::Terminal(path(paths::TERMINAL));
            std::iter::once(terminal).chain(console().map(Opening::Console)).collect()
        }
    }
}

/// Returns the title of the course that an Instance counts against.
fn course(texts: &Texts, student: &Student<'_>, instance: &Instance) -> String {
    match student.quotas().scope_of(&Holder::of(instance)) {
        None => texts.no_course_name.clone(),
        Some(Scope::Workspace(name)) if name == PERSONAL => texts.personal.clone(),
        Some(scope) => student.scope_title(texts, &scope),
    }
}
