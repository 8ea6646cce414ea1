//! The operators of Instances and of their automation.

use super::Fate::{Key, Left, With};
use super::Form::{Duration, List, Pairs, Query, Same, Url};
use super::{CONCURRENCY, Fate, Row};

const ROUNDS: Fate =
    Left("all Instances are queried together, once per `controllers.inactivity.checkInterval`");
const EXPORTER: Fate = Left("the daemon has its own exporter: `controllers.snapshot.containerExportImg`");
const GATEWAYS: &str = "controllers.instance.gatewayApi.parentRefs";

/// The access to Instances.
pub const ACCESS: &[Row] = &[
    ("generic.whitelistLabels", Key("selector", Pairs('&'))),
    ("generic.websiteBaseUrl", Key("controllers.instance.websiteBaseUrl", Same)),
    ("generic.instancesAuthUrl", Key("controllers.instance.instancesAuthUrl", Url)),
    ("generic.mirrorStorageClass", With("storage.mode, storage.mirrorClass")),
    ("generic.gatewayApiMode", With("controllers.instance.gatewayApi.enabled")),
    ("generic.gatewayApiRefsValues", With(GATEWAYS)),
];

/// The images of containers, below `containerEnvironmentOptions`.
pub const IMAGES: &[Row] = &[
    ("tag", With("controllers.instance.containerImages.tag, controllers.submission.uploaderImage")),
    ("xVncImage", Key("controllers.instance.containerImages.xVnc", Same)),
    ("vncImage", Left("the chart of the operators reads `xVncImage` instead")),
    ("websockifyImage", Key("controllers.instance.containerImages.websockify", Same)),
    ("contentDownloaderImage", With("controllers.instance.containerImages.contentDownloader")),
    ("contentUploaderImage", With("controllers.submission.uploaderImage")),
    (
        "contentToolsImg",
        With(
            "controllers.instance.containerImages.contentDownloader, controllers.submission.uploaderImage, \
             controllers.submission.uploaderArgs",
        ),
    ),
    (
        "instmetricsServerEndpoint",
        Key("controllers.instance.containerImages.instmetricsServerEndpoint", Same),
    ),
];

/// Registries, volumes, addresses, monitoring and mail.
pub const SERVICES: &[Row] = &[
    ("containerVmSnapshots.kanikoImage", Key("controllers.snapshot.containerKanikoImg", Same)),
    ("containerVmSnapshots.exportImage", EXPORTER),
    ("containerVmSnapshots.exportImageTag", EXPORTER),
    ("privateContainerRegistry.url", Key("controllers.snapshot.vmRegistry", Url)),
    ("privateContainerRegistry.secretName", Key("controllers.snapshot.vmRegistrySecret", Same)),
    ("publicExposure.ipPool", Key("controllers.publicExposure.ipPool", List)),
    ("publicExposure.commonAnnotations", Key("controllers.publicExposure.commonAnnotations", Pairs(','))),
    ("publicExposure.commonLabels", Key("controllers.publicExposure.commonLabels", Pairs(','))),
    ("publicExposure.loadBalancerIPsKey", Key("controllers.publicExposure.loadBalancerIpsKey", Same)),
    ("sharedVolumeOptions.storageClass", Key("controllers.sharedVolume.storageClass", Same)),
    ("monitoring.prometheusURL", Key("integrations.prometheus.url", Url)),
    ("monitoring.queryStep", Key("integrations.prometheus.queryStep", Duration)),
    ("monitoring.queryNginxAvailable", Key("integrations.prometheus.queries.nginxAvailable", Same)),
    ("monitoring.queryBastionSSHAvailable", Key("integrations.prometheus.queries.bastionSshAvailable", Same)),
    ("monitoring.queryWebSSHAvailable", Key("integrations.prometheus.queries.webSshAvailable", Same)),
    ("monitoring.queryNginxData", Key("integrations.prometheus.queries.nginxData", Query)),
    ("monitoring.queryBastionSSHData", Key("integrations.prometheus.queries.bastionSshData", Query)),
    ("monitoring.queryWebSSHData", Key("integrations.prometheus.queries.webSshData", Query)),
    ("mailTemplateDir", With("configMaps.mailTemplates, integrations.mail.templateDir")),
    ("mailConfigDir", With("secrets.mailConfig, integrations.mail.configDir")),
];

/// The end of Instances, below `automation`.
pub const AUTOMATION: &[Row] = &[
    ("enableInstanceTermination", Key("controllers.termination.enabled", Same)),
    ("enableInstanceSubmission", Key("controllers.submission.enabled", Same)),
    ("enableInstanceInactiveTermination", Key("controllers.inactivity.enabled", Same)),
    ("enableInstanceExpiration", Key("controllers.expiration.enabled", Same)),
    ("terminationStatusCheckTimeout", Key("controllers.termination.statusCheckTimeout", Duration)),
    ("terminationStatusCheckInterval", Key("controllers.termination.statusCheckInterval", Duration)),
    ("inactiveTerminationStatusCheckTimeout", Key("integrations.prometheus.timeout", Duration)),
    ("inactiveTerminationMaxNumberOfAlerts", Key("controllers.inactivity.maxNumberOfAlerts", Same)),
    ("inactiveTerminationNotificationInterval", Key("controllers.inactivity.notificationInterval", Duration)),
    (
        "inactiveDestructionNotificationInterval",
        Key("controllers.inactivity.destructionNotificationInterval", Duration),
    ),
    ("expirationNotificationInterval", Key("controllers.expiration.notificationInterval", Duration)),
    ("enableInactivityNotifications", Key("controllers.inactivity.notifications", Same)),
    ("enableExpirationNotifications", Key("controllers.expiration.notifications", Same)),
    ("minLastActivityRequeueTime", ROUNDS),
    ("maxLastActivityRequeueTime", ROUNDS),
    ("lastActivityCheckThreshold", ROUNDS),
    ("marginTime", Left("an Instance is reconciled exactly when a step is due")),
];

/// Numbers of workers, and the key of the web terminal.
pub const REST: &[Row] = &[
    ("configurations.maxConcurrentReconciles", CONCURRENCY),
    ("configurations.maxConcurrentShVolReconciles", CONCURRENCY),
    ("configurations.maxAutomationConcurrentReconciles", CONCURRENCY),
    ("configurations.automation.maxConcurrentTerminationReconciles", CONCURRENCY),
    ("configurations.automation.maxConcurrentInactiveTerminationReconciles", CONCURRENCY),
    ("configurations.automation.maxConcurrentExpirationReconciles", CONCURRENCY),
    ("configurations.automation.maxConcurrentSubmissionReconciles", CONCURRENCY),
    ("webssh.masterKey.secretName", With("secrets.webSshMasterKey")),
    ("webssh.masterKey.keyName", With("secrets.webSshMasterKey")),
];
