//! The actions of users: Tenants are created and deleted, and Instances are created, switched, exposed and deleted. An
//! action that fails, because a namespace does not exist yet or the API server is down, is not retried.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kube::api::PropagationPolicy;
use serde_json::{Value, json};

use super::COURSE;
use crate::lab::{Lab, TEMPLATES, instance};
use crate::numbers::Numbers;
use crate::shared_volumes::shared_volume;

/// How many users act at the same time.
pub const CLIENTS: u64 = 3;

const TENANTS: [&str; 5] = ["ada", "bob", "carl", "dora", "eve"];
const VOLUMES: [&str; 2] = ["books", "data"];

/// Acts until it is over. Returns the number of accepted actions.
pub fn act(lab: &Lab, mut numbers: Numbers, over: &AtomicBool) -> usize {
    let mut done = 0;
    while !over.load(Ordering::SeqCst) {
        done += usize::from(action(lab, &mut numbers));
        // The pause of a user, which is random on purpose.
        thread::sleep(Duration::from_millis(20 + numbers.below(300)));
    }
    done
}

/// One action. Returns whether it was accepted.
fn action(lab: &Lab, numbers: &mut Numbers) -> bool {
    // An Instance has the name of its Template, which does not change.
    let (tenant, name) = (numbers.one_of(&TENANTS), numbers.one_of(&TEMPLATES));
    let namespace = format!("tenant-{tenant}");
    let patch = |kind: &str, namespace: &str, name: &str, patch: &Value| {
        lab.cluster.patch(kind, namespace, name, None, &patch.to_string()).is_ok()
    };
    let delete = |kind: &str, namespace: &str, name: &str| {
        lab.cluster.delete(kind, namespace, name, PropagationPolicy::Background).is_ok()
    };
    match numbers.below(16) {
        0..=2 => lab.cluster.apply(&tenant_of_course(tenant, numbers)).is_ok(),
        3..=7 => lab.cluster.apply(&instance_of(tenant, name, numbers)).is_ok(),
        8 | 9 => patch("instances", &namespace, name, &json!({"spec": {"running": numbers.once_in(2)}})),
        10 | 11 => {
            let ports = (!numbers.once_in(4)).then(|| json!({"ports": random_ports(numbers)}));
            patch("instances", &namespace, name, &json!({"spec": {"publicExposure": ports}}))
        }
        12 => delete("instances.crownlabs.polito.it", &namespace, name),
        13 if numbers.once_in(3) => delete("tenants.crownlabs.polito.it", "", tenant),
        14 => lab.cluster.apply(&shared_volume(COURSE, numbers.one_of(&VOLUMES), "1Gi")).is_ok(),
        15 => delete("sharedvolumes", &format!("workspace-{COURSE}"), numbers.one_of(&VOLUMES)),
        _ => false,
    }
}

/// A Tenant that has just logged in, and is enrolled in the course as a manager or a user, or in no course.
fn tenant_of_course(name: &str, numbers: &mut Numbers) -> String {
    let workspaces =
        ["[]", "[{name: soak, role: user}]", "[{name: soak, role: user}]", "[{name: soak, role: manager}]"];
    let workspaces = numbers.one_of(&workspaces);
    crate::tenants::tenant(COURSE, name, &format!(", workspaces: {workspaces}"))
}

fn instance_of(tenant: &str, name: &str, numbers: &mut Numbers) -> String {
    let text = instance(tenant, name, name);
    let text = text.replace(&format!("workspace-{tenant}"), &format!("workspace-{COURSE}"));
    let running = !numbers.once_in(4);
    text.replace("spec:\n", &format!("spec:\n  running: {running}\n"))
}

/// One to three ports, some of them with one of a few fixed numbers, so that many Instances request the same one.
pub fn random_ports(numbers: &mut Numbers) -> Value {
    let ports = (0..=numbers.below(3)).map(|n| {
        let port = if numbers.once_in(2) { 0 } else { 80 + n };
        let protocol = if numbers.once_in(3) { "UDP" } else { "TCP" };
        json!({"name": format!("p{n}"), "port": port, "targetPort": 8000 + n, "protocol": protocol})
    });
    ports.collect()
}
