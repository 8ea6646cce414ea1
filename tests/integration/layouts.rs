//! Instances with one environment in both layouts, side by side: each opens where the dashboard of its generation opens it, and
//! has the name that this shows for SSH.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::Context as _;
use serde_json::Value;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, TEMPLATES, instance};
use cluster::audit::{Mark, writes};
use cluster::nginx::Nginx;
use cluster::request::send;
use cluster::sshd::LocalAddress;

const NAMESPACE: &str = "tenant-layouts";

fn daemon(lab: &Lab, layout: &str) -> Daemon {
    // Nobody logs in: there is no OAuth2 proxy here.
    let config = format!("controllers: {{instance: {{layout: {layout}, access: {{mode: none}}}}}}\n");
    Daemon::start(&Options { kubeconfig: &lab.admin(), selector: "layouts", config: &config })
}

/// The host and path at which the Ingress of an Instance is matched, and what the URL of its status is.
fn opened(lab: &Lab, ingress: &str, object: &Value) -> (String, String, String) {
    let found = lab.get("ingresses", NAMESPACE, ingress).unwrap_or_else(|| panic!("no Ingress {ingress}"));
    let rule = &found["spec"]["rules"][0];
    let path = rule["http"]["paths"][0]["path"].as_str().expect("a path").to_owned();
    let host = rule["host"].as_str().expect("a host").to_owned();
    (host, path, object["status"]["url"].as_str().expect("a URL").to_owned())
}

/// Asserts that a new Instance of every Template is where dashboards since 2025-11 look for it.
fn assert_per_environment(lab: &Lab, name: &str, template: &str, object: &Value) {
    let environment = object["status"]["environments"][0]["name"].as_str().expect("a name");
    let child = format!("{name}-{environment}");
    // `ssh … <instance>-<environment>.<namespace>`: the name of a Service.
    let service = lab.get("services", NAMESPACE, &child).unwrap_or_else(|| panic!("no Service {child}"));
    assert_eq!(service["spec"]["clusterIP"], object["status"]["ip"], "{child}");
    assert!(lab.get("services", NAMESPACE, name).is_none(), "{name}");
    if template == "cloudvm" {
        return;
    }
    let (host, path, url) = opened(lab, &child, object);
    // They open `<status.url>/<environment>/`, and browsers and proxies take `//` for `/`.
    let opens = format!("{}/{environment}/", url.trim_end_matches('/'));
    assert_eq!(object["status"]["environments"][0]["url"], opens, "{child}");
    let fixed = path.trim_end_matches("(.*)").trim_end_matches("(/|$)").trim_end_matches('/');
    assert_eq!(opens, format!("https://{host}{fixed}/"), "{child}");
}

/// Asserts that an Instance is where older dashboards look for it.
fn assert_classic(lab: &Lab, name: &str, template: &str, object: &Value) {
    let service = lab.get("services", NAMESPACE, name).unwrap_or_else(|| panic!("no Service {name}"));
    assert_eq!(service["spec"]["clusterIP"], object["status"]["ip"], "{name}");
    if template == "cloudvm" {
        return;
    }
    let suffix = if template == "standalone" { "app" } else { "gui" };
    let (host, path, url) = opened(lab, &format!("{name}-{suffix}"), object);
    assert_eq!(object["status"]["environments"][0]["url"], url.as_str(), "{name}");
    let fixed = path.trim_end_matches("(/|$)(.*)").trim_end_matches("/vnc");
    assert_eq!(url, format!("https://{host}{fixed}/"), "{name}");
}

#[test]
fn instances_keep_their_layout_and_new_ones_get_the_configured_one() {
    let lab = Lab::shared();
    lab.create_fixtures("layouts");
    let mut first = daemon(&lab, "classic");
    for template in TEMPLATES {
        lab.apply(&instance("layouts", &format!("old-{template}"), template));
    }
    for template in TEMPLATES {
        let name = format!("old-{template}");
        let object = lab.await_phase(NAMESPACE, &name, "Ready");
        assert_classic(&lab, &name, template, &object);
    }
    first.stop();
    let begin = lab.cluster.audit().mark().expect("the audit log");
    let _second = daemon(&lab, "perEnvironment");
    for template in TEMPLATES {
        lab.apply(&instance("layouts", &format!("new-{template}"), template));
    }
    for template in TEMPLATES {
        let [old, new] = ["old", "new"].map(|age| format!("{age}-{template}"));
        let object = lab.await_phase(NAMESPACE, &new, "Ready");
        assert_per_environment(&lab, &new, template, &object);
        let object = lab.await_phase(NAMESPACE, &old, "Ready");
        assert_classic(&lab, &old, template, &object);
    }
    assert_untouched(&lab, begin);
    open_all(&lab);
    lab.delete_fixtures("layouts");
}

