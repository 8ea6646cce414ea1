//! Restarts, which the annotation [`labels::RESTARTED_AT`] of an Instance requests.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::environment::EnvironmentContext;
use super::plan::Plan;
use crate::api::instance::Instance;
use crate::api::{Kind, Object, labels};
use crate::kinds::{DeploymentKind, VirtualMachineInstanceKind, VirtualMachineKind};
use crate::runtime::clock::rfc3339;
use crate::runtime::plan::{ObjectPatch, Removal};

/// Returns the time of the last requested restart of a running Instance. A time in the future has no effect until it is
/// reached, and a text that is not a time has none. Creation times have whole seconds, so a fraction does not count.
pub fn requested(instance: &Instance, now: Timestamp, plan: &mut Plan) -> Option<Timestamp> {
    let text = instance.annotation(labels::RESTARTED_AT).filter(|_| instance.spec.running)?;
    let time = Timestamp::from_second(text.parse::<Timestamp>().ok()?.as_second()).ok()?;
    if time > now {
        plan.requeue_after(Duration::try_from(time.duration_since(now)).ok()?);
        return None;
    }
    Some(time)
}

/// Plans the restart of a workload that is older than the request. The pod template of a Deployment gets the time, as by
/// `kubectl rollout restart`. A `VirtualMachineInstance` is deleted: KubeVirt, or this loop if there is no
/// `VirtualMachine`, creates the next one.
pub fn plan(context: &EnvironmentContext<'_>, requested: Timestamp, plan: &mut Plan) {
    if let Some(deployment) = context.own::<DeploymentKind>().filter(|object| is_older(object, requested)) {
        let annotations = json!({labels::RESTARTED_AT: rfc3339(requested)});
        let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
        plan.patches.extend(ObjectPatch::of(deployment, &patch));
    }
    let parents = context.own::<VirtualMachineKind>().map(Object::uid);
    let is_ours = |machine: &&Object<VirtualMachineInstanceKind>| {
        let owner = machine.controller_uid();
        owner.is_some_and(|uid| uid == context.observed.instance.uid() || Some(uid) == parents)
    };
    let machine = context.named::<VirtualMachineInstanceKind>().filter(is_ours);
    let outdated = machine.filter(|object| is_older(object, requested));
    plan.remove.extend(outdated.map(|machine| Removal::of(machine, context.component())));
}

fn is_older<T: Kind>(object: &Object<T>, requested: Timestamp) -> bool {
    let created = object.metadata.creation_timestamp.as_ref();
    !object.is_terminating() && created.is_some_and(|created| created.0 < requested)
}
