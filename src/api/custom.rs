//! The parts that our custom resources have in addition to a [`Kind`]: a schema, short names and printer columns. The
//! `CustomResourceDefinition` is generated from them.

use super::object::Kind;

/// A printer column: a column of `kubectl get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The heading of the column.
    pub name: &'static str,
    /// The `OpenAPI` type: `string`, `date`, `boolean`, …
    pub type_: &'static str,
    /// The JSON path of the value, for example `.status.phase`.
    pub json_path: &'static str,
    /// 0 shows the column always, any higher number only with `-o wide`.
    pub priority: i32,
}

impl Column {
    /// A column of text that is always shown.
    pub const fn text(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: "string", json_path, priority: 0 }
    }

    /// A column of text that is only shown with `-o wide`.
    pub const fn wide(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: "string", json_path, priority: 10 }
    }
}

/// The column with the age of the object.
pub const AGE: Column =
    Column { name: "Age", type_: "date", json_path: ".metadata.creationTimestamp", priority: 0 };

/// The columns of `kubectl get -o wide` that say why an object is not ready, from its condition `Ready`.
pub const REASON: Column = Column::wide("Reason", ".status.conditions[?(@.type==\"Ready\")].reason");
/// See [`REASON`].
pub const MESSAGE: Column = Column::wide("Message", ".status.conditions[?(@.type==\"Ready\")].message");

/// The category of all our kinds: `kubectl get crownlabs` lists their objects.
pub const CATEGORY: &str = "crownlabs";

/// A rule in the Common Expression Language. The API server rejects changes of an object that violate it. The rule
/// compares the object with its previous version (`oldSelf`), so that stored objects stay valid:
/// `docs/decisions/0007-rules-in-crds.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The expression. It is true for a valid change.
    pub rule: &'static str,
    /// The message to the user when the rule rejects a change.
    pub message: &'static str,
}

/// A kind that this project defines, as a custom resource.
pub trait CustomResource: Kind<Spec: schemars::JsonSchema, Status: schemars::JsonSchema> {
    /// Short names for `kubectl`.
    const SHORT_NAMES: &'static [&'static str];
    /// Columns of `kubectl get`. If the list is empty, `kubectl` shows name and age.
    const COLUMNS: &'static [Column];
    /// The description of the kind in its definition: one sentence.
    const DESCRIPTION: &'static str;
    /// Rules for changes of the object.
    const RULES: &'static [Rule] = &[];
}
