//! Values that are carried over together with others.

use serde_json::{Value, json};

use super::form::listed;
use super::table::PARTS;
use super::{Conversion, Made};

/// Values that only the chart has whose operators name all objects of an Instance after the environment, too.
const NEWER: [&str; 3] = ["/bastion", "/gatewayAPI", "/global/gateway"];
/// Where the secret of the client is expected in a configuration that no chart completes.
const CLIENT_SECRET: &str = "/etc/crownlabs/keycloak/client-secret";
/// Where the password of the user is expected there.
const PASSWORD: &str = "/etc/crownlabs/keycloak/password";
/// The names of the key pair of the web terminal in its Secret, for the daemon's bastion.
const WEB_SSH_KEY: &str = "webssh-bastion-master";
const INSTANCES: &str = "instance-operator.configurations";

impl Conversion<'_> {
    pub(super) fn specials(&mut self, namespace: Option<&str>) {
        self.webhooks();
        self.images();
        self.accounts();
        self.gateway(namespace);
        self.exams();
        self.instance_metrics();
        let mut copied = self.mail();
        copied.extend(self.web_ssh_key());
        if !copied.is_empty() && self.made == Made::Chart {
            self.messages.push(format!(
                "copy {} from the namespace of the operators into that of the daemon's release, which mounts them",
                copied.join(", ")
            ));
        }
        self.bastion();
    }

    /// The webhooks, which one switch turns on.
    fn webhooks(&mut self) {
        let Some(part) = self.part(PARTS[0].names) else { return };
        let feature = self.flag(&format!("{part}.configurations.features.webhooks"));
        let registered =
            ["enableMutating", "enableValidating"].map(|kind| self.flag(&format!("{part}.webhook.{kind}")));
        let is_on = match (feature, registered) {
            (None, [None, None]) => return,
            (Some(false), _) => false,
            (Some(true), [None, None]) => true,
            (_, registered) => registered.contains(&Some(true)),
        };
        self.set(part, "server.webhook.enabled", is_on.into());
    }

    /// The images that the daemon gives to Instances, whose tag is the version of the operators where none is given.
    fn images(&mut self) {
        if self.values.get("instance-operator").is_none() {
            return;
        }
        let options = format!("{INSTANCES}.containerEnvironmentOptions");
        let tag = self.text(&format!("{options}.tag")).or_else(|| self.text("global.version"));
        match &tag {
            Some(tag) => self.set("global.version", "controllers.instance.containerImages.tag", tag.as_str().into()),
            None => self.messages.push(format!(
                "{options}.tag: neither it nor global.version is there: say the version of the operators in \
                 controllers.instance.containerImages.tag, or containers of Instances start again with other images"
            )),
        }
        let tag = tag.unwrap_or_else(|| "latest".to_owned());
        // Newer operators have one image for both ways.
        let tools = self.text(&format!("{options}.contentToolsImg"));
        let ways = ["contentDownloaderImage", "contentUploaderImage"].map(|value| {
            let own = self.text(&format!("{options}.{value}"));
            if let (Some(_), Some(own)) = (&tools, &own) {
                self.messages
                    .push(format!("{options}.{value}: {own} is left out: contentToolsImg takes its place"));
            }
            tools.clone().or(own)
        });
        let [downloader, uploader] = ways;
        if let Some(image) = downloader {
            self.set(&options, "controllers.instance.containerImages.contentDownloader", image.into());
        }
        if let Some(image) = uploader {
            self.set(&options, "controllers.submission.uploaderImage", format!("{image}:{tag}").into());
        }
        if tools.is_some() {
            self.set(&options, "controllers.submission.uploaderArgs", json!(["upload"]));
        }
    }

    /// Keycloak: the older chart has no switch for it, so a URL turns it on.
    fn accounts(&mut self) {
        for part in PARTS[0].names {
            let keycloak = format!("{part}.configurations.keycloak");
            let switch = self.flag(&format!("{part}.configurations.features.keycloak"));
            if self.value(&format!("{keycloak}.url")).is_none() || switch == Some(false) {
                continue;
            }
            self.set(&keycloak, "integrations.keycloak.enabled", true.into());
            // The oldest operator logged in as a user, by the client that every realm has for that, which has no secret.
            let is_user = self.value(&format!("{keycloak}.user")).is_some();
            let (key, file, secret, name) = if is_user {
                self.set(&keycloak, "integrations.keycloak.clientId", "admin-cli".into());
                ("integrations.keycloak.passwordFile", PASSWORD, "keycloakPassword", "password")
            } else {
                ("integrations.keycloak.clientSecretFile", CLIENT_SECRET, "keycloak", "client-secret")
            };
            self.set_file(key, file.to_owned());
            self.set_in_chart(&format!("secrets.{secret}.name"), "crownlabs-keycloak".into());
            let value = format!("{keycloak}.{}", if is_user { "pass" } else { "clientSecret" });
            if self.value(&value).is_some() {
                self.messages.push(match self.made {
                    Made::Configuration => format!("{value}: put it into the file {file} of the daemon"),
                    Made::Chart => format!(
                        "{value}: put it into the Secret that `secrets.{secret}` of the chart names: \
                         kubectl create secret generic crownlabs-keycloak -n NAMESPACE --from-file={name}=FILE"
                    ),
                });
            }
        }
    }

    /// Routes of a Gateway instead of Ingresses; what the values of the operator leave out, `global.gateway` says.
    fn gateway(&mut self, namespace: Option<&str>) {
        let generic = format!("{INSTANCES}.generic");
        if let Some(host) = self.text("global.gateway.hostname")
            && self.value(&format!("{generic}.websiteBaseUrl")).is_none()
        {
            self.set("global.gateway.hostname", "controllers.instance.websiteBaseUrl", host.into());
        }
        let own = self.flag(&format!("{generic}.gatewayApiMode"));
        let Some(is_on) = own.or_else(|| self.flag("global.gateway.gatewayApiMode")) else { return };
        self.set("global.gateway", "controllers.instance.gatewayApi.enabled", is_on.into());
        if !is_on {
            return;
        }
        if let Some(is_on) = self.flag("global.gateway.securityPolicy.enabled") {
            self.set("global.gateway", "controllers.instance.gatewayApi.authenticated", is_on.into());
        }
        let refs = match (
            self.value(&format!("{generic}.gatewayApiRefsValues")),
            self.text("global.gateway.name"),
        ) {
            (Some(refs), _) => listed(refs, ','),
            (None, Some(name)) => {
                let Some(namespace) = namespace else {
                    self.messages.push(format!(
                        "global.gateway.name: {name} is in the namespace of the operators' release: say that with --namespace"
                    ));
                    return;
                };
                vec![format!("{namespace}/{name}")]
            }
            (None, None) => return,
        };
        let refs: Option<Vec<Value>> = refs
            .iter()
            .map(|pair| pair.split_once('/').map(|(n, name)| json!({"namespace": n, "name": name})))
            .collect();
        match refs {
            Some(refs) => {
                self.set("global.gateway", "controllers.instance.gatewayApi.parentRefs", refs.into());
            }
            None => self.messages.push(format!(
                "{generic}.gatewayApiRefsValues is left out: expected NAMESPACE/NAME of the Gateway"
            )),
        }
    }

    /// Mail: the Go operators always have it; here it is for warnings. Returns what its files are in.
    fn mail(&mut self) -> Vec<String> {
        let warns = ["enableInactivityNotifications", "enableExpirationNotifications"]
            .map(|switch| self.flag(&format!("{INSTANCES}.automation.{switch}")) == Some(true));
        let mut copied = Vec::new();
        let folders = [
            (
                "mailConfigDir",
                "integrations.mail.configDir",
                "configs",
                "secrets.mailConfig.name",
                "the Secret",
            ),
            (
                "mailTemplateDir",
                "integrations.mail.templateDir",
                "templates",
                "configMaps.mailTemplates.name",
                "the ConfigMap",
            ),
        ];
        for (value, key, member, chart, kind) in folders {
            let Some(folder) = self.text(&format!("{INSTANCES}.{value}")) else { continue };
            if !warns.contains(&true) {
                self.messages.push(format!(
                    "{INSTANCES}.{value}: left out: no mail is sent, since both kinds of warnings are off"
                ));
                continue;
            }
            self.set(INSTANCES, "integrations.mail.transport", "smtp".into());
            self.set_file(key, folder);
            let name = self
                .text(&format!("crownmail.{member}.name"))
                .unwrap_or_else(|| format!("crownmail-{member}"));
            self.set_in_chart(chart, name.as_str().into());
            copied.push(format!("{kind} {name}"));
        }
        copied
    }

    /// The public key of the web terminal, for new machines. Returns what it is in.
    fn web_ssh_key(&mut self) -> Option<String> {
        let key = "instance-operator.webssh.masterKey";
        let secret = self.text(&format!("{key}.secretName"))?;
        let name = self.text(&format!("{key}.keyName")).unwrap_or_else(|| WEB_SSH_KEY.to_owned());
        self.set_in_chart("secrets.webSshMasterKey", json!({"name": secret, "key": format!("{name}.pub")}));
        let file = format!("/etc/crownlabs/web-ssh-key/{name}.pub");
        if self.made == Made::Configuration {
            self.messages.push(format!(
                "{key}: put {name}.pub of the Secret {secret} into the file {file} of the daemon"
            ));
        }
        self.set_file("controllers.instance.websshMasterKeyFile", file);
        Some(format!("the Secret {secret}"))
    }

    /// The bastion, which has pods and a namespace of its own.
    fn bastion(&mut self) {
        let Some(part) = self.part(PARTS[2].names) else { return };
        self.set_in_chart("bastion.enabled", true.into());
        let secrets = ["sshKeysSecret.name", "webssh.masterKey.secretName"]
            .map(|name| self.text(&format!("{part}.{name}")))
            .into_iter()
            .flatten()
            .collect::<Vec<_>>();
        let secrets = if secrets.is_empty() { String::new() } else { format!(" ({})", secrets.join(", ")) };
        let name = self.text(&format!("{part}.webssh.masterKey.name")).filter(|name| name != WEB_SSH_KEY);
        let renamed = name.map_or_else(String::new, |name| {
            format!("; {name} and {name}.pub have the names {WEB_SSH_KEY} and {WEB_SSH_KEY}.pub there")
        });
        self.messages.push(format!(
            "{part}: copy its Secrets{secrets} from the namespace of the operators into that of the daemon's bastion: with new \
             host keys, clients refuse to connect, and machines that exist accept no other key of the web terminal{renamed}"
        ));
    }

    /// The exam agent, which has a chart of its own: its values turn it on.
    fn exams(&mut self) {
        let path = "exam-agent.configurations.targetNamespace";
        if self.value(path).is_none() {
            return;
        }
        self.set(path, "controllers.examAgent.enabled", true.into());
        if self.value("exam-agent.exposition.host").is_some() {
            self.set_in_chart("examAgent.ingress.enabled", true.into());
        }
        let path = "exam-agent.configurations.allowedIPs";
        if self.value(path).is_none_or(|value| listed(value, ',').is_empty()) {
            self.set(path, "controllers.examAgent.allowAnyone", true.into());
            self.messages.push(format!(
                "{path} is empty: whoever reaches the exam agent may create and delete Instances, as before. Name the exam \
                 servers in controllers.examAgent.allowedIps, and leave controllers.examAgent.allowAnyone out"
            ));
        }
    }

    /// What Instances in containers use: pods on the nodes, with the socket of the container runtime.
    fn instance_metrics(&mut self) {
        if self.values.get("instmetrics").is_none() {
            return;
        }
        self.set_in_chart("instanceMetrics.enabled", true.into());
        let path = "instmetrics.configurations.runtimeEndpoint";
        let Some(endpoint) = self.text(path) else { return };
        match self.made {
            Made::Configuration => {
                self.set(path, "controllers.instanceMetrics.runtimeEndpoint", endpoint.into());
            }
            Made::Chart => {
                let socket = endpoint.strip_prefix("unix://").unwrap_or(&endpoint);
                self.set_in_chart("instanceMetrics.runtimeSocket", socket.into());
            }
        }
    }

    /// What the chart of the daemon turns on and the Go operators did not do: new machines are like those that exist.
    pub(super) fn as_before(&mut self) {
        for key in ["controllers.instance.ephemeralStorage", "controllers.snapshot.ephemeralStorage"] {
            self.set("", key, "".into());
        }
        self.set("", "controllers.tenant.countQuotas.enabled", false.into());
        self.set("", "controllers.instance.vmPower", "running".into());
        self.set("", "controllers.instance.layout", self.layout().into());
        // The annotations of the Services that exist stay as they are.
        let key = "controllers.publicExposure.loadBalancerIpsKey";
        if self.configuration.pointer(&format!("/{}", key.replace('.', "/"))).is_none() {
            self.set("", key, "metallb.universe.tf/loadBalancerIPs".into());
        }
    }

    /// The layout that the operators of these values give to Instances. Values that only the newer chart has tell it.
    fn layout(&self) -> &'static str {
        let is_newer =
            NEWER.iter().any(|path| self.values.pointer(path).is_some_and(|value| !value.is_null()));
        if is_newer { "perEnvironment" } else { "classic" }
    }
}
