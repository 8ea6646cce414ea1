//! The texts of the page of shared volumes.

use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::Table;
use crate::controllers::dashboard::volumes::state::VolumeState;

catalogue! {
    /// The page of shared volumes.
    pub struct VolumeTexts;
    String: about, empty, unused, used_by, in_use, new;
    Table<VolumeState>: state;
}
