//! Debian's NGINX in place of ingress-nginx, with a configuration built from Ingresses as ingress-nginx builds it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::processes::Process;

/// The annotations that it knows. It must not serve an Ingress with an unknown annotation.
const REWRITE: &str = "nginx.ingress.kubernetes.io/rewrite-target";
/// Those that are a directive of NGINX, with the unit of its value. Without them, the defaults of NGINX apply, which are
/// those of ingress-nginx: a body has at most 1 MiB, and is stored before it is passed on.
const DIRECTIVES: [(&str, &str, &str); 4] = [
    ("nginx.ingress.kubernetes.io/proxy-read-timeout", "proxy_read_timeout", "s"),
    ("nginx.ingress.kubernetes.io/proxy-send-timeout", "proxy_send_timeout", "s"),
    ("nginx.ingress.kubernetes.io/proxy-body-size", "client_max_body_size", ""),
    ("nginx.ingress.kubernetes.io/proxy-request-buffering", "proxy_request_buffering", ""),
];
const AUTH: &str = "nginx.ingress.kubernetes.io/auth-url";
/// The login page: ingress-nginx redirects users to it who are not logged in. Here they get 401. For other users it
/// changes nothing.
const SIGN_IN: &str = "nginx.ingress.kubernetes.io/auth-signin";
/// The longest time until it listens.
const DEADLINE: Duration = Duration::from_mins(1);

/// A running NGINX.
pub struct Nginx {
    folder: PathBuf,
    /// The process ends with this value.
    process: Process,
}

/// A path of an Ingress.
struct Location {
    path: String,
    rewrite: Option<String>,
    /// The URL of the login check, if there is one.
    auth: Option<String>,
    /// The directives that its annotations set.
    directives: String,
    backend: String,
}

impl Nginx {
    /// Starts it in a folder that does not exist yet, with HTTPS at an address, or HTTP if not `is_tls`. `login` is the
    /// address of the OAuth2 proxy; without it, no Ingress may use one. `backend` returns the address, as `host:port`,
    /// behind a Service and its port, as an Ingress names both, in a namespace.
    ///
    /// # Errors
    /// If an Ingress has an unknown annotation, or the program does not start.
    pub fn start(
        folder: &Path,
        address: SocketAddr,
        is_tls: bool,
        login: Option<SocketAddr>,
        ingresses: &[Value],
        backend: impl Fn(&str, &Value) -> Result<String>,
    ) -> Result<Self> {
        let listen = format!("{address}{}", if is_tls { " ssl" } else { "" });
        let servers = servers(&listen, login, ingresses, backend)?;
        fs::create_dir(folder).with_context(|| format!("creating {}", folder.display()))?;
        let (certificate, key) = (folder.join("fake.crt"), folder.join("fake.key"));
        // Like the certificate that ingress-nginx uses by default.
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-subj", "/CN=Kubernetes Ingress Controller Fake Certificate"]);
        let made = openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output()?;
        ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
        let at = folder.display();
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths = paths.map(|name| format!("{name}_temp_path {at}/{name};\n")).concat();
        // One process, which ends with the test.
        let configuration = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log {at}/error.log;\n\
             events {{\nworker_connections 16384;\n}}\nhttp {{\n{paths}proxy_http_version 1.1;\nproxy_buffering off;\n\
             ssl_certificate {};\nssl_certificate_key {};\nserver_names_hash_bucket_size 128;\n\
             log_format short '$request_uri $status $http_user_agent';\naccess_log {at}/access.log short;\n{servers}}}\n",
            certificate.display(),
            key.display(),
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, configuration)?;
        let arguments = ["-c".to_owned(), file.display().to_string()];
        let mut process = Process::start("nginx", Path::new("nginx"), &arguments, folder.join("log"))?;
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            process.check()?;
            ensure!(begin.elapsed() < DEADLINE, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { folder: folder.to_path_buf(), process })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The requests so far, each with its path, the status of the response, and the user agent.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn requests(&self) -> Result<String> {
        fs::read_to_string(self.folder.join("access.log")).context("the log of nginx")
    }
}

