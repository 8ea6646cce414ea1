//! All pages and states, in each language.

use crate::config::Language;
use crate::controllers::dashboard::account::{model::Account, view::account};
use crate::controllers::dashboard::class::tests::view::pages as class_pages;
use crate::controllers::dashboard::console::view::{Console, console};
use crate::controllers::dashboard::courses::{model::Courses, view::courses};
use crate::controllers::dashboard::files::{model::Files, view::files};
use crate::controllers::dashboard::help::help;
use crate::controllers::dashboard::home::{model::Home, view::home};
use crate::controllers::dashboard::machine::{model::Machine, view::machine};
use crate::controllers::dashboard::new::{model::New, view::new};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::session::Logout;
use crate::controllers::dashboard::student::{Known, Student};
use crate::controllers::dashboard::templates::tests::pages as template_pages;
use crate::controllers::dashboard::tests::fixtures::{
    Everything, instances, known, now, settings, view, warning,
};
use crate::controllers::dashboard::texts::texts;
use crate::controllers::dashboard::ui::state::{State, state};
use crate::controllers::dashboard::ui::view::{Live, Notice, Typed, View};

/// Returns all states.
pub fn states() -> Vec<State> {
    let text = || "the <b>server</b> said \u{202e}no".to_owned();
    vec![
        State::NoTenant,
        State::Unconfirmed("ada@example.org".to_owned()),
        State::NoNamespace,
        State::NoCourse,
        State::NotFound,
        State::NoTemplate,
        State::CourseWaits,
        State::Refused(text()),
        State::Changed,
        State::Away(now()),
        State::IssuerRefused("https://login.example.org/realms/labs".to_owned()),
        State::LoginAway,
        State::LoginFailed(text()),
        State::NoMachine,
        State::NoCookie("/login/machine?rd=x".to_owned()),
        State::SessionOver,
        State::LoggedOut(Logout { is_everywhere: true, is_at_issuer: true }),
        State::TooMany(1),
        State::NotHere,
        State::Broken(text()),
        State::LoggedOut(Logout { is_everywhere: false, is_at_issuer: true }),
        State::LoggedOut(Logout { is_everywhere: true, is_at_issuer: false }),
    ]
}

/// Returns each page with its name, in a language.
pub fn pages(language: Language) -> Vec<(String, String)> {
    let (mut known, settings, all) = (known(), settings(), Everything(true));
    known.share(super::sharing::machines("bob.bianchi"));
    let student = Student::new(&known, &settings, &all, None);
    let of = |path| view(language, path);
    let mut pages = vec![
        ("home".to_owned(), home(&of("/"), &Home::of(&of("/"), &student))),
        ("courses".to_owned(), courses(&of("/courses"), &Courses::of(&student))),
        ("account".to_owned(), account(&of("/account"), &Account::of(&of("/account"), &student))),
        ("files".to_owned(), files(&of("/files"), &Files::of(&of("/files"), &student))),
    ];
    for mut instance in instances() {
        super::sharing::share(&mut instance);
        let view = of("/machines/tenant-ada-rossi/x");
        let warnings = Ok(vec![warning("Back-off restarting failed container")]);
        let mut shown = Machine::of(&view, &student, &instance, false, warnings, Some(&["bob".to_owned()]));
        if let Some(sharing) = &mut shown.sharing {
            sharing.connections = super::sharing::connections("bob.bianchi");
        }
        pages.push((format!("machine-{}", instance.metadata.name), machine(&view, &shown)));
    }
    let path = "/machines/tenant-ada-rossi/x/main/console";
    let screen = Console {
        title: "<b>x</b>".to_owned(),
        environment: "main".to_owned(),
        back: "/machines/tenant-ada-rossi/x".to_owned(),
        socket: format!("{path}/socket"),
    };
    pages.push(("console".to_owned(), console(&of(path), &screen)));
    for (course, template) in [("net", "desktop"), ("os", "desktop")] {
        let view = of("/new/net/desktop");
        let shown = New::of(&view, &student, course, template).expect("a page");
        pages.push((format!("new-{course}"), new(&view, &shown)));
    }
    pages.push(("machine-of-student".to_owned(), super::manager::page(language)));
    pages.extend(class_pages(language));
    let of_people = super::people::pages(&of("/courses/net/people"), &all, "Bob Bianchi");
    pages.extend(of_people.into_iter().map(|(name, page)| (name.to_owned(), page)));
    let collected = super::collected::pages(&of("/courses/net/volumes"), &all, "Bob Bianchi");
    pages.extend(collected.into_iter().map(|(name, page)| (name.to_owned(), page)));
    let of_administrators = super::admin::pages(&of(paths::ADMIN), &all, "Bob Bianchi");
    pages.extend(of_administrators.into_iter().map(|(name, page)| (name.to_owned(), page)));
    pages.extend(template_pages(&of("/courses/net/templates"), &student, &all, "Lab"));
    pages.push(("help".to_owned(), help(&of(paths::HELP))));
    pages.extend(crate::controllers::dashboard::bulk::tests::samples(language));
    pages.extend(special(language, &student));
    for (number, of_state) in states().iter().enumerate() {
        pages.push((format!("state-{number:02}"), state(&of("/"), of_state)));
    }
    pages.into_iter().map(|(name, page)| (name, page.into_string())).collect()
}

/// Returns the special cases: a form with an error, an empty home page, a user without rights, and old content.
fn special(language: Language, student: &Student<'_>) -> Vec<(String, maud::Markup)> {
    let (settings, all, none) = (settings(), Everything(true), Everything(false));
    let values = [("key".to_owned(), "ssh-rsa <oops>".to_owned())];
    let typed = Typed { action: "/account/keys/add", values: &values, wrong: Some(("key", "key")) };
    let failed = Notice::Failed("The key was not added.".to_owned());
    let done = Notice::Done(texts(language).actions["machines.create"].done.clone());
    let wrong = View { typed: Some(typed), notice: Some(&failed), ..view(language, "/account") };
    let (empty, whole) = (Known::new(outsider(), Vec::new(), Vec::new(), Vec::new(), Vec::new()), known());
    let nobody = Student::new(&empty, &settings, &all, None);
    let stranger = Student::new(&whole, &settings, &none, None);
    let old = View { old: Some(now()), notice: None, ..view(language, "/") };
    let past = Student::new(&whole, &settings, &all, old.old);
    let absent = View { live: Live::Absent, notice: Some(&done), ..view(language, "/") };
    let full = View { live: Live::Full, ..view(language, "/") };
    vec![
        ("account-error".to_owned(), account(&wrong, &Account::of(&wrong, student))),
        ("home-empty".to_owned(), home(&absent, &Home::of(&absent, &nobody))),
        ("home-no-rights".to_owned(), home(&full, &Home::of(&full, &stranger))),
        ("home-old".to_owned(), home(&old, &Home::of(&old, &past))),
    ]
}

/// Returns a Tenant without courses.
fn outsider() -> crate::api::Tenant {
    super::fixtures::tenant(&serde_json::json!([]), 0)
}

/// Writes all pages to `target/tmp/pages`, where a browser can open them.
#[test]
fn all_pages_are_written() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/tmp/pages");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::copy(root.join("assets/dashboard.css"), folder.join("dashboard.css")).expect("the style sheet");
    for language in Language::all() {
        for (name, page) in pages(language) {
            let file = folder.join(format!("{name}-{}.html", language.code()));
            std::fs::write(file, page).expect("a file");
        }
    }
}
