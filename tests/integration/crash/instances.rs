//! The daemon is killed after each of its writes for Instances; the resulting objects are the same.

use super::{Scenario, crash_after_every_write};
use crate::cluster::Options as ClusterOptions;
use crate::lab::{Lab, TEMPLATES, instance};

/// The kinds of objects that the daemon makes for Instances.
const KINDS: &str = "instances.crownlabs.polito.it,services,ingresses,secrets,persistentvolumeclaims,deployments,\
                     virtualmachines.kubevirt.io,virtualmachineinstances.kubevirt.io";

#[test]
fn instances_of_every_type_survive_a_crash_after_every_write() {
    // Nodes and virtual machines are not simulated, so that nobody else writes these objects.
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    lab.create_fixtures("crash");
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
            fixtures: "crash",
            steps: vec![
                Box::new(|lab| lab.apply(&instance("crash", template, template))),
                Box::new(running(false)),
                Box::new(running(true)),
                Box::new(|lab| {
                    lab.kubectl(&["delete", "instances", "-n", namespace, template, "--cascade=foreground"]);
                }),
            ],
            list: Box::new(|lab| lab.list(KINDS, namespace)),
            is_complete: |_| true,
            // The test itself creates the namespace and the Tenant.
            configs: &["controllers: {tenant: {enabled: false}, workspace: {enabled: false}}\n"],
        };
        let writes = crash_after_every_write(&lab, &scenario);
        assert!(writes >= 8, "{template}: only {writes} writes");
        total += writes;
    }
    println!("{total} crashes");
}
