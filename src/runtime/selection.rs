//! Which objects of a kind a store holds.

use serde_json::Value;

/// Which objects of a kind are watched: those for which each of its members holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// They are in this namespace. They are asked for in it alone, for which a Role is enough.
    pub namespace: Option<String>,
    /// What their labels say.
    pub label: Option<Label>,
    /// They have this name.
    pub name: Option<String>,
}

/// A condition about a label, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// It is there.
    Present(&'static str),
    /// It is there, with this value.
    Is(&'static str, &'static str),
    /// It is not there.
    Absent(&'static str),
}

impl Selection {
    /// All objects.
    pub const ALL: Self = Self { namespace: None, label: None, name: None };

    /// Those for which this holds.
    pub const fn of(label: Label) -> Self {
        Self { label: Some(label), ..Self::ALL }
    }

    /// Those with this label, whatever its value.
    pub const fn labelled(key: &'static str) -> Self {
        Self::of(Label::Present(key))
    }

    /// Those with this label and value.
    pub const fn label(key: &'static str, value: &'static str) -> Self {
        Self::of(Label::Is(key, value))
    }

    /// Those of this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::ALL }
    }

    /// Those of them that are in this namespace.
    #[must_use]
    pub fn within(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// The label selector; `None` where they are not selected by a label.
    pub fn label_selector(&self) -> Option<String> {
        self.label.map(|label| match label {
            Label::Present(key) => key.to_owned(),
            Label::Is(key, value) => format!("{key}={value}"),
            Label::Absent(key) => format!("!{key}"),
        })
    }

    /// The field selector; `None` where they are not selected by name.
    pub fn field_selector(&self) -> Option<String> {
        self.name.as_ref().map(|name| format!("metadata.name={name}"))
    }

    /// The label that they have, with its value where it has to have one; `None` where they are selected otherwise.
    pub fn label_of_all(&self) -> Option<(&'static str, Option<&'static str>)> {
        match self.label? {
            Label::Present(key) => Some((key, None)),
            Label::Is(key, value) => Some((key, Some(value))),
            Label::Absent(_) => None,
        }
    }

    /// The namespace in which they are asked for; empty for all of the cluster.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The parameters that select them in the path of a list; empty for all.
    pub fn query(&self) -> String {
        let parameters = [("labelSelector", self.label_selector()), ("fieldSelector", self.field_selector())];
        // Of the characters of a selector, these are not allowed in a query as they are.
        let encoded = |text: String| text.replace('=', "%3D").replace('/', "%2F");
        let given = parameters.into_iter().filter_map(|(name, text)| Some((name, encoded(text?))));
        given.map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join("&")
    }

    /// Whether an object, as JSON, is one of them.
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
