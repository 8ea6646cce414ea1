//! Public exposure: ports of Instances on public addresses. The stand-in gives the addresses, as `MetalLB` does.

mod concurrency;
mod ignored;
mod life;
mod names;
mod recorder;
mod repair;
mod requests;

use std::sync::Arc;

use serde_json::{Value, json};

pub use concurrency::assert_no_port_is_shared;

use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// The daemon's configuration with this pool, and the annotation of `MetalLB` for Services that share an address.
fn config(pool: &str) -> String {
    format!(
        "controllers: {{publicExposure: {{ipPool: [{pool}], commonAnnotations: {{metallb.io/allow-shared-ip: pe}}}}}}\n"
    )
}

/// An Instance that requests these ports, as entries of a YAML list.
pub fn exposed(fixtures: &str, name: &str, ports: &str) -> String {
    let instance = instance(fixtures, name, "container");
    instance.replace("spec:\n", &format!("spec:\n  publicExposure: {{ports: [{ports}]}}\n"))
}

/// Allows public exposure in the Template `container` of these fixtures.
pub fn allow(lab: &Lab, fixtures: &str) {
    lab.patch(
        "templates",
        &format!("workspace-{fixtures}"),
        "container",
        r#"{"spec": {"allowPublicExposure": true}}"#,
    );
}

/// The shared control plane with these fixtures, whose Template `container` allows public exposure.
fn lab_that_allows(fixtures: &str) -> Arc<Lab> {
    let lab = Lab::shared();
    lab.create_fixtures(fixtures);
    allow(&lab, fixtures);
    lab
}

/// Sets the requested ports of an Instance.
pub fn set_ports(lab: &Lab, namespace: &str, name: &str, ports: &Value) {
    let patch = json!({"spec": {"publicExposure": {"ports": ports}}});
    lab.patch("instances", namespace, name, &patch.to_string());
}

/// Waits until the exposure of an Instance has this phase, and a message that contains `message`. Returns the status of
/// the exposure.
fn await_exposure(lab: &Lab, namespace: &str, name: &str, phase: &str, message: &str) -> Value {
    wait_until(PATIENCE, || {
        let object = lab.get("instances", namespace, name).ok_or_else(|| format!("Instance {name}"))?;
        let exposure = &object["status"]["publicExposure"];
        let actual = exposure["message"].as_str().unwrap_or_default();
        if exposure["phase"] == phase && actual.contains(message) {
            return Ok(exposure.clone());
        }
        Err(format!("{name}: {phase} {message:?}, is {exposure}"))
    })
}
