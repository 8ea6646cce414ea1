//! The dashboard in a browser: a real control plane that trusts a real Keycloak, the daemon with its webhooks, two replicas of the
//! dashboard behind a proxy without sticky sessions, and Chromium, driven by Playwright (`browser`).
//!
//! `make dashboard-test` runs it. `DASHBOARD_GREP` selects tests by name.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod bastion;
mod control;
#[path = "../integration/daemon.rs"]
#[allow(dead_code, reason = "shared with the integration tests")]
mod daemon;
mod desktops;
#[path = "../integration/lab.rs"]
#[allow(dead_code, reason = "shared with the integration tests")]
mod lab;
mod logins;
#[path = "../integration/bastion/network.rs"]
#[allow(dead_code, reason = "shared with the integration tests")]
mod network;
mod realm;
mod screens;
mod seen;
mod site;
#[path = "../integration/bastion/ssh.rs"]
#[allow(dead_code, reason = "shared with the integration tests")]
mod ssh;
mod terminals;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use control::Control;
use site::Site;

/// Returns the folder of the browser tests.
fn browser() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard/browser")
}

#[test]
fn the_dashboard_in_a_browser() {
    let installed = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])
        .current_dir(browser())
        .status();
    assert!(installed.expect("npm").success(), "npm ci");
    let site = Arc::new(Site::start());
    let control = Control::start(&site);
    let mut playwright = Command::new("npx");
    playwright.args(["--no-install", "playwright", "test"]).current_dir(browser());
    if let Ok(grep) = std::env::var("DASHBOARD_GREP") {
        playwright.args(["--grep", &grep]);
    }
    let recorded = tempfile::tempdir().expect("a folder");
    let status = playwright
        .env("DASHBOARD_URL", site.url())
        .env("DASHBOARD_ISSUER", site.issuer())
        .env("DASHBOARD_CONTROL", control.url())
        .env("DASHBOARD_PASSWORD", realm::PASSWORD)
        .env("DASHBOARD_RECORDED", recorded.path())
        .status();
    assert!(status.expect("playwright").success(), "the tests above; {}", site.log());
    seen::no_secret(&site, recorded.path());
    seen::names(&site);
    seen::metadata_alone(&site);
}
