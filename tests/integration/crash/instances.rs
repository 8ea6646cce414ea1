//! The daemon dies after any of its writes about Instances, and the world comes out the same.

use super::{Scenario, crash_after_every_write};
use crate::cluster::Options as ClusterOptions;
use crate::lab::{Lab, TEMPLATES, instance};

/// What is made of Instances.
const KINDS: &str = "instances.crownlabs.polito.it,services,ingresses,secrets,persistentvolumeclaims,deployments,\
                     virtualmachines.kubevirt.io,virtualmachineinstances.kubevirt.io";

#[test]
fn instances_of_every_type_survive_a_crash_after_every_write() {
    // Without anybody who plays nodes and machines: the writes are ours alone, and at our pace.
    let lab = Lab::start(ClusterOptions { play: false, ..ClusterOptions::default() });
    lab.furnish("crash");
    let namespace = "tenant-crash";
    let mut total = 0;
    for template in TEMPLATES {
        let running = |running: bool| {
            move |lab: &Lab| {
                lab.patch(
                    "instances",
                    namespace,
                    template,
                    &format!(r#"{{"spec": {{"running": {running}}}}}"#),
                );
            }
        };
        let scenario = Scenario {
            name: template,
            lab: "crash",
            steps: vec![
                Box::new(|lab| lab.apply(&instance("crash", template, template))),
                Box::new(running(false)),
                Box::new(running(true)),
                Box::new(|lab| {
                    lab.kubectl(&["delete", "instances", "-n", namespace, template, "--cascade=foreground"]);
                }),
            ],
            look: Box::new(|lab| lab.list(KINDS, namespace)),
            is_complete: |_| true,
            // The namespace and the Tenant are the test's.
            configs: &["controllers: {tenant: {enabled: false}, workspace: {enabled: false}}\n"],
        };
        let writes = crash_after_every_write(&lab, &scenario);
        assert!(writes >= 8, "{template}: only {writes} writes");
        total += writes;
    }
    println!("{total} crashes");
}
