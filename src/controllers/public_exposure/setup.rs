//! Puts the public exposure loop together.

use std::sync::Arc;

use anyhow::Context as _;
use tracing::warn;

use super::Settings;
use super::room::Room;
use super::world::World;
use crate::config::PublicExposureConfig;
use crate::config::pool::Pool;
use crate::manager::{Running, Setup};
use crate::runtime::factory::StoreFactory;

/// Puts the loop together. Nothing runs before the watches of `factory` are spawned.
///
/// # Errors
/// When the pool cannot be read; the configuration is checked for that before.
pub fn set_up(setup: &Setup<'_>, factory: &mut StoreFactory) -> anyhow::Result<Running> {
    let config = &setup.config.controllers.public_exposure;
    let settings = Arc::new(settings(config)?);
    let world = Arc::new(World::new(factory, &setup.config.selector, Arc::clone(&settings)));
    let room = Room {
        world: Arc::clone(&world),
        desk: setup.desk::<Room>(world.registry(), "PublicExposure"),
        settings,
    };
    let control = setup
        .control(room, &world, config.concurrency)
        .requires(&world.instances)
        .requires(&world.templates)
        .requires(&world.namespaces)
        .requires(&world.services)
        .requires(&world.policies);
    Ok(Running { control, files: Vec::new() })
}

/// The settings as the loop has them; what is odd about them is logged.
///
/// # Errors
/// When the pool cannot be read.
pub fn settings(config: &PublicExposureConfig) -> anyhow::Result<Settings> {
    let (pool, warnings) = Pool::parse(&config.ip_pool).context("controllers.publicExposure.ipPool")?;
    for warning in warnings {
        warn!(%pool, "controllers.publicExposure.ipPool: {warning}");
    }
    Ok(Settings {
        pool,
        automatic: config.automatic_port_range.ports(),
        annotations: config.common_annotations.clone(),
        labels: config.common_labels.clone(),
        address_key: config.load_balancer_ips_key.clone(),
        wait_for_address: config.wait_for_address,
    })
}
