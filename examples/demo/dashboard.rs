//! The dashboard, and a Keycloak for the login of its users, both with HTTPS: `DASHBOARD=1`.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use crate::machines;
use crate::parts::is_wanted;
use crate::people::{REALM, log_in, users, wait};
use crate::{NAMESPACE, STOPPED, run};
use cluster::config::webhooks;
use cluster::front::{Front, Served, certificate};
use cluster::keycloak::{KeycloakServer, login_client};
use cluster::{Cluster, TrustedIssuer};

/// The address in browsers, which resolve every name below `localhost` to this machine.
const URL: &str = "https://labs.localhost:18443";
/// The address of Keycloak, for browsers and for the API server.
const ISSUER: &str = "https://127.0.0.1:18444";
/// The host of machines, which browsers resolve to this machine, too.
pub const MACHINES: &str = "machines.localhost";
/// The ports of these three.
const PORTS: [u16; 3] = [18443, 18444, 18445];
/// The ports of the dashboard and of the pages of machines behind them.
const BEHIND: [u16; 2] = [18089, 18090];
/// The port of the webhooks.
const WEBHOOKS: u16 = 18088;
/// The dashboard's client in Keycloak, and its secret.
const CLIENT: &str = "dashboard";
const SECRET: &str = "demo";
/// The right of the dashboard to watch announcements, which only its own account in the chart has.
const ANNOUNCEMENTS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: crownlabs-dashboard}
rules:
- {apiGroups: [lab.crownlabs.polito.it], resources: [announcements], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crownlabs-dashboard}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-dashboard}
subjects: [{kind: ServiceAccount, name: crownlabs, namespace: crownlabs-system}]
";
/// A student and a teacher from the samples.
const STUDENT: &str = "ada.rossi";
const TEACHER: &str = "carlo.verdi";
/// The password of both.
const PASSWORD: &str = "Lab-Pa55word";

/// The HTTPS servers in front of the dashboard, and its files.
pub struct Dashboard {
    folder: TempDir,
    _front: Front,
}

impl Dashboard {
    /// Creates the dashboard's client in Keycloak and its files, and serves both with HTTPS, if the variable
    /// `DASHBOARD` is set. This comes before the control plane, which fetches the keys of its issuers at start.
    pub fn start(keycloak: Option<&KeycloakServer>) -> Result<Option<Self>> {
        let Some(keycloak) = keycloak.filter(|_| is_wanted("DASHBOARD")) else { return Ok(None) };
        let client = login_client(CLIENT, SECRET, &[URL.to_owned()]);
        keycloak.admin(&Method::POST, &format!("/{REALM}/clients"), &client)?;
        let folder = tempfile::tempdir()?;
        certificate(folder.path());
        fs::write(folder.path().join("secret"), SECRET)?;
        let mut key = Command::new("openssl");
        key.args(["rand", "-base64", "-out"]).arg(folder.path().join("key")).arg("32");
        ensure!(key.status().context("openssl")?.success(), "openssl rand");
        let ([labs, auth, machines], [dashboard, pages]) = (PORTS, BEHIND);
        let served = |port, names, behind, has_long_headers, more| Served {
            port,
            names,
            behind: vec![behind],
            has_long_headers,
            more,
        };
        // The URLs of machines have no port, and only root may listen at port 443.
        let links = format!(
            "sub_filter \"https://{MACHINES}/\" \"https://{MACHINES}:{machines}/\";\nsub_filter_once off;\n\
             sub_filter_types text/event-stream;\n"
        );
        let served = [
            served(labs, "labs.localhost", dashboard, false, links),
            served(auth, "127.0.0.1", keycloak.port(), true, String::new()),
            served(machines, MACHINES, pages, false, String::new()),
        ];
        let front = Front::start(folder.path(), "front", &served);
        Ok(Some(Self { folder, _front: front }))
    }

    /// The issuer whose tokens the API server accepts.
    pub fn issuer(&self) -> TrustedIssuer {
        let authority = self.folder.path().join("front.crt");
        TrustedIssuer { url: format!("{ISSUER}/realms/{REALM}"), authority, client: CLIENT.to_owned() }
    }

    /// The keys below `server`.
    pub fn server() -> String {
        format!("  webhook: {{enabled: true, listen: \"127.0.0.1:{WEBHOOKS}\"}}\n")
    }

    /// The keys below `controllers`.
    pub fn controllers(&self) -> String {
        let [behind, _] = BEHIND;
        let TrustedIssuer { url: issuer, .. } = self.issuer();
        let [secret, key, authority] =
            ["secret", "key", "front.crt"].map(|name| self.folder.path().join(name).display().to_string());
        format!(
            "  dashboard: {{enabled: true, listen: \"127.0.0.1:{behind}\", publicUrl: \"{URL}\", issuerUrl: \"{issuer}\", \
             clientId: {CLIENT}, clientSecretFile: \"{secret}\", sessionKeyFile: \"{key}\", caFile: \"{authority}\"}}\n"
        )
    }

