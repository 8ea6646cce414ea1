//! The pods of the Jobs that a loop creates.

use std::sync::Arc;

use crate::api::Kind;
use crate::kinds::{JobKind, PodOfJobKind};
use crate::runtime::store::{ByController, Store};
use crate::runtime::store_set::{Declaration, enqueue_controller};

/// Completes the declaration of the pods of Jobs. A change adds the object of kind `O` that controls the Job.
pub fn pods_of_jobs<O: Kind>(
    pods: Declaration<'_, '_, PodOfJobKind>,
    jobs: &Arc<Store<JobKind>>,
) -> Arc<Store<PodOfJobKind>> {
    let jobs = Arc::clone(jobs);
    let pods = pods.index::<ByController>().on_change(move |change, queue| {
        let Some(pod) = change.object() else { return };
        let owner = pod.metadata.controller().filter(|owner| owner.kind == JobKind::KIND);
        if let Some(job) = owner.and_then(|owner| jobs.get(pod.namespace(), &owner.name)) {
            enqueue_controller::<O>(&job.metadata, queue);
        }
    });
    pods.get()
}
