//! Which value of the Go operators' chart is which key of the configuration.

use Form::{Duration, Gigabytes, List, Pairs, Port, Query, Same, Url};

/// How a value is written in the configuration.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// As it is.
    Same,
    /// A duration as Go writes it.
    Duration,
    /// A URL, without a slash at its end.
    Url,
    /// A list, or texts with commas between them.
    List,
    /// Labels or annotations: pairs `key=value` with this between them, or a list of pairs.
    Pairs(char),
    /// A number of gigabytes.
    Gigabytes,
    /// A port, at which a server listens on all addresses.
    Port,
    /// A query of Prometheus: Go's `"%s"` is `%q`.
    Query,
}

/// The path of a value in its part of the chart, the key that means the same, and how it is written there.
pub type Row = (&'static str, &'static str, Form);

/// The parts of the chart whose values are looked at, with their tables. Several names are those of older and newer charts.
pub const PARTS: [(&str, &[Row]); 6] = [
    ("operator", TENANTS),
    ("tenant-operator", TENANTS),
    ("instance-operator", INSTANCES),
    ("bastion", BASTION),
    ("bastion-operator", BASTION),
    ("instmetrics", INSTANCE_METRICS),
];

/// The operator of Tenants and Workspaces.
const TENANTS: &[Row] = &[
    ("configurations.targetLabel", "selector", Pairs('&')),
    ("configurations.keycloak.url", "integrations.keycloak.url", Url),
    ("configurations.keycloak.realm", "integrations.keycloak.realm", Same),
    ("configurations.keycloak.clientId", "integrations.keycloak.clientId", Same),
    ("configurations.keycloak.rolesClientId", "integrations.keycloak.rolesClientId", Same),
    ("configurations.keycloak.compatibilityMode", "integrations.keycloak.compatibilityMode", Same),
    ("configurations.tenantNamespaceKeepAlive", "controllers.tenant.keepAlive", Duration),
    ("configurations.waitUserVerification", "controllers.tenant.waitUserVerification", Same),
    ("configurations.sandboxClusterRole", "controllers.tenant.sandboxClusterRole", Same),
    ("configurations.mydrivePVCsNamespace", "controllers.tenant.myDrive.namespace", Same),
    ("configurations.mydrivePVCsSize", "controllers.tenant.myDrive.size", Same),
    ("configurations.mydrivePVCsStorageClassName", "controllers.tenant.myDrive.storageClassName", Same),
    ("configurations.tenant.resourcecaps.cpu", "controllers.tenant.quotaCaps.cpu", Same),
    ("configurations.tenant.resourcecaps.memory", "controllers.tenant.quotaCaps.memory", Gigabytes),
    ("configurations.tenant.resourcecaps.instances", "controllers.tenant.quotaCaps.instances", Same),
    ("configurations.features.tenant", "controllers.tenant.enabled", Same),
    ("configurations.features.workspace", "controllers.workspace.enabled", Same),
    ("configurations.features.instance", "controllers.instance.enabled", Same),
    ("configurations.features.sharedvolume", "controllers.sharedVolume.enabled", Same),
    ("webhook.enableMutating", "server.webhook.enabled", Same),
    ("webhook.deployment.webhookBypassGroups", "server.webhook.bypassGroups", List),
    ("webhook.deployment.baseWorkspaces", "controllers.tenant.baseWorkspaces", List),
];

