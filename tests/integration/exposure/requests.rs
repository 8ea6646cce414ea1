//! Requests for ports that cannot be fulfilled: the status, and the objects that stay as they are.

use serde_json::{Value, json};

use super::{allow, await_exposure, config, exposed, set_ports};
use crate::lab::{Lab, PATIENCE, wait_until};

const NAMESPACE: &str = "tenant-badports";

#[test]
fn bad_requests_are_reported_with_a_hint() {
    let lab = Lab::shared();
    let course = lab.course("badports");
    let config = config("172.18.1.1");
    let daemon = course.daemon(&config);
    lab.apply(&exposed("badports", "one", "{name: a, port: 80, targetPort: 80}"));
    await_exposure(&lab, NAMESPACE, "one", "Error", "its owner can set spec.allowPublicExposure");
    allow(&lab, "badports");
    await_exposure(&lab, NAMESPACE, "one", "Ready", "");
    invalid_ports(&lab);
    occupied_ports(&lab);
    // Out of range: the schema rejects it.
    let refusal = lab.try_kubectl(
        &[
            "patch",
            "instance",
            "-n",
            NAMESPACE,
            "two",
            "--type=merge",
            "-p",
            r#"{"spec": {"publicExposure": {"ports": [{"name": "a", "port": 65536, "targetPort": 0}]}}}"#,
        ],
        "",
    );
    let refusal = refusal.expect_err("out of range");
    assert!(refusal.contains("less than or equal to 65535"), "{refusal}");
    // Without a pool.
    drop(daemon);
    let none = "controllers: {publicExposure: {ipPool: []}}\n";
    let _daemon = course.daemon(none);
    lab.apply(&exposed("badports", "three", "{name: a, targetPort: 53}"));
    await_exposure(&lab, NAMESPACE, "three", "Error", "controllers.publicExposure.ipPool is empty");
}

/// A port of `spec.publicExposure`.
fn port(name: &str, port: u16, target: u16, protocol: &str) -> Value {
    json!({"name": name, "port": port, "targetPort": target, "protocol": protocol})
}

/// Each invalid port is reported, and the other ports are exposed. Without any valid port, the exposure stays as it was.
fn invalid_ports(lab: &Lab) {
    let first = port("a", 80, 80, "TCP");
    for (ports, phase, message) in [
        (json!([first, port("b", 81, 80, "TCP")]), "Ready", "two ports have targetPort 80"),
        (json!([first, port("b", 80, 81, "TCP")]), "Ready", "two ports request the public port 80"),
        (json!([first, port("a", 81, 81, "TCP")]), "Ready", "two ports are named a"),
        (json!([port("a", 80, 80, "SCTP")]), "Error", "port a is SCTP; only TCP and UDP can be exposed"),
    ] {
        set_ports(lab, NAMESPACE, "one", &ports);
        let message = format!("Invalid public exposure request: {message}");
        let status = await_exposure(lab, NAMESPACE, "one", phase, &message);
        assert_eq!((&status["externalIP"], &status["ports"]), (&json!("172.18.1.1"), &json!([first])));
        let service = lab.get("services", NAMESPACE, "one-pe").expect("the Service");
        assert_eq!(service["spec"]["ports"].as_array().map(Vec::len), Some(1), "{service}");
    }
}

/// A port that another Instance has is reported until it is free. TCP and UDP of one number are two ports.
fn occupied_ports(lab: &Lab) {
    set_ports(lab, NAMESPACE, "one", &json!([port("a", 53, 53, "TCP"), port("b", 53, 53, "UDP")]));
    await_exposure(lab, NAMESPACE, "one", "Ready", "");
    lab.apply(&exposed("badports", "two", "{name: a, port: 53, targetPort: 53}"));
    await_exposure(lab, NAMESPACE, "two", "Error", "request other ports, or port 0");
    // The other port of the Instance is exposed.
    set_ports(lab, NAMESPACE, "two", &json!([port("a", 53, 53, "TCP"), port("b", 8053, 8053, "TCP")]));
    let status = await_exposure(lab, NAMESPACE, "two", "Ready", "the public port 53 of port a is in use");
    assert_eq!(status["ports"], json!([port("b", 8053, 8053, "TCP")]));
    lab.patch("instances", NAMESPACE, "one", r#"{"spec": {"running": false}}"#);
    wait_until(PATIENCE, || {
        let status = await_exposure(lab, NAMESPACE, "two", "Ready", "");
        let whole = status["ports"].as_array().map(Vec::len) == Some(2);
        (whole && status["message"] == "Public exposure assigned")
            .then_some(())
            .ok_or_else(|| status.to_string())
    });
}
