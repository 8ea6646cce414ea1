//! Instances as the newest Go operator creates them: each environment has its own objects, with its name and label.

use serde_json::{Value, json};

use crate::lab::{Lab, instance};

/// A Template with two environments.
pub fn pair(fixtures: &str) -> String {
    format!(
        "apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {{name: pair, namespace: workspace-{fixtures}}}
spec:
  prettyName: pair
  description: two environments
  workspace.crownlabs.polito.it/WorkspaceRef: {{name: {fixtures}}}
  environmentList:
  - {{name: web, environmentType: Standalone, image: \"r.example.org/web:1\", persistent: true, mountMyDriveVolume: false, resources: {{cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}}}}
  - {{name: machine, environmentType: VirtualMachine, image: \"r.example.org/vm:1\", persistent: true, mountMyDriveVolume: false, resources: {{cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}}}}
"
    )
}

/// An environment of an Instance.
pub struct Made<'a> {
    lab: &'a Lab,
    instance: Value,
    environment: Value,
    /// The name of its objects.
    name: String,
}

/// Creates an Instance of a Template of [`Lab::create_fixtures`] and its objects; its pages are at that host. The
/// operator creates one cloud-init Secret for all machines of an Instance, the daemon one for each: Secrets are left
/// out.
pub fn make<'a>(lab: &'a Lab, fixtures: &str, name: &str, template: &str, host: &str) -> Vec<Made<'a>> {
    lab.apply(&instance(fixtures, name, template));
    let namespace = format!("tenant-{fixtures}");
    let instance = lab.get("instances", &namespace, name).expect("the Instance");
    let template = lab.get("templates", &format!("workspace-{fixtures}"), template).expect("the Template");
    let environments = template["spec"]["environmentList"].as_array().expect("environments").iter();
    let made = environments.map(|environment| {
        let own = environment["name"].as_str().expect("a name");
        let name = format!("{name}-{own}");
        let made = Made { lab, instance: instance.clone(), environment: environment.clone(), name };
        made.make_all(host);
        made
    });
    let made: Vec<Made<'_>> = made.collect();
    let phases = made.iter().map(|made| json!({"name": made.environment["name"], "phase": "Ready"}));
    let url = format!("https://{host}/instance/{}/", instance["metadata"]["uid"].as_str().expect("a uid"));
    let status = json!({"phase": "Ready", "url": url, "environments": phases.collect::<Vec<_>>()});
    lab.patch_status("instances", &namespace, name, &json!({"status": status}).to_string());
    made
}

impl Made<'_> {
    fn make_all(&self, host: &str) {
        let (is_machine, persists) = (self.is_machine(), self.environment["persistent"] == true);
        let (ssh, gui) = (json!({"name": "ssh", "port": 22}), json!({"name": "gui", "port": 6080}));
        let has_page = self.environment["guiEnabled"] != false;
        let ports: Vec<Value> = [(is_machine, ssh), (has_page, gui)]
            .into_iter()
            .filter_map(|(has, port)| has.then_some(port))
            .collect();
        let service = json!({"clusterIP": "None", "selector": self.pod_labels(), "ports": ports});
        self.create("v1", "Service", &service, &json!({}));
        if has_page {
            self.create_ingress(host);
        }
        match (is_machine, persists) {
            (true, true) => self.create_machine(),
            (true, false) => {
                let spec = json!({"domain": {"devices": {}}});
                self.create("kubevirt.io/v1", "VirtualMachineInstance", &spec, &json!({}));
            }
            (false, _) => self.create_container(persists),
        }
    }

    fn is_machine(&self) -> bool {
        ["VirtualMachine", "CloudVM"].iter().any(|type_| self.environment["environmentType"] == *type_)
    }

    /// The labels that its Service selects.
    fn pod_labels(&self) -> Value {
        let spec = &self.instance["spec"];
        json!({
            "crownlabs.polito.it/instance": self.instance["metadata"]["name"],
            "crownlabs.polito.it/template": spec["template.crownlabs.polito.it/TemplateRef"]["name"],
            "crownlabs.polito.it/tenant": spec["tenant.crownlabs.polito.it/TenantRef"]["name"],
            "crownlabs.polito.it/environment": self.environment["name"],
        })
    }

    /// Creates an object with the name and the labels that the operator gives it.
    fn create(&self, api_version: &str, kind: &str, spec: &Value, annotations: &Value) {
        let metadata = &self.instance["metadata"];
        let mut labels = self.pod_labels();
        labels["crownlabs.polito.it/managed-by"] = "instance".into();
        let object = json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {
                "name": self.name,
                "namespace": metadata["namespace"],
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [{
                    "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": metadata["name"],
                    "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": spec,
        });
        self.lab.apply(&object.to_string());
    }

    /// The path of its page.
    fn path(&self) -> String {
        let part = |value: &Value| value.as_str().expect("a text").to_owned();
        format!("/instance/{}/{}", part(&self.instance["metadata"]["uid"]), part(&self.environment["name"]))
    }

    fn create_ingress(&self, host: &str) {
        const PREFIX: &str = "nginx.ingress.kubernetes.io";
        let (more, target) = match (self.is_machine(), self.environment["rewriteURL"] == true) {
            (true, _) => ("/(.*)", Some("/$1")),
            (false, true) => ("(/|$)(.*)", Some("/$2")),
            (false, false) => ("", None),
        };
        let mut annotations = json!({
            format!("{PREFIX}/proxy-read-timeout"): "3600",
            format!("{PREFIX}/proxy-send-timeout"): "3600",
            format!("{PREFIX}/auth-url"): format!("https://{host}/auth/auth"),
            format!("{PREFIX}/auth-signin"): format!("https://{host}/auth/start?rd=$escaped_request_uri"),
        });
        if let Some(target) = target {
            annotations[format!("{PREFIX}/rewrite-target")] = target.into();
        }
        let backend = json!({"service": {"name": self.name, "port": {"name": "gui"}}});
        let path = format!("{}{more}", self.path());
        let rule = json!({"host": host,
            "http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend}]}});
        self.create("networking.k8s.io/v1", "Ingress", &json!({"rules": [rule]}), &annotations);
    }

    /// Creates its route, for an operator that uses the Gateway API.
    pub fn create_route(&self) {
        let rule = json!({"matches": [{"path": {"type": "PathPrefix", "value": self.path()}}],
            "backendRefs": [{"name": self.name, "port": 6080}]});
        let parents = json!([{"name": "labs", "namespace": "gateways"}]);
        let spec = json!({"parentRefs": parents, "rules": [rule]});
        self.create("gateway.networking.k8s.io/v1", "HTTPRoute", &spec, &json!({}));
    }

    fn create_container(&self, persists: bool) {
        if persists {
            self.create("v1", "PersistentVolumeClaim", &claim(), &json!({}));
        }
        let labels = self.pod_labels();
        let pod =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "i"}]}});
        let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": pod});
        self.create("apps/v1", "Deployment", &spec, &json!({}));
    }

    /// Creates a virtual machine with a disk.
    fn create_machine(&self) {
        let disk = json!({"source": {"registry": {"url": "docker://r.example.org/vm:1"}}, "pvc": claim()});
        self.create("cdi.kubevirt.io/v1beta1", "DataVolume", &disk, &json!({}));
        let volumes = json!([{"name": "root", "dataVolume": {"name": self.name}}]);
        let machine = json!({"domain": {"devices": {}}, "volumes": volumes});
        let template = json!({"metadata": {"labels": self.pod_labels()}, "spec": machine});
        let spec = json!({"running": true, "template": template});
        self.create("kubevirt.io/v1", "VirtualMachine", &spec, &json!({}));
    }
}

fn claim() -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
}
