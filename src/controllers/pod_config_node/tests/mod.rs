//! Tables and properties of the plan, on a kernel that is a list of links.

mod kernel;
mod properties;
mod reports;
mod retries;
mod table;
