//! Selects the objects of a kind that a store holds.

use serde_json::Value;

/// The conditions on the watched objects of a kind. An object has to satisfy all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only objects in this namespace. A Role is then sufficient for the requests.
    pub namespace: Option<String>,
    /// A condition on their labels.
    pub label: Option<Label>,
    /// Only the object with this name in a namespace.
    pub name: Option<String>,
}

/// A condition on a label, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// The label exists.
    Present(&'static str),
    /// The label exists and has this value.
    Is(&'static str, &'static str),
    /// The label does not exist.
    Absent(&'static str),
}

impl Selection {
    /// All objects.
    pub const ALL: Self = Self { namespace: None, label: None, name: None };

    /// The objects that satisfy this condition.
    pub const fn of(label: Label) -> Self {
        Self { label: Some(label), ..Self::ALL }
    }

    /// The objects with this label, regardless of its value.
    pub const fn labelled(key: &'static str) -> Self {
        Self::of(Label::Present(key))
    }

    /// The objects with this label and value.
    pub const fn label(key: &'static str, value: &'static str) -> Self {
        Self::of(Label::Is(key, value))
    }

    /// The objects with this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::ALL }
    }

    /// Restricts the selection to this namespace.
    #[must_use]
    pub fn within(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Returns the label selector; `None` if there is no condition on labels.
    pub fn label_selector(&self) -> Option<String> {
        self.label.map(|label| match label {
            Label::Present(key) => key.to_owned(),
            Label::Is(key, value) => format!("{key}={value}"),
            Label::Absent(key) => format!("!{key}"),
        })
    }

    /// Returns the field selector; `None` if there is no condition on the name.
    pub fn field_selector(&self) -> Option<String> {
        self.name.as_ref().map(|name| format!("metadata.name={name}"))
    }

    /// Returns the label that all selected objects have, with its value if that is fixed; `None` if there is no such
    /// label.
    pub fn label_of_all(&self) -> Option<(&'static str, Option<&'static str>)> {
        match self.label? {
            Label::Present(key) => Some((key, None)),
            Label::Is(key, value) => Some((key, Some(value))),
            Label::Absent(_) => None,
        }
    }

    /// Returns the namespace of the requests; empty for the whole cluster.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// Returns the query parameters of a list; empty for all objects.
    pub fn query(&self) -> String {
        let parameters = [("labelSelector", self.label_selector()), ("fieldSelector", self.field_selector())];
        // The characters of selectors that must be encoded in a query.
        let encoded = |text: String| text.replace('=', "%3D").replace('/', "%2F");
        let given = parameters.into_iter().filter_map(|(name, text)| Some((name, encoded(text?))));
        given.map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join("&")
    }

    /// Whether an object, as JSON, is selected.
    pub fn matches(&self, object: &Value) -> bool {
        let has = |member: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| object["metadata"][member] == **wanted)
        };
        let found = |key: &str| object["metadata"]["labels"][key].as_str();
        let is_labelled = self.label.is_none_or(|label| match label {
            Label::Present(key) => found(key).is_some(),
            Label::Is(key, value) => found(key) == Some(value),
            Label::Absent(key) => found(key).is_none(),
        });
        is_labelled && has("namespace", &self.namespace) && has("name", &self.name)
    }
}
