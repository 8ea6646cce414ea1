//! Which changes of an Instance and of its Template matter for its expiration, and what the stores have about it.

use super::observe::Observed;
use crate::api::instance::Instance;
use crate::api::labels;
use crate::api::template::Template;
use crate::controllers::cleanup::mail_log::Mailed;
use crate::controllers::cleanup::stores::{Dependencies, Found};

/// What this loop depends on.
pub struct Dependence;

impl Dependencies for Dependence {
    const EXEMPT: &'static str = labels::EXPIRATION_IGNORE;

    /// Only that it exists: its age is known from then on.
    fn of_instance(_: &Instance) -> impl PartialEq {}

    fn of_template(template: &Template) -> impl PartialEq {
        template.spec.max_age()
    }
}

/// What is known of an Instance: what the stores have, and what is remembered of the mails about it.
pub fn observed(found: Found, mailed: Mailed) -> Observed {
    let Found { instance, template, tenant, managers, is_exempt } = found;
    Observed { instance, template, tenant, managers, mailed, is_exempt }
}
