//! The daemon is killed before each call to the kernel, the container runtime or the API server, and the next one
//! finishes its work.

use std::time::Duration;

use serde_json::json;

use super::allocations::{allocation, released};
use super::node::Node;
use super::pools::pool;
use crate::daemon::Daemon;
use crate::lab::{PATIENCE, wait_until};

const UID: &str = "uid-one";

/// The system calls that send requests: to the kernel over netlink, to the runtime, and to the API server.
const CALLS: &str = "sendto,sendmsg,writev";

/// The command that runs a program until its `n`-th request, and kills it before the request is sent.
fn killed_at(n: usize) -> Vec<String> {
    let (trace, inject) = (format!("trace={CALLS}"), format!("inject={CALLS}:signal=KILL:when={n}"));
    ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject].map(str::to_owned).into()
}

/// Starts a daemon that is killed before its `n`-th request, and waits until it is killed or `is_done`; returns whether
/// it was killed.
fn is_killed(node: &Node, n: usize, is_done: impl Fn() -> bool) -> bool {
    let through = killed_at(n);
    let through: Vec<&str> = through.iter().map(String::as_str).collect();
    let mut daemon = node.spawn_through(&through, "");
    wait_until(PATIENCE, || match daemon.wait(Duration::ZERO) {
        Some(_) => Ok(true),
        None if is_done() => Ok(false),
        None => Err(format!("killed, or done: {}", daemon.log())),
    })
}

#[test]
fn interrupted_work_is_finished_by_the_next_process() {
    let node = Node::new("podnet-crash");
    let pod = node.pod(UID);
    let range = pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]);
    let link = || allocation(&node, "one", "data", "labbr0", "10.77.0.2");
    let (name, host) = (format!("data{}", pod.process()), format!("hdata{}", pod.process()));
    let state = || node.entries(UID).first().map(|entry| entry["state"].clone()).unwrap_or_default();
    let is_plugged = || {
        state() == "plugged"
            && pod.links() == [name.clone()]
            && pod.addresses(&name) == ["10.77.0.2/24"]
            && node.addresses("labbr0") == ["10.77.0.1/24"]
            && node.own() == ["labbr0".to_owned(), host.clone()]
            && node.link(&host)["operstate"] == "UP"
    };
    let finish = |is_done: &dyn Fn() -> bool| {
        let daemon: Daemon = node.spawn_through(&[], "");
        wait_until(
            PATIENCE,
            || if is_done() { Ok(()) } else { Err(format!("{:?} {:?}", node.own(), state())) },
        );
        drop(daemon);
        node.assert_others_untouched();
    };
    let (mut killed, mut half_made) = (0, 0);
    for n in 1.. {
        // From an empty node.
        node.write(&range, &[(UID, json!([link()]))]);
        let was_killed = is_killed(&node, n, is_plugged);
        let own = node.own();
        half_made += usize::from(!own.is_empty() && !is_plugged());
        finish(&is_plugged);
        // To an empty node.
        node.write(&range, &[(UID, json!([released(link())]))]);
        let was_killed = is_killed(&node, n, || state() == "released") || was_killed;
        finish(&|| state() == "released" && node.own() == ["labbr0"]);
        node.delete(&range);
        let was_killed = is_killed(&node, n, || node.own().is_empty() && state().is_null()) || was_killed;
        finish(&|| node.own().is_empty() && state().is_null());
        if !was_killed {
            break;
        }
        killed = n;
    }
    // About 20 requests. Some leave an incomplete state; how many depends on the requests that are sent at once.
    assert!(killed > 10 && half_made > 3, "{killed}, {half_made}");
    assert!(pod.links().is_empty());
}
