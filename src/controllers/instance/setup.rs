//! Puts the instance loop together: stores, watches, queue, workers.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::warn;

use super::room::Room;
use super::world::World;
use crate::manager::control::ControlLoop;
use crate::manager::{Running, Setup, Watched};
use crate::runtime::factory::StoreFactory;
use crate::runtime::registry::Registry;

/// The source that events name, as upstream.
const COMPONENT: &str = "Instance";

/// Puts the loop together. Nothing runs before the watches of `factory` are spawned.
pub fn set_up(setup: &Setup<'_>, factory: &mut StoreFactory) -> Running {
    let config = &setup.config.controllers.instance;
    let world = Arc::new(World::new(factory, &setup.config.selector, config.gateway_api.enabled));
    let room = Room {
        world: Arc::clone(&world),
        desk: setup.desk::<Room>(registry(&world), COMPONENT),
        config: Arc::new(config.clone()),
    };
    let control = setup.control(room, &world, config.concurrency);
    Running {
        files: master_key(&config.webssh_master_key_file, &world).into_iter().collect(),
        control: needs(control, &world, config.gateway_api.enabled),
    }
}

fn needs(control: ControlLoop, world: &World, gateway: bool) -> ControlLoop {
    let control = control
        .requires(&world.instances)
        .requires(&world.templates)
        .requires(&world.tenants)
        .requires(&world.namespaces)
        .requires(&world.my_drives)
        .requires(&world.secrets)
        .requires(&world.services)
        .requires(&world.ingresses)
        .requires(&world.claims)
        .requires(&world.deployments)
        .requires(&world.pods)
        .uses(&world.shared_volumes)
        .uses(&world.machines)
        .uses(&world.machine_instances)
        .uses(&world.data_volumes);
    if gateway { control.uses(&world.routes) } else { control }
}

fn registry(world: &World) -> Registry {
    let mut registry = Registry::default();
    registry.add(&world.instances);
    registry.add(&world.secrets);
    registry.add(&world.services);
    registry.add(&world.ingresses);
    registry.add(&world.routes);
    registry.add(&world.claims);
    registry.add(&world.deployments);
    registry.add(&world.machines);
    registry.add(&world.machine_instances);
    registry
}

/// The web terminal's public key; without one, nobody logs in by it.
fn master_key(file: &str, world: &Arc<World>) -> Option<Watched> {
    if file.is_empty() {
        return None;
    }
    let (name, world) = (file.to_owned(), Arc::clone(world));
    Some(Watched::new(PathBuf::from(file), move |content| {
        let text = content.and_then(|content| std::str::from_utf8(content).ok());
        if text.is_none() {
            warn!(file = name, "websshMasterKeyFile cannot be read; machines are made without that key");
        }
        world.set_master_key(text);
    }))
}
