//! The status of a Tenant: a pure function of the state after the plan was carried out, and of the failures.

use super::children::{CLUSTER, Children, MY_DRIVE, PERSONAL, PERSONAL_WORKSPACE, SANDBOX, SECRET};
use super::enrolment::{ENROLMENT, Enrolment};
use super::lifetime::{Presence, presence};
use super::observe::Observed;
use super::plan::wants_own_workspace;
use super::quota::{QUOTA, tenant_quota};
use super::{Effect, Settings};
use crate::api::Kind;
use crate::api::condition::{Condition, ConditionType, ENROLLED, INVALID_PUBLIC_KEYS, MY_DRIVE_READY};
use crate::api::instance::InstanceKind;
use crate::api::public_key::{self, MOST_BYTES, MOST_KEYS};
use crate::api::reason::{self, Reason};
use crate::api::template::TemplateKind;
use crate::api::tenant::{TenantKind, TenantStatus};
use crate::api::workspace::NameCreated;
use crate::controllers::accounts::internal_errors::internal_error;
use crate::controllers::accounts::{KEYCLOAK, Known};
use crate::controllers::shared::children::namespace_status;
use crate::controllers::shared::responsibility::Standing;
use crate::controllers::shared::{problems, switched_off};
use crate::runtime::apply::Failure;
use crate::runtime::component::Component;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::events::EventNote;
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{Counter, Outcome, Reconciled, Report};

/// The name of the personal workspace in the list of failing ones.
const OWN_WORKSPACE: &str = "personal-workspace";
/// The maximum number of keys in a message.
const NAMED_KEYS: usize = 5;

/// The report of a reconcile.
pub fn report(done: &Reconciled<'_, Observed, Settings, Effect>) -> Report<TenantKind> {
    let Reconciled { observed, settings, plan, outcome, now } = *done;
    if observed.standing == Standing::Deselected {
        return Report::unchanged(&observed.tenant);
    }
    let old = &observed.tenant.status;
    let problems = problems::problems(plan, outcome, now, problems::describe);
    let mut status = old.clone();
    account(outcome, &mut status);
    let enrolment = Enrolment::of(observed);
    status.failing_workspaces.clone_from(&enrolment.failing);
    status.personal_namespace = namespace_status(&observed.tenant, observed.namespace());
    status.sandbox_namespace = namespace_status(&observed.tenant, observed.sandbox());
    // A sandbox without its quota is incomplete.
    let children = Children { observed, settings };
    status.sandbox_namespace.created &= children.sandbox_quota().is_own();
    let undecided = presence(observed, settings, now) == Presence::Undecided;
    let refused = problems.iter().any(|problem| problem.component == Component::Whole);
    if !undecided && !refused {
        status.quota = tenant_quota(observed, &enrolment, &settings.config).0.status();
    }
    own_workspace(observed, settings, &problems, &mut status);
    // The Tenant can work without its personal volume.
    let hindering: Vec<Problem> = problems.iter().filter(|problem| !is_wait(problem)).cloned().collect();
    status.ready = hindering.is_empty() && outcome.is_success();
    status.observed_generation = observed.tenant.metadata.generation;
    let has_volume = hindering.len() == problems.len();
    let own = vec![ready(&status, &hindering, undecided, has_volume), enrolled(&problems)];
    let well = "Everything that the Tenant needs is in place";
    let stalled_after = settings.stalled_after;
    status.conditions =
        problems::conditions(&observed.tenant, &old.conditions, own, &problems, well, stalled_after, now);
    let keys = invalid_keys(&observed.tenant.spec.public_keys);
    let generation = observed.tenant.metadata.generation;
    let own: Vec<Observation> = keys.iter().cloned().chain(my_drive(&problems)).collect();
    let is_told = |type_: &ConditionType| own.iter().any(|told| told.type_ == *type_);
    let retired: Vec<ConditionType> =
        [INVALID_PUBLIC_KEYS, MY_DRIVE_READY].into_iter().filter(|type_| !is_told(type_)).collect();
    status.conditions = conditions::merge(&status.conditions, &own, &retired, generation, now);
    let off = settings.off.in_tenant(&observed.tenant.spec);
    switched_off::add(&observed.tenant, &mut status.conditions, &off, now);
    let mut events = problems::events(&old.conditions, &problems);
    events.extend(keys.and_then(|keys| keys_event(old, &keys)));
    let has_changed = old.keycloak.user_confirmed != status.keycloak.user_confirmed;
    Report {
        // Before the address is confirmed, only the account is created. Everything else follows after that.
        requeue_at_once: settings.config.wait_user_verification && has_changed,
        requeue_after: problems::requeue_after(&status.conditions, stalled_after, now),
        counters: counters(plan, outcome),
        ..Report::new(status, events)
    }
}

/// Sets the fields about the account. They stay unchanged if Keycloak could not be read.
fn account(outcome: &Outcome<Known>, status: &mut TenantStatus) {
    let keycloak = &mut status.keycloak;
    let effect = outcome.effects.first();
    if let Some(user) = effect.and_then(|effect| effect.result.as_ref()) {
        keycloak.user_created = NameCreated { created: true, name: user.id.clone() };
        keycloak.user_confirmed = user.confirmed;
        keycloak.action_mail.clone_from(&user.mail);
    }
    keycloak.user_synchronized = effect.is_none_or(|effect| effect.error.is_none());
}

/// The reasons of the metric `tenant_operator_internal_errors_total`.
pub const REASONS: [&str; 12] = [
    "cluster-resources",
    "quota-forge",
    "create-personal-namespace",
    "delete-personal-namespace",
    "handle-personal-workspace",
    "sandbox-resources",
    "mydrive",
    CHECK,
    "labels",
    "workspace-not-exist",
    KEYCLOAK,
    STATUS,
];
/// The reason of a check whether the namespace is empty.
const CHECK: &str = "check-keep-alive";
/// The reason of a status that could not be written.
pub const STATUS: &str = "status";

