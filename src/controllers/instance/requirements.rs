//! The obstacles of an environment, with the reasons and messages of the condition `Ready` of its Template.

use super::environment::EnvironmentContext;
use super::phase;
use crate::api::instance::InstancePhase as Phase;
use crate::api::requirements::{Surroundings, obstacles};
use crate::controllers::shared::references::volume_state;
use crate::kinds::{DataVolumeKind, PersistentVolumeClaimKind};
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;

/// Adds the obstacles of an environment that should run but does not. They are the cause of its other problems, which
/// begin at `first`, so they are inserted before these. The workload is created nevertheless, because an autoscaler
/// adds nodes only for pending pods.
pub fn report<E>(context: &EnvironmentContext<'_>, first: usize, plan: &mut Plan<E>) {
    let observed = context.observed;
    let Some(template) = observed.template.as_ref().filter(|_| observed.instance.spec.running) else {
        return;
    };
    let (phase, cause) = phase::of_workload(context).unzip();
    if matches!(phase, Some(Phase::Ready | Phase::Running | Phase::Stopping)) {
        return;
    }
    let is_hindered = cause.flatten().is_some_and(|cause| cause.row.lasting.is_some());
    let around = Surroundings {
        cluster: &observed.cluster,
        selector: context.node_selector(),
        volume: &|volume| {
            let found = observed.shared_volume(volume).map(AsRef::as_ref);
            volume_state(found, observed.storage())
        },
        has_import_secret: observed.has_import_secret,
        has_disk: has_disk(context),
        has_my_drive: match &observed.mirrors {
            Some(mirrors) => mirrors.my_drive.is_some(),
            None => observed.my_drive.is_some(),
        },
    };
    let found = obstacles(&template.spec, context.environment, &around);
    let certain = found.into_iter().filter(|obstacle| is_hindered || obstacle.stops_start());
    let certain: Vec<Problem> = certain.map(Problem::from).collect();
    // The problems of a workload that cannot be created repeat its obstacles.
    let others = plan.problems.split_off(first).into_iter();
    let others: Vec<Problem> = others.filter(|problem| !certain.contains(problem)).collect();
    plan.problems.extend(certain.into_iter().chain(others));
}

/// Whether the disk of the environment exists and is filled.
fn has_disk(context: &EnvironmentContext<'_>) -> bool {
    if context.is_machine() {
        context.named::<DataVolumeKind>().is_some_and(|disk| disk.status.phase == "Succeeded")
    } else {
        context.own::<PersistentVolumeClaimKind>().is_some_and(|claim| claim.status.phase == "Bound")
    }
}
