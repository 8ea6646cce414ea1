//! Tests of the loop without an API server: the real stores and reconciler, an API server and nodes in memory.

mod cases;
mod model;
mod world;
