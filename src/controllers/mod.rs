//! The rooms: a folder each, and what several of them share.

pub mod accounts;
pub mod instance;
pub mod made;
pub mod nfs_volume;
pub mod public_exposure;
pub mod remarks;
pub mod tenant;
pub mod workspace;
