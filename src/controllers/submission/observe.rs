//! The input of the plan and the report of an Instance.

use std::collections::BTreeSet;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use super::receipt_mail::Mailing;
use crate::api::condition::{Condition, SUBMITTED};
use crate::api::instance::{Automation, Instance, InstancePhase, InstanceStatus};
use crate::api::names::CanonicalName;
use crate::api::template::Template;
use crate::api::tenant::Tenant;
use crate::api::{labels, parts};
use crate::config::Layout;
use crate::controllers::shared::environments::{choose, destination};
use crate::kinds::{Job, Pod, PodOfJob, VirtualMachineInstance};
use crate::runtime::children::Children;
use crate::runtime::object_events::Events;
use crate::runtime::problem::Problem;

/// The complete input of plan and report, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Instance.
    #[as_ref(Instance)]
    #[as_mut]
    pub instance: Arc<Instance>,
    /// Its Template, if it exists.
    pub template: Option<Arc<Template>>,
    /// The problem if the Instance names a Tenant other than the owner of its namespace.
    pub foreign_tenant: Option<Problem>,
    /// The names of the workloads and claims that the Instance controls.
    pub workloads: BTreeSet<String>,
    /// The Jobs that the Instance controls, and other Jobs with their names.
    pub children: Children,
    /// The events about the Jobs and their pods, if they do not start.
    pub events: Events,
    /// The pods of the Instance, without the pods of its Jobs.
    pub pods: Vec<Arc<Pod>>,
    /// The running virtual machines of the Instance.
    pub machines: Vec<Arc<VirtualMachineInstance>>,
    /// The pods of its Jobs.
    pub job_pods: Vec<Arc<PodOfJob>>,
    /// The Tenant, who gets the receipt; `None` if the Tenant does not exist or if another Tenant owns the namespace.
    pub tenant: Option<Arc<Tenant>>,
    /// The mails with receipts, as the leader remembers them.
    pub mailing: Mailing,
}

/// An environment that is uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The name of the environment; empty if the objects are named after the Instance alone.
    pub environment: String,
    /// The URL that the content is sent to.
    pub destination: String,
}

impl Upload {
    /// The name of the Job. It becomes a label of its pods, so it is shortened to the length of a label value.
    pub fn job_name(&self, instance: &str) -> String {
        self.objects(instance).part(&parts::SUBMITTER)
    }

    /// The name of the claim with the content: the claim of a container, or the disk of a virtual machine.
    pub fn claim(&self, instance: &str) -> String {
        self.objects(instance).to_string()
    }

    /// The name of the objects of the environment.
    fn objects(&self, instance: &str) -> CanonicalName {
        let canonical = CanonicalName::of(instance);
        if self.environment.is_empty() { canonical } else { canonical.environment(&self.environment) }
    }

    /// The name of the archive, without `.zip`.
    pub fn file_name(&self, instance: &str) -> String {
        if self.environment.is_empty() {
            instance.to_owned()
        } else {
            format!("{instance}-{}", self.environment)
        }
    }

    /// The value of the label `component` of the Job.
    pub fn component(&self) -> String {
        let component = labels::COMPONENT_SUBMITTER;
        if self.environment.is_empty() {
            component.to_owned()
        } else {
            format!("{}-{component}", self.environment)
        }
    }

    /// The attempts and the time of this upload in a status.
    pub fn automation(&self, status: &InstanceStatus) -> Automation {
        if self.environment.is_empty() {
            return status.automation.clone();
        }
        let found = status.environments.iter().find(|known| known.name == self.environment);
        found.map(|found| found.automation.clone()).unwrap_or_default()
    }
}

impl Observed {
    /// The environments to upload, in the order of the Template. Empty without a Template.
    pub fn uploads(&self) -> Vec<Upload> {
        let environments = self.template.as_ref().map_or(&[][..], |template| &template.spec.environment_list);
        // An uploaded environment exists already, and `Layout::Classic` finds older records of attempts, which are
        // stored for the whole Instance.
        let (chosen, _) =
            choose(&self.instance, environments, Layout::Classic, |name| self.workloads.contains(name));
        let uploads = chosen.into_iter().filter_map(|chosen| {
            let name = &chosen.environment.name;
            Some(Upload {
                destination: destination(&self.instance, environments, chosen.environment)?.to_owned(),
                environment: if chosen.classic { String::new() } else { name.clone() },
            })
        });
        uploads.collect()
    }

    /// The pods of a Job that have succeeded.
    pub fn succeeded_pods(&self, job: &Job) -> Vec<&PodOfJob> {
        let pods = self.job_pods.iter().map(|pod| &**pod);
        pods.filter(|pod| pod.is_controlled_by(job) && pod.status.phase == "Succeeded").collect()
    }

    /// The evidence that the Instance is not off yet; `None` if it is off.
    pub fn activity(&self) -> Option<String> {
        let has_ended = |phase: Option<&str>| matches!(phase, Some("Succeeded" | "Failed"));
        if self.instance.spec.running {
            return Some("spec.running is true".to_owned());
        }
        if let Some(machine) = self.machines.first() {
            return Some(format!("virtual machine {} runs", machine.name()));
        }
        if let Some(pod) = self.pods.iter().find(|pod| !has_ended(pod.status.phase.as_deref())) {
            return Some(format!("pod {} has not ended", pod.name()));
        }
        match &self.instance.status.phase {
            InstancePhase::Off => None,
            // No objects were created for it yet.
            InstancePhase::Unset if self.workloads.is_empty() => None,
            InstancePhase::Unset => Some("its phase is not known yet".to_owned()),
            phase => Some(format!("its phase is {phase}")),
        }
    }
}

/// Whether an upload of the Instance's content is requested.
pub fn is_requested(instance: &Instance) -> bool {
    instance.label(labels::SUBMISSION_REQUESTED) == Some("true")
        && instance.label(labels::SUBMISSION_COMPLETED) != Some("true")
}

/// The condition [`SUBMITTED`] of an Instance.
pub fn stored_condition(instance: &Instance) -> Option<&Condition> {
    instance.status.conditions.iter().find(|condition| condition.type_ == SUBMITTED)
}

/// The condition of an open request.
pub fn open_request(instance: &Instance) -> Option<&Condition> {
    stored_condition(instance).filter(|condition| condition.status == "Unknown")
}
