//! Public exposure: the cost of one more Instance when a thousand are exposed already.

use anyhow::Result;
use futures::stream::{self, StreamExt};
use serde_json::json;

use crate::fixtures::CONFIG;
use crate::harness::{AGENT, Bench, CONCURRENCY, Figures, count, instance};
use cluster::audit::by_agent;
use cluster::config::only;

/// The keys of the loop. There is no load balancer, so it does not wait for addresses.
const KEYS: &str = "ipPool: [10.99.0.0/24], waitForAddress: false";

/// Measures a hundred further Instances after a thousand.
pub async fn one_more(figures: &mut Figures) -> Result<()> {
    const THERE: usize = 1000;
    const MORE: usize = 100;
    let bench = Bench::start().await?;
    let audit = bench.cluster.audit();
    let allow = json!({"spec": {"allowPublicExposure": true}});
    let template = "/apis/crownlabs.polito.it/v1alpha2/namespaces/workspace-bench/templates/container";
    bench.send("PATCH", template, &allow).await?;
    eprintln!("{THERE} exposed Instances …");
    let mark = audit.mark()?;
    let daemon = bench.daemon_with(&format!("{CONFIG}{}", only(&[("publicExposure", KEYS)])))?;
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
    figures.add("1000 exposed, one more: processor time", spent, "ms", Some(5.0));
    figures.add("1000 exposed, one more: list and get requests", count(reads), "", Some(0.0));
    Ok(())
}

/// Creates exposed Instances with the numbers from `from` to `to`.
async fn create(bench: &Bench, from: usize, to: usize) -> Result<()> {
    let path = "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-bench/instances";
    let creations = (from..to).map(|n| {
        let mut body = instance(&format!("exposed-{n:05}"), "container");
        // A port number that many request, and one that the daemon chooses.
        body["spec"]["publicExposure"] = json!({"ports": [
            {"name": "fixed", "port": 80 + n % 10, "targetPort": 80, "protocol": "TCP"},
            {"name": "any", "port": 0, "targetPort": 81, "protocol": "TCP"},
        ]});
        async move { bench.send("POST", path, &body).await.map(drop) }
    });
    stream::iter(creations).buffer_unordered(CONCURRENCY).collect::<Vec<_>>().await.into_iter().collect()
}
