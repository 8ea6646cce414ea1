//! What the plan and the report of an Instance's expiration depend on.

use std::sync::Arc;

use derive_more::AsRef;
use jiff::Timestamp;

use super::Settings;
use crate::api::instance::Instance;
use crate::api::labels;
use crate::api::lifetime::{Lifetime, LifetimeError};
use crate::api::promise::Promise;
use crate::api::template::Template;
use crate::api::tenant::Tenant;
use crate::clients::mail::MailKind;
use crate::controllers::shared::ending::{Ending, Way};
use crate::controllers::shared::promise::{Terms, time, withdrawn};

/// The condition: whether the Instance is about to be deleted for its age.
pub const EXPIRING: &str = "Expiring";

/// The way to the end.
const WAY: Way = Way {
    condition: EXPIRING,
    warning: MailKind::ExpirationWarning,
    last: MailKind::Expired,
    warned: "ExpirationWarning",
    ended: "Expired",
    action: "the Instance is deleted",
};

/// What is known of an Instance.
#[derive(Debug, Clone, AsRef)]
pub struct Observed {
    /// The Instance.
    #[as_ref(Instance)]
    pub instance: Arc<Instance>,
    /// Its Template; `None` while it does not exist.
    pub template: Option<Arc<Template>>,
    /// Its Tenant; `None` while it does not exist.
    pub tenant: Option<Arc<Tenant>>,
    /// Whether an administrator has exempted the namespace.
    pub is_exempt: bool,
}

impl Observed {
    /// The promise as it is stored; where there is none, the one that the annotations of the Go operator make.
    /// `now` counts as the time of a warning without a time.
    pub fn promise(&self, now: Timestamp) -> Promise {
        if let Some(stored) = &self.instance.status.expiration {
            return (**stored).clone();
        }
        let warned_at = self.instance.annotation(labels::EXPIRY_WARNED_AT);
        let at = warned_at.and_then(|text| text.parse::<Timestamp>().ok());
        if warned_at.is_none_or(str::is_empty) && self.instance.annotation(labels::EXPIRY_WARNED).is_none() {
            return Promise::default();
        }
        let at = at.map_or(now, |at| at.min(now));
        Promise {
            warnings: 1,
            last_warning: time(at),
            witness: "annotation".to_owned(),
            ..Promise::default()
        }
    }

    /// The end of the Instance for its age; `None` where it has none. An error where the Template's age cannot be
    /// read: it counts as never.
    pub fn ending(&self, settings: &Settings, now: Timestamp) -> Result<Option<Ending<'_>>, LifetimeError> {
        let Some(template) = self.template.as_ref().filter(|_| !self.is_exempt) else { return Ok(None) };
        let after = Lifetime::parse(template.spec.max_age())?;
        let created = self.instance.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        let Lifetime::After(age) = after else { return Ok(None) };
        let stored = self.promise(now);
        let config = &settings.config;
        let is_overdue = now >= crate::controllers::shared::promise::later(created, age);
        let promise = if is_overdue { stored } else { withdrawn(&stored) };
        Ok(Some(Ending {
            way: WAY,
            instance: &self.instance,
            tenant: self.tenant.as_deref(),
            terms: Terms {
                after,
                warnings: u32::from(config.notifications),
                interval: config.notification_interval.get(),
                final_mail: config.notifications,
            },
            since: created,
            promise: Promise { since: time(created), ..promise },
        }))
    }
}
