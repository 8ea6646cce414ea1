//! The faults that are reported for invalid keys and values.

use super::*;

#[test]
fn all_faults_are_reported_at_once_in_the_order_of_lines() {
    let text = "# comment
apiVersion: config.crownlabs.polito.it/v1
resync: {min: 3h, max: 2h}
leaderElection:
  leaseDuration: soon
  renewDeadline: 1h
  nameSpace: x
server:
  metrics: :8080
  metrics: 0.0.0.0:9
log:
  filter: inof
controllers:
  instance:
    concurency: 4
    concurrency: 0
    enabled: \"yes\"
    containerImages: [a]
    gatewayApi:
      enabled: true
      parentRefs:
      - name: g
      - {name: G, namespace: n, port: 1}
  tenants: {enabled: true}
";
    let expected = [
        "f.yaml: kind: missing; expected ControllerManagerConfiguration",
        "f.yaml:2: apiVersion: \"config.crownlabs.polito.it/v1\" is not valid; \
         expected config.crownlabs.polito.it/v1alpha1",
        "f.yaml:3: resync.min: resync.min is 3h and resync.max is 2h; expected min to be at most max",
        "f.yaml:5: leaderElection.leaseDuration: \"soon\" is not valid; \
         expected a duration such as 30s, 5m, 24h or 7d, at most 36500d",
        "f.yaml:7: leaderElection.nameSpace: unknown key; did you mean \"namespace\"?",
        "f.yaml:9: server.metrics: \":8080\" is not valid; expected an IP address and a port such as \
         \"0.0.0.0:8080\" or \"[::]:8080\", or \"\" for none",
        "f.yaml:10: server.metrics: given twice, first in line 9; expected it once",
        "f.yaml:12: log.filter: \"inof\" is not valid; expected a level (error, warn, info, debug, trace, \
         off), and others for modules, such as info,crownlabs::runtime=debug",
        "f.yaml:15: controllers.instance.concurency: unknown key; did you mean \"concurrency\"?",
        "f.yaml:16: controllers.instance.concurrency: 0 is not valid; expected a whole number from 1 to 256",
        "f.yaml:17: controllers.instance.enabled: \"yes\" is text; expected true or false",
        "f.yaml:18: controllers.instance.containerImages: a list; expected a mapping (or omit the key)",
        "f.yaml:22: controllers.instance.gatewayApi.parentRefs[0].namespace: missing; expected at most 63 \
         lower-case letters, digits and dashes, with a letter or digit at both ends",
        "f.yaml:23: controllers.instance.gatewayApi.parentRefs[1].name: \"G\" is not valid; expected at \
         most 253 lower-case letters, digits, dashes and dots, with a letter or digit at both ends",
        "f.yaml:23: controllers.instance.gatewayApi.parentRefs[1].port: unknown key; \
         known here: name, namespace",
        "f.yaml:24: controllers.tenants: unknown key; did you mean \"tenant\"?",
    ];
    assert_eq!(faults(text), expected);
}

#[test]
fn faults_are_values_too() {
    let error = Config::parse("f.yaml", &format!("{HEAD}lgo: {{}}\n")).unwrap_err();
    let ConfigError::Faults(faults) = error else { panic!("{error}") };
    let expected = Fault {
        file: "f.yaml".to_owned(),
        line: Some(3),
        key: "lgo".to_owned(),
        problem: "unknown key".to_owned(),
        expected: "did you mean \"log\"?".to_owned(),
    };
    assert_eq!(faults, [expected]);
}

