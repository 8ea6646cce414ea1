//! The dashboard: web pages on which users see, start and stop their machines.
//!
//! | file | what it is |
//! |---|---|
//! | `serve.rs` | the loop: the HTTP server, its limits and metrics, the orderly end |
//! | `route.rs` | what a request asks for, by its method and path |
//! | `guard.rs` | which requests may change something, and what browsers may do with answers |
//! | `answer.rs` | from a request to its answer: its session and user |
//! | `show.rs` | pages, and the streams of their changes |
//! | `perform.rs` | forms, and the page that says what they have come to |
//! | `outcome.rs` | what an action has come to, until a page says it |
//! | `visit.rs` | what an answer needs to know of the browser |
//! | `login.rs` | logging in and out |
//! | `session/` | what a browser keeps, sealed |
//! | `users/` | the users of the sessions, with their tokens, and what they were shown last |
//! | `read.rs` | what a page shows, read with the user's token |
//! | `act.rs` | what a form changes, with the user's token |
//! | `page/` | pages, from objects to HTML |
//! | `live/` | which open pages a change concerns, and the streams that tell them |
//! | `assets.rs` | styles and scripts |
//!
//! The dashboard has no rights beyond those of its users: everything about them is read and changed with their own tokens. With its
//! own account, it has watches that say that something has changed.

mod act;
mod answer;
mod assets;
mod guard;
mod live;
mod login;
mod outcome;
mod page;
mod perform;
mod read;
mod route;
mod serve;
pub mod session;
mod show;
pub mod telemetry;
mod users;
mod visit;

pub use serve::DashboardLoop;
