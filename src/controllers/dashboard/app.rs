//! The state that all handlers share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::timeout;

use super::class::memory::{self, Memory};
use super::home::last_seen::{LastSeen, MOST_OBJECTS};
use super::http::brand::Brand;
use super::limits::Limits;
use super::limits::sockets::Sockets;
use super::live::broadcast::Broadcast;
use super::live::watches::Announced;
use super::session::Keys;
use super::sharing::stores::Shared;
use super::student::Settings;
use super::terminal::web_ssh::WebSsh;
use super::user::users::Users;
use crate::api::quota::Rule;
use crate::api::{GenericRef, labels};
use crate::config::{DashboardConfig, Reader, read};
use crate::controllers::shared::connections::Connections;

/// The maximum number of concurrent reads for pages that a browser opens. The three limits are separate: when a course
/// begins, all students send a form, which leads to a page, and neither should wait for the other.
const OPENED: usize = 64;
/// The maximum number of concurrent reads for pages that are already open.
const OPEN: usize = 16;
/// The maximum number of concurrent actions.
const FORMS: usize = 16;
/// The maximum time that a page or a form waits for others. Each of them holds a connection, and the dashboard
/// has twice as many connections as pages that it reads at the same time.
const MOST_WAIT: Duration = Duration::from_secs(5);

/// The state that all handlers share.
pub struct App {
    /// The configuration.
    pub config: DashboardConfig,
    /// The appearance of the university.
    pub brand: Brand,
    /// The settings of the pages.
    pub settings: Settings,
    /// The users of the sessions.
    pub users: Users,
    /// The last content of each home page.
    pub last_seen: LastSeen,
    /// The classes as their readers have last read them.
    pub classes: Memory,
    /// The broadcast of changes to the open pages.
    pub broadcast: Arc<Broadcast>,
    /// The Announcements.
    pub announced: Announced,
    /// The shared machines.
    pub shared: Shared,
    /// The open consoles of machines of others.
    pub consoles: Arc<Connections>,
    /// The limits of each client.
    pub limits: Limits,
    /// The WebSockets of pages.
    pub sockets: Sockets,
    /// Web SSH, which has the terminals; `None` if it is not configured.
    pub web_ssh: Option<WebSsh>,
    /// Limits the reads of pages that a browser opens.
    pub opened: Semaphore,
    /// Limits the reads of pages that are already open.
    pub open: Semaphore,
    /// Limits the actions.
    pub forms: Semaphore,
    /// The keys that seal cookies; `None` until their file exists.
    pub keys: watch::Receiver<Option<Arc<Keys>>>,
}

impl App {
    /// Creates the state for a configuration.
    pub fn new(
        config: DashboardConfig,
        settings: Settings,
        users: Users,
        keys: watch::Receiver<Option<Arc<Keys>>>,
        broadcast: Arc<Broadcast>,
    ) -> Self {
        let [opened, open, forms] = [OPENED, OPEN, FORMS].map(Semaphore::new);
        let (brand, last_seen) = (Brand::of(&config.appearance), LastSeen::new(MOST_OBJECTS));
        let classes = Memory::new(memory::MOST_BYTES);
        let limits = Limits::new(&config.trusted_proxies, config.max_pages);
        let (announced, shared) = (Announced::default(), Shared::default());
        Self {
            config,
            brand,
            settings,
            users,
            last_seen,
            classes,
            broadcast,
            announced,
            shared,
            consoles: Arc::default(),
            limits,
            sockets: Sockets::default(),
            web_ssh: None,
            opened,
            open,
            forms,
            keys,
        }
    }

    /// Returns the state with the Announcements of these watches.
    #[must_use]
    pub fn with_announced(self, announced: Announced) -> Self {
        Self { announced, ..self }
    }

    /// Returns the state with the shared machines of these stores.
    #[must_use]
    pub fn with_shared(self, shared: Shared) -> Self {
        Self { shared, ..self }
    }

    /// Returns the state with the terminals of this web SSH.
    #[must_use]
    pub fn with_web_ssh(self, web_ssh: Option<WebSsh>) -> Self {
        Self { web_ssh, ..self }
    }

    /// Returns the origin of the issuer, which the policy of pages allows as a target of forms.
    pub fn issuer_origin(&self) -> &str {
        let url = self.config.issuer_url.as_str();
        // The first two slashes are those of `https://`.
        url.match_indices('/').nth(2).map_or(url, |(end, _)| &url[..end])
    }
}

/// Waits for a permit; `None` if none is free in time.
pub async fn permit(of: &Semaphore) -> Option<SemaphorePermit<'_>> {
    // The semaphore is never closed.
    timeout(MOST_WAIT, of.acquire()).await.ok()?.ok()
}

/// Returns the settings of the pages for a configuration.
pub fn settings(config: &mut Reader<'_>) -> Settings {
    let dashboard = read!(config, controllers.dashboard);
    Settings {
        ssh_host: dashboard.ssh_host.clone(),
        ssh_by_name: dashboard.ssh_by_name,
        ssh_fingerprint: dashboard.ssh_fingerprint.clone(),
        web_ssh: dashboard.web_ssh_url.clone(),
        drive_template: dashboard.drive_template.split_once('/').map(|(of, name)| GenericRef::new(of, name)),
        node_labels: dashboard.node_labels.clone(),
        selector: labels::selector_string(read!(config, selector)),
        namespace: read!(config, leader_election.namespace).clone(),
        machines: read!(config, controllers.instance.website_base_url).clone(),
        peer_desktops: peer_desktops(config, dashboard),
        drive_size: read!(config, controllers.tenant.my_drive.size).to_string(),
        rule: Rule {
            require_enrolment: *read!(config, server.webhook.require_enrolment),
            personal_workspaces: *read!(config, controllers.tenant.personal_workspace.enabled),
        },
        is_rule_enforced: *read!(config, server.webhook.instance_quota),
    }
}

/// Returns the domain and the port of the desktops of peers; empty if they cannot open desktops. The desktops have the port
/// of the dashboard.
fn peer_desktops(config: &mut Reader<'_>, dashboard: &DashboardConfig) -> String {
    let base = read!(config, controllers.instance.website_base_url);
    let own = dashboard.public_url.strip_prefix("https://").unwrap_or_default();
    let port = own.find(':').map_or("", |at| &own[at..]);
    if dashboard.peer_desktops { format!("{base}{port}") } else { String::new() }
}
