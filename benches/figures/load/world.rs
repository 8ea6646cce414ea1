//! The courses, Tenants and Instances of a load.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::harness::{Bench, CONCURRENCY};

/// How many Tenants a course has.
const TENANTS_OF_COURSE: usize = 50;
/// One of this many Instances is exposed.
const EXPOSED: usize = 50;
/// One of this many Instances is an exam.
const EXAMS: usize = 100;
/// The Template whose Instances are stopped when they are not used.
const WATCHED: &str = "container";
/// How long a creation is retried that Kubernetes rejects because it is still counting the quota.
const PATIENCE: Duration = Duration::from_mins(6);
/// The longest time that the volumes of all Tenants may take.
const VOLUMES: Duration = Duration::from_mins(15);

/// The Templates of a course: name, type and further keys of the environment, and the setting that ends its Instances.
const TEMPLATES: [(&str, &str, bool, &str, &str); 3] = [
    (WATCHED, "Container", false, "stopAfterInactivity", "15m"),
    ("vm", "VirtualMachine", false, "deleteAfterCreation", "30d"),
    ("vm-persistent", "VirtualMachine", true, "deleteAfterInactivity", "30d"),
];

/// The API of the custom resources.
const API: &str = "/apis/crownlabs.polito.it/v1alpha2";

/// The size of the load.
pub struct World {
    /// The number of Tenants; Tenant number `t` is in course number `t % courses`.
    pub tenants: usize,
    /// Whether kwok and the stand-in run pods and virtual machines; otherwise they stay as they are written.
    pub is_simulated: bool,
}

impl World {
    /// The number of courses.
    pub fn courses(&self) -> usize {
        self.tenants.div_ceil(TENANTS_OF_COURSE)
    }

    /// The name of an Instance.
    pub fn name(n: usize) -> String {
        format!("load-{n:05}")
    }

    /// The namespace of an Instance: the namespace of its Tenant.
    pub fn namespace(&self, n: usize) -> String {
        format!("tenant-student-{:04}", n % self.tenants)
    }

