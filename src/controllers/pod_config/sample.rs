//! The sample Deployment of a `PodConfig`: two pods that get the interfaces, to try them out. A pure function.

use serde_json::{Value, json};

use super::observe::{LABEL, Observed, Settings};
use crate::api::names::{check_label_value, check_object_name};
use crate::api::pod_config::SampleDeployment;
use crate::api::reason;
use crate::controllers::shared::children::Parent;
use crate::kinds::SampleDeploymentKind;
use crate::runtime::component::Component;
use crate::runtime::plan::{Plan, Removal};
use crate::runtime::problem::Problem;

/// The component of the Deployment in plans.
pub const SAMPLE: Component = Component::Part("sample");

/// Plans the sample Deployment: it is made and kept as it should be, or removed when its `PodConfig` does not ask for it any more.
pub fn plan_sample(observed: &Observed, settings: &Settings, plan: &mut Plan) {
    let spec = observed.config.spec.sample_deployment.as_ref().filter(|sample| sample.create);
    let name = spec.map(|sample| sample.name.as_str());
    let others =
        observed.samples.iter().filter(|sample| name != Some(sample.name()) && !sample.is_terminating());
    plan.remove.extend(others.map(|sample| Removal::of(&**sample, SAMPLE)));
    let Some(spec) = spec else { return };
    if let Some(message) = invalid(observed, spec) {
        plan.problems.push(Problem::fault(SAMPLE, reason::INVALID_SAMPLE_DEPLOYMENT, message));
        return;
    }
    if observed.sample.as_ref().is_some_and(|sample| !sample.is_controlled_by(&observed.config)) {
        plan.problems.push(conflict(observed));
        return;
    }
    plan.ensure.push(deployment(observed, settings, &spec.name));
}

/// The problem that another Deployment has the name of the sample.
pub fn conflict(observed: &Observed) -> Problem {
    let name = observed.config.spec.sample_deployment.as_ref().map_or("", |sample| &sample.name);
    let message = format!(
        "Deployment {}/{name} exists and was not made for this PodConfig: it is left alone; choose another \
         spec.sampleDeployment.name",
        observed.config.namespace()
    );
    Problem::fault(SAMPLE, reason::SAMPLE_DEPLOYMENT_CONFLICT, message)
}

/// What is wrong with the name of the sample, or with that of the `PodConfig`.
fn invalid(observed: &Observed, sample: &SampleDeployment) -> Option<String> {
    let config = observed.config.name();
    if sample.name.is_empty() {
        return Some("spec.sampleDeployment.name is empty: write the name of the Deployment".to_owned());
    }
    if let Err(error) = check_object_name(&sample.name) {
        return Some(format!("spec.sampleDeployment.name cannot be that of a Deployment: {error}"));
    }
    check_label_value(config).err().map(|error| {
        format!(
            "no pod can have the label {LABEL} with the name of this PodConfig: {error}; use a shorter name"
        )
    })
}

fn deployment(observed: &Observed, settings: &Settings, name: &str) -> crate::runtime::plan::Desired {
    let config = &observed.config;
    let labels = std::collections::BTreeMap::from([(LABEL.to_owned(), config.name().to_owned())]);
    let existing = observed.sample.as_deref();
    let body = json!({"spec": {
        "replicas": 2,
        "template": {"metadata": {"labels": labels}, "spec": pod(&settings.image)},
    }});
    // It cannot be changed.
    let selector = json!({"spec": {"selector": {"matchLabels": labels}}});
    let parent = Parent::new(config, labels.clone());
    let child = parent.child::<SampleDeploymentKind>(name, &SAMPLE, 1, || body);
    let mut desired = child.existing(existing).enforced().initially(selector).made();
    // One that the store does not hold has lost its label, or has another owner.
    desired.known_by = Some(labels);
    desired.members.clear();
    desired
}

/// The pods: without any privilege, so that they also run where the level `restricted` is enforced.
fn pod(image: &str) -> Value {
    json!({
        "serviceAccountName": "default",
        "automountServiceAccountToken": false,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
            // So that ping works without a capability.
            "sysctls": [{"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}],
        },
        "containers": [{
            "name": "cnf-example",
            "image": image,
            "imagePullPolicy": "Always",
            "command": ["/bin/bash", "-c", "trap 'exit 0' TERM; while true; do sleep 30 & wait $!; done"],
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    })
}
