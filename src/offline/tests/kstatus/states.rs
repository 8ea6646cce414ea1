//! The states of objects, each with the status that kstatus must compute.

use super::*;

/// All states.
pub fn all() -> Vec<State> {
    let all = [
        instances(),
        hindered_instances(),
        volumes(),
        hindered_volumes(),
        snapshots(),
        tenants(),
        workspaces(),
        templates(),
        pod_configs(),
    ];
    all.into_iter().flatten().collect()
}

/// Returns a function that creates states of this object from a description, the cluster, and the expected status.
fn states_of(
    kind: &'static str,
    namespace: &'static str,
    name: &'static str,
) -> impl Fn(&'static str, World, &'static str) -> State {
    move |what, world, expected| State { kind, namespace, name, what, world, expected }
}

fn shared_volume(size: &str) -> Value {
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "SharedVolume",
        "metadata": {"name": "data", "namespace": "workspace-tea"}, "spec": {"prettyName": "Data", "size": size},
    })
}

fn snapshot() -> Value {
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "InstanceSnapshot",
        "metadata": {"name": "s", "namespace": "tenant-ada"},
        "spec": {"instanceRef": {"name": "i"}, "imageName": "image"},
    })
}

fn pod_config(range: &str) -> Value {
    let attachment = json!({"name": "x", "linkType": "veth", "parent": "x", "master": "br0", "cidr": range});
    json!({
        "apiVersion": "podconfig.opdev.io/v1alpha1", "kind": "PodConfig",
        "metadata": {"name": "net", "namespace": "tenant-ada"}, "spec": {"networkAttachments": [attachment]},
    })
}

/// A cluster with an Instance of this Template.
fn of(template: &str) -> World {
    World::with(&[instance(template)]).settle()
}

/// The cluster after another client has changed the spec of an object. The daemon has not reconciled this spec yet.
fn changed(mut world: World, kind: &str, namespace: &str, name: &str, spec: &Value) -> World {
    let mut object = world.object(kind, namespace, name).clone();
    merge::apply(&mut object, &json!({"metadata": {"generation": 2}, "spec": spec}));
    world.offer(object);
    world
}

/// Sets the status of an object of the Instance.
fn with(world: World, kind: &str, status: &Value) -> World {
    world.change(kind, "tenant-ada", "i-main", &json!({"status": status}))
}

/// A cluster with an Instance whose virtual machine is in this state.
fn machine(state: &str) -> World {
    with(of("disk"), "VirtualMachine", &json!({"printableStatus": state}))
}

/// A cluster with an Instance that is ready.
fn ready() -> World {
    with(of("box"), "Deployment", &json!({"readyReplicas": 1}))
}

/// The patch that stops an Instance.
fn stopped() -> Value {
    json!({"metadata": {"generation": 2}, "spec": {"running": false}})
}

fn instances() -> Vec<State> {
    let state = states_of("Instance", "tenant-ada", "i");
    let stop = |world: World| world.change("Instance", "tenant-ada", "i", &stopped());
    let importing = || {
        let disk = json!({"phase": "ImportInProgress", "progress": "50.0%"});
        with(machine("Provisioning"), "DataVolume", &disk)
    };
    let changed = changed(ready(), "Instance", "tenant-ada", "i", &json!({"running": false}));
    vec![
        // An object without a status is current by the rules of kstatus.
        state("not reconciled yet", World::with(&[instance("box")]), "Current"),
        state("its machine has no status yet", machine(""), "InProgress"),
        state("its disk is filled", importing(), "InProgress"),
        state("it starts", of("box"), "InProgress"),
        state("it boots", machine("Running"), "InProgress"),
        state("it is ready", ready(), "Current"),
        state("its spec has changed", changed, "InProgress"),
        state("it stops", stop(machine("Stopping")), "InProgress"),
        state("it is off, as asked", stop(ready()), "Current"),
    ]
}

fn hindered_instances() -> Vec<State> {
    let state = states_of("Instance", "tenant-ada", "i");
    let refused = |message: &str| {
        let condition =
            json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message});
        with(of("box"), "Deployment", &json!({"conditions": [condition]}))
    };
    let missing = || of("ghost").later();
    let late = || {
        let template = course_object("box");
        missing().change("Template", "workspace-tea", "ghost", &json!({"spec": template["spec"]}))
    };
    vec![
        state("the quota is full", refused("exceeded quota: q"), "InProgress"),
        state("the quota is full for long", refused("exceeded quota: q").later(), "InProgress"),
        state("its image cannot be pulled", machine("ErrImagePull"), "InProgress"),
        state("its image cannot be pulled for long", machine("ErrImagePull").later(), "Failed"),
        state("its pod is refused", refused("violates PodSecurity"), "InProgress"),
        state("its pod is refused for long", refused("violates PodSecurity").later(), "Failed"),
        state("its Template does not exist", of("ghost"), "InProgress"),
        state("its Template does not exist for long", missing(), "Failed"),
        state("its Template has come late", late(), "InProgress"),
        state("its Template is wrong", of("wrong"), "Failed"),
    ]
}

