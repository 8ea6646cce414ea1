//! Tenants: from cold, many, after a restart, and at rest.

use anyhow::Result;
use serde_json::json;

use crate::bed::{AGENT, Bench, CONFIG, Daemon, Figure, count, is_work, requests};
use crate::cluster::audit::by_agent;
use crate::cluster::keycloak::{KeycloakServer, OPERATOR, ROLES_CLIENT};
use crate::cluster::proxy::Proxy;
use crate::idle_time;

/// 300 Tenants of a Workspace, from cold: without Keycloak, and with volumes that stay unbound.
pub async fn cold(figures: &mut Vec<Figure>) -> Result<()> {
    const COUNT: usize = 300;
    let bench = Bench::start().await?;
    let audit = bench.cluster.audit();
    course(&bench).await?;
    create(&bench, 0, COUNT).await?;
    bench.settle()?;
    eprintln!("cold: the daemon, {COUNT} Tenants …");
    let mark = audit.mark()?;
    let daemon = bench.daemon()?;
    bench.await_written(mark, "tenants", COUNT)?;
    bench.settle()?;
    let entries = audit.since(mark)?;
    figures.push(Figure {
        work: "300 Tenants cold: requests per Tenant",
        value: requests(&entries) / count(COUNT),
        unit: "",
        limit: Some(11.0),
    });
    figures.push(Figure {
        work: "300 Tenants cold: processor time",
        value: daemon.processor_seconds()?,
        unit: "s",
        limit: Some(1.5),
    });
    figures.push(Figure {
        work: "300 Tenants cold: peak memory",
        value: daemon.peak_mebibytes()?,
        unit: "MiB",
        limit: Some(45.0),
    });
    many(&bench, daemon, COUNT, figures).await
}

/// 2,000 Tenants, then a restart with all of them in place, then rest.
async fn many(bench: &Bench, daemon: Daemon, there: usize, figures: &mut Vec<Figure>) -> Result<()> {
    const COUNT: usize = 2000;
    let audit = bench.cluster.audit();
    eprintln!("{COUNT} Tenants …");
    let mark = audit.mark()?;
    create(bench, there, COUNT).await?;
    bench.await_written(mark, "tenants", COUNT - there)?;
    bench.settle()?;
    let mut figure = |work, value, unit, limit| figures.push(Figure { work, value, unit, limit });
    figure("2000 Tenants: peak memory", daemon.peak_mebibytes()?, "MiB", Some(60.0));
    drop(daemon);
    eprintln!("restart with {COUNT} Tenants in place, then idle for {:?} …", idle_time());
    let mark = audit.mark()?;
    let daemon = bench.daemon()?;
    bench.await_lead(mark)?;
    let entries = audit.since(mark)?;
    let writes = by_agent(&entries, AGENT).filter(|entry| is_work(entry) && entry.is_write()).count();
    figure("2000 Tenants restart: writes", count(writes), "", Some(0.0));
    figure("2000 Tenants restart: peak memory", daemon.peak_mebibytes()?, "MiB", Some(60.0));
    let mark = audit.mark()?;
    std::thread::sleep(idle_time());
    let idle = requests(&audit.since(mark)?);
    figure("2000 Tenants idle: requests other than watches and the lease", idle, "", Some(0.0));
    Ok(())
}

/// What Keycloak is asked to change once all is as it should be: in a restart's first pass, and at rest.
pub async fn with_keycloak(figures: &mut Vec<Figure>) -> Result<()> {
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
    course(&bench).await?;
    create(&bench, 0, COUNT).await?;
    eprintln!("{COUNT} Tenants with Keycloak, then a restart, then idle for {:?} …", idle_time());
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
    bench.await_lead(mark)?;
    std::thread::sleep(idle_time());
    let mut figure = |work, value, unit, limit| figures.push(Figure { work, value, unit, limit });
    figure("50 Tenants with Keycloak: changes there from cold", count(before), "", None);
    figure(
        "50 Tenants with Keycloak: changes after a restart, at rest",
        count(changes() - before),
        "",
        Some(0.0),
    );
    Ok(())
}

async fn course(bench: &Bench) -> Result<()> {
    let labels = json!({"crownlabs.polito.it/operator-selector": "bench"});
    let course = json!({
        "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "Workspace",
        "metadata": {"name": "course", "labels": labels},
        "spec": {"prettyName": "Course", "quota": {"cpu": 4, "memory": "8Gi", "instances": 2}},
    });
    bench.send("POST", "/apis/crownlabs.polito.it/v1alpha1/workspaces", &course).await.map(drop)
}

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
