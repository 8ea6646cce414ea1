//! The objects for machines in containers pass the admission of a strict cluster: Pod Security `restricted`, and the
//! rule of the NGINX Ingress controller for paths.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::submission::COMPLETED;
use cluster::audit::writes;

/// An environment of that type, without NFS volumes, which `restricted` does not allow.
fn environment(name: &str, kind: &str, persistent: bool) -> Value {
    json!({
        "name": name, "environmentType": kind, "image": "r.example.org/app:1", "mountMyDriveVolume": false,
        "persistent": persistent, "rewriteURL": kind == "Standalone",
        "resources": {"cpu": 1, "reservedCPUPercentage": 10, "memory": "64Mi", "disk": "1Gi"},
    })
}

#[test]
fn pods_of_containers_are_admitted_where_pod_security_is_restricted() {
    let lab = Lab::shared();
    let course = lab.course("podsec");
    let namespace = "tenant-podsec";
    let enforced = r#"{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}"#;
    lab.patch("namespaces", "", namespace, enforced);
    let config = "controllers:
  submission: {enabled: true}
  instance: {ephemeralStorage: 2Gi}\n";
    let _daemon = course.daemon(config);
    // It is enforced: a pod without a security context is rejected.
    let plain = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain", "namespace": namespace},
        "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let refusal = lab.try_kubectl(&["create", "--dry-run=server", "-f", "-"], &plain.to_string());
    assert!(refusal.as_ref().is_err_and(|text| text.contains("violates PodSecurity")), "{refusal:?}");

    let contents = "  contentUrls: {main: {origin: \"https://x.example/a.zip\", destination: \"https://x.example/up\"}}\n";
    for (name, kind, persistent) in [("desk", "Container", false), ("site", "Standalone", true)] {
        lab.create_template("podsec", name, "container", &json!([environment("main", kind, persistent)]));
        lab.apply(&format!("{}{contents}", instance("podsec", name, name)));
    }
    for name in ["desk", "site"] {
        lab.await_phase(namespace, name, "Ready");
    }
    let pods = lab.list("pods", namespace);
    assert_eq!(pods.len(), 2, "{pods:#?}");
    for pod in &pods {
        let volume = &pod["spec"]["volumes"][0];
        let limit = volume.get("emptyDir").map_or(&Value::Null, |volume| &volume["sizeLimit"]);
        assert_eq!(*limit, if volume.get("emptyDir").is_some() { json!("2Gi") } else { Value::Null });
        let of = |kind: &str| pod["spec"][kind].as_array().cloned().unwrap_or_default();
        for container in [of("initContainers"), of("containers")].concat() {
            let resources = &container["resources"];
            assert_eq!(resources["limits"]["ephemeral-storage"], "2Gi", "{container}");
            assert_eq!(resources["requests"]["ephemeral-storage"], "0", "{container}");
        }
    }
    // The upload pod is admitted, too.
    let upload = json!({"crownlabs.polito.it/instance-submission-requested": "true"});
    let patch = json!({"metadata": {"labels": upload}, "spec": {"running": false}});
    lab.patch("instances", namespace, "site", &patch.to_string());
    lab.await_value("instances", namespace, "site", COMPLETED, "true");
}

/// The rule of the NGINX Ingress controller since its version 1.12 (`strict-validate-path-type`), in one namespace.
const RULE: &str = r#"apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: strict-paths}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [networking.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [ingresses]}
  matchConditions:
  - {name: the-namespace, expression: request.namespace == "tenant-paths"}
  validations:
  - expression: object.spec.rules.all(rule, !has(rule.http) || rule.http.paths.all(path,
      path.pathType == "ImplementationSpecific" || path.path.matches("^/[A-Za-z0-9._/-]*$")))
    message: a path cannot be used with its pathType
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: strict-paths}
spec: {policyName: strict-paths, validationActions: [Deny]}
"#;

#[test]
fn ingresses_have_the_path_type_for_nginx_and_older_ones_are_updated_in_place() {
    let lab = Lab::shared();
    let _course = lab.course("paths");
    let namespace = "tenant-paths";
    let kubeconfig = lab.service_account();
    let options = Options { kubeconfig: &kubeconfig, selector: "paths", config: "" };
    let daemon = Daemon::start(&options);
    lab.apply(&instance("paths", "older", "standalone"));
    lab.await_phase(namespace, "older", "Ready");
    drop(daemon);
    // As it was created before.
    let mut made = lab.get("ingresses", namespace, "older-app").expect("the Ingress");
    made["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "Prefix".into();
    let rules = json!({"spec": {"rules": made["spec"]["rules"]}}).to_string();
    lab.patch("ingresses", namespace, "older-app", &rules);
    let pods = || -> Vec<Value> {
        lab.list("pods", namespace).iter().map(|pod| pod["metadata"]["uid"].clone()).collect()
    };
    let running = pods();
    lab.apply(RULE);
    let arguments =
        ["patch", "ingress", "older-app", "-n", namespace, "--type=merge", "--dry-run=server", "-p"];
    wait_until(PATIENCE, || {
        let touch = r#"{"metadata": {"labels": {"a": "b"}}}"#;
        match lab.try_kubectl(&[&arguments[..], &[touch]].concat(), "") {
            Err(refusal) if refusal.contains("cannot be used with its pathType") => Ok(()),
            other => Err(format!("a refusal of the policy, is {other:?}")),
        }
    });

    let audit = lab.cluster.audit();
    let mark = audit.mark().expect("the audit log");
    let _daemon = Daemon::start(&options);
    let type_ = "/spec/rules/0/http/paths/0/pathType";
    let corrected = lab.await_value("ingresses", namespace, "older-app", type_, "ImplementationSpecific");
    assert_eq!(corrected["metadata"]["uid"], made["metadata"]["uid"], "it was never gone");
    made["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "ImplementationSpecific".into();
    assert_eq!(corrected["spec"], made["spec"], "and nothing else of it has changed");
    // New Instances of several environments, including a virtual machine.
    let both = json!([environment("web", "Standalone", false), environment("box", "VirtualMachine", true)]);
    lab.create_template("paths", "both", "container", &both);
    lab.apply(&instance("paths", "newer", "both"));
    lab.await_phase(namespace, "newer", "Ready");
    for name in ["newer-web", "newer-box"] {
        lab.await_value("ingresses", namespace, name, type_, "ImplementationSpecific");
    }
    let entries = audit.since(mark).expect("the audit log");
    let of_older: Vec<&str> = writes(&entries)
        .filter(|entry| entry.resource == "ingresses" && entry.name == "older-app")
        .map(|entry| entry.verb.as_str())
        .collect();
    assert_eq!(of_older, ["patch"]);
    assert!(running.iter().all(|pod| pods().contains(pod)), "the machine goes on");
    lab.kubectl(&["delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "strict-paths"]);
}