/// A machine behind a Service, whose every answer is the name of the Service and the path of the request.
struct Machine {
    at: String,
    /// By which the network of this machine reaches the Service, until the test ends.
    _address: LocalAddress,
}

impl Machine {
    fn start(lab: &Lab, service: &Value) -> Self {
        let name = service["name"].as_str().expect("a name").to_owned();
        let found = lab.get("services", NAMESPACE, &name).unwrap_or_else(|| panic!("no Service {name}"));
        let address: IpAddr =
            found["spec"]["clusterIP"].as_str().and_then(|ip| ip.parse().ok()).expect("an address");
        let is_named = |port: &&Value| {
            port["port"] == service["port"]["number"] || port["name"] == service["port"]["name"]
        };
        let port = found["spec"]["ports"]
            .as_array()
            .and_then(|ports| ports.iter().find(is_named))
            .expect("the port");
        let port = port["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        let own = LocalAddress::add(address).expect("the address");
        let at = SocketAddr::from((address, port));
        let listener = TcpListener::bind(at).unwrap_or_else(|error| panic!("{at}: {error}"));
        thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(&name, stream)));
        Self { at: at.to_string(), _address: own }
    }
}

fn answer(name: &str, mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    // To the end of the head, so that nothing that was sent is unread at the end.
    lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
    let body = format!("{name} {path}");
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    // NGINX may have gone.
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

/// Every Instance of both layouts is opened, through an NGINX, at the URL that the dashboard of its generation opens: the answer
/// is that of its own machine.
fn open_all(lab: &Lab) {
    let ingresses = lab.list("ingresses", NAMESPACE);
    assert_eq!(ingresses.len(), 2 * (TEMPLATES.len() - 1), "one for each Instance with a page");
    let mut machines = Vec::new();
    let mut started: Vec<(String, String)> = Vec::new();
    for ingress in &ingresses {
        let service = &ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"];
        let machine = Machine::start(lab, service);
        started.push((service["name"].as_str().expect("a name").to_owned(), machine.at.clone()));
        machines.push(machine);
    }
    let folder = tempfile::TempDir::new().expect("a folder");
    // An address of its own on loopback: no other test listens there.
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, 97, high, low], 8080));
    let backend = |_: &str, service: &Value| {
        let found = started.iter().find(|(name, _)| service["name"] == name.as_str());
        found.map(|(_, at)| at.clone()).context("a machine")
    };
    let _nginx =
        Nginx::start(&folder.path().join("nginx"), address, false, &ingresses, backend).expect("nginx");
    for template in TEMPLATES.into_iter().filter(|template| *template != "cloudvm") {
        for age in ["old", "new"] {
            let name = format!("{age}-{template}");
            let object = lab.get("instances", NAMESPACE, &name).expect("the Instance");
            let environment = &object["status"]["environments"][0];
            // Dashboards before 2025-11 open the URL of the status, later ones add the name of the environment.
            let url = object["status"]["url"].as_str().expect("a URL");
            let (url, service) = if age == "old" {
                // Of a virtual machine, the page of the VNC client is that of the dashboard; it connects to the machine.
                let client = if template.starts_with("vm") { "vnc" } else { "" };
                (format!("{url}{client}"), name.clone())
            } else {
                let environment = environment["name"].as_str().expect("a name");
                (format!("{}/{environment}/", url.trim_end_matches('/')), format!("{name}-{environment}"))
            };
            let answer = send(&address.to_string(), "GET", &url.replacen("https:", "http:", 1), &[], "")
                .expect("an answer");
            assert_eq!(answer.status, 200, "{name}: {url}: {}", answer.body);
            let (from, path) = answer.body.split_once(' ').expect("the Service and the path");
            assert_eq!(from, service, "{url}");
            let uid = object["metadata"]["uid"].as_str().expect("a uid");
            // Where paths are rewritten, a machine sees those below its own URL.
            let is_whole = template.starts_with("container") || (age == "old" && template.starts_with("vm"));
            assert_eq!(path.contains(uid), is_whole, "{name}: {url}: {path}");
        }
    }
    drop(machines);
}

/// Nothing was written for the older ones.
fn assert_untouched(lab: &Lab, begin: Mark) {
    let entries = lab.cluster.audit().since(begin).expect("the audit log");
    let touched: Vec<_> = writes(&entries)
        .filter(|e| e.user_agent.starts_with("crownlabs/") && e.namespace == NAMESPACE)
        .filter(|e| e.name.starts_with("old-") && e.resource != "events")
        .collect();
    assert!(touched.is_empty(), "{touched:#?}");
}
