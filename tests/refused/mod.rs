//! The messages of `crownlabs plan -f` about objects that cannot be created and about objects that are missing in
//! the files; and its output formats.

use serde_json::Value;

use crate::{crownlabs, text};

const LONELY: &str = "
apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {name: lonely}
spec:
  template.crownlabs.polito.it/TemplateRef: {name: nowhere, namespace: workspace-x}
  tenant.crownlabs.polito.it/TenantRef: {name: ada}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
";

#[test]
fn objects_that_cannot_be_created_are_reported_with_the_reason() {
    let output = crownlabs(&["plan", "-n", "tenant-ada", "-f", "-"], LONELY);
    assert_eq!(output.status.code(), Some(2));
    let messages = text(&output.stderr);
    assert!(
        messages.contains("Instance tenant-ada/lonely: Template workspace-x/nowhere not found"),
        "{messages}"
    );
    assert!(messages.contains("kind ConfigMap is ignored"), "{messages}");
    let allowed = crownlabs(&["plan", "--allow-problems", "-n", "tenant-ada", "-f", "-"], LONELY);
    assert_eq!((allowed.status.code(), text(&allowed.stderr)), (Some(0), messages));
}

#[test]
fn a_workspace_missing_in_the_files_is_named_and_rejects_nothing() {
    let input = r#"{"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Template",
        "metadata": {"name": "small", "namespace": "workspace-tea"},
        "spec": {"workspace.crownlabs.polito.it/WorkspaceRef": {"name": "tea"}, "environmentList": [{"name": "main",
        "environmentType": "Container", "image": "app", "resources": {"cpu": 1, "memory": "1G"}}]}}"#;
    let output = crownlabs(&["plan", "-f", "-"], input);
    let message = "standard input: Template workspace-tea/small: Workspace tea is in none of the files\n";
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), message));
    assert_eq!(text(&output.stdout), "");
    let tenant = "
apiVersion: crownlabs.polito.it/v1alpha1
kind: Workspace
metadata: {name: coffee, labels: {crownlabs.polito.it/operator-selector: production}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {name: ada, labels: {crownlabs.polito.it/operator-selector: production}}
spec: {email: ada@example.org, lastLogin: 2999-01-01T00:00:00Z, workspaces: [{name: coffee, role: user}, {name: tea, role: user}]}
";
    let output = crownlabs(&["plan", "-f", "-"], tenant);
    let told = text(&output.stderr);
    let unknown: Vec<&str> = told.lines().filter(|line| line.contains(": Workspace ")).collect();
    let message = "standard input: Tenant ada: Workspace tea is in none of the files";
    assert_eq!((output.status.code(), unknown), (Some(0), vec![message]));
    // As one list, which `kubectl apply` accepts, too.
    let printed = |format: &str| text(&crownlabs(&["plan", "-o", format, "-f", "-"], tenant).stdout);
    let list: Value = serde_json::from_str(&printed("json")).expect("JSON");
    let documents: Vec<Value> = crate::golden::documents(&printed("yaml"));
    assert_eq!((&list["kind"], list["items"].as_array()), (&"List".into(), Some(&documents)));
    assert!(documents.len() > 3 && printed("yaml") == text(&output.stdout), "{documents:?}");
}

#[test]
fn only_problems_of_the_files_are_reported() {
    for (arguments, said) in [
        (&["plan", "--allow-problems", "--context", "c"][..], "--filename"),
        (&["plan"][..], "--kubeconfig"),
        (&["plan", "-f", "-", "-o", "text"][..], "possible values: json, yaml"),
    ] {
        let output = crownlabs(arguments, "");
        assert!(output.status.code() == Some(2) && text(&output.stderr).contains(said), "{output:?}");
    }
}
