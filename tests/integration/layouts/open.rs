//! Opens Instances as dashboards do: their pages through an NGINX, and their SSH names through the Services of the API.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use anyhow::Context as _;
use serde_json::Value;

use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::nginx::Nginx;
use cluster::request::send;

/// The port of the next NGINX of this process.
static PORT: AtomicU16 = AtomicU16::new(8080);

/// The dashboard that shows an Instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dashboard {
    /// Before 2025-11: it opens the URL of the status, and shows `<instance>.<namespace>` for SSH.
    Classic,
    /// Since then: it opens `<URL of the status>/<environment>/`; since 2026-07 it shows `<instance>-<environment>.<namespace>`.
    PerEnvironment,
}

/// The links and names that a dashboard shows for an environment.
#[derive(Debug)]
pub struct Shown {
    namespace: String,
    /// The labels of its pods; other pods do not have all of them.
    labels: BTreeMap<&'static str, String>,
    /// The name for SSH, without the namespace: the name of a Service.
    service: String,
    /// The address in the status.
    ip: Value,
    page: Option<Page>,
}

#[derive(Debug)]
struct Page {
    url: String,
    /// The path of the Instance.
    base: String,
    /// Whether the machine sees the whole path, and not only the part below its own URL.
    is_whole: bool,
}

/// The environments that the dashboard shows for an Instance: each environment of its Template, or the first one.
pub fn shown(lab: &Lab, instance: &Value, dashboard: Dashboard) -> Vec<Shown> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (metadata, status) = (&instance["metadata"], &instance["status"]);
    let reference = &instance["spec"]["template.crownlabs.polito.it/TemplateRef"];
    let (namespace, name) = (text(&reference["namespace"]), text(&reference["name"]));
    let template = lab.get("templates", &namespace, &name).expect("the Template");
    let environments = template["spec"]["environmentList"].as_array().expect("environments").iter();
    let is_classic = dashboard == Dashboard::Classic;
    let show = |(index, environment): (usize, &Value)| {
        let (name, own) = (text(&metadata["name"]), text(&environment["name"]));
        let mut labels = BTreeMap::from([("crownlabs.polito.it/instance", name.clone())]);
        if !is_classic {
            labels.insert("crownlabs.polito.it/environment", own.clone());
        }
        Shown {
            namespace: text(&metadata["namespace"]),
            labels,
            service: if is_classic { name } else { format!("{name}-{own}") },
            ip: if is_classic { &status["ip"] } else { &status["environments"][index]["ip"] }.clone(),
            page: (environment["guiEnabled"] != false).then(|| page(instance, environment, dashboard)),
        }
    };
    environments.enumerate().take(if is_classic { 1 } else { usize::MAX }).map(show).collect()
}

fn page(instance: &Value, environment: &Value, dashboard: Dashboard) -> Page {
    let type_ = environment["environmentType"].as_str().expect("a type");
    let is_machine = type_.ends_with("VM") || type_ == "VirtualMachine";
    let rewrites = environment["rewriteURL"] == true;
    let url = instance["status"]["url"].as_str().expect("a URL");
    let (url, is_whole) = match dashboard {
        // For a virtual machine, the dashboard itself has the page of the VNC client, which connects to the machine.
        Dashboard::Classic if is_machine => (format!("{url}vnc"), true),
        Dashboard::Classic => (url.to_owned(), type_ == "Container" || !rewrites),
        // Browsers and proxies take `//` for `/`.
        Dashboard::PerEnvironment => {
            let environment = environment["name"].as_str().expect("a name");
            (format!("{}/{environment}/", url.trim_end_matches('/')), !is_machine && !rewrites)
        }
    };
    let base = format!("/instance/{}/", instance["metadata"]["uid"].as_str().expect("a uid"));
    Page { url, base, is_whole }
}

/// Starts a server that answers every request with its name and the path of the request.
fn serve(name: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("its address");
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(&name, stream)));
    at
}

