//! Headless Chromium, and the NGINX before the lab machines: Debian's, with a configuration that is made of the Ingresses as
//! ingress-nginx makes it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use cluster::processes::Process;

use crate::images::run;
use crate::lab::{Lab, PATIENCE, wait_until};

/// The annotations that it knows. An Ingress with another one must not be served without what that one asks for.
const REWRITE: &str = "nginx.ingress.kubernetes.io/rewrite-target";
const TIMEOUTS: [&str; 2] =
    ["nginx.ingress.kubernetes.io/proxy-read-timeout", "nginx.ingress.kubernetes.io/proxy-send-timeout"];

/// Opens a URL in the browser, with an NGINX at that port. Returns the document that the browser shows, for which NGINX must
/// have answered 200.
pub fn open(lab: &Lab, own: &Path, port: u64, url: &str) -> String {
    let servers: String =
        lab.list("ingresses", "").iter().map(|ingress| servers(lab, port, ingress)).collect();
    let nginx = own.join("nginx");
    fs::create_dir(&nginx).expect("a folder");
    let (certificate, key) = (own.join("fake.crt"), own.join("fake.key"));
    // As that which ingress-nginx has where there is none.
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-subj", "/CN=Kubernetes Ingress Controller Fake Certificate"]);
    run(openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate));
    let at = nginx.display();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths = paths.map(|name| format!("{name}_temp_path {at}/{name};\n")).concat();
    // One process, which ends with the test.
    let configuration = format!(
        "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log {at}/error.log;\nevents {{}}\nhttp {{\n{paths}\
         ssl_certificate {};\nssl_certificate_key {};\n\
         log_format short '$request_uri $status $http_user_agent';\naccess_log {at}/access.log short;\n{servers}}}\n",
        certificate.display(),
        key.display(),
    );
    let file = nginx.join("nginx.conf");
    fs::write(&file, configuration).expect("written");
    let arguments = ["-c".to_owned(), file.display().to_string()];
    let mut process =
        Process::start("nginx", Path::new("nginx"), &arguments, nginx.join("log")).expect("nginx");
    wait_until(PATIENCE, || {
        process.check().map_err(|error| format!("{error:#}"))?;
        let address = u16::try_from(port).expect("a port");
        std::net::TcpStream::connect(("127.0.0.1", address)).map_err(|error| error.to_string())
    });
    // A person goes on after the warning about the certificate.
    let profile = format!("--user-data-dir={}", own.join("chromium").display());
    let page = run(Command::new(chromium())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors", "--dump-dom"])
        .args([&profile, url]));
    let log = fs::read_to_string(nginx.join("access.log")).expect("the log of nginx");
    let path = url.splitn(4, '/').nth(3).expect("a path");
    let is_answer = |line: &&str| line.starts_with(&format!("/{path} ")) && line.contains("Chrome");
    let answer = log.lines().find(is_answer).unwrap_or_else(|| panic!("no request for {url}: {log}"));
    assert!(answer.contains(" 200 "), "{answer}\n{page}");
    page
}

/// The first Chromium of this machine.
fn chromium() -> &'static str {
    let known = ["chromium-headless-shell", "chromium", "google-chrome"];
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    known.into_iter().find(is_there).unwrap_or_else(|| panic!("none of {known:?} is installed"))
}

/// What ingress-nginx makes of an Ingress.
fn servers(lab: &Lab, port: u64, ingress: &Value) -> String {
    let metadata = &ingress["metadata"];
    let annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    let ours = annotations.keys().filter(|name| name.starts_with("nginx.ingress.kubernetes.io/"));
    for name in ours.filter(|name| *name != REWRITE) {
        assert!(TIMEOUTS.contains(&name.as_str()), "{name} is not known here: {ingress:#}");
    }
    let target = annotations.get(REWRITE).and_then(Value::as_str);
    let namespace = metadata["namespace"].as_str().expect("a namespace");
    let location = |path: &Value| {
        let backend = backend(lab, namespace, &path["backend"]["service"]);
        let path = path["path"].as_str().expect("a path");
        let place = match target {
            Some(target) => format!("~* \"^{path}\" {{\nrewrite \"(?i){path}\" {target} break;"),
            None => format!("{path} {{"),
        };
        format!("location {place}\nproxy_pass http://{backend};\nproxy_set_header Host $host;\n}}\n")
    };
    let server = |rule: &Value| {
        let host = rule["host"].as_str().expect("a host");
        let paths = rule["http"]["paths"].as_array().expect("paths");
        let locations: String = paths.iter().map(location).collect();
        format!("server {{\nlisten 127.0.0.1:{port} ssl;\nserver_name {host};\n{locations}}}\n")
    };
    ingress["spec"]["rules"].as_array().expect("rules").iter().map(server).collect()
}

/// The address of a pod behind a port of a Service.
fn backend(lab: &Lab, namespace: &str, service: &Value) -> String {
    let slices = lab.list("endpointslices", namespace);
    let is_wanted = |slice: &&Value| {
        slice["metadata"]["labels"]["kubernetes.io/service-name"] == service["name"]
            && slice["endpoints"][0]["conditions"]["ready"] == true
    };
    let slice = slices.iter().find(is_wanted).unwrap_or_else(|| panic!("no pod for {service}: {slices:#?}"));
    let ports = slice["ports"].as_array().expect("ports");
    let port = ports.iter().find(|port| port["name"] == service["port"]["name"]).expect("the port");
    format!("{}:{}", slice["endpoints"][0]["addresses"][0].as_str().expect("an address"), port["port"])
}
