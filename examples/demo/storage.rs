//! A shared volume of a course, and an image of a virtual machine's disk.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{NAMESPACE, PATIENCE, interrupted_already, run};
use cluster::Cluster;

/// The virtual machine whose disk becomes an image.
const COPIED: &str = "server-1";

/// Stops a virtual machine and creates a snapshot of it at once, together with a shared volume.
pub fn show(cluster: &Cluster, samples: &[&Path]) -> Result<()> {
    println!("\nstopping {COPIED}, and requesting an image of it and a folder of the course\n");
    let stop = r#"{"spec": {"running": false}}"#;
    run(cluster, &["patch", "instance", "-n", NAMESPACE, COPIED, "--type=merge", "-p", stop])?;
    cluster.apply_files(samples)?;
    let image = follow(cluster, "instancesnapshots", NAMESPACE, "server-1-as-submitted", "Completed")?;
    let mut conditions = image["status"]["conditions"].as_array().into_iter().flatten();
    let message = conditions.find_map(|condition| condition["message"].as_str()).unwrap_or_default();
    println!("  {message}");
    let folder = follow(cluster, "sharedvolumes", "workspace-netlab", "materials", "Ready")?;
    let text = |key: &str| folder["status"][key].as_str().unwrap_or_default();
    println!("  materials is at {}:{}", text("serverAddress"), text("exportPath"));
    Ok(())
}

/// Prints the phases of an object until it reaches the wanted one. Returns the object.
fn follow(cluster: &Cluster, kind: &str, namespace: &str, name: &str, wanted: &str) -> Result<Value> {
    let (begin, mut last) = (Instant::now(), String::new());
    loop {
        anyhow::ensure!(!interrupted_already(), "interrupted");
        let object = cluster.get(kind, namespace, name)?.context(name.to_owned())?;
        let phase = object["status"]["phase"].as_str().unwrap_or_default();
        if phase != last {
            println!("  {name}: {phase}");
            phase.clone_into(&mut last);
        }
        if phase == wanted {
            return Ok(object);
        }
        anyhow::ensure!(begin.elapsed() < PATIENCE, "{name} is not {wanted}: {}", object["status"]);
        std::thread::sleep(Duration::from_millis(100));
    }
}
