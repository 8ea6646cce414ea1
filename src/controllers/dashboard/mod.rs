//! The dashboard: web pages where users see, start and stop their machines.
//!
//! | file or folder | content |
//! |---|---|
//! | `server.rs` | the loop: the HTTP server, its limits and metrics, the graceful shutdown |
//! | `router.rs`, `paths.rs` | the routes, derived from the pages and the entries of the actions |
//! | `app.rs` | the state that all handlers share |
//! | `page.rs`, `page_socket.rs` | the parts that the handlers of pages share, and those of their WebSockets |
//! | `home/`, `machine/`, `courses/`, `account/`, `files/` | one page each: the handler, `model.rs` (pure), `view.rs` (HTML) and `actions.rs` |
//! | `course/` | the frame of the pages of a course, for its managers and for administrators |
//! | `announcements/` | texts for a course or for everyone: on the home page, on a page of a course, and on `/admin` |
//! | `admin/` | the pages of administrators: overview, courses, people, cluster |
//! | `class/` | the class of a course: the machines of its students |
//! | `people/` | the people of a course, one by one and from a list |
//! | `bulk/` | the actions on a class: the question before an action, and its progress |
//! | `templates/` | the Templates of a course and of the personal workspace: the list, the form, the YAML view |
//! | `volumes/`, `exams/` | the shared volumes and the exams of a course |
//! | `machine_login/` | the login to a machine at its own host |
//! | `terminal/`, `console/` | the terminal and the console of a machine |
//! | `new/` | the page of a link that starts a Template |
//! | `help/` | the help for students: `docs/for-students.md` as a page |
//! | `action/` | actions: their entries, the handler, the requests, the outcome |
//! | `history/` | who did what and when, as far as an object and its events tell |
//! | `standing.rs`, `progress.rs` | the state of a machine, and the progress of its start |
//! | `student/` | the objects and rights of a user, and the machines that can be started |
//! | `user/` | the current user, with a token |
//! | `sharing/` | the people with whom an owner shares a machine, and the machines of others on the first page |
//! | `session/` | the cookies of a browser: session, login, flash message, favourites |
//! | `live/` | the watches, the broadcast of their changes, and the streams to open pages |
//! | `limits/` | the limits of each client: the requests and streams of a session and of an address |
//! | `http/` | extractors, responses, headers, the check of the origin, styles and scripts |
//! | `ui/` | the frame and the elements of pages |
//! | `texts/` | all texts: a YAML file for each language |
//!
//! The dashboard reads and changes objects only as its users, with their tokens or by impersonation, so it has no
//! further rights. With its own account, it only watches objects, to learn that they have changed, and records
//! open consoles.

mod account;
mod action;
mod admin;
mod announcements;
mod app;
mod bulk;
mod class;
mod console;
mod course;
mod courses;
mod exams;
mod files;
mod help;
mod history;
mod home;
mod http;
mod limits;
mod live;
mod machine;
mod machine_login;
mod new;
mod page;
mod page_socket;
mod paths;
mod people;
mod progress;
mod router;
mod server;
pub mod session;
mod sharing;
mod standing;
mod student;
pub mod telemetry;
mod templates;
mod terminal;
#[cfg(test)]
mod tests;
mod texts;
mod ui;
mod user;
mod volumes;

pub use server::DashboardLoop;
