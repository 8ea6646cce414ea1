//! The sample Deployment of a `PodConfig`: two pods that get the interfaces, for trying them out. A pure function.

use serde_json::{Value, json};

use super::observe::{LABEL, Observed, Settings};
use crate::api::names::{check_label_value, check_object_name};
use crate::api::pod_config::SampleDeployment;
use crate::api::reason;
use crate::controllers::shared::children::Parent;
use crate::controllers::shared::pod_security;
use crate::kinds::SampleDeploymentKind;
use crate::runtime::component::Component;
use crate::runtime::plan::{Plan, Removal};
use crate::runtime::problem::Problem;

/// The component of the Deployment in plans.
pub const SAMPLE: Component = Component::Part("sample");

/// Plans the sample Deployment. It is created and kept up to date, or removed when its `PodConfig` no longer requests
/// it.
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
        "Deployment {}/{name} exists and was not created for this PodConfig: it is not changed; choose another \
         spec.sampleDeployment.name",
        observed.config.namespace()
    );
    Problem::fault(SAMPLE, reason::SAMPLE_DEPLOYMENT_CONFLICT, message)
}

/// The problem with the name of the sample or of the `PodConfig`, if any.
fn invalid(observed: &Observed, sample: &SampleDeployment) -> Option<String> {
    let config = observed.config.name();
    if sample.name.is_empty() {
        return Some("spec.sampleDeployment.name is empty: write the name of the Deployment".to_owned());
    }
    if let Err(error) = check_object_name(&sample.name) {
        return Some(format!("spec.sampleDeployment.name is not a valid Deployment name: {error}"));
    }
    check_label_value(config).err().map(|error| {
        format!(
            "the name of this PodConfig is not a valid value of the pod label {LABEL}: {error}; use a shorter name"
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
    // The selector is immutable.
    let selector = json!({"spec": {"selector": {"matchLabels": labels}}});
    let parent = Parent::new(config, labels.clone());
    let child = parent.child::<SampleDeploymentKind>(name, &SAMPLE, 1, || body);
    let mut desired = child.existing(existing).enforced().initially(selector).made();
    // A Deployment that is not in the store has lost its label or has another owner.
    desired.known_by = Some(labels);
    desired.members.clear();
    desired
}

/// The pod template. It needs no privileges, so it also runs under the level `restricted`.
fn pod(image: &str) -> Value {
    json!({
        "serviceAccountName": "default",
        "automountServiceAccountToken": false,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 1000,
            "seccompProfile": pod_security::seccomp_profile(),
            // Lets ping work without a capability.
            "sysctls": [{"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}],
        },
        "containers": [{
            "name": "cnf-example",
            "image": image,
            "imagePullPolicy": "Always",
            "command": ["/bin/bash", "-c", "trap 'exit 0' TERM; while true; do sleep 30 & wait $!; done"],
            "securityContext": {
                "allowPrivilegeEscalation": false, "capabilities": pod_security::no_capabilities(),
            },
        }],
    })
}
