//! The loop: its stores, and the two tasks.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join;
use parking_lot::Mutex;

use super::secrets::Secrets;
use super::writer::{Changed, Writer};
use crate::api::tenant::TenantKind;
use crate::config::read;
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// Writes the file of public keys, and ensures that the host keys exist.
pub struct BastionLoop {
    writer: Writer,
    secrets: Secrets,
}

impl ReplicaDefinition for BastionLoop {
    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = read!(setup.config, controllers.bastion).clone();
        let changed = Arc::new(Changed::default());
        let queue = Arc::clone(&changed);
        // All Tenants, whatever their labels: every user of the cluster may log in.
        let tenants = set
            .store::<TenantKind>(&Selection::ALL)
            .on_change(move |change, _| {
                let keys = change.object_if(|tenant| (&tenant.spec.public_keys, tenant.is_terminating()));
                if let Some(tenant) = keys {
                    queue.add(tenant.metadata.name.clone());
                }
            })
            .get();
        let writer = Writer {
            tenants,
            changed,
            path: PathBuf::from(&config.authorized_keys_file),
            options: config.key_options.clone(),
            file: Mutex::default(),
        };
        Ok(Self { writer, secrets: Secrets { client: setup.ungated.clone(), config } })
    }
}

impl ReplicaLoop for BastionLoop {
    const NAME: &'static str = "bastion";

    async fn run(self, health: Health, stop: Stop) {
        let [keys, pairs] = health.divided();
        // Both tasks may be cancelled at any point: files are replaced atomically, and Secrets are created in one
        // request.
        tokio::select! {
            () = stop.asked() => {}
            _ = join(self.writer.run(keys), self.secrets.run(pairs)) => {}
        }
    }
}
