//! The actions on shared volumes. A volume in use is deleted only once nothing mounts it, whoever deletes it.

use serde_json::json;

use crate::api::shared_volume::SharedVolumeKind;
use crate::api::shown::{MOST, is_control};
use crate::controllers::dashboard::action::entry::{
    Action, Field, Form, Input, NewObject, Place, Plan, Right, Target,
};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::ObjectKey;
use crate::runtime::plan::KindInfo;

const KIND: KindInfo = KindInfo::of::<SharedVolumeKind>();
/// The maximum size of a new volume in GiB. The quota of the namespace limits all volumes together.
const MOST_GIB: u32 = 10_240;

/// Creates a volume.
pub const CREATE: Action = Action {
    fields: &[
        Field { name: "prettyName", id: "volume-title", input: Input::Line { max: MOST, pattern: "" } },
        Field { name: "size", id: "volume-size", input: Input::Number { min: 1, max: MOST_GIB } },
    ],
    ..action(
        "volume.create",
        "/courses/{course}/volumes/create",
        "create",
        Place::Section,
        Plan::Create(create),
    )
};
/// Deletes a volume.
pub const DELETE: Action = action(
    "volume.delete",
    "/courses/{course}/volumes/delete",
    "delete",
    Place::Question,
    Plan::Delete(Target { kind: KIND, key }),
);

/// All actions.
pub const ACTIONS: &[&Action] = &[&CREATE, &DELETE];

const fn action(
    name: &'static str,
    path: &'static str,
    verb: &'static str,
    place: Place,
    plan: Plan,
) -> Action {
    let right = Right::to::<SharedVolumeKind>(verb);
    Action { name, path, page: paths::VOLUMES, right, place, fields: &[], plan }
}

/// Returns the volume that the hidden fields of a form name.
fn key(form: &Form<'_>) -> Option<ObjectKey> {
    paths::machine(form.get("namespace"), form.get("name"))
}

fn create(form: &Form<'_>) -> Result<NewObject, Problem> {
    let title = form.get("prettyName").trim();
    if title.is_empty() || title.chars().count() > MOST || title.contains(is_control) {
        return Err(Problem::VolumeTitle);
    }
    let size = form.get("size").trim().parse::<u32>().ok().filter(|size| (1..=MOST_GIB).contains(size));
    let size = size.ok_or(Problem::VolumeSize)?;
    let key = key(form).ok_or(Problem::Form)?;
    let body = json!({"spec": {"prettyName": title, "size": format!("{size}Gi")}});
    Ok(NewObject { kind: KIND, key, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::dashboard::http::fields::Fields;

    fn new(fields: &str) -> Result<NewObject, Problem> {
        create(&Form { fields: Fields::parse(fields.as_bytes()), ..Form::default() })
    }

    #[test]
    fn a_form_becomes_a_volume_with_its_size_in_gibibytes() {
        let body = json!({"spec": {"prettyName": "Course materials", "size": "10Gi"}});
        let key = ObjectKey::new("workspace-net", "volume-k3x9");
        let wanted = NewObject { kind: KIND, key, body };
        let fields = "namespace=workspace-net&name=volume-k3x9&prettyName=+Course+materials+&size=10";
        assert_eq!(new(fields), Ok(wanted));
    }

    #[test]
    fn an_invalid_field_is_reported() {
        let of = |name: &str, title: &str, size: &str| {
            new(&format!("namespace=workspace-net&name={name}&prettyName={title}&size={size}")).map(drop)
        };
        for size in ["", "0", "-1", "1.5", "10241", "10Gi", "99999999999"] {
            assert_eq!(of("v", "Title", size), Err(Problem::VolumeSize), "{size}");
        }
        for title in ["", "+", "a%00b", "a%E2%80%AEb", &"x".repeat(201)] {
            assert_eq!(of("v", title, "1"), Err(Problem::VolumeTitle), "{title}");
        }
        assert_eq!([of("..", "Title", "1"), of("v", "Title", "1")], [Err(Problem::Form), Ok(())]);
    }
}
