//! What a request asks for, by its method and path.

use form_urlencoded::parse;

use crate::api::names::{check_dns_label, check_object_name};
use crate::runtime::ObjectKey;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Whether the server runs.
    Health,
    /// A style or a script.
    Asset(String),
    /// To log in, and to return to a path then.
    Login,
    /// The issuer sends the user back.
    Callback,
    /// To log out.
    Logout,
    /// The stream of the changes of a page.
    Events,
    /// A page.
    Page(Page),
    /// To change something.
    Act(Action),
    /// A path that exists, with another method.
    OtherMethod,
    /// Nothing.
    Unknown,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// The user's machines, and the Templates of his courses.
    Home,
    /// A machine.
    Machine(ObjectKey),
    /// The courses.
    Courses,
    /// Keys, quotas and the personal volume.
    Account,
}

impl Page {
    /// Its path.
    pub fn path(&self) -> String {
        match self {
            Self::Home => "/".to_owned(),
            Self::Machine(key) => format!("/machines/{}/{}", key.namespace, key.name),
            Self::Courses => "/courses".to_owned(),
            Self::Account => "/account".to_owned(),
        }
    }
}

/// A change that a form asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A new machine.
    Create,
    /// Something with a machine.
    Machine(ObjectKey, OfMachine),
    /// To join a course, or to ask for it.
    Join(String),
    /// To leave a course, or to take back that one has asked.
    Leave(String),
    /// A further key.
    AddKey,
    /// A key less.
    RemoveKey,
    /// The machine by which the user looks at his personal volume.
    StartDrive,
}

/// What is to happen with a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfMachine {
    /// It is to run.
    Start,
    /// It is to be off.
    Stop,
    /// It counts as used now.
    Keep,
    /// It goes for good.
    Delete,
    /// It gets another name to be shown.
    Rename,
    /// A port of it is to be public.
    Expose,
    /// A port of it is to be public no more.
    Unexpose,
    /// An image is made of its disk.
    Save,
}

/// The words of paths for what is to happen with a machine.
const OF_MACHINE: [(&str, OfMachine); 8] = [
    ("start", OfMachine::Start),
    ("stop", OfMachine::Stop),
    ("keep", OfMachine::Keep),
    ("delete", OfMachine::Delete),
    ("rename", OfMachine::Rename),
    ("expose", OfMachine::Expose),
    ("unexpose", OfMachine::Unexpose),
    ("save", OfMachine::Save),
];

impl Route {
    /// Its name in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Asset(_) => "asset",
            Self::Login => "login",
            Self::Callback => "callback",
            Self::Logout => "logout",
            Self::Events => "events",
            Self::Page(Page::Home) => "home",
            Self::Page(Page::Machine(_)) => "machine",
            Self::Page(Page::Courses) => "courses",
            Self::Page(Page::Account) => "account",
            Self::Act(_) => "action",
            Self::OtherMethod | Self::Unknown => "other",
        }
    }
}

/// What a request asks for.
pub fn route(is_get: bool, is_post: bool, path: &str) -> Route {
    let found = find(path);
    let is_right = match &found {
        Route::Act(_) | Route::Logout => is_post,
        Route::Unknown => true,
        _ => is_get,
    };
    if is_right { found } else { Route::OtherMethod }
}

