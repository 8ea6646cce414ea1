//! The operators of Instances and of their automation.

use super::Fate::{Key, Left, With};
use super::Form::{Duration, List, Pairs, Query, Same, Url};
use super::{CONCURRENCY, Fate, MIRRORS, Row};

const ROUNDS: Fate =
    Left("one round of queries for all Instances each `controllers.inactivity.checkInterval`");
const EXPORTER: Fate =
    Left("the daemon has an exporter of its own: `controllers.snapshot.containerExportImg`");
const GATEWAYS: &str = "controllers.instance.gatewayApi.parentRefs";

pub const ROWS: &[Row] = &[
    ("configurations.generic.whitelistLabels", Key("selector", Pairs('&'))),
    ("configurations.generic.websiteBaseUrl", Key("controllers.instance.websiteBaseUrl", Same)),
    ("configurations.generic.instancesAuthUrl", Key("controllers.instance.instancesAuthUrl", Url)),
    ("configurations.generic.mirrorStorageClass", MIRRORS),
    ("configurations.generic.gatewayApiMode", With("controllers.instance.gatewayApi.enabled")),
    ("configurations.generic.gatewayApiRefsValues", With(GATEWAYS)),
    (
        "configurations.containerEnvironmentOptions.tag",
        With("controllers.instance.containerImages.tag, controllers.submission.uploaderImage"),
    ),
    (
        "configurations.containerEnvironmentOptions.xVncImage",
        Key("controllers.instance.containerImages.xVnc", Same),
    ),
    (
        "configurations.containerEnvironmentOptions.vncImage",
        Left("the chart of the operators reads `xVncImage` instead"),
    ),
    (
        "configurations.containerEnvironmentOptions.websockifyImage",
        Key("controllers.instance.containerImages.websockify", Same),
    ),
    (
        "configurations.containerEnvironmentOptions.contentDownloaderImage",
        With("controllers.instance.containerImages.contentDownloader"),
    ),
    (
        "configurations.containerEnvironmentOptions.contentUploaderImage",
        With("controllers.submission.uploaderImage"),
    ),
    (
        "configurations.containerEnvironmentOptions.contentToolsImg",
        With(
            "controllers.instance.containerImages.contentDownloader, controllers.submission.uploaderImage, controllers.submission.uploaderArgs",
        ),
    ),
    (
        "configurations.containerEnvironmentOptions.instmetricsServerEndpoint",
        Key("controllers.instance.containerImages.instmetricsServerEndpoint", Same),
    ),
    ("configurations.containerVmSnapshots.kanikoImage", Key("controllers.snapshot.containerKanikoImg", Same)),
    ("configurations.containerVmSnapshots.exportImage", EXPORTER),
    ("configurations.containerVmSnapshots.exportImageTag", EXPORTER),
    ("configurations.privateContainerRegistry.url", Key("controllers.snapshot.vmRegistry", Url)),
    (
        "configurations.privateContainerRegistry.secretName",
        Key("controllers.snapshot.vmRegistrySecret", Same),
    ),
    ("configurations.publicExposure.ipPool", Key("controllers.publicExposure.ipPool", List)),
    (
        "configurations.publicExposure.commonAnnotations",
        Key("controllers.publicExposure.commonAnnotations", Pairs(',')),
    ),
    (
        "configurations.publicExposure.commonLabels",
        Key("controllers.publicExposure.commonLabels", Pairs(',')),
    ),
    (
        "configurations.publicExposure.loadBalancerIPsKey",
        Key("controllers.publicExposure.loadBalancerIpsKey", Same),
    ),
    ("configurations.sharedVolumeOptions.storageClass", Key("controllers.sharedVolume.storageClass", Same)),
    ("configurations.monitoring.prometheusURL", Key("integrations.prometheus.url", Url)),
    ("configurations.monitoring.queryStep", Key("integrations.prometheus.queryStep", Duration)),
    (
        "configurations.monitoring.queryNginxAvailable",
        Key("integrations.prometheus.queries.nginxAvailable", Same),
    ),
    (
        "configurations.monitoring.queryBastionSSHAvailable",
        Key("integrations.prometheus.queries.bastionSshAvailable", Same),
    ),
    (
        "configurations.monitoring.queryWebSSHAvailable",
        Key("integrations.prometheus.queries.webSshAvailable", Same),
    ),
    ("configurations.monitoring.queryNginxData", Key("integrations.prometheus.queries.nginxData", Query)),
    (
        "configurations.monitoring.queryBastionSSHData",
        Key("integrations.prometheus.queries.bastionSshData", Query),
    ),
    ("configurations.monitoring.queryWebSSHData", Key("integrations.prometheus.queries.webSshData", Query)),
    ("configurations.mailTemplateDir", With("configMaps.mailTemplates, integrations.mail.templateDir")),
    ("configurations.mailConfigDir", With("secrets.mailConfig, integrations.mail.configDir")),
    ("configurations.automation.enableInstanceTermination", Key("controllers.termination.enabled", Same)),
    ("configurations.automation.enableInstanceSubmission", Key("controllers.submission.enabled", Same)),
    (
        "configurations.automation.enableInstanceInactiveTermination",
        Key("controllers.inactivity.enabled", Same),
    ),
    ("configurations.automation.enableInstanceExpiration", Key("controllers.expiration.enabled", Same)),
    (
        "configurations.automation.terminationStatusCheckTimeout",
        Key("controllers.termination.statusCheckTimeout", Duration),
    ),
    (
        "configurations.automation.terminationStatusCheckInterval",
        Key("controllers.termination.statusCheckInterval", Duration),
    ),
    (
        "configurations.automation.inactiveTerminationStatusCheckTimeout",
        Key("integrations.prometheus.timeout", Duration),
    ),
    (
        "configurations.automation.inactiveTerminationMaxNumberOfAlerts",
        Key("controllers.inactivity.maxNumberOfAlerts", Same),
    ),
    (
        "configurations.automation.inactiveTerminationNotificationInterval",
        Key("controllers.inactivity.notificationInterval", Duration),
    ),
    (
        "configurations.automation.inactiveDestructionNotificationInterval",
        Key("controllers.inactivity.destructionNotificationInterval", Duration),
    ),
    (
        "configurations.automation.expirationNotificationInterval",
        Key("controllers.expiration.notificationInterval", Duration),
    ),
    (
        "configurations.automation.enableInactivityNotifications",
        Key("controllers.inactivity.notifications", Same),
    ),
    (
        "configurations.automation.enableExpirationNotifications",
        Key("controllers.expiration.notifications", Same),
    ),
    ("configurations.automation.minLastActivityRequeueTime", ROUNDS),
    ("configurations.automation.maxLastActivityRequeueTime", ROUNDS),
    ("configurations.automation.lastActivityCheckThreshold", ROUNDS),
    (
        "configurations.automation.marginTime",
        Left("an Instance is looked at when something is due, not a while later"),
    ),
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
