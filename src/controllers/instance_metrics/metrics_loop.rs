//! The loop: asks the runtime in a fixed period, serves, and says how it fares.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::info;

use super::exposition;
use super::scrape::Scraper;
use super::select::Namespaces;
use super::service::handler;
use super::shared::{LIFETIME, Shared};
use crate::config::InstanceMetricsConfig;
use crate::controllers::setup::{ReplicaDefinition, Setup};
use crate::runtime::grpc_server::serve;
use crate::runtime::http_server::bind;
use crate::runtime::replica::{Health, ReplicaLoop, Stop};
use crate::runtime::store_set::StoreSet;

/// How long to wait before the address is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Measures what the Instances of this node use.
pub struct InstanceMetricsLoop {
    config: InstanceMetricsConfig,
    shared: Arc<Shared>,
}

impl ReplicaDefinition for InstanceMetricsLoop {
    const USES_API_SERVER: bool = false;

    fn build(setup: &mut Setup<'_>, _: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let (config, shared) = (setup.config.controllers.instance_metrics.clone(), Arc::default());
        let shown = Arc::clone(&shared);
        setup.expositions.push(Box::new(move |text| exposition::append(&shown, text)));
        Ok(Self { config, shared })
    }
}

impl ReplicaLoop for InstanceMetricsLoop {
    const NAME: &'static str = "instanceMetrics";

    async fn run(self, health: Health, stop: Stop) {
        let Self { config, shared } = self;
        let state = State { health, problems: Mutex::default() };
        let measuring = async {
            tokio::select! {
                () = measure(&config, &shared, &state) => {}
                () = stop.asked() => {}
            }
        };
        let serving = async {
            let Some(address) = config.listen.address() else { return };
            let Some(listener) = listen(address, &state, &stop).await else { return };
            info!(address = %listener.local_addr().unwrap_or(address), "serving instance metrics");
            serve(listener, handler(Arc::clone(&shared)), stop.asked()).await;
        };
        join(measuring, serving).await;
    }
}

/// Asks the runtime, and again after the period. Never returns.
async fn measure(config: &InstanceMetricsConfig, shared: &Shared, state: &State) {
    let namespaces = Namespaces::new(&config.namespaces);
    let mut scraper = Scraper::new(&config.runtime_endpoint, config.connection_timeout.get(), namespaces);
    let mut ticks = interval(config.update_period.get());
    // A round that takes long is followed by the next after a whole period.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match scraper.scrape().await {
            Ok(samples) => {
                shared.advance(&samples);
                state.measured(None);
            }
            Err(error) => {
                shared.expire();
                state.measured(Some(format!(
                    "the use of containers cannot be read: {error}. The last numbers are given for {LIFETIME:?}"
                )));
            }
        }
    }
}

/// Binds the address, as soon as that is possible; `None` if the process is asked to stop before.
async fn listen(address: SocketAddr, state: &State, stop: &Stop) -> Option<TcpListener> {
    loop {
        match bind("controllers.instanceMetrics.listen", address).await {
            Ok(listener) => {
                state.served(None);
                return Some(listener);
            }
            Err(error) => state.served(Some(error.to_string())),
        }
        tokio::select! {
            () = sleep(RETRY) => {}
            () = stop.asked() => return None,
        }
    }
}

/// How the two halves of the loop fare: neither waits for the other.
struct State {
    health: Health,
    problems: Mutex<Problems>,
}

#[derive(Default)]
struct Problems {
    /// Whether a round has ended.
    is_measured: bool,
    /// What is wrong with the runtime, since the last round.
    runtime: Option<String>,
    /// What is wrong with the address of the service.
    listener: Option<String>,
}

impl State {
    fn measured(&self, wrong: Option<String>) {
        self.tell(|problems| (problems.is_measured, problems.runtime) = (true, wrong));
    }

    fn served(&self, wrong: Option<String>) {
        self.tell(|problems| problems.listener = wrong);
    }

    fn tell(&self, change: impl FnOnce(&mut Problems)) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut problems);
        let wrong = problems.runtime.iter().chain(&problems.listener);
        let wrong: Vec<&str> = wrong.map(String::as_str).collect();
        if !wrong.is_empty() {
            self.health.failing(wrong.join("; "));
        } else if problems.is_measured {
            self.health.ready();
        }
    }
}
