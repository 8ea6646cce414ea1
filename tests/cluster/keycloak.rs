//! A real Keycloak: downloaded from Maven Central once, started on loopback with its own database, and configured
//! through its admin API. Its realms send mail to an [`SmtpSink`].

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::assets;
use super::background::Background;
use super::folders::temporary_dir;
use super::ports::Port;
use super::processes::Process;
use super::smtp::SmtpSink;

/// The version that is downloaded.
pub const VERSION: &str = "26.7.0";
/// The Maven plugin that downloads it.
const MAVEN_PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1";
/// The options of `kc.sh build`, which is run once: a start takes half as long after that.
const BUILD_OPTIONS: [&str; 2] = ["--db=dev-file", "--cache=local"];
/// The options of `bin/kc.sh` for Java, with a small heap and without the second compiler, which pays off only after
/// minutes. The script itself is not used: killing it would leave the server running.
const JAVA_OPTIONS: [&str; 16] = [
    "-Xms64m",
    "-Xmx384m",
    "-XX:MaxMetaspaceSize=256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dfile.encoding=UTF-8",
    "-Duser.language=en",
    // Its cluster would bind to an address that a test adds to the loopback interface for a moment.
    "-Djgroups.bind.address=127.0.0.1",
    "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
    "-Djava.util.concurrent.ForkJoinPool.common.threadFactory=\
     io.quarkus.bootstrap.forkjoin.QuarkusForkJoinWorkerThreadFactory",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.security=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
];

/// The client of the master realm that tests use for the admin API, and its secret.
const ADMIN_CLIENT: &str = "test-bed";
const ADMIN_SECRET: &str = "test-bed";

/// The client of the daemon, in each realm.
pub const OPERATOR: &str = "client-operator";
/// The client that holds the roles, in each realm.
pub const ROLES_CLIENT: &str = "client-api-server";

/// A running Keycloak. When it is dropped, the server ends and its data is removed.
pub struct KeycloakServer {
    process: Process,
    admin: Admin,
    mail: SmtpSink,
    port: u16,
    _home: TempDir,
    _port: Port,
}

impl KeycloakServer {
    /// Starts a server and waits until it answers. The first call on a machine downloads and builds it.
    pub fn start() -> Result<Self> {
        let cache = assets::cache_dir()?;
        let home = home_of(&distribution(&cache)?)?;
        let reserved = Port::reserve()?;
        let port = reserved.number();
        let (admin, mail) = (Admin::new(&format!("http://127.0.0.1:{port}"))?, SmtpSink::start()?);
        let process = launch(home.path(), port)?;
        let mut server = Self { process, admin, mail, port, _home: home, _port: reserved };
        server.await_answer()?;
        Ok(server)
    }

