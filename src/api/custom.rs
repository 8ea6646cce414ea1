//! What a custom resource has beyond any [`Kind`]: a schema and columns, from which its CRD is made.

use super::object::Kind;

/// A column of `kubectl get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// The `OpenAPI` type: `string`, `date`, `boolean`, …
    pub type_: &'static str,
    /// Where the value stands, as a JSON path.
    pub json_path: &'static str,
    /// 0 shows the column always, anything above only with `-o wide`.
    pub priority: i32,
}

impl Column {
    /// A text that is always shown.
    #[must_use]
    pub const fn text(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: "string", json_path, priority: 0 }
    }

    /// A text that is shown with `-o wide` only.
    #[must_use]
    pub const fn wide(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: "string", json_path, priority: 10 }
    }
}

/// How old the object is.
pub const AGE: Column =
    Column { name: "Age", type_: "date", json_path: ".metadata.creationTimestamp", priority: 0 };

/// A kind that this project defines.
pub trait CustomResource: Kind<Spec: schemars::JsonSchema, Status: schemars::JsonSchema> {
    /// Short names for `kubectl`.
    const SHORT_NAMES: &'static [&'static str] = &[];
    /// Columns of `kubectl get`; none leaves it name and age.
    const COLUMNS: &'static [Column];
    /// One sentence, the description in the CRD.
    const DESCRIPTION: &'static str;
}
