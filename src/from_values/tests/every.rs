//! Files with every value of the Go operators' chart, in two generations.

use super::*;
use crate::from_values::report::{leaves, row};

const NEWEST: &str = include_str!("../../../tests/recorded/operators-values/2026-08.yaml");
const OLDER: &str = include_str!("../../../tests/recorded/operators-values/2025-10.yaml");
const BOTH: [Made; 2] = [Made::Chart, Made::Configuration];

fn convert(values: &Value, made: Made) -> FromValues {
    from_values(&values.to_string(), made, Some("labs")).expect("values")
}

/// Values with one of them removed. Keys may contain dots.
fn without(values: &Value, path: &str) -> Value {
    changed(values, path, None)
}

/// Values with one of them changed: a switch is inverted, any other value is replaced or removed.
fn changed(values: &Value, path: &str, other: Option<&str>) -> Value {
    fn change(place: &mut Value, path: &str, other: Option<&str>) -> bool {
        let Value::Object(members) = place else { return false };
        match members.get_mut(path) {
            Some(Value::Bool(is_on)) => *is_on = !*is_on,
            Some(value) if other.is_some() => *value = other.into(),
            Some(_) => drop(members.remove(path)),
            None => return inside(members, path, other),
        }
        true
    }
    fn inside(members: &mut Map<String, Value>, path: &str, other: Option<&str>) -> bool {
        let keys: Vec<_> = members.keys().cloned().collect();
        keys.iter().any(|key| {
            let rest = path.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix('.'));
            rest.is_some_and(|rest| change(&mut members[key.as_str()], rest, other))
        })
    }
    let mut values = values.clone();
    assert!(change(&mut values, path, other), "{path}");
    values
}

#[test]
fn every_value_of_both_generations_has_a_place_or_a_reason() {
    for (text, at_least) in [(NEWEST, 370), (OLDER, 360)] {
        let values = read(text);
        assert!(leaves(&values).len() >= at_least, "{}", leaves(&values).len());
        for made in BOTH {
            let made = convert(&values, made);
            let wrong =
                ["no such key", "fix these faults", "expected", "no values for these parts", "hunter"];
            let wrong: Vec<_> =
                all(&made).into_iter().filter(|said| wrong.iter().any(|text| said.contains(text))).collect();
            assert!(wrong.is_empty(), "{wrong:#?}");
        }
    }
}

#[test]
fn each_value_is_in_the_file_that_is_made_or_named() {
    for text in [NEWEST, OLDER] {
        let values = read(text);
        let rows = rows(&parts(&values));
        let whole = convert(&values, Made::Chart);
        for path in leaves(&values) {
            let (row, fate) = row(&rows, &path).expect("a row");
            let named = |made: &FromValues| all(made).iter().any(|said| said.contains(row.as_str()));
            // This switch stands for three values.
            if matches!(fate, Fate::With("server.webhook.enabled")) {
                continue;
            }
            if matches!(fate, Fate::Left(_)) {
                assert!(named(&whole), "{path} is not named");
                continue;
            }
            // Two values may have the same effect.
            let changes = [None, Some("labs.example.org/x=y")].iter().any(|other| {
                let made = convert(&changed(&values, &path, *other), Made::Chart);
                made.yaml != whole.yaml || made.remarks != whole.remarks
            });
            assert!(changes, "{path} changes nothing");
        }
    }
}

#[test]
fn an_unknown_value_is_reported_at_any_depth() {
    /// The paths of all objects.
    fn objects(path: &str, value: &Value, found: &mut Vec<String>) {
        let Value::Object(members) = value else { return };
        found.push(path.to_owned());
        for (key, value) in members {
            objects(&format!("{path}/{}", key.replace('/', "~1")), value, found);
        }
    }
    let values = read(NEWEST);
    let mut places = Vec::new();
    objects("", &values, &mut places);
    assert!(places.len() > 100, "{}", places.len());
    for place in places {
        let mut values = values.clone();
        let members = values.pointer_mut(&place).and_then(Value::as_object_mut).expect("an object");
        members.insert("unheardOf".to_owned(), "zebra".into());
        let made = convert(&values, Made::Chart);
        let path =
            format!("{}.unheardOf", place.trim_start_matches('/').replace('/', ".").replace("~1", "/"));
        let path = path.trim_start_matches('.');
        let rows = rows(&parts(&values));
        // A section that is left out as a whole is reported as a whole. Annotations may have any keys.
        let above = row(&rows, path).map(|(row, _)| row.as_str());
        let is_named =
            all(&made).iter().any(|said| said.contains(path) || above.is_some_and(|row| said.contains(row)));
        assert!(is_named || made.yaml.contains("zebra"), "{path}: {:#?}", made.remarks);
    }
}

