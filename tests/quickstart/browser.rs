//! Headless Chromium, which opens a lab machine through an NGINX.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use cluster::nginx::Nginx;

use crate::images::run;
use crate::lab::Lab;

/// Opens a URL in the browser, with an NGINX on that port. Returns the document that the browser shows. NGINX must have
/// answered 200 for it.
pub fn open(lab: &Lab, own: &Path, port: u64, url: &str) -> String {
    let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).expect("a port")));
    let ingresses = lab.list("ingresses", "");
    let backend = |namespace: &str, service: &Value| backend(lab, namespace, service);
    let nginx = Nginx::start(&own.join("nginx"), address, true, None, &ingresses, backend).expect("nginx");
    // A user continues after the warning about the certificate.
    let profile = format!("--user-data-dir={}", own.join("chromium").display());
    let page = run(Command::new(chromium())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors", "--dump-dom"])
        .args([&profile, url]));
    let log = nginx.requests().expect("the log");
    let path = url.splitn(4, '/').nth(3).expect("a path");
    let is_answer = |line: &&str| line.starts_with(&format!("/{path} ")) && line.contains("Chrome");
    let answer = log.lines().find(is_answer).unwrap_or_else(|| panic!("no request for {url}: {log}"));
    assert!(answer.contains(" 200 "), "{answer}\n{page}");
    page
}

/// The first Chromium of this machine.
fn chromium() -> &'static str {
    let known = ["chromium-headless-shell", "chromium", "google-chrome"];
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    known.into_iter().find(is_there).unwrap_or_else(|| panic!("none of {known:?} is installed"))
}

/// The address of a pod behind a port of a Service.
fn backend(lab: &Lab, namespace: &str, service: &Value) -> Result<String> {
    let slices = lab.list("endpointslices", namespace);
    let is_wanted = |slice: &&Value| {
        slice["metadata"]["labels"]["kubernetes.io/service-name"] == service["name"]
            && slice["endpoints"][0]["conditions"]["ready"] == true
    };
    let slice =
        slices.iter().find(is_wanted).with_context(|| format!("no pod for {service}: {slices:#?}"))?;
    let ports = slice["ports"].as_array().context("ports")?;
    let port = ports.iter().find(|port| port["name"] == service["port"]["name"]).context("the port")?;
    let address = slice["endpoints"][0]["addresses"][0].as_str().context("an address")?;
    Ok(format!("{address}:{}", port["port"]))
}
