//! Values that are carried over together with others.

use serde_json::{Value, json};

use super::form::listed;
use super::table::PARTS;
use super::{Conversion, Made};

/// Values that exist only in charts whose operators name all objects of an Instance after the environment, too.
const NEWER: [&str; 3] = ["/bastion", "/gatewayAPI", "/global/gateway"];
/// The folder with the secrets of Keycloak in a configuration without a chart.
const KEYCLOAK: &str = "/etc/crownlabs/keycloak";
/// The folders of mail: the value, the key below `integrations.mail`, the member of `crownmail`, the value of the
/// daemon's chart, and the kind of the object with the files.
const FOLDERS: [(&str, &str, &str, &str, &str); 2] = [
    ("mailConfigDir", "integrations.mail.configDir", "configs", "secrets.mailConfig", "Secret"),
    (
        "mailTemplateDir",
        "integrations.mail.templateDir",
        "templates",
        "configMaps.mailTemplates",
        "ConfigMap",
    ),
];
/// The name of the web terminal's key pair in its Secret for the daemon's bastion.
const WEB_SSH_KEY: &str = "webssh-bastion-master";
/// The role of the Tenant operators since 2026-02.
const UNIFIED_ROLE: &str = "crownlabs-operator";
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
            self.remarks.steps.push(format!(
                "copy {} from the operators' namespace to the namespace of the daemon's release, whose pods \
                 mount them",
                copied.join(", ")
            ));
        }
        self.bastion();
    }

    /// The webhooks. A single switch enables them.
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
        self.set(part, "server.webhook.enabled", is_on);
    }

    /// The images that the daemon uses in Instances. Without a tag, they have the version of the operators.
    fn images(&mut self) {
        if self.values.get("instance-operator").is_none() {
            return;
        }
        let options = format!("{INSTANCES}.containerEnvironmentOptions");
        let tag = self.text(&format!("{options}.tag")).or_else(|| self.text("global.version"));
        match &tag {
            Some(tag) => self.set("global.version", "controllers.instance.containerImages.tag", tag.as_str()),
            None => self.remarks.steps.push(format!(
                "{options}.tag: neither this value nor global.version is set: set \
                 controllers.instance.containerImages.tag to the version of the operators; otherwise \
                 containers of Instances restart with other images"
            )),
        }
        let tag = tag.unwrap_or_else(|| "latest".to_owned());
        // Newer operators have one image for both directions.
        let tools = self.text(&format!("{options}.contentToolsImg"));
        let [downloader, uploader] = ["contentDownloaderImage", "contentUploaderImage"].map(|value| {
            let own = self.text(&format!("{options}.{value}"));
            if let (Some(_), Some(own)) = (&tools, &own) {
                self.remarks.ignored.push(format!("{options}.{value}: contentToolsImg replaces {own}"));
            }
            tools.clone().or(own)
        });
        if let Some(image) = downloader {
            self.set(&options, "controllers.instance.containerImages.contentDownloader", image);
        }
        if let Some(image) = uploader {
            self.set(&options, "controllers.submission.uploaderImage", format!("{image}:{tag}"));
        }
        if tools.is_some() {
            self.set(&options, "controllers.submission.uploaderArgs", json!(["upload"]));
        }
    }

    /// Keycloak: the older chart has no switch for it, so a URL enables it.
    fn accounts(&mut self) {
        for part in PARTS[0].names {
            let keycloak = format!("{part}.configurations.keycloak");
            let switch = self.flag(&format!("{part}.configurations.features.keycloak"));
            if self.value(&format!("{keycloak}.url")).is_none() || switch == Some(false) {
                continue;
            }
            self.set(&keycloak, "integrations.keycloak.enabled", true);
            // The oldest operator logs in as a user, with the client that every realm provides for that, which has no
            // secret.
            let (key, value, secret, name) = if self.value(&format!("{keycloak}.user")).is_some() {
                self.set(&keycloak, "integrations.keycloak.clientId", "admin-cli");
                ("integrations.keycloak.passwordFile", "pass", "keycloakPassword", "password")
            } else {
                ("integrations.keycloak.clientSecretFile", "clientSecret", "keycloak", "client-secret")
            };
            let (file, value) = (format!("{KEYCLOAK}/{name}"), format!("{keycloak}.{value}"));
            self.set_in_chart(&format!("secrets.{secret}.name"), "crownlabs-keycloak");
            if self.value(&value).is_some() {
                self.require(
                    format!("{value}: put it into the file {file} of the daemon"),
                    format!(
                        "{value}: put it into the Secret that `secrets.{secret}` of the chart names: \
                         kubectl create secret generic crownlabs-keycloak -n NAMESPACE --from-file={name}=FILE"
                    ),
                );
            }
            self.files.push((key, file));
        }
    }

    /// Routes of a Gateway instead of Ingresses. `global.gateway` supplies the values that the operator's section
    /// omits.
    fn gateway(&mut self, namespace: Option<&str>) {
        let generic = format!("{INSTANCES}.generic");
        if let Some(host) = self.text("global.gateway.hostname")
            && self.value(&format!("{generic}.websiteBaseUrl")).is_none()
        {
            self.set("global.gateway.hostname", "controllers.instance.websiteBaseUrl", host);
        }
        let own = self.flag(&format!("{generic}.gatewayApiMode"));
        let Some(is_on) = own.or_else(|| self.flag("global.gateway.gatewayApiMode")) else { return };
        self.set("global.gateway", "controllers.instance.gatewayApi.enabled", is_on);
        if !is_on {
            return;
        }
        if let Some(is_on) = self.flag("global.gateway.securityPolicy.enabled") {
            self.set("global.gateway", "controllers.instance.gatewayApi.authenticated", is_on);
        }
        let own = self.value(&format!("{generic}.gatewayApiRefsValues"));
        let refs = match (own, self.text("global.gateway.name"), namespace) {
            (Some(refs), ..) => listed(refs, ','),
            (None, Some(name), Some(namespace)) => vec![format!("{namespace}/{name}")],
            (None, Some(name), None) => {
                self.remarks.steps.push(format!(
                    "global.gateway.name: {name} is in the namespace of the operators' release: specify \
                     it with --namespace"
                ));
                return;
            }
            (None, None, _) => return,
        };
        let pair = |(namespace, name): (&str, &str)| json!({"namespace": namespace, "name": name});
        let refs = refs.iter().map(|text| text.split_once('/').map(pair)).collect::<Option<Vec<Value>>>();
        match refs {
            Some(refs) => self.set("global.gateway", "controllers.instance.gatewayApi.parentRefs", refs),
            None => self.remarks.steps.push(format!(
                "{generic}.gatewayApiRefsValues is left out: expected NAMESPACE/NAME of the Gateway: set \
                 controllers.instance.gatewayApi.parentRefs"
            )),
        }
    }

    /// Mail: the Go operators always send it; the daemon sends it for warnings. Returns the objects that contain its
    /// files.
    fn mail(&mut self) -> Vec<String> {
        let warns = ["enableInactivityNotifications", "enableExpirationNotifications"]
            .map(|switch| self.flag(&format!("{INSTANCES}.automation.{switch}")) == Some(true));
        let mut copied = Vec::new();
        for (value, key, member, chart, kind) in FOLDERS {
            let Some(folder) = self.text(&format!("{INSTANCES}.{value}")) else { continue };
            if !warns.contains(&true) {
                self.remarks.ignored.push(format!(
                    "{INSTANCES}.{value}: no mail is sent, since both kinds of warnings are off"
                ));
                continue;
            }
            self.set(INSTANCES, "integrations.mail.transport", "smtp");
            self.files.push((key, folder));
            let name = self.text(&format!("crownmail.{member}.name"));
            let name = name.unwrap_or_else(|| format!("crownmail-{member}"));
            copied.push(format!("the {kind} {name}"));
            self.set_in_chart(&format!("{chart}.name"), name);
        }
        copied
    }

    /// The public key of the web terminal, for new machines. Returns the object that contains it.
    fn web_ssh_key(&mut self) -> Option<String> {
        let key = "instance-operator.webssh.masterKey";
        let secret = self.text(&format!("{key}.secretName"))?;
        let name = self.text(&format!("{key}.keyName")).unwrap_or_else(|| WEB_SSH_KEY.to_owned());
        self.set_in_chart("secrets.webSshMasterKey", json!({"name": secret, "key": format!("{name}.pub")}));
        let file = format!("/etc/crownlabs/web-ssh-key/{name}.pub");
        if self.made == Made::Configuration {
            self.remarks.steps.push(format!(
                "{key}: put {name}.pub of the Secret {secret} into the file {file} of the daemon"
            ));
        }
        self.files.push(("controllers.instance.websshMasterKeyFile", file));
        Some(format!("the Secret {secret}"))
    }

    /// The bastion, whose pods run in a separate namespace.
    fn bastion(&mut self) {
        let Some(part) = self.part(PARTS[2].names) else { return };
        self.set_in_chart("bastion.enabled", true);
        let secrets = ["sshKeysSecret.name", "webssh.masterKey.secretName"]
            .map(|name| self.text(&format!("{part}.{name}")));
        let secrets = secrets.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let secrets = if secrets.is_empty() { secrets } else { format!(" ({secrets})") };
        let name = self.text(&format!("{part}.webssh.masterKey.name")).filter(|name| name != WEB_SSH_KEY);
        let renamed = name.map_or_else(String::new, |name| {
            format!("; rename {name} and {name}.pub to {WEB_SSH_KEY} and {WEB_SSH_KEY}.pub")
        });
        self.remarks.steps.push(format!(
            "{part}: copy its Secrets{secrets} from the operators' namespace to the namespace of the daemon's \
             bastion: with new host keys, clients refuse to connect, and existing machines accept only the \
             old key of the web terminal{renamed}"
        ));
    }

    /// The exam agent. It has a separate chart, so the presence of its values enables it.
    fn exams(&mut self) {
        let path = "exam-agent.configurations.targetNamespace";
        if self.value(path).is_none() {
            return;
        }
        self.set(path, "controllers.examAgent.enabled", true);
        self.set("", "controllers.examAgent.requireToken", false);
        if self.value("exam-agent.exposition.host").is_some() {
            self.set_in_chart("examAgent.ingress.enabled", true);
        }
        let path = "exam-agent.configurations.allowedIPs";
        if self.value(path).is_none_or(|value| listed(value, ',').is_empty()) {
            self.set(path, "controllers.examAgent.allowAnyone", true);
            self.remarks.notes.push(format!(
                "{path} is empty: any client that reaches the exam agent may create and delete Instances, as \
                 before. List the exam servers in controllers.examAgent.allowedIps, and remove \
                 controllers.examAgent.allowAnyone"
            ));
        }
    }

    /// The measurement of Instances in containers: pods on the nodes, with access to the container runtime's socket.
    fn instance_metrics(&mut self) {
        if self.values.get("instmetrics").is_none() {
            return;
        }
        self.set_in_chart("instanceMetrics.enabled", true);
        let path = "instmetrics.configurations.runtimeEndpoint";
        let Some(endpoint) = self.text(path) else { return };
        let socket = endpoint.strip_prefix("unix://").unwrap_or(&endpoint);
        self.set_in_chart("instanceMetrics.runtimeSocket", socket);
        if self.made == Made::Configuration {
            self.set(path, "controllers.instanceMetrics.runtimeEndpoint", endpoint);
        }
    }

    /// Turns off what the daemon's chart enables but the Go operators did not do, so that new machines are like
    /// existing ones.
    pub(super) fn as_before(&mut self) {
        self.set("", "controllers.instance.ephemeralStorage", "");
        self.set("", "controllers.snapshot.ephemeralStorage", "");
        self.set("", "controllers.tenant.countQuotas.enabled", false);
        self.set("", "controllers.tenant.managers", "cluster");
        self.set("", "controllers.tenant.instancesClusterRole", "crownlabs-manage-instances");
        self.set("", "controllers.tenant.sandboxNetworkPolicies", false);
        self.set("", "controllers.instance.examEgress.enabled", false);
        self.set("", "controllers.instance.urls", "path");
        self.set("", "controllers.instance.largeUploads", false);
        self.set("", "controllers.instance.access.mode", "shared");
        self.set("", "controllers.instance.access.exams", "none");
        self.set("", "controllers.instance.vmPower", "running");
        // The newer operators name all objects of an Instance after the environment, too.
        let layout = if self.is_newer() { "perEnvironment" } else { "classic" };
        self.set("", "controllers.instance.layout", layout);
        self.personal_workspaces();
        self.mirrors();
        // Existing Services keep their annotations.
        let key = "controllers.publicExposure.loadBalancerIpsKey";
        if self.configuration.pointer(&format!("/{}", key.replace('.', "/"))).is_none() {
            self.set("", key, "metallb.universe.tf/loadBalancerIPs");
        }
    }

    /// Personal workspaces. The operators serve them without a switch since 2025-11. Values of charts since 2026-02 can
    /// be recognised; values of charts in between look like older ones.
    fn personal_workspaces(&mut self) {
        let Some(part) = self.part(PARTS[0].names) else { return };
        let key = "controllers.tenant.personalWorkspace.enabled";
        let role = self.text(&format!("{part}.rbacResourcesName"));
        let has_features = self.value(&format!("{part}.configurations.features")).is_some();
        if self.is_newer() || has_features || role.as_deref() == Some(UNIFIED_ROLE) {
            self.set(part, key, true);
        } else {
            self.remarks.notes.push(format!(
                "{part}: if these operators are newer than 2025-10, they serve personal workspaces, which these values do not \
                 show: set {key} to true if Tenants have spec.personalWorkspace or spec.createPersonalWorkspace"
            ));
        }
    }

    /// Mirrored volumes. Operators that have values for mirrors mount no volume over NFS.
    fn mirrors(&mut self) {
        let provisioner = "operator.configurations.pvcMirrorProvisioner.storageClass";
        let classes = [format!("{INSTANCES}.generic.mirrorStorageClass"), format!("{provisioner}.name")];
        let has_class = classes.iter().any(|path| self.value(path).is_some());
        let is_mirrored = has_class || self.value("operator.configurations.features.pmp").is_some();
        self.set("", "storage.mode", if is_mirrored { "mirror" } else { "nfs" });
        for path in classes {
            if let Some(class) = self.text(&path) {
                self.set(&path, "storage.mirrorClass", class);
            }
        }
        if self.flag(&format!("{provisioner}.deploy")) == Some(true) {
            self.remarks.notes.push(format!(
                "{provisioner}.deploy: the StorageClass belongs to the operators' release: annotate it with \
                 helm.sh/resource-policy=keep, or set mirrorStorageClass.create of the daemon's chart once that release is gone"
            ));
        }
    }

    /// Whether the values contain keys that only the newer chart has.
    fn is_newer(&self) -> bool {
        NEWER.iter().any(|path| self.values.pointer(path).is_some_and(|value| !value.is_null()))
    }
}
