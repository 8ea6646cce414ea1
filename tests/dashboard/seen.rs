//! The checks after all tests: no secret has left the dashboard, and each request to the API server was sent as an
//! allowed user.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::audit::{AuditEntry, Mark};
use cluster::proxy::Proxy;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::realm;
use crate::site::{KEY, Site};

/// The account of the dashboard.
const ACCOUNT: &str = "system:serviceaccount:crownlabs-system:crownlabs-dashboard";
/// The accounts of the other daemons, and the account that impersonates users (`impersonate.spec`).
const OTHERS: [&str; 4] = [
    "system:serviceaccount:crownlabs-system:crownlabs",
    "system:serviceaccount:crownlabs-bastion:crownlabs-bastion",
    "system:serviceaccount:crownlabs-system:crownlabs-login",
    "system:serviceaccount:crownlabs-system:crownlabs-dashboard-impersonates",
];
/// The user of the request that shows whether the API server answers, and its path.
const ANONYMOUS: &str = "system:anonymous";
const PROBE: &str = "/livez";
/// The kinds that the account may list and watch.
const KINDS: [&str; 6] =
    ["instances", "sharedvolumes", "templates", "tenants", "workspaces", "announcements"];
/// The only other object that the account reads, and the only one that it writes: the record of connections.
const RECORD: &str = "/api/v1/namespaces/crownlabs-system/configmaps?";
const RECORD_NAME: &str = "fieldSelector=metadata.name%3Dcrownlabs-peers";
const RECORD_OBJECT: &str = "/api/v1/namespaces/crownlabs-system/configmaps/crownlabs-peers";
/// The path of the announcements for everyone, whose content the account reads, too.
const FOR_EVERYONE: &str =
    "/apis/lab.crownlabs.polito.it/v1alpha1/namespaces/crownlabs-system/announcements?";

/// Returns the secrets that must not appear, each with its name and in every encoding that is sent.
fn secrets() -> Vec<(&'static str, String)> {
    let secret = realm::SECRET;
    let form: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let percent = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let basic = |secret: &str| STANDARD.encode(format!("{}:{secret}", realm::CLIENT));
    let quoted = format!("{secret:?}");
    let forms = [basic(&form), basic(&percent), basic(secret), form, percent, secret.to_owned(), quoted];
    let mut all = forms.map(|form| ("the secret of the client", form)).to_vec();
    all.push(("the key of sessions", KEY.trim_end_matches(['\n', '=']).to_owned()));
    all
}

/// Returns the name of a secret in a text.
fn found_in(text: &str) -> Option<&'static str> {
    let is_token_char = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    // A header and claims in JSON, and a signature: the ID, access and refresh tokens of Keycloak.
    let is_token = |(at, _)| {
        let length = text.as_bytes()[at..].iter().take_while(|byte| is_token_char(**byte)).count();
        length > 10 && text[at + length..].starts_with(".eyJ")
    };
    if text.match_indices("eyJ").any(is_token) {
        return Some("a token");
    }
    secrets().into_iter().find(|(_, secret)| text.contains(secret.as_str())).map(|(name, _)| name)
}

/// Calls `see` with each text in a document. Texts in base64 are decoded, too.
fn texts(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(all) => all.iter().for_each(|one| texts(one, see)),
        Value::Object(all) => {
            if all.get("encoding").is_some_and(|encoding| encoding == "base64") {
                let bytes = STANDARD.decode(all["text"].as_str().unwrap_or_default()).expect("base64");
                see(&String::from_utf8_lossy(&bytes));
            }
            all.values().for_each(|one| texts(one, see));
        }
        _ => {}
    }
}

/// Returns the secrets that were found in a HAR, and the number of its entries. Requests to the issuer are not
/// searched.
fn of_har(har: &Value, issuer: &str) -> (Vec<String>, usize) {
    let entries = har["log"]["entries"].as_array().expect("a HAR");
    let origin = issuer.split("/realms").next().expect("an origin");
    let ours = entries.iter().filter(|entry| {
        !entry["request"]["url"].as_str().is_some_and(|url| url.starts_with(&format!("{origin}/")))
    });
    let (mut found, mut count) = (Vec::new(), 0);
    for entry in ours {
        count += 1;
        texts(entry, &mut |text| {
            found.extend(found_in(text).map(|name| format!("{name} in {}", entry["request"]["url"])));
        });
    }
    (found, count)
}

