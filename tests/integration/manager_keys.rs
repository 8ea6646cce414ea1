//! The SSH keys of a course's managers, in the cloud-init Secrets of the course's virtual machines.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

const NAMESPACE: &str = "tenant-keys";
/// The Tenant that becomes a manager.
const MANAGER: &str = "keys.manager";
/// The Instances of the course; each is named after its Template.
const COURSE: [&str; 2] = ["vm", "vm-persistent"];
/// An Instance whose Template belongs to another Workspace.
const OTHER: &str = "cloudvm";

const FIRST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3";
const SECOND_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

const THIRD_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
const FOURTH_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC";

/// The user data of an Instance, as text.
fn user_data(lab: &Lab, name: &str) -> Result<String, String> {
    let secret = lab.get("secrets", NAMESPACE, name).ok_or_else(|| format!("Secret {name}"))?;
    let data: ByteString = serde_json::from_value(secret["data"]["userdata"].clone())
        .map_err(|error| format!("Secret {name}: {error}"))?;
    String::from_utf8(data.0).map_err(|error| format!("Secret {name}: {error}"))
}

/// Merge-patches the manager, and waits until the Secrets of the course have exactly the expected ones of both keys.
fn change_manager(lab: &Lab, patch: &Value, expected: &[&str]) {
    lab.patch("tenants", "", MANAGER, &patch.to_string());
    wait_until(PATIENCE, || {
        for name in COURSE {
            let text = user_data(lab, name)?;
            for key in [FIRST_KEY, SECOND_KEY] {
                if text.contains(key) != expected.contains(&key) {
                    return Err(format!("{name} after {patch}: expected {expected:?}, has\n{text}"));
                }
            }
        }
        Ok(())
    });
}

/// Merge-patches the manager. Their keys must not enter any machine because of the patch. The keys of the owner are
/// read at the same time: a Secret with a new one shows that the patch has been seen.
fn change_nothing(lab: &Lab, patch: &Value, new: &str) {
    lab.patch("tenants", "", MANAGER, &patch.to_string());
    lab.patch("tenants", "", "keys", &json!({"spec": {"publicKeys": [new]}}).to_string());
    for name in COURSE {
        wait_until(PATIENCE, || match user_data(lab, name)? {
            text if text.contains(new) => {
                assert!(!text.contains(FIRST_KEY) && !text.contains(SECOND_KEY), "{patch}: {text}");
                Ok(())
            }
            text => Err(format!("the key of the owner in {text}")),
        });
    }
}

#[test]
fn keys_of_managers_reach_the_virtual_machines_of_their_course_within_two_seconds() {
    let lab = Lab::shared();
    let _course = lab.course("keys");
    let elsewhere = r#"{"spec": {"workspace.crownlabs.polito.it/WorkspaceRef": {"name": "keys-elsewhere"}}}"#;
    lab.patch("templates", "workspace-keys", OTHER, elsewhere);
    // Without the selector label: no loop changes this Tenant.
    lab.apply(&format!(
        "apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: {MANAGER}}}
spec: {{firstName: Grace, lastName: Rossi, email: grace@example.org, publicKeys: [\"{FIRST_KEY}\"]}}
"
    ));
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "keys", config: "" });
    for name in COURSE.into_iter().chain([OTHER]) {
        lab.apply(&instance("keys", name, name));
    }
    for name in COURSE.into_iter().chain([OTHER]) {
        lab.await_phase(NAMESPACE, name, "Ready");
    }
    let role = |role: Option<&str>| {
        let entries = role.map(|role| json!({"name": "keys", "role": role}));
        json!({"spec": {"workspaces": entries.into_iter().collect::<Vec<_>>()}})
    };
    let keys = |keys: &[&str]| json!({"spec": {"publicKeys": keys}});
    // The keys of an ordinary user of the course are not in other users' machines; the keys of a manager are.
    change_nothing(&lab, &role(Some("user")), THIRD_KEY);
    change_manager(&lab, &role(Some("manager")), &[FIRST_KEY]);
    change_manager(&lab, &keys(&[FIRST_KEY, SECOND_KEY]), &[FIRST_KEY, SECOND_KEY]);
    change_manager(&lab, &keys(&[SECOND_KEY]), &[SECOND_KEY]);
    let other = user_data(&lab, OTHER).expect("the Secret");
    assert!(!other.contains(FIRST_KEY) && !other.contains(SECOND_KEY), "{other}");
    change_manager(&lab, &role(None), &[]);
    // A user may patch the labels of their own Tenant, but the labels make no Tenant a manager.
    let labels = json!({"metadata": {"labels": {"crownlabs.polito.it/workspace-keys": "manager"}}});
    change_nothing(&lab, &labels, FOURTH_KEY);
    lab.delete("tenant", "", &[MANAGER]);
}
