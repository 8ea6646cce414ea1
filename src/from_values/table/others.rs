//! The bastion, the exam agent, mail, and parts that only older charts have.

use super::Fate::{Chart, Key, Left, With};
use super::Form::{Duration, List, Minutes, Port, Same};
use super::{Fate, Row};

const SERVICES: Fate =
    Left("Services of the daemon's chart have `commonLabels`, and are reachable only inside the cluster");
const KEYS: Fate = Left("the daemon generates missing keys without another image");
const WEB_SSH: Fate =
    Left("the daemon's chart creates a Service for web SSH; administrators add the route: docs/web-ssh.md");
const EXISTS: Fate = Left("the daemon's pods mount the existing ConfigMap or Secret");
const DASHBOARD: Fate = Left("the dashboard and its relay keep running, in a separate release");
const GATEWAY: Fate =
    Left("the Gateway and its SecurityPolicy stay as they are: the daemon attaches routes to it");
const POLICIES: Fate =
    Left("the policy stays as it is: save its manifest before the operators' release is uninstalled");

/// The SSH bastion, its tracker, and terminals in the browser.
pub const BASTION: &[Row] = &[
    ("configurations.sshTrackerInterface", Key("controllers.sshTracker.interface", Same)),
    ("configurations.sshTrackerPort", Key("controllers.sshTracker.port", Same)),
    ("configurations.sshTrackerSnaplen", Key("controllers.sshTracker.snaplen", Same)),
    ("configurations.sshTrackerMetricsAddr", Left("the metrics of all loops are at `server.metrics`")),
    ("serviceAnnotations", Chart("bastion.service.annotations")),
    ("serviceLabels", SERVICES),
    ("service.type", Chart("bastion.service.type")),
    ("service.port", Chart("bastion.service.port")),
    ("service.externalTrafficPolicy", Chart("bastion.service.externalTrafficPolicy")),
    ("sshKeysSecret.name", Key("controllers.bastion.hostKeys.secretName", Same)),
    ("sshKeysSecret.keygenImage", KEYS),
    ("sshKeysSecret.kubectlImage", KEYS),
    ("webssh.expositionEnabled", WEB_SSH),
    ("webssh.ingress", WEB_SSH),
    ("webssh.httproute", WEB_SSH),
    ("webssh.service", WEB_SSH),
    ("webssh.masterKey.secretName", Key("controllers.bastion.webSshKey.secretName", Same)),
    ("webssh.masterKey.type", KEYS),
    ("webssh.masterKey.comment", KEYS),
    ("webssh.masterKey.name", With("secrets.webSshMasterKey")),
    ("webssh.config.user", Key("controllers.webSsh.user", Same)),
    ("webssh.config.timeoutDuration", Key("controllers.webSsh.idleTimeout", Minutes)),
    ("webssh.config.maxConCount", Key("controllers.webSsh.maxConnections", Same)),
    ("webssh.config.vmPort", Key("controllers.webSsh.port", Same)),
    ("webssh.config.webSocketPort", Key("controllers.webSsh.listen", Port)),
];

/// The exam agent.
pub const EXAMS: &[Row] = &[
    ("configurations.targetNamespace", Key("controllers.examAgent.namespace", Same)),
    ("configurations.allowedIPs", Key("controllers.examAgent.allowedIps", List)),
    ("exposition.basePath", Key("controllers.examAgent.basePath", Same)),
    ("exposition.host", Chart("examAgent.ingress.host")),
    ("ingressAnnotations", Chart("examAgent.ingress.annotations")),
];

/// The files used to send mail.
pub const MAIL: &[Row] = &[
    ("templates.name", With("configMaps.mailTemplates")),
    ("templates.sourceFolder", EXISTS),
    ("templates.overrides", EXISTS),
    ("configs.name", With("secrets.mailConfig")),
    ("configs.sourceFolder", EXISTS),
    ("configs.overrides", EXISTS),
    ("configs.smtp", EXISTS),
];

/// The older program for image lists.
pub const IMAGE_LIST: &[Row] = &[
    ("configurations.imageListName", With("controllers.imageList.registries")),
    ("configurations.registryUrl", With("controllers.imageList.registries")),
    ("configurations.advRegistryName", With("controllers.imageList.registries")),
    ("configurations.updateInterval", With("controllers.imageList.updateInterval")),
    ("registries", With("controllers.imageList.registries")),
];

/// The metrics of Instances in containers.
pub const INSTANCE_METRICS: &[Row] = &[
    (
        "configurations.runtimeEndpoint",
        With("instanceMetrics.runtimeSocket, controllers.instanceMetrics.runtimeEndpoint"),
    ),
    ("configurations.connectionTimeout", Key("controllers.instanceMetrics.connectionTimeout", Duration)),
    ("configurations.updatePeriod", Key("controllers.instanceMetrics.updatePeriod", Duration)),
    ("configurations.grpcPort", Key("controllers.instanceMetrics.listen", Port)),
    (
        "configurations.containerRuntime",
        Left("the chart mounts the folder of the socket that `instanceMetrics.runtimeSocket` names"),
    ),
    ("configurations.dockerSocket", Left("the socket of the container runtime is sufficient")),
    ("service.type", SERVICES),
    ("service.port", Chart("instanceMetrics.service.port")),
    ("tolerations", Chart("instanceMetrics.tolerations")),
];

/// Values outside of the parts.
pub const WHOLE: &[Row] = &[
    (
        "global.version",
        With("controllers.instance.containerImages.tag, controllers.submission.uploaderImage"),
    ),
    ("global.gateway.gatewayApiMode", With("controllers.instance.gatewayApi.enabled")),
    ("global.gateway.name", With("controllers.instance.gatewayApi.parentRefs")),
    ("global.gateway.hostname", With("controllers.instance.websiteBaseUrl")),
    ("global.gateway.securityPolicy.enabled", With("controllers.instance.gatewayApi.authenticated")),
    ("global.gateway.securityPolicy", GATEWAY),
    ("gatewayAPI", GATEWAY),
    ("createClusterRoles", Chart("clusterRoles.create")),
    ("frontend-app", DASHBOARD),
    ("qlkube", DASHBOARD),
    ("policies", POLICIES),
];
