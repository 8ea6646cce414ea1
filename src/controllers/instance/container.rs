//! Container environments: the Deployment, and the `PersistentVolumeClaim` of a persistent one.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DeploymentSpec, DeploymentStrategy};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource, HTTPGetAction,
    NFSVolumeSource, ObjectFieldSelector, PersistentVolumeClaimVolumeSource, PodSecurityContext, PodSpec,
    PodTemplateSpec, Probe, ResourceFieldSelector, ResourceRequirements, SeccompProfile, SecurityContext,
    TCPSocketAction, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use super::environment::{EnvironmentContext, wave};
use super::exposure::GUI_PORT;
use super::mounts::Mount;
use super::observe::Observed;
use super::resources::Resources;
use crate::api::environment::{EnvironmentMode as Mode, EnvironmentType};
use crate::api::labels;
use crate::config::InstanceConfig;
use crate::controllers::shared::references;
use crate::kinds::{DeploymentKind, PersistentVolumeClaimKind};
use crate::runtime::plan::{Desired, KindInfo, Manifest};

/// User and group of all containers.
const USER: i64 = 1010;
/// The name of the volume with the user's work.
const VOLUME: &str = "persistent";
const DATA_PATH: &str = "/media/data";
/// The resource that stands for the disk of a node: what containers write, their logs, and volumes of type `emptyDir`.
const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

/// The `PersistentVolumeClaim` of a persistent environment. `disk` is its size.
pub fn claim(observed: &Observed, context: &EnvironmentContext<'_>, disk: &str) -> Desired {
    let labels = context.labels();
    let kind = KindInfo::of::<PersistentVolumeClaimKind>();
    let exists = observed.own(&observed.children.claims, &context.name).is_some();
    let build = || {
        let mut spec = json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": disk}},
        });
        let class = &context.environment.storage_class_name;
        if let (false, Some(spec)) = (class.is_empty(), spec.as_object_mut()) {
            spec.insert("storageClassName".to_owned(), class.as_str().into());
        }
        Manifest::new(kind, &context.metadata(&context.name, &labels), &json!({"spec": spec}))
    };
    context.desired(kind, &context.name, wave::DEPENDENCIES, (!exists).then(build))
}

/// The replicas of the Deployment: one while the Instance runs; none while a persistent one is stopped.
fn replicas(observed: &Observed, context: &EnvironmentContext<'_>) -> i32 {
    let existing = observed.own(&observed.children.deployments, &context.name);
    if observed.instance.spec.running {
        1
    } else if context.environment.persistent {
        0
    } else {
        // A container without a disk loses its work with its pod: when it is stopped, its pod is kept.
        existing.and_then(|deployment| deployment.spec.replicas).unwrap_or(0).min(1)
    }
}

/// The Deployment. `built` are the resources and mounts of a new one; `None` if it exists.
pub fn deployment(
    observed: &Observed,
    config: &InstanceConfig,
    context: &EnvironmentContext<'_>,
    built: Option<(&Resources, &[Mount])>,
) -> Desired {
    let (labels, replicas) = (context.labels(), replicas(observed, context));
    let kind = KindInfo::of::<DeploymentKind>();
    let annotations = note(observed, context).map(|note| (labels::SHARED_VOLUMES.to_owned(), note));
    let manifest = built.map(|(resources, mounts)| {
        let spec = DeploymentSpec {
            replicas: Some(replicas),
            selector: LabelSelector { match_labels: Some(context.selector()), match_expressions: None },
            strategy: Some(DeploymentStrategy { type_: Some("Recreate".to_owned()), rolling_update: None }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(context.selector()), ..ObjectMeta::default() }),
                spec: Some(pod(observed, config, context, resources, mounts)),
            },
            ..DeploymentSpec::default()
        };
        let mut metadata = context.metadata(&context.name, &labels);
        metadata.annotations = annotations.clone().map(|note| [note].into());
        Manifest::new(kind, &metadata, &json!({"spec": spec}))
    });
    Desired {
        annotations: annotations.into_iter().map(|(key, note)| (key, Some(note))).collect(),
        fields: json!({"spec": {"replicas": replicas}}),
        ..context.desired(kind, &context.name, wave::WORKLOAD, manifest)
    }
}

/// The annotation that lists the shared volumes which the pod mounts; these are fixed at creation. A Deployment
/// that the Go operator made has none: it gets it from what its pod mounts, whatever the Template has by now.
fn note(observed: &Observed, context: &EnvironmentContext<'_>) -> Option<String> {
    let volumes = match observed.own(&observed.children.deployments, &context.name) {
        None => references::shared_volumes(context.environment),
        Some(existing) if existing.annotation(labels::SHARED_VOLUMES).is_some() => return None,
        Some(existing) => references::volumes_in_pods(existing, &observed.shared_volumes),
    };
    references::mounted_volumes_annotation(&volumes)
}

