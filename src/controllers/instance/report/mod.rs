//! The status of an Instance: a pure function of the state observed after the plan was carried out, and of its
//! failures.

use std::time::Duration;

use jiff::Timestamp;

use super::cause::Cause;
use super::environment::EnvironmentContext;
use super::observe::Observed;
use super::plan::Plan;
use super::{events, exposure_status, phase, route_policy};
use crate::api::condition::{Condition, PUBLIC_EXPOSURE_READY, READY, STALLED};
use crate::api::environment::Environment;
use crate::api::instance::{
    EnvironmentStatus, InstanceKind, InstancePhase as Phase, InstanceStatus, StartStep,
};
use crate::api::reason::{self, Reason, Source};
use crate::api::text::Text;
use crate::config::{InstanceConfig, Urls};
use crate::controllers::shared::problems;
use crate::kinds::{Pod, ServiceKind};
use crate::runtime::ObjectKey;
use crate::runtime::clock::go_duration;
use crate::runtime::component::Component;
use crate::runtime::conditions::Observation;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{Measurement, Outcome, Report};

/// The maximum initial ready time that the metric records, in seconds.
const READY_TIME_LIMIT: i64 = 30 * 60;
/// A label that `KubeVirt` adds to the node selectors of its pods. It is left out of the status.
const SCHEDULABLE: &str = "kubevirt.io/schedulable";
/// The cluster address of a Service without one.
const HEADLESS: &str = "None";
/// The reasons of the exposure loop that a load balancer does not serve the public ports.
const OF_BALANCERS: [Reason; 3] =
    [reason::LOAD_BALANCER_REFUSED, reason::LOAD_BALANCER_IGNORED, reason::OTHER_ADDRESS];

/// The report of a reconcile.
pub fn report(
    observed: &Observed,
    config: &InstanceConfig,
    plan: &Plan,
    outcome: &Outcome<()>,
    now: Timestamp,
) -> Report<InstanceKind> {
    let old = &observed.instance.status;
    let problems = problems::problems(plan, outcome, now, events::describe);
    let mut status = old.clone();
    let mut first_ready = Vec::new();
    let mut causes = Vec::new();
    let refused = problems.iter().any(|problem| problem.component == Component::Whole);
    if refused {
        unplanned(observed, &mut status);
    } else {
        let environments = EnvironmentContext::all(observed, config);
        let removed = &observed.validated.removed;
        status.environments = Vec::new();
        for context in &environments {
            let before = before(old, &environments, context.environment);
            let known = !before.initial_ready_time.is_empty();
            let (new, cause) = environment(context, before, &problems, now);
            causes.extend(cause);
            if !known && !new.initial_ready_time.is_empty() {
                first_ready.extend(ready_time(observed, &new.name, age(observed, now)));
            }
            status.environments.push(new);
        }
        let kept = old.environments.iter().filter(|status| removed.contains(&status.name)).cloned();
        status.environments.extend(kept);
        overview(observed, config, &environments, &mut status);
    }
    status.observed_generation = observed.instance.metadata.generation;
    let is_hindered = !problems.is_empty();
    let ready = ready(&status, observed.instance.spec.running, is_hindered, &causes, &old.conditions);
    let ready = with_balancer(observed, ready);
    let stalled = stalled(observed, config, &status.phase, &causes, &ready, now);
    let own = stalled.into_iter().chain([ready]).collect();
    let (instance, after) = (&observed.instance, config.stalled_after.get());
    let well = "All objects of the Instance are up to date";
    status.conditions = problems::conditions(instance, &old.conditions, own, &problems, well, after, now);
    let log = (old.phase != status.phase).then(|| {
        let name = ObjectKey::of(&*observed.instance);
        format!("phase changed: instance={name} from={} to={}", old.phase, status.phase)
    });
    let mut events = events::events(&old.conditions, &problems);
    events.extend(causes.iter().filter_map(|cause| cause.event(&old.conditions, config, now)));
    let requeue_after = problems::requeue_after(&status.conditions, after, now);
    Report { log, measurements: first_ready, requeue_after, ..Report::new(status, events) }
}

