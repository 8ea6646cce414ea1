//! The action of the page.

use crate::api::instance::InstanceKind;
use crate::controllers::dashboard::action::entry::{Action, Form, NewInstance, Place, Plan, Right};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;

/// Creates the machine that opens `MyDrive`.
pub const OPEN: Action = Action {
    name: "files.open",
    path: "/files/open",
    page: paths::FILES,
    right: Right::to::<InstanceKind>("create"),
    place: Place::Main,
    fields: &[],
    plan: Plan::CreateInstance(open),
};

/// All actions of the page.
pub const ACTIONS: &[&Action] = &[&OPEN];

fn open(form: &Form<'_>) -> Result<NewInstance, Problem> {
    let template = form.drive_template.and_then(|of| paths::machine(&of.namespace, &of.name));
    Ok(NewInstance::new(form.new_name()?.to_owned(), template.ok_or(Problem::Gone)?))
}
