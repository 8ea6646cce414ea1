//! What the plan and the report of an Instance's expiration depend on.

use std::sync::Arc;

use derive_more::{AsMut, AsRef};
use jiff::Timestamp;

use super::Settings;
use crate::api::condition::EXPIRING;
use crate::api::instance::Instance;
use crate::api::labels;
use crate::api::lifetime::{Lifetime, LifetimeError};
use crate::api::promise::Promise;
use crate::api::reason;
use crate::api::template::Template;
use crate::api::tenant::Tenant;
use crate::clients::mail::MailKind;
use crate::controllers::cleanup::ending::{Ending, EndingKind};
use crate::controllers::cleanup::mail_log::Mailed;
use crate::controllers::cleanup::promise::{Terms, accepted, later, standing, time};

/// How an Instance is deleted for its age.
const KIND: EndingKind = EndingKind {
    condition: EXPIRING,
    warning: MailKind::ExpirationWarning,
    last: MailKind::Expired,
    warned: reason::EXPIRATION_WARNING,
    ended: reason::EXPIRED,
    action: "the Instance is deleted",
};

/// What is known of an Instance.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Instance.
    #[as_ref(Instance)]
    #[as_mut]
    pub instance: Arc<Instance>,
    /// Its Template; `None` while it does not exist.
    pub template: Option<Arc<Template>>,
    /// Its Tenant; `None` while it does not exist.
    pub tenant: Option<Arc<Tenant>>,
    /// The managers of its course.
    pub managers: Vec<Arc<Tenant>>,
    /// What is remembered of the mails about it.
    pub mailed: Mailed,
    /// Whether an administrator has exempted the namespace.
    pub is_exempt: bool,
}

impl Observed {
    /// The promise as it is stored. A warning of which only the annotations tell counts, too: it is the Go operator's,
    /// or this loop's, which ended before it could write the status. `now` counts as the time of a warning without a
    /// time. One that is later than `now` by more than an interval is none.
    fn promise(&self, terms: &Terms, now: Timestamp) -> Promise {
        let stored = self.instance.status.expiration.as_deref().cloned().unwrap_or_default();
        let stored = self.mailed.accepted(terms, KIND.warning, stored);
        let warned_at = self.instance.annotation(labels::EXPIRY_WARNED_AT);
        let is_warned = warned_at.is_some_and(|text| !text.is_empty())
            || self.instance.annotation(labels::EXPIRY_WARNED).is_some();
        let at = warned_at.and_then(|text| text.parse::<Timestamp>().ok()).unwrap_or(now);
        if stored.warnings > 0 || !is_warned || at > later(now, terms.interval) {
            return stored;
        }
        let witness = if stored.sending.is_some() { stored.witness.clone() } else { "annotation".to_owned() };
        Promise { witness, undeliverable: None, ..accepted(terms, &stored, at) }
    }

    /// The end of the Instance for its age; `None` where it has none. An error where the Template's age cannot be
    /// read: it counts as never.
    pub fn ending(&self, settings: &Settings, now: Timestamp) -> Result<Option<Ending<'_>>, LifetimeError> {
        let Some(template) = self.template.as_ref().filter(|_| !self.is_exempt) else { return Ok(None) };
        let after = Lifetime::parse(template.spec.max_age())?;
        let created = self.instance.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        if after == Lifetime::Never {
            return Ok(None);
        }
        let config = &settings.config;
        let terms = Terms {
            after,
            warnings: u32::from(config.notifications),
            interval: config.notification_interval.get(),
            final_mail: config.notifications,
            mailed: self.mailed.last_mails(&self.instance, KIND.warning, KIND.last),
        };
        let promise = standing(&terms, created, self.promise(&terms, now), now);
        Ok(Some(Ending {
            kind: KIND,
            instance: &self.instance,
            tenant: self.tenant.as_deref(),
            course: &template.spec.workspace_ref.name,
            managers: &self.managers,
            mailed: &self.mailed,
            undeliverable: settings.undeliverable,
            terms,
            since: created,
            promise: Promise { since: time(created), ..promise },
        }))
    }
}
