//! The images of a registry in an `ImageList`: `IMAGES=1`. The registry is Debian's docker-registry.

use std::fs;
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::cluster::processes::Process;
use crate::parts::is_wanted;
use crate::people::wait;
use crate::request::send;

/// The list.
const LIST: &str = "lab-images";
/// The address of the registry.
const ADDRESS: &str = "127.0.0.1:18085";
/// The images of a list and their tags, one a line.
const IMAGES: &str = r#"jsonpath={range .spec.images[*]}{.name}: {.versions}{"\n"}{end}"#;
/// How the registry is called in the names of images.
const NAME: &str = "registry.example.org";
/// An index without entries: the smallest that a registry takes as an image.
const INDEX: &str = r#"{"schemaVersion":2,"manifests":[]}"#;
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// The digest of the blob `{}`.
const BLOB: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/// The registry.
pub struct Images {
    registry: Process,
}

impl Images {
    /// Starts a registry with two images if the variable `IMAGES` is set.
    pub fn start(folder: &Path) -> Result<Option<Self>> {
        if !is_wanted("IMAGES") {
            return Ok(None);
        }
        println!("starting a registry …");
        let (config, data) = (folder.join("registry.yaml"), folder.join("registry"));
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: \"{}\"}}}}\nhttp: {{addr: \"{ADDRESS}\"}}\n",
            data.display()
        );
        fs::write(&config, text)?;
        let (program, arguments) =
            (Path::new("docker-registry"), ["serve".to_owned(), config.display().to_string()]);
        let mut registry = Process::start("registry", program, &arguments, folder.join("registry.log"))?;
        wait("the registry", || registry.check().map(|()| TcpStream::connect(ADDRESS).ok()))?;
        push("machines/ubuntu", &["22.04", "24.04"])?;
        push("applications/wireshark", &["4.4"])?;
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
        println!("\nthe images of the registry {ADDRESS}, which are those of {NAME}\n");
        let count = |list: &Value| list["spec"]["images"].as_array().map_or(0, Vec::len);
        await_list(cluster, "a list of two images", |list| count(list) == 2)?;
        kubectl(cluster, "yaml")?;
        println!("\npushing machines/ubuntu:26.04 …\n");
        push("machines/ubuntu", &["26.04"])?;
        let before = await_list(cluster, "the new tag", |list| list["spec"].to_string().contains("26.04"))?;
        kubectl(cluster, IMAGES)?;
        println!("\nstopping the registry: the list stays, and says why it is stale …\n");
        self.registry.kill();
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

/// Pushes an image under these tags.
fn push(repository: &str, tags: &[&str]) -> Result<()> {
    let created = |method: &str, path: &str, content: &str, body: &str| {
        let answer = send(ADDRESS, method, path, &[("Content-Type", content)], body)?;
        ensure!(matches!(answer.status, 201 | 202), "{method} {path}: {} {}", answer.status, answer.body);
        Ok(answer)
    };
    // A repository without a blob is not in the catalogue.
    let upload = created("POST", &format!("/v2/{repository}/blobs/uploads/"), "text/plain", "")?;
    let location = upload.header("Location");
    let location =
        location.find("/v2/").and_then(|begin| location.get(begin..)).context("a place to upload")?;
    created("PUT", &format!("{location}&digest={BLOB}"), "application/octet-stream", "{}")?;
    for tag in tags {
        created("PUT", &format!("/v2/{repository}/manifests/{tag}"), INDEX_TYPE, INDEX)?;
    }
    Ok(())
}