    /// Logs in as the student, starts and opens a machine, and lowers the quota below the number of machines.
    pub fn show(&self, cluster: &Cluster, keycloak: Option<&KeycloakServer>) -> Result<()> {
        machines::serve(cluster, BEHIND[1])?;
        println!("\nthe dashboard, and the webhooks, which reject forbidden changes of a student\n");
        cluster.apply(&webhooks("production", WEBHOOKS))?;
        cluster.apply(ANNOUNCEMENTS)?;
        for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            wait("the authority of the webhooks", || {
                let found = cluster.get(kind, "", "crownlabs-webhook")?.unwrap_or_default();
                Ok(found["webhooks"][0]["clientConfig"]["caBundle"].is_string().then_some(()))
            })?;
        }
        log_in(cluster, keycloak, TEACHER)?;
        for name in [STUDENT, TEACHER] {
            set_password(keycloak.context("Keycloak")?, name)?;
        }
        println!("{STUDENT} opens {URL}, and logs in through Keycloak");
        let login = self.browse(URL, &[])?;
        let action =
            between(&login, "action=\"", "\"").with_context(|| format!("the login of Keycloak: {login}"))?;
        let action = action.replace("&amp;", "&");
        let home = self.browse(&action, &[("username", STUDENT), ("password", PASSWORD)])?;
        println!("  {}", text(machine(&home)?));
        println!("and starts {STOPPED}");
        let uid =
            between(machine(&home)?, "name=\"uid\" value=\"", "\"").context("the uid of the machine")?;
        let started = self.browse(&format!("{URL}/machines/{NAMESPACE}/{STOPPED}/start"), &[("uid", uid)])?;
        println!(
            "  {}",
            text(between(&started, "class=\"notice done\"", "</div>").context(started.clone())?)
        );
        self.see("a machine that is ready", |page| {
            Ok(Some(machine(page)?).filter(|card| card.contains("Ready</")))
        })?;
        let address = format!("https://{MACHINES}:{}", PORTS[2]);
        let link = wait("a machine to open", || {
            Ok(between(machine(&self.browse(URL, &[])?)?, &format!("href=\"{address}"), "\"")
                .map(str::to_owned))
        })?;
        println!("and opens it with Connect");
        let opened = self.browse(&format!("{address}{link}"), &[])?;
        println!("  {}", text(between(&opened, "<main", "</main>").context(opened.clone())?));
        println!("an administrator lowers the quota to one machine, while more exist");
        let quota = |machines: u32| json!({"spec": {"quota": {"instances": machines}}}).to_string();
        let patch = |machines| {
            run(cluster, &["patch", "workspace", "netlab", "--type=merge", "-p", &quota(machines)])
        };
        patch(1)?;
        self.see("a button that is disabled", |page| Ok(between(page, "class=\"refused\"", "</div>")))?;
        patch(8)
    }

    /// Waits until a part is on the first page, and prints it.
    fn see(&self, what: &str, part: impl Fn(&str) -> Result<Option<&str>>) -> Result<()> {
        let seen = wait(what, || Ok(part(&self.browse(URL, &[])?)?.map(text)))?;
        println!("  {seen}");
        Ok(())
    }

    /// Says what to try in a browser.
    pub fn explain() {
        println!(
            "\nThe dashboard is at {URL}; browsers warn about the certificate of the demo, at Keycloak, too."
        );
        println!(
            "{STUDENT} is a student, {TEACHER} a teacher; the password of both is {PASSWORD}. To try:\n"
        );
        println!("  open a machine with Connect: the page names the desktop that a cluster shows there");
        println!("  start and stop a machine, create a new one, add an SSH key, then an incomplete key");
        println!("  {URL}/machines/{NAMESPACE}/{STOPPED}, which {TEACHER} may open, too");
        println!(
            "  kubectl patch workspace netlab --type=merge -p '{{\"spec\":{{\"quota\":{{\"instances\":1}}}}}}'"
        );
        println!("  kubectl delete template -n workspace-netlab notebook\n");
    }

    /// The response to a browser that follows redirects and keeps cookies; with fields, the response to a form.
    fn browse(&self, url: &str, fields: &[(&str, &str)]) -> Result<String> {
        let [authority, cookies] = ["front.crt", "cookies"].map(|name| self.folder.path().join(name));
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--location", "--max-time", "60", "--cacert"]).arg(authority);
        curl.arg("--cookie").arg(&cookies).arg("--cookie-jar").arg(&cookies);
        if !fields.is_empty() {
            // Browsers send this header with a form from a page of the same origin.
            curl.args(["--header", "Sec-Fetch-Site: same-origin"]);
        }
        for (name, value) in fields {
            curl.arg("--data-urlencode").arg(format!("{name}={value}"));
        }
        let answer = curl.arg(url).output().context("curl")?;
        ensure!(answer.status.success(), "{url}: {}", String::from_utf8_lossy(&answer.stderr));
        Ok(String::from_utf8(answer.stdout)?)
    }
}

/// Gives the account of a Tenant a password.
fn set_password(keycloak: &KeycloakServer, tenant: &str) -> Result<()> {
    let user = keycloak.find(&users(tenant), "username", tenant)?;
    let id = user["id"].as_str().context("an identifier")?;
    let password = json!({"type": "password", "value": PASSWORD, "temporary": false});
    keycloak.admin(&Method::PUT, &format!("/{REALM}/users/{id}/reset-password"), &password).map(drop)
}

/// The card of [`STOPPED`] on the first page.
fn machine(page: &str) -> Result<&str> {
    between(page, &format!("id=\"machine-{STOPPED}\""), "</article>")
        .with_context(|| format!("no {STOPPED}: {page}"))
}

/// The text between `begin` and `end`.
fn between<'a>(page: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    page.split_once(begin)?.1.split_once(end).map(|(found, _)| found)
}

/// The visible text of a part of a page that begins within a tag, without the buttons below.
fn text(part: &str) -> String {
    let part = part.split("class=\"actions\"").next().unwrap_or(part);
    let texts = part.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, text)| text.trim());
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}
