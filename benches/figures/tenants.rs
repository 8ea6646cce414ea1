//! Tenants: created in an empty cluster, in large numbers, after a restart, and while nothing changes.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::fixtures::CONFIG;
use crate::harness::{Bench, Daemon, Figures, count, requests, writes};
use crate::idle_time;
use crate::instances;
use cluster::keycloak::{KeycloakServer, OPERATOR, ROLES_CLIENT};
use cluster::proxy::Proxy;

/// How long the daemon is measured while nothing changes.
const IDLE: Duration = Duration::from_mins(2);
/// The time after which the events about a claim that nobody provisions have been read, and their cause is written.
const EXPLAINED: Duration = Duration::from_secs(200);

/// 300 Tenants of a Workspace that exist when the daemon starts, without Keycloak. Their volumes are not provisioned.
pub async fn cold(figures: &mut Figures) -> Result<()> {
    const COUNT: usize = 300;
    let bench = Bench::start().await?;
    let audit = bench.cluster.audit();
    create_course(&bench).await?;
    create(&bench, 0, COUNT).await?;
    bench.settle()?;
    eprintln!("cold: the daemon, {COUNT} Tenants …");
    let mark = audit.mark()?;
    let daemon = bench.daemon()?;
    bench.await_written(mark, "tenants", COUNT)?;
    bench.settle()?;
    let entries = audit.since(mark)?;
    let per_tenant = requests(&entries) / count(COUNT);
    figures.add("300 Tenants cold: requests per Tenant", per_tenant, "", Some(11.0));
    figures.add("300 Tenants cold: processor time", daemon.processor_seconds()?, "s", Some(1.5));
    figures.add("300 Tenants cold: peak memory", daemon.peak_mebibytes()?, "MiB", Some(45.0));
    many(&bench, daemon, COUNT, figures).await
}

/// Tenants of a Workspace that exist when the daemon starts, with the keys of the tenant loop in the values of the chart.
pub async fn with_chart(figures: &mut Figures) -> Result<()> {
    const COUNT: usize = 100;
    const KEYS: &str = "controllers: {tenant: {managers: course, countQuotas: {enabled: true}, sandboxNetworkPolicies: true}}\n";
    let bench = Bench::start().await?;
    let audit = bench.cluster.audit();
    create_course(&bench).await?;
    create(&bench, 0, COUNT).await?;
    bench.settle()?;
    eprintln!("cold: the daemon with the values of the chart, {COUNT} Tenants …");
    let mark = audit.mark()?;
    let _daemon = bench.daemon_with(&format!("{CONFIG}{KEYS}"))?;
    bench.await_written(mark, "tenants", COUNT)?;
    bench.settle()?;
    let per_tenant = requests(&audit.since(mark)?) / count(COUNT);
    figures.add("100 Tenants cold, values of the chart: requests per Tenant", per_tenant, "", Some(12.0));
    Ok(())
}

/// Adds Tenants to the `present` ones until there are 2,000, restarts the daemon, then lets it idle.
async fn many(bench: &Bench, daemon: Daemon, present: usize, figures: &mut Figures) -> Result<()> {
    const COUNT: usize = 2000;
    let audit = bench.cluster.audit();
    eprintln!("{COUNT} Tenants …");
    let mark = audit.mark()?;
    create(bench, present, COUNT).await?;
    bench.await_written(mark, "tenants", COUNT - present)?;
    bench.settle_for(EXPLAINED)?;
    figures.add("2000 Tenants: peak memory", daemon.peak_mebibytes()?, "MiB", Some(60.0));
    drop(daemon);
    eprintln!("restart with {COUNT} Tenants in place …");
    let mark = audit.mark()?;
    let daemon = bench.daemon()?;
    bench.await_leader(mark)?;
    figures.add("2000 Tenants restart: writes", writes(&audit.since(mark)?), "", Some(0.0));
    figures.add("2000 Tenants restart: peak memory", daemon.peak_mebibytes()?, "MiB", Some(60.0));
    let time = idle_time(IDLE);
    let idle = instances::idle(bench, &daemon, time)?;
    figures.add("2000 Tenants idle: requests other than watches and the lease", idle.requests, "", Some(0.0));
    // The claims wait for their volumes.
    let lists = Some(instances::lists_in(time));
    figures.add("2000 Tenants idle: lists of events", idle.event_lists, "", lists);
    Ok(())
}

/// Counts the changes that the daemon makes in Keycloak after a restart when nothing has to change.
pub async fn with_keycloak(figures: &mut Figures) -> Result<()> {
    const COUNT: usize = 50;
    const SECRET: &str = "bench";
    let bench = Bench::start().await?;
    let server = KeycloakServer::start()?;
    server.create_realm("bench", SECRET, &["manage-users", "manage-clients"])?;
    let proxy = Proxy::in_front_of(&server.url(), None)?;
    let file = bench.dir.join("keycloak-secret");
    std::fs::write(&file, SECRET)?;
    let config = format!(
        "{CONFIG}controllers: {{tenant: {{waitUserVerification: false}}}}
integrations: {{keycloak: {{enabled: true, url: \"{}\", realm: bench, clientId: {OPERATOR}, rolesClientId: {ROLES_CLIENT}, clientSecretFile: \"{}\"}}}}
",
        proxy.url(),
        file.display()
    );
    create_course(&bench).await?;
    create(&bench, 0, COUNT).await?;
    eprintln!("{COUNT} Tenants with Keycloak, then a restart, then idle for {:?} …", idle_time(IDLE));
    let audit = bench.cluster.audit();
    let mark = audit.mark()?;
    let daemon = bench.daemon_with(&config)?;
    bench.await_written(mark, "tenants", COUNT)?;
    bench.settle()?;
    drop(daemon);
    let changes = || {
        let log = proxy.request_log();
        log.iter().filter(|asked| asked.method != "GET" && !asked.path.ends_with("/token")).count()
    };
    let (mark, before) = (audit.mark()?, changes());
    let _daemon = bench.daemon_with(&config)?;
    bench.await_leader(mark)?;
    std::thread::sleep(idle_time(IDLE));
    figures.add("50 Tenants with Keycloak: changes there from cold", count(before), "", None);
    figures.add(
        "50 Tenants with Keycloak: changes after a restart, at rest",
        count(changes() - before),
        "",
        Some(0.0),
    );
    Ok(())
}

/// Creates the Workspace of the Tenants.
async fn create_course(bench: &Bench) -> Result<()> {
    let labels = json!({"crownlabs.polito.it/operator-selector": "bench"});
    let course = json!({
        "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "Workspace",
        "metadata": {"name": "course", "labels": labels},
        "spec": {"prettyName": "Course", "quota": {"cpu": 4, "memory": "8Gi", "instances": 2}},
    });
    bench.send("POST", "/apis/crownlabs.polito.it/v1alpha1/workspaces", &course).await.map(drop)
}

/// Creates Tenants with the numbers from `from` to `to`.
async fn create(bench: &Bench, from: usize, to: usize) -> Result<()> {
    let labels = json!({"crownlabs.polito.it/operator-selector": "bench"});
    for n in from..to {
        let tenant = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Tenant",
            "metadata": {"name": format!("student.{n:04}"), "labels": labels},
            "spec": {
                "firstName": "Ada", "lastName": "Rossi", "email": format!("student.{n:04}@example.org"),
                "lastLogin": "2099-01-01T00:00:00Z", "workspaces": [{"name": "course", "role": "user"}],
            },
        });
        bench.send("POST", "/apis/crownlabs.polito.it/v1alpha2/tenants", &tenant).await?;
    }
    Ok(())
}