#[test]
fn duplicates_are_found_everywhere() {
    let text = "log: {format: text, format: json}
selector:
  a: x
  b: x
  a: y
  b: y
log: {}
";
    let expected = [
        "f.yaml:3: log.format: given twice, first in line 3; expected it once",
        "f.yaml:7: selector.a: given twice, first in line 5; expected it once",
        "f.yaml:8: selector.b: given twice, first in line 6; expected it once",
        "f.yaml:9: log: given twice, first in line 3; expected it once",
    ];
    assert_eq!(faults_below(text), expected);
    // The parser itself reports duplicate numeric keys.
    let expected = ["f.yaml:4: the key 0x1 is given twice; expected it once"];
    assert_eq!(faults_below("selector: {1: x,\n0x1: y}\n"), expected);
}

#[test]
fn wrong_types_are_described() {
    let text = "selector: {a: true, b: 1.5}
resync: {min: 3600}
server:
log: text
controllers: {instance: {concurrency: 2.5, localVm: {namespaces: images}, websiteBaseUrl: 7}}
leaderElection: {enabled: null, name: [], namespace: {}}
";
    let expected = [
        "f.yaml:3: selector.a: true is a boolean; expected text; put it in quotes",
        "f.yaml:3: selector.b: 1.5 is a number; expected text; put it in quotes",
        "f.yaml:4: resync.min: 3600 is a number; \
         expected a duration such as 30s, 5m, 24h or 7d, at most 36500d",
        "f.yaml:5: server: no value; expected a mapping (or omit the key)",
        "f.yaml:6: log: \"text\" is text; expected a mapping (or omit the key)",
        "f.yaml:7: controllers.instance.concurrency: 2.5 is not valid; expected a whole number from 1 to 256",
        "f.yaml:7: controllers.instance.localVm.namespaces: \"images\" is text; expected a list ([] if empty)",
        "f.yaml:7: controllers.instance.websiteBaseUrl: 7 is a number; expected text; put it in quotes",
        "f.yaml:8: leaderElection.enabled: no value; expected true or false",
        "f.yaml:8: leaderElection.name: a list; expected at most 253 lower-case letters, digits, dashes \
         and dots, with a letter or digit at both ends",
        "f.yaml:8: leaderElection.namespace: a mapping; expected at most 63 lower-case letters, digits \
         and dashes, with a letter or digit at both ends",
    ];
    assert_eq!(faults_below(text), expected);
}

#[test]
fn numbers_have_bounds() {
    for number in ["0", "257", "-1", "1e3", "18446744073709551615", "99999999999999999999"] {
        let faults = faults_below(&format!("controllers: {{instance: {{concurrency: {number}}}}}\n"));
        assert_eq!(faults.len(), 1, "{number}");
        assert!(faults[0].ends_with("; expected a whole number from 1 to 256"), "{faults:?}");
    }
}

#[test]
fn the_right_place_of_a_misplaced_key_is_suggested() {
    let expected = [
        "f.yaml:3: leaseDuration: unknown key; did you mean \"leaderElection.leaseDuration\"?",
        // `enabled` is a key of several mappings.
        "f.yaml:4: enabled: unknown key; \
         known here: apiVersion, kind, selector, resync, leaderElection, server, log, controllers, \
         integrations, storage",
        "f.yaml:5: [\"<<\"]: unknown key; \
         known here: apiVersion, kind, selector, resync, leaderElection, server, log, controllers, \
         integrations, storage",
    ];
    assert_eq!(faults_below("leaseDuration: 1m\nenabled: true\n<<: {}\n"), expected);
}

#[test]
fn the_selector_is_validated() {
    assert_eq!(faults_below("selector: {}\n"), ["f.yaml:3: selector: empty; expected at least one entry"]);
    let expected = [
        "f.yaml:3: selector[\"a b\"]: not a valid key; \
         expected the key of a label, such as crownlabs.polito.it/operator-selector",
        "f.yaml:3: selector[\"x.y/z\"]: \"a=b\" is not valid; expected the value of a label: at most 63 \
         letters, digits, dashes, underscores and dots, with a letter or digit at both ends",
    ];
    assert_eq!(faults_below("selector: {a b: c, x.y/z: a=b}\n"), expected);
}