fn counters(plan: &Plan<Effect>, outcome: &Outcome<Known>) -> Vec<Counter> {
    let reason = |component: &Component| match *component {
        CLUSTER => "cluster-resources",
        QUOTA => "quota-forge",
        PERSONAL if plan.remove.is_empty() => "create-personal-namespace",
        PERSONAL => "delete-personal-namespace",
        PERSONAL_WORKSPACE => "handle-personal-workspace",
        SANDBOX => "sandbox-resources",
        MY_DRIVE | SECRET => "mydrive",
        ENROLMENT => "workspace-not-exist",
        _ => "labels",
    };
    let is_check = |failure: &Failure| [InstanceKind::KIND, TemplateKind::KIND].contains(&failure.kind);
    let failed = |failure| if is_check(failure) { CHECK } else { reason(&failure.component) };
    let planned = plan.problems.iter().filter(|problem| !problem.waiting);
    let reasons =
        planned.map(|problem| reason(&problem.component)).chain(outcome.failures.iter().map(failed));
    let keycloak = outcome.effect_problems().map(|_| KEYCLOAK);
    reasons.chain(keycloak).map(|reason| internal_error("tenant", reason)).collect()
}

/// Sets the fields about the personal workspace. They stay absent for a Tenant that never had one.
fn own_workspace(observed: &Observed, settings: &Settings, problems: &[Problem], status: &mut TenantStatus) {
    let wanted = wants_own_workspace(observed, settings);
    let binding = Children { observed, settings }.templates_binding().is_own();
    if wanted || status.personal_workspace_created.is_some() {
        status.personal_workspace_created = Some(wanted && binding);
    }
    if problems.iter().any(|problem| problem.component == PERSONAL_WORKSPACE) {
        status.failing_workspaces.push(OWN_WORKSPACE.to_owned());
    }
}

/// Whether the problem is a personal volume that waits for its storage or its Job.
fn is_wait(problem: &Problem) -> bool {
    const WAITS: [Reason; 4] = [
        reason::STORAGE_CLASS_NOT_FOUND,
        reason::VOLUME_UNBOUND,
        reason::PROVISIONING,
        reason::MIRROR_UNUSABLE,
    ];
    problem.component == MY_DRIVE && WAITS.contains(&problem.reason)
}

/// The condition `Ready`. `undecided` says that the e-mail address is not confirmed yet, and `has_volume` that the
/// personal volume is not waiting.
fn ready(status: &TenantStatus, problems: &[Problem], undecided: bool, has_volume: bool) -> Observation {
    let state = if !status.ready {
        (reason::PENDING, "The Tenant is being set up")
    } else if undecided {
        (
            reason::AWAITING_VERIFICATION,
            "The account exists; the rest follows when the e-mail address is confirmed",
        )
    } else if !has_volume {
        (
            reason::READY,
            "The Tenant can work, without the personal volume for now: see condition MyDriveReady",
        )
    } else if status.personal_namespace.created {
        (reason::READY, "The Tenant can work")
    } else {
        (reason::INACTIVE, "The personal namespace is created at the next login of the Tenant")
    };
    problems::ready(status.ready, problems, state)
}

/// The condition [`MY_DRIVE_READY`], if the personal volume waits.
fn my_drive(problems: &[Problem]) -> Option<Observation> {
    let problem = problems.iter().find(|problem| [MY_DRIVE, SECRET].contains(&problem.component))?;
    Some(Observation::new(MY_DRIVE_READY, false, problem.reason, &*problem.message))
}

/// The condition [`ENROLLED`].
fn enrolled(problems: &[Problem]) -> Observation {
    let failing = problems.iter().find(|problem| problem.component == ENROLMENT);
    let well = (reason::ENROLLED, "All Workspaces of the Tenant are valid");
    let (reason, message) = failing.map_or(well, |problem| (problem.reason, &problem.message));
    Observation::new(ENROLLED, failing.is_none(), reason, message)
}

/// The condition [`INVALID_PUBLIC_KEYS`], if there are invalid keys.
fn invalid_keys(keys: &[String]) -> Option<Observation> {
    let used = public_key::within_limits(keys);
    let invalid = used.iter().enumerate().filter_map(|(index, key)| {
        Some(format!("spec.publicKeys[{index}] {}", public_key::canonical(key).err()?))
    });
    let mut problems: Vec<String> = invalid.collect();
    let others = problems.len().saturating_sub(NAMED_KEYS);
    problems.truncate(NAMED_KEYS);
    if others > 0 {
        problems.push(format!("{others} more are invalid, too"));
    }
    if keys.len() > used.len() {
        let (number, first) = (keys.len(), used.len());
        problems.push(format!(
            "only the first {first} of {number} keys are used: the limit is {MOST_KEYS} keys and {MOST_BYTES} bytes in total"
        ));
    }
    (!problems.is_empty()).then(|| {
        let message =
            format!("not installed in machines, and rejected by the SSH bastion: {}", problems.join("; "));
        Observation::new(INVALID_PUBLIC_KEYS, true, reason::INVALID_PUBLIC_KEY, message)
    })
}

/// The event about the keys, published when they change.
fn keys_event(old: &TenantStatus, keys: &Observation) -> Option<EventNote> {
    let is_about_them =
        |condition: &Condition| condition.type_ == INVALID_PUBLIC_KEYS && condition.message == keys.message;
    let is_reported = old.conditions.iter().any(is_about_them);
    (!is_reported).then(|| EventNote::warning(reason::INVALID_PUBLIC_KEY, &*keys.message))
}
