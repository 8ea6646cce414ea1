//! Tests of the plan and the report of inactivity.

mod contract;
mod destruction;
mod kept;
mod table;
mod withdrawal;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::Settings;
use super::observe::{Observed, RoundResult};
use super::plan::plan;
use super::report::report;
use crate::api::condition::INACTIVE;
use crate::api::instance::Instance;
use crate::api::openings::Site;
use crate::api::template::Template;
use crate::api::tenant::Tenant;
use crate::clients::mail::MailKind;
use crate::config::{ConfigDuration, InactivityConfig, Undeliverable};
use crate::controllers::cleanup::contract::{INTERVAL, MAX};
use crate::controllers::cleanup::ending::Effect;
use crate::controllers::cleanup::mail_log::Mailed;
use crate::controllers::cleanup::stores::Candidate;
use crate::controllers::shared::fixtures::running_instance;
use crate::fixtures::at;
use crate::runtime::reconciler::Outcome;

fn settings() -> Settings {
    let config = InactivityConfig {
        max_number_of_alerts: MAX,
        notification_interval: ConfigDuration::from_secs(INTERVAL.unsigned_abs()),
        ..InactivityConfig::default()
    };
    let site = Site { dashboard: String::new(), website: "crownlabs.example.com".to_owned() };
    Settings { config, site, undeliverable: Undeliverable::Keep }
}

fn template(idle: &str, persistent: bool) -> Template {
    serde_json::from_value(json!({
        "metadata": {"name": "vm", "namespace": "workspace-tea"},
        "spec": {"inactivityTimeout": idle, "environmentList": [{"name": "vm", "persistent": persistent}]},
    }))
    .expect("a Template")
}

fn tenant() -> Tenant {
    serde_json::from_value(json!({"metadata": {"name": "ada"}, "spec": {"email": "ada@example.org"}}))
        .expect("a Tenant")
}
