//! Actions: the changes that users request with forms. An action is one [entry](entry::Action) in the folder of its
//! page. The router, the check of the form, the buttons and the tests are derived from the entries.

pub mod entry;
pub mod handler;
mod happened;
pub mod json_patch;
pub mod request;
pub mod result;
#[cfg(test)]
mod tests;
