//! The loop with the chart: the configuration rendered from its default values and the values of a site, and a real
//! Prometheus. Prometheus scrapes the daemon like the Prometheus operator with the chart's monitors, and NGINX like the
//! operator with ingress-nginx's monitor.

use std::path::Path;
use std::sync::Arc;

use crownlabs::testing::clock;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{IDLE, allow_idle};
use crate::course::Course;
use crate::daemon::{Daemon, reserved_port};
use crate::expiration::mails;
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::exporter::{Counter, Exporter};
use cluster::network::{Sender, syn};
use cluster::prometheus::{PrometheusServer, Target};
use cluster::sshd::key_pair;

/// The namespace and the name of the release, and the name and the namespace of the bastion.
const NAMESPACE: &str = "crownlabs-system";
const RELEASE: &str = "crownlabs";
const BASTION: &str = "crownlabs-bastion";

/// The values of a site, with short times, and without webhooks, which nothing calls here.
const VALUES: &str = "
config:
  controllers:
    inactivity: {enabled: true, notificationInterval: 4s, checkInterval: 2s}
  integrations:
    prometheus: {url: 'http://prometheus-operated.monitoring:9090', queryStep: 1s, timeout: 30s}
    mail: {transport: file, folder: /mails, from: labs@example.org}
  server: {webhook: {enabled: false}}
podMonitor: {enabled: true}
";

/// The rendered chart.
struct Chart {
    objects: Vec<Value>,
}

impl Chart {
    /// The chart with these values in addition to [`VALUES`].
    fn render(more: &str) -> Self {
        let text = cluster::helm::template(RELEASE, NAMESPACE, &format!("{VALUES}{more}"));
        Self { objects: serde_saphyr::from_multiple(&text).expect("YAML") }
    }

    fn object(&self, kind: &str, name: &str) -> &Value {
        let is_meant = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.objects.iter().find(is_meant).unwrap_or_else(|| panic!("the chart has the {kind} {name}"))
    }

    /// Starts the daemon of a Deployment with its configuration, with addresses, files and selector of this test.
    fn start(&self, name: &str, kubeconfig: &Path, here: &Value) -> Daemon {
        let text = self.object("ConfigMap", name)["data"]["crownlabs.yaml"].as_str().expect("a file");
        let mut config: Value = serde_saphyr::from_str(text).expect("YAML");
        json_patch::merge(
            &mut config,
            &json!({"leaderElection": {"enabled": false}, "log": {"format": "text"}}),
        );
        json_patch::merge(&mut config, here);
        let binary = env!("CARGO_BIN_EXE_crownlabs");
        let daemon = Daemon::launch(&[binary], &config.to_string(), kubeconfig, "127.0.0.1".to_owned());
        daemon.await_ready();
        daemon
    }

    /// The target that the Prometheus operator creates from the `PodMonitor` of a Deployment whose pod serves metrics
    /// on this loopback port.
    fn target(&self, name: &str, port: u16) -> Target {
        let monitor = self.object("PodMonitor", name);
        let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
        let deployment = self.object("Deployment", name);
        let template = &deployment["spec"]["template"];
        let selected = monitor["spec"]["selector"]["matchLabels"].as_object().expect("labels");
        let labels = &template["metadata"]["labels"];
        assert!(selected.iter().all(|(label, value)| labels[label] == *value), "{selected:?} of {labels}");
        let namespace = monitor["metadata"]["namespace"].as_str().expect("a namespace");
        assert_eq!(deployment["metadata"]["namespace"], namespace);
        let serves = |container: &&Value| {
            let ports = container["ports"].as_array().into_iter().flatten();
            ports.map(|port| &port["name"]).any(|port| *port == endpoint["port"])
        };
        let mut containers = template["spec"]["containers"].as_array().into_iter().flatten();
        let container = containers.find(serves).expect("a container with the port of the monitor");
        let labels = [
            ("namespace", namespace.to_owned()),
            ("pod", format!("{name}-0")),
            ("container", container["name"].as_str().expect("a name").to_owned()),
            ("endpoint", "metrics".to_owned()),
        ];
        Target {
            job: format!("{namespace}/{name}"),
            address: format!("127.0.0.1:{port}"),
            path: "/metrics",
            labels: labels.into(),
        }
    }
}

