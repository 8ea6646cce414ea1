//! The input of the plan and the report of an Instance.

use std::collections::BTreeSet;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::api::condition::{Condition, SUBMITTED};
use crate::api::instance::{Automation, Instance, InstancePhase, InstanceStatus};
use crate::api::labels;
use crate::api::names::CanonicalName;
use crate::api::names::label_sized;
use crate::api::template::Template;
use crate::config::Layout;
use crate::controllers::shared::environments::{choose, destination};
use crate::kinds::{Pod, VirtualMachineInstance};
use crate::runtime::children::Children;
use crate::runtime::problem::Problem;

/// Everything that plan and report depend on, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Instance.
    #[as_ref(Instance)]
    #[as_mut]
    pub instance: Arc<Instance>,
    /// Its Template, if it exists.
    pub template: Option<Arc<Template>>,
    /// The problem that the Instance names another Tenant than its namespace belongs to.
    pub foreign_tenant: Option<Problem>,
    /// The names of the workloads and claims that the Instance controls.
    pub workloads: BTreeSet<String>,
    /// The Jobs that the Instance controls, and others that have the names of its own.
    pub children: Children,
    /// The pods of the Instance; those of its Jobs are not among them.
    pub pods: Vec<Arc<Pod>>,
    /// The virtual machines of the Instance that run.
    pub machines: Vec<Arc<VirtualMachineInstance>>,
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
    /// The name of the Job. It becomes a label of its pods, so it is shortened to what a label value allows.
    pub fn job_name(&self, instance: &str) -> String {
        label_sized(&self.claim(instance), "-submitter")
    }

    /// The name of the claim with the content: that of a container, or the disk of a virtual machine.
    pub fn claim(&self, instance: &str) -> String {
        let canonical = CanonicalName::of(instance);
        let long = (!self.environment.is_empty()).then(|| canonical.environment(&self.environment));
        long.unwrap_or(canonical).to_string()
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

    /// Where a status has the attempts and the time of this upload.
    pub fn automation(&self, status: &InstanceStatus) -> Automation {
        if self.environment.is_empty() {
            return status.automation.clone();
        }
        let found = status.environments.iter().find(|known| known.name == self.environment);
        found.map(|found| found.automation.clone()).unwrap_or_default()
    }
}

impl Observed {
    /// The environments that are uploaded, in the order of the Template. Without a Template there are none.
    pub fn uploads(&self) -> Vec<Upload> {
        let environments = self.template.as_ref().map_or(&[][..], |template| &template.spec.environment_list);
        // What is uploaded is there; an older record of attempts is where that of an Instance alone was.
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

    /// What shows that the Instance is not off yet; `None` if it is.
    pub fn activity(&self) -> Option<String> {
        let has_ended = |phase: Option<&str>| matches!(phase, Some("Succeeded" | "Failed"));
        if self.instance.spec.running {
            return Some("it is to run".to_owned());
        }
        if let Some(machine) = self.machines.first() {
            return Some(format!("virtual machine {} runs", machine.name()));
        }
        if let Some(pod) = self.pods.iter().find(|pod| !has_ended(pod.status.phase.as_deref())) {
            return Some(format!("pod {} has not ended", pod.name()));
        }
        match &self.instance.status.phase {
            InstancePhase::Off => None,
            // Nothing was made for it yet.
            InstancePhase::Unset if self.workloads.is_empty() => None,
            InstancePhase::Unset => Some("its phase is not known yet".to_owned()),
            phase => Some(format!("its phase is {phase}")),
        }
    }
}

/// Whether the content of an Instance is to be uploaded.
pub fn is_requested(instance: &Instance) -> bool {
    instance.label(labels::SUBMISSION_REQUESTED) == Some("true")
        && instance.label(labels::SUBMISSION_COMPLETED) != Some("true")
}

/// The condition [`SUBMITTED`] of an Instance.
pub fn stored_condition(instance: &Instance) -> Option<&Condition> {
    instance.status.conditions.iter().find(|condition| condition.type_ == SUBMITTED)
}

/// The condition of a request that has not ended.
pub fn open_request(instance: &Instance) -> Option<&Condition> {
    stored_condition(instance).filter(|condition| condition.status == "Unknown")
}
