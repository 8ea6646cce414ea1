use super::*;

mod every;

fn configuration(values: &str) -> FromValues {
    from_values(values, Made::Configuration, None).expect("values")
}

/// All remarks: steps, notes, and ignored values.
fn all(made: &FromValues) -> Vec<&str> {
    let Remarks { steps, notes, ignored } = &made.remarks;
    [steps, notes, ignored].into_iter().flatten().map(String::as_str).collect()
}

/// The remarks about values that are present.
fn said(made: &FromValues) -> Vec<&str> {
    let of_parts = "this file has no values for these parts";
    all(made).into_iter().filter(|remark| !remark.contains(of_parts)).collect()
}

fn read(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

/// Values as an administrator would write them, with one value of each form.
const VALUES: &str = r#"
global: {version: v1.2.3}
frontend-app: {replicaCount: 2}
operator:
  image: {repository: crownlabs/operator}
  configurations:
    targetLabel: crownlabs.polito.it/operator-selector=staging
    features: {tenant: true, workspace: true, instance: true, sharedvolume: false, pmp: true, keycloak: true, webhooks: true}
    keycloak:
      url: "https://auth.example.org/"
      realm: labs
      clientId: operator
      clientSecret: hunter2
      rolesClientId: api
    tenantNamespaceKeepAlive: 168h
    mydrivePVCsSize: 2Gi
    tenant: {resourcecaps: {cpu: 12, memory: 40, instances: 5}}
    maxConcurrentReconciles: 1
    unheardOf: {inner: 7}
  webhook:
    enableMutating: true
    enableValidating: true
    deployment: {webhookBypassGroups: "system:masters, kubernetes:admin", baseWorkspaces: utilities}
instance-operator:
  configurations:
    generic:
      whitelistLabels: crownlabs.polito.it/operator-selector=staging
      websiteBaseUrl: labs.example.org
      instancesAuthUrl: https://labs.example.org/auth/
    containerEnvironmentOptions: {tag: "", contentUploaderImage: registry.example.org/uploader}
    containerVmSnapshots: {kanikoImage: "kaniko:1", exportImage: crownlabs/img-exporter, exportImageTag: ""}
    privateContainerRegistry: {url: registry.example.org, secretName: login}
    publicExposure:
      ipPool: [172.18.0.240-172.18.0.249, 172.18.0.250/30]
      commonAnnotations: lbipam.cilium.io/sharing-key=pe,lbipam.cilium.io/sharing-cross-namespace=*
      loadBalancerIPsKey: lbipam.cilium.io/ips
    monitoring:
      prometheusURL: http://prometheus:9090
      queryStep: 5m
      queryWebSSHData: 'bastion_web_ssh_connections{destination_ip="%s"}'
    mailConfigDir: /etc/crownmail/configs
    automation:
      enableInstanceInactiveTermination: true
      enableInactivityNotifications: true
      enableExpirationNotifications: false
      inactiveTerminationNotificationInterval: 24h
      terminationStatusCheckInterval: soon
bastion:
  configurations: {sshTrackerInterface: eth0, sshTrackerPort: 2222}
exam-agent:
  configurations: {allowedIPs: "192.0.2.0/24, 198.51.100.7/32", targetNamespace: crownlabs-exam}
  exposition: {host: exams.example.org, basePath: /exams}
instmetrics:
  configurations:
    runtimeEndpoint: "unix:///run/crio/crio.sock"
    containerRuntime: /run/crio/crio.sock
    dockerSocket: /var/run/docker.sock
    connectionTimeout: 10s
    updatePeriod: 4s
    grpcPort: 9091
"#;

#[test]
fn values_are_carried_over_to_the_configuration() {
    let made = configuration(VALUES);
    let expected = r#"
apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {crownlabs.polito.it/operator-selector: staging}
server:
  webhook: {enabled: true, bypassGroups: ["system:masters", "kubernetes:admin"]}
controllers:
  tenant:
    enabled: true
    keepAlive: 7d
    baseWorkspaces: [utilities]
    myDrive: {size: 2Gi}
    quotaCaps: {cpu: 12, memory: 40G, instances: 5}
    countQuotas: {enabled: false}
    managers: cluster
    instancesClusterRole: crownlabs-manage-instances
    sandboxNetworkPolicies: false
    personalWorkspace: {enabled: true}
  workspace: {enabled: true}
  instance:
    enabled: true
    websiteBaseUrl: labs.example.org
    instancesAuthUrl: https://labs.example.org/auth
    containerImages: {tag: v1.2.3}
    urls: path
    largeUploads: false
    access: {mode: shared, exams: none}
    examEgress: {enabled: false}
    ephemeralStorage: ""
    vmPower: running
    layout: perEnvironment
  sharedVolume: {enabled: false}
  pvcMirror: {enabled: true}
  snapshot: {containerKanikoImg: "kaniko:1", vmRegistry: registry.example.org, vmRegistrySecret: login, ephemeralStorage: ""}
  publicExposure:
    ipPool: [172.18.0.240-172.18.0.249, 172.18.0.250/30]
    commonAnnotations: {lbipam.cilium.io/sharing-key: pe, lbipam.cilium.io/sharing-cross-namespace: "*"}
    loadBalancerIpsKey: lbipam.cilium.io/ips
  inactivity: {enabled: true, notifications: true, notificationInterval: 1d}
  expiration: {notifications: false}
  submission: {uploaderImage: "registry.example.org/uploader:v1.2.3"}
  sshTracker: {interface: eth0, port: 2222}
  examAgent:
    enabled: true
    requireToken: false
    namespace: crownlabs-exam
    allowedIps: [192.0.2.0/24, 198.51.100.7/32]
    basePath: /exams
  instanceMetrics:
    runtimeEndpoint: "unix:///run/crio/crio.sock"
    connectionTimeout: 10s
    updatePeriod: 4s
    listen: "0.0.0.0:9091"
integrations:
  keycloak:
    enabled: true
    url: https://auth.example.org
    realm: labs
    clientId: operator
    rolesClientId: api
    clientSecretFile: /etc/crownlabs/keycloak/client-secret
  prometheus: {url: "http://prometheus:9090", queryStep: 5m, queries: {webSshData: "bastion_web_ssh_connections{destination_ip=%q}"}}
  mail: {transport: smtp, configDir: /etc/crownmail/configs}
storage: {mode: mirror}
"#;
    assert_eq!(read(&made.yaml), read(expected));
    assert!(!made.yaml.contains("hunter2"), "{}", made.yaml);
}

#[test]
fn instances_are_named_as_the_operators_of_the_values_name_them() {
    let layout = |values: &str| {
        let made = configuration(values);
        let keys: Value = serde_saphyr::from_str(&made.yaml).expect("YAML");
        keys["controllers"]["instance"]["layout"].as_str().expect("a layout").to_owned()
    };
    for older in ["operator: {}", "bastion-operator: {}", "operator: {}\nglobal: {version: v1}"] {
        assert_eq!(layout(older), "classic", "{older}");
    }
    for newer in [
        "bastion: {}",
        "operator: {}\ngatewayAPI: {class: x}",
        "operator: {}\nglobal: {gateway: {enabled: true}}",
    ] {
        assert_eq!(layout(newer), "perEnvironment", "{newer}");
    }
}

#[test]
fn volumes_are_mounted_as_the_operators_of_the_values_mount_them() {
    let storage = |values: &str| read(&configuration(values).yaml)["storage"].clone();
    let nfs = json!({"mode": "nfs"});
    for older in ["operator: {}", "operator: {configurations: {features: {tenant: true}}}", "bastion: {}"] {
        assert_eq!(storage(older), nfs, "{older}");
    }
    assert_eq!(storage("operator: {configurations: {features: {pmp: false}}}"), json!({"mode": "mirror"}));
    let named = "instance-operator: {configurations: {generic: {mirrorStorageClass: m}, containerEnvironmentOptions: {tag: v1}}}";
    assert_eq!(storage(named), json!({"mode": "mirror", "mirrorClass": "m"}));
}

#[test]
fn personal_workspaces_are_served_as_the_operators_of_the_values_serve_them() {
    let key = |values: &str| {
        let made = configuration(values);
        let is_asked = made.remarks.notes.iter().any(|note| note.contains("they serve personal workspaces"));
        (read(&made.yaml)["controllers"]["tenant"]["personalWorkspace"]["enabled"].as_bool(), is_asked)
    };
    for newer in [
        "operator: {}\nbastion: {}",
        "operator: {configurations: {features: {tenant: true}}}",
        "operator: {rbacResourcesName: crownlabs-operator}",
    ] {
        assert_eq!(key(newer), (Some(true), false), "{newer}");
    }
    for older in ["operator: {}", "tenant-operator: {rbacResourcesName: crownlabs-tenant-operator}"] {
        assert_eq!(key(older), (None, true), "{older}");
    }
    assert_eq!(key("bastion-operator: {}"), (None, false), "no operator of Tenants");
}

#[test]
fn values_that_are_not_carried_over_are_reported_by_urgency() {
    let made = configuration(VALUES);
    let Remarks { steps, notes, ignored } = &made.remarks;
    let of_steps = [
        "instance-operator.configurations.automation.terminationStatusCheckInterval: \"soon\" is left out: expected \
         a duration such as 24h: set controllers.termination.statusCheckInterval",
        "operator.configurations.keycloak.clientSecret: put it into the file",
        "bastion: copy its Secrets from",
    ];
    let of_notes = [
        "exam-agent.exposition.host: \"exams.example.org\" is not part of the configuration: it is \
         `examAgent.ingress.host`",
        "crownmail: this file has no values for these parts",
    ];
    let of_ignored = [
        "operator.configurations.unheardOf.inner: the configuration has no such key",
        "frontend-app: the dashboard",
        "operator.image: the daemon has other images",
        "operator.configurations.maxConcurrentReconciles: each loop",
        "instance-operator.configurations.containerVmSnapshots.exportImage: the daemon has",
        "instmetrics.configurations.containerRuntime: the chart mounts",
        "instmetrics.configurations.dockerSocket: the socket",
    ];
    for (remarks, begins) in [(steps, &of_steps[..]), (notes, &of_notes), (ignored, &of_ignored)] {
        assert_eq!(remarks.len(), begins.len(), "{remarks:#?}");
        for (remark, begin) in remarks.iter().zip(begins) {
            assert!(remark.starts_with(begin), "{remark}\ndoes not begin with\n{begin}");
            assert!(!remark.contains("hunter2"), "{remark}");
        }
    }
}

#[test]
fn the_report_has_a_heading_for_each_group_and_the_file_is_usable_without_steps() {
    let made = configuration("bastion: {image: {repository: r}, configurations: {sshTrackerPort: 2222}}");
    let report = made.report();
    let begins = [
        "Must be done before the file can be used:",
        "  bastion: copy its Secrets from the operators' namespace",
        "Should be known:",
        "  operator, instance-operator, exam-agent, crownmail: this file has no values for these parts",
        "Ignored:",
        "  bastion.image: the daemon has other images",
    ];
    assert_eq!(report.lines().count(), begins.len(), "{report}");
    for (line, begin) in report.lines().zip(begins) {
        assert!(line.starts_with(begin), "{line}\ndoes not begin with\n{begin}");
    }
    assert!(!made.is_usable());

    let made =
        configuration("exam-agent: {configurations: {targetNamespace: exams, allowedIPs: 192.0.2.0/24}}");
    assert!(made.is_usable() && made.report().starts_with("Should be known:\n"), "{}", made.report());
}

#[test]
fn two_values_that_disagree_are_named() {
    let values = "operator: {configurations: {targetLabel: a=b}}
global: {version: v1}
instance-operator: {configurations: {generic: {whitelistLabels: c=d}}}";
    let made = configuration(values);
    let message = r#"instance-operator.configurations.generic.whitelistLabels: {"c":"d"} is left out, since selector is {"a":"b"} already"#;
    assert_eq!(made.remarks.notes[0], message);
}

#[test]
fn unusable_values_are_reported() {
    let expected = "; expected the output of `helm get values RELEASE --all -o yaml`";
    for (values, begin, end) in [
        ("frontend-app: {}", "these are not values of the Go operators' chart: none of operator, ", expected),
        ("", "it is empty", expected),
        ("# operator: {}\n", "it is empty", expected),
        ("operator: 3", "operator is 3", "; expected a mapping with the values of this part"),
        ("[1, 2", "line 1: not valid YAML: ", ""),
        (
            "bastion: {}\noperator: {}\noperator: {}",
            "line 3: the key operator is given twice",
            "; expected it once",
        ),
        (
            "operator: {}\n---\noperator: {}",
            "line 3: a second YAML document begins",
            "; expected one document in the file",
        ),
    ] {
        let error = from_values(values, Made::Chart, None).expect_err("no values");
        assert!(error.starts_with(begin) && error.ends_with(end) && error.lines().count() == 1, "{error}");
    }
    let values = "operator: {configurations: {keycloak: {url: \"https://auth.example.org\"}}}";
    for (made, begin) in
        [(Made::Configuration, "    the configuration:"), (Made::Chart, "    the configuration: ")]
    {
        let made = from_values(values, made, None).expect("values");
        let report = made.report();
        let (_, faults) = report.split_once("  fix these faults of the configuration:\n").expect("faults");
        assert!(faults.starts_with(begin) && faults.contains("realm"), "{report}");
        assert!(!made.is_usable());
    }
}

#[test]
fn image_lists_of_all_charts_are_carried_over() {
    let list = |made: &FromValues| read(&made.yaml)["controllers"]["imageList"].clone();
    let made = configuration(
        "image-list: {configurations: {registryUrl: 'http://docker-registry.docker-registry:5000/', advRegistryName: r.example.org, imageListName: vms, updateInterval: 60}}",
    );
    let expected = read(
        "enabled: true
updateInterval: 60s
registries: [{imageListName: vms, url: 'http://docker-registry.docker-registry:5000/', registryName: r.example.org}]",
    );
    assert_eq!((list(&made), said(&made)), (expected, Vec::new()));
    let made = configuration(
        "operator:
  configurations:
    features: {imageList: false}
    imageList:
      updateInterval: soon
      other: 1
      registries:
      - {name: a, type: docker, url: 'http://r:5000', advertised: r.example.org, username: '', password: '', imageListName: vms}
      - {name: b, type: harbor, url: 'https://h', registryName: h.example.org, username: robot, password: hunter2, imageListName: apps, project: labs}",
    );
    let expected = read(
        "enabled: false
registries:
- {imageListName: vms, type: docker, url: 'http://r:5000', registryName: r.example.org}
- {imageListName: apps, type: harbor, url: 'https://h', registryName: h.example.org, project: labs, username: robot,
   passwordFile: /etc/crownlabs-files/registries/apps/password}",
    );
    assert_eq!(list(&made), expected);
    let begins = [
        "operator.configurations.imageList.registries[1].password: put it into the file /etc/crownlabs-files/registries/apps/",
        "operator.configurations.imageList.updateInterval: \"soon\" is left out: expected a number of seconds",
        "operator.configurations.imageList.other: the configuration has no such key",
    ];
    assert_eq!(said(&made).len(), begins.len(), "{:#?}", made.remarks);
    for (message, begin) in said(&made).iter().zip(begins) {
        assert!(message.starts_with(begin) && !message.contains("hunter2"), "{message}");
    }
}

#[test]
fn an_open_exam_agent_stays_open_and_is_reported() {
    for (allowed, is_open) in
        [("", true), ("allowedIPs: ''", true), ("allowedIPs: []", true), ("allowedIPs: 192.0.2.0/24", false)]
    {
        let values = format!("exam-agent: {{configurations: {{targetNamespace: exams, {allowed}}}}}");
        let made = configuration(&values);
        let config = Config::parse("the configuration", &made.yaml).expect("a configuration");
        assert_eq!(config.controllers.exam_agent.allow_anyone, is_open, "{allowed}: {}", made.yaml);
        let warning = "any client that reaches the exam agent";
        let told = made.remarks.notes.iter().filter(|note| note.contains(warning));
        assert_eq!(
            (told.count(), said(&made).len()),
            (usize::from(is_open), usize::from(is_open)),
            "{allowed}"
        );
    }
}
