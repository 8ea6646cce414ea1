//! Tests of the loop without an API server: the real stores and reconciler, with an API server and nodes in memory.

mod cases;
mod losses;
mod model;
mod nodes;
mod records;
mod world;
