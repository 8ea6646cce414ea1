//! The tasks that monitor the systems outside the cluster.

use std::fmt::Display;

use crate::config::{Config, MailTransport};
use crate::controllers::setup::Setup;
use crate::runtime::outages::{Outages, System};
use crate::runtime::task::Task;

/// Returns a task for each system that an enabled loop uses. Requests to registries and exam servers are periodic, so
/// their loops notice the beginning and the end of an outage themselves.
pub fn tasks(setup: &mut Setup<'_>, config: &Config) -> Vec<Task> {
    let outages = &setup.outages.clone();
    let mut tasks = Vec::new();
    if let Some(accounts) = setup.accounts() {
        let url = accounts.url().to_owned();
        tasks.push(Task::new("Keycloak", accounts.clone().watch_outage()));
        tasks.push(monitor(outages, System::Keycloak, url, accounts, |it| async move { it.ask().await }));
    }
    if let Some(prometheus) = setup.prometheus().filter(|_| uses_prometheus(config)) {
        let url = prometheus.url().to_owned();
        tasks.push(monitor(outages, System::Prometheus, url, prometheus, |it| async move { it.ask().await }));
    }
    let mailer = setup.mailer().filter(|_| sends_mails(config));
    if let Some((mailer, server)) = mailer.and_then(|mailer| mailer.server().map(|server| (mailer, server))) {
        tasks.push(monitor(outages, System::Mail, server, mailer, |it| async move { it.ask().await }));
    }
    #[cfg(feature = "daemon")]
    if let Some(provider) = setup.issuer.clone() {
        let url = provider.issuer().to_owned();
        tasks.push(monitor(outages, System::Issuer, url, provider, |it| async move { it.ask().await }));
    }
    tasks
}

/// Returns the task that monitors a server: `ask` sends it a request that changes nothing.
fn monitor<C, A, E>(outages: &Outages, system: System, url: String, client: C, ask: fn(C) -> A) -> Task
where
    C: Clone + Send + Sync + 'static,
    A: Future<Output = Result<(), E>> + Send + 'static,
    E: Display + Send + 'static,
{
    Task::new(system.name(), outages.clone().watch(system, url, move || ask(client.clone())))
}

/// Whether a loop queries Prometheus.
pub fn uses_prometheus(config: &Config) -> bool {
    config.controllers.inactivity.enabled
}

/// Whether a loop sends mails.
pub fn sends_mails(config: &Config) -> bool {
    let controllers = &config.controllers;
    let (inactivity, expiration) = (&controllers.inactivity, &controllers.expiration);
    // Without a transport, the other two are rejected, and this loop sends no receipts.
    let has_receipts = controllers.submission.enabled && controllers.submission.notifications;
    inactivity.enabled && inactivity.notifications
        || expiration.enabled && expiration.notifications
        || has_receipts && config.integrations.mail.transport != MailTransport::None
}
