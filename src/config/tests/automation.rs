//! The faults reported for the loops that stop or delete Instances: required servers, and times.

use super::faults::assert_faults;
use super::*;

const NO_PROMETHEUS: &str = "inactivity is enabled and integrations.prometheus.url is empty; \
                             expected the URL of the Prometheus that knows which Instances are used";

/// The keys of a Prometheus server, and of a folder for mails.
const SERVERS: &str = "integrations: {prometheus: {url: 'http://p:9090'}, mail: {transport: file, folder: /m, from: a@example.org}}\n";

#[test]
fn inactivity_needs_a_prometheus() {
    let enabled = "controllers: {inactivity: {enabled: true, notifications: false}}\n";
    let expected = format!("f.yaml:3: controllers.inactivity.enabled: {NO_PROMETHEUS}");
    assert_eq!(faults_below(enabled), [expected.as_str()]);
    assert_eq!(faults_below(&format!("{enabled}integrations: {{prometheus: {{url: ''}}}}\n")), [expected]);
    parsed(&format!("{enabled}integrations: {{prometheus: {{url: 'http://p:9090'}}}}\n"));
    // Expiration does not query Prometheus.
    parsed("controllers: {expiration: {enabled: true, notifications: false}}\n");
}

#[test]
fn loops_that_warn_require_a_mail_transport() {
    let prometheus = "integrations: {prometheus: {url: 'http://p:9090'}}";
    for name in ["inactivity", "expiration"] {
        let fault = |key: &str| {
            format!(
                "f.yaml:4: {key}: {name} warns by mail, but integrations.mail has no transport; expected a \
                 transport in integrations.mail, or notifications: false (tenants then lose Instances without \
                 a warning)"
            )
        };
        let warns =
            format!("{prometheus}\ncontrollers: {{{name}: {{enabled: true, notifications: true}}}}\n");
        assert_eq!(faults_below(&warns), [fault(&format!("controllers.{name}.notifications"))]);
        // Notifications are on by default.
        let silent = format!("{prometheus}\ncontrollers: {{{name}: {{enabled: true}}}}\n");
        let faults = faults_below(&silent);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0].contains(&format!("{name} warns by mail, but integrations.mail has no transport; "))
        );
        parsed(&format!("{prometheus}\ncontrollers: {{{name}: {{enabled: true, notifications: false}}}}\n"));
        parsed(&format!("{SERVERS}controllers: {{{name}: {{enabled: true}}}}\n"));
        parsed(&format!("controllers: {{{name}: {{enabled: false, notifications: true}}}}\n"));
    }
}

#[test]
fn times_of_the_loops_that_end_instances_have_a_lower_bound() {
    for key in [
        "inactivity.notificationInterval",
        "inactivity.destructionNotificationInterval",
        "inactivity.checkInterval",
        "expiration.notificationInterval",
    ] {
        let (name, last) = key.split_once('.').unwrap();
        for time in ["0s", "999ms"] {
            assert_faults(&[(
                &format!("controllers: {{{name}: {{{last}: {time}}}}}"),
                &format!("controllers.{key}: {time} is too short; expected at least 1s"),
            )]);
        }
        parsed(&format!("controllers: {{{name}: {{{last}: 1s}}}}\n"));
    }
}
