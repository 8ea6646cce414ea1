//! Access to an Instance through its proxy, with a real Keycloak.

use http::Method;
use serde_json::json;

use super::browser::{Answer, Browser, PAGE, Site};
use super::program::Program;
use super::{config, secret_file};
use crate::daemon::{Daemon, Options};
use crate::keycloak::realm::{Realm, by_hand};
use crate::lab::{Lab, instance};

const NAMESPACE: &str = "tenant-visit";
const PASSWORD: &str = "correct horse";
const SECRET: &str = "s3cr+t of the client";

/// Creates the client as `docs/access.md` describes it, and accounts with a password.
fn prepare(realm: &Realm) {
    let client = json!({
        "clientId": "instances", "secret": SECRET, "publicClient": false, "standardFlowEnabled": true,
        "directAccessGrantsEnabled": false, "redirectUris": ["https://crownlabs.example.com/instance/*"],
    });
    realm.admin(&Method::POST, "/clients", &client);
    for name in ["visit", "eve", "teacher"] {
        let mut user = by_hand(name);
        user["firstName"] = json!("Ada");
        user["lastName"] = json!("Rossi");
        user["emailVerified"] = json!(true);
        user["credentials"] = json!([{"type": "password", "value": PASSWORD, "temporary": false}]);
        realm.user(&user);
    }
}

/// Waits until an Instance has a proxy, and starts it.
fn proxy_of(lab: &Lab, name: &str) -> Program {
    let proxy = format!("{name}-oauth2-proxy");
    let deployment = lab.await_value("deployments", NAMESPACE, &proxy, "/kind", "Deployment");
    let secret = lab.await_value("secrets", NAMESPACE, &proxy, "/kind", "Secret");
    Program::start(&deployment, &secret)
}

fn site<'a>(lab: &Lab, name: &str, program: &'a Program) -> Site<'a> {
    let ingress = |name: String| lab.await_value("ingresses", NAMESPACE, &name, "/kind", "Ingress");
    Site {
        environment: ingress(format!("{name}-app")),
        proxy: ingress(format!("{name}-oauth2-proxy")),
        program,
    }
}

#[test]
fn a_login_reaches_the_page_and_another_user_is_rejected() {
    let realm = Realm::new("instances");
    prepare(&realm);
    let lab = Lab::shared();
    let _course = lab.course("visit");
    // A manager of the course.
    lab.apply(
        "apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {name: teacher, labels: {crownlabs.polito.it/operator-selector: none}}
spec: {firstName: T, lastName: T, email: teacher@example.org, workspaces: [{name: visit, role: manager}]}
",
    );
    let (_folder, secret) = secret_file(&format!("{SECRET}\n"));
    let issuer = format!("{}/realms/{}", realm.server.url(), realm.name);
    let admin = lab.admin();
    let config = config(&issuer, &secret);
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "visit", config: &config });
    for name in ["web", "other"] {
        lab.apply(&instance("visit", name, "standalone"));
    }
    let program = proxy_of(&lab, "web");
    let other = proxy_of(&lab, "other");
    let site = site(&lab, "web", &program);
    let uid = lab.get("instances", NAMESPACE, "web").expect("there")["metadata"]["uid"].clone();
    let page = format!("/instance/{}/app/", uid.as_str().expect("a uid"));
    let asks = |answer: &Answer| answer.status == 200 && answer.body.contains("kc-form-login");

    // Its Tenant, and a manager of the course, log in and see the page, from then on without a login.
    for user in ["visit", "teacher"] {
        let mut browser = Browser::new(&site);
        let form = browser.open(&page);
        assert!(asks(&form), "{user}: {form:?}");
        let wrong = browser.log_in(&form, user, "wrong");
        assert!(asks(&wrong), "{user}: {wrong:?}");
        assert_eq!(browser.log_in(&wrong, user, PASSWORD), Answer::text(200, PAGE), "{user}");
        assert_eq!(browser.open(&page), Answer::text(200, PAGE), "{user}");
        // These cookies are not valid at another Instance.
        let prefix = other_prefix(&lab);
        assert_eq!(
            other.answer(site.host(), &format!("{prefix}/auth"), &browser.cookies).status,
            401,
            "{user}"
        );
        // Without cookies, access is denied.
        browser.cookies.clear();
        let auth = format!("/instance/{}/_oauth2/auth", uid.as_str().expect("a uid"));
        assert_eq!(program.answer(site.host(), &auth, &browser.cookies).status, 401);
    }

    // Another user has an account in the same realm, and is rejected.
    let mut browser = Browser::new(&site);
    let form = browser.open(&page);
    assert_eq!(browser.log_in(&form, "eve", PASSWORD).status, 403);
    assert_eq!(browser.open(&page).status, 403, "Keycloak knows her, the proxy does not let her through");
    lab.delete("tenant", "", &["teacher"]);
}

/// The path of the proxy of the other Instance.
fn other_prefix(lab: &Lab) -> String {
    let other = lab.get("instances", NAMESPACE, "other").expect("there")["metadata"]["uid"].clone();
    format!("/instance/{}/_oauth2", other.as_str().expect("a uid"))
}
