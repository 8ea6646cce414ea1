//! Public exposure: one Instance more where a thousand are exposed.

use anyhow::Result;
use futures::stream::{self, StreamExt};
use serde_json::json;

use crate::bed::{AGENT, Bench, CONCURRENCY, Figure, count, instance};
use crate::cluster::audit::by_agent;

/// The loop over exposure alone. No load balancer is played.
const CONFIG: &str = "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {crownlabs.polito.it/operator-selector: bench}
server: {metrics: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}
controllers:
  instance: {enabled: false}
  tenant: {enabled: false}
  workspace: {enabled: false}
  publicExposure: {ipPool: [10.99.0.0/24], waitForAddress: false}
";

/// A thousand exposed Instances, then a hundred more.
pub async fn one_more(figures: &mut Vec<Figure>) -> Result<()> {
    const THERE: usize = 1000;
    const MORE: usize = 100;
    let bench = Bench::start().await?;
    let audit = bench.cluster.audit();
    let allow = json!({"spec": {"allowPublicExposure": true}});
    let template = "/apis/crownlabs.polito.it/v1alpha2/namespaces/workspace-bench/templates/container";
    bench.send("PATCH", template, &allow).await?;
    eprintln!("{THERE} exposed Instances …");
    let mark = audit.mark()?;
    let daemon = bench.daemon_with(CONFIG)?;
    create(&bench, 0, THERE).await?;
    bench.await_statuses(mark, THERE)?;
    bench.settle()?;
    eprintln!("{MORE} more …");
    let (mark, before) = (audit.mark()?, daemon.processor_seconds()?);
    create(&bench, THERE, THERE + MORE).await?;
    bench.await_statuses(mark, MORE)?;
    bench.settle()?;
    let spent = (daemon.processor_seconds()? - before) * 1000.0 / count(MORE);
    let entries = audit.since(mark)?;
    let reads = by_agent(&entries, AGENT).filter(|entry| ["get", "list"].contains(&entry.verb.as_str()));
    let reads = reads.filter(|entry| entry.resource != "leases").count();
    let mut figure = |work, value, unit, limit| figures.push(Figure { work, value, unit, limit });
    figure("1000 exposed, one more: processor time of its passes", spent, "ms", Some(5.0));
    figure("1000 exposed, one more: list and get requests", count(reads), "", Some(0.0));
    Ok(())
}

async fn create(bench: &Bench, from: usize, to: usize) -> Result<()> {
    let path = "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-bench/instances";
    let creations = (from..to).map(|n| {
        let mut body = instance(&format!("exposed-{n:05}"), "container");
        // A port that many want, and one that is left to us.
        body["spec"]["publicExposure"] = json!({"ports": [
            {"name": "fixed", "port": 80 + n % 10, "targetPort": 80, "protocol": "TCP"},
            {"name": "any", "port": 0, "targetPort": 81, "protocol": "TCP"},
        ]});
        async move { bench.send("POST", path, &body).await.map(drop) }
    });
    stream::iter(creations).buffer_unordered(CONCURRENCY).collect::<Vec<_>>().await.into_iter().collect()
}
