//! The operator of Tenants and Workspaces, in the newest chart of shared volumes and image lists, too.

use super::Fate::{Key, Left, With};
use super::Form::{Duration, Gigabytes, List, Pairs, Same, Url};
use super::{CERTIFICATE, CONCURRENCY, MIRRORS, Row};

pub const ROWS: &[Row] = &[
    ("configurations.targetLabel", Key("selector", Pairs('&'))),
    ("configurations.tenantNamespaceCommonLabels", Key("controllers.tenant.namespaceLabels", Pairs(','))),
    ("configurations.tenantNamespaceKeepAlive", Key("controllers.tenant.keepAlive", Duration)),
    ("configurations.waitUserVerification", Key("controllers.tenant.waitUserVerification", Same)),
    ("configurations.sandboxClusterRole", Key("controllers.tenant.sandboxClusterRole", Same)),
    ("configurations.mydrivePVCsNamespace", Key("controllers.tenant.myDrive.namespace", Same)),
    ("configurations.mydrivePVCsSize", Key("controllers.tenant.myDrive.size", Same)),
    ("configurations.mydrivePVCsStorageClassName", Key("controllers.tenant.myDrive.storageClassName", Same)),
    ("configurations.tenant.resourcecaps.cpu", Key("controllers.tenant.quotaCaps.cpu", Same)),
    ("configurations.tenant.resourcecaps.memory", Key("controllers.tenant.quotaCaps.memory", Gigabytes)),
    ("configurations.tenant.resourcecaps.instances", Key("controllers.tenant.quotaCaps.instances", Same)),
    ("configurations.features.tenant", Key("controllers.tenant.enabled", Same)),
    ("configurations.features.workspace", Key("controllers.workspace.enabled", Same)),
    ("configurations.features.instance", Key("controllers.instance.enabled", Same)),
    ("configurations.features.sharedvolume", Key("controllers.sharedVolume.enabled", Same)),
    ("configurations.features.keycloak", With("integrations.keycloak.enabled")),
    ("configurations.features.webhooks", With("server.webhook.enabled")),
    ("configurations.features.imageList", With("controllers.imageList.enabled")),
    ("configurations.features.pmp", MIRRORS),
    ("configurations.pvcMirrorProvisioner", MIRRORS),
    ("configurations.sharedVolumeOptions.storageClass", Key("controllers.sharedVolume.storageClass", Same)),
    ("configurations.keycloak.url", Key("integrations.keycloak.url", Url)),
    ("configurations.keycloak.realm", Key("integrations.keycloak.realm", Same)),
    ("configurations.keycloak.clientId", Key("integrations.keycloak.clientId", Same)),
    ("configurations.keycloak.clientSecret", With("secrets.keycloak")),
    ("configurations.keycloak.rolesClientId", Key("integrations.keycloak.rolesClientId", Same)),
    ("configurations.keycloak.compatibilityMode", Key("integrations.keycloak.compatibilityMode", Same)),
    ("configurations.imageList.updateInterval", With("controllers.imageList.updateInterval")),
    ("configurations.imageList.registries", With("controllers.imageList.registries")),
    (
        "configurations.imageList.configFile",
        Left("the registries are in the configuration: `controllers.imageList.registries`"),
    ),
    ("configurations.maxConcurrentReconciles", CONCURRENCY),
    ("configurations.maxConcurrentShVolReconciles", CONCURRENCY),
    ("webhook.enableMutating", With("server.webhook.enabled")),
    ("webhook.enableValidating", With("server.webhook.enabled")),
    ("webhook.deployment.webhookBypassGroups", Key("server.webhook.bypassGroups", List)),
    ("webhook.deployment.baseWorkspaces", Key("controllers.tenant.baseWorkspaces", List)),
    ("webhook.deployment.certsMount", CERTIFICATE),
    ("webhook.clusterIssuer", CERTIFICATE),
];