fn find(path: &str) -> Route {
    let Some(path) = path.strip_prefix('/') else { return Route::Unknown };
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [""] => Route::Page(Page::Home),
        ["healthz"] => Route::Health,
        ["assets", hash, file] => Route::Asset(format!("{hash}/{file}")),
        ["login"] => Route::Login,
        ["callback"] => Route::Callback,
        ["logout"] => Route::Logout,
        ["events"] => Route::Events,
        ["courses"] => Route::Page(Page::Courses),
        ["account"] => Route::Page(Page::Account),
        ["machines"] => Route::Act(Action::Create),
        ["machines", namespace, name] => {
            key(namespace, name).map_or(Route::Unknown, |key| Route::Page(Page::Machine(key)))
        }
        ["machines", namespace, name, word] => {
            let act = OF_MACHINE.iter().find(|(known, _)| known == word).map(|(_, act)| *act);
            let route = key(namespace, name).zip(act);
            route.map_or(Route::Unknown, |(key, act)| Route::Act(Action::Machine(key, act)))
        }
        ["courses", name, "join"] if is_label(name) => Route::Act(Action::Join((*name).to_owned())),
        ["courses", name, "leave"] if is_label(name) => Route::Act(Action::Leave((*name).to_owned())),
        ["account", "keys", "add"] => Route::Act(Action::AddKey),
        ["account", "keys", "remove"] => Route::Act(Action::RemoveKey),
        ["account", "drive", "start"] => Route::Act(Action::StartDrive),
        _ => Route::Unknown,
    }
}

/// The page at a path; `None` if there is none.
pub fn page_at(path: &str) -> Option<Page> {
    match find(path) {
        Route::Page(page) => Some(page),
        _ => None,
    }
}

fn is_label(text: &str) -> bool {
    check_dns_label(text).is_ok()
}

/// The key of an object with these names, if objects can have them: they become part of paths.
pub fn key(namespace: &str, name: &str) -> Option<ObjectKey> {
    (is_label(namespace) && check_object_name(name).is_ok()).then(|| ObjectKey::new(namespace, name))
}

/// The fields of a form or a query, in their order.
pub struct Fields(pub Vec<(String, String)>);

impl Fields {
    /// Those of a text in the form of URLs.
    pub fn parse(text: &[u8]) -> Self {
        Self(parse(text).map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// The value of the first field with that name; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_that_of_one_route_for_one_method() {
        let machine = ObjectKey::new("tenant-ada", "vm.1");
        let start = Action::Machine(machine.clone(), OfMachine::Start);
        for (path, expected) in [
            ("/", Route::Page(Page::Home)),
            ("/machines/tenant-ada/vm.1", Route::Page(Page::Machine(machine))),
            ("/machines/tenant-ada/vm.1/start", Route::Act(start)),
            ("/machines", Route::Act(Action::Create)),
            ("/courses/tea/join", Route::Act(Action::Join("tea".to_owned()))),
            ("/assets/00/dashboard.css", Route::Asset("00/dashboard.css".to_owned())),
            ("/logout", Route::Logout),
        ] {
            let is_post = matches!(expected, Route::Act(_) | Route::Logout);
            assert_eq!(route(!is_post, is_post, path), expected, "{path}");
            assert_eq!(route(is_post, !is_post, path), Route::OtherMethod, "{path}");
        }
    }

    #[test]
    fn what_no_object_can_be_called_is_no_path() {
        for path in [
            "",
            "x",
            "//",
            "/machines/",
            "/machines/a/b/",
            "/machines/a/b/c",
            "/machines/a/../start",
            "/machines/a/%2e%2e",
            "/machines/a/b%2Fc",
            "/machines/a.b/c",
            "/machines/A/c",
            "/courses/../leave",
            "/courses/a.b/join",
            "/account/keys",
            "/index.html",
        ] {
            assert_eq!(route(true, true, path), Route::Unknown, "{path}");
        }
    }

    #[test]
    fn a_page_is_found_at_its_path() {
        let machine = Page::Machine(ObjectKey::new("tenant-ada", "vm"));
        for page in [Page::Home, machine, Page::Courses, Page::Account] {
            assert_eq!(page_at(&page.path()), Some(page));
        }
        assert_eq!(page_at("/login"), None);
    }

    #[test]
    fn the_first_field_of_a_name_counts() {
        let fields = Fields::parse("name=a+b%2F%3C&name=c&=&x&broken=%ff".as_bytes());
        assert_eq!([fields.get("name"), fields.get("x"), fields.get("y")], ["a b/<", "", ""]);
        assert_eq!(fields.get("broken"), "\u{fffd}");
    }
}
