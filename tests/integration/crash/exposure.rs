//! The daemon is killed after each of its writes for public exposure; the resulting objects are the same.

use super::{Scenario, crash_after_every_write};
use crate::exposure::{allow, exposed, set_ports};
use crate::lab::Lab;
use cluster::config::only;

const KINDS: &str = "instances.crownlabs.polito.it,services,networkpolicies";

/// There is no load balancer, so the loop does not wait for addresses.
fn config(pool: &str) -> String {
    only(&[("publicExposure", &format!("ipPool: [{pool}], waitForAddress: false"))])
}

#[test]
fn exposure_survives_a_crash_after_every_write() {
    let lab = Lab::shared_unsimulated();
    let _course = lab.course("pecrash");
    allow(&lab, "pecrash");
    let namespace = "tenant-pecrash";
    let (whole, shrunk) = (config("172.18.3.1-172.18.3.2"), config("172.18.3.2"));
    let scenario = Scenario {
        name: "exposure",
        fixtures: "pecrash",
        steps: vec![
            Box::new(|lab| {
                lab.apply(&exposed("pecrash", "a", "{name: http, port: 80, targetPort: 80}"));
                lab.apply(&exposed("pecrash", "b", "{name: any, targetPort: 80}"));
            }),
            Box::new(|lab| {
                let ports = serde_json::json!([
                    {"name": "http", "port": 81, "targetPort": 80}, {"name": "any", "targetPort": 81},
                ]);
                set_ports(lab, namespace, "a", &ports);
            }),
            // The daemon is restarted with a smaller pool: no Service moves.
            Box::new(|_| {}),
            Box::new(|lab| set_ports(lab, namespace, "a", &serde_json::json!([]))),
            Box::new(|lab| {
                lab.delete_in_foreground("instances", namespace, &["a", "b"]);
            }),
        ],
        list: Box::new(|lab| lab.list(KINDS, namespace)),
        is_complete: |_| true,
        configs: &[&whole, &whole, &shrunk],
    };
    let writes = crash_after_every_write(&lab, &scenario);
    // Two Instances get a Service, a NetworkPolicy and a status; one of them gets other ports, and then none.
    assert!(writes >= 4 * 3, "only {writes} writes");
    println!("{writes} crashes");
}
