//! Tests of the page of a class: its table, its HTML and its reads.

pub mod fixtures;
mod read;
mod table;
pub mod view;