/// The operators of Instances and of their automation.
const INSTANCES: &[Row] = &[
    ("configurations.generic.whitelistLabels", "selector", Pairs('&')),
    ("configurations.generic.websiteBaseUrl", "controllers.instance.websiteBaseUrl", Same),
    ("configurations.generic.instancesAuthUrl", "controllers.instance.instancesAuthUrl", Url),
    ("configurations.containerEnvironmentOptions.tag", "controllers.instance.containerImages.tag", Same),
    (
        "configurations.containerEnvironmentOptions.xVncImage",
        "controllers.instance.containerImages.xVnc",
        Same,
    ),
    (
        "configurations.containerEnvironmentOptions.websockifyImage",
        "controllers.instance.containerImages.websockify",
        Same,
    ),
    (
        "configurations.containerEnvironmentOptions.contentDownloaderImage",
        "controllers.instance.containerImages.contentDownloader",
        Same,
    ),
    (
        "configurations.containerEnvironmentOptions.instmetricsServerEndpoint",
        "controllers.instance.containerImages.instmetricsServerEndpoint",
        Same,
    ),
    ("configurations.containerVmSnapshots.kanikoImage", "controllers.snapshot.containerKanikoImg", Same),
    ("configurations.privateContainerRegistry.url", "controllers.snapshot.vmRegistry", Url),
    ("configurations.privateContainerRegistry.secretName", "controllers.snapshot.vmRegistrySecret", Same),
    ("configurations.publicExposure.ipPool", "controllers.publicExposure.ipPool", List),
    (
        "configurations.publicExposure.commonAnnotations",
        "controllers.publicExposure.commonAnnotations",
        Pairs(','),
    ),
    (
        "configurations.publicExposure.loadBalancerIPsKey",
        "controllers.publicExposure.loadBalancerIpsKey",
        Same,
    ),
    ("configurations.sharedVolumeOptions.storageClass", "controllers.sharedVolume.storageClass", Same),
    ("configurations.monitoring.prometheusURL", "integrations.prometheus.url", Url),
    ("configurations.monitoring.queryStep", "integrations.prometheus.queryStep", Duration),
    ("configurations.monitoring.queryNginxAvailable", "integrations.prometheus.queries.nginxAvailable", Same),
    (
        "configurations.monitoring.queryBastionSSHAvailable",
        "integrations.prometheus.queries.bastionSshAvailable",
        Same,
    ),
    (
        "configurations.monitoring.queryWebSSHAvailable",
        "integrations.prometheus.queries.webSshAvailable",
        Same,
    ),
    ("configurations.monitoring.queryNginxData", "integrations.prometheus.queries.nginxData", Query),
    (
        "configurations.monitoring.queryBastionSSHData",
        "integrations.prometheus.queries.bastionSshData",
        Query,
    ),
    ("configurations.monitoring.queryWebSSHData", "integrations.prometheus.queries.webSshData", Query),
    ("configurations.mailTemplateDir", "integrations.mail.templateDir", Same),
    ("configurations.mailConfigDir", "integrations.mail.configDir", Same),
    ("configurations.automation.enableInstanceTermination", "controllers.termination.enabled", Same),
    ("configurations.automation.enableInstanceSubmission", "controllers.submission.enabled", Same),
    ("configurations.automation.enableInstanceInactiveTermination", "controllers.inactivity.enabled", Same),
    ("configurations.automation.enableInstanceExpiration", "controllers.expiration.enabled", Same),
    (
        "configurations.automation.terminationStatusCheckTimeout",
        "controllers.termination.statusCheckTimeout",
        Duration,
    ),
    (
        "configurations.automation.terminationStatusCheckInterval",
        "controllers.termination.statusCheckInterval",
        Duration,
    ),
    (
        "configurations.automation.inactiveTerminationStatusCheckTimeout",
        "integrations.prometheus.timeout",
        Duration,
    ),
    (
        "configurations.automation.inactiveTerminationMaxNumberOfAlerts",
        "controllers.inactivity.maxNumberOfAlerts",
        Same,
    ),
    (
        "configurations.automation.inactiveTerminationNotificationInterval",
        "controllers.inactivity.notificationInterval",
        Duration,
    ),
    (
        "configurations.automation.expirationNotificationInterval",
        "controllers.expiration.notificationInterval",
        Duration,
    ),
    ("configurations.automation.enableInactivityNotifications", "controllers.inactivity.notifications", Same),
    ("configurations.automation.enableExpirationNotifications", "controllers.expiration.notifications", Same),
];

/// The SSH bastion and its tracker.
const BASTION: &[Row] = &[
    ("configurations.sshTrackerInterface", "controllers.sshTracker.interface", Same),
    ("configurations.sshTrackerPort", "controllers.sshTracker.port", Same),
    ("configurations.sshTrackerSnaplen", "controllers.sshTracker.snaplen", Same),
];

/// What Instances in containers use.
const INSTANCE_METRICS: &[Row] = &[
    ("configurations.runtimeEndpoint", "controllers.instanceMetrics.runtimeEndpoint", Same),
    ("configurations.connectionTimeout", "controllers.instanceMetrics.connectionTimeout", Duration),
    ("configurations.updatePeriod", "controllers.instanceMetrics.updatePeriod", Duration),
    ("configurations.grpcPort", "controllers.instanceMetrics.listen", Port),
];

/// The ends of the paths of values that are left out on purpose, and why; nothing is said where there is nothing to do.
pub const LEFT_OUT: [(&str, &str); 18] = [
    ("maxConcurrentReconciles", ""),
    ("maxConcurrentShVolReconciles", ""),
    ("maxAutomationConcurrentReconciles", ""),
    ("maxConcurrentTerminationReconciles", ""),
    ("maxConcurrentInactiveTerminationReconciles", ""),
    ("maxConcurrentExpirationReconciles", ""),
    ("maxConcurrentSubmissionReconciles", ""),
    // One switch turns all webhooks on.
    ("webhook.enableValidating", ""),
    ("features.webhooks", ""),
    ("features.keycloak", ""),
    ("keycloak.clientSecret", ""),
    (
        "features.pmp",
        "personal volumes are mounted over NFS, and not mirrored into the namespaces of Tenants",
    ),
    ("features.imageList", "no loop of the daemon makes image lists yet"),
    ("configurations.imageList", "no loop of the daemon makes image lists yet"),
    (
        "containerVmSnapshots.exportImage",
        "the daemon has an exporter of its own, controllers.snapshot.containerExportImg",
    ),
    ("containerVmSnapshots.exportImageTag", ""),
    (
        "configurations.containerRuntime",
        "the chart mounts the folder of the socket that its value instanceMetrics.runtimeSocket names",
    ),
    ("configurations.dockerSocket", ""),
];