#[test]
fn values_of_a_single_part_are_rejected_with_the_key_that_they_belong_below() {
    for text in [NEWEST, OLDER] {
        let values = read(text);
        for (name, part) in parts(&values) {
            let own = values[name].to_string();
            let error = from_values(&own, Made::Chart, None).expect_err("no parts");
            assert!(error.contains(&format!("below `{}:`", part.names[0])), "{name}: {error}");
        }
    }
}

#[test]
fn a_part_that_is_missing_is_named() {
    let values = read(NEWEST);
    for part in ["operator", "instance-operator", "bastion", "exam-agent", "crownmail"] {
        let made = convert(&without(&values, part), Made::Chart);
        let note = format!("{part}: this file has no values");
        assert!(made.remarks.notes.iter().any(|said| said.starts_with(&note)), "{part}");
    }
}

#[test]
fn the_gateway_is_in_the_namespace_of_the_release_unless_the_values_say_which() {
    let gateway = |values: &str, namespace| {
        let made = from_values(values, Made::Configuration, namespace).expect("values");
        (read(&made.yaml)["controllers"]["instance"]["gatewayApi"].clone(), made.remarks.steps)
    };
    let global = "global: {version: v1, gateway: {gatewayApiMode: true, name: main, securityPolicy: {enabled: true}}}\ninstance-operator: {}";
    let (made, _) = gateway(global, Some("labs"));
    let refs = |namespace, name| json!([{"namespace": namespace, "name": name}]);
    assert_eq!(made, json!({"enabled": true, "authenticated": true, "parentRefs": refs("labs", "main")}));
    let (made, messages) = gateway(global, None);
    assert_eq!(made, json!({"enabled": true, "authenticated": true}));
    assert!(messages.iter().any(|said| said.contains("specify it with --namespace")), "{messages:?}");

    let own = "global: {gateway: {gatewayApiMode: true, name: main}}
instance-operator: {configurations: {generic: {gatewayApiMode: false, gatewayApiRefsValues: other/one}}}";
    assert_eq!(gateway(own, None).0, json!({"enabled": false}));
    let own = own.replace("gatewayApiMode: false", "gatewayApiMode: true");
    assert_eq!(gateway(&own, None).0, json!({"enabled": true, "parentRefs": refs("other", "one")}));
    let (made, messages) = gateway(&own.replace("other/one", "one"), None);
    assert_eq!(made, json!({"enabled": true}));
    assert!(messages.iter().any(|said| said.contains("expected NAMESPACE/NAME")), "{messages:?}");
}

#[test]
fn one_switch_turns_the_webhooks_on() {
    for (values, is_on) in [
        ("{webhook: {enableMutating: true}}", Some(true)),
        ("{webhook: {enableMutating: false, enableValidating: true}}", Some(true)),
        ("{webhook: {enableMutating: false}}", Some(false)),
        ("{configurations: {features: {webhooks: false}}, webhook: {enableMutating: true}}", Some(false)),
        ("{configurations: {features: {webhooks: true}}}", Some(true)),
        ("{configurations: {features: {webhooks: true}}, webhook: {enableMutating: false}}", Some(false)),
        ("{configurations: {}}", None),
    ] {
        let made = configuration(&format!("operator: {values}"));
        assert_eq!(read(&made.yaml)["server"]["webhook"]["enabled"].as_bool(), is_on, "{values}");
    }
}

#[test]
fn the_user_of_the_oldest_operator_logs_in_as_before() {
    let values = "tenant-operator: {configurations: {keycloak: {url: 'https://auth.example.org/', loginRealm: master, targetRealm: labs,
targetClient: k8s, user: operator, pass: hunter2}}}";
    let keycloak = |made| {
        let made = from_values(values, made, None).expect("values");
        assert!(!made.yaml.contains("hunter2") && !made.report().contains("fix these faults"));
        let document = read(&made.yaml);
        let put = "tenant-operator.configurations.keycloak.pass: put it";
        let told = made.remarks.steps.iter().filter(|step| step.starts_with(put));
        (told.count(), document)
    };
    let expected = json!({"enabled": true, "url": "https://auth.example.org", "realm": "labs", "rolesClientId": "k8s",
        "clientId": "admin-cli", "loginRealm": "master", "username": "operator"});
    let (told, chart) = keycloak(Made::Chart);
    assert_eq!((told, &chart["config"]["integrations"]["keycloak"]), (1, &expected));
    assert_eq!(chart["secrets"], json!({"keycloakPassword": {"name": "crownlabs-keycloak"}}));
    let (told, alone) = keycloak(Made::Configuration);
    let alone = &alone["integrations"]["keycloak"];
    assert_eq!((told, &alone["passwordFile"]), (1, &json!("/etc/crownlabs/keycloak/password")));
    assert!(alone.get("clientSecretFile").is_none());
}