/// Sets the phases of an Instance that cannot be planned, for example because its Template was deleted. The workloads of
/// its environments stay, and so do the last known addresses.
fn unplanned(observed: &Observed, status: &mut InstanceStatus) {
    let canonical = observed.canonical();
    let is_single = status.environments.len() == 1;
    for environment in &mut status.environments {
        let classic = || phase::of_name(observed, &canonical).filter(|_| is_single);
        let found = phase::of_name(observed, &canonical.environment(&environment.name)).or_else(classic);
        environment.phase = found.unwrap_or(Phase::CreationLoopBackoff);
        environment.step = StartStep::Unset;
    }
    let phases: Vec<Phase> = status.environments.iter().map(|status| status.phase.clone()).collect();
    status.phase = if phases.is_empty() { Phase::CreationLoopBackoff } else { phase::overall(&phases) };
}

/// The condition [`STALLED`] of an Instance with these causes, if one of them, its phase or its public exposure
/// needs human action.
fn stalled(
    observed: &Observed,
    config: &InstanceConfig,
    phase: &Phase,
    causes: &[Cause],
    ready: &Observation,
    now: Timestamp,
) -> Option<Observation> {
    let old = &observed.instance.status.conditions;
    if let Some(cause) = causes.iter().find(|cause| cause.row.lasting.is_some()) {
        let has_lasted = cause.has_lasted(old, config, now);
        let before = old.iter().find(|condition| condition.type_ == STALLED);
        return Some(Observation::new(STALLED, has_lasted, cause.row.reason, cause.words(before)));
    }
    if *phase == Phase::Failed {
        return Some(Observation { type_: STALLED, holds: Some(true), ..ready.clone() });
    }
    if OF_BALANCERS.contains(&ready.reason) {
        let left = problems::stalls_in(old, ready.reason, config.stalled_after.get(), now);
        return Some(Observation { type_: STALLED, holds: Some(left.is_none()), ..ready.clone() });
    }
    let conflict = exposure_ready(old).filter(|exposure| exposure.reason == *reason::NAME_CONFLICT)?;
    Some(Observation::new(STALLED, true, reason::NAME_CONFLICT, &*conflict.message))
}

/// The condition `Ready` of an Instance whose environments have the condition `ready`. An Instance is not ready if a
/// load balancer does not serve its public ports, although its environments can be used.
fn with_balancer(observed: &Observed, ready: Observation) -> Observation {
    let spec = &observed.instance.spec;
    let is_exposed = spec.public_exposure.as_ref().is_some_and(|exposure| !exposure.ports.is_empty());
    if ready.holds != Some(true) || !spec.running || !is_exposed {
        return ready;
    }
    let stored = exposure_ready(&observed.instance.status.conditions);
    let fault = stored.filter(|exposure| exposure.status == "False").and_then(|exposure| {
        let reason = OF_BALANCERS.into_iter().find(|reason| exposure.reason == **reason)?;
        Some(Observation::new(READY, false, reason, &*exposure.message))
    });
    fault.unwrap_or(ready)
}

/// The condition that the exposure loop writes.
fn exposure_ready(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == PUBLIC_EXPOSURE_READY)
}

