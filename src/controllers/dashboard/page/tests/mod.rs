//! Tests of the pages: what each shows, and what all of them keep to.

mod facts;
mod fixtures;
mod models;
mod pages;
mod rules;
mod texts;
