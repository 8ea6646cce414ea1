//! The address of an environment, and the name of its Service.

use super::*;

#[test]
fn a_headless_service_has_no_address() {
    let report = reported(container("main"), json!({}), 1);
    assert_eq!((&*report.status.ip, &*report.status.environments[0].ip), ("", ""));
}

#[test]
fn a_stopped_instance_keeps_the_name_of_its_service_without_its_address() {
    let shown = |name: &str, running: bool, address: Option<&str>| {
        let mut observed = observed(container("main"));
        let status = json!({"environments": [{"name": "main", "service": name, "ip": "10.1.1.9"}]});
        let patch = json!({"spec": {"running": running}, "status": status});
        observed.instance = edit(&observed.instance, &patch);
        let service = address.map(|address| owned::<ServiceKind>("my-lab", json!({"clusterIP": address})));
        observed.children.set::<ServiceKind>(service);
        let (report, _) = reconciled(&observed, &InstanceConfig::classic(), time("2026-01-01T00:00:00Z"));
        let environment = &report.status.environments[0];
        [environment.service.to_string(), environment.ip.to_string()]
    };
    for (name, running, address, expected) in [
        ("", true, None, ["", ""]),
        ("", true, Some("10.1.1.1"), ["my-lab", "10.1.1.1"]),
        ("my-lab", false, Some("10.1.1.1"), ["my-lab", ""]),
        ("my-lab", false, None, ["my-lab", ""]),
        ("my-lab", true, Some("None"), ["", ""]),
    ] {
        assert_eq!(shown(name, running, address), expected, "{name:?}, {running}, {address:?}");
    }
}
