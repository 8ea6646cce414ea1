//! The paths of the pages, as patterns of the router.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::api::names::{check_dns_label, check_object_name};
use crate::runtime::ObjectKey;

/// The machines of the user.
pub const HOME: &str = "/";
/// A machine.
pub const MACHINE: &str = "/machines/{namespace}/{name}";
/// The terminal of an environment of a machine.
pub const TERMINAL: &str = "/machines/{namespace}/{name}/{environment}/terminal";
/// Its WebSocket.
pub const TERMINAL_SOCKET: &str = "/machines/{namespace}/{name}/{environment}/terminal/socket";
/// The console of an environment of a machine.
pub const CONSOLE: &str = "/machines/{namespace}/{name}/{environment}/console";
/// Its WebSocket.
pub const CONSOLE_SOCKET: &str = "/machines/{namespace}/{name}/{environment}/console/socket";
/// The link that starts a machine of a Template: it asks first.
pub const NEW: &str = "/new/{course}/{template}";
/// The courses.
pub const COURSES: &str = "/courses";
/// The class of a course: the machines of its students.
pub const COURSE: &str = "/courses/{course}";
/// The class as a table for spreadsheets.
pub const CLASS_CSV: &str = "/courses/{course}/class.csv";
/// An action on a class: the question before it, and its progress.
pub const CLASS_ACTION: &str = "/courses/{course}/actions/{verb}";
/// The result of an action on a class as a table for spreadsheets.
pub const CLASS_ACTION_CSV: &str = "/courses/{course}/actions/{verb}/result.csv";
/// The people of a course.
pub const PEOPLE: &str = "/courses/{course}/people";
/// A person of a course.
pub const PERSON: &str = "/courses/{course}/person/{person}";
/// The form for a list of people.
pub const IMPORT: &str = "/courses/{course}/people/import";
/// The Templates of a course.
pub const TEMPLATES: &str = "/courses/{course}/templates";
/// A new Template of a course.
pub const NEW_TEMPLATE: &str = "/courses/{course}/templates/new";
/// A Template of a course.
pub const TEMPLATE: &str = "/courses/{course}/templates/{template}";
/// The form of a Template of a course.
pub const EDIT_TEMPLATE: &str = "/courses/{course}/templates/{template}/edit";
/// The Templates of the personal workspace.
pub const OWN_TEMPLATES: &str = "/personal/templates";
/// A new Template of the personal workspace.
pub const NEW_OWN_TEMPLATE: &str = "/personal/templates/new";
/// A Template of the personal workspace.
pub const OWN_TEMPLATE: &str = "/personal/templates/{template}";
/// The form of a Template of the personal workspace.
pub const EDIT_OWN_TEMPLATE: &str = "/personal/templates/{template}/edit";
/// The shared volumes of a course.
pub const VOLUMES: &str = "/courses/{course}/volumes";
/// The exams of a course.
pub const EXAMS: &str = "/courses/{course}/exams";
/// The exams as a table for spreadsheets.
pub const EXAMS_CSV: &str = "/courses/{course}/exams.csv";
/// The Announcements of a course.
pub const ANNOUNCEMENTS: &str = "/courses/{course}/announcements";
/// The overview for administrators.
pub const ADMIN: &str = "/admin";
/// All courses, for administrators.
pub const ADMIN_COURSES: &str = "/admin/courses";
/// A course, for administrators.
pub const ADMIN_COURSE: &str = "/admin/courses/{course}";
/// All people.
pub const ADMIN_PEOPLE: &str = "/admin/people";
/// A person.
pub const ADMIN_PERSON: &str = "/admin/people/{user}";
/// The nodes and the image lists.
pub const ADMIN_CLUSTER: &str = "/admin/cluster";
/// The files of the user: the machine that opens `MyDrive`.
pub const FILES: &str = "/files";
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

/// The login to a machine at its own host, whose address is the parameter `rd`.
pub const MACHINE_LOGIN: &str = "/login/machine";
/// The maximum length of the encoded address of a machine that a login returns to: the header of a response contains it.
const MOST_OF_ADDRESS: usize = 1_200;

/// All pages that a login can return to.
const PAGES: &[&str] = &[
    HOME,
    MACHINE,
    TERMINAL,
    CONSOLE,
    NEW,
    COURSES,
    COURSE,
    PEOPLE,
    PERSON,
    IMPORT,
    TEMPLATES,
    TEMPLATE,
    EDIT_TEMPLATE,
    OWN_TEMPLATES,
    OWN_TEMPLATE,
    EDIT_OWN_TEMPLATE,
    VOLUMES,
    EXAMS,
    ANNOUNCEMENTS,
    ADMIN,
    ADMIN_COURSES,
    ADMIN_COURSE,
    ADMIN_PEOPLE,
    ADMIN_PERSON,
    ADMIN_CLUSTER,
    FILES,
    ACCOUNT,
];

/// Whether a path belongs to a page.
pub fn is_page(path: &str) -> bool {
    PAGES.iter().any(|pattern| is_of(pattern, path)) || is_machine_login(path)
}

/// Returns the page of the login to the machine at an address.
pub fn machine_login(address: &str) -> String {
    format!("{MACHINE_LOGIN}?rd={}", utf8_percent_encode(address, NON_ALPHANUMERIC))
}

/// Whether a path is the login to a machine at some address, which that page checks.
fn is_machine_login(path: &str) -> bool {
    let address = path.strip_prefix(MACHINE_LOGIN).and_then(|rest| rest.strip_prefix("?rd="));
    let is_encoded = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'%';
    address.is_some_and(|address| address.len() <= MOST_OF_ADDRESS && address.bytes().all(is_encoded))
}

/// Whether a path has the form of a pattern, with a valid name for each parameter.
fn is_of(pattern: &str, path: &str) -> bool {
    let is_part = |(expected, part): (&str, &str)| match expected
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'))
    {
        Some("namespace" | "course") => check_dns_label(part).is_ok(),
        Some(_) => check_object_name(part).is_ok(),
        None => expected == part,
    };
    let (patterns, parts) = (pattern.split('/'), path.split('/'));
    patterns.clone().count() == parts.clone().count() && patterns.zip(parts).all(is_part)
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
        for path in [
            "/",
            "/courses",
            "/account",
            "/machines/tenant-ada/vm.1",
            "/machines/tenant-ada/vm.1/desktop/console",
            "/files",
            "/new/tea/desktop-24.04",
            "/courses/tea",
            "/courses/tea/people",
            "/courses/tea/announcements",
            "/admin",
            "/admin/courses/tea",
            "/admin/people/ada.rossi",
        ] {
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
            "/courses/Tea",
            "/courses/tea/",
            "/courses/tea/leave",
            "/courses/tea/class.csv",
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
    fn a_login_to_a_machine_is_a_page_with_its_address() {
        let path = machine_login("https://a.labs.example.com/b?c=d&e");
        assert_eq!(path, "/login/machine?rd=https%3A%2F%2Fa%2Elabs%2Eexample%2Ecom%2Fb%3Fc%3Dd%26e");
        assert!(is_page(&path));
        let long = machine_login(&"a".repeat(1_201));
        for path in [
            "/login/machine",
            "/login/machine?x=a",
            "/login/machine?rd=a&b=c",
            "/login/machine?rd=a b",
            &long,
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
