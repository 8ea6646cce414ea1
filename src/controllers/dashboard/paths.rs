//! The paths of the pages, as patterns of the router.

use crate::api::names::{check_dns_label, check_object_name};
use crate::runtime::ObjectKey;

/// The machines of the user.
pub const HOME: &str = "/";
/// A machine.
pub const MACHINE: &str = "/machines/{namespace}/{name}";
/// The link that starts a machine of a Template: it asks first.
pub const NEW: &str = "/new/{course}/{template}";
/// The courses.
pub const COURSES: &str = "/courses";
/// The account.
pub const ACCOUNT: &str = "/account";
/// The page that says what a logout has ended.
pub const LOGGED_OUT: &str = "/logged-out";
/// The help for students.
pub const HELP: &str = "/help";
/// Changes the favourite Templates.
pub const FAVOURITES: &str = "/favourites";
/// The stream of updates of a page.
pub const EVENTS: &str = "/events";

/// Whether a path belongs to a page.
pub fn is_page(path: &str) -> bool {
    let machine = || {
        let (namespace, name) = path.strip_prefix("/machines/")?.split_once('/')?;
        machine(namespace, name)
    };
    let is_new = || {
        let names = path.strip_prefix("/new/").and_then(|names| names.split_once('/'));
        names.is_some_and(|(course, template)| new(course, template).is_some())
    };
    [HOME, COURSES, ACCOUNT].contains(&path) || machine().is_some() || is_new()
}

/// Returns the names of a course and of a Template; `None` if no objects can have them.
pub fn new<'n>(course: &'n str, template: &'n str) -> Option<(&'n str, &'n str)> {
    let is_valid = check_dns_label(course).is_ok() && check_object_name(template).is_ok();
    is_valid.then_some((course, template))
}

/// Returns the key of an object with these names; `None` if no object can have them.
pub fn machine(namespace: &str, name: &str) -> Option<ObjectKey> {
    let is_valid = check_dns_label(namespace).is_ok() && check_object_name(name).is_ok();
    is_valid.then(|| ObjectKey::new(namespace, name))
}

/// Fills in the parameters of a pattern.
pub fn fill(pattern: &str, values: impl Fn(&str) -> String) -> String {
    let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => values(name),
        None => part.to_owned(),
    };
    pattern.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_invalid_names_are_not_pages() {
        for path in ["/", "/courses", "/account", "/machines/tenant-ada/vm.1", "/new/tea/desktop-24.04"] {
            assert!(is_page(path), "{path}");
        }
        for path in [
            "",
            "x",
            "//",
            "/machines/",
            "/machines/a/b/",
            "/machines/a/b/c",
            "/machines/a/..",
            "/machines/a/%2e%2e",
            "/machines/a/b%2Fc",
            "/machines/a.b/c",
            "/machines/A/c",
            "/courses/../leave",
            "/new/tea",
            "/new/tea/",
            "/new/tea/a/b",
            "/new/Tea/desktop",
            "/new/tea/..",
            "/account/keys",
            "/index.html",
            "/login",
            "/logged-out",
            "/favourites",
        ] {
            assert!(!is_page(path), "{path}");
        }
    }

    #[test]
    fn parameters_are_filled() {
        let names = |name: &str| format!("<{name}>");
        assert_eq!(fill(MACHINE, names), "/machines/<namespace>/<name>");
        assert_eq!(fill("/machines", names), "/machines");
    }
}
