//! Tests of the pages: their models, and the rules for all of them.

mod actions;
mod facts;
mod favourites;
pub mod fixtures;
mod login;
mod models;
mod outages;
mod pages;
mod personal;
mod rules;
mod site;
mod start;
mod texts;
mod time_left;
