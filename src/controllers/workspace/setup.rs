//! Puts the workspace loop together.

use std::sync::Arc;

use super::room::Room;
use super::world::World;
use crate::controllers::accounts::Accounts;
use crate::manager::{Running, Setup};
use crate::runtime::factory::StoreFactory;

/// Puts the loop together. Nothing runs before the watches of `factory` are spawned.
pub fn set_up(setup: &Setup<'_>, factory: &mut StoreFactory, accounts: Option<Accounts>) -> Running {
    let config = &setup.config.controllers.workspace;
    let world = Arc::new(World::new(factory, &setup.config.selector));
    let room =
        Room { world: Arc::clone(&world), desk: setup.desk::<Room>(world.registry(), "Workspace"), accounts };
    let control = setup
        .control(room, &world, config.concurrency)
        .requires(&world.workspaces)
        .requires(&world.tenants)
        .requires(&world.namespaces)
        .requires(&world.cluster_bindings)
        .requires(&world.bindings);
    Running { control, files: Vec::new() }
}
