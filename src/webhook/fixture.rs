//! Objects and requests for the tests of the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::review::{Operation, Options, Request, Resource, UserInfo};
use super::view::View;
use crate::api::exposed_ports::PublicPort;
use crate::api::quota::Objects;
use crate::api::{Instance, Template, Tenant, Workspace};
use crate::runtime::ObjectKey;

/// A [`View`] for tests: objects by name.
#[derive(Debug, Default, Clone)]
pub struct TestCluster {
    tenants: BTreeMap<String, Arc<Tenant>>,
    workspaces: BTreeMap<String, Arc<Workspace>>,
    templates: BTreeMap<ObjectKey, Arc<Template>>,
    instances: BTreeMap<ObjectKey, Arc<Instance>>,
    namespaces: BTreeMap<String, String>,
    obstacles: Vec<String>,
    taken_ports: BTreeSet<PublicPort>,
}

impl TestCluster {
    /// Adds a Tenant. Its Workspaces are given as `name:role`.
    pub fn with_tenant(mut self, name: &str, workspaces: &[&str]) -> Self {
        self.tenants.insert(name.to_owned(), Arc::new(read(&tenant(name, workspaces))));
        self
    }

    /// Adds the Tenant that this JSON describes.
    pub fn with_tenant_json(mut self, json: &Value) -> Self {
        let tenant: Tenant = read(json);
        self.tenants.insert(tenant.name().to_owned(), Arc::new(tenant));
        self
    }

    /// Adds a Workspace.
    pub fn with_workspace(mut self, name: &str, auto_enroll: &str, quota: &Value) -> Self {
        let json = json!({"metadata": {"name": name}, "spec": {
            "prettyName": name, "autoEnroll": auto_enroll, "quota": quota,
        }});
        self.workspaces.insert(name.to_owned(), Arc::new(read(&json)));
        self
    }

    /// Adds a Template of a Workspace, with an environment for each of the `resources`.
    pub fn with_template(
        mut self,
        namespace: &str,
        name: &str,
        workspace: &str,
        resources: &[Value],
    ) -> Self {
        let environments: Vec<Value> =
            resources.iter().map(|resources| json!({"resources": resources})).collect();
        let json = json!({"metadata": {"namespace": namespace, "name": name}, "spec": {
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": workspace}, "environmentList": environments,
        }});
        self.templates.insert(ObjectKey::new(namespace, name), Arc::new(read(&json)));
        self
    }

    /// Adds a Template that mounts the shared volume `data` of the namespace `volumes`.
    pub fn with_mounting_template(
        mut self,
        namespace: &str,
        name: &str,
        workspace: &str,
        volumes: &str,
        read_only: bool,
    ) -> Self {
        let volume = json!({"name": "data", "namespace": volumes});
        let mount = json!({"sharedVolume": volume, "mountPath": "/mnt/data", "readOnly": read_only});
        let environment = json!({"resources": {"cpu": 1, "memory": "1Gi"}, "sharedVolumeMounts": [mount]});
        let json = json!({"metadata": {"namespace": namespace, "name": name}, "spec": {
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": workspace}, "environmentList": [environment],
        }});
        self.templates.insert(ObjectKey::new(namespace, name), Arc::new(read(&json)));
        self
    }

    /// Adds the Template that this JSON describes.
    pub fn with_template_json(mut self, json: &Value) -> Self {
        let template: Template = read(json);
        self.templates.insert(ObjectKey::of(&template), Arc::new(template));
        self
    }

    /// Removes a Template.
    pub fn without_template(mut self, namespace: &str, name: &str) -> Self {
        self.templates.remove(&ObjectKey::new(namespace, name));
        self
    }

    /// Adds the namespace of a Tenant.
    pub fn with_namespace(mut self, name: &str, tenant: &str) -> Self {
        self.namespaces.insert(name.to_owned(), tenant.to_owned());
        self
    }

    /// Adds an obstacle for all Templates.
    pub fn with_obstacle(mut self, obstacle: &str) -> Self {
        self.obstacles.push(obstacle.to_owned());
        self
    }

    /// Lets other Instances have a public TCP port.
    pub fn with_taken_port(mut self, port: u16) -> Self {
        self.taken_ports.insert((false, port));
        self
    }

    /// Adds the Instance that this JSON describes.
    pub fn with_instance(mut self, json: &Value) -> Self {
        let instance: Instance = read(json);
        self.instances.insert(ObjectKey::of(&instance), Arc::new(instance));
        self
    }
}

impl Objects for TestCluster {
    fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        self.tenants.get(name).cloned()
    }
    fn workspace(&self, name: &str) -> Option<Arc<Workspace>> {
        self.workspaces.get(name).cloned()
    }
    fn template(&self, namespace: &str, name: &str) -> Option<Arc<Template>> {
        self.templates.get(&ObjectKey::new(namespace, name)).cloned()
    }
}

impl View for TestCluster {
    fn tenant_of_namespace(&self, namespace: &str) -> Option<String> {
        self.namespaces.get(namespace).cloned()
    }
    fn instances(&self, namespace: &str) -> Vec<Arc<Instance>> {
        let of_namespace = self.instances.iter().filter(|(key, _)| key.namespace == namespace);
        of_namespace.map(|(_, instance)| Arc::clone(instance)).collect()
    }
    fn taken_public_ports(&self, _: &ObjectKey) -> BTreeSet<PublicPort> {
        self.taken_ports.clone()
    }
    fn obstacles(&self, _: &Template) -> Vec<String> {
        self.obstacles.clone()
    }
}

fn read<T: serde::de::DeserializeOwned>(json: &Value) -> T {
    serde_json::from_value(json.clone()).expect("an object")
}

/// A stored Tenant. Its Workspaces are given as `name:role`.
pub fn tenant(name: &str, workspaces: &[&str]) -> Value {
    let entries: Vec<Value> = workspaces
        .iter()
        .map(|entry| {
            let (name, role) = entry.split_once(':').expect("name:role");
            json!({"name": name, "role": role})
        })
        .collect();
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant",
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"firstName": "Ada", "lastName": "Rossi", "email": "ada@example.org", "workspaces": entries},
    })
}

/// An Instance of `template` (given as `namespace/name`) for the Tenant `ada`.
pub fn instance(namespace: &str, name: &str, template: &str, running: bool) -> Value {
    let (template_namespace, template) = template.split_once('/').expect("namespace/name");
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}")},
        "spec": {
            "template.crownlabs.polito.it/TemplateRef": {"name": template, "namespace": template_namespace},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
            "running": running,
        },
    })
}

/// The object after a merge patch (RFC 7386).
pub fn merged(mut object: Value, patch: &Value) -> Value {
    json_patch::merge(&mut object, patch);
    object
}

/// A request of a user without special groups. It creates the object if `old` is null.
pub fn request(user: &str, plural: &str, old: Value, new: Value) -> Request {
    let text = |pointer: &str| new.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    Request {
        uid: "1".to_owned(),
        resource: Resource {
            group: "crownlabs.polito.it".to_owned(),
            version: "v1alpha2".to_owned(),
            plural: plural.to_owned(),
        },
        sub_resource: String::new(),
        name: text("/metadata/name"),
        namespace: text("/metadata/namespace"),
        operation: if old.is_null() { Operation::Create } else { Operation::Update },
        user_info: UserInfo { username: user.to_owned(), groups: vec!["system:authenticated".to_owned()] },
        object: new.into(),
        old_object: old.into(),
        dry_run: false,
        options: Options::default(),
    }
}
