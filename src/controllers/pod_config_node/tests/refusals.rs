//! Changes that the kernel refuses, in a network namespace of the test.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use super::kernel::*;
use crate::controllers::pod_config_node::plan::{LinkChange, Observed, Plan, plan};
use crate::controllers::pod_config_node::records::Desired;
use crate::controllers::pod_config_node::settle::settle;
use crate::netlink::in_thread;

/// A network namespace that is removed at the end.
struct Made(String);

impl Made {
    fn new() -> Self {
        let name = format!("settle{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).status().expect("ip runs");
        assert!(made.success(), "the tests of network namespaces are run by root");
        Self(name)
    }

    fn run(&self, program: &str, arguments: &str) -> String {
        let inside =
            Command::new("ip").args(["netns", "exec", &self.0, program]).args(arguments.split(' ')).output();
        let done = inside.expect("ip runs");
        assert!(done.status.success(), "{program} {arguments}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Brings the namespace to the desired state, once.
    async fn settle(&self, desired: Desired) -> Plan {
        let path = PathBuf::from("/run/netns").join(&self.0);
        let planned = move |observed: &Observed| plan(observed, &desired, &settings(), &BTreeSet::new());
        let settled = in_thread(move |thread| settle(thread, &path, planned)).await;
        settled.expect("a thread").expect("links that can be read")
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[tokio::test]
async fn a_change_that_the_kernel_refuses_does_not_delay_the_other_bridges() {
    let node = Made::new();
    // Without IPv6, no bridge can have such an address.
    node.run("sysctl", "-w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1");
    let refused = pool("lab", "fd00:77::/64", &["labbr6"], &[("p06", "data", "labbr6", "fd00:77::2", false)]);
    let good = pool("lab", "10.77.0.0/24", &["labbr4"], &[("p04", "data", "labbr4", "10.77.0.2", false)]);
    let left = node.settle(desired(std::slice::from_ref(&refused))).await;
    assert!(left.has_failed && matches!(&left.changes[..], [LinkChange::AddGateway(_)]), "{left:?}");
    let left = node.settle(desired(&[refused, good])).await;
    assert!(left.has_failed && matches!(&left.changes[..], [LinkChange::AddGateway(_)]), "{left:?}");
    let addresses = node.run("ip", "-o addr show dev labbr4");
    assert!(addresses.contains("10.77.0.1/24"), "{addresses}");
}