/// The previous status of an environment. If the Instance has a single environment, its status is used regardless of
/// its former name.
///
/// `status.initialReadyTime` of an Instance belongs to its first environment. The older Go operator wrote only this
/// field.
fn before(
    old: &InstanceStatus,
    chosen: &[EnvironmentContext<'_>],
    environment: &Environment,
) -> EnvironmentStatus {
    let known = |name: &str| old.environments.iter().find(|status| status.name == name);
    let only = match (old.environments.as_slice(), chosen) {
        ([status], [_]) => Some(status),
        _ => None,
    };
    let found = known(&environment.name).or(only);
    let is_first = match (old.environments.first(), found) {
        (Some(first), found) => found.is_some_and(|found| found.name == first.name),
        (None, _) => chosen.first().is_some_and(|first| first.environment.name == environment.name),
    };
    let mut status = found.cloned().unwrap_or_default();
    if status.initial_ready_time.is_empty() && is_first {
        status.initial_ready_time.clone_from(&old.initial_ready_time);
    }
    status
}

/// The metric `instance_initial_ready_time_second`: the time from the creation of an Instance until an environment was
/// ready for the first time. Times above [`READY_TIME_LIMIT`] are not recorded, because such an Instance was not
/// running at first.
fn ready_time(observed: &Observed, environment: &str, seconds: i64) -> Option<Measurement> {
    let template = observed.template.as_ref()?;
    let found = template.spec.environment_list.iter().find(|found| found.name == environment)?;
    let value = f64::from(i32::try_from(seconds).ok().filter(|_| seconds <= READY_TIME_LIMIT)?);
    Some(Measurement {
        name: "instance_initial_ready_time_second",
        labels: vec![
            ("workspace", template.spec.workspace_ref.name.to_string()),
            ("template", template.name().to_owned()),
            ("environment", environment.to_owned()),
            ("type", found.environment_type.to_string()),
            ("persistent", found.persistent.to_string()),
        ],
        value,
    })
}

/// Sets the fields of the status that describe the Instance as a whole.
fn overview(
    observed: &Observed,
    config: &InstanceConfig,
    contexts: &[EnvironmentContext<'_>],
    status: &mut InstanceStatus,
) {
    let phases: Vec<Phase> = status.environments.iter().map(|status| status.phase.clone()).collect();
    status.phase = phase::overall(&phases);
    let first = status.environments.first().cloned().unwrap_or_default();
    status.ip = first.ip;
    // It is set once, even if another environment becomes the first one later.
    if status.initial_ready_time.is_empty() {
        status.initial_ready_time = first.initial_ready_time;
    }
    status.url = match (status.environments.as_slice(), contexts) {
        ([only], [context]) if context.classic => only.url.clone(),
        // Each environment has its own host, which has no page about the others.
        (several, _) if config.urls == Urls::Host => {
            let opened = several.iter().find(|environment| !environment.url.is_empty());
            opened.map(|environment| environment.url.clone()).unwrap_or_default()
        }
        (several, _) => {
            let gui = several.iter().any(|environment| !environment.url.is_empty());
            let host = contexts.iter().find(|context| context.environment.gui_enabled);
            let host = host.map_or_else(|| config.website_base_url.clone(), EnvironmentContext::common_host);
            if gui { format!("https://{host}/instance/{}/", observed.instance.uid()) } else { String::new() }
        }
    };
    let pod = observed.instance.spec.running.then(|| current_pod(&observed.pods)).flatten();
    status.node_name = pod.and_then(|pod| pod.spec.node_name.as_ref()).map(Text::from).unwrap_or_default();
    status.node_selector = pod.and_then(|pod| pod.spec.node_selector.clone()).unwrap_or_default();
    status.node_selector.remove(SCHEDULABLE);
}

/// The newest pod that has not ended and is not being deleted.
fn current_pod(pods: &[std::sync::Arc<Pod>]) -> Option<&Pod> {
    let has_ended = |pod: &Pod| matches!(pod.status.phase.as_deref(), Some("Failed" | "Succeeded"));
    let pods = pods.iter().map(AsRef::as_ref).filter(|pod: &&Pod| !pod.is_terminating() && !has_ended(pod));
    pods.max_by_key(|pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone()))
}

/// The status of one environment, made from its previous `status`, and the cause of its phase if there is one to
/// report.
fn environment(
    context: &EnvironmentContext<'_>,
    mut status: EnvironmentStatus,
    problems: &[Problem],
    now: Timestamp,
) -> (EnvironmentStatus, Option<Cause>) {
    let observed = context.observed;
    let running = observed.instance.spec.running;
    status.name = Text::from(&context.environment.name);
    let (phase, cause) = exposure_status::judge(context, phased(context, problems), now);
    let conditions = &observed.instance.status.conditions;
    let phase_of = |cause: &Cause| cause.phase(cause.has_lasted(conditions, context.config, now)).cloned();
    status.phase = cause.as_ref().and_then(phase_of).unwrap_or(phase);
    status.step = phase::step(context, &status.phase);
    let service = context.own::<ServiceKind>();
    let address = service.and_then(|service| service.spec.cluster_ip.as_ref());
    // A headless Service of the Go operator with several environments has no address.
    let address = address.filter(|address| *address != HEADLESS);
    status.ip = address.filter(|_| running).map(Text::from).unwrap_or_default();
    if let Some(service) = service {
        status.service = address.map(|_| Text::from(service.name())).unwrap_or_default();
    }
    if !running || !route_policy::is_shown(context) {
        status.url = String::new();
    } else if let Some(url) = context.url() {
        status.url = url;
    }
    status.exposition_accepted = route_policy::is_accepted(context);
    if status.phase == Phase::Ready && status.initial_ready_time.is_empty() {
        status.initial_ready_time =
            go_duration(Duration::from_secs(age(observed, now).unsigned_abs())).into();
    }
    (status, cause)
}

/// The phase of one environment according to its problems and its workload, and the cause why it does not run.
fn phased(context: &EnvironmentContext<'_>, problems: &[Problem]) -> (Phase, Option<Cause>) {
    let observed = context.observed;
    let (running, persistent) = (observed.instance.spec.running, context.environment.persistent);
    let mine: Vec<&Problem> =
        problems.iter().filter(|problem| problem.component == context.component()).collect();
    let has = |reason: Reason| mine.iter().any(|problem| problem.reason == reason);
    if has(reason::QUOTA_EXCEEDED) {
        return (Phase::ResourceQuotaExceeded, None);
    }
    if has(reason::NAME_CONFLICT) || has(reason::ENVIRONMENT_ENFORCEMENT_FAILED) {
        return (Phase::CreationLoopBackoff, None);
    }
    if has(reason::NOT_PERSISTENT) {
        return (Phase::Failed, None);
    }
    let without = if mine.iter().any(|problem| !problem.waiting) {
        Phase::CreationLoopBackoff
    } else if !running && !persistent {
        Phase::Off
    } else {
        // It waits for another object, or has not been created yet.
        Phase::Starting
    };
    let (phase, cause) = phase::of_workload(context).unwrap_or((without, None));
    let on_demand = mine.iter().find(|problem| problem.reason == reason::NODE_ON_DEMAND);
    let cause = cause.map(|cause| match on_demand {
        // Only an autoscaler that adds no node is a cause.
        Some(pool) if cause.row.source == Source::Scheduling => {
            Cause::new(Source::Event, "TriggeredScaleUp", pool.message.clone())
        }
        _ => cause,
    });
    // A problem is the reason why no container starts.
    (phase, cause.filter(|cause| mine.is_empty() || cause.row.reason != reason::POD_NOT_STARTED))
}

/// The condition `Ready` of an Instance. `running` says whether it should run, `is_hindered` whether it has problems.
fn ready(
    status: &InstanceStatus,
    running: bool,
    is_hindered: bool,
    causes: &[Cause],
    old: &[Condition],
) -> Observation {
    // The reason of a condition must not be empty, but the unknown phase is.
    let of_phase = Reason::named(status.phase.as_str()).unwrap_or(reason::UNKNOWN);
    let worst = causes.iter().find(|cause| cause.row.lasting.is_some()).or(causes.first());
    let reason = worst.map_or(of_phase, |cause| cause.row.reason);
    let before = old.iter().find(|condition| condition.type_ == READY);
    let message = match causes {
        [] if is_hindered && status.phase == Phase::Starting => {
            "The environment cannot start yet; see condition Reconciled".to_owned()
        }
        [] => sentence(&status.phase).to_owned(),
        [cause] => cause.words(before).to_owned(),
        causes => causes.iter().map(|cause| &*cause.message).collect::<Vec<_>>().join("; "),
    };
    let wanted = if running { Phase::Ready } else { Phase::Off };
    Observation::new(READY, status.phase == wanted, reason, message)
}

/// The message of the condition `Ready` for a phase.
fn sentence(phase: &Phase) -> &'static str {
    match phase {
        Phase::Importing => "The disk is being filled",
        Phase::Starting => "The environment is starting",
        Phase::ResourceQuotaExceeded => {
            "The resource quota is used up; the environment starts when the quota allows it"
        }
        Phase::Running => "The environment is running but not ready yet",
        Phase::Ready => "The environment can be used",
        Phase::Stopping => "The environment is stopping",
        Phase::Off => "The environment is off",
        Phase::Failed => "The environment has failed",
        Phase::CreationLoopBackoff => "The environment cannot be created; see condition Reconciled",
        _ => "The state of the environment is not known yet",
    }
}

/// The age of the Instance in whole seconds.
fn age(observed: &Observed, now: Timestamp) -> i64 {
    let created = observed.instance.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    now.as_second().saturating_sub(created.as_second()).max(0)
}

#[cfg(test)]
mod tests;