/// A cluster with a shared volume whose claim is bound.
fn bound() -> World {
    let csi = json!({"spec": {"csi": {"volumeAttributes": {"server": "nfs", "share": "/data"}}}});
    let claim = json!({"spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}});
    let world = World::with(&[shared_volume("1Gi")]).settle().change("PersistentVolume", "", "pv", &csi);
    world.change("PersistentVolumeClaim", "workspace-tea", "shvol-data", &claim)
}

/// The same, with this status of the Job that prepares the volume.
fn prepared(status: &Value) -> World {
    bound().change("Job", "workspace-tea", "shvol-data-provision", &json!({"status": status}))
}

fn volumes() -> Vec<State> {
    let state = states_of("SharedVolume", "workspace-tea", "data");
    let new = || World::with(&[shared_volume("1Gi")]);
    let deleting = json!({"metadata": {"deletionTimestamp": "2026-03-04T05:06:07Z"}});
    let ready = || prepared(&json!({"succeeded": 1}));
    let mount = json!({"mountPath": "/data", "sharedVolume": {"name": "data", "namespace": "workspace-tea"}});
    let environment = json!({
        "name": "main", "image": "example.org/image", "environmentType": "Standalone", "mountMyDriveVolume": false,
        "resources": {"cpu": 1, "reservedCPUPercentage": 25, "memory": "1Gi"}, "sharedVolumeMounts": [mount],
    });
    let used = json!({"spec": {"environmentList": [environment]}});
    let left = || {
        let used = ready().change("Template", "workspace-tea", "box", &used);
        used.change("SharedVolume", "workspace-tea", "data", &deleting)
    };
    let changed = changed(ready(), "SharedVolume", "workspace-tea", "data", &json!({"size": "2Gi"}));
    vec![
        state("not reconciled yet", new(), "Current"),
        state("its claim is not bound", new().settle(), "InProgress"),
        state("it is prepared", bound(), "InProgress"),
        state("it is ready", ready(), "Current"),
        state("its spec has changed", changed, "InProgress"),
        state("it is being deleted", left(), "Terminating"),
        state("its size is wrong", World::with(&[shared_volume("0")]).settle(), "Failed"),
    ]
}

fn hindered_volumes() -> Vec<State> {
    let state = states_of("SharedVolume", "workspace-tea", "data");
    let failed = || prepared(&json!({"conditions": [{"type": "Failed", "status": "True", "message": "no"}]}));
    let refused = |error: ApiError| {
        let mut world = World::with(&[shared_volume("1Gi")]);
        world.refused = Some(("PersistentVolumeClaim", error));
        world.settle()
    };
    let quota = || refused(ApiError::QuotaExceeded("exceeded quota: q".to_owned()));
    let forbidden = || refused(ApiError::Forbidden("no right".to_owned()));
    vec![
        state("the quota is full", quota(), "InProgress"),
        state("the quota is full for long", quota().later(), "InProgress"),
        state("its claim is forbidden", forbidden(), "InProgress"),
        state("its claim is forbidden for long", forbidden().later(), "Failed"),
        state("its Job has failed", failed(), "InProgress"),
        state("its Job has failed long ago", failed().later(), "Failed"),
    ]
}

fn snapshots() -> Vec<State> {
    let state = states_of("InstanceSnapshot", "tenant-ada", "s");
    let of_disk = |phase: &str| {
        let disk = json!({"status": {"phase": phase}});
        let world = of("disk").change("Instance", "tenant-ada", "i", &stopped());
        let world = world.change("DataVolume", "tenant-ada", "i-main", &disk);
        world.change("InstanceSnapshot", "tenant-ada", "s", &snapshot())
    };
    let ended = |type_: &str| {
        let status = json!({"status": {"conditions": [{"type": type_, "status": "True"}]}});
        of_disk("Succeeded").change("Job", "tenant-ada", "s", &status)
    };
    let other = json!({"imageName": "other"});
    let changed = changed(ended("Failed"), "InstanceSnapshot", "tenant-ada", "s", &other);
    vec![
        state("not reconciled yet", World::with(&[snapshot()]), "Current"),
        state("its Instance does not exist", World::with(&[snapshot()]).settle(), "Failed"),
        state("its disk is filled", of_disk("ImportInProgress"), "InProgress"),
        state("its image is made", of_disk("Succeeded"), "InProgress"),
        state("its image is there", ended("Complete"), "Current"),
        state("its Job has failed", ended("Failed"), "Failed"),
        state("its spec has changed after that", changed, "InProgress"),
    ]
}

/// A cluster that rejects the creation of namespaces.
fn forbidden_namespaces() -> World {
    let mut world = World::with(&[]);
    world.refused = Some(("Namespace", ApiError::Forbidden("no right".to_owned())));
    world.settle()
}

/// A cluster with this namespace being deleted.
fn leaving_namespace(name: &str) -> World {
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-03-04T05:06:07Z"}});
    World::with(&[]).settle().change("Namespace", "", name, &leaving)
}

/// The Workspace of the course under another name, with these members of the spec.
fn workspace(name: &str, spec: &Value) -> Value {
    let mut object = course_object("tea");
    object["metadata"]["name"] = name.into();
    merge::apply(&mut object["spec"], spec);
    object
}

fn tenants() -> Vec<State> {
    let state = states_of("Tenant", "", "ada");
    let of_bob = states_of("Tenant", "", "bob");
    let entries = json!([{"name": "ghost", "role": "user"}, {"name": "tea", "role": "user"}]);
    let ghost = || World::with(&[tenant("bob", &json!({"workspaces": entries}))]).settle();
    let course = workspace("ghost", &json!({}));
    let late = || ghost().later().change("Workspace", "", "ghost", &course);
    let changed = changed(World::with(&[]).settle(), "Tenant", "", "ada", &json!({"createSandbox": true}));
    vec![
        state("not reconciled yet", World::with(&[]), "Current"),
        state("it is ready", World::with(&[]).settle(), "Current"),
        state("its spec has changed", changed, "InProgress"),
        state("its namespace is being deleted", leaving_namespace("tenant-ada").later(), "InProgress"),
        state("its namespace is forbidden", forbidden_namespaces(), "InProgress"),
        state("its namespace is forbidden for long", forbidden_namespaces().later(), "Failed"),
        of_bob("a course does not exist", ghost(), "InProgress"),
        of_bob("a course does not exist for long", ghost().later(), "Failed"),
        of_bob("its course has come late", late(), "Current"),
    ]
}

fn workspaces() -> Vec<State> {
    let state = states_of("Workspace", "", "tea");
    let wrong = |name: &str, spec: &Value| World::with(&[workspace(name, spec)]).settle();
    let dotted = states_of("Workspace", "", "a.b")("its name is wrong", wrong("a.b", &json!({})), "Failed");
    let odd = wrong("odd", &json!({"quota": {"cpu": "x"}}));
    let changed =
        changed(World::with(&[]).settle(), "Workspace", "", "tea", &json!({"prettyName": "Course"}));
    vec![
        state("not reconciled yet", World::with(&[]), "Current"),
        state("it is ready", World::with(&[]).settle(), "Current"),
        state("its spec has changed", changed, "InProgress"),
        state("its namespace is being deleted", leaving_namespace("workspace-tea").later(), "InProgress"),
        state("its namespace is forbidden", forbidden_namespaces(), "InProgress"),
        state("its namespace is forbidden for long", forbidden_namespaces().later(), "Failed"),
        dotted,
        states_of("Workspace", "", "odd")("its quota is wrong", odd, "Failed"),
    ]
}

fn templates() -> Vec<State> {
    let state = states_of("Template", "workspace-tea", "disk");
    let with_spec = |spec: &Value| {
        let mut object = course_object("disk");
        merge::apply(&mut object["spec"], spec);
        World::with(&[object]).settle()
    };
    let with_environment = |environment: &Value| {
        let mut object = course_object("disk");
        merge::apply(&mut object["spec"]["environmentList"][0], environment);
        World::with(&[object]).settle()
    };
    let stray = || with_spec(&json!({"workspace.crownlabs.polito.it/WorkspaceRef": {"name": "ghost"}}));
    let slow = || with_environment(&json!({"storageClassName": "absent"}));
    let wrong = || with_environment(&json!({"image": "no image"}));
    let changed = |world| changed(world, "Template", "workspace-tea", "disk", &json!({"prettyName": "Disk"}));
    vec![
        state("not reconciled yet", World::with(&[]), "Current"),
        state("it is ready", World::with(&[]).settle(), "Current"),
        state("its spec has changed", changed(World::with(&[]).settle()), "InProgress"),
        state("its course does not exist", stray(), "InProgress"),
        state("its course does not exist for long", stray().later(), "Failed"),
        state("its storage class does not exist", slow(), "InProgress"),
        state("its storage class does not exist for long", slow().later(), "Failed"),
        state("its image is wrong", wrong(), "Failed"),
        state("its spec has changed after that", changed(wrong()), "InProgress"),
    ]
}

fn pod_configs() -> Vec<State> {
    let state = states_of("PodConfig", "tenant-ada", "net");
    let new = |range: &str| World::with(&[pod_config(range)]);
    let pod = json!({
        "metadata": {"labels": {"podconfig": "net"}}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"},
    });
    let waits = || new("10.1.0.0/24").settle().change("Pod", "tenant-ada", "p", &pod);
    let other = json!({"networkAttachments": []});
    let changed = changed(new("10.1.0.0/24").settle(), "PodConfig", "tenant-ada", "net", &other);
    vec![
        state("not reconciled yet", new("10.1.0.0/24"), "Current"),
        state("it has no pods", new("10.1.0.0/24").settle(), "Current"),
        state("its spec has changed", changed, "InProgress"),
        state("a pod waits for its interface", waits(), "InProgress"),
        state("its range is wrong", new("10.1.0.0/33").settle(), "Failed"),
    ]
}
