//! The login of machines: two replicas, and the server of machines' hosts as ingress-nginx configures it for their
//! Ingresses.

use std::fs;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::daemon::{Daemon, config, reserved_port};
use crate::lab::Lab;
use crate::site::{KEY, SELECTOR};

/// The account of the login.
const ACCOUNT: &str = "crownlabs-login";
/// The key of the host names, which the tests know, too.
const HOST_KEY: &str = "0123456789abcdef0123456789abcdef";

/// The servers of machines' hosts. `@…@` are the ports and the URL of the dashboard. As in the Ingresses, the label in the
/// authentication URL is that of the server, whatever the header `Host` says.
///
/// ingress-nginx encodes the URI in the redirect, by a module that Debian's NGINX lacks; the tests use URIs without
/// characters that need it. Behind each host is the same machine, which shows the cookies that it gets.
///
/// The chart leads the hosts that no machine has to the relay of peers. Here, a file for each such host does.
const SERVERS: &str = r#"
upstream logins {
server 127.0.0.1:@FIRST@ max_fails=0;
server 127.0.0.1:@SECOND@ max_fails=0;
}
upstream relays {
server 127.0.0.1:@RELAY@ max_fails=0;
server 127.0.0.1:@OTHER_RELAY@ max_fails=0;
}
server {
listen 127.0.0.1:@LABS@ ssl;
server_name ~^(?<label>[^.]+)\.machines\.localhost$;
error_page 418 = @peers;
if (-f @HOSTS@/$label) {
return 418;
}
location @peers {
internal;
proxy_http_version 1.1;
proxy_set_header Host $http_host;
proxy_set_header Upgrade $http_upgrade;
proxy_set_header Connection $front_connection;
proxy_read_timeout 300s;
proxy_pass http://relays;
}
location = /_auth {
internal;
proxy_pass_request_body off;
proxy_set_header Content-Length "";
proxy_set_header X-Original-URL $scheme://$http_host$request_uri;
proxy_set_header X-Original-Method $request_method;
proxy_next_upstream error;
proxy_pass http://logins/auth/$label;
}
location @sign_in {
internal;
add_header Set-Cookie $auth_cookie;
return 302 @URL@/login/machine?rd=$scheme://$http_host$request_uri;
}
location / {
auth_request /_auth;
auth_request_set $auth_cookie $upstream_http_set_cookie;
add_header Set-Cookie $auth_cookie;
error_page 401 = @sign_in;
proxy_set_header Host $http_host;
proxy_pass http://127.0.0.1:@MACHINE@;
}
}
server {
listen 127.0.0.1:@MACHINE@;
default_type text/html;
location / {
return 200 "<!doctype html><title>machine</title><h1>$host</h1><pre>$http_cookie</pre>";
}
}
"#;

/// The replicas of the login.
pub struct Logins {
    replicas: Mutex<Vec<Daemon>>,
    ports: [u16; 2],
    /// The ports of the relay of peers.
    relays: [u16; 2],
    /// The folder with a file for each host of a peer.
    hosts: PathBuf,
    /// The port of the machine.
    machine: u16,
    kubeconfig: PathBuf,
    configurations: [String; 2],
}

impl Logins {
    /// Starts them for the dashboard at this URL.
    pub fn start(lab: &Lab, folder: &Path, url: &str) -> Self {
        let [session, hosts] = ["login-session", "login-hosts"].map(|name| folder.join(name));
        fs::write(&session, KEY).expect("written");
        fs::write(&hosts, HOST_KEY).expect("written");
        let [ports, relays] = [(); 2].map(|()| [reserved_port(), reserved_port()]);
        let off = ["workspace", "tenant", "template", "publicExposure", "sharedVolume", "snapshot"];
        let off = off.map(|name| format!("{name}: {{enabled: false}}, ")).concat();
        let hosts_of_peers = folder.join("hosts-of-peers");
        fs::create_dir(&hosts_of_peers).expect("a folder");
        let configurations = [0, 1].map(|number| {
            let [port, relay] = [ports[number], relays[number]];
            let more = format!(
                "controllers: {{{off}instance: {{enabled: false, websiteBaseUrl: machines.localhost, layout: perEnvironment, \
                 access: {{daemon: {{signInUrl: \"{url}/login/machine\"}}}}}}, login: {{enabled: true, listen: \"127.0.0.1:{port}\", \
                 peersListen: \"127.0.0.1:{relay}\", sessionKeyFile: \"{}\", hostKeyFile: \"{}\"}}}}\n",
                session.display(),
                hosts.display(),
            );
            config(SELECTOR, &more)
        });
        let kubeconfig =
            lab.cluster.service_account_kubeconfig("crownlabs-system", ACCOUNT).expect("a token");
        let machine = reserved_port();
        let logins = Self {
            replicas: Mutex::default(),
            ports,
            relays,
            hosts: hosts_of_peers,
            machine,
            kubeconfig,
            configurations,
        };
        *logins.replicas.lock() = (0..2).map(|number| logins.replica(number)).collect();
        logins.replicas.lock().iter().for_each(Daemon::await_ready);
        logins
    }

    fn replica(&self, number: usize) -> Daemon {
        let command = [env!("CARGO_BIN_EXE_crownlabs")];
        let (config, host) = (&self.configurations[number], "127.0.0.1".to_owned());
        Daemon::launch(&command, config, &self.kubeconfig, host)
    }

    /// Returns the servers of machines' hosts, for an NGINX that serves the dashboard at this URL and port.
    pub fn servers(&self, url: &str, labs: u16) -> String {
        let ([first, second], [relay, other]) = (self.ports, self.relays);
        let text = SERVERS.replace("@URL@", url).replace("@HOSTS@", &self.hosts.display().to_string());
        let ports = [("@FIRST@", first), ("@SECOND@", second), ("@RELAY@", relay), ("@OTHER_RELAY@", other)];
        let ports = ports.into_iter().chain([("@LABS@", labs), ("@MACHINE@", self.machine)]);
        ports.fold(text, |text, (name, port)| text.replace(name, &port.to_string()))
    }

    /// Leads the host with this label to the relay of peers.
    pub fn lead_to_relay(&self, label: &str) {
        fs::write(self.hosts.join(label), "").expect("written");
    }

    /// Kills both replicas, and starts them again.
    pub fn restart(&self) {
        let mut replicas = self.replicas.lock();
        for (number, replica) in replicas.iter_mut().enumerate() {
            replica.stop();
            *replica = self.replica(number);
        }
        replicas.iter().for_each(Daemon::await_ready);
    }

    /// Returns their logs.
    pub fn log(&self) -> String {
        self.replicas.lock().iter().map(Daemon::log).collect::<Vec<_>>().join("\n")
    }
}
