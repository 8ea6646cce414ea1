//! The cause that prevents the Job of a snapshot from starting, or that made it fail: a pure function of its pods.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::observe::Observed;
use crate::api::reason::{self, Reason};
use crate::controllers::shared::waits::passed;
use crate::kinds::{ContainerStatus, Job, PodOfJob};
use crate::runtime::object_events::Told;

/// How long a Job may have no pod, or a pod may not start, before this is reported.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The states of waiting containers that are not errors.
const USUAL: [&str; 4] = ["", "ContainerCreating", "PodInitializing", "CrashLoopBackOff"];
/// The maximum length of a quoted message of the kubelet or of a program, in characters.
const LONGEST: usize = 500;

/// The problem of a Job that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The reason of the condition.
    pub reason: Reason,
    /// The beginning of the message: its subject.
    pub subject: String,
    /// The rest of the message, which may change without news.
    pub detail: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.subject, self.detail)
    }
}

impl Trouble {
    fn new(reason: Reason, subject: String, detail: impl Into<String>) -> Self {
        Self { reason, subject, detail: detail.into() }
    }

    /// Whether events may explain the cause.
    pub fn is_told_by_events(&self) -> bool {
        self.reason == reason::POD_NOT_STARTED || self.reason == reason::WAITING_FOR_POD
    }

    /// Whether the Job waits until an obstacle is removed. A failed container is retried a limited number of times.
    pub fn is_obstacle(&self) -> bool {
        self.reason != reason::CONTAINER_FAILED
    }
}

/// The problem of a Job that has not ended, if any. `secret` is the name of the Secret that its pods mount.
pub fn trouble(observed: &Observed, job: &Job, secret: &str, now: Timestamp) -> Option<Trouble> {
    let waited = waited(observed, job, now);
    let stuck = || alive(observed).find_map(stuck);
    let missing = || {
        let pod = alive(observed).find(|pod| !has_started(pod)).filter(|_| !observed.has_secret)?;
        let subject = format!("pod {} waits for Secret {secret}", pod.name());
        let detail = "it does not exist in this namespace; it holds the login to the registry";
        Some(Trouble::new(reason::SECRET_MISSING, subject, detail))
    };
    let told = observed.events.told();
    let late = || {
        let pod = alive(observed).find(|pod| !has_started(pod) && waited >= PATIENCE)?;
        let otherwise = "see its events, for example about a volume that cannot be mounted";
        let subject = format!("pod {} has not started", pod.name());
        Some(by_event(reason::POD_NOT_STARTED, subject, told, otherwise))
    };
    let no_pod = || {
        let is_late = has_no_pod(observed, job) && waited >= PATIENCE;
        let otherwise = "see its events. A ResourceQuota of the namespace may leave no capacity for it \
                         (controllers.snapshot.pusherMemoryLimit counts against it)";
        let subject = format!("Job {} has no pod", job.name());
        is_late.then(|| by_event(reason::WAITING_FOR_POD, subject, told, otherwise))
    };
    stuck().or_else(missing).or_else(|| failure(observed)).or_else(late).or_else(no_pod)
}

/// The time since the last change: the creation of the Job or a pod, or the end of a container.
pub fn waited(observed: &Observed, job: &Job, now: Timestamp) -> Duration {
    let created = job.metadata.creation_timestamp.iter().map(|created| created.0);
    let pods = alive(observed).filter_map(|pod| Some(pod.metadata.creation_timestamp.as_ref()?.0));
    let ended = alive(observed).flat_map(containers).filter_map(|container| {
        let ended = container.state.terminated.as_ref().or(container.last_state.terminated.as_ref())?;
        Some(ended.finished_at.as_ref()?.0)
    });
    let last = created.chain(pods).chain(ended).max().unwrap_or(now);
    passed(last, now)
}

/// Whether a container of the Job is running.
pub fn is_running(observed: &Observed) -> bool {
    alive(observed).flat_map(containers).any(|container| container.state.running.is_some())
}

