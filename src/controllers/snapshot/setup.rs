//! Puts the snapshot loop together.

use std::sync::Arc;

use super::room::Room;
use super::world::World;
use crate::manager::{Running, Setup};
use crate::runtime::factory::StoreFactory;

/// Puts the loop together. Nothing runs before the watches of `factory` are spawned.
pub fn set_up(setup: &Setup<'_>, factory: &mut StoreFactory) -> Running {
    let config = &setup.config.controllers.snapshot;
    let world = Arc::new(World::new(factory, &setup.config.selector));
    let room = Room {
        world: Arc::clone(&world),
        desk: setup.desk::<Room>(world.registry(), "InstanceSnapshot"),
        config: Arc::new(config.clone()),
    };
    let control = setup
        .control(room, &world, config.concurrency)
        .requires(&world.snapshots)
        .requires(&world.instances)
        .requires(&world.templates)
        .requires(&world.tenants)
        .requires(&world.namespaces)
        .requires(&world.jobs)
        .requires(&world.pods)
        .uses(&world.machines)
        .uses(&world.running)
        .uses(&world.disks);
    Running { control, files: Vec::new() }
}