/// Searches for secrets in the records of browsers in a folder, the logs, the metrics, and the audit log.
pub fn no_secret(site: &Site, recorded: &Path) {
    let (mut found, mut entries, mut open) = (Vec::new(), 0, Vec::new());
    let read = |path: &Path| fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let json = |path: &Path| -> Value { serde_json::from_slice(&read(path)).expect("JSON") };
    let contexts = fs::read_dir(recorded).expect("the folder").map(|entry| entry.expect("an entry").path());
    for path in contexts.filter(|path| path.extension().is_some_and(|of| of == "json")) {
        // Each context writes both files when it is closed.
        let har = path.with_extension("har");
        if !har.exists() {
            open.push(json(&path));
            continue;
        }
        let (of_context, count) = of_har(&json(&har), &site.issuer());
        entries += count;
        found.extend(of_context);
        texts(&json(&path.with_extension("json")), &mut |text| {
            found.extend(found_in(text).map(|name| format!("{name} in a page or storage: {text:.200}")));
        });
    }
    let logs = site.logs();
    let audit = fs::read_to_string(site.lab.cluster.dir().join("audit.log")).expect("the audit log");
    for (what, text) in [("the logs", &logs), ("metrics", &site.metrics()), ("the audit log", &audit)] {
        let lines =
            text.lines().filter_map(|line| Some(format!("{} in {what}: {line:.200}", found_in(line)?)));
        found.extend(lines);
    }
    assert!(open.is_empty(), "these tests do not close all of their contexts: {open:#?}");
    assert!(entries > 0 && logs.contains("logged in at the dashboard"), "{entries} requests were recorded");
    assert_eq!(found, Vec::<String>::new());
    println!("no secret in {entries} requests, {} bytes of logs", logs.len());
}

/// Asserts that each request to the API server was sent as a user, or only watches for changes and records connections with
/// the account of the dashboard, or only shows whether the API server answers.
pub fn names(site: &Site) {
    let entries = site.lab.cluster.audit().since(Mark::default()).expect("the audit log");
    // Requests that failed the authentication have no user.
    let ours = |entry: &&AuditEntry| entry.user_agent.starts_with("crownlabs/") && entry.code != 401;
    let (mut of_account, mut of_users) = (0, 0);
    for entry in entries.iter().filter(ours).filter(|entry| !OTHERS.contains(&&*entry.user)) {
        if entry.user == ANONYMOUS {
            assert_eq!(entry.request_uri, PROBE, "{entry:?}");
        } else if entry.user == ACCOUNT {
            let is_record = entry.request_uri.starts_with(RECORD) && entry.request_uri.contains(RECORD_NAME);
            let is_known =
                (KINDS.contains(&&*entry.resource) || is_record) && ["list", "watch"].contains(&&*entry.verb);
            let is_recorded = entry.verb == "patch"
                && entry.request_uri.split('?').next().is_some_and(|path| path == RECORD_OBJECT);
            // Every account may discover the kinds of the API server.
            let is_about_kinds = ["", "customresourcedefinitions"].contains(&&*entry.resource);
            assert!(is_known || is_recorded || is_about_kinds && entry.verb == "get", "{entry:?}");
            of_account += 1;
        } else {
            assert!(realm::USERS.iter().any(|(name, _)| entry.user == *name), "{entry:?}");
            of_users += 1;
        }
    }
    assert!(of_account > 0 && of_users > 0, "{of_account}, {of_users}");
    println!("{of_users} requests as users, {of_account} of the account");
}

/// Asserts that the account requests only metadata, except for the announcements for everyone. A replica is started
/// again behind a proxy that records its requests.
pub fn metadata_alone(site: &Site) {
    let proxy = Proxy::start(&site.lab.cluster).expect("a proxy");
    let _replica = site.behind(&proxy.url());
    let asked = proxy.request_log();
    let of_kinds: Vec<_> = asked.iter().filter(|asked| asked.path.contains("crownlabs.polito.it/")).collect();
    for kind in KINDS {
        assert!(of_kinds.iter().any(|asked| asked.path.contains(&format!("/{kind}?"))), "{kind}: {asked:?}");
    }
    let mut whole = of_kinds.iter().filter(|asked| !asked.accept.contains("as=PartialObjectMetadata"));
    assert!(whole.clone().count() > 0, "{of_kinds:?}");
    assert!(whole.all(|asked| asked.path.starts_with(FOR_EVERYONE)), "{of_kinds:?}");
}

#[test]
fn secrets_are_found_in_texts_and_records() {
    let token = "eyJhbGciOiJFUzI1NiJ9.eyJleHAiOjF9.c2lnbg";
    assert_eq!(found_in(&format!("a={token}&b")), Some("a token"));
    assert_eq!(found_in("eyJhbGciOiJFUzI1NiJ9 and eyJleHAiOjF9.x"), None);
    for (name, secret) in secrets() {
        assert_eq!(found_in(&format!("<{secret}>")), Some(name), "{secret}");
    }
    let entry = |url: &str, text: &str, encoding: &str| serde_json::json!({"request": {"url": url}, "response": {"content": {"text": text, "encoding": encoding}}});
    let encoded = STANDARD.encode(token);
    let entries = [
        entry("https://auth/realms/labs/token", token, ""),
        entry("https://labs/", &encoded, "base64"),
        entry("https://labs/x", token, ""),
    ];
    let (found, count) =
        of_har(&serde_json::json!({"log": {"entries": entries}}), "https://auth/realms/labs");
    assert_eq!((found.len(), count), (2, 2), "{found:?}");
}
