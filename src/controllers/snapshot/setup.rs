//! Puts the snapshot loop together.

use std::sync::Arc;

use super::room::Room;
use super::world::World;
use crate::manager::control::ControlLoop;
use crate::manager::{Running, Setup};
use crate::runtime::apply::Engine;
use crate::runtime::controller::Reconciler;
use crate::runtime::events::Recorder;
use crate::runtime::hub::Hub;
use crate::runtime::queue::{Backoff, Queue};

/// Puts the loop together. Nothing runs before the watches of `hub` are spawned.
pub fn set_up(setup: &Setup<'_>, hub: &mut Hub) -> Running {
    let config = &setup.config.controllers.snapshot;
    let world = Arc::new(World::new(hub, &setup.config.selector));
    let queue = Arc::new(Queue::new(Room::NAME, Backoff::default()));
    world.subscribe(&queue);
    let room = Room {
        world: Arc::clone(&world),
        engine: Engine::new(setup.writer.clone(), world.registry(), Room::NAME),
        events: Recorder::new(setup.client.clone(), "InstanceSnapshot"),
        config: Arc::new(config.clone()),
        resync: (setup.config.resync.min.into(), setup.config.resync.max.into()),
    };
    let (all, woken) = (Arc::clone(&world), Arc::clone(&queue));
    let control = ControlLoop::new(room, queue, config.concurrency, move || all.enqueue_all(&woken))
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
