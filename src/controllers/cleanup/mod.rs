//! The ending of Instances after a time: the code that the inactivity and expiration loops share.
//!
//! | module | content |
//! |---|---|
//! | [`delivery`] | the delivery of mails to Tenants, and to managers where a mail cannot be delivered |
//! | [`ending`] | the ending of an Instance: warnings, deadline, action |
//! | [`mail_log`] | the mails that were accepted, and their times |
//! | [`notifier`] | the mails of a loop, and the gauges about its promises |
//! | [`promise`] | the promise to a Tenant, and the step that is due next |
//! | [`promises`] | the gauges about the promises of a loop |
//! | [`report`] | the condition and the event that report the promise |
//! | [`stores`] | the stores of the loops that end Instances after a time |

#[cfg(test)]
pub mod contract;
pub mod delivery;
pub mod ending;
pub mod mail_log;
pub mod notifier;
pub mod promise;
pub mod promises;
pub mod report;
pub mod stores;
pub mod telemetry;

use super::setup::Setup;
use crate::api::openings::Site;
use crate::config::{Undeliverable, read};

/// The settings of the plans and reports of such a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings<C> {
    /// The configuration of the loop.
    pub config: C,
    /// Where users see their Instances, for the link in mails.
    pub site: Site,
    /// The action if a warning is permanently rejected.
    pub undeliverable: Undeliverable,
}

impl<C> Settings<C> {
    /// The settings of a loop with this configuration.
    pub fn new(setup: &mut Setup<'_>, config: C) -> Self {
        let site = site(setup);
        Self { config, site, undeliverable: *read!(setup.config, integrations.mail.undeliverable) }
    }
}

/// Reads where users see their Instances.
pub fn site(setup: &mut Setup<'_>) -> Site {
    Site {
        dashboard: read!(setup.config, controllers.dashboard.public_url).clone(),
        website: read!(setup.config, controllers.instance.website_base_url).clone(),
    }
}
