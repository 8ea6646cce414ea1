//! The actions of the home page.

use std::collections::BTreeMap;

use crate::api::instance::InstanceKind;
use crate::api::names::{check_label_value, is_label_key};
use crate::controllers::dashboard::action::entry::{
    Action, Field, Form, Input, NewInstance, Place, Plan, Right,
};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;

/// The maximum number of characters of a display name.
pub const MAX_NAME: usize = 200;
/// The display name of a new machine, which may be empty.
pub const NAME: Field =
    Field { name: "prettyName", id: "new-name", input: Input::Line { max: MAX_NAME, pattern: "" } };
/// The node label of a new machine; empty for any node.
pub const NODES: Field = Field { name: "nodes", id: "new-nodes", input: Input::OneOf(&[]) };

/// Creates a machine.
pub const CREATE: Action = Action {
    name: "machines.create",
    path: "/machines",
    page: paths::HOME,
    right: Right::to::<InstanceKind>("create"),
    place: Place::Main,
    fields: &[NAME, NODES],
    plan: Plan::CreateInstance(create),
};

/// All actions of the page.
pub const ACTIONS: &[&Action] = &[&CREATE];

fn create(form: &Form<'_>) -> Result<NewInstance, Problem> {
    let template = paths::machine(form.get("templateNamespace"), form.get("template"));
    let pretty_name = form.get(NAME.name).trim();
    if pretty_name.chars().count() > MAX_NAME {
        return Err(Problem::Name);
    }
    Ok(NewInstance {
        pretty_name: pretty_name.to_owned(),
        node_selector: node_selector(form.get(NODES.name)).ok_or(Problem::Form)?,
        ..NewInstance::new(form.new_name()?.to_owned(), template.ok_or(Problem::Form)?)
    })
}

/// Parses the choice of nodes, such as `disk=fast`; empty for any node, `None` if it is not a label.
fn node_selector(text: &str) -> Option<BTreeMap<String, String>> {
    if text.is_empty() {
        return Some(BTreeMap::new());
    }
    let (key, value) = text.split_once('=')?;
    let is_label = is_label_key(key) && check_label_value(value).is_ok();
    is_label.then(|| BTreeMap::from([(key.to_owned(), value.to_owned())]))
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::controllers::dashboard::http::fields::Fields;

    fn made(fields: &str) -> Result<NewInstance, Problem> {
        let fields = format!("name=vm-1&templateNamespace=workspace-tea&template=desktop&{fields}");
        create(&Form { fields: Fields::parse(fields.as_bytes()), ..Form::default() })
    }

    #[test]
    fn a_machine_can_get_a_name_and_a_node_label() {
        let plain = made("").expect("an Instance");
        assert_eq!((plain.pretty_name.as_str(), plain.node_selector.len()), ("", 0));
        let named = made("prettyName=+My+lab+&nodes=example.org%2Fdisk%3Dfast").expect("an Instance");
        let selector = BTreeMap::from([("example.org/disk".to_owned(), "fast".to_owned())]);
        assert_eq!((named.pretty_name.as_str(), named.node_selector), ("My lab", selector));
        assert_eq!(made(&format!("prettyName={}", "x".repeat(201))), Err(Problem::Name));
        for nodes in ["fast", "a+b%3Dc", "disk%3Da+b", "%3Dfast"] {
            assert_eq!(made(&format!("nodes={nodes}")), Err(Problem::Form), "{nodes}");
        }
    }
}
