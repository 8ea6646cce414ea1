//! Many open terminals, with OpenSSH's server in place of the machine.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result};
use serde_json::json;

use crate::fixtures::CONFIG;
use crate::harness::{Bench, Figures, count, instance};
use cluster::browser::{Browser, request};
use cluster::sshd::{LocalAddress, OPEN, Sshd, key_pair};

/// How many terminals are open.
const COUNT: usize = 500;
/// The number of browsers that open a terminal at the same time.
const AT_ONCE: usize = 10;
/// The number of output lines that one terminal gets at the end, and their length in bytes with the end of the line.
const LINES: usize = 200_000;
const LINE: usize = 100;
/// The ports of the WebSocket and of SSH.
const PORT: u16 = 18_085;
const SSH_PORT: u16 = 18_022;

/// 500 terminals: memory, and the processor time of opening one and of its output.
pub async fn terminals(figures: &mut Figures) -> Result<()> {
    let bench = Bench::start().await?;
    let key = key_pair(&bench.dir.join("key"))?;
    let daemon = bench.daemon_with(&format!(
        "{CONFIG}controllers:\n  webSsh: {{enabled: true, listen: \"127.0.0.1:{PORT}\", user: root, port: {SSH_PORT}, \
         privateKeyFile: {}}}\n",
        key.display()
    ))?;
    let path = "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-bench/instances";
    let mark = bench.cluster.audit().mark()?;
    bench.send("POST", path, &instance("terminal", "vm")).await?;
    bench.await_statuses(mark, 1)?;
    bench.settle()?;
    // Machines are not simulated here: the machine is marked as ready, as its KubeVirt would mark it.
    let machine = "/apis/kubevirt.io/v1/namespaces/tenant-bench/virtualmachineinstances/terminal-main";
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    bench.send("PATCH", machine, &ready).await?;
    bench.settle()?;
    let path = "/api/v1/namespaces/tenant-bench/services/terminal-main";
    let service =
        bench.client.request::<serde_json::Value>(http::Request::get(path).body(Vec::new())?).await?;
    let address: IpAddr = service["spec"]["clusterIP"].as_str().context("an address")?.parse()?;
    let _address = LocalAddress::add(address)?;
    let command = format!(
        "while read line; do case $line in much) yes {} | head -{LINES};; end) echo done;; *) echo $line;; esac; done",
        "x".repeat(LINE - 2)
    );
    let _sshd = Sshd::start(&bench.dir, SocketAddr::new(address, SSH_PORT), &command)?;
    let token = tenant(&bench)?;
    eprintln!("{COUNT} terminals …");
    let before = daemon.processor_seconds()?;
    let request = request(&token, "tenant-bench", "terminal");
    let mut browsers: Vec<Browser> = std::thread::scope(|scope| {
        let opening = |_| scope.spawn(|| (0..COUNT / AT_ONCE).map(|_| open(&request)).collect::<Vec<_>>());
        let opening: Vec<_> = (0..AT_ONCE).map(opening).collect();
        opening.into_iter().flat_map(|opened| opened.join().expect("opened")).collect()
    });
    let spent = (daemon.processor_seconds()? - before) * 1_000.0 / count(COUNT);
    figures.add("500 terminals: processor time of opening one", spent, "ms", Some(20.0));
    figures.add("500 terminals: peak memory", daemon.peak_mebibytes()?, "MiB", Some(64.0));
    let browser = browsers.first_mut().context("a terminal")?;
    let before = daemon.processor_seconds()?;
    browser.enter("much\n");
    browser.enter("end\n");
    // The input is echoed before the output.
    let output = browser.until("done\r\n").len();
    anyhow::ensure!(output >= LINES * LINE, "{output} bytes of output");
    let spent = (daemon.processor_seconds()? - before) * 1_000.0 / (count(output) / f64::from(1 << 20));
    figures.add("500 terminals: processor time of 1 MiB of output", spent, "ms", Some(50.0));
    figures.add(
        "500 terminals: peak memory after 20 MB of output",
        daemon.peak_mebibytes()?,
        "MiB",
        Some(64.0),
    );
    Ok(())
}

/// The token of `ada`, the Tenant of all Instances of the bench, who may read them.
fn tenant(bench: &Bench) -> Result<String> {
    bench.cluster.apply(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ada, namespace: tenant-bench}
rules: [{apiGroups: [crownlabs.polito.it], resources: [instances], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ada, namespace: tenant-bench}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ada}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada}]
",
    )?;
    bench.cluster.user_token("ada", &[], 3_600)
}

/// Opens a terminal and waits for its first line.
fn open(request: &serde_json::Value) -> Browser {
    let mut browser = Browser::open(PORT, request);
    browser.until(OPEN);
    browser.enter("there\n");
    browser.until("there\r\nthere\r\n");
    browser
}
