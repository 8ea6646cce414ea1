//! The actions of the home page.

use crate::api::instance::InstanceKind;
use crate::controllers::dashboard::action::entry::{Action, Form, NewInstance, Place, Plan, Right};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;

/// Creates a machine.
pub const CREATE: Action = Action {
    name: "machines.create",
    path: "/machines",
    page: paths::HOME,
    right: Right::to::<InstanceKind>("create"),
    place: Place::Main,
    fields: &[],
    plan: Plan::CreateInstance(create),
};

/// All actions of the page.
pub const ACTIONS: &[&Action] = &[&CREATE];

fn create(form: &Form<'_>) -> Result<NewInstance, Problem> {
    let template = paths::machine(form.get("templateNamespace"), form.get("template"));
    Ok(NewInstance { name: form.new_name()?.to_owned(), template: template.ok_or(Problem::Form)? })
}