/// Checks that each text has exactly this fault, in its only line.
pub(super) fn assert_faults(cases: &[(&str, &str)]) {
    for (text, fault) in cases {
        assert_eq!(faults_below(&format!("{text}\n")), [format!("f.yaml:3: {fault}")]);
    }
}

#[test]
fn rules_between_durations() {
    assert_faults(&[
        ("resync: {min: 59s}", "resync.min: 59s is too short; expected at least 1m"),
        // The default of min is 1h.
        (
            "resync: {max: 30m}",
            "resync.max: resync.min is 1h and resync.max is 30m; expected min to be at most max",
        ),
        (
            "leaderElection: {leaseDuration: 15500ms}",
            "leaderElection.leaseDuration: 15500ms cannot be written into a Lease; \
             expected whole seconds, at least 1s",
        ),
        (
            "leaderElection: {leaseDuration: 10s}",
            "leaderElection.leaseDuration: renewDeadline is 10s and leaseDuration is 10s; \
             expected renewDeadline to be below leaseDuration",
        ),
        // 1.2 × 5 s = 6 s.
        (
            "leaderElection: {renewDeadline: 6s, retryPeriod: 5s}",
            "leaderElection.retryPeriod: retryPeriod is 5s and renewDeadline is 6s; \
             expected 1.2 times retryPeriod to be below renewDeadline",
        ),
        (
            "leaderElection: {retryPeriod: 0s}",
            "leaderElection.retryPeriod: 0s is too short; expected more than 0s",
        ),
    ]);
    // At the limits, the rules are followed.
    parsed("resync: {min: 1m, max: 1m}\n");
    parsed("leaderElection: {leaseDuration: 11s, renewDeadline: 6001ms, retryPeriod: 5s}\n");
}

#[test]
fn rules_between_addresses_and_other_keys() {
    assert_faults(&[
        (
            "server: {metrics: '0.0.0.0:8081'}",
            "server.metrics: metrics and health are both at 0.0.0.0:8081; expected two addresses",
        ),
        (
            "server: {health: '0.0.0.0:9443', webhook: {enabled: true}}",
            "server.health: webhook.listen and health are both at 0.0.0.0:9443; expected an address of its own",
        ),
        (
            "server: {webhook: {enabled: true, listen: ''}}",
            "server.webhook.listen: webhook is enabled and listen is empty; expected an address and a port",
        ),
        (
            "server: {webhook: {bypassGroups: ['a', ' ']}}",
            "server.webhook.bypassGroups[1]: \" \" is not valid; expected the name of a group",
        ),
        (
            "controllers: {instance: {gatewayApi: {enabled: true}}}",
            "controllers.instance.gatewayApi.enabled: gatewayApi is enabled and parentRefs is empty; \
             expected at least one Gateway as {name, namespace}",
        ),
        (
            "controllers: {instance: {access: {mode: perInstance, oauth2Proxy: {issuerUrl: 'https://a', clientId: c, clientSecretFile: /f}}, gatewayApi: {enabled: true, parentRefs: [{name: g, namespace: n}]}}}",
            "controllers.instance.access.mode: access.mode is perInstance and gatewayApi is enabled; \
             expected one of them: the proxies guard Ingresses, the Gateway has to guard the routes itself",
        ),
        (
            "integrations: {keycloak: {timeout: 0s}}",
            "integrations.keycloak.timeout: 0s is too short; expected more than 0s",
        ),
        (
            "integrations: {keycloak: {enabled: true, realm: r, clientId: c, clientSecretFile: /f, url: ''}}",
            "integrations.keycloak.url: keycloak is enabled and url is empty; expected the URL of the server",
        ),
    ]);
    parsed("server: {metrics: '127.0.0.1:0', health: '127.0.0.1:0'}\n");
}

