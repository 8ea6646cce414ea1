//! The loop: queries the runtime periodically, serves the results, and reports its health.

use std::sync::Arc;

use futures::future::join;
use tokio::time::{MissedTickBehavior, interval};
use tracing::info;

use super::exposition;
use super::scrape::Scraper;
use super::service::handler;
use super::shared::{LIFETIME, Shared};
use crate::config::{InstanceMetricsConfig, read};
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::controllers::shared::listener::listen;
use crate::runtime::grpc_server::serve;
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;

/// Measures the resource use of the Instances on this node.
pub struct InstanceMetricsLoop {
    config: InstanceMetricsConfig,
    shared: Arc<Shared>,
}

impl ReplicaDefinition for InstanceMetricsLoop {
    const USES_API_SERVER: bool = false;

    fn build(setup: &mut Setup<'_>, _: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let (config, shared) = (read!(setup.config, controllers.instance_metrics).clone(), Arc::default());
        let shown = Arc::clone(&shared);
        setup.expositions.push(Box::new(move |text| exposition::append(&shown, text)));
        Ok(Self { config, shared })
    }
}

impl ReplicaLoop for InstanceMetricsLoop {
    const NAME: &'static str = "instanceMetrics";

    async fn run(self, health: Health, stop: Stop) {
        let Self { config, shared } = self;
        let [runtime, listener] = health.divided();
        let measuring = async {
            tokio::select! {
                () = measure(&config, &shared, &runtime) => {}
                () = stop.asked() => {}
            }
        };
        let serving = async {
            let Some(address) = config.listen.address() else { return listener.ready() };
            let key = "controllers.instanceMetrics.listen";
            let Some(bound) = listen(key, address, &listener, &stop).await else { return };
            listener.ready();
            info!(address = %bound.local_addr().unwrap_or(address), "serving instance metrics");
            serve(bound, handler(Arc::clone(&shared)), stop.asked()).await;
        };
        join(measuring, serving).await;
    }
}

/// Queries the runtime now and after each period. Never returns.
async fn measure(config: &InstanceMetricsConfig, shared: &Shared, health: &Health) {
    let (deadline, namespaces) = (config.connection_timeout.get(), config.namespaces.clone());
    let scraper = Scraper::new(&config.runtime_endpoint, deadline, namespaces);
    let mut ticks = interval(config.update_period.get());
    // After a slow round, the next one follows a whole period later.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match scraper.scrape().await {
            Ok(samples) => {
                shared.advance(&samples);
                health.ready();
            }
            Err(error) => {
                shared.expire();
                health.failing(format!(
                    "cannot read the use of containers: {error}. The last values are served for {LIFETIME:?}"
                ));
            }
        }
    }
}