/// Two Instances of the fixtures `name`, and an NGINX as ingress-nginx installs it.
struct Site {
    _course: Course,
    lab: Arc<Lab>,
    name: &'static str,
    namespace: String,
    exporter: Exporter,
    /// The mails, and files of the daemons.
    folder: TempDir,
    /// The port of the daemon's metrics.
    port: u16,
}

impl Site {
    fn create(name: &'static str, instances: [&str; 2]) -> Self {
        let lab = Lab::shared();
        let course = lab.course(name);
        for one in instances {
            lab.apply(&instance(name, one, "container-persistent"));
        }
        Self {
            _course: course,
            lab,
            name,
            namespace: format!("tenant-{name}"),
            exporter: Exporter::start().expect("an exporter"),
            folder: TempDir::new().expect("a folder"),
            port: reserved_port(),
        }
    }

    /// The members of the configuration that select the daemon's Instances.
    fn selector(&self) -> Value {
        json!({"crownlabs.polito.it/operator-selector": self.name})
    }

    /// A Prometheus that scrapes NGINX, the daemon and more.
    fn scrape(&self, chart: &Chart, more: Option<Target>) -> PrometheusServer {
        let targets = [self.exporter.ingress_nginx("ingress-nginx"), chart.target(RELEASE, self.port)];
        let targets: Vec<Target> = targets.into_iter().chain(more).collect();
        PrometheusServer::scraping_all(&targets).expect("a Prometheus")
    }

    /// Starts the daemon of the release.
    fn start(&self, chart: &Chart, prometheus: &PrometheusServer) -> Daemon {
        let here = json!({
            "selector": self.selector(),
            "server": {
                "health": "127.0.0.1:0",
                "metrics": format!("127.0.0.1:{}", self.port),
                "keycloakEvents": {"listen": ""},
            },
            "integrations": {
                "prometheus": {"url": prometheus.url()},
                "mail": {"folder": self.folder.path()},
            },
        });
        chart.start(RELEASE, &self.lab.service_account(), &here)
    }

    /// From now on, the Instances are checked for inactivity.
    fn allow_idle(&self) {
        allow_idle(&self.lab, self.name, "container-persistent", &format!("{}s", IDLE.as_secs()));
    }

    /// The mails about an Instance, in their order.
    fn mails(&self, name: &str) -> Vec<(jiff::Timestamp, String)> {
        mails(self.folder.path()).into_iter().filter(|(_, mail)| mail.contains(name)).collect()
    }

    fn get(&self, name: &str) -> Value {
        self.lab.get("instances", &self.namespace, name).expect("it stays")
    }
}

/// Waits until a query has at least this value.
fn await_value(prometheus: &PrometheusServer, query: &str, least: f64, daemon: &Daemon) {
    wait_until(PATIENCE, || match prometheus.value(query) {
        Ok(Some(value)) if value >= least => Ok(()),
        other => Err(format!("{query}, is {other:?}\n{}", daemon.log())),
    });
}

