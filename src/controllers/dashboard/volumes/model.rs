//! The model of the page.

use super::actions::{CREATE, DELETE};
use super::state::VolumeState;
use crate::api::condition::{Condition, ConditionType, DELETION_BLOCKED, READY};
use crate::api::shared_volume::SharedVolume;
use crate::api::{Quantity, Template};
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::student::{Rights, template_title};

/// The page.
#[derive(Debug)]
pub struct Volumes {
    /// The volumes, by their titles.
    pub volumes: Vec<Volume>,
    /// Whether the user may create one.
    pub can_create: bool,
}

/// A shared volume.
#[derive(Debug)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its title, or its name if it has none.
    pub title: String,
    /// Its size; `Err` with the text of an invalid one.
    pub size: Result<Quantity, String>,
    /// Its state.
    pub state: VolumeState,
    /// Why it is not ready, or why it is not deleted yet.
    pub cause: Option<Condition>,
    /// The Templates of the course that mount it: their names and titles.
    pub used_by: Vec<(String, String)>,
    /// Whether the user may delete it. In use, it cannot be deleted.
    pub can_delete: bool,
}

impl Volumes {
    /// Returns the page of the course with this namespace, for a user with these rights.
    pub fn of(
        namespace: &str,
        volumes: &[SharedVolume],
        templates: &[Template],
        rights: &dyn Rights,
    ) -> Self {
        let may = |action: &Action| rights.may(namespace, &action.right);
        let can_delete = may(&DELETE);
        let mut volumes: Vec<Volume> =
            volumes.iter().map(|volume| Volume::of(volume, templates, can_delete)).collect();
        volumes.sort_by_cached_key(|volume| (volume.title.to_lowercase(), volume.name.clone()));
        Self { volumes, can_create: may(&CREATE) }
    }
}

impl Volume {
    fn of(volume: &SharedVolume, templates: &[Template], can_delete: bool) -> Self {
        let state = VolumeState::of(volume);
        let title = volume.spec.pretty_name.trim();
        let condition = |type_: ConditionType, holds: bool| {
            let mut all = volume.status.conditions.iter();
            all.find(|known| known.type_ == type_ && (known.status == "True") == holds).cloned()
        };
        let cause = match state {
            VolumeState::Ready => None,
            VolumeState::Deleting => condition(DELETION_BLOCKED, true),
            VolumeState::Waiting
            | VolumeState::Preparing
            | VolumeState::Quota
            | VolumeState::Failed
            | VolumeState::Unknown => condition(READY, false),
        };
        let mut used_by: Vec<(String, String)> = templates
            .iter()
            .filter(|template| mounts(template, volume))
            .map(|template| (template.name().to_owned(), template_title(template).to_owned()))
            .collect();
        used_by.sort_by_cached_key(|(name, title)| (title.to_lowercase(), name.clone()));
        Self {
            name: volume.name().to_owned(),
            uid: volume.uid().to_owned(),
            title: if title.is_empty() { volume.name() } else { title }.to_owned(),
            size: volume.spec.size.parse().map_err(|_| volume.spec.size.to_string()),
            state,
            cause,
            used_by,
            can_delete: can_delete && state != VolumeState::Deleting,
        }
    }
}

/// Whether an environment of a Template mounts a volume.
fn mounts(template: &Template, volume: &SharedVolume) -> bool {
    let mut mounts =
        template.spec.environment_list.iter().flat_map(|environment| &environment.shared_volume_mounts);
    mounts.any(|mount| {
        let reference = &mount.shared_volume;
        *reference.name == *volume.name() && *reference.namespace == *volume.namespace()
    })
}
