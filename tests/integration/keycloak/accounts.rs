//! Accounts that existed before their Tenants.

use serde_json::json;

use super::realm::Realm;
use super::tenants::{config, eventually, user};
use crate::daemon::{Daemon, Options};
use crate::lab::Lab;
use crate::tenants::tenant;
use cluster::proxy::{Fault, everything};

#[test]
fn foreign_accounts_are_neither_adopted_nor_deleted() {
    let realm = Realm::new("tenants-others");
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let account = |name: &str, email: &str| {
        realm.user(&json!({"username": name, "email": email, "firstName": "Other", "enabled": true}))
    };
    let deans = account("kcx.dean", "dean@example.org");
    let adopted = account("kcx.adopted", "former@example.org");
    // As the Go operator wrote it: the Tenant has changed its address since.
    let gos = account("kcx.go", "before@example.org");
    lab.apply(&tenant("kcx", "kcx.go", ""));
    let (none, created) = (json!({"created": false}), json!({"created": true, "name": gos}));
    let account_of_go = json!({"userCreated": created, "userConfirmed": false, "userSynchronized": true});
    let status = json!({"status": {
        "keycloak": account_of_go, "personalNamespace": none, "sandboxNamespace": none, "ready": true,
    }});
    lab.patch_status("tenants", "", "kcx.go", &status.to_string());
    // It existed before its Tenant, and Keycloak is down until the Tenant is deleted.
    let older = account("kcx.older", "kcx.older@example.org");
    let config = config(&realm);
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "kcx", config: &config });
    for name in ["kcx.dean", "kcx.adopted"] {
        lab.apply(&tenant("kcx", name, ""));
        let message = lab.await_condition("tenants", name, "AccountExists", "AccountExists");
        let expected =
            format!("Keycloak has an account {name} with another e-mail address than the Tenant's");
        assert!(message.starts_with(&expected) && !message.contains("example.org"), "{message}");
    }
    eventually("the new address", &json!("kcx.go@example.org"), || {
        user(&realm, "kcx.go").unwrap_or_default()["email"].clone()
    });
    lab.kubectl(&["annotate", "tenant", "kcx.adopted", "crownlabs.polito.it/adopt-account=true"]);
    lab.await_value("tenants", "", "kcx.adopted", "/status/keycloak/userCreated/name", &adopted);
    realm.proxy.set(Fault::Break { matching: everything() });
    lab.apply(&tenant("kcx", "kcx.older", ""));
    lab.await_condition("tenants", "kcx.older", "Reconciled", "KeycloakUnreachable");
    lab.apply(&tenant("kcx", "service-account-kcx", ""));
    lab.begin_delete("tenant", "", &["kcx.older"]);
    realm.proxy.set(Fault::None);
    // Unless it is gone by now.
    let _ = lab.try_kubectl(&["annotate", "tenant", "kcx.older", "look=again"], "");
    lab.await_gone("tenants", "", "kcx.older");
    assert_eq!(user(&realm, "kcx.older").unwrap_or_default()["id"], older);
    // The daemon deletes the Tenant's own account with one request, and sends none for another's account.
    let before = realm.writes().len();
    lab.delete("tenant", "", &["kcx.adopted", "kcx.dean", "kcx.go", "service-account-kcx"]);
    let mut deletions: Vec<String> = realm.writes()[before..].to_vec();
    deletions.sort();
    let mut expected = [&adopted, &gos].map(|id| format!("DELETE /admin/realms/{}/users/{id}", realm.name));
    expected.sort();
    assert_eq!(deletions, expected);
    assert_eq!(user(&realm, "kcx.dean").unwrap_or_default()["id"], deans);
}
