//! Instances that are unused or too old: `AUTOMATION=1`. A real Prometheus scrapes the traffic of one of them, and
//! mails go into a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::parts::is_wanted;
use crate::{NAMESPACE, PATIENCE, interrupted_already, run};
use cluster::Cluster;
use cluster::exporter::{Counter, Exporter};
use cluster::prometheus::PrometheusServer;

/// The Instance with traffic.
const USED: &str = "used-1";
/// The Instance with a disk, which is stopped.
const UNUSED: &str = "unused-1";
/// The Instance without a disk, which is deleted.
const UNUSED_WEB: &str = "unused-web-1";
/// The Instance that is too old, which is deleted.
const OLD: &str = "old-1";

/// The servers and the folder that the loops need.
pub struct Automation {
    prometheus: PrometheusServer,
    exporter: Exporter,
    mails: PathBuf,
}

impl Automation {
    /// Starts a Prometheus, and an exporter that it scrapes every second, if the variable `AUTOMATION` is set.
    pub fn start(folder: &Path) -> Result<Option<Self>> {
        if !is_wanted("AUTOMATION") {
            return Ok(None);
        }
        println!("starting Prometheus …");
        let exporter = Exporter::start()?;
        let prometheus = PrometheusServer::scraping_all(&exporter.targets())?;
        Ok(Some(Self { prometheus, exporter, mails: folder.join("mails") }))
    }

    /// The keys below `controllers`, with short times.
    pub fn controllers() -> String {
        "  inactivity: {enabled: true, maxNumberOfAlerts: 2, notificationInterval: 8s, checkInterval: 2s}\n  \
         expiration: {enabled: true, notificationInterval: 10s}\n"
            .to_owned()
    }

    /// The keys below `integrations`.
    pub fn integrations(&self) -> String {
        format!(
            "  prometheus: {{url: \"{}\", queryStep: 1s}}\n  mail: {{transport: file, folder: \"{}\", \
             from: CrownLabs <labs@example.org>, timeZone: Europe/Rome}}\n",
            self.prometheus.url(),
            self.mails.display()
        )
    }

    /// Applies the Instances, waits until each has ended, and prints the mails.
    pub fn show(&self, cluster: &Cluster) -> Result<()> {
        // The quota of the Tenant has room for eight Instances.
        run(cluster, &["delete", "instance", "-n", NAMESPACE, "desktop-1", "golden-image-1"])?;
        println!(
            "\n{USED} has traffic, {UNUSED} and {UNUSED_WEB} have none, {OLD} will soon be too old; {UNUSED_WEB} has no disk, so it is \
             deleted when it is stopped\n"
        );
        cluster.apply(&objects())?;
        // The traffic lasts until the demo ends.
        self.exporter.begin(&Counter::requests(NAMESPACE, USED));
        let begin = Instant::now();
        let mut printed = 0;
        loop {
            anyhow::ensure!(!interrupted_already(), "interrupted");
            printed += self.print(printed)?;
            let get = |name: &str| cluster.get("instances.crownlabs.polito.it", NAMESPACE, name);
            let is_stopped = get(UNUSED)?.is_some_and(|object| object["spec"]["running"] == false);
            if is_stopped && get(UNUSED_WEB)?.is_none() && get(OLD)?.is_none() {
                let used = get(USED)?.is_some_and(|object| object["spec"]["running"] == true);
                anyhow::ensure!(used, "{USED} has been stopped");
                printed += self.print(printed)?;
                println!(
                    "\n{UNUSED} is stopped, {UNUSED_WEB} and {OLD} are deleted, {USED} runs, after {:.0} s, {:.0} \
                     requests to it and {printed} mails, which are in {} as long as the demo runs",
                    begin.elapsed().as_secs_f64(),
                    self.requests()?,
                    self.mails.join("new").display()
                );
                return Ok(());
            }
            anyhow::ensure!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: the ends of the Instances");
            std::thread::sleep(std::time::Duration::from_millis(250));
        }
    }

    /// The number of requests to [`USED`] in Prometheus.
    fn requests(&self) -> Result<f64> {
        let query = format!(r#"nginx_ingress_controller_requests{{exported_service="{USED}"}}"#);
        self.prometheus.value(&query)?.with_context(|| format!("Prometheus has nothing about {USED}"))
    }

    /// Prints the subject and the line with the deadline of each mail after the first `printed`. Returns the
    /// number of mails.
    fn print(&self, printed: usize) -> Result<usize> {
        let mut mails = Vec::new();
        for file in fs::read_dir(self.mails.join("new"))? {
            let file = file?;
            mails.push((file.metadata()?.modified()?, fs::read_to_string(file.path())?));
        }
        mails.sort();
        for (_, mail) in mails.iter().skip(printed) {
            let line = |begin: &str| mail.lines().find(|line| line.contains(begin)).unwrap_or_default();
            println!("  mail  {}\n        {}", line("Subject: "), line("Europe/Rome").trim());
        }
        Ok(mails.len().saturating_sub(printed))
    }
}

/// The Templates and the Instances.
fn objects() -> String {
    let template = |name: &str, kind: &str, cleanup: &str| {
        format!(
            "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {{name: {name}, namespace: workspace-netlab}}
spec:
  prettyName: {name}
  description: for the demo of the automation
  cleanup: {{{cleanup}}}
  workspace.crownlabs.polito.it/WorkspaceRef: {{name: netlab}}
  environmentList:
  - name: main
    {kind}
    image: r.example.org/web:1
    resources: {{cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}}
"
        )
    };
    let instance = |name: &str, template: &str| {
        format!(
            "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {{name: {name}, namespace: {NAMESPACE}}}
spec:
  prettyName: {name}
  template.crownlabs.polito.it/TemplateRef: {{name: {template}, namespace: workspace-netlab}}
  tenant.crownlabs.polito.it/TenantRef: {{name: ada.rossi}}
"
        )
    };
    let disk = "environmentType: Container\n    persistent: true";
    let web = "environmentType: Container\n    persistent: false";
    [
        template("idle-disk", disk, "stopAfterInactivity: 20s"),
        template("idle-web", web, "stopAfterInactivity: 20s"),
        template("short", web, "deleteAfterCreation: 15s"),
        instance(USED, "idle-disk"),
        instance(UNUSED, "idle-disk"),
        instance(UNUSED_WEB, "idle-web"),
        instance(OLD, "short"),
    ]
    .concat()
}
