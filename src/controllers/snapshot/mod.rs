//! Snapshots: images made from the disks of stopped virtual machines (03 §2).
//!
//! What is observed: the snapshot, the Instance, its Template, the Job of the snapshot, and what keeps the
//! disk busy. What is planned ([`step`]): nothing, waiting, the Job, or an end. What is written: first that
//! the Job is about to be made, which fails if the snapshot has changed meanwhile; then the Job; then that
//! it runs. A Job that is there tells a successor all it needs, so dying between any two of these neither
//! loses a snapshot nor makes one twice. What has ended stays ended.

mod image;
pub mod job;
pub mod observe;
mod report;
mod room;
mod setup;
pub mod step;
mod world;

#[cfg(test)]
mod tests;

pub use room::Room;
pub use setup::set_up;
pub use world::World;
