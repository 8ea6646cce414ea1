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

/// The path of a value in its member, the key that means the same, and how it is written there.
type Row = (&'static str, &'static str, Form);
/// A member of a part of the chart, with its rows.
type Member = (&'static str, &'static [Row]);

/// The parts of the chart whose values are looked at, with their tables. Several names are those of older and newer charts.
pub const PARTS: [(&str, &[Member]); 8] = [
    ("operator", TENANTS),
    ("tenant-operator", TENANTS),
    ("instance-operator", INSTANCES),
    ("bastion", BASTION),
    ("bastion-operator", BASTION),
    // See `image_lists.rs`.
    ("image-list", &[]),
    ("exam-agent", EXAMS),
    ("instmetrics", INSTANCE_METRICS),
];

/// The operator of Tenants and Workspaces.
const TENANTS: &[Member] = &[
    (
        "configurations",
        &[
            ("targetLabel", "selector", Pairs('&')),
            ("keycloak.url", "integrations.keycloak.url", Url),
            ("keycloak.realm", "integrations.keycloak.realm", Same),
            ("keycloak.clientId", "integrations.keycloak.clientId", Same),
            ("keycloak.rolesClientId", "integrations.keycloak.rolesClientId", Same),
            ("keycloak.compatibilityMode", "integrations.keycloak.compatibilityMode", Same),
            ("tenantNamespaceKeepAlive", "controllers.tenant.keepAlive", Duration),
            ("waitUserVerification", "controllers.tenant.waitUserVerification", Same),
            ("sandboxClusterRole", "controllers.tenant.sandboxClusterRole", Same),
            ("mydrivePVCsNamespace", "controllers.tenant.myDrive.namespace", Same),
            ("mydrivePVCsSize", "controllers.tenant.myDrive.size", Same),
            ("mydrivePVCsStorageClassName", "controllers.tenant.myDrive.storageClassName", Same),
            ("tenant.resourcecaps.cpu", "controllers.tenant.quotaCaps.cpu", Same),
            ("tenant.resourcecaps.memory", "controllers.tenant.quotaCaps.memory", Gigabytes),
            ("tenant.resourcecaps.instances", "controllers.tenant.quotaCaps.instances", Same),
            ("features.tenant", "controllers.tenant.enabled", Same),
            ("features.workspace", "controllers.workspace.enabled", Same),
            ("features.instance", "controllers.instance.enabled", Same),
            ("features.sharedvolume", "controllers.sharedVolume.enabled", Same),
        ],
    ),
    (
        "webhook",
        &[
            ("enableMutating", "server.webhook.enabled", Same),
            ("deployment.webhookBypassGroups", "server.webhook.bypassGroups", List),
            ("deployment.baseWorkspaces", "controllers.tenant.baseWorkspaces", List),
        ],
    ),
];

