//! The texts of the pages for teachers and administrators: one section of the file for each page.

pub mod admin;
pub mod announcements;
pub mod bulk;
pub mod class;
pub mod console;
pub mod course;
pub mod exams;
pub mod history;
pub mod people;
pub mod sharing;
pub mod templates;
pub mod terminal;
pub mod volumes;
