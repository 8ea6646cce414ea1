//! The gauges of quotas.

use super::{tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, templates, wait_until};

/// Waits until the metrics have all of these lines.
fn await_lines(daemon: &Daemon, lines: &[String]) {
    wait_until(PATIENCE, || {
        let metrics = daemon.metrics();
        let missing = lines.iter().find(|line| !metrics.lines().any(|shown| shown == *line));
        missing.map_or(Ok(()), |line| Err(format!("{line} in\n{metrics}")))
    });
}

/// A line about the Workspace: the used or granted amount of a resource.
fn line(family: &str, resource: &str, value: u64) -> String {
    format!(
        "crownlabs_workspace_quota_{family}{{workspace=\"gauge-course\",resource=\"{resource}\"}} {value}"
    )
}

fn near(resource: &str, count: u64) -> String {
    format!("crownlabs_tenants_near_quota{{resource=\"{resource}\"}} {count}")
}

#[test]
fn the_quota_usage_is_reported_by_course() {
    let lab = Lab::shared();
    let _course = lab.course("gauge");
    // Templates of 1 core and 64 MiB.
    lab.apply(
        &templates("gauge").replace("WorkspaceRef: {name: gauge}", "WorkspaceRef: {name: gauge-course}"),
    );
    let admin = lab.admin();
    let daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "gauge", config: "" });
    // 2 cores, 4 GiB and 2 Instances for each of two users.
    lab.apply(&workspace("gauge", "gauge-course", ""));
    let course = ", workspaces: [{name: gauge-course, role: user}]";
    lab.apply(&tenant("gauge", "gina", course));
    lab.apply(&tenant("gauge", "gil", &course.replace("user", "manager")));
    for name in ["gina", "gil"] {
        lab.await_value("tenants", "default", name, "/status/quota/cpu", "2");
        lab.await_ready("tenants", name);
    }
    let gib = 1 << 30;
    let granted =
        [line("granted", "cpu", 4), line("granted", "memory", 8 * gib), line("granted", "instances", 4)];
    await_lines(&daemon, &granted);
    await_lines(&daemon, &[line("used", "cpu", 0), line("used", "instances", 0), near("cpu", 0)]);
    for name in ["one", "two"] {
        let instance = instance("gauge", name, "standalone").replace("tenant-gauge", "tenant-gina");
        lab.apply(&instance.replace("TenantRef: {name: gauge}", "TenantRef: {name: gina}"));
    }
    await_lines(
        &daemon,
        &[line("used", "cpu", 2), line("used", "memory", gib / 8), line("used", "instances", 2)],
    );
    await_lines(&daemon, &[near("cpu", 1), near("memory", 0), near("instances", 1)]);
    // A stopped Instance counts as an Instance, but uses no core.
    lab.patch("instances", "tenant-gina", "two", r#"{"spec": {"running": false}}"#);
    await_lines(&daemon, &[line("used", "cpu", 1), line("used", "instances", 2)]);
    await_lines(&daemon, &[near("cpu", 0), near("instances", 1)]);
    lab.delete("instance", "tenant-gina", &["one", "two"]);
    lab.delete("tenant", "", &["gina", "gil"]);
    await_lines(&daemon, &[line("granted", "cpu", 0), line("used", "instances", 0), near("instances", 0)]);
    lab.delete("workspace", "", &["gauge-course"]);
}