/// The configuration for Ingresses, as in ingress-nginx: a server for each host. If one path of a host is rewritten,
/// all paths are regular expressions, the longest first.
fn servers(
    listen: &str,
    login: Option<SocketAddr>,
    ingresses: &[Value],
    backend: impl Fn(&str, &Value) -> Result<String>,
) -> Result<String> {
    let mut hosts: BTreeMap<String, Vec<Location>> = BTreeMap::new();
    for ingress in ingresses {
        let metadata = &ingress["metadata"];
        let annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
        let ours = annotations.keys().filter(|name| name.starts_with("nginx.ingress.kubernetes.io/"));
        let directives = DIRECTIVES.map(|(annotation, ..)| annotation);
        let known = [&[REWRITE, AUTH, SIGN_IN][..], &directives].concat();
        for name in ours {
            ensure!(known.contains(&name.as_str()), "{name} is not known here: {ingress:#}");
        }
        let set = DIRECTIVES.iter().filter_map(|(annotation, directive, unit)| {
            let value = annotations.get(*annotation)?.as_str()?;
            Some(format!("{directive} {value}{unit};\n"))
        });
        let directives: String = set.collect();
        let auth = annotations.get(AUTH).map(|url| {
            let path = url.as_str().and_then(|url| url.splitn(4, '/').nth(3)).context("a URL with a path")?;
            anyhow::Ok(format!("http://{}/{path}", login.context("an OAuth2 proxy")?))
        });
        let auth = auth.transpose()?;
        let rewrite = annotations.get(REWRITE).and_then(Value::as_str).map(str::to_owned);
        let namespace = metadata["namespace"].as_str().context("a namespace")?;
        for rule in ingress["spec"]["rules"].as_array().into_iter().flatten() {
            let host = rule["host"].as_str().context("a host")?;
            for path in rule["http"]["paths"].as_array().into_iter().flatten() {
                hosts.entry(host.to_owned()).or_default().push(Location {
                    path: path["path"].as_str().context("a path")?.to_owned(),
                    rewrite: rewrite.clone(),
                    auth: auth.clone(),
                    directives: directives.clone(),
                    backend: backend(namespace, &path["backend"]["service"])?,
                });
            }
        }
    }
    if hosts.is_empty() {
        bail!("there is no Ingress");
    }
    let backends: BTreeSet<&String> = hosts.values().flatten().map(|location| &location.backend).collect();
    let upstreams = backends
        .into_iter()
        .map(|backend| format!("upstream \"{backend}\" {{\nserver {backend};\nkeepalive 320;\n}}\n"));
    let upstreams: String = upstreams.collect();
    let servers = hosts.into_iter().map(|(host, mut locations)| {
        let is_regex = locations.iter().any(|location| location.rewrite.is_some());
        locations.sort_by_key(|location| std::cmp::Reverse(location.path.len()));
        let numbered = locations.iter().enumerate();
        let locations: String = numbered.map(|(index, found)| location(index, found, is_regex)).collect();
        format!("server {{\nlisten {listen};\nserver_name {host};\n{locations}}}\n")
    });
    Ok(upstreams + &servers.collect::<String>())
}

fn location(index: usize, location: &Location, is_regex: bool) -> String {
    let Location { path, rewrite, auth, directives, backend } = location;
    let place = if is_regex { format!("~* \"^{path}\"") } else { path.clone() };
    let rewrite = rewrite.as_ref().map(|target| format!("rewrite \"(?i){path}\" {target} break;\n"));
    let rewrite = rewrite.unwrap_or_default();
    let (asks, asked) = auth.as_ref().map_or_else(Default::default, |url| {
        let asked = format!(
            "location = /_auth-{index} {{\ninternal;\n{directives}proxy_pass_request_body off;\n\
            proxy_set_header Content-Length \"\";\nproxy_pass {url};\n}}\n"
        );
        (format!("auth_request /_auth-{index};\n"), asked)
    });
    format!(
        "{asked}location {place} {{\n{asks}{directives}{rewrite}proxy_pass http://{backend};\nproxy_set_header Host $host;\n\
        proxy_set_header Connection \"\";\n}}\n"
    )
}
