//! The third-party CRDs that `CrownLabs` uses, generated or copied from the Go modules that publish them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};

use super::assets::{cached, go, module_inputs, run_logged};

/// A CRD of `KubeVirt` or CDI to install.
struct Definition {
    /// The group and the plural, as in the name of the file that controller-gen writes.
    file: &'static str,
    kind: &'static str,
    version: &'static str,
    short_names: [&'static str; 2],
    /// Whether status is a subresource.
    status: bool,
}

const KUBEVIRT: [Definition; 3] = [
    Definition {
        file: "kubevirt.io_virtualmachines",
        kind: "VirtualMachine",
        version: "v1",
        short_names: ["vm", "vms"],
        status: true,
    },
    Definition {
        file: "kubevirt.io_virtualmachineinstances",
        kind: "VirtualMachineInstance",
        version: "v1",
        short_names: ["vmi", "vmis"],
        status: false,
    },
    Definition {
        file: "cdi.kubevirt.io_datavolumes",
        kind: "DataVolume",
        version: "v1beta1",
        short_names: ["dv", "dvs"],
        status: true,
    },
];

/// The CRDs of the Gateway API to install.
const GATEWAY: [&str; 3] = ["gatewayclasses", "gateways", "httproutes"];

/// Part of the name in the cache. It is incremented when this file generates something else from the same modules.
const RECIPE: &str = "recipe 1";

/// The folder with the CRDs of `VirtualMachine`, `VirtualMachineInstance` and `DataVolume`.
///
/// controller-gen generates them from the published API modules. KubeVirt's own generator adds short names and the
/// status subresource (a `VirtualMachineInstance` has none); so does this function.
pub fn kubevirt(cache: &Path) -> Result<PathBuf> {
    let inputs = module_inputs("kubevirt")? + RECIPE;
    cached(cache, "kubevirt-crds", &inputs, "2 minutes", |out| {
        let generated = tempfile::tempdir_in(out)?;
        let mut generator = go("kubevirt")?;
        generator.args([
            "tool",
            "controller-gen",
            "crd:allowDangerousTypes=true,maxDescLen=0",
            "paths=kubevirt.io/api/core/v1",
            "paths=kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1",
        ]);
        generator.arg(format!("output:crd:dir={}", generated.path().display()));
        let log = generated.path().join("log");
        run_logged(&mut generator, &log)?;
        for Definition { file: name, short_names, status, .. } in KUBEVIRT {
            let path = generated.path().join(format!("{name}.yaml"));
            let text = fs::read_to_string(&path).with_context(|| format!("controller-gen made no {name}"))?;
            let mut crd: Value = serde_saphyr::from_str(text.trim_start_matches("---"))?;
            complete(&mut crd, &short_names, status).with_context(|| format!("completing {name}"))?;
            fs::write(out.join(format!("{name}.json")), serde_json::to_vec_pretty(&crd)?)?;
        }
        Ok(())
    })
}

/// Adds short names and, if asked, the status subresource to a generated CRD.
fn complete(crd: &mut Value, short_names: &[&str], status: bool) -> Result<()> {
    let names = crd.pointer_mut("/spec/names").ok_or_else(|| anyhow!("no spec.names"))?;
    names["shortNames"] = json!(short_names);
    let versions = crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.ok_or_else(|| anyhow!("no spec.versions"))? {
        if status {
            version["subresources"] = json!({"status": {}});
        }
    }
    Ok(())
}

/// Writes the CRDs of `VirtualMachine`, `VirtualMachineInstance` and `DataVolume` into a folder of a cluster, without
/// the schemas of their projects: the API server then knows their names and accepts any field. This needs no build.
/// Returns the paths.
pub fn without_schemas(dir: &Path) -> Result<Vec<PathBuf>> {
    let folder = dir.join("crds");
    fs::create_dir_all(&folder)?;
    let write = |definition: &Definition| {
        let path = folder.join(format!("{}.json", definition.file));
        fs::write(&path, definition.without_schema().to_string())?;
        Ok(path)
    };
    KUBEVIRT.iter().map(write).collect()
}

impl Definition {
    fn without_schema(&self) -> Value {
        let (group, plural) = self.file.split_once('_').unwrap_or_default();
        let subresources = if self.status { json!({"status": {}}) } else { json!({}) };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {
                    "kind": self.kind,
                    "listKind": format!("{}List", self.kind),
                    "plural": plural,
                    "singular": self.kind.to_lowercase(),
                    "shortNames": self.short_names,
                },
                "versions": [{
                    "name": self.version,
                    "served": true,
                    "storage": true,
                    "subresources": subresources,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }],
            },
        })
    }
}

/// The folder with the CRDs of the Gateway API (standard channel), copied from its Go module.
pub fn gateway(cache: &Path) -> Result<PathBuf> {
    let inputs = module_inputs("gateway-api")? + RECIPE;
    cached(cache, "gateway-crds", &inputs, "1 minute", |out| {
        let output =
            go("gateway-api")?.args(["mod", "download", "-json", "sigs.k8s.io/gateway-api"]).output()?;
        let answer: Value =
            serde_json::from_slice(&output.stdout).context("`go mod download` gave no answer")?;
        let dir = answer["Dir"].as_str().ok_or_else(|| {
            anyhow!("the module sigs.k8s.io/gateway-api cannot be downloaded: {}", answer["Error"])
        })?;
        for plural in GATEWAY {
            let name = format!("gateway.networking.k8s.io_{plural}.yaml");
            let source = Path::new(dir).join("config/crd/standard").join(&name);
            let text = fs::read(&source).with_context(|| format!("reading {}", source.display()))?;
            // `fs::copy` would keep the permissions of the module cache, whose files are read-only.
            fs::write(out.join(&name), text)?;
        }
        Ok(())
    })
}
