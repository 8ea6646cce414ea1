//! The plan of a Template: a pure function of what is observed. It writes nothing; its problems are the faults of the
//! Template, and then what keeps its environments from starting.

use super::node_room;
use super::observe::Observed;
use crate::api::environment::{Environment, EnvironmentType};
use crate::api::reason;
use crate::api::resources::Resources;
use crate::api::template_fault::TemplateFault;
use crate::config::LocalVm;
use crate::controllers::shared::environments::refused_image;
use crate::controllers::shared::references::shared_volumes;
use crate::runtime::component::Component;
use crate::runtime::plan::Plan;
use crate::runtime::problem::Problem;

/// The plan of a Template.
pub fn plan(observed: &Observed, config: &LocalVm) -> Plan {
    let (template, spec) = (&observed.template, &observed.template.spec);
    if template.is_terminating() {
        return Plan::default();
    }
    if let Some(fault) = &template.malformed {
        let problem = Problem::fault(
            Component::Whole,
            reason::INVALID_SPEC,
            format!("the Template cannot be read: {fault}"),
        );
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
    let obstacles = spec.environment_list.iter().flat_map(|environment| obstacles(observed, environment));
    let problems = faults.into_iter().map(Problem::from).chain(obstacles).collect();
    Plan { problems, ..Plan::default() }
}

/// Why an environment cannot start on this cluster now.
fn obstacles(observed: &Observed, environment: &Environment) -> Vec<Problem> {
    let name = &environment.name;
    let problem = |reason, message: String| {
        let message = format!("environment {name}: {message}");
        Problem::elsewhere(Component::environment(name), reason, message)
    };
    let mut problems = Vec::new();
    let missing =
        shared_volumes(environment).into_iter().filter(|key| observed.missing_volumes.contains(key));
    problems.extend(missing.map(|key| {
        problem(
            reason::SHARED_VOLUME_NOT_FOUND,
            format!("the SharedVolume {key} that it mounts does not exist"),
        )
    }));
    let class = &environment.storage_class_name;
    if environment.persistent && observed.missing_classes.contains(class) {
        let message = format!("the storage class {class} of its disk does not exist");
        problems.push(problem(reason::STORAGE_CLASS_NOT_FOUND, message));
    }
    let selector = observed.template.spec.node_selector_of(environment);
    let requests = Resources::of(environment).map(|resources| resources.requests());
    let room = requests.ok().and_then(|requests| node_room::missing(&observed.nodes, selector, &requests));
    problems.extend(room.map(|message| problem(reason::NO_NODE, message)));
    problems
}
