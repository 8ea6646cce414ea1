//! Puts the loop of shared volumes together.

use std::sync::Arc;

use super::room::Room;
use super::world::World;
use crate::manager::{Running, Setup};
use crate::runtime::factory::StoreFactory;

/// Puts the loop together. Nothing runs before the watches of `factory` are spawned.
pub fn set_up(setup: &Setup<'_>, factory: &mut StoreFactory) -> Running {
    let config = &setup.config.controllers.shared_volume;
    let world = Arc::new(World::new(factory, &setup.config.selector));
    let room = Room {
        world: Arc::clone(&world),
        desk: setup.desk::<Room>(world.registry(), "SharedVolume"),
        config: Arc::new(config.clone()),
    };
    let control = setup
        .control(room, &world, config.concurrency)
        .requires(&world.volumes)
        .requires(&world.namespaces)
        .requires(&world.templates)
        .requires(&world.deployments)
        .requires(&world.secrets)
        .requires(&world.claims)
        .requires(&world.storage)
        .requires(&world.jobs);
    Running { control, files: Vec::new() }
}
