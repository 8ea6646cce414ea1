//! Tests of the pages: their models, and the rules for all of them.

mod facts;
mod fixtures;
mod models;
mod pages;
mod rules;
mod texts;
