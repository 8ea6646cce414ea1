//! Which objects of a kind a store holds.

use serde_json::Value;

/// Which objects of a kind are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// Those with this label, and with this value of it where one is given.
    Label {
        /// The key of the label.
        key: &'static str,
        /// Its value; any where it is `None`.
        value: Option<&'static str>,
    },
    /// Those without this label.
    Unlabelled(&'static str),
    /// All in this namespace. They are asked for in the namespace alone, for which a Role is enough.
    In(String),
    /// Those in this namespace that have this label, whatever its value. They are asked for in the namespace alone, for
    /// which a Role is enough.
    LabelledIn {
        /// The namespace.
        namespace: String,
        /// The key of the label.
        key: &'static str,
    },
    /// Those in this namespace that have this label and value, which are asked for in the same way.
    LabelIn {
        /// The namespace.
        namespace: String,
        /// The key of the label.
        key: &'static str,
        /// Its value.
        value: &'static str,
    },
    /// The one of this name in this namespace, in which it is asked for.
    NamedIn {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// Those of this name, in all namespaces or in one.
    Named {
        /// The namespace; all where it is `None`.
        namespace: Option<String>,
        /// The name.
        name: String,
    },
}

impl Selection {
    /// Those with this label, whatever its value.
    pub fn labelled(key: &'static str) -> Self {
        Self::Label { key, value: None }
    }

    /// Those with this label and value.
    pub fn label(key: &'static str, value: &'static str) -> Self {
        Self::Label { key, value: Some(value) }
    }

    /// Those of this name in any namespace.
    pub fn named(name: impl Into<String>) -> Self {
        Self::Named { namespace: None, name: name.into() }
    }

    /// The label selector; `None` where they are not selected by a label.
    pub fn label_selector(&self) -> Option<String> {
        match self {
            Self::Label { key, value: None } | Self::LabelledIn { key, .. } => Some((*key).to_owned()),
            Self::Label { key, value: Some(value) } | Self::LabelIn { key, value, .. } => {
                Some(format!("{key}={value}"))
            }
            Self::Unlabelled(key) => Some(format!("!{key}")),
            Self::All | Self::In(_) | Self::Named { .. } | Self::NamedIn { .. } => None,
        }
    }

    /// The field selector; `None` where they are not selected by name.
    pub fn field_selector(&self) -> Option<String> {
        match self {
            Self::Named { namespace: None, name } | Self::NamedIn { name, .. } => {
                Some(format!("metadata.name={name}"))
            }
            Self::Named { namespace: Some(namespace), name } => {
                Some(format!("metadata.name={name},metadata.namespace={namespace}"))
            }
            _ => None,
        }
    }

    /// The namespace in which they are asked for; empty for all of the cluster.
    pub fn namespace(&self) -> &str {
        match self {
            Self::In(namespace)
            | Self::LabelledIn { namespace, .. }
            | Self::LabelIn { namespace, .. }
            | Self::NamedIn { namespace, .. } => namespace,
            _ => "",
        }
    }

    /// The label that they have, with its value where it has to have one; `None` where they are selected otherwise.
    pub fn label_of_all(&self) -> Option<(&'static str, Option<&'static str>)> {
        match self {
            Self::Label { key, value } => Some((key, *value)),
            Self::LabelledIn { key, .. } => Some((key, None)),
            Self::LabelIn { key, value, .. } => Some((key, Some(value))),
            _ => None,
        }
    }

    /// The parameters that select them in the path of a list; empty for all.
    pub fn query(&self) -> String {
        let parameters = [("labelSelector", self.label_selector()), ("fieldSelector", self.field_selector())];
        // Of the characters of a selector, these are not allowed in a query as they are.
        let encoded = |text: String| text.replace('=', "%3D").replace(',', "%2C").replace('/', "%2F");
        let given = parameters.into_iter().filter_map(|(name, text)| Some((name, encoded(text?))));
        given.map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join("&")
    }

    /// Whether an object, as JSON, is one of them.
    pub fn matches(&self, object: &Value) -> bool {
        let text = |member: &str| object["metadata"][member].as_str();
        let label = |key: &str| object["metadata"]["labels"][key].as_str();
        match self {
            Self::All => true,
            Self::Label { key, value } => label(key).is_some_and(|found| value.is_none_or(|v| v == found)),
            Self::Unlabelled(key) => label(key).is_none(),
            Self::In(namespace) => text("namespace") == Some(namespace),
            Self::LabelledIn { namespace, key } => {
                label(key).is_some() && text("namespace") == Some(namespace)
            }
            Self::LabelIn { namespace, key, value } => {
                label(key) == Some(value) && text("namespace") == Some(namespace)
            }
            Self::NamedIn { namespace, name } => {
                text("name") == Some(name) && text("namespace") == Some(namespace)
            }
            Self::Named { namespace, name } => {
                text("name") == Some(name)
                    && (namespace.is_none() || text("namespace") == namespace.as_deref())
            }
        }
    }
}
