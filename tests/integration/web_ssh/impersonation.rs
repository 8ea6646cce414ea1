//! Users whom the account of a dashboard impersonates: the dashboard passes its own token and the name of its user.

use serde_json::{Value, json};

use super::Site;
use crate::impersonation::{grant, is_known, rules};
use crate::lab::{PATIENCE, wait_until};
use cluster::browser::{Browser, request};
use cluster::sshd::OPEN;

/// The namespace of the accounts.
const NAMESPACE: &str = "crownlabs-system";

/// Returns the token of a new account.
fn account(site: &Site, name: &str) -> String {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    site.lab.apply(&account.to_string());
    site.lab.cluster.token(NAMESPACE, name).expect("a token")
}

/// Returns the first message for a user whom the account of a token impersonates.
fn request_for(site: &Site, token: &str, user: &str) -> Value {
    let mut request = request(token, &site.namespace(), "vm");
    request["user"] = json!(user);
    request["groups"] = json!(["kubernetes:labs"]);
    request
}

#[test]
fn an_account_opens_terminals_only_for_users_whom_it_may_impersonate_and_who_may_enter() {
    let site = Site::start("web-vouched", "");
    let refused = ("Invalid request".to_owned(), 1011);
    let name = |who: &str| format!("{}-{who}", site.name);
    // Without any right, or with the right to be impersonated only.
    let other = account(&site, "web-vouches-not");
    assert_eq!(site.answer(&request_for(&site, &other, site.name)), refused);
    let mut of_manager = site.request_of("manager");
    of_manager["user"] = json!(site.name);
    assert_eq!(site.answer(&of_manager), refused, "a user who names another user");
    grant(&site.lab, "web-vouches", &rules());
    let token = account(&site, "web-vouches");
    if !is_known(&site.lab) {
        assert_eq!(site.answer(&request_for(&site, &token, site.name)), refused, "before Kubernetes 1.36");
        return;
    }
    let enters = |user: &str| {
        let mut browser = Browser::open(site.port, &request_for(&site, &token, user));
        browser.until(OPEN);
        browser.enter("exit\n");
        assert_eq!(browser.end(), ("SSH session closed".to_owned(), 1000), "{user}");
    };
    // The API server may learn of the new right a moment later.
    let stranger = name("other");
    wait_until(PATIENCE, || {
        site.answer(&request_for(&site, &token, &stranger));
        let log = site.daemon.log();
        let is_told =
            |line: &str| line.contains(&stranger) && line.contains("neither its Tenant nor a manager");
        if log.lines().any(is_told) { Ok(()) } else { Err(format!("the account has no right yet: {log}")) }
    });
    for user in [site.name.to_owned(), name("manager"), name("admin")] {
        enters(&user);
    }
    for user in [name("other"), name("viewer"), "nobody".to_owned(), "system:admin".to_owned()] {
        assert_eq!(site.answer(&request_for(&site, &token, &user)), refused, "{user}");
    }
    // The account itself is no user.
    assert_eq!(site.answer(&request(&token, &site.namespace(), "vm")), refused);
    let log = site.daemon.log();
    assert!(!log.contains(&token) && log.contains("opened a terminal"), "{log}");
}
