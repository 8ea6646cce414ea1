//! NGINX with a certificate, in front of HTTP servers: Keycloak, and the replicas of the dashboard in turn.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::processes::Process;

/// A running NGINX.
pub struct Front {
    process: Process,
}

/// A server at a port.
pub struct Served {
    /// The port.
    pub port: u16,
    /// The names of its host.
    pub names: &'static str,
    /// The ports behind it, which take turns.
    pub behind: Vec<u16>,
    /// Whether the headers of responses may exceed the 4 KB that NGINX accepts by default, as Keycloak requires.
    pub has_long_headers: bool,
    /// More lines of its configuration.
    pub more: String,
}

/// A self-signed certificate for the names of this machine, and its key.
pub fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let names = ["127.0.0.1", "localhost", "labs.localhost", "machines.localhost", "evil.labs.localhost"];
    let made = rcgen::generate_simple_self_signed(names.map(str::to_owned)).expect("a certificate");
    let (certificate, key) = (folder.join("front.crt"), folder.join("front.key"));
    fs::write(&certificate, made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    (certificate, key)
}

impl Front {
    /// Starts these servers, with the certificate in this folder.
    pub fn start(folder: &Path, name: &str, served: &[Served]) -> Self {
        Self::start_with(folder, name, served, "")
    }

    /// The same with more servers, in the syntax of NGINX.
    pub fn start_with(folder: &Path, name: &str, served: &[Served], more: &str) -> Self {
        let own = folder.join(name);
        fs::create_dir(&own).expect("a folder");
        let at = own.display();
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths = paths.map(|name| format!("{name}_temp_path {at}/{name};\n")).concat();
        let servers: String = served.iter().map(server).chain([more.to_owned()]).collect();
        let configuration = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log {at}/error.log;\nevents {{worker_connections 4096;}}\nhttp {{\n\
             {paths}access_log off;\nmap $http_upgrade $front_connection {{\ndefault upgrade;\n\"\" \"\";\n}}\nssl_certificate {folder}/front.crt;\nssl_certificate_key {folder}/front.key;\n{servers}}}\n",
            folder = folder.display(),
        );
        let file = own.join("nginx.conf");
        fs::write(&file, configuration).expect("written");
        let arguments = ["-c".to_owned(), file.display().to_string()];
        let mut process =
            Process::start("nginx", Path::new("nginx"), &arguments, own.join("log")).expect("nginx");
        let begin = Instant::now();
        while served.iter().any(|at| TcpStream::connect(("127.0.0.1", at.port)).is_err()) {
            process.check().expect("nginx runs");
            assert!(begin.elapsed() < Duration::from_mins(1), "nginx does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Self { process }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

fn server(Served { port, names, behind, has_long_headers, more }: &Served) -> String {
    let long = "proxy_buffer_size 64k;\nproxy_buffers 8 64k;\nproxy_busy_buffers_size 128k;\n";
    let buffers = if *has_long_headers { long } else { "" };
    let ports = behind.iter().map(|port| format!("server 127.0.0.1:{port} max_fails=0;\n"));
    let ports = ports.collect::<Vec<_>>().concat();
    format!(
        "upstream at{port} {{\n{ports}}}\nserver {{\nlisten 127.0.0.1:{port} ssl;\nserver_name {names};\n{buffers}{more}location / {{\n\
         proxy_pass http://at{port};\nproxy_http_version 1.1;\nproxy_set_header Host $http_host;\n\
         proxy_set_header X-Forwarded-Proto https;\nproxy_set_header X-Forwarded-Host $http_host;\n\
         proxy_set_header Upgrade $http_upgrade;\nproxy_set_header Connection $front_connection;\nproxy_read_timeout 300s;\nproxy_next_upstream error;\n}}\n}}\n"
    )
}
