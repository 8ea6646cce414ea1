//! Tables and properties of the plan, on a simulated kernel that is a list of links.

mod kernel;
mod properties;
mod refusals;
mod reports;
mod retries;
mod table;
