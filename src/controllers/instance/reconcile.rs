//! The instance loop.

use std::sync::Arc;

use jiff::Timestamp;

use super::gauges;
use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use super::validate::validate;
use crate::api::instance::InstanceKind;
use crate::api::public_key::canonical;
use crate::config::{Access, InstanceConfig, SwitchedOff, file, read};
use crate::controllers::setup::{Definition, Setup};
use crate::controllers::shared::switched_off;
use crate::runtime::ObjectKey;
use crate::runtime::files::{self, WatchedFile};
use crate::runtime::object_events::ObjectEvents;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Reconciles Instances: their Services, Ingresses, volumes and workloads.
pub struct InstanceReconciler {
    stores: Arc<Stores>,
    events: ObjectEvents,
}

/// The settings that plans and reports depend on.
pub struct Settings {
    /// The configuration of the loop.
    config: InstanceConfig,
    /// The fields that the configuration switches off.
    off: SwitchedOff,
}

impl Definition for InstanceReconciler {
    const EVENT_SOURCE: &'static str = "Instance";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = read!(setup.config, controllers.instance).clone();
        let has_exposures = *read!(setup.config, controllers.public_exposure.enabled);
        let (selector, requirements) = (read!(setup.config, selector), setup.config.requirements());
        let namespace = read!(setup.config, leader_election.namespace);
        let storage = read!(setup.config, storage);
        let stores = Stores::declare(set, selector, &config, requirements, has_exposures, storage, namespace);
        setup.files.extend(master_key(&config.webssh_master_key_file, &stores));
        setup.files.extend(client_secret(&config.access, &stores));
        let stores = Arc::new(stores);
        setup.gauges.push(Box::new(gauges::instances(Arc::clone(&stores))));
        let events = ObjectEvents::declare(&setup.events, set);
        Ok((Self { stores, events }, Settings { config, off: setup.config.switched_off() }))
    }

    fn remarks(observed: &Observed, settings: &Settings, _: Timestamp) -> Vec<String> {
        settings.off.in_instance(&observed.instance.spec)
    }
}

impl Reconciler for InstanceReconciler {
    const NAME: &'static str = "instance";
    type Kind = InstanceKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = ();

    fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
        plan(observed, &settings.config, now)
    }

    fn report(done: &Reconciled<'_, Observed, Settings>) -> Report<InstanceKind> {
        let Reconciled { observed, settings, plan, outcome, now, .. } = *done;
        let mut report = report(observed, &settings.config, plan, outcome, now);
        let off = settings.off.in_instance(&observed.instance.spec);
        switched_off::add(&observed.instance, &mut report.status.conditions, &off, now);
        report
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        Some(Observed { events: self.events.of(key), ..self.stores.observe(key)? })
    }

    fn complete(observed: &mut Observed, planned: Option<&Observed>, settings: &Settings) {
        observed.validated = match planned {
            Some(planned) => Arc::clone(&planned.validated),
            None => Arc::new(validate(observed, &settings.config)),
        };
    }

    fn object_events(&self) -> Option<&ObjectEvents> {
        Some(&self.events)
    }
}

/// Watches the file with the web terminal's public key. Without a file, the web terminal cannot log in.
fn master_key(path: &str, stores: &Stores) -> Option<WatchedFile> {
    let key = "controllers.instance.websshMasterKeyFile";
    let parse = |content: &[u8]| {
        let text = file::text(content).map_err(|error| error.to_string())?;
        canonical(text).map(|_| Arc::from(text)).map_err(|error| format!("it {error}"))
    };
    let effect = "Machines are created without this key";
    (!path.is_empty()).then(|| stores.master_key.watch(key, path, parse, effect))
}

/// Watches the file with the client secret of the OAuth2 proxies, if Instances have proxies.
fn client_secret(access: &Access, stores: &Stores) -> Option<WatchedFile> {
    let key = "controllers.instance.access.oauth2Proxy.clientSecretFile";
    let parse = |content: &[u8]| files::secret(content).map(Arc::from);
    let effect = "No OAuth2 proxy is created";
    let path = &access.oauth2_proxy.client_secret_file;
    Some(stores.client_secret.as_ref()?.watch(key, path, parse, effect))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::instance::plan::tests::{environment, observed};
    use crate::runtime::apply::Applied;
    use crate::runtime::reconcile::{Answer, Reconcile, Step};

    #[test]
    fn an_instance_is_validated_once_for_its_plan_and_its_report() {
        let settings = Settings { config: InstanceConfig::classic(), off: SwitchedOff::default() };
        let now = Timestamp::UNIX_EPOCH;
        let with = |name: &str| {
            Answer::Observed(Some(observed(json!([environment(name, "Standalone", json!({}))]))))
        };
        let mut reconcile = Reconcile::<InstanceReconciler>::new(&settings);
        reconcile.answer(with("planned"), now);
        reconcile.answer(Answer::Done, now);
        let Step::Apply(planned, _) = reconcile.step() else { panic!("there is a plan") };
        let validated = Arc::clone(&planned.validated);
        let applied = Applied { is_written: true, ..Applied::default() };
        reconcile.answer(Answer::Applied(applied, Vec::new()), now);
        // The Template has changed meanwhile.
        reconcile.answer(with("changed"), now);
        reconcile.answer(Answer::Done, now);
        let Step::Publish(reported, report) = reconcile.step() else { panic!("there is a report") };
        assert!(Arc::ptr_eq(&reported.validated, &validated));
        let names: Vec<&str> = report.status.environments.iter().map(|found| &*found.name).collect();
        assert_eq!(names, ["planned"]);
    }
}
