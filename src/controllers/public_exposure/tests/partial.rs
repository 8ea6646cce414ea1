//! Requests that can be fulfilled only in part: the ports that are possible are exposed, and the others have a reason.

use super::*;

/// Ports that exclude each other: the second `ssh`, and the third port, which leads to the same target as `web`.
fn conflicting() -> Value {
    json!([
        {"name": "ssh", "port": 22, "targetPort": 22},
        {"name": "ssh", "port": 0, "targetPort": 2222},
        {"name": "web", "port": 0, "targetPort": 80},
        {"name": "http", "port": 80, "targetPort": 80},
    ])
}

/// An Instance with these ports, and the ports that are allocated to it.
fn exposed(addresses: &Addresses, name: &str, ports: &Value, settings: &Settings) -> Observed {
    let mut case = observed(ports, &json!({"metadata": {"name": name, "uid": format!("u-{name}")}}));
    let wanted = wanted(&case, settings);
    case.allocation = addresses.allocate(&case.instance, None, &wanted, settings);
    case.request = Validated::Ports(wanted);
    case
}

/// The name and the public port of each allocated port.
fn numbers(case: &Observed) -> Vec<(&str, u16)> {
    let ports = case.allocation.iter().flat_map(|allocation| &allocation.ports);
    ports.map(|(wanted, port)| (wanted.name.as_str(), *port)).collect()
}

#[test]
fn ports_that_exclude_others_are_left_out_and_reported() {
    let mut settings = settings(&["10.0.0.1"]);
    settings.config.wait_for_address = false;
    let case = exposed(&Addresses::default(), "box", &conflicting(), &settings);
    assert_eq!(numbers(&case), [("ssh", 22), ("web", 49152)]);
    let plan = plan(&case, &settings, now());
    let kinds: Vec<&str> = plan.ensure.iter().map(|desired| desired.kind.kind).collect();
    assert_eq!((kinds, plan.requeue), (vec!["Service", "NetworkPolicy"], Requeue::Resync));
    let report = report(&case, &settings, &Outcome::default(), now());
    let faults = "Invalid public exposure request: two ports are named ssh: give each a different name; two ports have \
                  targetPort 80: remove one of them";
    assert_eq!(
        told(&report),
        format!(
            "Ready 10.0.0.1 Public exposure assigned, except for some ports: {faults} | InvalidRequest | InvalidRequest"
        )
    );
    let condition = report.status.conditions.first().expect("a condition");
    assert_eq!(condition.status, "False");
    assert!(
        condition.message.ends_with(&format!("web at 49152 (TCP). Not exposed: {faults}")),
        "{condition:?}"
    );
    let shown = report.status.public_exposure.expect("reported");
    let shown: Vec<&str> = shown.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(shown, ["ssh", "web"]);
}

#[test]
fn a_taken_public_port_is_left_out_and_added_when_it_is_freed() {
    let mut settings = settings(&["10.0.0.1"]);
    settings.config.wait_for_address = false;
    let addresses = Addresses::default();
    let first = exposed(&addresses, "first", &json!([two()[1]]), &settings);
    assert_eq!(numbers(&first), [("ssh", 22)]);
    let second = exposed(&addresses, "second", &two(), &settings);
    assert_eq!(numbers(&second), [("http", 49152)]);
    let again = exposed(&addresses, "second", &two(), &settings);
    assert_eq!(numbers(&again), numbers(&second), "the next reconcile changes nothing");
    let told = told(&report(&second, &settings, &Outcome::default(), now()));
    assert!(
        told.starts_with(
            "Ready 10.0.0.1 Public exposure assigned, except for some ports: the public port 22 of port ssh is in use: "
        ) && told.ends_with("| NoFreePort | NoFreePort"),
        "{told}"
    );
    assert_eq!(plan(&second, &settings, now()).requeue, Requeue::After(Duration::from_mins(1)));
    assert!(addresses.take_waiting().contains(&ObjectKey::of(&*second.instance)));
    addresses.settle(&ObjectKey::of(&*first.instance));
    let whole = exposed(&addresses, "second", &two(), &settings);
    assert_eq!(numbers(&whole), [("ssh", 22), ("http", 49152)]);
    assert!(addresses.take_waiting().is_empty());
}

#[test]
fn without_a_current_address_the_one_with_the_most_free_ports_is_used() {
    let settings = settings(&["10.0.0.1-10.0.0.2"]);
    let addresses = Addresses::default();
    let port = |name: &str, port: u16| json!({"name": name, "port": port, "targetPort": port});
    for (name, ports) in
        [("one", json!([port("a", 80), port("b", 443)])), ("two", json!([port("a", 80), port("c", 22)]))]
    {
        assert_eq!(numbers(&exposed(&addresses, name, &ports, &settings)).len(), 2, "{name}");
    }
    // The first address has ports 80 and 443, and the second one 80 and 22.
    let wide =
        exposed(&addresses, "three", &json!([port("a", 80), port("b", 443), port("d", 8443)]), &settings);
    assert_eq!(numbers(&wide), [("b", 443), ("d", 8443)]);
    assert_eq!(wide.allocation.as_ref().map(|found| found.address.to_string()).as_deref(), Some("10.0.0.2"));
    let none = exposed(&addresses, "four", &json!([port("a", 80)]), &settings);
    assert_eq!(none.allocation, None);
}

#[test]
fn an_exhausted_range_leaves_the_specified_ports_exposed() {
    let mut settings = settings(&["10.0.0.1"]);
    settings.config.automatic_port_range = "30000-30000".parse().expect("a range");
    let addresses = Addresses::default();
    let any = |name: &str, target: u16| json!({"name": name, "port": 0, "targetPort": target});
    assert_eq!(numbers(&exposed(&addresses, "first", &json!([any("a", 1)]), &settings)), [("a", 30000)]);
    let second = exposed(&addresses, "second", &json!([any("b", 2), two()[1]]), &settings);
    assert_eq!(numbers(&second), [("ssh", 22)]);
    let problems: Vec<String> =
        plan(&second, &settings, now()).problems.into_iter().map(|problem| problem.message).collect();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("no public port is free for port b. "), "{problems:?}");
}
