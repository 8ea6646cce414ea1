//! The CRD of Announcements on a real API server: a text is neither blank nor too long.

use serde_json::json;

use crate::lab::Lab;

#[test]
fn the_api_server_rejects_a_blank_and_a_long_announcement() {
    let lab = Lab::shared();
    lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: announcements}}");
    let announce = |name: &str, spec: serde_json::Value| {
        let metadata = json!({"namespace": "announcements", "name": name});
        let object = json!({"apiVersion": "lab.crownlabs.polito.it/v1alpha1", "kind": "Announcement",
            "metadata": metadata, "spec": spec});
        lab.try_kubectl(&["create", "-f", "-"], &object.to_string())
    };
    let (title, text) = ("t".repeat(200), "line\n".repeat(400));
    announce("longest", json!({"title": title, "text": text, "until": "2026-12-01T00:00:00Z"}))
        .expect("created");
    announce("endless", json!({"title": "No laboratory", "text": "<b>plain</b>"})).expect("created");
    for (spec, field) in [
        (json!({"title": "", "text": "x"}), "spec.title"),
        (json!({"title": "  ", "text": "x"}), "spec.title"),
        (json!({"title": "t".repeat(201), "text": "x"}), "spec.title"),
        (json!({"title": "x", "text": " \n"}), "spec.text"),
        (json!({"title": "x", "text": "x".repeat(2_001)}), "spec.text"),
        (json!({"title": "x"}), "spec.text"),
        (json!({"title": "x", "text": "x", "until": "soon"}), "spec.until"),
    ] {
        let refusal = announce("refused", spec.clone()).expect_err("invalid");
        assert!(refusal.contains(field), "{spec}: {refusal}");
    }
    lab.kubectl(&["delete", "namespace", "announcements", "--wait=false"]);
}
