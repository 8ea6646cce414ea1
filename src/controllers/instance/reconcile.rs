//! The instance loop.

use std::sync::Arc;

use super::gauges;
use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::instance::InstanceKind;
use crate::api::public_key::canonical;
use crate::config::{Access, AccessMode, InstanceConfig};
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::files::WatchedFile;
use crate::runtime::reconciler::{PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Reconciles Instances: their Services, Ingresses, volumes and workloads.
pub struct InstanceReconciler {
    stores: Arc<Stores>,
}

impl Definition for InstanceReconciler {
    const EVENT_SOURCE: &'static str = "Instance";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = setup.config.controllers.instance.clone();
        let stores = Stores::declare(set, &setup.config.selector, &config);
        setup.files.extend(master_key(&config.webssh_master_key_file, &stores));
        setup.files.extend(client_secret(&config.access, &stores));
        let stores = Arc::new(stores);
        setup.gauges.push(Box::new(gauges::instances(Arc::clone(&stores))));
        Ok((Self { stores }, config))
    }
}

impl Reconciler for InstanceReconciler {
    const NAME: &'static str = "instance";
    type Kind = InstanceKind;
    type Observed = Observed;
    type Settings = InstanceConfig;
    type Effect = ();
    const PLAN: PlanFn<Self> = plan;
    const REPORT: ReportFn<Self> = report;

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }
}

/// The file with the web terminal's public key. Without a file, the web terminal cannot log in.
fn master_key(file: &str, stores: &Stores) -> Option<WatchedFile> {
    let key = "controllers.instance.websshMasterKeyFile";
    let read = |content: &[u8]| {
        let text = std::str::from_utf8(content).ok().filter(|text| canonical(text).is_ok())?;
        Some(text.into())
    };
    let otherwise = "websshMasterKeyFile is no SSH public key; machines are made without it";
    (!file.is_empty()).then(|| stores.master_key().watch(key, file, read, otherwise))
}

/// The file with the secret of the client of the OAuth2 proxies, if Instances have such.
fn client_secret(access: &Access, stores: &Stores) -> Option<WatchedFile> {
    let key = "controllers.instance.access.oauth2Proxy.clientSecretFile";
    let read = |content: &[u8]| {
        let text = std::str::from_utf8(content).ok().map(str::trim).filter(|text| !text.is_empty())?;
        Some(text.into())
    };
    let otherwise = "clientSecretFile has no secret; no OAuth2 proxy is made without it";
    let watch =
        || stores.client_secret().watch(key, &access.oauth2_proxy.client_secret_file, read, otherwise);
    (access.mode == AccessMode::PerInstance).then(watch)
}