/// The operators of Instances and of their automation.
const INSTANCES: &[Member] = &[(
    "configurations",
    &[
        ("generic.whitelistLabels", "selector", Pairs('&')),
        ("generic.websiteBaseUrl", "controllers.instance.websiteBaseUrl", Same),
        ("generic.instancesAuthUrl", "controllers.instance.instancesAuthUrl", Url),
        ("containerEnvironmentOptions.tag", "controllers.instance.containerImages.tag", Same),
        ("containerEnvironmentOptions.xVncImage", "controllers.instance.containerImages.xVnc", Same),
        (
            "containerEnvironmentOptions.websockifyImage",
            "controllers.instance.containerImages.websockify",
            Same,
        ),
        (
            "containerEnvironmentOptions.contentDownloaderImage",
            "controllers.instance.containerImages.contentDownloader",
            Same,
        ),
        (
            "containerEnvironmentOptions.instmetricsServerEndpoint",
            "controllers.instance.containerImages.instmetricsServerEndpoint",
            Same,
        ),
        ("containerVmSnapshots.kanikoImage", "controllers.snapshot.containerKanikoImg", Same),
        ("privateContainerRegistry.url", "controllers.snapshot.vmRegistry", Url),
        ("privateContainerRegistry.secretName", "controllers.snapshot.vmRegistrySecret", Same),
        ("publicExposure.ipPool", "controllers.publicExposure.ipPool", List),
        ("publicExposure.commonAnnotations", "controllers.publicExposure.commonAnnotations", Pairs(',')),
        ("publicExposure.loadBalancerIPsKey", "controllers.publicExposure.loadBalancerIpsKey", Same),
        ("sharedVolumeOptions.storageClass", "controllers.sharedVolume.storageClass", Same),
        ("monitoring.prometheusURL", "integrations.prometheus.url", Url),
        ("monitoring.queryStep", "integrations.prometheus.queryStep", Duration),
        ("monitoring.queryNginxAvailable", "integrations.prometheus.queries.nginxAvailable", Same),
        ("monitoring.queryBastionSSHAvailable", "integrations.prometheus.queries.bastionSshAvailable", Same),
        ("monitoring.queryWebSSHAvailable", "integrations.prometheus.queries.webSshAvailable", Same),
        ("monitoring.queryNginxData", "integrations.prometheus.queries.nginxData", Query),
        ("monitoring.queryBastionSSHData", "integrations.prometheus.queries.bastionSshData", Query),
        ("monitoring.queryWebSSHData", "integrations.prometheus.queries.webSshData", Query),
        ("mailTemplateDir", "integrations.mail.templateDir", Same),
        ("mailConfigDir", "integrations.mail.configDir", Same),
        ("automation.enableInstanceTermination", "controllers.termination.enabled", Same),
        ("automation.enableInstanceSubmission", "controllers.submission.enabled", Same),
        ("automation.enableInstanceInactiveTermination", "controllers.inactivity.enabled", Same),
        ("automation.enableInstanceExpiration", "controllers.expiration.enabled", Same),
        ("automation.terminationStatusCheckTimeout", "controllers.termination.statusCheckTimeout", Duration),
        (
            "automation.terminationStatusCheckInterval",
            "controllers.termination.statusCheckInterval",
            Duration,
        ),
        ("automation.inactiveTerminationStatusCheckTimeout", "integrations.prometheus.timeout", Duration),
        ("automation.inactiveTerminationMaxNumberOfAlerts", "controllers.inactivity.maxNumberOfAlerts", Same),
        (
            "automation.inactiveTerminationNotificationInterval",
            "controllers.inactivity.notificationInterval",
            Duration,
        ),
        (
            "automation.expirationNotificationInterval",
            "controllers.expiration.notificationInterval",
            Duration,
        ),
        ("automation.enableInactivityNotifications", "controllers.inactivity.notifications", Same),
        ("automation.enableExpirationNotifications", "controllers.expiration.notifications", Same),
    ],
)];

/// The SSH bastion and its tracker.
const BASTION: &[Member] = &[(
    "configurations",
    &[
        ("sshTrackerInterface", "controllers.sshTracker.interface", Same),
        ("sshTrackerPort", "controllers.sshTracker.port", Same),
        ("sshTrackerSnaplen", "controllers.sshTracker.snaplen", Same),
    ],
)];

/// The exam agent.
const EXAMS: &[Member] = &[
    (
        "configurations",
        &[
            ("targetNamespace", "controllers.examAgent.namespace", Same),
            ("allowedIPs", "controllers.examAgent.allowedIps", List),
        ],
    ),
    ("exposition", &[("basePath", "controllers.examAgent.basePath", Same)]),
];

/// What Instances in containers use.
const INSTANCE_METRICS: &[Member] = &[(
    "configurations",
    &[
        ("runtimeEndpoint", "controllers.instanceMetrics.runtimeEndpoint", Same),
        ("connectionTimeout", "controllers.instanceMetrics.connectionTimeout", Duration),
        ("updatePeriod", "controllers.instanceMetrics.updatePeriod", Duration),
        ("grpcPort", "controllers.instanceMetrics.listen", Port),
    ],
)];

/// The ends of the paths of values that are left out on purpose, and why; nothing is said where there is nothing to do.
pub const LEFT_OUT: [(&str, &str); 16] = [
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
