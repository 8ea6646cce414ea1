//! The model of the card of a machine.

use super::actions::{MachineAction, Offer, Situation};
use crate::api::quota::Scope;
use crate::api::why::Step;
use crate::api::{Instance, Template, labels};
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::student::{self, Student, Warning, template_title, title};
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
    /// The reason and message of the first condition that it waits for.
    pub cause: Option<(String, String)>,
    /// The next deadline or warning.
    pub next: Option<Step>,
    /// The URL that opens it.
    pub connect: Option<String>,
    /// Why it may not start immediately.
    pub warning: Option<Warning>,
    /// The actions that the user can do.
    pub offers: Vec<(&'static MachineAction, Offer)>,
}

impl Card {
    /// Returns the card of an Instance.
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
        Self {
            namespace: namespace.to_owned(),
            name: instance.name().to_owned(),
            uid: instance.uid().to_owned(),
            title: title(instance).to_owned(),
            template: template.map(|template| template_title(template).to_owned()),
            course: student::scope_title(student, view.texts(), scope(student, instance, template).as_ref()),
            standing,
            cause: first
                .filter(|_| explains)
                .map(|cause| (cause.reason.to_string(), cause.message.to_string())),
            next: why.next.into_iter().min_by_key(Step::order),
            connect: connect(instance, standing),
            warning: template.and_then(student::warning),
            offers: Situation { student, instance, template }.offers(),
        }
    }

    /// Returns the path of its page.
    pub fn path(&self) -> String {
        self.fill(paths::MACHINE)
    }

    /// Returns the path that receives the form of an action.
    pub fn action(&self, action: &Action) -> String {
        self.fill(action.path)
    }

    fn fill(&self, pattern: &str) -> String {
        paths::fill(pattern, |parameter| {
            links::encoded(if parameter == "namespace" { &self.namespace } else { &self.name })
        })
    }

    /// Returns the offer of an action.
    pub fn offer(&self, action: &MachineAction) -> Option<&Offer> {
        let mut offers = self.offers.iter();
        offers.find(|(offered, _)| offered.action.name == action.action.name).map(|(_, offer)| offer)
    }
}

/// Returns the quota that an Instance counts against. If its Template is missing, its label decides.
pub fn scope(student: &Student<'_>, instance: &Instance, template: Option<&Template>) -> Option<Scope> {
    match template {
        Some(template) => student.scope(template),
        None => instance.label(labels::WORKSPACE).map(|name| Scope::Workspace(name.to_owned())),
    }
}

/// Returns the URL that opens a machine, if the machine is ready.
fn connect(instance: &Instance, standing: Standing) -> Option<String> {
    let url = instance.status.open_url();
    (standing == Standing::Ready).then(|| links::web(url).map(str::to_owned)).flatten()
}