    /// The name of the Template of an Instance: a third of the Instances have each, and each Tenant has all of them.
    fn template(&self, n: usize) -> &'static str {
        TEMPLATES[(n + n / self.tenants) % TEMPLATES.len()].0
    }

    /// Whether an Instance is stopped when it is not used.
    pub fn is_watched(&self, n: usize) -> bool {
        self.template(n) == WATCHED
    }

    /// Creates the Workspaces. In their namespaces, which the daemon creates, it creates the Templates and a
    /// shared volume.
    pub async fn create_courses(&self, bench: &Bench) -> Result<()> {
        for course in 0..self.courses() {
            let workspace = json!({
                "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "Workspace",
                "metadata": {"name": format!("course-{course:02}"), "labels": selector()},
                "spec": {
                    "prettyName": format!("Course {course}"),
                    "quota": {"cpu": 1000, "memory": "4000Gi", "instances": 1000},
                },
            });
            bench.send("POST", "/apis/crownlabs.polito.it/v1alpha1/workspaces", &workspace).await?;
        }
        for course in 0..self.courses() {
            let namespace = format!("workspace-course-{course:02}");
            await_namespace(bench, &namespace).await?;
            let volume = json!({
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "SharedVolume", "metadata": {"name": "materials"},
                "spec": {"prettyName": "Materials", "size": "10Gi"},
            });
            bench.send("POST", &format!("{API}/namespaces/{namespace}/sharedvolumes"), &volume).await?;
            for each in TEMPLATES {
                let body = template(course, &namespace, each);
                bench.send("POST", &format!("{API}/namespaces/{namespace}/templates"), &body).await?;
            }
        }
        Ok(())
    }

    /// Creates the Tenants. Each has a public key and is the only user of its personal namespace.
    pub async fn create_tenants(&self, bench: &Bench, key: &str) -> Result<()> {
        let creations = (0..self.tenants).map(|n| {
            let course = format!("course-{:02}", n % self.courses());
            let tenant = json!({
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant",
                "metadata": {"name": tenant(n), "labels": selector()},
                "spec": {
                    "firstName": "Ada", "lastName": "Rossi", "email": format!("{}@example.org", tenant(n)),
                    "lastLogin": "2099-01-01T00:00:00Z", "publicKeys": [key],
                    "workspaces": [{"name": course, "role": "user"}],
                },
            });
            async move { bench.send("POST", &format!("{API}/tenants"), &tenant).await.map(drop) }
        });
        all(creations).await
    }

    /// Waits until the volume of each Tenant and each course is prepared. Without kwok, it marks the pods of the
    /// Jobs that prepare them as succeeded.
    pub async fn await_volumes(&self, bench: &Bench) -> Result<()> {
        let (begin, wanted) = (Instant::now(), self.tenants + self.courses());
        loop {
            if !self.is_simulated {
                self.end_jobs(bench).await?;
            }
            let path = "/api/v1/persistentvolumeclaims?labelSelector=crownlabs.polito.it/volume-provisioning=completed";
            let ready = list(bench, path).await?.len();
            if ready >= wanted {
                return Ok(());
            }
            anyhow::ensure!(
                begin.elapsed() < VOLUMES,
                "{ready} of {wanted} volumes are ready after {VOLUMES:?}"
            );
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Marks the pods of Jobs as succeeded, because nothing runs them.
    async fn end_jobs(&self, bench: &Bench) -> Result<()> {
        let path =
            "/api/v1/pods?labelSelector=batch.kubernetes.io/job-name&fieldSelector=status.phase=Pending";
        let ends = list(bench, path).await?.into_iter().map(|pod| async move {
            let part = |key: &str| pod["metadata"][key].as_str().unwrap_or_default().to_owned();
            let path = format!("/api/v1/namespaces/{}/pods/{}/status", part("namespace"), part("name"));
            bench.send("PATCH", &path, &json!({"status": {"phase": "Succeeded"}})).await.map(drop)
        });
        all(ends).await
    }

    /// Creates the Instances with the numbers from `from` to `to`, several at the same time, and calls `created` after
    /// each of them.
    pub async fn create_instances(
        &self,
        bench: &Bench,
        numbers: std::ops::Range<usize>,
        exam_url: &str,
        created: impl Fn(),
    ) -> Result<()> {
        let created = &created;
        all(numbers.map(|n| async move {
            self.create_instance(bench, n, exam_url).await?;
            created();
            Ok(())
        }))
        .await
    }

    /// Creates one Instance.
    pub async fn create_instance(&self, bench: &Bench, n: usize, exam_url: &str) -> Result<()> {
        let (owner, course) = (n % self.tenants, n % self.tenants % self.courses());
        let mut body = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance",
            "metadata": {"name": Self::name(n)},
            "spec": {
                "template.crownlabs.polito.it/TemplateRef":
                    {"name": self.template(n), "namespace": format!("workspace-course-{course:02}")},
                "tenant.crownlabs.polito.it/TenantRef": {"name": tenant(owner)},
            },
        });
        if n.is_multiple_of(EXPOSED) {
            let ports = [
                json!({"name": "fixed", "port": 8000 + n / EXPOSED % 10, "targetPort": 80, "protocol": "TCP"}),
                json!({"name": "any", "port": 0, "targetPort": 81, "protocol": "TCP"}),
            ];
            body["spec"]["publicExposure"] = json!({"ports": ports});
        }
        if n % EXAMS == 1 {
            body["spec"]["statusCheckUrl"] = json!(exam_url);
        }
        let path = format!("{API}/namespaces/{}/instances", self.namespace(n));
        let begin = Instant::now();
        loop {
            match bench.send("POST", &path, &body).await {
                Ok(_) => return Ok(()),
                Err(error) if begin.elapsed() < PATIENCE && is_about_counting(&error) => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Whether Kubernetes has rejected a request because it has not counted a quota yet, or because of two simultaneous
/// changes to one quota.
fn is_about_counting(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}");
    text.contains("status unknown for quota") || text.contains("on resourcequotas")
}

/// The name of a Tenant.
fn tenant(n: usize) -> String {
    format!("student.{n:04}")
}

/// The label that marks the objects managed by the daemon.
fn selector() -> Value {
    json!({"crownlabs.polito.it/operator-selector": "bench"})
}

/// A Template of a course, with GUI and `MyDrive`; the Template for containers mounts the shared volume, too.
fn template(course: usize, namespace: &str, parts: (&str, &str, bool, &str, &str)) -> Value {
    let (name, environment, is_persistent, end, after) = parts;
    let mounts = json!([{
        "mountPath": "/mnt/materials", "readOnly": true, "sharedVolume": {"name": "materials", "namespace": namespace},
    }]);
    let mut main = json!({
        "name": "main", "environmentType": environment, "image": "r.example.org/lab:1", "persistent": is_persistent,
        "resources": {"cpu": 1, "reservedCPUPercentage": 10, "memory": "1G"},
    });
    if is_persistent {
        main["resources"]["disk"] = json!("10G");
    }
    if environment == "Container" {
        main["sharedVolumeMounts"] = mounts;
    }
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Template", "metadata": {"name": name},
        "spec": {
            "prettyName": name, "description": "load", "allowPublicExposure": true, "cleanup": {end: after},
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": format!("course-{course:02}")},
            "environmentList": [main],
        },
    })
}

/// Sends some requests, [`CONCURRENCY`] at the same time; the first error ends them.
async fn all(requests: impl Iterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
    let mut answers = stream::iter(requests).buffer_unordered(CONCURRENCY);
    while let Some(answer) = answers.next().await {
        answer?;
    }
    Ok(())
}

/// The objects of a list.
async fn list(bench: &Bench, path: &str) -> Result<Vec<Value>> {
    let request = http::Request::get(path).body(Vec::new())?;
    let mut answer: Value = bench.client.request(request).await.with_context(|| path.to_owned())?;
    serde_json::from_value(answer["items"].take()).context("a list")
}

/// Waits until a namespace exists.
async fn await_namespace(bench: &Bench, name: &str) -> Result<()> {
    let begin = Instant::now();
    while bench.cluster.get("namespaces", "", name)?.is_none() {
        anyhow::ensure!(begin.elapsed() < Duration::from_mins(1), "no namespace {name} after a minute");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