#[test]
fn proxies_of_instances_have_required_keys() {
    let expected = [
        "f.yaml:3: controllers.instance.access.mode: access.mode is perInstance and issuerUrl is empty; \
         expected the URL of the realm",
        "f.yaml:3: controllers.instance.access.mode: access.mode is perInstance and clientId is empty; \
         expected the client ID that users log in with",
        "f.yaml:3: controllers.instance.access.mode: access.mode is perInstance and clientSecretFile is empty; \
         expected the file with the client's secret",
    ];
    assert_eq!(faults_below("controllers: {instance: {access: {mode: perInstance}}}\n"), expected);
    parsed("controllers: {instance: {access: {mode: none, oauth2Proxy: {clientId: c}}}}\n");
}

#[test]
fn keycloak_has_required_keys() {
    let expected = [
        "f.yaml:3: integrations.keycloak.enabled: keycloak is enabled and url is empty; \
         expected the URL of the server",
        "f.yaml:3: integrations.keycloak.enabled: keycloak is enabled and realm is empty; \
         expected the realm of the users",
        "f.yaml:3: integrations.keycloak.enabled: keycloak is enabled and clientId is empty; \
         expected the client whose service account is used",
        "f.yaml:3: integrations.keycloak.enabled: keycloak is enabled and clientSecretFile is empty; \
         expected the file with the client's secret, or username and passwordFile",
    ];
    assert_eq!(faults_below("integrations: {keycloak: {enabled: true}}\n"), expected);
    // While it is disabled, nothing is required.
    parsed("integrations: {keycloak: {enabled: false, realm: r}}\n");
}

#[test]
fn a_user_takes_the_place_of_the_service_account() {
    let with = |keys: &str| {
        format!(
            "integrations: {{keycloak: {{enabled: true, url: 'https://k', realm: r, clientId: c, {keys}}}}}\n"
        )
    };
    parsed(&with("username: u, passwordFile: /p, loginRealm: master"));
    parsed(&with("username: u, passwordFile: /p, clientSecretFile: /f"));
    let both = "only one of username and passwordFile is set; expected both, or none for the client's service account";
    let user = "loginRealm is set and username is empty; expected the user who logs in there";
    for (keys, key, said) in [
        ("username: u", "username", both),
        ("clientSecretFile: /f, passwordFile: /p", "passwordFile", both),
        ("clientSecretFile: /f, loginRealm: master", "loginRealm", user),
    ] {
        assert_eq!(faults_below(&with(keys)), [format!("f.yaml:3: integrations.keycloak.{key}: {said}")]);
    }
}

#[test]
fn rules_are_silent_about_keys_that_are_at_fault() {
    // With the default of 15s for leaseDuration, the deadline would be too long.
    for lease in ["leaseDuration: soon", "leaseDuraton: 60s", "leaseDuration: [60s]"] {
        let faults = faults_below(&format!("leaderElection: {{{lease}, renewDeadline: 50s}}\n"));
        assert_eq!(faults.len(), 1, "{faults:?}");
    }
    // A misplaced key is reported only once, with its correct place.
    assert_eq!(faults_below("leaseDuration: 60s\nleaderElection: {renewDeadline: 50s}\n").len(), 1);
}

#[test]
fn anchors_are_resolved_and_faults_are_where_they_are_used() {
    let config = parsed("resync: {min: &length 90m, max: *length}\n");
    assert_eq!(config.resync.min, config.resync.max);
    let expected = ["f.yaml:5: log.format: \"90m\" is not valid; expected text or json"];
    assert_eq!(faults_below("resync:\n  min: &length 90m\nlog: {format: *length}\n"), expected);
}

#[test]
fn passwords_are_not_repeated() {
    for text in ["hunter2", "12345", "[hunter2]"] {
        let faults =
            faults_below(&format!("controllers: {{instance: {{vmLogin: {{passwordHash: {text}}}}}}}\n"));
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("vmLogin.passwordHash: "), "{faults:?}");
        assert!(!faults[0].contains("hunter2") && !faults[0].contains("12345"), "{faults:?}");
    }
    let config = parsed("controllers: {instance: {vmLogin: {passwordHash: $6$salt$mine}}}\n");
    assert!(!format!("{config:?}").contains("mine"));
}

