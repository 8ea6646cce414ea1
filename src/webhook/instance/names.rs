//! The name of a new Instance, which is part of the names of its objects.

use serde::Deserialize as _;

use crate::api::Instance;
use crate::api::denial::DenialReason;
use crate::api::names::check_instance;
use crate::config::Layout;
use crate::webhook::decision::Denial;
use crate::webhook::review::{Operation, Request};
use crate::webhook::view::View;

/// Refuses to create an Instance whose name would be too long for the names of its objects in this layout. Stored
/// Instances keep their names, which cannot change.
pub fn check(request: &Request, layout: Layout, view: &dyn View) -> Result<(), Denial> {
    if request.operation != Operation::Create {
        return Ok(());
    }
    let name = request.object_name();
    let template = Instance::deserialize(&*request.object).ok().and_then(|instance| {
        let reference = instance.spec.template_ref;
        view.template(&reference.namespace, &reference.name)
    });
    let environments = template.iter().flat_map(|template| &template.spec.environment_list);
    let environments: Vec<&str> = environments.map(|environment| &*environment.name).collect();
    let checked = match environments[..] {
        [] => check_instance(name, None),
        [_] if layout == Layout::Classic => check_instance(name, None),
        _ => environments.iter().try_for_each(|environment| check_instance(name, Some(environment))),
    };
    checked.map_err(|error| Denial::malformed(error.to_string()).because(DenialReason::NameTooLong, ""))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::webhook::fixture::{TestCluster, instance, request};

    fn refusal(environments: &[&str], layout: Layout, length: usize) -> String {
        let environments: Vec<Value> =
            environments.iter().map(|name| json!({"name": name, "resources": {"cpu": 1}})).collect();
        let cluster = TestCluster::default().with_template_json(&json!({
            "metadata": {"namespace": "workspace-tea", "name": "lab"}, "spec": {"environmentList": environments},
        }));
        let new = instance("tenant-ada", &"a".repeat(length), "workspace-tea/lab", true);
        let checked = |old: Value| check(&request("ada", "instances", old, new.clone()), layout, &cluster);
        assert_eq!(checked(new.clone()), Ok(()), "one that is stored");
        checked(Value::Null).err().map(|denial| denial.message).unwrap_or_default()
    }

    #[test]
    fn the_objects_of_an_instance_can_have_its_name() {
        for (environments, layout, longest) in [
            (&[][..], Layout::PerEnvironment, 63),
            (&["desktop"], Layout::Classic, 63),
            (&["desktop"], Layout::PerEnvironment, 55),
            (&["desktop", "db"], Layout::Classic, 55),
            (&["a", "a-very-long-name-of-an-environment"], Layout::PerEnvironment, 28),
        ] {
            assert_eq!(refusal(environments, layout, longest), "");
            let said = refusal(environments, layout, longest + 1);
            let counted = format!("the name of the Instance has {} characters", longest + 1);
            assert!(said.starts_with(&counted) && said.contains("63"), "{said}");
            assert_eq!(said.contains(&format!("a name of at most {longest}")), longest < 63, "{said}");
        }
    }
}
