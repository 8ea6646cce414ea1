//! The environments of an Instance: its selection from the environments of the Template, the names of their objects,
//! and which of them are uploaded when an exam ends.

use crate::api::environment::Environment;
use crate::api::instance::Instance;
use crate::api::names::CanonicalName;
use crate::api::reason;
use crate::api::template_fault::TemplateFault;
use crate::api::text::Text;
use crate::config::{Layout, LocalVm};

/// An environment of an Instance, and how its objects are named.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'a> {
    /// The environment as the Template specifies it.
    pub environment: &'a Environment,
    /// Whether its objects are named after the Instance only (`<c>`, its canonical name). Otherwise they are named
    /// after the Instance and the environment (`<c>-<environment>`), as always in a Template with several environments.
    /// See [`Layout`].
    pub classic: bool,
}

/// The environments of an Instance, and the names of those that were removed from the Template since. `environments`
/// are the Template's current ones. The environments and their names are fixed when the first objects are created.
/// Otherwise the selectors of an Instance with one environment could match the pods of an environment that is added to
/// the Template later. `has_workload` says whether the Instance has a workload or a disk with this name. If it has
/// none, a single environment gets the `layout`.
pub fn choose<'a>(
    instance: &Instance,
    environments: &'a [Environment],
    layout: Layout,
    has_workload: impl Fn(&str) -> bool,
) -> (Vec<Chosen<'a>>, Vec<Text>) {
    let fixed = &instance.status.environments;
    let canonical = CanonicalName::of(instance.name());
    let suffixed = |environment: &Environment| has_workload(&canonical.environment(&environment.name));
    // The objects are named after an environment that the Template no longer has, so they do not belong to the
    // remaining one.
    let is_gone = |name: &str| has_workload(&canonical.environment(name)) && !has_workload(&canonical);
    let is_left = |only: &Environment| fixed.iter().all(|was| was.name == only.name || !is_gone(&was.name));
    if let [only] = environments
        && fixed.len() <= 1
        && is_left(only)
    {
        // A single environment keeps the names of its existing objects.
        let classic = has_workload(&canonical) || layout == Layout::Classic && !suffixed(only);
        return (vec![Chosen { environment: only, classic }], Vec::new());
    }
    if fixed.is_empty() {
        // An old version of the Go operator created only the first environment.
        if let (Some(first), true) = (environments.first(), has_workload(&canonical)) {
            return (vec![Chosen { environment: first, classic: true }], Vec::new());
        }
        let chosen = environments.iter().map(|environment| Chosen { environment, classic: false });
        return (chosen.collect(), Vec::new());
    }
    let classic = fixed.len() == 1 && has_workload(&canonical);
    let mut chosen = Vec::new();
    let mut removed = Vec::new();
    for status in fixed {
        match environments.iter().find(|environment| status.name == environment.name) {
            Some(environment) => chosen.push(Chosen { environment, classic }),
            None => removed.push(status.name.clone()),
        }
    }
    (chosen, removed)
}

/// The upload destination of an environment's content when an exam ends; `None` if it is not uploaded. Only a
/// persistent environment has content, and the Instance must name a destination. `environments` are the Template's
/// environments.
pub fn destination<'a>(
    instance: &'a Instance,
    environments: &[Environment],
    environment: &Environment,
) -> Option<&'a str> {
    let is_first = environments.first().is_some_and(|first| first.name == environment.name);
    let destination = instance.spec.content_destination(&environment.name, is_first);
    (environment.persistent && !destination.is_empty()).then_some(destination)
}

/// Whether any environment of an Instance is uploaded when its exam ends.
pub fn has_destination(instance: &Instance, environments: &[Environment]) -> bool {
    let fixed = &instance.status.environments;
    let is_ours = |environment: &&Environment| {
        fixed.is_empty()
            || environments.len() == 1
            || fixed.iter().any(|known| known.name == environment.name)
    };
    let mut ours = environments.iter().filter(is_ours);
    ours.any(|environment| destination(instance, environments, environment).is_some())
}

/// The reason why the volume of a `LocalVM` may not be cloned. Only volumes in the namespace of the Template, `own`, or
/// in one of the configured namespaces are allowed.
pub fn refused_image(config: &LocalVm, own: &str, environment: &Environment) -> Option<TemplateFault> {
    if !config.enabled {
        let message = "LocalVM is switched off (controllers.instance.localVm.enabled)";
        return Some(TemplateFault::of(environment, reason::LOCAL_VM_DISABLED, message));
    }
    if let Some(fault) = TemplateFault::of_local_image(environment) {
        return Some(fault);
    }
    let namespace = environment.image.split('/').next().unwrap_or_default();
    let message = format!(
        "volumes of namespace {namespace} may not be cloned; only those of {own}, or of \
         controllers.instance.localVm.namespaces"
    );
    let is_allowed = namespace == own || config.namespaces.iter().any(|allowed| allowed == namespace);
    (!is_allowed).then(|| TemplateFault::of(environment, reason::IMAGE_NOT_ALLOWED, &message))
}