/// The latest failed container of all pods.
pub fn failure(observed: &Observed) -> Option<Trouble> {
    let containers =
        observed.job_pods.iter().flat_map(|pod| containers(pod).map(move |container| (pod, container)));
    let ends = containers.flat_map(|(pod, container)| {
        let states = [&container.state, &container.last_state].into_iter();
        states.filter_map(move |state| Some((pod, container, state.terminated.as_ref()?)))
    });
    let failed = ends.filter(|(.., end)| end.exit_code != 0);
    let (pod, container, end) = failed.max_by_key(|(.., end)| end.finished_at.as_ref().map(|time| time.0))?;
    let killed =
        if matches!(end.reason.as_str(), "" | "Error") { String::new() } else { format!(", {}", end.reason) };
    let subject = format!(
        "container {} of pod {} failed (exit code {}{killed})",
        container.name,
        pod.name(),
        end.exit_code
    );
    let said = last_line(&end.message).unwrap_or("it left no message");
    Some(Trouble::new(reason::CONTAINER_FAILED, subject, said))
}

/// The last line of a termination message. If the program wrote none, this is the end of its log.
fn last_line(message: &str) -> Option<&str> {
    message.lines().map(str::trim).rfind(|line| !line.is_empty()).map(shortened)
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(LONGEST).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

/// The pods that have not ended.
fn alive(observed: &Observed) -> impl Iterator<Item = &PodOfJob> {
    let pods = observed.job_pods.iter().map(|pod| &**pod);
    pods.filter(|pod| !pod.is_terminating() && !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed"))
}

/// The containers of a pod, in the order of execution.
fn containers(pod: &PodOfJob) -> impl Iterator<Item = &ContainerStatus> {
    pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses)
}

/// Whether a container of a pod is running, or has run.
fn has_started(pod: &PodOfJob) -> bool {
    let has_run = |container: &ContainerStatus| {
        let (now, before) = (&container.state, &container.last_state);
        now.running.is_some() || now.terminated.is_some() || before.terminated.is_some()
    };
    pod.status.phase == "Running" || containers(pod).any(has_run)
}

/// The obstacle that the scheduler or the kubelet reports for a pod.
fn stuck(pod: &PodOfJob) -> Option<Trouble> {
    let name = pod.name();
    if let Some(condition) = pod.status.conditions.first().filter(|condition| !condition.message.is_empty()) {
        let subject = format!("pod {name} cannot be placed on a node");
        return Some(Trouble::new(reason::POD_UNSCHEDULABLE, subject, shortened(&condition.message)));
    }
    let waiting = containers(pod).find_map(|container| {
        let waiting = container.state.waiting.as_ref()?;
        (!USUAL.contains(&waiting.reason.as_str())).then_some((container, waiting))
    });
    let (container, waiting) = waiting?;
    let is_pull = waiting.reason.contains("Image");
    let what = if is_pull { "its image cannot be pulled" } else { "it cannot be created" };
    let subject = format!("container {} of pod {name} does not start, {what}", container.name);
    let detail = if waiting.message.is_empty() { &waiting.reason } else { &waiting.message };
    Some(Trouble::new(reason::CONTAINER_NOT_STARTED, subject, shortened(detail)))
}

/// The problem with the cause from an event, or with `otherwise` if no event explains it.
fn by_event(reason: Reason, subject: String, told: Option<&Told>, otherwise: &str) -> Trouble {
    match told {
        Some(told) => Trouble::new(reason, format!("{subject}: {}", told.word), shortened(&told.message)),
        None => Trouble::new(reason, subject, otherwise),
    }
}

/// Whether a Job has no pod and had none. A pod that has ended counts, even before the Job has ended.
fn has_no_pod(observed: &Observed, job: &Job) -> bool {
    let status = &job.status;
    let counts = [status.active, status.succeeded, status.failed];
    observed.job_pods.is_empty() && counts.iter().all(|count| count.unwrap_or(0) == 0)
}