#[test]
fn with_the_default_values_an_unused_machine_is_warned_and_stopped_and_a_used_one_stays() {
    let site = Site::create("installed", ["unused", "browsed"]);
    let chart = Chart::render("");
    let prometheus = site.scrape(&chart, None);
    let daemon = site.start(&chart, &prometheus);
    // The Service through which NGINX reaches the machine.
    let service = wait_until(PATIENCE, || {
        let services = site.lab.list("services", &site.namespace);
        let names = services.iter().filter_map(|service| service["metadata"]["name"].as_str());
        let found = names.map(str::to_owned).find(|name| name.starts_with("browsed"));
        found.ok_or_else(|| format!("a Service: {}", daemon.log()))
    });
    site.exporter.begin(&Counter::requests(&site.namespace, &service));
    let requests = format!(
        r#"nginx_ingress_controller_requests{{exported_namespace="{}", exported_service="{service}"}}"#,
        site.namespace
    );
    await_value(&prometheus, &requests, 2.0, &daemon);
    site.allow_idle();
    wait_until(PATIENCE, || {
        let object = site.get("unused");
        let stop = || format!("the stop: {}\n{}", object["status"], daemon.log());
        if object["spec"]["running"] == false { Ok(()) } else { Err(stop()) }
    });
    let sent = site.mails("unused");
    assert_eq!(sent.len(), 4, "three warnings, as by default, and the last mail: {sent:?}");
    for (number, (_, mail)) in (1..=3).zip(&sent) {
        let mail = mail.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(mail.contains(&format!("This is warning {number} of 3.")), "{mail}");
    }
    for reason in ["InactivityWarning: ", "InactivityStopped: "] {
        site.lab.await_event(&site.namespace, "unused", reason);
    }
    assert_eq!(
        (site.get("browsed")["spec"]["running"].clone(), site.mails("browsed")),
        (true.into(), vec![])
    );
    // With the labels in the queries of the chart's alerts and dashboard.
    let used = format!(
        r#"automation_instances{{namespace="{NAMESPACE}", container="crownlabs", controller="inactivity", witness="ingress"}}"#
    );
    await_value(&prometheus, &used, 1.0, &daemon);
}

/// Starts the daemon of the bastion, whose metrics are served at this port.
fn start_bastion(site: &Site, chart: &Chart, port: u16) -> Daemon {
    site.lab.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {BASTION}}}}}"));
    let file = |name: &str| site.folder.path().join(name);
    std::fs::create_dir(file("host-keys")).expect("a folder");
    let here = json!({
        "selector": site.selector(),
        "server": {
            "health": "127.0.0.1:0",
            "metrics": format!("127.0.0.1:{port}"),
            "keycloakEvents": {"listen": ""},
        },
        "controllers": {
            "bastion": {"authorizedKeysFile": file("keys"), "hostKeys": {"folder": file("host-keys")}},
            "webSsh": {"privateKeyFile": key_pair(&file("web-key")).expect("a key"), "listen": "127.0.0.1:0"},
        },
    });
    chart.start(BASTION, &site.lab.admin(), &here)
}

#[test]
fn with_the_bastion_of_the_chart_a_machine_used_over_ssh_is_warned_about_later() {
    let site = Site::create("installed-bastion", ["unused", "tunnelled"]);
    let chart = Chart::render("bastion: {enabled: true}\n");
    let port = reserved_port();
    let prometheus = site.scrape(&chart, Some(chart.target(BASTION, port)));
    let daemon = site.start(&chart, &prometheus);
    let bastion = start_bastion(&site, &chart, port);
    let object = site.lab.await_phase(&site.namespace, "tunnelled", "Ready");
    let address = object["status"]["environments"][0]["ip"].as_str().expect("an address").to_owned();
    let connections = format!(
        r#"bastion_ssh_connections{{namespace="{BASTION}", container="crownlabs", destination_ip="{address}"}}"#
    );
    await_value(&prometheus, &connections, 0.0, &bastion);
    let last = clock::now();
    // Nothing has this address here; the packet is sent as if something had.
    Sender::new("lo").send(&syn(&address, 22, 1));
    await_value(&prometheus, &connections, 1.0, &bastion);
    site.allow_idle();
    for name in ["unused", "tunnelled"] {
        wait_until(PATIENCE, || match site.mails(name).len() {
            0 => Err(format!("a mail about {name}: {}\n{}", site.get(name)["status"], daemon.log())),
            _ => Ok(()),
        });
    }
    let accepted = site.mails("tunnelled")[0].0;
    assert!(accepted >= last + IDLE, "a warning at {accepted}, was used at {last}");
    site.lab.await_value("instances", &site.namespace, "tunnelled", "/status/inactivity/witness", "ssh");
}
