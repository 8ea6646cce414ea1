//! The rooms: a folder each, and what several of them share.

pub mod accounts;
pub mod children;
pub mod instance;

pub mod nfs_volume;
pub mod problems;
pub mod public_exposure;
pub mod shared_volume;
pub mod snapshot;
pub mod tenant;
pub mod wake;
pub mod workspace;
