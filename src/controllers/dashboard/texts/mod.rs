//! The texts of the pages: a YAML file for each language, read into one typed catalogue.
//!
//! If a file lacks a text, or has a text that no page shows, the build or a test fails. A new language is a new file in
//! this folder.

mod actions;
mod amounts;
mod catalogue;
mod declare;
mod pages;
mod phrases;
mod problems;
pub mod template;
#[cfg(test)]
mod tests;
mod wording;

pub use self::actions::{ActionTexts, FieldTexts};
pub use self::catalogue::{StateTexts, Texts, texts};
pub use self::phrases::Ending;
pub use self::problems::Problem;
