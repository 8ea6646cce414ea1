//! The intended differences from the recorded objects of Instances.

use serde_json::{Value, json};

use super::Objects;

/// Applies the intended differences to the recorded objects of Instances.
pub fn apply(objects: &mut Objects) {
    for object in objects.values_mut() {
        match object["kind"].as_str().unwrap_or_default() {
            // Pod Security `restricted` requires it.
            "Deployment" => {
                let context = &mut object["spec"]["template"]["spec"]["securityContext"];
                context["seccompProfile"] = json!({"type": "RuntimeDefault"});
            }
            // The NGINX Ingress controller requires it if a path is a regular expression.
            "Ingress" => {
                let path = &mut object["spec"]["rules"][0]["http"]["paths"][0];
                if path["path"].as_str().is_some_and(|path| path.contains('(')) {
                    path["pathType"] = "ImplementationSpecific".into();
                }
            }
            _ => {}
        }
    }
    // The Go operators left the image of the content downloader empty.
    let downloader = "/spec/template/spec/initContainers/0/image";
    set(
        objects,
        "Deployment/i-container-persistent",
        downloader,
        json!("crownlabs/content-downloader:latest"),
    );
    // The daemon uses `storageClassName` for the disks of virtual machines, too.
    let class = "/spec/dataVolumeTemplates/0/spec/pvc/storageClassName";
    set(objects, "VirtualMachine/i-vm-persistent", class, json!("fast-ssd"));
    for name in ["i-cloudvm", "i-vm", "i-vm-persistent"] {
        let secret = format!("Secret/{name}");
        // The daemon disables SSH login with the public default password.
        set(objects, &secret, "/data/userdata/ssh_pwauth", json!(false));
        // The comment after the mounts has another text.
        let userdata = objects.get_mut(&secret).and_then(|s| s.pointer_mut("/data/userdata/mounts"));
        let last =
            userdata.and_then(Value::as_array_mut).and_then(|mounts| mounts.last_mut()).expect("mounts");
        last[0] = "# The mounts above are managed by CrownLabs: changes made here are lost.".into();
        // Comments after users' keys are removed.
        for list in ["ssh_authorized_keys", "users/0/ssh_authorized_keys"] {
            let first = format!("/data/userdata/{list}/0");
            let key = objects.get_mut(&secret).and_then(|s| s.pointer_mut(&first)).expect("a key");
            *key = key.as_str().and_then(|key| key.strip_suffix(" ada@lab")).expect("its comment").into();
        }
    }
}

fn set(objects: &mut Objects, name: &str, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let object = objects.get_mut(name).unwrap_or_else(|| panic!("{name} is recorded"));
    object.pointer_mut(parent).unwrap_or_else(|| panic!("{name} has {parent}"))[key] = value;
}