#[test]
fn the_status_check_has_shortest_times() {
    let text =
        "controllers: {termination: {statusCheckTimeout: 0s, statusCheckInterval: 4s, confirmAfter: 4s}}\n";
    assert_eq!(
        faults_below(text),
        [
            "f.yaml:3: controllers.termination.statusCheckTimeout: 0s is too short; expected more than 0s",
            "f.yaml:3: controllers.termination.statusCheckInterval: 4s is too short; expected at least 5s",
            "f.yaml:3: controllers.termination.confirmAfter: 4s is too short; expected at least 5s",
        ]
    );
}

#[test]
fn the_exam_agent_needs_a_namespace_and_knows_networks() {
    let text = "controllers: {examAgent: {enabled: true, listen: \"\"}}\n";
    assert_eq!(
        faults_below(text),
        [
            "f.yaml:3: controllers.examAgent.enabled: examAgent is enabled and namespace is empty; \
             expected the namespace of the exams",
            "f.yaml:3: controllers.examAgent.listen: examAgent is enabled and listen is empty; \
             expected an address and a port",
        ]
    );
    let faults =
        faults_below("controllers: {examAgent: {basePath: \"\", allowedIps: [10.0.0.1, \"10.*\"]}}\n");
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(
        faults[0].contains("examAgent.basePath: ") && faults[0].contains("a path such as /api"),
        "{faults:?}"
    );
    assert!(faults[1].contains("allowedIps[0]") && faults[1].contains("10.0.0.1/32"), "{faults:?}");
    parsed(
        "controllers: {examAgent: {enabled: true, namespace: exams, trustedProxies: [10.0.0.0/8, \"::1/128\"]}}\n",
    );
}

#[test]
fn web_ssh_needs_a_key_an_address_and_a_user() {
    let text = "controllers: {webSsh: {enabled: true, listen: \"\", user: \"\", sendTimeout: 0s}}\n";
    assert_eq!(
        faults_below(text),
        [
            "f.yaml:3: controllers.webSsh.enabled: webSsh is enabled and privateKeyFile is empty; \
             expected the file with the private key that the machines accept",
            "f.yaml:3: controllers.webSsh.listen: webSsh is enabled and listen is empty; \
             expected an address and a port",
            "f.yaml:3: controllers.webSsh.user: webSsh is enabled and user is empty; \
             expected the user that the machines accept",
            "f.yaml:3: controllers.webSsh.sendTimeout: 0s is too short; expected more than 0s",
        ]
    );
    parsed("controllers: {webSsh: {enabled: true, privateKeyFile: /key, idleTimeout: 30m}}\n");
    assert!(!faults_below("controllers: {webSsh: {maxConnections: 0}}\n").is_empty());
    let origins = |text: &str| format!("controllers: {{webSsh: {{allowedOrigins: [\"{text}\"]}}}}\n");
    for origin in ["https://labs.example.org", "http://localhost:3000", "https://10.0.0.1:8443"] {
        parsed(&origins(origin));
    }
    for wrong in
        ["labs.example.org", "https://labs.example.org/", "https://Labs.example.org", "*", "null", ""]
    {
        assert_eq!(faults_below(&origins(wrong)).len(), 1, "{wrong:?}");
    }
}

#[test]
fn allow_anyone_and_allowed_ips_exclude_each_other() {
    let faults = faults_below("controllers: {examAgent: {allowAnyone: true, allowedIps: [10.0.0.0/28]}}\n");
    let expected = "controllers.examAgent.allowAnyone: allowAnyone is true and allowedIps names networks; expected one of them";
    assert!(faults.len() == 1 && faults[0].ends_with(expected), "{faults:?}");
}