fn pod(
    observed: &Observed,
    config: &InstanceConfig,
    context: &EnvironmentContext<'_>,
    resources: &Resources,
    mounts: &[Mount],
) -> PodSpec {
    let mut containers = Vec::new();
    if context.environment.environment_type == EnvironmentType::Container {
        containers.push(websockify(config, context));
        containers.push(xvnc(config));
    }
    containers.push(application(context, resources, mounts));
    let mut init_containers = downloader(observed, config, context).map(|container| vec![container]);
    if let Some(limit) = config.storage_limit() {
        let all = containers.iter_mut().chain(init_containers.iter_mut().flatten());
        all.for_each(|container| limit_storage(container, limit));
    }
    PodSpec {
        init_containers,
        containers,
        volumes: Some(volumes(config, context, mounts)),
        security_context: Some(PodSecurityContext {
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            fs_group: Some(USER),
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(10),
        hostname: match context.environment.mode {
            Mode::Exam => Some("exam".to_owned()),
            Mode::Exercise => Some("exercise".to_owned()),
            _ => None,
        },
        node_selector: context.node_selector().filter(|selector| !selector.is_empty()),
        ..PodSpec::default()
    }
}

/// Limits how much of the disk of its node a container may use. Nothing is requested: a request counts for the scheduler, and
/// Kubernetes takes one that is absent to be the limit. What the Template says counts before.
fn limit_storage(container: &mut Container, limit: &str) {
    let resources = container.resources.get_or_insert_default();
    for (amounts, amount) in [(&mut resources.limits, limit), (&mut resources.requests, "0")] {
        let amounts = amounts.get_or_insert_default();
        amounts.entry(EPHEMERAL_STORAGE.to_owned()).or_insert_with(|| WireQuantity(amount.to_owned()));
    }
}

fn volumes(config: &InstanceConfig, context: &EnvironmentContext<'_>, mounts: &[Mount]) -> Vec<Volume> {
    let mut work = Volume { name: VOLUME.to_owned(), ..Volume::default() };
    if context.environment.persistent {
        let source =
            PersistentVolumeClaimVolumeSource { claim_name: context.name.to_string(), read_only: None };
        work.persistent_volume_claim = Some(source);
    } else {
        let size_limit = config.storage_limit().map(|limit| WireQuantity(limit.to_owned()));
        work.empty_dir = Some(EmptyDirVolumeSource { size_limit, ..EmptyDirVolumeSource::default() });
    }
    let network = mounts.iter().map(|mount| Volume {
        name: mount.volume.clone(),
        nfs: Some(NFSVolumeSource {
            server: mount.server.clone(),
            path: mount.export.clone(),
            // Kubernetes drops a `false` here.
            read_only: mount.read_only.then_some(true),
        }),
        ..Volume::default()
    });
    std::iter::once(work).chain(network).collect()
}

/// A container with the settings that all our containers have.
fn container(name: &str, image: String, resources: ResourceRequirements) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(image),
        resources: Some(resources),
        security_context: Some(SecurityContext {
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            privileged: Some(false),
            allow_privilege_escalation: Some(false),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn requirements(requests: (&str, &str), limits: (&str, &str)) -> ResourceRequirements {
    let map = |(cpu, memory): (&str, &str)| {
        Some(BTreeMap::from([
            ("cpu".to_owned(), WireQuantity(cpu.to_owned())),
            ("memory".to_owned(), WireQuantity(memory.to_owned())),
        ]))
    };
    ResourceRequirements { requests: map(requests), limits: map(limits), claims: None }
}

fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn probe() -> Probe {
    Probe {
        initial_delay_seconds: Some(10),
        period_seconds: Some(2),
        success_threshold: Some(2),
        failure_threshold: Some(5),
        ..Probe::default()
    }
}

fn http_probe(path: &str, port: &str) -> Probe {
    let get = HTTPGetAction {
        path: Some(path.to_owned()),
        port: IntOrString::String(port.to_owned()),
        ..HTTPGetAction::default()
    };
    Probe { http_get: Some(get), ..probe() }
}

fn value(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.into()), value_from: None }
}

fn resource(name: &str, container: &str, resource: &str, divisor: &str) -> EnvVar {
    let source = EnvVarSource {
        resource_field_ref: Some(ResourceFieldSelector {
            container_name: Some(container.to_owned()),
            resource: resource.to_owned(),
            divisor: Some(WireQuantity(divisor.to_owned())),
        }),
        ..EnvVarSource::default()
    };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}

/// The sidecar that shows the desktop in a browser.
fn websockify(config: &InstanceConfig, context: &EnvironmentContext<'_>) -> Container {
    let (images, app) = (&config.container_images, &context.environment.name);
    let pod_name = EnvVarSource {
        field_ref: Some(ObjectFieldSelector { field_path: "metadata.name".to_owned(), api_version: None }),
        ..EnvVarSource::default()
    };
    let args = [
        "--http-addr=:6080".to_owned(),
        format!("--base-path={}", context.base_path()),
        "--metrics-addr=:9090".to_owned(),
        format!("--show-controls={}", !context.environment.disable_controls),
        format!("--instmetrics-server-endpoint={}", images.instmetrics_server_endpoint),
        "--pod-name=$(POD_NAME)".to_owned(),
        "--cpu-limit=$(APP_CPU_LIMITS)".to_owned(),
        "--memory-limit=$(APP_MEM_LIMITS)".to_owned(),
    ];
    Container {
        args: Some(args.to_vec()),
        env: Some(vec![
            EnvVar { name: "POD_NAME".to_owned(), value: None, value_from: Some(pod_name) },
            resource("APP_CPU_LIMITS", app, "limits.cpu", "1m"),
            resource("APP_MEM_LIMITS", app, "limits.memory", "0"),
        ]),
        ports: Some(vec![port("gui", GUI_PORT), port("metrics", 9090)]),
        readiness_probe: Some(http_probe("/healthz", "gui")),
        ..container(
            "websockify",
            format!("{}:{}", images.websockify, images.tag),
            requirements(("10m", "30Mi"), ("100m", "100Mi")),
        )
    }
}

/// The sidecar that draws the desktop.
fn xvnc(config: &InstanceConfig) -> Container {
    let images = &config.container_images;
    let socket = TCPSocketAction { port: IntOrString::String("xvnc".to_owned()), host: None };
    Container {
        ports: Some(vec![port("xvnc", 5900)]),
        readiness_probe: Some(Probe { tcp_socket: Some(socket), ..probe() }),
        ..container(
            "xvnc",
            format!("{}:{}", images.x_vnc, images.tag),
            requirements(("50m", "200Mi"), ("250m", "600Mi")),
        )
    }
}

/// The container that the Template is about.
fn application(context: &EnvironmentContext<'_>, resources: &Resources, mounts: &[Mount]) -> Container {
    let environment = context.environment;
    let options = environment.container_startup_options.as_ref();
    let name = &environment.name;
    let standalone = environment.environment_type == EnvironmentType::Standalone;
    let mut env = vec![
        resource("CROWNLABS_CPU_REQUESTS", name, "requests.cpu", "0"),
        resource("CROWNLABS_CPU_LIMITS", name, "limits.cpu", "0"),
    ];
    if standalone {
        env.push(value("CROWNLABS_BASE_PATH", context.base_path()));
        env.push(value("CROWNLABS_LISTEN_PORT", GUI_PORT.to_string()));
    }
    let content_path = options.map(|options| options.content_path.as_str()).filter(|path| !path.is_empty());
    let work_path = content_path.unwrap_or(DATA_PATH);
    let mount = |name: &str, path: &str| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    };
    let network = mounts.iter().map(|shared| mount(&shared.volume, &shared.path));
    let probe_path = if environment.rewrite_url { "/".to_owned() } else { context.base_path() };
    Container {
        args: options.map(|options| options.startup_args.clone()).filter(|args| !args.is_empty()),
        working_dir: options.is_some_and(|options| options.enforce_workdir).then(|| work_path.to_owned()),
        env: Some(env),
        ports: standalone.then(|| vec![port("gui", GUI_PORT)]),
        readiness_probe: standalone.then(|| http_probe(&probe_path, "gui")),
        volume_mounts: Some(std::iter::once(mount(VOLUME, work_path)).chain(network).collect()),
        ..container(name, environment.image.clone(), resources.container())
    }
}

/// The init container that downloads the content of the Instance or its Template; `None` without such.
fn downloader(
    observed: &Observed,
    config: &InstanceConfig,
    context: &EnvironmentContext<'_>,
) -> Option<Container> {
    let first = observed.environments().first().is_some_and(|first| first.name == context.environment.name);
    let origin = observed.instance.spec.content_origin(context.environment, first);
    if origin.is_empty() {
        return None;
    }
    let images = &config.container_images;
    Some(Container {
        env: Some(vec![value("SOURCE_ARCHIVE", origin), value("DESTINATION_PATH", DATA_PATH)]),
        volume_mounts: Some(vec![VolumeMount {
            name: VOLUME.to_owned(),
            mount_path: DATA_PATH.to_owned(),
            ..VolumeMount::default()
        }]),
        ..container(
            "content-downloader",
            format!("{}:{}", images.content_downloader, images.tag),
            requirements(("500m", "256Mi"), ("1", "1Gi")),
        )
    })
}
