//! All metrics, in the order of the reference. Each is declared next to the code that records it.

use super::process;
use crate::capture::telemetry as capture;
use crate::clients::{cri, keycloak, mail, prometheus};
use crate::controllers::{
    accounts, bastion, cleanup, dashboard, exam_agent, image_list, instance, login, pod_config_node,
    public_exposure, tenant, termination, web_ssh,
};
use crate::runtime::metric::{self, Metric};
use crate::webhook::telemetry as webhook;

/// The metrics of the recorder.
const LISTS: &[&[Metric]] = &[
    process::PROCESS,
    metric::RECONCILES,
    webhook::REVIEWS,
    metric::QUEUES_AND_REQUESTS,
    process::INSTALLATION,
    instance::telemetry::PHASES,
    tenant::telemetry::QUOTAS,
    instance::telemetry::READY,
    public_exposure::telemetry::METRICS,
    webhook::CERTIFICATE,
    cleanup::telemetry::METRICS,
    termination::telemetry::METRICS,
    image_list::telemetry::METRICS,
    pod_config_node::telemetry::METRICS,
    accounts::telemetry::OUTAGES,
    metric::OUTAGES,
    keycloak::telemetry::METRICS,
    mail::telemetry::METRICS,
    prometheus::telemetry::METRICS,
    cri::telemetry::METRICS,
    accounts::telemetry::FAILURES,
    capture::TRACKER,
    dashboard::telemetry::METRICS,
    web_ssh::telemetry::METRICS,
    exam_agent::telemetry::METRICS,
    login::telemetry::METRICS,
    bastion::telemetry::METRICS,
];

/// The metrics of the recorder.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    LISTS.iter().copied().flatten()
}

/// The metrics that are rendered as text instead of recorded.
#[cfg(test)]
pub const RENDERED: &[&[Metric]] = &[
    process::CPU_TIME,
    crate::controllers::pod_config::telemetry::ADDRESSES,
    capture::CONNECTIONS,
    crate::controllers::instance_metrics::telemetry::FAMILIES,
];
