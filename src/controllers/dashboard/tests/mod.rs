//! Tests of the pages: their models, and the rules for all of them.

mod actions;
mod facts;
mod fixtures;
mod models;
mod outages;
mod pages;
mod personal;
mod rules;
mod texts;
