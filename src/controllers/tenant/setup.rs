//! Puts the tenant loop together.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use tracing::warn;

use super::Settings;
use super::account_events::{self, Secret};
use super::room::Room;
use super::world::World;
use crate::controllers::accounts::Accounts;
use crate::manager::{Running, Setup, Watched};
use crate::runtime::factory::StoreFactory;
use crate::runtime::gate::Gate;
use crate::runtime::http_server::Handler;
use crate::runtime::queue::Queue;

/// Puts the loop together. Nothing runs before the watches of `factory` are spawned.
pub fn set_up(setup: &Setup<'_>, factory: &mut StoreFactory, accounts: Option<Accounts>) -> Running {
    let config = setup.config.controllers.tenant.clone();
    let concurrency = config.concurrency;
    let settings = Settings { selector: setup.config.selector.clone(), config };
    let world = Arc::new(World::new(factory, settings.clone()));
    let room = Room {
        world: Arc::clone(&world),
        desk: setup.desk::<Room>(world.registry(), "Tenant"),
        accounts,
        settings: Arc::new(settings),
    };
    let control = setup
        .control(room, &world, concurrency)
        .requires(&world.tenants)
        .requires(&world.workspaces)
        .requires(&world.instances)
        .requires(&world.templates)
        .requires(&world.namespaces)
        .requires(&world.cluster_roles)
        .requires(&world.cluster_bindings)
        .requires(&world.bindings)
        .requires(&world.quotas)
        .requires(&world.limits)
        .requires(&world.policies)
        .requires(&world.drives)
        .requires(&world.volumes)
        .requires(&world.jobs)
        .requires(&world.secrets);
    Running { control, files: Vec::new() }
}

/// What takes Keycloak's events for that queue, and the file with the secret that they are signed with.
pub fn account_events(queue: &Arc<Queue>, gate: &Gate, secret_file: &str) -> (Handler, Option<Watched>) {
    let secret = Secret::default();
    let watched = (!secret_file.is_empty()).then(|| {
        let (name, secret) = (secret_file.to_owned(), Arc::clone(&secret));
        Watched::new(PathBuf::from(secret_file), move |content| {
            let trimmed = content.map(|content| content.trim_ascii().to_vec());
            if trimmed.as_ref().is_none_or(Vec::is_empty) {
                warn!(file = name, "server.keycloakEvents.secretFile cannot be read; no event is taken");
            }
            // Without a secret that could be told nothing is signed rightly.
            *secret.write().unwrap_or_else(PoisonError::into_inner) = Some(trimmed.unwrap_or_default());
        })
    });
    (account_events::handler(Arc::clone(queue), gate.clone(), secret), watched)
}
