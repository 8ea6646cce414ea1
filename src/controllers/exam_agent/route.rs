//! The targets of paths, and the labels in queries.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode;

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The health check of the server.
    Health,
    /// The OpenAPI description of the interface.
    Description,
    /// The Templates.
    Templates,
    /// The Instances.
    Instances,
    /// The Instance with this name, which may be any text; `None` if the name is not valid UTF-8.
    Instance(Option<String>),
    /// An unknown path.
    Unknown,
}

impl Target {
    /// Its name in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Description => "description",
            Self::Templates => "templates",
            Self::Instances => "instances",
            Self::Instance(_) => "instance",
            Self::Unknown => "other",
        }
    }

    /// The name of the Instance; empty if it is not valid UTF-8, and for all other targets.
    pub fn instance(&self) -> &str {
        match self {
            Self::Instance(name) => name.as_deref().unwrap_or_default(),
            _ => "",
        }
    }

    /// The methods that the target supports, for the header `Allow`.
    pub fn methods(&self) -> &'static str {
        match self {
            Self::Instance(_) => "GET, PUT, DELETE",
            _ => "GET",
        }
    }
}

/// The target of a path as it is in the request line. `base` is the prefix of all paths. Everything after `/templates/`
/// is ignored. Singular and plural are equivalent.
pub fn target(base: &str, path: &str) -> Target {
    if path == "/healthz" {
        return Target::Health;
    }
    let Some(rest) = path.strip_prefix(base).and_then(|rest| rest.strip_prefix('/')) else {
        return Target::Unknown;
    };
    let (collection, name) = rest.split_once('/').unwrap_or((rest, ""));
    match (collection, name) {
        ("openapi.json", "") if !rest.ends_with('/') => Target::Description,
        ("templates" | "template", _) => Target::Templates,
        ("instances" | "instance", "") => Target::Instances,
        ("instances" | "instance", name) => Target::Instance(decoded(name)),
        _ => Target::Unknown,
    }
}

/// The labels in a query: the first value of each key, or `true` if the value is empty. `None` if a text is not valid
/// UTF-8. A plus sign stands for a space.
pub fn labels(query: &str) -> Option<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    let query = query.replace('+', " ");
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let [key, value] = [decoded(key)?, decoded(value)?];
        let value = if value.is_empty() { "true".to_owned() } else { value };
        labels.entry(key).or_insert(value);
    }
    Some(labels)
}

/// Decodes a text of a path or a query; `None` if it is not valid UTF-8.
fn decoded(text: &str) -> Option<String> {
    percent_decode(text.as_bytes()).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_interface() {
        let instance = |name: &str| Target::Instance(Some(name.to_owned()));
        for (path, expected) in [
            ("/healthz", Target::Health),
            ("/api/healthz", Target::Unknown),
            ("/healthz/", Target::Unknown),
            ("/api/openapi.json", Target::Description),
            ("/api/openapi.json/", Target::Unknown),
            ("/api/templates", Target::Templates),
            ("/api/template/", Target::Templates),
            ("/api/templates/any/thing", Target::Templates),
            ("/api/templatesx", Target::Unknown),
            ("/api/instances", Target::Instances),
            ("/api/instance/", Target::Instances),
            ("/api/instances/exam-1", instance("exam-1")),
            ("/api/instance/exam-1", instance("exam-1")),
            ("/api/instances//", instance("/")),
            ("/api/instances/a/b", instance("a/b")),
            ("/api/instances/a%2Fb", instance("a/b")),
            ("/api/instances/a%0Ab", instance("a\nb")),
            ("/api/instances/%C3%A4", instance("ä")),
            ("/api/instances/%", instance("%")),
            ("/api/instances/%zz", instance("%zz")),
            ("/api/instances/..", instance("..")),
            ("/api/instances/%FF", Target::Instance(None)),
            ("/api/INSTANCES/a", Target::Unknown),
            ("/api", Target::Unknown),
            ("/api/", Target::Unknown),
            ("/apix/instances", Target::Unknown),
            ("/instances", Target::Unknown),
            ("*", Target::Unknown),
            ("", Target::Unknown),
        ] {
            assert_eq!(target("/api", path), expected, "{path}");
        }
        assert_eq!(target("/a/b", "/a/b/instances/x"), instance("x"));
    }

    #[test]
    fn a_query_is_a_list_of_labels() {
        let found = |query: &str| {
            labels(query).map(|labels| {
                labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
            })
        };
        for (query, expected) in [
            ("", Some("")),
            ("a&b=1", Some("a=true,b=1")),
            ("a=", Some("a=true")),
            ("a=1&a=2", Some("a=1")),
            ("example.org%2Fa=1%2B1", Some("example.org/a=1+1")),
            ("a=b+c", Some("a=b c")),
            ("a=b=c", Some("a=b=c")),
            ("&&", Some("")),
            ("=x", Some("=x")),
            ("%FF=1", None),
        ] {
            assert_eq!(found(query).as_deref(), expected, "{query}");
        }
    }
}
