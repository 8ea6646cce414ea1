//! Formats writes as values for programs.

use serde_json::{Map, Value, json};

use super::Previews;
use super::obstacles::Obstacles;
use super::text::verb;
use crate::runtime::apply::Write;
use crate::runtime::preview::Previewed;

/// The writes of each object that has writes or a problem, and the parts of the cluster that were not read.
pub fn changes(Previews { previews, messages }: &Previews) -> Value {
    let has_something = |found: &&Previewed| {
        !(found.writes.is_empty() && found.later.is_empty() && found.problems.is_empty())
    };
    let objects: Vec<Value> = previews.iter().filter(has_something).map(object).collect();
    json!({"objects": objects, "notRead": messages})
}

/// The same, and the obstacles.
pub fn takeover(obstacles: &Obstacles, previews: &Previews) -> Value {
    let found: Map<String, Value> =
        obstacles.sections().into_iter().map(|(name, _, found)| (name.to_owned(), json!(found))).collect();
    let mut value = changes(previews);
    value["obstacles"] = found.into();
    value["notRead"] = previews.messages.iter().chain(&obstacles.unread).cloned().collect();
    value
}

fn object(preview: &Previewed) -> Value {
    let Previewed { controller, kind, key, writes, later, problems, remarks } = preview;
    let all = |writes: &[Write]| writes.iter().map(written).collect::<Vec<_>>();
    json!({
        "loop": controller, "kind": kind, "namespace": key.namespace, "name": key.name,
        "writes": all(writes), "later": all(later), "problems": problems, "remarks": remarks,
    })
}

fn written(write: &Write) -> Value {
    let Write { verb: of, kind, key, subresource, before, body } = write;
    json!({
        "verb": verb(*of), "kind": kind.kind, "namespace": key.namespace, "name": key.name, "subresource": subresource,
        "before": before, "body": body,
    })
}