    fn await_answer(&mut self) -> Result<()> {
        let begin = Instant::now();
        while let Err(error) = self.admin.token() {
            self.process.check()?;
            if begin.elapsed() > Duration::from_mins(8) {
                return Err(self.process.failure(&format!("does not answer ({error:#})")));
            }
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Ends the server; its data stays.
    pub fn stop(&mut self) {
        self.process.terminate();
    }

    /// Starts it again with its data, and waits until it answers.
    pub fn start_again(&mut self) -> Result<()> {
        self.process.start_again()?;
        self.await_answer()
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its port of loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The mail server that receives its mails.
    pub fn mail(&self) -> &SmtpSink {
        &self.mail
    }

    /// Sends a request to the admin API as an administrator and returns the body of the response; `path` is
    /// below `/admin/realms`. Fails unless the status is a success.
    pub fn admin(&self, method: &Method, path: &str, body: &Value) -> Result<Value> {
        let (status, answer) = self.admin.ask(method, &format!("/admin/realms{path}"), body)?;
        if !status.is_success() {
            bail!("{method} {path}: {status} {answer}");
        }
        Ok(answer)
    }

    /// Creates a realm with the two clients and a mail server. The service account of the daemon's client gets the roles
    /// `rights` of the client `realm-management`.
    pub fn create_realm(&self, name: &str, secret: &str, rights: &[&str]) -> Result<()> {
        let realm = json!({
            "realm": name,
            "enabled": true,
            "sslRequired": "none",
            "defaultSignatureAlgorithm": "ES256",
            "components": {"org.keycloak.keys.KeyProvider": key_providers()},
            "smtpServer": {"host": "127.0.0.1", "port": self.mail.port().to_string(), "from": "labs@example.org"},
            "clients": [
                {"clientId": OPERATOR, "secret": secret, "serviceAccountsEnabled": true, "standardFlowEnabled": false},
                {"clientId": ROLES_CLIENT, "standardFlowEnabled": false},
            ],
            "users": [{
                "username": format!("service-account-{OPERATOR}"),
                "enabled": true,
                "serviceAccountClientId": OPERATOR,
                "clientRoles": {"realm-management": rights},
            }],
        });
        self.admin(&Method::POST, "", &realm).map(drop)
    }

    /// The object of the list at `path` whose member `key` has this value. Fails if there is no such object.
    pub fn find(&self, path: &str, key: &str, value: &str) -> Result<Value> {
        let list = self.admin(&Method::GET, path, &Value::Null)?;
        let mut all = list.as_array().into_iter().flatten();
        let found = all.find(|one| one[key] == value).cloned();
        found.with_context(|| format!("{path} has none with {key} {value}: {list}"))
    }
}

/// A client for the login of users at dashboards with these URLs, as docs/keycloak.md creates it.
pub fn login_client(name: &str, secret: &str, urls: &[String]) -> Value {
    let groups = json!({
        "name": "groups", "protocol": "openid-connect", "protocolMapper": "oidc-usermodel-client-role-mapper",
        "config": {
            "usermodel.clientRoleMapping.clientId": ROLES_CLIENT,
            "usermodel.clientRoleMapping.rolePrefix": "kubernetes:",
            "claim.name": "groups", "multivalued": "true", "jsonType.label": "String",
            "id.token.claim": "true", "access.token.claim": "false", "userinfo.token.claim": "false",
        },
    });
    let below = |path: &str| urls.iter().map(|url| format!("{url}/{path}")).collect::<Vec<_>>();
    json!({
        "clientId": name, "secret": secret, "standardFlowEnabled": true, "directAccessGrantsEnabled": false,
        "redirectUris": below("callback"),
        "attributes": {"pkce.code.challenge.method": "S256", "post.logout.redirect.uris": below("*").join("##")},
        "protocolMappers": [groups],
    })
}

/// The path of `kcadm.sh`, the administrator's program. The first call on a machine downloads the distribution.
pub fn kcadm() -> Result<PathBuf> {
    Ok(distribution(&assets::cache_dir()?)?.join("bin/kcadm.sh"))
}

/// The keys of a realm. The default RSA keys take seconds to generate.
fn key_providers() -> Value {
    let provider = |name: &str, config: Value| json!({"name": name, "providerId": format!("{name}-generated"), "config": config});
    json!([
        provider("ecdsa", json!({"priority": ["100"]})),
        provider("hmac", json!({"priority": ["100"], "algorithm": ["HS512"]})),
        provider("aes", json!({"priority": ["100"]})),
    ])
}

/// Starts the server.
fn launch(home: &Path, port: u16) -> Result<Process> {
    let mut args: Vec<String> = JAVA_OPTIONS.map(str::to_owned).into();
    args.extend([
        format!("-Dkc.home.dir={}", home.display()),
        format!("-Djboss.server.config.dir={}", home.join("conf").display()),
        "-cp".to_owned(),
        home.join("lib/quarkus-run.jar").display().to_string(),
        "io.quarkus.bootstrap.runner.QuarkusEntryPoint".to_owned(),
        "start".to_owned(),
        "--optimized".to_owned(),
        "--http-enabled=true".to_owned(),
        // Behind a proxy, its URL is the URL of the proxy.
        "--proxy-headers=xforwarded".to_owned(),
        "--http-host=127.0.0.1".to_owned(),
        format!("--http-port={port}"),
        // Tokens are valid at the address where they were requested, which may be the address of a proxy.
        "--hostname-strict=false".to_owned(),
    ]);
    let environment =
        [("KC_BOOTSTRAP_ADMIN_CLIENT_ID", ADMIN_CLIENT), ("KC_BOOTSTRAP_ADMIN_CLIENT_SECRET", ADMIN_SECRET)];
    let log = home.join("keycloak.log");
    Process::start_with("keycloak", Path::new("java"), &args, &environment, log)
}

/// The admin API as its administrator.
struct Admin {
    client: Client,
    background: Background,
}

impl Admin {
    fn new(url: &str) -> Result<Self> {
        let background = Background::start("keycloak-admin")?;
        let mut config = Config::new(url.parse()?);
        config.root_cert = Some(Vec::new());
        config.default_retry = false;
        let client = background.run(async move { Client::try_from(config) })??;
        Ok(Self { client, background })
    }

    /// A new token; a token is valid for a minute.
    fn token(&self) -> Result<String> {
        let form =
            format!("grant_type=client_credentials&client_id={ADMIN_CLIENT}&client_secret={ADMIN_SECRET}");
        let request = Request::post("/realms/master/protocol/openid-connect/token")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(form.into_bytes()))?;
        let (status, answer) = self.send(request)?;
        let token = answer["access_token"].as_str().map(str::to_owned);
        token.with_context(|| format!("no token: {status} {answer}"))
    }

    fn ask(&self, method: &Method, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token()?))
            .header(header::CONTENT_TYPE, "application/json");
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        self.send(request.body(Body::from(body))?)
    }

    fn send(&self, request: Request<Body>) -> Result<(StatusCode, Value)> {
        let client = self.client.clone();
        self.background.run(async move {
            let response = client.send(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            anyhow::Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
        })?
    }
}

/// The folder of the built distribution. If the cache does not have it, Maven downloads it with the user's settings.
fn distribution(cache: &Path) -> Result<PathBuf> {
    let inputs = format!("{VERSION} {}", BUILD_OPTIONS.join(" "));
    let folder = assets::cached(cache, "keycloak", &inputs, "2 minutes", |out| {
        let mut maven = Command::new("mvn");
        maven.args(["--batch-mode", "--no-transfer-progress"]);
        maven.arg(format!("{MAVEN_PLUGIN}:unpack"));
        maven.arg(format!("-Dartifact=org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"));
        maven.arg(format!("-DoutputDirectory={}", out.display()));
        // In a folder with a project, Maven would read the project and write files there.
        let empty = temporary_dir()?;
        maven.current_dir(empty.path());
        assets::run_logged(&mut maven, &out.join("build.log"))
            .context("Maven and Java 17 or later are needed (on Debian: maven, default-jre-headless)")?;
        let mut build = Command::new("bash");
        build.arg(out.join(format!("keycloak-{VERSION}/bin/kc.sh"))).arg("build").args(BUILD_OPTIONS);
        assets::run_logged(&mut build, &out.join("build.log"))
    })?;
    Ok(folder.join(format!("keycloak-{VERSION}")))
}

/// A home folder for one server, with links to the shared distribution: the server writes only below `data`.
fn home_of(distribution: &Path) -> Result<TempDir> {
    let home = temporary_dir()?;
    for shared in ["lib", "conf", "providers"] {
        symlink(distribution.join(shared), home.path().join(shared))?;
    }
    Ok(home)
}
