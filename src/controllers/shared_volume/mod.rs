//! Shared volumes: network folders of courses (03 §4-5).
//!
//! | stage | what |
//! |---|---|
//! | observe | the volume, its claim, the storage behind that, its Job, and who uses it, from the stores |
//! | plan | label and finalizer on the volume; claim (which grows and never shrinks); Job that prepares it, once |
//! | apply | the shared engine |
//! | report | phase, server and path, conditions; one patch of the status, if it differs |
//!
//! A volume that is being deleted is let go once no Template mounts it and no Instance has been made to. If
//! the process dies between any two writes, the next pass plans from what it finds.

pub mod observe;
pub mod plan;
mod report;
mod room;
mod setup;
mod world;

#[cfg(test)]
mod tests;

pub use room::Room;
pub use setup::set_up;
pub use world::World;
