//! Tests of the pages: their models, and the rules for all of them.

mod actions;
mod admin;
mod collected;
mod facts;
mod favourites;
mod files;
pub mod fixtures;
mod login;
mod manager;
mod models;
mod outages;
mod pages;
pub mod people;
mod personal;
pub mod rules;
mod sharing;
pub mod site;
mod start;
mod texts;
mod time_left;
