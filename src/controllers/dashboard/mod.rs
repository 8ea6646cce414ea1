//! The dashboard: web pages where users see, start and stop their machines.
//!
//! | file or folder | content |
//! |---|---|
//! | `server.rs` | the loop: the HTTP server, its limits and metrics, the graceful shutdown |
//! | `router.rs`, `paths.rs` | the routes, derived from the pages and the entries of the actions |
//! | `app.rs` | the state that all handlers share |
//! | `page.rs` | the parts that the handlers of pages share |
//! | `home/`, `machine/`, `courses/`, `account/` | one page each: the handler, `model.rs` (pure), `view.rs` (HTML) and `actions.rs` |
//! | `new/` | the page of a link that starts a Template |
//! | `help/` | the help for students: `docs/for-students.md` as a page |
//! | `action/` | actions: their entries, the handler, the requests, the outcome |
//! | `standing.rs`, `progress.rs` | the state of a machine, and the progress of its start |
//! | `student/` | the objects and rights of a user, and the machines that can be started |
//! | `user/` | the current user, with a token |
//! | `session/` | the cookies of a browser: session, login, flash message, favourites |
//! | `live/` | the watches, the broadcast of their changes, and the streams to open pages |
//! | `limits/` | the limits of each client: the requests and streams of a session and of an address |
//! | `http/` | extractors, responses, headers, the check of the origin, styles and scripts |
//! | `ui/` | the frame and the elements of pages |
//! | `texts/` | all texts: a YAML file for each language |
//!
//! The dashboard reads and changes objects only as its users, with their tokens or by impersonation, so it has no
//! further rights. With its own account, it only watches objects, to learn that they have changed.

mod account;
mod action;
mod app;
mod courses;
mod help;
mod home;
mod http;
mod limits;
mod live;
mod machine;
mod new;
mod page;
mod paths;
mod progress;
mod router;
mod server;
pub mod session;
mod standing;
mod student;
pub mod telemetry;
#[cfg(test)]
mod tests;
mod texts;
mod ui;
mod user;

pub use server::DashboardLoop;
