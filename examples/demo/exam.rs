//! An exam server, which creates and deletes an Instance over HTTP: `EXAM=1`.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::people::wait;
use cluster::Cluster;
use cluster::request::{Answer, send};

/// The address of the exam agent.
const ADDRESS: &str = "127.0.0.1:18086";
/// The namespace that the manifests of the exam agent use.
const NAMESPACE: &str = "crownlabs-exam";
/// The path of the Instance.
const PATH: &str = "/api/instances/s123456-5f2c";
/// The exam server, which is in `allowedIps`.
const SERVER: &str = "192.0.2.10";
/// A student, whose address is not in `allowedIps`.
const STUDENT: &str = "203.0.113.7";

/// The namespace, the Tenant and the Template.
const OBJECTS: &str = "apiVersion: v1
kind: Namespace
metadata: {name: crownlabs-exam, labels: {crownlabs.polito.it/operator-selector: production}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {name: service-tenant}
spec: {firstName: Exam, lastName: Service, email: exams@example.org}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: editor, namespace: crownlabs-exam, labels: {example.org/exam: \"true\"}}
spec:
  prettyName: Editor
  description: For the exam
  workspace.crownlabs.polito.it/WorkspaceRef: {name: netlab}
  environmentList:
  - name: editor
    environmentType: Container
    mountMyDriveVolume: false
    image: registry.example.org/applications/editor:1.0
    resources: {cpu: 1, reservedCPUPercentage: 25, memory: 1Gi}
";

/// The keys below `controllers`.
pub fn controllers() -> String {
    // The demo takes the place of the Ingress controller, too.
    format!(
        "  examAgent: {{enabled: true, listen: \"{ADDRESS}\", namespace: {NAMESPACE}, allowedIps: [{SERVER}/32], \
         trustedProxies: [127.0.0.1/32], templateSelector: {{example.org/exam: \"true\"}}}}\n"
    )
}

/// Creates an Instance, waits until it is ready, and deletes it; a student may only read it.
pub fn show(cluster: &Cluster, root: &Path) -> Result<()> {
    println!("\nan exam; {SERVER}, the exam server, is in allowedIps, and {STUDENT}, a student, is not\n");
    cluster.apply(OBJECTS)?;
    cluster.apply_files(&[&root.join("manifests/exam-agent/exam-agent.yaml")])?;
    let body = json!({"id": "s123456", "template": "editor", "labels": {"course": "tsr"}}).to_string();
    println!("the exam server creates an Instance: {body}");
    // RBAC rules take effect with a short delay.
    let created = wait("an Instance of the exam agent", || {
        let answer = ask("PUT", SERVER, &[], &body).ok();
        Ok(answer.filter(|answer| answer.status != 500))
    })?;
    expect(&created, "PUT", 201)?;
    let mut last = Value::Null;
    let ready = wait("a ready Instance of the exam", || {
        let answer = ask("GET", SERVER, &[], "")?;
        let shown: Value = serde_json::from_str(&answer.body).context(answer.body.clone())?;
        if shown["phase"] != last && shown["phase"] != "" {
            last = shown["phase"].clone();
            println!("  GET {PATH}: {}, {}", answer.status, last.as_str().unwrap_or_default());
        }
        Ok((last == "Ready").then_some(answer))
    })?;
    println!("  {}", ready.body.trim());
    println!("the browser of the student is redirected to the desktop");
    let led = wait("the redirect to the desktop", || {
        let page = ask("GET", STUDENT, &[("Accept", "text/html")], "")?;
        Ok((page.status == 302).then_some(page))
    })?;
    expect(&led, "GET", 302)?;
    println!("  Location: {}", led.header("Location"));
    let forged = format!("{SERVER}, {STUDENT}");
    println!(
        "the student tries to delete it, with X-Forwarded-For: {SERVER}; the Ingress controller sends {forged}"
    );
    expect(&ask("DELETE", &forged, &[], "")?, "DELETE", 403)?;
    println!("the exam server deletes it");
    expect(&ask("DELETE", SERVER, &[], "")?, "DELETE", 200)?;
    wait("the end of the Instance", || Ok((ask("GET", SERVER, &[], "")?.status == 404).then_some(())))?;
    println!("  GET {PATH}: 404, it is gone");
    Ok(())
}

/// Sends a request for a client, as the Ingress controller does.
fn ask(method: &str, client: &str, headers: &[(&str, &str)], body: &str) -> Result<Answer> {
    let mut headers = headers.to_vec();
    headers.push(("X-Forwarded-For", client));
    send(ADDRESS, method, PATH, &headers, body)
}

/// Prints the status of a response, and fails if it is another one.
fn expect(answer: &Answer, method: &str, wanted: u16) -> Result<()> {
    println!("  {method} {PATH}: {}", answer.status);
    ensure!(answer.status == wanted, "{method} {PATH}: {} {}", answer.status, answer.body);
    Ok(())
}
