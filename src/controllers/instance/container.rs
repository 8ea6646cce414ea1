//! Container environments: the content of the Deployment.

use serde_json::{Value, json};

use super::environment::EnvironmentContext;
use super::exposure::GUI_PORT;
use super::machine::mirror_volume;
use super::mounts::{Mount, Source};
use crate::api::environment::{EnvironmentMode as Mode, EnvironmentType};
use crate::api::labels;
use crate::api::resources::Resources;
use crate::config::InstanceConfig;
use crate::controllers::shared::storage_limit::limit_storage;
use crate::controllers::shared::{pod_security, references};
use crate::kinds::DeploymentKind;
use crate::runtime::merge;

/// The name of the volume with the user's work.
const VOLUME: &str = "persistent";
const DATA_PATH: &str = "/media/data";

/// The replicas of the Deployment: one while the Instance runs, zero while a persistent Instance is stopped.
pub fn replicas(context: &EnvironmentContext<'_>) -> i32 {
    if context.observed.instance.spec.running {
        1
    } else if context.environment.persistent {
        0
    } else {
        // A container without a disk loses its work with its pod, so its pod is kept when the Instance is stopped.
        let existing = context.own::<DeploymentKind>();
        existing.and_then(|deployment| deployment.spec.replicas).unwrap_or(0).min(1)
    }
}

/// The annotation that lists the shared volumes that the pod mounts, which are fixed at creation. A Deployment of the
/// Go operator lacks it. It is derived from the mounts of the pod, regardless of the current Template.
pub fn mounted_volumes(context: &EnvironmentContext<'_>) -> Option<String> {
    let volumes = match context.own::<DeploymentKind>() {
        None => references::shared_volumes(context.environment),
        Some(existing) if existing.annotation(labels::SHARED_VOLUMES).is_some() => return None,
        Some(existing) => references::volumes_in_pods(existing, &context.observed.shared_volumes),
    };
    references::mounted_volumes_annotation(&volumes)
}

/// The spec of the pod.
pub fn pod(context: &EnvironmentContext<'_>, resources: &Resources, mounts: &[Mount]) -> Value {
    let mut containers = Vec::new();
    if context.environment.environment_type == EnvironmentType::Container {
        containers.push(websockify(context));
        containers.push(xvnc(context.config));
    }
    containers.push(application(context, resources, mounts));
    let mut pod = json!({
        "containers": containers,
        "volumes": volumes(context, mounts),
        "securityContext": pod_security::pod(pod_security::USER),
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 10,
    });
    let hostname = match context.environment.mode {
        Mode::Exam => Some("exam"),
        Mode::Exercise => Some("exercise"),
        _ => None,
    };
    merge::apply(
        &mut pod,
        &json!({
            "initContainers": downloader(context).map(|container| [container]),
            "hostname": hostname,
            "nodeSelector": context.node_selector(),
        }),
    );
    if let Some(limit) = context.config.storage_limit() {
        limit_storage(&mut pod, limit);
    }
    pod
}

fn volumes(context: &EnvironmentContext<'_>, mounts: &[Mount]) -> Vec<Value> {
    let work = if context.environment.persistent {
        json!({"name": VOLUME, "persistentVolumeClaim": {"claimName": context.name}})
    } else {
        json!({"name": VOLUME, "emptyDir": {}})
    };
    let mut volumes = vec![work];
    for mount in mounts {
        let volume = match &mount.source {
            Source::Nfs { server, export } => {
                let mut nfs = json!({"server": server, "path": export});
                if mount.read_only {
                    // Kubernetes drops a `false` here.
                    nfs["readOnly"] = true.into();
                }
                json!({"name": mount.volume, "nfs": nfs})
            }
            Source::Mirror => mirror_volume(&mount.volume),
        };
        // A mirror may be mounted at several paths.
        if !volumes.contains(&volume) {
            volumes.push(volume);
        }
    }
    volumes
}

/// The mount of a volume in a container. A mirror is read-only here, because other mounts of it may be writable.
fn mounted(mount: &Mount) -> Value {
    let mut mounted = json!({"name": mount.volume, "mountPath": mount.path});
    if mount.read_only && mount.source == Source::Mirror {
        mounted["readOnly"] = true.into();
    }
    mounted
}

/// A container with our common settings and these additional members; `null` removes a member.
fn container(name: &str, image: &str, resources: &Value, more: &Value) -> Value {
    let mut container = json!({
        "name": name,
        "image": image,
        "resources": resources,
        "securityContext": pod_security::container(),
    });
    merge::apply(&mut container, more);
    container
}

/// Requests and limits of a container: processors and memory.
fn requirements(requests: (&str, &str), limits: (&str, &str)) -> Value {
    let [requests, limits] = [requests, limits].map(|(cpu, memory)| json!({"cpu": cpu, "memory": memory}));
    json!({"requests": requests, "limits": limits})
}

