//! A whole exam: the exam server starts an Instance through the exam agent, ends the exam, and receives the content.

use serde_json::json;

use super::{ALLOWED, SERVER, STUDENT, awaited, daemon, send};
use crate::exam_server::{Answer, ExamServer};
use crate::lab::Lab;
use crate::termination::await_condition;

const WATCH: &str = "/metadata/labels/crownlabs.polito.it~1watch-for-instance-termination";
const COMPLETED: &str = "/metadata/labels/crownlabs.polito.it~1instance-submission-completed";

#[test]
fn an_exam_is_started_stopped_and_uploaded() {
    let (lab, name, server) = (Lab::shared(), "exam-whole", ExamServer::start());
    let _course = lab.course(name);
    let namespace = &*format!("workspace-{name}");
    lab.apply(&format!(
        "apiVersion: v1
kind: Secret
metadata: {{name: mydrive-info, namespace: {namespace}}}
stringData: {{server-name: nfs.example.org, path: /exports/exams}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: service-tenant}}
spec: {{firstName: Exam, lastName: Service, email: exams@example.org}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: exam-agent, namespace: {namespace}}}
rules: [{{apiGroups: [crownlabs.polito.it], resources: [instances, templates], verbs: [get, list, watch, create, patch, delete]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: exam-agent, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: exam-agent}}
subjects: [{{kind: ServiceAccount, name: crownlabs, namespace: crownlabs-system}}]
"
    ));
    server.set("status", Answer::Body(200, ""));
    let termination = "statusCheckInterval: 5s, allowCidrs: [127.0.0.0/8]";
    let others = [("instance", ""), ("termination", termination), ("submission", "")];
    let (daemon, port) = daemon(&lab.service_account(), name, &others, ALLOWED);
    let body = json!({
        "id": "s123456", "template": "container-persistent",
        "customizationUrls": {"statusCheck": server.url("status"), "contentDestination": "https://x.example/up?key=hunter2"},
    });
    let path = "/api/instances/exam-s123456";
    let created = send(port, "PUT", path, &[("X-Forwarded-For", SERVER)], &body.to_string());
    assert_eq!(created.status, 201, "{created:?}");
    let object = lab.await_value("instances", namespace, "exam-s123456", WATCH, "true");
    assert_eq!(object["spec"]["prettyName"], "Exam s123456");
    lab.await_phase(namespace, "exam-s123456", "Ready");
    await_condition(&lab, namespace, "exam-s123456", "StatusChecked", "Kept");
    let url = lab.get("instances", namespace, "exam-s123456").expect("there")["status"]["url"].clone();
    let browser = || send(port, "GET", path, &[("X-Forwarded-For", STUDENT), ("Accept", "text/html")], "");
    awaited(browser, |page| (page.status, page.header("location")) == (302, url.as_str()));
    // A response may be sent back, with the labels that the daemon has set.
    let shown = send(port, "GET", path, &[("X-Forwarded-For", SERVER)], "").json();
    assert_eq!(shown["phase"], "Ready");
    let again = send(port, "PUT", path, &[("X-Forwarded-For", SERVER)], &shown.to_string());
    assert_eq!(again.status, 200, "{again:?}");
    server.set("status", Answer::Body(410, ""));
    lab.await_value("instances", namespace, "exam-s123456", COMPLETED, "true");
    awaited(browser, |page| page.status == 410);
    assert_eq!(send(port, "DELETE", path, &[("X-Forwarded-For", SERVER)], "").status, 200);
    lab.await_gone("instances", namespace, "exam-s123456");
    assert!(!daemon.log().contains("hunter2"), "the log has a secret");
}
