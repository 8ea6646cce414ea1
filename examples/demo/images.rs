//! The images of a registry in an `ImageList`: `IMAGES=1`. The registry is Debian's docker-registry.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::parts::is_wanted;
use crate::people::wait;
use cluster::Cluster;
use cluster::registry::Registry;

/// The list.
const LIST: &str = "lab-images";
/// The address of the registry.
const ADDRESS: &str = "127.0.0.1:18085";
/// The images of a list and their tags, one per line.
const IMAGES: &str = r#"jsonpath={range .spec.images[*]}{.name}: {.versions}{"\n"}{end}"#;
/// The registry in the names of images.
const NAME: &str = "registry.example.org";

/// The registry.
pub struct Images {
    registry: Registry,
}

impl Images {
    /// Starts a registry with two images if the variable `IMAGES` is set.
    pub fn start() -> Result<Option<Self>> {
        if !is_wanted("IMAGES") {
            return Ok(None);
        }
        println!("starting a registry …");
        let registry = Registry::start(ADDRESS)?;
        registry.push("machines/ubuntu", &["22.04", "24.04"])?;
        registry.push("applications/wireshark", &["4.4"])?;
        Ok(Some(Self { registry }))
    }

    /// The keys below `controllers`.
    pub fn controllers() -> String {
        format!(
            "  imageList: {{enabled: true, updateInterval: 5s, registries: [{{imageListName: {LIST}, url: \
             \"http://{ADDRESS}\", registryName: {NAME}}}]}}\n"
        )
    }

    /// Prints the list, pushes another tag, and stops the registry.
    pub fn show(&mut self, cluster: &Cluster) -> Result<()> {
        println!("\nthe images of the registry {ADDRESS}, which is named {NAME} here\n");
        let count = |list: &Value| list["spec"]["images"].as_array().map_or(0, Vec::len);
        await_list(cluster, "a list of two images", |list| count(list) == 2)?;
        kubectl(cluster, "yaml")?;
        println!("\npushing machines/ubuntu:26.04 …\n");
        self.registry.push("machines/ubuntu", &["26.04"])?;
        let before = await_list(cluster, "the new tag", |list| list["spec"].to_string().contains("26.04"))?;
        kubectl(cluster, IMAGES)?;
        println!("\nstopping the registry: the list stays, and says why it is stale …\n");
        self.registry.stop();
        let after = await_list(cluster, "a list that is stale", |list| {
            let mut conditions = list["status"]["conditions"].as_array().into_iter().flatten();
            conditions.any(|condition| condition["type"] == "Stale" && condition["status"] == "True")
        })?;
        kubectl(cluster, "wide")?;
        println!();
        kubectl(cluster, IMAGES)?;
        ensure!(after["spec"] == before["spec"], "the list has changed: {}", after["spec"]);
        Ok(())
    }
}

/// Waits until the list is as wanted. Returns it.
fn await_list(cluster: &Cluster, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    wait(what, || Ok(cluster.get("imagelists", "", LIST)?.filter(&is_wanted)))
}

/// Prints a command that gets the list, and its output.
fn kubectl(cluster: &Cluster, format: &str) -> Result<()> {
    let quote = if format.contains('{') { "'" } else { "" };
    println!("$ kubectl get imagelists {LIST} -o {quote}{format}{quote}");
    let output = cluster.kubectl().args(["get", "imagelists", LIST, "-o", format]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    print!("{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}
