//! The actions on Templates. The form of a Template is longer than a flash message, so [`super::save`] carries out two of
//! them, and shows the form again if they fail.

use serde_json::Value;

use super::draft::Draft;
use super::fields::TEMPLATES;
use crate::api::template::TemplateKind;
use crate::controllers::dashboard::action::entry::{
    Action, Form, NewObject, Patch, Place, Plan, Right, Target,
};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::ObjectKey;

/// The field with the namespace of the place.
pub const NAMESPACE: &str = "namespace";
/// The hidden field with the generation of the Template that the form shows.
pub const GENERATION: &str = "generation";

const TEMPLATE: Target = Target { kind: TEMPLATES, key: of_form };
const CHANGED: Plan = Plan::Patch(TEMPLATE, change);

/// Creates a Template of a course.
pub const CREATE: Action =
    action("template.create", paths::NEW_TEMPLATE, paths::TEMPLATES, Plan::Create(create));
/// Changes a Template of a course.
pub const CHANGE: Action = action("template.change", paths::EDIT_TEMPLATE, paths::TEMPLATE, CHANGED);
/// Deletes a Template of a course.
pub const DELETE: Action =
    deletes("template.delete", "/courses/{course}/templates/{template}/delete", paths::TEMPLATES);
/// Creates a Template of the personal workspace.
pub const CREATE_OWN: Action =
    action("personal.create", paths::NEW_OWN_TEMPLATE, paths::OWN_TEMPLATES, Plan::Create(create));
/// Changes a Template of the personal workspace.
pub const CHANGE_OWN: Action =
    action("personal.change", paths::EDIT_OWN_TEMPLATE, paths::OWN_TEMPLATE, CHANGED);
/// Deletes a Template of the personal workspace.
pub const DELETE_OWN: Action =
    deletes("personal.delete", "/personal/templates/{template}/delete", paths::OWN_TEMPLATES);

/// All actions.
pub const ACTIONS: &[&Action] = &[&CREATE, &CHANGE, &DELETE, &CREATE_OWN, &CHANGE_OWN, &DELETE_OWN];

const fn action(name: &'static str, path: &'static str, page: &'static str, plan: Plan) -> Action {
    let verb = if matches!(plan, Plan::Create(_)) { "create" } else { "patch" };
    Action {
        name,
        path,
        page,
        right: Right::to::<TemplateKind>(verb),
        place: Place::Section,
        fields: &[],
        plan,
    }
}

const fn deletes(name: &'static str, path: &'static str, page: &'static str) -> Action {
    let right = Right::to::<TemplateKind>("delete");
    Action { right, place: Place::Question, ..action(name, path, page, Plan::Delete(TEMPLATE)) }
}

/// Whether the page of an action carries it out itself.
pub fn is_of_page(action: &Action) -> bool {
    let own = [CREATE.path, CHANGE.path, CREATE_OWN.path, CHANGE_OWN.path];
    own.contains(&action.path)
}

fn of_form(form: &Form<'_>) -> Option<ObjectKey> {
    paths::machine(form.get(NAMESPACE), form.parameters.get("template"))
}

fn create(form: &Form<'_>) -> Result<NewObject, Problem> {
    let draft = Draft::of_form(&form.fields, &Value::Null).map_err(|_| Problem::Form)?;
    let body = draft.body();
    Ok(NewObject { kind: TEMPLATES, key: ObjectKey::new(form.get(NAMESPACE), draft.name), body })
}

fn change(stored: &Value, form: &Form<'_>) -> Patch<Value> {
    let draft = Draft::of_form(&form.fields, stored).map_err(|_| Problem::Form)?;
    let Some(patch) = draft.patch(stored) else { return Ok(None) };
    // Another user has changed the Template since the form was loaded.
    if stored["metadata"]["generation"].as_i64() != form.get(GENERATION).parse().ok() {
        return Err(Problem::Changed);
    }
    Ok(Some(patch))
}

#[cfg(test)]
mod unit_tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::dashboard::http::fields::Fields;

    fn form(fields: &[(&str, &str)]) -> Form<'static> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let parameters = Fields(vec![("template".to_owned(), "lab".to_owned())]);
        Form { parameters, fields: Fields(fields.iter().map(owned).collect()), drive_template: None }
    }

    const FIELDS: [(&str, &str); 11] = [
        ("namespace", "workspace-tea"),
        ("generation", "3"),
        ("name", " lab "),
        ("environments", "4"),
        ("prettyName", "Lab"),
        ("description", "d"),
        ("workspace", "tea"),
        ("e4.was", "vm"),
        ("e4.name", "vm"),
        ("e4.image", "x"),
        ("e4.cpu", "2"),
    ];

    #[test]
    fn a_form_creates_a_template() {
        let new = create(&form(&FIELDS)).expect("a Template");
        assert_eq!(new.key, ObjectKey::new("workspace-tea", "lab"));
        let environment = json!({
            "name": "vm", "image": "x", "resources": {"cpu": 2}, "mountMyDriveVolume": false, "guiEnabled": false,
        });
        let spec = json!({
            "prettyName": "Lab", "description": "d", "environmentList": [environment],
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "tea"},
        });
        assert_eq!(new.body, json!({"metadata": {}, "spec": spec}));
        let broken = [&FIELDS[..], &[("yaml", "a: [")]].concat();
        assert_eq!(create(&form(&broken)), Err(Problem::Form));
    }

    #[test]
    fn a_form_changes_the_template_that_it_shows_and_keeps_other_fields() {
        let mut stored = create(&form(&FIELDS)).expect("a Template").body;
        stored["metadata"] = json!({"name": "lab", "uid": "u1", "generation": 3});
        stored["spec"]["environmentList"][0]["later"] = json!(1);
        assert_eq!(change(&stored, &form(&FIELDS)), Ok(None), "nothing has changed");
        let renamed =
            FIELDS.map(|(name, value)| if name == "prettyName" { (name, "Other") } else { (name, value) });
        assert_eq!(change(&stored, &form(&renamed)), Ok(Some(json!({"spec": {"prettyName": "Other"}}))));
        let larger = FIELDS.map(|(name, value)| if name == "e4.cpu" { (name, "4") } else { (name, value) });
        let mut environment = stored["spec"]["environmentList"][0].clone();
        environment["resources"]["cpu"] = json!(4);
        let patch = json!({"spec": {"environmentList": [environment]}});
        assert_eq!(change(&stored, &form(&larger)), Ok(Some(patch)));
        stored["metadata"]["generation"] = json!(4);
        assert_eq!(change(&stored, &form(&renamed)), Err(Problem::Changed));
        assert_eq!(change(&stored, &form(&FIELDS)), Ok(None), "the form was sent twice");
        assert_eq!(of_form(&form(&FIELDS)), Some(ObjectKey::new("workspace-tea", "lab")));
    }
}