fn answer(name: &str, mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    // Up to the end of the head, so that no data is unread at the end.
    lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
    let body = format!("{name} {path}");
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    // NGINX may have closed the connection.
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

/// Asserts that a dashboard reaches everything that it shows, and that it shows everything with an Ingress in these
/// namespaces. Each page is answered by its own machine, through one NGINX for all of them, and each SSH name leads to
/// the pods of its environment.
pub fn open_all(lab: &Lab, namespaces: &[&str], all: &[Shown]) {
    for shown in all {
        assert_name(lab, shown);
    }
    let ingresses: Vec<Value> =
        namespaces.iter().flat_map(|namespace| lab.list("ingresses", namespace)).collect();
    let pages = || all.iter().filter_map(|shown| Some((shown, shown.page.as_ref()?)));
    assert_eq!(ingresses.len(), pages().count(), "one for each page");
    let folder = tempfile::TempDir::new().expect("a folder");
    // A separate loopback address: no other test listens there.
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, 97, high, low], PORT.fetch_add(1, Ordering::Relaxed)));
    // A machine behind each port that an Ingress names, if its Service has that port.
    let backend = |namespace: &str, backend: &Value| {
        let name = backend["name"].as_str().context("a name")?;
        let service = lab.get("services", namespace, name).context("a Service")?;
        let is_named = |port: &Value| port["name"] == backend["port"]["name"];
        let ports = service["spec"]["ports"].as_array().context("ports")?;
        ports.iter().any(is_named).then(|| serve(format!("{namespace}/{name}")).to_string()).context("a port")
    };
    // Every client is logged in.
    let login = serve("login".to_owned());
    let nginx = folder.path().join("nginx");
    let _nginx = Nginx::start(&nginx, address, false, Some(login), &ingresses, backend).expect("nginx");
    for (shown, Page { url, base, is_whole }) in pages() {
        let plain = url.replacen("https:", "http:", 1);
        let answer = send(&address.to_string(), "GET", &plain, &[], "").expect("an answer");
        assert_eq!(answer.status, 200, "{shown:?}: {}", answer.body);
        let (from, path) = answer.body.split_once(' ').expect("the Service and the path");
        assert_eq!(from, format!("{}/{}", shown.namespace, shown.service), "{url}");
        assert_eq!(path.starts_with(base), *is_whole, "{shown:?}: {path}");
    }
}

/// Asserts that `<service>.<namespace>`, the target of `ssh`, is the name of a Service with the pods of this
/// environment.
fn assert_name(lab: &Lab, shown: &Shown) {
    let Shown { namespace, service, labels, ip, .. } = shown;
    let found = lab.get("services", namespace, service).unwrap_or_else(|| panic!("no Service: {shown:?}"));
    match found["spec"]["clusterIP"].as_str() {
        Some("None") => assert!(ip.is_null(), "{shown:?}"),
        address => assert_eq!(address, ip.as_str(), "{shown:?}"),
    }
    wait_until(PATIENCE, || {
        let has = |object: &Value, label: &str, value: &str| object["metadata"]["labels"][label] == value;
        let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_own = |pod: &&Value| labels.iter().all(|(label, value)| has(pod, label, value));
        let pods = lab.list("pods", namespace);
        let own: BTreeSet<String> =
            pods.iter().filter(is_own).map(|pod| name(&pod["metadata"]["name"])).collect();
        let slices = lab.list("endpointslices.discovery.k8s.io", namespace);
        let of_service = slices.iter().filter(|slice| has(slice, "kubernetes.io/service-name", service));
        let endpoints = of_service.filter_map(|slice| slice["endpoints"].as_array()).flatten();
        let led: BTreeSet<String> = endpoints.map(|found| name(&found["targetRef"]["name"])).collect();
        (led == own && !own.is_empty())
            .then_some(())
            .ok_or_else(|| format!("{shown:?}: {led:?}, not {own:?}"))
    });
}
