//! The plan of a Template: a pure function of the observed state. It writes nothing. Its problems are the faults of the
//! Template, followed by the obstacles of its environments.

use super::observe::Observed;
use crate::api::environment::EnvironmentType;
use crate::api::requirements::{Surroundings, VolumeState, obstacles};
use crate::api::template_fault::TemplateFault;
use crate::api::tenancy::is_tenant_namespace;
use crate::api::{GenericRef, reason};
use crate::config::LocalVm;
use crate::controllers::shared::environments::refused_image;
use crate::runtime::component::Component;
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;

/// The plan of a Template.
pub fn plan(observed: &Observed, config: &LocalVm) -> Plan {
    let (template, spec) = (&observed.template, &observed.template.spec);
    if let Some(fault) = &template.malformed {
        let message = format!("the Template cannot be read: {fault}");
        let problem = Problem::fault(Component::Whole, reason::INVALID_SPEC, message);
        return Plan { problems: vec![problem], ..Plan::default() };
    }
    let mut faults = TemplateFault::all(spec);
    let local = spec.environment_list.iter().filter(|environment| {
        let is_local = environment.environment_type == EnvironmentType::LocalVm;
        is_local && TemplateFault::of_local_image(environment).is_none()
    });
    faults.extend(local.filter_map(|environment| refused_image(config, template.namespace(), environment)));
    if let Some(workspace) = &observed.workspace {
        faults.extend(TemplateFault::of_quota(spec, workspace.name(), &workspace.spec.quota));
    }
    let volume = |volume: &GenericRef| observed.volumes.get(volume).cloned().unwrap_or(VolumeState::Missing);
    let around = Surroundings::of_template(&observed.cluster, &volume, observed.has_import_secret);
    let obstacles =
        spec.environment_list.iter().flat_map(|environment| obstacles(spec, environment, &around));
    let outside = missing_workspace(observed).into_iter().chain(obstacles.map(Problem::from));
    let problems = faults.into_iter().map(Problem::from).chain(outside).collect();
    Plan { problems, ..Plan::default() }
}

/// The problem that the Workspace of the Template does not exist. Templates in namespaces of Tenants do not need one.
fn missing_workspace(observed: &Observed) -> Option<Problem> {
    let template = &observed.template;
    let name = &template.spec.workspace_ref.name;
    let is_of_course = !name.is_empty() && !is_tenant_namespace(template.namespace());
    (is_of_course && observed.workspace.is_none()).then(|| {
        let message = format!(
            "Workspace {name}, which the Template belongs to, does not exist: create it, or correct \
             spec.workspace.crownlabs.polito.it/WorkspaceRef"
        );
        Problem::elsewhere(Component::Whole, reason::WORKSPACE_NOT_FOUND, message)
    })
}
