//! The frame and the elements of pages.
//!
//! Texts of users (names, descriptions, messages, keys) pass [`api::shown`](crate::api::shown) and are escaped by `maud`.

pub mod field;
pub mod layout;
pub mod links;
pub mod parts;
pub mod state;
pub mod time;
pub mod view;