fn port(name: &str, number: u16) -> Value {
    json!({"name": name, "containerPort": number, "protocol": "TCP"})
}

/// A probe of this type.
fn probe(way: &str, of: &Value) -> Value {
    json!({
        "initialDelaySeconds": 10, "periodSeconds": 2, "successThreshold": 2, "failureThreshold": 5, way: of,
    })
}

fn resource(name: &str, container: &str, resource: &str, divisor: &str) -> Value {
    let of = json!({"containerName": container, "resource": resource, "divisor": divisor});
    json!({"name": name, "valueFrom": {"resourceFieldRef": of}})
}

/// The sidecar that shows the desktop in a browser.
fn websockify(context: &EnvironmentContext<'_>) -> Value {
    let (images, app) = (&context.config.container_images, &context.environment.name);
    let more = json!({
        "args": [
            "--http-addr=:6080",
            format!("--base-path={}", context.base_path()),
            "--metrics-addr=:9090",
            format!("--show-controls={}", !context.environment.disable_controls),
            format!("--instmetrics-server-endpoint={}", images.instmetrics_server_endpoint),
            "--pod-name=$(POD_NAME)",
            "--cpu-limit=$(APP_CPU_LIMITS)",
            "--memory-limit=$(APP_MEM_LIMITS)",
        ],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            resource("APP_CPU_LIMITS", app, "limits.cpu", "1m"),
            resource("APP_MEM_LIMITS", app, "limits.memory", "0"),
        ],
        "ports": [port("gui", GUI_PORT), port("metrics", 9090)],
        "readinessProbe": probe("httpGet", &json!({"path": "/healthz", "port": "gui"})),
    });
    let image = format!("{}:{}", images.websockify, images.tag);
    container("websockify", &image, &requirements(("10m", "30Mi"), ("100m", "100Mi")), &more)
}

/// The sidecar that draws the desktop.
fn xvnc(config: &InstanceConfig) -> Value {
    let image = format!("{}:{}", config.container_images.x_vnc, config.container_images.tag);
    let more = json!({
        "ports": [port("xvnc", 5900)],
        "readinessProbe": probe("tcpSocket", &json!({"port": "xvnc"})),
    });
    container("xvnc", &image, &requirements(("50m", "200Mi"), ("250m", "600Mi")), &more)
}

/// The main container, which the Template specifies.
fn application(context: &EnvironmentContext<'_>, resources: &Resources, mounts: &[Mount]) -> Value {
    let environment = context.environment;
    let options = environment.container_startup_options.as_ref();
    let name = &environment.name;
    let mut env = vec![
        resource("CROWNLABS_CPU_REQUESTS", name, "requests.cpu", "0"),
        resource("CROWNLABS_CPU_LIMITS", name, "limits.cpu", "0"),
    ];
    let content_path = options.map(|options| options.content_path.as_str()).filter(|path| !path.is_empty());
    let work_path = content_path.unwrap_or(DATA_PATH);
    let mut volume_mounts = vec![json!({"name": VOLUME, "mountPath": work_path})];
    volume_mounts.extend(mounts.iter().map(mounted));
    let mut more = json!({
        "args": options.map(|options| &options.startup_args).filter(|args| !args.is_empty()),
        "workingDir": options.is_some_and(|options| options.enforce_workdir).then_some(work_path),
        "volumeMounts": volume_mounts,
    });
    if environment.environment_type == EnvironmentType::Standalone {
        env.push(json!({"name": "CROWNLABS_BASE_PATH", "value": context.base_path()}));
        env.push(json!({"name": "CROWNLABS_LISTEN_PORT", "value": GUI_PORT.to_string()}));
        more["ports"] = json!([port("gui", GUI_PORT)]);
        let path = if environment.rewrite_url { "/".to_owned() } else { context.base_path() };
        more["readinessProbe"] = probe("httpGet", &json!({"path": path, "port": "gui"}));
    }
    more["env"] = env.into();
    container(name, &environment.image, &resources.to_json(), &more)
}

/// The init container that downloads the content of the Instance or its Template; `None` if there is no content.
fn downloader(context: &EnvironmentContext<'_>) -> Option<Value> {
    let environments = context.observed.environments();
    let first = environments.first().is_some_and(|first| first.name == context.environment.name);
    let origin = context.observed.instance.spec.content_origin(context.environment, first);
    if origin.is_empty() {
        return None;
    }
    let images = &context.config.container_images;
    let more = json!({
        "env": [
            {"name": "SOURCE_ARCHIVE", "value": origin},
            {"name": "DESTINATION_PATH", "value": DATA_PATH},
        ],
        "volumeMounts": [{"name": VOLUME, "mountPath": DATA_PATH}],
    });
    let image = format!("{}:{}", images.content_downloader, images.tag);
    Some(container("content-downloader", &image, &requirements(("500m", "256Mi"), ("1", "1Gi")), &more))
}
