//! The third-party CRDs that `CrownLabs` uses, generated or copied from the Go modules that publish them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};

use super::assets::{cached, go, module_inputs, run_logged};

/// The CRDs of KubeVirt and CDI that are installed: file name, short names, whether status is a subresource.
const KUBEVIRT: [(&str, &[&str], bool); 3] = [
    ("kubevirt.io_virtualmachines", &["vm", "vms"], true),
    ("kubevirt.io_virtualmachineinstances", &["vmi", "vmis"], false),
    ("cdi.kubevirt.io_datavolumes", &["dv", "dvs"], true),
];

/// The CRDs of the Gateway API that are installed.
const GATEWAY: [&str; 3] = ["gatewayclasses", "gateways", "httproutes"];

/// Part of the name in the cache. It is incremented when this file makes something else from the same modules.
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
        for (name, short_names, status) in KUBEVIRT {
            let path = generated.path().join(format!("{name}.yaml"));
            let text = fs::read_to_string(&path).with_context(|| format!("controller-gen made no {name}"))?;
            let mut crd: Value = serde_saphyr::from_str(text.trim_start_matches("---"))?;
            complete(&mut crd, short_names, status).with_context(|| format!("completing {name}"))?;
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
