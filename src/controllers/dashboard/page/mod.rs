//! The pages of the dashboard: from objects as they were read to a model of the page, and from that to HTML. Nothing here
//! sends a request or looks at the clock; the language, the time and the random part of names come in by [`View`].
//!
//! | file | what it is |
//! |---|---|
//! | `view.rs` | what all pages are shown with: language, time, nonce, the notice on top |
//! | `student.rs` | the objects of a user, his rights, and what he can start |
//! | `home`, `machine`, `courses`, `account` | a page each: `model.rs` and its HTML |
//! | `state.rs` | pages that say what is wrong |
//! | `standing.rs` | the state of a machine; why it has it, and what happens next, is [`api::why`](crate::api::why) |
//! | `layout.rs`, `parts.rs`, `field.rs` | the frame, and what pages are made of |
//! | `time.rs`, `amounts.rs`, `links.rs` | times, amounts and addresses as they are shown |
//! | `words` | all sentences, in each language |
//!
//! Texts of others (names, descriptions, messages, keys) are shown by `api::shown` and escaped by `maud`.

pub mod account;
mod amounts;
pub mod courses;
mod field;
pub mod home;
mod layout;
mod links;
pub mod machine;
mod parts;
mod standing;
pub mod state;
pub mod student;
#[cfg(test)]
mod tests;
mod time;
pub mod view;
mod words;

pub use account::{Account, account, entry};
pub use courses::{Courses, courses};
pub use home::{Home, home};
pub use links::login_at;
pub use machine::{Machine, machine};
pub use state::{State, state};
pub use student::{Known, Rights, Settings, Student};
pub use view::{Done, Live, Notice, Typed, View};
pub use words::Language;
